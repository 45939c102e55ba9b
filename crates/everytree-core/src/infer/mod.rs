//! Asking a model: exact answers on one tree, from which everything else is made.
//!
//! [`posterior`] gives the probability of every state of every variable given [`Evidence`], with its error: by enumeration, or from
//! random trees. [`sample`] draws rows, [`most_probable`] finds the best ones. [`Messages`] are the exact answers on one tree.

mod block_gibbs;
mod bridge;
mod chains;
mod columns;
mod completions;
mod estimate;
mod evidence;
mod exact;
mod gibbs;
mod importance;
mod information;
mod k_best;
mod mcmc;
mod measure;
mod messages;
mod method;
mod mixed;
mod most_probable;
mod one_tree;
mod pair;
mod part;
mod policy;
mod posterior;
mod proposal;
mod query;
mod question;
mod sample;
mod semiring;
mod stored;
mod whole;

#[doc(hidden)]
pub use crate::util::seed_of;
pub(crate) use columns::of_blocks as columns_to_blocks;
pub use estimate::Estimate;
pub use evidence::{Evidence, EvidenceError};
pub use importance::weighted_trees;
pub use messages::Messages;
pub use method::{Effort, Method};
pub use most_probable::{MostProbable, Search, most_probable};
pub(crate) use part::Walk;
pub use posterior::{EdgePosterior, Posterior};
pub use query::{edges, log_evidence, posterior, posterior_by_what_fits};
pub use sample::{Drawn, Sampling, sample};
#[doc(hidden)]
pub use semiring::FieldModel;
pub use whole::Inference;

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
    /// Evidence that no tree explains among those that were drawn.
    #[error(
        "none of {trees} random trees allows the evidence: it is impossible under this model, or as good as that"
    )]
    Unexplained {
        /// How many were drawn.
        trees: usize,
    },
    /// Too much to enumerate.
    #[error("{} rows are too many to enumerate: at most {most}", .rows.map_or("more than 2⁶³".to_owned(), |rows| rows.to_string()))]
    TooManyRows {
        /// How many there are; none: more than can be counted.
        rows: Option<u64>,
        /// How many could be.
        most: u64,
    },
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
