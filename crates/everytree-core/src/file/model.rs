//! The model file.

use super::atomic::write_atomically;
use super::container::{Unpacked, pack};
use super::shape::Shape;
use super::whole;
use super::{ContentError, FileError};
use crate::data::Schema;
use crate::learn::{Epoch, TrialResult};
use crate::model::{Learnable, Model, Settings};
use crate::util::triangle;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The newest format that this version writes and reads.
pub const FORMAT: u64 = 2;

/// A model with the names of its variables and the story of its making.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The distribution.
    pub model: Model,
    /// Names and labels.
    pub schema: Schema,
    /// Where it comes from.
    pub provenance: Provenance,
    /// For every component, the share of training rows that are its own and whose tree has each edge: a matrix over the
    /// blocks, in the layout of [`crate::spanning::Kind`].
    pub edge_posteriors: Option<Vec<Vec<f64>>>,
}

/// Where a model comes from. Nothing in it depends on the clock or the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// How it was learned; absent for a model that was not.
    pub settings: Option<Settings>,
    /// Of the arithmetic: `f32` or `f64`.
    pub precision: Option<String>,
    /// Rows for gradients.
    pub train: Option<TableFacts>,
    /// Rows for validation.
    pub valid: Option<TableFacts>,
    /// What came out.
    pub results: Option<Results>,
    /// All fits of which this was the best.
    #[serde(default, rename = "tried", skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialResult>,
}

/// Enough to know a table again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFacts {
    /// Rows.
    pub rows: usize,
    /// Rows that differ.
    pub unique_rows: usize,
    /// [`crate::data::Table::fingerprint`], in hexadecimal.
    pub fingerprint: String,
}

/// Mean log-likelihoods in nats, evaluated in f64, and how they came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The epoch that validated best, from 1; 0 is the initialisation.
    pub best_epoch: usize,
    /// Over the training rows.
    pub train_ll: f64,
    /// Over the validation rows.
    pub valid_ll: f64,
    /// Over the test rows, if there were any.
    pub test_ll: Option<f64>,
    /// Epoch by epoch.
    pub history: Vec<Epoch>,
}

/// The description in the metadata; the format comes first.
#[derive(Serialize, Deserialize)]
struct Description {
    format: u64,
    kind: String,
    version: String,
    #[serde(flatten)]
    shape: Shape,
    schema: Schema,
    provenance: Provenance,
}

impl ModelFile {
    /// The bytes of the file: the same for the same model, always.
    pub fn to_bytes(&self) -> Vec<u8> {
        let shape = Shape::of(&self.model);
        let mut lists = shape.lists(self.model.mixture());
        if let Some(posteriors) = &self.edge_posteriors {
            lists.push((Shape::posterior_name(self.model.mixture()), posteriors.concat()));
        }
        let description = Description {
            format: FORMAT,
            kind: "model".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            shape,
            schema: self.schema.clone(),
            provenance: self.provenance.clone(),
        };
        let description = serde_json::to_string(&description).expect("plain data");
        let tensors: Vec<(&str, &[f64])> = lists.iter().map(|(name, list)| (*name, &list[..])).collect();
        pack(description, &tensors)
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        let unpacked = Unpacked::new(bytes, "model", FORMAT)?;
        let Description { shape, schema, provenance, format, .. } = unpacked.description()?;
        shape.check()?;
        let fit = |what: String| ContentError::Model(what);
        schema.check().map_err(fit)?;
        let blocks = shape.blocks(&schema.states())?;
        let mixture = shape.mixture_of_lists(&unpacked, &blocks.states())?;
        let n = mixture.states().len();
        let components = mixture.components().len();
        let edge_posteriors = match unpacked.maybe(Shape::posterior_name(&mixture))? {
            // The first format listed edges one by one.
            Some(list) if format == 1 && list.len() == triangle::pairs(n) => {
                Some(vec![triangle::below_diagonal(n, &list)])
            }
            Some(list) if format == 1 => {
                return Err(fit(format!("{} posteriors of {} edges", list.len(), triangle::pairs(n))));
            }
            Some(list) if list.len() != components * n * n => {
                return Err(fit(format!("{} posteriors of {} edges", list.len(), components * n * n)));
            }
            Some(list) => Some(list.chunks_exact(n * n).map(<[f64]>::to_vec).collect()),
            None => None,
        };
        if let Some(posteriors) = &edge_posteriors {
            check_posteriors(posteriors).map_err(fit)?;
        }
        let model = Model::new(blocks, mixture).map_err(|error| fit(error.to_string()))?;
        Ok(Self { model, schema, provenance, edge_posteriors })
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let io = |cause| FileError::Io { path: path.to_owned(), cause };
        write_atomically(path, &self.to_bytes()).map_err(io)
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let bytes = whole::read(path)?;
        Self::from_bytes(&bytes).map_err(|what| FileError::Content { path: path.to_owned(), what })
    }
}

/// Probabilities of edges, component by component: none below 0, and over all components none above 1.
fn check_posteriors(posteriors: &[Vec<f64>]) -> Result<(), String> {
    const ROUNDING: f64 = 1e-6;
    for place in 0..posteriors.first().map_or(0, Vec::len) {
        let of_components = posteriors.iter().map(|component| component[place]);
        let least = of_components.clone().fold(0.0, f64::min);
        let sum: f64 = of_components.sum();
        if least < -ROUNDING || sum > 1.0 + ROUNDING {
            return Err(format!("edge {place} has posteriors from {least} with the sum {sum}"));
        }
    }
    Ok(())
}
