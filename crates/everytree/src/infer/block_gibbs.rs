//! Block Gibbs: a tree given the row, a row given the tree and the evidence, and so on.
//!
//! Both conditionals are exact, so the rows follow the posterior in the long run, whatever the evidence; how long that
//! takes, several chains tell. Every step counts with what is measured given its tree, not with its row alone.

use super::InferError;
use super::chains::{CHAINS, Chains, Halves, Length, judge};
use super::evidence::Evidence;
use super::measure::Measure;
use super::messages::Messages;
use super::proposal::Proposal;
use crate::model::Density;
use crate::spanning::{FreshTrees, RateError, RootedForest};
use crate::stream::stream;
use rand_pcg::Pcg64;
use rayon::prelude::*;

/// A tree that allows the evidence is tried for so often at the start of a chain.
const TRIES: usize = 1000;

/// Chains of `steps` steps each, of which the first fifth does not count.
pub(crate) fn run<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    measure: Measure,
    steps: usize,
    seed: u64,
) -> Result<Chains, InferError> {
    let proposal = Proposal::tilted(density, evidence)?;
    let length = Length::of(steps);
    let chains: Result<Vec<Halves>, InferError> = (0..CHAINS)
        .into_par_iter()
        .map(|chain| {
            let mut walk = Walk::start(density, evidence, &proposal, stream(seed, "chains", chain as u64))?;
            let mut halves = Halves::new(length, measure.functions(density));
            let mut ones = Vec::new();
            for _ in 0..length.steps() {
                let tree = walk.tree()?;
                if halves.counts() {
                    let Walk { messages, rng, .. } = &mut walk;
                    halves.push(&measure.values(density.kind(), &tree, messages, rng, &mut ones));
                } else {
                    halves.pass();
                }
                walk.row(&tree);
            }
            Ok(halves)
        })
        .collect();
    Ok(judge(chains?))
}

/// One chain on its way.
pub(crate) struct Walk<'a, D: ?Sized> {
    density: &'a D,
    evidence: &'a Evidence,
    pub messages: Messages<'a>,
    pub rng: Pcg64,
    /// The row so far.
    pub row: Vec<u16>,
    rates: Vec<f64>,
    trees: FreshTrees,
}

impl<'a, D: Density + ?Sized> Walk<'a, D> {
    /// From a row of a tree that leans towards the evidence.
    pub fn start(
        density: &'a D,
        evidence: &'a Evidence,
        proposal: &Proposal,
        mut rng: Pcg64,
    ) -> Result<Self, InferError> {
        let mut messages = Messages::new(density.tables());
        let start = (0..TRIES).find_map(|_| {
            let (tree, _) = proposal.draw(&mut rng);
            messages.collect(&tree, evidence);
            messages.draw(&tree, &mut rng)
        });
        let row = start.ok_or(InferError::Impossible)?;
        let trees = FreshTrees::new(density.kind(), row.len());
        Ok(Self { density, evidence, messages, rng, row, rates: density.rates().to_vec(), trees })
    }

    /// A tree given the row; the messages are then those of this tree.
    pub fn tree(&mut self) -> Result<RootedForest, RateError> {
        Ok(self.tree_and_evidence()?.0)
    }

    /// A tree given the row, and the logarithm of the probability of the evidence under it.
    pub fn tree_and_evidence(&mut self) -> Result<(RootedForest, f64), RateError> {
        self.density.rates_at(&self.row, &mut self.rates);
        let tree = self.trees.draw(&self.rates, &mut self.rng)?;
        let log_p = self.messages.collect(&tree, self.evidence);
        Ok((tree, log_p))
    }

    /// A row given the tree. The row that the tree was drawn for agrees with the evidence, so there is always one.
    pub fn row(&mut self, tree: &RootedForest) {
        if let Some(row) = self.messages.draw(tree, &mut self.rng) {
            self.row = row;
        }
    }
}
