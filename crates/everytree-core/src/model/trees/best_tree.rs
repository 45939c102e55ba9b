//! The tree of the highest mutual information, and its tables.

use crate::model::PairCounts;
use crate::util::mutual_information;
use rayon::prelude::*;
use std::cmp::Ordering;

/// The weight of rows with v in state b and u in state a.
fn both(counts: &PairCounts, v: usize, b: usize, u: usize, a: usize) -> f64 {
    match u.cmp(&v) {
        Ordering::Less => counts.pair(v, b, u, a),
        _ => counts.pair(u, a, v, b),
    }
}

/// The distribution of v, smoothed by a pseudocount.
pub(super) fn margin(counts: &PairCounts, v: usize, pseudocount: f64) -> Vec<f64> {
    let states = counts.states()[v];
    let even = pseudocount / states as f64;
    let total = counts.total() + pseudocount;
    match total > 0.0 {
        true => (0..states).map(|b| (counts.single(v, b) + even) / total).collect(),
        false => vec![1.0 / states as f64; states],
    }
}

/// `P(x_v = b | x_u = a)`, a line for every a. To every line as many rows as the pseudocount says are added that know nothing of
/// u: where few rows have a state of u, the table is close to independence.
pub(super) fn conditional(counts: &PairCounts, v: usize, u: usize, pseudocount: f64) -> Vec<f64> {
    let (k_u, k_v) = (counts.states()[u], counts.states()[v]);
    let margin = margin(counts, v, pseudocount);
    let mut table = Vec::with_capacity(k_u * k_v);
    for a in 0..k_u {
        let line: Vec<f64> = (0..k_v).map(|b| both(counts, v, b, u, a) + pseudocount * margin[b]).collect();
        let sum: f64 = line.iter().sum();
        match sum > 0.0 {
            true => table.extend(line.into_iter().map(|count| count / sum)),
            // A state of the parent that no row has tells nothing.
            false => table.extend(&margin),
        }
    }
    table
}

/// The mutual information of two variables, from tables as a tree would have them: the mean of both directions.
fn information(counts: &PairCounts, v: usize, u: usize, pseudocount: f64) -> f64 {
    let one_way = |v: usize, u: usize| {
        let (k_v, of_u) = (counts.states()[v], margin(counts, u, pseudocount));
        let mut joint = conditional(counts, v, u, pseudocount);
        let mut of_v = vec![0.0; k_v];
        for (line, p) in joint.chunks_exact_mut(k_v).zip(&of_u) {
            for (entry, sum) in line.iter_mut().zip(&mut of_v) {
                *entry *= p;
                *sum += *entry;
            }
        }
        mutual_information(&joint, &of_u, &of_v)
    };
    0.5 * (one_way(v, u) + one_way(u, v))
}

/// The parent of every variable in the spanning tree of the highest mutual information, hung up at the first variable, which
/// is its own. `O(n²)` after the informations; of equals the first counts.
pub(super) fn best_tree(counts: &PairCounts, pseudocount: f64) -> Vec<usize> {
    let n = counts.states().len();
    let informations: Vec<Vec<f64>> = (0..n)
        .into_par_iter()
        .map(|v| (0..v).map(|u| information(counts, v, u, pseudocount)).collect())
        .collect();
    let between = |u: usize, v: usize| informations[u.max(v)][u.min(v)];
    // Prim: the best edge from the tree so far to each variable outside.
    let mut parents = vec![0; n];
    let mut best: Vec<f64> = (0..n).map(|v| if v == 0 { f64::NEG_INFINITY } else { between(0, v) }).collect();
    let mut inside = vec![false; n];
    inside[0] = true;
    for _ in 1..n {
        let outside = (0..n).filter(|&v| !inside[v]);
        let Some(next) = outside.reduce(|top, v| if best[v] > best[top] { v } else { top }) else { break };
        inside[next] = true;
        for v in (0..n).filter(|&v| !inside[v]) {
            if between(next, v) > best[v] {
                best[v] = between(next, v);
                parents[v] = next;
            }
        }
    }
    parents
}
