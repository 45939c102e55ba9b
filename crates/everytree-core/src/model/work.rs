//! How much work learning is, counted before it is done.
//!
//! A search has a budget of operations and not of seconds, so that it comes to the same model whatever else the machine does. The
//! unit is a multiplication with an addition inside a matrix product; everything else counts as many times more as it was slower
//! where it was measured.

use super::{Candidate, Family, Optimiser, Pairs, Start, Trees};
use crate::data::Unique;

/// Operations that two cores do in a second, more or less: by this, budgets are said.
pub const A_SECOND: f64 = 5e10;

/// An operation of an elimination: a multiplication or an addition, and nearly all of them inside products.
const ELIMINATED: f64 = 0.4;
/// An entry of a row's matrix is looked up, and its derivative is added to a table.
const LOOKED_UP: f64 = 60.0;
/// A cell of a row is looked up in the table of one tree.
const READ: f64 = 600.0;
/// A pair of cells is counted.
const COUNTED: f64 = 12.0;
/// An entry of a pair table is made into mutual information, or stepped along its derivative: logarithms and exponentials.
const TAKEN: f64 = 1000.0;
/// The same where tables are scaled to given margins.
const SCALED: f64 = 10_000.0;
/// Of latent variables: derivative, optimiser, exponential.
const STEPPED: f64 = 30.0;
/// Products of the messages of latent variables: up, down and counts, in single precision; and what is between them, of each state.
const MESSAGES: f64 = 2.6;
const PASSED: f64 = 30.0;
/// Rows are put into clusters, cell by cell.
const CLUSTERED: f64 = 200.0;
/// Bandwidths of a kernel, rows that are left out to find their weights, and what a pair of rows takes beside products.
const BANDWIDTHS: f64 = 7.0;
const LEFT_OUT: f64 = 2000.0;
const COMPARED: f64 = 20.0;
/// What a batch takes however small it is: threads are woken.
const BATCH: f64 = 8e6;

/// Rows as they are met in an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Met {
    /// Distinct rows in all.
    pub distinct: f64,
    /// Mini-batches.
    pub batches: f64,
    /// Distinct rows in all batches together.
    pub in_batches: f64,
}

impl Met {
    /// By batches of so many rows: equal rows of a batch are computed once.
    pub fn new(data: &Unique, batch_size: usize) -> Self {
        let (rows, distinct) = (data.rows() as f64, data.table.rows() as f64);
        let size = (batch_size.max(1) as f64).min(rows);
        let batches = (rows / size).ceil().max(1.0);
        let met = |count: u32| 1.0 - (1.0 - size / rows).powf(f64::from(count));
        let mut counts = vec![0u32; data.table.rows()];
        data.of_row.iter().for_each(|&place| counts[place as usize] += 1);
        let in_a_batch: f64 = if size < rows { counts.into_iter().map(met).sum() } else { distinct };
        Self { distinct, batches, in_batches: (batches * in_a_batch).min(rows) }
    }
}

/// Operations of an epoch of learning, and of everything before the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Initialisation.
    pub start: f64,
    /// Learning and validation.
    pub epoch: f64,
}

impl Work {
    /// Of a candidate over variables with so many states each, that meets these rows, and so many others to validate with.
    pub fn of(candidate: &Candidate, states: &[usize], train: Met, valid_rows: usize) -> Self {
        let n = states.len() as f64;
        let total: f64 = states.iter().map(|&count| count as f64).sum();
        let components = candidate.components as f64;
        let (rows, valid) = (train.in_batches, valid_rows as f64);
        let counting = COUNTED * n * n * train.distinct + TAKEN * total * total + BATCH;
        let clusters = if candidate.components > 1 { CLUSTERED * n * train.distinct } else { 0.0 };
        // The validation after an epoch is one batch more.
        let batches = train.batches + 1.0;
        let Candidate { start: Start { family, pairs, .. }, .. } = candidate;
        let spec = family.spec();
        let (start, epoch) = match spec.trees {
            Trees::All => {
                let (cubes, table) = match (spec.pair_tables, pairs) {
                    (true, Pairs::Sinkhorn) => (ELIMINATED * n * n * n, SCALED),
                    (true, _) => (ELIMINATED * n * n * n, TAKEN),
                    (false, _) => (2.0 * ELIMINATED * n * n * n, TAKEN),
                };
                // Validation goes one way only, in double precision.
                let validated = 2.0 * cubes / 3.0 + LOOKED_UP * n * n / 2.0;
                let learned = cubes + LOOKED_UP * n * n;
                let steps = batches * (table * total * total + BATCH);
                (counting + clusters, rows * learned + valid * validated + steps)
            }
            Trees::One => {
                let is_counted_alone = *family == Family::Independent;
                let (pairs, tables) = if is_counted_alone { (n, total) } else { (n * n, total * total) };
                let read = READ * n * (train.distinct + valid);
                let epoch = COUNTED * pairs * train.distinct + TAKEN * tables + read + 2.0 * BATCH;
                (epoch + clusters, epoch)
            }
            Trees::OneLatent => {
                let hidden = candidate.hidden as f64;
                let row = MESSAGES * n * hidden * hidden + PASSED * n * hidden;
                let parameters = hidden * (total + n * hidden);
                let exact = match candidate.settings.optimiser {
                    Optimiser::Adam => 1.0,
                    // In double precision.
                    Optimiser::Em => 2.0,
                };
                let steps = batches * (STEPPED * parameters + BATCH);
                let clusters = CLUSTERED * n * hidden.sqrt() * train.distinct;
                (counting + clusters, rows * row * exact + valid * row + steps)
            }
            Trees::Stored => {
                // Every row is compared with every stored one, for each bandwidth.
                let of_row = BANDWIDTHS * (total + COMPARED) * train.distinct;
                (counting + of_row * train.distinct.min(LEFT_OUT), of_row * valid)
            }
        };
        Self { start: start * components, epoch: epoch * components }
    }

    /// Of so many epochs.
    pub fn epochs(&self, epochs: usize) -> f64 {
        self.start + self.epoch * epochs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Table;

    #[test]
    fn equal_rows_of_a_batch_count_once() {
        let mut table = Table::new(&[2, 2]);
        (0..100u16).for_each(|row| table.push(&[row % 2, 0]));
        let met = Met::new(&table.unique(), 10);
        assert_eq!((met.distinct, met.batches), (2.0, 10.0));
        // Both of the two rows, nearly always.
        assert!(met.in_batches > 19.0 && met.in_batches <= 20.0, "{met:?}");
        assert_eq!(Met::new(&table.unique(), 1000).in_batches, 2.0);
    }
}
