//! States that the rows to learn from do not show, and how probable they are all the same.
//!
//! Likelihood alone would have them impossible: every step makes them less probable, for as long as steps are made. So they
//! are not learned but held, in every table, at the estimate of Good and Turing: as many rows have a state that
//! nobody has seen as have one that was seen once.

use crate::data::Table;

/// The states of one variable that were not seen, and what they have together.
#[derive(Clone, Debug, PartialEq)]
pub struct UnseenStates {
    /// Which variable.
    pub variable: usize,
    /// Its states that were not seen; never all of them.
    pub states: Vec<usize>,
    /// Their probability together, whatever the rest of the row is.
    pub probability: f64,
}

/// Rows that count as seen once at least: where everything was seen often, there may be something new all the same.
const LEAST_ONCE: f64 = 0.5;
/// Weights that were scaled may miss 1 by this.
const ROUNDING: f64 = 1e-9;
/// Never more than this, however few rows there are.
const MOST: f64 = 0.5;

impl UnseenStates {
    /// Of all variables with a state that no row shows. `weights` are numbers of rows; `known` says whether a cell was
    /// observed.
    pub fn find(
        states: &[usize],
        table: &Table,
        weights: &[f64],
        known: impl Fn(usize, usize) -> bool,
    ) -> Vec<UnseenStates> {
        let mut found = Vec::new();
        for (variable, &count) in states.iter().enumerate() {
            let mut rows = vec![0.0; count];
            for (row, weight) in weights.iter().enumerate().filter(|(row, _)| known(*row, variable)) {
                rows[table.get(row, variable)] += weight;
            }
            let never: Vec<usize> = (0..count).filter(|&state| rows[state] == 0.0).collect();
            if never.is_empty() || never.len() == count {
                continue;
            }
            let total: f64 = rows.iter().sum();
            let once = rows.iter().filter(|&&rows| rows > 0.0 && rows <= 1.0 + ROUNDING).count() as f64;
            let probability = (once.max(LEAST_ONCE) / (total + LEAST_ONCE)).min(MOST);
            found.push(UnseenStates { variable, states: never, probability });
        }
        found
    }

    /// What each has, in units of what all others have together.
    pub fn odds(&self) -> f64 {
        self.probability / (1.0 - self.probability) / self.states.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_as_show_a_state_once() {
        let states = [4, 2, 3];
        let mut table = Table::new(&states);
        for row in [[0, 1, 0], [1, 1, 1], [2, 1, 1], [2, 1, 2], [2, 1, 2]] {
            table.push(&row);
        }
        let found = UnseenStates::find(&states, &table, &[1.0; 5], |_, _| true);
        let expected = [
            UnseenStates { variable: 0, states: vec![3], probability: 2.0 / 5.5 },
            UnseenStates { variable: 1, states: vec![0], probability: 0.5 / 5.5 },
        ];
        assert_eq!(found, expected);
        // Cells that were not observed show nothing: without the first row, state 0 of the last variable is unseen.
        let found = UnseenStates::find(&states, &table, &[1.0; 5], |row, variable| (row, variable) != (0, 2));
        assert_eq!(found[2], UnseenStates { variable: 2, states: vec![0], probability: 0.5 / 4.5 });
        // Nothing seen at all: nothing to hold.
        assert_eq!(UnseenStates::find(&states, &table, &[1.0; 5], |_, _| false), []);
        // However few.
        assert_eq!(UnseenStates::find(&[3], &table, &[1.0], |_, _| true)[0].probability, 0.5);
    }
}
