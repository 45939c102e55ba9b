//! Learning from rows with cells that were not observed.

use everytree_core::data::{Dataset, Missing, Table};
use everytree_core::forest::Cpu;
use everytree_core::infer::Sampling;
use everytree_core::infer::{Effort, Evidence};
use everytree_core::learn::{Datasets, Evaluator, Plan, Search, evaluate, evaluate_observed};
use everytree_core::model::{Component, Directed, Family, HowMany, Model, Pairs, Settings, Start};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const STATES: [usize; 8] = [2, 3, 2, 2, 3, 2, 2, 2];

/// A model with strong ties.
fn truth() -> Model {
    let mut directed = Directed::random(STATES.to_vec(), 7).unwrap();
    directed.parameters_mut().iter_mut().for_each(|parameter| *parameter *= 2.5);
    Model::plain(Component::Directed(directed))
}

fn draw(count: usize, seed: u64) -> Table {
    let model = truth();
    let asked = model.inference().unwrap();
    let sampling = Sampling { seed, ..Sampling::default() };
    let (rows, _) = asked.sample(&Evidence::none(&STATES), count, sampling).unwrap();
    let mut table = Table::new(&STATES);
    rows.iter().for_each(|row| table.push(row));
    table
}

/// A fifth of the cells was not observed.
fn punch(table: &Table, seed: u64) -> Dataset {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (mut punched, mut holes) = (Table::new(&STATES), Missing::default());
    for row in 0..table.rows() {
        let hidden: Vec<usize> = (0..8).filter(|_| rng.random_bool(0.2)).collect();
        let codes: Vec<u16> =
            (0..8).map(|v| if hidden.contains(&v) { 0 } else { table.get(row, v) as u16 }).collect();
        punched.push(&codes);
        holes.push(row, hidden);
    }
    complete(&punched).with_missing(holes).unwrap()
}

fn complete(table: &Table) -> Dataset {
    Dataset::anonymous(&STATES, table.clone()).unwrap()
}

fn settings() -> Settings {
    Settings { epochs: 25, batch_size: 64, learning_rate: 0.05, ..Family::Directed.settings(STATES.len()) }
}

fn learn(rows: Datasets<'_>, components: usize) -> Search {
    learn_family(rows, Family::Directed, components, &settings())
}

fn learn_family(rows: Datasets<'_>, family: Family, components: usize, settings: &Settings) -> Search {
    let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 1 };
    let plan = Plan { hidden: HowMany::Just(6), ..Plan::simple(start, components) };
    let mut search = Search::new(plan);
    search.run(rows, settings, &Cpu::<f32>::new(), &Cpu::<f64>::new().keeping(0), &mut ()).unwrap();
    search
}

fn test_of(search: &Search) -> f64 {
    let found = search.best_so_far().unwrap().unwrap();
    let test = draw(3000, 99);
    evaluate(found.model.mixture(), &found.model.blocks().unique(&complete(&test)), &Cpu::<f64>::new())
        .unwrap()
        .mean
}

/// Every hole filled with the most frequent value of its column.
fn by_mode(data: &Dataset) -> Dataset {
    let (table, holes) = (data.table(), data.missing());
    let mode = |v: usize| {
        let mut counts = vec![0usize; STATES[v]];
        (0..table.rows())
            .filter(|&row| !holes.of(row).contains(&v))
            .for_each(|row| counts[table.get(row, v)] += 1);
        (0..STATES[v]).max_by_key(|&state| counts[state]).unwrap() as u16
    };
    let modes: Vec<u16> = (0..8).map(mode).collect();
    let mut filled = Table::new(&STATES);
    for row in 0..table.rows() {
        let cell = |v: usize| if holes.of(row).contains(&v) { modes[v] } else { table.get(row, v) as u16 };
        filled.push(&(0..8).map(cell).collect::<Vec<_>>());
    }
    complete(&filled)
}

#[test]
fn summing_out_beats_leaving_out_and_filling_in() {
    let (train, valid) = (punch(&draw(700, 1), 2), punch(&draw(200, 3), 4));
    let rows = Datasets { train: &train, valid: &valid };
    let summed_out = test_of(&learn(rows, 1));

    let (whole, whole_valid) = (train.complete_rows(), valid.complete_rows());
    assert!(whole.rows() > 80 && whole.rows() < 200);
    let left_out = test_of(&learn(Datasets { train: &whole, valid: &whole_valid }, 1));

    let (filled, filled_valid) = (by_mode(&train), by_mode(&valid));
    let filled_in = test_of(&learn(Datasets { train: &filled, valid: &filled_valid }, 1));

    assert!(summed_out > left_out + 0.05, "{summed_out} {left_out}");
    assert!(summed_out > filled_in + 0.05, "{summed_out} {filled_in}");
}

/// Trees fill holes exactly, and learn from rows with holes as well.
#[test]
fn trees_learn_from_rows_with_holes() {
    let (train, valid) = (punch(&draw(700, 1), 2), punch(&draw(200, 3), 4));
    let rows = Datasets { train: &train, valid: &valid };
    let (filled, filled_valid) = (by_mode(&train), by_mode(&valid));
    for (family, components) in [(Family::ChowLiu, 1), (Family::ChowLiu, 3), (Family::Hclt, 1)] {
        let settings = family.settings(STATES.len());
        let summed_out = test_of(&learn_family(rows, family, components, &settings));
        let rows = Datasets { train: &filled, valid: &filled_valid };
        let filled_in = test_of(&learn_family(rows, family, components, &settings));
        assert!(summed_out > filled_in + 0.05, "{family:?} {components}: {summed_out} {filled_in}");
    }
}

#[test]
fn what_holes_are_filled_with_is_the_same_on_any_number_of_threads() {
    let (train, valid) = (punch(&draw(300, 1), 2), punch(&draw(100, 3), 4));
    let rows = Datasets { train: &train, valid: &valid };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| learn(rows, 2))
    };
    assert_eq!(on(1), on(3));
}

/// What is reported of rows with holes is the probability of what was observed.
#[test]
fn the_likelihood_of_observed_cells_is_estimated() {
    let model = truth();
    let asked = model.inference().unwrap();
    let data = punch(&draw(150, 8), 9);
    let (table, holes) = (data.table(), data.missing());
    let mut exact = 0.0;
    for row in 0..table.rows() {
        let mut evidence = Evidence::none(&STATES);
        for v in (0..8).filter(|v| !holes.of(row).contains(v)) {
            evidence.set(v, &[table.get(row, v)]).unwrap();
        }
        exact += asked.log_evidence(&evidence, Effort::default()).unwrap().value / table.rows() as f64;
    }
    let (member, backend) = (&model.members()[0], Cpu::<f64>::new());
    let mut evaluator = Evaluator::new(member.mixture(), &backend);
    let found = evaluate_observed(member.blocks(), &mut evaluator, &data, &|| false).unwrap().mean;
    assert!((found - exact).abs() < 0.02, "{found} {exact}");
}
