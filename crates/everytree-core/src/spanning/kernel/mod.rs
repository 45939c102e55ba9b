//! The batched kernels: many rate matrices of one size, eliminated as fast as the machine multiplies matrices.
//!
//! The walk of a group of rows: a [`Source`] fills a work matrix with rates (scaled where all are very large or very small), [`Kernel::forward`]
//! eliminates it in place and gives log F, [`Kernel::backward`] turns what is left into derivatives and hands them to
//! a [`Sink`]. Callers enter through the methods of [`compiled::Compiled`].
//!
//! Memory, with `N = n` (undirected) or `n + 1` (directed) rounded up to a block: `N²` numbers of factors and `N²` of
//! derivatives for each row in flight: one row by [`Route::Rows`], a register full of rows by [`Route::Lanes`].

pub(crate) mod block;
mod compiled;
mod directed;
pub(crate) mod field;
pub(crate) mod interleave;
pub(crate) mod level;
pub(crate) mod product;
pub(crate) mod real;
mod undirected;

use super::Kind;
use super::wide::LogProduct;
use aligned_vec::{AVec, ConstAlign};
use block::Shape;
use field::{Lanes, Rows};
use level::Level;
use pulp::{Simd, WithSimd};
use real::Real;
use std::marker::PhantomData;
use std::ops::Range;

/// Where the rates of a group of rows come from.
///
/// Index 0 of the work matrix is the root. Undirected: index i is vertex i, and only entries below the diagonal are
/// asked for. Directed: index i is vertex i − 1, column 0 holds root rates, row 0 and the diagonal must be zero.
pub(crate) trait Source<T: Real> {
    /// Fills the matrices of `rows`, one a lane; lanes beyond the last row repeat it.
    fn fill_lanes<S: Simd>(&mut self, simd: S, rows: Range<usize>, shape: &Shape, q: &mut [T::Vector<S>]);
    /// Fills the matrix of one row.
    fn fill_row(&mut self, row: usize, shape: &Shape, q: &mut [T]);
}

/// Where derivatives go: laid out as the [`Source`] laid out rates, undirected ones symmetric and whole.
pub(crate) trait Sink<T: Real> {
    /// Takes the derivatives of `rows`, one a lane.
    fn take_lanes<S: Simd>(&mut self, simd: S, rows: Range<usize>, shape: &Shape, g: &[T::Vector<S>]);
    /// Takes the derivatives of one row.
    fn take_row(&mut self, row: usize, shape: &Shape, g: &[T]);
    /// The derivatives of this row cannot be trusted; all that will be handed over are zeros.
    fn distrust(&mut self, row: usize);
}

/// How rows are put into registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// One row of data in each lane of a register: for small n.
    Lanes,
    /// One row at a time, neighbouring columns in a register, blocked: for large n.
    Rows,
}

/// Up to this many indices rows go by lanes, beyond it one by one, in both precisions. Measured: `cargo xtask bench
/// cutover` prints both routes; `docs/results/cutover.csv` has the table.
fn lanes_up_to(kind: Kind) -> usize {
    match kind {
        Kind::Undirected => 256,
        Kind::Directed => 304,
    }
}

/// Vertices of a block by lanes: measured, like the cut-over.
fn lanes_block(size: usize) -> usize {
    match size {
        0..=80 => 4,
        81..=128 => 6,
        _ => 12,
    }
}

/// An elimination of a given kind and size, compiled for this machine.
#[derive(Clone, Debug)]
pub(crate) struct Kernel<T> {
    kind: Kind,
    level: Level,
    route: Route,
    lanes: usize,
    shape: Shape,
    precision: PhantomData<T>,
}

/// What is kept of a group of rows between [`Kernel::forward`] and [`Kernel::backward`].
pub(crate) struct Factors<T> {
    q: Buffer<T>,
    pivots: Buffer<T>,
    inverses: Buffer<T>,
    /// Lanes whose pivots are not trusted, as bits.
    doubtful: u64,
}

/// What a thread needs besides, reusable from group to group.
pub(crate) struct Scratch<T> {
    derivatives: Buffer<T>,
    space: Buffer<T>,
}

/// Numbers aligned to whole registers.
pub(crate) type Buffer<T> = AVec<T, ConstAlign<128>>;

pub(crate) fn zeros<T: Real>(length: usize) -> Buffer<T> {
    let mut buffer = Buffer::with_capacity(128, length);
    buffer.resize(length, T::default());
    buffer
}

impl<T: Real> Kernel<T> {
    pub fn new(kind: Kind, vertices: usize, level: Level, route: Option<Route>) -> Self {
        let size = kind.indices(vertices);
        let by_default = if size <= lanes_up_to(kind) { Route::Lanes } else { Route::Rows };
        let route = route.unwrap_or(by_default);
        let register = level.run(CountLanes::<T>(PhantomData));
        let (block, together, line) = match route {
            // Elements are whole registers, about a cache line each.
            Route::Lanes => (lanes_block(size), 1, 1),
            Route::Rows => (16, 6, 64 / size_of::<T>()),
        };
        // An odd number of cache lines from row to row, so that a column spreads over the whole cache. Blocks are whole
        // lines.
        let stride = ((size.div_ceil(block) * block / line) | 1) * line;
        Self {
            kind,
            level,
            route,
            lanes: if route == Route::Lanes { register } else { 1 },
            shape: Shape { size, stride, block, together },
            precision: PhantomData,
        }
    }

    /// Rows worked on at once.
    pub fn group(&self) -> usize {
        self.lanes
    }

    pub fn route(&self) -> Route {
        self.route
    }

    pub fn factors(&self) -> Factors<T> {
        let size = self.shape.blocks() * self.shape.block * self.lanes;
        let q = zeros(self.shape.matrix() * self.lanes);
        Factors { q, pivots: zeros(size), inverses: zeros(size), doubtful: 0 }
    }

    pub fn scratch(&self) -> Scratch<T> {
        let space = match self.kind {
            Kind::Undirected => undirected::space(&self.shape),
            Kind::Directed => directed::space(&self.shape),
        };
        Scratch { derivatives: zeros(self.shape.matrix() * self.lanes), space: zeros(space * self.lanes) }
    }

    /// Bytes of [`Factors`] for one group.
    pub fn factor_bytes(&self) -> usize {
        (self.shape.matrix() + 2 * self.shape.blocks() * self.shape.block) * self.lanes * size_of::<T>()
    }

    /// Eliminates the rows of one group. `log_forest` gets log F of the scaled rates of each row, or NaN where a
    /// pivot was too small for this precision to vouch for (among them every row without any forest).
    pub(crate) fn forward(
        &self,
        source: &mut impl Source<T>,
        rows: Range<usize>,
        factors: &mut Factors<T>,
        scratch: &mut Scratch<T>,
        log_forest: &mut [f64],
    ) {
        debug_assert!(rows.len() <= self.lanes && log_forest.len() == rows.len());
        self.level.run(Forward { kernel: self, source, rows, factors, space: &mut scratch.space });
        self.log_pivots(factors, log_forest);
    }

    fn log_pivots(&self, factors: &mut Factors<T>, log_forest: &mut [f64]) {
        let pivots = &factors.pivots[self.lanes..self.shape.size * self.lanes];
        factors.doubtful = 0;
        for (lane, out) in log_forest.iter_mut().enumerate() {
            let mut log = LogProduct::new();
            let mut trusted = true;
            for some in pivots.chunks(T::PIVOTS_AT_ONCE * self.lanes) {
                let mut product = 1.0;
                for &pivot in some[lane..].iter().step_by(self.lanes) {
                    // False for a NaN, too.
                    trusted &= pivot >= T::TINY && pivot <= T::HUGE;
                    product *= pivot.into();
                }
                if trusted {
                    log.push(product);
                }
            }
            *out = if trusted { log.ln() } else { f64::NAN };
            factors.doubtful |= u64::from(!trusted) << lane;
        }
    }

    /// Derivatives of log F of each row of the group, into the sink.
    pub(crate) fn backward(
        &self,
        sink: &mut impl Sink<T>,
        rows: Range<usize>,
        factors: &Factors<T>,
        scratch: &mut Scratch<T>,
    ) {
        self.level.run(Backward { kernel: self, rows, factors, scratch, sink });
    }
}

impl<T: Real> Kernel<T> {
    /// Zeros in place of the derivatives of rows that are not trusted, so that no infinity and no NaN goes further.
    ///
    /// Undirected derivatives are resistances, at most the sum of all 1/p: trusted when the pivots are. Directed ones
    /// are expected times, which grow without bound where a walk drifts away from the roots. None in the line of a
    /// vertex is larger than the one in the column of the root.
    #[inline(always)]
    fn blank_untrusted(&self, rows: Range<usize>, doubtful: u64, g: &mut [T], sink: &mut impl Sink<T>) {
        let (Shape { size, stride, .. }, lanes) = (self.shape, self.lanes);
        for lane in 0..lanes {
            // Lanes beyond the last row only repeat it.
            let beyond = lane >= rows.len();
            let mut at_root = g[lane..].iter().step_by(stride * lanes).take(size);
            let trusted = self.kind == Kind::Undirected || at_root.all(|&time| time <= T::HUGE);
            if (doubtful >> lane) & 1 == 1 || beyond || !trusted {
                g[lane..].iter_mut().step_by(lanes).for_each(|derivative| *derivative = T::default());
                if !beyond {
                    sink.distrust(rows.start + lane);
                }
            }
        }
    }
}

struct CountLanes<T>(PhantomData<T>);

impl<T: Real> WithSimd for CountLanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        T::lanes::<S>()
    }
}

/// A buffer of numbers as a buffer of registers.
#[inline(always)]
pub(crate) fn registers<T: Real, S: Simd>(buffer: &[T]) -> &[T::Vector<S>] {
    assert!(buffer.as_ptr().cast::<T::Vector<S>>().is_aligned());
    // SAFETY: a register holds exactly `lanes` plain numbers, and the address was just checked.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), buffer.len() / T::lanes::<S>()) }
}

/// The same for writing.
#[inline(always)]
fn registers_mut<T: Real, S: Simd>(buffer: &mut [T]) -> &mut [T::Vector<S>] {
    assert!(buffer.as_ptr().cast::<T::Vector<S>>().is_aligned());
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), buffer.len() / T::lanes::<S>()) }
}

/// Registers as the numbers in them.
#[inline(always)]
pub(crate) fn numbers<T: Real, S: Simd>(registers: &[T::Vector<S>]) -> &[T] {
    // SAFETY: a register is exactly `lanes` plain numbers.
    unsafe { std::slice::from_raw_parts(registers.as_ptr().cast(), registers.len() * T::lanes::<S>()) }
}

/// The same for writing.
#[inline(always)]
pub(crate) fn numbers_mut<T: Real, S: Simd>(registers: &mut [T::Vector<S>]) -> &mut [T] {
    // SAFETY: as above; any bit pattern is a number.
    unsafe {
        std::slice::from_raw_parts_mut(registers.as_mut_ptr().cast(), registers.len() * T::lanes::<S>())
    }
}

struct Forward<'a, T, Src> {
    kernel: &'a Kernel<T>,
    source: &'a mut Src,
    rows: Range<usize>,
    factors: &'a mut Factors<T>,
    space: &'a mut [T],
}

impl<T: Real, Src: Source<T>> WithSimd for Forward<'_, T, Src> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { kernel, source, rows, factors, space } = self;
        let shape = &kernel.shape;
        let Factors { q, pivots, inverses, .. } = factors;
        match kernel.route {
            Route::Lanes => {
                let f = Lanes { simd, precision: PhantomData::<T> };
                let q = registers_mut::<T, S>(q);
                source.fill_lanes(simd, rows, shape, q);
                let pivots = registers_mut::<T, S>(pivots);
                let inverses = registers_mut::<T, S>(inverses);
                let space = registers_mut::<T, S>(space);
                match kernel.kind {
                    Kind::Undirected => undirected::forward(f, shape, q, pivots, inverses, space),
                    Kind::Directed => directed::forward(f, shape, q, pivots, inverses, space),
                }
            }
            Route::Rows => {
                let f = Rows { simd, precision: PhantomData::<T> };
                source.fill_row(rows.start, shape, q);
                match kernel.kind {
                    Kind::Undirected => undirected::forward(f, shape, q, pivots, inverses, space),
                    Kind::Directed => directed::forward(f, shape, q, pivots, inverses, space),
                }
            }
        }
    }
}

struct Backward<'a, T, Snk> {
    kernel: &'a Kernel<T>,
    rows: Range<usize>,
    factors: &'a Factors<T>,
    scratch: &'a mut Scratch<T>,
    sink: &'a mut Snk,
}

impl<T: Real, Snk: Sink<T>> WithSimd for Backward<'_, T, Snk> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { kernel, rows, factors, scratch, sink } = self;
        let shape = &kernel.shape;
        let Factors { q, inverses, doubtful, .. } = factors;
        let Scratch { derivatives, space } = scratch;
        match kernel.route {
            Route::Lanes => {
                let f = Lanes { simd, precision: PhantomData::<T> };
                let (q, inverses) = (registers::<T, S>(q), registers::<T, S>(inverses));
                let g = registers_mut::<T, S>(derivatives);
                let space = registers_mut::<T, S>(space);
                match kernel.kind {
                    Kind::Undirected => undirected::backward(f, shape, q, inverses, g, space),
                    Kind::Directed => directed::backward(f, shape, q, inverses, g, space),
                }
                kernel.blank_untrusted(rows.clone(), *doubtful, numbers_mut::<T, S>(g), sink);
                sink.take_lanes(simd, rows, shape, g);
            }
            Route::Rows => {
                let f = Rows { simd, precision: PhantomData::<T> };
                match kernel.kind {
                    Kind::Undirected => undirected::backward(f, shape, q, inverses, derivatives, space),
                    Kind::Directed => directed::backward(f, shape, q, inverses, derivatives, space),
                }
                kernel.blank_untrusted(rows.clone(), *doubtful, derivatives, sink);
                sink.take_row(rows.start, shape, derivatives);
            }
        }
    }
}
