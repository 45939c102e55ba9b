//! Where a table is: in a file, or in memory as Arrow.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::path::{Path, PathBuf};

/// A table in memory.
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

impl Frame {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A table to be read.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// From a file.
    File(&'a Path),
    /// From memory.
    Frame(&'a Frame),
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

impl<'a> From<&'a Frame> for Source<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self::Frame(frame)
    }
}
