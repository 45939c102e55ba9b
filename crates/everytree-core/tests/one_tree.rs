//! Distributions that are one tree: likelihoods and counts against enumeration, expectation–maximisation goes uphill, and
//! special cases are what they should be.

mod every;

use everytree_core::data::Codes;
use everytree_core::data::{Dataset, Table, Unique};
use everytree_core::forest::Cpu;
use everytree_core::infer::Messages;
use everytree_core::learn::{Datasets, Plan, Search, evaluate};
use everytree_core::model::{
    Component, ComponentInference, ComponentShape, EdgeTables, Family, HowMany, Initialisation, Learnable,
    Mixture, ModelError, PairCounts, Pairs, ParamsView, Regularisation, Settings, Start, TreeModel,
};
use everytree_core::spanning::RootedForest;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const STATES: [usize; 5] = [2, 3, 1, 4, 2];
/// Every family of one tree, with so many states of latent variables.
const FAMILIES: [(Family, usize); 4] =
    [(Family::Independent, 0), (Family::ChowLiu, 0), (Family::Hclt, 1), (Family::Hclt, 3)];

fn random(family: Family, hidden: usize, seed: u64) -> Component {
    family.random(&STATES, &shape(hidden), seed).unwrap()
}

fn shape(hidden: usize) -> ComponentShape {
    ComponentShape { hidden: Some(hidden), ..ComponentShape::default() }
}

fn tree_of(model: &Component) -> Box<TreeModel> {
    match model.inference().unwrap() {
        ComponentInference::OneTree(tree) => tree,
        _ => panic!("one tree"),
    }
}

/// A component as counts have it.
fn counted(family: Family, data: &Unique, pseudocount: f64) -> Component {
    let counts = PairCounts::new(&STATES, &data.table, &data.weights);
    let (weights, shape) = (&data.weights[..], shape(1));
    let from = Initialisation {
        data,
        states: &STATES,
        weights,
        counts,
        shape,
        pseudocount,
        seed: 0,
        stop: &|| false,
    };
    family.from_counts(&from).unwrap()
}

fn table(rows: &[Vec<u16>], states: &[usize]) -> Table {
    let mut table = Table::new(states);
    rows.iter().for_each(|row| table.push(row));
    table
}

fn log_p<M: Learnable>(model: &M, rows: &[Vec<u16>]) -> Vec<f64> {
    let mut out = vec![0.0; rows.len()];
    let cpu = Cpu::<f64>::new();
    let codes = rows.concat();
    let codes = Codes::new(&codes, model.states().len()).unwrap();
    model.log_likelihood(&cpu, &mut model.ready(&cpu).unwrap(), codes, &mut out).unwrap();
    out
}

/// A chain of causes with two kinds of rows among them.
fn rows(count: usize, states: &[usize], seed: u64) -> Unique {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(states);
    for _ in 0..count {
        let kind = usize::from(rng.random_bool(0.4));
        let mut before = 0;
        let row: Vec<u16> = states
            .iter()
            .map(|&states| {
                before = match rng.random_bool(0.7) {
                    true => (before + kind) % states,
                    false => rng.random_range(0..states),
                };
                before as u16
            })
            .collect();
        table.push(&row);
    }
    table.unique()
}

/// The probability of a row with all hidden states, straight from the tables.
fn probability(model: &Component, row: &[usize]) -> f64 {
    let ready = tree_of(model);
    let of = |v: usize| match ready.tree().parent(v) {
        None => ready.root(v)[row[v]],
        Some(u) => ready.given(u, row[u], v)[row[v]],
    };
    (0..row.len()).map(of).product()
}

/// Hidden states are summed out, and everything adds up to 1.
#[test]
fn likelihoods_are_sums_over_hidden_states() {
    let all = every::row(&STATES);
    for (seed, (family, states)) in FAMILIES.into_iter().enumerate() {
        let model = random(family, states, seed as u64);
        let hidden = if states > 0 { every::row(&[states; 5]) } else { vec![Vec::new()] };
        let found = log_p(&model, &all);
        for (row, log) in all.iter().zip(&found) {
            let whole = |hidden: &Vec<u16>| -> Vec<usize> {
                row.iter().chain(hidden).map(|&state| usize::from(state)).collect()
            };
            let expected: f64 = hidden.iter().map(|hidden| probability(&model, &whole(hidden))).sum();
            assert!((log.exp() / expected - 1.0).abs() < 1e-12, "{family:?} {states} {row:?}");
        }
        let sum: f64 = found.iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }
}

#[test]
fn no_rows_count_nothing() {
    let cpu = Cpu::<f64>::new();
    for (family, states) in FAMILIES {
        let model = random(family, states, 1);
        let mut ready = model.ready(&cpu).unwrap();
        let mut stats = model.stats::<Cpu<f64>>(&ready);
        let before = stats.to_vec();
        let none = Codes::new::<u16>(&[], STATES.len()).unwrap();
        model.log_likelihood(&cpu, &mut ready, none, &mut []).unwrap();
        model.accumulate(&cpu, &mut ready, none, &[], &mut stats).unwrap();
        assert_eq!(stats.to_vec(), before);
    }
}

fn weighted<M: Learnable>(model: &M, data: &Unique) -> f64 {
    evaluate(model, data, &Cpu::<f64>::new()).unwrap().mean * data.rows() as f64
}

/// Derivatives are counts minus what the tables expect: expected counts are right if these are.
#[test]
fn gradients_match_finite_differences() {
    let data = rows(61, &STATES, 1);
    let cpu = Cpu::<f64>::new();
    for (seed, (family, states)) in FAMILIES.into_iter().enumerate() {
        let model = random(family, states, seed as u64);
        let mut ready = model.ready(&cpu).unwrap();
        let mut stats = model.stats::<Cpu<f64>>(&ready);
        model.accumulate(&cpu, &mut ready, data.table.codes(), &data.weights, &mut stats).unwrap();
        let mut gradient = vec![0.0; model.size()];
        model.gradient::<Cpu<f64>>(&ready, &stats, &mut gradient);
        let by = Regularisation { shrinkage: 0.0, laplace: 0.4 };
        model.regularise(&by, 1.0, &mut gradient);
        let start = model.to_vec();
        for place in 0..start.len() {
            let at = |step: f64| {
                let mut moved = model.clone();
                let mut numbers = start.clone();
                numbers[place] += step;
                moved.set(&numbers).unwrap();
                weighted(&moved, &data) + moved.log_prior(&by)
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (gradient[place] - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{family:?} {states} {place}: {} {expected}",
                gradient[place]
            );
        }
    }
}

/// Every spanning tree on five variables, as lists of parents with the first variable as the root.
fn trees(n: usize) -> Vec<Vec<usize>> {
    let choices: Vec<usize> = vec![n; n - 1];
    every::row(&choices)
        .into_iter()
        .map(|row| std::iter::once(0).chain(row.into_iter().map(usize::from)).collect::<Vec<usize>>())
        .filter(|parents| {
            (1..n).all(|v| parents[v] != v) && RootedForest::from_parents(parents.clone()).is_ok()
        })
        .collect()
}

/// No other tree, with the best tables that it can have, explains the rows better.
#[test]
fn chow_liu_is_the_best_of_all_trees() {
    let data = rows(400, &STATES, 3);
    let counts = PairCounts::new(&STATES, &data.table, &data.weights);
    let best = counted(Family::ChowLiu, &data, 0.0);
    let found = weighted(&best, &data);
    let all = trees(5);
    assert_eq!(all.len(), 125, "Cayley");
    let mut most = f64::NEG_INFINITY;
    for parents in all {
        // Its tables by expectation–maximisation with nothing hidden: one step counts.
        let mut log = 0.0;
        for v in 0..5 {
            let (u, k) = (parents[v], STATES[v]);
            for row in 0..data.table.rows() {
                let (a, b) = (data.table.get(row, u), data.table.get(row, v));
                let pair = |b: usize| match u.cmp(&v) {
                    std::cmp::Ordering::Less => counts.pair(v, b, u, a),
                    std::cmp::Ordering::Equal => counts.single(v, b),
                    std::cmp::Ordering::Greater => counts.pair(u, a, v, b),
                };
                let line: f64 = (0..k).map(pair).sum();
                log += data.weights[row] * (pair(b) / line).ln();
            }
        }
        most = most.max(log);
    }
    assert!((found - most).abs() < 1e-6, "{found} {most}");
}

/// One step of expectation–maximisation with all rows and nothing added; the weight of the rows of each component.
fn step(model: &mut Mixture<Component>, data: &Unique) -> Vec<f64> {
    let cpu = Cpu::<f64>::new();
    let mut ready = model.ready(&cpu).unwrap();
    let mut out = vec![0.0; data.table.rows()];
    model.log_likelihood(&cpu, &mut ready, data.table.codes(), &mut out).unwrap();
    let mut stats = model.stats(&ready);
    model.accumulate(&cpu, &mut ready, data.table.codes(), &data.weights, &mut stats).unwrap();
    assert!(model.maximise(&ready, &stats, None, &Regularisation::default()));
    stats.responsibilities().to_vec()
}

/// With all rows at once and nothing added to the counts, no step goes downhill.
#[test]
fn expectation_maximisation_goes_uphill() {
    let data = rows(300, &STATES, 5);
    for family in [Family::Independent, Family::ChowLiu, Family::Hclt] {
        for components in [1, 3] {
            let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
            let mut model = start.model(&STATES, &data, components, 3).unwrap();
            let (first, mut last) = (weighted(&model, &data), f64::NEG_INFINITY);
            for _ in 0..20 {
                let shares = step(&mut model, &data);
                if components > 1 {
                    // A row more for every component keeps the shares from being the best ones.
                    model = Mixture::new(model.components().to_vec(), &shares).unwrap();
                }
                let now = weighted(&model, &data);
                // Responsibilities below 1e-5 are left out.
                assert!(now > last - 1e-3, "{family:?} {components}: {last} {now}");
                last = now;
            }
            assert!(last > first);
        }
    }
}

fn learn(family: Family, components: usize, hidden: usize, settings: &Settings) -> (Mixture<Component>, f64) {
    let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
    learn_from(start, components, hidden, settings)
}

fn learn_from(
    start: Start,
    components: usize,
    hidden: usize,
    settings: &Settings,
) -> (Mixture<Component>, f64) {
    let (train, valid) = (rows(500, &STATES, 7), rows(200, &STATES, 8));
    let plan = Plan { hidden: HowMany::Just(hidden), ..Plan::simple(start, components) };
    let mut search = Search::new(plan);
    let expand = |data: &Unique| {
        let mut all = Table::new(&STATES);
        for (row, weight) in data.weights.iter().enumerate() {
            let codes: Vec<u16> = (0..5).map(|v| data.table.get(row, v) as u16).collect();
            (0..*weight as usize).for_each(|_| all.push(&codes));
        }
        all
    };
    let (train, valid) = (expand(&train), expand(&valid));
    let data = |table: &Table| Dataset::anonymous(&STATES, table.clone()).unwrap();
    let (train, valid) = (data(&train), data(&valid));
    let rows = Datasets { train: &train, valid: &valid };
    search.run(rows, settings, &Cpu::<f32>::new(), &Cpu::<f64>::new(), &mut ()).unwrap();
    let found = search.best_so_far().unwrap().unwrap();
    let best = found.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
    (found.model.mixture().clone(), best)
}

#[test]
fn a_mixture_of_one_tree_is_chow_liu() {
    let (mixture, _) = learn(Family::ChowLiu, 1, 1, &Family::ChowLiu.settings(0));
    let data = rows(500, &STATES, 7);
    let expected = counted(Family::ChowLiu, &data, 1.0);
    let all = every::row(&STATES);
    for (found, expected) in log_p(&mixture, &all).iter().zip(log_p(&expected, &all)) {
        assert!((found - expected).abs() < 1e-12);
    }
    // Wherever it begins: a random tree is not what is kept.
    let start =
        Start { family: Family::ChowLiu, pairs: Pairs::Lambda, pseudocount: 1.0, random: true, seed: 1 };
    let (mixture, _) = learn_from(start, 1, 1, &Family::ChowLiu.settings(0));
    for (found, expected) in log_p(&mixture, &all).iter().zip(log_p(&expected, &all)) {
        assert!((found - expected).abs() < 1e-12);
    }
}

#[test]
fn one_hidden_state_is_independence() {
    let data = rows(500, &STATES, 7);
    let start = Start { family: Family::Hclt, pairs: Pairs::Lambda, pseudocount: 1.0, random: true, seed: 1 };
    let mut model = start.model(&STATES, &data, 1, 1).unwrap();
    step(&mut model, &data);
    let expected = counted(Family::Independent, &data, 0.0);
    let all = every::row(&STATES);
    for (found, expected) in log_p(&model, &all).iter().zip(log_p(&expected, &all)) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

/// More of what pays helps: the rows are of two kinds, along a chain.
#[test]
fn larger_models_explain_more() {
    let valid =
        |family, components, hidden, settings: &Settings| learn(family, components, hidden, settings).1;
    let trees = Family::ChowLiu.settings(0);
    let hidden = Family::Hclt.settings(0);
    let floor = valid(Family::Independent, 1, 1, &trees);
    let one = valid(Family::ChowLiu, 1, 1, &trees);
    let several = valid(Family::ChowLiu, 3, 1, &trees);
    let latent = valid(Family::Hclt, 1, 4, &hidden);
    assert!(
        one > floor + 0.01 && several > one + 0.01 && latent > floor + 0.01,
        "{floor} {one} {several} {latent}"
    );
}

/// Hundreds of variables that hang at one, and a long chain, without underflow; rows that do not fill the lanes.
#[test]
fn long_chains_and_large_stars_do_not_underflow() {
    let n = 400;
    let states = vec![2; n];
    for star in [false, true] {
        let parents: Vec<usize> = (0..n).map(|v: usize| if star { 0 } else { v.saturating_sub(1) }).collect();
        let line = |v: usize, a: usize| match v < n {
            true => [[0.999999, 0.000001], [0.4, 0.6], [0.000001, 0.999999]][a].to_vec(),
            false => [[0.98, 0.01, 0.01], [1e-9, 0.5, 0.5], [0.1, 0.1, 0.8]][a].to_vec(),
        };
        let mut numbers: Vec<f64> = (0..n).map(|v| (n + v) as f64).collect();
        numbers.extend(parents.iter().map(|&parent| (n + parent) as f64));
        let tables = (0..2 * n).flat_map(|v| (0..3).flat_map(move |a| line(v, a)));
        numbers.extend(tables.map(f64::ln));
        let model = Family::Hclt.from_numbers(&states, &shape(3), numbers.clone()).unwrap();
        let ready = tree_of(&model);
        let mut rng = Pcg64::seed_from_u64(9);
        let some: Vec<Vec<u16>> =
            (0..19).map(|_| (0..n).map(|_| u16::from(rng.random_bool(0.5))).collect()).collect();
        let found = log_p(&model, &some);
        let mut messages = Messages::new(&*ready);
        for (row, log) in some.iter().zip(found) {
            let mut evidence = everytree_core::infer::Evidence::none(ready.states());
            row.iter().enumerate().for_each(|(v, &state)| evidence.set(v, &[usize::from(state)]).unwrap());
            let expected = messages.collect(ready.tree(), &evidence);
            assert!(expected.is_finite() && expected < -200.0);
            assert!((log / expected - 1.0).abs() < 1e-12, "{star}: {log} {expected}");
        }
    }
}

/// Messages in single precision give what those in double give; where tables are so sharp that single precision has no numbers so
/// small, digits are lost, but no row becomes impossible. Rows that are more than a panel, or more than are kept, count like
/// others.
#[test]
fn single_precision_is_as_good_and_gives_way_where_it_is_not() {
    let states = vec![2; 40];
    let mut rng = Pcg64::seed_from_u64(3);
    for (hidden, sharpness) in [(3, 1.0), (20, 5.0), (5, 60.0)] {
        let mut model = Family::Hclt.random(&states, &shape(hidden), 7).unwrap();
        model.slices_mut().into_iter().flatten().for_each(|logit| *logit *= sharpness);
        for rows in [1, 33, 600] {
            let cells: Vec<u16> = (0..rows * 40).map(|_| u16::from(rng.random_bool(0.5))).collect();
            let weights: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..3.0)).collect();
            let codes = Codes::new(&cells, 40).unwrap();
            let (exact, exact_slopes) = learned(&model, &Cpu::<f64>::new(), codes, &weights);
            let (single, slopes) = learned(&model, &Cpu::<f32>::new(), codes, &weights);
            if sharpness > 10.0 {
                assert!(single.iter().all(|log| log.is_finite()));
                assert!(slopes.iter().all(|slope| slope.is_finite()));
                continue;
            }
            for (log, exact) in single.iter().zip(&exact) {
                assert!((log / exact - 1.0).abs() < 1e-5, "{hidden} {sharpness}: {log} {exact}");
            }
            let most = exact_slopes.iter().fold(0.0f64, |most, slope| most.max(slope.abs()));
            for (slope, exact) in slopes.iter().zip(&exact_slopes) {
                assert!((slope - exact).abs() < 1e-4 * most, "{hidden} {sharpness}: {slope} {exact}");
            }
        }
    }
}

/// Likelihoods of rows, and derivatives.
fn learned<T: everytree_core::forest::Precision>(
    model: &Component,
    cpu: &Cpu<T>,
    codes: Codes<'_>,
    weights: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let mut ready = model.ready(cpu).unwrap();
    let mut logs = vec![0.0; weights.len()];
    model.log_likelihood(cpu, &mut ready, codes, &mut logs).unwrap();
    let mut stats = model.stats(&ready);
    model.accumulate(cpu, &mut ready, codes, weights, &mut stats).unwrap();
    let mut gradient = vec![0.0; model.size()];
    model.gradient::<Cpu<T>>(&ready, &stats, &mut gradient);
    (logs, gradient)
}

#[test]
fn trees_that_are_none_are_refused() {
    let good = random(Family::ChowLiu, 0, 1);
    let with = |model: &Component, place: usize, value: f64| {
        let mut numbers: Vec<f64> = model.lists().concat();
        numbers[place] = value;
        model.family().from_numbers(&STATES, &model.shape(), numbers)
    };
    for parent in [5.0, 0.5, -1.0] {
        assert_eq!(with(&good, 1, parent), Err(ModelError::Parent { variable: 1, parent }));
    }
    assert!(matches!(with(&good, 0, 4.0), Err(ModelError::Tree(_))), "a cycle");
    assert!(matches!(with(&good, 9, f64::NAN), Err(ModelError::NotANumber { place: 4, .. })));
    for hidden in [0, 1 << 20] {
        assert_eq!(Family::Hclt.random(&STATES, &shape(hidden), 1), Err(ModelError::Hidden(hidden)));
    }
    let latent = random(Family::Hclt, 2, 1);
    assert_eq!(with(&latent, 0, 6.0), Err(ModelError::Parent { variable: 0, parent: 6.0 }));
    // Codes that are no states are an error, not a panic.
    let cpu = Cpu::<f64>::new();
    let rows = table(&[vec![0; 5]], &STATES);
    assert_eq!(rows.rows(), 1);
    let bad = [0u16, 3, 0, 0, 0];
    let mut ready = good.ready(&cpu).unwrap();
    assert!(good.log_likelihood(&cpu, &mut ready, Codes::new(&bad, 5).unwrap(), &mut [0.0]).is_err());
}
