//! Messages on a latent tree, many rows at a time, as products of matrices: likelihoods on the way up, expected counts on the
//! way down.
//!
//! Of every latent variable there is a matrix with a line for each row and a column for each of its states. A message to the
//! parent is that matrix times a table; a posterior is one times the table transposed; and expected counts are the product of
//! two such matrices over the rows. States are padded with zeros to whole registers.

use super::parameters::Layout;
use crate::data::Codes;
use crate::spanning::Level;
use crate::spanning::RootedForest;
use crate::spanning::kernel::field::Rows;
use crate::spanning::kernel::product::{Contiguous, Strided, Target, Write, product};
use crate::util::Pool;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;

/// Rows of a panel: what one task takes up and down the tree.
const PANEL: usize = 32;
/// Rows whose messages are kept at once for counting, and memory for them at most.
const KEPT_ROWS: usize = 512;
const KEPT_BYTES: usize = 1 << 26;
/// Columns are padded to this many, the most that a register has.
const WIDTH: usize = 8;
/// Numbers whose largest is below this are scaled up before they are multiplied any further.
const SMALL: f64 = 1e-60;

/// The tables of a latent tree as products need them, and room to work in.
#[derive(Clone, Debug)]
pub(super) struct Latent {
    /// Variables that are observed; as many are latent.
    n: usize,
    /// States of the latent ones, and columns of their matrices.
    states: usize,
    columns: usize,
    /// Latent variables from the roots on, numbered from 0, with their parents.
    order: Vec<(usize, Option<usize>)>,
    /// `[h][a][b] = P(h = b | parent = a)`, of a root in the first line.
    down: Vec<f64>,
    /// `[h][b][a]`, the same turned over.
    up: Vec<f64>,
    /// `[v:s][a] = P(v = s | latent = a)` over the largest of them, whose logarithm is `leaf_logs[v:s]`.
    leaves: Vec<f64>,
    leaf_logs: Vec<f64>,
    /// Kept from one batch to the next.
    spaces: Arc<Pool<Space>>,
}

/// Matrices of panels of rows: panel by panel, variable by variable, row by row.
#[derive(Default)]
pub(super) struct Space {
    /// Likelihood of what was observed at and below each latent variable, by its state, up to scale.
    up: Vec<f64>,
    /// What it told its parent; after the way down, the posterior of the parent over that.
    passed: Vec<f64>,
    /// Its posterior, times the weight of the row.
    posterior: Vec<f64>,
}

/// The matrices of one panel.
struct Panel<'a> {
    up: &'a mut [f64],
    passed: &'a mut [f64],
    posterior: &'a mut [f64],
    /// Logarithms of the probabilities of the rows.
    logs: [f64; PANEL],
}

impl Latent {
    pub fn new(layout: &Layout, tree: &RootedForest, p: &[f64], spaces: Option<Arc<Pool<Space>>>) -> Self {
        let n = layout.observed;
        let states = layout.states[n];
        let columns = states.next_multiple_of(WIDTH);
        let latent = tree.order().iter().filter(|&&v| v >= n);
        let order = latent.map(|&v| (v - n, tree.parent(v).map(|u| u - n))).collect();
        let mut down = vec![0.0; n * states * columns];
        let mut up = down.clone();
        let tables =
            down.par_chunks_exact_mut(states * columns).zip(up.par_chunks_exact_mut(states * columns));
        tables.enumerate().for_each(|(h, (down, up))| {
            let table = &p[layout.tables[n + h]..layout.tables[n + h + 1]];
            for (a, line) in table.chunks_exact(states).enumerate() {
                down[a * columns..][..states].copy_from_slice(line);
                line.iter().enumerate().for_each(|(b, p)| up[b * columns + a] = *p);
            }
        });
        let total = layout.offsets[n];
        let (mut leaves, mut leaf_logs) = (vec![0.0; total * columns], vec![0.0; total]);
        for v in 0..n {
            let (first, count) = (layout.offsets[v], layout.states[v]);
            let table = &p[layout.tables[v]..layout.tables[v + 1]];
            for s in 0..count {
                let line = &mut leaves[(first + s) * columns..][..states];
                line.iter_mut().enumerate().for_each(|(a, leaf)| *leaf = table[a * count + s]);
                let most = line.iter().copied().fold(0.0, f64::max);
                // What is impossible stays so.
                if most > 0.0 {
                    line.iter_mut().for_each(|leaf| *leaf /= most);
                }
                leaf_logs[first + s] = most.ln();
            }
        }
        let spaces = spaces.unwrap_or_else(|| Arc::new(Pool::new()));
        Self { n, states, columns, order, down, up, leaves, leaf_logs, spaces }
    }

    pub fn spaces(&self) -> Arc<Pool<Space>> {
        self.spaces.clone()
    }

    /// Numbers of one matrix of a panel, and of all matrices.
    fn sizes(&self) -> (usize, usize) {
        (PANEL * self.columns, self.n * PANEL * self.columns)
    }

    /// The natural logarithm of the probability of every row.
    pub fn log_p(&self, layout: &Layout, codes: Codes<'_>, out: &mut [f64]) {
        let (one, all) = self.sizes();
        out.par_chunks_mut(PANEL).enumerate().for_each_init(
            || (vec![0.0; all], vec![0.0; one]),
            |(up, passed), (panel, out)| {
                let logs = [0.0; PANEL];
                // Messages are not kept.
                let mut space = Panel { up, passed, posterior: &mut [], logs };
                let rows = panel * PANEL..panel * PANEL + out.len();
                Level::best().run(Walk {
                    latent: self,
                    layout,
                    codes,
                    rows,
                    weights: None,
                    panel: &mut space,
                });
                out.copy_from_slice(&space.logs[..out.len()]);
            },
        );
    }

    /// Adds the expected counts of every table, each row with its weight.
    pub fn count(&self, layout: &Layout, codes: Codes<'_>, weights: &[f64], counts: &mut [f64]) {
        let (one, all) = self.sizes();
        let panels = (KEPT_BYTES / (24 * all)).clamp(1, KEPT_ROWS / PANEL);
        let mut space = self.spaces.take().unwrap_or_default();
        for (some, weights) in weights.chunks(panels * PANEL).enumerate() {
            let first = some * panels * PANEL;
            let panels = weights.len().div_ceil(PANEL);
            let Space { up, passed, posterior } = &mut space;
            for numbers in [&mut *up, &mut *passed, &mut *posterior] {
                numbers.resize(panels * all, 0.0);
            }
            let matrices = up.par_chunks_exact_mut(all).zip(passed.par_chunks_exact_mut(all));
            matrices
                .zip(posterior.par_chunks_exact_mut(all))
                .zip(weights.par_chunks(PANEL))
                .enumerate()
                .for_each(|(number, (((up, passed), posterior), weights))| {
                    let mut panel = Panel { up, passed, posterior, logs: [0.0; PANEL] };
                    let begin = first + number * PANEL;
                    let rows = begin..begin + weights.len();
                    let weights = Some(weights);
                    Level::best().run(Walk { latent: self, layout, codes, rows, weights, panel: &mut panel });
                });
            let (leaves, tables) = split(layout, counts);
            leaves.into_par_iter().zip(tables).zip(&self.order_by_variable()).enumerate().for_each(
                |(h, ((leaf, table), parent))| {
                    let of_panel = |(panel, weights): (usize, &[f64])| {
                        let (begin, place) = (first + panel * PANEL, panel * all + h * one);
                        let [up, shares, posterior] =
                            [&*up, passed, posterior].map(|all| &all[place..place + one]);
                        OfPanel { rows: begin..begin + weights.len(), up, shares, posterior }
                    };
                    let each = weights.chunks(PANEL).enumerate().map(of_panel).collect();
                    Level::best().run(Count {
                        latent: self,
                        layout,
                        codes,
                        h,
                        root: parent.is_none(),
                        each,
                        leaf,
                        table,
                    });
                },
            );
        }
        self.spaces.give(space);
    }

    fn order_by_variable(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.n];
        self.order.iter().for_each(|&(h, parent)| parents[h] = parent);
        parents
    }
}

/// The counts of observed variables and of latent ones, table by table.
fn split<'c>(layout: &Layout, counts: &'c mut [f64]) -> (Vec<&'c mut [f64]>, Vec<&'c mut [f64]>) {
    let mut rest = counts;
    let mut tables: Vec<&mut [f64]> = Vec::with_capacity(layout.variables());
    for ends in layout.tables.windows(2) {
        let (own, others) = rest.split_at_mut(ends[1] - ends[0]);
        tables.push(own);
        rest = others;
    }
    let latent = tables.split_off(layout.observed);
    (tables, latent)
}

/// One panel up the tree and, where rows have weights, down again.
struct Walk<'a, 'p, 's> {
    latent: &'a Latent,
    layout: &'a Layout,
    codes: Codes<'a>,
    rows: std::ops::Range<usize>,
    weights: Option<&'a [f64]>,
    panel: &'p mut Panel<'s>,
}

impl WithSimd for Walk<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = Rows { simd, precision: PhantomData::<f64> };
        let Walk { latent, layout, codes, rows, weights, panel } = self;
        let &Latent { n, states, columns, .. } = latent;
        let (one, count) = (PANEL * columns, rows.len());
        let Panel { up, passed, posterior, logs } = panel;
        for v in 0..n {
            for (row, line) in rows.clone().zip(up[v * one..].chunks_exact_mut(columns)) {
                let state = layout.offsets[v] + codes.get(row, v);
                line.copy_from_slice(&latent.leaves[state * columns..][..columns]);
                logs[row - rows.start] += latent.leaf_logs[state];
            }
        }
        for &(h, parent) in latent.order.iter().rev() {
            let own = h * one;
            let Some(u) = parent else {
                let root = &latent.down[h * states * columns..][..columns];
                for (line, log) in up[own..].chunks_exact(columns).zip(&mut logs[..count]) {
                    *log += dot(root, line).ln();
                }
                continue;
            };
            // Kept for the way down, if there is one.
            let told = if weights.is_some() { own } else { 0 };
            let told = &mut passed[told..][..one];
            product(
                f,
                Target { data: told, stride: columns },
                Write::Set,
                Strided { data: &up[own..][..one], row: columns, column: 1 },
                Contiguous { data: &latent.up[h * states * columns..][..states * columns], stride: columns },
                [count, columns, states],
            );
            let lines = up[u * one..].chunks_exact_mut(columns).zip(told.chunks_exact(columns));
            for ((line, told), log) in lines.zip(&mut logs[..count]) {
                let mut most = [0.0f64; WIDTH];
                for (up, told) in line.chunks_exact_mut(WIDTH).zip(told.chunks_exact(WIDTH)) {
                    for i in 0..WIDTH {
                        up[i] *= told[i];
                        most[i] = if up[i] > most[i] { up[i] } else { most[i] };
                    }
                }
                let most = most.iter().copied().fold(0.0, f64::max);
                if most < SMALL {
                    // What is impossible stays so: nothing times nothing.
                    if most > 0.0 {
                        line.iter_mut().for_each(|up| *up /= most);
                    }
                    *log += most.ln();
                }
            }
        }
        let Some(weights) = weights else { return };
        for &(h, parent) in &latent.order {
            let own = h * one..(h + 1) * one;
            let table = &latent.down[h * states * columns..][..states * columns];
            match parent {
                None => {
                    let lines = posterior[own.clone()]
                        .chunks_exact_mut(columns)
                        .zip(up[own.clone()].chunks_exact(columns));
                    for (row, (to, up)) in lines.take(count).enumerate() {
                        let root = &table[..columns];
                        let sum = dot(root, up);
                        let share = if sum > 0.0 { weights[row] / sum } else { 0.0 };
                        to.iter_mut().zip(root).zip(up).for_each(|((to, p), up)| *to = share * p * up);
                        // The table of a root has one line.
                        passed[own.start + row * columns] = share;
                    }
                }
                Some(u) => {
                    let shares = &mut passed[own.clone()];
                    let above = &posterior[u * one..][..count * columns];
                    shares.iter_mut().zip(above).for_each(|(share, above)| {
                        *share = if *share > 0.0 { above / *share } else { 0.0 };
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
                    let both = to[..count * columns].iter_mut().zip(&up[own.clone()]);
                    both.for_each(|(to, up)| *to *= up);
                }
            }
        }
    }
}

/// The matrices of one variable and panel.
struct OfPanel<'a> {
    rows: std::ops::Range<usize>,
    up: &'a [f64],
    shares: &'a [f64],
    posterior: &'a [f64],
}

/// The expected counts of one latent variable, and of what hangs at it.
struct Count<'a, 'c> {
    latent: &'a Latent,
    layout: &'a Layout,
    codes: Codes<'a>,
    h: usize,
    root: bool,
    each: Vec<OfPanel<'a>>,
    leaf: &'c mut [f64],
    table: &'c mut [f64],
}

impl WithSimd for Count<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = Rows { simd, precision: PhantomData::<f64> };
        let Self { latent, layout, codes, h, root, each, leaf, table } = self;
        let &Latent { states, columns, .. } = latent;
        let lines = if root { 1 } else { states };
        let mut sums = vec![0.0; lines * columns];
        let seen = layout.states[h];
        let mut of_leaf = vec![0.0; seen * columns];
        for OfPanel { rows, up, shares, posterior } in each {
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
                sums.iter_mut().zip(line).for_each(|(sum, p)| *sum += p);
            }
        }
        let p = latent.down[h * states * columns..].chunks_exact(columns);
        for ((counts, sums), p) in table.chunks_exact_mut(states).zip(sums.chunks_exact(columns)).zip(p) {
            counts.iter_mut().zip(sums.iter().zip(p)).for_each(|(count, (sum, p))| *count += sum * p);
        }
        for (a, line) in leaf.chunks_exact_mut(seen).enumerate() {
            line.iter_mut().enumerate().for_each(|(s, count)| *count += of_leaf[s * columns + a]);
        }
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; WIDTH];
    for (a, b) in a.chunks_exact(WIDTH).zip(b.chunks_exact(WIDTH)) {
        (0..WIDTH).for_each(|i| sums[i] += a[i] * b[i]);
    }
    sums.iter().sum()
}
