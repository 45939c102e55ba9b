//! Where a table is: in a file, or in memory as Arrow.

#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;
#[cfg(feature = "parquet")]
use arrow_schema::SchemaRef;
use std::path::{Path, PathBuf};

/// A table in memory.
#[cfg(feature = "parquet")]
#[derive(Clone, Debug)]
pub struct Frame {
    /// What it is called where something is wrong with it.
    pub name: String,
    /// Has it names of its own?
    pub named: bool,
    /// Names and types of its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

#[cfg(feature = "parquet")]
impl Frame {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A table to be read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// From a file.
    File(&'a Path),
    /// From memory.
    #[cfg(feature = "parquet")]
    Frame(&'a Frame),
}

impl Source<'_> {
    /// What it is called where something is wrong with it.
    pub fn name(&self) -> PathBuf {
        match self {
            Self::File(path) => path.to_path_buf(),
            #[cfg(feature = "parquet")]
            Self::Frame(frame) => PathBuf::from(&frame.name),
        }
    }

    /// Do names of columns that come with it mean something?
    pub(crate) fn is_named(&self) -> bool {
        match self {
            Self::File(_) => true,
            #[cfg(feature = "parquet")]
            Self::Frame(frame) => frame.named,
        }
    }
}

impl<'a> From<&'a Path> for Source<'a> {
    fn from(path: &'a Path) -> Self {
        Self::File(path)
    }
}

impl<'a> From<&'a PathBuf> for Source<'a> {
    fn from(path: &'a PathBuf) -> Self {
        Self::File(path)
    }
}

#[cfg(feature = "parquet")]
impl<'a> From<&'a Frame> for Source<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self::Frame(frame)
    }
}
