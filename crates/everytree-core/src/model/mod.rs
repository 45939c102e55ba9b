//! Distributions over rows: one file a family.
//!
//! [`Moat`] is the family of the paper. What the learner needs of a family is [`Learnable`].

mod asked;
mod chow_liu;
mod clusters;
mod component;
mod counts;
mod density;
mod directed;
mod hclt;
mod mixture;
mod moat;
mod one_tree;
mod pair;
mod tree;
mod unseen;
mod whole;

pub use asked::{Asked, AskedComponent};
pub use clusters::clusters;
pub use component::{Component, ComponentReady, ComponentStats};
pub use counts::PairCounts;
pub use density::Density;
pub(crate) use density::Likelihood;
pub use directed::{Directed, DirectedReady, DirectedStats};
pub use mixture::{Mixture, MixtureReady, MixtureStats};
pub use moat::{Moat, MoatStats, Pairs, Ready};
pub use one_tree::{MAX_HIDDEN, OneTree, OneTreeReady, OneTreeStats, Structure};
pub use tree::{EdgeTables, TreeTables};
pub use unseen::Unseen;
pub use whole::Model;

use crate::data::{Codes, CodesError};
use crate::forest::{Backend, ForestError};
use crate::spanning::{RateError, TreeError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Something that is nothing but numbers, lying in pieces: parameters, or sums over rows.
pub trait Numbers {
    /// All of them, piece by piece.
    fn pieces(&self) -> Vec<&[f64]>;
    /// All of them, to be changed.
    fn pieces_mut(&mut self) -> Vec<&mut [f64]>;

    /// How many there are.
    fn size(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    /// All of them in one vector.
    fn to_vec(&self) -> Vec<f64> {
        self.pieces().concat()
    }

    /// Takes all of them from one vector, which must have as many.
    fn set(&mut self, numbers: &[f64]) -> Result<(), ModelError> {
        let (found, expected) = (numbers.len(), self.size());
        if found != expected {
            return Err(ModelError::Length { what: "a list of numbers".to_owned(), found, expected });
        }
        let mut rest = numbers;
        for piece in self.pieces_mut() {
            let (own, tail) = rest.split_at(piece.len());
            piece.copy_from_slice(own);
            rest = tail;
        }
        Ok(())
    }

    /// All zero.
    fn clear(&mut self) {
        self.pieces_mut().into_iter().for_each(|piece| piece.fill(0.0));
    }

    /// `keep` times these and `take` times others.
    ///
    /// # Panics
    /// When there are not as many others.
    fn blend(&mut self, others: &Self, keep: f64, take: f64) {
        for (piece, other) in self.pieces_mut().into_iter().zip(others.pieces()) {
            assert_eq!(piece.len(), other.len(), "as many numbers");
            piece.iter_mut().zip(other).for_each(|(own, other)| *own = keep * *own + take * other);
        }
    }
}

/// A family of distributions whose parameters are unbounded numbers; nothing that was made ready sees a change of them.
///
/// The walk of a batch: [`Learnable::ready`] whenever the parameters have changed, [`Learnable::log_likelihood`] of the
/// rows, [`Learnable::accumulate`] what they say with a weight each, [`Learnable::gradient`] from that.
pub trait Learnable: Numbers + Clone + Send + Sync {
    /// What is computed once per change of the parameters, for one machine.
    type Ready<B: Backend>: Send + Sync;
    /// What is added up over rows.
    type Stats: Numbers + Send + Sync;

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
    fn hold(&mut self, unseen: &[Unseen]);
}

/// How parameters are kept from following the data too closely. Zero: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regularisation {
    /// Of the components of a mixture, towards their mean: as many times half the square of the distance counts as
    /// nats of the whole data.
    pub shrinkage: f64,
    /// Rows of even chance added to every line of every free table.
    pub smoothing: f64,
}

/// Why a model cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Tables or codes that do not fit.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// Codes that do not fit.
    #[error(transparent)]
    Codes(#[from] CodesError),
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
    /// A mixture of nothing.
    #[error("a mixture needs at least one component")]
    NoComponents,
    /// A share that is none.
    #[error("a component has the share {0}; shares are positive")]
    Share(f64),
    /// Components over different variables.
    #[error("the components of a mixture have different variables")]
    OtherVariables,
    /// Components of different families.
    #[error("the components of a mixture are of different families")]
    OtherFamilies,
    /// A hidden variable that cannot be.
    #[error("hidden variables with {0} states; from 1 to {MAX_HIDDEN} are possible")]
    Hidden(usize),
    /// A parent that cannot be.
    #[error("variable {variable} has the parent {parent}, which this family does not allow")]
    Parent {
        /// Which variable.
        variable: usize,
        /// Its parent as a number.
        parent: f64,
    },
    /// Parents that do not make a forest.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Parameters that are not numbers.
    #[error("parameter {place} is {value}")]
    NotANumber {
        /// Which.
        place: usize,
        /// Its value.
        value: f64,
    },
}
