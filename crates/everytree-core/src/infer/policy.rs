//! The method that fits: enumeration where it is cheap; else trees that lean towards the evidence; and where hardly one
//! of those counts, MCMC.

use super::InferError;
use super::estimate::Sums;
use super::importance::draw;
use super::measure::Measure;
use super::method::Method;
use super::posterior::Expectation;
use super::proposal::Proposal;
use super::question::Question;
use crate::model::{Density, EdgeTables};

/// Trees of the first round of the tilted proposal, and of the first look at the error.
const FIRST: usize = 256;
/// Of the trees, so many must count: a step of a chain costs more, but all of them count to a tenth or so.
const LEAST_SHARE: f64 = 0.05;
/// So many where their mean weight alone is to be trusted: means of few large weights among many small ones come out low,
/// and do not know it.
pub(super) const LEAST_SHARE_ALONE: f64 = 0.2;
/// Trees after which that is looked at.
pub(super) const PILOT: usize = 16 * FIRST;

impl<D: Density + ?Sized> Question<'_, D> {
    /// Trees as long as enough of them count; else chains, if they do better.
    pub(super) fn answer_by_what_fits(&self) -> Result<Expectation, InferError> {
        // Edges are computed row by row.
        let most = self.effort.operations * if self.functions.measure == Measure::Edges { 0.1 } else { 1.0 };
        if Method::within(self.density, self.evidence, most) == Method::Exact {
            return self.answer(Method::Exact);
        }
        let (proposal, look) = self.lean()?;
        let look = match look {
            Some(look) => look,
            None => self.go_on(&proposal, PILOT.min(self.effort.trees)),
        };
        // Of few trees that count, not even their error can be believed. Some evidence shows only late how few they are.
        let few = |sums: &Sums| sums.effective() < LEAST_SHARE * sums.draws() as f64;
        if few(&look) {
            return self.chains(Method::BlockGibbs);
        }
        let sums = self.carry_on(look, &proposal, self.effort.trees);
        if few(&sums) {
            return self.chains(Method::BlockGibbs);
        }
        let alone = sums.effective() >= LEAST_SHARE_ALONE * sums.draws() as f64;
        let mut found = self.found(Method::Tilted, sums)?;
        if !alone {
            found.log_evidence = self.short_bridge(&proposal)?;
        }
        Ok(found)
    }

    /// A first round with the edges between observed variables tilted; then half of the trees with all edges tilted by what
    /// the first found. Gives back the proposal, and the first round where it is enough.
    pub(super) fn lean(&self) -> Result<(Proposal, Option<Sums>), InferError> {
        let Self { density, evidence, functions, effort, .. } = *self;
        let first = Proposal::tilted(density, evidence)?;
        let trees = (effort.seed, "first trees");
        let look = draw(density, evidence, &first, Measure::Posterior.into(), trees, 0..FIRST);
        if look.effective() == 0.0 {
            return Err(InferError::Unexplained { trees: FIRST });
        }
        let alike = look.effective() >= LEAST_SHARE_ALONE * look.draws() as f64;
        let the_same = functions.measure == Measure::Posterior && functions.projection.is_none();
        if the_same && alike && self.good_enough(&look) {
            return Ok((first, Some(look)));
        }
        let offsets = density.tables().offsets();
        let belief = |v: usize| Some((offsets[v]..offsets[v + 1]).map(|i| look.mean(i).value).collect());
        let beliefs: Vec<Option<Vec<f64>>> = (0..density.states().len()).map(belief).collect();
        Ok((first.and(Proposal::towards(density, evidence, &beliefs)?), None))
    }

    /// Draws until so many trees are drawn or the error is small enough, twice as many each time.
    pub(super) fn go_on(&self, proposal: &Proposal, trees: usize) -> Sums {
        let first = self.trees(proposal, 0..FIRST.min(trees.max(1)));
        self.carry_on(first, proposal, trees)
    }

    pub(super) fn carry_on(&self, mut sums: Sums, proposal: &Proposal, trees: usize) -> Sums {
        while sums.draws() < trees && !self.good_enough(&sums) {
            let done = sums.draws();
            sums.merge(&self.trees(proposal, done..(2 * done).min(trees)));
        }
        sums
    }

    pub(super) fn good_enough(&self, sums: &Sums) -> bool {
        // A handful of heavy draws knows nothing of its own error.
        const LEAST_EFFECTIVE: f64 = 100.0;
        let error = || match self.functions.measure {
            Measure::Nothing => sums.log_mean_weight().standard_error,
            _ => {
                let errors = self.wanted.iter().cloned().flatten().map(|i| sums.mean(i).standard_error);
                errors.fold(0.0, f64::max)
            }
        };
        self.effort
            .tolerance
            .is_some_and(|tolerance| sums.effective() >= LEAST_EFFECTIVE && error() <= tolerance)
    }
}
