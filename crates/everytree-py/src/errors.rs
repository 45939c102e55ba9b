//! What went wrong, as an exception.

use everytree::{Error, ErrorCode, Spelling, spelled};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

/// The exception for an error: the same words as on the command line, with options spelled as parameters.
pub fn exception(error: Error) -> PyErr {
    if error.is_interrupted() {
        return PyKeyboardInterrupt::new_err(());
    }
    let text = error.spelled(Spelling::Keywords);
    let class = match error.code() {
        ErrorCode::UnknownColumn => "UnknownColumn",
        ErrorCode::ImpossibleEvidence => "ImpossibleEvidence",
        ErrorCode::Io => return system(&error, text),
        _ => return PyValueError::new_err(text),
    };
    Python::attach(|py| {
        let made =
            py.import("everytree._errors").and_then(|module| module.getattr(class)?.call1((text.clone(),)));
        made.map_or_else(|_| PyValueError::new_err(text), PyErr::from_value)
    })
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
