//! Where a hidden Chow–Liu tree begins.

use super::{ModelError, OneTree, PairCounts, chow_liu, clusters};
use crate::stream::stream;
use crate::table::Unique;
use rand::RngExt;

/// So much of the way from a hidden variable to the next is left to chance; the rest keeps the state.
const CHANCE: f64 = 0.5;
/// Rows of the overall margin in every table of an observed variable.
const IN_COMMON: f64 = 1.0;

impl OneTree {
    /// A hidden tree along the tree of the highest mutual information. Every hidden variable has a state for every
    /// cluster of rows, as if one cluster had made the whole row; from one hidden variable to the next the state may
    /// change, differently for each by chance.
    pub fn hclt(
        data: &Unique,
        states: &[usize],
        weights: &[f64],
        hidden: usize,
        pseudo_rows: f64,
        seed: u64,
    ) -> Result<Self, ModelError> {
        let n = states.len();
        let counts = PairCounts::new(states, &data.table, weights);
        let parents = chow_liu::best_tree(&counts, pseudo_rows);
        let belonging = clusters(data, states, hidden.max(1), seed);
        let mut shares = vec![0.0; hidden];
        let mut tables: Vec<Vec<Vec<f64>>> = Vec::new();
        for v in 0..n {
            let margin = chow_liu::margin(&counts, v, pseudo_rows.max(1.0));
            let overall: Vec<f64> = margin.iter().map(|p| IN_COMMON * p).collect();
            tables.push(vec![overall; hidden]);
        }
        for (row, weight) in weights.iter().enumerate() {
            for (h, share) in shares.iter_mut().enumerate() {
                let part = weight * belonging[row * hidden + h];
                *share += part;
                (0..n).for_each(|v| tables[v][h][data.table.get(row, v)] += part);
            }
        }
        let mut rng = stream(seed, "hidden tree", 0);
        let chance: Vec<f64> = (0..n * hidden * hidden).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
        let normalised = |mut line: Vec<f64>| {
            let sum: f64 = line.iter().sum();
            line.iter_mut().for_each(|p| *p /= sum);
            line
        };
        Self::hidden(states, hidden, &parents, |v, a| match v.checked_sub(n) {
            None => normalised(tables[v][a].clone()),
            Some(h) if parents[h] == h => normalised(shares.iter().map(|share| share + 1.0).collect()),
            Some(h) => {
                let moved = normalised(chance[(h * hidden + a) * hidden..][..hidden].to_vec());
                let kept = |b: usize| if a == b { 1.0 - CHANCE } else { 0.0 };
                moved.iter().enumerate().map(|(b, p)| CHANCE * p + kept(b)).collect()
            }
        })
    }
}
