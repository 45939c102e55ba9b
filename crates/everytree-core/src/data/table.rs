//! Encoded rows: one or two bytes a cell.

use super::fingerprint::Fnv;
use super::{Codes, Unique};
use std::collections::HashMap;
use std::ops::Range;

/// Rows of codes, one for each variable. A cell takes one byte, or two where some variable has more than 256 states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    variables: usize,
    rows: usize,
    cells: Cells,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cells {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl Table {
    /// No rows yet, of variables with so many states each.
    ///
    /// # Panics
    /// When there are no variables, or one has more than 65,536 states.
    pub fn new(states: &[usize]) -> Self {
        let most = states.iter().copied().max().expect("a table has variables");
        assert!(most <= 1 << 16, "codes have two bytes");
        let cells = if most <= 256 { Cells::Narrow(Vec::new()) } else { Cells::Wide(Vec::new()) };
        Self { variables: states.len(), rows: 0, cells }
    }

    /// One more row.
    ///
    /// # Panics
    /// When it has not one code per variable, or a code that has no place.
    pub fn push(&mut self, row: &[u16]) {
        assert_eq!(row.len(), self.variables, "one code per variable");
        match &mut self.cells {
            Cells::Narrow(cells) => {
                cells.extend(row.iter().map(|&code| u8::try_from(code).expect("a state of its variable")))
            }
            Cells::Wide(cells) => cells.extend_from_slice(row),
        }
        self.rows += 1;
    }

    /// No rows any more; the memory is kept.
    pub fn clear(&mut self) {
        self.rows = 0;
        match &mut self.cells {
            Cells::Narrow(cells) => cells.clear(),
            Cells::Wide(cells) => cells.clear(),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Another row in the place of one.
    ///
    /// # Panics
    /// When there is no such row, or a code has no place.
    pub fn replace(&mut self, row: usize, codes: &[u16]) {
        assert!(row < self.rows && codes.len() == self.variables, "a row of this table");
        let cells = row * self.variables..(row + 1) * self.variables;
        match &mut self.cells {
            Cells::Narrow(all) => all[cells].iter_mut().zip(codes).for_each(|(cell, &code)| {
                *cell = u8::try_from(code).expect("a state of its variable");
            }),
            Cells::Wide(all) => all[cells].copy_from_slice(codes),
        }
    }

    /// How many variables a row has.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// The code of one cell.
    ///
    /// # Panics
    /// When there is no such cell.
    pub fn get(&self, row: usize, variable: usize) -> usize {
        self.codes().get(row, variable)
    }

    /// All rows, for a `forest::Backend`.
    pub fn codes(&self) -> Codes<'_> {
        self.some(0..self.rows)
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn some(&self, rows: Range<usize>) -> Codes<'_> {
        let cells = rows.start * self.variables..rows.end * self.variables;
        let codes = match &self.cells {
            Cells::Narrow(codes) => Codes::new(&codes[cells], self.variables),
            Cells::Wide(codes) => Codes::new(&codes[cells], self.variables),
        };
        codes.expect("whole rows")
    }

    /// Copies the rows at these places into `to`, which is emptied first and must be of the same kind.
    ///
    /// # Panics
    /// When there are no such rows, or `to` is of another kind.
    pub fn gather(&self, places: impl IntoIterator<Item = usize>, to: &mut Table) {
        to.clear();
        let n = self.variables;
        for row in places {
            match (&self.cells, &mut to.cells) {
                (Cells::Narrow(from), Cells::Narrow(to)) => {
                    to.extend_from_slice(&from[row * n..(row + 1) * n])
                }
                (Cells::Wide(from), Cells::Wide(to)) => to.extend_from_slice(&from[row * n..(row + 1) * n]),
                _ => panic!("codes of another width"),
            }
            to.rows += 1;
        }
    }

    /// An empty table of the same kind.
    pub fn alike(&self) -> Table {
        let cells = match self.cells {
            Cells::Narrow(_) => Cells::Narrow(Vec::new()),
            Cells::Wide(_) => Cells::Wide(Vec::new()),
        };
        Self { variables: self.variables, rows: 0, cells }
    }

    /// The rows at these places.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn select(&self, places: impl IntoIterator<Item = usize>) -> Table {
        let mut table = self.alike();
        self.gather(places, &mut table);
        table
    }

    /// Rows that differ, and how often each is there. The sum of anything over all rows is the weighted sum over these.
    pub fn unique(&self) -> Unique {
        self.unique_weighted(&[])
    }

    /// The same of rows that weigh something; no weights: every row weighs 1.
    ///
    /// # Panics
    /// When there are weights, but not one per row.
    pub fn unique_weighted(&self, row_weights: &[f64]) -> Unique {
        assert!(row_weights.is_empty() || row_weights.len() == self.rows, "one weight per row");
        match &self.cells {
            Cells::Narrow(cells) => self.unique_of(cells, row_weights),
            Cells::Wide(cells) => self.unique_of(cells, row_weights),
        }
    }

    fn unique_of<C: std::hash::Hash + Eq>(&self, cells: &[C], row_weights: &[f64]) -> Unique {
        let mut seen: HashMap<&[C], u32> = HashMap::new();
        let (mut first, mut weights, mut of_row) = (Vec::new(), Vec::new(), Vec::with_capacity(self.rows));
        for row in 0..self.rows {
            let place =
                *seen.entry(&cells[row * self.variables..(row + 1) * self.variables]).or_insert_with(|| {
                    first.push(row);
                    weights.push(0.0);
                    first.len() as u32 - 1
                });
            weights[place as usize] += row_weights.get(row).copied().unwrap_or(1.0);
            of_row.push(place);
        }
        let row_weights = row_weights.to_vec();
        Unique { table: self.select(first), weights, of_row, row_weights, log_shares: Vec::new() }
    }

    /// A number that changes with any cell: FNV-1a over shape and codes.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.push(self.variables as u64);
        hash.push(self.rows as u64);
        match &self.cells {
            Cells::Narrow(cells) => cells.iter().for_each(|&code| hash.byte(code)),
            Cells::Wide(cells) => cells.iter().for_each(|&code| hash.push(u64::from(code))),
        }
        hash.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[u16; 3]], states: &[usize]) -> Table {
        let mut table = Table::new(states);
        rows.iter().for_each(|row| table.push(row));
        table
    }

    #[test]
    fn unique_rows_carry_the_weight_of_all() {
        for states in [[2, 3, 4], [2, 300, 4]] {
            let all = table(&[[0, 1, 2], [1, 1, 1], [0, 1, 2], [0, 1, 3], [1, 1, 1], [0, 1, 2]], &states);
            let unique = all.unique();
            assert_eq!(unique.table, table(&[[0, 1, 2], [1, 1, 1], [0, 1, 3]], &states));
            assert_eq!(unique.weights, [3.0, 2.0, 1.0]);
            assert_eq!(unique.of_row, [0, 1, 0, 2, 1, 0]);
        }
    }

    #[test]
    fn any_changed_cell_changes_the_fingerprint() {
        let one = table(&[[0, 1, 2], [1, 1, 1]], &[2, 3, 4]);
        let other = table(&[[0, 1, 2], [1, 1, 2]], &[2, 3, 4]);
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(one.fingerprint(), one.select([0]).fingerprint());
    }
}
