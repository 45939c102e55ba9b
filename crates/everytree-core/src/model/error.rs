//! Why a model cannot be.

use super::MAX_HIDDEN;
use crate::data::CodesError;
use crate::forest::ForestError;
use crate::spanning::{RateError, TreeError};
use thiserror::Error;

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
    /// A mixing weight that is none.
    #[error("a component has the mixing weight {0}; mixing weights are positive")]
    MixingWeight(f64),
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
