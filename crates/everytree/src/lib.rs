//! Mixtures of all trees.
#![warn(rust_2018_idioms)]

pub mod forest;
mod pool;
pub mod spanning;
