//! Sums over the forests of many rows at once, and their derivatives, on the device.
//!
//! Small rows live in shared memory from beginning to end (`kernels/rows.cu`). Larger ones are eliminated a block of vertices after the
//! other (`kernels/blocks.cu`), all rows at once, and everything large is a batched matrix product; blocks make bands, so that what
//! lies outside a band is touched once for all of its blocks.
//!
//! The weights of a model's edges are a row as well, behind all others: what normalises the rows is computed beside them.

use crate::engine::{Cuda, CudaError, threads};
use crate::real::{CudaReal, Products};
use crate::space::Memory;
use cudarc::driver::LaunchConfig;
use everytree::spanning::Kind;

/// Vertices of a block, as in `kernels/common.cu`.
const B: usize = 32;
/// Blocks of a band.
const TOGETHER: usize = 4;
/// Vertices of a band.
const W: usize = TOGETHER * B;
/// Rows of the part below the diagonal that are brought up to date at once: what is computed above it is waste.
const STRIPE: usize = 256;
/// Numbers that a thread block of `narrow_products` sums over.
const AT_ONCE: usize = 128;
/// Entries of all tables that thread blocks sum derivatives in.
const MOST_SUMS: usize = 1 << 26;

/// What the kernels of `rows.cu` do.
const ELIMINATE: usize = 1;
const KEEP: usize = 2;
const COME_BACK: usize = 4;
const SUM: usize = 8;

/// Sizes of the matrices of a row.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub n: usize,
    /// Indices: the root and every vertex that is eliminated.
    size: usize,
    /// Numbers of a row of a matrix.
    p: usize,
    /// States in all.
    pub total: usize,
    pub directed: bool,
    /// How rows are worked on in shared memory, if they fit.
    small: Option<Small>,
}

/// Thread blocks for rows in shared memory.
#[derive(Clone, Copy)]
struct Small {
    threads: usize,
    /// Bytes of shared memory.
    bytes: usize,
    /// Which kernel.
    name: &'static str,
    /// Thread blocks that the device has room for at once.
    at_once: usize,
}

/// Where the device finds the rates of rows.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// The square matrix over all states.
    pub rates: u64,
    /// Where the states of each variable begin.
    pub offsets: u64,
    /// The states of rows, as places in the tables.
    pub states: u64,
    /// Which of these rows; 0: one after the other.
    pub places: u64,
    /// The row of weights, if it is computed beside them.
    pub prior: Option<Prior>,
}

/// The weights of a model's edges, a square matrix over all variables.
#[derive(Clone, Copy)]
pub(crate) struct Prior {
    /// The weights.
    pub weights: u64,
    /// Where to put how probable every edge is.
    pub marginals: u64,
}

/// Memory of the device for rows on their way.
#[derive(Default)]
pub(crate) struct Space {
    /// log F of every row without any scale; NaN where it cannot be vouched for.
    pub logs: Memory,
    /// May the derivatives of a row be handed on?
    pub trusted: Memory,
    q: Memory,
    g: Memory,
    pivots: Memory,
    inverses: Memory,
    /// Of every block: green, both triangular inverses, and the probabilities of leaving straight away.
    small: [Memory; 4],
    zs: [Memory; 2],
    lifts: Memory,
    panels: [Memory; 3],
    sums: Memory,
}

impl Shape {
    pub fn new<T: CudaReal>(machine: &Cuda<T>, kind: Kind, n: usize, total: usize) -> Self {
        let size = kind.indices(n);
        let directed = kind == Kind::Directed;
        let p = size.div_ceil(B) * B;
        Self { n, size, p, total, directed, small: Small::new(machine, directed, n, size) }
    }

    fn blocks(&self) -> usize {
        self.p / B
    }

    /// The numbers of the blocks of every band, first those nearest to the root.
    fn bands(&self) -> Vec<std::ops::Range<usize>> {
        let blocks = self.blocks();
        (0..blocks).step_by(TOGETHER).map(|first| first..(first + TOGETHER).min(blocks)).collect()
    }

    /// Where a block starts, and which of its places hold a vertex to eliminate.
    fn span(&self, number: usize) -> [usize; 3] {
        let start = number * B;
        [start, usize::from(number == 0), B.min(self.size - start)]
    }

    /// Bytes that a row takes on the device between forward and backward, and during backward.
    pub fn bytes<T>(&self) -> usize {
        let numbers = match self.small {
            Some(_) => 2 * self.size * self.size,
            None => {
                let of_blocks = self.blocks() * (3 * B * B + B);
                let zs = 2 * self.p.div_ceil(AT_ONCE) * B * B;
                2 * self.p * self.p + 3 * W * self.p + of_blocks + zs + 2 * self.p
            }
        };
        numbers * size_of::<T>()
    }
}

impl Small {
    fn new<T: CudaReal>(machine: &Cuda<T>, directed: bool, n: usize, size: usize) -> Option<Self> {
        let (threads, name) = match size {
            0..=32 => (64, ["undirected_1", "directed_1"]),
            33..=64 => (128, ["undirected_4", "directed_4"]),
            65..=128 => (256, ["undirected_4", "directed_4"]),
            129..=256 => (512, ["undirected_8", "directed_8"]),
            _ => return None,
        };
        let name = name[usize::from(directed)];
        let beside = if directed { 2 + threads / 32 } else { 1 };
        let bytes = (size * (size | 1) + beside * size) * size_of::<T>() + 2 * n;
        let at_once = machine.thread_blocks(name, threads, bytes)?;
        Some(Self { threads, bytes, name, at_once })
    }

    /// Thread blocks for so many rows: as many as there is room for, each with as many rows as the others.
    fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(rows.div_ceil(self.at_once).max(1)).max(1)
    }
}

impl<T: CudaReal> Cuda<T> {
    /// log F of rows. `keep`: so that [`Cuda::come_back`] can follow.
    pub(crate) fn eliminate(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        keep: bool,
    ) -> Result<(), CudaError> {
        match &shape.small {
            Some(small) => {
                let stage = if keep { ELIMINATE | KEEP } else { ELIMINATE };
                self.rows_in_shared_memory(small, shape, look, rows, space, stage, 0)
            }
            None => self.eliminate_blocks(shape, look, rows, space),
        }
    }

    /// Adds to `counts` the expected counts of the rows of [`Cuda::eliminate`], each times its weight; both in memory of the device.
    pub(crate) fn come_back(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        match &shape.small {
            Some(small) => self.back_in_shared_memory(small, shape, look, rows, space, 0, weights, counts),
            None => {
                self.bring_back_blocks(shape, look, rows, space)?;
                self.tally(shape, look, rows, space, weights, counts)
            }
        }
    }

    /// [`Cuda::eliminate`] and [`Cuda::come_back`], for weights that are known before.
    pub(crate) fn there_and_back(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        if let Some(small) = &shape.small {
            return self.back_in_shared_memory(small, shape, look, rows, space, ELIMINATE, weights, counts);
        }
        self.eliminate(shape, look, rows, space, true)?;
        self.come_back(shape, look, rows, space, weights, counts)
    }

    #[expect(clippy::too_many_arguments, reason = "one kernel")]
    fn back_in_shared_memory(
        &self,
        small: &Small,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        before: usize,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        let entries = shape.total * shape.total;
        let blocks = small.blocks(rows + usize::from(look.prior.is_some()));
        if blocks * entries > MOST_SUMS {
            // Many states: derivatives first, then sums of those.
            self.rows_in_shared_memory(small, shape, look, rows, space, before | COME_BACK, weights)?;
            return self.tally(shape, look, rows, space, weights, counts);
        }
        space.sums.clear(&self.stream, blocks * entries * size_of::<T>())?;
        self.rows_in_shared_memory(small, shape, look, rows, space, before | COME_BACK | SUM, weights)?;
        self.add_chunks(shape, look, space, blocks, counts)
    }

    #[expect(clippy::too_many_arguments, reason = "one kernel")]
    fn rows_in_shared_memory(
        &self,
        small: &Small,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        stage: usize,
        weights: u64,
    ) -> Result<(), CudaError> {
        let stream = &self.stream;
        let all = rows + usize::from(look.prior.is_some());
        let matrices = all * shape.size * shape.size * size_of::<T>();
        let kept = space.q.reserve(stream, if stage & KEEP != 0 { matrices } else { 0 })?;
        let written = stage & (COME_BACK | SUM) == COME_BACK;
        let derivatives = space.g.reserve(stream, if written { matrices } else { 0 })?;
        let logs = space.logs.reserve(stream, all * 8)?;
        let trusted = space.trusted.reserve(stream, all)?;
        let sums = space.sums.reserve(stream, 0)?;
        let prior = look.prior.unwrap_or(Prior { weights: 0, marginals: 0 });
        let prior_row = if look.prior.is_some() { rows } else { usize::MAX };
        self.launch(
            small.name,
            &[
                kept,
                derivatives,
                logs,
                trusted,
                sums,
                weights,
                look.rates,
                look.states,
                look.places,
                prior.weights,
                prior.marginals,
            ],
            &[prior_row, shape.n, shape.total, all, stage],
            LaunchConfig {
                shared_mem_bytes: small.bytes as u32,
                ..threads([small.blocks(all), 1, 1], [small.threads, 1])
            },
        )
    }

    fn eliminate_blocks(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, total, directed, .. } = *shape;
        let stream = &self.stream;
        let real = size_of::<T>();
        let count = rows + usize::from(look.prior.is_some());
        let q = space.q.reserve(stream, count * p * p * real)?;
        let pivots = space.pivots.reserve(stream, count * p * real)?;
        let inverses = space.inverses.reserve(stream, count * p * real)?;
        let exits = space.panels[0].reserve(stream, count * W * p * real)?;
        space.reserve_blocks::<T>(self, shape, count)?;
        let (prior, prior_row) = match look.prior {
            Some(prior) => (prior.weights, rows),
            None => (0, usize::MAX),
        };
        self.launch(
            "fill_rates",
            &[q, look.rates, look.states, look.places, prior],
            &[prior_row, n, size, p, total, usize::from(directed)],
            threads([p / B, p.div_ceil(8), count], [B, 8]),
        )?;
        let at = |row: usize, column: usize| (q + ((row * p + column) * real) as u64, p, p * p);
        let exit = |row: usize, column: usize| (exits + ((row * p + column) * real) as u64, p, W * p);
        let one_a_row = threads([count, 1, 1], [B, B]);
        let product = |transposed, shape, a, b, c, add| {
            self.products(Products { transposed: [transposed, false], shape, a, b, c, add, rows: count })
        };
        for band in shape.bands().into_iter().rev() {
            let first = band.start * B;
            for block in band.clone().rev() {
                let [start, low, high] = shape.span(block);
                let [green, up_inverse, down_inverse, leaves] = space.of_block::<T>(block, count, stream)?;
                self.launch(
                    "eliminate_block",
                    &[q, pivots, inverses, green, up_inverse, down_inverse, leaves],
                    &[start, low, high, p, usize::from(directed)],
                    one_a_row,
                )?;
                // h = green × rates to the outside
                let place = start - first;
                product(false, [B, start, B], (green, B, B * B), at(start, 0), exit(place, 0), false)?;
                // At once what the rest of the band needs: rates into the block times where walks leave it.
                if directed {
                    product(false, [place, start, B], at(first, start), exit(place, 0), at(first, 0), true)?;
                    product(false, [first, place, B], at(0, start), exit(place, first), at(0, first), true)?;
                } else {
                    product(true, [place, start, B], at(start, first), exit(place, 0), at(first, 0), true)?;
                }
            }
            // And what lies before the band, for all of its blocks.
            let wide = band.len() * B;
            if directed {
                product(false, [first, first, wide], at(0, first), exit(0, 0), at(0, 0), true)?;
            } else {
                for above in (0..first).step_by(STRIPE) {
                    let below = (above + STRIPE).min(first);
                    let shape = [below - above, below, wide];
                    product(true, shape, at(first, above), exit(0, 0), at(above, 0), true)?;
                }
            }
        }
        let logs = space.logs.reserve(stream, count * 8)?;
        let few = threads([count.div_ceil(8), 1, 1], [B, 8]);
        self.launch("log_pivots", &[pivots, logs], &[size, p, count], few)
    }

    fn bring_back_blocks(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, directed, .. } = *shape;
        let stream = &self.stream;
        let real = size_of::<T>();
        let count = rows + usize::from(look.prior.is_some());
        let q = space.q.reserve(stream, 0)?;
        let g = space.g.reserve(stream, count * p * p * real)?;
        let inverses = space.inverses.reserve(stream, 0)?;
        let logs = space.logs.reserve(stream, 0)?;
        let trusted = space.trusted.reserve(stream, count)?;
        let lifts = space.lifts.reserve(stream, count * B * real)?;
        let parts = p.div_ceil(AT_ONCE);
        let z_out = space.zs[0].reserve(stream, count * parts * B * B * real)?;
        let z_in = space.zs[1].reserve(stream, if directed { count * parts * B * B * real } else { 0 })?;
        let mut panels = [0; 3];
        for (number, (place, memory)) in panels.iter_mut().zip(&mut space.panels).enumerate() {
            let wanted = number == 0 || directed;
            *place = memory.reserve(stream, if wanted { count * W * p * real } else { 0 })?;
        }
        // Where walks leave, a row of p a vertex; time after entering, and x, a row of W an index.
        let [exits, entries, columns] = panels;
        let number = |base: u64, row: usize, stride: usize, column: usize| {
            base + ((row * stride + column) * real) as u64
        };
        let (whole, panel, narrow) = (p * p, W * p, B * B);
        let of_q = |row, column| (number(q, row, p, column), p, whole);
        let of_g = |row, column| (number(g, row, p, column), p, whole);
        let of_exits = |row, column| (number(exits, row, p, column), p, panel);
        let of_entries = |row, column| (number(entries, row, W, column), W, panel);
        let of_columns = |row, column| (number(columns, row, W, column), W, panel);
        let one_a_row = threads([count, 1, 1], [B, B]);
        let product = |transposed, shape, a, b, c, add| {
            self.products(Products { transposed, shape, a, b, c, add, rows: count })
        };
        // Σ a[k] b[l] over `along` numbers, in parts.
        let narrow_products = |to: u64, a: (u64, usize, usize), b: (u64, usize, usize), along, transposed| {
            if along == 0 {
                return Ok(());
            }
            self.launch(
                "narrow_products",
                &[to, a.0, b.0],
                &[along, a.1, b.1, usize::from(transposed), a.2, b.2],
                threads([along.div_ceil(AT_ONCE), count, 1], [256, 1]),
            )
        };
        const PLAIN: [bool; 2] = [false, false];
        const SECOND: [bool; 2] = [false, true];
        const FIRST: [bool; 2] = [true, false];
        for band in shape.bands() {
            // Everything before the band is known.
            let known = band.start * B;
            let wide = band.len() * B;
            for block in band.clone() {
                let [start, ..] = shape.span(block);
                let [green, ..] = space.of_block::<T>(block, count, stream)?;
                let (place, green) = (start - known, (green, B, narrow));
                // h = green × q[block, rest]; entries = q[rest, block] × green
                product(PLAIN, [B, start, B], green, of_q(start, 0), of_exits(place, 0), false)?;
                if directed {
                    product(PLAIN, [start, B, B], of_q(0, start), green, of_entries(0, place), false)?;
                }
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
            for block in band.clone() {
                let [start, low, high] = shape.span(block);
                let [_, up_inverse, down_inverse, leaves] = space.of_block::<T>(block, count, stream)?;
                let place = start - known;
                let parts = start.div_ceil(AT_ONCE);
                let h = |column| of_exits(place, column);
                if !directed {
                    // What the blocks of the band that are back add to that; then what lies among them.
                    let (back, y) = (of_g(known, 0), of_g(start, 0));
                    product(PLAIN, [B, known, place], h(known), back, y, true)?;
                    product(SECOND, [B, place, start], h(0), back, of_g(start, known), false)?;
                    narrow_products(z_out, of_q(start, 0), y, start, false)?;
                    self.launch(
                        "bring_back_undirected",
                        &[q, g, inverses, down_inverse, leaves, z_out, lifts],
                        &[start, low, high, p, parts],
                        one_a_row,
                    )?;
                    if start > 0 {
                        let tiles = threads([start / B, count, 1], [B, 8]);
                        self.launch("spread_block", &[g, lifts], &[start, p], tiles)?;
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
                narrow_products(z_out, of_g(start, 0), of_q(start, 0), start, false)?;
                narrow_products(z_in, of_q(0, start), x, start, true)?;
                let brought = [q, g, inverses, up_inverse, down_inverse, leaves, z_out, z_in, x.0];
                let sizes = [start, low, high, p, W, parts];
                self.launch("bring_back_directed", &brought, &sizes, one_a_row)?;
            }
        }
        let few = threads([count.div_ceil(8), 1, 1], [B, 8]);
        self.launch("trust_derivatives", &[g, logs, trusted], &[size, p, count], few)?;
        if let Some(prior) = look.prior {
            let (own, ..) = (number(g, rows * p, p, 0), ());
            let all = threads([n.div_ceil(128), n, 1], [128, 1]);
            let sizes = [n, p, usize::from(directed)];
            self.launch("prior_marginals", &[prior.marginals, own, prior.weights], &sizes, all)?;
        }
        Ok(())
    }

    /// Adds the counts of rows whose derivatives are in memory.
    fn tally(
        &self,
        shape: &Shape,
        look: &Look,
        rows: usize,
        space: &mut Space,
        weights: u64,
        counts: u64,
    ) -> Result<(), CudaError> {
        let Shape { n, size, p, total, directed, .. } = *shape;
        // Enough threads for the device, few enough tables.
        let most = (MOST_SUMS / (total * total)).clamp(1, 16);
        let chunks = (1usize << 17).div_ceil(n * n).clamp(1, most).min(rows.max(1));
        let per_chunk = rows.div_ceil(chunks);
        let sums = space.sums.clear(&self.stream, chunks * total * total * size_of::<T>())?;
        let g = space.g.reserve(&self.stream, 0)?;
        let stride = if shape.small.is_some() { size } else { p };
        let trusted = space.trusted.reserve(&self.stream, 0)?;
        self.launch(
            "tally",
            &[sums, g, look.states, look.places, weights, trusted, look.offsets],
            &[n, stride, stride * stride, total, rows, per_chunk, usize::from(directed)],
            threads([n.div_ceil(B), n.div_ceil(B), chunks], [B, B]),
        )?;
        self.add_chunks(shape, look, space, chunks, counts)
    }

    fn add_chunks(
        &self,
        shape: &Shape,
        look: &Look,
        space: &mut Space,
        chunks: usize,
        counts: u64,
    ) -> Result<(), CudaError> {
        let entries = shape.total * shape.total;
        let sums = space.sums.reserve(&self.stream, 0)?;
        let all = threads([entries.div_ceil(256), 1, 1], [256, 1]);
        self.launch("add_chunks", &[counts, sums, look.rates], &[entries, chunks], all)
    }
}

impl Space {
    /// Room for what every block of every row leaves for the way back.
    fn reserve_blocks<T: CudaReal>(
        &mut self,
        machine: &Cuda<T>,
        shape: &Shape,
        count: usize,
    ) -> Result<(), CudaError> {
        let squares = shape.blocks() * count * B * B * size_of::<T>();
        let [green, up, down, leaves] = &mut self.small;
        for (memory, bytes) in [(green, squares), (up, squares), (down, squares), (leaves, squares / B)] {
            memory.reserve(&machine.stream, bytes)?;
        }
        Ok(())
    }

    /// Where that of a block lies: those of all rows together.
    fn of_block<T: CudaReal>(
        &mut self,
        block: usize,
        count: usize,
        stream: &std::sync::Arc<cudarc::driver::CudaStream>,
    ) -> Result<[u64; 4], CudaError> {
        let mut places = [0; 4];
        for ((place, memory), size) in places.iter_mut().zip(&mut self.small).zip([B * B, B * B, B * B, B]) {
            *place = memory.reserve(stream, 0)? + (block * count * size * size_of::<T>()) as u64;
        }
        Ok(places)
    }
}
