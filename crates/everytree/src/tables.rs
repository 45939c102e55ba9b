//! The tables that models are learned from: read, weighed, split, and introduced.

use crate::words::{count, plural, say};
use anyhow::{Result, bail};
use everytree_core::data::Schema;
use everytree_core::data::scan::{Notice, ScanSettings};
use everytree_core::data::{Missing, Table, fingerprint_of_weights};
use everytree_core::file::TableFacts;
use everytree_core::learn::{Rows, split};
use everytree_read::{
    CellRules, FileFacts, Problem, ReadError, ReadSettings, Source, read_table, read_table_with_holes,
    scan_tables,
};
use std::path::PathBuf;

/// Which tables, and how they are read.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// To learn from.
    pub train: Source<'a>,
    /// To validate with; else rows are held out.
    pub valid: Option<Source<'a>>,
    /// To test with.
    pub test: Option<Source<'a>>,
    /// What the rows to learn from weigh; none: 1 each.
    pub weights: &'a [f64],
    /// How much is held out.
    pub holdout: f64,
    /// By what chance.
    pub seed: u64,
    /// How text is read.
    pub read: &'a ReadSettings,
    /// How cells become states.
    pub scan: &'a ScanSettings,
    /// Names and states, where they are known.
    pub schema: Option<&'a Schema>,
    /// Are missing cells values that were not observed?
    pub marginalise: bool,
}

/// The tables of a fit.
pub struct Tables {
    /// Names and states.
    pub schema: Schema,
    /// The number of states of every column.
    pub states: Vec<usize>,
    /// What there is to say about the columns.
    pub notices: Vec<Notice>,
    /// To learn from.
    pub train: Table,
    /// To validate with.
    pub valid: Table,
    /// Cells of these two that were not observed.
    pub holes: [Missing; 2],
    /// What rows of these two weigh; none: 1 each.
    pub weights: [Vec<f64>; 2],
    /// To test with.
    pub test: Option<Table>,
    /// Are the rows to validate with held out from those to learn from?
    pub held_out: bool,
}

impl Inputs<'_> {
    /// All tables, as states; `on_table` hears what there was in each.
    pub fn read(&self, on_table: &mut dyn FnMut(Source<'_>, &FileFacts)) -> Result<Tables> {
        let others: Vec<Source<'_>> = self.valid.into_iter().collect();
        let (schema, notices) = match self.schema {
            Some(schema) => (schema.clone(), Vec::new()),
            None => {
                let scanned = scan_tables(self.train, &others, self.read, self.scan)?;
                (scanned.schema, scanned.notices)
            }
        };
        let rules = CellRules {
            missing_is_a_state: !self.marginalise,
            unknown_is_unobserved: false,
            incomplete_rows: false,
        };
        let mut table = |source: Source<'_>, holes: bool| -> Result<(Table, Missing)> {
            let (table, holes, facts) = match holes {
                true => read_table_with_holes(source, &schema, self.read, rules)?,
                false => {
                    let (table, facts) = read_table(source, &schema, self.read, rules)?;
                    (table, Missing::default(), facts)
                }
            };
            on_table(source, &facts);
            Ok((table, holes))
        };
        let (mut all, mut all_holes) = table(self.train, self.marginalise)?;
        let mut weights = self.weights.to_vec();
        if !weights.is_empty() {
            // A row that weighs nothing is not there.
            let there = weighing(&weights, all.rows())?;
            if there.len() < weights.len() {
                all_holes = all_holes.select(&there);
                weights = there.iter().map(|&row| weights[row]).collect();
                all = all.select(there);
            }
        }
        let (train, valid, holes, weights, held_out) = match self.valid {
            Some(source) => {
                let (valid, valid_holes) = table(source, self.marginalise)?;
                (all, valid, [all_holes, valid_holes], [weights, Vec::new()], false)
            }
            None => {
                if all.rows() < 2 {
                    let file = match self.train {
                        Source::File(path) => path.to_owned(),
                        Source::Frame(frame) => PathBuf::from(&frame.name),
                    };
                    return Err(ReadError { file, problem: Problem::OneRow }.into());
                }
                if !(self.holdout > 0.0 && self.holdout < 1.0) {
                    bail!("--holdout {}: between 0 and 1", self.holdout);
                }
                let split = split(all.rows(), self.holdout, self.seed);
                let holes = [all_holes.select(&split.train), all_holes.select(&split.valid)];
                let of = |rows: &[usize]| -> Vec<f64> {
                    if weights.is_empty() {
                        Vec::new()
                    } else {
                        rows.iter().map(|&row| weights[row]).collect()
                    }
                };
                let weights = [of(&split.train), of(&split.valid)];
                (all.select(split.train), all.select(split.valid), holes, weights, true)
            }
        };
        // Complete: scores are there for rows that are not.
        let test = self.test.map(|source| table(source, false)).transpose()?.map(|(test, _)| test);
        let states = schema.states();
        Ok(Tables { schema, states, notices, train, valid, holes, weights, test, held_out })
    }
}

/// Rows that weigh something.
fn weighing(weights: &[f64], rows: usize) -> Result<Vec<usize>> {
    if weights.len() != rows {
        bail!("{} weights for {}; one for each is needed", count(weights.len()), plural(rows, "row"));
    }
    if let Some(row) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        bail!("row {row}: weighs {}; weights are finite and not negative", weights[row]);
    }
    let there: Vec<usize> = (0..rows).filter(|&row| weights[row] > 0.0).collect();
    if there.is_empty() {
        bail!("all weights are zero: there is nothing to learn from");
    }
    Ok(there)
}

impl Tables {
    /// What is learned from.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            holes: self.holes.each_ref(),
            weights: self.weights.each_ref().map(|weights| &weights[..]),
            ..Rows::complete(&self.train, &self.valid, &self.states)
        }
    }

    /// Enough to know both tables again.
    pub fn facts(&self) -> [TableFacts; 2] {
        [
            facts_of(&self.train, &self.holes[0], &self.weights[0]),
            facts_of(&self.valid, &self.holes[1], &self.weights[1]),
        ]
    }

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

/// Enough to know a table again, holes, weights and all.
pub fn facts_of(table: &Table, holes: &Missing, weights: &[f64]) -> TableFacts {
    let fingerprint = table.fingerprint() ^ holes.fingerprint() ^ fingerprint_of_weights(weights);
    let unique = table.unique();
    TableFacts {
        rows: unique.rows(),
        unique_rows: unique.table.rows(),
        fingerprint: format!("{fingerprint:016x}"),
    }
}
