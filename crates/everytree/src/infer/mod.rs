//! Asking a model: exact answers on one tree, from which everything else is made.
//!
//! [`posterior`] gives the probability of every state of every variable given [`Evidence`], with its error: by enumeration, or from
//! random trees. [`sample`] draws rows, [`most_probable`] finds the best ones. [`Messages`] are the exact answers on one tree.

mod block_gibbs;
mod estimate;
mod evidence;
mod exact;
mod importance;
mod messages;
mod most_probable;
mod proposal;
mod query;
mod sample;

pub use estimate::Estimate;
pub use evidence::{Evidence, EvidenceError};
pub use messages::Messages;
pub use most_probable::{MostProbable, Search, most_probable};
pub use query::{Effort, Method, Posterior, posterior, posterior_by_what_fits};
pub use sample::{Drawn, sample};

use crate::model::ModelError;
use crate::spanning::RateError;
use thiserror::Error;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InferError {
    /// Evidence that no row has.
    #[error("the evidence is impossible under this model")]
    Impossible,
    /// Evidence about other variables.
    #[error("the evidence is about {found} variables, the model has {expected}")]
    Variables {
        /// How many.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// The model cannot be computed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Rates that are none.
    #[error(transparent)]
    Rates(#[from] RateError),
}
