//! `everytree impute`: a table with its missing cells filled in.

use crate::Outcome;
use crate::data::{Format, TextArguments, Unknown, compressed, count, plural, say_ignored, use_threads};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use everytree::file::{ModelFile, write_through};
use everytree::infer::{AskedModel, Effort, Estimate, Evidence, InferError, Sampling, Search, seed_of};
use everytree::schema::{Schema, States, Variable};
use everytree_read::{CellRules, Fill, Row, copy_filled, for_each_row};
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Operations of enumeration for one row: a few milliseconds. Trees are faster than more of it.
const OPERATIONS: f64 = 3e8;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// The most probable way to complete the row.
    Map,
    /// One way by chance, as probable as the model says.
    Sample,
    /// Each cell by itself: its most probable value; of columns of numbers, the value nearest to the mean.
    MeanState,
}

/// Fill the missing cells of a table.
///
/// Only missing cells change, and they get values that were seen in training; everything else, columns that the model does
/// not know included, is copied as it is, in the format of the input (text, Parquet or Arrow). A cell of a column that was
/// cut into bins gets a number in the middle of its bin.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree impute survey.everytree holes.csv --out whole.csv\n  everytree impute survey.everytree holes.csv --out whole.csv --how sample --seed 7 --probabilities"
)]
pub struct Impute {
    /// Model file.
    model: PathBuf,
    /// Table with missing cells, with the columns of the model.
    data: PathBuf,
    /// Where the filled table goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// map (the most probable way to complete a row), sample (one by chance), or mean-state (each cell by itself).
    #[arg(long, default_value = "map", value_name = "map|sample|mean-state", hide_possible_values = true)]
    how: How,
    /// Also write FILE.probabilities.csv: row, column, value and its probability for every cell that was filled.
    #[arg(long)]
    probabilities: bool,
    /// What to do with a label that the model does not know: `error`, or `unobserved` (it stays as it is).
    #[arg(long, default_value = "error", value_name = "error|unobserved", hide_possible_values = true)]
    unknown: Unknown,
    #[command(flatten)]
    text: TextArguments,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// A row with missing cells.
struct Hole {
    row: u64,
    codes: Vec<u16>,
    /// Variables whose cells were not observed.
    unobserved: Vec<usize>,
    /// Those of them that are to be filled.
    missing: Vec<usize>,
}

impl Hole {
    /// What is known; of what is to be filled, that it is one of the values seen in training.
    fn evidence(&self, schema: &Schema) -> Result<Evidence> {
        let mut evidence = Evidence::none(&schema.states());
        for (v, variable) in schema.variables.iter().enumerate() {
            if self.missing.contains(&v) {
                evidence.set(v, &(0..variable.states.len()).collect::<Vec<usize>>())?;
            } else if !self.unobserved.contains(&v) {
                evidence.set(v, &[self.codes[v].into()])?;
            }
        }
        Ok(evidence)
    }
}

/// One filled cell.
struct Filled {
    row: u64,
    variable: usize,
    state: usize,
    probability: Option<Estimate>,
}

impl Impute {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if Format::of(&self.out) != Format::of(&self.data) {
            bail!("--out {}: the filled table has the format of {}", self.out.display(), self.data.display());
        }
        let file = ModelFile::load(&self.model)?;
        let asked = file.model.asked()?;
        let (holes, rows) = self.holes(&file.schema)?;
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows with missing cells, {eta} left")?;
        let bar = ProgressBar::new(holes.len() as u64).with_style(style);
        let filled: Result<Vec<Vec<Filled>>> = holes
            .par_iter()
            .progress_with(bar.clone())
            .map(|hole| {
                let filled = self.fill(&file.schema, &asked, hole);
                filled.with_context(|| format!("{}: row {}", self.data.display(), hole.row))
            })
            .collect();
        bar.finish_and_clear();
        let filled: Vec<Filled> = filled?.into_iter().flatten().collect();
        let fills: Vec<Fill> = filled
            .iter()
            .map(|cell| Fill {
                row: cell.row,
                variable: cell.variable,
                text: file.schema.variables[cell.variable].cell(cell.state),
            })
            .collect();
        write_through(&self.out, |out| {
            compressed(&self.out, out, |out| -> Result<()> {
                Ok(copy_filled(&self.data, &file.schema, &self.text.settings(), &fills, out)?)
            })
        })
        .with_context(|| self.out.display().to_string())??;
        let beside = self.probabilities.then(|| beside(&self.out));
        if let Some(path) = &beside {
            write_through(path, |out| write_probabilities(out, &file.schema, &filled))
                .with_context(|| path.display().to_string())??;
        }
        if self.json {
            let object = json!({
                "rows": rows, "incomplete_rows": holes.len(), "cells": filled.len(), "out": self.out,
                "probabilities": beside,
            });
            writeln!(std::io::stdout().lock(), "{object}")?;
        } else {
            note!(
                "filled {} in {} of {}; wrote {}",
                plural(filled.len(), "cell"),
                count(holes.len()),
                plural(rows as usize, "row"),
                self.out.display()
            );
        }
        Ok(Outcome::Done)
    }

    /// Rows with cells to fill, and how many rows there are.
    fn holes(&self, schema: &Schema) -> Result<(Vec<Hole>, u64)> {
        let rules = CellRules {
            missing_is_a_state: false,
            unknown_is_unobserved: self.unknown == Unknown::Unobserved,
            incomplete_rows: true,
        };
        let mut holes = Vec::new();
        let mut never_seen = vec![0usize; schema.variables.len()];
        let mut number = 0;
        let mut take = |row: Row<'_>| {
            let fillable = |v: &usize| !schema.variables[*v].states.is_empty();
            let (missing, lost): (Vec<usize>, Vec<usize>) =
                row.unobserved.iter().copied().filter(|v| !row.unknown.contains(v)).partition(fillable);
            lost.iter().for_each(|&v| never_seen[v] += 1);
            if !missing.is_empty() {
                let (codes, unobserved) = (row.codes.to_vec(), row.unobserved.to_vec());
                holes.push(Hole { row: number, codes, unobserved, missing });
            }
            number += 1;
            Ok(())
        };
        let facts = for_each_row(&self.data, schema, &self.text.settings(), rules, &mut take)?;
        say_ignored(&self.data, &facts);
        for (v, &cells) in never_seen.iter().enumerate().filter(|(_, cells)| **cells > 0) {
            note!(
                "note: column {:?} was always missing in training: {} left as they are",
                schema.variables[v].name,
                plural(cells, "cell")
            );
        }
        Ok((holes, facts.rows))
    }

    fn fill(&self, schema: &Schema, asked: &AskedModel<'_>, hole: &Hole) -> Result<Vec<Filled>> {
        // Numbers of its own for every row.
        let seed = seed_of(self.seed, hole.row);
        let evidence = &hole.evidence(schema)?;
        let effort = Effort {
            trees: 20_000,
            tolerance: Some(0.02),
            seed,
            targets: &hole.missing,
            operations: OPERATIONS,
        };
        let posterior = if self.probabilities || self.how == How::MeanState {
            Some(asked.posterior(evidence, None, effort).map_err(explain)?)
        } else {
            None
        };
        let row: Vec<u16> = match self.how {
            How::Map => {
                let search = Search { trees: 64, climbs: 2, seed, operations: OPERATIONS };
                let found = asked.most_probable(evidence, 1, search).map_err(explain)?;
                found.into_iter().next().map(|best| best.row).unwrap_or_default()
            }
            How::Sample => {
                let sampling = Sampling { seed, operations: OPERATIONS };
                asked.sample(evidence, 1, sampling).map_err(explain)?.0.swap_remove(0)
            }
            How::MeanState => {
                let mut row = vec![0; asked.states().len()];
                if let Some(posterior) = &posterior {
                    for &v in &hole.missing {
                        row[v] = by_itself(&schema.variables[v], &posterior.states[v]);
                    }
                }
                row
            }
        };
        let filled = |&variable: &usize| {
            let state = usize::from(row[variable]);
            let probability =
                posterior.as_ref().filter(|_| self.probabilities).map(|found| found.states[variable][state]);
            Filled { row: hole.row, variable, state, probability }
        };
        Ok(hole.missing.iter().map(filled).collect())
    }
}

fn explain(error: InferError) -> anyhow::Error {
    match error {
        InferError::Impossible | InferError::Unexplained { .. } => {
            anyhow::anyhow!(
                "its observed cells are impossible under this model: nothing can be said of the others"
            )
        }
        other => other.into(),
    }
}

/// The value of a cell by itself: of numbers the one nearest to the mean, else the most probable.
fn by_itself(variable: &Variable, posterior: &[Estimate]) -> u16 {
    let numbers: Option<Vec<f64>> = match &variable.states {
        States::Integers(values) => Some(values.iter().map(|&value| value as f64).collect()),
        States::Reals(values) => Some(values.clone()),
        States::Booleans(_) | States::Texts(_) | States::Bins(_) => None,
    };
    let seen = &posterior[..variable.states.len()];
    let best = match numbers {
        Some(numbers) => {
            let mean: f64 = numbers.iter().zip(seen).map(|(x, p)| x * p.value).sum();
            let off = |i: &usize| (numbers[*i] - mean).abs();
            (0..numbers.len()).min_by(|a, b| off(a).total_cmp(&off(b)))
        }
        // Of equals the first.
        None => (0..seen.len()).rev().max_by(|a, b| seen[*a].value.total_cmp(&seen[*b].value)),
    };
    best.unwrap_or(0) as u16
}

fn beside(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".probabilities.csv");
    name.into()
}

fn write_probabilities(out: &mut dyn Write, schema: &Schema, filled: &[Filled]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["row", "column", "value", "probability", "standard_error"])?;
    for cell in filled {
        let variable = &schema.variables[cell.variable];
        let estimate = cell.probability.unwrap_or(Estimate { value: f64::NAN, standard_error: f64::NAN });
        writer.write_record([
            &cell.row.to_string(),
            &variable.name,
            &variable.label(cell.state),
            &estimate.value.to_string(),
            &estimate.standard_error.to_string(),
        ])?;
    }
    writer.flush()?;
    Ok(())
}
