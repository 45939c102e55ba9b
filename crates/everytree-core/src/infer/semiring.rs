//! Semiring queries (section 4.1 of the paper): sums over rows of a model whose parameters are any numbers at all.
//!
//! The numbers may be of any field: rational numbers give exact answers. They may be negative or zero, and need not be
//! distributions; what comes out is then no probability either, but it can count spanning trees. The answer takes a
//! determinant per completion of the evidence: this is for small models and for theorems, not for data.

use crate::util::triangle::{self, pair as edge};
use num_traits::Num;

/// A model over a field: weights of edges, and tables of variables and of pairs.
///
/// ```
/// use everytree_core::infer::FieldModel;
/// use num_rational::Ratio;
///
/// // Figure 1 of the paper, exactly.
/// let r = |over: i64| Ratio::new(over, 10);
/// let single = |p: i64| vec![r(10 - p), r(p)];
/// let pair = |u: i64, v: i64, both: i64| vec![r(10 - u - v + both), r(v - both), r(u - both), r(both)];
/// let model = FieldModel::new(
///     vec![r(20), r(60), r(30)],
///     vec![single(6), single(3), single(5)],
///     vec![pair(6, 3, 1), pair(6, 5, 2), pair(3, 5, 2)],
/// );
/// // Z p(1, 0, 1), and Z.
/// let (weighted, z) = (model.query(&[Some(1), Some(0), Some(1)]).unwrap(), model.total());
/// assert_eq!(weighted / z, Ratio::new(953, 6300));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FieldModel<F> {
    weights: Vec<F>,
    singles: Vec<Vec<F>>,
    pairs: Vec<Vec<F>>,
}

impl<F: Num + Clone> FieldModel<F> {
    /// From weights, tables of single variables, and tables of pairs (row by row, the lower variable first). Edges are in
    /// the order (0, 1), (0, 2), (1, 2), (0, 3), …
    ///
    /// # Panics
    /// When there are not as many weights and pairs as there are edges, or a table has not one entry per pair of states.
    pub fn new(weights: Vec<F>, singles: Vec<Vec<F>>, pairs: Vec<Vec<F>>) -> Self {
        let n = singles.len();
        let edges = triangle::pairs(n);
        assert!(
            weights.len() == edges && pairs.len() == edges,
            "one weight and one table for each of {edges} edges"
        );
        for v in 0..n {
            for u in 0..v {
                let entries = singles[u].len() * singles[v].len();
                assert_eq!(pairs[edge(u, v)].len(), entries, "one entry per pair of states of {u} and {v}");
            }
        }
        Self { weights, singles, pairs }
    }

    /// `Z`, the sum of the weights of all spanning trees.
    pub fn total(&self) -> F {
        self.trees(|u, v| Some(self.weights[edge(u, v)].clone())).unwrap_or_else(F::zero)
    }

    /// `Z f(e)`, the sum of `Z p(x)` over all rows x that agree with the evidence. Nothing when a single entry is zero that a
    /// tree would have to divide by.
    ///
    /// # Panics
    /// When the evidence is about other variables.
    pub fn query(&self, evidence: &[Option<usize>]) -> Option<F> {
        assert_eq!(evidence.len(), self.singles.len(), "one entry per variable");
        let mut row = vec![0; evidence.len()];
        self.add_up(evidence, &mut row, 0)
    }

    fn add_up(&self, evidence: &[Option<usize>], row: &mut Vec<usize>, v: usize) -> Option<F> {
        if v == row.len() {
            return self.weighted(row);
        }
        let states = match evidence[v] {
            Some(state) => state..state + 1,
            None => 0..self.singles[v].len(),
        };
        let mut sum = F::zero();
        for state in states {
            row[v] = state;
            sum = sum + self.add_up(evidence, row, v + 1)?;
        }
        Some(sum)
    }

    /// `Z p(x)` of one row: `Π P_v(x_v)` times the sum over trees of `Π w_uv P_uv(x_u, x_v) / (P_u(x_u) P_v(x_v))`.
    fn weighted(&self, row: &[usize]) -> Option<F> {
        let single = |v: usize| self.singles[v][row[v]].clone();
        let trees = self.trees(|u, v| {
            let below = single(u) * single(v);
            let pair = self.pairs[edge(u, v)][row[u] * self.singles[v].len() + row[v]].clone();
            let weight = self.weights[edge(u, v)].clone();
            let above = weight * pair;
            match (above.is_zero(), below.is_zero()) {
                (true, _) => Some(F::zero()),
                (false, true) => None,
                (false, false) => Some(above / below),
            }
        })?;
        Some((0..row.len()).fold(trees, |product, v| product * single(v)))
    }

    /// The sum over all spanning trees of the product of these rates (u < v): the matrix–tree theorem.
    fn trees(&self, rate: impl Fn(usize, usize) -> Option<F>) -> Option<F> {
        let n = self.singles.len();
        let mut matrix = vec![vec![F::zero(); n]; n];
        for v in 0..n {
            for u in 0..v {
                let rate = rate(u, v)?;
                matrix[u][v] = F::zero() - rate.clone();
                matrix[v][u] = F::zero() - rate.clone();
                matrix[u][u] = matrix[u][u].clone() + rate.clone();
                matrix[v][v] = matrix[v][v].clone() + rate;
            }
        }
        matrix.remove(0);
        matrix.iter_mut().for_each(|line| drop(line.remove(0)));
        Some(determinant(matrix))
    }
}

/// By elimination, with another line where a pivot is zero.
fn determinant<F: Num + Clone>(mut matrix: Vec<Vec<F>>) -> F {
    let n = matrix.len();
    let mut product = F::one();
    for k in 0..n {
        let Some(pivot) = (k..n).find(|&i| !matrix[i][k].is_zero()) else { return F::zero() };
        if pivot != k {
            matrix.swap(k, pivot);
            product = F::zero() - product;
        }
        let line = matrix[k].clone();
        product = product * line[k].clone();
        for other in &mut matrix[k + 1..] {
            let factor = other[k].clone() / line[k].clone();
            for j in k..n {
                other[j] = other[j].clone() - factor.clone() * line[j].clone();
            }
        }
    }
    product
}
