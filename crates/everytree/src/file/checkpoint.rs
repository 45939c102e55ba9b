//! Learning put aside between two epochs.

use super::atomic::write_atomically;
use super::container::{Unpacked, pack};
use super::model::{FORMAT, TableFacts};
use super::{ContentError, FileError};
use crate::learn::{Adam, Epoch, Settings, State};
use crate::model::{Learnable, Moat, Pairs};
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything that is needed to go on as if nothing had happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Of the learning.
    pub state: State<Moat>,
    /// How it learns.
    pub settings: Settings,
    /// Of the arithmetic: `f32` or `f64`.
    pub precision: String,
    /// Names and labels.
    pub schema: Schema,
    /// The rows it learns from: others are refused.
    pub train: TableFacts,
    /// The rows it validates with.
    pub valid: TableFacts,
    /// The fraction of rows held out for validation, where there is no file for it.
    pub holdout: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    format: u64,
    kind: String,
    version: String,
    family: String,
    pairs: Pairs,
    precision: String,
    steps: u64,
    settings: Settings,
    history: Vec<Epoch>,
    train: TableFacts,
    valid: TableFacts,
    holdout: Option<f64>,
    schema: Schema,
}

impl Checkpoint {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let state = &self.state;
        let description = Description {
            format: FORMAT,
            kind: "checkpoint".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            family: "moat".to_owned(),
            pairs: state.model.pairs(),
            precision: self.precision.clone(),
            steps: state.adam.steps,
            settings: self.settings.clone(),
            history: state.history.clone(),
            train: self.train.clone(),
            valid: self.valid.clone(),
            holdout: self.holdout,
            schema: self.schema.clone(),
        };
        let mut tensors = vec![
            ("parameters", state.model.parameters()),
            ("best.parameters", state.best.parameters()),
            ("adam.means", &state.adam.means),
            ("adam.squares", &state.adam.squares),
        ];
        if let Some(average) = &state.average {
            tensors.push(("average", average));
        }
        pack(serde_json::to_string(&description).expect("plain data"), &tensors)
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        let unpacked = Unpacked::new(bytes, "checkpoint", FORMAT)?;
        let description: Description = unpacked.description()?;
        let states = description.schema.states();
        let fit = |what: String| ContentError::Model(what);
        let sense = |what: &str| ContentError::Description(what.to_owned());
        if description.family != "moat" {
            return Err(ContentError::Description(format!("unknown family {:?}", description.family)));
        }
        if !["f32", "f64"].contains(&description.precision.as_str()) {
            return Err(ContentError::Description(format!("unknown precision {:?}", description.precision)));
        }
        if description.history.iter().enumerate().any(|(place, epoch)| epoch.epoch != place) {
            return Err(sense("the epochs of its history are not in order"));
        }
        if description.pairs == Pairs::Tables {
            return Err(sense("known tables are not learned"));
        }
        description.settings.check().map_err(|error| fit(error.to_string()))?;
        let model = |name: &str| {
            Moat::from_parameters(states.clone(), description.pairs, unpacked.numbers(name)?)
                .map_err(|error| fit(error.to_string()))
        };
        let (model, best) = (model("parameters")?, model("best.parameters")?);
        let length = model.parameters().len();
        let list = |name: &str| {
            let values = unpacked.numbers(name)?;
            if values.len() == length {
                Ok(values)
            } else {
                Err(fit(format!("{} entries in {name}", values.len())))
            }
        };
        let adam =
            Adam { steps: description.steps, means: list("adam.means")?, squares: list("adam.squares")? };
        let average = unpacked.maybe("average")?.map(|_| list("average")).transpose()?;
        description.schema.check().map_err(fit)?;
        let state = State { model, best, adam, average, history: description.history };
        let Description { settings, precision, schema, train, valid, holdout, .. } = description;
        Ok(Self { state, settings, precision, schema, train, valid, holdout })
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
