//! How often every pair of states occurs together: all that an initialisation needs of the data.

use super::ParamsView;
use crate::data::Codes;
use crate::data::Table;
use crate::util::{Stop, offsets};
use rayon::prelude::*;

/// Pairs of cells that are counted before someone may ask for an end.
const PAIRS_AT_ONCE: usize = 1 << 27;

/// Weighted counts of every state and every pair of states of two variables.
///
/// Memory: `8 S²` bytes for S states in all, and `O(rows · n²)` time, on all cores.
#[derive(Clone, Debug)]
pub struct PairCounts {
    states: Vec<usize>,
    offsets: Vec<usize>,
    /// Entry `(v:a, u:b)`, u < v, and `(v:a, v:a)` for single states.
    sums: Vec<f64>,
    total: f64,
}

impl PairCounts {
    /// Counts the rows of a table, each with its weight.
    ///
    /// # Panics
    /// When there is not one weight per row, or a code is not a state.
    pub fn new(states: &[usize], table: &Table, weights: &[f64]) -> Self {
        Self::until(states, table, weights, &|| false)
    }

    /// The same, of fewer rows (the first ones, some at least) where `stop` asks for an end.
    ///
    /// # Panics
    /// When there is not one weight per row, or a code is not a state.
    pub fn until(states: &[usize], table: &Table, weights: &[f64], stop: Stop<'_>) -> Self {
        assert_eq!(weights.len(), table.rows(), "one weight per row");
        let mut counts = Self::none(states);
        let some = (PAIRS_AT_ONCE / states.len().pow(2).max(1)).max(1);
        for start in (0..table.rows()).step_by(some) {
            if start > 0 && stop() {
                break;
            }
            let rows = start..(start + some).min(table.rows());
            counts.add(table.some(rows.clone()), &weights[rows]);
        }
        counts
    }

    /// Nothing counted yet.
    pub fn none(states: &[usize]) -> Self {
        let offsets = offsets(states);
        let size = offsets[states.len()];
        Self { states: states.to_vec(), offsets, sums: vec![0.0; size * size], total: 0.0 }
    }

    /// Counts more rows, each with its weight.
    ///
    /// # Panics
    /// When there is not one weight per row, or a code is not a state.
    pub fn add(&mut self, codes: Codes<'_>, weights: &[f64]) {
        assert_eq!(weights.len(), codes.rows(), "one weight per row");
        let size = self.offsets[self.states.len()];
        let mut lines = Vec::new();
        let mut rest = &mut self.sums[..];
        for &count in &self.states {
            let (line, tail) = rest.split_at_mut(count * size);
            lines.push(line);
            rest = tail;
        }
        let offsets = &self.offsets;
        lines.into_par_iter().enumerate().for_each(|(v, line)| {
            for (row, &weight) in weights.iter().enumerate() {
                let line = &mut line[codes.get(row, v) * size..][..size];
                for u in 0..=v {
                    line[offsets[u] + codes.get(row, u)] += weight;
                }
            }
        });
        // One after the other, so that it does not matter how rows are cut into pieces.
        weights.iter().for_each(|weight| self.total += weight);
    }

    /// The number of states of every variable.
    pub fn states(&self) -> &[usize] {
        &self.states
    }

    /// The weight of all rows together.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weight of rows with variable v in state a.
    pub fn single(&self, v: usize, a: usize) -> f64 {
        self.pair(v, a, v, a)
    }

    /// The weight of rows with variable v in state a and variable u in state b, `u <= v`.
    pub fn pair(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        let size = self.offsets[self.states.len()];
        self.sums[(self.offsets[v] + a) * size + self.offsets[u] + b]
    }
}

impl ParamsView for PairCounts {
    fn slices(&self) -> Vec<&[f64]> {
        vec![&self.sums, std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![&mut self.sums, std::slice::from_mut(&mut self.total)]
    }
}
