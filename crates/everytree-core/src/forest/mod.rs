//! Where probability meets trees: tables and codes in, log F and expected counts out.
//!
//! A row of data is one code per variable. Every pair of states of two variables has a rate, so a row picks a rate
//! matrix out of the [`Tables`]; its forest polynomial is the row's likelihood up to a constant, and the edge marginals
//! under it, sorted by the states they came from, are the expected counts from which every family learns.
//!
//! The door is [`Backend`]: [`Backend::forward`] gives log F per row, then [`Backend::backward`] takes one weight per
//! row and adds the expected counts. Two calls, because a mixture knows its responsibilities only after the forwards
//! of all its components. [`Cpu`] is the backend of this crate.
//!
//! ```
//! use everytree_core::data::Codes;
//! use everytree_core::forest::{Backend, Counts, Cpu, Tables};
//! use everytree_core::spanning::Kind;
//!
//! // Three binary variables. Rate of an edge: 2 where the two agree, 1 where they do not.
//! let tables = Tables::build(Kind::Undirected, &[2, 2, 2], |_, a, _, b| if a == b { 2.0 } else { 1.0 })?;
//! let cpu = Cpu::<f64>::new();
//! let prepared = cpu.prepare(&tables);
//!
//! let codes = [0u8, 0, 0, /* and */ 0, 1, 1];
//! let mut log_forest = [0.0; 2];
//! let mut trace = cpu.trace();
//! cpu.forward(&prepared, Codes::new(&codes, 3)?, &mut trace, &mut log_forest)?;
//! // All agree: 3 trees of 2·2. Otherwise: 1·1 + 1·2 + 2·1.
//! assert!((log_forest[0].exp() - 12.0).abs() < 1e-9);
//! assert!((log_forest[1].exp() - 5.0).abs() < 1e-9);
//!
//! let mut counts = Counts::new(&tables);
//! cpu.backward(&prepared, &mut trace, &[1.0, 1.0], &mut counts)?;
//! // The edge {1, 2} with both states 1 comes from the second row alone, in four fifths of its weight.
//! assert!((counts.get(1, 1, 2, 1) - 0.8).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod compiled;
mod counts;
mod cpu;
pub(crate) mod frechet;
pub(crate) mod lookup;
mod tables;

pub use backend::{Backend, Summary};
#[doc(hidden)]
pub use backend::{check_length, check_weights};
pub use compiled::Precision;
pub use counts::Counts;
pub use cpu::{Cpu, Prepared, Trace, one_row};
pub use frechet::binary_ratios;
pub use tables::Tables;

use crate::data::CodesError;
use thiserror::Error;

/// What a table, a chunk of codes or a set of weights can have wrong with it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ForestError {
    /// A device other than the CPU has failed.
    #[error("{0}")]
    Device(String),
    /// A rate that is NaN, infinite or negative.
    #[error(
        "the rate of variable {variable} in state {state} towards variable {other} in state {other_state} is {value}; \
         rates must be finite and not negative"
    )]
    BadRate {
        /// Variable whose rate it is (the child, in the directed kind).
        variable: usize,
        /// Its state.
        state: usize,
        /// The other variable (the parent; the variable itself for a root rate).
        other: usize,
        /// The state of that.
        other_state: usize,
        /// The offending value.
        value: f64,
    },
    /// A variable without states, or no variables at all.
    #[error("variable {variable} has no states")]
    NoStates {
        /// The variable.
        variable: usize,
    },
    /// More states than can be tabulated.
    #[error("{states} states over all variables are too many: at most {limit}")]
    TooManyStates {
        /// How many there are.
        states: usize,
        /// How many are possible.
        limit: usize,
    },
    /// Codes that do not fit.
    #[error(transparent)]
    Codes(#[from] CodesError),
    /// A row weight that is NaN or infinite.
    #[error("row {row}: its weight is {value}; weights must be finite")]
    BadWeight {
        /// Row of the chunk.
        row: usize,
        /// The offending value.
        value: f64,
    },
    /// A trace or counts that were made for other tables, or before the tables were prepared anew.
    #[error("{what} belongs to other tables than those given")]
    OtherTables {
        /// The trace, or the counts.
        what: &'static str,
    },
    /// A buffer of the wrong length.
    #[error("{what} has {found} entries where {expected} are needed")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
}
