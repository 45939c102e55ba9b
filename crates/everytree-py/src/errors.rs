//! What went wrong, as an exception.

use everytree::{Interrupted, NoColumn};
use everytree_core::file::FileError;
use everytree_core::infer::InferError;
use everytree_read::{Problem, ReadError};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

/// The exception for an error: the same words as on the command line, with options spelled as parameters.
pub fn exception(error: anyhow::Error) -> PyErr {
    let text = spelled(&format!("{error:#}"));
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        return PyKeyboardInterrupt::new_err(());
    }
    let class = if error.chain().any(|cause| {
        cause.is::<NoColumn>()
            || matches!(
                cause.downcast_ref::<ReadError>(),
                Some(ReadError { problem: Problem::MissingColumn { .. }, .. })
            )
    }) {
        Some("UnknownColumn")
    } else if error.chain().any(|cause| {
        matches!(
            cause.downcast_ref::<InferError>(),
            Some(InferError::Impossible | InferError::Unexplained { .. })
        )
    }) {
        Some("ImpossibleEvidence")
    } else {
        None
    };
    if let Some(class) = class {
        return Python::attach(|py| {
            let made = py
                .import("everytree._errors")
                .and_then(|module| module.getattr(class)?.call1((text.clone(),)));
            made.map_or_else(|_| PyValueError::new_err(text), PyErr::from_value)
        });
    }
    match error.downcast_ref::<FileError>() {
        Some(FileError::Io { path, cause }) => match cause.raw_os_error() {
            // Python makes FileNotFoundError, PermissionError and so on of it.
            Some(code) => {
                let words = cause.to_string();
                let words = words.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, words, path.display().to_string()))
            }
            None => PyOSError::new_err(text),
        },
        _ => PyValueError::new_err(text),
    }
}

/// `--max-states` is `max_states`.
pub fn spelled(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(place) = rest.find("--") {
        let (before, after) = rest.split_at(place);
        words += before;
        let after = &after[2..];
        let end = after.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(after.len());
        let begins = before.is_empty() || before.ends_with(|c: char| !c.is_alphanumeric() && c != '-');
        match begins && after.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => words += &after[..end].replace('-', "_"),
            false => words += &rest[place..place + 2 + end],
        }
        rest = &after[end..];
    }
    words + rest
}
