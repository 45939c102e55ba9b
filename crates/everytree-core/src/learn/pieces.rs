//! Long work in pieces, so that it can end early.

use crate::util::{MOMENT, Stop};
use std::time::{Duration, Instant};

/// Rows that stay together.
const BLOCK: usize = 16;
/// Rows of the first piece: with thousands of variables even these take a second.
const FIRST: usize = 4;
/// Most rows of a piece.
const MOST: usize = 4096;
/// A piece takes about this long, where rows are many.
const LONG: Duration = Duration::from_millis(50);

/// Rows of a table in pieces that are as large as a look at the clock allows, spread over the table from the first pieces on: whoever
/// ends early has seen rows from everywhere. What comes of a row must not depend on the others of its piece.
pub(super) struct Pieces<'a> {
    rows: usize,
    /// Rows that have been given out.
    given: usize,
    /// The block that comes next, and its rows that have been given out.
    block: usize,
    within: usize,
    /// From one block to the next; has no factor in common with their number.
    step: usize,
    begin: Option<Instant>,
    /// Rows of the last piece, and when it was given out.
    last: Option<(usize, Instant)>,
    stop: Stop<'a>,
}

impl<'a> Pieces<'a> {
    pub fn new(rows: usize, stop: Stop<'a>) -> Self {
        let blocks = rows.div_ceil(BLOCK);
        // About a golden section away, so that all parts of the table come early.
        let step = (blocks * 34 / 55..).find(|&step| gcd(step, blocks) == 1).unwrap_or(1);
        Self { rows, given: 0, block: 0, within: 0, step, begin: None, last: None, stop }
    }

    /// The places of the next rows; none if all are done, or it is time to end. There is always a first piece.
    pub fn next(&mut self) -> Option<Vec<usize>> {
        let now = Instant::now();
        let hurry = now - *self.begin.get_or_insert(now) >= MOMENT && (self.stop)();
        if self.given == self.rows || (self.last.is_some() && hurry) {
            return None;
        }
        let size = match self.last {
            None => FIRST,
            // Something to do for every thread, whatever it takes.
            Some((FIRST, _)) => BLOCK * rayon::current_num_threads(),
            Some((size, begin)) if now - begin < LONG => (2 * size).min(MOST),
            Some((size, _)) => size,
        };
        self.last = Some((size, now));
        let places: Vec<usize> = (0..size.min(self.rows - self.given)).map(|_| self.next_row()).collect();
        self.given += places.len();
        Some(places)
    }

    fn next_row(&mut self) -> usize {
        let blocks = self.rows.div_ceil(BLOCK);
        let row = self.block * BLOCK + self.within;
        self.within += 1;
        if self.within == BLOCK || row + 1 == self.rows {
            (self.block, self.within) = ((self.block + self.step) % blocks, 0);
        }
        row
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn every_row_comes_once() {
        for rows in [0, 1, 15, 16, 17, 100, 1000, 70_000] {
            let mut pieces = Pieces::new(rows, &|| false);
            let mut seen = vec![0; rows];
            while let Some(places) = pieces.next() {
                places.into_iter().for_each(|row| seen[row] += 1);
            }
            assert!(seen.iter().all(|&times| times == 1), "{rows}");
        }
    }

    #[test]
    fn there_is_always_a_first_piece_and_no_other_when_it_is_late() {
        let late = Cell::new(true);
        let stop = || late.get();
        let mut pieces = Pieces::new(100_000, &stop);
        assert_eq!(pieces.next().map(|places| places.len()), Some(FIRST));
        let mut rows: Vec<usize> = (0..9).flat_map(|_| pieces.next().unwrap()).collect();
        std::thread::sleep(MOMENT);
        assert_eq!(pieces.next(), None);
        // From all over the table.
        rows.sort_unstable();
        let quarters: Vec<usize> =
            (0..4).map(|q| rows.iter().filter(|&&row| row / 25_000 == q).count()).collect();
        assert!(quarters.iter().all(|&count| 5 * count > rows.len()), "{quarters:?}");
        late.set(false);
        assert!(pieces.next().is_some());
    }
}
