//! A question to a mixture of all trees: means of functions of the row or the tree, by one method.

use super::estimate::{Estimate, Sums};
use super::evidence::Evidence;
use super::importance::draw;
use super::measure::{Functions, Measure};
use super::method::{Effort, Method};
use super::posterior::Expectation;
use super::proposal::Proposal;
use super::{InferError, exact};
use crate::model::{Density, EdgeTables};

/// Rows that are enumerated when that is asked for.
const MOST_ROWS: u64 = 1 << 26;

/// What is inference, of whom, and how exactly.
pub(super) struct Question<'a, D: ?Sized> {
    pub density: &'a D,
    pub evidence: &'a Evidence,
    pub functions: Functions<'a>,
    pub effort: Effort<'a>,
    /// Places of the functions whose errors matter.
    pub wanted: Vec<std::ops::Range<usize>>,
}

impl<'a, D: Density + ?Sized> Question<'a, D> {
    pub(super) fn new(
        density: &'a D,
        evidence: &'a Evidence,
        functions: Functions<'a>,
        effort: Effort<'a>,
    ) -> Result<Self, InferError> {
        let n = density.states().len();
        if evidence.variables() != n {
            return Err(InferError::Variables { found: evidence.variables(), expected: n });
        }
        let offsets = match functions.projection {
            Some(projection) => &projection.offsets,
            None => density.tables().offsets(),
        };
        let wanted = if effort.targets.is_empty() {
            std::iter::once(0..functions.count(density)).collect()
        } else {
            effort.targets.iter().map(|&v| offsets[v]..offsets[v + 1]).collect()
        };
        Ok(Self { density, evidence, functions, effort, wanted })
    }

    pub(super) fn answer(&self, method: Method) -> Result<Expectation, InferError> {
        let Self { density, evidence, functions, effort, .. } = self;
        let sums = match method {
            Method::Exact => {
                let rows = exact::rows(evidence);
                if rows.is_none_or(|rows| rows > MOST_ROWS) {
                    return Err(InferError::TooManyRows { rows, most: MOST_ROWS });
                }
                let (means, log_evidence) = match functions.measure {
                    Measure::Edges => exact::edges(*density, evidence)?,
                    Measure::Nothing => (Vec::new(), exact::log_evidence(*density, evidence)?),
                    Measure::Row | Measure::Posterior => {
                        let (means, log) = exact::posterior(*density, evidence)?;
                        (functions.projection.map_or(means.clone(), |projection| projection.of(&means)), log)
                    }
                };
                if log_evidence == f64::NEG_INFINITY {
                    return Err(InferError::Impossible);
                }
                let sure = |value: f64| Estimate { value, standard_error: 0.0 };
                return Ok(Expectation {
                    method,
                    means: means.into_iter().map(sure).collect(),
                    covariances: Vec::new(),
                    log_evidence: sure(log_evidence),
                    effective: f64::INFINITY,
                    trees: 0,
                    r_hat: None,
                });
            }
            Method::Importance | Method::Collapsed => self.go_on(&Proposal::prior(*density)?, effort.trees),
            Method::Tilted => {
                let (proposal, look) = self.lean()?;
                match look {
                    Some(look) => look,
                    None => self.go_on(&proposal, effort.trees),
                }
            }
            Method::Gibbs | Method::BlockGibbs => return self.chains(method),
        };
        self.found(method, sums)
    }

    pub(super) fn found(&self, method: Method, sums: Sums) -> Result<Expectation, InferError> {
        if sums.effective() == 0.0 {
            return Err(InferError::Unexplained { trees: sums.draws() });
        }
        Ok(Expectation {
            method,
            means: (0..sums.functions()).map(|i| self.at_least(sums.mean(i), sums.effective())).collect(),
            covariances: (0..sums.functions()).map(|i| sums.covariance(i)).collect(),
            log_evidence: sums.log_mean_weight(),
            effective: sums.effective(),
            trees: sums.draws(),
            r_hat: None,
        })
    }

    pub(super) fn trees(&self, proposal: &Proposal, trees: std::ops::Range<usize>) -> Sums {
        draw(self.density, self.evidence, proposal, self.functions, (self.effort.seed, "trees"), trees)
    }

    /// The largest error that matters.
    pub(super) fn worst(&self, means: &[Estimate]) -> f64 {
        let errors = self.wanted.iter().cloned().flatten().map(|i| means[i].standard_error);
        errors.fold(0.0, f64::max)
    }

    /// Of what is drawn, not computed, a thing that never (or always) came is not certain for it.
    pub(super) fn at_least(&self, mean: Estimate, effective: f64) -> Estimate {
        match self.functions.measure {
            Measure::Row | Measure::Edges => floored(mean, effective),
            Measure::Posterior | Measure::Nothing => mean,
        }
    }
}

/// An error of no less than one draw among so many.
pub(super) fn floored(mean: Estimate, effective: f64) -> Estimate {
    Estimate { standard_error: mean.standard_error.max(1.0 / (effective + 1.0)), ..mean }
}
