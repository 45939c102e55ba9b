//! The model file and the checkpoint: safetensors with readable names, everything else as JSON in the metadata.
//!
//! `docs/format.md` has it byte by byte. Files are written whole or not at all.

mod atomic;
mod checkpoint;
mod flat;
mod model;
mod pack;
mod shape;
mod unpack;

pub use atomic::{write_atomically, write_through};
pub use checkpoint::Checkpoint;
pub use model::{EdgePosteriors, Evaluated, FORMAT, ModelFile, Provenance, Results, TableFacts};
pub use unpack::{ENOUGH, is_ours};

use crate::memory::TooMuchMemory;
use crate::model::MAX_MEMBERS;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system says no.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Not a file of ours, or not a whole one.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: ContentError,
    },
}

/// What is wrong with the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContentError {
    /// Not safetensors, or cut short.
    #[error("not a model file, or not a whole one: {0}")]
    Container(String),
    /// A table.
    #[error("this looks like a table, not like a model; `everytree fit` learns a model from a table")]
    Table,
    /// Safetensors of someone else.
    #[error("a safetensors file, but not one of everytree")]
    Foreign,
    /// A checkpoint where a model is expected, or the other way round.
    #[error("this is a {found}, not a {expected}{hint}")]
    Kind {
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// From a later version of this program.
    #[error(
        "format {found}, written by version {version}; this version reads formats up to {known}: update everytree"
    )]
    TooNew {
        /// Its format.
        found: u64,
        /// The version that wrote it.
        version: String,
        /// The newest format known here.
        known: u64,
    },
    /// Not the bytes that were written.
    #[error(
        "the file is damaged: its checksum is {found:08x} where it says {said:08x}; get another copy, or fit again"
    )]
    Checksum {
        /// What the file says.
        said: u32,
        /// What its bytes give.
        found: u32,
    },
    /// None, or more than can be.
    #[error("it has {found} members; from 1 to {MAX_MEMBERS} are possible")]
    Members {
        /// How many.
        found: usize,
    },
    /// More than may be used.
    #[error(transparent)]
    TooMuch(#[from] TooMuchMemory),
    /// There is no room for it.
    #[error("a list of {bytes} bytes does not fit in memory")]
    Memory {
        /// Of one list.
        bytes: usize,
    },
    /// The description does not make sense.
    #[error("damaged description: {0}")]
    Description(String),
    /// A tensor is missing, or of the wrong kind.
    #[error("damaged tensor {name:?}: {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The parts do not fit together.
    #[error("the parts do not fit together: {0}")]
    Model(String),
}
