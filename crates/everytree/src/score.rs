//! The log-likelihood of every row of a table, as it goes by.

use anyhow::{Context, Result};
use everytree_core::data::Schema;
use everytree_core::data::Table;
use everytree_core::infer::{AskedModel, Effort, Estimate, Evidence, InferError, seed_of};
use everytree_read::{CellRules, FileFacts, Problem, ReadSettings, Row, Source, for_each_row};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Rows at once: memory does not grow with the table.
pub(crate) const CHUNK: usize = 2048;
/// Rows at once on a device, which has more to do at a time.
const DEVICE_CHUNK: usize = 1 << 15;

/// How rows are scored.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    /// Is a missing cell the state "missing", where training had missing cells in its column?
    pub missing_as_state: bool,
    /// Is a label that the model does not know taken for a cell that was not observed?
    pub unknown_is_unobserved: bool,
    /// Standard error of the log-likelihood of an incomplete row that is good enough.
    pub tolerance: f64,
    /// Most trees for an incomplete row.
    pub trees: usize,
    /// Of the random trees.
    pub seed: u64,
    /// How text is read.
    pub read: &'a ReadSettings,
    /// Set by whoever wants it to end.
    pub stop: Option<&'a AtomicBool>,
    /// Who scores complete rows, if not the processor.
    pub scorer: Option<&'a dyn CompleteRows>,
}

/// Someone who scores complete rows beside the processor.
pub trait CompleteRows: Sync {
    /// Is there a device at work?
    fn is_on_device(&self) -> bool;

    /// The log-likelihood of every row, NaN where it is in doubt; nothing if all is left to the processor.
    fn log_p(&self, table: &Table) -> Result<Option<Vec<f64>>>;
}

/// Someone has asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted")]
pub struct Interrupted;

/// What there was in the table that was scored.
#[derive(Clone, Debug)]
pub struct Scored {
    /// Rows, and columns that were passed over.
    pub facts: FileFacts,
    /// Rows with cells that were not observed.
    pub incomplete: usize,
}

impl Scoring<'_> {
    fn rules(&self) -> CellRules {
        CellRules {
            missing_is_a_state: self.missing_as_state,
            unknown_is_unobserved: self.unknown_is_unobserved,
            incomplete_rows: true,
        }
    }

    /// An error if someone has asked to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Interrupted.into()),
            _ => Ok(()),
        }
    }

    /// What one row that is not complete may cost.
    pub(crate) fn effort(&self, row: u64) -> Effort<'static> {
        Effort {
            trees: self.trees,
            tolerance: Some(self.tolerance),
            // Numbers of its own for every row: errors do not add up.
            seed: seed_of(self.seed, row),
            // A millisecond or so of enumeration: trees are faster than more of it.
            operations: 1e8,
            ..Effort::default()
        }
    }

    /// Scores all rows, in order. Of a row that is not complete the score is the log-probability of what was observed.
    pub fn score(
        &self,
        source: Source<'_>,
        schema: &Schema,
        asked: &AskedModel<'_>,
        sink: &mut dyn FnMut(Estimate) -> Result<()>,
    ) -> Result<Scored> {
        let mut incomplete = 0;
        let facts = self.chunks(source, schema, asked, &mut |chunk| {
            incomplete += chunk.incomplete.len();
            chunk.scores(asked, self)?.into_iter().try_for_each(&mut *sink)
        })?;
        Ok(Scored { facts, incomplete })
    }

    /// All rows, some at a time.
    pub(crate) fn chunks(
        &self,
        source: Source<'_>,
        schema: &Schema,
        asked: &AskedModel<'_>,
        on_chunk: &mut dyn FnMut(&Chunk) -> Result<()>,
    ) -> Result<FileFacts> {
        let mut chunk = Chunk { first: 0, rows: Table::new(asked.states()), incomplete: Vec::new() };
        let at_once = match self.scorer {
            Some(scorer) if scorer.is_on_device() => DEVICE_CHUNK,
            _ => CHUNK,
        };
        let mut failed = None;
        let read = for_each_row(source, schema, self.read, self.rules(), &mut |row| {
            let taken = chunk.take(row, asked);
            let full = chunk.rows.rows() == at_once;
            let done =
                taken.and_then(|()| if full { self.go_on().and_then(|()| on_chunk(&chunk)) } else { Ok(()) });
            if full {
                chunk.next();
            }
            done.map_err(|error| {
                failed = Some(error);
                Problem::Format("not read any further".to_owned())
            })
        });
        let name = || match source {
            Source::File(path) => path.display().to_string(),
            Source::Frame(frame) => frame.name.clone(),
        };
        if let Some(error) = failed {
            return Err(error.context(name()));
        }
        let facts = read?;
        if chunk.rows.rows() > 0 {
            on_chunk(&chunk).with_context(name)?;
        }
        Ok(facts)
    }
}

/// Some rows of a table.
pub(crate) struct Chunk {
    /// The number of the first row.
    pub first: u64,
    /// Their codes; of cells that were not observed 0.
    pub rows: Table,
    /// What was observed of rows that are not complete, by their places, and the columns that were not observed.
    pub incomplete: Vec<(usize, Evidence, Vec<usize>)>,
}

impl Chunk {
    fn take(&mut self, row: Row<'_>, asked: &AskedModel<'_>) -> Result<()> {
        // Of a row that is not complete the codes take a place, but are not looked at.
        if !row.unobserved.is_empty() {
            let mut evidence = Evidence::none(asked.states());
            for v in (0..row.codes.len()).filter(|v| !row.unobserved.contains(v)) {
                evidence.set(v, &[row.codes[v].into()])?;
            }
            self.incomplete.push((self.rows.rows(), evidence, row.unobserved.to_vec()));
        }
        self.rows.push(row.codes);
        Ok(())
    }

    fn next(&mut self) {
        self.first += self.rows.rows() as u64;
        self.rows.clear();
        self.incomplete.clear();
    }

    /// The score of every row.
    pub fn scores(&self, asked: &AskedModel<'_>, scoring: &Scoring<'_>) -> Result<Vec<Estimate>> {
        let on_device = scoring.scorer.map(|scorer| scorer.log_p(&self.rows)).transpose()?.flatten();
        let scores = match on_device {
            Some(mut scores) => {
                let doubtful: Vec<usize> = (0..scores.len()).filter(|&row| scores[row].is_nan()).collect();
                if !doubtful.is_empty() {
                    let again = asked.log_p(&self.rows.select(doubtful.iter().copied()))?;
                    doubtful.into_iter().zip(again).for_each(|(row, score)| scores[row] = score);
                }
                scores
            }
            None => asked.log_p(&self.rows)?,
        };
        let mut scores: Vec<Estimate> = scores.into_iter().map(sure).collect();
        let of_one = |(place, evidence, _): &(usize, Evidence, Vec<usize>)| {
            scoring.go_on()?;
            let row = self.first + *place as u64;
            match asked.log_evidence(evidence, scoring.effort(row)) {
                Err(InferError::Impossible) => Ok((*place, sure(f64::NEG_INFINITY))),
                other => Ok((*place, other.with_context(|| format!("row {row}"))?)),
            }
        };
        let estimates: Result<Vec<(usize, Estimate)>> = self.incomplete.par_iter().map(of_one).collect();
        estimates?.into_iter().for_each(|(place, estimate)| scores[place] = estimate);
        Ok(scores)
    }
}

pub(crate) fn sure(value: f64) -> Estimate {
    Estimate { value, standard_error: 0.0 }
}
