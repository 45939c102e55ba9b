//! The family of the paper: normalised, differentiated right, and what its theorems say.

use everytree_core::data::Table;
use everytree_core::forest::{Cpu, Precision};
use everytree_core::model::{Learnable, Moat, ModelError, PairCounts, Pairs};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Every row there is.
fn all_rows(states: &[usize]) -> Table {
    let mut table = Table::new(states);
    let mut row = vec![0u16; states.len()];
    loop {
        table.push(&row);
        let Some(place) = (0..states.len()).find(|&v| usize::from(row[v]) + 1 < states[v]) else {
            return table;
        };
        row[place] += 1;
        row[..place].fill(0);
    }
}

fn log_likelihood<T: Precision>(moat: &Moat, table: &Table) -> Vec<f64> {
    let cpu = Cpu::<T>::new();
    let mut out = vec![0.0; table.rows()];
    moat.log_likelihood(&cpu, &mut moat.ready(&cpu).unwrap(), table.codes(), &mut out).unwrap();
    out
}

fn sum<T: Precision>(moat: &Moat) -> f64 {
    log_likelihood::<T>(moat, &all_rows(moat.states())).iter().map(|log| log.exp()).sum()
}

const SHAPES: [&[usize]; 6] =
    [&[2, 2, 2, 2, 2, 2, 2, 2], &[3, 2, 5, 2, 4], &[5, 5, 5], &[2, 1, 3, 2], &[4, 2], &[3]];

#[test]
fn probabilities_sum_to_one() {
    for states in SHAPES {
        for pairs in [Pairs::Lambda, Pairs::Sinkhorn] {
            for seed in 0..4 {
                let moat = Moat::random(states.to_vec(), pairs, seed).unwrap();
                let (double, single) = (sum::<f64>(&moat), sum::<f32>(&moat));
                assert!((double - 1.0).abs() <= 1e-9, "{states:?} {pairs:?} {seed}: {double}");
                assert!((single - 1.0).abs() <= 1e-5, "{states:?} {pairs:?} {seed}: {single}");
            }
        }
    }
}

/// Parameters ten times as wide: tables near determinism, weights over many decades.
#[test]
fn probabilities_sum_to_one_with_extreme_parameters() {
    for states in SHAPES {
        for pairs in [Pairs::Lambda, Pairs::Sinkhorn] {
            let mut moat = Moat::random(states.to_vec(), pairs, 9).unwrap();
            moat.parameters_mut().iter_mut().for_each(|parameter| *parameter *= 6.0);
            let (double, single) = (sum::<f64>(&moat), sum::<f32>(&moat));
            assert!((double - 1.0).abs() <= 1e-9, "{states:?} {pairs:?}: {double}");
            assert!((single - 1.0).abs() <= 1e-5, "{states:?} {pairs:?}: {single}");
        }
    }
}

fn some_data(states: &[usize], rows: usize, seed: u64) -> Table {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(states);
    for _ in 0..rows {
        // Neighbours tend to agree.
        let mut row: Vec<u16> = Vec::new();
        for &count in states {
            let last = row.last().map_or(0, |&last| usize::from(last));
            let state = if rng.random_bool(0.6) { last % count } else { rng.random_range(0..count) };
            row.push(state as u16);
        }
        table.push(&row);
    }
    table
}

#[test]
fn initialised_models_have_the_smoothed_margins_and_sum_to_one() {
    for states in SHAPES {
        let table = some_data(states, 60, 3);
        let counts = PairCounts::new(states, &table, &vec![1.0; 60]);
        for pairs in [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables] {
            let moat = Moat::from_counts(&counts, pairs, 1.0).unwrap();
            let rows = all_rows(states);
            let log_p = log_likelihood::<f64>(&moat, &rows);
            assert!((log_p.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-9);
            for v in 0..states.len() {
                for a in 0..states[v] {
                    let found: f64 = (0..rows.rows())
                        .filter(|&row| rows.get(row, v) == a)
                        .map(|row| log_p[row].exp())
                        .sum();
                    let expected = (counts.single(v, a) + 1.0 / states[v] as f64) / 61.0;
                    assert!((found - expected).abs() < 1e-9, "{states:?} {pairs:?}: {found} {expected}");
                }
            }
        }
    }
}

#[test]
fn binary_initialisation_is_the_same_in_every_parameterisation() {
    let states = [2; 6];
    let table = some_data(&states, 300, 5);
    let counts = PairCounts::new(&states, &table, &[1.0; 300]);
    let rows = all_rows(&states);
    let [one, two, three] = [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables]
        .map(|pairs| log_likelihood::<f64>(&Moat::from_counts(&counts, pairs, 1.0).unwrap(), &rows));
    for row in 0..rows.rows() {
        assert!((one[row] - two[row]).abs() < 1e-9 && (one[row] - three[row]).abs() < 1e-9);
    }
}

/// Every derivative of the mean log-likelihood of some weighted rows, against a central difference.
#[test]
fn gradients_agree_with_central_differences() {
    for states in [&[2usize, 2, 2, 2, 2][..], &[3, 2, 5, 2], &[4, 4, 3], &[2, 1, 3], &[6, 2, 2]] {
        for pairs in [Pairs::Lambda, Pairs::Sinkhorn] {
            let table = some_data(states, 12, 7);
            let weights: Vec<f64> = (0..12).map(|row| 0.3 + f64::from(row % 4)).collect();
            let moat = Moat::random(states.to_vec(), pairs, 21).unwrap();
            let cpu = Cpu::<f64>::new();
            let value = |moat: &Moat| -> f64 {
                log_likelihood::<f64>(moat, &table)
                    .iter()
                    .zip(&weights)
                    .map(|(log, weight)| log * weight)
                    .sum()
            };
            let mut ready = moat.ready(&cpu).unwrap();
            let mut log_p = vec![0.0; table.rows()];
            moat.log_likelihood(&cpu, &mut ready, table.codes(), &mut log_p).unwrap();
            let mut stats = moat.stats(&ready);
            moat.accumulate(&cpu, &mut ready, table.codes(), &weights, &mut stats).unwrap();
            let mut gradient = vec![0.0; moat.parameters().len()];
            moat.gradient(&ready, &stats, &mut gradient);
            for place in 0..gradient.len() {
                let step = 1e-5;
                let shifted = |by: f64| {
                    let mut moved = moat.clone();
                    moved.parameters_mut()[place] += by;
                    value(&moved)
                };
                let expected = (shifted(step) - shifted(-step)) / (2.0 * step);
                let found = gradient[place];
                assert!(
                    (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{states:?} {pairs:?} parameter {place} of {:?}: {found} {expected}",
                    moat.sections()
                );
            }
        }
    }
}

/// Lemma 1: the marginals of any distribution of binary variables can be had, and come back.
#[test]
fn lemma_1_margins_of_any_distribution_are_representable() {
    let states = [2; 4];
    let rows = all_rows(&states);
    let mut rng = Pcg64::seed_from_u64(11);
    for _ in 0..20 {
        let weights: Vec<f64> = (0..16).map(|_| -rng.random::<f64>().ln()).collect();
        let counts = PairCounts::new(&states, &rows, &weights);
        let total: f64 = weights.iter().sum();
        let moat = Moat::from_counts(&counts, Pairs::Lambda, 0.0).unwrap();
        let log_p = log_likelihood::<f64>(&moat, &rows);
        // A mixture of trees with shared tables has every pair table on every tree that has the edge: with one edge
        // carrying all the weight, the joint of that pair is the table itself.
        for v in 0..4 {
            let found: f64 = (0..16).filter(|&row| rows.get(row, v) == 1).map(|row| log_p[row].exp()).sum();
            assert!((found - counts.single(v, 1) / total).abs() < 1e-12);
            for u in 0..v {
                let mut heavy = moat.clone();
                let place = v * (v - 1) / 2 + u;
                heavy.parameters_mut()[place] += 60.0;
                let log_p = log_likelihood::<f64>(&heavy, &rows);
                let both = |row: &usize| rows.get(*row, u) == 1 && rows.get(*row, v) == 1;
                let found: f64 = (0..16).filter(both).map(|row| log_p[row].exp()).sum();
                assert!((found - counts.pair(v, 1, u, 1) / total).abs() < 1e-12);
            }
        }
    }
}

/// The worked example of Figure 1, with its three trees spelled out.
#[test]
fn figure_1_of_the_paper() {
    let moat = Moat::from_tables(
        vec![2.0, 6.0, 3.0],
        vec![vec![0.4, 0.6], vec![0.7, 0.3], vec![0.5, 0.5]],
        vec![vec![0.2, 0.2, 0.5, 0.1], vec![0.1, 0.3, 0.4, 0.2], vec![0.4, 0.3, 0.1, 0.2]],
    )
    .unwrap();
    let mut row = Table::new(&[2, 2, 2]);
    row.push(&[1, 0, 1]);
    // P(a=1,b=0) P(b=0,c=1)/P(b=0) and so on; weights 2·3, 2·6, 3·6.
    let (ab, bc, ac) = (0.5, 0.3, 0.2);
    let expected = (6.0 * ab * bc / 0.7 + 12.0 * ab * ac / 0.6 + 18.0 * ac * bc / 0.5) / (6.0 + 12.0 + 18.0);
    let found = log_likelihood::<f64>(&moat, &row)[0].exp();
    assert!((found - expected).abs() < 1e-14, "{found} {expected}");
    assert!((found - 0.151270).abs() < 5e-7);
    assert!((sum::<f64>(&moat) - 1.0).abs() < 1e-12);
}

#[test]
fn tables_that_disagree_with_their_margins_are_named() {
    let margins = vec![vec![0.4, 0.6], vec![0.7, 0.3], vec![0.5, 0.5]];
    let mut joints = vec![vec![0.2, 0.2, 0.5, 0.1], vec![0.1, 0.3, 0.4, 0.2], vec![0.4, 0.3, 0.1, 0.2]];
    joints[1] = vec![0.15, 0.3, 0.35, 0.2];
    let error = Moat::from_tables(vec![1.0; 3], margins.clone(), joints.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the joint table of variables 0 and 2, state 0 of variable 0, adds up to 0.44999999999999996 instead of 0.4"
    );
    joints[1] = vec![0.1, 0.3, 0.4];
    let error = Moat::from_tables(vec![1.0; 3], margins.clone(), joints.clone()).unwrap_err();
    assert!(matches!(error, ModelError::Length { expected: 4, found: 3, .. }));
    joints[1] = vec![0.1, 0.3, 0.4, 0.2];
    let cpu = Cpu::<f64>::new();
    let unconnected = Moat::from_tables(vec![1.0, 0.0, 0.0], margins.clone(), joints.clone()).unwrap();
    assert!(matches!(unconnected.ready(&cpu), Err(ModelError::NoTree)));
    let negative = Moat::from_tables(vec![1.0, -2.0, 1.0], margins, joints).unwrap();
    assert!(matches!(negative.ready(&cpu), Err(ModelError::Weights(_))));
}

/// Hard zeros: an impossible row has log-likelihood −∞ and nothing else happens.
#[test]
fn impossible_rows_are_minus_infinity() {
    let moat = Moat::from_tables(vec![1.0], vec![vec![0.5, 0.5]; 2], vec![vec![0.5, 0.0, 0.0, 0.5]]).unwrap();
    let rows = all_rows(&[2, 2]);
    let log_p = log_likelihood::<f64>(&moat, &rows);
    assert_eq!(log_p[1], f64::NEG_INFINITY);
    assert_eq!(log_p[2], f64::NEG_INFINITY);
    assert!((log_p[0].exp() - 0.5).abs() < 1e-15 && (log_p[3].exp() - 0.5).abs() < 1e-15);
}

/// A table that no scaling brings to its margins is an error, not a model that does not normalise.
#[test]
fn a_model_either_normalises_or_is_refused() {
    for spread in [10.0, 60.0, 200.0, 600.0] {
        for seed in 0..20 {
            let mut moat = Moat::random(vec![3, 4, 2], Pairs::Sinkhorn, seed).unwrap();
            let tables = moat.sections()[1];
            moat.parameters_mut()[tables..].iter_mut().for_each(|entry| *entry *= spread);
            match moat.ready(&Cpu::<f64>::new()) {
                Err(error) => assert!(matches!(error, ModelError::Unbalanced { .. }), "{error}"),
                Ok(_) => assert!((sum::<f64>(&moat) - 1.0).abs() <= 1e-9, "{spread} {seed}"),
            }
        }
    }
}
