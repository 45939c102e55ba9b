//! The door on the GPU: forward and backward sweeps, a block of vertices after the other, all rows at once.

use crate::engine::{Cuda, CudaError, failed, threads};
use crate::real::{CudaReal, Products};
use crate::space::Memory;
use everytree::forest::{
    Backend, Codes, Counts, ForestError, Summary, Tables, check_length, check_weights, one_row,
};
use everytree::spanning::Kind;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Vertices of a block, as in `kernels.cu`.
const B: usize = 32;
/// Blocks of a band: what lies outside a band is touched once for all of them.
const TOGETHER: usize = 4;
/// Vertices of a band.
const W: usize = TOGETHER * B;

/// Tables on the device.
pub struct Prepared<T> {
    /// The rates as they were given, for rows that the device cannot vouch for.
    tables: Kept,
    device: Result<[Memory; 2], CudaError>,
    places: [u64; 2],
    /// What scaling the rates takes from every log F.
    log_scale: f64,
    number: u64,
    precision: std::marker::PhantomData<T>,
}

/// A copy of tables that goes back where it came from.
struct Kept {
    tables: Option<Tables>,
    spare: Arc<Mutex<Vec<Tables>>>,
}

impl Kept {
    fn copy(tables: &Tables, spare: &Arc<Mutex<Vec<Tables>>>) -> Self {
        let mut kept = lock(spare);
        let same = kept.iter().position(|other| other.is_like(tables));
        let copy = match same.map(|place| kept.swap_remove(place)) {
            Some(mut other) => {
                other.copy_from(tables);
                other
            }
            None => tables.clone(),
        };
        // Other models, other tables.
        kept.truncate(MOST_SPARE);
        Self { tables: Some(copy), spare: Arc::clone(spare) }
    }
}

impl std::ops::Deref for Kept {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        self.tables.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take() {
            lock(&self.spare).push(tables);
        }
    }
}

/// Spare copies that are kept.
const MOST_SPARE: usize = 8;

fn lock<X>(mutex: &Mutex<X>) -> std::sync::MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What is remembered of a batch between forward and backward.
pub struct Trace<T> {
    number: Option<u64>,
    rows: usize,
    /// States of all rows, as places in the tables.
    states: Vec<u16>,
    logs: Vec<f64>,
    doubtful: Vec<usize>,
    /// Rows whose factors are still on the device.
    kept: std::ops::Range<usize>,
    space: Space,
    precision: std::marker::PhantomData<T>,
}

/// Memory of the device.
#[derive(Default)]
struct Space {
    states: Memory,
    q: Memory,
    g: Memory,
    pivots: Memory,
    inverses: Memory,
    small: [Memory; 5],
    zs: [Memory; 2],
    panels: [Memory; 3],
    logs: Memory,
    trusted: Memory,
    weights: Memory,
    sums: Memory,
}

static PREPARED: AtomicU64 = AtomicU64::new(0);

/// Sizes of the matrices of a row.
#[derive(Clone, Copy)]
struct Shape {
    n: usize,
    /// Indices: the root and every vertex that is eliminated.
    size: usize,
    /// Numbers of a row of a matrix.
    p: usize,
    /// States in all.
    total: usize,
    directed: bool,
}

impl Shape {
    fn of(tables: &Tables) -> Self {
        let n = tables.variables();
        let size = tables.kind().indices(n);
        let total = tables.offsets()[n];
        Self { n, size, p: size.div_ceil(B) * B, total, directed: tables.kind() == Kind::Directed }
    }

    fn blocks(&self) -> usize {
        self.size.div_ceil(B)
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

    /// Bytes that a row takes on the device.
    fn bytes<T>(&self) -> usize {
        (2 * self.p * self.p + 3 * W * self.p + 5 * W * B) * size_of::<T>()
    }
}

impl<T: CudaReal> Cuda<T> {
    /// Rows that fit into the memory that is free, at least one.
    fn rows_at_once(&self, shape: &Shape, held: usize) -> usize {
        // The products count rows in 32 bits, kernels in 16; memory that is already held counts as free.
        ((self.free() * 7 / 10 + held * shape.bytes::<T>()) / shape.bytes::<T>()).clamp(1, 65_535)
    }

    /// Factors of these rows, and their log F without the scale.
    fn sweep_forward(
        &self,
        tables: &Prepared<T>,
        shape: &Shape,
        rows: std::ops::Range<usize>,
        trace: &mut Trace<T>,
    ) -> Result<(), CudaError> {
        let count = rows.len();
        let Shape { n, size, p, total, directed } = *shape;
        let (stream, kernels) = (&self.stream, &self.kernels);
        let real = size_of::<T>();
        let Trace { space, states, logs, .. } = trace;
        let codes = space.states.put(stream, &states[rows.start * n..rows.end * n])?;
        let q = space.q.reserve(stream, count * p * p * real)?;
        let pivots = space.pivots.reserve(stream, count * p * real)?;
        let inverses = space.inverses.reserve(stream, count * p * real)?;
        let green = space.small[0].reserve(stream, count * B * B * real)?;
        let exits = space.panels[0].reserve(stream, count * W * p * real)?;
        self.launch(
            &kernels.fill_rates,
            &[q, tables.places[0], codes],
            &[n, size, p, total, usize::from(directed)],
            threads([p / B, p.div_ceil(8), count], [B, 8]),
        )?;
        let at = |row: usize, column: usize| q + ((row * p + column) * real) as u64;
        let exit = |row: usize, column: usize| exits + ((row * p + column) * real) as u64;
        let one_a_row = threads([count, 1, 1], [B, B]);
        // Adds rates into a block (or band) times where walks leave it.
        let add = |[rows, columns, inner]: [usize; 3], into: u64, out: u64, to: u64| {
            self.products(Products {
                transposed: [false, false],
                shape: [rows, columns, inner],
                a: (into, p, p * p),
                b: (out, p, W * p),
                c: (to, p, p * p),
                add: true,
                rows: count,
            })
        };
        for band in shape.bands().into_iter().rev() {
            let first = band.start * B;
            for block in band.clone().rev() {
                let [start, low, high] = shape.span(block);
                let sizes = [start, low, high, p];
                self.launch(&kernels.eliminate_block, &[q, pivots, inverses, green], &sizes, one_a_row)?;
                // h = green × rates to the outside
                self.products(Products {
                    transposed: [false, false],
                    shape: [B, start, B],
                    a: (green, B, B * B),
                    b: (at(start, 0), p, p * p),
                    c: (exit(start - first, 0), p, W * p),
                    add: false,
                    rows: count,
                })?;
                // At once what the rest of the band needs, its rows and its columns.
                add([start - first, start, B], at(first, start), exit(start - first, 0), at(first, 0))?;
                add([first, start - first, B], at(0, start), exit(start - first, first), at(0, first))?;
            }
            // And what lies before the band, for all of its blocks.
            let wide = (band.end * B).min(p) - first;
            add([first, first, wide], at(0, first), exit(0, 0), at(0, 0))?;
        }
        let place = space.logs.reserve(stream, count * 8)?;
        let few = threads([count.div_ceil(8), 1, 1], [B, 8]);
        self.launch(&kernels.log_pivots, &[pivots, place], &[size, p, count], few)?;
        space.logs.get(stream, &mut logs[rows.clone()])?;
        trace.kept = rows;
        Ok(())
    }

    /// Derivatives of the rows whose factors are on the device; whether each may be handed on.
    fn sweep_backward(&self, shape: &Shape, count: usize, space: &mut Space) -> Result<Vec<u8>, CudaError> {
        let Shape { size, p, .. } = *shape;
        let (stream, kernels) = (&self.stream, &self.kernels);
        let real = size_of::<T>();
        let q = space.q.reserve(stream, count * p * p * real)?;
        let g = space.g.clear(stream, count * p * p * real)?;
        let inverses = space.inverses.reserve(stream, count * p * real)?;
        let logs = space.logs.reserve(stream, count * 8)?;
        // Of every block of a band; those of one block lie together.
        let mut small = [0; 5];
        for (place, memory) in small.iter_mut().zip(&mut space.small) {
            *place = memory.reserve(stream, TOGETHER * count * B * B * real)?;
        }
        let z_out = space.zs[0].reserve(stream, count * B * B * real)?;
        let z_in = space.zs[1].reserve(stream, count * B * B * real)?;
        let mut panels = [0; 3];
        for (place, memory) in panels.iter_mut().zip(&mut space.panels) {
            *place = memory.reserve(stream, count * W * p * real)?;
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
        for band in shape.bands() {
            // Everything before the band is known.
            let known = band.start * B;
            let end = (band.end * B).min(p);
            let of_block =
                |block: usize| small.map(|base| base + ((block - band.start) * count * B * B * real) as u64);
            for block in band.clone() {
                let [start, low, high] = shape.span(block);
                let [green, up_inverse, down_inverse, exit, _] = of_block(block);
                let recalled = [q, inverses, green, up_inverse, down_inverse, exit];
                self.launch(&kernels.recall_block, &recalled, &[start, low, high, p], one_a_row)?;
                let (place, green) = (start - known, (green, B, narrow));
                // h = green × q[block, rest]; entries = q[rest, block] × green
                product([false, false], [B, start, B], green, of_q(start, 0), of_exits(place, 0), false)?;
                product([false, false], [start, B, B], of_q(0, start), green, of_entries(0, place), false)?;
            }
            // x = G × hᵀ and y = entriesᵀ × G over what lies before the band, for all of its blocks.
            let wide = end - known;
            product(
                [false, true],
                [known, wide, known],
                of_g(0, 0),
                of_exits(0, 0),
                of_columns(0, 0),
                false,
            )?;
            product(
                [true, false],
                [wide, known, known],
                of_entries(0, 0),
                of_g(0, 0),
                of_g(known, 0),
                false,
            )?;
            for block in band.clone() {
                let [start, low, high] = shape.span(block);
                let place = start - known;
                // What the blocks of the band that are back add to that; then what lies among them.
                let h = |column| of_exits(place, column);
                product(
                    [false, true],
                    [known, B, place],
                    of_g(0, known),
                    h(known),
                    of_columns(0, place),
                    true,
                )?;
                product(
                    [false, true],
                    [place, B, start],
                    of_g(known, 0),
                    h(0),
                    of_columns(known, place),
                    false,
                )?;
                let entry = |row| of_entries(row, place);
                product(
                    [true, false],
                    [B, known, place],
                    entry(known),
                    of_g(known, 0),
                    of_g(start, 0),
                    true,
                )?;
                product(
                    [true, false],
                    [B, place, start],
                    entry(0),
                    of_g(0, known),
                    of_g(start, known),
                    false,
                )?;
                // z_out = y × q[block, rest]ᵀ; z_in = q[rest, block]ᵀ × x
                let z = |base: u64| (base, B, narrow);
                product([false, true], [B, B, start], of_g(start, 0), of_q(start, 0), z(z_out), false)?;
                product([true, false], [B, B, start], of_q(0, start), of_columns(0, place), z(z_in), false)?;
                let [_, up_inverse, down_inverse, exit, _] = of_block(block);
                let x = number(columns, 0, W, place);
                let brought = [q, g, inverses, up_inverse, down_inverse, exit, z_out, z_in, x];
                self.launch(&kernels.bring_back_block, &brought, &[start, low, high, p, W], one_a_row)?;
            }
        }
        let trusted = space.trusted.reserve(stream, count)?;
        let few = threads([count.div_ceil(8), 1, 1], [B, 8]);
        self.launch(&kernels.trust_derivatives, &[g, logs, trusted], &[size, p, count], few)?;
        let mut flags = vec![0u8; count];
        space.trusted.get(stream, &mut flags)?;
        Ok(flags)
    }

    /// Adds the counts of the rows whose derivatives are on the device, each times its weight and all times `heaviest`.
    fn tally(
        &self,
        tables: &Prepared<T>,
        shape: &Shape,
        weights: &[T],
        space: &mut Space,
        heaviest: f64,
        counts: &mut Counts,
    ) -> Result<(), CudaError> {
        let Shape { n, p, total, directed, .. } = *shape;
        let (stream, kernels) = (&self.stream, &self.kernels);
        let (count, entries) = (weights.len(), total * total);
        // Enough threads for the device, few enough tables.
        let chunks = (1usize << 17).div_ceil(n * n).clamp(1, 16).min(count);
        let per_chunk = count.div_ceil(chunks);
        let weights = space.weights.put(stream, weights)?;
        let sums = space.sums.clear(stream, chunks * entries * size_of::<T>())?;
        let g = space.g.reserve(stream, 0)?;
        let states = space.states.reserve(stream, 0)?;
        let trusted = space.trusted.reserve(stream, 0)?;
        self.launch(
            &kernels.tally,
            &[sums, g, states, weights, trusted, tables.places[1]],
            &[n, p, total, count, per_chunk, usize::from(directed)],
            threads([n.div_ceil(B), n.div_ceil(B), chunks], [B, B]),
        )?;
        let all = threads([entries.div_ceil(256), 1, 1], [256, 1]);
        self.launch(&kernels.add_chunks, &[sums, tables.places[0]], &[entries, chunks], all)?;
        let mut staging = lock(&self.staging[1]);
        let found = staging.numbers::<T>(stream, entries)?;
        space.sums.get(stream, found)?;
        counts.add_all(&tables.tables, |place| {
            let count: f64 = found[place].into();
            count * heaviest
        });
        Ok(())
    }
}

fn device(error: CudaError) -> ForestError {
    ForestError::Device(error.to_string())
}

impl<T: CudaReal> Backend for Cuda<T> {
    type Prepared = Prepared<T>;
    type Trace = Trace<T>;

    fn prepare(&self, tables: &Tables) -> Prepared<T> {
        let (exponent, scale) = tables.scale();
        let offsets: Vec<i32> = tables.offsets().iter().map(|&offset| offset as i32).collect();
        let mut memory = [Memory::default(), Memory::default()];
        let mut staging = lock(&self.staging[0]);
        let put = staging.numbers::<T>(&self.stream, tables.rates().len()).and_then(|rates| {
            const SOME: usize = 1 << 14;
            rates.par_chunks_mut(SOME).zip(tables.rates().par_chunks(SOME)).for_each(|(to, from)| {
                to.iter_mut().zip(from).for_each(|(to, &rate)| *to = T::from_f64(rate * scale.0 * scale.1));
            });
            let places = [memory[0].put(&self.stream, rates)?, memory[1].put(&self.stream, &offsets)?];
            self.stream.synchronize().map_err(|error| failed("copying to the GPU", error))?;
            Ok(places)
        });
        drop(staging);
        let (places, held) = match put {
            Ok(places) => (places, Ok(memory)),
            Err(error) => ([0; 2], Err(error)),
        };
        let size = tables.kind().indices(tables.variables());
        Prepared {
            tables: Kept::copy(tables, &self.spare),
            device: held,
            places,
            log_scale: (size - 1) as f64 * f64::from(exponent) * std::f64::consts::LN_2,
            number: PREPARED.fetch_add(1, Ordering::Relaxed),
            precision: std::marker::PhantomData,
        }
    }

    fn trace(&self) -> Trace<T> {
        Trace {
            number: None,
            rows: 0,
            states: Vec::new(),
            logs: Vec::new(),
            doubtful: Vec::new(),
            kept: 0..0,
            space: Space::default(),
            precision: std::marker::PhantomData,
        }
    }

    fn forward(
        &self,
        tables: &Prepared<T>,
        codes: Codes<'_>,
        trace: &mut Trace<T>,
        log_forest: &mut [f64],
    ) -> Result<Summary, ForestError> {
        trace.number = None;
        if let Err(error) = &tables.device {
            return Err(device(error.clone()));
        }
        let offsets = tables.tables.offsets();
        codes.check(offsets)?;
        let rows = codes.rows();
        check_length("log_forest", log_forest.len(), rows)?;
        let shape = Shape::of(&tables.tables);
        let n = shape.n;
        trace.rows = rows;
        trace.states.resize(rows * n, 0);
        trace.states.par_chunks_mut(n).enumerate().for_each(|(row, states)| {
            states
                .iter_mut()
                .enumerate()
                .for_each(|(v, state)| *state = (offsets[v] + codes.get(row, v)) as u16);
        });
        trace.logs.resize(rows, 0.0);
        let at_once = self.rows_at_once(&shape, trace.kept.len()).min(rows.max(1));
        let mut first = 0;
        while first < rows {
            let some = first..(first + at_once).min(rows);
            first = some.end;
            self.sweep_forward(tables, &shape, some, trace).map_err(device)?;
        }
        trace.doubtful = (0..rows).filter(|&row| trace.logs[row].is_nan()).collect();
        for (out, log) in log_forest.iter_mut().zip(&trace.logs) {
            *out = log + tables.log_scale;
        }
        let surely: Vec<f64> = trace
            .doubtful
            .par_iter()
            .map(|&row| one_row(&tables.tables, |v| codes.get(row, v), false).0)
            .collect();
        trace.doubtful.iter().zip(surely).for_each(|(&row, log)| log_forest[row] = log);
        let impossible = (0..rows).filter(|&row| log_forest[row] == f64::NEG_INFINITY).collect();
        trace.number = Some(tables.number);
        Ok(Summary { impossible, recomputed: trace.doubtful.len() })
    }

    fn backward(
        &self,
        tables: &Prepared<T>,
        trace: &mut Trace<T>,
        weights: &[f64],
        counts: &mut Counts,
    ) -> Result<(), ForestError> {
        if trace.number != Some(tables.number) {
            return Err(ForestError::OtherTables { what: "the trace" });
        }
        if !counts.fits(&tables.tables) {
            return Err(ForestError::OtherTables { what: "the accumulator of counts" });
        }
        check_weights(weights, trace.rows)?;
        let shape = Shape::of(&tables.tables);
        let heaviest = weights.iter().fold(0.0f64, |most, weight| most.max(weight.abs()));
        if heaviest == 0.0 {
            return Ok(());
        }
        let at_once = trace.kept.len().max(1);
        let mut first = 0;
        while first < trace.rows {
            let some = first..(first + at_once).min(trace.rows);
            first = some.end;
            if trace.kept != some {
                self.sweep_forward(tables, &shape, some.clone(), trace).map_err(device)?;
            }
            let trusted = self.sweep_backward(&shape, some.len(), &mut trace.space).map_err(device)?;
            let scaled: Vec<T> =
                weights[some.clone()].iter().map(|weight| T::from_f64(weight / heaviest)).collect();
            self.tally(tables, &shape, &scaled, &mut trace.space, heaviest, counts).map_err(device)?;
            for (row, _) in some.clone().zip(trusted).filter(|(row, fine)| *fine == 0 && weights[*row] != 0.0)
            {
                self.singly(tables, &shape, &trace.states, row, weights[row], counts);
            }
        }
        Ok(())
    }
}

impl<T: CudaReal> Cuda<T> {
    /// Counts of a row that the device could not vouch for.
    fn singly(
        &self,
        tables: &Prepared<T>,
        shape: &Shape,
        states: &[u16],
        row: usize,
        weight: f64,
        counts: &mut Counts,
    ) {
        let n = shape.n;
        let own = &states[row * n..(row + 1) * n];
        let offsets = tables.tables.offsets();
        let (_, marginals) = one_row(&tables.tables, |v| usize::from(own[v]) - offsets[v], true);
        for v in 0..n {
            let others = if shape.directed { 0..n } else { 0..v };
            for u in others {
                let place = usize::from(own[v]) * shape.total + usize::from(own[u]);
                counts.add(place, weight * marginals[v * n + u]);
            }
        }
    }
}
