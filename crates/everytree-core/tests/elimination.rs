//! The forest polynomial and its marginals against enumeration, exact integers and finite differences.

mod oracle;

use everytree_core::spanning::{Elimination, Kind, Level, RateError, Real, Route};
use oracle::{enumerate, exact};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const KINDS: [Kind; 2] = [Kind::Undirected, Kind::Directed];

/// Random rates over the given number of decades, exact in the precision T.
fn rates<T: Real>(n: usize, decades: f64, seed: u64) -> Vec<T> {
    let mut rng = Pcg64::seed_from_u64(seed);
    (0..n * n).map(|_| T::from_f64(10f64.powf(-decades * rng.random::<f64>()))).collect()
}

fn wide<T: Real>(rates: &[T]) -> Vec<f64> {
    rates.iter().map(|&x| x.into()).collect()
}

#[test]
fn agrees_with_enumeration_of_all_forests() {
    for kind in KINDS {
        for n in 1..=7 {
            for seed in 0..if n == 7 { 1 } else { 3 } {
                let mut q = rates::<f64>(n, 3.0, seed);
                // A few hard zeros, among them forests that do not exist.
                q.iter_mut().step_by(5 + seed as usize).for_each(|x| *x = 0.0);
                let (sum, truth) = enumerate(kind, n, &q);
                let (log, marginals) = Elimination::<f64>::new(kind, n).unwrap().one(&q).unwrap();
                if sum == 0.0 {
                    assert_eq!(log, f64::NEG_INFINITY);
                } else {
                    assert!((log - sum.ln()).abs() < 1e-12, "{kind:?} {n}: {log} {}", sum.ln());
                }
                for (found, expected) in marginals.iter().zip(&truth) {
                    assert!((found - expected).abs() < 1e-12, "{kind:?} {n}: {found} {expected}");
                }
            }
        }
    }
}

/// Enumeration itself is checked by the number of things enumerated: n^(n−2) trees, (n+1)^(n−1) forests.
#[test]
fn enumeration_is_complete() {
    for n in 2..=7u32 {
        let trees = oracle::all_forests(Kind::Undirected, n as usize);
        assert_eq!(trees.len(), (n as usize).pow(n - 2));
        let distinct: std::collections::HashSet<_> = trees.into_iter().collect();
        assert_eq!(distinct.len(), (n as usize).pow(n - 2));
        if n <= 6 {
            let forests = oracle::all_forests(Kind::Directed, n as usize);
            assert_eq!(forests.len(), (n as usize + 1).pow(n - 1));
        }
    }
}

fn check_against_integers<T: Real>(
    kind: Kind,
    n: usize,
    decades: f64,
    seed: u64,
    log_limit: f64,
    limit: f64,
) {
    let q = rates::<T>(n, decades, seed);
    let (truth, mu) = exact(kind, n, &wide(&q));
    for route in [Route::Lanes, Route::Rows] {
        let elimination = Elimination::<T>::with(kind, n, Level::best(), Some(route)).unwrap();
        let (log, marginals) = elimination.one(&q).unwrap();
        assert!((log - truth).abs() <= log_limit, "{kind:?} n={n} {decades} decades: {log} against {truth}");
        for (found, expected) in wide(&marginals).iter().zip(&mu) {
            assert!(
                (found - expected).abs() <= limit,
                "{kind:?} n={n} {decades}: {found} against {expected}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn f64_keeps_its_digits_over_twenty_decades(
        n in 2usize..=40, decades in 2f64..20.0, seed: u64, directed: bool,
    ) {
        let kind = KINDS[usize::from(directed)];
        check_against_integers::<f64>(kind, n, decades, seed, 1e-12 * n as f64, 1e-12);
    }

    #[test]
    fn f32_keeps_its_digits_over_twenty_decades(
        n in 2usize..=40, decades in 2f64..20.0, seed: u64, directed: bool,
    ) {
        let kind = KINDS[usize::from(directed)];
        check_against_integers::<f32>(kind, n, decades, seed, 1e-5, 1e-5);
    }
}

#[test]
fn the_largest_and_widest_cases_keep_their_digits() {
    for kind in KINDS {
        check_against_integers::<f64>(kind, 40, 20.0, 1, 4e-11, 1e-12);
        check_against_integers::<f32>(kind, 40, 20.0, 2, 1e-5, 1e-5);
    }
}

#[test]
fn marginals_add_up() {
    fn check<T: Real>(kind: Kind, n: usize, limit: f64) {
        let q = rates::<T>(n, 8.0, n as u64);
        let (_, marginals) = Elimination::<T>::new(kind, n).unwrap().one(&q).unwrap();
        let marginals = wide(&marginals);
        assert!(marginals.iter().all(|&mu| mu >= 0.0), "counts clamp at zero");
        match kind {
            Kind::Undirected => {
                let sum: f64 = marginals.iter().sum::<f64>() / 2.0;
                assert!((sum - (n - 1) as f64).abs() < limit * n as f64, "n={n}: {sum}");
            }
            Kind::Directed => {
                for line in marginals.chunks(n) {
                    let sum: f64 = line.iter().sum();
                    assert!((sum - 1.0).abs() < limit, "n={n}: {sum}");
                }
            }
        }
    }
    for kind in KINDS {
        for n in [2, 3, 17, 40, 100, 130, 300] {
            check::<f64>(kind, n, 1e-11);
            check::<f32>(kind, n, 1e-5);
        }
    }
}

/// `μ = q · ∂log F/∂q`, by central differences in the logarithm of a rate.
#[test]
fn marginals_are_the_gradient() {
    for kind in KINDS {
        for n in [5, 23] {
            let elimination = Elimination::<f64>::new(kind, n).unwrap();
            let q = rates::<f64>(n, 3.0, 5);
            let (_, marginals) = elimination.one(&q).unwrap();
            for v in 0..n {
                let others = if kind == Kind::Undirected { 0..v } else { 0..n };
                for u in others {
                    let step = 1e-4f64;
                    let at = |sign: f64| {
                        let mut moved = q.clone();
                        moved[v * n + u] *= (sign * step).exp();
                        elimination.one(&moved).unwrap().0
                    };
                    let slope = (at(1.0) - at(-1.0)) / (2.0 * step);
                    assert!((slope - marginals[v * n + u]).abs() < 1e-7, "{kind:?} {v} {u}");
                }
            }
        }
    }
}

/// Cayley: the complete graph has n^(n−2) spanning trees, and every edge is in 2/n of them.
#[test]
fn unit_weights_count_labelled_trees() {
    for n in (2..=300usize).step_by(7).chain([300]) {
        let (log, marginals) =
            Elimination::<f64>::new(Kind::Undirected, n).unwrap().one(&vec![1.0; n * n]).unwrap();
        let truth = (n as f64 - 2.0) * (n as f64).ln();
        assert!((log - truth).abs() <= 1e-12 * n as f64, "{n}: {log} {truth}");
        assert!((marginals[1] - 2.0 / n as f64).abs() < 1e-12);
        let (log, _) = Elimination::<f32>::new(Kind::Undirected, n).unwrap().one(&vec![1.0; n * n]).unwrap();
        assert!((log - truth).abs() <= 1e-5 * (n as f64).max(10.0), "{n}: {log} {truth}");
        // Rooted forests: (n + 1)^(n − 1).
        let (log, _) = Elimination::<f64>::new(Kind::Directed, n).unwrap().one(&vec![1.0; n * n]).unwrap();
        assert!((log - (n as f64 - 1.0) * (n as f64 + 1.0).ln()).abs() <= 1e-12 * n as f64);
    }
}

/// Chains of rates far beyond the exponents of the working precision are still summed, and to full accuracy.
#[test]
fn rates_beyond_the_range_of_the_precision_are_finished_exactly() {
    for kind in KINDS {
        for (n, low) in [(4, 1e-160), (6, 1e-300), (9, 5e-324)] {
            let mut rng = Pcg64::seed_from_u64(n as u64);
            let q: Vec<f64> =
                (0..n * n).map(|_| if rng.random_bool(0.7) { low } else { rng.random() }).collect();
            let (truth, mu) = exact(kind, n, &q);
            let (log, marginals) = Elimination::<f64>::new(kind, n).unwrap().one(&q).unwrap();
            // The oracle itself adds logarithms of thousands.
            assert!((log - truth).abs() <= 1e-11, "{kind:?}: {log} {truth}");
            marginals.iter().zip(&mu).for_each(|(a, b)| assert!((a - b).abs() < 1e-11, "{kind:?}: {a} {b}"));
        }
        // Everything tiny, and everything huge: no loss, no overflow.
        for scale in [1e-40f32, 1e-30, 1e37] {
            let q: Vec<f32> = rates::<f32>(20, 1.0, 9).iter().map(|x| x * scale).collect();
            let (truth, _) = exact(kind, 20, &wide(&q));
            let (log, _) = Elimination::<f32>::new(kind, 20).unwrap().one(&q).unwrap();
            assert!((log - truth).abs() < 1e-5, "{kind:?} {scale}: {log} {truth}");
        }
    }
}

#[test]
fn a_batch_gives_each_row_what_it_gets_alone() {
    for kind in KINDS {
        let n = 20;
        let count = 45;
        let elimination = Elimination::<f32>::new(kind, n).unwrap();
        let mut batch: Vec<f32> = (0..count).flat_map(|row| rates::<f32>(n, 4.0, row)).collect();
        // Row 7 has an isolated vertex; row 30 spreads beyond f32.
        for u in 0..n {
            batch[7 * n * n + 3 * n + u] = 0.0;
            batch[7 * n * n + u * n + 3] = 0.0;
            batch[30 * n * n + 3 * n + u] *= 1e-36;
            batch[30 * n * n + u * n + 3] *= 1e-36;
        }
        let mut log = vec![0.0; count as usize];
        let mut marginals = vec![0.0; batch.len()];
        elimination.marginals(&batch, &mut log, &mut marginals).unwrap();
        for row in 0..count as usize {
            let matrix = &batch[row * n * n..(row + 1) * n * n];
            let (alone, mu) = elimination.one(matrix).unwrap();
            assert_eq!(log[row], alone);
            assert_eq!(&marginals[row * n * n..(row + 1) * n * n], &mu[..]);
            if row == 7 {
                assert_eq!(alone, f64::NEG_INFINITY);
                assert!(mu.iter().all(|&x| x == 0.0));
            } else {
                let (truth, _) = exact(kind, n, &wide(matrix));
                assert!((alone - truth).abs() < 1e-5);
            }
        }
    }
}

/// Walks that drift away from the roots: expected times beyond the range of f32, though every pivot is harmless.
#[test]
fn drifting_walks_do_not_overflow() {
    // All rates are exact in both precisions.
    fn check<T: Real>(n: usize, rates: &[f64], limit: f64, (truth, mu): &(f64, Vec<f64>)) {
        let q: Vec<T> = rates.iter().map(|&x| T::from_f64(x)).collect();
        for level in Level::available() {
            for route in [Route::Lanes, Route::Rows] {
                let elimination = Elimination::<T>::with(Kind::Directed, n, level, Some(route)).unwrap();
                let (log, marginals) = elimination.one(&q).unwrap();
                assert!((log - truth).abs() <= limit * n as f64, "n={n} {level:?} {route:?}: {log} {truth}");
                for (found, expected) in wide(&marginals).iter().zip(mu) {
                    assert!(
                        (found - expected).abs() <= limit,
                        "n={n} {level:?} {route:?}: {found} {expected}"
                    );
                }
                let mut alone = [0.0];
                elimination.log_forests(&q, &mut alone).unwrap();
                assert_eq!(alone[0], log);
            }
        }
    }
    // Seven vertices, the last four a ladder that is climbed with probability ε a step.
    for exponent in [12, 45, 100] {
        let (n, small) = (7, 2f64.powi(-exponent));
        let mut q = vec![0.0; n * n];
        (0..3).for_each(|v| q[v * n + v] = 1.0);
        for (v, u, rate) in
            [(3, 4, 1.0), (4, 3, 1.0), (4, 5, small), (5, 4, 1.0), (5, 6, small), (6, 5, 1.0), (6, 6, small)]
        {
            q[v * n + u] = rate;
        }
        let truth = exact(Kind::Directed, n, &q);
        check::<f32>(n, &q, 1e-6, &truth);
        check::<f64>(n, &q, 1e-12, &truth);
    }
    // One root, and a current away from it: times of 0.375⁻ⁿ.
    for n in [40, 95] {
        let mut q = vec![0.0; n * n];
        q[0] = 1.0;
        for v in 0..n {
            if v + 1 < n {
                q[v * n + v + 1] = 1.0;
            }
            if v > 0 {
                q[v * n + v - 1] = 0.375;
            }
        }
        let truth = exact(Kind::Directed, n, &q);
        check::<f32>(n, &q, 1e-5, &truth);
        check::<f64>(n, &q, 1e-11, &truth);
    }
}

/// One huge rate must not scale the others away, nor a zero with a sign keep a huge row from being scaled.
#[test]
fn scaling_loses_nothing() {
    let mut q = vec![0.0; 9];
    (q[3], q[6], q[7]) = (1e300, 1e-30, 1e-30);
    let (truth, mu) = exact(Kind::Undirected, 3, &q);
    let (log, marginals) = Elimination::<f64>::new(Kind::Undirected, 3).unwrap().one(&q).unwrap();
    assert!((log - truth).abs() < 1e-12 * truth, "{log} {truth}");
    marginals.iter().zip(&mu).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    for kind in KINDS {
        for n in [40, 320] {
            let mut q = vec![1e37f32; n * n];
            q[3 * n + 1] = -0.0;
            let (log, marginals) = Elimination::<f32>::new(kind, n).unwrap().one(&q).unwrap();
            let even: Vec<f64> = q.iter().map(|&x| f64::from(x) / 1e37).collect();
            let (truth, mu) = Elimination::<f64>::new(kind, n).unwrap().one(&even).unwrap();
            let factors = if kind == Kind::Directed { n } else { n - 1 };
            let truth = truth + factors as f64 * f64::from(1e37f32).ln();
            assert!((log - truth).abs() < 1e-5 * n as f64, "{kind:?} {n}: {log} {truth}");
            wide(&marginals).iter().zip(&mu).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
        }
    }
}

#[test]
fn the_first_bad_row_is_named_on_any_number_of_threads() {
    let n = 20;
    let mut q = vec![1.0f32; 500 * n * n];
    for row in [130, 40, 477] {
        q[row * n * n + 7 * n + 2] = f32::NAN;
    }
    let elimination = Elimination::<f32>::new(Kind::Directed, n).unwrap();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let error = pool.install(|| elimination.log_forests(&q, &mut [0.0; 500])).unwrap_err();
        assert!(matches!(error, RateError::BadRate { row: 40, vertex: 7, other: 2, .. }), "{error}");
    }
}

#[test]
fn bad_rates_are_named() {
    for (bad, shown) in
        [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (-1e-300, "-0.000"), (f64::NEG_INFINITY, "-inf")]
    {
        for kind in KINDS {
            for n in [5, 300] {
                let elimination = Elimination::<f64>::new(kind, n).unwrap();
                let mut q = vec![1.0; 3 * n * n];
                q[2 * n * n + 4 * n + 1] = bad;
                let error = elimination.log_forests(&q, &mut [0.0; 3]).unwrap_err();
                assert!(matches!(error, RateError::BadRate { row: 2, vertex: 4, other: 1, .. }), "{error}");
                let text = error.to_string();
                assert!(
                    text.starts_with("row 2: the rate from vertex 4 to vertex 1 is ") && text.contains(shown)
                );
            }
        }
    }
    // What is not read is not judged: the diagonal and what is above it, undirected. Zero may carry a sign.
    let q = [f64::NAN, f64::NAN, 2.0, f64::INFINITY];
    assert!(
        (Elimination::<f64>::new(Kind::Undirected, 2).unwrap().one(&q).unwrap().0 - 2f64.ln()).abs() < 1e-15
    );
    let q = [1.0, -0.0, -0.0, 1.0];
    assert_eq!(Elimination::<f64>::new(Kind::Directed, 2).unwrap().one(&q).unwrap().0, 0.0);
}

#[test]
fn wrong_sizes_are_refused() {
    assert_eq!(Elimination::<f64>::new(Kind::Directed, 0).unwrap_err(), RateError::NoVertices);
    let error = Elimination::<f64>::new(Kind::Directed, 1 << 20).unwrap_err();
    assert_eq!(error.to_string(), "1048576 vertices are too many: at most 65536");
    let elimination = Elimination::<f64>::new(Kind::Undirected, 3).unwrap();
    let error = elimination.one(&[1.0; 8]).unwrap_err();
    assert_eq!(error.to_string(), "rates has 8 numbers where 9 are needed");
    let error = elimination.marginals(&[1.0; 9], &mut [0.0], &mut [0.0; 4]).unwrap_err();
    assert_eq!(error.to_string(), "marginals has 4 numbers where 9 are needed");
    // One vertex: the empty tree, of weight 1; or the root alone.
    assert_eq!(Elimination::<f64>::new(Kind::Undirected, 1).unwrap().one(&[7.0]).unwrap(), (0.0, vec![0.0]));
    let (log, marginals) = Elimination::<f64>::new(Kind::Directed, 1).unwrap().one(&[7.0]).unwrap();
    assert!((log - 7f64.ln()).abs() < 1e-15);
    assert_eq!(marginals, [1.0]);
}
