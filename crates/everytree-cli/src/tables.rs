//! The tables that models are learned from: read, split, and introduced.

use crate::data::{StateArguments, TextArguments, count, facts, plural, say, say_ignored};
use anyhow::{Result, bail};
use clap::Args;
use everytree::file::{Checkpoint, TableFacts};
use everytree::learn::{Rows, split};
use everytree::scan::Notice;
use everytree::schema::Schema;
use everytree::table::{Holes, Table};
use everytree_read::{CellRules, Problem, ReadError, read_table, read_table_with_holes, scan_files};
use std::path::{Path, PathBuf};

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
    pub schema: Schema,
    /// The number of states of every column.
    pub states: Vec<usize>,
    pub notices: Vec<Notice>,
    pub train: Table,
    pub valid: Table,
    /// Cells of these two that were not observed.
    pub holes: [Holes; 2],
    pub test: Option<Table>,
    pub held_out: bool,
}

impl Tables {
    pub fn rows(&self) -> Rows<'_> {
        let holes = [&self.holes[0], &self.holes[1]];
        Rows { train: &self.train, valid: &self.valid, states: &self.states, holes }
    }

    pub fn facts(&self) -> [TableFacts; 2] {
        [facts_of(&self.train, &self.holes[0]), facts_of(&self.valid, &self.holes[1])]
    }
}

impl Sources {
    /// All tables, as states.
    pub fn read(&self, seed: u64, quiet: bool, resumed: Option<&Checkpoint>) -> Result<Tables> {
        let read = self.text.settings();
        let others: Vec<&Path> = self.valid.as_deref().into_iter().collect();
        let (schema, notices) = match resumed {
            Some(checkpoint) => (checkpoint.schema.clone(), Vec::new()),
            None => {
                let scanned = scan_files(&self.train, &others, &read, &self.states.settings()?)?;
                (scanned.schema, scanned.notices)
            }
        };
        // What was put aside remembers how holes were filled, if there were any.
        let running = resumed.and_then(|checkpoint| checkpoint.search.running.as_ref());
        let marginalise = running.map_or(self.states.marginalise(), |running| running.state.memory.is_some());
        let rules = CellRules {
            missing_is_a_state: !marginalise,
            unknown_is_unobserved: false,
            incomplete_rows: false,
        };
        let table = |path: &Path, holes: bool| -> Result<(Table, Holes)> {
            let (table, holes, facts) = match holes {
                true => read_table_with_holes(path, &schema, &read, rules)?,
                false => {
                    let (table, facts) = read_table(path, &schema, &read, rules)?;
                    (table, Holes::default(), facts)
                }
            };
            if !quiet {
                say_ignored(path, &facts);
            }
            Ok((table, holes))
        };
        let (all, all_holes) = table(&self.train, marginalise)?;
        let (train, valid, holes, held_out) = match &self.valid {
            Some(path) => {
                let (valid, valid_holes) = table(path, marginalise)?;
                (all, valid, [all_holes, valid_holes], false)
            }
            None => {
                if all.rows() < 2 {
                    return Err(ReadError { file: self.train.clone(), problem: Problem::OneRow }.into());
                }
                if !(self.holdout > 0.0 && self.holdout < 1.0) {
                    bail!("--holdout {}: between 0 and 1", self.holdout);
                }
                let seed = resumed.map_or(seed, |checkpoint| checkpoint.settings.seed);
                let holdout = resumed.and_then(|checkpoint| checkpoint.holdout).unwrap_or(self.holdout);
                let split = split(all.rows(), holdout, seed);
                let holes = [all_holes.select(&split.train), all_holes.select(&split.valid)];
                (all.select(split.train), all.select(split.valid), holes, true)
            }
        };
        // Complete: `score` is there for rows that are not.
        let test = self.test.as_deref().map(|path| table(path, false)).transpose()?.map(|(test, _)| test);
        let states = schema.states();
        Ok(Tables { schema, states, notices, train, valid, holes, test, held_out })
    }
}

impl Tables {
    /// Says what was read.
    pub fn introduce(&self, seed: u64, note: &impl Fn(String)) {
        let tables = self;
        let states: usize = tables.schema.states().iter().sum();
        let test =
            tables.test.as_ref().map_or(String::new(), |test| format!(", {} to test", count(test.rows())));
        note(format!(
            "{}{} with {}; {} to learn from, {} to validate{}{test}",
            plural(tables.schema.variables.len(), "column"),
            if tables.schema.header { ", named in the file," } else { " without names," },
            plural(states, "state"),
            plural(tables.train.rows(), "row"),
            count(tables.valid.rows()),
            if tables.held_out { format!(" (held out by seed {seed})") } else { String::new() },
        ));
        const MOST: usize = 8;
        tables.notices.iter().take(MOST).for_each(|notice| note(format!("note: {}", say(notice))));
        if tables.notices.len() > MOST {
            note(format!("note: and {} more columns like these", tables.notices.len() - MOST));
        }
    }
}

/// Enough to know a table again, holes and all.
pub fn facts_of(table: &Table, holes: &Holes) -> TableFacts {
    facts(&table.unique(), table.fingerprint() ^ holes.fingerprint())
}
