//! The core of the Python package: tables in, models, and what they say. What people see is in `python/everytree`; numbers
//! travel as bytes, small answers as JSON.

mod compare;
mod errors;
mod fit;
mod frame;
mod model;
mod numbers;
mod options;
mod work;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line program with these arguments and returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    errors::guarded(|| Ok(py.detach(|| everytree_cli::main(arguments))))
}

/// The families that a fit knows: name and summary.
#[pyfunction]
fn families() -> PyResult<Vec<(&'static str, &'static str)>> {
    errors::guarded(|| Ok(everytree::families().collect()))
}

/// Bytes that may be used.
#[pyfunction]
fn memory_limit() -> PyResult<u64> {
    errors::guarded(|| Ok(everytree::memory_limit()))
}

/// Says how many bytes may be used: a number, or words such as `8GB`.
#[pyfunction]
fn set_memory_limit(size: &str) -> PyResult<()> {
    errors::guarded(|| {
        let problem =
            |problem: String| pyo3::exceptions::PyValueError::new_err(format!("{size:?}: {problem}"));
        everytree::set_memory_limit(everytree_core::memory::parse(size).map_err(problem)?);
        Ok(())
    })
}

/// A mistake, for tests: here, or on the thread that does the work.
#[cfg(feature = "toy-family")]
#[pyfunction]
fn panic(py: Python<'_>, in_worker: bool) -> PyResult<()> {
    if in_worker {
        return work::work(py, None, |_| panic!("a made-up mistake"));
    }
    errors::guarded(|| panic!("a made-up mistake"))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(feature = "toy-family")]
    module.add_function(wrap_pyfunction!(panic, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(families, module)?)?;
    module.add_function(wrap_pyfunction!(memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(set_memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    Ok(())
}
