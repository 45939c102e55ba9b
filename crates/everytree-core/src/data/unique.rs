//! Distinct rows with weights: what learning and evaluation go through.

use super::Table;

/// Distinct rows with weights.
#[derive(Clone, Debug)]
pub struct Unique {
    /// Every distinct row once, in the order of first appearance.
    pub table: Table,
    /// How many rows are equal to each, or what they weigh together.
    pub weights: Vec<f64>,
    /// For every row of the original table, the place of its equal in `table`.
    pub of_row: Vec<u32>,
    /// For every row of the original table what it weighs; none: 1.
    pub row_weights: Vec<f64>,
    /// For every distinct row the logarithm of its share in what is evaluated (see [`crate::blocks`]); none: all of it.
    pub log_shares: Vec<f64>,
}

impl Unique {
    /// Rows of the original table.
    pub fn rows(&self) -> usize {
        self.of_row.len()
    }

    /// What one row of the original table weighs.
    pub fn weight(&self, row: usize) -> f64 {
        self.row_weights.get(row).copied().unwrap_or(1.0)
    }

    /// What all rows weigh together.
    pub fn total(&self) -> f64 {
        match self.row_weights.is_empty() {
            true => self.rows() as f64,
            false => self.row_weights.iter().sum(),
        }
    }
}
