//! Rates that differ in the two directions, and root rates: rooted forests (maths §2).
//!
//! Index 0 is the root above all vertices: column 0 holds the root rates, row 0 is empty. Backwards,
//! `G[i][j] = ∂log F/∂q[i][j]` is extended from the vertices that are left to the block that comes back. With u_k the
//! step probabilities of vertex k when it was eliminated and f_k the rates into k over its pivot,
//!
//! ```text
//! G[i][k] = Σ_j u_k[j] G[i][j]
//! G[k][j] = Σ_i f_k[i] G[i][j] + t_k,    t_k = 1/p_k − Σ_i f_k[i] G[i][k]
//! ```
//!
//! and for a whole block and an outside vertex the same with the exit distribution of the block in place of u_k, and
//! the expected time at k after entering from i in place of f_k[i]: two matrix products.
//!
//! Cost 2n³/3 forwards and 4n³/3 backwards, multiplications and additions counted singly.

use super::block::{Block, Shape, Span, eliminate, exits, invert, keep, recall, sum_outside, two_rows};
use super::field::Field;
use super::product::{Contiguous, Strided, Target, Write, add_constant, add_multiple, product, transpose};

/// Elements of work space for both sweeps.
pub(crate) fn space(shape: &Shape) -> usize {
    shape.together * (4 * shape.panel() + Block::<()>::space(shape.block))
}

/// Eliminates all vertices of `q`; writes every pivot and its reciprocal. `q` is then what [`backward`] needs.
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
    let (entry_panel, rest) = rest.split_at_mut(shape.panel());
    let mut block = Block::carve(b, rest);
    for number in (0..shape.blocks()).rev() {
        let span = shape.span(number);
        let Span { start, low, high } = span;
        sum_outside(f, &mut block, span, q, stride);
        for k in low..high {
            let row = &q[(start + k) * stride + start..][..b];
            block.rates[k * b + low..k * b + high].copy_from_slice(&row[low..high]);
        }
        eliminate(f, &mut block, span, &mut pivots[start..start + b]);
        inverses[start..start + b].copy_from_slice(block.inverse);
        keep::<F>(&block, span, q, stride);
        if span.has_rest() {
            invert(f, &mut block, span);
            let (left, gone) = q.split_at_mut(start * stride);
            product(
                f,
                Target { data: exit_panel, stride },
                Write::Set,
                Strided { data: block.green, row: b, column: 1 },
                Contiguous { data: gone, stride },
                [high, start, high],
            );
            // The rates into the block stay where they are, for the backward pass; the product reads a copy.
            for i in 0..start {
                entry_panel[i * b..i * b + high].copy_from_slice(&left[i * stride + start..][..high]);
            }
            product(
                f,
                Target { data: left, stride },
                Write::Add,
                Strided { data: entry_panel, row: b, column: 1 },
                Contiguous { data: exit_panel, stride },
                [start, start, high],
            );
        }
    }
}

/// Fills the matrix `g` of derivatives from what [`forward`] left.
#[inline(always)]
pub(crate) fn backward<F: Field>(
    f: F,
    shape: &Shape,
    q: &[F::Element],
    inverses: &[F::Element],
    g: &mut [F::Element],
    space: &mut [F::Element],
) {
    let (b, stride) = (shape.block, shape.stride);
    let zero = f.constant(0.0);
    // Rows of a panel hold the blocks of a band side by side.
    let width = shape.together * b;
    let panel = shape.together * shape.panel();
    let (outgoing, rest) = space.split_at_mut(panel);
    let (exits_panel, rest) = rest.split_at_mut(panel);
    let (entries, rest) = rest.split_at_mut(panel);
    let (columns, rest) = rest.split_at_mut(panel);
    for band in shape.bands() {
        // Everything before the band is known.
        let known = band.start * b;
        for (number, space) in band.clone().zip(rest.chunks_exact_mut(Block::<()>::space(b))) {
            let (block, span) = (&mut Block::carve(b, space), shape.span(number));
            let Span { start, high, .. } = span;
            block.inverse.copy_from_slice(&inverses[start..start + b]);
            recall(f, block, span, q, stride);
            invert(f, block, span);
            sum_outside(f, block, span, q, stride);
            exits(f, block, span);
            if span.has_rest() {
                let place = start - known;
                transpose(
                    Target { data: &mut outgoing[place..], stride: width },
                    Contiguous { data: &q[start * stride..], stride },
                    [high, start],
                );
                for row in outgoing[..start * width].chunks_exact_mut(width) {
                    row[place + high..place + b].fill(zero);
                }
                // green transposed, into spare[2]: the exit distributions, one column a vertex of the block.
                for k in 0..b {
                    for l in 0..b {
                        block.spare[2][l * b + k] = block.green[k * b + l];
                    }
                }
                product(
                    f,
                    Target { data: &mut exits_panel[place..], stride: width },
                    Write::Set,
                    Strided { data: &outgoing[place..], row: width, column: 1 },
                    Contiguous { data: block.spare[2], stride: b },
                    [start, b, high],
                );
                // Expected time at k after entering the block from i, by rate.
                product(
                    f,
                    Target { data: &mut entries[place..], stride: width },
                    Write::Set,
                    Strided { data: &q[start..], row: stride, column: 1 },
                    Contiguous { data: block.green, stride: b },
                    [start, b, high],
                );
            }
        }
        let panels = Panels { width, outgoing, exits: exits_panel, entries };
        panels.before_the_band(f, shape, known, band.len() * b, (band.end * b).min(shape.size), columns, g);
        for (number, space) in band.zip(rest.chunks_exact_mut(Block::<()>::space(b))) {
            let (mut block, span) = (Block::carve(b, space), shape.span(number));
            panels.backward_block(f, shape, &mut block, span, known, q, columns, g);
        }
    }
}

/// What the blocks of a band have to do with everything before them; row i of a panel belongs to index i.
struct Panels<'a, E> {
    /// Numbers from one row to the next.
    width: usize,
    /// `q[k][i]`, rates from the band.
    outgoing: &'a [E],
    /// `h_k[i]`, where a walk from k leaves its block.
    exits: &'a [E],
    /// Time at k after entering its block from i, by rate.
    entries: &'a [E],
}

impl<E: Copy> Panels<'_, E> {
    /// The parts of x (into `columns`) and y (into the rows of `g`) that come from before `known`, for all blocks of
    /// the band at once.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn before_the_band<F: Field<Element = E>>(
        &self,
        f: F,
        shape: &Shape,
        known: usize,
        wide: usize,
        end: usize,
        columns: &mut [E],
        g: &mut [E],
    ) {
        let (stride, width) = (shape.stride, self.width);
        // x[i][k] = Σ_j G[i][j] h_k[j], some rows at a time, so that they stay in the cache for all k.
        const SOME: usize = 48;
        for first in (0..known).step_by(SOME) {
            product(
                f,
                Target { data: &mut columns[first * width..], stride: width },
                Write::Set,
                Strided { data: &g[first * stride..], row: stride, column: 1 },
                Contiguous { data: self.exits, stride: width },
                [SOME.min(known - first), wide, known],
            );
        }
        // y[k][j] = Σ_i entries[i][k] G[i][j], up to the lift.
        let (left, back) = g.split_at_mut(known * stride);
        product(
            f,
            Target { data: back, stride },
            Write::Set,
            Strided { data: self.entries, row: 1, column: width },
            Contiguous { data: left, stride },
            [end - known, known, known],
        );
    }

    /// Fills the rows and columns of one block of `g`.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one step of one loop")]
    fn backward_block<F: Field<Element = E>>(
        &self,
        f: F,
        shape: &Shape,
        block: &mut Block<'_, E>,
        span: Span,
        known: usize,
        q: &[E],
        columns: &mut [E],
        g: &mut [E],
    ) {
        let (b, stride, width) = (shape.block, shape.stride, self.width);
        let zero = f.constant(0.0);
        let Span { start, low, high } = span;
        let place = start - known;
        block.spare[0].fill(zero);
        block.spare[1].fill(zero);
        if span.has_rest() {
            // The blocks of the band that are already back: their part of what lies before the band, then what lies
            // among them.
            let columns = &mut columns[place..];
            product(
                f,
                Target { data: columns, stride: width },
                Write::Add,
                Strided { data: &g[known..], row: stride, column: 1 },
                Contiguous { data: &self.exits[known * width + place..], stride: width },
                [known, b, place],
            );
            product(
                f,
                Target { data: &mut columns[known * width..], stride: width },
                Write::Set,
                Strided { data: &g[known * stride..], row: stride, column: 1 },
                Contiguous { data: &self.exits[place..], stride: width },
                [place, b, start],
            );
            let (left, back) = g.split_at_mut(start * stride);
            product(
                f,
                Target { data: back, stride },
                Write::Add,
                Strided { data: &self.entries[known * width + place..], row: 1, column: width },
                Contiguous { data: &left[known * stride..], stride },
                [high, known, place],
            );
            product(
                f,
                Target { data: &mut back[known..], stride },
                Write::Set,
                Strided { data: &self.entries[place..], row: 1, column: width },
                Contiguous { data: &left[known..], stride },
                [high, place, start],
            );
            // z_out[l][k] = Σ_j y[l][j] q[k][j]; z_in[k][l] = Σ_i q[i][k] x[i][l]
            product(
                f,
                Target { data: block.spare[0], stride: b },
                Write::Set,
                Strided { data: back, row: stride, column: 1 },
                Contiguous { data: &self.outgoing[place..], stride: width },
                [high, b, start],
            );
            product(
                f,
                Target { data: block.spare[1], stride: b },
                Write::Set,
                Strided { data: &q[start..], row: 1, column: stride },
                Contiguous { data: columns, stride: width },
                [high, b, start],
            );
        }
        inside(f, block, span);
        for k in low..high {
            for l in low..high {
                g[(start + k) * stride + start + l] = block.rates[k * b + l];
            }
        }
        if span.has_rest() {
            for k in 0..high {
                add_constant(f, &mut g[(start + k) * stride..][..start], block.lift[k]);
            }
            for i in 0..start {
                g[i * stride + start..][..b].copy_from_slice(&columns[i * width + place..][..b]);
            }
        } else {
            g[..b].fill(zero);
            for k in low..high {
                g[k * stride] = block.lift[k];
            }
        }
    }
}

/// Derivatives between the vertices of the block, into `block.rates`, and the `lift` of each row.
/// `spare[0]` holds `z_out`, `spare[1]` holds `z_in`.
#[inline(always)]
fn inside<F: Field>(f: F, block: &mut Block<'_, F::Element>, span: Span) {
    let b = block.size;
    let zero = f.constant(0.0);
    let Span { low, high, .. } = span;
    let [z_out, z_in, mirror] = &mut block.spare;
    // steps_in[k][l] = Σ_i f_k[i] x[i][l] over the i outside; the space of `green` is free by now.
    let steps_in = &mut *block.green;
    steps_in.fill(zero);
    for k in low..high {
        let row = &mut steps_in[k * b..(k + 1) * b];
        for l in low..=k {
            let factor = f.mul(block.up_inverse[l * b + k], block.inverse[k]);
            add_multiple(f, row, factor, &z_in[l * b..(l + 1) * b], 0);
        }
    }
    // steps_out[k][l] = Σ_j u_k[j] y[l][j] over the j outside, in place of z_in: first z_out transposed back, then
    // its rows combined from the last to the first, since row k needs only rows up to k.
    let steps_out = &mut **z_in;
    for k in 0..b {
        for l in 0..b {
            steps_out[k * b + l] = z_out[l * b + k];
        }
    }
    for k in (low..high).rev() {
        for l in low..k {
            let (row, other) = two_rows(steps_out, b, k, l);
            add_multiple(f, row, block.down_inverse[k * b + l], other, 0);
        }
        for entry in &mut steps_out[k * b..(k + 1) * b] {
            *entry = f.mul(*entry, block.inverse[k]);
        }
    }
    // g[k][l] and its mirror image, so that both rows and columns can be combined as rows.
    let g = &mut *block.rates;
    g.fill(zero);
    mirror.fill(zero);
    block.lift.fill(zero);
    for k in (low..high).rev() {
        mirror[k * b..(k + 1) * b].copy_from_slice(&steps_out[k * b..(k + 1) * b]);
        add_multiple(f, &mut mirror[k * b..(k + 1) * b], block.exit[k], block.lift, 0);
        g[k * b..(k + 1) * b].copy_from_slice(&steps_in[k * b..(k + 1) * b]);
        for l in k + 1..high {
            let (row, other) = two_rows(mirror, b, k, l);
            add_multiple(f, row, block.up[k * b + l], other, 0);
            let (row, other) = two_rows(g, b, k, l);
            add_multiple(f, row, block.down[l * b + k], other, 0);
        }
        let mut t = f.sub(block.inverse[k], steps_in[k * b + k]);
        let mut carried = zero;
        for l in k + 1..high {
            t = f.sub(t, f.mul(block.down[l * b + k], mirror[k * b + l]));
            carried = f.mul_add(block.down[l * b + k], block.lift[l], carried);
        }
        block.lift[k] = f.add(t, carried);
        for l in 0..b {
            if l > k && l < high {
                let out = f.add(g[k * b + l], t);
                g[k * b + l] = out;
                mirror[l * b + k] = out;
                g[l * b + k] = mirror[k * b + l];
            } else {
                g[k * b + l] = zero;
                mirror[k * b + l] = zero;
            }
        }
    }
}
