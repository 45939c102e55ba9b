//! Questions to whole models, in columns: mixtures of components over blocks, against enumeration of every row.

mod every;

use everytree_core::blocks::Blocks;
use everytree_core::data::Table;
use everytree_core::infer::{Drawn, Effort, Evidence, InferError, Inference, Method, Sampling, Search};
use everytree_core::model::{Component, ComponentShape, Directed, Family, Member, Mixture, Model, Pairs};
use std::sync::atomic::{AtomicUsize, Ordering};

const STATES: [usize; 6] = [2, 2, 3, 2, 2, 2];

/// Three components; columns 0, 2 and 5 are one block with unseen combinations, 3 and 4 one with none.
fn model(family: &str, components: u64, blocks: bool) -> Model {
    let combinations = vec![
        (vec![0, 2, 5], vec![vec![0, 0, 1], vec![0, 2, 0], vec![1, 1, 1], vec![1, 2, 0], vec![1, 2, 1]]),
        (vec![3, 4], vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]]),
    ];
    let blocks = match blocks {
        true => Blocks::from_combinations(&STATES, &combinations).unwrap(),
        false => Blocks::none(&STATES),
    };
    let shape = ComponentShape { pairs: Some(Pairs::Sinkhorn), hidden: Some(3), ..ComponentShape::default() };
    let (family, _) = Family::preset(family).unwrap();
    let one = |seed: u64| family.random(&blocks.states(), &shape, seed).unwrap();
    let shares: Vec<f64> = (1..=components).map(|k| k as f64).collect();
    let mixture = Mixture::new((0..components).map(|k| one(10 + k)).collect(), &shares).unwrap();
    Member::new(blocks, mixture).unwrap().into()
}

fn models() -> Vec<(String, Model)> {
    let mut models = Vec::new();
    for family in ["moat", "directed", "independent", "chow-liu", "hclt", "kernel"] {
        for (components, blocks) in [(1, true), (3, false), (3, true)] {
            models.push((format!("{family} {components} {blocks}"), model(family, components, blocks)));
        }
    }
    for (name, members) in ensembles() {
        models.push((format!("ensemble of {name}"), Model::ensemble(members, &[1.0, 2.0, 1.5]).unwrap()));
    }
    models
}

/// Members of different families, of different blocks, and both.
fn ensembles() -> Vec<(&'static str, Vec<Member>)> {
    let member =
        |family: &str, components: u64, blocks: bool| model(family, components, blocks).members()[0].clone();
    vec![
        ("families", vec![member("moat", 1, false), member("hclt", 1, false), member("directed", 2, false)]),
        (
            "blocks",
            vec![member("directed", 1, true), member("directed", 1, false), member("chow-liu", 2, true)],
        ),
        ("both", vec![member("moat", 2, true), member("independent", 1, false), member("hclt", 1, false)]),
        (
            "stored rows",
            vec![member("directed", 1, false), member("kernel", 1, false), member("moat", 1, false)],
        ),
    ]
}

#[test]
fn an_ensemble_is_the_weighted_mean_of_its_members() {
    let mut table = Table::new(&STATES);
    every::row(&STATES).iter().for_each(|row| table.push(row));
    for (name, members) in ensembles() {
        let of = |model: &Model| model.inference().unwrap().log_p(&table).unwrap();
        let alone: Vec<Vec<f64>> = members.iter().map(|member| of(&member.clone().into())).collect();
        let together = of(&Model::ensemble(members, &[1.0, 2.0, 1.5]).unwrap());
        for (row, log) in together.iter().enumerate() {
            let mean: f64 =
                alone.iter().zip([1.0, 2.0, 1.5]).map(|(logs, w)| w / 4.5 * logs[row].exp()).sum();
            assert!((log - mean.ln()).abs() < 1e-12, "{name} {row}: {log} {mean}");
        }
    }
}

/// Edges given evidence, against the members asked one by one, each weighed by what it gives to the evidence.
#[test]
fn edges_of_an_ensemble_are_those_of_its_members() {
    let effort = Effort::default();
    for (name, members) in ensembles() {
        let whole = Model::ensemble(members.clone(), &[1.0, 2.0, 1.5]).unwrap();
        for which in [0, 2, 3] {
            let evidence = some_evidence(which);
            let found = whole.inference().unwrap().edges(&evidence, effort).unwrap();
            let (mut sum, mut total) = (vec![0.0; found.edges.len()], 0.0);
            for (number, (member, weight)) in members.iter().zip([1.0, 2.0, 1.5]).enumerate() {
                let alone = Model::from(member.clone());
                let asked = alone.inference().unwrap();
                let weight = weight * asked.log_evidence(&evidence, effort).unwrap().value.exp();
                let edges: Vec<f64> =
                    asked.edges(&evidence, effort).unwrap().edges.iter().map(|edge| edge.value).collect();
                let own = whole.edges_of_member(number, &edges, 1.0);
                sum.iter_mut().zip(own).for_each(|(sum, p)| *sum += weight * p);
                total += weight;
            }
            for (found, sum) in found.edges.iter().zip(sum) {
                assert!(
                    (found.value - sum / total).abs() < 1e-9,
                    "{name} {which}: {found:?} {}",
                    sum / total
                );
            }
        }
    }
}

fn some_evidence(which: usize) -> Evidence {
    let mut evidence = Evidence::none(&STATES);
    match which {
        0 => {
            // One column of a block alone, and one by itself.
            evidence.set(2, &[2]).unwrap();
            evidence.set(1, &[0]).unwrap();
        }
        1 => {
            evidence.set(0, &[1]).unwrap();
            evidence.set(5, &[0]).unwrap();
            evidence.set(4, &[1]).unwrap();
        }
        2 => {
            evidence.set(2, &[0, 1]).unwrap();
            evidence.soft(5, &[0.3, 0.8]).unwrap();
        }
        _ => {}
    }
    evidence
}

/// Every row with its probability, times the likelihood of the evidence.
fn by_force(asked: &Inference<'_>, evidence: &Evidence) -> (Vec<Vec<u16>>, Vec<f64>) {
    let rows = every::row(&STATES);
    let mut table = Table::new(&STATES);
    rows.iter().for_each(|row| table.push(row));
    let log_p = asked.log_p(&table).unwrap();
    let likelihood = |row: &[u16]| -> f64 { (0..6).map(|v| evidence.of(v)[usize::from(row[v])]).product() };
    let p = rows.iter().zip(log_p).map(|(row, log)| log.exp() * likelihood(row)).collect();
    (rows, p)
}

fn posteriors(rows: &[Vec<u16>], p: &[f64]) -> (Vec<Vec<f64>>, f64) {
    let mut sums: Vec<Vec<f64>> = STATES.iter().map(|&count| vec![0.0; count]).collect();
    let total: f64 = p.iter().sum();
    for (row, p) in rows.iter().zip(p) {
        (0..6).for_each(|v| sums[v][usize::from(row[v])] += p / total);
    }
    (sums, total)
}

#[test]
fn rows_of_columns_have_probabilities_that_add_up() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        let (_, p) = by_force(&asked, &Evidence::none(&STATES));
        let sum: f64 = p.iter().sum();
        assert!((sum - 1.0).abs() < 1e-10, "{name}: {sum}");
    }
}

#[test]
fn every_method_answers_in_columns() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        for which in 0..4 {
            let evidence = some_evidence(which);
            let (rows, p) = by_force(&asked, &evidence);
            let (expected, total) = posteriors(&rows, &p);
            for method in [
                None,
                Some(Method::Exact),
                Some(Method::Importance),
                Some(Method::Collapsed),
                Some(Method::Tilted),
                Some(Method::Gibbs),
                Some(Method::BlockGibbs),
            ] {
                let trees = if method == Some(Method::Gibbs) { 4_000 } else { 16_000 };
                let effort = Effort { trees, tolerance: None, seed: 5, ..Effort::default() };
                let found = asked.posterior(&evidence, method, effort).unwrap();
                for (found, expected) in found.states.iter().flatten().zip(expected.iter().flatten()) {
                    let off = (found.value - expected).abs();
                    // 5.5 standard errors: some hundred thousand comparisons.
                    assert!(
                        off <= 5.5 * found.standard_error + 1e-9,
                        "{name} {which} {method:?}: {found:?} {expected}"
                    );
                }
                let log = found.log_evidence;
                assert!((log.value - total.ln()).abs() <= 5.5 * log.standard_error + 1e-9, "{name}: {log:?}");
            }
            for operations in [1e11, 0.0] {
                let effort = Effort { operations, tolerance: Some(0.01), ..Effort::default() };
                let log = asked.log_evidence(&evidence, effort).unwrap();
                assert!((log.value - total.ln()).abs() <= 5.5 * log.standard_error + 1e-9, "{name}: {log:?}");
            }
        }
    }
}

/// Over many seeds, intervals cover as often as they say: the errors of components and members and of their weights are all in them.
#[test]
fn intervals_cover_what_they_say() {
    let [families, _, both, ..] = &ensembles()[..] else { panic!("three ensembles") };
    let ensemble = |(name, members): &(&str, Vec<Member>)| {
        (format!("ensemble of {name}"), Model::ensemble(members.clone(), &[1.0, 2.0, 1.5]).unwrap())
    };
    for (name, model) in
        [("mixture".to_owned(), model("directed", 3, true)), ensemble(families), ensemble(both)]
    {
        let asked = model.inference().unwrap();
        let evidence = some_evidence(0);
        let (rows, p) = by_force(&asked, &evidence);
        let (expected, _) = posteriors(&rows, &p);
        const SEEDS: usize = 200;
        let mut covered = 0;
        for seed in 0..SEEDS {
            let seed = seed as u64;
            let effort = Effort { trees: 2048, tolerance: None, seed, operations: 0.0, ..Effort::default() };
            let found = asked.posterior(&evidence, Some(Method::Tilted), effort).unwrap();
            let one = found.states[5][1];
            assert!(one.standard_error > 0.0, "{name}");
            covered += usize::from((one.value - expected[5][1]).abs() <= 1.96 * one.standard_error);
        }
        // 95 % of 200, five binomial standard deviations down; all of them at most but two.
        assert!((174..=199).contains(&covered), "{name}: {covered}");
    }
}

/// The probability of evidence by completions, against enumeration: unbiased, and as far off as it says.
#[test]
fn completions_find_the_evidence() {
    let (mut squares, mut sum, mut count) = (0.0, 0.0, 0.0f64);
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        for which in 0..4 {
            let evidence = some_evidence(which);
            let truth = by_force(&asked, &evidence).1.iter().sum::<f64>().ln();
            for seed in 0..8 {
                let effort = Effort { operations: 0.0, tolerance: Some(0.02), seed, ..Effort::default() };
                let found = asked.log_evidence(&evidence, effort).unwrap();
                assert!(found.standard_error < 0.05, "{name} {which}: {found:?}");
                let off = found.value - truth;
                if found.standard_error == 0.0 {
                    assert!(off.abs() < 1e-9, "{name} {which}: {found:?} {truth}");
                    continue;
                }
                let z = off / found.standard_error.hypot(1e-9);
                assert!(z.abs() < 5.0, "{name} {which}: {found:?} {truth}");
                (squares, sum, count) = (squares + z * z, sum + z, count + 1.0);
            }
        }
    }
    // Four standard errors of the mean of squares of normal numbers, and of their mean.
    assert!(
        count > 100.0 && squares / count < 1.0 + 4.0 * (2.0 / count).sqrt(),
        "{} of {count}",
        squares / count
    );
    assert!((sum / count).abs() < 4.0 / count.sqrt(), "{} of {count}", sum / count);
}

/// What trees alone say exactly is not left to completions.
#[test]
fn no_evidence_is_certain() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        let effort = Effort { operations: 0.0, tolerance: Some(0.05), ..Effort::default() };
        let found = asked.log_evidence(&some_evidence(3), effort).unwrap();
        assert!(found.value.abs() < 1e-9 && found.standard_error < 1e-9, "{name}: {found:?}");
    }
}

/// Edges are probabilities over components: a root or a parent for everyone, or one edge less than there are blocks.
#[test]
fn edges_add_up_over_components() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        // What edges of ensembles are is another test.
        let Some(member) = model.single() else { continue };
        let n = member.blocks().blocks().len() as f64;
        for operations in [1e11, 0.0] {
            let effort = Effort { operations, ..Effort::default() };
            let found = asked.edges(&some_evidence(1), effort).unwrap();
            let sum: f64 = (0..found.edges.len())
                .filter(|place| !name.starts_with("moat") || place / n as usize > place % n as usize)
                .map(|place| found.edges[place].value)
                .sum();
            let expected = if name.starts_with("moat") { n - 1.0 } else { n };
            assert!((sum - expected).abs() < 1e-6, "{name}: {sum}");
        }
    }
}

#[test]
fn samples_follow_the_distribution_over_rows() {
    const ROWS: usize = 20_000;
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        for which in [0, 2, 3] {
            let evidence = some_evidence(which);
            let (rows, p) = by_force(&asked, &evidence);
            let total: f64 = p.iter().sum();
            for operations in [1e11, 0.0] {
                let (drawn, how) = asked.sample(&evidence, ROWS, Sampling { seed: 4, operations }).unwrap();
                if which == 3 || operations > 0.0 {
                    assert_eq!(how, Drawn::Exactly, "{name}");
                }
                let mut counts = std::collections::HashMap::new();
                drawn.iter().for_each(|row| *counts.entry(row.clone()).or_insert(0usize) += 1);
                // Chi-square over the rows with enough in them; the others together.
                let (mut square, mut cells, mut rest, mut rest_expected) = (0.0, 0usize, 0.0, 0.0);
                for (row, p) in rows.iter().zip(&p) {
                    let expected = ROWS as f64 * p / total;
                    let found = counts.get(row).copied().unwrap_or(0) as f64;
                    assert!(expected > 0.0 || found == 0.0, "{name}: an impossible row");
                    if expected >= 5.0 {
                        square += (found - expected).powi(2) / expected;
                        cells += 1;
                    } else {
                        rest += found;
                        rest_expected += expected;
                    }
                }
                square += (rest - rest_expected).powi(2) / rest_expected.max(1.0);
                let freedom = cells as f64;
                // Six standard deviations; pools and estimated shares of components are off by a little more.
                let room = 6.0 * (2.0 * freedom).sqrt() + if how == Drawn::Exactly { 0.0 } else { 40.0 };
                assert!(square < freedom + room, "{name} {which} {operations}: {square} of {freedom}");
            }
        }
    }
}

#[test]
fn the_most_probable_rows_are_found() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        for which in 0..4 {
            let evidence = some_evidence(which);
            let (rows, p) = by_force(&asked, &evidence);
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
            let found = asked.most_probable(&evidence, 4, Search::default()).unwrap();
            assert_eq!(found.len(), 4);
            for (place, found) in found.iter().enumerate() {
                assert!(found.proven);
                let at = rows.iter().position(|row| *row == found.row).unwrap();
                // Rows that share a state are equally probable: any order of them will do.
                assert!((p[at] / p[order[place]] - 1.0).abs() < 1e-9, "{name} {which} {place}");
            }
            let searched =
                asked.most_probable(&evidence, 1, Search { operations: 0.0, ..Search::default() }).unwrap();
            // One tree whose variables are all observed knows its best row.
            let proven = ["independent 1 true", "chow-liu 1 true"].contains(&&*name);
            assert_eq!(searched[0].proven, proven, "{name} {which}");
            assert!((searched[0].log_p - found[0].log_p).abs() < 1e-9, "{name} {which}");
        }
    }
}

/// Hundreds of columns: one tree proves as many rows as are asked for; a search keeps to its budget, finds what is at least as
/// good as any sample, and gives what it has when it is stopped.
#[test]
fn the_most_probable_rows_of_many_columns_take_what_was_budgeted() {
    let states = vec![2; 300];
    let of = |family: Family, components: u64| {
        let shape = ComponentShape { hidden: Some(3), ..ComponentShape::default() };
        let part = |seed: u64| family.random(&states, &shape, seed).unwrap();
        let mixture = Mixture::new((1..=components).map(part).collect(), &vec![1.0; components as usize]);
        Model::from(Member::new(Blocks::none(&states), mixture.unwrap()).unwrap())
    };
    let nothing = Evidence::none(&states);
    let tree = of(Family::ChowLiu, 1);
    let found = tree.inference().unwrap().most_probable(&nothing, 50, Search::default()).unwrap();
    assert!(found.len() == 50 && found.iter().all(|row| row.proven));
    assert!(found.windows(2).all(|two| two[0].log_p >= two[1].log_p && two[0].row != two[1].row));
    for (family, components) in
        [(Family::ChowLiu, 2), (Family::Hclt, 1), (Family::Directed, 1), (Family::Moat, 1)]
    {
        let model = of(family, components);
        let asked = model.inference().unwrap();
        // Of all trees: about 1500 rows.
        let search = Search { budget: 1500.0 * 300f64.powi(3), ..Search::default() };
        let (calls, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let go_on = |done: f64| {
            assert!((0.0..=1.0).contains(&done));
            calls.fetch_add(1, Ordering::Relaxed);
            true
        };
        let found = asked.most_probable_with(&nothing, 1, search, &go_on).unwrap();
        assert!(!found[0].proven && calls.into_inner() > 0);
        let samples = asked.sample(&nothing, 50, Sampling::default()).unwrap().0;
        let mut table = Table::new(&states);
        samples.iter().for_each(|row| table.push(row));
        let best = asked.log_p(&table).unwrap().into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(found[0].log_p >= best, "{family:?}: {} {best}", found[0].log_p);
        let at_once = |_: f64| stopped.fetch_add(1, Ordering::Relaxed) > 1000;
        let early = asked.most_probable_with(&nothing, 1, search, &at_once).unwrap();
        assert!(stopped.into_inner() == 1 && early[0].log_p <= found[0].log_p + 1e-9);
    }
}

#[test]
fn figures_are_those_of_the_distribution() {
    for (name, model) in models() {
        let asked = model.inference().unwrap();
        let (rows, p) = by_force(&asked, &Evidence::none(&STATES));
        let entropy: f64 = p.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        let other = self::model("directed", 3, true);
        let other = other.inference().unwrap();
        let (_, q) = by_force(&other, &Evidence::none(&STATES));
        let divergence: f64 = p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum();
        for operations in [1e11, 0.0] {
            let effort = Effort { operations, tolerance: Some(0.01), ..Effort::default() };
            let close = |found: everytree_core::infer::Estimate, expected: f64, what: &str| {
                let off = (found.value - expected).abs();
                assert!(off <= 5.0 * found.standard_error + 1e-9, "{name} {what}: {found:?} {expected}");
            };
            close(asked.entropy(effort).unwrap(), entropy, "entropy");
            close(asked.divergence(&other, &|row| row.to_vec(), effort).unwrap(), divergence, "divergence");
            // Within a block, between two blocks, and columns by themselves.
            for (u, v) in [(0, 5), (2, 4), (1, 3)] {
                let mut joint = vec![0.0; STATES[u] * STATES[v]];
                for (row, p) in rows.iter().zip(&p) {
                    joint[usize::from(row[u]) * STATES[v] + usize::from(row[v])] += p;
                }
                let left: Vec<f64> = joint.chunks(STATES[v]).map(|line| line.iter().sum()).collect();
                let right: Vec<f64> =
                    (0..STATES[v]).map(|b| joint.iter().skip(b).step_by(STATES[v]).sum()).collect();
                let expected: f64 = joint
                    .iter()
                    .enumerate()
                    .filter(|(_, p)| **p > 0.0)
                    .map(|(place, p)| p * (p / (left[place / STATES[v]] * right[place % STATES[v]])).ln())
                    .sum();
                let effort = Effort { tolerance: Some(0.002), ..effort };
                close(asked.mutual_information(u, v, effort).unwrap(), expected, "information");
            }
        }
    }
}

/// A large block: what shares a state is counted by subtraction instead of listed.
#[test]
fn large_blocks_count_what_they_do_not_list() {
    let states = vec![2; 14];
    let seen: Vec<Vec<u16>> =
        (0..5u16).map(|k| (0..13).map(|v| u16::from((v * (k + 2)) % 3 == 0)).collect()).collect();
    let mut seen = seen;
    seen.sort();
    seen.dedup();
    let blocks = Blocks::from_combinations(&states, &[((0..13).collect(), seen)]).unwrap();
    let component = Component::Directed(Directed::random(blocks.states(), 3).unwrap());
    let model = Model::from(Member::new(blocks, Mixture::one(component)).unwrap());
    let asked = model.inference().unwrap();
    let mut evidence = Evidence::none(&states);
    evidence.set(0, &[1]).unwrap();
    evidence.soft(4, &[0.25, 0.5]).unwrap();
    let rows = every::row(&states);
    let mut table = Table::new(&states);
    rows.iter().for_each(|row| table.push(row));
    let log_p = asked.log_p(&table).unwrap();
    let mut expected = vec![[0.0; 2]; 14];
    let mut total = 0.0;
    for (row, log) in rows.iter().zip(&log_p) {
        let p: f64 = log.exp() * (0..14).map(|v| evidence.of(v)[usize::from(row[v])]).product::<f64>();
        total += p;
        (0..14).for_each(|v| expected[v][usize::from(row[v])] += p);
    }
    let found = asked.posterior(&evidence, Some(Method::Exact), Effort::default()).unwrap();
    for (v, found) in found.states.iter().enumerate() {
        assert!((found[1].value - expected[v][1] / total).abs() < 1e-9, "{v}");
    }
    assert!((found.log_evidence.value - total.ln()).abs() < 1e-9);
}

#[test]
fn evidence_that_no_row_has_is_told() {
    let model = model("directed", 3, true);
    let asked = model.inference().unwrap();
    let mut nothing = Evidence::none(&STATES);
    nothing.soft(0, &[0.0, 0.0]).unwrap();
    for method in [None, Some(Method::Exact), Some(Method::Tilted)] {
        let refused = asked.posterior(&nothing, method, Effort::default()).unwrap_err();
        assert!(matches!(refused, InferError::Impossible | InferError::Unexplained { .. }), "{refused}");
    }
    let other = Evidence::none(&[2, 2]);
    let refused = asked.posterior(&other, None, Effort::default()).unwrap_err();
    assert_eq!(refused, InferError::Variables { found: 2, expected: 6 });
}
