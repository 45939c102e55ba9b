//! The model file.

use super::atomic::write_through;
use super::pack::{self, List};
use super::shape::{Names, Shape, check_range};
use super::unpack::Unpacked;
use super::{ContentError, FileError};
use crate::data::Schema;
use crate::learn::{Epoch, TrialResult};
use crate::model::{Component, Learnable, MAX_MEMBERS, Member, Mixture, Model, Settings};
use crate::util::triangle;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The newest format that this version writes and reads.
pub const FORMAT: u64 = 3;
/// The list of the logarithms of the weights of members.
const MEMBER_WEIGHTS: &str = "members.log_weight";

/// A model with the names of its variables and the story of its making.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The distribution.
    pub model: Model,
    /// Names and labels.
    pub schema: Schema,
    /// Where it comes from.
    pub provenance: Provenance,
    /// For every member, what rows say about edges; nothing where that is not known.
    pub edge_posteriors: Vec<Option<EdgePosteriors>>,
}

/// For every component of a member, the share of training rows that are its own and whose tree has each edge: a matrix over the
/// blocks, in the layout of [`crate::spanning::Kind`].
pub type EdgePosteriors = Vec<Vec<f64>>;

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
    /// What ended a choice among families before its budget did: `timeout`, `stopped` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Of an ensemble, where each member comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Provenance>,
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
    /// Which share of the rows these means are over, where there was no time for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated: Option<Evaluated>,
    /// Epoch by epoch.
    pub history: Vec<Epoch>,
}

/// Which share of the rows was evaluated, by weight.
///
/// ```
/// use everytree_core::file::Evaluated;
///
/// let evaluated = Evaluated { train: 0.25, valid: 1.0, test: None };
/// assert!(evaluated.is_partial());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Of the training rows.
    pub train: f64,
    /// Of the validation rows.
    pub valid: f64,
    /// Of the test rows, if there were any.
    pub test: Option<f64>,
}

impl Evaluated {
    /// Not all of them?
    pub fn is_partial(&self) -> bool {
        [self.train, self.valid, self.test.unwrap_or(1.0)].iter().any(|&share| share < 1.0)
    }
}

/// The description in the metadata; the format comes first.
#[derive(Serialize)]
struct Description<'a> {
    format: u64,
    kind: &'static str,
    version: &'static str,
    /// What is averaged.
    members: Vec<Shape>,
    schema: &'a Schema,
    provenance: &'a Provenance,
}

/// What is read of it.
#[derive(Deserialize)]
struct Told {
    members: Vec<Shape>,
    schema: Schema,
    provenance: Provenance,
}

/// The same in formats 1 and 2, which knew one member.
#[derive(Deserialize)]
struct ToldOfOne {
    #[serde(flatten)]
    shape: Shape,
    schema: Schema,
    provenance: Provenance,
}

impl ModelFile {
    /// The description, and lists of numbers.
    fn parts(&self) -> (String, Vec<List<'_>>) {
        let members = self.model.members();
        let shapes: Vec<Shape> = members.iter().map(Shape::of).collect();
        let mut lists = Vec::new();
        for (number, (member, shape)) in members.iter().zip(&shapes).enumerate() {
            let (mixture, names) = (member.mixture(), Names::Member(number));
            lists.extend(shape.lists(mixture, names));
            if let Some(Some(posteriors)) = self.edge_posteriors.get(number) {
                let name = names.list(Shape::posterior_name(mixture));
                let pieces = posteriors.iter().map(|list| (&list[..]).into()).collect();
                lists.push(List { name, pieces });
            }
        }
        if members.len() > 1 {
            lists.push(List::whole(MEMBER_WEIGHTS.to_owned(), self.model.log_weights()));
        }
        let description = Description {
            format: FORMAT,
            kind: "model",
            version: env!("CARGO_PKG_VERSION"),
            members: shapes,
            schema: &self.schema,
            provenance: &self.provenance,
        };
        (serde_json::to_string(&description).expect("plain data"), lists)
    }

    /// The bytes of the file: the same for the same model, always. An error where there is no memory for them, or names and labels
    /// are too long for a header.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let (description, lists) = self.parts();
        pack::to_bytes(description, lists)
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        Self::unpack(Unpacked::of_bytes(bytes, "model", FORMAT)?)
    }

    fn unpack(mut unpacked: Unpacked<'_>) -> Result<Self, ContentError> {
        let (shapes, schema, provenance) = if unpacked.format <= 2 {
            let ToldOfOne { shape, schema, provenance } = unpacked.description()?;
            (vec![(shape, Names::Plain)], schema, provenance)
        } else {
            let Told { members, schema, provenance } = unpacked.description()?;
            let found = members.len();
            if !(1..=MAX_MEMBERS).contains(&found) {
                return Err(ContentError::Members { found });
            }
            let named = |(number, shape): (usize, Shape)| (shape, Names::Member(number));
            (members.into_iter().enumerate().map(named).collect(), schema, provenance)
        };
        let fit = |what: String| ContentError::Model(what);
        schema.check().map_err(fit)?;
        let (mut members, mut edge_posteriors) = (Vec::new(), Vec::new());
        for (shape, names) in shapes {
            shape.check()?;
            let blocks = shape.blocks(&schema.states())?;
            let mixture = shape.mixture_of_lists(&mut unpacked, &blocks.states(), names)?;
            let posterior = names.list(Shape::posterior_name(&mixture));
            let posteriors = match unpacked.has(&posterior) {
                true => Some(read_posteriors(&mut unpacked, &posterior, &mixture)?),
                false => None,
            };
            if let Some(posteriors) = &posteriors {
                check_posteriors(posteriors).map_err(fit)?;
            }
            members.push(Member::new(blocks, mixture).map_err(|error| fit(error.to_string()))?);
            edge_posteriors.push(posteriors);
        }
        let log_weights = match members.len() {
            1 => vec![0.0],
            _ => member_weights(&mut unpacked)?,
        };
        let model = Model::with_log_weights(members, log_weights).map_err(|error| fit(error.to_string()))?;
        Ok(Self { model, schema, provenance, edge_posteriors })
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let io = |cause| FileError::Io { path: path.to_owned(), cause };
        let (description, lists) = self.parts();
        write_through(path, |file| pack::write(description, lists, file)).flatten().map_err(io)
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let unpacked = Unpacked::of_file(path, "model", FORMAT)?;
        Self::unpack(unpacked).map_err(|what| FileError::Content { path: path.to_owned(), what })
    }
}

/// The logarithms of the weights of members, which add up to 1.
fn member_weights(unpacked: &mut Unpacked<'_>) -> Result<Vec<f64>, ContentError> {
    let log_weights = unpacked.numbers(MEMBER_WEIGHTS)?;
    check_range(&log_weights)?;
    let sum: f64 = log_weights.iter().map(|log| log.exp()).sum();
    match (sum - 1.0).abs() <= 1e-9 {
        true => Ok(log_weights),
        false => Err(ContentError::Model(format!("the weights of members add up to {sum}"))),
    }
}

/// For every component a matrix.
fn read_posteriors(
    unpacked: &mut Unpacked<'_>,
    name: &str,
    mixture: &Mixture<Component>,
) -> Result<Vec<Vec<f64>>, ContentError> {
    let (n, components) = (mixture.states().len(), mixture.components().len());
    // The first format listed edges one by one.
    let listed = unpacked.format == 1;
    let one = if listed { triangle::pairs(n) } else { n * n };
    let (found, expected) = (unpacked.length(name)?, one * components);
    if found != expected {
        return Err(ContentError::Model(format!("{found} posteriors of {expected} edges")));
    }
    let matrix = |k: usize| {
        let mut list = Vec::new();
        unpacked.append(name, k * one..(k + 1) * one, &mut list)?;
        Ok(if listed { triangle::below_diagonal(n, &list) } else { list })
    };
    (0..components).map(matrix).collect()
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
