//! Named lists of numbers and one JSON text, as safetensors.

use super::ContentError;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// The key of the metadata under which the description lies.
const KEY: &str = "everytree";

/// The bytes of a file.
pub(super) fn pack(description: String, tensors: &[(&str, &[f64])]) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, values), bytes)| {
        (*name, TensorView::new(Dtype::F64, vec![values.len()], bytes).expect("eight bytes a number"))
    });
    let metadata = HashMap::from([(KEY.to_owned(), description)]);
    safetensors::serialize(views, Some(metadata)).expect("valid tensors")
}

/// A file taken apart.
pub(super) struct Unpacked<'a> {
    tensors: SafeTensors<'a>,
    description: String,
}

/// What every description begins with.
#[derive(serde::Deserialize)]
struct Head {
    format: u64,
    kind: String,
    version: String,
}

impl<'a> Unpacked<'a> {
    /// Takes `bytes` apart as a file of this kind and of a format up to `known`.
    pub fn new(bytes: &'a [u8], kind: &'static str, known: u64) -> Result<Self, ContentError> {
        let container = |error: safetensors::SafeTensorError| ContentError::Container(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let description =
            metadata.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or(ContentError::Foreign)?.clone();
        let head: Head = parse(&description)?;
        if head.format > known {
            return Err(ContentError::TooNew { found: head.format, version: head.version, known });
        }
        if head.kind != kind {
            let hint = match kind {
                "model" => "; go on from a checkpoint with `resume`",
                _ => "",
            };
            return Err(ContentError::Kind { found: head.kind, expected: kind, hint });
        }
        Ok(Self { tensors: SafeTensors::deserialize(bytes).map_err(container)?, description })
    }

    /// The description as what it describes.
    pub fn description<D: DeserializeOwned>(&self) -> Result<D, ContentError> {
        parse(&self.description)
    }

    /// A list of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, ContentError> {
        let bad = |what: String| ContentError::Tensor { name: name.to_owned(), what };
        let tensor = self.tensors.tensor(name).map_err(|_| bad("it is not there".to_owned()))?;
        if tensor.dtype() != Dtype::F64 || tensor.shape().len() != 1 {
            return Err(bad(format!(
                "{:?} of shape {:?} instead of a list of F64",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let values: Vec<f64> = tensor.data().chunks_exact(8).map(number).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(place) => Err(bad(format!("entry {place} is {}", values[place]))),
            None => Ok(values),
        }
    }

    /// A list of numbers that may be missing.
    pub fn maybe(&self, name: &str) -> Result<Option<Vec<f64>>, ContentError> {
        match self.tensors.tensor(name) {
            Err(_) => Ok(None),
            Ok(_) => self.numbers(name).map(Some),
        }
    }
}

fn parse<D: DeserializeOwned>(description: &str) -> Result<D, ContentError> {
    serde_json::from_str(description).map_err(|error| ContentError::Description(error.to_string()))
}
