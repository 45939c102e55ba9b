//! `everytree impute`: a table with its missing cells filled in.

use crate::Outcome;
use crate::data::{Format, TextArguments, Unknown, compressed, say_ignored, use_threads};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use everytree::{Filled, How, Imputation, IncompleteRows, count, plural};
use everytree_core::data::Schema;
use everytree_core::file::{ModelFile, write_through};
use everytree_core::infer::Estimate;
use everytree_read::{Fill, copy_filled};
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowChoice {
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
    how: HowChoice,
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

impl Impute {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if Format::of(&self.out) != Format::of(&self.data) {
            bail!("--out {}: the filled table has the format of {}", self.out.display(), self.data.display());
        }
        let file = ModelFile::load(&self.model)?;
        let asked = file.model.asked()?;
        let imputation = Imputation {
            how: match self.how {
                HowChoice::Map => How::Map,
                HowChoice::Sample => How::Sample,
                HowChoice::MeanState => How::MeanState,
            },
            probabilities: self.probabilities,
            unknown_is_unobserved: self.unknown == Unknown::Unobserved,
            seed: self.seed,
        };
        let IncompleteRows { rows: holes, facts, never_seen } =
            imputation.incomplete_rows((&self.data).into(), &file.schema, &self.text.settings())?;
        let rows = facts.rows;
        say_ignored(&self.data, &facts);
        for (v, &cells) in never_seen.iter().enumerate().filter(|(_, cells)| **cells > 0) {
            note!(
                "note: column {:?} was always missing in training: {} left as they are",
                file.schema.variables[v].name,
                plural(cells, "cell")
            );
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows with missing cells, {eta} left")?;
        let bar = ProgressBar::new(holes.len() as u64).with_style(style);
        let filled: Result<Vec<Vec<Filled>>> = holes
            .par_iter()
            .progress_with(bar.clone())
            .map(|hole| {
                let filled = imputation.fill(&file.schema, &asked, hole);
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
