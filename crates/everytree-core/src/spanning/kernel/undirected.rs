//! Symmetric rates: effective resistances (maths §2, for spanning trees).
//!
//! Vertex 0 is the root. Forwards, block after block is replaced by what its neighbours see of it (star–mesh);
//! backwards, `R[i][j] = ∂log F/∂q[i][j]`, the *effective resistance* between i and j, is extended from the vertices
//! that are left to the block that comes back. With u_k the step probabilities of vertex k when it was eliminated,
//!
//! ```text
//! R[k][j] = Σ_i u_k[i] R[i][j] + t_k,    t_k = 1/p_k − ½ Σ_ij u_k[i] u_k[j] R[i][j]
//! ```
//!
//! For a whole block and an outside vertex j the same holds with the exit distribution h_k of the block in place of
//! u_k, which makes it a matrix product; only pairs inside the block are done one by one, so that two vertices tied
//! to each other by a rate of 10⁶ still get their resistance of 10⁻⁶ to a small fraction of itself.
//!
//! Cost n³/3 forwards and 2n³/3 backwards, multiplications and additions counted singly.

use super::block::{Block, Shape, Span, eliminate, exits, invert, keep, recall, sum_outside, two_rows};
use super::field::Field;
use super::product::{Contiguous, Strided, Target, Write, add_constant, add_multiple, product, transpose};

/// Elements of work space for both sweeps.
pub(crate) fn space(shape: &Shape) -> usize {
    shape.together * (shape.panel() + Block::<()>::space(shape.block))
}

/// Eliminates all vertices of `q`, of which the part below the diagonal is given; writes every pivot and its
/// reciprocal. `q` is then what [`backward`] needs.
#[inline(always)]
pub(crate) fn forward<F: Field>(
    f: F,
    shape: &Shape,
    q: &mut [F::Element],
    pivots: &mut [F::Element],
    inverses: &mut [F::Element],
    space: &mut [F::Element],
) {
    let (b, stride) = (shape.block, shape.stride);
    let (exit_panel, rest) = space.split_at_mut(shape.panel());
    let mut block = Block::carve(b, rest);
    for number in (0..shape.blocks()).rev() {
        let span = shape.span(number);
        let Span { start, low, high } = span;
        sum_outside(f, &mut block, span, q, stride);
        for k in low..high {
            for l in low..k {
                let rate = q[(start + k) * stride + start + l];
                block.rates[k * b + l] = rate;
                block.rates[l * b + k] = rate;
            }
        }
        eliminate(f, &mut block, span, &mut pivots[start..start + b]);
        inverses[start..start + b].copy_from_slice(block.inverse);
        keep::<F>(&block, span, q, stride);
        if span.has_rest() {
            invert(f, &mut block, span);
            let (left, gone) = q.split_at_mut(start * stride);
            exit_distribution(f, &block, span, gone, stride, exit_panel);
            product(
                f,
                Target { data: left, stride },
                Write::AddLower,
                Strided { data: gone, row: 1, column: stride },
                Contiguous { data: exit_panel, stride },
                [start, start, high],
            );
        }
    }
}

/// `h[k][j] = Σ_l green[k][l] q[l][j]`: where a walk from k leaves the block. `rows` are the block's rows of q.
#[inline(always)]
fn exit_distribution<F: Field>(
    f: F,
    block: &Block<'_, F::Element>,
    span: Span,
    rows: &[F::Element],
    stride: usize,
    exit_panel: &mut [F::Element],
) {
    product(
        f,
        Target { data: exit_panel, stride },
        Write::Set,
        Strided { data: block.green, row: block.size, column: 1 },
        Contiguous { data: rows, stride },
        [span.high, span.start, span.high],
    );
}

/// Fills the symmetric matrix `r` of effective resistances from what [`forward`] left.
#[inline(always)]
pub(crate) fn backward<F: Field>(
    f: F,
    shape: &Shape,
    q: &[F::Element],
    inverses: &[F::Element],
    r: &mut [F::Element],
    space: &mut [F::Element],
) {
    let (b, stride) = (shape.block, shape.stride);
    let (exit_panels, rest) = space.split_at_mut(shape.together * shape.panel());
    for band in shape.bands() {
        // Everything before the band is known.
        let known = band.start * b;
        for (number, space) in band.clone().zip(rest.chunks_exact_mut(Block::<()>::space(b))) {
            let (block, span) = (&mut Block::carve(b, space), shape.span(number));
            block.inverse.copy_from_slice(&inverses[span.start..span.start + b]);
            recall(f, block, span, q, stride);
            invert(f, block, span);
            sum_outside(f, block, span, q, stride);
            exits(f, block, span);
            if span.has_rest() {
                let exit_panel = &mut exit_panels[(span.start - known) * stride..];
                exit_distribution(f, block, span, &q[span.start * stride..], stride, exit_panel);
            }
        }
        // y[k][j] = Σ_i h_k[i] R[i][j], first over all i before the band.
        let end = (band.end * b).min(shape.size);
        let (left, back) = r.split_at_mut(known * stride);
        product(
            f,
            Target { data: back, stride },
            Write::Set,
            Strided { data: exit_panels, row: stride, column: 1 },
            Contiguous { data: left, stride },
            [end - known, known, known],
        );
        for (number, space) in band.zip(rest.chunks_exact_mut(Block::<()>::space(b))) {
            let (mut block, span) = (Block::carve(b, space), shape.span(number));
            let exit_panel = &exit_panels[(span.start - known) * stride..];
            backward_block(f, shape, &mut block, span, known, exit_panel, q, r);
        }
    }
}

/// Fills the rows and columns of one block of `r`. Up to column `known`, its rows hold the part of `y` that comes from
/// before `known`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "one step of one loop")]
fn backward_block<F: Field>(
    f: F,
    shape: &Shape,
    block: &mut Block<'_, F::Element>,
    span: Span,
    known: usize,
    exit_panel: &[F::Element],
    q: &[F::Element],
    r: &mut [F::Element],
) {
    let (b, stride) = (shape.block, shape.stride);
    let zero = f.constant(0.0);
    let Span { start, low, high } = span;
    block.spare[0].fill(zero);
    if span.has_rest() {
        let gone = &q[start * stride..];
        let (left, back) = r.split_at_mut(start * stride);
        // The blocks of the band that are already back; then the columns among them.
        product(
            f,
            Target { data: back, stride },
            Write::Add,
            Strided { data: &exit_panel[known..], row: stride, column: 1 },
            Contiguous { data: &left[known * stride..], stride },
            [high, known, start - known],
        );
        product(
            f,
            Target { data: &mut back[known..], stride },
            Write::Set,
            Strided { data: exit_panel, row: stride, column: 1 },
            Contiguous { data: &left[known..], stride },
            [high, start - known, start],
        );
        transpose(
            Target { data: &mut left[start..], stride },
            Contiguous { data: back, stride },
            [high, start],
        );
        for row in left.chunks_exact_mut(stride) {
            row[start + high..start + b].fill(zero);
        }
        // z[k][l] = Σ_i q[k][i] y[l][i]
        product(
            f,
            Target { data: block.spare[0], stride: b },
            Write::Set,
            Strided { data: gone, row: stride, column: 1 },
            Contiguous { data: &left[start..], stride },
            [high, b, start],
        );
    }
    inside(f, block, span);
    for k in low..high {
        for l in low..high {
            r[(start + k) * stride + start + l] = block.rates[k * b + l];
        }
    }
    if span.has_rest() {
        for k in 0..high {
            add_constant(f, &mut r[(start + k) * stride..][..start], block.lift[k]);
        }
        for i in 0..start {
            let row = &mut r[i * stride + start..][..b];
            add_multiple(f, row, f.constant(1.0), block.lift, 0);
        }
    } else {
        r[0] = zero;
        for k in low..high {
            r[k * stride] = block.lift[k];
            r[k] = block.lift[k];
        }
    }
}

/// Resistances between the vertices of the block, into `block.rates`, and the `lift` of each: what is to be added
/// to `y[k][·]` to make it `R[k][·]`. `block.spare[0]` holds `z`.
#[inline(always)]
fn inside<F: Field>(f: F, block: &mut Block<'_, F::Element>, span: Span) {
    let b = block.size;
    let zero = f.constant(0.0);
    let half = f.constant(0.5);
    let [z, steps, _] = &mut block.spare;
    // steps[k][l] = Σ_i u_k[i] y[l][i] over the i outside.
    steps.fill(zero);
    for k in span.low..span.high {
        let row = &mut steps[k * b..(k + 1) * b];
        for l in span.low..=k {
            let factor = f.mul(block.down_inverse[k * b + l], block.inverse[k]);
            add_multiple(f, row, factor, &z[l * b..(l + 1) * b], 0);
        }
    }
    let r = &mut *block.rates;
    r.fill(zero);
    block.lift.fill(zero);
    for k in (span.low..span.high).rev() {
        // s[l] = Σ_i u_k[i] R[i][l] over all i left when k was eliminated, kept in row k of r for now.
        r[k * b..(k + 1) * b].copy_from_slice(&steps[k * b..(k + 1) * b]);
        add_multiple(f, &mut r[k * b..(k + 1) * b], block.exit[k], block.lift, 0);
        let mut carried = zero;
        for l in k + 1..span.high {
            let step = block.up[k * b + l];
            carried = f.mul_add(step, block.lift[l], carried);
            let (row, other) = two_rows(r, b, k, l);
            add_multiple(f, row, step, other, 0);
        }
        let mut twice = f.mul_add(block.exit[k], carried, steps[k * b + k]);
        for l in k + 1..span.high {
            twice = f.mul_add(block.up[k * b + l], r[k * b + l], twice);
        }
        let t = f.sub(block.inverse[k], f.mul(half, twice));
        block.lift[k] = f.add(t, carried);
        for l in 0..b {
            if l > k && l < span.high {
                let resistance = f.add(r[k * b + l], t);
                r[k * b + l] = resistance;
                r[l * b + k] = resistance;
            } else {
                r[k * b + l] = zero;
            }
        }
    }
}
