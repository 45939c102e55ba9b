//! How much each bandwidth counts: by what the other rows say about a row that is left out.

use super::Kernel;
use crate::util::{Stop, shuffle, softmax, stream};

/// Bandwidths that are tried.
pub(super) const ALL: [f64; 7] = [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.4];
/// Distinct rows that are left out at most, one after the other.
const LEFT_OUT: usize = 2000;
/// How many of them at once: between portions it can be time to end.
const PORTION: usize = 128;
/// Rounds of expectation–maximisation.
const ROUNDS: usize = 500;
/// Bandwidths that count less than this are not used.
const LEAST: f64 = 0.005;

impl Kernel {
    /// Finds the weights, from rows that are there so many times.
    pub(super) fn weigh_bandwidths(&mut self, counts: &[f64], seed: u64, stop: Stop<'_>) {
        let total: f64 = counts.iter().sum();
        let mut places: Vec<u32> = (0..self.rows.count() as u32).collect();
        shuffle(&mut places, &mut stream(seed, "rows of a kernel", 0));
        places.truncate(LEFT_OUT);
        if total <= 1.0 || stop() {
            return;
        }
        let all = self.bandwidths.len();
        let table = self.rows.table();
        let codes = table.codes();
        // Of a row that is there several times, one is left out.
        let without = |row: usize| {
            let place = places[row] as usize;
            let left = counts[place] - counts[place].min(1.0);
            Some((place, (left / total).ln()))
        };
        let mut found = vec![Vec::new(); places.len()];
        let mut done = 0;
        for portion in found.chunks_mut(PORTION) {
            // Of fewer rows, the weights are rougher; that is all.
            if stop() && done > 0 {
                break;
            }
            let first = done;
            self.rows.log_sums(
                portion.len(),
                all,
                |row, b, logs| {
                    self.log_factors(self.bandwidths[b], &codes, places[first + row] as usize, logs);
                },
                |row| without(first + row),
                |_, logs, out: &mut Vec<f64>| *out = logs.to_vec(),
                portion,
            );
            done += portion.len();
        }
        found.truncate(done);
        let mut log_weights = self.log_weights.clone();
        for _ in 0..ROUNDS {
            let mut sums = vec![0.0; all];
            for (logs, &place) in found.iter().zip(&places) {
                if logs.iter().all(|log| *log == f64::NEG_INFINITY) {
                    continue;
                }
                let own: Vec<f64> = logs.iter().zip(&log_weights).map(|(log, weight)| log + weight).collect();
                let count = counts[place as usize];
                sums.iter_mut().zip(softmax(&own)).for_each(|(sum, share)| *sum += count * share);
            }
            let sum: f64 = sums.iter().sum();
            if sum <= 0.0 {
                return;
            }
            log_weights = sums.iter().map(|share| (share / sum).ln()).collect();
        }
        let most = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let used = |b: &usize| log_weights[*b] >= LEAST.ln().min(most);
        let used: Vec<usize> = (0..all).filter(used).collect();
        let kept: Vec<f64> = used.iter().map(|&b| log_weights[b]).collect();
        self.bandwidths = used.iter().map(|&b| self.bandwidths[b]).collect();
        self.log_weights = softmax(&kept).into_iter().map(f64::ln).collect();
    }
}
