//! The kernel over stored rows, against its definition row by row; what is asked of it in labels of columns is in `whole.rs`, with
//! all other families.

mod every;

use everytree_core::data::{Codes, Dataset, Table, Unique};
use everytree_core::forest::Cpu;
use everytree_core::infer::{Effort, Evidence};
use everytree_core::model::{
    Component, ComponentShape, Family, Initialisation, Kernel, Learnable, Member, Model, PairCounts,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Few states beside the first of each variable (sums are products of matrices), and many (factors are looked up).
const SHAPES: [&[usize]; 3] = [&[2, 3, 1, 4, 2], &[9, 2, 13], &[2, 2, 2, 2, 2, 2, 2]];

/// Rows of which many are equal.
fn rows(states: &[usize], count: usize, seed: u64) -> Table {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(states);
    for _ in 0..count {
        let same = rng.random_range(0..3u16);
        let code = |&count: &usize| {
            if rng.random::<f64>() < 0.7 { same % count as u16 } else { rng.random_range(0..count) as u16 }
        };
        table.push(&states.iter().map(code).collect::<Vec<_>>());
    }
    table
}

fn counted(states: &[usize], data: &Unique, pseudocount: f64) -> Kernel {
    let counts = PairCounts::new(states, &data.table, &data.weights);
    let from = Initialisation {
        data,
        states,
        weights: &data.weights,
        counts,
        shape: ComponentShape::default(),
        pseudocount,
        seed: 3,
        stop: &|| false,
    };
    match Family::Kernel.from_counts(&from).unwrap() {
        Component::Kernel(kernel) => kernel,
        _ => panic!("a kernel"),
    }
}

fn log_p(kernel: &Kernel, codes: Codes<'_>) -> Vec<f64> {
    let mut out = vec![0.0; codes.rows()];
    kernel.log_likelihood(&Cpu::<f64>::new(), &mut (), codes, &mut out).unwrap();
    out
}

/// `Σ_b π_b Σ_i w_i Π_j […]`, as it is written; `left_out` weighs less by one row of so many.
fn by_definition(kernel: &Kernel, row: &[u16], left_out: Option<(usize, f64)>) -> Vec<f64> {
    let stored = kernel.rows();
    let offsets: Vec<usize> = (0..stored.states().len()).map(|v| stored.states()[..v].iter().sum()).collect();
    let of_bandwidth = |(width, _): (f64, f64)| -> f64 {
        (0..stored.count())
            .map(|i| {
                let cell = |(v, &code): (usize, &u16)| {
                    let same = usize::from(stored.table().get(i, v) == usize::from(code));
                    (1.0 - width) * same as f64 + width * kernel.margins()[offsets[v] + usize::from(code)]
                };
                let less = left_out.filter(|(place, _)| *place == i).map_or(0.0, |(_, less)| less);
                (stored.log_weights()[i].exp() - less) * row.iter().enumerate().map(cell).product::<f64>()
            })
            .sum()
    };
    kernel.bandwidths().map(of_bandwidth).collect()
}

#[test]
fn likelihoods_are_by_definition_and_add_up() {
    for (number, states) in SHAPES.iter().enumerate() {
        // More rows than are multiplied at once, on both sides.
        let data = rows(states, 700, number as u64).unique();
        let kernel = counted(states, &data, 1.0);
        let all = every::row(states);
        let mut table = Table::new(states);
        all.iter().for_each(|row| table.push(row));
        let found = log_p(&kernel, table.codes());
        for (row, log) in all.iter().zip(&found) {
            let parts = by_definition(&kernel, row, None);
            let expected: f64 =
                parts.iter().zip(kernel.bandwidths()).map(|(p, (_, weight))| p * weight.exp()).sum();
            assert!((log - expected.ln()).abs() < 1e-11, "{states:?} {row:?}: {log} {}", expected.ln());
        }
        let sum: f64 = found.iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}

/// The weights of bandwidths are where expectation–maximisation stays: for every bandwidth that is used the mean ratio of its
/// likelihood to that of all, over rows that are left out one after the other, is 1.
#[test]
fn bandwidths_are_weighed_by_rows_left_out() {
    for (number, states) in SHAPES.iter().enumerate() {
        let data = rows(states, 150, 10 + number as u64).unique();
        let kernel = counted(states, &data, 1.0);
        let total: f64 = data.weights.iter().sum();
        let used: Vec<(f64, f64)> = kernel.bandwidths().collect();
        assert!((used.iter().map(|(_, log)| log.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        let mut ratios = vec![0.0; used.len()];
        for (place, count) in data.weights.iter().enumerate() {
            let row: Vec<u16> = (0..states.len()).map(|v| data.table.get(place, v) as u16).collect();
            let parts = by_definition(&kernel, &row, Some((place, 1.0 / total)));
            let all: f64 = parts.iter().zip(&used).map(|(p, (_, log))| p * log.exp()).sum();
            ratios.iter_mut().zip(&parts).for_each(|(ratio, p)| *ratio += count * p / all / total);
        }
        // Bandwidths of less than half a percent are left away, after which the others are no longer exactly there.
        for (ratio, (width, log)) in ratios.iter().zip(&used) {
            assert!(
                (ratio - 1.0).abs() < 0.02 / log.exp().min(0.5),
                "{states:?} {width}: {ratio} {}",
                log.exp()
            );
        }
    }
}

#[test]
fn weights_of_rows_are_numbers_of_rows() {
    let states = [2, 3, 2];
    let table = rows(&states, 60, 5);
    let once = counted(&states, &table.unique(), 1.0);
    let unique = table.unique();
    let weights: Vec<f64> = (0..table.rows()).map(|row| if row % 2 == 0 { 1.0 } else { 2.0 }).collect();
    let mut twice = Table::new(&states);
    for (row, weight) in weights.iter().enumerate() {
        let codes: Vec<u16> = (0..3).map(|v| table.get(row, v) as u16).collect();
        (0..*weight as usize).for_each(|_| twice.push(&codes));
    }
    let (weighted, repeated) =
        (counted(&states, &table.unique_weighted(&weights), 1.0), counted(&states, &twice.unique(), 1.0));
    let all = every::row(&states);
    let mut every_row = Table::new(&states);
    all.iter().for_each(|row| every_row.push(row));
    let [a, b, c] = [&weighted, &repeated, &once].map(|kernel| log_p(kernel, every_row.codes()));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9));
    assert!(a.iter().zip(&c).any(|(a, c)| (a - c).abs() > 1e-3), "{} rows", unique.table.rows());
}

/// Of one row, and of rows that are all equal, there is a distribution too.
#[test]
fn few_rows_are_enough() {
    for count in [1, 2, 5] {
        let states = [2, 3];
        let mut table = Table::new(&states);
        (0..count).for_each(|_| table.push(&[1, 2]));
        let kernel = counted(&states, &table.unique(), 1.0);
        let mut every_row = Table::new(&states);
        every::row(&states).iter().for_each(|row| every_row.push(row));
        let sum: f64 = log_p(&kernel, every_row.codes()).iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{count}: {sum}");
    }
}

/// A table with repeated rows: the kernel knows them again, and is asked with soft evidence like every other model.
#[test]
fn conditionals_are_ratios_of_joints() {
    let states = SHAPES[0];
    let data = Dataset::anonymous(states, rows(states, 300, 8)).unwrap();
    let kernel = counted(states, &data.table().unique(), 1.0);
    let model: Model = Member::plain(kernel.clone().into()).into();
    let inference = model.inference().unwrap();
    let mut evidence = Evidence::none(states);
    evidence.soft(1, &[0.2, 0.0, 1.5]).unwrap();
    evidence.set(4, &[1]).unwrap();
    let found = inference.posterior(&evidence, None, Effort::default()).unwrap();
    let mut sums: Vec<Vec<f64>> = states.iter().map(|&count| vec![0.0; count]).collect();
    let mut total = 0.0;
    for row in every::row(states) {
        let likelihood = evidence.of(1)[usize::from(row[1])] * evidence.of(4)[usize::from(row[4])];
        let parts = by_definition(&kernel, &row, None);
        let p: f64 = parts.iter().zip(kernel.bandwidths()).map(|(p, (_, log))| p * log.exp()).sum();
        total += p * likelihood;
        row.iter().zip(&mut sums).for_each(|(&code, sum)| sum[usize::from(code)] += p * likelihood);
    }
    assert!((found.log_evidence.value - total.ln()).abs() < 1e-12);
    for (v, sums) in sums.iter().enumerate() {
        for (found, sum) in found.states[v].iter().zip(sums) {
            assert!((found.value - sum / total).abs() < 1e-12 && found.standard_error == 0.0, "{v}");
        }
    }
}
