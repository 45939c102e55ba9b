//! Rows that resemble each other: a mixture of independent columns, where the components of larger mixtures start.

use crate::data::Unique;
use crate::util::offsets;
use crate::util::{Stop, choose, softmax, stream};
use rand::RngExt;
use rayon::prelude::*;

/// Times through the data.
const ROUNDS: usize = 30;
/// Cells that are looked at before someone may ask for an end.
const CELLS_AT_ONCE: usize = 1 << 26;
/// Counts are added up in so many portions at most, of so many rows at least.
const PORTIONS: usize = 8;
const LEAST_ROWS: usize = 512;
/// Counts of all portions together, unless those of one are more.
const COUNTS_AT_ONCE: usize = 1 << 21;
/// Rows of the overall margins that every cluster is smoothed with.
const SMOOTHING: f64 = 2.0;

/// How much every row belongs to each of `clusters` clusters: line by line for the distinct rows, adding up to 1 each.
///
/// Expectation–maximisation of a mixture in which columns are independent within a cluster, from rows drawn by seed.
///
/// Where `stop` asks for an end, rows that have not been looked at belong to all clusters alike.
pub fn clusters(data: &Unique, states: &[usize], clusters: usize, seed: u64, stop: Stop<'_>) -> Vec<f64> {
    let rows = data.table.rows();
    if clusters == 1 {
        return vec![1.0; rows];
    }
    let offsets = offsets(states);
    let size = offsets[states.len()];
    let codes = data.table.codes();
    let total: f64 = data.weights.iter().sum();
    let mut overall = vec![0.0; size];
    for (row, weight) in data.weights.iter().enumerate() {
        (0..states.len()).for_each(|v| overall[offsets[v] + codes.get(row, v)] += weight);
    }
    for v in 0..states.len() {
        let even = 1.0 / states[v] as f64;
        overall[offsets[v]..offsets[v + 1]].iter_mut().for_each(|p| *p = (*p + even) / (total + 1.0));
    }
    // Of every state of every column the clusters side by side, so that a cell is looked up for all of them at once.
    let mut log_p = vec![0.0; size * clusters];
    for (k, row) in first_rows(data, states.len(), clusters, seed, stop).into_iter().enumerate() {
        let mut p: Vec<f64> = overall.iter().map(|p| 0.5 * p).collect();
        (0..states.len()).for_each(|v| p[offsets[v] + codes.get(row, v)] += 0.5);
        p.into_iter().enumerate().for_each(|(state, p)| log_p[state * clusters + k] = p.ln());
    }
    let mut log_share = vec![-(clusters as f64).ln(); clusters];
    let mut responsibilities = vec![1.0 / clusters as f64; rows * clusters];
    let some = (CELLS_AT_ONCE / (states.len() * clusters)).max(1);
    // The same portions on any number of threads.
    let portions = (COUNTS_AT_ONCE / (size * clusters)).clamp(1, PORTIONS);
    let portion = rows.div_ceil(portions).max(LEAST_ROWS);
    let state = |row: usize, v: usize| (offsets[v] + codes.get(row, v)) * clusters;
    for _ in 0..ROUNDS {
        for (piece, lines) in responsibilities.chunks_mut(some * clusters).enumerate() {
            if stop() {
                return responsibilities;
            }
            lines.par_chunks_mut(clusters).enumerate().for_each(|(row, line)| {
                let row = piece * some + row;
                line.copy_from_slice(&log_share);
                for v in 0..states.len() {
                    let cell = &log_p[state(row, v)..][..clusters];
                    line.iter_mut().zip(cell).for_each(|(log, p)| *log += p);
                }
                let responsibilities = softmax(line);
                line.copy_from_slice(&responsibilities);
            });
        }
        let parts: Vec<(Vec<f64>, Vec<f64>)> = responsibilities
            .par_chunks(portion * clusters)
            .enumerate()
            .map(|(number, lines)| {
                let (mut counts, mut weights) = (vec![0.0; size * clusters], vec![0.0; clusters]);
                let mut own = vec![0.0; clusters];
                for (row, line) in (number * portion..).zip(lines.chunks_exact(clusters)) {
                    own.iter_mut().zip(line).for_each(|(own, part)| *own = part * data.weights[row]);
                    weights.iter_mut().zip(&own).for_each(|(weight, part)| *weight += part);
                    for v in 0..states.len() {
                        let cell = &mut counts[state(row, v)..][..clusters];
                        cell.iter_mut().zip(&own).for_each(|(count, part)| *count += part);
                    }
                }
                (counts, weights)
            })
            .collect();
        let mut parts = parts.into_iter();
        let Some((mut counts, mut weights)) = parts.next() else { return responsibilities };
        for (more, of_more) in parts {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
            weights.iter_mut().zip(of_more).for_each(|(weight, more)| *weight += more);
        }
        let lines = log_p.par_chunks_mut(clusters).zip(counts.par_chunks(clusters)).zip(&overall);
        lines.for_each(|((log_p, counts), overall)| {
            for ((log, count), weight) in log_p.iter_mut().zip(counts).zip(&weights) {
                *log = ((count + SMOOTHING * overall) / (weight + SMOOTHING)).ln();
            }
        });
        for (share, weight) in log_share.iter_mut().zip(&weights) {
            *share = ((weight + 1.0) / (total + clusters as f64)).ln();
        }
    }
    responsibilities
}

/// Rows to begin with: the first at random, every other the more probable the more cells it has unlike the nearest before.
fn first_rows(data: &Unique, variables: usize, clusters: usize, seed: u64, stop: Stop<'_>) -> Vec<usize> {
    let mut rng = stream(seed, "clusters", clusters as u64);
    let codes = data.table.codes();
    let mut chosen = vec![data.of_row[rng.random_range(0..data.of_row.len())] as usize];
    let mut nearest = vec![f64::INFINITY; data.table.rows()];
    while chosen.len() < clusters {
        let last = chosen[chosen.len() - 1];
        if stop() {
            chosen.push(last);
            continue;
        }
        nearest.par_iter_mut().enumerate().for_each(|(row, nearest)| {
            let unlike = (0..variables).filter(|&v| codes.get(row, v) != codes.get(last, v)).count();
            *nearest = nearest.min(unlike as f64);
        });
        let weights: Vec<f64> = nearest.iter().zip(&data.weights).map(|(far, weight)| far * weight).collect();
        // Where all rows are alike, any will do.
        let alike = weights.iter().all(|weight| *weight == 0.0);
        chosen.push(if alike { last } else { choose(&weights, rng.random()) });
    }
    chosen
}
