//! What learning needs of a distribution.

use super::{ModelError, ParamsView, Regularisation, UnseenStates};
use crate::data::Codes;
use crate::forest::Backend;

/// A distribution over rows whose parameters are unbounded numbers; what was made ready does not see a change of them.
///
/// The walk of a batch: [`Learnable::ready`] whenever the parameters have changed, [`Learnable::log_likelihood`] of the
/// rows, [`Learnable::accumulate`] what they say with a weight each, [`Learnable::gradient`] from that.
pub trait Learnable: ParamsView + Clone + Send + Sync {
    /// What is computed once per change of the parameters, for one backend.
    type Ready<B: Backend>: Send + Sync;
    /// What is added up over rows.
    type Stats: ParamsView + Send + Sync;

    /// The number of states of every variable.
    fn states(&self) -> &[usize];

    /// Everything that depends on the parameters alone.
    fn ready<B: Backend>(&self, backend: &B) -> Result<Self::Ready<B>, ModelError>;

    /// The same after a change of the parameters, in the memory that is there.
    fn refresh<B: Backend>(&self, backend: &B, ready: &mut Self::Ready<B>) -> Result<(), ModelError>;

    /// The natural logarithm of the probability of every row; `-inf` where it is impossible.
    fn log_likelihood<B: Backend>(
        &self,
        backend: &B,
        ready: &mut Self::Ready<B>,
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError>;

    /// Nothing added up yet.
    fn stats<B: Backend>(&self, ready: &Self::Ready<B>) -> Self::Stats;

    /// Adds up what the rows of the last [`Learnable::log_likelihood`] say, each times its weight.
    fn accumulate<B: Backend>(
        &self,
        backend: &B,
        ready: &mut Self::Ready<B>,
        codes: Codes<'_>,
        weights: &[f64],
        stats: &mut Self::Stats,
    ) -> Result<(), ModelError>;

    /// The derivatives of `Σ weight · log p(row)` by every parameter.
    fn gradient<B: Backend>(&self, ready: &Self::Ready<B>, stats: &Self::Stats, gradient: &mut [f64]);

    /// Adds `share` times the derivatives of [`Learnable::log_prior`] by every parameter.
    fn regularise(&self, by: &Regularisation, share: f64, gradient: &mut [f64]) {
        let _ = (by, share, gradient);
    }

    /// What is thought of the parameters before any data, up to a constant.
    fn log_prior(&self, by: &Regularisation) -> f64 {
        let _ = by;
        0.0
    }

    /// Do parameters of several such models mean the same, so that their mean means something?
    fn has_a_mean(&self) -> bool {
        true
    }

    /// Expectation–maximisation: the parameters that fit what was added up, smoothed by what `parent` added up; false
    /// where there is no closed form.
    fn maximise<B: Backend>(
        &mut self,
        ready: &Self::Ready<B>,
        stats: &Self::Stats,
        parent: Option<&Self::Stats>,
        by: &Regularisation,
    ) -> bool {
        let _ = (ready, stats, parent, by);
        false
    }

    /// Gives states that no row shows the probability that they are to have.
    fn smooth_unseen(&mut self, unseen: &[UnseenStates]);
}
