//! Random spanning trees and rooted forests, each with probability in proportion to its weight.
//!
//! Wilson's algorithm: from every vertex in turn, walk at random (v steps to u in proportion to `q[v][u]`) until the
//! walk meets the root or what has been built before; erase its loops; keep the rest. It is exact, and mostly takes a
//! few steps a vertex. But two vertices bound to each other by a large factor walk to and fro that often, and a
//! forest whose root rates are small is only left after as many steps as they are small.
//!
//! So the walk is bounded. Which loops were erased is independent of the tree that comes out; so whether *more than a
//! given number of steps were erased* is independent of it too, and a tree may be drawn anew by another method exactly
//! when that has happened, without any bias. The other method ([`super::lift`]) undoes an elimination: a few n² steps,
//! and never more than `O(n³)`, whatever the rates are.

use super::lift::Lift;
use super::rates::{Kind, RateError, check_vertices, exponent_of, find_bad, scales};
use super::steps::Steps;
use super::sweep::unreached;
use super::tree::RootedForest;
use super::wide::Wide;
use rand::Rng;
use std::sync::OnceLock;

/// Draws random spanning trees, or rooted forests, of one rate matrix (see [`Kind`]).
///
/// Preparing takes `O(n²)`, plus `O(n³)` once at the first tree that takes too long to walk. A draw takes at most
/// [`SpanningTrees::most_steps`] steps, whatever the rates are. For one tree from each of many matrices there is
/// [`FreshTrees`](super::FreshTrees). Memory: `24 n²` bytes, and `40 n²` more once the other
/// method is prepared (`72 n²` where rates spread beyond the range of f64).
///
/// An undirected tree hangs at the vertex with the largest sum of weights; which one it is does not change the
/// probability of its edges.
#[derive(Debug)]
pub struct SpanningTrees {
    n: usize,
    /// The vertex that an undirected tree is hung up at.
    root: Option<usize>,
    /// Rates with root rates on the diagonal; vertices without the root.
    rates: Vec<f64>,
    /// From vertex to vertex; a step to oneself is one to the root.
    steps: Steps,
    /// Walk at all?
    walk: bool,
    most_erased: usize,
    lift: OnceLock<Undo>,
}

/// An elimination to undo, in the precision that its rates need.
#[derive(Debug)]
enum Undo {
    Narrow(Lift<f64>),
    Wide(Lift<Wide>),
    /// No vertices besides the root.
    Nothing,
}

impl SpanningTrees {
    /// Prepares to draw from `n × n` rates in the layout of [`Kind`].
    ///
    /// Fails on rates that are NaN, infinite or negative, and when no forest has a positive weight.
    pub fn new(kind: Kind, n: usize, rates: &[f64]) -> Result<Self, RateError> {
        check_vertices(n)?;
        if rates.len() != n * n {
            return Err(RateError::Length { what: "rates", found: rates.len(), expected: n * n });
        }
        find_bad(kind, n, rates, 0)?;
        let (root, rates) = match kind {
            Kind::Directed => (None, rates.to_vec()),
            Kind::Undirected => {
                let root = heaviest(n, rates);
                (Some(root), hang_up(n, rates, root))
            }
        };
        let m = rates.len().isqrt();
        if let Some(vertex) = unreached(m, &rates) {
            let vertex = vertex + root.map_or(0, |root| usize::from(vertex >= root));
            return Err(RateError::NoForest { vertex });
        }
        let (steps, all) = Steps::new(m, &rates);
        let to_root: f64 = (0..m).map(|v| rates[v * (m + 1)]).sum();
        // About as much work as undoing an elimination would be.
        let most_erased = m * m / 4 + 64;
        // Root rates so small that no walk would end in time: do not even begin.
        let walk = to_root * most_erased as f64 >= all;
        Ok(Self { n, root, rates, steps, walk, most_erased, lift: OnceLock::new() })
    }

    /// Bounds the walk at another number of erased steps than the default, or (`None`) does not walk at all and undoes
    /// an elimination for every tree. The distribution is the same; to compare.
    pub fn walking(mut self, most_erased: Option<usize>) -> Self {
        self.walk = most_erased.is_some();
        self.most_erased = most_erased.unwrap_or(0);
        self
    }

    /// Draws one. The same state of `rng` gives the same tree.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> RootedForest {
        let mut parents = vec![0; self.n];
        self.draw_into(rng, &mut parents);
        RootedForest::from_parents(parents).unwrap_or_else(|error| unreachable!("drew no forest: {error}"))
    }

    /// Draws one into the parents of all `n` vertices, a root its own parent, and gives the number of steps it took.
    /// Faster than [`SpanningTrees::draw`], which also sorts children.
    ///
    /// # Panics
    /// When `parents` has another length than n.
    pub fn draw_into(&self, rng: &mut (impl Rng + ?Sized), parents: &mut [usize]) -> usize {
        assert_eq!(parents.len(), self.n, "one parent a vertex");
        let m = self.n - usize::from(self.root.is_some());
        let mut taken = 0;
        let walked = self.walk && self.walk(rng, &mut parents[..m], &mut taken);
        if !walked {
            taken += match self.lift.get_or_init(|| Undo::new(m, &self.rates)) {
                Undo::Narrow(lift) => lift.draw(rng, &mut parents[..m]),
                Undo::Wide(lift) => lift.draw(rng, &mut parents[..m]),
                Undo::Nothing => 0,
            };
        }
        if let Some(root) = self.root {
            // Vertices from the root on have been counted one lower.
            let up = |v: usize| v + usize::from(v >= root);
            for v in (0..self.n).rev().filter(|&v| v != root) {
                let low = v - usize::from(v > root);
                parents[v] = if parents[low] == low { root } else { up(parents[low]) };
            }
            parents[root] = root;
        }
        taken
    }

    /// No draw takes more steps than this: random steps of a walk, and single looks at a rate or at a parent while an
    /// elimination is undone. The bound on the latter is `O(n³)`; mostly they are a few n².
    pub fn most_steps(&self) -> usize {
        let m = self.n;
        self.most_erased.saturating_add(m + 1).saturating_add(m * m * m / 6 + 12 * m * m + 12 * m)
    }

    /// Wilson's algorithm. False when too many steps were erased.
    fn walk(&self, rng: &mut (impl Rng + ?Sized), next: &mut [usize], taken: &mut usize) -> bool {
        let m = next.len();
        let mut built = vec![false; m];
        // Of all steps exactly m are kept in the end, so this is the bound on erased ones.
        let most = self.most_erased.saturating_add(m);
        for v in 0..m {
            let mut u = v;
            while !built[u] {
                let to = self.steps.step(u, rng);
                next[u] = to;
                *taken += 1;
                if *taken > most {
                    return false;
                }
                // To oneself: that is to the root, where every walk ends.
                if to == u {
                    break;
                }
                u = to;
            }
            u = v;
            while !built[u] {
                built[u] = true;
                u = next[u];
            }
        }
        true
    }
}

impl Undo {
    fn new(n: usize, rates: &[f64]) -> Self {
        if n == 0 {
            return Self::Nothing;
        }
        // Scaled, so that sums cannot overflow; powers of two change no digit.
        let largest = rates.iter().fold(0.0f64, |most, &rate| most.max(rate));
        let (a, b) = scales(exponent_of(largest));
        let scaled: Vec<f64> = rates.iter().map(|&rate| rate * a * b).collect();
        if let Some(lift) = Lift::<f64>::new(n, &scaled) {
            return Self::Narrow(lift);
        }
        match Lift::<Wide>::new(n, rates) {
            Some(lift) => Self::Wide(lift),
            None => unreachable!("every vertex reaches a root, and exponents are unbounded"),
        }
    }
}

/// The vertex with the largest sum of rates: walks find it soonest.
fn heaviest(n: usize, rates: &[f64]) -> usize {
    let mut sums = vec![0.0; n];
    for v in 0..n {
        let below = &rates[v * n..v * n + v];
        sums[v] += below.iter().sum::<f64>();
        sums.iter_mut().zip(below).for_each(|(sum, rate)| *sum += rate);
    }
    (0..n).fold(0, |best, v| if sums[v] > sums[best] { v } else { best })
}

/// A symmetric matrix, of which the part below the diagonal is read, without the row and column of `root`, whose rates
/// go to the diagonal.
fn hang_up(n: usize, rates: &[f64], root: usize) -> Vec<f64> {
    let m = n - 1;
    let mut hung = vec![0.0; m * m];
    for v in (0..n).filter(|&v| v != root) {
        let low = v - usize::from(v > root);
        let below = &rates[v * n..v * n + v];
        hung[low * (m + 1)] = if v > root { below[root] } else { rates[root * n + v] };
        let (first, second) = if v > root { (&below[..root], &below[root + 1..]) } else { (below, &[][..]) };
        hung[low * m..low * m + first.len()].copy_from_slice(first);
        hung[low * m + first.len()..low * m + low].copy_from_slice(second);
    }
    // Square by square, so that what is written is near what was read.
    const SQUARE: usize = 16;
    for corner in (0..m).step_by(SQUARE) {
        for v in corner..m {
            for u in corner..v.min(corner + SQUARE) {
                hung[u * m + v] = hung[v * m + u];
            }
        }
    }
    hung
}
