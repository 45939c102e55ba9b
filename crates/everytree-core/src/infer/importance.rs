//! Trees drawn at random, weighted by how well they explain the evidence.

use super::InferError;
use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::measure::{Functions, Measure, Space, Values};
use super::messages::Messages;
use super::method::Method;
use super::proposal::Proposal;
use crate::model::Density;
use crate::spanning::RootedForest;
use crate::util::stream;
use rayon::prelude::*;

/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

/// Draws trees number `first` to `last` (multiples of [`CHUNK`]) and adds up what is measured of them with their weights. The
/// same for any number of threads.
pub(crate) fn draw<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    functions: Functions<'_>,
    (seed, purpose): (u64, &str),
    trees: std::ops::Range<usize>,
) -> Sums {
    let count = functions.count(density);
    let parts: Vec<Sums> = (trees.start / CHUNK..trees.end.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, purpose, chunk as u64);
            let mut messages = Messages::new(density.tables());
            let mut sums = Sums::new(count);
            let mut space = Space::default();
            for _ in 0..CHUNK {
                let (tree, correction) = proposal.draw(&mut rng);
                let log_weight = messages.collect(&tree, evidence) + correction;
                match functions.values(density.kind(), &tree, &mut messages, &mut rng, &mut space) {
                    Values::Dense(values) => sums.push(log_weight, values),
                    Values::Ones(ones) => sums.push_ones(log_weight, ones),
                }
            }
            sums
        })
        .collect();
    let mut all = Sums::new(count);
    parts.iter().for_each(|part| all.merge(part));
    all
}

/// Trees with the logarithms of their weights, as [`Method::Importance`] and [`Method::Collapsed`] (from the prior) or
/// [`Method::Tilted`] (its first round) draw them.
///
/// The mean weight is the probability of the evidence, and the weighted mean of anything about trees its posterior mean.
/// The other methods have no weights; they are taken for [`Method::Tilted`].
pub fn weighted_trees<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    method: Method,
    count: usize,
    seed: u64,
) -> Result<Vec<(RootedForest, f64)>, InferError> {
    let n = density.states().len();
    if evidence.variables() != n {
        return Err(InferError::Variables { found: evidence.variables(), expected: n });
    }
    let proposal = match method {
        Method::Importance | Method::Collapsed => Proposal::prior(density)?,
        _ => Proposal::tilted(density, evidence)?,
    };
    let chunks: Vec<Vec<(RootedForest, f64)>> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, "trees", chunk as u64);
            let mut messages = Messages::new(density.tables());
            (chunk * CHUNK..count.min((chunk + 1) * CHUNK))
                .map(|_| {
                    let (tree, correction) = proposal.draw(&mut rng);
                    let log_weight = messages.collect(&tree, evidence) + correction;
                    (tree, log_weight)
                })
                .collect()
        })
        .collect();
    Ok(chunks.into_iter().flatten().collect())
}

/// The logarithm of the probability of the evidence from so many trees that lean towards it. The mean weight is unbiased, its
/// logarithm low by half of its variance, which is put back as far as it can be believed.
pub(crate) fn log_mean_weight<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    trees: usize,
    seed: u64,
) -> Result<f64, InferError> {
    let proposal = Proposal::tilted(density, evidence)?;
    let sums = draw(density, evidence, &proposal, Measure::Nothing.into(), (seed, "trees"), 0..trees);
    let Estimate { value, standard_error } = sums.log_mean_weight();
    Ok(value + standard_error.min(1.0).powi(2) / 2.0)
}
