//! What inference needs of a mixture of all trees, and nothing else.

use super::{ModelError, TreeTables};
use crate::data::Codes;
use crate::spanning::Kind;

/// A distribution over rows that is a mixture of tree models.
///
/// Inference draws trees with rates of its choice, puts the family's tables on them, and corrects by weights; so all it asks
/// for are rates, tables, and the likelihood of complete rows.
pub trait Density: Sync {
    /// The number of states of every variable.
    fn states(&self) -> &[usize];

    /// The tables of trees.
    fn tables(&self) -> &TreeTables;

    /// Which trees are mixed: spanning trees, or rooted forests.
    fn kind(&self) -> Kind;

    /// The rates of the prior over trees, in the layout of [`Kind`].
    fn rates(&self) -> &[f64];

    /// By what the row multiplies the rate of the edge between v and u (directed: of u as the parent of v; `u = v`: of v
    /// as a root) when v is in state a and u in state b.
    fn factor(&self, v: usize, a: usize, u: usize, b: usize) -> f64;

    /// The rates of trees given a complete row, in the layout of [`Kind`]; of the undirected kind both halves are written, and
    /// a diagonal of zeros.
    fn rates_at(&self, row: &[u16], rates: &mut [f64]) {
        let n = row.len();
        rates.copy_from_slice(self.rates());
        for v in 0..n {
            for u in 0..n {
                let rate = &mut rates[v * n + u];
                *rate *= match (u == v, self.kind()) {
                    (true, Kind::Undirected) => 0.0,
                    _ => self.factor(v, usize::from(row[v]), u, usize::from(row[u])),
                };
            }
        }
    }

    /// The natural logarithm of the probability of complete rows; `-inf` where it is impossible.
    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError>;
}

/// Rows whose probability can be computed.
pub(crate) trait Likelihood: Sync {
    fn states(&self) -> &[usize];
    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError>;

    /// About how many operations a row takes.
    fn operations(&self) -> f64;

    /// Of every component of a mixture for a row.
    fn responsibilities(&self, _: &[u16]) -> Result<Vec<f64>, ModelError> {
        Ok(vec![1.0])
    }
}

impl<D: Density + ?Sized> Likelihood for D {
    fn operations(&self) -> f64 {
        (Density::states(self).len() as f64).powi(3) + 100.0
    }

    fn states(&self) -> &[usize] {
        Density::states(self)
    }

    fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        Density::log_p(self, codes, out)
    }
}
