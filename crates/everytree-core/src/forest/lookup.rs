//! Rates looked up by code, and derivatives sorted back by code.

use super::compiled::Precision;
use super::cpu::Prepared;
use crate::spanning::kernel::block::Shape;
use crate::spanning::kernel::{Buffer, Sink, Source, numbers, numbers_mut, registers, zeros};
use crate::spanning::{Kind, Route};
use pulp::Simd;
use std::ops::Range;

/// The states of a chunk of rows, as indices into the tables, arranged for the route the rows take.
pub(crate) struct States<T> {
    /// Lanes: `[group][variable][lane]`. Rows: `[row][variable]`.
    index: Vec<u32>,
    /// Lanes only: the codes of binary variables as numbers, `[group][variable][lane]`.
    code: Buffer<T>,
}

impl<T: Precision> States<T> {
    pub fn new() -> Self {
        Self { index: Vec::new(), code: zeros(0) }
    }

    /// Takes `rows` rows, of which `code(row, variable)` tells the codes (already checked).
    pub fn fill(&mut self, tables: &Prepared<T>, rows: usize, code: impl Fn(usize, usize) -> usize) {
        let n = tables.variables();
        let lanes = tables.kernel.group();
        let padded = rows.div_ceil(lanes) * lanes;
        self.index.resize(padded * n, 0);
        self.code.resize(if tables.kernel.route() == Route::Lanes { padded * n } else { 0 }, T::default());
        for slot in 0..padded {
            // Lanes beyond the last row repeat it.
            let row = slot.min(rows - 1);
            let (group, lane) = (slot / lanes, slot % lanes);
            for v in 0..n {
                let code = code(row, v);
                let place = (group * n + v) * lanes + lane;
                self.index[place] = (tables.offsets[v] + code) as u32;
                if let Some(number) = self.code.get_mut(place) {
                    *number = T::from_f64(code as f64);
                }
            }
        }
    }

    /// States of one row, by variable.
    pub fn of_row<'a>(&'a self, tables: &'a Prepared<T>, row: usize) -> impl Fn(usize) -> usize + 'a {
        let (n, lanes) = (tables.variables(), tables.kernel.group());
        let (group, lane) = (row / lanes, row % lanes);
        move |v| self.index[(group * n + v) * lanes + lane] as usize
    }
}

/// Rates of the rows of a chunk.
pub(crate) struct Lookup<'a, T: Precision> {
    pub tables: &'a Prepared<T>,
    pub states: &'a States<T>,
}

/// Pairs of variables, by index of the work matrix: undirected below the diagonal, directed all but the diagonal.
#[inline(always)]
fn partners(kind: Kind, v: usize, n: usize) -> Range<usize> {
    if kind == Kind::Undirected { 0..v } else { 0..n }
}

impl<T: Precision> Lookup<'_, T> {
    /// Indices and codes of a group of lanes.
    #[inline(always)]
    fn group<S: Simd>(&self, first: usize) -> (&[u32], &[T::Vector<S>]) {
        let (n, lanes) = (self.tables.variables(), T::lanes::<S>());
        let place = first / lanes * lanes * n;
        let index = &self.states.index[place..place + n * lanes];
        (index, registers::<T, S>(&self.states.code[place..place + n * lanes]))
    }
}

impl<T: Precision> Source<T> for Lookup<'_, T> {
    #[inline(always)]
    fn fill_lanes<S: Simd>(&mut self, simd: S, rows: Range<usize>, shape: &Shape, q: &mut [T::Vector<S>]) {
        let tables = self.tables;
        let (n, total, lanes) = (tables.variables(), tables.total, T::lanes::<S>());
        let zero = T::splat(simd, T::default());
        let half = T::splat(simd, T::from_f64(0.5));
        let (index, code) = self.group::<S>(rows.start);
        let skip = tables.kind.indices(0);
        q[..skip * shape.size].fill(zero);
        for v in 0..n {
            let line = &mut q[(v + skip) * shape.stride..(v + skip + 1) * shape.stride];
            let here = &index[v * lanes..(v + 1) * lanes];
            let top = tables.offsets[v] * total;
            let upper = T::at_least(simd, code[v], half);
            for u in partners(tables.kind, v, n) {
                if tables.binary[v] && tables.binary[u] && u != v {
                    let left = tables.offsets[u];
                    let right = T::at_least(simd, code[u], half);
                    let rate = |place: usize| T::splat(simd, tables.rates[place]);
                    let zeroth = T::select(simd, right, rate(top + left + 1), rate(top + left));
                    let first =
                        T::select(simd, right, rate(top + total + left + 1), rate(top + total + left));
                    line[u + skip] = T::select(simd, upper, first, zeroth);
                } else if u != v {
                    let there = &index[u * lanes..(u + 1) * lanes];
                    let to = numbers_mut::<T, S>(&mut line[u + skip..u + skip + 1]);
                    for lane in 0..lanes {
                        to[lane] = tables.rates[here[lane] as usize * total + there[lane] as usize];
                    }
                }
            }
            if skip == 1 {
                let roots = numbers_mut::<T, S>(&mut line[..1]);
                for lane in 0..lanes {
                    roots[lane] = tables.rates[here[lane] as usize * (total + 1)];
                }
                line[v + 1] = zero;
            }
        }
    }

    #[inline(always)]
    fn fill_row(&mut self, row: usize, shape: &Shape, q: &mut [T]) {
        let tables = self.tables;
        let (n, total) = (tables.variables(), tables.total);
        let skip = tables.kind.indices(0);
        let index = &self.states.index[row * n..(row + 1) * n];
        q[..skip * shape.size].fill(T::default());
        for v in 0..n {
            let state = index[v] as usize;
            let line = &mut q[(v + skip) * shape.stride..(v + skip + 1) * shape.stride];
            let rates = &tables.rates[state * total..(state + 1) * total];
            let others = partners(tables.kind, v, n);
            for (to, &other) in line[skip..].iter_mut().zip(&index[others]) {
                *to = rates[other as usize];
            }
            if skip == 1 {
                line[0] = rates[state];
                line[v + 1] = T::default();
            }
        }
    }
}

/// Sums of weight × derivative by pair of states; times the rates they become expected counts.
pub(crate) struct Tally<'a, T: Precision> {
    pub rows: Lookup<'a, T>,
    /// One weight a row of the chunk, padded with zeros to whole groups.
    pub weights: &'a [T],
    pub sums: &'a mut [T],
    /// Rows whose derivatives the kernel did not trust, in order: they count nothing here.
    pub distrusted: Vec<usize>,
}

impl<T: Precision> Sink<T> for Tally<'_, T> {
    #[inline(always)]
    fn take_lanes<S: Simd>(&mut self, simd: S, rows: Range<usize>, shape: &Shape, g: &[T::Vector<S>]) {
        let tables = self.rows.tables;
        let (n, total, lanes) = (tables.variables(), tables.total, T::lanes::<S>());
        let zero = T::splat(simd, T::default());
        let half = T::splat(simd, T::from_f64(0.5));
        let skip = tables.kind.indices(0);
        let (index, code) = self.rows.group::<S>(rows.start);
        let weight = registers::<T, S>(&self.weights[rows.start..rows.start + lanes])[0];
        let sums = &mut *self.sums;
        for v in 0..n {
            let line = &g[(v + skip) * shape.stride..(v + skip + 1) * shape.stride];
            let here = &index[v * lanes..(v + 1) * lanes];
            let top = tables.offsets[v] * total;
            let upper = T::at_least(simd, code[v], half);
            let in_first = T::select(simd, upper, weight, zero);
            let in_zeroth = T::select(simd, upper, zero, weight);
            for u in partners(tables.kind, v, n) {
                if u == v {
                    continue;
                }
                let derivative = T::max(simd, line[u + skip], zero);
                if tables.binary[v] && tables.binary[u] {
                    let right = T::at_least(simd, code[u], half);
                    let zeroth = T::mul(simd, derivative, in_zeroth);
                    let first = T::mul(simd, derivative, in_first);
                    let place = top + tables.offsets[u];
                    let mut add = |place: usize, values| sums[place] = sums[place].plus(T::sum(simd, values));
                    add(place, T::select(simd, right, zero, zeroth));
                    add(place + 1, T::select(simd, right, zeroth, zero));
                    add(place + total, T::select(simd, right, zero, first));
                    add(place + total + 1, T::select(simd, right, first, zero));
                } else {
                    let there = &index[u * lanes..(u + 1) * lanes];
                    let values = [T::mul(simd, derivative, weight)];
                    let values = numbers::<T, S>(&values);
                    for lane in 0..lanes {
                        let place = here[lane] as usize * total + there[lane] as usize;
                        sums[place] = sums[place].plus(values[lane]);
                    }
                }
            }
            if skip == 1 {
                let values = [T::mul(simd, T::max(simd, line[0], zero), weight)];
                let values = numbers::<T, S>(&values);
                for lane in 0..lanes {
                    let place = here[lane] as usize * (total + 1);
                    sums[place] = sums[place].plus(values[lane]);
                }
            }
        }
    }

    #[inline(always)]
    fn take_row(&mut self, row: usize, shape: &Shape, g: &[T]) {
        let tables = self.rows.tables;
        let (n, total) = (tables.variables(), tables.total);
        let skip = tables.kind.indices(0);
        let index = &self.rows.states.index[row * n..(row + 1) * n];
        let weight = self.weights[row];
        let weighted = |derivative: T| {
            let positive = if derivative > T::default() { derivative } else { T::default() };
            positive.times(weight)
        };
        for v in 0..n {
            let state = index[v] as usize;
            let line = &g[(v + skip) * shape.stride..(v + skip + 1) * shape.stride];
            let sums = &mut self.sums[state * total..(state + 1) * total];
            let others = partners(tables.kind, v, n);
            for (&derivative, &other) in line[skip..].iter().zip(&index[others]) {
                let sum = &mut sums[other as usize];
                *sum = sum.plus(weighted(derivative));
            }
            if skip == 1 {
                // The diagonal derivative is 0 and added nothing above: the root has its own column.
                sums[state] = sums[state].plus(weighted(line[0]));
            }
        }
    }

    fn distrust(&mut self, row: usize) {
        self.distrusted.push(row);
    }
}
