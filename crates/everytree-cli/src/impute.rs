//! `everytree impute`: a table with its missing cells filled in.

use crate::Outcome;
use crate::data::{Format, TextArguments, UnknownChoice, compressed, say_ignored, use_threads};
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use everytree::{Estimate, ImputeMethod, ImputedCell, Model, Schema, count, plural};
use everytree_core::file::write_through;
use everytree_read::{Fill, copy_filled, readable_twice};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowChoice {
    /// The most probable way to complete the row.
    Map,
    /// One way at random, as probable as the model says.
    Sample,
    /// Each cell alone: its most probable value; of columns of numbers, the value nearest to the mean.
    MeanState,
}

impl From<HowChoice> for ImputeMethod {
    fn from(choice: HowChoice) -> Self {
        match choice {
            HowChoice::Map => Self::Map,
            HowChoice::Sample => Self::Sample,
            HowChoice::MeanState => Self::MeanState,
        }
    }
}

/// Fill the missing cells of a table.
///
/// Only missing cells change, and they get values that were seen in training; everything else, columns that the model does
/// not know included, is copied as it is, in the format of the input (text, Parquet or Arrow). A cell of a column that was
/// cut into bins gets a number in the middle of its bin.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree impute survey.everytree incomplete.csv --out whole.csv\n  everytree impute survey.everytree incomplete.csv --out whole.csv --how sample --seed 7 --probabilities"
)]
pub struct Impute {
    /// Model file.
    model: PathBuf,
    /// Table with missing cells, with the columns of the model.
    data: PathBuf,
    /// Where the filled table goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// map (the most probable way to complete a row), sample (one at random), or mean-state (each cell alone).
    #[arg(long, default_value = "map", value_name = "map|sample|mean-state", hide_possible_values = true)]
    how: HowChoice,
    /// Also write FILE.probabilities.csv: row, column, value and its probability for every cell that was filled.
    #[arg(long)]
    probabilities: bool,
    /// What to do with a label that the model does not know: `error`, or `unobserved` (it stays as it is).
    #[arg(long, default_value = "error", value_name = "error|unobserved|other", hide_possible_values = true)]
    unknown: UnknownChoice,
    /// Evidence about missing cells (repeatable), as in `query`: only such values fill them.
    #[arg(long, value_name = "CONDITION")]
    given: Vec<String>,
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
        if Format::to_write(&self.out)? != Format::of(&self.data) {
            bail!("--out {}: the filled table has the format of {}", self.out.display(), self.data.display());
        }
        let beside = self.probabilities.then(|| beside(&self.out));
        Files::default()
            .input("the model", Some(&self.model))
            .input("the table", Some(&self.data))
            .output("--out", Some(&self.out))
            .output("--probabilities", beside.as_ref())
            .check()?;
        readable_twice(&self.data)?;
        let model = Model::load(&self.model)?;
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows with missing cells, {eta} left")?;
        let bar = ProgressBar::new(0).with_style(style);
        let on_row = |rows: usize| {
            bar.set_length(rows as u64);
            bar.inc(1);
        };
        let known = crate::given::evidence(&model, "--given ", &self.given)?;
        let imputed = model
            .imputation()
            .evidence(known)
            .method(self.how.into())
            .probabilities(self.probabilities)
            .unknown(self.unknown.into())
            .seed(self.seed)
            .read(self.text.settings())
            .on_row(&on_row)
            .cells(&self.data);
        bar.finish_and_clear();
        let imputed = imputed?;
        say_ignored(&self.data, &imputed.ignored);
        if imputed.unknown > 0 {
            note!(
                "note: {}: {} that the model does not know: taken for not observed, and left as they are",
                self.data.display(),
                plural(imputed.unknown as usize, "label")
            );
        }
        let variables = &model.schema().variables;
        for (v, &cells) in imputed.never_seen.iter().enumerate().filter(|(_, cells)| **cells > 0) {
            note!(
                "note: column {:?} was always missing in training: {} left as they are",
                variables[v].name,
                plural(cells, "cell")
            );
        }
        let fills: Vec<Fill> = imputed
            .cells
            .iter()
            .map(|cell| Fill { row: cell.row, variable: cell.variable, text: cell.text(model.schema()) })
            .collect();
        write_through(&self.out, |out| {
            compressed(&self.out, out, |out| -> Result<()> {
                Ok(copy_filled(&self.data, model.schema(), &self.text.settings(), &fills, out)?)
            })
        })
        .with_context(|| self.out.display().to_string())??;
        if let Some(path) = &beside {
            write_through(path, |out| write_probabilities(out, model.schema(), &imputed.cells))
                .with_context(|| path.display().to_string())??;
        }
        if self.json {
            let object = json!({
                "rows": imputed.rows, "incomplete_rows": imputed.incomplete_rows, "cells": imputed.cells.len(), "out": self.out,
                "probabilities": beside,
            });
            writeln!(crate::shown::out(), "{object}")?;
        } else {
            note!(
                "filled {} in {} of {}; wrote {}",
                plural(imputed.cells.len(), "cell"),
                count(imputed.incomplete_rows),
                plural(imputed.rows as usize, "row"),
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

fn write_probabilities(out: &mut dyn Write, schema: &Schema, filled: &[ImputedCell]) -> Result<()> {
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
