//! Rows at random, given the evidence; never by rejection.

use super::block_gibbs::{self, Start};
use super::evidence::Evidence;
use super::importance::draw;
use super::measure::Measure;
use super::messages::Messages;
use super::method::{A_SECOND, Method};
use super::proposal::Proposal;
use super::{InferError, exact};
use crate::model::Density;
use crate::util::stream;
use rand::RngExt;
use rayon::prelude::*;

/// Rows of one stream of random numbers.
const CHUNK: usize = 64;
/// Trees looked at to find out how large a pool must be.
const PILOT: usize = 512;
/// Independent draws that a pool should be worth.
const WORTH: f64 = 64.0;
/// Pools larger than this take longer than chains.
const LARGEST_POOL: usize = 512;

/// How rows were drawn.
///
/// ```
/// use everytree_core::infer::Drawn;
///
/// let how = Drawn::FromPools { pool: 64, effective: 12.5 };
/// assert_ne!(how, Drawn::Exactly);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drawn {
    /// Exactly from the distribution, independently.
    Exactly,
    /// Each at the end of a chain of its own (a tree given the row, a row given the tree, and so on), because hardly any random
    /// tree explains the evidence.
    FromChains {
        /// Steps of each chain.
        steps: usize,
        /// How well chains of that length agree: 1 where all of them tell the same.
        r_hat: f64,
    },
    /// Independently, each from a fresh pool of weighted trees: the larger the effective size of a pool, the nearer to the
    /// distribution.
    FromPools {
        /// Trees of a pool.
        pool: usize,
        /// How many draws of equal weight a pool is worth.
        effective: f64,
    },
}

impl Drawn {
    /// The one that is further from exact draws.
    pub fn worse(self, other: Self) -> Self {
        use Drawn::{Exactly, FromChains, FromPools};
        match (self, other) {
            (Exactly, how) | (how, Exactly) => how,
            (FromChains { steps, r_hat }, FromChains { steps: others, r_hat: other }) => {
                FromChains { steps: steps.max(others), r_hat: r_hat.max(other) }
            }
            (chains @ FromChains { .. }, _) | (_, chains @ FromChains { .. }) => chains,
            (FromPools { pool, effective }, FromPools { pool: others, effective: other }) => {
                FromPools { pool: pool.max(others), effective: effective.min(other) }
            }
        }
    }
}

/// How rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Of everything random.
    pub seed: u64,
    /// Rows are drawn from a list of all where making it takes no more operations than this.
    pub operations: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { seed: 0, operations: A_SECOND }
    }
}

/// Draws `count` rows given the evidence. Without evidence, and where enumeration is cheap, exactly.
pub fn sample<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    count: usize,
    sampling: Sampling,
) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
    let Sampling { seed, operations } = sampling;
    let n = density.states().len();
    if evidence.variables() != n {
        return Err(InferError::Variables { found: evidence.variables(), expected: n });
    }
    if !(0..n).any(|v| evidence.is_given(v)) {
        return Ok((
            from_pools(density, evidence, &Proposal::prior(density)?, 1, count, seed),
            Drawn::Exactly,
        ));
    }
    if Method::within(density, evidence, operations) == Method::Exact {
        return Ok((enumerated(density, evidence, count, seed)?, Drawn::Exactly));
    }
    let proposal = Proposal::tilted(density, evidence)?;
    let look =
        draw(density, evidence, &proposal, Measure::Nothing.into(), (seed, "trees before samples"), 0..PILOT);
    if look.effective() == 0.0 {
        return Err(InferError::Unexplained { trees: PILOT });
    }
    let share = look.effective() / PILOT as f64;
    let pool = (WORTH / share).ceil() as usize;
    if pool > LARGEST_POOL {
        return from_chains(density, evidence, count, seed);
    }
    let rows = from_pools(density, evidence, &proposal, pool, count, seed);
    Ok((rows, Drawn::FromPools { pool, effective: share * pool as f64 }))
}

/// Every row from a pool of trees of its own: one tree by weight, then a row given tree and evidence.
fn from_pools<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    pool: usize,
    count: usize,
    seed: u64,
) -> Vec<Vec<u16>> {
    let chunks: Vec<Vec<Vec<u16>>> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, "samples", chunk as u64);
            let mut messages = Messages::new(density.tables());
            (chunk * CHUNK..count.min((chunk + 1) * CHUNK))
                .map(|_| {
                    loop {
                        // Weighted choice while drawing: the k-th replaces the choice with its share of the sum so far.
                        let (mut chosen, mut sum, mut scale) = (None, 0.0f64, f64::NEG_INFINITY);
                        for _ in 0..pool {
                            let (tree, correction) = proposal.draw(&mut rng);
                            let log_weight = messages.collect(&tree, evidence) + correction;
                            if log_weight == f64::NEG_INFINITY {
                                continue;
                            }
                            if log_weight > scale {
                                sum *= (scale - log_weight).exp();
                                scale = log_weight;
                            }
                            let weight = (log_weight - scale).exp();
                            sum += weight;
                            if rng.random::<f64>() * sum < weight {
                                chosen = messages.draw(&tree, &mut rng);
                            }
                        }
                        // A pool in which no tree allows the evidence is drawn anew; others were seen to allow it.
                        if let Some(row) = chosen {
                            break row;
                        }
                    }
                })
                .collect()
        })
        .collect();
    chunks.into_iter().flatten().collect()
}

/// Every row from a chain of its own, ten times as long as steps stay alike.
fn from_chains<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    count: usize,
    seed: u64,
) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
    /// Steps of the chains that are looked at.
    const PILOT: usize = 320;
    let look = block_gibbs::run(density, evidence, Measure::Posterior.into(), PILOT, seed)?;
    let alike = look.steps as f64 / look.effective;
    let steps = ((10.0 * alike).ceil() as usize).clamp(20, 2000);
    let start = Start::new(density, evidence)?;
    let rows: Result<Vec<Vec<u16>>, InferError> = (0..count)
        .into_par_iter()
        .map(|number| {
            let rng = stream(seed, "chains of samples", number as u64);
            let mut walk = start.walk(rng)?;
            for _ in 0..steps {
                let tree = walk.tree()?;
                walk.row(&tree);
            }
            Ok(walk.row)
        })
        .collect();
    Ok((rows?, Drawn::FromChains { steps, r_hat: look.r_hat }))
}

/// Rows from the list of all that agree with the evidence.
fn enumerated<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    count: usize,
    seed: u64,
) -> Result<Vec<Vec<u16>>, InferError> {
    let mut rows: Vec<u16> = Vec::new();
    let mut logs: Vec<f64> = Vec::new();
    exact::each(density, evidence, &mut |row, log| {
        if log > f64::NEG_INFINITY {
            rows.extend_from_slice(row);
            logs.push(log);
        }
    })?;
    let Some(most) = logs.iter().copied().reduce(f64::max) else { return Err(InferError::Impossible) };
    let mut total = 0.0;
    let sums: Vec<f64> = logs
        .iter()
        .map(|log| {
            total += (log - most).exp();
            total
        })
        .collect();
    let n = density.states().len();
    let mut rng = stream(seed, "samples", 0);
    let pick = |at: f64| sums.partition_point(|&sum| sum <= at).min(sums.len() - 1);
    Ok((0..count)
        .map(|_| {
            let place = pick(rng.random::<f64>() * total);
            rows[place * n..(place + 1) * n].to_vec()
        })
        .collect())
}
