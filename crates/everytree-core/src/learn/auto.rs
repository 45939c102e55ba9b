//! The best model without asking: candidates of all families, one after the other, within a budget of work; in the end the best of
//! them, or an average.
//!
//! What comes next is a function of what came out before (`plan.rs`), so a search can be put aside and taken up. Every candidate
//! is learned on each fold of the rows, and judged by what it says about the rows held out; by these, too, candidates are
//! averaged (`stacking.rs`).

mod choice;
mod choosing;
mod folds;
mod plan;

pub use choice::{Choice, LEAST_ENSEMBLE_GAIN};
pub use choosing::{Choosing, UnderWay};
pub use folds::Folds;
pub use plan::{CandidateResult, Next, Portfolio, within};
