//! Random trees of matrices that change from draw to draw.
//!
//! [`SpanningTrees`] prepares for many draws from one matrix; a chain that draws one tree from each of many matrices would
//! spend most of its time preparing. Here a walk begins after one pass over the rates, which adds them up in blocks; a step then
//! looks at a few dozen numbers.

use super::rates::{Kind, RateError};
use super::tree::RootedForest;
use super::wilson::SpanningTrees;
use rand::{Rng, RngExt};

/// Draws one tree from each matrix that it is shown. The trees have the same distribution as those of [`SpanningTrees`].
#[derive(Clone, Debug)]
pub struct FreshTrees {
    kind: Kind,
    n: usize,
    /// Sums over [`BLOCK`] rates each, vertex by vertex.
    blocks: Vec<f64>,
    totals: Vec<f64>,
    built: Vec<bool>,
    long: usize,
}

const BLOCK: usize = 16;
/// Sums of such numbers keep their digits.
const FINE: std::ops::Range<f64> = 1e-280..1e280;

impl FreshTrees {
    /// For `n × n` matrices.
    pub fn new(kind: Kind, n: usize) -> Self {
        let blocks = vec![0.0; n * n.div_ceil(BLOCK)];
        Self { kind, n, blocks, totals: vec![0.0; n], built: vec![false; n], long: 0 }
    }

    /// Draws one tree. The layout is that of [`Kind`], but of the undirected kind both halves are read, and the diagonal must be
    /// zero.
    ///
    /// Fails as [`SpanningTrees::new`] does.
    pub fn draw(&mut self, rates: &[f64], rng: &mut (impl Rng + ?Sized)) -> Result<RootedForest, RateError> {
        let mut parents = vec![0; self.n];
        if rates.len() == self.n * self.n
            && self.n > 0
            && self.add_up(rates)
            && self.walk(rates, rng, &mut parents)
        {
            return Ok(RootedForest::from_parents(parents)
                .unwrap_or_else(|error| unreachable!("drew no forest: {error}")));
        }
        // Rates that are bad, beyond the range of sums, or that a walk is lost in: what was erased of that walk tells nothing of
        // the tree, so it may be drawn in the way that is never long.
        self.long += 1;
        Ok(SpanningTrees::new(self.kind, self.n, rates)?.walking(None).draw(rng))
    }

    /// How many trees so far took an elimination, `O(n³)`, because a walk would have been too long.
    pub fn long(&self) -> usize {
        self.long
    }

    /// False where sums are not fine.
    fn add_up(&mut self, rates: &[f64]) -> bool {
        let per_vertex = self.n.div_ceil(BLOCK);
        let lines = rates.chunks_exact(self.n).zip(self.blocks.chunks_exact_mut(per_vertex));
        for ((line, blocks), total) in lines.zip(&mut self.totals) {
            let mut least = 0.0f64;
            for (block, rates) in blocks.iter_mut().zip(line.chunks(BLOCK)) {
                let (sum, low) = sum_and_least(rates);
                *block = sum;
                least = least.min(low);
            }
            *total = blocks.iter().sum();
            // A negative rate, a NaN (in the total), or nowhere to go.
            if least < 0.0 || !(FINE.contains(total) || self.n == 1) {
                return false;
            }
        }
        true
    }

    /// Wilson's algorithm. False when too many steps were erased.
    fn walk(&mut self, rates: &[f64], rng: &mut (impl Rng + ?Sized), next: &mut [usize]) -> bool {
        let n = self.n;
        let mut most = n * n / 4 + 64 + n;
        self.built.fill(false);
        match self.kind {
            Kind::Undirected => {
                // The vertex that walks find soonest.
                let heaviest = |best, v| if self.totals[v] > self.totals[best] { v } else { best };
                let root = (0..n).fold(0, heaviest);
                self.built[root] = true;
                next[root] = root;
            }
            Kind::Directed => {
                // Root rates so small that no walk would end in time: do not even begin.
                let to_root: f64 = (0..n).map(|v| rates[v * (n + 1)]).sum();
                if to_root * (most as f64) < self.totals.iter().sum() {
                    return false;
                }
            }
        }
        for v in 0..n {
            let mut u = v;
            while !self.built[u] {
                let to = self.step(rates, u, rng);
                next[u] = to;
                most -= 1;
                if most == 0 {
                    return false;
                }
                // To oneself: that is to the root, where every walk ends.
                if to == u {
                    break;
                }
                u = to;
            }
            u = v;
            while !self.built[u] {
                self.built[u] = true;
                u = next[u];
            }
        }
        true
    }

    /// From v to another vertex, or to v itself for the root.
    #[inline]
    fn step(&self, rates: &[f64], v: usize, rng: &mut (impl Rng + ?Sized)) -> usize {
        let per_vertex = self.n.div_ceil(BLOCK);
        let blocks = &self.blocks[v * per_vertex..(v + 1) * per_vertex];
        let line = &rates[v * self.n..(v + 1) * self.n];
        let mut left = rng.random::<f64>() * self.totals[v];
        let mut block = 0;
        while block + 1 < blocks.len() && left >= blocks[block] {
            left -= blocks[block];
            block += 1;
        }
        let mut last = None;
        for (u, &rate) in line.iter().enumerate().skip(block * BLOCK).take(BLOCK) {
            if rate > 0.0 {
                last = Some(u);
                left -= rate;
                if left < 0.0 {
                    break;
                }
            }
        }
        // Rounding may lead past the last rate, or into a block that has none.
        let any = || line.iter().rposition(|&rate| rate > 0.0);
        last.or_else(any).unwrap_or_else(|| unreachable!("every vertex has a way"))
    }
}

/// In lanes, which a compiler can make of this.
fn sum_and_least(block: &[f64]) -> (f64, f64) {
    let (mut sums, mut least) = ([0.0; 8], [0.0f64; 8]);
    let (whole, rest) = block.as_chunks::<8>();
    for part in whole {
        for lane in 0..8 {
            sums[lane] += part[lane];
            least[lane] = least[lane].min(part[lane]);
        }
    }
    let sum = sums.iter().sum::<f64>() + rest.iter().sum::<f64>();
    (sum, least.into_iter().chain(rest.iter().copied()).fold(0.0, f64::min))
}
