//! Learning: mini-batches, Adam, validation after every epoch, the best epoch kept.
//!
//! The walk: a [`State`] around an initialised model, [`State::run`] with the data and the settings. A state can be put aside
//! after any epoch and taken up again: the result is the same to the bit, as it is for any number of threads.

mod adam;
mod auto;
mod batches;
mod engine;
mod evaluate;
mod filled;
mod pieces;
mod search;
mod source;
mod stacking;
mod state;

pub use crate::util::Hurry;
pub use adam::Adam;
pub use auto::{
    CandidateResult, Choice, Choosing, Folds, LEAST_ENSEMBLE_GAIN, Next, Portfolio, UnderWay, within,
};
pub use engine::{Engine, Step, Steps};
pub use evaluate::{
    Evaluation, Evaluator, MeanSoFar, edge_posteriors, edge_posteriors_until, evaluate, evaluate_until,
    log_likelihoods,
};
pub use filled::{completed, evaluate_observed};
pub use search::{BestModel, Plan, Running, Search, SearchObserver, Trial, TrialResult};
pub use source::{Datasets, Source, SourceError};
pub use stacking::{Stacked, Stacking};
pub use state::{Data, Ended, Epoch, LearnError, Observer, Progress, State};
