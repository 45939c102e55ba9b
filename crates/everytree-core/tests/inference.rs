//! Posteriors against enumeration, and error bars that mean what they say.

mod every;
mod oracle;

use everytree_core::data::Table;
use everytree_core::infer::{
    Drawn, Effort, Evidence, InferError, Method, Sampling, Search, edges, log_evidence, most_probable,
    posterior, posterior_by_what_fits, sample, weighted_trees,
};
use everytree_core::model::{Density, Moat, Pairs};
use rand::{RngExt, SeedableRng};

const STATES: [usize; 6] = [2, 3, 2, 2, 4, 2];

fn moat(seed: u64) -> Moat {
    Moat::random(STATES.to_vec(), Pairs::Lambda, seed).unwrap()
}

fn seeded(seed: u64) -> Sampling {
    Sampling { seed, ..Sampling::default() }
}

fn some_evidence(which: usize) -> Evidence {
    let mut evidence = Evidence::none(&STATES);
    match which % 4 {
        // Two variables: the probability of one alone is the same under every tree.
        0 => {
            evidence.set(1, &[2]).unwrap();
            evidence.set(2, &[0]).unwrap();
        }
        1 => {
            evidence.set(0, &[1]).unwrap();
            evidence.set(4, &[3]).unwrap();
            evidence.set(5, &[0]).unwrap();
        }
        2 => {
            evidence.set(4, &[0, 2]).unwrap();
            evidence.soft(1, &[0.5, 0.1, 0.9]).unwrap();
        }
        _ => {}
    }
    evidence
}

/// The first `known` variables are 0, 1, 0, 1, …
fn alternating(states: &[usize], known: usize) -> Evidence {
    let mut evidence = Evidence::none(states);
    (0..known).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
    evidence
}

/// Every row with its probability and the likelihood of the evidence, by plain loops.
fn brute_force(density: &dyn Density, evidence: &Evidence) -> (Vec<Vec<f64>>, f64) {
    let mut sums: Vec<Vec<f64>> = STATES.iter().map(|&count| vec![0.0; count]).collect();
    let mut total = 0.0;
    for row in every::row(&STATES) {
        let mut table = Table::new(&STATES);
        table.push(&row);
        let mut log_p = [0.0];
        density.log_p(table.codes(), &mut log_p).unwrap();
        let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product();
        let p = log_p[0].exp() * likelihood;
        total += p;
        (0..6).for_each(|v| sums[v][usize::from(row[v])] += p);
    }
    sums.iter_mut().flatten().for_each(|sum| *sum /= total);
    (sums, total)
}

#[test]
fn enumeration_is_exact() {
    for which in 0..4 {
        let moat = moat(which as u64);
        let asked = moat.density().unwrap();
        let evidence = some_evidence(which);
        let found = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap();
        let (expected, total) = brute_force(&asked, &evidence);
        assert!((found.log_evidence.value - total.ln()).abs() < 1e-12);
        for v in 0..6 {
            for state in 0..STATES[v] {
                assert!((found.states[v][state].value - expected[v][state]).abs() < 1e-12);
                assert_eq!(found.states[v][state].standard_error, 0.0);
            }
        }
    }
}

/// 95 % intervals over 200 seeds hold the exact value in 90 to 99 % of cases: posteriors and the probability of the evidence.
#[test]
fn intervals_cover_the_truth() {
    for method in [Method::Importance, Method::Collapsed, Method::Tilted, Method::Gibbs, Method::BlockGibbs] {
        for which in 0..3 {
            let moat = moat(which as u64 + 10);
            let asked = moat.density().unwrap();
            let evidence = some_evidence(which);
            let (expected, total) = brute_force(&asked, &evidence);
            let (mut covered, mut evidence_covered, mut cases) = (0, 0, 0);
            for seed in 0..200 {
                // Chains need some length.
                let trees = if matches!(method, Method::BlockGibbs | Method::Gibbs) { 2048 } else { 1024 };
                let effort = Effort { trees, tolerance: None, seed, ..Effort::default() };
                let found = posterior(&asked, &evidence, method, effort).unwrap();
                assert_eq!(found.trees, trees);
                let inside =
                    |value: f64, error: f64, truth: f64| u32::from((value - truth).abs() <= 1.96 * error);
                evidence_covered +=
                    inside(found.log_evidence.value, found.log_evidence.standard_error, total.ln());
                // One number a seed: the cases are then independent.
                let state = found.states[3][1];
                covered += inside(state.value, state.standard_error, expected[3][1]);
                cases += 1;
            }
            let place = format!("{method:?} {which}: {covered} {evidence_covered} of {cases}");
            assert!((180..=198).contains(&covered), "{place}");
            assert!((180..=198).contains(&evidence_covered), "{place}");
        }
    }
}

/// The order of the paper, and ours before it: errors of the same number of trees.
#[test]
fn collapsed_beats_importance_and_tilted_beats_both() {
    let moat = moat(3);
    let asked = moat.density().unwrap();
    let evidence = some_evidence(1);
    let error = |method| {
        let effort = Effort { trees: 2048, tolerance: None, seed: 1, ..Effort::default() };
        let found = posterior(&asked, &evidence, method, effort).unwrap();
        found.states.iter().flatten().map(|state| state.standard_error.powi(2)).sum::<f64>()
    };
    let [plain, collapsed, tilted] = [Method::Importance, Method::Collapsed, Method::Tilted].map(error);
    assert!(collapsed < plain && tilted < collapsed, "{plain} {collapsed} {tilted}");
}

#[test]
fn complete_rows_have_their_exact_probability_with_the_tilted_proposal() {
    let moat = moat(5);
    let asked = moat.density().unwrap();
    let mut evidence = Evidence::none(&STATES);
    let row = [1u16, 2, 0, 1, 3, 0];
    (0..6).for_each(|v| evidence.set(v, &[usize::from(row[v])]).unwrap());
    let effort = Effort { trees: 256, tolerance: None, ..Effort::default() };
    let found = posterior(&asked, &evidence, Method::Tilted, effort).unwrap();
    let mut table = Table::new(&STATES);
    table.push(&row);
    let mut log_p = [0.0];
    asked.log_p(table.codes(), &mut log_p).unwrap();
    assert!((found.log_evidence.value - log_p[0]).abs() < 1e-9);
    assert!(found.log_evidence.standard_error < 1e-9);
}

#[test]
fn the_tolerance_is_met_or_the_trees_are_spent() {
    let moat = moat(6);
    let asked = moat.density().unwrap();
    let evidence = some_evidence(0);
    let tight = posterior(&asked, &evidence, Method::Tilted, Effort::default()).unwrap();
    assert!(tight.states.iter().flatten().all(|state| state.standard_error <= 0.005));
    let few = Effort { trees: 300, tolerance: Some(1e-9), ..Effort::default() };
    let spent = posterior(&asked, &evidence, Method::Collapsed, few).unwrap();
    assert!(spent.trees >= 300 && spent.trees < 400);
}

#[test]
fn threads_change_nothing() {
    let moat = moat(7);
    let asked = moat.density().unwrap();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| posterior(&asked, &some_evidence(2), Method::Tilted, Effort::default()).unwrap())
    };
    assert_eq!(on(1), on(2));
    assert_eq!(on(1), on(7));
}

#[test]
fn impossible_evidence_is_an_answer_not_a_loop() {
    let moat = Moat::from_tables(vec![1.0], vec![vec![0.5, 0.5]; 2], vec![vec![0.5, 0.0, 0.0, 0.5]]).unwrap();
    let asked = moat.density().unwrap();
    let mut evidence = Evidence::none(&[2, 2]);
    evidence.set(0, &[0]).unwrap();
    evidence.set(1, &[1]).unwrap();
    for method in [
        Method::Exact,
        Method::Importance,
        Method::Collapsed,
        Method::Tilted,
        Method::Gibbs,
        Method::BlockGibbs,
    ] {
        let effort = Effort { trees: 500, ..Effort::default() };
        let found = posterior(&asked, &evidence, method, effort).unwrap_err();
        // What no random tree allows may only be improbable; enumeration knows.
        match method {
            Method::Exact => assert_eq!(found, InferError::Impossible),
            _ => assert!(matches!(found, InferError::Unexplained { .. }), "{method:?}: {found}"),
        }
    }
    let other = Evidence::none(&[2, 2, 2]);
    let refused = posterior(&asked, &other, Method::Exact, Effort::default());
    assert_eq!(refused, Err(InferError::Variables { found: 3, expected: 2 }));
}

#[test]
fn what_is_cheap_is_enumerated() {
    let moat = moat(8);
    let asked = moat.density().unwrap();
    assert_eq!(Method::within(&asked, &some_evidence(0), 1e11), Method::Exact);
    let states = vec![2; 40];
    let large = Moat::random(states.clone(), Pairs::Lambda, 1).unwrap();
    let large = large.density().unwrap();
    let mut evidence = Evidence::none(&states);
    assert_eq!(Method::within(&large, &evidence, 1e11), Method::Tilted);
    (0..30).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
    assert_eq!(Method::within(&large, &evidence, 1e11), Method::Exact);
}

/// Chi-square of rows against probabilities, with a limit that chance exceeds once in a million.
fn check_rows(rows: &[Vec<u16>], density: &dyn Density, evidence: &Evidence) {
    let mut seen = std::collections::HashMap::new();
    rows.iter().for_each(|row| *seen.entry(row.clone()).or_insert(0.0) += 1.0);
    let (_, total) = brute_force(density, evidence);
    let (mut chi_square, mut cells, mut rest, mut rest_seen) = (0.0, 0.0, 0.0, 0.0);
    for row in every::row(&STATES) {
        let mut table = Table::new(&STATES);
        table.push(&row);
        let mut log_p = [0.0];
        density.log_p(table.codes(), &mut log_p).unwrap();
        let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product();
        let expected = rows.len() as f64 * log_p[0].exp() * likelihood / total;
        let found = seen.get(&row).copied().unwrap_or(0.0);
        if expected == 0.0 {
            assert_eq!(found, 0.0, "{row:?} is impossible");
        } else if expected < 5.0 {
            // Rare rows together make one cell.
            rest += expected;
            rest_seen += found;
        } else {
            chi_square += (found - expected).powi(2) / expected;
            cells += 1.0;
        }
    }
    if rest >= 5.0 {
        chi_square += (rest_seen - rest).powi(2) / rest;
        cells += 1.0;
    }
    // Wilson and Hilferty.
    let freedom: f64 = cells - 1.0;
    let limit = freedom * (1.0 - 2.0 / (9.0 * freedom) + 4.75 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
    assert!(chi_square < limit, "{chi_square} over {limit} with {cells} cells");
}

#[test]
fn samples_follow_the_model_with_and_without_evidence() {
    let moat = moat(12);
    let asked = moat.density().unwrap();
    for which in 0..4 {
        let evidence = some_evidence(which);
        let (rows, how) = sample(&asked, &evidence, 30_000, seeded(1)).unwrap();
        assert_eq!((rows.len(), how), (30_000, Drawn::Exactly));
        check_rows(&rows, &asked, &evidence);
    }
}

#[test]
fn large_models_are_sampled_from_pools_that_keep_the_evidence() {
    let states = vec![2; 40];
    let moat = Moat::random(states.clone(), Pairs::Lambda, 3).unwrap();
    let asked = moat.density().unwrap();
    let evidence = alternating(&states, 6);
    let (rows, how) = sample(&asked, &evidence, 4000, seeded(5)).unwrap();
    let Drawn::FromPools { pool, effective } = how else { panic!("{how:?}") };
    assert!(pool >= 1 && effective >= 30.0, "{how:?}");
    assert!(rows.iter().all(|row| (0..6).all(|v| usize::from(row[v]) == v % 2)));
    // Frequencies against the posterior of another method: five standard errors of both.
    let found = posterior(&asked, &evidence, Method::Tilted, Effort::default()).unwrap();
    for v in 6..40 {
        let estimate = found.states[v][1];
        let frequency = rows.iter().filter(|row| row[v] == 1).count() as f64 / 4000.0;
        let error = (estimate.standard_error.powi(2) + frequency * (1.0 - frequency) / 4000.0).sqrt();
        assert!((frequency - estimate.value).abs() < 5.0 * error + 0.01, "{v}: {frequency} {estimate:?}");
    }
    assert_eq!(sample(&asked, &evidence, 100, seeded(5)).unwrap().0, rows[..100]);
}

/// Single variables have exactly the margins of the tables; pairs do not have the tables of pairs, because trees join them by paths.
/// Samples follow both, as enumeration knows them.
#[test]
fn samples_have_the_margins_and_the_pairs_of_the_model() {
    let moat = moat(12);
    let asked = moat.density().unwrap();
    let tables = asked.tables();
    let all = every::row(&STATES);
    let p: Vec<f64> = log_p(&asked, &all).iter().map(|log| log.exp()).collect();
    const ROWS: usize = 40_000;
    let (rows, _) = sample(&asked, &Evidence::none(&STATES), ROWS, seeded(9)).unwrap();
    let share = |keep: &dyn Fn(&[u16]) -> bool| -> (f64, f64) {
        let exact = all.iter().zip(&p).filter(|(row, _)| keep(row)).map(|(_, p)| p).sum();
        (exact, rows.iter().filter(|row| keep(row)).count() as f64 / ROWS as f64)
    };
    // Chance exceeds five standard deviations once in two million.
    let close =
        |exact: f64, found: f64| (found - exact).abs() <= 5.0 * (exact * (1.0 - exact) / ROWS as f64).sqrt();
    let mut furthest = 0.0f64;
    for v in 0..6 {
        for b in 0..STATES[v] {
            let (exact, found) = share(&|row| usize::from(row[v]) == b);
            assert!((exact - tables.root(v)[b]).abs() < 1e-12 && close(exact, found));
            for u in 0..v {
                for a in 0..STATES[u] {
                    let (exact, found) = share(&|row| usize::from(row[u]) == a && usize::from(row[v]) == b);
                    assert!(close(exact, found), "{u} {v}: {exact} {found}");
                    furthest = furthest.max((exact - tables.root(u)[a] * tables.given(u, a, v)[b]).abs());
                }
            }
        }
    }
    assert!(furthest > 0.01, "{furthest}");
}

/// The same rows by pools and by chains, where enumeration tells what they should be.
#[test]
fn pools_and_chains_follow_the_model() {
    let small = moat(12);
    let asked = small.density().unwrap();
    for which in 0..3 {
        let evidence = some_evidence(which);
        let sampling = Sampling { seed: 2, operations: 0.0 };
        let (rows, how) = sample(&asked, &evidence, 8_000, sampling).unwrap();
        assert!(matches!(how, Drawn::FromPools { .. }), "{how:?}");
        check_rows(&rows, &asked, &evidence);
    }
    // Two camps, and evidence of both: single trees have no weight worth the name.
    let camps = two_camps(40);
    let asked = camps.density().unwrap();
    let evidence = alternating(asked.states(), 29);
    let (rows, how) = sample(&asked, &evidence, 3000, Sampling { seed: 2, operations: 0.0 }).unwrap();
    let Drawn::FromChains { steps, r_hat } = how else { panic!("{how:?}") };
    assert!(steps >= 20 && r_hat < 1.1, "{how:?}");
    let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap();
    for v in 29..40 {
        let p = truth.states[v][1].value;
        let frequency = rows.iter().filter(|row| row[v] == 1).count() as f64 / 3000.0;
        // Five standard deviations of a binomial.
        assert!((frequency - p).abs() < 5.0 * (p * (1.0 - p) / 3000.0).sqrt(), "{v}: {frequency} {p}");
    }
}

#[test]
fn impossible_evidence_has_no_samples() {
    let moat = Moat::from_tables(vec![1.0], vec![vec![0.5, 0.5]; 2], vec![vec![0.5, 0.0, 0.0, 0.5]]).unwrap();
    let asked = moat.density().unwrap();
    let mut evidence = Evidence::none(&[2, 2]);
    evidence.set(0, &[0]).unwrap();
    evidence.set(1, &[1]).unwrap();
    assert_eq!(sample(&asked, &evidence, 10, seeded(0)), Err(InferError::Impossible));
}

/// The logarithm of the probability of rows.
fn log_p(density: &dyn Density, rows: &[Vec<u16>]) -> Vec<f64> {
    let mut table = Table::new(density.states());
    rows.iter().for_each(|row| table.push(row));
    let mut out = vec![0.0; rows.len()];
    density.log_p(table.codes(), &mut out).unwrap();
    out
}

#[test]
fn the_most_probable_rows_of_small_models_are_proven() {
    for which in 0..4 {
        let moat = moat(30 + which as u64);
        let asked = moat.density().unwrap();
        let evidence = some_evidence(which);
        let found = most_probable(&asked, &evidence, 5, Search::default()).unwrap();
        assert_eq!(found.len(), 5);
        // All rows, the best first.
        let mut all: Vec<f64> = Vec::new();
        for row in every::row(&STATES) {
            let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product();
            if likelihood > 0.0 {
                all.push(log_p(&asked, &[row])[0] + likelihood.ln());
            }
        }
        all.sort_by(|a, b| b.total_cmp(a));
        for (found, expected) in found.iter().zip(all) {
            assert!(found.proven);
            let likelihood: f64 = (0..6).map(|v| evidence.of(v)[usize::from(found.row[v])]).product();
            assert!((found.log_p + likelihood.ln() - expected).abs() < 1e-12);
            assert!((found.log_p - log_p(&asked, std::slice::from_ref(&found.row))[0]).abs() < 1e-12);
        }
    }
}

/// On models too large to enumerate, the search does not fall behind ten thousand samples; and its figures are exact.
#[test]
fn the_search_is_never_worse_than_ten_thousand_samples() {
    let states = vec![2; 40];
    for seed in 0..3 {
        let mut moat = Moat::random(states.clone(), Pairs::Lambda, seed).unwrap();
        // Stronger ties than chance gives.
        moat.parameters_mut().iter_mut().for_each(|parameter| *parameter *= 1.5);
        let asked = moat.density().unwrap();
        let mut evidence = Evidence::none(&states);
        (0..5).for_each(|v| evidence.set(v, &[(v + seed as usize) % 2]).unwrap());
        let found = most_probable(&asked, &evidence, 3, Search::default()).unwrap();
        assert!(!found[0].proven && found[0].log_p >= found[1].log_p && found[0].row != found[1].row);
        assert!((found[0].log_p - log_p(&asked, std::slice::from_ref(&found[0].row))[0]).abs() < 1e-9);
        assert!((0..5).all(|v| usize::from(found[0].row[v]) == (v + seed as usize) % 2));
        let (rows, _) = sample(&asked, &evidence, 10_000, seeded(seed)).unwrap();
        let best = log_p(&asked, &rows).into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(found[0].log_p >= best, "{} {best}", found[0].log_p);
        assert_eq!(
            most_probable(&asked, &evidence, 3, Search::default()).unwrap(),
            found,
            "the same every time"
        );
    }
}

/// A model of rows that are nearly all zeros or nearly all ones: no tree explains a row of both.
fn two_camps(n: usize) -> Moat {
    let states = vec![2; n];
    let mut rng = rand_pcg::Pcg64::seed_from_u64(4);
    let mut table = Table::new(&states);
    for _ in 0..2000 {
        let p = if rng.random_bool(0.5) { 0.97 } else { 0.03 };
        let row: Vec<u16> = (0..n).map(|_| u16::from(rng.random_bool(p))).collect();
        table.push(&row);
    }
    let counts = everytree_core::model::PairCounts::new(&states, &table, &vec![1.0; 2000]);
    Moat::from_counts(&counts, Pairs::Lambda, 1.0).unwrap()
}

/// Evidence that hardly any tree explains: chains answer, and say that they did.
#[test]
fn chains_step_in_where_weights_collapse() {
    let moat = two_camps(60);
    let asked = moat.density().unwrap();
    let evidence = alternating(asked.states(), 40);
    let effort = Effort { trees: 20_000, ..Effort::default() };
    let found = posterior_by_what_fits(&asked, &evidence, effort).unwrap();
    assert_eq!(found.method, Method::BlockGibbs);
    assert!(found.r_hat.unwrap() < 1.1, "{:?}", found.r_hat);
}

/// The same kind of evidence with little enough hidden to know the truth.
#[test]
fn chains_find_the_truth_where_weights_collapse() {
    let moat = two_camps(40);
    let asked = moat.density().unwrap();
    let evidence = alternating(asked.states(), 29);
    let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap();
    let effort = Effort { trees: 20_000, ..Effort::default() };
    let found = posterior(&asked, &evidence, Method::BlockGibbs, effort).unwrap();
    for (found, truth) in found.states.iter().flatten().zip(truth.states.iter().flatten()) {
        assert!(
            (found.value - truth.value).abs() <= 5.0 * found.standard_error + 1e-9,
            "{found:?} {truth:?}"
        );
    }
}

/// The posterior of trees, by enumerating all 1,296 of them and all rows.
fn trees_by_force(density: &dyn Density, evidence: &Evidence) -> Vec<f64> {
    let (n, tables) = (STATES.len(), density.tables());
    let rows = every::row(&STATES);
    let mut edges = vec![0.0; n * n];
    let mut total = 0.0;
    for parents in oracle::all_forests(density.kind(), n) {
        let p = |row: &Vec<u16>| -> f64 {
            let one = |v: usize| {
                let p = if parents[v] == v {
                    tables.root(v)
                } else {
                    tables.given(parents[v], row[parents[v]].into(), v)
                };
                p[usize::from(row[v])] * evidence.of(v)[usize::from(row[v])]
            };
            (0..n).map(one).product()
        };
        let weight =
            oracle::weight(density.kind(), n, density.rates(), &parents) * rows.iter().map(p).sum::<f64>();
        total += weight;
        for (v, &u) in parents.iter().enumerate().filter(|(v, u)| v != *u) {
            edges[v.max(u) * n + v.min(u)] += weight;
        }
    }
    edges.iter_mut().for_each(|sum| *sum /= total);
    edges
}

#[test]
fn edges_given_evidence_agree_with_enumeration_of_all_trees() {
    for which in 0..4 {
        let moat = moat(which as u64 + 50);
        let asked = moat.density().unwrap();
        let mut evidence = some_evidence(which);
        if which == 3 {
            // A complete row.
            (0..6).for_each(|v| evidence.set(v, &[STATES[v] - 1]).unwrap());
        }
        let expected = trees_by_force(&asked, &evidence);
        let found = edges(&asked, &evidence, Effort::default()).unwrap();
        assert_eq!(found.method, Method::Exact);
        for v in 0..6 {
            for u in 0..v {
                let (found, expected) = (found.edges[v * 6 + u], expected[v * 6 + u]);
                assert!((found.value - expected).abs() < 1e-12, "{found:?} {expected}");
            }
        }
    }
}

/// Where nothing can be enumerated: the edges of random trees, against chains of another kind of trees.
#[test]
fn edges_of_large_models_add_up_to_trees() {
    let states = vec![2; 40];
    let moat = Moat::random(states.clone(), Pairs::Lambda, 3).unwrap();
    let asked = moat.density().unwrap();
    let evidence = alternating(&states, 6);
    let found = edges(&asked, &evidence, Effort::default()).unwrap();
    assert_eq!(found.method, Method::Tilted);
    let total: f64 = found.edges.iter().map(|edge| edge.value).sum();
    assert!((total - 39.0).abs() < 1e-9, "{total}");
    assert!(found.edges.iter().all(|edge| edge.standard_error <= 0.005));
    // With nothing known, they are those of the prior.
    let found = edges(&asked, &Evidence::none(&states), Effort::default()).unwrap();
    let elimination = everytree_core::spanning::Elimination::<f64>::new(asked.kind(), 40).unwrap();
    let (_, expected) = elimination.one(asked.rates()).unwrap();
    for v in 0..40 {
        for u in 0..v {
            let (found, expected) = (found.edges[v * 40 + u], expected[v * 40 + u]);
            assert!(
                (found.value - expected).abs() <= 5.0 * found.standard_error + 1e-3,
                "{found:?} {expected}"
            );
        }
    }
}

/// The mean weight is the probability of the evidence: five standard errors of 20,000 trees.
#[test]
fn weights_add_up_to_the_probability_of_the_evidence() {
    let moat = moat(60);
    let asked = moat.density().unwrap();
    let evidence = some_evidence(1);
    let (_, total) = brute_force(&asked, &evidence);
    for method in [Method::Collapsed, Method::Tilted] {
        let trees = weighted_trees(&asked, &evidence, method, 20_000, 1).unwrap();
        let weights: Vec<f64> = trees.iter().map(|(_, log)| log.exp()).collect();
        let mean = weights.iter().sum::<f64>() / 20_000.0;
        let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(
            variance > 0.0 && (mean - total).abs() <= 5.0 * (variance / 20_000.0).sqrt(),
            "{mean} {total}"
        );
    }
}

/// Rows with some cells observed: exact where enumerable, within the tolerance elsewhere.
#[test]
fn incomplete_rows_have_the_probability_of_what_was_observed() {
    let small = moat(61);
    let asked = small.density().unwrap();
    for which in 0..4 {
        let evidence = some_evidence(which);
        let found = log_evidence(&asked, &evidence, Effort::default()).unwrap();
        let (_, total) = brute_force(&asked, &evidence);
        assert!((found.value - total.ln()).abs() < 1e-12 && found.standard_error == 0.0);
    }
    // Forty variables, of which seventeen are hidden: too many to enumerate in a millisecond, few enough to know.
    let states = vec![2; 40];
    let large = Moat::random(states.clone(), Pairs::Lambda, 5).unwrap();
    let asked = large.density().unwrap();
    let evidence = alternating(&states, 27);
    let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap().log_evidence.value;
    let mut inside = 0;
    for seed in 0..50 {
        let effort = Effort { tolerance: Some(0.01), seed, operations: 1e8, ..Effort::default() };
        let found = log_evidence(&asked, &evidence, effort).unwrap();
        assert!(found.standard_error > 0.0 && found.standard_error <= 0.01, "{found:?}");
        inside += u32::from((found.value - truth).abs() <= 1.96 * found.standard_error);
    }
    // A binomial of 50 and 0.95 is below 40 with a probability of 2·10⁻⁵.
    assert!(inside >= 40, "{inside} of 50");
}

/// Only the errors of what is asked for count.
#[test]
fn targets_end_the_work_sooner() {
    let states = vec![2; 40];
    let moat = Moat::random(states.clone(), Pairs::Lambda, 3).unwrap();
    let asked = moat.density().unwrap();
    let evidence = alternating(&states, 6);
    let all =
        posterior(&asked, &evidence, Method::Tilted, Effort { tolerance: Some(0.001), ..Effort::default() })
            .unwrap();
    let easiest = (6..40)
        .min_by(|&u, &v| all.states[u][0].standard_error.total_cmp(&all.states[v][0].standard_error))
        .unwrap();
    let effort = Effort { tolerance: Some(0.001), targets: &[easiest], ..Effort::default() };
    let one = posterior(&asked, &evidence, Method::Tilted, effort).unwrap();
    assert!(one.trees < all.trees && one.states[easiest][0].standard_error <= 0.001);
}

/// Where hardly any random tree explains the evidence, a bridge to chains finds its probability: intervals over 200 seeds.
#[test]
fn the_probability_of_odd_evidence_is_found_by_a_bridge() {
    let camps = two_camps(30);
    let asked = camps.density().unwrap();
    let evidence = alternating(asked.states(), 20);
    let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap().log_evidence.value;
    let (mut inside, mut worst) = (0, 0.0f64);
    for seed in 0..200 {
        let effort =
            Effort { trees: 4096, tolerance: Some(0.05), seed, operations: 0.0, ..Effort::default() };
        let found = log_evidence(&asked, &evidence, effort).unwrap();
        worst = worst.max(found.standard_error);
        inside += u32::from((found.value - truth).abs() <= 1.96 * found.standard_error);
    }
    assert!((180..=198).contains(&inside), "{inside} of 200");
    assert!(worst < 0.2, "{worst}");
}

/// Where all weights are alike, what a tree hangs at is often a leaf; chains must not treat it differently.
#[test]
fn chains_do_not_care_what_a_tree_hangs_at() {
    for (n, known) in [(8, 4), (12, 8)] {
        let camps = two_camps(n);
        let asked = camps.density().unwrap();
        let evidence = alternating(asked.states(), known);
        let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap();
        let effort = Effort { trees: 64_000, tolerance: None, ..Effort::default() };
        let found = posterior(&asked, &evidence, Method::BlockGibbs, effort).unwrap();
        for (found, truth) in found.states.iter().flatten().zip(truth.states.iter().flatten()) {
            assert!(
                (found.value - truth.value).abs() <= 5.0 * found.standard_error + 1e-9,
                "{found:?} {truth:?}"
            );
        }
    }
}

/// What `auto` does, with the rule that ends it: intervals hold the truth there, too, whichever method it comes to.
#[test]
fn the_method_that_fits_keeps_its_word() {
    for (n, known) in [(14, 6), (24, 16), (40, 29)] {
        let camps = two_camps(n);
        let asked = camps.density().unwrap();
        let evidence = alternating(asked.states(), known);
        let truth = posterior(&asked, &evidence, Method::Exact, Effort::default()).unwrap();
        let (mut inside, mut evidence_inside) = (0, 0);
        for seed in 0..100 {
            let effort =
                Effort { trees: 20_000, tolerance: Some(0.02), seed, operations: 0.0, ..Effort::default() };
            let found = posterior_by_what_fits(&asked, &evidence, effort).unwrap();
            assert!(found.method != Method::Exact && found.effective_sample_size > 50.0, "{found:?}");
            let (state, exact) = (found.states[n - 1][1], truth.states[n - 1][1].value);
            // Met, or the trees are spent.
            assert!(state.standard_error <= 0.02 || found.trees >= 19_000, "{found:?}");
            inside += u32::from((state.value - exact).abs() <= 1.96 * state.standard_error);
            let log = found.log_evidence;
            let off = (log.value - truth.log_evidence.value).abs();
            evidence_inside += u32::from(off <= 1.96 * log.standard_error);
        }
        // A binomial of 100 and 0.95 is below 86 with a probability of 2·10⁻⁴.
        assert!(inside >= 86 && evidence_inside >= 86, "{n}: {inside} {evidence_inside}");
    }
}

/// Ones of chains that never leave where they began do not look like mixed ones.
#[test]
fn chains_that_are_stuck_are_told_apart() {
    // Two variables that always agree: one at a time, neither can change.
    let moat = Moat::from_tables(vec![1.0], vec![vec![0.5, 0.5]; 2], vec![vec![0.5, 0.0, 0.0, 0.5]]).unwrap();
    let asked = moat.density().unwrap();
    let effort = Effort { trees: 1600, tolerance: None, ..Effort::default() };
    let stuck = posterior(&asked, &Evidence::none(&[2, 2]), Method::Gibbs, effort).unwrap();
    assert!(stuck.r_hat.unwrap() > 2.0 && stuck.effective_sample_size <= 16.0, "{stuck:?}");
    let free = posterior(&asked, &Evidence::none(&[2, 2]), Method::BlockGibbs, effort).unwrap();
    assert!(free.r_hat.unwrap() < 1.1, "{free:?}");
}

#[test]
fn what_cannot_be_enumerated_is_refused() {
    let states = vec![2; 70];
    let moat = Moat::random(states.clone(), Pairs::Lambda, 1).unwrap();
    let found =
        posterior(&moat.density().unwrap(), &Evidence::none(&states), Method::Exact, Effort::default());
    assert!(matches!(found, Err(InferError::TooManyRows { rows: None, .. })), "{found:?}");
}
