//! Entropy, divergence and mutual information of a model: exact where everything can be enumerated, else from random rows or
//! random trees, with an error.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::exact;
use super::method::{Effort, Method};
use super::pair::Pair;
use super::proposal::Proposal;
use super::sample::Sampling;
use super::whole::{Group, Inference};
use crate::data::Table;
use crate::model::{ComponentInference, Density, ModelError};
use crate::util::choose;
use crate::util::{seed_of, stream};
use rand::RngExt;
use rayon::prelude::*;

/// Rows or trees at first.
const FIRST: usize = 1024;
/// Cells of random rows that are held at once.
const CELLS: usize = 2_000_000;
/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

impl Inference<'_> {
    /// The entropy of the model in nats. Of the effort, `trees` bounds the random rows.
    pub fn entropy(&self, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let mut value = 0.0;
        if let Some(Group { blocks, mixed }) = self.enumerable(effort) {
            exact::each(mixed, &Evidence::none(&blocks.states()), &mut |row, log| {
                if log > f64::NEG_INFINITY {
                    let share = blocks.log_share(|block| usize::from(row[block]));
                    value -= log.exp() * (log + share);
                }
            })?;
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        let nothing = Evidence::none(&self.columns);
        if self.enumerable_given(&nothing, effort.operations) {
            exact::each(self, &nothing, &mut |_, log| {
                if log > f64::NEG_INFINITY {
                    value -= log.exp() * log;
                }
            })?;
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        self.mean(effort, &|_, log_p| Ok(log_p.iter().map(|log| -log).collect()))
    }

    /// The Kullback–Leibler divergence `E[log p − log q]` over rows of this model, in nats: infinite where the other
    /// rules out what this does not. A row of this is one of the other after `translate`.
    pub fn divergence(
        &self,
        other: &Inference<'_>,
        translate: &dyn Fn(&[u16]) -> Vec<u16>,
        effort: Effort<'_>,
    ) -> Result<Estimate, InferError> {
        let differences = |rows: &[Vec<u16>], log_p: &[f64]| -> Result<Vec<f64>, ModelError> {
            let log_q = other.log_p_of(&rows.iter().map(|row| translate(row)).collect::<Vec<_>>())?;
            Ok(log_p.iter().zip(log_q).map(|(p, q)| p - q).collect())
        };
        let nothing = Evidence::none(&self.columns);
        if self.enumerable_given(&nothing, effort.operations) {
            let (mut rows, mut log_p) = (Vec::new(), Vec::new());
            exact::each(self, &nothing, &mut |row, log| {
                if log > f64::NEG_INFINITY {
                    rows.push(row.to_vec());
                    log_p.push(log);
                }
            })?;
            let values = differences(&rows, &log_p)?;
            let value = values.iter().zip(&log_p).map(|(value, log)| value * log.exp()).sum();
            return Ok(Estimate { value, standard_error: 0.0 });
        }
        self.mean(effort, &differences)
    }

    /// The one group of components, where there is one and all of its rows can be looked at.
    fn enumerable(&self, effort: Effort<'_>) -> Option<&Group<'_>> {
        self.single().filter(|group| {
            let nothing = Evidence::none(&group.blocks.states());
            let operations = effort.operations / group.mixed.parts.len() as f64;
            Method::affordable(&nothing, operations) == Method::Exact
        })
    }

    fn log_p_of(&self, rows: &[Vec<u16>]) -> Result<Vec<f64>, ModelError> {
        let mut table = Table::new(&self.columns);
        rows.iter().for_each(|row| table.push(row));
        self.log_p(&table)
    }

    /// The mean of a function over random rows of the model.
    fn mean(&self, effort: Effort<'_>, of: &OfRows<'_>) -> Result<Estimate, InferError> {
        let nothing = Evidence::none(&self.columns);
        let mut values: Vec<f64> = Vec::new();
        let mut round = 0;
        loop {
            let more = if values.is_empty() { FIRST } else { values.len() };
            // Rows are held until they are scored.
            let more = more.min((CELLS / self.columns.len()).max(FIRST));
            let more = more.min(effort.trees.saturating_sub(values.len())).max(1);
            let sampling = Sampling { seed: seed_of(effort.seed, round), operations: effort.operations };
            let (rows, _) = self.sample(&nothing, more, sampling)?;
            values.extend(of(&rows, &self.log_p_of(&rows)?)?);
            let estimate = mean_of(&values);
            let enough = effort.tolerance.is_some_and(|tolerance| estimate.standard_error <= tolerance);
            if enough || values.len() >= effort.trees || !estimate.value.is_finite() {
                return Ok(estimate);
            }
            round += 1;
        }
    }
}

/// What a function makes of rows and their log-probabilities.
type OfRows<'a> = dyn Fn(&[Vec<u16>], &[f64]) -> Result<Vec<f64>, ModelError> + 'a;

/// The mean of independent values.
fn mean_of(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    if !value.is_finite() {
        return Estimate { value, standard_error: 0.0 };
    }
    let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
    Estimate { value, standard_error: (squares / (count - 1.0).max(1.0) / count).sqrt() }
}

impl Inference<'_> {
    /// The mutual information of two columns under the model, in nats.
    ///
    /// # Panics
    /// When there are no such columns.
    pub fn mutual_information(&self, u: usize, v: usize, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let k_v = self.columns[v];
        // Never below zero, whatever rounding says.
        let of_joint =
            |joint: &[f64]| Estimate { value: dot(joint, &ratios(joint, k_v)).max(0.0), standard_error: 0.0 };
        if let Some(Group { blocks, mixed }) = self.enumerable(effort) {
            let pair = Pair::new(blocks, u, v);
            let mut joint = vec![0.0; pair.size()];
            exact::each(mixed, &Evidence::none(&blocks.states()), &mut |row, log| {
                joint[pair.place(row)] += log.exp();
            })?;
            let mut of_columns = vec![0.0; self.columns[u] * k_v];
            pair.add_columns(&joint, 1.0, &mut of_columns);
            return Ok(of_joint(&of_columns));
        }
        // What single trees say is exact; of all trees, random ones tell.
        let mut exactly = vec![0.0; self.columns[u] * k_v];
        let mut sources = Vec::new();
        for (group, part, weight) in self.parts() {
            let pair = Pair::new(&group.blocks, u, v);
            match part {
                ComponentInference::OneTree(tree) => {
                    let joint = pair.joint_of_tree(&**tree, tree.tree());
                    pair.add_columns(&joint, weight.exp(), &mut exactly);
                }
                ComponentInference::Stored(kernel) => {
                    pair.add_columns(&pair.joint_of_kernel(kernel), weight.exp(), &mut exactly);
                }
                ComponentInference::AllTrees(density) => {
                    let density = &**density;
                    let (weight, proposal) = (weight.exp(), Proposal::prior(density)?);
                    sources.push(Source { weight, density, proposal, pair });
                }
            }
        }
        if sources.is_empty() {
            return Ok(of_joint(&exactly));
        }
        let joints = Joints { exactly, sources, seed: effort.seed };
        let mut trees = FIRST.min(effort.trees.max(1));
        loop {
            let mean = joints.mean_of(trees, &|joint| joint.to_vec());
            // How much one tree more changes the figure: its derivative, and the tree's part in it.
            let slopes = ratios(&mean, k_v);
            let value = dot(&mean, &slopes);
            let moments = joints.mean_of(trees, &|joint| {
                let part = dot(joint, &slopes);
                vec![part, part * part]
            });
            let variance = (moments[1] - moments[0] * moments[0]).max(0.0);
            let standard_error = (variance / (trees as f64 - 1.0).max(1.0)).sqrt();
            let enough = effort.tolerance.is_some_and(|tolerance| standard_error <= tolerance);
            if enough || trees >= effort.trees {
                return Ok(Estimate { value, standard_error });
            }
            trees = (2 * trees).min(effort.trees);
        }
    }
}

/// `log P(a, b) / (P(a) P(b))`, 0 where there is nothing.
fn ratios(joint: &[f64], k_v: usize) -> Vec<f64> {
    let rows: Vec<f64> = joint.chunks_exact(k_v).map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> = (0..k_v).map(|b| joint.iter().skip(b).step_by(k_v).sum()).collect();
    let ratio = |(place, &p): (usize, &f64)| {
        if p > 0.0 { (p / (rows[place / k_v] * columns[place % k_v])).ln() } else { 0.0 }
    };
    joint.iter().enumerate().map(ratio).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The joint distributions of two columns under random trees.
struct Joints<'a> {
    /// What is known without them, times its weight.
    exactly: Vec<f64>,
    /// Components of all trees.
    sources: Vec<Source<'a>>,
    seed: u64,
}

/// A component of all trees.
struct Source<'a> {
    weight: f64,
    density: &'a dyn Density,
    /// Its prior over trees.
    proposal: Proposal,
    pair: Pair,
}

impl Joints<'_> {
    /// The mean over the first `trees` trees of a function of the joint distribution: the same trees every time.
    fn mean_of(&self, trees: usize, of: &(dyn Fn(&[f64]) -> Vec<f64> + Sync)) -> Vec<f64> {
        let shares: Vec<f64> = self.sources.iter().map(|source| source.weight).collect();
        let all: f64 = shares.iter().sum();
        let chunk_of = |chunk: usize| {
            let mut rng = stream(self.seed, "trees of pairs", chunk as u64);
            let mut sum: Vec<f64> = Vec::new();
            for _ in chunk * CHUNK..trees.min((chunk + 1) * CHUNK) {
                let number = if shares.len() > 1 { choose(&shares, rng.random()) } else { 0 };
                let Source { density, proposal, pair, .. } = &self.sources[number];
                let (tree, _) = proposal.draw(&mut rng);
                let mut joint = self.exactly.clone();
                pair.add_columns(&pair.joint_of_tree(density.tables(), &tree), all, &mut joint);
                let values = of(&joint);
                sum.resize(values.len(), 0.0);
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            sum
        };
        // As many at once as there are threads: tables of columns of many states are large.
        let (chunks, at_once) = (trees.div_ceil(CHUNK), rayon::current_num_threads());
        let mut mean: Vec<f64> = Vec::new();
        for first in (0..chunks).step_by(at_once) {
            let parts: Vec<Vec<f64>> =
                (first..chunks.min(first + at_once)).into_par_iter().map(chunk_of).collect();
            for part in parts {
                mean.resize(part.len(), 0.0);
                mean.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum / trees as f64);
            }
        }
        mean
    }
}
