//! The accumulator of expected counts.

use super::Tables;
use super::tables::place;
use crate::spanning::Kind;
use rayon::prelude::*;

/// Expected counts: for every pair of states, the sum over rows of weight × probability that the forest has that edge.
///
/// Laid out as [`Tables`] are. For a variable v of the directed kind, the counts of all its parents and of its being a
/// root add up to the total weight of the rows; the counts of all edges of the undirected kind to (n − 1) times that.
#[derive(Clone, Debug)]
pub struct Counts {
    kind: Kind,
    offsets: Vec<usize>,
    sums: Vec<f64>,
}

impl Counts {
    /// All zero, for the variables of these tables.
    pub fn new(tables: &Tables) -> Self {
        let offsets = tables.offsets().to_vec();
        Self { kind: tables.kind(), sums: vec![0.0; tables.rates().len()], offsets }
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        self.sums.fill(0.0);
    }

    /// Count of variable `v` in state `a` with variable `u` in state `b`: u as its parent (directed), or joined by an
    /// edge (undirected, both ways the same). `get(v, a, v, a)`, directed: v in state a as a root.
    ///
    /// # Panics
    /// When there is no such variable or state.
    pub fn get(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        self.sums[place(self.kind, &self.offsets, v, a, u, b)]
    }

    /// The sum over all states of `v` and `u`: expected number of rows with that edge.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn edge(&self, v: usize, u: usize) -> f64 {
        let states = |v: usize| 0..self.offsets[v + 1] - self.offsets[v];
        states(v).flat_map(|a| states(u).map(move |b| (a, b))).map(|(a, b)| self.get(v, a, u, b)).sum()
    }

    /// Where the states of each variable begin, and how many there are in all.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The square matrix over all states.
    pub(crate) fn sums(&self) -> &[f64] {
        &self.sums
    }

    pub(crate) fn is_of(&self, kind: Kind, offsets: &[usize]) -> bool {
        self.kind == kind && self.offsets == offsets
    }

    /// Is it laid out as these tables are?
    pub fn fits(&self, tables: &Tables) -> bool {
        self.is_of(tables.kind(), tables.offsets())
    }

    /// Adds to one entry of the square matrix over all states.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn add(&mut self, place: usize, count: f64) {
        self.sums[place] += count;
    }

    /// Adds to every entry that is looked up, on all cores.
    pub fn add_all(&mut self, tables: &Tables, count: impl Fn(usize) -> f64 + Sync) {
        let (kind, offsets) = (self.kind, tables.offsets());
        let total = offsets[offsets.len() - 1];
        let variable = |state: usize| offsets.partition_point(|&offset| offset <= state) - 1;
        self.sums.par_chunks_mut(total).enumerate().with_min_len(16).for_each(|(state, line)| {
            let columns = if kind == Kind::Undirected { offsets[variable(state)] } else { total };
            let line = line[..columns].iter_mut().enumerate();
            line.for_each(|(column, sum)| *sum += count(state * total + column));
        });
    }

    pub(crate) fn sums_mut(&mut self) -> &mut [f64] {
        &mut self.sums
    }
}
