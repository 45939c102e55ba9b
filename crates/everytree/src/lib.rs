//! Mixtures of all trees.
#![warn(rust_2018_idioms)]

mod pool;
pub mod spanning;
