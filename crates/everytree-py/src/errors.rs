//! What went wrong, as an exception.

use everytree::{Error, ErrorCode, Spelling, spelled};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exception for an error: the same words as on the command line, with options spelled as parameters.
pub fn exception(error: Error) -> PyErr {
    if error.is_interrupted() {
        return PyKeyboardInterrupt::new_err(());
    }
    let text = error.spelled(Spelling::Keywords);
    let class = match error.code() {
        ErrorCode::UnknownColumn => "UnknownColumn",
        ErrorCode::ImpossibleEvidence => "ImpossibleEvidence",
        ErrorCode::Memory => return PyMemoryError::new_err(text),
        ErrorCode::Io => return system(&error, text),
        _ => return PyValueError::new_err(text),
    };
    of_class(class, text)
}

/// One of the exceptions of `_errors.py`.
fn of_class(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made =
            py.import("everytree._errors").and_then(|module| module.getattr(class)?.call1((text.clone(),)));
        made.map_or_else(|_| PyValueError::new_err(text), PyErr::from_value)
    })
}

/// Whatever is called from Python goes through here: a panic, which would be a mistake of ours, becomes an exception that
/// `except Exception` catches.
pub fn guarded<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // What a panic has left half-done is dropped with the call, or behind a lock that says so.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

/// The exception for a panic.
pub fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    of_class("InternalError", format!("this is a mistake of everytree; please report it: {words}"))
}

/// Python makes FileNotFoundError, PermissionError and so on of what the system says.
fn system(error: &Error, text: String) -> PyErr {
    let path = error.file().map(|path| path.display().to_string());
    match (error.io().and_then(|cause| Some((cause, cause.raw_os_error()?))), path) {
        (Some((cause, code)), Some(path)) => {
            let words = cause.to_string();
            let words = words.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((code, words, path))
        }
        _ => PyOSError::new_err(text),
    }
}

/// The exception for words, with options spelled as parameters.
pub fn exception_of(words: &str) -> PyErr {
    PyValueError::new_err(spelled(words, Spelling::Keywords))
}
