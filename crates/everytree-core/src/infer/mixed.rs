//! Components over the same blocks, weighed by how well each explains the evidence.
//!
//! Every component is a mixture of trees of its own, or one tree, and answers for itself, by the method that fits it; what the
//! answers together are worth follows from the probability that each component gives to the evidence:
//!
//! ```text
//! P(x | e) = Σ_k ω_k P_k(x | e),   ω_k = π_k P_k(e) / Σ_j π_j P_j(e)
//! ```

use super::InferError;
use super::completions;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::method::{Effort, Method};
use super::posterior::Expectation;
use super::sample::{Drawn, Sampling};
use crate::data::Codes;
use crate::data::Table;
use crate::model::{ComponentInference, Likelihood, ModelError};
use crate::spanning::Kind;
use crate::util::{choose, log_sum, softmax};
use crate::util::{seed_of, stream};
use rand::RngExt;

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

    /// The layout of the edges of all components: with directions where all have them.
    pub(super) fn edge_kind(&self) -> Kind {
        match self.parts.iter().all(|part| part.kind() == Kind::Directed) {
            true => Kind::Directed,
            false => Kind::Undirected,
        }
    }

    /// The logarithm of `π_k P_k(e)` of every component, as far as a pilot tells; `-inf` where nothing explains it.
    pub(super) fn pilot(&self, evidence: &Evidence, effort: Effort<'_>) -> Result<Vec<f64>, InferError> {
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
        Ok(efforts(&self.pilot(evidence, effort)?, effort))
    }

    /// Asks every component, and weighs the answers.
    pub(super) fn ask(
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
                Ok(mut found) => {
                    if functions.measure == Measure::Edges && part.kind() != self.edge_kind() {
                        found.forget_directions(self.states().len());
                    }
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
                        // Of other trees.
                        found.covariances = Vec::new();
                    }
                }
            }
        }
        Ok(weigh(answers))
    }

    pub(super) fn log_evidence(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Estimate, InferError> {
        if let Some(found) = self.log_evidence_soon(evidence, effort)? {
            return Ok(found);
        }
        self.log_evidence_by_trees(evidence, effort)
    }

    /// The same where there is no need for random trees alone: of single trees, and where a few completions say it.
    pub(super) fn log_evidence_soon(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Option<Estimate>, InferError> {
        if !self.parts.iter().any(is_of_all_trees) {
            if let [part] = &self.parts[..] {
                return part.log_evidence(evidence, effort, &|| Ok(None)).map(Some);
            }
            let found = self.log_evidences(evidence, effort)?;
            return Ok(Some(total(&found.into_iter().flatten().collect::<Vec<_>>())));
        }
        match completions_come_first(evidence) {
            true => self.by_completions(evidence, effort),
            false => Ok(None),
        }
    }

    /// The same where completions were tried, if they come first.
    pub(super) fn log_evidence_by_trees(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Estimate, InferError> {
        if let [part] = &self.parts[..] {
            return part.log_evidence(evidence, effort, &|| match completions_come_first(evidence) {
                true => Ok(None),
                false => self.by_completions(evidence, effort),
            });
        }
        let parts = self.log_evidences(evidence, effort)?;
        Ok(total(&parts.into_iter().flatten().collect::<Vec<_>>()))
    }

    fn by_completions(
        &self,
        evidence: &Evidence,
        effort: Effort<'_>,
    ) -> Result<Option<Estimate>, InferError> {
        match (effort.tolerance, self.completions_pay(evidence, effort)) {
            (Some(tolerance), true) if tolerance >= completions::LEAST_TOLERANCE => {
                completions::log_evidence(self, evidence, tolerance, effort.seed)
            }
            _ => Ok(None),
        }
    }

    /// Are there too many completions to look at all of them, and is no tree enough?
    fn completions_pay(&self, evidence: &Evidence, effort: Effort<'_>) -> bool {
        self.parts.iter().any(is_of_all_trees)
            // Stored rows have no tree that could propose completions.
            && !self.parts.iter().any(|part| matches!(part, ComponentInference::Stored(_)))
            && Method::affordable(evidence, effort.operations) != Method::Exact
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

    pub(super) fn sample(
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

fn is_of_all_trees(part: &ComponentInference<'_>) -> bool {
    matches!(part, ComponentInference::AllTrees(_))
}

/// A completion costs as much as many trees where there are many variables.
fn completions_come_first(evidence: &Evidence) -> bool {
    evidence.variables() <= FEW_VARIABLES
}

/// What is left to do for each of several that explain the evidence, given the logarithms of their shares times what each gives to
/// it, as far as a pilot tells: its effort, or none where it does not explain the evidence at all.
pub(super) fn efforts<'e>(logs: &[f64], effort: Effort<'e>) -> Vec<Option<Effort<'e>>> {
    let all = log_sum(logs.iter().copied());
    let weights: Vec<f64> = logs.iter().map(|log| (log - all).exp()).collect();
    let many = weights.iter().filter(|weight| **weight >= SMALL).count().max(1) as f64;
    let one = |(k, weight): (usize, &f64)| {
        if all > f64::NEG_INFINITY && *weight == 0.0 {
            return None;
        }
        let (seed, operations) = (seed_of(effort.seed, k as u64), effort.operations / logs.len() as f64);
        let own = Effort { seed, operations, ..effort };
        Some(if *weight < SMALL {
            Effort { trees: effort.trees.min(SHORT), tolerance: None, ..own }
        } else {
            // Errors add up as squares, each with its weight.
            let tolerance = effort.tolerance.map(|most| most / (weight * many.sqrt()).min(1.0));
            Effort { tolerance, ..own }
        })
    };
    weights.iter().enumerate().map(one).collect()
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
pub(super) fn weigh(answers: Vec<(f64, Expectation)>) -> Expectation {
    let (logs, weights) = (logs_of(&answers), weights_of(&answers));
    let log_evidence = total(&logs);
    let functions = answers[0].1.means.len();
    let covariance_of = |found: &Expectation, i: usize| found.covariances.get(i).copied().unwrap_or(0.0);
    // A mean moves with its own error and with that of its weight, which the same trees may have said.
    let (mut means, mut covariances) = (Vec::with_capacity(functions), Vec::with_capacity(functions));
    for i in 0..functions {
        let value: f64 =
            answers.iter().zip(&weights).map(|((_, found), weight)| weight * found.means[i].value).sum();
        let (mut square, mut covariance) = (0.0, 0.0);
        for (((_, found), weight), log) in answers.iter().zip(&weights).zip(&logs) {
            let (off, both) = (found.means[i].value - value, covariance_of(found, i));
            let (own, share) = (found.means[i].standard_error.powi(2), log.standard_error.powi(2));
            square += weight * weight * (own + off * off * share + 2.0 * off * both).max(0.0);
            covariance += weight * weight * (both + off * share);
        }
        means.push(Estimate { value, standard_error: square.sqrt() });
        covariances.push(covariance);
    }
    let worth: f64 =
        answers.iter().zip(&weights).map(|((_, found), weight)| weight * weight / found.effective).sum();
    // The method that had to be taken for whatever counts.
    let counting =
        answers.iter().zip(&weights).filter(|(_, weight)| **weight >= SMALL).map(|((_, found), _)| found);
    let method = counting.clone().map(|found| found.method).max_by_key(|method| *method as usize);
    Expectation {
        method: method.unwrap_or(answers[0].1.method),
        means,
        covariances,
        log_evidence,
        effective: if worth > 0.0 { 1.0 / worth } else { f64::INFINITY },
        trees: answers.iter().map(|(_, found)| found.trees).sum(),
        r_hat: counting.filter_map(|found| found.r_hat).reduce(f64::max),
    }
}
