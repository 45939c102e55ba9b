//! `everytree map`: the most probable rows.

use crate::Outcome;
use crate::data::use_threads;
use crate::given::evidence;
use anyhow::{Result, bail};
use clap::Args;
use everytree::file::ModelFile;
use everytree::infer::{InferError, Search, most_probable};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// The most probable rows, given the values of some columns or none.
///
/// Proven by looking at every row where there are few enough; otherwise the best that a search has found, with its exact
/// probability.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree map survey.everytree --given smoker=yes\n  everytree map survey.everytree -n 5 --json"
)]
pub struct Map {
    /// Model file.
    model: PathBuf,
    /// How many rows.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "K")]
    rows: usize,
    /// What is known: a value, or several of which it is one (repeatable).
    #[arg(long, value_name = "COLUMN=VALUE[,VALUE]")]
    given: Vec<String>,
    /// Random trees to begin the search with.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    trees: usize,
    /// Seed of the search.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

impl Map {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if self.rows == 0 {
            bail!("-n 0: at least one row");
        }
        let file = ModelFile::load(&self.model)?;
        let known = evidence(&file.schema, &self.given)?;
        let search = Search { trees: self.trees, seed: self.seed, ..Search::default() };
        let found = match most_probable(&file.model.asked()?, &known, self.rows, search) {
            Err(InferError::Impossible) => {
                note!("everytree: {}", InferError::Impossible);
                return Ok(Outcome::No);
            }
            other => other?,
        };
        let labels: Vec<Vec<String>> =
            file.schema.variables.iter().map(|variable| variable.labels()).collect();
        let value = |v: usize, state: u16| labels[v][usize::from(state)].clone();
        let mut out = std::io::stdout().lock();
        if self.json {
            let rows: Vec<_> = found
                .iter()
                .map(|row| {
                    let cells = row.row.iter().enumerate();
                    let values = cells
                        .map(|(v, &state)| (file.schema.variables[v].name.clone(), json!(value(v, state))));
                    let values: serde_json::Map<String, serde_json::Value> = values.collect();
                    json!({"values": values, "log_likelihood": row.log_p, "proven": row.proven})
                })
                .collect();
            writeln!(out, "{}", json!({ "rows": rows }))?;
            return Ok(Outcome::Done);
        }
        let width =
            file.schema.variables.iter().map(|variable| variable.name.chars().count()).max().unwrap_or(0);
        for (place, row) in found.iter().enumerate() {
            let how = if row.proven { "proven" } else { "the best found, not proven" };
            writeln!(out, "{}. log-probability {:.4} ({how})", place + 1, row.log_p)?;
            for (v, &state) in row.row.iter().enumerate() {
                let label = value(v, state);
                let label = if label.is_empty() { "(missing)" } else { &label };
                let given = if known.is_given(v) { "  (given)" } else { "" };
                writeln!(out, "   {:<width$}  {label}{given}", file.schema.variables[v].name)?;
            }
        }
        Ok(Outcome::Done)
    }
}
