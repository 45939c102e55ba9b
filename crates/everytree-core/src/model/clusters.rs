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
    let mut log_p: Vec<Vec<f64>> = first_rows(data, states.len(), clusters, seed, stop)
        .into_iter()
        .map(|row| {
            let mut p: Vec<f64> = overall.iter().map(|p| 0.5 * p).collect();
            (0..states.len()).for_each(|v| p[offsets[v] + codes.get(row, v)] += 0.5);
            p.into_iter().map(f64::ln).collect()
        })
        .collect();
    let mut log_share = vec![-(clusters as f64).ln(); clusters];
    let mut responsibilities = vec![1.0 / clusters as f64; rows * clusters];
    let some = (CELLS_AT_ONCE / (states.len() * clusters)).max(1);
    for _ in 0..ROUNDS {
        for (piece, lines) in responsibilities.chunks_mut(some * clusters).enumerate() {
            if stop() {
                return responsibilities;
            }
            lines.par_chunks_mut(clusters).enumerate().for_each(|(row, line)| {
                let row = piece * some + row;
                for (k, log) in line.iter_mut().enumerate() {
                    let cells = (0..states.len()).map(|v| log_p[k][offsets[v] + codes.get(row, v)]);
                    *log = log_share[k] + cells.sum::<f64>();
                }
                let responsibilities = softmax(line);
                line.copy_from_slice(&responsibilities);
            });
        }
        let made: Vec<(f64, Vec<f64>)> = (0..clusters)
            .into_par_iter()
            .map(|k| {
                let mut counts = vec![0.0; size];
                let mut weight = 0.0;
                for row in 0..rows {
                    let part = responsibilities[row * clusters + k] * data.weights[row];
                    weight += part;
                    (0..states.len()).for_each(|v| counts[offsets[v] + codes.get(row, v)] += part);
                }
                let smooth = |(count, overall): (&f64, &f64)| {
                    ((count + SMOOTHING * overall) / (weight + SMOOTHING)).ln()
                };
                (weight, counts.iter().zip(&overall).map(smooth).collect())
            })
            .collect();
        for (k, (weight, cluster)) in made.into_iter().enumerate() {
            log_share[k] = ((weight + 1.0) / (total + clusters as f64)).ln();
            log_p[k] = cluster;
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
