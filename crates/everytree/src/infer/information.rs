//! Entropy, divergence and mutual information of a model: exact where everything can be enumerated, else from random rows or
//! random trees, with an error.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::exact;
use super::messages::Messages;
use super::proposal::Proposal;
use super::query::{Effort, Method};
use super::sample::{Sampling, sample};
use crate::model::{Density, ModelError};
use crate::stream::{seed_of, stream};
use crate::table::Table;
use rayon::prelude::*;

/// Rows or trees at first.
const FIRST: usize = 1024;
/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

/// The entropy of a model in nats. Of the effort, `trees` bounds the random rows.
pub fn entropy<D: Density + ?Sized>(density: &D, effort: Effort<'_>) -> Result<Estimate, InferError> {
    mean(density, effort, &|_, log_p| Ok(log_p.iter().map(|log| -log).collect()))
}

/// The Kullback–Leibler divergence `E[log p − log q]` over rows of p, in nats: infinite where q rules out what p does not. A
/// row of p is one of q after `translate`.
pub fn divergence<P: Density + ?Sized, Q: Density + ?Sized>(
    p: &P,
    q: &Q,
    translate: &dyn Fn(&[u16]) -> Vec<u16>,
    effort: Effort<'_>,
) -> Result<Estimate, InferError> {
    mean(p, effort, &|rows, log_p| {
        let log_q = log_p_of(q, &rows.iter().map(|row| translate(row)).collect::<Vec<_>>())?;
        Ok(log_p.iter().zip(log_q).map(|(p, q)| p - q).collect())
    })
}

fn log_p_of<D: Density + ?Sized>(density: &D, rows: &[Vec<u16>]) -> Result<Vec<f64>, ModelError> {
    let mut table = Table::new(density.states());
    rows.iter().for_each(|row| table.push(row));
    let mut log_p = vec![0.0; rows.len()];
    density.log_p(table.codes(), &mut log_p)?;
    Ok(log_p)
}

/// What a function makes of rows and their log-probabilities.
type OfRows<'a> = dyn Fn(&[Vec<u16>], &[f64]) -> Result<Vec<f64>, ModelError> + 'a;

/// The mean of a function over the rows of a model.
fn mean<D: Density + ?Sized>(
    density: &D,
    effort: Effort<'_>,
    of: &OfRows<'_>,
) -> Result<Estimate, InferError> {
    let nothing = Evidence::none(density.states());
    if Method::within(density, &nothing, effort.operations) == Method::Exact {
        let (mut rows, mut log_p) = (Vec::new(), Vec::new());
        exact::each(density, &nothing, &mut |row, log| {
            if log > f64::NEG_INFINITY {
                rows.push(row.to_vec());
                log_p.push(log);
            }
        })?;
        let values = of(&rows, &log_p)?;
        let value = values.iter().zip(&log_p).map(|(value, log)| value * log.exp()).sum();
        return Ok(Estimate { value, standard_error: 0.0 });
    }
    let mut values: Vec<f64> = Vec::new();
    let mut round = 0;
    loop {
        let more = if values.is_empty() { FIRST } else { values.len() };
        let more = more.min(effort.trees.saturating_sub(values.len())).max(1);
        let sampling = Sampling { seed: seed_of(effort.seed, round), operations: effort.operations };
        let (rows, _) = sample(density, &nothing, more, sampling)?;
        values.extend(of(&rows, &log_p_of(density, &rows)?)?);
        let estimate = mean_of(&values);
        let enough = effort.tolerance.is_some_and(|tolerance| estimate.standard_error <= tolerance);
        if enough || values.len() >= effort.trees || !estimate.value.is_finite() {
            return Ok(estimate);
        }
        round += 1;
    }
}

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

/// The mutual information of two variables under the model, in nats.
///
/// # Panics
/// When there are no such variables.
pub fn mutual_information<D: Density + ?Sized>(
    density: &D,
    u: usize,
    v: usize,
    effort: Effort<'_>,
) -> Result<Estimate, InferError> {
    let nothing = Evidence::none(density.states());
    let (k_u, k_v) = (density.states()[u], density.states()[v]);
    if Method::within(density, &nothing, effort.operations) == Method::Exact {
        let mut joint = vec![0.0; k_u * k_v];
        exact::each(density, &nothing, &mut |row, log| {
            joint[usize::from(row[u]) * k_v + usize::from(row[v])] += log.exp();
        })?;
        return Ok(Estimate { value: dot(&joint, &ratios(&joint, k_v)), standard_error: 0.0 });
    }
    let proposal = Proposal::prior(density)?;
    let mut trees = FIRST.min(effort.trees.max(1));
    loop {
        let joints = Joints { density, proposal: &proposal, u, v, seed: effort.seed };
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

/// The joint distributions of two variables under random trees.
struct Joints<'a, D: ?Sized> {
    density: &'a D,
    proposal: &'a Proposal,
    u: usize,
    v: usize,
    seed: u64,
}

impl<D: Density + ?Sized> Joints<'_, D> {
    /// The mean over the first `trees` trees of a function of the joint distribution: the same trees every time.
    fn mean_of(&self, trees: usize, of: &(dyn Fn(&[f64]) -> Vec<f64> + Sync)) -> Vec<f64> {
        let Self { density, proposal, u, v, seed } = *self;
        let (states, tables) = (density.states(), density.tables());
        let own = tables.offsets()[v]..tables.offsets()[v + 1];
        let given: Vec<Evidence> = (0..states[u])
            .map(|a| {
                let mut likelihood = vec![0.0; states[u]];
                likelihood[a] = 1.0;
                let mut evidence = Evidence::none(states);
                let set = evidence.soft(u, &likelihood);
                debug_assert!(set.is_ok());
                evidence
            })
            .collect();
        let parts: Vec<Vec<f64>> = (0..trees.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut rng = stream(seed, "trees of pairs", chunk as u64);
                let mut messages = Messages::new(tables);
                let mut sum: Vec<f64> = Vec::new();
                let mut joint = vec![0.0; states[u] * states[v]];
                for _ in chunk * CHUNK..trees.min((chunk + 1) * CHUNK) {
                    let (tree, _) = proposal.draw(&mut rng);
                    for (evidence, row) in given.iter().zip(joint.chunks_exact_mut(states[v])) {
                        let p = messages.collect(&tree, evidence).exp();
                        let posterior = &messages.distribute(&tree)[own.clone()];
                        row.iter_mut().zip(posterior).for_each(|(entry, q)| *entry = p * q);
                    }
                    let values = of(&joint);
                    sum.resize(values.len(), 0.0);
                    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                }
                sum
            })
            .collect();
        let mut mean = vec![0.0; parts[0].len()];
        for part in parts {
            mean.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum / trees as f64);
        }
        mean
    }
}
