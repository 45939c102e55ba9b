//! Which rows are held out: some once, or all of them in turn.

use crate::data::Dataset;
use crate::util::{shuffle, stream};

/// With fewer rows than this, all are held out in turn.
const FEW_ROWS: usize = 5000;
/// In how many parts.
const PARTS: usize = 5;

/// Pairs of rows to learn from and rows to validate with.
#[derive(Clone, Debug)]
pub struct Folds {
    /// To learn from, to validate with; one pair, or one a fold.
    pub pairs: Vec<(Dataset, Dataset)>,
    /// The rows that are held out, fold after fold.
    pub weights: Vec<f64>,
}

impl Folds {
    /// One pair.
    pub fn one(train: Dataset, valid: Dataset) -> Self {
        let weights = valid.weights().to_vec();
        Self { pairs: vec![(train, valid)], weights }
    }

    /// As many as the number of rows asks for: one that holds out a fraction, or all rows in turn where they are few.
    pub fn of(data: &Dataset, fraction: f64, folds: Option<usize>, seed: u64) -> Self {
        let parts = folds.unwrap_or(if data.rows() < FEW_ROWS { PARTS } else { 1 }).min(data.rows());
        if parts < 2 {
            let (train, valid) = data.split(fraction, seed);
            return Self::one(train, valid);
        }
        let mut places: Vec<u32> = (0..data.rows() as u32).collect();
        shuffle(&mut places, &mut stream(seed, "folds", 0));
        let mut part = vec![0; data.rows()];
        places.iter().enumerate().for_each(|(number, &row)| part[row as usize] = number % parts);
        let pair = |fold: usize| {
            let (valid, train): (Vec<usize>, Vec<usize>) =
                (0..data.rows()).partition(|&row| part[row] == fold);
            (data.select(&train), data.select(&valid))
        };
        let pairs: Vec<(Dataset, Dataset)> = (0..parts).map(pair).collect();
        let weights = pairs.iter().flat_map(|(_, valid)| valid.weights().iter().copied()).collect();
        Self { pairs, weights }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// Rows held out, in all folds together.
    pub fn held_out(&self) -> usize {
        self.pairs.iter().map(|(_, valid)| valid.rows()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Table;

    fn numbered(rows: usize) -> Dataset {
        let states = vec![rows.max(2)];
        let mut table = Table::new(&states);
        (0..rows as u16).for_each(|row| table.push(&[row]));
        Dataset::anonymous(&states, table).unwrap()
    }

    #[test]
    fn every_row_is_held_out_once() {
        for rows in [2, 3, 11, 100] {
            let folds = Folds::of(&numbered(rows), 0.1, None, 3);
            assert_eq!(folds.count(), rows.min(5));
            let mut held: Vec<usize> = Vec::new();
            for (train, valid) in &folds.pairs {
                assert!(train.rows() > 0 && train.rows() + valid.rows() == rows);
                held.extend((0..valid.rows()).map(|row| valid.table().get(row, 0)));
            }
            held.sort_unstable();
            assert_eq!(held, (0..rows).collect::<Vec<_>>());
        }
        assert_eq!(Folds::of(&numbered(100), 0.1, Some(1), 3).held_out(), 10);
    }
}
