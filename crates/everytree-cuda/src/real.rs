//! Single and double precision, as CUDA names them.

use cudarc::cublas::{CudaBlas, result, sys};
use cudarc::driver::DeviceRepr;
use everytree_core::spanning::Real;

/// One matrix product for every row; matrices are stored row after row.
pub(crate) struct Products {
    /// Is the first matrix to be taken transposed? Then the second.
    pub transposed: [bool; 2],
    /// Rows and columns of the result, and what is summed over.
    pub shape: [usize; 3],
    /// Where the first matrices begin, numbers from one of their rows to the next, and from one matrix to the next.
    pub a: (u64, usize, usize),
    /// The same of the second.
    pub b: (u64, usize, usize),
    /// The same of the results.
    pub c: (u64, usize, usize),
    /// Are products added to what is there?
    pub add: bool,
    /// How many.
    pub rows: usize,
}

/// A precision that the device computes in.
pub trait CudaReal: Real + DeviceRepr + bytemuck::Pod {
    /// Its name in CUDA, and the smallest and largest pivot that is trusted.
    const NAMES: [&'static str; 3];

    /// # Safety
    /// From the three addresses on, so many matrices of these shapes and strides are reserved.
    #[doc(hidden)]
    unsafe fn products(blas: &CudaBlas, products: &ProductsArgument) -> Result<(), result::CublasError>;
}

/// Hides the inner type from the trait's surface.
#[doc(hidden)]
pub struct ProductsArgument(pub(crate) Products);

macro_rules! real {
    ($type:ty, $names:expr, $gemm:ident) => {
        impl CudaReal for $type {
            const NAMES: [&'static str; 3] = $names;

            unsafe fn products(
                blas: &CudaBlas,
                products: &ProductsArgument,
            ) -> Result<(), result::CublasError> {
                let Products { transposed, shape: [m, n, k], a, b, c, add, rows } = &products.0;
                let operation = |transposed: bool| match transposed {
                    true => sys::cublasOperation_t::CUBLAS_OP_T,
                    false => sys::cublasOperation_t::CUBLAS_OP_N,
                };
                let (one, beta): ($type, $type) = (1.0, if *add { 1.0 } else { 0.0 });
                // cuBLAS has columns where we have rows: it computes the transposed product, with the factors exchanged.
                // SAFETY: the caller's promise; the handle is alive.
                unsafe {
                    result::$gemm(
                        *blas.handle(),
                        operation(transposed[1]),
                        operation(transposed[0]),
                        *n as i32,
                        *m as i32,
                        *k as i32,
                        &one,
                        b.0 as *const $type,
                        b.1 as i32,
                        b.2 as i64,
                        a.0 as *const $type,
                        a.1 as i32,
                        a.2 as i64,
                        &beta,
                        c.0 as *mut $type,
                        c.1 as i32,
                        c.2 as i64,
                        *rows as i32,
                    )
                }
            }
        }
    };
}

real!(f32, ["float", "0x1p-80f", "0x1p100f"], sgemm_strided_batched);
real!(f64, ["double", "0x1p-600", "0x1p900"], dgemm_strided_batched);
