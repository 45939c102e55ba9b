//! The most probable rows given the evidence.
//!
//! Of one tree without latent variables they are found exactly ([`k_best`]). Otherwise that is hard, so there are two ways:
//! looking at every row that agrees with the evidence, which proves what it finds; or a search with a budget. The search
//! takes the best rows of many random trees (exact on one tree), and climbs from the best of them: trees drawn for the row
//! so far tell which cells to change and propose whole rows, and the exact likelihood decides. What it returns has its exact
//! probability, and says that it is not proven.

use super::evidence::Evidence;
use super::k_best::k_best;
use super::messages::Messages;
use super::method::{A_SECOND, Method};
use super::one_tree::{self, TreePosterior};
use super::proposal::Proposal;
use super::stored::{self, KernelPosterior};
use super::{InferError, exact};
use crate::data::Table;
use crate::model::{ComponentInference, Density, EdgeTables, Likelihood, TreeModel};
use crate::spanning::{FreshTrees, RootedForest};
use crate::util::{log_sum, seed_of, stream};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

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
    /// Operations that the search may take.
    pub budget: f64,
}

impl Default for Search {
    fn default() -> Self {
        Self { trees: 1024, climbs: 16, seed: 0, operations: A_SECOND, budget: 2.0 * A_SECOND }
    }
}

/// Trees of one stream of random numbers.
const CHUNK: usize = 32;
/// Trees drawn for a row that tell which of its cells to change.
const ADVISERS: usize = 16;
/// Changes of one cell that are computed at once, the most promising of all.
const CHANGES: usize = 32;
/// Rows that a tree drawn for the row so far may propose in vain before a climb ends.
const PATIENCE: usize = 8;
/// Operations for an entry of the matrix from which a tree is drawn.
const DRAWING: f64 = 64.0;
/// An entry of a table takes as long as so many operations: there are several messages along an edge, and the next entry is far from
/// the last one in memory.
const MESSAGES: f64 = 1000.0;

/// About how many operations the messages of one tree take: as many entries as its tables have.
fn tree_operations(evidence: &Evidence) -> f64 {
    let n = evidence.variables();
    let states: usize = (0..n).map(|v| evidence.of(v).len()).sum();
    MESSAGES * (states as f64).powi(2) / n.max(1) as f64
}

/// Hears what part of a search is done, and says whether to go on.
pub(crate) type GoOn<'a> = &'a (dyn Fn(f64) -> bool + Sync);

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
    let found = best_rows(density, &[AllTrees(density)], evidence, count, search, &|_| true)?;
    let likelihood = |row: &[u16]| log_likelihood(evidence, row);
    Ok(found
        .rows
        .into_iter()
        .map(|(row, log)| MostProbable { log_p: log - likelihood(&row), row, proven: found.proven })
        .collect())
}

/// Rows that were found.
pub(crate) struct Found {
    /// Each with the logarithm of its probability times its likelihood, the best first.
    pub rows: Vec<(Vec<u16>, f64)>,
    /// Is it certain that none is better?
    pub proven: bool,
}

/// The best rows of a mixture of densities, whose likelihood `whole` is.
pub(crate) fn best_rows<P: Proposes>(
    whole: &dyn Likelihood,
    parts: &[P],
    evidence: &Evidence,
    count: usize,
    search: Search,
    go_on: GoOn<'_>,
) -> Result<Found, InferError> {
    let mut best = Best::new(count);
    let only_tree = match parts {
        [part] => part.only_tree(),
        _ => None,
    };
    let mut proven = true;
    if let Some(tree) = only_tree {
        best.judge(whole, evidence, &k_best(tree, tree.tree(), evidence, best.count, go_on))?;
    } else if Method::affordable(evidence, search.operations) == Method::Exact {
        exact::each(whole, evidence, &mut |row, log| best.offer(row, log))?;
    } else {
        proven = false;
        Climber { whole, parts, evidence, search, go_on, begun: 0.0 }.run(&mut best)?;
    }
    best.rows.truncate(best.count);
    if best.rows.is_empty() {
        return Err(InferError::Impossible);
    }
    Ok(Found { rows: best.rows, proven })
}

/// The logarithm of what the evidence says of a row.
fn log_likelihood(evidence: &Evidence, row: &[u16]) -> f64 {
    row.iter().enumerate().map(|(v, &state)| evidence.of(v)[usize::from(state)].ln()).sum()
}

/// The best rows so far, by probability times likelihood.
struct Best {
    count: usize,
    rows: Vec<(Vec<u16>, f64)>,
    /// What is left of rows whose probability is known, so that none is computed twice.
    seen: HashSet<u128>,
    judged: usize,
}

impl Best {
    /// More than are asked for, so that climbs have where to start.
    const SPARE: usize = 64;

    fn new(count: usize) -> Self {
        Self { count: count.max(1), rows: Vec::new(), seen: HashSet::new(), judged: 0 }
    }

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
        let fresh: Vec<&Vec<u16>> = rows.iter().filter(|row| self.seen.insert(digest(row))).collect();
        self.judged += fresh.len();
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

/// A row in 128 bits, whatever its length: two different ones are taken for the same about never.
fn digest(row: &[u16]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, row).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Whoever has rows to propose.
pub(crate) trait Proposes {
    /// The tree, where there is but one and nothing in it is latent.
    fn only_tree(&self) -> Option<&TreeModel>;

    /// Rows to begin with, the most promising first.
    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError>;

    /// Rows that a good one leads to.
    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError>;

    /// For every state of every variable, about how much more probable (logarithm) a row would be with it.
    fn changes(&self, row: &[u16], rng: &mut Pcg64) -> Result<Vec<f64>, InferError>;
}

/// A density whose trees propose.
struct AllTrees<'a, D: ?Sized>(&'a D);

impl<D: Density + ?Sized> Proposes for AllTrees<'_, D> {
    fn only_tree(&self) -> Option<&TreeModel> {
        None
    }

    /// The best row of each of many trees, by how good it is there; then a row at random from each.
    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError> {
        let density = self.0;
        let proposal = Proposal::tilted(density, evidence)?;
        let drawing = DRAWING * (evidence.variables() as f64).powi(2);
        let affordable = search.budget / (drawing + tree_operations(evidence));
        let trees = search.trees.min(affordable as usize).max(1);
        let (best, drawn): (Vec<_>, Vec<_>) = (0..trees.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut rng = stream(search.seed, "trees of a search", chunk as u64);
                let mut messages = Messages::new(density.tables());
                let (mut best, mut drawn) = (Vec::new(), Vec::new());
                for _ in 0..CHUNK.min(trees) {
                    let (tree, _) = proposal.draw(&mut rng);
                    best.extend(messages.most_probable(&tree, evidence));
                    if messages.collect(&tree, evidence) > f64::NEG_INFINITY {
                        drawn.extend(messages.draw(&tree, &mut rng));
                    }
                }
                (best, drawn)
            })
            .unzip();
        let mut best: Vec<(Vec<u16>, f64)> = best.into_iter().flatten().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(best.into_iter().map(|(row, _)| row).chain(drawn.into_iter().flatten()).collect())
    }

    /// Trees that explain the row, and the best row of each.
    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError> {
        let mut messages = Messages::new(self.0.tables());
        let mut proposals = Vec::new();
        self.explaining(row, CHUNK, rng, |tree| {
            proposals.extend(messages.most_probable(tree, evidence).map(|(row, _)| row));
        })?;
        Ok(proposals)
    }

    /// The mean over trees that explain the row: without bias, since these are drawn from the posterior.
    fn changes(&self, row: &[u16], rng: &mut Pcg64) -> Result<Vec<f64>, InferError> {
        let tables = self.0.tables();
        let mut of_trees = Vec::new();
        self.explaining(row, ADVISERS, rng, |tree| of_trees.push(changes_of_tree(tables, tree, row)))?;
        let mean = |place: usize| {
            log_sum(of_trees.iter().map(|changes| changes[place])) - (of_trees.len() as f64).ln()
        };
        Ok((0..tables.offsets()[row.len()]).map(mean).collect())
    }
}

impl<D: Density + ?Sized> AllTrees<'_, D> {
    /// Draws trees from their posterior given a complete row.
    fn explaining(
        &self,
        row: &[u16],
        count: usize,
        rng: &mut Pcg64,
        mut each: impl FnMut(&RootedForest),
    ) -> Result<(), InferError> {
        let mut rates = self.0.rates().to_vec();
        let mut trees = FreshTrees::new(self.0.kind(), row.len());
        self.0.rates_at(row, &mut rates);
        for _ in 0..count {
            each(&trees.draw(&rates, rng)?);
        }
        Ok(())
    }
}

/// Logarithms of how much more probable a row of a tree would be with another state in one place.
fn changes_of_tree<T: EdgeTables>(tables: &T, tree: &RootedForest, row: &[u16]) -> Vec<f64> {
    let offsets = tables.offsets();
    let mut changes = vec![0.0; offsets[row.len()]];
    for (v, &b) in row.iter().enumerate() {
        let b = usize::from(b);
        let own = match tree.parent(v) {
            None => tables.root(v),
            Some(u) => {
                let a = usize::from(row[u]);
                let now = tables.given(u, a, v)[b].ln();
                for (a, change) in changes[offsets[u]..offsets[u + 1]].iter_mut().enumerate() {
                    *change += tables.given(u, a, v)[b].ln() - now;
                }
                tables.given(u, a, v)
            }
        };
        let now = own[b].ln();
        changes[offsets[v]..offsets[v + 1]]
            .iter_mut()
            .zip(own)
            .for_each(|(change, p)| *change += p.ln() - now);
    }
    changes
}

impl Proposes for ComponentInference<'_> {
    fn only_tree(&self) -> Option<&TreeModel> {
        match self {
            Self::OneTree(tree) if !tree.has_latent() => Some(tree),
            _ => None,
        }
    }

    fn first(&self, evidence: &Evidence, search: Search) -> Result<Vec<Vec<u16>>, InferError> {
        match self {
            Self::AllTrees(density) => AllTrees(&**density).first(evidence, search),
            Self::OneTree(tree) => {
                let mut posterior = TreePosterior::new(tree, evidence);
                let mut rng = stream(search.seed, "rows of one tree", 0);
                let mut rows: Vec<Vec<u16>> = posterior.most_probable().into_iter().collect();
                rows.extend((0..search.trees).map_while(|_| posterior.draw(&mut rng)));
                Ok(rows)
            }
            Self::Stored(kernel) => Ok(KernelPosterior::new(kernel, evidence).most_probable(search.trees)),
        }
    }

    fn next(&self, row: &[u16], evidence: &Evidence, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError> {
        match self {
            Self::AllTrees(density) => AllTrees(&**density).next(row, evidence, rng),
            // One tree has nothing to say about a row that it did not say before.
            Self::OneTree(tree) => {
                let posterior = TreePosterior::new(tree, evidence);
                Ok((0..CHUNK).map_while(|_| posterior.draw(rng)).collect())
            }
            Self::Stored(kernel) => {
                let posterior = KernelPosterior::new(kernel, evidence);
                Ok((0..CHUNK).map_while(|_| posterior.draw(rng)).collect())
            }
        }
    }

    fn changes(&self, row: &[u16], rng: &mut Pcg64) -> Result<Vec<f64>, InferError> {
        match self {
            Self::AllTrees(density) => AllTrees(&**density).changes(row, rng),
            Self::OneTree(tree) if !tree.has_latent() => Ok(changes_of_tree(&**tree, tree.tree(), row)),
            Self::OneTree(tree) => Ok(one_tree::changes_with_latent(tree, row)),
            Self::Stored(kernel) => Ok(stored::changes(kernel, row)),
        }
    }
}

/// A search from good rows to better ones.
struct Climber<'a, P> {
    whole: &'a dyn Likelihood,
    parts: &'a [P],
    evidence: &'a Evidence,
    search: Search,
    go_on: GoOn<'a>,
    /// What part of the budget was spent before the climb.
    begun: f64,
}

impl<P: Proposes> Climber<'_, P> {
    fn run(mut self, best: &mut Best) -> Result<(), InferError> {
        // One row at least, however dear.
        let affordable = ((self.search.budget / self.whole.operations()) as usize).max(8);
        for (number, part) in self.parts.iter().enumerate() {
            let seed = seed_of(self.search.seed, number as u64);
            let trees = self.search.trees.div_ceil(self.parts.len());
            let budget = self.search.budget / self.parts.len() as f64;
            match part.first(self.evidence, Search { seed, trees, budget, ..self.search }) {
                Ok(mut candidates) => {
                    // A quarter of the budget for where to begin.
                    candidates.truncate((affordable / 4).div_ceil(self.parts.len()));
                    best.judge(self.whole, self.evidence, &candidates)?;
                }
                Err(InferError::Unexplained { .. }) => {}
                Err(error) => return Err(error),
            }
            if !best.rows.is_empty() && !(self.go_on)(0.0) {
                return Ok(());
            }
        }
        // The best first, each for as long as it gets better: what is left is for the next.
        let starts: Vec<(Vec<u16>, f64)> =
            best.rows.iter().take(self.search.climbs.max(1)).cloned().collect();
        let climbs = starts.len();
        for (number, start) in starts.into_iter().enumerate() {
            self.begun = number as f64 / climbs as f64;
            if self.climb(best, start, number as u64, affordable)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// From one row to better ones, cell by cell and tree by tree, until neither helps or so many rows were judged.
    fn climb(
        &self,
        best: &mut Best,
        start: (Vec<u16>, f64),
        number: u64,
        affordable: usize,
    ) -> Result<ControlFlow<()>, InferError> {
        let (mut row, mut log) = start;
        let mut rng = stream(self.search.seed, "climbs", number);
        let mut in_vain = 0;
        // Trees that are looked at count as rows that take as long.
        let looking = CHUNK as f64 * tree_operations(self.evidence) / self.whole.operations();
        while best.judged < affordable {
            if !(self.go_on)(self.begun.max(best.judged as f64 / affordable as f64).min(1.0)) {
                return Ok(ControlFlow::Break(()));
            }
            let changed = self.changed(&row, affordable - best.judged, &mut rng)?;
            best.judged += looking as usize;
            if let Some((better, found)) = best.judge(self.whole, self.evidence, &changed)?
                && found > log
            {
                (row, log) = (better, found);
                in_vain = 0;
                continue;
            }
            let mut proposals = self.parts[in_vain % self.parts.len()].next(&row, self.evidence, &mut rng)?;
            best.judged += looking as usize;
            proposals.truncate(affordable.saturating_sub(best.judged));
            match best.judge(self.whole, self.evidence, &proposals)? {
                Some((better, found)) if found > log => {
                    (row, log) = (better, found);
                    in_vain = 0;
                }
                _ => in_vain += 1,
            }
            if in_vain >= PATIENCE.max(self.parts.len()) {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Rows that differ from this one in one cell, the most promising first; and the row with every change that promises
    /// something, which saves many steps where columns have little to do with each other.
    fn changed(&self, row: &[u16], most: usize, rng: &mut Pcg64) -> Result<Vec<Vec<u16>>, InferError> {
        let mut sums: Vec<f64> = Vec::new();
        for (part, weight) in self.parts.iter().zip(self.whole.responsibilities(row)?) {
            if weight < LEAST_RESPONSIBILITY {
                continue;
            }
            let changes = part.changes(row, rng)?;
            sums.resize(changes.len(), 0.0);
            sums.iter_mut().zip(&changes).for_each(|(sum, change)| *sum += weight * change.exp());
        }
        let mut place = 0;
        let mut changes: Vec<(f64, usize, u16)> = Vec::new();
        for (v, &now) in row.iter().enumerate() {
            let likelihoods = self.evidence.of(v);
            let here = likelihoods[usize::from(now)];
            for (state, likelihood) in likelihoods.iter().enumerate() {
                if state != usize::from(now) && *likelihood > 0.0 {
                    changes.push((sums[place + state] * likelihood / here, v, state as u16));
                }
            }
            place += likelihoods.len();
        }
        changes.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut all = row.to_vec();
        let mut touched = vec![false; row.len()];
        for &(ratio, v, state) in changes.iter().take_while(|(ratio, ..)| *ratio > 1.0) {
            if ratio.is_finite() && !std::mem::replace(&mut touched[v], true) {
                all[v] = state;
            }
        }
        let one = |&(_, v, state): &(f64, usize, u16)| {
            let mut row = row.to_vec();
            row[v] = state;
            row
        };
        let ones = changes.iter().take(CHANGES.min(most)).map(one);
        Ok(std::iter::once(all).chain(ones).collect())
    }
}

/// Components that explain less of a row than this are not asked what to change in it.
const LEAST_RESPONSIBILITY: f64 = 1e-3;
