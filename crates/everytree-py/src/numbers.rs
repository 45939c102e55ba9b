//! Numbers as bytes that numpy wraps.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

fn bytes<'py, const N: usize, T: Copy>(
    py: Python<'py>,
    numbers: &[T],
    of: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * N, |out| {
        out.chunks_exact_mut(N).zip(numbers).for_each(|(out, &number)| out.copy_from_slice(&of(number)));
        Ok(())
    })
}

/// As `float64`.
pub fn reals<'py>(py: Python<'py>, numbers: &[f64]) -> PyResult<Bound<'py, PyByteArray>> {
    bytes(py, numbers, f64::to_ne_bytes)
}

/// As `int64`.
pub fn wholes<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, PyByteArray>> {
    bytes(py, numbers, i64::to_ne_bytes)
}

/// As `uint16`.
pub fn shorts<'py>(py: Python<'py>, numbers: &[u16]) -> PyResult<Bound<'py, PyByteArray>> {
    bytes(py, numbers, u16::to_ne_bytes)
}
