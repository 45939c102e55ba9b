//! The small dense algebra inside one block of vertices.
//!
//! A block of B vertices is eliminated against everything outside it at once. Seen from inside, all that lies outside
//! is one single root: only the *sum* of a vertex's rates to the outside matters for the pivots. So the sequential
//! part of the elimination touches B × B entries, and all that touches the rest of the matrix is a product.
//! Everything here adds, multiplies and divides non-negative numbers.

use super::field::Field;
use super::product::{add_multiple, sum};
use std::ops::Range;

/// How a row's matrix is laid out and cut into blocks.
///
/// Index 0 is the root. Blocks start at multiples of `block`; the highest is eliminated first. What is left when
/// block `[start, start + block)` goes is always `[0, start)`: whole vectors, no remainders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Indices: the root and every vertex that is eliminated.
    pub size: usize,
    /// Elements from one matrix row to the next.
    pub stride: usize,
    /// Vertices in a block.
    pub block: usize,
    /// Blocks that come back together: the matrix of derivatives is read once for all of them.
    pub together: usize,
}

impl Shape {
    pub fn blocks(&self) -> usize {
        self.size.div_ceil(self.block)
    }

    /// Elements of a matrix.
    pub fn matrix(&self) -> usize {
        self.blocks() * self.block * self.stride
    }

    /// Elements of a panel of one block's rows.
    pub fn panel(&self) -> usize {
        self.block * self.stride
    }

    /// The numbers of the blocks that come back together, first those nearest to the root.
    pub fn bands(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (blocks, together) = (self.blocks(), self.together);
        (0..blocks).step_by(together).map(move |first| first..(first + together).min(blocks))
    }

    /// Block number `number`: where it starts, and which of its places hold a vertex to eliminate (place 0 of block
    /// 0 is the root; the last block may be short).
    pub fn span(&self, number: usize) -> Span {
        let start = number * self.block;
        Span { start, low: usize::from(number == 0), high: self.block.min(self.size - start) }
    }
}

/// The places of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: usize,
    pub low: usize,
    pub high: usize,
}

impl Span {
    /// Is there anything but the root outside?
    pub fn has_rest(&self) -> bool {
        self.start > 0
    }
}

/// Work space for one block; every matrix is `size × size`.
pub(crate) struct Block<'a, E> {
    pub size: usize,
    /// Rates between the vertices of the block.
    pub rates: &'a mut [E],
    /// `up[k][l]`, l > k: probability that a walk leaving k goes to l, when what comes before k is eliminated.
    pub up: &'a mut [E],
    /// `down[l][k]`, l > k: rate from l to k over the pivot of k.
    pub down: &'a mut [E],
    /// `(1 − up)⁻¹`
    pub up_inverse: &'a mut [E],
    /// `(1 − down)⁻¹`
    pub down_inverse: &'a mut [E],
    /// Expected time at l for a walk that starts in k, before it leaves the block.
    pub green: &'a mut [E],
    /// Three more for the backward sweep.
    pub spare: [&'a mut [E]; 3],
    /// Sum of the rates to the outside.
    pub outside: &'a mut [E],
    /// Reciprocals of the pivots.
    pub inverse: &'a mut [E],
    /// Probability that a walk leaving k goes straight outside, when what comes before k is eliminated.
    pub exit: &'a mut [E],
    /// What the backward sweep adds to a whole row.
    pub lift: &'a mut [E],
}

impl<'a, E: Copy> Block<'a, E> {
    /// Elements of work space needed.
    pub fn space(size: usize) -> usize {
        9 * size * size + 4 * size
    }

    pub fn carve(size: usize, space: &'a mut [E]) -> Self {
        let mut rest = space;
        let mut take = |length| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(length);
            rest = tail;
            head
        };
        let square = size * size;
        Self {
            size,
            rates: take(square),
            up: take(square),
            down: take(square),
            up_inverse: take(square),
            down_inverse: take(square),
            green: take(square),
            spare: [take(square), take(square), take(square)],
            outside: take(size),
            inverse: take(size),
            exit: take(size),
            lift: take(size),
        }
    }
}

/// Row `to` for writing and row `from` for reading.
#[inline(always)]
pub(crate) fn two_rows<E>(data: &mut [E], width: usize, to: usize, from: usize) -> (&mut [E], &[E]) {
    if to < from {
        let (head, tail) = data.split_at_mut(from * width);
        (&mut head[to * width..(to + 1) * width], &tail[..width])
    } else {
        let (head, tail) = data.split_at_mut(to * width);
        (&mut tail[..width], &head[from * width..(from + 1) * width])
    }
}

/// Eliminates the vertices `low .. high` of the block, of which `rates` and `outside` are given (and used up).
/// Fills `up`, `down` and `inverse`, and writes the pivots.
#[inline(always)]
pub(crate) fn eliminate<F: Field>(
    f: F,
    block: &mut Block<'_, F::Element>,
    span: Span,
    pivots: &mut [F::Element],
) {
    let b = block.size;
    let zero = f.constant(0.0);
    block.up.fill(zero);
    block.down.fill(zero);
    block.inverse.fill(zero);
    for k in span.low..span.high {
        let row = &mut block.up[k * b..(k + 1) * b];
        row[k + 1..span.high].copy_from_slice(&block.rates[k * b + k + 1..k * b + span.high]);
        let pivot = f.add(block.outside[k], sum(f, row));
        let inverse = f.reciprocal(pivot);
        pivots[k] = pivot;
        block.inverse[k] = inverse;
        for entry in &mut row[k + 1..span.high] {
            *entry = f.mul(*entry, inverse);
        }
        let exit = f.mul(block.outside[k], inverse);
        for i in k + 1..span.high {
            let rate = block.rates[i * b + k];
            block.down[i * b + k] = f.mul(rate, inverse);
            add_multiple(f, &mut block.rates[i * b..(i + 1) * b], rate, &block.up[k * b..(k + 1) * b], k + 1);
            block.outside[i] = f.mul_add(rate, exit, block.outside[i]);
        }
    }
}

/// Fills `up_inverse`, `down_inverse` and `green` from `up`, `down` and `inverse`.
#[inline(always)]
pub(crate) fn invert<F: Field>(f: F, block: &mut Block<'_, F::Element>, span: Span) {
    let b = block.size;
    let (zero, one) = (f.constant(0.0), f.constant(1.0));
    block.up_inverse.fill(zero);
    block.down_inverse.fill(zero);
    block.green.fill(zero);
    for k in (span.low..span.high).rev() {
        block.up_inverse[k * b + k] = one;
        for l in k + 1..span.high {
            let (row, other) = two_rows(block.up_inverse, b, k, l);
            add_multiple(f, row, block.up[k * b + l], other, l);
        }
    }
    for i in span.low..span.high {
        block.down_inverse[i * b + i] = one;
        for l in span.low..i {
            let (row, other) = two_rows(block.down_inverse, b, i, l);
            add_multiple(f, row, block.down[i * b + l], other, 0);
        }
    }
    for k in span.low..span.high {
        for l in k..span.high {
            let factor = f.mul(block.up_inverse[k * b + l], block.inverse[l]);
            let green = &mut block.green[k * b..(k + 1) * b];
            add_multiple(f, green, factor, &block.down_inverse[l * b..(l + 1) * b], 0);
        }
    }
}

/// Writes `up` and `down` into the block's own square of the matrix, where nobody needs the rates any more.
#[inline(always)]
pub(crate) fn keep<F: Field>(block: &Block<'_, F::Element>, span: Span, q: &mut [F::Element], stride: usize) {
    let b = block.size;
    for k in span.low..span.high {
        for l in span.low..span.high {
            let entry = if l > k { block.up[k * b + l] } else { block.down[k * b + l] };
            q[(span.start + k) * stride + span.start + l] = entry;
        }
    }
}

/// Reads back what [`keep`] wrote.
#[inline(always)]
pub(crate) fn recall<F: Field>(
    f: F,
    block: &mut Block<'_, F::Element>,
    span: Span,
    q: &[F::Element],
    stride: usize,
) {
    let b = block.size;
    let zero = f.constant(0.0);
    block.up.fill(zero);
    block.down.fill(zero);
    for k in span.low..span.high {
        let row = &q[(span.start + k) * stride + span.start..][..b];
        block.up[k * b + k + 1..k * b + span.high].copy_from_slice(&row[k + 1..span.high]);
        block.down[k * b + span.low..k * b + k].copy_from_slice(&row[span.low..k]);
    }
}

/// Sums of the block's rates to the outside, from the matrix.
#[inline(always)]
pub(crate) fn sum_outside<F: Field>(
    f: F,
    block: &mut Block<'_, F::Element>,
    span: Span,
    q: &[F::Element],
    stride: usize,
) {
    for k in span.low..span.high {
        let row = &q[(span.start + k) * stride..];
        block.outside[k] = if span.has_rest() { sum(f, &row[..span.start]) } else { row[0] };
    }
}

/// Fills `exit` from `down_inverse`, `inverse` and the original `outside` sums.
#[inline(always)]
pub(crate) fn exits<F: Field>(f: F, block: &mut Block<'_, F::Element>, span: Span) {
    let b = block.size;
    for k in span.low..span.high {
        let mut total = f.constant(0.0);
        for l in span.low..=k {
            total = f.mul_add(block.down_inverse[k * b + l], block.outside[l], total);
        }
        block.exit[k] = f.mul(total, block.inverse[k]);
    }
}
