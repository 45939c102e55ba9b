//! The files that models are learned from.

use crate::data::{StateArguments, TextArguments, say_gaps, say_ignored, say_unknown};
use crate::outputs::Files;
use anyhow::{Context, Result};
use clap::Args;
use everytree::{Checkpoint, Dataset, MissingValues};
use everytree_core::data::scan::Notice;
use everytree_read::{Problem, ReadError, Source};
use std::path::PathBuf;
use std::sync::Arc;

/// Which files, and how they are read.
#[derive(Args)]
pub struct Sources {
    /// Table to learn from: CSV, TSV, .data (0/1 without header), each plain or gzip; Parquet; Arrow IPC.
    pub train: PathBuf,
    /// Table to validate with. Default: rows held out from TRAIN.
    #[arg(long, value_name = "FILE")]
    pub valid: Option<PathBuf>,
    /// Table to test with, at the end and for the report only.
    #[arg(long, value_name = "FILE")]
    pub test: Option<PathBuf>,
    /// Fraction of TRAIN held out for validation, where there is no --valid.
    #[arg(long, default_value_t = 0.1, value_name = "X")]
    pub holdout: f64,
    #[command(flatten)]
    text: TextArguments,
    #[command(flatten)]
    states: StateArguments,
}

/// The tables of a fit.
pub struct Tables {
    pub train: Dataset,
    pub valid: Option<Dataset>,
    pub test: Option<Dataset>,
    /// What happened to the columns on the way.
    pub notices: Vec<Notice>,
}

impl Sources {
    /// The files that are read.
    pub fn files(&self) -> Files<'_> {
        let files = Files::default().input("the table", Some(&self.train));
        files.input("the table", self.valid.as_ref()).input("the table", self.test.as_ref())
    }

    /// How tables are read, where that was said: flags with their values.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = self.text.flags();
        flags.extend(self.states.flags());
        if self.holdout != 0.1 {
            flags.push(("holdout", self.holdout.to_string()));
        }
        flags
    }

    /// All tables, as states; of a fit that goes on, as they were.
    pub fn read(&self, quiet: bool, resumed: Option<&Checkpoint>) -> Result<Tables> {
        let mut options = self.states.options(&self.text)?;
        let paths: Vec<&PathBuf> =
            std::iter::once(&self.train).chain(&self.valid).chain(&self.test).collect();
        let sources: Vec<Source<'_>> = paths.iter().map(|path| Source::from(*path)).collect();
        let scanned = 1 + usize::from(self.valid.is_some());
        let opened = match resumed {
            None => options.open_all(&sources, scanned)?,
            Some(checkpoint) => {
                options.missing = match checkpoint.has_missing_values() {
                    true => MissingValues::Marginalise,
                    false => MissingValues::Category,
                };
                options.read_all(&sources, scanned, &Arc::new(checkpoint.schema.clone()))?
            }
        };
        if !quiet {
            paths.iter().zip(&opened.ignored).for_each(|(path, ignored)| say_ignored(path, ignored));
            paths.iter().zip(&opened.unknown).for_each(|(path, cells)| say_unknown(path, *cells));
        }
        let mut datasets = opened.datasets.into_iter();
        let train = datasets.next().context("a table was read")?;
        if train.rows() < 2 && self.valid.is_none() {
            return Err(ReadError { file: self.train.clone(), problem: Problem::OneRow }.into());
        }
        let valid = if self.valid.is_some() { datasets.next() } else { None };
        let test = datasets.next();
        if let (Some(path), Some(test)) = (self.test.as_ref().filter(|_| !quiet), &test) {
            let unknown = opened.unknown.last().copied().unwrap_or(0);
            say_gaps(path, test.missing().cells().saturating_sub(unknown as usize));
        }
        Ok(Tables { train, valid, test, notices: opened.notices })
    }
}
