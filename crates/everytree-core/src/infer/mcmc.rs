//! Chains that go on until they have converged, and the evidence from a bridge to them.

use super::chains::CHAINS;
use super::estimate::Estimate;
use super::method::{Effort, Method};
use super::posterior::Expectation;
use super::proposal::Proposal;
use super::question::{Question, floored};
use super::{InferError, block_gibbs, bridge, gibbs};
use crate::model::Density;

/// Steps of a chain at first.
const STEPS: usize = 64;

impl<D: Density + ?Sized> Question<'_, D> {
    /// The probability of the evidence from longer and longer chains, until its error is small enough.
    pub(super) fn bridge(&self, proposal: &Proposal) -> Result<Estimate, InferError> {
        let mut length = Longer::new(self.effort);
        loop {
            let found =
                bridge::log_evidence(self.density, self.evidence, proposal, length.steps, self.effort.seed)?;
            if !length.grow(found.standard_error, true) {
                return Ok(found);
            }
        }
    }

    /// The probability of the evidence as a side remark: it is not what the tolerance is about.
    pub(super) fn short_bridge(&self, proposal: &Proposal) -> Result<Estimate, InferError> {
        let steps = Longer::new(self.effort).most.min(2 * STEPS);
        bridge::log_evidence(self.density, self.evidence, proposal, steps, self.effort.seed)
    }

    /// Chains, longer and longer until the error is small enough; the probability of the evidence, which chains do not
    /// tell, comes from a bridge to them.
    pub(super) fn chains(&self, method: Method) -> Result<Expectation, InferError> {
        /// Chains whose halves differ by more than this have not mixed.
        const MOST_R_HAT: f64 = 1.1;
        let Self { density, evidence, functions, effort, .. } = *self;
        let mut length = Longer::new(effort);
        let found = loop {
            let found = match method {
                Method::Gibbs => gibbs::run(density, evidence, functions, length.steps, effort.seed)?,
                _ => block_gibbs::run(density, evidence, functions, length.steps, effort.seed)?,
            };
            length.allow_for(found.long, density.states().len());
            if !length.grow(self.worst(&found.estimates), found.r_hat <= MOST_R_HAT) {
                break found;
            }
        };
        let log_evidence = self.short_bridge(&Proposal::tilted(density, evidence)?)?;
        let drawn_one_by_one = method == Method::Gibbs;
        let floor = |mean: Estimate| match drawn_one_by_one {
            true => floored(mean, found.effective),
            false => self.at_least(mean, found.effective),
        };
        Ok(Expectation {
            method,
            means: found.estimates.iter().map(|mean| floor(*mean)).collect(),
            // The evidence comes from other trees.
            covariances: Vec::new(),
            log_evidence,
            effective: found.effective,
            trees: found.steps,
            r_hat: Some(found.r_hat),
        })
    }
}

/// How long chains are, and how much longer they must be.
struct Longer {
    steps: usize,
    most: usize,
    /// Of steps that cost what they should.
    allowed: usize,
    tolerance: Option<f64>,
}

impl Longer {
    fn new(effort: Effort<'_>) -> Self {
        // Halves need some steps to tell anything.
        let most = (effort.trees / CHAINS).max(16);
        let steps = if effort.tolerance.is_some() { STEPS.min(most) } else { most };
        Self { steps, most, allowed: most, tolerance: effort.tolerance }
    }

    /// Steps that take an elimination cost as much as n/8 others; where there are many of them, fewer steps must do.
    fn allow_for(&mut self, long: f64, n: usize) {
        let most = self.allowed as f64 / (1.0 + long * n as f64 / 8.0);
        self.most = (most as usize).max(self.steps);
    }

    /// Goes on to a length at which the error should be small enough, if there is one to go on to.
    fn grow(&mut self, error: f64, mixed: bool) -> bool {
        let Some(tolerance) = self.tolerance else { return false };
        if (error <= tolerance && mixed) || self.steps >= self.most {
            return false;
        }
        let wanted = self.steps as f64 * 1.2 * (error / tolerance).powi(2);
        self.steps = (wanted as usize).max(2 * self.steps).min(self.most);
        true
    }
}
