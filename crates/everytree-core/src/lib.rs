//! Mixtures of all trees: exactly normalised density models of discrete tables.
//!
//! From a table to a model and its likelihoods:
//!
//! - [`data`]: names, states and labels; encoded rows, missing values and weights. (Files are read by the crate `everytree-read`.)
//! - [`model`]: distributions over rows. [`model::Moat`] is the family of the paper.
//! - [`infer`]: posteriors, samples and most probable rows, given evidence.
//! - [`learn`]: mini-batches, Adam, validation, checkpoints.
//! - [`mod@file`]: the model file.
//!
//! And the engine on which they stand:
//!
//! - [`spanning`]: weighted spanning trees and rooted forests. How much they weigh together, which edges they use, and
//!   random ones. Usable alone; it knows nothing of data.
//! - [`forest`]: rows of codes and tables of rates in, log F per row and expected counts out, on all cores.
//!
//! The README has the way from rows to a learned model; this is a model by hand:
//!
//! ```
//! use everytree_core::data::Codes;
//! use everytree_core::forest::{Backend, Cpu, Tables, binary_ratios};
//! use everytree_core::spanning::{Elimination, Kind};
//!
//! // A mixture of all trees on three binary variables, each 1 with probability ½ (alpha = 0), by hand: every pair has
//! // the same weight, and its two variables tend to agree (beta = 1.5).
//! let z = binary_ratios(0.0, 0.0, 1.5);
//! let tables = Tables::build(Kind::Undirected, &[2, 2, 2], |_, a, _, b| z[a][b])?;
//!
//! // log p(x) = log F(x) − log F(prior) + Σ_v log P_v(x_v), for all eight rows at once.
//! let (log_prior, _) = Elimination::<f64>::new(Kind::Undirected, 3)?.one(&[1.0; 9])?;
//! let rows: Vec<u8> = (0..8u8).flat_map(|row| [row & 1, row >> 1 & 1, row >> 2 & 1]).collect();
//! let cpu = Cpu::<f64>::new();
//! let mut log_forest = [0.0; 8];
//! cpu.forward(&cpu.prepare(&tables), Codes::new(&rows, 3)?, &mut cpu.trace(), &mut log_forest)?;
//! let p: Vec<f64> = log_forest.iter().map(|log| (log - log_prior).exp() * 0.125).collect();
//!
//! // Exactly normalised, and agreement is likely.
//! assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! assert!(p[0] > 0.25 && p[7] > 0.25);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod blocks;
pub mod data;
pub mod file;
pub mod forest;
pub mod infer;
pub mod learn;
pub mod memory;
pub mod model;
pub mod spanning;
mod util;
