//! The kernels, compiled once for each precision, in this crate.
//!
//! Everything above is generic over the precision, and generic code is compiled wherever it is used: every program, test
//! and bench would compile all kernels for all instruction sets again. So the calls that lead into the kernels are methods
//! of the precision itself: those of matrices here, those of rows of codes in `forest::compiled`.

use super::{Factors, Kernel, Scratch};
use crate::spanning::elimination::{Matrices, Products};
use std::ops::Range;

/// Entries into the kernels; also what seals [`super::real::Real`].
#[allow(private_interfaces)]
pub trait Compiled: Sized {
    #[doc(hidden)]
    fn forward_matrices(
        kernel: &Kernel<Self>,
        source: &mut Matrices<'_, Self>,
        rows: Range<usize>,
        factors: &mut Factors<Self>,
        scratch: &mut Scratch<Self>,
        log_forest: &mut [f64],
    ) where
        Self: super::real::Real;
    #[doc(hidden)]
    fn backward_matrices(
        kernel: &Kernel<Self>,
        sink: &mut Products<'_, '_, Self>,
        rows: Range<usize>,
        factors: &Factors<Self>,
        scratch: &mut Scratch<Self>,
    ) where
        Self: super::real::Real;
}

macro_rules! compiled {
    ($($t:ty),*) => {$(
        #[allow(private_interfaces)]
        impl Compiled for $t {
            fn forward_matrices(
                kernel: &Kernel<Self>,
                source: &mut Matrices<'_, Self>,
                rows: Range<usize>,
                factors: &mut Factors<Self>,
                scratch: &mut Scratch<Self>,
                log_forest: &mut [f64],
            ) {
                kernel.forward(source, rows, factors, scratch, log_forest);
            }

            fn backward_matrices(
                kernel: &Kernel<Self>,
                sink: &mut Products<'_, '_, Self>,
                rows: Range<usize>,
                factors: &Factors<Self>,
                scratch: &mut Scratch<Self>,
            ) {
                kernel.backward(sink, rows, factors, scratch);
            }
        }
    )*};
}

compiled!(f32, f64);
