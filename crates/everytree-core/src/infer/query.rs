//! Posteriors, edges and the log evidence of one mixture of all trees.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::method::{Effort, Method};
use super::policy::{LEAST_SHARE_ALONE, PILOT};
use super::posterior::{EdgePosterior, Expectation, Posterior, by_variable};
use super::question::Question;
use crate::model::{Density, EdgeTables};

/// The posterior of every state of every variable given the evidence.
pub fn posterior<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    method: Method,
    effort: Effort<'_>,
) -> Result<Posterior, InferError> {
    let measure = if method == Method::Importance { Measure::Row } else { Measure::Posterior };
    let question = Question::new(density, evidence, measure.into(), effort)?;
    Ok(by_variable(density.tables().offsets(), question.answer(method)?))
}

/// The method that fits: enumeration where it is cheap; else trees that lean towards the evidence; and where hardly one of
/// those counts, chains.
pub fn posterior_by_what_fits<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<Posterior, InferError> {
    let question = Question::new(density, evidence, Measure::Posterior.into(), effort)?;
    Ok(by_variable(density.tables().offsets(), question.answer_by_what_fits()?))
}

/// The probability of every edge of the tree given the evidence: exact for a complete row and where enumeration is cheap.
pub fn edges<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<EdgePosterior, InferError> {
    let effort = Effort { targets: &[], ..effort };
    let found = Question::new(density, evidence, Measure::Edges.into(), effort)?.answer_by_what_fits()?;
    Ok(found.into_edges())
}

/// The logarithm of the probability of the evidence, to a tolerance on this logarithm.
pub fn log_evidence<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
) -> Result<Estimate, InferError> {
    log_evidence_or(density, evidence, effort, &|| Ok(None))
}

/// The same; before chains are begun, `otherwise` is asked.
pub(super) fn log_evidence_or<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    effort: Effort<'_>,
    otherwise: &dyn Fn() -> Result<Option<Estimate>, InferError>,
) -> Result<Estimate, InferError> {
    let question = Question::new(density, evidence, Measure::Nothing.into(), effort)?;
    if Method::within(density, evidence, effort.operations) == Method::Exact {
        return Ok(question.answer(Method::Exact)?.log_evidence);
    }
    let (proposal, _) = question.lean()?;
    let look = question.go_on(&proposal, PILOT.min(effort.trees));
    if look.effective() >= LEAST_SHARE_ALONE * look.draws() as f64 {
        return Ok(question.carry_on(look, &proposal, effort.trees).log_mean_weight());
    }
    match otherwise()? {
        Some(found) => Ok(found),
        None => question.bridge(&proposal),
    }
}

/// Means of functions by a method, or by what fits.
pub(crate) fn means<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    functions: Functions<'_>,
    method: Option<Method>,
    effort: Effort<'_>,
) -> Result<Expectation, InferError> {
    let question = Question::new(density, evidence, functions, effort)?;
    match method {
        Some(method) => question.answer(method),
        None => question.answer_by_what_fits(),
    }
}
