//! The door behind which a CPU or a GPU sums forests.

use super::{Counts, ForestError, Tables};
use crate::data::Codes;

/// A backend that sums forests over rows of codes.
pub trait Backend: Sync {
    /// Does it compute in single precision?
    const SINGLE: bool = false;

    /// Tables as this backend wants them: made once per change of the parameters.
    type Prepared: Send + Sync;
    /// What is remembered of a chunk between forward and backward. Reusable: a trace keeps its memory.
    type Trace: Send + Sync;

    /// Brings tables into the form in which they are looked up, row after row.
    fn prepare(&self, tables: &Tables) -> Self::Prepared;

    /// An empty trace.
    fn trace(&self) -> Self::Trace;

    /// The natural logarithm of the forest polynomial of every row of a chunk; `-inf` for a row that no forest can
    /// explain.
    fn forward(
        &self,
        tables: &Self::Prepared,
        codes: Codes<'_>,
        trace: &mut Self::Trace,
        log_forest: &mut [f64],
    ) -> Result<Summary, ForestError>;

    /// Adds the expected counts of the rows of the last [`Backend::forward`], each times its weight. Rows that no
    /// forest can explain count nothing.
    fn backward(
        &self,
        tables: &Self::Prepared,
        trace: &mut Self::Trace,
        weights: &[f64],
        counts: &mut Counts,
    ) -> Result<(), ForestError>;
}

/// Is a list as long as it must be?
pub fn check_length(what: &'static str, found: usize, expected: usize) -> Result<(), ForestError> {
    if found == expected { Ok(()) } else { Err(ForestError::Length { what, found, expected }) }
}

/// Is there a finite weight for every row?
pub fn check_weights(weights: &[f64], rows: usize) -> Result<(), ForestError> {
    check_length("weights", weights.len(), rows)?;
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(row) => Err(ForestError::BadWeight { row, value: weights[row] }),
        None => Ok(()),
    }
}

/// What happened on the way to log F.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows that no forest can explain (log F = −∞), in order.
    pub impossible: Vec<usize>,
    /// Rows whose rates spread so far that the working precision could not vouch for them; they were computed with
    /// more digits and more exponent, slowly.
    pub recomputed: usize,
}
