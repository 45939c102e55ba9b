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

    /// By what weights are multiplied before they are taken for numbers of rows: weights that are smaller than 1 on average, such
    /// as those that add up to 1, are of rows all the same. Larger ones are how often a row is there.
    pub fn row_scale(&self) -> f64 {
        let rows = self.row_weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        let total: f64 = self.row_weights.iter().sum();
        if total > 0.0 && total < rows { rows / total } else { 1.0 }
    }

    /// Adds to what is evaluated what is known of every row of the original table beside its codes; of equal ones the mean, so that
    /// means over all rows are what they are row by row.
    pub fn add_log_shares(&mut self, of_row: impl Fn(usize) -> f64) {
        self.log_shares.resize(self.table.rows(), 0.0);
        for row in 0..self.rows() {
            let place = self.of_row[row] as usize;
            if self.weights[place] > 0.0 {
                self.log_shares[place] += of_row(row) * self.weight(row) / self.weights[place];
            }
        }
    }

    /// What all rows weigh together.
    pub fn total(&self) -> f64 {
        match self.row_weights.is_empty() {
            true => self.rows() as f64,
            false => self.row_weights.iter().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::data::Table;

    #[test]
    fn what_is_added_to_rows_keeps_its_mean() {
        let mut table = Table::new(&[3]);
        [0u16, 0, 1, 2, 0].iter().for_each(|&state| table.push(&[state]));
        let weights = [2.0, 3.0, 1.0, 1.0, 0.5];
        let of_row = |row: usize| -(row as f64) - 0.25;
        let mut unique = table.unique_weighted(&weights);
        unique.add_log_shares(of_row);
        let sum: f64 = unique.weights.iter().zip(&unique.log_shares).map(|(weight, log)| weight * log).sum();
        let expected: f64 = weights.iter().enumerate().map(|(row, weight)| weight * of_row(row)).sum();
        assert!((sum - expected).abs() < 1e-12);
    }

    #[test]
    fn weights_below_one_are_of_rows_and_larger_ones_are_counts() {
        let mut table = Table::new(&[3]);
        [0u16, 0, 1, 2].iter().for_each(|&state| table.push(&[state]));
        assert_eq!(table.unique().row_scale(), 1.0);
        assert_eq!(table.unique_weighted(&[2.0, 3.0, 1.0, 1.0]).row_scale(), 1.0);
        assert_eq!(table.unique_weighted(&[0.25; 4]).row_scale(), 4.0);
        assert_eq!(table.unique_weighted(&[0.5, 0.5, 0.0, 0.5]).row_scale(), 2.0);
    }
}
