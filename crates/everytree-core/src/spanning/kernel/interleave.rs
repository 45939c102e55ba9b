//! Rows side by side: from one matrix after the other to one matrix a lane, and back.
//!
//! Written in tiles of 4 × 4, which the compiler turns into shuffles; left to itself it would scatter and gather
//! single numbers, which costs more than the elimination does at small n.

use super::real::Real;

const TILE: usize = 4;
type Tile<T> = [[T; TILE]; TILE];

#[inline(always)]
fn transposed<T: Real>(t: Tile<T>) -> Tile<T> {
    // Spelled out: closures over arrays are not always inlined.
    [
        [t[0][0], t[1][0], t[2][0], t[3][0]],
        [t[0][1], t[1][1], t[2][1], t[3][1]],
        [t[0][2], t[1][2], t[2][2], t[3][2]],
        [t[0][3], t[1][3], t[2][3], t[3][3]],
    ]
}

/// Four neighbours.
///
/// # Safety
/// `from` must have at least `place + 4` elements.
#[inline(always)]
unsafe fn read<T: Real>(from: &[T], place: usize) -> [T; TILE] {
    debug_assert!(place + TILE <= from.len());
    // SAFETY: the caller's promise.
    unsafe { from.as_ptr().add(place).cast::<[T; TILE]>().read_unaligned() }
}

/// `to[j · lanes + lane] = from(lane)[j]` for `j < entries`. Where a source is longer than `entries`, up to three
/// entries beyond may be written too.
#[inline(always)]
pub(crate) fn interleave<'a, T: Real>(
    lanes: usize,
    entries: usize,
    from: impl Fn(usize) -> &'a [T],
    to: &mut [T],
) {
    assert!(entries * lanes <= to.len());
    for first in (0..lanes / TILE * TILE).step_by(TILE) {
        let [a, b, c, d] = [from(first), from(first + 1), from(first + 2), from(first + 3)];
        let length = a.len().min(b.len()).min(c.len()).min(d.len()).min(to.len() / lanes);
        assert!(entries <= length);
        let mut j = 0;
        while j < entries && j + TILE <= length {
            // SAFETY: j + 4 <= length, which bounds every source and, times `lanes`, the target.
            unsafe {
                let t = transposed([read(a, j), read(b, j), read(c, j), read(d, j)]);
                for x in 0..TILE {
                    let place = to.as_mut_ptr().add((j + x) * lanes + first);
                    place.cast::<[T; TILE]>().write_unaligned(t[x]);
                }
            }
            j += TILE;
        }
        for j in j..entries {
            to[j * lanes + first..][..TILE].copy_from_slice(&[a[j], b[j], c[j], d[j]]);
        }
    }
    for lane in lanes / TILE * TILE..lanes {
        let source = from(lane);
        (0..entries).for_each(|j| to[j * lanes + lane] = source[j]);
    }
}

/// `to[k][j] = from[j · lanes + first + k]` for four lanes at once: the reverse.
#[inline(always)]
pub(crate) fn deinterleave<T: Real>(lanes: usize, first: usize, from: &[T], to: [&mut [T]; TILE]) {
    let [a, b, c, d] = to;
    let entries = a.len().min(b.len()).min(c.len()).min(d.len());
    assert!(first + TILE <= lanes && entries * lanes <= from.len());
    let rows = [a.as_mut_ptr(), b.as_mut_ptr(), c.as_mut_ptr(), d.as_mut_ptr()];
    for j in (0..entries / TILE * TILE).step_by(TILE) {
        // SAFETY: j + 4 <= entries, which bounds every row and, times `lanes`, the source.
        unsafe {
            let place = |x: usize| (j + x) * lanes + first;
            let tile =
                [read(from, place(0)), read(from, place(1)), read(from, place(2)), read(from, place(3))];
            let t = transposed(tile);
            for k in 0..TILE {
                rows[k].add(j).cast::<[T; TILE]>().write_unaligned(t[k]);
            }
        }
    }
    for j in entries / TILE * TILE..entries {
        for (k, row) in rows.into_iter().enumerate() {
            // SAFETY: j < entries, the length of the shortest row.
            unsafe { row.add(j).write(from[j * lanes + first + k]) };
        }
    }
}
