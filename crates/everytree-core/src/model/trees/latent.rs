//! Messages on a latent tree, many rows at a time, as products of matrices: likelihoods on the way up, expected counts on the
//! way down.
//!
//! Of every latent variable there is a matrix with a line for each row and a column for each of its states. A message to the
//! parent is that matrix times a table; a posterior is one times the table turned over; and expected counts are the product of
//! two such matrices over the rows. States are padded with zeros to whole registers.
//!
//! Learning goes by single precision if it is asked for. States whose likelihood is 10⁻²⁶ of that of others are then lost, and a
//! row for which none is left is computed again in double precision. Whatever is reported is computed in double precision.

use super::parameters::Layout;
use crate::data::{Codes, CodesError};
use crate::spanning::kernel::field::Rows;
use crate::spanning::kernel::product::{Contiguous, Strided, Target, Write, product};
use crate::spanning::{Level, Real, RootedForest};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of a panel: what one task takes up or down the tree.
const PANEL: usize = 32;
/// Leaves that are worth a task.
const LEAVES: usize = 16;
/// Rows whose messages are kept at once, and memory for each of three lists of them at most.
const KEPT_ROWS: usize = 512;
const KEPT_BYTES: usize = 1 << 24;
/// States are padded to a multiple of this: the most that a register has.
const WIDTH: usize = 16;
/// Numbers whose largest is below this are scaled up before they are multiplied any further.
const SMALL: f64 = 1e-12;

/// The tables of a latent tree as products need them.
#[derive(Clone, Debug)]
pub(super) struct Latent<T> {
    /// Variables that are observed; as many are latent.
    n: usize,
    /// States of the latent ones, and columns of their matrices.
    states: usize,
    columns: usize,
    /// Latent variables from the roots on, numbered from 0, with their parents; and the parent of each.
    order: Vec<(usize, Option<usize>)>,
    parents: Vec<Option<usize>>,
    /// `[h][a][b] = P(h = b | parent = a)`, of a root in the first line.
    down: Vec<T>,
    /// `[h][b][a]`, the same turned over.
    up: Vec<T>,
    /// `[v:s][a] = P(v = s | latent = a)` over the largest of them, whose logarithm is `leaf_logs[v:s]`.
    leaves: Vec<T>,
    leaf_logs: Vec<f64>,
}

/// The messages of some rows, panel by panel, variable by variable, row by row; kept from the way up for the way down.
#[derive(Default)]
pub(super) struct Messages<T> {
    /// How many rows; none where the last way up kept nothing.
    rows: usize,
    /// Likelihood of what was observed at and below each latent variable, by its state, up to scale.
    up: Vec<T>,
    /// What it told its parent; after the way down, the posterior of the parent over that.
    told: Vec<T>,
    /// Its posterior, times the weight of the row.
    posterior: Vec<T>,
}

impl<T: Default> Clone for Messages<T> {
    /// What is kept is for one batch of rows: a copy begins with nothing.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> std::fmt::Debug for Messages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Messages of {} rows", self.rows)
    }
}

/// `to += from`, or whatever is done to two numbers.
#[inline(always)]
fn each<T: Copy>(to: &mut [T], from: &[T], what: impl Fn(&mut T, T)) {
    to.iter_mut().zip(from).for_each(|(to, from)| what(to, *from));
}

impl<T: Real> Latent<T> {
    /// In the room of one before it, which has the same layout.
    pub fn new(layout: &Layout, tree: &RootedForest, p: &[f64], before: Option<Self>) -> Self {
        let n = layout.observed;
        let states = layout.states[n];
        let columns = states.next_multiple_of(WIDTH);
        let mut parents = vec![None; n];
        let latent = tree.order().iter().filter(|&&v| v >= n);
        let order: Vec<_> = latent.map(|&v| (v - n, tree.parent(v).map(|u| u - n))).collect();
        order.iter().for_each(|&(h, parent)| parents[h] = parent);
        let total = layout.offsets[n];
        // What is beyond the states is zero, and stays so.
        let (mut down, mut up, mut leaves, mut leaf_logs) = match before {
            Some(Self { down, up, leaves, leaf_logs, .. })
                if down.len() == n * states * columns && leaf_logs.len() == total =>
            {
                (down, up, leaves, leaf_logs)
            }
            _ => {
                let square = || vec![T::default(); n * states * columns];
                (square(), square(), vec![T::default(); total * columns], vec![0.0; total])
            }
        };
        let tables =
            down.par_chunks_exact_mut(states * columns).zip(up.par_chunks_exact_mut(states * columns));
        tables.enumerate().for_each(|(h, (down, up))| {
            let table = &p[layout.tables[n + h]..layout.tables[n + h + 1]];
            let lines = table.chunks_exact(states).zip(down.chunks_exact_mut(columns));
            lines.for_each(|(line, to)| to.iter_mut().zip(line).for_each(|(to, p)| *to = T::from_f64(*p)));
            // In squares, so that both sides stay in the cache.
            for first in (0..states).step_by(WIDTH) {
                for (b, to) in up.chunks_exact_mut(columns).enumerate() {
                    for a in first..states.min(first + WIDTH) {
                        to[a] = down[a * columns + b];
                    }
                }
            }
        });
        // Of every state of an observed variable, where its table begins, its place there, and how many there are.
        let places: Vec<(usize, usize)> = (0..n)
            .flat_map(|v| (0..layout.states[v]).map(move |s| (layout.tables[v] + s, layout.states[v])))
            .collect();
        let lines = leaves.par_chunks_exact_mut(columns).zip(&mut leaf_logs).zip(&places);
        lines.with_min_len(LEAVES).for_each(|((to, log), &(first, count))| {
            let line = || p[first..].iter().step_by(count).take(states);
            let most = line().copied().fold(0.0, f64::max);
            // What is impossible stays so.
            let scale = if most > 0.0 { 1.0 / most } else { 1.0 };
            to.iter_mut().zip(line()).for_each(|(leaf, p)| *leaf = T::from_f64(p * scale));
            *log = most.ln();
        });
        Self { n, states, columns, order, parents, down, up, leaves, leaf_logs }
    }

    /// Numbers of one matrix of a panel, and of the matrices of all variables.
    fn sizes(&self) -> (usize, usize) {
        (PANEL * self.columns, self.n * PANEL * self.columns)
    }

    /// Panels whose messages are kept at once.
    fn panels(&self) -> usize {
        (KEPT_BYTES / (size_of::<T>() * self.sizes().1)).clamp(1, KEPT_ROWS / PANEL)
    }

    fn table<'a>(&self, tables: &'a [T], h: usize) -> &'a [T] {
        let size = self.states * self.columns;
        &tables[h * size..(h + 1) * size]
    }

    /// The natural logarithm of the probability of every row.
    pub fn log_p(&self, layout: &Layout, codes: Codes<'_>, out: &mut [f64]) {
        let (one, all) = self.sizes();
        out.par_chunks_mut(PANEL).enumerate().for_each_init(
            || (vec![T::default(); all], vec![T::default(); one]),
            |(up, told), (panel, logs)| {
                let rows = panel * PANEL..panel * PANEL + logs.len();
                Level::best().run(Up { latent: self, layout, codes, rows, up, told, keep: false, logs });
            },
        );
    }

    /// The same; messages are kept for [`Latent::count`] where there are not too many of them.
    pub fn log_p_kept(&self, layout: &Layout, codes: Codes<'_>, messages: &mut Messages<T>, out: &mut [f64]) {
        messages.rows = 0;
        if out.len() > self.panels() * PANEL {
            return self.log_p(layout, codes, out);
        }
        self.collect(layout, codes, 0, messages, out);
        messages.rows = out.len();
    }

    /// The way up of rows from `first` on.
    fn collect(
        &self,
        layout: &Layout,
        codes: Codes<'_>,
        first: usize,
        messages: &mut Messages<T>,
        out: &mut [f64],
    ) {
        let (_, all) = self.sizes();
        let size = out.len().div_ceil(PANEL) * all;
        for numbers in [&mut messages.up, &mut messages.told] {
            numbers.resize(size, T::default());
        }
        let Messages { up, told, .. } = messages;
        let matrices = up.par_chunks_exact_mut(all).zip(told.par_chunks_exact_mut(all));
        matrices.zip(out.par_chunks_mut(PANEL)).enumerate().for_each(|(panel, ((up, told), logs))| {
            let begin = first + panel * PANEL;
            let rows = begin..begin + logs.len();
            Level::best().run(Up { latent: self, layout, codes, rows, up, told, keep: true, logs });
        });
    }

    /// Adds the expected counts of every table, each row with its weight. Of the rows of the last [`Latent::log_p_kept`] the way up
    /// is not gone again. Gives back the rows that have a weight but no probability in this precision, and count nothing.
    pub fn count(
        &self,
        layout: &Layout,
        codes: Codes<'_>,
        weights: &[f64],
        messages: &mut Messages<T>,
        counts: &mut [f64],
    ) -> Vec<usize> {
        let kept = messages.rows == weights.len();
        let mut lost = Vec::new();
        let some = self.panels() * PANEL;
        for (first, weights) in (0..).step_by(some).zip(weights.chunks(some)) {
            if !kept {
                self.collect(layout, codes, first, messages, &mut vec![0.0; weights.len()]);
            }
            let own = self.distribute(weights, messages);
            lost.extend(own.into_iter().map(|row| first + row));
            self.count_all(layout, codes, first..first + weights.len(), messages, counts);
        }
        // What was told is overwritten on the way down.
        messages.rows = 0;
        lost
    }

    /// The way down. Gives back the rows that are impossible.
    fn distribute(&self, weights: &[f64], messages: &mut Messages<T>) -> Vec<usize> {
        let (_, all) = self.sizes();
        messages.posterior.resize(weights.len().div_ceil(PANEL) * all, T::default());
        let Messages { up, told, posterior, .. } = messages;
        let matrices = up.par_chunks_exact(all).zip(told.par_chunks_exact_mut(all));
        let matrices = matrices.zip(posterior.par_chunks_exact_mut(all)).zip(weights.par_chunks(PANEL));
        let lost: Vec<Vec<usize>> = matrices
            .enumerate()
            .map(|(panel, (((up, told), posterior), weights))| {
                let lost = Level::best().run(Down { latent: self, weights, up, told, posterior });
                lost.into_iter().map(|row| panel * PANEL + row).collect()
            })
            .collect();
        lost.concat()
    }

    /// The counts of all tables from the messages of these rows, one variable independent of the other.
    fn count_all(
        &self,
        layout: &Layout,
        codes: Codes<'_>,
        rows: Range<usize>,
        messages: &Messages<T>,
        counts: &mut [f64],
    ) {
        let (one, all) = self.sizes();
        let mut leaves = layout.split(counts);
        let tables = leaves.split_off(self.n);
        leaves.into_par_iter().zip(tables).enumerate().for_each(|(h, (leaf, table))| {
            let of_panel = |begin: usize| {
                let place = (begin - rows.start) / PANEL * all + h * one;
                let Messages { up, told, posterior, .. } = messages;
                let [up, shares, posterior] = [up, told, posterior].map(|all| &all[place..place + one]);
                OfPanel { rows: begin..rows.end.min(begin + PANEL), up, shares, posterior }
            };
            let panels = rows.clone().step_by(PANEL).map(of_panel).collect();
            Level::best().run(Count { latent: self, layout, codes, h, panels, leaf, table });
        });
    }
}

/// One panel up the tree.
struct Up<'a, 'm, T> {
    latent: &'a Latent<T>,
    layout: &'a Layout,
    codes: Codes<'a>,
    rows: Range<usize>,
    up: &'m mut [T],
    /// Messages of all variables, or of the last one only.
    told: &'m mut [T],
    keep: bool,
    logs: &'m mut [f64],
}

impl<T: Real> WithSimd for Up<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = Rows { simd, precision: PhantomData::<T> };
        let Self { latent, layout, codes, rows, up, told, keep, logs } = self;
        let &Latent { n, states, columns, .. } = latent;
        let (one, count) = (PANEL * columns, rows.len());
        logs.fill(0.0);
        for v in 0..n {
            for ((row, line), log) in
                rows.clone().zip(up[v * one..].chunks_exact_mut(columns)).zip(&mut *logs)
            {
                let state = layout.offsets[v] + codes.get(row, v);
                line.copy_from_slice(&latent.leaves[state * columns..][..columns]);
                *log += latent.leaf_logs[state];
            }
        }
        for &(h, parent) in latent.order.iter().rev() {
            let own = h * one..(h + 1) * one;
            let Some(u) = parent else {
                let root = &latent.table(&latent.down, h)[..columns];
                for (line, log) in up[own].chunks_exact(columns).zip(&mut *logs) {
                    *log += dot(root, line).into().ln();
                }
                continue;
            };
            let told = &mut told[if keep { own.clone() } else { 0..one }];
            product(
                f,
                Target { data: told, stride: columns },
                Write::Set,
                Strided { data: &up[own], row: columns, column: 1 },
                Contiguous { data: latent.table(&latent.up, h), stride: columns },
                [count, columns, states],
            );
            let lines = up[u * one..].chunks_exact_mut(columns).zip(told.chunks_exact(columns));
            for ((line, told), log) in lines.zip(&mut *logs) {
                let mut most = [T::default(); WIDTH];
                for (up, told) in line.chunks_exact_mut(WIDTH).zip(told.chunks_exact(WIDTH)) {
                    for i in 0..WIDTH {
                        up[i] = up[i].times(told[i]);
                        most[i] = if up[i] > most[i] { up[i] } else { most[i] };
                    }
                }
                let most = most.into_iter().fold(T::default(), |a, b| if b > a { b } else { a });
                if most.into() < SMALL {
                    // What is impossible stays so: nothing times nothing.
                    if most > T::default() {
                        line.iter_mut().for_each(|up| *up = up.over(most));
                    }
                    *log += most.into().ln();
                }
            }
        }
    }
}

/// One panel down the tree: posteriors, and the posteriors of parents over what they were told.
struct Down<'a, 'm, T> {
    latent: &'a Latent<T>,
    weights: &'a [f64],
    up: &'m [T],
    told: &'m mut [T],
    posterior: &'m mut [T],
}

impl<T: Real> WithSimd for Down<'_, '_, T> {
    /// Rows that have a weight and are impossible.
    type Output = Vec<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<usize> {
        let f = Rows { simd, precision: PhantomData::<T> };
        let Self { latent, weights, up, told, posterior } = self;
        let &Latent { states, columns, .. } = latent;
        let (one, count) = (PANEL * columns, weights.len());
        let zero = T::default();
        // A row is lost whole: what one root does not explain is counted below none.
        let mut lost = [false; PANEL];
        for &(h, _) in latent.order.iter().filter(|(_, parent)| parent.is_none()) {
            let root = &latent.table(&latent.down, h)[..columns];
            for (row, line) in up[h * one..].chunks_exact(columns).take(count).enumerate() {
                lost[row] |= dot(root, line) <= T::TINY && weights[row] != 0.0;
            }
        }
        for &(h, parent) in &latent.order {
            let own = h * one..h * one + count * columns;
            let (table, up) = (latent.table(&latent.down, h), &up[own.clone()]);
            match parent {
                None => {
                    let root = &table[..columns];
                    let lines =
                        posterior[own.clone()].chunks_exact_mut(columns).zip(up.chunks_exact(columns));
                    for (row, (to, up)) in lines.enumerate() {
                        let sum = dot(root, up);
                        let counts = sum > T::TINY && !lost[row];
                        let share = T::from_f64(if counts { weights[row] / sum.into() } else { 0.0 });
                        let parts = root.iter().zip(up).map(|(p, up)| share.times(p.times(*up)));
                        to.iter_mut().zip(parts).for_each(|(to, part)| *to = part);
                        // The table of a root has one line.
                        told[own.start + row * columns] = share;
                    }
                }
                Some(u) => {
                    let shares = &mut told[own.clone()];
                    let above = &posterior[u * one..][..count * columns];
                    each(shares, above, |told, above| {
                        *told = if *told > T::TINY { above.over(*told) } else { zero };
                    });
                    let to = &mut posterior[own.clone()];
                    product(
                        f,
                        Target { data: to, stride: columns },
                        Write::Set,
                        Strided { data: shares, row: columns, column: 1 },
                        Contiguous { data: table, stride: columns },
                        [count, columns, states],
                    );
                    each(to, up, |to, up| *to = to.times(up));
                }
            }
        }
        (0..count).filter(|&row| lost[row]).collect()
    }
}

/// The matrices of one variable and panel.
struct OfPanel<'a, T> {
    rows: Range<usize>,
    up: &'a [T],
    shares: &'a [T],
    posterior: &'a [T],
}

/// The expected counts of one latent variable, and of what hangs at it.
struct Count<'a, 'c, T> {
    latent: &'a Latent<T>,
    layout: &'a Layout,
    codes: Codes<'a>,
    h: usize,
    panels: Vec<OfPanel<'a, T>>,
    leaf: &'c mut [f64],
    table: &'c mut [f64],
}

impl<T: Real> WithSimd for Count<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = Rows { simd, precision: PhantomData::<T> };
        let Self { latent, layout, codes, h, panels, leaf, table } = self;
        let &Latent { states, columns, .. } = latent;
        let lines = if latent.parents[h].is_none() { 1 } else { states };
        let mut sums = vec![T::default(); lines * columns];
        let seen = layout.states[h];
        let mut of_leaf = vec![T::default(); seen * columns];
        for OfPanel { rows, up, shares, posterior } in panels {
            product(
                f,
                Target { data: &mut sums, stride: columns },
                Write::Add,
                Strided { data: shares, row: 1, column: columns },
                Contiguous { data: up, stride: columns },
                [lines, columns, rows.len()],
            );
            for (row, line) in rows.zip(posterior.chunks_exact(columns)) {
                let sums = &mut of_leaf[codes.get(row, h) * columns..][..columns];
                each(sums, line, |sum, p| *sum = sum.plus(p));
            }
        }
        let p = latent.table(&latent.down, h).chunks_exact(columns);
        for ((counts, sums), p) in table.chunks_exact_mut(states).zip(sums.chunks_exact(columns)).zip(p) {
            counts
                .iter_mut()
                .zip(sums.iter().zip(p))
                .for_each(|(count, (sum, p))| *count += sum.times(*p).into());
        }
        for (a, line) in leaf.chunks_exact_mut(seen).enumerate() {
            line.iter_mut().enumerate().for_each(|(s, count)| *count += of_leaf[s * columns + a].into());
        }
    }
}

#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); WIDTH];
    for (a, b) in a.chunks_exact(WIDTH).zip(b.chunks_exact(WIDTH)) {
        (0..WIDTH).for_each(|i| sums[i] = sums[i].plus(a[i].times(b[i])));
    }
    sums.into_iter().fold(T::default(), T::plus)
}

/// A latent tree in the precision that is asked for.
#[derive(Clone, Debug)]
pub(super) enum Precise {
    Single(Latent<f32>, Messages<f32>),
    Double(Latent<f64>, Messages<f64>),
}

impl Precise {
    /// In single precision, or in double; with the room of one before it.
    pub fn new(layout: &Layout, tree: &RootedForest, p: &[f64], single: bool, before: Option<Self>) -> Self {
        // What is kept is of the tables before: only the room is taken over.
        match (single, before) {
            (true, Some(Self::Single(latent, room))) => {
                let room = Messages { rows: 0, ..room };
                Self::Single(Latent::new(layout, tree, p, Some(latent)), room)
            }
            (true, _) => Self::Single(Latent::new(layout, tree, p, None), Messages::default()),
            (false, Some(Self::Double(latent, room))) => {
                let room = Messages { rows: 0, ..room };
                Self::Double(Latent::new(layout, tree, p, Some(latent)), room)
            }
            (false, _) => Self::Double(Latent::new(layout, tree, p, None), Messages::default()),
        }
    }
}

/// Some rows of a table.
pub(super) struct SomeRows {
    cells: Vec<u16>,
    variables: usize,
}

impl SomeRows {
    pub fn new(codes: Codes<'_>, rows: &[usize]) -> Self {
        let variables = codes.variables();
        let cells = rows.iter().flat_map(|&row| (0..variables).map(move |v| codes.get(row, v) as u16));
        Self { cells: cells.collect(), variables }
    }

    pub fn codes(&self) -> Result<Codes<'_>, CodesError> {
        Codes::new(&self.cells, self.variables)
    }
}
