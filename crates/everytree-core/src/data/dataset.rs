//! One table with everything that belongs to it.

use super::fingerprint::fingerprint_of_weights;
use super::split::{Split, split};
use super::{Missing, Schema, States, Table};
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// What rows may weigh together: sums of more lose rows of weight 1.
const MOST_WEIGHT: f64 = 1e15;

/// A table: columns with names and states, rows of codes, which cells are missing, and what rows weigh.
///
/// This is what learning takes, what samples and imputed tables are, and what files are read into. Cloning copies the rows
/// and shares the schema.
///
/// ```
/// use everytree_core::data::{Dataset, Schema, Table};
///
/// let states = [2, 3];
/// let mut table = Table::new(&states);
/// table.push(&[0, 2]);
/// table.push(&[1, 0]);
/// let data = Dataset::new(Schema::anonymous(&states), table)?;
/// assert_eq!((data.rows(), data.columns()), (2, 2));
/// assert_eq!(data.label(0, 1).as_deref(), Some("2"));
/// # Ok::<(), everytree_core::data::DatasetError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    schema: Arc<Schema>,
    table: Table,
    missing: Missing,
    /// None: 1 each.
    weights: Vec<f64>,
    /// Row by row those of the columns whose numbers are more than labels; none where they are not known.
    numbers: Vec<f64>,
    /// Which columns these are.
    numeric: Vec<usize>,
}

/// Why parts do not make a dataset.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// Rows of other columns.
    #[error("rows of {found} codes for {expected} columns")]
    Columns {
        /// Codes of a row.
        found: usize,
        /// Columns of the schema.
        expected: usize,
    },
    /// A code that is not a state of its column.
    #[error("row {row}, column {column:?}: code {code} is not one of its {states} states")]
    Code {
        /// The row, from 0.
        row: usize,
        /// The name of the column.
        column: String,
        /// The offending code.
        code: usize,
        /// How many states the column has.
        states: usize,
    },
    /// Missing cells of rows or columns that are not there.
    #[error("a missing cell in row {row}, column {column}, which is not there")]
    Cell {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
    },
    /// Not one weight for each row.
    #[error("{found} weights for {rows} rows; one for each is needed")]
    WeightCount {
        /// Weights.
        found: usize,
        /// Rows.
        rows: usize,
    },
    /// Not one number for each row and column of numbers.
    #[error("{found} numbers for {expected} cells of columns of numbers; one for each is needed")]
    NumberCount {
        /// Numbers.
        found: usize,
        /// Cells.
        expected: usize,
    },
    /// A number that is not in the state that its code says.
    #[error("row {row}, column {column:?}: {value} is not in the cell that its code stands for")]
    Number {
        /// The row, from 0.
        row: usize,
        /// The name of the column.
        column: String,
        /// The offending number.
        value: f64,
    },
    /// A weight that is none.
    #[error("row {row}: weighs {value}; weights are finite and not negative")]
    Weight {
        /// The row, from 0.
        row: usize,
        /// The offending weight.
        value: f64,
    },
    /// Nothing weighs anything.
    #[error("all weights are zero: there is nothing to learn from")]
    NoWeight,
    /// Weights whose sums would not be numbers any more.
    #[error(
        "the weights add up to {total:e}, more than {MOST_WEIGHT:e}; divide all of them by the same number"
    )]
    TooHeavy {
        /// Their sum.
        total: f64,
    },
}

impl Dataset {
    /// Complete rows that weigh 1 each.
    pub fn new(schema: impl Into<Arc<Schema>>, table: Table) -> Result<Self, DatasetError> {
        let schema: Arc<Schema> = schema.into();
        let (found, expected) = (table.variables(), schema.variables.len());
        if found != expected {
            return Err(DatasetError::Columns { found, expected });
        }
        let codes = table.codes();
        for (v, states) in schema.states().into_iter().enumerate() {
            let bad = |row: &usize| codes.get(*row, v) >= states;
            if let Some(row) = (0..table.rows()).find(bad) {
                let (column, code) = (schema.variables[v].name.clone(), codes.get(row, v));
                return Err(DatasetError::Code { row, column, code, states });
            }
        }
        let numeric = schema.numeric();
        Ok(Self {
            schema,
            table,
            missing: Missing::default(),
            weights: Vec::new(),
            numbers: Vec::new(),
            numeric,
        })
    }

    /// With the numbers of columns whose numbers are more than labels, row by row; those of missing cells mean nothing. A number
    /// that is NaN is not known. Without any, nothing but the cells is known, and densities are left out.
    pub fn with_numbers(mut self, numbers: Vec<f64>) -> Result<Self, DatasetError> {
        let expected = self.rows() * self.numeric.len();
        if !numbers.is_empty() && numbers.len() != expected {
            return Err(DatasetError::NumberCount { found: numbers.len(), expected });
        }
        self.numbers = numbers;
        for row in 0..self.rows() {
            for &column in &self.numeric {
                let States::Numbers(cells) = &self.schema.variables[column].states else { continue };
                if let Some(value) = self.number(row, column)
                    && cells.state(value) != self.table.get(row, column)
                {
                    let column = self.schema.variables[column].name.clone();
                    return Err(DatasetError::Number { row, column, value });
                }
            }
        }
        Ok(self)
    }

    /// Complete rows of variables without names, which have so many states each.
    pub fn anonymous(states: &[usize], table: Table) -> Result<Self, DatasetError> {
        Self::new(Schema::anonymous(states), table)
    }

    /// With these cells missing; their codes mean nothing.
    pub fn with_missing(mut self, missing: Missing) -> Result<Self, DatasetError> {
        for (row, columns) in missing.rows() {
            let there = |column: &&usize| **column < self.columns() && *row < self.rows();
            if let Some(&column) = columns.iter().find(|column| !there(column)) {
                return Err(DatasetError::Cell { row: *row, column });
            }
        }
        self.missing = missing;
        Ok(self)
    }

    /// With a weight for each row; no weights: 1 each.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self, DatasetError> {
        if !weights.is_empty() && weights.len() != self.rows() {
            return Err(DatasetError::WeightCount { found: weights.len(), rows: self.rows() });
        }
        if let Some(row) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            return Err(DatasetError::Weight { row, value: weights[row] });
        }
        if !weights.is_empty() && weights.iter().all(|weight| *weight == 0.0) {
            return Err(DatasetError::NoWeight);
        }
        let total: f64 = weights.iter().sum();
        if total > MOST_WEIGHT {
            return Err(DatasetError::TooHeavy { total });
        }
        self.weights = weights;
        Ok(self)
    }

    /// Names, states and labels of the columns.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The codes of all cells.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The cells that are missing; their codes mean nothing.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The number in a cell; none where it is missing or not known, or where numbers are labels.
    ///
    /// # Panics
    /// When there is no such cell.
    pub fn number(&self, row: usize, column: usize) -> Option<f64> {
        let place = self.numeric.iter().position(|numeric| *numeric == column)?;
        let number = *self.numbers.get(row * self.numeric.len() + place)?;
        let state = self.table.get(row, column);
        let there =
            state < self.schema.variables[column].states.len() && !self.missing.of(row).contains(&column);
        Some(number).filter(|number| there && !number.is_nan())
    }

    /// All numbers, row by row, of the columns whose numbers are more than labels; NaN where there is none.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// The logarithm of the density of the numbers of a row within their cells (on grids, of the probability): what is added to
    /// the logarithm of the probability of its codes.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn log_density(&self, row: usize) -> f64 {
        let of = |&column: &usize| match (&self.schema.variables[column].states, self.number(row, column)) {
            (States::Numbers(cells), Some(number)) => cells.log_density(number),
            _ => 0.0,
        };
        self.numeric.iter().map(of).sum()
    }

    /// The weighted mean of it over all rows.
    pub fn mean_log_density(&self) -> f64 {
        if self.numbers.is_empty() {
            return 0.0;
        }
        let weight = |row: usize| self.weights.get(row).copied().unwrap_or(1.0);
        let total: f64 = (0..self.rows()).map(weight).sum();
        (0..self.rows()).map(|row| weight(row) * self.log_density(row)).sum::<f64>() / total
    }

    /// What rows weigh; none: 1 each.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.table.variables()
    }

    /// The number of states of every column.
    pub fn states(&self) -> Vec<usize> {
        self.schema.states()
    }

    /// Has every cell a value?
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// The label of a cell; none where it is missing, or is the state for missing cells.
    ///
    /// # Panics
    /// When there is no such cell.
    pub fn label(&self, row: usize, column: usize) -> Option<String> {
        let variable = &self.schema.variables[column];
        let state = self.table.get(row, column);
        let there = !self.missing.of(row).contains(&column) && state < variable.states.len();
        there.then(|| match self.number(row, column) {
            Some(number) => variable.format.write(number),
            None => variable.label(state),
        })
    }

    /// The rows at these places, in this order.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn select(&self, places: &[usize]) -> Self {
        let weights = match self.weights.is_empty() {
            true => Vec::new(),
            false => places.iter().map(|&row| self.weights[row]).collect(),
        };
        let n = if self.numbers.is_empty() { 0 } else { self.numeric.len() };
        Self {
            schema: Arc::clone(&self.schema),
            table: self.table.select(places.iter().copied()),
            missing: self.missing.select(places),
            weights,
            numbers: places.iter().flat_map(|row| &self.numbers[row * n..(row + 1) * n]).copied().collect(),
            numeric: self.numeric.clone(),
        }
    }

    /// The rows without any missing cell.
    pub fn complete_rows(&self) -> Cow<'_, Self> {
        if self.is_complete() {
            return Cow::Borrowed(self);
        }
        let complete: Vec<usize> = (0..self.rows()).filter(|&row| self.missing.of(row).is_empty()).collect();
        Cow::Owned(self.select(&complete))
    }

    /// Without rows that weigh nothing.
    pub fn weighing(self) -> Self {
        if self.weights.iter().all(|weight| *weight > 0.0) {
            return self;
        }
        let there: Vec<usize> = (0..self.rows()).filter(|&row| self.weights[row] > 0.0).collect();
        self.select(&there)
    }

    /// Two parts: most rows, and a `fraction` of them drawn by seed, at least one row in each where there are two. Rows keep
    /// their order.
    pub fn split(&self, fraction: f64, seed: u64) -> (Self, Self) {
        let Split { train, valid } = split(self.rows(), fraction, seed);
        (self.select(&train), self.select(&valid))
    }

    /// These rows, and then the rows of another dataset of the same columns.
    ///
    /// # Panics
    /// When the columns are others.
    pub fn followed_by(&self, other: &Self) -> Self {
        assert_eq!(self.schema, other.schema, "the same columns");
        let mut all = self.clone();
        let mut row = vec![0u16; self.columns()];
        for place in 0..other.rows() {
            (0..row.len()).for_each(|v| row[v] = other.table.get(place, v) as u16);
            all.table.push(&row);
        }
        for (row, columns) in other.missing.rows() {
            all.missing.push(self.rows() + row, columns.clone());
        }
        let known = |data: &Self| match data.numbers.is_empty() {
            true => vec![f64::NAN; data.rows() * data.numeric.len()],
            false => data.numbers.clone(),
        };
        if !(self.numbers.is_empty() && other.numbers.is_empty()) {
            all.numbers = [known(self), known(other)].concat();
        }
        if !(self.weights.is_empty() && other.weights.is_empty()) {
            let of = |data: &Self| match data.weights.is_empty() {
                true => vec![1.0; data.rows()],
                false => data.weights.clone(),
            };
            all.weights = [of(self), of(other)].concat();
        }
        all
    }

    /// A number that changes with any cell, missing value or weight.
    pub fn fingerprint(&self) -> u64 {
        self.table.fingerprint()
            ^ self.missing.fingerprint()
            ^ fingerprint_of_weights(&self.weights)
            ^ fingerprint_of_weights(&self.numbers).rotate_left(1)
    }
}
