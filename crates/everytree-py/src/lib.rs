//! The core of the Python package: tables in, models, and what they say. What people see is in `python/everytree`; numbers
//! travel as bytes, small answers as JSON.

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
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| everytree_cli::main(arguments))
}

/// The families that a fit knows: name and summary.
#[pyfunction]
fn families() -> Vec<(&'static str, &'static str)> {
    everytree::families().collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(families, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    Ok(())
}
