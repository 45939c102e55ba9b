//! The tree of the highest mutual information, and its tables.

use crate::model::PairCounts;
use crate::util::mutual_information_with;
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

/// The lines of a conditional table, `P(x_v = b | x_u = a)` for every a. To every line as many rows as the pseudocount says are
/// added that know nothing of u: where few rows have a state of u, the table is close to independence.
struct Lines<'a> {
    counts: &'a PairCounts,
    v: usize,
    u: usize,
    pseudocount: f64,
    margin: Vec<f64>,
}

impl<'a> Lines<'a> {
    fn new(counts: &'a PairCounts, v: usize, u: usize, pseudocount: f64) -> Self {
        Self { counts, v, u, pseudocount, margin: margin(counts, v, pseudocount) }
    }

    /// The line of state a.
    fn write(&self, a: usize, line: &mut [f64]) {
        let Self { counts, v, u, pseudocount, .. } = *self;
        for (b, (entry, p)) in line.iter_mut().zip(&self.margin).enumerate() {
            *entry = both(counts, v, b, u, a) + pseudocount * p;
        }
        let sum: f64 = line.iter().sum();
        match sum > 0.0 {
            true => line.iter_mut().for_each(|entry| *entry /= sum),
            // A state of the parent that no row has tells nothing.
            false => line.copy_from_slice(&self.margin),
        }
    }
}

/// `P(x_v = b | x_u = a)`, a line for every a.
pub(super) fn conditional(counts: &PairCounts, v: usize, u: usize, pseudocount: f64) -> Vec<f64> {
    let (k_u, k_v) = (counts.states()[u], counts.states()[v]);
    let lines = Lines::new(counts, v, u, pseudocount);
    let mut table = vec![0.0; k_u * k_v];
    table.par_chunks_mut(k_v).with_min_len(64).enumerate().for_each(|(a, line)| lines.write(a, line));
    table
}

/// The mutual information of two variables, from tables as a tree would have them: the mean of both directions. Line by line,
/// twice: a table of many states is never in memory.
fn information(counts: &PairCounts, v: usize, u: usize, pseudocount: f64) -> f64 {
    let one_way = |v: usize, u: usize| {
        let (lines, of_u) = (Lines::new(counts, v, u, pseudocount), margin(counts, u, pseudocount));
        let mut line = vec![0.0; counts.states()[v]];
        let mut of_v = vec![0.0; line.len()];
        for (a, p) in of_u.iter().enumerate() {
            lines.write(a, &mut line);
            line.iter().zip(&mut of_v).for_each(|(entry, sum)| *sum += entry * p);
        }
        let mut information = 0.0;
        for (a, p) in of_u.iter().enumerate() {
            lines.write(a, &mut line);
            line.iter_mut().for_each(|entry| *entry *= p);
            information = mutual_information_with(information, &line, *p, &of_v);
        }
        f64::max(information, 0.0)
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
