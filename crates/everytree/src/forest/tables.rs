//! The rates of every pair of states, in f64.

use super::ForestError;
use crate::spanning::Kind;

/// Most states over all variables: the square of it is a table.
const MAX_STATES: usize = 1 << 14;

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
    rates: Vec<f64>,
}

impl Tables {
    /// Fills the tables from `rate(v, a, u, b)`: variable v in state a towards variable u in state b. Undirected: asked
    /// for `u < v` only. Directed: v is the child, u the parent, and `rate(v, a, v, a)` the root rate.
    pub fn build(
        kind: Kind,
        states: &[usize],
        mut rate: impl FnMut(usize, usize, usize, usize) -> f64,
    ) -> Result<Self, ForestError> {
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
        let total = offsets[states.len()];
        if total == 0 {
            return Err(ForestError::NoStates { variable: 0 });
        }
        let mut rates = vec![0.0; total * total];
        for v in 0..states.len() {
            let others = if kind == Kind::Undirected { 0..v } else { 0..states.len() };
            for u in others {
                for a in 0..states[v] {
                    for b in 0..states[u] {
                        if u == v && a != b {
                            continue;
                        }
                        let value = rate(v, a, u, b);
                        if !(value >= 0.0 && value.is_finite()) {
                            let (state, other, other_state) = (a, u, b);
                            return Err(ForestError::BadRate {
                                variable: v,
                                state,
                                other,
                                other_state,
                                value,
                            });
                        }
                        rates[(offsets[v] + a) * total + offsets[u] + b] = value;
                    }
                }
            }
        }
        Ok(Self { kind, offsets, rates })
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
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    pub(crate) fn rates(&self) -> &[f64] {
        &self.rates
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
