//! The forest backend on the CPU: SIMD kernels, threads over chunks of fixed size, sums in a fixed order.

use super::compiled::Precision;
use super::lookup::{Lookup, States, Tally};
use super::{Backend, Counts, ForestError, Summary, Tables, check_length, check_weights};
use crate::data::Codes;
use crate::spanning::kernel::{Buffer, Factors, Kernel, Scratch, zeros};
use crate::spanning::{Kind, Level, sum_forests};
use crate::util::Pool;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums forests on the CPU, in precision `T`, on the threads of the current rayon pool.
///
/// Results do not depend on the number of threads, to the bit: rows are cut into chunks of a size that depends on the
/// number of variables alone, and chunks are added in order.
///
/// # What is kept between forward and backward
///
/// The eliminated matrices, `N²` numbers a row (`N = n`, directed `n + 1`, rounded up a little), as long as all rows of
/// a trace take at most [`Cpu::keeping`] bytes together (1 GiB by default, enough for 64 rows of 1,556 variables in
/// f32); rows beyond that are eliminated again in the backward pass. Keeping saves a third of the arithmetic and costs memory
/// traffic; in the measurements of `docs/performance.md` it is faster at every size, from hardly to by a third.
///
/// Besides, every thread at work has two more matrices (`2N²` numbers a row in flight) and two sums over pairs of states
/// (`2S²` numbers for S states in all); prepared tables take `S²` numbers (and keep the `8S²` bytes of the tables they were made of), counts `8S²` bytes.
#[derive(Clone, Debug)]
pub struct Cpu<T> {
    level: Level,
    keep: usize,
    precision: std::marker::PhantomData<T>,
}

impl<T: Precision> Default for Cpu<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Precision> Cpu<T> {
    /// With the best instructions of this machine.
    pub fn new() -> Self {
        Self { level: Level::best(), keep: 1 << 30, precision: std::marker::PhantomData }
    }

    /// With a given level of instructions: to compare.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Keeps at most so many bytes of eliminated matrices in a trace; 0 recomputes all of them.
    pub fn keeping(self, bytes: usize) -> Self {
        Self { keep: bytes, ..self }
    }
}

/// How many tables have been prepared.
static PREPARED: AtomicU64 = AtomicU64::new(0);

/// Tables in the working precision, scaled where the largest rate is very large or very small.
#[derive(Debug)]
pub struct Prepared<T: Precision> {
    pub(crate) kind: Kind,
    pub(crate) offsets: Vec<usize>,
    /// States of all variables.
    pub(crate) total: usize,
    /// Which variables have two states.
    pub(crate) binary: Vec<bool>,
    pub(crate) rates: Vec<T>,
    pub(crate) kernel: Kernel<T>,
    /// The rates as they were given.
    exact: Arc<Vec<f64>>,
    /// Two factors that together scale them.
    scale: (f64, f64),
    /// What the scale takes from every log F.
    log_scale: f64,
    /// Tells one set of prepared tables from another.
    number: u64,
}

impl<T: Precision> Prepared<T> {
    pub(crate) fn variables(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Rows of a chunk: enough to pay for clearing and adding its sums, a function of nothing but the size.
    fn chunk_rows(&self) -> usize {
        match self.variables() {
            0..=32 => 256,
            33..=160 => 64,
            _ => 16,
        }
    }

    /// The places of a line of the tables, in state `state` of variable `v`, that are looked up.
    fn places(&self, v: usize, state: usize) -> std::ops::Range<usize> {
        let columns = if self.kind == Kind::Undirected { self.offsets[v] } else { self.total };
        state * self.total..state * self.total + columns
    }

    /// Log F and, if wanted, marginals of a row that the kernels could not vouch for; of the rates as they are.
    fn surely(&self, state: impl Fn(usize) -> usize, marginals: bool) -> (f64, Vec<f64>) {
        of_states(self.kind, self.variables(), &self.exact, self.total, state, marginals)
    }
}

/// Log F and, if wanted, marginals of one row, with as many digits and as much exponent as it takes: slow and sure.
///
/// Marginals are laid out as [`Elimination::marginals`](crate::spanning::Elimination::marginals) does.
pub fn one_row(tables: &Tables, code: impl Fn(usize) -> usize, marginals: bool) -> (f64, Vec<f64>) {
    let (n, offsets) = (tables.variables(), tables.offsets());
    of_states(tables.kind(), n, tables.rates(), offsets[n], |v| offsets[v] + code(v), marginals)
}

fn of_states(
    kind: Kind,
    n: usize,
    rates: &[f64],
    total: usize,
    state: impl Fn(usize) -> usize,
    marginals: bool,
) -> (f64, Vec<f64>) {
    let mut own = vec![0.0; n * n];
    for v in 0..n {
        let others = if kind == Kind::Undirected { 0..v } else { 0..n };
        for u in others {
            own[v * n + u] = rates[state(v) * total + state(u)];
        }
    }
    sum_forests(kind, n, &own, marginals)
}

/// What [`Cpu`] remembers of a chunk of rows between forward and backward.
pub struct Trace<T: Precision> {
    rows: usize,
    chunks: Vec<Chunk<T>>,
    spaces: Pool<Space<T>>,
    sums: Pool<Vec<T>>,
    /// The kind and sizes for which all of this was made.
    made_for: Option<(Kind, Vec<usize>, usize)>,
    /// The tables of the last forward.
    number: Option<u64>,
}

/// Rows worked on by one task.
struct Chunk<T: Precision> {
    states: States<T>,
    /// One a group of rows, or none: then they are computed again.
    factors: Vec<Factors<T>>,
    /// log F of each row.
    log_forest: Vec<f64>,
    /// Rows that the kernels could not vouch for.
    doubtful: Vec<usize>,
}

/// What a thread works with.
struct Space<T: Precision> {
    factors: Factors<T>,
    scratch: Scratch<T>,
    weights: Buffer<T>,
}

/// What a chunk adds to the counts: sums of weighted derivatives, and counts of single rows by place.
struct Share<T> {
    sums: Vec<T>,
    /// Weights were divided by this, so that none is above 1 in size.
    heaviest: f64,
    single: Vec<(usize, f64)>,
}

impl<T: Precision> Backend for Cpu<T> {
    const SINGLE: bool = size_of::<T>() == size_of::<f32>();
    type Prepared = Prepared<T>;
    type Trace = Trace<T>;

    fn prepare(&self, tables: &Tables) -> Prepared<T> {
        let (exponent, (a, b)) = tables.scale();
        let n = tables.variables();
        Prepared {
            kind: tables.kind(),
            offsets: tables.offsets().to_vec(),
            total: tables.offsets()[n],
            binary: (0..n).map(|v| tables.states(v) == 2).collect(),
            // Large tables take long to write for the first time, not to compute.
            rates: tables
                .rates()
                .par_iter()
                .with_min_len(1 << 16)
                .map(|&rate| T::from_f64(rate * a * b))
                .collect(),
            kernel: Kernel::new(tables.kind(), n, self.level, None),
            exact: tables.shared_rates(),
            scale: (a, b),
            number: PREPARED.fetch_add(1, Ordering::Relaxed),
            log_scale: (tables.kind().indices(n) - 1) as f64 * f64::from(exponent) * LN_2,
        }
    }

    fn trace(&self) -> Trace<T> {
        Trace {
            rows: 0,
            chunks: Vec::new(),
            spaces: Pool::new(),
            sums: Pool::new(),
            made_for: None,
            number: None,
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
        codes.check(&tables.offsets)?;
        check_length("log_forest", log_forest.len(), codes.rows())?;
        let per_chunk = tables.chunk_rows();
        self.make_room(tables, trace, codes.rows());
        let spaces = &trace.spaces;
        trace.chunks.par_iter_mut().zip(log_forest.par_chunks_mut(per_chunk)).enumerate().for_each(
            |(number, (chunk, out))| {
                let first = number * per_chunk;
                chunk.states.fill(tables, out.len(), |row, v| codes.get(first + row, v));
                let space = || Space::new(&tables.kernel, per_chunk);
                spaces.with(space, |space| chunk.forward(tables, space, out.len()));
                out.copy_from_slice(&chunk.log_forest);
            },
        );
        let impossible = (0..log_forest.len()).filter(|&row| log_forest[row] == f64::NEG_INFINITY).collect();
        trace.number = Some(tables.number);
        let recomputed = trace.chunks.iter().map(|chunk| chunk.doubtful.len()).sum();
        Ok(Summary { impossible, recomputed })
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
        if !counts.is_of(tables.kind, &tables.offsets) {
            return Err(ForestError::OtherTables { what: "the accumulator of counts" });
        }
        check_weights(weights, trace.rows)?;
        let per_chunk = tables.chunk_rows();
        let (spaces, pool) = (&trace.spaces, &trace.sums);
        // A few chunks a thread at once, so that only so many sums are alive. Sums are added chunk by chunk in order,
        // wherever the cuts between waves fall.
        let wave = 2 * rayon::current_num_threads();
        let mut first = 0;
        for chunks in trace.chunks.chunks_mut(wave) {
            let rows: usize = chunks.iter().map(|chunk| chunk.log_forest.len()).sum();
            let shares: Vec<Share<T>> = chunks
                .par_iter_mut()
                .zip(weights[first..first + rows].par_chunks(per_chunk))
                .map(|(chunk, weights)| {
                    let mut sums = pool.take().unwrap_or_else(|| vec![T::default(); tables.rates.len()]);
                    let space = || Space::new(&tables.kernel, per_chunk);
                    let heaviest = weights.iter().fold(0.0f64, |most, weight| most.max(weight.abs()));
                    let single = spaces
                        .with(space, |space| chunk.backward(tables, space, weights, heaviest, &mut sums));
                    Share { sums, heaviest, single }
                })
                .collect();
            first += rows;
            add_in_order(tables, &shares, counts.sums_mut());
            shares.into_iter().for_each(|share| pool.give(share.sums));
        }
        Ok(())
    }
}

/// Adds what every chunk found, chunk after chunk for every place; different places by different threads.
fn add_in_order<T: Precision>(tables: &Prepared<T>, shares: &[Share<T>], counts: &mut [f64]) {
    let variable_of: Vec<usize> = (0..tables.variables())
        .flat_map(|v| (tables.offsets[v]..tables.offsets[v + 1]).map(move |_| v))
        .collect();
    counts.par_chunks_mut(tables.total).enumerate().with_min_len(16).for_each(|(state, line)| {
        let places = tables.places(variable_of[state], state);
        let (a, b) = tables.scale;
        for share in shares {
            let rates = &tables.exact[places.clone()];
            for ((count, &rate), &sum) in line.iter_mut().zip(rates).zip(&share.sums[places.clone()]) {
                let sum: f64 = sum.into();
                *count += rate * a * b * sum * share.heaviest;
            }
            let from = share.single.partition_point(|&(place, _)| place < places.start);
            let single = share.single[from..].iter().take_while(|&&(place, _)| place < places.end);
            single.for_each(|&(place, count)| line[place - places.start] += count);
        }
    });
}

impl<T: Precision> Cpu<T> {
    /// Cuts `rows` rows into chunks, and remembers what fits into memory.
    fn make_room(&self, tables: &Prepared<T>, trace: &mut Trace<T>, rows: usize) {
        let kernel = &tables.kernel;
        if !trace.was_made_for(tables) {
            *trace = self.trace();
            trace.made_for = Some((tables.kind, tables.offsets.clone(), kernel.group()));
        }
        let per_chunk = tables.chunk_rows();
        trace.rows = rows;
        trace.chunks.truncate(rows.div_ceil(per_chunk));
        while trace.chunks.len() < rows.div_ceil(per_chunk) {
            trace.chunks.push(Chunk::new());
        }
        let mut left = self.keep;
        for (number, chunk) in trace.chunks.iter_mut().enumerate() {
            let groups = (rows - number * per_chunk).min(per_chunk).div_ceil(kernel.group());
            let bytes = groups * kernel.factor_bytes();
            let keep = bytes <= left;
            left -= if keep { bytes } else { left };
            let groups = if keep { groups } else { 0 };
            chunk.factors.truncate(groups);
            while chunk.factors.len() < groups {
                chunk.factors.push(kernel.factors());
            }
        }
    }
}

impl<T: Precision> Trace<T> {
    fn was_made_for(&self, tables: &Prepared<T>) -> bool {
        self.made_for.as_ref().is_some_and(|(kind, offsets, group)| {
            *kind == tables.kind && *offsets == tables.offsets && *group == tables.kernel.group()
        })
    }
}

impl<T: Precision> std::fmt::Debug for Trace<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("rows", &self.rows).field("chunks", &self.chunks.len()).finish()
    }
}

impl<T: Precision> Space<T> {
    fn new(kernel: &Kernel<T>, rows: usize) -> Self {
        let padded = rows.div_ceil(kernel.group()) * kernel.group();
        Self { factors: kernel.factors(), scratch: kernel.scratch(), weights: zeros(padded) }
    }
}

impl<T: Precision> Chunk<T> {
    fn new() -> Self {
        Self { states: States::new(), factors: Vec::new(), log_forest: Vec::new(), doubtful: Vec::new() }
    }

    fn forward(&mut self, tables: &Prepared<T>, space: &mut Space<T>, rows: usize) {
        let group = tables.kernel.group();
        self.log_forest.resize(rows, 0.0);
        self.doubtful.clear();
        let mut source = Lookup { tables, states: &self.states };
        for (number, log) in self.log_forest.chunks_mut(group).enumerate() {
            let some = number * group..number * group + log.len();
            let factors = self.factors.get_mut(number).unwrap_or(&mut space.factors);
            T::forward_lookup(&tables.kernel, &mut source, some, factors, &mut space.scratch, log);
        }
        for (row, log) in self.log_forest.iter_mut().enumerate() {
            if log.is_nan() {
                self.doubtful.push(row);
                *log = tables.surely(self.states.of_row(tables, row), false).0;
            } else {
                *log += tables.log_scale;
            }
        }
    }

    /// Fills `sums`, and gives the counts of the doubtful rows by place, in order.
    fn backward(
        &mut self,
        tables: &Prepared<T>,
        space: &mut Space<T>,
        weights: &[f64],
        heaviest: f64,
        sums: &mut [T],
    ) -> Vec<(usize, f64)> {
        for v in 0..tables.variables() {
            for state in tables.offsets[v]..tables.offsets[v + 1] {
                sums[tables.places(v, state)].fill(T::default());
            }
        }
        space.weights.fill(T::default());
        for (to, &from) in space.weights.iter_mut().zip(weights) {
            *to = T::from_f64(if heaviest > 0.0 { from / heaviest } else { 0.0 });
        }
        let kernel = &tables.kernel;
        let group = kernel.group();
        let rows = self.log_forest.len();
        let mut again = vec![0.0; group];
        let Space { factors: spare, scratch, weights: padded } = space;
        let mut tally = Tally {
            rows: Lookup { tables, states: &self.states },
            weights: padded,
            sums,
            distrusted: Vec::new(),
        };
        for number in 0..rows.div_ceil(group) {
            let some = number * group..((number + 1) * group).min(rows);
            if weights[some.clone()].iter().all(|&weight| weight == 0.0) {
                continue;
            }
            let kept = self.factors.get(number);
            if kept.is_none() {
                let mut source = Lookup { tables, states: &self.states };
                T::forward_lookup(
                    kernel,
                    &mut source,
                    some.clone(),
                    spare,
                    scratch,
                    &mut again[..some.len()],
                );
            }
            T::backward_lookup(kernel, &mut tally, some, kept.unwrap_or(spare), scratch);
        }
        let distrusted = tally.distrusted;
        self.singly(tables, weights, &distrusted)
    }

    /// Counts of the rows that the kernels could not vouch for, sorted by place.
    fn singly(&self, tables: &Prepared<T>, weights: &[f64], rows: &[usize]) -> Vec<(usize, f64)> {
        let n = tables.variables();
        let mut single = Vec::new();
        for &row in rows {
            let state = self.states.of_row(tables, row);
            let (_, marginals) = tables.surely(&state, true);
            for v in 0..n {
                let others = if tables.kind == Kind::Undirected { 0..v } else { 0..n };
                for u in others {
                    single.push((state(v) * tables.total + state(u), weights[row] * marginals[v * n + u]));
                }
            }
        }
        single.sort_by_key(|&(place, _)| place);
        single
    }
}
