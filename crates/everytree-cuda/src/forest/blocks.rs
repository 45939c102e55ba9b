//! Rows that do not fit into shared memory: eliminated a block of vertices after the other (`kernels/blocks.cu`), all rows at once, and
//! everything large is a batched matrix product. Blocks make bands, so that what lies outside a band is touched once for all of its
//! blocks.

use super::{FEW_ROWS, Look, Prior, Shape, Space};
use crate::engine::{Cuda, CudaError, LANES, Lane, threads};
use crate::launch;
use crate::real::{CudaReal, Products};
use crate::space::Memory;

/// Vertices of a block, as in `kernels/common.cu`.
pub(super) const B: usize = 32;
/// Warps that go through a block one vertex after the other.
const FEW: usize = 8;
/// Blocks of a band.
const TOGETHER: usize = 4;
/// Vertices of a band.
const W: usize = TOGETHER * B;
/// Rows of the part below the diagonal that are brought up to date at once: what is computed above it is waste.
const STRIPE: usize = 128;
/// Numbers that 32 threads load at once, as in `kernels/blocks.cu`: 512 bytes of them.
const fn at_once<T>() -> usize {
    512 / size_of::<T>()
}

/// Where matrices begin, one for every row; numbers from a row of it to the next, and from one matrix to the next.
type Matrix = (u64, usize, usize);

/// Where results of narrow products go.
enum Narrow {
    /// Into matrices, if there is one part of them; or where parts lie.
    Alone(Matrix),
    /// Part after part.
    InParts(u64),
}

/// Memory for the rows of a lane.
#[derive(Default)]
pub(super) struct Share {
    q: Memory,
    pub g: Memory,
    pivots: Memory,
    inverses: Memory,
    /// Of every block: green, both triangular inverses (the upper one of the directed kind alone), and the probabilities of leaving straight away.
    small: [Memory; 4],
    zs: [Memory; 2],
    lifts: Memory,
    panels: [Memory; 3],
}

/// Some of the rows, on a lane.
pub(super) struct Part<'a> {
    lane: &'a Lane,
    /// The number of the first of them.
    pub first: usize,
    /// How many, the weights among them.
    pub count: usize,
    /// Where their states are found; the weights, if they are among them.
    pub look: Look,
    pub share: &'a mut Share,
}

impl Shape {
    fn blocks(&self) -> usize {
        self.p / B
    }

    /// The numbers of the blocks of every band, first those nearest to the root.
    fn bands(&self) -> Vec<std::ops::Range<usize>> {
        let blocks = self.blocks();
        (0..blocks).step_by(TOGETHER).map(|first| first..(first + TOGETHER).min(blocks)).collect()
    }

    /// Numbers that say where walks leave: of the vertices of a band, or of all.
    fn exits(&self) -> usize {
        if self.directed { W * self.p } else { self.p * self.p }
    }

    /// Where a block starts, and which of its places hold a vertex to eliminate.
    fn span(&self, number: usize) -> [usize; 3] {
        let start = number * B;
        [start, usize::from(number == 0), B.min(self.size - start)]
    }

    /// Numbers that a row takes on the device.
    pub(super) fn in_blocks<T>(&self) -> usize {
        let of_blocks = self.blocks() * (3 * B * B + B);
        let zs = TOGETHER * self.p.div_ceil(at_once::<T>()) * B * B;
        2 * self.p * self.p + self.exits() + 2 * W * self.p + of_blocks + zs + 2 * self.p
    }
}

impl<T: CudaReal> Cuda<T> {
    /// log F of rows.
    ///
    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    pub(super) unsafe fn eliminate_blocks(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
    ) -> Result<(), CudaError> {
        let all = rows + usize::from(look.prior.is_some());
        let logs = space.logs.reserve(&self.stream, all * 8)?;
        let lanes = space.lanes(shape, rows);
        let mut parts = self.parts(shape, look, rows, lanes, &mut space.shares);
        for part in &mut parts {
            part.reserve_forward(self, shape)?;
        }
        let mut places = look.places(0, all, logs);
        places.extend(parts.iter_mut().flat_map(|part| part.places(self)));
        let records = if space.may_record && rows <= FEW_ROWS { Some(&mut space.records) } else { None };
        // SAFETY: the caller's promise; every part has reserved what the forward pass writes.
        self.record(records, places, || unsafe { self.start_forward(shape, look, logs, &mut parts) })
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn start_forward(
        &self,
        shape: &Shape,
        look: &Look,
        logs: u64,
        parts: &mut [Part<'_>],
    ) -> Result<(), CudaError> {
        self.fork()?;
        // SAFETY: the caller's promise.
        let started = unsafe { self.forward_on_lanes(shape, look, logs, parts) };
        // Whatever happened: nobody goes on before all lanes are done.
        started.and(self.join())
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn forward_on_lanes(
        &self,
        shape: &Shape,
        look: &Look,
        logs: u64,
        parts: &mut [Part<'_>],
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, total, directed, .. } = *shape;
        for part in parts.iter_mut() {
            let q = part.share.q.reserve(&self.stream, 0)?;
            let (prior, prior_row) = match part.look.prior {
                Some(prior) => (prior.weights, part.count - 1),
                None => (0, usize::MAX),
            };
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe {
                self.launch_on(
                    &part.lane.stream,
                    launch::FillRates {
                        q,
                        rates: look.rates,
                        states: part.look.states,
                        places: part.look.places,
                        prior,
                        prior_row,
                        n,
                        size,
                        p,
                        s: total,
                        directed: usize::from(directed),
                    },
                    threads([p / B, p / B, part.count], [B, 8]),
                )
            }?;
        }
        // In turns, so that all lanes have something to do.
        for band in shape.bands().into_iter().rev() {
            for part in parts.iter_mut() {
                // SAFETY: the caller's promise; the band is one of the shape's.
                unsafe { self.eliminate_band(shape, part, band.clone()) }?;
            }
        }
        for part in parts.iter_mut() {
            let pivots = part.share.pivots.reserve(&self.stream, 0)?;
            let logs = logs + (part.first * 8) as u64;
            let few = threads([part.count.div_ceil(8), 1, 1], [B, 8]);
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe {
                self.launch_on(
                    &part.lane.stream,
                    launch::LogPivots { pivots, logs, size, p, rows: part.count },
                    few,
                )
            }?;
        }
        Ok(())
    }

    /// The rows of every lane.
    pub(super) fn parts<'a>(
        &'a self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        lanes: usize,
        shares: &'a mut [Share; LANES],
    ) -> Vec<Part<'a>> {
        let all = rows + usize::from(look.prior.is_some());
        let each = all.div_ceil(lanes).max(1);
        let parts = self.lanes.iter().zip(shares).enumerate().map(|(number, (lane, share))| {
            let first = (number * each).min(all);
            let count = each.min(all - first);
            let skip = |place: u64, bytes: usize| if place == 0 { 0 } else { place + (first * bytes) as u64 };
            let mut look = *look;
            match look.places {
                0 => look.states = skip(look.states, shape.n * size_of::<u16>()),
                places => look.places = skip(places, size_of::<i32>()),
            }
            // The weights are the last row of all.
            look.prior = look.prior.filter(|_| first + count == all && count > 0);
            Part { lane, first, count, look, share }
        });
        parts.filter(|part| part.count > 0).collect()
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn eliminate_band(
        &self,
        shape: &Shape,
        part: &mut Part<'_>,
        band: std::ops::Range<usize>,
    ) -> Result<(), CudaError> {
        let Shape { p, directed, .. } = *shape;
        let real = size_of::<T>();
        let stream = &self.stream;
        let count = part.count;
        let q = part.share.q.reserve(stream, 0)?;
        let pivots = part.share.pivots.reserve(stream, 0)?;
        let inverses = part.share.inverses.reserve(stream, 0)?;
        let exits = part.share.panels[0].reserve(stream, 0)?;
        let at = |row: usize, column: usize| (q + ((row * p + column) * real) as u64, p, p * p);
        // Where walks leave: a row a vertex of the band; of all vertices in the undirected kind, which needs them once more.
        let panel = shape.exits();
        let first = band.start * B;
        let row_of = |row: usize| if directed { row } else { first + row };
        let exit = |row: usize, column: usize| (exits + ((row_of(row) * p + column) * real) as u64, p, panel);
        let lane = part.lane;
        let product = |transposed, shape, a, b, c, add| {
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe {
                self.products(
                    lane,
                    Products { transposed: [transposed, false], shape, a, b, c, add, rows: count },
                )
            }
        };
        for block in band.clone().rev() {
            let [start, low, high] = shape.span(block);
            let [green, up_inverse, down_inverse, leaves] = part.of_block(self, block)?;
            // Eight warps a row; more where each row has a multiprocessor to itself, for loading.
            let all = threads([count, 1, 1], [B, if count <= self.processors { B } else { FEW }]);
            if directed {
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &lane.stream,
                        launch::EliminateDirected {
                            q,
                            pivots,
                            inverses,
                            greens: green,
                            up_inverses: up_inverse,
                            down_inverses: down_inverse,
                            exits: leaves,
                            start,
                            low,
                            high,
                            p,
                        },
                        all,
                    )
                }?;
            } else {
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &lane.stream,
                        launch::EliminateUndirected {
                            q,
                            pivots,
                            inverses,
                            greens: green,
                            down_inverses: down_inverse,
                            exits: leaves,
                            start,
                            low,
                            high,
                            p,
                        },
                        all,
                    )
                }?;
            }
            // Where walks leave it, and at once what the rest of the band needs: rates into the block times that.
            let place = start - first;
            // SAFETY: the caller's promise; `start` is a block of the band.
            unsafe { self.leave(shape, part, green, start, first, exit(place, 0).0) }?;
            if directed {
                product(false, [first, place, B], at(0, start), exit(place, first), at(0, first), true)?;
            }
        }
        // And what lies before the band, for all of its blocks.
        let wide = band.len() * B;
        if directed {
            return product(false, [first, first, wide], at(0, first), exit(0, 0), at(0, 0), true);
        }
        for above in (0..first).step_by(STRIPE) {
            let below = (above + STRIPE).min(first);
            let sizes = [below - above, below, wide];
            product(true, sizes, at(first, above), exit(0, 0), at(above, 0), true)?;
        }
        Ok(())
    }

    /// Where walks leave a block, and what that adds to the lines from `first` on.
    ///
    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn leave(
        &self,
        shape: &Shape,
        part: &mut Part<'_>,
        green: u64,
        start: usize,
        first: usize,
        to: u64,
    ) -> Result<(), CudaError> {
        if start == 0 {
            return Ok(());
        }
        let tiles = threads([start.div_ceil(at_once::<T>()), part.count, 1], [B, 4]);
        let q = part.share.q.reserve(&self.stream, 0)?;
        let (greens, exits, p, panel) = (green, to, shape.p, shape.exits());
        let stream = &part.lane.stream;
        match shape.directed {
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            true => unsafe {
                self.launch_on(
                    stream,
                    launch::LeaveDirected { q, greens, exits, start, first, p, panel },
                    tiles,
                )
            },
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            false => unsafe {
                self.launch_on(
                    stream,
                    launch::LeaveUndirected { q, greens, exits, start, first, p, panel },
                    tiles,
                )
            },
        }
    }

    /// Derivatives of rows.
    ///
    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    pub(super) unsafe fn backward_blocks(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
    ) -> Result<(), CudaError> {
        let stream = &self.stream;
        let all = rows + usize::from(look.prior.is_some());
        let logs = space.logs.reserve(stream, 0)?;
        let trusted = space.trusted.reserve(stream, all)?;
        let lanes = space.lanes(shape, rows);
        let mut parts = self.parts(shape, look, rows, lanes, &mut space.shares);
        for part in &mut parts {
            part.reserve_backward(self, shape)?;
        }
        let mut places = look.places(1, all, trusted);
        places.push(logs);
        places.extend(parts.iter_mut().flat_map(|part| part.places(self)));
        let records = if space.may_record && rows <= FEW_ROWS { Some(&mut space.records) } else { None };
        // SAFETY: the caller's promise; every part has reserved what the backward pass writes.
        self.record(records, places, || unsafe { self.start_backward(shape, [logs, trusted], &mut parts) })
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn start_backward(
        &self,
        shape: &Shape,
        [logs, trusted]: [u64; 2],
        parts: &mut [Part<'_>],
    ) -> Result<(), CudaError> {
        self.fork()?;
        // SAFETY: the caller's promise.
        let started = unsafe { self.backward_on_lanes(shape, [logs, trusted], parts) };
        started.and(self.join())
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn backward_on_lanes(
        &self,
        shape: &Shape,
        [logs, trusted]: [u64; 2],
        parts: &mut [Part<'_>],
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, directed, .. } = *shape;
        let stream = &self.stream;
        for band in shape.bands() {
            for part in parts.iter_mut() {
                // SAFETY: the caller's promise; the band is one of the shape's.
                unsafe { self.backward_band(shape, part, band.clone()) }?;
            }
        }
        for part in parts.iter_mut() {
            let g = part.share.g.reserve(stream, 0)?;
            let (logs, trusted) = (logs + (part.first * 8) as u64, trusted + part.first as u64);
            let few = threads([part.count.div_ceil(8), 1, 1], [B, 8]);
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe {
                self.launch_on(
                    &part.lane.stream,
                    launch::TrustDerivatives { g, logs, trusted, size, p, rows: part.count },
                    few,
                )
            }?;
            if let Some(prior) = part.look.prior {
                let own = g + ((part.count - 1) * p * p * size_of::<T>()) as u64;
                let all = threads([n.div_ceil(128), n, 1], [128, 1]);
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &part.lane.stream,
                        launch::PriorMarginals {
                            marginals: prior.marginals,
                            g: own,
                            prior: prior.weights,
                            n,
                            p,
                            directed: usize::from(directed),
                        },
                        all,
                    )
                }?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Cuda::backward_pass`]; a part has reserved what it writes.
    unsafe fn backward_band(
        &self,
        shape: &Shape,
        part: &mut Part<'_>,
        band: std::ops::Range<usize>,
    ) -> Result<(), CudaError> {
        let Shape { p, directed, .. } = *shape;
        let stream = &self.stream;
        let real = size_of::<T>();
        let (lane, count) = (part.lane, part.count);
        let q = part.share.q.reserve(stream, 0)?;
        let g = part.share.g.reserve(stream, 0)?;
        let inverses = part.share.inverses.reserve(stream, 0)?;
        let lifts = part.share.lifts.reserve(stream, 0)?;
        let [z_out, z_in] = &mut part.share.zs;
        let (z_out, z_in) = (z_out.reserve(stream, 0)?, z_in.reserve(stream, 0)?);
        let mut panels = [0; 3];
        for (place, memory) in panels.iter_mut().zip(&mut part.share.panels) {
            *place = memory.reserve(stream, 0)?;
        }
        // Everything before the band is known.
        let known = band.start * B;
        // Where walks leave, a row of p a vertex; time after entering, and x, a row of W an index.
        let [exits, entries, columns] = panels;
        let number = |base: u64, row: usize, stride: usize, column: usize| {
            base + ((row * stride + column) * real) as u64
        };
        let (whole, panel, narrow) = (p * p, W * p, B * B);
        let of_q = |row, column| (number(q, row, p, column), p, whole);
        let of_g = |row, column| (number(g, row, p, column), p, whole);
        let row_of = |row: usize| if directed { row } else { known + row };
        let of_exits = |row, column| (number(exits, row_of(row), p, column), p, shape.exits());
        let of_entries = |row, column| (number(entries, row, W, column), W, panel);
        let of_columns = |row, column| (number(columns, row, W, column), W, panel);
        let one_a_row = threads([count, 1, 1], [B, FEW]);
        let product = |transposed, shape, a, b, c, add| {
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe { self.products(lane, Products { transposed, shape, a, b, c, add, rows: count }) }
        };
        // Σ a[k] b[l] over `along` numbers; so many squares of it, each in as many parts as keep the device busy. How many.
        let narrow_products = |to: Narrow, a: Matrix, b: Matrix, along: usize, transposed, squares: usize| {
            let pieces = along.div_ceil(at_once::<T>());
            // Parts that somebody adds up anyway cost nothing.
            let busy = self.processors * if matches!(to, Narrow::InParts(_)) { 4 } else { 2 };
            let wanted = busy.div_ceil((count * squares).max(1)).min(pieces);
            let times = pieces.div_ceil(wanted.max(1));
            let parts = pieces.div_ceil(times.max(1));
            let (to, line, [part, matrix, square]) = match to {
                Narrow::Alone(to) if parts <= 1 => (to.0, to.1, [0, to.2, B]),
                Narrow::Alone(_) => (z_out, B, [narrow, parts * narrow, count * parts * narrow]),
                Narrow::InParts(to) => (to, B, [narrow, parts * narrow, 0]),
            };
            if parts > 0 && squares > 0 {
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &lane.stream,
                        launch::NarrowProducts {
                            to,
                            a: a.0,
                            b: b.0,
                            along,
                            times,
                            transposed: usize::from(transposed),
                            a_stride: a.1,
                            a_matrix: a.2,
                            b_stride: b.1,
                            b_matrix: b.2,
                            line,
                            part,
                            matrix,
                            square,
                        },
                        threads([parts, count, squares], [256, 1]),
                    )
                }?;
            }
            Ok(parts)
        };
        const PLAIN: [bool; 2] = [false, false];
        const SECOND: [bool; 2] = [false, true];
        const FIRST: [bool; 2] = [true, false];
        let wide = band.len() * B;
        for block in band.clone().filter(|_| directed) {
            let [start, ..] = shape.span(block);
            let [green, ..] = part.of_block(self, block)?;
            let (place, green) = (start - known, (green, B, narrow));
            // h = green × q[block, rest]; entries = q[rest, block] × green
            // SAFETY: the caller's promise; `start` is a block of the band.
            unsafe { self.leave(shape, part, green.0, start, start, of_exits(place, 0).0) }?;
            product(PLAIN, [start, B, B], of_q(0, start), green, of_entries(0, place), false)?;
        }
        // y over what lies before the band, for all of its blocks; and x = G × hᵀ.
        let over = [wide, known, known];
        if directed {
            let over_x = [known, wide, known];
            product(SECOND, over_x, of_g(0, 0), of_exits(0, 0), of_columns(0, 0), false)?;
            product(FIRST, over, of_entries(0, 0), of_g(0, 0), of_g(known, 0), false)?;
        } else {
            product(PLAIN, over, of_exits(0, 0), of_g(0, 0), of_g(known, 0), false)?;
        }
        for block in band {
            let [start, low, high] = shape.span(block);
            let [_, up_inverse, down_inverse, leaves] = part.of_block(self, block)?;
            let place = start - known;
            let h = |column| of_exits(place, column);
            let tiles = threads([start / B, count, 1], [B, FEW]);
            if !directed {
                // What the blocks of the band that are back add to that; then what lies among them.
                let (back, y) = (of_g(known, 0), of_g(start, 0));
                product(PLAIN, [B, known, place], h(known), back, y, true)?;
                let (squares, among) = (place / B, of_g(start, known));
                let parts = narrow_products(Narrow::Alone(among), h(0), back, start, false, squares)?;
                if squares > 0 && parts > 1 {
                    let all = threads([count, squares, 1], [B, FEW]);
                    // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                    unsafe {
                        self.launch_on(
                            &lane.stream,
                            launch::AddNarrow { to: among.0, parts: z_out, count: parts, p },
                            all,
                        )
                    }?;
                }
                let parts = narrow_products(Narrow::InParts(z_out), of_q(start, 0), y, start, false, 1)?;
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &lane.stream,
                        launch::BackwardUndirected {
                            all_q: q,
                            all_r: g,
                            inverses,
                            down_inverses: down_inverse,
                            exits: leaves,
                            z_parts: z_out,
                            lifts,
                            start,
                            low,
                            high,
                            p,
                            parts,
                        },
                        one_a_row,
                    )
                }?;
                if start > 0 {
                    // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                    unsafe {
                        self.launch_on(
                            &lane.stream,
                            launch::SpreadUndirected { all_r: g, lifts, start, p },
                            tiles,
                        )
                    }?;
                }
                continue;
            }
            let x = of_columns(0, place);
            product(SECOND, [known, B, place], of_g(0, known), h(known), x, true)?;
            let among = of_columns(known, place);
            product(SECOND, [place, B, start], of_g(known, 0), h(0), among, false)?;
            let entry = |row| of_entries(row, place);
            product(FIRST, [B, known, place], entry(known), of_g(known, 0), of_g(start, 0), true)?;
            product(FIRST, [B, place, start], entry(0), of_g(0, known), of_g(start, known), false)?;
            // z_out = y × q[block, rest]ᵀ; z_in = q[rest, block]ᵀ × x
            let (rows, columns) = (of_g(start, 0), of_q(0, start));
            let parts = narrow_products(Narrow::InParts(z_out), rows, of_q(start, 0), start, false, 1)?;
            narrow_products(Narrow::InParts(z_in), columns, x, start, true, 1)?;
            // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
            unsafe {
                self.launch_on(
                    &lane.stream,
                    launch::BackwardDirected {
                        all_q: q,
                        all_g: g,
                        inverses,
                        up_inverses: up_inverse,
                        down_inverses: down_inverse,
                        exits: leaves,
                        z_outs: z_out,
                        z_ins: z_in,
                        lifts,
                        start,
                        low,
                        high,
                        p,
                        parts,
                    },
                    one_a_row,
                )
            }?;
            if start > 0 {
                // SAFETY: the caller's promise; blocks, bands and rows of the part stay within what it has reserved.
                unsafe {
                    self.launch_on(
                        &lane.stream,
                        launch::SpreadDirected { all_g: g, lifts, columns: x.0, start, p, w: W },
                        tiles,
                    )
                }?;
            }
        }
        Ok(())
    }
}

impl Space {
    /// Lanes that so many rows are spread over: as many as were fastest. Where it takes longer to start the work than to do it, and
    /// it is not recorded, one.
    pub(super) fn lanes(&self, shape: &Shape, rows: usize) -> usize {
        match rows > FEW_ROWS {
            true => 2,
            false if self.may_record && shape.n >= 1280 => LANES,
            false => 1,
        }
    }
}

impl Look {
    /// All that makes it the same work again, beside the memory of rows.
    fn places(&self, way: u64, rows: usize, to: u64) -> Vec<u64> {
        let prior = self.prior.unwrap_or(Prior { weights: 0, marginals: 0 });
        let Self { rates, offsets, states, places, .. } = *self;
        vec![way, rows as u64, to, rates, offsets, states, places, prior.weights, prior.marginals]
    }
}

impl Part<'_> {
    /// Where all of its memory lies.
    fn places<T: CudaReal>(&mut self, gpu: &Cuda<T>) -> Vec<u64> {
        let Share { q, g, pivots, inverses, small, zs, lifts, panels } = &mut *self.share;
        let all = [q, g, pivots, inverses, lifts].into_iter().chain(small).chain(zs).chain(panels);
        all.map(|memory| memory.place(gpu)).collect()
    }

    /// Room for what is made on the way there.
    fn reserve_forward<T: CudaReal>(&mut self, gpu: &Cuda<T>, shape: &Shape) -> Result<(), CudaError> {
        let (stream, count, p) = (&gpu.stream, self.count, shape.p);
        let real = size_of::<T>();
        let Share { q, pivots, inverses, small: [green, up, down, leaves], panels, .. } = &mut *self.share;
        let squares = shape.blocks() * B * B;
        for (memory, numbers) in [
            (q, p * p),
            (pivots, p),
            (inverses, p),
            (&mut panels[0], shape.exits()),
            (green, squares),
            (up, if shape.directed { squares } else { 0 }),
            (down, squares),
            (leaves, squares / B),
        ] {
            memory.reserve(stream, count * numbers * real)?;
        }
        Ok(())
    }

    /// And in the backward pass.
    fn reserve_backward<T: CudaReal>(&mut self, gpu: &Cuda<T>, shape: &Shape) -> Result<(), CudaError> {
        let (stream, count, p) = (&gpu.stream, self.count, shape.p);
        let real = size_of::<T>();
        let Share { g, zs: [z_out, z_in], lifts, panels: [_, entries, columns], .. } = &mut *self.share;
        let parts = p.div_ceil(at_once::<T>()) * B * B;
        let only_directed = |numbers: usize| if shape.directed { numbers } else { 0 };
        for (memory, numbers) in [
            (g, p * p),
            (lifts, B),
            (z_out, if shape.directed { parts } else { (TOGETHER - 1) * parts }),
            (z_in, only_directed(parts)),
            (entries, only_directed(W * p)),
            (columns, only_directed(W * p)),
        ] {
            memory.reserve(stream, count * numbers * real)?;
        }
        Ok(())
    }

    /// Where that of a block lies: those of all rows together.
    fn of_block<T: CudaReal>(&mut self, gpu: &Cuda<T>, block: usize) -> Result<[u64; 4], CudaError> {
        let mut places = [0; 4];
        for ((place, memory), size) in
            places.iter_mut().zip(&mut self.share.small).zip([B * B, B * B, B * B, B])
        {
            let base = memory.reserve(&gpu.stream, 0)?;
            *place = base + (block * self.count * size * size_of::<T>()) as u64;
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::tests::shape;

    /// Every vertex but the root belongs to one block, every block to one band.
    #[test]
    fn blocks_have_every_vertex_once() {
        for n in [2, 31, 32, 33, 127, 128, 129, 300] {
            for directed in [false, true] {
                let shape = shape(n, directed);
                let blocks: Vec<usize> = shape.bands().into_iter().flatten().collect();
                assert_eq!(blocks, (0..shape.blocks()).collect::<Vec<_>>());
                let vertices = blocks.into_iter().flat_map(|block| {
                    let [start, low, high] = shape.span(block);
                    start + low..start + high
                });
                assert!(vertices.eq(1..shape.size), "{n}");
                assert!(shape.bands().iter().all(|band| band.len() <= TOGETHER));
            }
        }
    }
}
