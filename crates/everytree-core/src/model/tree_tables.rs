//! What a family has to say about one tree: a table for every edge, either way, and one for every root.

use crate::util::offsets;

/// Tables of the edges of trees, as messages need them.
pub trait EdgeTables: Sync {
    /// Where the states of each variable begin among all states, and how many there are in all.
    fn offsets(&self) -> &[usize];
    /// `P(x_v = · | x_u = a)` for the parent u of v.
    fn given(&self, u: usize, a: usize, v: usize) -> &[f64];
    /// `P_v(·)` of v as a root.
    fn root(&self, v: usize) -> &[f64];

    /// How many variables.
    fn variables(&self) -> usize {
        self.offsets().len() - 1
    }

    /// How many states a variable has.
    fn states(&self, v: usize) -> usize {
        self.offsets()[v + 1] - self.offsets()[v]
    }
}

/// Conditional tables of every ordered pair of variables, and margins for roots.
///
/// A tree that was drawn picks its tables out of these. Memory: `8 S²` bytes for S states in all.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeTables {
    offsets: Vec<usize>,
    /// Row `u:a`, column `v:b`: `P(x_v = b | x_u = a)`.
    conditionals: Vec<f64>,
    /// `P_v(b)` of v as a root.
    roots: Vec<f64>,
}

impl TreeTables {
    /// From `conditional(u, a, v, b) = P(x_v = b | x_u = a)` for u ≠ v, and `root(v, b) = P_v(b)`.
    pub fn build(
        states: &[usize],
        conditional: impl Fn(usize, usize, usize, usize) -> f64,
        root: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let offsets = offsets(states);
        let total = offsets[states.len()];
        let mut conditionals = vec![0.0; total * total];
        let mut roots = vec![0.0; total];
        for v in 0..states.len() {
            for b in 0..states[v] {
                roots[offsets[v] + b] = root(v, b);
                for u in (0..states.len()).filter(|&u| u != v) {
                    for a in 0..states[u] {
                        conditionals[(offsets[u] + a) * total + offsets[v] + b] = conditional(u, a, v, b);
                    }
                }
            }
        }
        Self { offsets, conditionals, roots }
    }

    /// `P(x_v = · | x_u = a)`
    #[inline]
    pub fn given(&self, u: usize, a: usize, v: usize) -> &[f64] {
        let total = self.roots.len();
        let row = &self.conditionals[(self.offsets[u] + a) * total..][..total];
        &row[self.offsets[v]..self.offsets[v + 1]]
    }

    /// `P(x_v = b | x_u = a)` by the places of the two states among all states.
    #[inline]
    pub(crate) fn given_at(&self, parent: usize, child: usize) -> f64 {
        self.conditionals[parent * self.roots.len() + child]
    }

    /// `P_v(b)` of v as a root, by the place of the state among all states.
    #[inline]
    pub(crate) fn root_at(&self, place: usize) -> f64 {
        self.roots[place]
    }

    /// `P_v(·)` of v as a root.
    #[inline]
    pub fn root(&self, v: usize) -> &[f64] {
        &self.roots[self.offsets[v]..self.offsets[v + 1]]
    }
}

impl EdgeTables for TreeTables {
    fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    #[inline]
    fn given(&self, u: usize, a: usize, v: usize) -> &[f64] {
        TreeTables::given(self, u, a, v)
    }

    #[inline]
    fn root(&self, v: usize) -> &[f64] {
        TreeTables::root(self, v)
    }
}
