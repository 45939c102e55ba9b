//! Inference through its door alone: a made-up family of rooted forests, so that what is written for any family is tested on
//! another one than the paper's.

mod every;
mod oracle;

use everytree_core::data::{Codes, Table};
use everytree_core::infer::{
    Effort, Evidence, Method, Sampling, Search, edges, log_evidence, most_probable, posterior, sample,
};
use everytree_core::model::{Density, ModelError, TreeTables};
use everytree_core::spanning::{Elimination, Kind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const STATES: [usize; 5] = [2, 3, 2, 2, 3];

/// Free conditional tables for every ordered pair, free root tables, free rates.
struct Forests {
    states: Vec<usize>,
    rates: Vec<f64>,
    tables: TreeTables,
    elimination: Elimination<f64>,
    log_total: f64,
}

impl Forests {
    fn random(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let n = STATES.len();
        let rates: Vec<f64> = (0..n * n).map(|_| rng.random_range(0.05..1.0)).collect();
        let mut distribution = |count: usize| -> Vec<f64> {
            let p: Vec<f64> = (0..count).map(|_| rng.random_range(0.05..1.0)).collect();
            let sum: f64 = p.iter().sum();
            p.into_iter().map(|p| p / sum).collect()
        };
        let roots: Vec<Vec<f64>> = STATES.iter().map(|&count| distribution(count)).collect();
        let given: Vec<Vec<Vec<Vec<f64>>>> = STATES
            .iter()
            .map(|&of_u| STATES.iter().map(|&of_v| (0..of_u).map(|_| distribution(of_v)).collect()).collect())
            .collect();
        let tables = TreeTables::build(&STATES, |u, a, v, b| given[u][v][a][b], |v, b| roots[v][b]);
        Self::new(&STATES, rates, tables)
    }

    fn new(states: &[usize], rates: Vec<f64>, tables: TreeTables) -> Self {
        let elimination = Elimination::new(Kind::Directed, states.len()).unwrap();
        let mut log_total = [0.0];
        elimination.log_forests(&rates, &mut log_total).unwrap();
        Self { states: states.to_vec(), rates, tables, elimination, log_total: log_total[0] }
    }
}

impl Density for Forests {
    fn states(&self) -> &[usize] {
        &self.states
    }

    fn tables(&self) -> &TreeTables {
        &self.tables
    }

    fn kind(&self) -> Kind {
        Kind::Directed
    }

    fn rates(&self) -> &[f64] {
        &self.rates
    }

    fn factor(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        if u == v { self.tables.root(v)[a] } else { self.tables.given(u, b, v)[a] }
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        let n = self.states.len();
        let mut rates = vec![0.0; n * n];
        for (row, out) in out.iter_mut().enumerate() {
            let row: Vec<u16> = (0..n).map(|v| codes.get(row, v) as u16).collect();
            self.rates_at(&row, &mut rates);
            let mut log = [0.0];
            self.elimination.log_forests(&rates, &mut log).unwrap();
            *out = log[0] - self.log_total;
        }
        Ok(())
    }
}

fn some_evidence(which: u64) -> Evidence {
    let mut evidence = Evidence::none(&STATES);
    match which {
        0 => evidence.set(1, &[2]).unwrap(),
        1 => {
            evidence.set(0, &[1]).unwrap();
            evidence.set(4, &[0, 2]).unwrap();
        }
        _ => {
            evidence.set(0, &[0]).unwrap();
            evidence.set(2, &[1]).unwrap();
            evidence.soft(1, &[0.2, 0.9, 0.4]).unwrap();
        }
    }
    evidence
}

/// Posteriors of states and of edges, and the probability of the evidence, over all forests and all rows.
fn by_force(forests: &Forests, evidence: &Evidence) -> (Vec<Vec<f64>>, Vec<f64>, f64) {
    let n = STATES.len();
    let mut states: Vec<Vec<f64>> = STATES.iter().map(|&count| vec![0.0; count]).collect();
    let mut edges = vec![0.0; n * n];
    let (mut total, mut prior) = (0.0, 0.0);
    let rows = every::row(&STATES);
    for parents in oracle::all_forests(Kind::Directed, n) {
        let weight = oracle::weight(Kind::Directed, n, &forests.rates, &parents);
        prior += weight;
        for row in &rows {
            let cell = |v: usize| {
                let (a, u) = (usize::from(row[v]), parents[v]);
                forests.factor(v, a, u, row[u].into()) * evidence.of(v)[a]
            };
            let p = weight * (0..n).map(cell).product::<f64>();
            total += p;
            (0..n).for_each(|v| states[v][usize::from(row[v])] += p);
            parents.iter().enumerate().for_each(|(v, u)| edges[v * n + u] += p);
        }
    }
    states.iter_mut().flatten().for_each(|sum| *sum /= total);
    edges.iter_mut().for_each(|sum| *sum /= total);
    (states, edges, total / prior)
}

#[test]
fn every_method_answers_for_rooted_forests() {
    for which in 0..3 {
        let forests = Forests::random(which);
        let evidence = some_evidence(which);
        let (expected, edge_posteriors, p) = by_force(&forests, &evidence);
        for method in [
            Method::Exact,
            Method::Importance,
            Method::Collapsed,
            Method::Tilted,
            Method::Gibbs,
            Method::BlockGibbs,
        ] {
            let effort = Effort { trees: 16_000, tolerance: None, seed: 1, ..Effort::default() };
            let found = posterior(&forests, &evidence, method, effort).unwrap();
            let pairs = found.states.iter().flatten().zip(expected.iter().flatten());
            for (found, expected) in pairs {
                let off = (found.value - expected).abs();
                assert!(off <= 5.0 * found.standard_error + 1e-9, "{method:?} {which}: {found:?} {expected}");
            }
            let log = found.log_evidence;
            assert!((log.value - p.ln()).abs() <= 5.0 * log.standard_error + 1e-9, "{method:?}: {log:?}");
        }
        // Edges exactly, and from random forests; a root is its own parent.
        for operations in [1e11, 0.0] {
            let effort = Effort { operations, seed: 2, ..Effort::default() };
            let found = edges(&forests, &evidence, effort).unwrap();
            for (found, expected) in found.edges.iter().zip(&edge_posteriors) {
                assert!(
                    (found.value - expected).abs() <= 5.0 * found.standard_error + 1e-9,
                    "{found:?} {expected}"
                );
            }
            let log = log_evidence(&forests, &evidence, effort).unwrap();
            assert!((log.value - p.ln()).abs() <= 5.0 * log.standard_error + 1e-9, "{log:?}");
        }
    }
}

/// A set of many states is probable under every parent, though each of them is not. Trees with other parents than the root must not
/// seem so much more probable that the others are never drawn, and the error says nothing of them.
#[test]
fn sets_of_many_states_do_not_lead_astray() {
    let states = [400, 2, 3, 2, 2];
    let known = 200;
    // As a root the first variable is mostly in the set, under any parent it is there half of the time.
    let root = |v: usize, b: usize| match (v, b < known) {
        (0, true) => 0.95 / 200.0,
        (0, false) => 0.05 / 200.0,
        _ => 1.0 / states[v] as f64,
    };
    let tables = TreeTables::build(&states, |_, _, v, _| 1.0 / states[v] as f64, root);
    let forests = Forests::new(&states, vec![1.0; 25], tables);
    let mut evidence = Evidence::none(&states);
    evidence.set(0, &(0..known).collect::<Vec<_>>()).unwrap();
    let mut table = Table::new(&states);
    every::row(&states).iter().filter(|row| usize::from(row[0]) < known).for_each(|row| table.push(row));
    let mut logs = vec![0.0; table.rows()];
    forests.log_p(table.codes(), &mut logs).unwrap();
    let expected = logs.into_iter().map(f64::exp).sum::<f64>().ln();
    for seed in 0..8 {
        let effort = Effort { seed, ..Effort::default() };
        for method in [Method::Collapsed, Method::Tilted] {
            let found = posterior(&forests, &evidence, method, effort).unwrap().log_evidence;
            let off = (found.value - expected).abs();
            assert!(off <= 5.0 * found.standard_error + 1e-9, "{seed} {method:?}: {found:?} {expected}");
        }
    }
}

#[test]
fn rows_are_drawn_and_found_for_rooted_forests() {
    let forests = Forests::random(7);
    for which in 0..3 {
        let evidence = some_evidence(which);
        let (expected, _, _) = by_force(&forests, &evidence);
        for operations in [1e11, 0.0] {
            const ROWS: usize = 20_000;
            let (rows, _) = sample(&forests, &evidence, ROWS, Sampling { seed: 3, operations }).unwrap();
            for v in 0..STATES.len() {
                for state in 0..STATES[v] {
                    let p = expected[v][state];
                    let found =
                        rows.iter().filter(|row| usize::from(row[v]) == state).count() as f64 / ROWS as f64;
                    // Five standard deviations of a binomial, and what a pool of trees may be off by.
                    let room = 5.0 * (p * (1.0 - p) / ROWS as f64).sqrt()
                        + if operations > 0.0 { 0.0 } else { 0.003 };
                    assert!((found - p).abs() <= room, "{which} {v} {state}: {found} {p}");
                }
            }
        }
        let proven = most_probable(&forests, &evidence, 1, Search::default()).unwrap();
        let searched =
            most_probable(&forests, &evidence, 1, Search { operations: 0.0, ..Search::default() }).unwrap();
        assert!(proven[0].proven && !searched[0].proven);
        assert!((proven[0].log_p - searched[0].log_p).abs() < 1e-12, "small enough to be found");
    }
}
