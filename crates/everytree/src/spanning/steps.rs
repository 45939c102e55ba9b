//! Where a random walk goes next: one of many ways to step, in proportion to its rate.
//!
//! Walks that are taken again and again have alias tables: dear to make, then one look a step. For a few walks only, sums
//! over blocks of rates are enough: they cost one pass over the rates, and a step looks at a few dozen numbers.

use rand::{Rng, RngExt};

/// The ways from every vertex: to the others, and (in the place of the vertex itself) to the root.
#[derive(Debug)]
pub(crate) enum Steps {
    /// Alias tables of all vertices.
    Alias(Vec<Column>),
    /// Sums over [`BLOCK`] rates each; the last number of a vertex is the sum of all.
    Sums(Vec<f64>),
}

/// One column of an alias table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Stay with this column below, go to the alias from here on, as a fraction of 2⁶⁴.
    threshold: u64,
    alias: u32,
}

const BLOCK: usize = 16;

/// Numbers that [`Steps::Sums`] keeps for a vertex.
fn sums_of(m: usize) -> usize {
    m.div_ceil(BLOCK) + 1
}

impl Steps {
    /// For many walks over `m × m` rates, root rates on the diagonal. Also gives the sum of each vertex's rates.
    pub fn alias(m: usize, rates: &[f64]) -> (Self, Vec<f64>) {
        let mut columns = Vec::with_capacity(m * m);
        let mut work = AliasWork::default();
        let sums = rates.chunks_exact(m.max(1)).map(|row| work.alias_table(row, &mut columns)).collect();
        (Self::Alias(columns), sums)
    }

    /// For a few walks. Also gives the sum of each vertex's rates.
    pub fn sums(m: usize, rates: &[f64]) -> (Self, Vec<f64>) {
        // Sums of such numbers keep their digits.
        const FINE: std::ops::Range<f64> = 1e-280..1e280;
        let mut sums = Vec::with_capacity(m * sums_of(m));
        let mut totals = Vec::with_capacity(m);
        for row in rates.chunks_exact(m.max(1)) {
            let begin = sums.len();
            sums.extend(row.chunks(BLOCK).map(sum));
            let total = sums[begin..].iter().sum();
            if !FINE.contains(&total) {
                return Self::alias(m, rates);
            }
            sums.push(total);
            totals.push(total);
        }
        (Self::Sums(sums), totals)
    }

    /// From v to another vertex, or to v itself for the root.
    #[inline]
    pub fn step(&self, rates: &[f64], m: usize, v: usize, rng: &mut (impl Rng + ?Sized)) -> usize {
        match self {
            Self::Alias(columns) => {
                // One random number: its high part picks a column, its low part decides on the alias.
                let product = u128::from(rng.next_u64()) * m as u128;
                let place = (product >> 64) as usize;
                let column = columns[v * m + place];
                if (product as u64) < column.threshold { place } else { column.alias as usize }
            }
            Self::Sums(sums) => {
                let sums = &sums[v * sums_of(m)..(v + 1) * sums_of(m)];
                let (blocks, total) = (&sums[..sums.len() - 1], sums[sums.len() - 1]);
                let mut left = rng.random::<f64>() * total;
                let mut block = 0;
                while block + 1 < blocks.len() && left >= blocks[block] {
                    left -= blocks[block];
                    block += 1;
                }
                // Rounding may lead past the last rate of a block, or into one that has none.
                loop {
                    let begin = block * BLOCK;
                    let row = &rates[v * m + begin..v * m + m.min(begin + BLOCK)];
                    let mut last = None;
                    for (u, &rate) in row.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
                        last = Some(begin + u);
                        left -= rate;
                        if left < 0.0 {
                            break;
                        }
                    }
                    match last {
                        Some(u) => return u,
                        None if block == 0 => return self.last(rates, m, v),
                        None => (block, left) = (block - 1, f64::INFINITY),
                    }
                }
            }
        }
    }

    /// The last way that there is, where rounding found none.
    #[cold]
    fn last(&self, rates: &[f64], m: usize, v: usize) -> usize {
        let row = &rates[v * m..(v + 1) * m];
        row.iter().rposition(|&rate| rate > 0.0).unwrap_or_else(|| unreachable!("every vertex has a way"))
    }
}

/// A sum in lanes, which a compiler can make of this.
fn sum(block: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (whole, rest) = block.as_chunks::<8>();
    whole.iter().for_each(|part| lanes.iter_mut().zip(part).for_each(|(lane, x)| *lane += x));
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// Work space to build alias tables, one after the other.
#[derive(Default)]
struct AliasWork {
    height: Vec<f64>,
    small: Vec<usize>,
    large: Vec<usize>,
}

impl AliasWork {
    /// Appends an alias table of `weights` (Vose's method); gives their sum.
    fn alias_table(&mut self, weights: &[f64], table: &mut Vec<Column>) -> f64 {
        let Self { height, small, large } = self;
        let base = table.len();
        // Over the largest, so that no sum overflows or vanishes; then in units in which the mean is 1.
        let largest = weights.iter().fold(0.0f64, |most, &weight| most.max(weight));
        height.clear();
        height.extend(weights.iter().map(|weight| weight / largest));
        let scale = weights.len() as f64 / height.iter().sum::<f64>();
        height.iter_mut().for_each(|height| *height *= scale);
        small.clear();
        large.clear();
        for (column, &height) in height.iter().enumerate() {
            table.push(Column { threshold: u64::MAX, alias: column as u32 });
            if height < 1.0 { small.push(column) } else { large.push(column) }
        }
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            // 2⁶⁴ as a float; the cast saturates.
            let threshold = (height[low] * 1.8446744073709552e19) as u64;
            table[base + low] = Column { threshold, alias: high as u32 };
            height[high] -= 1.0 - height[low];
            if height[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        // What is left has height 1 up to rounding.
        weights.iter().sum()
    }
}
