//! Random trees and forests against enumerated probabilities, and against the marginals of the elimination.

mod oracle;

use everytree_core::spanning::{Elimination, FreshTrees, Kind, RateError, SpanningTrees};
use oracle::{all_forests, weight};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::HashMap;

/// The value that a chi-square variable of `df` degrees of freedom exceeds with probability 3e-5 (Wilson–Hilferty).
fn chi_square_limit(df: f64) -> f64 {
    let z = 4.0;
    df * (1.0 - 2.0 / (9.0 * df) + z * (2.0 / (9.0 * df)).sqrt()).powi(3)
}

/// Edges of an undirected tree whatever it hangs at; parents of a directed forest.
fn name(kind: Kind, parents: &[usize]) -> Vec<(usize, usize)> {
    let edge = |(v, &u): (usize, &usize)| if kind == Kind::Directed { (v, u) } else { (u.min(v), u.max(v)) };
    let mut edges: Vec<_> =
        parents.iter().enumerate().filter(|&(v, &u)| kind == Kind::Directed || u != v).map(edge).collect();
    edges.sort_unstable();
    edges
}

/// Draws from `trees` and compares the frequency of every forest with its probability.
fn chi_square(kind: Kind, n: usize, rates: &[f64], trees: &SpanningTrees, seed: u64, draws: usize) {
    let draw = |rng: &mut Pcg64, parents: &mut [usize]| {
        trees.draw_into(rng, parents);
    };
    chi_square_of(kind, n, rates, draw, seed, draws);
}

/// The same with any way to draw.
fn chi_square_of(
    kind: Kind,
    n: usize,
    rates: &[f64],
    mut draw: impl FnMut(&mut Pcg64, &mut [usize]),
    seed: u64,
    draws: usize,
) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut seen: HashMap<Vec<(usize, usize)>, usize> = HashMap::new();
    let mut parents = vec![0; n];
    for _ in 0..draws {
        draw(&mut rng, &mut parents);
        *seen.entry(name(kind, &parents)).or_default() += 1;
    }
    let weights: Vec<(Vec<(usize, usize)>, f64)> = all_forests(kind, n)
        .iter()
        .map(|parents| (name(kind, parents), weight(kind, n, rates, parents)))
        .collect();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let (mut statistic, mut cells, mut rare, mut rare_seen) = (0.0, 0.0, 0.0, 0.0);
    for (forest, weight) in weights {
        let expected = weight / total * draws as f64;
        let found = seen.remove(&forest).unwrap_or(0) as f64;
        if weight == 0.0 {
            assert_eq!(found, 0.0, "a forest of weight zero was drawn");
        } else if expected < 10.0 {
            rare += expected;
            rare_seen += found;
        } else {
            statistic += (found - expected).powi(2) / expected;
            cells += 1.0;
        }
    }
    assert!(seen.is_empty(), "something was drawn that is not a forest");
    if rare >= 10.0 {
        statistic += (rare_seen - rare).powi(2) / rare;
        cells += 1.0;
    } else {
        assert!(rare_seen <= rare + 6.0 * (rare.sqrt() + 1.0));
    }
    let limit = chi_square_limit(cells - 1.0);
    assert!(
        cells > 1.0 && statistic < limit,
        "{kind:?} n={n}: {statistic} with {cells} cells, limit {limit}"
    );
}

fn uniform(n: usize) -> Vec<f64> {
    vec![1.0; n * n]
}

/// Rates over `decades` decades, symmetric, with a zero somewhere.
fn skewed(n: usize, decades: f64, seed: u64) -> Vec<f64> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut q: Vec<f64> = (0..n * n).map(|_| 10f64.powf(-decades * rng.random::<f64>())).collect();
    q[2 * n + 1] = 0.0;
    q
}

/// Both halves of a symmetric matrix, and a diagonal of zeros; a directed one as it is.
fn whole(kind: Kind, n: usize, rates: &[f64]) -> Vec<f64> {
    let entry = |v: usize, u: usize| match (kind, u == v) {
        (Kind::Directed, _) => rates[v * n + u],
        (Kind::Undirected, true) => 0.0,
        (Kind::Undirected, false) => rates[v.max(u) * n + v.min(u)],
    };
    (0..n * n).map(|place| entry(place / n, place % n)).collect()
}

#[test]
fn every_forest_comes_with_its_probability() {
    for kind in [Kind::Undirected, Kind::Directed] {
        for n in [4, 5] {
            for (case, q) in [uniform(n), skewed(n, 1.0, 1), skewed(n, 3.0, 2)].into_iter().enumerate() {
                // By default, by walks alone, by undoing an elimination, and by a bound that every other walk hits:
                // whether too many steps were erased tells nothing about the tree.
                let bounds = [Some(None), Some(Some(1_000_000)), Some(Some(3)), None];
                for (way, bound) in bounds.into_iter().enumerate() {
                    let trees = SpanningTrees::new(kind, n, &q).unwrap();
                    let trees = match bound {
                        Some(most) => trees.walking(most),
                        None => trees,
                    };
                    chi_square(kind, n, &q, &trees, (100 * case + way) as u64, 60_000);
                }
                let q = whole(kind, n, &q);
                let mut fresh = FreshTrees::new(kind, n);
                let draw = |rng: &mut Pcg64, parents: &mut [usize]| {
                    parents.copy_from_slice(fresh.draw(&q, rng).unwrap().parents());
                };
                chi_square_of(kind, n, &q, draw, (100 * case + 10) as u64, 60_000);
            }
        }
    }
}

#[test]
fn small_root_rates_give_forests_with_their_probability() {
    // Root rates 10⁻³ and 10⁻⁹ of the others: mostly one root, and never a walk of a billion steps.
    for (small, seed) in [(1e-3, 1), (1e-9, 2)] {
        let n = 4;
        let mut q = skewed(n, 1.0, 7);
        (0..n).for_each(|v| q[v * n + v] *= small);
        let trees = SpanningTrees::new(Kind::Directed, n, &q).unwrap();
        chi_square(Kind::Directed, n, &q, &trees, seed, 60_000);
    }
}

/// Frequencies of all edges of 50 vertices, against the marginals. With 1225 (or 2500) edges a deviation of 5 standard
/// deviations has probability below 10⁻³ even once.
#[test]
fn edge_frequencies_are_the_marginals() {
    let n = 50;
    for kind in [Kind::Undirected, Kind::Directed] {
        let mut q = skewed(n, 2.0, 3);
        if kind == Kind::Directed {
            (0..n).for_each(|v| q[v * n + v] *= 0.05);
        }
        let (_, marginals) = Elimination::<f64>::new(kind, n).unwrap().one(&q).unwrap();
        let all = whole(kind, n, &q);
        for way in 0..3 {
            let most = [Some(1_000_000), None, None][way];
            let trees = SpanningTrees::new(kind, n, &q).unwrap().walking(most);
            let mut fresh = FreshTrees::new(kind, n);
            let mut rng = Pcg64::seed_from_u64(11);
            let draws = 20_000;
            let mut counts = vec![0.0; n * n];
            for _ in 0..draws {
                let tree = if way < 2 { trees.draw(&mut rng) } else { fresh.draw(&all, &mut rng).unwrap() };
                for (v, &u) in tree.parents().iter().enumerate() {
                    counts[v * n + u] += 1.0;
                    if kind == Kind::Undirected && u != v {
                        counts[u * n + v] += 1.0;
                    }
                }
            }
            let mut worst = 0.0f64;
            for v in 0..n {
                for u in (0..n).filter(|&u| kind == Kind::Directed || u != v) {
                    let p = marginals[v * n + u];
                    let deviation = (p * (1.0 - p) / draws as f64).sqrt() + 0.2 / draws as f64;
                    worst = worst.max((counts[v * n + u] / draws as f64 - p).abs() / deviation);
                }
            }
            assert!(worst < 5.0, "{kind:?}: {worst} standard deviations");
        }
    }
}

/// Weights over sixteen decades and more: pairs that walk to and fro 10¹⁶ times. Bounded in steps, not in seconds.
#[test]
fn no_rates_can_hang_a_draw() {
    for kind in [Kind::Undirected, Kind::Directed] {
        for (decades, n) in [(16.0, 30), (60.0, 30), (300.0, 8)] {
            let mut rng = Pcg64::seed_from_u64(decades as u64);
            let q: Vec<f64> = (0..n * n).map(|_| 10f64.powf(-decades * rng.random::<f64>())).collect();
            let trees = SpanningTrees::new(kind, n, &q).unwrap();
            assert!(trees.most_steps() <= n * n / 4 + 64 + n * n * n / 6 + 12 * n * n + 13 * n + 1);
            let mut total = 0;
            let mut parents = vec![0; n];
            for _ in 0..200 {
                let steps = trees.draw_into(&mut rng, &mut parents);
                assert!(steps <= trees.most_steps(), "{steps} steps");
                total += steps;
                everytree_core::spanning::RootedForest::from_parents(parents.clone()).unwrap();
            }
            // Mostly it is far less: a walk that is given up, and a few n² looks.
            assert!(total / 200 <= 64 + n * n / 4 + 8 * n * n, "{} steps a tree", total / 200);
        }
    }
    // A path of bottlenecks: exactly one tree, every other edge 10⁸ times the one before, and zeros elsewhere.
    let n = 12;
    let mut q = vec![0.0; n * n];
    (1..n).for_each(|v| q[v * n + v - 1] = if v % 2 == 0 { 1e-8 } else { 1e8 });
    let trees = SpanningTrees::new(Kind::Undirected, n, &q).unwrap();
    let tree = trees.draw(&mut Pcg64::seed_from_u64(1));
    assert_eq!(tree.path(0, n - 1), Some((0..n).collect()));
}

/// Rates so far apart that f64 cannot hold the weight of any tree: 10⁻⁴⁰⁰.
#[test]
fn products_beyond_f64_are_drawn_correctly() {
    let (tiny, n) = (1e-200, 4);
    // 0 ─ 1 strongly; 2 and 3 hang on by 10⁻²⁰⁰ each, at 0 or at 1, three to one.
    let mut q = vec![0.0; n * n];
    q[n] = 1.0;
    for v in [2, 3] {
        q[v * n] = 3.0 * tiny;
        q[v * n + 1] = tiny;
    }
    // Trees compare as if the thin edges weighed 10⁻⁹: every tree has exactly two of them, or three.
    let alike: Vec<f64> = q.iter().map(|x| if *x < 0.5 { x / tiny * 1e-9 } else { *x }).collect();
    for most in [Some(1_000_000), None] {
        let trees = SpanningTrees::new(Kind::Undirected, n, &q).unwrap().walking(most);
        chi_square(Kind::Undirected, n, &alike, &trees, 3, 20_000);
    }
}

/// Weights near the smallest numbers there are: what has weight zero must still never come.
#[test]
fn the_smallest_and_largest_weights_are_drawn_correctly() {
    for scale in [1e-310, 1e300, 1.7e308] {
        let n = 4;
        let mut q = skewed(n, 0.5, 5);
        q.iter_mut().for_each(|x| *x *= scale);
        let alike: Vec<f64> = q.iter().map(|x| x / scale).collect();
        for kind in [Kind::Undirected, Kind::Directed] {
            for most in [Some(usize::MAX), Some(2), None] {
                let trees = SpanningTrees::new(kind, n, &q).unwrap().walking(most);
                chi_square(kind, n, &alike, &trees, 3, 20_000);
            }
            let q = whole(kind, n, &q);
            let mut fresh = FreshTrees::new(kind, n);
            let draw = |rng: &mut Pcg64, parents: &mut [usize]| {
                parents.copy_from_slice(fresh.draw(&q, rng).unwrap().parents());
            };
            chi_square_of(kind, n, &alike, draw, 4, 20_000);
        }
    }
}

#[test]
fn same_seed_same_tree() {
    let q = skewed(20, 4.0, 1);
    for kind in [Kind::Undirected, Kind::Directed] {
        let first = SpanningTrees::new(kind, 20, &q).unwrap();
        let second = SpanningTrees::new(kind, 20, &q).unwrap();
        // The first sampler has already drawn others: what it has prepared since must not matter.
        (0..50).for_each(|seed| drop(first.draw(&mut Pcg64::seed_from_u64(seed))));
        for seed in 0..20 {
            assert_eq!(
                first.draw(&mut Pcg64::seed_from_u64(seed)),
                second.draw(&mut Pcg64::seed_from_u64(seed))
            );
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let mut q = vec![1.0; 9];
    q[2 * 3] = 0.0;
    q[2 * 3 + 1] = 0.0;
    let error = SpanningTrees::new(Kind::Undirected, 3, &q).unwrap_err();
    assert_eq!(error, RateError::NoForest { vertex: 2 });
    let error = SpanningTrees::new(Kind::Directed, 2, &[0.0, 1.0, 1.0, 0.0]).unwrap_err();
    assert_eq!(error.to_string(), "no forest: vertex 0 has no path of positive rates to a root");
    assert!(matches!(
        SpanningTrees::new(Kind::Directed, 2, &[1.0, f64::NAN, 1.0, 1.0]).unwrap_err(),
        RateError::BadRate { vertex: 0, other: 1, .. }
    ));
    assert!(SpanningTrees::new(Kind::Undirected, 0, &[]).is_err());
    assert_eq!(
        SpanningTrees::new(Kind::Undirected, 1, &[0.0]).unwrap().draw(&mut Pcg64::seed_from_u64(0)).len(),
        1
    );
}

#[test]
fn fresh_trees_refuse_what_prepared_ones_do() {
    let mut rng = Pcg64::seed_from_u64(0);
    let mut draw = |kind, n, rates: &[f64]| FreshTrees::new(kind, n).draw(rates, &mut rng);
    assert!(matches!(draw(Kind::Undirected, 3, &[0.0; 9]), Err(RateError::NoForest { .. })));
    // Two pairs without a bridge: every vertex has somewhere to go, but there is no tree.
    let mut pairs = vec![0.0; 16];
    for (v, u) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        pairs[v * 4 + u] = 1.0;
    }
    assert!(matches!(draw(Kind::Undirected, 4, &pairs), Err(RateError::NoForest { .. })));
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let q = [0.0, 1.0, 2.0, 1.0, 0.0, bad, 2.0, bad, 0.0];
        assert!(matches!(draw(Kind::Undirected, 3, &q), Err(RateError::BadRate { .. })), "{bad}");
    }
    assert!(draw(Kind::Undirected, 0, &[]).is_err() && draw(Kind::Undirected, 2, &[0.0; 3]).is_err());
    assert_eq!(draw(Kind::Undirected, 1, &[0.0]).unwrap().len(), 1);
    assert_eq!(draw(Kind::Directed, 1, &[2.0]).unwrap().len(), 1);
}
