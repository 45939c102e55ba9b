//! Which rows come together: an order for every epoch, equal rows computed once.

use crate::data::{Table, Unique};
use crate::util::{shuffle, stream};

/// The rows of an epoch in the order in which they are taken.
pub(crate) fn order(data: &Unique, seed: u64, epoch: usize) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..data.rows() as u32).collect();
    shuffle(&mut rows, &mut stream(seed, "order of rows", epoch as u64));
    rows
}

/// A mini-batch: distinct rows and what each weighs in it.
pub(crate) struct Batch {
    pub table: Table,
    pub weights: Vec<f64>,
    /// Of all of them.
    pub total: f64,
    /// Rows by the places of their equals.
    rows: Vec<(u32, u32)>,
    /// Where the distinct rows lie among all.
    pub places: Vec<u32>,
}

impl Batch {
    pub fn new(data: &Unique) -> Self {
        Self {
            table: data.table.alike(),
            weights: Vec::new(),
            total: 0.0,
            rows: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Which rows it has, and what they weigh.
    pub fn choose(&mut self, data: &Unique, rows: &[u32]) {
        self.rows.clear();
        self.rows.extend(rows.iter().map(|&row| (data.of_row[row as usize], row)));
        // Weights are added up in one order, whatever that of the rows.
        self.rows.sort_unstable();
        self.places.clear();
        self.weights.clear();
        for &(place, row) in &self.rows {
            let weight = data.weight(row as usize);
            match self.weights.last_mut() {
                Some(sum) if self.places.last() == Some(&place) => *sum += weight,
                _ => {
                    self.places.push(place);
                    self.weights.push(weight);
                }
            }
        }
        self.total = self.weights.iter().sum();
    }

    /// The rows themselves.
    pub fn gather(&mut self, data: &Unique) {
        data.table.gather(self.places.iter().map(|&place| place as usize), &mut self.table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Unique {
        let mut table = Table::new(&[2, 2]);
        (0..40u16).for_each(|i| table.push(&[i % 2, u16::from(i % 5 == 0)]));
        table.unique()
    }

    #[test]
    fn a_batch_weighs_what_its_rows_weigh() {
        let data = data();
        let order = order(&data, 3, 1);
        let mut sums = vec![0.0; data.weights.len()];
        let mut batch = Batch::new(&data);
        for rows in order.chunks(7) {
            batch.choose(&data, rows);
            batch.gather(&data);
            assert_eq!(batch.weights.iter().sum::<f64>(), rows.len() as f64);
            assert_eq!(batch.table.rows(), batch.weights.len());
            batch
                .places
                .iter()
                .zip(&batch.weights)
                .for_each(|(&place, weight)| sums[place as usize] += weight);
        }
        assert_eq!(sums, data.weights);
    }

    #[test]
    fn rows_that_weigh_twice_are_there_twice() {
        let data = data();
        let mut table = Table::new(&[2, 2]);
        (0..40u16).for_each(|i| table.push(&[i % 2, u16::from(i % 5 == 0)]));
        let twice = table.unique_weighted(&[2.0; 40]);
        assert_eq!(twice.weights, data.weights.iter().map(|weight| 2.0 * weight).collect::<Vec<_>>());
        assert_eq!((twice.total(), data.total()), (80.0, 40.0));
        let (mut one, mut other) = (Batch::new(&data), Batch::new(&twice));
        let rows = order(&data, 3, 1);
        one.choose(&data, &rows[..9]);
        one.gather(&data);
        other.choose(&twice, &rows[..9]);
        other.gather(&twice);
        assert_eq!(other.weights, one.weights.iter().map(|weight| 2.0 * weight).collect::<Vec<_>>());
        assert_eq!((one.total, other.total), (9.0, 18.0));
    }

    #[test]
    fn epochs_and_seeds_have_their_own_order() {
        let data = data();
        assert_eq!(order(&data, 3, 1), order(&data, 3, 1));
        assert_ne!(order(&data, 3, 1), order(&data, 3, 2));
        assert_ne!(order(&data, 3, 1), order(&data, 4, 1));
    }
}
