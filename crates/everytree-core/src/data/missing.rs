//! Cells of a table that have no value.

use super::fingerprint::Fnv;

/// Cells of a table that were not observed; their codes mean nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Rows that have any, in order, and their columns, in order.
    rows: Vec<(usize, Vec<usize>)>,
}

impl Missing {
    /// None.
    pub fn none() -> &'static Missing {
        static NONE: Missing = Missing { rows: Vec::new() };
        &NONE
    }

    /// The cells of one more row; rows come in order.
    ///
    /// # Panics
    /// When a row before it was already given.
    pub fn push(&mut self, row: usize, columns: Vec<usize>) {
        assert!(self.rows.last().is_none_or(|(last, _)| *last < row), "rows in order");
        if !columns.is_empty() {
            self.rows.push((row, columns));
        }
    }

    /// Is every cell observed?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows with cells that were not observed, and which.
    pub fn rows(&self) -> &[(usize, Vec<usize>)] {
        &self.rows
    }

    /// How many cells.
    pub fn cells(&self) -> usize {
        self.rows.iter().map(|(_, columns)| columns.len()).sum()
    }

    /// The columns of a row that were not observed.
    pub fn of(&self, row: usize) -> &[usize] {
        match self.rows.binary_search_by_key(&row, |(row, _)| *row) {
            Ok(place) => &self.rows[place].1,
            Err(_) => &[],
        }
    }

    /// Those of the rows at these places.
    pub fn select(&self, places: &[usize]) -> Missing {
        let mut missing = Missing::default();
        places.iter().enumerate().for_each(|(row, &place)| missing.push(row, self.of(place).to_vec()));
        missing
    }

    /// A number that changes with any cell; 0 where there is none.
    pub fn fingerprint(&self) -> u64 {
        if self.rows.is_empty() {
            return 0;
        }
        let mut hash = Fnv::new();
        for (row, columns) in &self.rows {
            hash.push(*row as u64);
            columns.iter().for_each(|&column| hash.push(column as u64));
        }
        hash.0
    }
}
