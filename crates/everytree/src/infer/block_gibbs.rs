//! Block Gibbs: a tree given the row, a row given the tree and the evidence, and so on.
//!
//! Both conditionals are exact, so the rows follow the posterior in the long run, whatever the evidence; how long that
//! takes, several chains tell. Every step counts with the posteriors given its tree, not with its row alone.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::messages::Messages;
use super::proposal::Proposal;
use crate::model::Density;
use crate::spanning::SpanningTrees;
use crate::stream::stream;
use rayon::prelude::*;

/// Chains; their halves make the error.
const CHAINS: usize = 16;
/// A tree that allows the evidence is tried for so often at the start of a chain.
const TRIES: usize = 1000;

/// What the chains found.
pub(crate) struct Chains {
    pub states: Vec<Estimate>,
    /// The smallest over all states.
    pub effective: f64,
    /// The largest over all states: 1 where all halves of all chains tell the same.
    pub r_hat: f64,
    pub trees: usize,
}

/// Sums of one half of a chain.
struct Half {
    first: Vec<f64>,
    second: Vec<f64>,
}

/// Chains of `steps` steps each, of which the first fifth does not count.
pub(crate) fn run<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    steps: usize,
    seed: u64,
) -> Result<Chains, InferError> {
    let proposal = Proposal::tilted(density, evidence)?;
    let half = (steps - steps / 5) / 2;
    let warm_up = steps - 2 * half;
    let chains: Result<Vec<[Half; 2]>, InferError> = (0..CHAINS)
        .into_par_iter()
        .map(|chain| one(density, evidence, &proposal, [warm_up, half], (seed, chain as u64)))
        .collect();
    let halves: Vec<Half> = chains?.into_iter().flatten().collect();
    let (count, length) = (halves.len() as f64, half as f64);
    let functions = halves[0].first.len();
    let (mut effective, mut r_hat) = (f64::INFINITY, 1.0f64);
    let states = (0..functions)
        .map(|i| {
            let means: Vec<f64> = halves.iter().map(|half| half.first[i] / length).collect();
            let value = means.iter().sum::<f64>() / count;
            let between = means.iter().map(|mean| (mean - value).powi(2)).sum::<f64>() / (count - 1.0);
            let spread = |(half, mean): (&Half, &f64)| (half.second[i] / length - mean * mean).max(0.0);
            let within = halves.iter().zip(&means).map(spread).sum::<f64>() / count * length / (length - 1.0);
            if within > 1e-20 && between > 0.0 {
                effective = effective.min(count * within / between).min(count * length);
                r_hat = r_hat.max(((length - 1.0) / length + between / within).sqrt());
            }
            Estimate { value, standard_error: (between / count).sqrt() }
        })
        .collect();
    let trees = CHAINS * steps;
    Ok(Chains { states, effective: effective.min(count * length), r_hat, trees })
}

fn one<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    [warm_up, half]: [usize; 2],
    (seed, chain): (u64, u64),
) -> Result<[Half; 2], InferError> {
    let mut rng = stream(seed, "chains", chain);
    let mut messages = Messages::new(density.tables());
    let start = (0..TRIES).find_map(|_| {
        let (tree, _) = proposal.draw(&mut rng);
        messages.collect(&tree, evidence);
        messages.draw(&tree, &mut rng)
    });
    let mut row = start.ok_or(InferError::Impossible)?;
    let functions = density.tables().offsets()[row.len()];
    let mut halves = [0, 1].map(|_| Half { first: vec![0.0; functions], second: vec![0.0; functions] });
    let mut rates = density.rates().to_vec();
    for step in 0..warm_up + 2 * half {
        density.rates_at(&row, &mut rates);
        let trees = SpanningTrees::for_a_few(density.kind(), row.len(), &rates)?;
        let tree = trees.draw(&mut rng);
        messages.collect(&tree, evidence);
        if step >= warm_up {
            let sums = &mut halves[(step - warm_up) / half];
            for (i, &p) in messages.distribute(&tree).iter().enumerate() {
                sums.first[i] += p;
                sums.second[i] += p * p;
            }
        }
        // The row that the tree was drawn for agrees with the evidence, so there is always another.
        row = messages.draw(&tree, &mut rng).unwrap_or(row);
    }
    Ok(halves)
}
