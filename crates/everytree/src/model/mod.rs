//! Distributions over rows: one file a family.
//!
//! [`Moat`] is the family of the paper. What the learner needs of a family is [`Learnable`].

mod asked;
mod counts;
mod density;
mod moat;
mod pair;
mod tree;

pub use asked::Asked;
pub use counts::PairCounts;
pub use density::Density;
pub use moat::{Moat, MoatStats, Pairs, Ready};
pub use tree::TreeTables;

use crate::forest::{Backend, Codes, ForestError};
use crate::spanning::RateError;
use thiserror::Error;

/// A family of distributions with parameters in one flat vector of unbounded numbers.
///
/// The walk of a batch: [`Learnable::ready`] whenever the parameters have changed, [`Learnable::log_likelihood`] of the
/// rows, [`Learnable::accumulate`] what they say with a weight each, [`Learnable::gradient`] from that.
pub trait Learnable: Clone + Send + Sync {
    /// What is computed once per change of the parameters, for one machine.
    type Ready<B: Backend>;
    /// What is added up over rows.
    type Stats;

    /// All parameters.
    fn parameters(&self) -> &[f64];
    /// All parameters, to be changed; nothing that was made ready before sees it.
    fn parameters_mut(&mut self) -> &mut [f64];
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
    /// Back to that.
    fn clear(&self, stats: &mut Self::Stats);

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
}

/// Why a model cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Tables or codes that do not fit.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// Edge weights that are no weights.
    #[error("edge weights: {0}")]
    Weights(#[from] RateError),
    /// No variable at all.
    #[error("a model needs at least one variable")]
    NoVariables,
    /// A list of the wrong length.
    #[error("{what} has {found} entries where {expected} are needed")]
    Length {
        /// Which list.
        what: String,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
    /// Probabilities that are none.
    #[error("{what} is {value}; probabilities are between 0 and 1")]
    Probability {
        /// Which.
        what: String,
        /// The offending value.
        value: f64,
    },
    /// Probabilities that do not add up.
    #[error("{what} adds up to {sum} instead of {expected}")]
    Sum {
        /// Which.
        what: String,
        /// What it adds up to.
        sum: f64,
        /// What it should.
        expected: f64,
    },
    /// A matrix that could not be scaled to the margins: a model with it would not normalise.
    #[error(
        "the table of variables {u} and {v} cannot be scaled to their margins: it stays off by {off:e} of them; its \
         entries differ by too many orders of magnitude"
    )]
    Unbalanced {
        /// One variable.
        u: usize,
        /// The other.
        v: usize,
        /// By how much it is off.
        off: f64,
    },
    /// Weights that connect nothing: there is no spanning tree.
    #[error("the edge weights leave some variable unconnected: there is no tree to average over")]
    NoTree,
    /// Parameters that are not numbers.
    #[error("parameter {place} is {value}")]
    NotANumber {
        /// Which.
        place: usize,
        /// Its value.
        value: f64,
    },
}
