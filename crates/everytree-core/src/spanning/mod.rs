//! Weighted spanning trees and rooted forests: how many there are, which edges they use, and random ones.
//!
//! This room knows no data and no probability model. Anyone who needs the matrix–tree theorem in floating point can
//! use it alone:
//!
//! ```
//! use everytree_core::spanning::{Elimination, Kind, SpanningTrees};
//! use rand::SeedableRng;
//!
//! // A square with one diagonal, edge weights as a symmetric matrix (the diagonal is not looked at).
//! #[rustfmt::skip]
//! let w = [
//!     0.0, 1.0, 1.0, 1.0,
//!     1.0, 0.0, 1.0, 0.0,
//!     1.0, 1.0, 0.0, 1.0,
//!     1.0, 0.0, 1.0, 0.0f64,
//! ];
//!
//! // It has eight spanning trees, and the diagonal is in half of them.
//! let elimination = Elimination::<f64>::new(Kind::Undirected, 4)?;
//! let (log_trees, edges) = elimination.one(&w)?;
//! assert!((log_trees.exp() - 8.0).abs() < 1e-12);
//! assert!((edges[0 * 4 + 2] - 0.5).abs() < 1e-12);
//!
//! // Draw one of them, each with the same probability.
//! let trees = SpanningTrees::new(Kind::Undirected, 4, &w)?;
//! let tree = trees.draw(&mut rand_pcg::Pcg64::seed_from_u64(7));
//! assert_eq!(tree.roots().len(), 1);
//! # Ok::<(), everytree_core::spanning::RateError>(())
//! ```
//!
//! # Numerics
//!
//! The polynomial is summed by elimination without subtraction: every pivot is a sum of non-negative numbers, so the
//! result keeps its relative accuracy whatever the spread of the weights, where a determinant by LU or Cholesky
//! loses all of it. Rates that span more decades than the exponent of a float are finished with unbounded exponents.

pub(crate) mod elimination;
mod fresh;
pub(crate) mod kernel;
mod lift;
mod rates;
mod steps;
pub(crate) mod sweep;
mod tree;
mod wide;
mod wilson;

pub use elimination::Elimination;
pub(crate) use elimination::sum_forests;
pub use fresh::FreshTrees;
pub use kernel::Route;
pub use kernel::level::Level;
pub use kernel::real::Real;
pub use rates::{Kind, RateError};
pub(crate) use rates::{exponent_of, scales};
pub(crate) use steps::Steps;
pub use tree::{RootedForest, TreeError};
pub use wilson::SpanningTrees;
