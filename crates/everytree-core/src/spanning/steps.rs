//! Where a random walk goes next: one of many ways to step, in proportion to its rate, by alias tables. They are dear to make;
//! then a step is one look.

use rand::Rng;

/// The ways from every vertex: to the others, and (in the place of the vertex itself) to the root.
#[derive(Debug)]
pub(crate) struct Steps {
    m: usize,
    columns: Vec<Column>,
}

/// One column of an alias table.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Stay with this column below, go to the alias from here on, as a fraction of 2⁶⁴.
    threshold: u64,
    alias: u32,
}

impl Steps {
    /// Of `m × m` rates, root rates on the diagonal. Also gives the sum of all rates.
    pub fn new(m: usize, rates: &[f64]) -> (Self, f64) {
        let mut columns = Vec::with_capacity(m * m);
        let mut work = AliasWork::default();
        let sum = rates.chunks_exact(m.max(1)).map(|row| work.alias_table(row, &mut columns)).sum();
        (Self { m, columns }, sum)
    }

    /// From v to another vertex, or to v itself for the root.
    #[inline]
    pub fn step(&self, v: usize, rng: &mut (impl Rng + ?Sized)) -> usize {
        // One random number: its high part picks a column, its low part decides on the alias.
        let product = u128::from(rng.next_u64()) * self.m as u128;
        let place = (product >> 64) as usize;
        let column = self.columns[v * self.m + place];
        if (product as u64) < column.threshold { place } else { column.alias as usize }
    }
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
