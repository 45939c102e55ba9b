//! `everytree score`: the log-likelihood of every row of a table.

use crate::Outcome;
use crate::data::{TextArguments, count, say_ignored, use_threads};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use everytree::file::{ModelFile, write_through};
use everytree::forest::Cpu;
use everytree::model::{Learnable, Moat, ModelError, Ready};
use everytree::table::Table;
use everytree_read::{CellRules, Problem, for_each_row};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Rows at once: memory does not grow with the file.
const CHUNK: usize = 2048;
/// Rows that a summary names.
const LEAST_LIKELY: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unknown {
    /// An error that names the cell.
    Error,
    /// As if the cell had not been observed.
    Unobserved,
}

/// Log-likelihood of every row of a table under a model.
///
/// Writes CSV: row (from 0) and log-likelihood in nats, evaluated in f64. The file is read as a stream: it may be
/// larger than memory.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree score model.everytree new.csv --out scores.csv\n  everytree score model.everytree new.csv --summary"
)]
pub struct Score {
    /// Model file.
    model: PathBuf,
    /// Table of rows, with the columns of the model.
    data: PathBuf,
    /// Where the scores go. Default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print mean, standard error, bits per row and the least likely rows instead of every score.
    #[arg(long)]
    summary: bool,
    /// What to do with a label that the model does not know.
    #[arg(long, default_value = "error", value_name = "error|unobserved", hide_possible_values = true)]
    unknown: Unknown,
    /// Score a missing cell as the state "missing", where training had missing cells in its column.
    #[arg(long)]
    missing_as_state: bool,
    #[command(flatten)]
    text: TextArguments,
    /// Threads. Default: all.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print the summary as one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

impl Score {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let file = ModelFile::load(&self.model)?;
        let mut summary = Summary::default();
        let quiet = (self.summary || self.json) && self.out.is_none();
        match &self.out {
            Some(path) => write_through(path, |out| self.stream(&file, &mut summary, Some(out)))
                .with_context(|| path.display().to_string())??,
            None if quiet => self.stream(&file, &mut summary, None)?,
            None => {
                let mut out = BufWriter::new(std::io::stdout().lock());
                self.stream(&file, &mut summary, Some(&mut out))?;
                out.flush()?;
            }
        }
        if self.summary || self.json {
            summary.print(self.json)?;
        }
        Ok(Outcome::Done)
    }

    fn stream<'a>(
        &self,
        file: &'a ModelFile,
        summary: &'a mut Summary,
        out: Option<&'a mut (dyn Write + 'a)>,
    ) -> Result<()> {
        let mut scorer = Scorer::new(&file.model, summary, out)?;
        let rules = CellRules {
            missing_is_a_state: self.missing_as_state,
            unknown_is_unobserved: self.unknown == Unknown::Unobserved,
        };
        let mut failed = None;
        let read = for_each_row(&self.data, &file.schema, &self.text.settings(), rules, &mut |row| {
            scorer.table.push(row);
            if scorer.table.rows() == CHUNK
                && let Err(error) = scorer.flush()
            {
                failed = Some(error);
                return Err(Problem::Format("not scored any further".to_owned()));
            }
            Ok(())
        });
        match failed {
            Some(error) => Err(error),
            None => {
                say_ignored(&self.data, &read?);
                scorer.flush()
            }
        }
    }
}

/// Scores rows by the chunk.
struct Scorer<'a> {
    model: &'a Moat,
    backend: Cpu<f64>,
    ready: Ready<Cpu<f64>>,
    table: Table,
    scores: Vec<f64>,
    summary: &'a mut Summary,
    out: Option<&'a mut (dyn Write + 'a)>,
}

impl<'a> Scorer<'a> {
    fn new(
        model: &'a Moat,
        summary: &'a mut Summary,
        mut out: Option<&'a mut (dyn Write + 'a)>,
    ) -> Result<Self> {
        let backend = Cpu::new().keeping(0);
        let ready = model.ready(&backend).map_err(|error: ModelError| anyhow::anyhow!(error))?;
        if let Some(out) = &mut out {
            writeln!(out, "row,log_likelihood")?;
        }
        Ok(Self {
            model,
            backend,
            ready,
            table: Table::new(model.states()),
            scores: Vec::new(),
            summary,
            out,
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.scores.resize(self.table.rows(), 0.0);
        self.model.log_likelihood(&self.backend, &mut self.ready, self.table.codes(), &mut self.scores)?;
        for &score in &self.scores {
            if let Some(out) = &mut self.out {
                writeln!(out, "{},{score}", self.summary.rows)?;
            }
            self.summary.take(score);
        }
        self.table.clear();
        Ok(())
    }
}

/// Mean and spread as they run, and the rows at the bottom.
#[derive(Default)]
struct Summary {
    rows: usize,
    impossible: usize,
    mean: f64,
    squares: f64,
    least: Vec<(usize, f64)>,
}

impl Summary {
    fn take(&mut self, score: f64) {
        let row = self.rows;
        self.rows += 1;
        if score == f64::NEG_INFINITY {
            self.impossible += 1;
        }
        // Welford.
        let before = score - self.mean;
        self.mean += before / self.rows as f64;
        self.squares += before * (score - self.mean);
        if self.least.len() < LEAST_LIKELY || score < self.least[self.least.len() - 1].1 {
            let place = self.least.partition_point(|&(_, other)| other <= score);
            self.least.insert(place, (row, score));
            self.least.truncate(LEAST_LIKELY);
        }
    }

    fn print(&self, json: bool) -> Result<()> {
        let rows = self.rows as f64;
        let mean = if self.impossible > 0 { f64::NEG_INFINITY } else { self.mean };
        let error = (self.squares / (rows - 1.0).max(1.0) / rows).sqrt();
        let mut out = std::io::stdout().lock();
        if json {
            // −∞ is null, and says so.
            let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
            let row = |&(row, score): &(usize, f64)| {
                let mut entry = json!({"row": row, "log_likelihood": number(score)});
                if score == f64::NEG_INFINITY {
                    entry["impossible"] = json!(true);
                }
                entry
            };
            let mut object = json!({
                "rows": self.rows,
                "mean_log_likelihood": number(mean),
                "standard_error": number(error),
                "bits_per_row": number(-mean / std::f64::consts::LN_2),
                "least_likely": self.least.iter().map(row).collect::<Vec<_>>(),
            });
            if self.impossible > 0 {
                object["impossible"] = json!(true);
                object["impossible_rows"] = json!(self.impossible);
            }
            writeln!(out, "{object}")?;
            return Ok(());
        }
        writeln!(out, "rows             {}", count(self.rows))?;
        if self.impossible > 0 {
            writeln!(out, "impossible rows  {}", count(self.impossible))?;
        }
        writeln!(out, "log-likelihood   {mean:.4} nats a row, standard error {error:.4}")?;
        writeln!(out, "bits per row     {:.4}", -mean / std::f64::consts::LN_2)?;
        writeln!(out, "least likely rows:")?;
        for (row, score) in &self.least {
            writeln!(out, "  row {row:<8} {score:.4}")?;
        }
        Ok(())
    }
}
