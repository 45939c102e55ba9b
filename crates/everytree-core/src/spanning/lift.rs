//! Random forests by undoing an elimination: exact, and never long.
//!
//! Eliminating vertex k turns every path i → k → j into an additional rate `q[i][k] · q[k][j] / p` of the edge i → j.
//! Backwards: given a random forest on the vertices that were left, each edge i → j came *via k* with the probability
//! that this share has in its rate. Let C be the vertices whose edge came via k. In the forest with k they hang under
//! k, and k hangs under some vertex outside their subtrees, or under the root, in proportion to its rates. (Over all
//! ways in which the vertices of C could hang via k, the weights add up to the same; that is Cayley's formula for
//! forests again.)
//!
//! One elimination costs `O(n³)`; then a draw takes a few n² steps, at worst `O(n³)` (chains of edges that came via one
//! vertex after the other), with relative accuracy in every one of them: only sums, products and quotients of
//! non-negative numbers decide.

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
    /// Sums of `out` up to and with j.
    sums: Vec<f64>,
    pivots: Vec<S>,
}

/// The end of a list.
const NOBODY: usize = usize::MAX;
/// Marks an edge that was there from the beginning.
const DIRECT: usize = usize::MAX;

/// How the edge from each vertex to its parent came about: directly, or via a vertex yet to come back.
struct Origins {
    of: Vec<usize>,
    /// Those that came via k are in a list that begins here…
    first: Vec<usize>,
    /// …and goes on here.
    next: Vec<usize>,
}

impl Origins {
    fn new(n: usize) -> Self {
        Self { of: vec![DIRECT; n], first: vec![NOBODY; n], next: vec![NOBODY; n] }
    }

    fn remember(&mut self, i: usize, via: usize) {
        self.of[i] = via;
        if via != DIRECT {
            self.next[i] = std::mem::replace(&mut self.first[via], i);
        }
    }
}

impl<S: Scalar> Lift<S> {
    /// Eliminates the rates `q[v·n + u]` with root rates on the diagonal, of which some forest is known to have a
    /// positive weight. `None` when this precision cannot vouch for a pivot.
    pub fn new(n: usize, rates: &[f64]) -> Option<Self> {
        let rates: Vec<S> = rates.iter().map(|&rate| S::new(rate)).collect();
        let mut q = rates.clone();
        let mut root: Vec<S> = (0..n).map(|v| q[v * n + v]).collect();
        let zero = S::new(0.0);
        let (mut out, mut from) = (vec![zero; n * (n + 1)], vec![zero; n * (n + 1)]);
        let mut sums = vec![0.0; n * (n + 1)];
        let mut pivots = Vec::with_capacity(n);
        for k in 0..n {
            let mut p = root[k];
            for j in k + 1..n {
                p = p + q[k * n + j];
            }
            if !p.is_safe_pivot() || p.is_zero() {
                return None;
            }
            let mut sum = 0.0;
            for j in k + 1..=n {
                let step = if j == n { root[k] } else { q[k * n + j] } / p;
                out[k * (n + 1) + j] = step;
                from[j * n + k] = step;
                sum += step.value();
                sums[k * (n + 1) + j] = sum;
            }
            for i in k + 1..n {
                let rate = q[i * n + k];
                let steps = &out[k * (n + 1) + k + 1..k * (n + 1) + n];
                for (entry, &step) in q[i * n + k + 1..(i + 1) * n].iter_mut().zip(steps) {
                    *entry = *entry + rate * step;
                }
                root[i] = root[i] + rate * out[k * (n + 1) + n];
            }
            pivots.push(p);
        }
        Some(Self { n, rates, into: q, out, from, sums, pivots })
    }

    /// Draws a forest: the parent of every vertex, a root its own. Gives the number of rates and parents looked at.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized), parents: &mut [usize]) -> usize {
        let n = self.n;
        let mut looks = 0;
        let mut origins = Origins::new(n);
        for k in (0..n).rev() {
            let parent = self.parent(rng, k, parents, &origins, &mut looks);
            parents[k] = parent;
            let step = self.out[k * (n + 1) + parent];
            origins.remember(k, self.origin(rng, [k, parent, k], self.pivots[k] * step, &mut looks));
            let mut i = origins.first[k];
            while i != NOBODY {
                parents[i] = k;
                let following = origins.next[i];
                origins.remember(i, self.origin(rng, [i, k, k], self.into[i * n + k], &mut looks));
                i = following;
            }
        }
        for (v, parent) in parents.iter_mut().enumerate() {
            if *parent == n {
                *parent = v;
            }
        }
        looks
    }

    /// Under whom k comes back: anybody outside the subtrees of those that came via k, in proportion to k's rates.
    ///
    /// Mostly one of the first few draws without regard to the subtrees is allowed; taking the first such is the same
    /// distribution. When none is, all are weighed.
    fn parent(
        &self,
        rng: &mut (impl Rng + ?Sized),
        k: usize,
        parents: &[usize],
        origins: &Origins,
        looks: &mut usize,
    ) -> usize {
        let n = self.n;
        let mut allowed = |j: usize| {
            let mut v = j;
            while v != n && origins.of[v] != k {
                v = parents[v];
                *looks += 1;
            }
            v == n
        };
        let restricted = origins.first[k] != NOBODY;
        let sums = &self.sums[k * (n + 1)..(k + 1) * (n + 1)];
        for _ in 0..8 {
            let target = rng.random::<f64>() * sums[n];
            let j = k + 1 + sums[k + 1..n].partition_point(|&sum| sum <= target);
            if !restricted || allowed(j) {
                return j;
            }
        }
        // Whether each vertex is outside the subtrees, every one of them looked at once or twice.
        let mut outside = vec![None; n + 1];
        outside[n] = Some(true);
        for i in k + 1..n {
            if origins.of[i] == k {
                outside[i] = Some(false);
            }
        }
        for i in k + 1..n {
            let mut top = i;
            while outside[top].is_none() {
                top = parents[top];
            }
            let (answer, mut v) = (outside[top], i);
            while outside[v].is_none() {
                outside[v] = answer;
                v = parents[v];
            }
        }
        *looks += 4 * (n - k);
        let steps = &self.out[k * (n + 1)..(k + 1) * (n + 1)];
        pick(rng, (k + 1..=n).filter(|&j| outside[j] == Some(true)).map(|j| (j, steps[j])))
    }

    /// Which share of the rate `total` of the edge from `a` to `b`, among vertices from `k` on, is it: the original
    /// rate, or that via one of the vertices before `k`?
    fn origin(
        &self,
        rng: &mut (impl Rng + ?Sized),
        [a, b, k]: [usize; 3],
        total: S,
        looks: &mut usize,
    ) -> usize {
        let n = self.n;
        let original = self.rates[a * n + if b == n { a } else { b }];
        let into = &self.into[a * n..a * n + k];
        let from = &self.from[b * n..b * n + k];
        let via = (0..k).map(|via| (via, into[via] * from[via]));
        let via = via.inspect(|_| *looks += 1);
        pick_of(rng, std::iter::once((DIRECT, original)).chain(via), total)
    }
}

/// One of the choices, in proportion to its weight; at least one weight is positive.
fn pick<S: Scalar>(
    rng: &mut (impl Rng + ?Sized),
    choices: impl Iterator<Item = (usize, S)> + Clone,
) -> usize {
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
