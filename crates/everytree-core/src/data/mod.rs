//! Tables of data: columns with names, states and labels; rows of codes; missing values; row weights.
//!
//! A [`Schema`] says what a column can hold, and [`scan`] finds one from cells. A [`Table`] holds rows of codes, [`Missing`] which of
//! its cells have no value, [`Unique`] the distinct rows with weights.

mod codes;
mod fingerprint;
mod missing;
pub mod scan;
mod schema;
mod table;
mod unique;

pub use codes::{Codes, CodesError};
pub use fingerprint::fingerprint_of_weights;
pub use missing::Missing;
pub use schema::{Cell, Encoded, Encoder, Schema, States, Variable};
pub(crate) use schema::{boolean, exact_number, number};
pub use table::Table;
pub use unique::Unique;

/// Most states of all variables together: tables over pairs of states have as many entries as the square of this.
pub const MAX_STATES: usize = 1 << 14;
