//! The probability of evidence that hardly any random tree explains.
//!
//! Trees of the proposal find it from one side, with weights `w` whose mean it is but few of which count; trees of the posterior, from
//! chains, from the other side. A bridge between the two (Meng and Wong) uses both:
//!
//! ```text
//! P(e) = E_proposal[ w / (s₁ w + s₂ P(e)) ] / E_posterior[ 1 / (s₁ w + s₂ P(e)) ]
//! ```
//!
//! with P(e) on both sides, found by iteration. It needs only that the two overlap.

use super::InferError;
use super::block_gibbs::Start;
use super::chains::{CHAINS, Length};
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::messages::Messages;
use super::proposal::Proposal;
use crate::model::Density;
use crate::util::stream;
use rayon::prelude::*;

/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

/// The logarithm of the probability of the evidence, from chains of `steps` steps each and twice as many trees of the
/// proposal as there are steps in all.
pub(crate) fn log_evidence<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    steps: usize,
    seed: u64,
) -> Result<Estimate, InferError> {
    let length = Length::of(steps);
    let start = Start::new(density, evidence)?;
    let chains: Result<Vec<Vec<f64>>, InferError> = (0..CHAINS)
        .into_par_iter()
        .map(|chain| {
            let rng = stream(seed, "chains of a bridge", chain as u64);
            let mut walk = start.walk(rng)?;
            let mut logs = Vec::with_capacity(length.steps());
            for _ in 0..length.steps() {
                let (tree, log_p) = walk.tree_and_evidence()?;
                logs.push(log_p + proposal.correction(&tree));
                walk.row(&tree);
            }
            logs.drain(..length.warm_up);
            Ok(logs)
        })
        .collect();
    let posterior: Vec<Vec<f64>> =
        chains?.iter().flat_map(|logs| logs.chunks_exact(length.half).map(<[f64]>::to_vec)).collect();
    let proposed: Vec<Vec<f64>> = (0..(2 * CHAINS * steps).div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, "trees of a bridge", chunk as u64);
            let mut messages = Messages::new(density.tables());
            let mut one = || {
                let (tree, correction) = proposal.draw(&mut rng);
                messages.collect(&tree, evidence) + correction
            };
            (0..CHUNK).map(|_| one()).collect()
        })
        .collect();
    Ok(cross(&posterior, &proposed.concat()))
}

/// The bridge between log-weights of posterior trees (halves of chains) and of proposed ones (independent).
fn cross(posterior: &[Vec<f64>], proposed: &[f64]) -> Estimate {
    /// Steps of a chain that are worth one independent tree, more or less: any number gives a consistent estimate.
    const ALIKE: f64 = 10.0;
    const ROUNDS: usize = 200;
    let one = posterior.iter().map(Vec::len).sum::<usize>() as f64 / ALIKE;
    let two = proposed.len() as f64;
    let (s_1, s_2) = (one / (one + two), two / (one + two));
    // In units of the estimate so far, so that nothing overflows: f₁ = 1/(s₁ w + s₂), f₂ = w/(s₁ w + s₂).
    let of_posterior = |log: f64, r: f64| 1.0 / (s_1 * (log - r).exp() + s_2);
    let of_proposed = |log: f64, r: f64| {
        if log == f64::NEG_INFINITY { 0.0 } else { 1.0 / (s_1 + s_2 * (r - log).exp()) }
    };
    let mean_1 = |r: f64| -> Vec<f64> {
        let mean =
            |half: &Vec<f64>| half.iter().map(|log| of_posterior(*log, r)).sum::<f64>() / half.len() as f64;
        posterior.iter().map(mean).collect()
    };
    let mean_2 = |r: f64| proposed.iter().map(|log| of_proposed(*log, r)).sum::<f64>() / two;
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut r = proposed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..ROUNDS {
        let step = mean_2(r).ln() - average(&mean_1(r)).ln();
        r += step;
        if step.abs() < 1e-10 || !r.is_finite() {
            break;
        }
    }
    let halves = mean_1(r);
    let (m_1, m_2) = (average(&halves), mean_2(r));
    let count = halves.len() as f64;
    let v_1 = halves.iter().map(|mean| (mean - m_1).powi(2)).sum::<f64>() / (count - 1.0) / count;
    let spread = proposed.iter().map(|log| (of_proposed(*log, r) - m_2).powi(2)).sum::<f64>();
    let v_2 = spread / (two - 1.0) / two;
    Estimate { value: r, standard_error: (v_1 / (m_1 * m_1) + v_2 / (m_2 * m_2)).sqrt() }
}
