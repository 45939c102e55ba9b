//! Questions to a whole model: members weighed by how well each explains the evidence, blocks taken apart into columns.
//!
//! Members over the same blocks are one mixture of all their components ([`Mixed`]). Where blocks differ, each group answers for
//! itself, about columns, and the answers are weighed as those of components are.

use super::columns::{a_row, best_rows as rows_of_blocks, for_the_best, of_blocks, projection};
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::method::{Effort, Method};
use super::mixed::{Mixed, efforts, total, weigh};
use super::most_probable::{MostProbable, Search, best_rows};
use super::posterior::{EdgePosterior, Expectation, Posterior, by_variable};
use super::sample::{Drawn, Sampling};
use super::{InferError, exact};
use crate::blocks::Blocks;
use crate::data::{Codes, Table};
use crate::model::{ComponentInference, Density, Likelihood, Model, ModelError};
use crate::spanning::Kind;
use crate::util::{choose, log_sum, offsets, seed_of, softmax, stream};
use rand::RngExt;
use std::collections::HashSet;

/// A model made ready to be asked about its columns.
pub struct Inference<'a> {
    /// The number of states of every column.
    pub(super) columns: Vec<usize>,
    /// Components of members over the same blocks are asked together.
    pub(super) groups: Vec<Group<'a>>,
    /// Logarithms of the weights of groups, which add up to 1.
    pub(super) log_weights: Vec<f64>,
}

/// Components over the same blocks.
pub(super) struct Group<'a> {
    pub blocks: Blocks,
    pub mixed: Mixed<'a>,
}

/// Rows of columns that are computed at once while the best are looked for.
const ROWS_AT_ONCE: usize = 1024;
/// Groups whose weights among samples are found to this error of their logarithms.
const SHARE_ERROR: f64 = 0.02;

impl Model {
    /// Everything that questions need, computed once.
    pub fn inference(&self) -> Result<Inference<'_>, ModelError> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (member, weight) in self.members().iter().zip(self.log_weights()) {
            let mixture = member.mixture();
            let parts: Result<Vec<_>, _> =
                mixture.components().iter().map(|component| component.inference()).collect();
            let log_weights = mixture.mixing_weights().into_iter().map(|own| weight + own.ln());
            match groups.iter_mut().find(|group| group.blocks == *member.blocks()) {
                Some(Group { mixed, .. }) => {
                    mixed.parts.extend(parts?);
                    mixed.log_weights.extend(log_weights);
                }
                None => {
                    let mixed = Mixed { parts: parts?, log_weights: log_weights.collect() };
                    groups.push(Group { blocks: member.blocks().clone(), mixed });
                }
            }
        }
        Ok(Inference::of(groups))
    }
}

impl<'a> Inference<'a> {
    /// Densities over blocks of columns, with shares that add up to 1.
    ///
    /// # Panics
    /// When there is not one share for each, or they are about other blocks.
    pub fn new(blocks: Blocks, parts: Vec<Box<dyn Density + 'a>>, shares: &[f64]) -> Self {
        assert_eq!(parts.len(), shares.len(), "one share for each");
        let parts: Vec<_> = parts.into_iter().map(ComponentInference::AllTrees).collect();
        assert!(parts.iter().all(|part| part.states() == blocks.states()), "of these blocks");
        let log_weights = shares.iter().map(|share| share.ln()).collect();
        Self::of(vec![Group { blocks, mixed: Mixed { parts, log_weights } }])
    }

    /// Groups of components, each with its weight in the whole.
    fn of(mut groups: Vec<Group<'a>>) -> Self {
        let columns = groups[0].blocks.column_states();
        let mut log_weights = vec![0.0];
        if groups.len() > 1 {
            log_weights =
                groups.iter().map(|group| log_sum(group.mixed.log_weights.iter().copied())).collect();
            for (group, weight) in groups.iter_mut().zip(&log_weights) {
                group.mixed.log_weights.iter_mut().for_each(|own| *own -= weight);
            }
        }
        Self { columns, groups, log_weights }
    }

    /// The number of states of every column.
    pub fn states(&self) -> &[usize] {
        &self.columns
    }

    /// The one group, where all components are over the same blocks.
    pub(super) fn single(&self) -> Option<&Group<'a>> {
        match &self.groups[..] {
            [group] => Some(group),
            _ => None,
        }
    }

    /// All components, with the logarithms of their weights.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&Group<'a>, &ComponentInference<'a>, f64)> {
        self.groups.iter().zip(&self.log_weights).flat_map(|(group, weight)| {
            let both = group.mixed.parts.iter().zip(&group.mixed.log_weights);
            both.map(move |(part, own)| (group, part, weight + own))
        })
    }

    /// The natural logarithm of the probability of complete rows; `-inf` where it is impossible.
    pub fn log_p(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        if let Some(group) = self.single() {
            return group.log_p(table);
        }
        let of_groups: Vec<Vec<f64>> =
            self.groups.iter().map(|group| group.log_p(table)).collect::<Result<_, _>>()?;
        let both = |row: usize| of_groups.iter().zip(&self.log_weights).map(move |(logs, w)| logs[row] + w);
        Ok((0..table.rows()).map(|row| log_sum(both(row))).collect())
    }

    fn check(&self, evidence: &Evidence) -> Result<(), InferError> {
        let (found, expected) = (evidence.variables(), self.columns.len());
        match found == expected {
            true => Ok(()),
            false => Err(InferError::Variables { found, expected }),
        }
    }

    /// The posterior of every state of every column given the evidence: by a method, or by what fits.
    pub fn posterior(
        &self,
        evidence: &Evidence,
        method: Option<Method>,
        effort: Effort<'_>,
    ) -> Result<Posterior, InferError> {
        self.check(evidence)?;
        let measure = if method == Some(Method::Importance) { Measure::Row } else { Measure::Posterior };
        let found = self.ask(evidence, effort, &|group, of_blocks, effort| {
            let projection = projection(&group.blocks, &self.columns, evidence);
            let functions = Functions { measure, projection: projection.as_ref() };
            group.mixed.ask(of_blocks, functions, method, effort)
        })?;
        Ok(by_variable(&offsets(&self.columns), found))
    }

    /// The probability of every edge given the evidence, whichever component it is of: between blocks, or between columns where
    /// members have different blocks; see [`Model::edge_variables`] and [`Model::edge_kind`].
    pub fn edges(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<EdgePosterior, InferError> {
        let effort = Effort { targets: &[], ..effort };
        self.check(evidence)?;
        let found = self.ask(evidence, effort, &|group, of_blocks, effort| {
            let mut found = group.mixed.ask(of_blocks, Measure::Edges.into(), None, effort)?;
            if self.groups.len() > 1 {
                if group.mixed.edge_kind() == Kind::Directed {
                    found.forget_directions(group.blocks.blocks().len());
                }
                found.over_columns(&group.blocks);
            }
            Ok(found)
        })?;
        Ok(found.into_edges())
    }

    /// Asks every group, and weighs the answers.
    fn ask(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
        of: &dyn Fn(&Group<'_>, &Evidence, Effort<'_>) -> Result<Expectation, InferError>,
    ) -> Result<Expectation, InferError> {
        if let Some(group) = self.single() {
            return of(group, &of_blocks(&group.blocks, evidence), effort);
        }
        let found = self.each(evidence, effort, &|group, of_blocks, effort| of(group, of_blocks, effort))?;
        let answers = found.into_iter().zip(&self.log_weights);
        Ok(weigh(answers.filter_map(|(found, weight)| Some((*weight, found?))).collect()))
    }

    /// What comes of each group; nothing of those that do not explain the evidence.
    fn each<T>(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
        of: &dyn Fn(&Group<'_>, &Evidence, Effort<'_>) -> Result<T, InferError>,
    ) -> Result<Vec<Option<T>>, InferError> {
        let by_group: Vec<Evidence> =
            self.groups.iter().map(|group| of_blocks(&group.blocks, evidence)).collect();
        let mut pilots = Vec::new();
        for ((group, evidence), weight) in self.groups.iter().zip(&by_group).zip(&self.log_weights) {
            pilots.push(weight + log_sum(group.mixed.pilot(evidence, effort)?.into_iter()));
        }
        let mut refused = InferError::Impossible;
        let mut found = Vec::new();
        for ((group, evidence), own) in self.groups.iter().zip(&by_group).zip(efforts(&pilots, effort)) {
            found.push(match own.map(|own| of(group, evidence, own)) {
                Some(Ok(found)) => Some(found),
                Some(Err(error @ (InferError::Impossible | InferError::Unexplained { .. }))) => {
                    refused = error;
                    None
                }
                Some(Err(error)) => return Err(error),
                None => None,
            });
        }
        match found.iter().any(Option::is_some) {
            true => Ok(found),
            false => Err(refused),
        }
    }

    /// The logarithm of the probability of the evidence, to a tolerance on this logarithm.
    pub fn log_evidence(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<Estimate, InferError> {
        self.check(evidence)?;
        if !(0..self.columns.len()).any(|column| evidence.is_given(column)) {
            return Ok(Estimate { value: 0.0, standard_error: 0.0 });
        }
        match self.single() {
            Some(group) => group.mixed.log_evidence(&of_blocks(&group.blocks, evidence), effort),
            None => {
                let found = self.log_evidences(evidence, effort)?;
                Ok(total(&found.into_iter().flatten().collect::<Vec<_>>()))
            }
        }
    }

    /// What each group gives to the evidence, with its weight.
    fn log_evidences(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Vec<Option<Estimate>>, InferError> {
        // Most groups have an answer without a pilot, which would take longer than the answer.
        let mut soon = Vec::with_capacity(self.groups.len());
        for (number, group) in self.groups.iter().enumerate() {
            let own = Effort { seed: seed_of(effort.seed, number as u64), ..effort };
            match group.mixed.log_evidence_soon(&of_blocks(&group.blocks, evidence), own) {
                Ok(Some(found)) => soon.push(Some(found)),
                Err(InferError::Impossible) => soon.push(None),
                Err(error) => return Err(error),
                Ok(None) => break,
            }
        }
        let found = match soon.len() == self.groups.len() {
            true if soon.iter().all(Option::is_none) => return Err(InferError::Impossible),
            true => soon,
            false => self.each(evidence, effort, &|group, of_blocks, own| {
                // Completions are as exact as this tolerance where it counts little, too.
                group.mixed.log_evidence(of_blocks, Effort { tolerance: effort.tolerance, ..own })
            })?,
        };
        let weighed = |(log, weight): (Option<Estimate>, &f64)| {
            log.map(|log| Estimate { value: log.value + weight, ..log })
        };
        Ok(found.into_iter().zip(&self.log_weights).map(weighed).collect())
    }

    /// Draws `count` rows given the evidence. Without evidence, and where enumeration is cheap, exactly.
    pub fn sample(
        &self,
        evidence: &Evidence,
        count: usize,
        sampling: Sampling,
    ) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
        self.check(evidence)?;
        if let Some(group) = self.single() {
            return group.sample(evidence, count, sampling);
        }
        let weights = if (0..self.columns.len()).any(|column| evidence.is_given(column)) {
            let effort = Effort {
                seed: sampling.seed,
                tolerance: Some(SHARE_ERROR),
                operations: sampling.operations,
                ..Effort::default()
            };
            let found = self.log_evidences(evidence, effort)?;
            let logs: Vec<f64> =
                found.iter().map(|log| log.map_or(f64::NEG_INFINITY, |log| log.value)).collect();
            softmax(&logs)
        } else {
            softmax(&self.log_weights)
        };
        let mut rng = stream(sampling.seed, "members of samples", 0);
        let chosen: Vec<usize> = (0..count).map(|_| choose(&weights, rng.random())).collect();
        let mut drawn = Drawn::Exactly;
        let mut own: Vec<std::vec::IntoIter<Vec<u16>>> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let count = chosen.iter().filter(|&&other| other == number).count();
            let (seed, operations) =
                (seed_of(sampling.seed, number as u64), sampling.operations / self.groups.len() as f64);
            own.push(match count {
                0 => Vec::new().into_iter(),
                _ => {
                    let (rows, how) = group.sample(evidence, count, Sampling { seed, operations })?;
                    drawn = drawn.worse(how);
                    rows.into_iter()
                }
            });
        }
        Ok((chosen.into_iter().filter_map(|number| own[number].next()).collect(), drawn))
    }

    /// The `count` most probable rows that agree with the evidence, the most probable first: proven where every row can be
    /// looked at, else the best that the search has found. Soft evidence weighs in; `log_p` is of the row alone.
    pub fn most_probable(
        &self,
        evidence: &Evidence,
        count: usize,
        search: Search,
    ) -> Result<Vec<MostProbable>, InferError> {
        self.most_probable_with(evidence, count, search, &|_| true)
    }

    /// The same; `go_on` hears what part of the search is done, and says whether to go on. What was found before it said no is
    /// what comes back.
    pub fn most_probable_with(
        &self,
        evidence: &Evidence,
        count: usize,
        search: Search,
        go_on: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Vec<MostProbable>, InferError> {
        self.check(evidence)?;
        let all = self.groups.len() as f64;
        let mut found = (Vec::new(), true);
        if self.groups.len() > 1 && self.enumerable_given(evidence, search.operations) {
            exact::each(self, evidence, &mut |row, log| {
                if log > f64::NEG_INFINITY {
                    found.0.push((row.to_vec(), log));
                }
                if found.0.len() >= ROWS_AT_ONCE.max(4 * count) {
                    keep_best(&mut found.0, count);
                }
            })?;
        } else {
            let mut refused = None;
            for (number, group) in self.groups.iter().enumerate() {
                let go_on = |part: f64| go_on((number as f64 + part) / all);
                let search =
                    Search { budget: search.budget / all, operations: search.operations / all, ..search };
                match group.best_rows(evidence, count, search, &go_on) {
                    Ok((rows, proven)) => {
                        found.1 &= proven && self.groups.len() == 1;
                        found.0.extend(rows.into_iter().map(|row| (row, 0.0)));
                    }
                    Err(InferError::Impossible) => refused = Some(InferError::Impossible),
                    Err(error) => return Err(error),
                }
            }
            if let (true, Some(error)) = (found.0.is_empty(), refused) {
                return Err(error);
            }
        }
        let (mut rows, proven) = found;
        if self.groups.len() > 1 {
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            rows.dedup_by(|a, b| a.0 == b.0);
        }
        let mut best = self.judged(evidence, rows.into_iter().map(|(row, _)| row).collect())?;
        if !proven && self.groups.len() > 1 {
            // What is best for one group may be better for all with another cell here or there.
            best = self.climbed(evidence, best, count.max(1), go_on)?;
        }
        best.truncate(count.max(1));
        if best.is_empty() {
            return Err(InferError::Impossible);
        }
        Ok(best.into_iter().map(|(_, row, log_p)| MostProbable { row, log_p, proven }).collect())
    }

    /// Rows with the logarithms of their probabilities times their likelihoods, and of their probabilities alone, the best first.
    fn judged(
        &self,
        evidence: &Evidence,
        rows: Vec<Vec<u16>>,
    ) -> Result<Vec<(f64, Vec<u16>, f64)>, InferError> {
        let likelihood = |row: &[u16]| -> f64 {
            row.iter().enumerate().map(|(v, &state)| evidence.of(v)[usize::from(state)].ln()).sum()
        };
        let mut table = Table::new(&self.columns);
        rows.iter().for_each(|row| table.push(row));
        let log_p = self.log_p(&table)?;
        let both = rows.into_iter().zip(log_p);
        let mut judged: Vec<_> = both.map(|(row, log_p)| (log_p + likelihood(&row), row, log_p)).collect();
        judged.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(judged)
    }

    /// Rows from which no change of one cell leads to a better one, as far as some rounds go.
    fn climbed(
        &self,
        evidence: &Evidence,
        mut best: Vec<(f64, Vec<u16>, f64)>,
        count: usize,
        go_on: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Vec<(f64, Vec<u16>, f64)>, InferError> {
        const ROUNDS: usize = 16;
        let mut climbed: HashSet<Vec<u16>> = HashSet::new();
        for _ in 0..ROUNDS {
            best.truncate(count);
            let Some(from) = best.iter().map(|(_, row, _)| row).find(|row| !climbed.contains(*row)).cloned()
            else {
                break;
            };
            if !go_on(1.0) {
                break;
            }
            let mut rows = Vec::new();
            for v in 0..from.len() {
                for (state, likelihood) in (0..).zip(evidence.of(v)) {
                    if *likelihood > 0.0 && state != from[v] {
                        let mut row = from.clone();
                        row[v] = state;
                        rows.push(row);
                    }
                }
            }
            let known: HashSet<&Vec<u16>> = best.iter().map(|(_, row, _)| row).collect();
            rows.retain(|row| !known.contains(row));
            best.extend(self.judged(evidence, rows)?);
            best.sort_by(|a, b| b.0.total_cmp(&a.0));
            climbed.insert(from);
        }
        Ok(best)
    }

    /// Can all rows of columns that agree with the evidence be looked at?
    pub(super) fn enumerable_given(&self, evidence: &Evidence, operations: f64) -> bool {
        let parts = self.parts().count() as f64;
        Method::affordable(evidence, operations / parts) == Method::Exact
    }
}

/// The best so many.
fn keep_best(rows: &mut Vec<(Vec<u16>, f64)>, count: usize) {
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows.truncate(count.max(1));
}

/// Of rows of columns.
impl Likelihood for Inference<'_> {
    fn states(&self) -> &[usize] {
        &self.columns
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        let mut table = Table::new(&self.columns);
        let n = self.columns.len();
        for row in 0..out.len() {
            table.push(&(0..n).map(|v| codes.get(row, v) as u16).collect::<Vec<_>>());
        }
        out.copy_from_slice(&Inference::log_p(self, &table)?);
        Ok(())
    }

    fn operations(&self) -> f64 {
        self.groups.iter().map(|group| group.mixed.operations()).sum()
    }
}

impl Group<'_> {
    fn log_p(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let encoded = self.blocks.encode(table);
        let mut log_p = vec![0.0; table.rows()];
        self.mixed.log_p(encoded.codes(), &mut log_p)?;
        for (row, log) in log_p.iter_mut().enumerate() {
            *log += self.blocks.log_share(|block| encoded.get(row, block));
        }
        Ok(log_p)
    }

    fn sample(
        &self,
        evidence: &Evidence,
        count: usize,
        sampling: Sampling,
    ) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
        let (rows, drawn) = self.mixed.sample(&of_blocks(&self.blocks, evidence), count, sampling)?;
        if self.blocks.is_none() {
            return Ok((rows, drawn));
        }
        let mut rng = stream(sampling.seed, "columns of samples", 0);
        let rows = rows.iter().map(|row| a_row(&self.blocks, evidence, row, &mut rng)).collect();
        Ok((rows, drawn))
    }

    /// The best rows of columns, as far as this group knows, and whether that is proven.
    fn best_rows(
        &self,
        evidence: &Evidence,
        count: usize,
        search: Search,
        go_on: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<(Vec<Vec<u16>>, bool), InferError> {
        let of_blocks = for_the_best(&self.blocks, evidence);
        let parts = &self.mixed.parts;
        let search = Search { operations: search.operations / parts.len() as f64, ..search };
        let found = best_rows(&self.mixed, parts, &of_blocks, count, search, go_on)?;
        // A row of blocks may stand for several rows of columns.
        let mut rows = Vec::new();
        for (row, _) in found.rows {
            rows.extend(rows_of_blocks(&self.blocks, evidence, &row, count.max(1)));
        }
        Ok((rows, found.proven))
    }
}
