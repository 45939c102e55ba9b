//! The kernels for rows of codes, compiled once for each precision, in this crate (see `spanning::kernel::compiled` for why).

use super::lookup::{Lookup, Tally};
use crate::spanning::Real;
use crate::spanning::kernel::{Factors, Kernel, Scratch};
use std::ops::Range;

/// A floating-point precision in which [`super::Cpu`] computes: `f32` or `f64`.
#[allow(private_interfaces)]
pub trait Precision: Real {
    #[doc(hidden)]
    fn forward_lookup(
        kernel: &Kernel<Self>,
        source: &mut Lookup<'_, Self>,
        rows: Range<usize>,
        factors: &mut Factors<Self>,
        scratch: &mut Scratch<Self>,
        log_forest: &mut [f64],
    );
    #[doc(hidden)]
    fn backward_lookup(
        kernel: &Kernel<Self>,
        sink: &mut Tally<'_, Self>,
        rows: Range<usize>,
        factors: &Factors<Self>,
        scratch: &mut Scratch<Self>,
    );
}

macro_rules! compiled {
    ($($t:ty),*) => {$(
        #[allow(private_interfaces)]
        impl Precision for $t {
            fn forward_lookup(
                kernel: &Kernel<Self>,
                source: &mut Lookup<'_, Self>,
                rows: Range<usize>,
                factors: &mut Factors<Self>,
                scratch: &mut Scratch<Self>,
                log_forest: &mut [f64],
            ) {
                kernel.forward(source, rows, factors, scratch, log_forest);
            }

            fn backward_lookup(
                kernel: &Kernel<Self>,
                sink: &mut Tally<'_, Self>,
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
