//! Learning: it learns, it normalises, it repeats itself to the bit, and it stops in good order.

mod every;

use everytree_core::data::{Table, Unique};
use everytree_core::forest::Cpu;
use everytree_core::learn::{Data, Ended, Engine, LearnError, Observer, State, evaluate};
use everytree_core::model::{Learnable, Moat, PairCounts, Pairs, Settings, SettingsError};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const STATES: [usize; 6] = [2, 3, 2, 4, 2, 3];

/// Rows from two different chains, so that no single tree is right.
fn rows(count: usize, seed: u64) -> Unique {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&STATES);
    for _ in 0..count {
        let order: [usize; 6] = if rng.random_bool(0.5) { [0, 1, 2, 3, 4, 5] } else { [0, 3, 5, 1, 4, 2] };
        let mut row = [0u16; 6];
        let mut last = rng.random_range(0..STATES[0]);
        for v in order {
            let state = if rng.random_bool(0.75) { last % STATES[v] } else { rng.random_range(0..STATES[v]) };
            row[v] = state as u16;
            last = state;
        }
        table.push(&row);
    }
    table.unique()
}

fn initial(data: &Unique, pairs: Pairs) -> Moat {
    Moat::from_counts(&PairCounts::new(&STATES, &data.table, &data.weights), pairs, 1.0).unwrap()
}

fn settings(epochs: usize) -> Settings {
    Settings { epochs, batch_size: 64, ..Settings::paper(STATES.len()) }
}

fn judge() -> Cpu<f64> {
    Cpu::new().keeping(0)
}

fn learn(settings: &Settings, pairs: Pairs, watch: &mut dyn Observer<Moat>) -> (State<Moat>, Ended) {
    let (train, valid) = (rows(800, 1), rows(200, 2));
    let mut state = State::new(initial(&train, pairs));
    let data = Data { train: &train, valid: &valid };
    let ended = state.run(data, settings, &Cpu::<f32>::new(), &judge(), watch).unwrap();
    (state, ended)
}

fn sum_of_probabilities<B: Engine<Moat>>(model: &Moat, backend: &B) -> f64 {
    let states = model.states();
    let mut all = Table::new(states);
    every::row(states).iter().for_each(|row| all.push(row));
    let all = all.unique();
    evaluate(model, &all, backend).unwrap().log_likelihood.iter().map(|log| log.exp()).sum()
}

#[test]
fn learning_improves_validation_and_stays_normalised() {
    for pairs in [Pairs::Lambda, Pairs::Sinkhorn] {
        let (state, ended) = learn(&settings(15), pairs, &mut ());
        assert_eq!(ended, Ended::Done);
        assert_eq!(state.epochs(), 15);
        let best = state.best_epoch().unwrap();
        assert!(best.valid > state.history[0].valid + 0.02, "{pairs:?}: {:?}", state.history);
        assert!((evaluate(&*state.best, &rows(200, 2), &judge()).unwrap().mean - best.valid).abs() < 1e-12);
        for model in [&state.best, &state.model] {
            let (double, single) =
                (sum_of_probabilities(model, &judge()), sum_of_probabilities(model, &Cpu::<f32>::new()));
            assert!((double - 1.0).abs() <= 1e-9, "{pairs:?}: {double}");
            assert!((single - 1.0).abs() <= 1e-5, "{pairs:?}: {single}");
        }
    }
}

/// The same with nothing but binary variables, learned in either precision.
#[test]
fn binary_models_stay_normalised() {
    let states = [2; 9];
    let mut rng = Pcg64::seed_from_u64(8);
    let mut table = Table::new(&states);
    for _ in 0..500 {
        let first = rng.random_bool(0.3);
        let row: [u16; 9] =
            std::array::from_fn(|v| u16::from(rng.random_bool(if first { 0.8 } else { 0.05 * v as f64 })));
        table.push(&row);
    }
    let data = table.unique();
    let counts = PairCounts::new(&states, &data.table, &data.weights);
    let learned = |double: bool| {
        let mut state = State::new(Moat::from_counts(&counts, Pairs::Lambda, 1.0).unwrap());
        let (data, settings) = (Data { train: &data, valid: &data }, settings(20));
        match double {
            true => state.run(data, &settings, &Cpu::<f64>::new(), &judge(), &mut ()).unwrap(),
            false => state.run(data, &settings, &Cpu::<f32>::new(), &judge(), &mut ()).unwrap(),
        };
        state.model
    };
    for model in [learned(false), learned(true)] {
        assert!((sum_of_probabilities(&model, &judge()) - 1.0).abs() <= 1e-9);
        assert!((sum_of_probabilities(&model, &Cpu::<f32>::new()) - 1.0).abs() <= 1e-5);
    }
}

/// One full-batch step on weighted distinct rows is the step on all rows.
#[test]
fn distinct_rows_with_weights_give_the_same_gradient() {
    let data = rows(300, 3);
    let model = initial(&data, Pairs::Lambda);
    let cpu = Cpu::<f64>::new();
    let gradient = |table: &Table, weights: &[f64]| {
        let mut ready = model.ready(&cpu).unwrap();
        let mut out = vec![0.0; table.rows()];
        model.log_likelihood(&cpu, &mut ready, table.codes(), &mut out).unwrap();
        let mut stats = model.stats(&ready);
        model.accumulate(&cpu, &mut ready, table.codes(), weights, &mut stats).unwrap();
        let mut gradient = vec![0.0; model.parameters().len()];
        model.gradient(&ready, &stats, &mut gradient);
        gradient
    };
    let all = data.table.select(data.of_row.iter().map(|&place| place as usize));
    let (one, other) = (gradient(&data.table, &data.weights), gradient(&all, &vec![1.0; all.rows()]));
    assert!(data.table.rows() < all.rows());
    for (a, b) in one.iter().zip(&other) {
        assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{a} {b}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let settings = Settings { ema: Some(0.9), cosine: true, ..settings(4) };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| learn(&settings, Pairs::Lambda, &mut ()).0)
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(7));
}

#[test]
fn patience_ends_a_run_that_gets_no_better() {
    let settings = Settings { learning_rate: 2.0, patience: Some(2), ..settings(50) };
    let (state, ended) = learn(&settings, Pairs::Lambda, &mut ());
    assert_eq!(ended, Ended::Patience);
    assert_eq!(state.epochs(), state.best_epoch().unwrap().epoch + 2);
}

#[test]
fn a_step_into_nowhere_is_an_error_that_keeps_the_best() {
    let (train, valid) = (rows(800, 1), rows(200, 2));
    let mut state = State::new(initial(&train, Pairs::Lambda));
    let data = Data { train: &train, valid: &valid };
    state.run(data, &settings(1), &Cpu::<f32>::new(), &judge(), &mut ()).unwrap();
    let good = state.clone();
    // Derivatives of a broken optimiser.
    std::sync::Arc::make_mut(&mut state.adam).means[0] = f64::INFINITY;
    let error = state.run(data, &settings(3), &Cpu::<f32>::new(), &judge(), &mut ()).unwrap_err();
    assert_eq!(error, LearnError::NotFinite { epoch: 2, batch: 1, what: "a parameter" });
    assert_eq!(state.best, good.best);
    assert_eq!(state.model, good.model);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bad = |change: fn(&mut Settings)| {
        let mut settings = settings(1);
        change(&mut settings);
        settings.check().unwrap_err()
    };
    assert_eq!(bad(|s| s.batch_size = 0), SettingsError::NoBatch);
    assert_eq!(bad(|s| s.learning_rate = -1.0), SettingsError::LearningRate(-1.0));
    assert!(matches!(bad(|s| s.learning_rate = f64::NAN), SettingsError::LearningRate(_)));
    assert_eq!(bad(|s| s.ema = Some(1.0)), SettingsError::Ema(1.0));
    let bad_shrinkage = bad(|s| s.regularisation.shrinkage = -1.0);
    assert_eq!(bad_shrinkage, SettingsError::Regularisation { what: "shrinkage", value: -1.0 });
    assert!(matches!(
        bad(|s| s.regularisation.laplace = f64::INFINITY),
        SettingsError::Regularisation { .. }
    ));
    assert_eq!(Settings::paper(499).batch_size, 1024);
    assert_eq!(Settings::paper(500).batch_size, 64);
}

#[test]
fn f32_and_f64_agree_on_a_learned_model() {
    let (state, _) = learn(&settings(10), Pairs::Lambda, &mut ());
    let valid = rows(200, 2);
    let double = evaluate(&*state.best, &valid, &judge()).unwrap();
    let single = evaluate(&*state.best, &valid, &Cpu::<f32>::new()).unwrap();
    assert!((double.mean - single.mean).abs() < 1e-5);
    assert!(double.standard_error(&valid) > 0.0);
}
