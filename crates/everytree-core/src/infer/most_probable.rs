//! The most probable rows given the evidence.
//!
//! To find them is hard in general, so there are two ways: looking at every row that agrees with the evidence, which
//! proves what it finds; or a search. The search takes the best row of each of many random trees (exact on one tree),
//! climbs from the best of them one cell at a time on the exact likelihood, and in between lets a tree drawn for the row so
//! far propose another row. What it returns has its exact probability, and says that it is not proven.

use super::evidence::Evidence;
use super::messages::Messages;
use super::method::{A_SECOND, Method};
use super::one_tree::TreePosterior;
use super::proposal::Proposal;
use super::{InferError, exact};
use crate::data::Table;
use crate::model::{ComponentInference, Density, Likelihood};
use crate::spanning::FreshTrees;
use crate::util::{seed_of, stream};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use std::collections::HashSet;

/// A row, and how probable it is.
#[derive(Clone, Debug, PartialEq)]
pub struct MostProbable {
    /// One code per variable.
    pub row: Vec<u16>,
    /// The natural logarithm of its exact probability.
    pub log_p: f64,
    /// Is it certain that no other row is more probable (but those before it in the list)?
    pub proven: bool,
}

/// How far to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Random trees to begin with.
    pub trees: usize,
    /// Rows to climb from.
    pub climbs: usize,
    /// Of the random trees.
    pub seed: u64,
    /// Every row is looked at where that takes no more operations than this.
    pub operations: f64,
}

impl Default for Search {
    fn default() -> Self {
        Self { trees: 1024, climbs: 16, seed: 0, operations: A_SECOND }
    }
}

/// Trees of one stream of random numbers.
const CHUNK: usize = 32;
/// Rows that a tree drawn for the row so far may propose in vain before a climb ends.
const PATIENCE: usize = 8;

/// The `count` most probable rows that agree with the evidence, the most probable first: proven where every row can be
/// looked at, else the best that the search has found. Soft evidence weighs in; `log_p` is of the row alone.
pub fn most_probable<D: Density>(
    density: &D,
    evidence: &Evidence,
    count: usize,
    search: Search,
) -> Result<Vec<MostProbable>, InferError> {
    let n = Density::states(density).len();
    if evidence.variables() != n {
        return Err(InferError::Variables { found: evidence.variables(), expected: n });
    }
    let proven = Method::affordable(evidence, search.operations) == Method::Exact;
    let rows = best_rows(density, &[AllTrees(density)], evidence, count, search)?;
    let likelihood = |row: &[u16]| log_likelihood(evidence, row);
    Ok(rows
        .into_iter()
        .map(|(row, log)| MostProbable { log_p: log - likelihood(&row), row, proven })
        .collect())
}

/// The best rows of a mixture of densities, whose likelihood `whole` is: each with the logarithm of its probability times
/// its likelihood.
pub(crate) fn best_rows<P: Proposes>(
    whole: &dyn Likelihood,
    parts: &[P],
    evidence: &Evidence,
    count: usize,
    search: Search,
) -> Result<Vec<(Vec<u16>, f64)>, InferError> {
    let mut best = Best { count: count.max(1), rows: Vec::new(), seen: HashSet::new() };
    if Method::affordable(evidence, search.operations) == Method::Exact {
        exact::each(whole, evidence, &mut |row, log| best.offer(row, log))?;
    } else {
        for (number, part) in parts.iter().enumerate() {
            let seed = seed_of(search.seed, number as u64);
            let trees = search.trees.div_ceil(parts.len());
            match part.first(evidence, Search { seed, trees, ..search }) {
                Ok(candidates) => best.judge(whole, evidence, &candidates).map(drop)?,
                Err(InferError::Unexplained { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let starts: Vec<(Vec<u16>, f64)> = best.rows.iter().take(search.climbs.max(1)).cloned().collect();
        for (number, start) in starts.into_iter().enumerate() {
            climb(whole, parts, evidence, &mut best, start, search.seed, number as u64)?;
        }
    }
    best.rows.truncate(best.count);
    if best.rows.is_empty() {
        return Err(InferError::Impossible);
    }
    Ok(best.rows)
}

/// The logarithm of what the evidence says of a row.
fn log_likelihood(evidence: &Evidence, row: &[u16]) -> f64 {
    row.iter().enumerate().map(|(v, &state)| evidence.of(v)[usize::from(state)].ln()).sum()
}

/// The best rows so far, by probability times likelihood.
struct Best {
    count: usize,
    rows: Vec<(Vec<u16>, f64)>,
    /// Rows whose probability is known, so that none is computed twice.
    seen: HashSet<Vec<u16>>,
}

impl Best {
    /// More than are asked for, so that climbs have where to start.
    const SPARE: usize = 64;

    fn offer(&mut self, row: &[u16], log: f64) {
        let room = self.count.saturating_add(Self::SPARE);
        if log == f64::NEG_INFINITY || (self.rows.len() >= room && log <= self.rows[self.rows.len() - 1].1) {
            return;
        }
        // Of equals the first to come stays first.
        let place = self.rows.partition_point(|(_, other)| *other >= log);
        self.rows.insert(place, (row.to_vec(), log));
        self.rows.truncate(room);
    }

    /// Computes rows that are new; gives back the best of them.
    fn judge(
        &mut self,
        density: &dyn Likelihood,
        evidence: &Evidence,
        rows: &[Vec<u16>],
    ) -> Result<Option<(Vec<u16>, f64)>, InferError> {
        let fresh: Vec<&Vec<u16>> = rows.iter().filter(|row| self.seen.insert((*row).clone())).collect();
        let mut table = Table::new(density.states());
        fresh.iter().for_each(|row| table.push(row));
        let mut log_p = vec![0.0; fresh.len()];
        if !fresh.is_empty() {
            density.log_p(table.codes(), &mut log_p)?;
        }
        let mut top: Option<(Vec<u16>, f64)> = None;
        for (row, log_p) in fresh.into_iter().zip(log_p) {
            let log = log_p + log_likelihood(evidence, row);
            self.offer(row, log);
            if log > top.as_ref().map_or(f64::NEG_INFINITY, |(_, best)| *best) {
                top = Some((row.clone(), log));
            }
        }
        Ok(top)
    }
}

/// Whoever has rows to propose.
pub(crate) trait Proposes {
    /// Rows to begin with.
    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError>;

    /// Rows that a good one leads to.
    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError>;
}

/// A density whose trees propose.
struct AllTrees<'a, D: ?Sized>(&'a D);

impl<D: Density + ?Sized> Proposes for AllTrees<'_, D> {
    /// The best row of each of many trees, and a row at random from each.
    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError> {
        let density = self.0;
        let proposal = Proposal::tilted(density, evidence)?;
        let chunks: Vec<Vec<Vec<u16>>> = (0..search.trees.div_ceil(CHUNK).max(1))
            .into_par_iter()
            .map(|chunk| {
                let mut rng = stream(search.seed, "trees of a search", chunk as u64);
                let mut messages = Messages::new(density.tables());
                let mut rows = Vec::new();
                for _ in 0..CHUNK {
                    let (tree, _) = proposal.draw(&mut rng);
                    rows.extend(messages.most_probable(&tree, evidence).map(|(row, _)| row));
                    if messages.collect(&tree, evidence) > f64::NEG_INFINITY {
                        rows.extend(messages.draw(&tree, &mut rng));
                    }
                }
                rows
            })
            .collect();
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Trees that explain the row, and the best row of each.
    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError> {
        let density = self.0;
        let mut messages = Messages::new(density.tables());
        let mut rates = density.rates().to_vec();
        let mut trees = FreshTrees::new(density.kind(), row.len());
        density.rates_at(row, &mut rates);
        let mut proposals = Vec::new();
        for _ in 0..CHUNK {
            let tree = trees.draw(&rates, rng)?;
            proposals.extend(messages.most_probable(&tree, evidence).map(|(row, _)| row));
        }
        Ok(proposals)
    }
}

impl Proposes for ComponentInference<'_> {
    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError> {
        match self {
            Self::AllTrees(density) => AllTrees(&**density).first(evidence, search),
            Self::OneTree(tree) => {
                let mut told = TreePosterior::new(tree, evidence);
                let mut rng = stream(search.seed, "rows of one tree", 0);
                let mut rows: Vec<Vec<u16>> = (0..search.trees).map_while(|_| told.draw(&mut rng)).collect();
                rows.extend(told.most_probable());
                Ok(rows)
            }
        }
    }

    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError> {
        match self {
            Self::AllTrees(density) => AllTrees(&**density).next(row, evidence, rng),
            // One tree has nothing to say about a row that it did not say before.
            Self::OneTree(tree) => {
                let told = TreePosterior::new(tree, evidence);
                Ok((0..CHUNK).map_while(|_| told.draw(rng)).collect())
            }
        }
    }
}

/// How many of the most probable rows are certain to be the best: all where every row is looked at; the first where one tree says it.
pub(crate) fn proven(parts: &[ComponentInference<'_>], evidence: &Evidence, search: Search) -> usize {
    if Method::affordable(evidence, search.operations) == Method::Exact {
        return usize::MAX;
    }
    match parts {
        [ComponentInference::OneTree(tree)] if tree.observed() == tree.tree().len() => 1,
        _ => 0,
    }
}

/// From one row to better ones, cell by cell and tree by tree, until neither helps.
fn climb<P: Proposes>(
    whole: &dyn Likelihood,
    parts: &[P],
    evidence: &Evidence,
    best: &mut Best,
    start: (Vec<u16>, f64),
    seed: u64,
    number: u64,
) -> Result<(), InferError> {
    let (mut row, mut log) = start;
    let mut rng = stream(seed, "climbs", number);
    let mut in_vain = 0;
    loop {
        // Every row that differs in one cell.
        let mut neighbours = Vec::new();
        for v in 0..row.len() {
            for (state, &likelihood) in evidence.of(v).iter().enumerate() {
                if likelihood > 0.0 && state != usize::from(row[v]) {
                    let mut other = row.clone();
                    other[v] = state as u16;
                    neighbours.push(other);
                }
            }
        }
        if let Some((better, found)) = best.judge(whole, evidence, &neighbours)?
            && found > log
        {
            (row, log) = (better, found);
            in_vain = 0;
            continue;
        }
        let proposals = parts[in_vain % parts.len()].next(&row, evidence, &mut rng)?;
        match best.judge(whole, evidence, &proposals)? {
            Some((better, found)) if found > log => {
                (row, log) = (better, found);
                in_vain = 0;
            }
            _ => in_vain += 1,
        }
        if in_vain >= PATIENCE.max(parts.len()) {
            return Ok(());
        }
    }
}
