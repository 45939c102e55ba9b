//! Files into everytree.
//!
//! So far: square matrices of weights ([`read_weights`]).

mod weights;

pub use weights::{ReadError, Weights, read_weights};
