//! Messages on a latent tree, many rows at a time: likelihoods on the way up, expected counts on the way down.
//!
//! Every number is an array of rows, so that the compiler makes one instruction of several rows; what is compiled here is
//! compiled for the best instructions of the machine.

use super::TreeModel;
use crate::data::Codes;
use rayon::prelude::*;

/// Rows side by side.
const LANES: usize = 16;
type Lane = [f64; LANES];
/// Entries of a line of counts that are added up together.
const WIDTH: usize = 8;
/// Rows of a task.
const CHUNK: usize = 256;
/// Tasks of a count at most: each has counts of its own, added up in order at the end.
const TASKS: usize = 8;

/// A latent tree, to be walked with chunks of rows.
pub(super) struct Chunks<'a> {
    ready: &'a TreeModel,
    /// Variables that are observed; as many are latent.
    n: usize,
    /// States of the latent ones.
    states: usize,
    /// Hidden variables from the roots on, numbered from 0, with their parents.
    order: Vec<(usize, Option<usize>)>,
}

/// What a walk writes.
struct Space {
    /// Likelihood of what was observed at and below each latent variable, by its state, up to scale.
    up: Vec<Lane>,
    /// What it told its parent.
    passed: Vec<Lane>,
    /// Its posterior.
    posterior: Vec<Lane>,
    /// Logarithms of what was scaled away, and products whose logarithm is not taken yet.
    log: Lane,
    scale: Lane,
    /// Messages with states side by side instead of rows.
    turned: Vec<f64>,
    shares: Vec<Lane>,
}

impl Space {
    /// Divides by the largest of each row.
    #[inline(always)]
    fn rescale(&mut self, first: usize, states: usize) {
        let numbers = &mut self.up[first..first + states];
        let mut most = [0.0f64; LANES];
        for number in numbers.iter() {
            (0..LANES).for_each(|lane| most[lane] = most[lane].max(number[lane]));
        }
        // What is impossible stays so: nothing times nothing.
        let inverse = most.map(|most| if most > 0.0 { 1.0 / most } else { 0.0 });
        if inverse.iter().all(|inverse| inverse.is_finite()) {
            for number in numbers {
                (0..LANES).for_each(|lane| number[lane] *= inverse[lane]);
            }
        } else {
            // The inverse of the smallest numbers is infinite.
            let divisor = most.map(|most| if most > 0.0 { most } else { 1.0 });
            for number in numbers {
                (0..LANES).for_each(|lane| number[lane] /= divisor[lane]);
            }
        }
        for lane in 0..LANES {
            if most[lane] < 1e-200 {
                // The product might be nothing where neither factor is.
                self.log[lane] += most[lane].ln();
                continue;
            }
            self.scale[lane] *= most[lane];
            if self.scale[lane] < 1e-100 {
                self.log[lane] += self.scale[lane].ln();
                self.scale[lane] = 1.0;
            }
        }
    }
}

impl<'a> Chunks<'a> {
    pub fn new(ready: &'a TreeModel) -> Self {
        let n = ready.tree.len() / 2;
        let latent = ready.tree.order().iter().filter(|&&v| v >= n);
        let order = latent.map(|&v| (v - n, ready.tree.parent(v).map(|u| u - n))).collect();
        Self { ready, n, states: ready.layout.states[n], order }
    }

    fn space(&self) -> Space {
        let all = self.n * self.states;
        Space {
            up: vec![[0.0; LANES]; all],
            passed: vec![[0.0; LANES]; all],
            posterior: vec![[0.0; LANES]; all],
            log: [0.0; LANES],
            scale: [1.0; LANES],
            turned: vec![0.0; LANES * self.states.next_multiple_of(WIDTH)],
            shares: vec![[0.0; LANES]; self.states],
        }
    }

    /// The table of a latent variable.
    #[inline(always)]
    fn table(&self, h: usize) -> &'a [f64] {
        let tables = &self.ready.layout.tables;
        &self.ready.p[tables[self.n + h]..tables[self.n + h + 1]]
    }

    /// The table of an observed one.
    #[inline(always)]
    fn leaf(&self, v: usize) -> (&'a [f64], usize) {
        let layout = &self.ready.layout;
        (&self.ready.p[layout.tables[v]..layout.tables[v + 1]], layout.states[v])
    }

    /// The way up: logarithms of the probabilities of rows, the last again and again where there are fewer.
    #[inline(always)]
    fn collect(&self, codes: Codes<'_>, rows: &[usize; LANES], space: &mut Space) -> Lane {
        let states = self.states;
        (space.log, space.scale) = ([0.0; LANES], [1.0; LANES]);
        for v in 0..self.n {
            let (table, count) = self.leaf(v);
            let seen = rows.map(|row| codes.get(row, v));
            for (a, up) in space.up[v * states..(v + 1) * states].iter_mut().enumerate() {
                (0..LANES).for_each(|lane| up[lane] = table[a * count + seen[lane]]);
            }
            space.rescale(v * states, states);
        }
        let mut logs = [0.0; LANES];
        for &(h, parent) in self.order.iter().rev() {
            let table = self.table(h);
            let lines = table.chunks_exact(states);
            match parent {
                None => {
                    let mut sum = [0.0; LANES];
                    for (p, up) in table[..states].iter().zip(&space.up[h * states..]) {
                        (0..LANES).for_each(|lane| sum[lane] += p * up[lane]);
                    }
                    (0..LANES).for_each(|lane| logs[lane] += sum[lane].ln());
                }
                Some(u) => {
                    for (a, line) in lines.enumerate() {
                        let mut told = [0.0; LANES];
                        for (p, up) in line.iter().zip(&space.up[h * states..]) {
                            (0..LANES).for_each(|lane| told[lane] += p * up[lane]);
                        }
                        space.passed[h * states + a] = told;
                        let up = &mut space.up[u * states + a];
                        (0..LANES).for_each(|lane| up[lane] *= told[lane]);
                    }
                    space.rescale(u * states, states);
                }
            }
        }
        (0..LANES).for_each(|lane| logs[lane] += space.log[lane] + space.scale[lane].ln());
        logs
    }

    /// The way down after it: adds expected counts of observed variables, and of latent ones those that are to be multiplied
    /// by their tables.
    #[inline(always)]
    fn distribute(
        &self,
        codes: Codes<'_>,
        rows: &[usize; LANES],
        weights: &Lane,
        space: &mut Space,
        counts: &mut [f64],
    ) {
        let (states, tables) = (self.states, &self.ready.layout.tables);
        let padded = states.next_multiple_of(WIDTH);
        for &(h, parent) in &self.order {
            let own = h * states..(h + 1) * states;
            let table = self.table(h);
            let Space { up, passed, posterior, turned, shares, .. } = space;
            let up = &up[own.clone()];
            match parent {
                None => {
                    let mut sum = [0.0; LANES];
                    for (p, up) in table.iter().zip(up) {
                        (0..LANES).for_each(|lane| sum[lane] += p * up[lane]);
                    }
                    let inverse = sum.map(|sum| if sum > 0.0 { 1.0 / sum } else { 0.0 });
                    for (b, ((to, up), p)) in posterior[own.clone()].iter_mut().zip(up).zip(table).enumerate()
                    {
                        (0..LANES).for_each(|lane| to[lane] = p * up[lane] * inverse[lane]);
                        // As a product with its table, like all others.
                        let part: f64 = (0..LANES).map(|lane| weights[lane] * up[lane] * inverse[lane]).sum();
                        counts[tables[self.n + h] + b] += part;
                    }
                }
                Some(u) => {
                    for (a, share) in shares.iter_mut().enumerate() {
                        let (above, told) = (&posterior[u * states + a], &passed[h * states + a]);
                        for lane in 0..LANES {
                            share[lane] = if told[lane] > 0.0 { above[lane] / told[lane] } else { 0.0 };
                        }
                    }
                    let to = &mut posterior[own.clone()];
                    to.iter_mut().for_each(|to| *to = [0.0; LANES]);
                    for (line, share) in table.chunks_exact(states).zip(&*shares) {
                        for (to, p) in to.iter_mut().zip(line) {
                            (0..LANES).for_each(|lane| to[lane] += p * share[lane]);
                        }
                    }
                    for (to, up) in to.iter_mut().zip(up) {
                        (0..LANES).for_each(|lane| to[lane] *= up[lane]);
                    }
                    for (b, up) in up.iter().enumerate() {
                        (0..LANES).for_each(|lane| turned[lane * padded + b] = up[lane]);
                    }
                    let counts = &mut counts[tables[self.n + h]..][..states * states];
                    for (line, share) in counts.chunks_exact_mut(states).zip(&*shares) {
                        for (place, some) in line.chunks_mut(WIDTH).enumerate() {
                            let mut sums = [0.0; WIDTH];
                            for lane in 0..LANES {
                                let share = weights[lane] * share[lane];
                                let up = &turned[lane * padded + place * WIDTH..][..WIDTH];
                                (0..WIDTH).for_each(|i| sums[i] += share * up[i]);
                            }
                            some.iter_mut().zip(sums).for_each(|(count, sum)| *count += sum);
                        }
                    }
                }
            }
            let count = self.ready.layout.states[h];
            let seen = rows.map(|row| codes.get(row, h));
            let counts = &mut counts[tables[h]..][..states * count];
            for (line, posterior) in counts.chunks_exact_mut(count).zip(&space.posterior[own]) {
                (0..LANES).for_each(|lane| line[seen[lane]] += weights[lane] * posterior[lane]);
            }
        }
    }

    pub fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) {
        out.par_chunks_mut(CHUNK).enumerate().for_each_init(
            || self.space(),
            |space, (chunk, out)| {
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        for (some, out) in out.chunks_mut(LANES).enumerate() {
                            let first = chunk * CHUNK + some * LANES;
                            let rows = std::array::from_fn(|lane| first + lane.min(out.len() - 1));
                            let logs = self.collect(codes, &rows, space);
                            out.copy_from_slice(&logs[..out.len()]);
                        }
                    },
                );
            },
        );
    }

    /// Adds the expected counts of every table, each row with its weight.
    pub fn count(&self, codes: Codes<'_>, weights: &[f64], counts: &mut [f64]) {
        // No row at least: a component may have none of a batch.
        let task = weights.len().div_ceil(TASKS).next_multiple_of(LANES).max(LANES);
        let parts: Vec<Vec<f64>> = weights
            .par_chunks(task)
            .enumerate()
            .map(|(number, weights)| {
                let mut counts = vec![0.0; counts.len()];
                let mut space = self.space();
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        for (some, weights) in weights.chunks(LANES).enumerate() {
                            let first = number * task + some * LANES;
                            let rows = std::array::from_fn(|lane| first + lane.min(weights.len() - 1));
                            let weights =
                                std::array::from_fn(|lane| weights.get(lane).copied().unwrap_or(0.0));
                            self.collect(codes, &rows, &mut space);
                            self.distribute(codes, &rows, &weights, &mut space, &mut counts);
                        }
                    },
                );
                counts
            })
            .collect();
        // Observed variables come first, and are done; latent ones lack their tables.
        let latent = self.ready.layout.tables[self.n];
        for part in parts {
            counts[..latent].iter_mut().zip(&part).for_each(|(sum, count)| *sum += count);
            let tables = part[latent..].iter().zip(&self.ready.p[latent..]);
            counts[latent..].iter_mut().zip(tables).for_each(|(sum, (count, p))| *sum += count * p);
        }
    }
}
