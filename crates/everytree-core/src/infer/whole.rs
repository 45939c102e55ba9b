//! Questions to a whole model: components weighed by how well each explains the evidence, blocks taken apart into columns.
//!
//! Every component is a mixture of trees of its own, and answers for itself, by the method that fits it; what the answers
//! together are worth follows from the probability that each component gives to the evidence:
//!
//! ```text
//! P(x | e) = Σ_k ω_k P_k(x | e),   ω_k = π_k P_k(e) / Σ_j π_j P_j(e)
//! ```

use super::InferError;
use super::columns::{a_row, best_rows as rows_of_blocks, for_the_best, of_blocks, projection};
use super::completions;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::method::{Effort, Method};
use super::most_probable::{MostProbable, Search, best_rows};
use super::posterior::{EdgePosterior, Expectation, Posterior, by_variable};
use super::sample::{Drawn, Sampling};
use crate::blocks::Blocks;
use crate::data::Codes;
use crate::data::Table;
use crate::model::{ComponentInference, Density, Likelihood, Model, ModelError};
use crate::spanning::Kind;
use crate::util::offsets;
use crate::util::{choose, log_sum, softmax};
use crate::util::{seed_of, stream};
use rand::RngExt;

/// A model made ready to be asked about its columns.
pub struct Inference<'a> {
    pub(super) blocks: Blocks,
    /// The number of states of every column.
    pub(super) columns: Vec<usize>,
    pub(super) mixed: Mixed<'a>,
}

/// Densities over blocks, mixed.
pub(super) struct Mixed<'a> {
    pub parts: Vec<ComponentInference<'a>>,
    /// Logarithms of shares that add up to 1.
    pub log_weights: Vec<f64>,
}

/// Components with less of the posterior than this, as far as a pilot tells, are asked in short only.
const SMALL: f64 = 1e-4;
/// Trees of a short question.
const SHORT: usize = 1024;
/// Up to so many variables, completions are tried before trees alone.
const FEW_VARIABLES: usize = 32;
/// Shares of components among samples are found to this error of their logarithms.
const SHARE_ERROR: f64 = 0.02;

impl Likelihood for Mixed<'_> {
    fn states(&self) -> &[usize] {
        self.parts[0].states()
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        if let [part] = &self.parts[..] {
            return part.log_p(codes, out);
        }
        let rows = out.len();
        let all = self.log_p_of_parts(codes, rows)?;
        for (row, log) in out.iter_mut().enumerate() {
            let parts = all.iter().skip(row).step_by(rows);
            *log = log_sum(parts.zip(&self.log_weights).map(|(log, share)| log + share));
        }
        Ok(())
    }

    fn operations(&self) -> f64 {
        self.parts.iter().map(Likelihood::operations).sum()
    }

    fn responsibilities(&self, row: &[u16]) -> Result<Vec<f64>, ModelError> {
        let mut table = Table::new(self.states());
        table.push(row);
        let one = |(part, weight): (&ComponentInference<'_>, &f64)| {
            let mut log = [0.0];
            part.log_p(table.codes(), &mut log).map(|()| log[0] + weight)
        };
        let logs: Result<Vec<f64>, _> = self.parts.iter().zip(&self.log_weights).map(one).collect();
        Ok(softmax(&logs?))
    }
}

impl Model {
    /// Everything that questions need, computed once.
    pub fn inference(&self) -> Result<Inference<'_>, ModelError> {
        let parts: Result<Vec<_>, _> =
            self.mixture().components().iter().map(|component| component.inference()).collect();
        Ok(Inference::of(self.blocks().clone(), parts?, &self.mixture().mixing_weights()))
    }
}

impl<'a> Inference<'a> {
    /// Densities over blocks of columns, with shares that add up to 1.
    ///
    /// # Panics
    /// When there is not one share for each, or they are about other blocks.
    pub fn new(blocks: Blocks, parts: Vec<Box<dyn Density + 'a>>, shares: &[f64]) -> Self {
        Self::of(blocks, parts.into_iter().map(ComponentInference::AllTrees).collect(), shares)
    }

    fn of(blocks: Blocks, parts: Vec<ComponentInference<'a>>, shares: &[f64]) -> Self {
        assert_eq!(parts.len(), shares.len(), "one share for each");
        assert!(parts.iter().all(|part| part.states() == blocks.states()), "of these blocks");
        let log_weights = shares.iter().map(|share| share.ln()).collect();
        Self { columns: blocks.column_states(), blocks, mixed: Mixed { parts, log_weights } }
    }

    /// The number of states of every column.
    pub fn states(&self) -> &[usize] {
        &self.columns
    }

    /// Which columns are taken together.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Which trees are mixed.
    pub fn kind(&self) -> Kind {
        self.mixed.parts[0].kind()
    }

    /// The natural logarithm of the probability of complete rows; `-inf` where it is impossible.
    pub fn log_p(&self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let encoded = self.blocks.encode(table);
        let mut log_p = vec![0.0; table.rows()];
        self.mixed.log_p(encoded.codes(), &mut log_p)?;
        for (row, log) in log_p.iter_mut().enumerate() {
            *log += self.blocks.log_share(|block| encoded.get(row, block));
        }
        Ok(log_p)
    }

    fn check(&self, evidence: &Evidence) -> Result<Evidence, InferError> {
        let (found, expected) = (evidence.variables(), self.columns.len());
        if found != expected {
            return Err(InferError::Variables { found, expected });
        }
        Ok(of_blocks(&self.blocks, evidence))
    }

    /// The posterior of every state of every column given the evidence: by a method, or by what fits.
    pub fn posterior(
        &self,
        evidence: &Evidence,
        method: Option<Method>,
        effort: Effort<'_>,
    ) -> Result<Posterior, InferError> {
        let of_blocks = self.check(evidence)?;
        let projection = projection(&self.blocks, &self.columns, evidence);
        let measure = if method == Some(Method::Importance) { Measure::Row } else { Measure::Posterior };
        let functions = Functions { measure, projection: projection.as_ref() };
        let found = self.mixed.ask(&of_blocks, functions, method, effort)?;
        Ok(match &projection {
            Some(projection) => by_variable(&projection.offsets, found),
            None => by_variable(&offsets(&self.columns), found),
        })
    }

    /// The probability of every edge between blocks given the evidence, whichever component it is of.
    pub fn edges(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<EdgePosterior, InferError> {
        let effort = Effort { targets: &[], ..effort };
        let of_blocks = self.check(evidence)?;
        Ok(self.mixed.ask(&of_blocks, Measure::Edges.into(), None, effort)?.into_edges())
    }

    /// The logarithm of the probability of the evidence, to a tolerance on this logarithm.
    pub fn log_evidence(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let of_blocks = self.check(evidence)?;
        if !(0..self.columns.len()).any(|column| evidence.is_given(column)) {
            return Ok(Estimate { value: 0.0, standard_error: 0.0 });
        }
        self.mixed.log_evidence(&of_blocks, effort)
    }

    /// Draws `count` rows given the evidence. Without evidence, and where enumeration is cheap, exactly.
    pub fn sample(
        &self,
        evidence: &Evidence,
        count: usize,
        sampling: Sampling,
    ) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
        let of_blocks = self.check(evidence)?;
        let (rows, drawn) = self.mixed.sample(&of_blocks, count, sampling)?;
        if self.blocks.is_none() {
            return Ok((rows, drawn));
        }
        let mut rng = stream(sampling.seed, "columns of samples", 0);
        let rows = rows.iter().map(|row| a_row(&self.blocks, evidence, row, &mut rng)).collect();
        Ok((rows, drawn))
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
        let of_blocks = for_the_best(&self.blocks, evidence);
        let parts = &self.mixed.parts;
        let search = Search { operations: search.operations / parts.len() as f64, ..search };
        let found = best_rows(&self.mixed, parts, &of_blocks, count, search, go_on)?;
        // A row of blocks may stand for several rows of columns.
        let mut table = Table::new(&self.columns);
        let mut rows = Vec::new();
        for (row, _) in found.rows {
            for row in rows_of_blocks(&self.blocks, evidence, &row, count.max(1)) {
                table.push(&row);
                rows.push(row);
            }
        }
        let likelihood = |row: &[u16]| -> f64 {
            row.iter().enumerate().map(|(v, &state)| evidence.of(v)[usize::from(state)].ln()).sum()
        };
        let log_p = self.log_p(&table)?;
        let mut best: Vec<(f64, MostProbable)> = rows
            .into_iter()
            .zip(log_p)
            .map(|(row, log_p)| (log_p + likelihood(&row), MostProbable { row, log_p, proven: found.proven }))
            .collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        best.truncate(count.max(1));
        Ok(best.into_iter().map(|(_, row)| row).collect())
    }
}

impl Mixed<'_> {
    /// The logarithm of `P_k(x)` of every component k and row x, one component after the other.
    pub(super) fn log_p_of_parts(&self, codes: Codes<'_>, rows: usize) -> Result<Vec<f64>, ModelError> {
        let mut all = vec![0.0; rows * self.parts.len()];
        for (part, logs) in self.parts.iter().zip(all.chunks_exact_mut(rows.max(1))) {
            part.log_p(codes, logs)?;
        }
        Ok(all)
    }

    /// How much each component has to do with a row, from the logarithms of its `P_k(x)`.
    pub(super) fn responsibilities_of(&self, logs: impl Iterator<Item = f64>) -> Vec<f64> {
        softmax(&logs.zip(&self.log_weights).map(|(log, share)| log + share).collect::<Vec<_>>())
    }

    /// The logarithm of `π_k P_k(e)` of every component, as far as a pilot tells; `-inf` where nothing explains it.
    fn pilot(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<Vec<f64>, InferError> {
        let operations = effort.operations / self.parts.len() as f64;
        let one = |(k, part): (usize, &ComponentInference<'_>)| {
            part.pilot(evidence, operations, seed_of(effort.seed, k as u64))
        };
        let logs: Result<Vec<f64>, _> = self.parts.iter().enumerate().map(one).collect();
        Ok(logs?.into_iter().zip(&self.log_weights).map(|(log, share)| log + share).collect())
    }

    /// What is left to do for each component: its effort, or none where it does not explain the evidence at all.
    fn efforts<'e>(
        &self,
        evidence: &Evidence,
        effort: Effort<'e>,
    ) -> Result<Vec<Option<Effort<'e>>>, InferError> {
        let logs = self.pilot(evidence, effort)?;
        let all = log_sum(logs.iter().copied());
        let weights: Vec<f64> = logs.iter().map(|log| (log - all).exp()).collect();
        let many = weights.iter().filter(|weight| **weight >= SMALL).count().max(1) as f64;
        let one = |(k, weight): (usize, &f64)| {
            if all > f64::NEG_INFINITY && *weight == 0.0 {
                return None;
            }
            let (seed, operations) =
                (seed_of(effort.seed, k as u64), effort.operations / self.parts.len() as f64);
            let own = Effort { seed, operations, ..effort };
            Some(if *weight < SMALL {
                Effort { trees: effort.trees.min(SHORT), tolerance: None, ..own }
            } else {
                // Errors of components add up as squares, each with its weight.
                let tolerance = effort.tolerance.map(|most| most / (weight * many.sqrt()).min(1.0));
                Effort { tolerance, ..own }
            })
        };
        Ok(weights.iter().enumerate().map(one).collect())
    }

    /// Asks every component, and weighs the answers.
    fn ask(
        &self,
        evidence: &Evidence,
        functions: Functions<'_>,
        method: Option<Method>,
        effort: Effort<'_>,
    ) -> Result<Expectation, InferError> {
        if let [part] = &self.parts[..] {
            return part.means(evidence, functions, method, effort);
        }
        let mut answers: Vec<(f64, Expectation)> = Vec::new();
        let mut inference: Vec<(&ComponentInference<'_>, Effort<'_>)> = Vec::new();
        let mut refused = InferError::Impossible;
        for ((part, share), own) in
            self.parts.iter().zip(&self.log_weights).zip(self.efforts(evidence, effort)?)
        {
            let Some(own) = own else { continue };
            match part.means(evidence, functions, method, own) {
                Ok(found) => {
                    answers.push((*share, found));
                    inference.push((part, own));
                }
                Err(error @ (InferError::Impossible | InferError::Unexplained { .. })) => refused = error,
                Err(error) => return Err(error),
            }
        }
        if answers.is_empty() {
            return Err(refused);
        }
        // Where components differ, what each gives to the evidence counts as much as what it answers.
        if let Some(tolerance) = effort.tolerance {
            let weights = weights_of(&answers);
            for (((_, found), weight), (part, own)) in answers.iter_mut().zip(weights).zip(inference) {
                if weight * (1.0 - weight) * found.log_evidence.standard_error > tolerance {
                    let own = Effort { tolerance: Some(tolerance / (weight * (1.0 - weight))), ..own };
                    // One that could answer before keeps what it had if it cannot now.
                    if let Ok(better) = part.log_evidence(evidence, own, &|| Ok(None)) {
                        found.log_evidence = better;
                    }
                }
            }
        }
        Ok(weigh(answers))
    }

    fn log_evidence(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<Estimate, InferError> {
        let by_completions = || match (effort.tolerance, self.completions_pay(evidence, effort)) {
            (Some(tolerance), true) if tolerance >= completions::LEAST_TOLERANCE => {
                completions::log_evidence(self, evidence, tolerance, effort.seed)
            }
            _ => Ok(None),
        };
        // A completion costs as much as many trees where there are many variables.
        let many = evidence.variables() > FEW_VARIABLES;
        if !many && let Some(found) = by_completions()? {
            return Ok(found);
        }
        if let [part] = &self.parts[..] {
            let by_completions: &dyn Fn() -> _ = if many { &by_completions } else { &|| Ok(None) };
            return part.log_evidence(evidence, effort, by_completions);
        }
        let parts = self.log_evidences(evidence, effort)?;
        Ok(total(&parts.into_iter().flatten().collect::<Vec<_>>()))
    }

    /// Are there too many completions to look at all of them, and is no tree enough?
    fn completions_pay(&self, evidence: &Evidence, effort: Effort<'_>) -> bool {
        let all_trees = |part: &ComponentInference<'_>| matches!(part, ComponentInference::AllTrees(_));
        self.parts.iter().any(all_trees) && Method::affordable(evidence, effort.operations) != Method::Exact
    }

    /// `log π_k P_k(e)` of every component; none of those that do not explain the evidence.
    fn log_evidences(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Vec<Option<Estimate>>, InferError> {
        let mut refused = InferError::Impossible;
        let mut found = Vec::new();
        for ((part, share), own) in
            self.parts.iter().zip(&self.log_weights).zip(self.efforts(evidence, effort)?)
        {
            found.push(match own.map(|own| part.log_evidence(evidence, own, &|| Ok(None))) {
                Some(Ok(log)) => Some(Estimate { value: log.value + share, ..log }),
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

    fn sample(
        &self,
        evidence: &Evidence,
        count: usize,
        sampling: Sampling,
    ) -> Result<(Vec<Vec<u16>>, Drawn), InferError> {
        if let [part] = &self.parts[..] {
            return part.sample(evidence, count, sampling);
        }
        let given = (0..evidence.variables()).any(|v| evidence.is_given(v));
        let logs: Vec<f64> = if given {
            let effort = Effort {
                seed: sampling.seed,
                tolerance: Some(SHARE_ERROR),
                operations: sampling.operations,
                ..Effort::default()
            };
            let parts = self.log_evidences(evidence, effort)?;
            parts.iter().map(|part| part.map_or(f64::NEG_INFINITY, |log| log.value)).collect()
        } else {
            self.log_weights.clone()
        };
        let weights = softmax(&logs);
        let mut rng = stream(sampling.seed, "components of samples", 0);
        let chosen: Vec<usize> = (0..count).map(|_| choose(&weights, rng.random())).collect();
        let mut drawn = Drawn::Exactly;
        let mut own: Vec<std::vec::IntoIter<Vec<u16>>> = Vec::new();
        for (k, part) in self.parts.iter().enumerate() {
            let count = chosen.iter().filter(|&&other| other == k).count();
            if count == 0 {
                own.push(Vec::new().into_iter());
                continue;
            }
            let (seed, operations) =
                (seed_of(sampling.seed, k as u64), sampling.operations / self.parts.len() as f64);
            let (rows, how) = part.sample(evidence, count, Sampling { seed, operations })?;
            drawn = drawn.worse(how);
            own.push(rows.into_iter());
        }
        let rows = chosen.into_iter().filter_map(|k| own[k].next()).collect();
        Ok((rows, drawn))
    }
}

/// The logarithm of a sum of which the logarithms of the terms are known.
pub(super) fn total(parts: &[Estimate]) -> Estimate {
    let value = log_sum(parts.iter().map(|part| part.value));
    let square = |part: &Estimate| ((part.value - value).exp() * part.standard_error).powi(2);
    Estimate { value, standard_error: parts.iter().map(square).sum::<f64>().sqrt() }
}

/// `log π_k P_k(e)` of components that have answered.
fn logs_of(answers: &[(f64, Expectation)]) -> Vec<Estimate> {
    let log = |(share, found): &(f64, Expectation)| Estimate {
        value: found.log_evidence.value + share,
        ..found.log_evidence
    };
    answers.iter().map(log).collect()
}

/// How much the answer of each component counts.
fn weights_of(answers: &[(f64, Expectation)]) -> Vec<f64> {
    let logs = logs_of(answers);
    let all = total(&logs).value;
    logs.iter().map(|log| (log.value - all).exp()).collect()
}

/// The answers of components together, by the delta method.
fn weigh(answers: Vec<(f64, Expectation)>) -> Expectation {
    let (logs, weights) = (logs_of(&answers), weights_of(&answers));
    let log_evidence = total(&logs);
    let functions = answers[0].1.means.len();
    let means = (0..functions)
        .map(|i| {
            let value: f64 =
                answers.iter().zip(&weights).map(|((_, found), weight)| weight * found.means[i].value).sum();
            let square = |(((_, found), weight), log): ((&(f64, Expectation), &f64), &Estimate)| {
                let own = weight * found.means[i].standard_error;
                let share = weight * (found.means[i].value - value) * log.standard_error;
                own * own + share * share
            };
            let squares: f64 = answers.iter().zip(&weights).zip(&logs).map(square).sum();
            Estimate { value, standard_error: squares.sqrt() }
        })
        .collect();
    let worth: f64 =
        answers.iter().zip(&weights).map(|((_, found), weight)| weight * weight / found.effective).sum();
    // The method that had to be taken for whatever counts.
    let counting =
        answers.iter().zip(&weights).filter(|(_, weight)| **weight >= SMALL).map(|((_, found), _)| found);
    let method = counting.clone().map(|found| found.method).max_by_key(|method| *method as usize);
    Expectation {
        method: method.unwrap_or(answers[0].1.method),
        means,
        log_evidence,
        effective: if worth > 0.0 { 1.0 / worth } else { f64::INFINITY },
        trees: answers.iter().map(|(_, found)| found.trees).sum(),
        r_hat: counting.filter_map(|found| found.r_hat).reduce(f64::max),
    }
}
