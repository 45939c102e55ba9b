//! Trees drawn at random, weighted by how well they explain the evidence.

use super::estimate::Sums;
use super::evidence::Evidence;
use super::messages::Messages;
use super::proposal::Proposal;
use crate::model::Density;
use crate::stream::stream;
use rayon::prelude::*;

/// Trees of one stream of random numbers.
const CHUNK: usize = 32;

/// What is made of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PerTree {
    /// One row, drawn given tree and evidence: the paper's importance sampling.
    Row,
    /// All posteriors given tree and evidence: the paper's collapsed importance sampling.
    Posterior,
}

/// Draws trees number `first` to `last` (multiples of [`CHUNK`]) and adds up their posteriors with their weights. The same for any
/// number of threads.
pub(crate) fn draw<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    proposal: &Proposal,
    per_tree: PerTree,
    (seed, purpose): (u64, &str),
    trees: std::ops::Range<usize>,
) -> Sums {
    let tables = density.tables();
    let total = tables.offsets()[tables.variables()];
    let parts: Vec<Sums> = (trees.start / CHUNK..trees.end.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, purpose, chunk as u64);
            let mut messages = Messages::new(tables);
            let mut sums = Sums::new(total);
            let mut states = vec![0.0; total];
            for _ in 0..CHUNK {
                let (tree, correction) = proposal.draw(&mut rng);
                let log_weight = messages.collect(&tree, evidence) + correction;
                match per_tree {
                    PerTree::Posterior => sums.push(log_weight, messages.distribute(&tree)),
                    PerTree::Row => {
                        states.fill(0.0);
                        if let Some(row) = messages.draw(&tree, &mut rng) {
                            let place = |(v, &state): (usize, &u16)| tables.offsets()[v] + usize::from(state);
                            row.iter().enumerate().map(place).for_each(|place| states[place] = 1.0);
                        }
                        sums.push(log_weight, &states);
                    }
                }
            }
            sums
        })
        .collect();
    let mut all = Sums::new(total);
    parts.iter().for_each(|part| all.merge(part));
    all
}
