//! Random forests by undoing an elimination: exact, and never long.
//!
//! Eliminating vertex k turns every path i → k → j into an additional rate `q[i][k] · q[k][j] / p` of the edge i → j.
//! Backwards: given a random forest on the vertices that were left, each edge i → j came *via k* with the probability
//! that this share has in its rate. Let C be the vertices whose edge came via k. In the forest with k they hang under
//! k, and k hangs under some vertex outside their subtrees, or under the root, in proportion to its rates. (Over all
//! ways in which the vertices of C could hang via k, the weights add up to the same; that is Cayley's formula for
//! forests again.)
//!
//! One elimination costs `O(n³)`; then a draw takes `O(n²)` steps whatever the rates are, with relative accuracy in
//! every one of them: only sums, products and quotients of non-negative numbers decide.

use super::sweep::Scalar;
use rand::{Rng, RngExt};

/// An elimination that can be undone at random.
#[derive(Debug)]
pub(crate) struct Lift<S> {
    n: usize,
    /// Original rates, root rates on the diagonal.
    rates: Vec<S>,
    /// `into[i·n + k]`, i > k: rate from i to k when k is eliminated.
    into: Vec<S>,
    /// `out[k·(n+1) + j]`, j > k: rate from k to j over its pivot when k is eliminated; j = n is the root.
    out: Vec<S>,
    /// `out`, transposed: `from[j·n + k]`.
    from: Vec<S>,
    pivots: Vec<S>,
}

/// Marks an edge that was there from the beginning.
const DIRECT: usize = usize::MAX;

impl<S: Scalar> Lift<S> {
    /// Eliminates the rates `q[v·n + u]` with root rates on the diagonal, of which some forest is known to have a
    /// positive weight. `None` when this precision cannot vouch for a pivot.
    pub fn new(n: usize, rates: &[f64]) -> Option<Self> {
        let rates: Vec<S> = rates.iter().map(|&rate| S::new(rate)).collect();
        let mut q = rates.clone();
        let mut root: Vec<S> = (0..n).map(|v| q[v * n + v]).collect();
        let zero = S::new(0.0);
        let (mut out, mut from) = (vec![zero; n * (n + 1)], vec![zero; n * (n + 1)]);
        let mut pivots = Vec::with_capacity(n);
        for k in 0..n {
            let mut p = root[k];
            for j in k + 1..n {
                p = p + q[k * n + j];
            }
            if !p.is_safe_pivot() || p.is_zero() {
                return None;
            }
            for j in k + 1..=n {
                let step = if j == n { root[k] } else { q[k * n + j] } / p;
                out[k * (n + 1) + j] = step;
                from[j * n + k] = step;
            }
            for i in k + 1..n {
                let rate = q[i * n + k];
                for j in k + 1..n {
                    q[i * n + j] = q[i * n + j] + rate * out[k * (n + 1) + j];
                }
                root[i] = root[i] + rate * out[k * (n + 1) + n];
            }
            pivots.push(p);
        }
        Some(Self { n, rates, into: q, out, from, pivots })
    }

    /// Draws a forest: the parent of every vertex, a root its own.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized), parents: &mut [usize]) {
        let n = self.n;
        // How the edge from each vertex to its parent came about: directly, or via a vertex yet to come back.
        let mut origin = vec![DIRECT; n];
        // Whose subtree a vertex is in: of somebody in C, or not, or not yet known.
        let mut below = vec![None; n + 1];
        for k in (0..n).rev() {
            below[k + 1..].fill(None);
            below[n] = Some(false);
            let mut some_below = false;
            for i in k + 1..n {
                if origin[i] == k {
                    below[i] = Some(true);
                    some_below = true;
                }
            }
            if some_below {
                (k + 1..n).for_each(|i| self.settle(i, parents, &mut below));
            }
            let allowed = |j: usize| !some_below || below[j] == Some(false);
            let steps = &self.out[k * (n + 1)..(k + 1) * (n + 1)];
            let j = pick(rng, (k + 1..=n).filter(|&j| allowed(j)).map(|j| (j, steps[j])));
            parents[k] = j;
            origin[k] = self.origin(rng, k, j, k, self.pivots[k] * steps[j]);
            for i in k + 1..n {
                if origin[i] == k {
                    parents[i] = k;
                    origin[i] = self.origin(rng, i, k, k, self.into[i * n + k]);
                }
            }
        }
        for (v, parent) in parents.iter_mut().enumerate() {
            if *parent == n {
                *parent = v;
            }
        }
    }

    /// Finds out for `i`, and all on its way upwards, whether it is below somebody in C.
    fn settle(&self, i: usize, parents: &[usize], below: &mut [Option<bool>]) {
        let mut top = i;
        while below[top].is_none() {
            top = parents[top];
        }
        let answer = below[top];
        let mut v = i;
        while below[v].is_none() {
            below[v] = answer;
            v = parents[v];
        }
    }

    /// Which share of the rate `total` of the edge from `a` to `b`, among vertices from `k` on, is it: the original
    /// rate, or that via one of the vertices before `k`?
    fn origin(&self, rng: &mut (impl Rng + ?Sized), a: usize, b: usize, k: usize, total: S) -> usize {
        let n = self.n;
        let original = self.rates[a * n + if b == n { a } else { b }];
        let into = &self.into[a * n..a * n + k];
        let from = &self.from[b * n..b * n + k];
        let via = (0..k).map(|via| (via, into[via] * from[via]));
        pick_of(rng, std::iter::once((DIRECT, original)).chain(via), total)
    }
}

/// One of the choices, in proportion to its weight; at least one weight is positive.
fn pick<S: Scalar>(rng: &mut (impl Rng + ?Sized), choices: impl Iterator<Item = (usize, S)> + Clone) -> usize {
    let total = choices.clone().fold(S::new(0.0), |sum, (_, weight)| sum + weight);
    pick_of(rng, choices, total)
}

/// The same when the sum of the weights is known, up to rounding.
fn pick_of<S: Scalar>(
    rng: &mut (impl Rng + ?Sized),
    choices: impl Iterator<Item = (usize, S)>,
    total: S,
) -> usize {
    let mut left = total * S::new(rng.random::<f64>());
    let mut last = DIRECT;
    for (choice, weight) in choices {
        if !weight.is_zero() {
            last = choice;
            left = left - weight;
            if left.is_negative() {
                break;
            }
        }
    }
    last
}
