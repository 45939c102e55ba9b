//! The model file.

use super::atomic::write_atomically;
use super::container::{Unpacked, pack};
use super::{ContentError, FileError};
use crate::learn::{Epoch, Settings};
use crate::model::{Learnable, Moat, Pairs};
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The newest format that this version writes and reads.
pub const FORMAT: u64 = 1;

/// A model with the names of its variables and the story of its making.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The distribution.
    pub model: Moat,
    /// Names and labels.
    pub schema: Schema,
    /// Where it comes from.
    pub provenance: Provenance,
    /// How probable every edge is given a row of the training data, on average; in the order of the weights.
    pub edge_posteriors: Option<Vec<f64>>,
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
}

/// Enough to know a table again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFacts {
    /// Rows.
    pub rows: usize,
    /// Rows that differ.
    pub unique_rows: usize,
    /// [`crate::table::Table::fingerprint`], in hexadecimal.
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
    family: String,
    pairs: Pairs,
    schema: Schema,
    provenance: Provenance,
}

/// The names of the three lists of parameters.
pub(super) fn names(pairs: Pairs) -> [&'static str; 3] {
    match pairs {
        Pairs::Tables => ["edges.weight", "margins.probability", "pairs.probability"],
        Pairs::Lambda => ["edges.log_weight", "margins.logit", "pairs.frechet_logit"],
        Pairs::Sinkhorn => ["edges.log_weight", "margins.logit", "pairs.log_matrix"],
    }
}

impl ModelFile {
    /// The bytes of the file: the same for the same model, always.
    pub fn to_bytes(&self) -> Vec<u8> {
        let description = Description {
            format: FORMAT,
            kind: "model".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            family: "moat".to_owned(),
            pairs: self.model.pairs(),
            schema: self.schema.clone(),
            provenance: self.provenance.clone(),
        };
        let description = serde_json::to_string(&description).expect("plain data");
        let [margins, pairs] = self.model.sections();
        let parameters = self.model.parameters();
        let [weight_name, margin_name, pair_name] = names(self.model.pairs());
        let mut tensors = vec![
            (weight_name, &parameters[..margins]),
            (margin_name, &parameters[margins..pairs]),
            (pair_name, &parameters[pairs..]),
        ];
        if let Some(posteriors) = &self.edge_posteriors {
            tensors.push(("edges.posterior", posteriors));
        }
        pack(description, &tensors)
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        let unpacked = Unpacked::new(bytes, "model", FORMAT)?;
        let description: Description = unpacked.description()?;
        if description.family != "moat" {
            return Err(ContentError::Description(format!("unknown family {:?}", description.family)));
        }
        let mut parameters = Vec::new();
        for name in names(description.pairs) {
            parameters.extend(unpacked.numbers(name)?);
        }
        let fit = |what: String| ContentError::Model(what);
        let model = Moat::from_parameters(description.schema.states(), description.pairs, parameters)
            .map_err(|error| fit(error.to_string()))?;
        let edge_posteriors = unpacked.maybe("edges.posterior")?;
        let edges = model.sections()[0];
        if let Some(posteriors) = &edge_posteriors
            && posteriors.len() != edges
        {
            return Err(fit(format!("{} posteriors of {edges} edges", posteriors.len())));
        }
        description.schema.check().map_err(fit)?;
        Ok(Self { model, schema: description.schema, provenance: description.provenance, edge_posteriors })
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let io = |cause| FileError::Io { path: path.to_owned(), cause };
        write_atomically(path, &self.to_bytes()).map_err(io)
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let bytes = std::fs::read(path).map_err(|cause| FileError::Io { path: path.to_owned(), cause })?;
        Self::from_bytes(&bytes).map_err(|what| FileError::Content { path: path.to_owned(), what })
    }
}
