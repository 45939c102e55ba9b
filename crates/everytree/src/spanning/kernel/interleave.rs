//! Rows side by side: from one matrix after the other to one matrix a lane, and back.
//!
//! Written in tiles of 4 × 4, which the compiler turns into shuffles; left to itself it would scatter and gather
//! single numbers, which costs more than the elimination does at small n.

use super::real::Real;

const TILE: usize = 4;

/// `to[j · lanes + lane] = from(lane)[j]` for `j < entries`. Where a source is longer than `entries`, up to three
/// entries beyond may be written too; `to` must have room for as many entries as the sources have.
#[inline(always)]
pub(crate) fn interleave<'a, T: Real>(
    lanes: usize,
    entries: usize,
    from: impl Fn(usize) -> &'a [T],
    to: &mut [T],
) {
    for first in (0..lanes).step_by(TILE) {
        if first + TILE > lanes {
            for lane in first..lanes {
                (0..entries).for_each(|j| to[j * lanes + lane] = from(lane)[j]);
            }
            break;
        }
        let [a, b, c, d] = [from(first), from(first + 1), from(first + 2), from(first + 3)];
        let length = a.len().min(b.len()).min(c.len()).min(d.len()).min(to.len() / lanes);
        let mut j = 0;
        while j < entries && j + TILE <= length {
            let tile = [&a[j..j + TILE], &b[j..j + TILE], &c[j..j + TILE], &d[j..j + TILE]];
            for x in 0..TILE {
                let column = [tile[0][x], tile[1][x], tile[2][x], tile[3][x]];
                to[(j + x) * lanes + first..][..TILE].copy_from_slice(&column);
            }
            j += TILE;
        }
        while j < entries {
            to[j * lanes + first..][..TILE].copy_from_slice(&[a[j], b[j], c[j], d[j]]);
            j += 1;
        }
    }
}

/// `to[j] = from[j · lanes + lane]` for four lanes at once: the way back.
#[inline(always)]
pub(crate) fn deinterleave<T: Real>(lanes: usize, first: usize, from: &[T], to: [&mut [T]; TILE]) {
    let entries = to[0].len();
    let [a, b, c, d] = to;
    let mut j = 0;
    while j + TILE <= entries {
        let mut tile = [[T::default(); TILE]; TILE];
        for (x, column) in tile.iter_mut().enumerate() {
            column.copy_from_slice(&from[(j + x) * lanes + first..][..TILE]);
        }
        for (lane, row) in [&mut *a, &mut *b, &mut *c, &mut *d].into_iter().enumerate() {
            row[j..j + TILE].copy_from_slice(&[tile[0][lane], tile[1][lane], tile[2][lane], tile[3][lane]]);
        }
        j += TILE;
    }
    while j < entries {
        let column = &from[j * lanes + first..][..TILE];
        (a[j], b[j], c[j], d[j]) = (column[0], column[1], column[2], column[3]);
        j += 1;
    }
}
