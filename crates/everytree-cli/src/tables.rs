//! The files that models are learned from.

use crate::data::{StateArguments, TextArguments, say_ignored};
use anyhow::Result;
use clap::Args;
use everytree::{Inputs, Tables};
use everytree_core::file::Checkpoint;
use everytree_read::Source;
use std::path::PathBuf;

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

impl Sources {
    /// All tables, as states.
    pub fn read(&self, seed: u64, quiet: bool, resumed: Option<&Checkpoint>) -> Result<Tables> {
        // What was put aside remembers how holes were filled, if there were any.
        let running = resumed.and_then(|checkpoint| checkpoint.search.running.as_ref());
        let inputs = Inputs {
            train: (&self.train).into(),
            valid: self.valid.as_ref().map(Source::from),
            test: self.test.as_ref().map(Source::from),
            weights: &[],
            holdout: resumed.and_then(|checkpoint| checkpoint.holdout).unwrap_or(self.holdout),
            seed: resumed.map_or(seed, |checkpoint| checkpoint.settings.seed),
            read: &self.text.settings(),
            scan: &self.states.settings()?,
            schema: resumed.map(|checkpoint| &checkpoint.schema),
            marginalise: running.map_or(self.states.marginalise(), |running| running.state.memory.is_some()),
        };
        inputs.read(&mut |source, facts| {
            if let (Source::File(path), false) = (source, quiet) {
                say_ignored(path, facts);
            }
        })
    }
}
