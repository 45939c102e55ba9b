//! Tables of data: columns with names, states and labels; rows of codes; missing values; row weights.
//!
//! A [`Dataset`] is a table with everything that belongs to it: a [`Schema`] (what a column can hold; [`scan`] finds one from
//! cells), a [`Table`] of codes, [`Missing`] cells, and row weights. [`Unique`] are distinct rows with weights, which is what
//! learning goes through.

mod cells;
mod codes;
mod dataset;
mod fingerprint;
mod missing;
mod names;
mod number_format;
pub mod scan;
mod schema;
mod split;
mod table;
mod unique;

pub use cells::{Cells, Interval, decimals_of};
pub use codes::{Codes, CodesError};
pub use dataset::{Dataset, DatasetError};
pub use missing::Missing;
pub use names::{did_you_mean, fits, in_list, listed};
pub use number_format::{Decimal, NumberFormat};
pub use schema::{Cell, Encoded, Encoder, OTHER, Schema, States, Variable};
pub(crate) use schema::{boolean, exact_number, number};
pub use table::Table;
pub use unique::Unique;

/// Most states of all variables together: tables over pairs of states have as many entries as the square of this.
pub const MAX_STATES: usize = 1 << 14;
