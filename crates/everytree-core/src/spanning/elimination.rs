//! The forest polynomial and its edge marginals, for one matrix of rates or for many.

use super::kernel::block::Shape;
use super::kernel::interleave::{deinterleave, interleave};
use super::kernel::level::Level;
use super::kernel::real::Real;
use super::kernel::{Factors, Kernel, Route, Scratch, Sink, Source, numbers, numbers_mut};
use super::rates::{self, Kind, RateError, check_vertices, exponent_of, find_bad, scales};
use super::sweep::sweep_surely;
use crate::util::Pool;
use crate::util::triangle::mirror;
use pulp::Simd;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use std::ops::Range;

/// Most rows that a register holds.
const MOST_LANES: usize = 16;

/// Sums over all spanning trees, or all rooted forests, on `n` vertices (see [`Kind`]).
///
/// Prepared once for a kind and a size, then used for any number of rate matrices, by many threads at once. Cost of a
/// matrix: `n³/3` operations for the sum and `n³` with the marginals (undirected), twice that (directed).
///
/// Memory: about `n²` numbers (`2n²` with marginals) for each row that a thread has in flight: one row, or for small
/// n as many as a SIMD register has lanes.
///
/// ```
/// use everytree_core::spanning::{Elimination, Kind};
///
/// // Two vertices, each the possible root of the other: rates 1 and 2 to each other, root rates 3 and 4.
/// let forests = Elimination::<f64>::new(Kind::Directed, 2)?;
/// let (log_forest, marginals) = forests.one(&[3.0, 1.0, 2.0, 4.0])?;
/// // Both roots: 3·4. Vertex 0 under 1: 1·4. Vertex 1 under 0: 2·3.
/// assert!((log_forest.exp() - 22.0).abs() < 1e-12);
/// assert!((marginals[0 * 2 + 1] - 4.0 / 22.0).abs() < 1e-12);
/// # Ok::<(), everytree_core::spanning::RateError>(())
/// ```
#[derive(Debug)]
pub struct Elimination<T: Real = f64> {
    kind: Kind,
    n: usize,
    kernel: Kernel<T>,
    spaces: Pool<(Factors<T>, Scratch<T>)>,
}

impl<T: Real> Elimination<T> {
    /// For matrices of `n` vertices, with the fastest kernel for this machine.
    pub fn new(kind: Kind, n: usize) -> Result<Self, RateError> {
        Self::with(kind, n, Level::best(), None)
    }

    /// With a given level of instructions and, if wanted, a given [`Route`]: to compare.
    pub fn with(kind: Kind, n: usize, level: Level, route: Option<Route>) -> Result<Self, RateError> {
        check_vertices(n)?;
        Ok(Self { kind, n, kernel: Kernel::new(kind, n, level, route), spaces: Pool::new() })
    }

    /// The route that rows of this size take.
    pub fn route(&self) -> Route {
        self.kernel.route()
    }

    /// `log F` and the marginals of one matrix: [`Elimination::log_forests`] and [`Elimination::marginals`] for a
    /// batch of one.
    pub fn one(&self, rates: &[T]) -> Result<(f64, Vec<T>), RateError> {
        let expected = self.n * self.n;
        if rates.len() != expected {
            return Err(RateError::Length { what: "rates", found: rates.len(), expected });
        }
        let mut log_forest = [0.0];
        let mut marginals = vec![T::default(); expected];
        self.marginals(rates, &mut log_forest, &mut marginals)?;
        Ok((log_forest[0], marginals))
    }

    /// The natural logarithm of the forest polynomial of each matrix of a batch (one after the other in `rates`),
    /// accumulated in `f64`. `-inf` where no forest has a positive weight.
    pub fn log_forests(&self, rates: &[T], log_forest: &mut [f64]) -> Result<(), RateError> {
        self.run(rates, log_forest, None)
    }

    /// The same, and the marginals of each matrix, laid out as the rates are.
    ///
    /// Directed: `(v, u)` is the probability that u is the parent of v, `(v, v)` that v is a root; a row sums to 1.
    /// Undirected: `(u, v)` and `(v, u)` are the probability that the edge {u, v} is in the tree, which add up to
    /// `n − 1` over all edges; the diagonal is 0. All zero where no forest has a positive weight.
    pub fn marginals(
        &self,
        rates: &[T],
        log_forest: &mut [f64],
        marginals: &mut [T],
    ) -> Result<(), RateError> {
        self.run(rates, log_forest, Some(marginals))
    }

    fn run(&self, rates: &[T], log_forest: &mut [f64], marginals: Option<&mut [T]>) -> Result<(), RateError> {
        let square = self.n * self.n;
        let expected = log_forest.len() * square;
        let wrong = |what, found| Err(RateError::Length { what, found, expected });
        if rates.len() != expected {
            return wrong("rates", rates.len());
        }
        let group = self.kernel.group();
        let done = match marginals {
            None => log_forest
                .par_chunks_mut(group)
                .zip(rates.par_chunks(group * square))
                .enumerate()
                .try_for_each(|(number, (log, rates))| self.group(number * group, rates, log, None)),
            Some(marginals) if marginals.len() != expected => return wrong("marginals", marginals.len()),
            Some(marginals) => log_forest
                .par_chunks_mut(group)
                .zip(rates.par_chunks(group * square))
                .zip(marginals.par_chunks_mut(group * square))
                .enumerate()
                .try_for_each(|(number, ((log, rates), out))| {
                    self.group(number * group, rates, log, Some(out))
                }),
        };
        done.or_else(|error| {
            // Several rows may be bad, and any thread may have been the first to find one: name the first row.
            for (row, matrix) in rates.chunks_exact(square).enumerate() {
                find_bad(self.kind, self.n, matrix, row)?;
            }
            Err(error)
        })
    }

    /// One group of rows, the first of them row `first` of the batch.
    fn group(
        &self,
        first: usize,
        rates: &[T],
        log_forest: &mut [f64],
        marginals: Option<&mut [T]>,
    ) -> Result<(), RateError> {
        let (n, count) = (self.n, log_forest.len());
        let mut matrices = Matrices::new(self.kind, n, rates);
        self.spaces.with(
            || (self.kernel.factors(), self.kernel.scratch()),
            |(factors, scratch)| {
                T::forward_matrices(&self.kernel, &mut matrices, 0..count, factors, scratch, log_forest);
                if matrices.bad {
                    for (row, matrix) in rates.chunks_exact(n * n).enumerate() {
                        find_bad(self.kind, n, matrix, first + row)?;
                    }
                }
                let mut distrusted = [false; MOST_LANES];
                let mut out = marginals;
                if let Some(out) = &mut out {
                    let mut scale = [(T::default(), T::default()); MOST_LANES];
                    (0..count).for_each(|row| scale[row] = matrices.factors(row));
                    let mut sink = Products { rates: &matrices, scale, distrusted, out };
                    T::backward_matrices(&self.kernel, &mut sink, 0..count, factors, scratch);
                    distrusted = sink.distrusted;
                    if self.kind == Kind::Undirected {
                        out.chunks_exact_mut(n * n).for_each(|matrix| mirror(n, matrix));
                    }
                }
                for (row, log) in log_forest.iter_mut().enumerate() {
                    let out = out.as_deref_mut().map(|out| &mut out[row * n * n..(row + 1) * n * n]);
                    let matrix = &rates[row * n * n..(row + 1) * n * n];
                    if log.is_nan() {
                        *log = self.surely(matrix, out);
                    } else {
                        *log += matrices.log_scale(row);
                        if distrusted[row] {
                            self.surely(matrix, out);
                        }
                    }
                }
                Ok(())
            },
        )
    }

    /// A row that the kernel could not vouch for: log F of it as it is, without any scaling.
    fn surely(&self, matrix: &[T], out: Option<&mut [T]>) -> f64 {
        let rates: Vec<f64> = matrix.iter().map(|&rate| rate.into()).collect();
        let (log_forest, marginals) = sum_forests(self.kind, self.n, &rates, out.is_some());
        if let Some(out) = out {
            for (to, from) in out.iter_mut().zip(marginals) {
                *to = T::from_f64(from);
            }
        }
        log_forest
    }
}

/// `log F` and marginals of one matrix by the plain sweep, laid out as [`Elimination::marginals`] does.
pub(crate) fn sum_forests(kind: Kind, n: usize, rates: &[f64], marginals: bool) -> (f64, Vec<f64>) {
    match kind {
        Kind::Directed => {
            let swept = sweep_surely(n, rates, marginals);
            (swept.log_forest, swept.marginals)
        }
        Kind::Undirected => {
            // Vertex 0 becomes the root of the others.
            let m = n - 1;
            let edge = |u: usize, v: usize| rates[u.max(v) * n + u.min(v)];
            let mut rooted = vec![0.0; m * m];
            for v in 0..m {
                for u in 0..m {
                    rooted[v * m + u] = if u == v { edge(v + 1, 0) } else { edge(v + 1, u + 1) };
                }
            }
            let swept = sweep_surely(m, &rooted, marginals);
            let mut out = vec![0.0; if marginals { n * n } else { 0 }];
            if marginals {
                for v in 0..m {
                    for u in 0..v {
                        let mu = swept.marginals[v * m + u] + swept.marginals[u * m + v];
                        out[(v + 1) * n + u + 1] = mu;
                        out[(u + 1) * n + v + 1] = mu;
                    }
                    out[(v + 1) * n] = swept.marginals[v * m + v];
                    out[v + 1] = swept.marginals[v * m + v];
                }
            }
            (swept.log_forest, out)
        }
    }
}

/// A group of rate matrices, with the power of two that brings each near 1.
pub(crate) struct Matrices<'a, T> {
    kind: Kind,
    n: usize,
    rates: &'a [T],
    /// Found while filling.
    exponents: [i32; MOST_LANES],
    /// Some rate is NaN, infinite or negative.
    bad: bool,
}

impl<'a, T: Real> Matrices<'a, T> {
    fn new(kind: Kind, n: usize, rates: &'a [T]) -> Self {
        Self { kind, n, rates, exponents: [0; MOST_LANES], bad: false }
    }

    /// What scaling took from log F.
    fn log_scale(&self, row: usize) -> f64 {
        let factors = self.kind.indices(self.n) - 1;
        factors as f64 * f64::from(self.exponents[row]) * LN_2
    }

    /// Looks at the largest bit pattern of a row. Those of numbers that are not negative are ordered as the numbers
    /// are; those of infinities, NaNs and negative numbers come after them all. Is scaling needed?
    fn judge(&mut self, row: usize, largest: T) -> bool {
        let mut largest: f64 = largest.into();
        if !largest.is_finite() || largest.is_sign_negative() {
            let matrix = &self.rates[row * self.n * self.n..(row + 1) * self.n * self.n];
            if find_bad(self.kind, self.n, matrix, row).is_err() {
                self.bad = true;
                return false;
            }
            // Nothing but a zero with a sign.
            largest = rates::largest(self.kind, self.n, matrix);
        }
        self.exponents[row] = exponent_of(largest);
        self.exponents[row] != 0
    }

    /// Two factors that together scale a row: one alone could overflow.
    fn factors(&self, row: usize) -> (T, T) {
        let (a, b) = scales(self.exponents[row]);
        (T::from_f64(a), T::from_f64(b))
    }

    /// The line of rates of `row` that fills line `i` of the work matrix.
    #[inline(always)]
    fn line(&self, row: usize, i: usize) -> &'a [T] {
        let v = i - self.skip();
        &self.rates[(row * self.n + v) * self.n..(row * self.n + v + 1) * self.n]
    }

    /// Places that the root above all vertices takes before them.
    #[inline(always)]
    fn skip(&self) -> usize {
        self.kind.indices(0)
    }

    /// How many entries of a line the kernel will read.
    #[inline(always)]
    fn entries(&self, i: usize, shape: &Shape) -> usize {
        if self.kind == Kind::Undirected { i } else { shape.size }
    }
}

impl<T: Real> Source<T> for Matrices<'_, T> {
    #[inline(always)]
    fn fill_lanes<S: Simd>(&mut self, simd: S, rows: Range<usize>, shape: &Shape, q: &mut [T::Vector<S>]) {
        let lanes = T::lanes::<S>();
        let zero = T::splat(simd, T::default());
        let skip = self.skip();
        let mut most = zero;
        q[..skip * shape.size].fill(zero);
        for i in skip..shape.size {
            let line = &mut q[i * shape.stride..(i + 1) * shape.stride];
            let numbers = numbers_mut::<T, S>(&mut line[skip..skip + self.n]);
            let entries = if skip == 0 { i } else { self.n };
            let from = |lane: usize| self.line((rows.start + lane).min(rows.end - 1), i);
            interleave(lanes, entries, from, numbers);
            if skip == 1 {
                line[0] = line[i];
                line[i] = zero;
            }
            for &rates in &line[..self.entries(i, shape)] {
                most = T::max_bits(simd, most, rates);
            }
        }
        let most = [most];
        let most = numbers::<T, S>(&most);
        for (lane, row) in rows.enumerate() {
            if self.judge(row, most[lane]) {
                let (a, b) = self.factors(row);
                for i in 0..shape.size {
                    let entries = self.entries(i, shape);
                    let line = numbers_mut::<T, S>(&mut q[i * shape.stride..][..entries]);
                    for rate in line[lane.min(entries)..].iter_mut().step_by(lanes) {
                        *rate = rate.times(a).times(b);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn fill_row(&mut self, row: usize, shape: &Shape, q: &mut [T]) {
        let skip = self.skip();
        let mut most = T::Bits::default();
        q[..skip * shape.size].fill(T::default());
        for i in skip..shape.size {
            let line = &mut q[i * shape.stride..(i + 1) * shape.stride];
            let needed = if skip == 0 { i } else { self.n };
            line[skip..skip + needed].copy_from_slice(&self.line(row, i)[..needed]);
            if skip == 1 {
                line[0] = line[i];
                line[i] = T::default();
            }
            most = line[..self.entries(i, shape)].iter().fold(most, |most, rate| most.max(rate.to_bits()));
        }
        if self.judge(row, T::from_bits(most)) {
            let (a, b) = self.factors(row);
            for i in 0..shape.size {
                for rate in &mut q[i * shape.stride..][..self.entries(i, shape)] {
                    *rate = rate.times(a).times(b);
                }
            }
        }
    }
}

/// Rates times derivatives: marginals.
pub(crate) struct Products<'a, 'b, T> {
    rates: &'a Matrices<'b, T>,
    scale: [(T, T); MOST_LANES],
    distrusted: [bool; MOST_LANES],
    out: &'a mut [T],
}

impl<T: Real> Products<'_, '_, T> {
    /// Where line `v` of the marginals of `row` lies.
    #[inline(always)]
    fn place(&self, row: usize, v: usize) -> Range<usize> {
        let n = self.rates.n;
        (row * n + v) * n..(row * n + v + 1) * n
    }

    /// Turns the derivatives that were copied to the matrix of `row` into marginals. One loop over all of it, because
    /// that vectorises; what it makes of entries above the diagonal of an undirected matrix, which nobody promised
    /// to be anything, is overwritten by the mirror image.
    #[inline(always)]
    fn multiply(&mut self, row: usize) {
        let (a, b) = self.scale[row];
        let n = self.rates.n;
        let place = row * n * n..(row + 1) * n * n;
        for (to, &rate) in self.out[place.clone()].iter_mut().zip(&self.rates.rates[place]) {
            let marginal = rate.times(a).times(b).times(*to);
            *to = if marginal > T::default() { marginal } else { T::default() };
        }
    }
}

impl<T: Real> Sink<T> for Products<'_, '_, T> {
    #[inline(always)]
    fn take_lanes<S: Simd>(&mut self, _: S, rows: Range<usize>, shape: &Shape, g: &[T::Vector<S>]) {
        let lanes = T::lanes::<S>();
        let (n, skip) = (self.rates.n, self.rates.skip());
        for v in 0..n {
            let line = numbers::<T, S>(&g[(v + skip) * shape.stride..(v + skip + 1) * shape.stride]);
            let inner = &line[skip * lanes..];
            let mut row = rows.start;
            while row + 4 <= rows.end {
                let places = [0, 1, 2, 3].map(|k| self.place(row + k, v));
                match self.out.get_disjoint_mut(places) {
                    Ok(out) => deinterleave(lanes, row - rows.start, inner, out),
                    Err(_) => unreachable!("different rows lie apart"),
                }
                row += 4;
            }
            for row in row..rows.end {
                let place = self.place(row, v);
                for (u, to) in self.out[place].iter_mut().enumerate() {
                    *to = inner[u * lanes + row - rows.start];
                }
            }
            if skip == 1 {
                for (lane, row) in rows.clone().enumerate() {
                    let diagonal = self.place(row, v).start + v;
                    self.out[diagonal] = line[lane];
                }
            }
        }
        rows.for_each(|row| self.multiply(row));
    }

    #[inline(always)]
    fn take_row(&mut self, row: usize, shape: &Shape, g: &[T]) {
        let (n, skip) = (self.rates.n, self.rates.skip());
        let (a, b) = self.scale[row];
        let marginal = |rate: T, derivative: T| {
            let marginal = rate.times(a).times(b).times(derivative);
            if marginal > T::default() { marginal } else { T::default() }
        };
        for v in 0..n {
            let line = &g[(v + skip) * shape.stride..(v + skip + 1) * shape.stride];
            let place = self.place(row, v);
            let (rates, out) = (&self.rates.rates[place.clone()], &mut self.out[place]);
            // Above the diagonal of an undirected matrix the mirror image follows later.
            let entries = if skip == 0 { v } else { n };
            for ((to, &rate), &derivative) in out[..entries].iter_mut().zip(rates).zip(&line[skip..]) {
                *to = marginal(rate, derivative);
            }
            out[v] = if skip == 1 { marginal(rates[v], line[0]) } else { T::default() };
        }
    }

    fn distrust(&mut self, row: usize) {
        self.distrusted[row] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// Every kernel that this machine can run, on every size at which something could go wrong, against the plain
    /// sweep: remainders of blocks, of tiles, of lanes.
    #[test]
    fn every_kernel_agrees_with_the_plain_sweep() {
        for level in Level::available() {
            for route in [Route::Lanes, Route::Rows] {
                for kind in [Kind::Undirected, Kind::Directed] {
                    for n in (1..=36).chain([47, 48, 49, 63, 64, 65, 97]) {
                        agree::<f64>(kind, n, level, route, 1e-12);
                        agree::<f32>(kind, n, level, route, 5e-6);
                    }
                }
            }
        }
        agree::<f32>(Kind::Undirected, 450, Level::best(), Route::Rows, 2e-5);
        agree::<f32>(Kind::Directed, 450, Level::best(), Route::Rows, 2e-5);
    }

    fn agree<T: Real>(kind: Kind, n: usize, level: Level, route: Route, tolerance: f64) {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(n as u64);
        let count = if n > 100 { 1 } else { 19 };
        let rates: Vec<T> =
            (0..count * n * n).map(|_| T::from_f64(10f64.powf(-4.0 * rng.random::<f64>()))).collect();
        let elimination = Elimination::<T>::with(kind, n, level, Some(route)).unwrap();
        let mut log = vec![0.0; count];
        let mut marginals = vec![T::default(); count * n * n];
        elimination.marginals(&rates, &mut log, &mut marginals).unwrap();
        let mut log_only = vec![0.0; count];
        elimination.log_forests(&rates, &mut log_only).unwrap();
        assert_eq!(log, log_only);
        for row in 0..count {
            let matrix: Vec<f64> = rates[row * n * n..(row + 1) * n * n].iter().map(|&x| x.into()).collect();
            let (truth, mu) = sum_forests(kind, n, &matrix, true);
            let place = format!("{kind:?} n={n} {level:?} {route:?} row {row}");
            assert!(
                (log[row] - truth).abs() <= tolerance * (n as f64).max(1.0),
                "{place}: {} {truth}",
                log[row]
            );
            for (found, expected) in marginals[row * n * n..].iter().zip(&mu) {
                let found: f64 = (*found).into();
                assert!((found - expected).abs() <= tolerance, "{place}: {found} {expected}");
            }
        }
    }
}
