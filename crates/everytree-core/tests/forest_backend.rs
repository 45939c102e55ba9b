//! Tables and codes in, log F and expected counts out: against enumeration, finite differences, and itself on other
//! numbers of threads.

mod oracle;

use everytree_core::data::Codes;
use everytree_core::forest::{Backend, Counts, Cpu, ForestError, Precision, Tables};
use everytree_core::spanning::{Elimination, Kind, Level};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const KINDS: [Kind; 2] = [Kind::Undirected, Kind::Directed];

/// Tables with rates over three decades, and rows of random codes.
fn example(kind: Kind, states: &[usize], rows: usize, seed: u64) -> (Tables, Vec<u8>) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let tables =
        Tables::build(kind, states, |_, _, _, _| 10f64.powf(1.0 - 3.0 * rng.random::<f64>())).unwrap();
    let codes = (0..rows).flat_map(|_| states.to_vec()).map(|k| rng.random_range(0..k) as u8).collect();
    (tables, codes)
}

/// The rate matrix that a row picks out of the tables.
fn rates_of(tables: &Tables, row: &[u8]) -> Vec<f64> {
    let n = row.len();
    let mut rates = vec![0.0; n * n];
    for v in 0..n {
        for u in 0..n {
            if u != v || tables.kind() == Kind::Directed {
                rates[v * n + u] = tables.get(v, row[v].into(), u, row[u].into());
            }
        }
    }
    rates
}

/// What the backend should give, one row after the other.
fn slowly(tables: &Tables, codes: &[u8], weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = tables.variables();
    let states: Vec<usize> = (0..n).map(|v| tables.states(v)).collect();
    let total: usize = states.iter().sum();
    let offset = |v: usize| states[..v].iter().sum::<usize>();
    let mut counts = vec![0.0; total * total];
    let mut logs = Vec::new();
    for (row, weight) in codes.chunks(n).zip(weights) {
        let rates = rates_of(tables, row);
        let (log, marginals) = if n <= 5 {
            let (sum, marginals) = oracle::enumerate(tables.kind(), n, &rates);
            (sum.ln(), marginals)
        } else {
            Elimination::<f64>::new(tables.kind(), n).unwrap().one(&rates).unwrap()
        };
        logs.push(log);
        for v in 0..n {
            for u in 0..n {
                let place = (offset(v) + row[v] as usize) * total + offset(u) + row[u] as usize;
                counts[place] += weight * marginals[v * n + u];
            }
        }
    }
    (logs, counts)
}

fn every_count(tables: &Tables, counts: &Counts) -> Vec<f64> {
    let n = tables.variables();
    let mut all = Vec::new();
    for v in 0..n {
        for a in 0..tables.states(v) {
            for u in 0..n {
                for b in 0..tables.states(u) {
                    let own = u == v && (a != b || tables.kind() == Kind::Undirected);
                    all.push(if own { 0.0 } else { counts.get(v, a, u, b) });
                }
            }
        }
    }
    all
}

fn run<T: Precision>(cpu: &Cpu<T>, tables: &Tables, codes: &[u8], weights: &[f64]) -> (Vec<f64>, Counts) {
    let prepared = cpu.prepare(tables);
    let mut trace = cpu.trace();
    let mut log = vec![0.0; weights.len()];
    let codes = Codes::new(codes, tables.variables()).unwrap();
    cpu.forward(&prepared, codes, &mut trace, &mut log).unwrap();
    let mut counts = Counts::new(tables);
    cpu.backward(&prepared, &mut trace, weights, &mut counts).unwrap();
    (log, counts)
}

fn compare<T: Precision>(kind: Kind, states: &[usize], rows: usize, tolerance: f64) {
    let (tables, codes) = example(kind, states, rows, states.len() as u64);
    let mut rng = Pcg64::seed_from_u64(5);
    let weights: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..3.0)).collect();
    let (logs, truth) = slowly(&tables, &codes, &weights);
    for level in Level::available() {
        let (found, counts) = run(&Cpu::<T>::new().with_level(level), &tables, &codes, &weights);
        for (a, b) in found.iter().zip(&logs) {
            assert!(
                (a - b).abs() < tolerance * states.len() as f64,
                "{kind:?} {level:?}: log F {a} against {b}"
            );
        }
        let total: f64 = weights.iter().sum();
        for (a, b) in every_count(&tables, &counts).iter().zip(&truth) {
            assert!((a - b).abs() < tolerance * total, "{kind:?} {level:?}: count {a} against {b}");
        }
    }
}

#[test]
fn agrees_with_enumeration_for_any_number_of_states() {
    for kind in KINDS {
        for states in [&[2, 2, 2, 2][..], &[2, 3, 5, 2, 4], &[1, 2, 3], &[2, 1], &[7]] {
            compare::<f64>(kind, states, 70, 1e-12);
            compare::<f32>(kind, states, 70, 1e-6);
        }
    }
}

#[test]
fn agrees_with_the_elimination_at_every_size() {
    for kind in KINDS {
        let mixed: Vec<usize> = (0..40).map(|v| 2 + [0, 0, 1, 3][v % 4]).collect();
        for (states, rows) in
            [(vec![2; 17], 300), (mixed, 70), (vec![2; 100], 20), (vec![3; 70], 20), (vec![2; 310], 3)]
        {
            compare::<f64>(kind, &states, rows, 1e-11);
            compare::<f32>(kind, &states, rows, 1e-5);
        }
    }
}

/// What thread does what is chance; what comes out is not. Also whether factors were kept or computed again.
#[test]
fn threads_and_memory_do_not_change_a_bit() {
    for kind in KINDS {
        for (states, rows) in [(vec![2; 16], 2000), (vec![3; 40], 300), (vec![2; 300], 50)] {
            let (_, codes) = example(kind, &states, rows, 1);
            let mut rng = Pcg64::seed_from_u64(5);
            // A few rows are beyond f32 and counted one by one.
            let tables = Tables::build(kind, &states, |v, a, u, b| {
                let weak = states.len() < 20 && [v * 4 + a, u * 4 + b].contains(&13);
                rng.random_range(0.1..1.0) * if weak { 1e-40 } else { 1.0 }
            })
            .unwrap();
            let weights: Vec<f64> = (0..rows).map(|_| rng.random_range(0.0..3.0)).collect();
            let on = |threads: usize, keep: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let bits = |x: Vec<f64>| x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
                let (log, counts) =
                    pool.install(|| run(&Cpu::<f32>::new().keeping(keep), &tables, &codes, &weights));
                let single = (bits(log), bits(every_count(&tables, &counts)));
                let (log, counts) =
                    pool.install(|| run(&Cpu::<f64>::new().keeping(keep), &tables, &codes, &weights));
                (single, bits(log), bits(every_count(&tables, &counts)))
            };
            let one = on(1, usize::MAX);
            assert!(one == on(2, usize::MAX) && one == on(7, usize::MAX), "{kind:?}: threads");
            assert!(one == on(2, 0) && one == on(7, 1 << 20), "{kind:?}: memory");
        }
    }
}

#[test]
fn counts_add_up_to_the_weights() {
    for kind in KINDS {
        let (tables, codes) = example(kind, &[3; 60], 200, 4);
        let weights: Vec<f64> = (0..200).map(|row| 0.1 + (row % 7) as f64).collect();
        let total: f64 = weights.iter().sum();
        let (_, counts) = run(&Cpu::<f32>::new(), &tables, &codes, &weights);
        assert!(every_count(&tables, &counts).iter().all(|&count| count >= 0.0));
        if kind == Kind::Undirected {
            let edges: f64 =
                (0..60).flat_map(|v| (0..v).map(move |u| (v, u))).map(|(v, u)| counts.edge(v, u)).sum();
            assert!((edges / total - 59.0).abs() < 59e-5, "{edges}");
        } else {
            for v in 0..60 {
                let parents: f64 = (0..60).filter(|&u| u != v).map(|u| counts.edge(v, u)).sum();
                let root: f64 = (0..3).map(|a| counts.get(v, a, v, a)).sum();
                assert!(((parents + root) / total - 1.0).abs() < 1e-5);
            }
        }
    }
}

/// `Σ weight · log F` moves with the logarithm of a rate by the expected count of it.
#[test]
fn counts_are_the_gradient() {
    for kind in KINDS {
        let states = [2, 3, 2, 4];
        let (tables, codes) = example(kind, &states, 40, 9);
        let weights: Vec<f64> = (0..40).map(|row| (row % 5) as f64 - 1.0).collect();
        let (_, counts) = run(&Cpu::<f64>::new(), &tables, &codes, &weights);
        let value = |v: usize, a: usize, u: usize, b: usize, factor: f64| {
            let moved = Tables::build(kind, &states, |v2, a2, u2, b2| {
                let here = (v2, a2, u2, b2) == (v, a, u, b);
                tables.get(v2, a2, u2, b2) * if here { factor } else { 1.0 }
            });
            let (log, _) = run(&Cpu::<f64>::new(), &moved.unwrap(), &codes, &weights);
            log.iter().zip(&weights).map(|(log, weight)| log * weight).sum::<f64>()
        };
        for (v, a, u, b) in [(1, 0, 0, 1), (1, 2, 0, 0), (3, 1, 1, 2), (3, 3, 2, 0)] {
            let step = 1e-4f64;
            let slope = (value(v, a, u, b, step.exp()) - value(v, a, u, b, (-step).exp())) / (2.0 * step);
            assert!((slope - counts.get(v, a, u, b)).abs() < 1e-6, "{kind:?}: {slope}");
        }
    }
}

#[test]
fn a_row_that_no_forest_explains_says_so_and_counts_nothing() {
    for kind in KINDS {
        // Variable 1 in state 1 has no edge and no root.
        let tables = Tables::build(kind, &[2, 2, 2], |v, a, u, b| {
            let dead = (v == 1 && a == 1) || (u == 1 && b == 1);
            if dead { 0.0 } else { 1.0 }
        })
        .unwrap();
        let codes = [0u8, 0, 1, /* dead: */ 0, 1, 1, /* and */ 1, 0, 0];
        let cpu = Cpu::<f32>::new();
        let prepared = cpu.prepare(&tables);
        let mut trace = cpu.trace();
        let mut log = [0.0; 3];
        let summary = cpu.forward(&prepared, Codes::new(&codes, 3).unwrap(), &mut trace, &mut log).unwrap();
        assert_eq!(summary.impossible, [1]);
        assert_eq!(log[1], f64::NEG_INFINITY);
        assert!(log[0].is_finite() && log[2].is_finite());
        let mut counts = Counts::new(&tables);
        cpu.backward(&prepared, &mut trace, &[0.0, 5.0, 0.0], &mut counts).unwrap();
        assert!(every_count(&tables, &counts).iter().all(|&count| count == 0.0));
    }
}

/// Rates that f32 cannot hold side by side: the rows concerned are recomputed, and right.
#[test]
fn rates_beyond_f32_are_recomputed() {
    for kind in KINDS {
        let states = vec![2; 20];
        let mut rng = Pcg64::seed_from_u64(3);
        let tables = Tables::build(kind, &states, |v, a, u, b| {
            let weak = (v == 3 && a == 1) || (u == 3 && b == 1);
            rng.random_range(0.1..1.0) * if weak { 1e-60 } else { 1.0 }
        })
        .unwrap();
        let (_, codes) = example(kind, &states, 50, 8);
        let weights = vec![1.0; 50];
        let (logs, truth) = slowly(&tables, &codes, &weights);
        let cpu = Cpu::<f32>::new();
        let mut log = vec![0.0; 50];
        let summary = cpu
            .forward(&cpu.prepare(&tables), Codes::new(&codes, 20).unwrap(), &mut cpu.trace(), &mut log)
            .unwrap();
        let weak = codes.chunks(20).filter(|row| row[3] == 1).count();
        assert_eq!(summary.recomputed, weak);
        assert!(summary.impossible.is_empty() && weak > 10);
        let (log, counts) = run(&cpu, &tables, &codes, &weights);
        log.iter().zip(&logs).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
        every_count(&tables, &counts)
            .iter()
            .zip(&truth)
            .for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    }
}

/// A current away from the only root: expected times beyond f32 in some rows, and weights beyond it in all.
#[test]
fn overflowing_derivatives_and_weights_are_counted_right() {
    let n = 120;
    let tables = Tables::build(Kind::Directed, &vec![2; n], |v, a, u, _| match () {
        () if v == 0 && u == 0 => 1.0,
        () if u == v + 1 => 1.0,
        () if v == u + 1 => {
            if a == 0 {
                0.3
            } else {
                3.0
            }
        }
        () => 0.0,
    })
    .unwrap();
    let mut rng = Pcg64::seed_from_u64(1);
    let rows = 40;
    // Rows 0, 3, 6, … drift; the others do not.
    let codes: Vec<u8> =
        (0..rows * n).map(|cell| u8::from(cell / n % 3 != 0 || rng.random_bool(0.05))).collect();
    let plain = vec![1.0; rows];
    let (logs, truth) = slowly(&tables, &codes, &plain);
    for weight in [1.0, 1e39, 1e-50] {
        let (log, counts) = run(&Cpu::<f32>::new(), &tables, &codes, &vec![weight; rows]);
        log.iter().zip(&logs).for_each(|(a, b)| assert!((a - b).abs() < 1e-3, "{a} {b}"));
        for (a, b) in every_count(&tables, &counts).iter().zip(&truth) {
            assert!((a / weight - b).abs() < 1e-3, "{weight}: {a} {b}");
        }
    }
}

#[test]
fn a_trace_can_be_used_again_for_other_tables_and_fewer_rows() {
    let cpu = Cpu::<f64>::new();
    let mut trace = cpu.trace();
    for (kind, states, rows) in [
        (Kind::Undirected, vec![2; 10], 700),
        (Kind::Undirected, vec![2; 10], 3),
        (Kind::Directed, vec![3; 7], 300),
    ] {
        let (tables, codes) = example(kind, &states, rows, 2);
        let weights = vec![1.0; rows];
        let prepared = cpu.prepare(&tables);
        let mut log = vec![0.0; rows];
        let mut counts = Counts::new(&tables);
        cpu.forward(&prepared, Codes::new(&codes, states.len()).unwrap(), &mut trace, &mut log).unwrap();
        cpu.backward(&prepared, &mut trace, &weights, &mut counts).unwrap();
        let (fresh, fresh_counts) = run(&cpu, &tables, &codes, &weights);
        assert_eq!(log, fresh);
        assert_eq!(every_count(&tables, &counts), every_count(&tables, &fresh_counts));
    }
    // Two-byte codes are the same codes.
    let (tables, codes) = example(Kind::Directed, &[3; 7], 10, 2);
    let wide: Vec<u16> = codes.iter().map(|&code| code.into()).collect();
    let mut log = vec![0.0; 10];
    cpu.forward(&cpu.prepare(&tables), Codes::new(&wide, 7).unwrap(), &mut trace, &mut log).unwrap();
    assert_eq!(log, run(&cpu, &tables, &codes, &[1.0; 10]).0);
}

#[test]
fn what_is_wrong_is_named() {
    let error =
        Tables::build(Kind::Directed, &[2, 3], |v, a, u, _| if (v, a, u) == (1, 2, 0) { -1.0 } else { 1.0 });
    assert_eq!(
        error.unwrap_err().to_string(),
        "the rate of variable 1 in state 2 towards variable 0 in state 0 is -1; rates must be finite and not negative"
    );
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(Tables::build(Kind::Undirected, &[2, 2], |_, _, _, _| bad).is_err());
    }
    let error = Tables::build(Kind::Undirected, &[2, 0], |_, _, _, _| 1.0).unwrap_err();
    assert_eq!(error, ForestError::NoStates { variable: 1 });
    assert!(Tables::build(Kind::Undirected, &[], |_, _, _, _| 1.0).is_err());
    assert!(matches!(
        Tables::build(Kind::Undirected, &[10_000, 10_000], |_, _, _, _| 1.0).unwrap_err(),
        ForestError::TooManyStates { states: 20_000, .. }
    ));
    assert!(Tables::build(Kind::Undirected, &[usize::MAX, 2], |_, _, _, _| 1.0).is_err());

    let (tables, _) = example(Kind::Undirected, &[2, 3], 1, 1);
    let cpu = Cpu::<f32>::new();
    let prepared = cpu.prepare(&tables);
    let mut trace = cpu.trace();
    let mut log = [0.0; 2];
    let error =
        cpu.forward(&prepared, Codes::new(&[0u8, 2, 1, 3], 2).unwrap(), &mut trace, &mut log).unwrap_err();
    assert_eq!(error.to_string(), "row 1: code 3 of variable 1 is not one of its 3 states");
    let error = Codes::new(&[0u8, 1, 0], 2).unwrap_err();
    assert_eq!(error.to_string(), "codes has 3 entries where 4 are needed");
    let three = Codes::new(&[0u8, 1, 0], 3).unwrap();
    assert!(cpu.forward(&prepared, three, &mut trace, &mut [0.0]).is_err());
    let fine = Codes::new(&[0u8, 1, 0, 1], 2).unwrap();
    assert!(cpu.forward(&prepared, fine, &mut trace, &mut [0.0]).is_err(), "room for one of two rows");
    cpu.forward(&prepared, fine, &mut trace, &mut log).unwrap();
    let mut counts = Counts::new(&tables);
    let error = cpu.backward(&prepared, &mut trace, &[1.0, f64::NAN], &mut counts).unwrap_err();
    assert_eq!(error.to_string(), "row 1: its weight is NaN; weights must be finite");
    assert!(cpu.backward(&prepared, &mut trace, &[1.0], &mut counts).is_err());
    // Tables prepared anew, though of the same shape, are other tables; so is a forward that failed.
    let error = cpu.backward(&cpu.prepare(&tables), &mut trace, &[1.0, 1.0], &mut counts).unwrap_err();
    assert_eq!(error.to_string(), "the trace belongs to other tables than those given");
    assert!(cpu.forward(&prepared, Codes::new(&[9u8, 9], 2).unwrap(), &mut trace, &mut [0.0]).is_err());
    assert!(cpu.backward(&prepared, &mut trace, &[1.0, 1.0], &mut counts).is_err());
    cpu.forward(&prepared, fine, &mut trace, &mut log).unwrap();
    let (other, _) = example(Kind::Undirected, &[2, 2], 1, 1);
    assert!(cpu.backward(&prepared, &mut trace, &[1.0, 1.0], &mut Counts::new(&other)).is_err());
}
