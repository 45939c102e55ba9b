//! The rates of every pair of states, in f64.

use super::ForestError;
use crate::data::MAX_STATES;
use crate::spanning::{Kind, exponent_of, scales};
use rayon::prelude::*;
use std::sync::Arc;

/// The rate of every pair of states of every pair of variables: one square matrix over *all states of all variables*.
///
/// State `a` of variable `v` has index `offset(v) + a`. A row of data picks one state per variable, and thereby a rate
/// matrix in the layout of [`Kind`]:
///
/// - undirected: entry `(v:a, u:b)`, `u < v`, is `w_uv · z_uv(b, a)`;
/// - directed: entry `(v:b, u:a)` is `w_{u→v} · P(x_v = b | x_u = a)`, and `(v:b, v:b)` is the root rate `ρ_v · P_v(b)`.
///
/// Memory: `8 S²` bytes for S states in all.
#[derive(Clone, Debug)]
pub struct Tables {
    kind: Kind,
    offsets: Vec<usize>,
    /// Shared with what was prepared of them, until they change.
    rates: Arc<Vec<f64>>,
}

impl Tables {
    /// Can variables with so many states each be tabulated?
    pub fn check(states: &[usize]) -> Result<(), ForestError> {
        Self::offsets_of(states).map(drop)
    }

    fn offsets_of(states: &[usize]) -> Result<Vec<usize>, ForestError> {
        let mut offsets = vec![0usize];
        for (variable, &count) in states.iter().enumerate() {
            if count == 0 {
                return Err(ForestError::NoStates { variable });
            }
            let states = offsets[variable].saturating_add(count);
            if states > MAX_STATES {
                return Err(ForestError::TooManyStates { states, limit: MAX_STATES });
            }
            offsets.push(states);
        }
        if states.is_empty() {
            return Err(ForestError::NoStates { variable: 0 });
        }
        Ok(offsets)
    }

    /// All rates zero, for variables with so many states each.
    pub fn zeros(kind: Kind, states: &[usize]) -> Result<Self, ForestError> {
        let offsets = Self::offsets_of(states)?;
        let total = offsets[states.len()];
        Ok(Self { kind, offsets, rates: Arc::new(vec![0.0; total * total]) })
    }

    /// Fills the tables from `rate(v, a, u, b)`: variable v in state a towards variable u in state b. Undirected: asked
    /// for `u < v` only. Directed: v is the child, u the parent, and `rate(v, a, v, a)` the root rate.
    pub fn build(
        kind: Kind,
        states: &[usize],
        mut rate: impl FnMut(usize, usize, usize, usize) -> f64,
    ) -> Result<Self, ForestError> {
        let mut tables = Self::zeros(kind, states)?;
        for (v, mut line) in tables.lines().into_iter().enumerate() {
            let others = if kind == Kind::Undirected { 0..v } else { 0..states.len() };
            for u in others {
                for a in 0..states[v] {
                    for b in 0..states[u] {
                        if u != v || a == b {
                            line.set(a, u, b, rate(v, a, u, b));
                        }
                    }
                }
            }
            line.judge()?;
        }
        Ok(tables)
    }

    /// Sets rates anew, on all cores: `fill` is called once for every variable and sets the rates of its states.
    /// Undirected: those towards variables before it.
    pub fn fill(&mut self, fill: impl Fn(usize, &mut Line<'_>) + Sync) -> Result<(), ForestError> {
        let mut lines = self.lines();
        lines.par_iter_mut().enumerate().for_each(|(v, line)| fill(v, line));
        lines.into_iter().try_for_each(Line::judge)
    }

    fn lines(&mut self) -> Vec<Line<'_>> {
        let offsets = &self.offsets[..];
        let total = offsets[offsets.len() - 1];
        let mut rest = &mut Arc::make_mut(&mut self.rates)[..];
        let mut lines = Vec::with_capacity(offsets.len() - 1);
        for v in 0..offsets.len() - 1 {
            let (rates, tail) = rest.split_at_mut((offsets[v + 1] - offsets[v]) * total);
            rest = tail;
            lines.push(Line { v, offsets, rates, bad: None });
        }
        lines
    }

    /// Which forests are summed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of states of a variable.
    ///
    /// # Panics
    /// When there is no such variable.
    pub fn states(&self, variable: usize) -> usize {
        self.offsets[variable + 1] - self.offsets[variable]
    }

    /// The rate of variable `v` in state `a` towards variable `u` in state `b`. Undirected tables answer both ways.
    ///
    /// # Panics
    /// When there is no such variable or state.
    pub fn get(&self, v: usize, a: usize, u: usize, b: usize) -> f64 {
        self.rates[place(self.kind, &self.offsets, v, a, u, b)]
    }

    /// Where the states of each variable begin, and how many there are in all.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The square matrix over all states.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The same, to keep.
    pub(super) fn shared_rates(&self) -> Arc<Vec<f64>> {
        Arc::clone(&self.rates)
    }

    /// Takes over the rates of other tables, on all cores.
    ///
    /// # Panics
    /// When the others are of another kind, or of variables with other states.
    pub fn copy_from(&mut self, others: &Tables) {
        assert!(self.kind == others.kind && self.offsets == others.offsets, "tables of another shape");
        const SOME: usize = 1 << 15;
        Arc::make_mut(&mut self.rates)
            .par_chunks_mut(SOME)
            .zip(others.rates.par_chunks(SOME))
            .for_each(|(to, from)| to.copy_from_slice(from));
    }

    /// Are these tables of the same kind, for the same states?
    pub fn is_like(&self, others: &Tables) -> bool {
        self.kind == others.kind && self.offsets == others.offsets
    }

    /// Where the largest rate is very large or very small: a power of two, and two factors that together divide by it.
    pub fn scale(&self) -> (i32, (f64, f64)) {
        let largest = self.rates.par_iter().with_min_len(1 << 14).copied().reduce(|| 0.0, f64::max);
        let exponent = exponent_of(largest);
        (exponent, scales(exponent))
    }
}

/// The rates of one variable's states towards those of the others.
pub struct Line<'a> {
    v: usize,
    offsets: &'a [usize],
    rates: &'a mut [f64],
    bad: Option<ForestError>,
}

impl Line<'_> {
    /// The rate of this variable in state `a` towards variable `u` in state `b`.
    ///
    /// # Panics
    /// When there is no such state.
    #[inline]
    pub fn set(&mut self, a: usize, u: usize, b: usize, rate: f64) {
        let total = self.offsets[self.offsets.len() - 1];
        if !(rate >= 0.0 && rate.is_finite()) {
            let (variable, state, other, other_state, value) = (self.v, a, u, b, rate);
            self.bad.get_or_insert(ForestError::BadRate { variable, state, other, other_state, value });
        }
        self.rates[a * total + self.offsets[u] + b] = rate;
    }

    fn judge(self) -> Result<(), ForestError> {
        self.bad.map_or(Ok(()), Err)
    }
}

/// Where the entry of a pair of states lies in a matrix over all states.
pub(crate) fn place(kind: Kind, offsets: &[usize], v: usize, a: usize, u: usize, b: usize) -> usize {
    let total = offsets[offsets.len() - 1];
    let (first, second) = (offsets[v] + a, offsets[u] + b);
    assert!(first < offsets[v + 1] && second < offsets[u + 1], "no such state");
    match kind {
        Kind::Undirected => first.max(second) * total + first.min(second),
        Kind::Directed => first * total + second,
    }
}
