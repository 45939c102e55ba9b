//! Where a hidden Chow–Liu tree begins.

use super::{ModelError, OneTree, PairCounts, chow_liu, clusters};
use crate::data::Unique;
use crate::util::stream;
use rand::RngExt;

/// So much of every table is left to chance, so that learning can leave where it begins.
const CHANCE: f64 = 0.2;

impl OneTree {
    /// A hidden tree along the tree of the highest mutual information.
    ///
    /// It begins as a mixture of trees: a state of a hidden variable stands for the state of the variable that hangs at it
    /// together with a cluster of rows. Within a cluster hidden variables follow each other as the rows have it, and the
    /// cluster is kept, but for chance. Hidden variables with fewer states than the others begin as clusters alone.
    pub fn hclt(
        data: &Unique,
        states: &[usize],
        weights: &[f64],
        hidden: usize,
        pseudo_rows: f64,
        seed: u64,
    ) -> Result<Self, ModelError> {
        let n = states.len();
        let overall = PairCounts::new(states, &data.table, weights);
        let parents = chow_liu::best_tree(&overall, pseudo_rows);
        let most = states.iter().copied().max().unwrap_or(1);
        // Without room for the states of every variable, only clusters are left.
        let told = hidden >= most;
        let groups = if told { hidden / most } else { hidden }.max(1);
        let belonging = clusters(data, states, groups, seed);
        let counts: Vec<PairCounts> = (0..groups)
            .map(|g| {
                let own = belonging.iter().skip(g).step_by(groups);
                let weights: Vec<f64> = own.zip(weights).map(|(part, weight)| part * weight).collect();
                PairCounts::new(states, &data.table, &weights)
            })
            .collect();
        // What a state of the hidden variable of v stands for: a cluster, and a state of v.
        let meaning = |v: usize, a: usize| match told {
            true if a < groups * states[v] => Some((a / states[v], Some(a % states[v]))),
            false => Some((a, None)),
            true => None,
        };
        let smooth = pseudo_rows.max(1.0);
        let of_groups = |table: &dyn Fn(&PairCounts, usize) -> Vec<f64>| -> Vec<Vec<Vec<f64>>> {
            counts.iter().map(|counts| (0..n).map(|v| table(counts, v)).collect()).collect()
        };
        let margins = of_groups(&|counts, v| chow_liu::margin(counts, v, smooth));
        let conditionals = of_groups(&|counts, v| match parents[v] == v {
            true => Vec::new(),
            false => chow_liu::conditional(counts, v, parents[v], smooth),
        });
        // How probable such a state is, given what its parent stands for.
        let follows = |v: usize, parent: Option<(usize, Option<usize>)>, b: usize| {
            let Some((group, own)) = meaning(v, b) else { return 0.0 };
            match (parent, own) {
                (Some((other, _)), _) if other != group => 0.0,
                (Some((_, Some(a))), Some(b)) => conditionals[group][v][a * states[v] + b],
                (Some(_), _) => 1.0,
                (None, own) => {
                    let share = (counts[group].total() + 1.0) / (overall.total() + groups as f64);
                    share * own.map_or(1.0, |b| margins[group][v][b])
                }
            }
        };
        let mut rng = stream(seed, "hidden tree", 0);
        let mut by_chance = |count: usize| -> Vec<f64> {
            normalised((0..count).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect())
        };
        let mut lines: Vec<Vec<Vec<f64>>> = Vec::new();
        for v in 0..n {
            let line = |a: usize, chance: Vec<f64>| {
                let known: Vec<f64> = match meaning(v, a) {
                    Some((_, Some(own))) => (0..states[v]).map(|b| f64::from(u8::from(b == own))).collect(),
                    Some((group, None)) => margins[group][v].clone(),
                    None => chance,
                };
                blend(&known, &chow_liu::margin(&overall, v, smooth))
            };
            lines.push((0..hidden).map(|a| line(a, by_chance(states[v]))).collect());
        }
        for v in 0..n {
            let root = parents[v] == v;
            let line = |a: usize, chance: Vec<f64>| {
                let parent = if root { None } else { meaning(parents[v], a) };
                if !root && parent.is_none() {
                    return chance;
                }
                let known: Vec<f64> = (0..hidden).map(|b| follows(v, parent, b)).collect();
                blend(&normalised(known), &chance)
            };
            lines.push((0..hidden).map(|a| line(a, by_chance(hidden))).collect());
        }
        Self::hidden(states, hidden, &parents, |v, a| lines[v][a].clone())
    }
}

/// Mostly the one, a little of the other.
fn blend(known: &[f64], other: &[f64]) -> Vec<f64> {
    known.iter().zip(other).map(|(known, other)| (1.0 - CHANCE) * known + CHANCE * other).collect()
}

fn normalised(mut line: Vec<f64>) -> Vec<f64> {
    let sum: f64 = line.iter().sum();
    line.iter_mut().for_each(|p| *p /= sum);
    line
}
