//! Learning: mini-batches, Adam, validation after every epoch, the best epoch kept.
//!
//! The walk: a [`State`] around an initialised model, [`State::run`] with the data and the settings. A state can be put aside
//! after any epoch and taken up again: the result is the same to the bit, as it is for any number of threads.

mod adam;
mod batches;
mod engine;
mod evaluate;
mod filled;
mod search;
mod settings;
mod source;
mod start;
mod state;

pub use adam::Adam;
pub use batches::{Split, split};
pub use engine::{Engine, Step, Steps};
pub use evaluate::{Evaluation, edge_posteriors, evaluate, log_likelihoods};
pub use filled::{completed, evaluate_observed};
pub use search::{
    Found, HowMany, LEAST_GAIN, MAX_COMPONENTS, Plan, Rows, Running, Search, Trial, Tried, WatchSearch,
};
pub use settings::{ALL_ROWS, Optimiser, Settings, SettingsError};
pub use source::{Source, SourceError};
pub use start::{Family, Start};
pub use state::{Data, Ended, Epoch, LearnError, Progress, State, Watch};
