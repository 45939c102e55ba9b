//! Posteriors against enumeration, and error bars that mean what they say.

use everytree::infer::{
    Drawn, Effort, Evidence, InferError, Method, Search, most_probable, posterior, posterior_by_what_fits,
    sample,
};
use everytree::model::{Density, Moat, Pairs};
use everytree::table::Table;
use rand::{RngExt, SeedableRng};

const STATES: [usize; 6] = [2, 3, 2, 2, 4, 2];

fn moat(seed: u64) -> Moat {
    Moat::random(STATES.to_vec(), Pairs::Lambda, seed).unwrap()
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

/// Every row with its probability and the likelihood of the evidence, by plain loops.
fn brute_force(density: &dyn Density, evidence: &Evidence) -> (Vec<Vec<f64>>, f64) {
    let mut sums: Vec<Vec<f64>> = STATES.iter().map(|&count| vec![0.0; count]).collect();
    let mut total = 0.0;
    for number in 0..STATES.iter().product::<usize>() {
        let mut rest = number;
        let row: Vec<u16> = STATES
            .iter()
            .map(|&count| {
                let state = rest % count;
                rest /= count;
                state as u16
            })
            .collect();
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
        let asked = moat.asked().unwrap();
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
    for method in [Method::Importance, Method::Collapsed, Method::Tilted, Method::BlockGibbs] {
        for which in 0..3 {
            let moat = moat(which as u64 + 10);
            let asked = moat.asked().unwrap();
            let evidence = some_evidence(which);
            let (expected, total) = brute_force(&asked, &evidence);
            let (mut covered, mut evidence_covered, mut cases) = (0, 0, 0);
            for seed in 0..200 {
                // Chains need some length.
                let trees = if method == Method::BlockGibbs { 2048 } else { 1024 };
                let effort = Effort { trees, tolerance: None, seed };
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
    let asked = moat.asked().unwrap();
    let evidence = some_evidence(1);
    let error = |method| {
        let effort = Effort { trees: 2048, tolerance: None, seed: 1 };
        let found = posterior(&asked, &evidence, method, effort).unwrap();
        found.states.iter().flatten().map(|state| state.standard_error.powi(2)).sum::<f64>()
    };
    let [plain, collapsed, tilted] = [Method::Importance, Method::Collapsed, Method::Tilted].map(error);
    assert!(collapsed < plain && tilted < collapsed, "{plain} {collapsed} {tilted}");
}

#[test]
fn complete_rows_have_their_exact_probability_with_the_tilted_proposal() {
    let moat = moat(5);
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(&STATES);
    let row = [1u16, 2, 0, 1, 3, 0];
    (0..6).for_each(|v| evidence.set(v, &[usize::from(row[v])]).unwrap());
    let effort = Effort { trees: 256, tolerance: None, seed: 0 };
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
    let asked = moat.asked().unwrap();
    let evidence = some_evidence(0);
    let tight = posterior(&asked, &evidence, Method::Tilted, Effort::default()).unwrap();
    assert!(tight.states.iter().flatten().all(|state| state.standard_error <= 0.005));
    let few = Effort { trees: 300, tolerance: Some(1e-9), seed: 0 };
    let spent = posterior(&asked, &evidence, Method::Collapsed, few).unwrap();
    assert!(spent.trees >= 300 && spent.trees < 400);
}

#[test]
fn threads_change_nothing() {
    let moat = moat(7);
    let asked = moat.asked().unwrap();
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
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(&[2, 2]);
    evidence.set(0, &[0]).unwrap();
    evidence.set(1, &[1]).unwrap();
    for method in [Method::Exact, Method::Importance, Method::Collapsed, Method::Tilted, Method::BlockGibbs] {
        let effort = Effort { trees: 500, ..Effort::default() };
        assert_eq!(posterior(&asked, &evidence, method, effort), Err(InferError::Impossible), "{method:?}");
    }
    let other = Evidence::none(&[2, 2, 2]);
    let refused = posterior(&asked, &other, Method::Exact, Effort::default());
    assert_eq!(refused, Err(InferError::Variables { found: 3, expected: 2 }));
}

#[test]
fn what_is_cheap_is_enumerated() {
    let moat = moat(8);
    let asked = moat.asked().unwrap();
    assert_eq!(Method::that_fits(&asked, &some_evidence(0)), Method::Exact);
    let states = vec![2; 40];
    let large = Moat::random(states.clone(), Pairs::Lambda, 1).unwrap();
    let large = large.asked().unwrap();
    let mut evidence = Evidence::none(&states);
    assert_eq!(Method::that_fits(&large, &evidence), Method::Tilted);
    (0..30).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
    assert_eq!(Method::that_fits(&large, &evidence), Method::Exact);
}

/// Chi-square of rows against probabilities, with a limit that chance exceeds once in a million.
fn check_rows(rows: &[Vec<u16>], density: &dyn Density, evidence: &Evidence) {
    let mut seen = std::collections::HashMap::new();
    rows.iter().for_each(|row| *seen.entry(row.clone()).or_insert(0.0) += 1.0);
    let (_, total) = brute_force(density, evidence);
    let (mut chi_square, mut cells, mut rest, mut rest_seen) = (0.0, 0.0, 0.0, 0.0);
    for number in 0..STATES.iter().product::<usize>() {
        let mut left = number;
        let row: Vec<u16> = STATES
            .iter()
            .map(|&count| {
                let state = left % count;
                left /= count;
                state as u16
            })
            .collect();
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
    let asked = moat.asked().unwrap();
    for which in 0..4 {
        let evidence = some_evidence(which);
        let (rows, how) = sample(&asked, &evidence, 30_000, 1).unwrap();
        assert_eq!((rows.len(), how), (30_000, Drawn::Exactly));
        check_rows(&rows, &asked, &evidence);
    }
}

#[test]
fn large_models_are_sampled_from_pools_that_keep_the_evidence() {
    let states = vec![2; 40];
    let moat = Moat::random(states.clone(), Pairs::Lambda, 3).unwrap();
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(&states);
    (0..6).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
    let (rows, how) = sample(&asked, &evidence, 4000, 5).unwrap();
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
    assert_eq!(sample(&asked, &evidence, 100, 5).unwrap().0, rows[..100]);
}

#[test]
fn impossible_evidence_has_no_samples() {
    let moat = Moat::from_tables(vec![1.0], vec![vec![0.5, 0.5]; 2], vec![vec![0.5, 0.0, 0.0, 0.5]]).unwrap();
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(&[2, 2]);
    evidence.set(0, &[0]).unwrap();
    evidence.set(1, &[1]).unwrap();
    assert_eq!(sample(&asked, &evidence, 10, 0), Err(InferError::Impossible));
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
        let asked = moat.asked().unwrap();
        let evidence = some_evidence(which);
        let found = most_probable(&asked, &evidence, 5, Search::default()).unwrap();
        assert_eq!(found.len(), 5);
        // All rows, the best first.
        let mut all: Vec<f64> = Vec::new();
        for number in 0..STATES.iter().product::<usize>() {
            let mut left = number;
            let row: Vec<u16> = STATES
                .iter()
                .map(|&count| {
                    let state = left % count;
                    left /= count;
                    state as u16
                })
                .collect();
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
        everytree::model::Learnable::parameters_mut(&mut moat)
            .iter_mut()
            .for_each(|parameter| *parameter *= 1.5);
        let asked = moat.asked().unwrap();
        let mut evidence = Evidence::none(&states);
        (0..5).for_each(|v| evidence.set(v, &[(v + seed as usize) % 2]).unwrap());
        let found = most_probable(&asked, &evidence, 3, Search::default()).unwrap();
        assert!(!found[0].proven && found[0].log_p >= found[1].log_p && found[0].row != found[1].row);
        assert!((found[0].log_p - log_p(&asked, std::slice::from_ref(&found[0].row))[0]).abs() < 1e-9);
        assert!((0..5).all(|v| usize::from(found[0].row[v]) == (v + seed as usize) % 2));
        let (rows, _) = sample(&asked, &evidence, 10_000, seed).unwrap();
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
    let counts = everytree::model::PairCounts::new(&states, &table, &vec![1.0; 2000]);
    Moat::from_counts(&counts, Pairs::Lambda, 1.0).unwrap()
}

/// Evidence that hardly any tree explains: chains answer, and say that they did.
#[test]
fn chains_step_in_where_weights_collapse() {
    let moat = two_camps(60);
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(asked.states());
    (0..40).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
    let effort = Effort { trees: 20_000, ..Effort::default() };
    let found = posterior_by_what_fits(&asked, &evidence, effort).unwrap();
    assert_eq!(found.method, Method::BlockGibbs);
    assert!(found.r_hat.unwrap() < 1.1, "{:?}", found.r_hat);
}

/// The same kind of evidence with little enough hidden to know the truth.
#[test]
fn chains_find_the_truth_where_weights_collapse() {
    let moat = two_camps(40);
    let asked = moat.asked().unwrap();
    let mut evidence = Evidence::none(asked.states());
    (0..29).for_each(|v| evidence.set(v, &[v % 2]).unwrap());
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
