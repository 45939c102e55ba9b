//! Block Gibbs: a tree given the row, a row given the tree and the evidence, and so on.
//!
//! Both conditionals are exact, so the rows follow the posterior in the long run, whatever the evidence; how long that
//! takes, several chains tell. Every step counts with what is measured given its tree, not with its row alone.
//!
//! In between, leaves that nothing is known of are hung up anew by the prior alone: what the tree without such a leaf, and the
//! states of the others, say about where it hangs is nothing else, once its own state is summed out. (Its state is then
//! drawn with the next row.) Chains mix a little faster for it, and it costs next to nothing.

use super::InferError;
use super::chains::{CHAINS, Chains, Halves, Length, judge};
use super::evidence::Evidence;
use super::measure::{Functions, Space};
use super::messages::Messages;
use super::proposal::Proposal;
use crate::model::Density;
use crate::spanning::{FreshTrees, Kind, RateError, RootedForest, Steps};
use crate::util::stream;
use rand_pcg::Pcg64;
use rayon::prelude::*;

/// A tree that allows the evidence is tried for so often at the start of a chain.
const TRIES: usize = 1000;

/// Chains of `steps` steps each, of which the first fifth does not count.
pub(crate) fn run<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    functions: Functions<'_>,
    steps: usize,
    seed: u64,
) -> Result<Chains, InferError> {
    let start = Start::new(density, evidence)?;
    let length = Length::of(steps);
    let chains: Result<Vec<(Halves, usize)>, InferError> = (0..CHAINS)
        .into_par_iter()
        .map(|chain| {
            let mut walk = start.walk(stream(seed, "chains", chain as u64))?;
            let mut halves = Halves::new(length, functions.count(density));
            let mut space = Space::default();
            for _ in 0..length.steps() {
                let tree = walk.tree()?;
                if halves.counts() {
                    let Walk { messages, rng, .. } = &mut walk;
                    halves.push(&functions.values(density.kind(), &tree, messages, rng, &mut space));
                } else {
                    halves.pass();
                }
                walk.row(&tree);
            }
            Ok((halves, walk.trees.long()))
        })
        .collect();
    let (chains, long): (Vec<Halves>, Vec<usize>) = chains?.into_iter().unzip();
    let mut found = judge(chains);
    found.long = long.iter().sum::<usize>() as f64 / found.steps as f64;
    Ok(found)
}

/// What all chains begin with.
pub(crate) struct Start<'a, D: ?Sized> {
    density: &'a D,
    evidence: &'a Evidence,
    proposal: Proposal,
    /// Where a leaf may hang, by the prior.
    prior: Steps,
}

impl<'a, D: Density + ?Sized> Start<'a, D> {
    pub fn new(density: &'a D, evidence: &'a Evidence) -> Result<Self, InferError> {
        let proposal = Proposal::tilted(density, evidence)?;
        let prior = Steps::new(density.states().len(), density.rates()).0;
        Ok(Self { density, evidence, proposal, prior })
    }

    /// A chain from a row of a tree that leans towards the evidence.
    pub fn walk(&self, mut rng: Pcg64) -> Result<Walk<'_, D>, InferError> {
        let mut messages = Messages::new(self.density.tables());
        let start = (0..TRIES).find_map(|_| {
            let (tree, _) = self.proposal.draw(&mut rng);
            messages.collect(&tree, self.evidence);
            messages.draw(&tree, &mut rng)
        });
        let row = start.ok_or(InferError::Unexplained { trees: TRIES })?;
        let trees = FreshTrees::new(self.density.kind(), row.len());
        Ok(Walk { start: self, messages, rng, row, rates: self.density.rates().to_vec(), trees })
    }
}

/// One chain on its way.
pub(crate) struct Walk<'a, D: ?Sized> {
    start: &'a Start<'a, D>,
    pub messages: Messages<'a>,
    pub rng: Pcg64,
    /// The row so far.
    pub row: Vec<u16>,
    rates: Vec<f64>,
    trees: FreshTrees,
}

impl<D: Density + ?Sized> Walk<'_, D> {
    /// A tree given the row; the messages are then those of this tree.
    pub fn tree(&mut self) -> Result<RootedForest, RateError> {
        Ok(self.tree_and_evidence()?.0)
    }

    /// A tree given the row, and the logarithm of the probability of the evidence under it.
    pub fn tree_and_evidence(&mut self) -> Result<(RootedForest, f64), RateError> {
        self.start.density.rates_at(&self.row, &mut self.rates);
        let tree = self.trees.draw(&self.rates, &mut self.rng)?;
        let tree = self.move_leaves(&tree);
        let log_p = self.messages.collect(&tree, self.start.evidence);
        Ok((tree, log_p))
    }

    /// Leaves that nothing is known of hang elsewhere. Which ones are moved must not depend on the row, so what an undirected tree
    /// happens to hang at is a leaf like others.
    fn move_leaves(&mut self, tree: &RootedForest) -> RootedForest {
        let Start { density, evidence, prior, .. } = self.start;
        let undirected = density.kind() == Kind::Undirected;
        let mut parents = tree.parents().to_vec();
        let mut children = vec![0usize; parents.len()];
        parents.iter().enumerate().filter(|(v, u)| v != *u).for_each(|(_, &u)| children[u] += 1);
        for v in (0..parents.len()).filter(|&v| !evidence.is_given(v)) {
            let top = undirected && parents[v] == v;
            if children[v] != usize::from(top) {
                continue;
            }
            if top {
                // Its only child takes its place.
                let child = (0..parents.len()).find(|&u| u != v && parents[u] == v);
                let child = child.unwrap_or_else(|| unreachable!("a child was counted"));
                parents[child] = child;
                children[v] = 0;
            } else if parents[v] != v {
                children[parents[v]] -= 1;
            }
            // To itself: a root.
            parents[v] = prior.step(v, &mut self.rng);
            if parents[v] != v {
                children[parents[v]] += 1;
            }
        }
        RootedForest::from_parents(parents).unwrap_or_else(|error| unreachable!("leaves moved: {error}"))
    }

    /// A row given the tree. The row that the tree was drawn for agrees with the evidence, so there is always one.
    pub fn row(&mut self, tree: &RootedForest) {
        if let Some(row) = self.messages.draw(tree, &mut self.rng) {
            self.row = row;
        }
    }
}
