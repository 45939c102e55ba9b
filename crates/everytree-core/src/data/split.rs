//! Rows held out from others.

use crate::util::{shuffle, stream};

/// Rows to learn from and rows to validate with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// To learn from, in order.
    pub train: Vec<usize>,
    /// To validate with, in order.
    pub valid: Vec<usize>,
}

/// Holds out a fraction of `rows` rows at random; at least one on either side, where there are two.
pub(super) fn split(rows: usize, fraction: f64, seed: u64) -> Split {
    let mut places: Vec<u32> = (0..rows as u32).collect();
    shuffle(&mut places, &mut stream(seed, "rows held out", 0));
    let held = ((rows as f64 * fraction).round() as usize).clamp(rows.min(1), rows.saturating_sub(1).max(1));
    let (valid, train) = places.split_at(held.min(rows));
    let sorted = |places: &[u32]| {
        let mut places: Vec<usize> = places.iter().map(|&place| place as usize).collect();
        places.sort_unstable();
        places
    };
    Split { train: sorted(train), valid: sorted(valid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_a_partition() {
        for (rows, fraction, held) in [(100, 0.1, 10), (2, 0.1, 1), (2, 0.9, 1), (10, 0.25, 3), (1, 0.5, 1)] {
            let Split { train, valid } = split(rows, fraction, 5);
            assert_eq!(valid.len(), held);
            let mut all: Vec<usize> = train.into_iter().chain(valid).collect();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }
}
