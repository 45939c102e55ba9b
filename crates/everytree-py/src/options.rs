//! What Python says about a call, as typed structs that refuse fields they do not know.

use crate::errors::exception_of;
use everytree::{DeviceChoice, FitOptions, ImputeMethod, Method, ReadOptions, Unknown};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// About a fit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitCall {
    pub fit: FitOptions,
    pub read: ReadOptions,
    pub threads: Option<usize>,
}

/// About a comparison.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareCall {
    pub families: Vec<String>,
    pub time: f64,
    pub seed: u64,
    pub holdout: f64,
    pub read: ReadOptions,
    pub threads: Option<usize>,
}

/// About scores.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreCall {
    pub tolerance: f64,
    pub trees: usize,
    pub seed: u64,
    pub threads: Option<usize>,
    pub device: DeviceChoice,
    pub missing_as_state: bool,
    pub unknown: Unknown,
}

/// About posteriors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryCall {
    pub tolerance: f64,
    pub trees: usize,
    pub seed: u64,
    pub threads: Option<usize>,
    pub missing_as_state: bool,
    #[serde(deserialize_with = "method")]
    pub method: Option<Method>,
    pub edges: bool,
}

/// About samples.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleCall {
    pub seed: u64,
    pub threads: Option<usize>,
}

/// About the most probable rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MostProbableCall {
    pub trees: usize,
    pub seed: u64,
    pub threads: Option<usize>,
    pub missing_as_state: bool,
}

/// About missing cells.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImputeCall {
    pub how: ImputeMethod,
    pub unknown: Unknown,
    pub probabilities: bool,
    pub seed: u64,
    pub threads: Option<usize>,
}

/// About single figures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureCall {
    pub tolerance: f64,
    pub trees: usize,
    pub seed: u64,
    pub threads: Option<usize>,
}

/// `"auto"`, or the name of a method.
fn method<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Method>, D::Error> {
    let name = String::deserialize(from)?;
    if name == "auto" {
        return Ok(None);
    }
    let names: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
    let unknown =
        || serde::de::Error::custom(format!("unknown method {name:?}; there are auto, {}", names.join(", ")));
    Method::ALL.into_iter().find(|method| method.as_str() == name).map(Some).ok_or_else(unknown)
}

/// Options out of JSON.
pub fn parsed<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    let mut from = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let (path, words) = (error.path().to_string(), error.inner().to_string());
        let field = path.rsplit('.').next().unwrap_or_default();
        // Where in the JSON is of no interest to whoever gave keywords.
        let words = words.split(" at line ").next().unwrap_or_default();
        // As people say it, not as Rust does.
        let words = [("usize", "a whole number, not negative"), ("u64", "a whole number, not negative")]
            .into_iter()
            .chain([("f64", "a number"), ("a borrowed string", "text"), ("a string", "text")])
            .fold(words.to_owned(), |words, (rust, plain)| {
                words.replace(&format!("expected {rust}"), &format!("expected {plain}"))
            });
        exception_of(&format!("{field}: {words}"))
    })
}
