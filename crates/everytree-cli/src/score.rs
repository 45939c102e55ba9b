//! `everytree score`: the log-likelihood of every row of a table.

use crate::Outcome;
use crate::data::{Format, TextArguments, UnknownChoice, compressed, say_ignored, use_threads};
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{DeviceChoice, Estimate, Model, Spelling, count, spelled};
use everytree_core::file::write_through;
use everytree_read::write_scores;
use serde_json::{Value, json};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// Scores that are kept in memory before they go to a temporary file.
const IN_MEMORY: usize = 1 << 26;
/// Rows that a summary names.
const LEAST_LIKELY: usize = 10;

/// Log-likelihood of every row of a table under a model.
///
/// Writes CSV: row (from 0) and log-likelihood in nats, evaluated in f64. Of a row with missing cells it is the log-probability
/// of the cells that were observed: exact for one tree and where few are missing, otherwise from random trees, and one more column has its
/// standard error. The file is read as a stream: it may be larger than memory.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree score model.everytree new.csv --out scores.csv\n  everytree score model.everytree new.csv --summary"
)]
pub struct Score {
    /// Model file.
    model: PathBuf,
    /// Table of rows, with the columns of the model.
    data: PathBuf,
    /// Where the scores go, as CSV, TSV (each with .gz or without) or Parquet, by the name. Default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print mean, standard error, bits per row and the least likely rows instead of every score.
    #[arg(long)]
    summary: bool,
    /// What to do with a label that the model does not know.
    #[arg(long, default_value = "error", value_name = "error|unobserved", hide_possible_values = true)]
    unknown: UnknownChoice,
    /// Score a missing cell as the state "missing", where training had missing cells in its column.
    #[arg(long)]
    missing_as_state: bool,
    /// Standard error of the log-likelihood of an incomplete row that is good enough.
    #[arg(long, default_value_t = 0.05, value_name = "X")]
    tolerance: f64,
    /// Most trees to draw for an incomplete row.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    trees: usize,
    /// Seed of the random trees.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    text: TextArguments,
    /// Where complete rows are scored: auto (a GPU where there is one, from 128 columns on), cpu, cuda or cuda:N.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|cuda[:N]", hide_default_value = true)]
    device: DeviceChoice,
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
        Files::default()
            .input("the model", Some(&self.model))
            .input("the table", Some(&self.data))
            .output("--out", self.out.as_ref())
            .check()?;
        if let Some(path) = self.out.as_ref().filter(|path| Format::of(path) == Format::Arrow) {
            bail!("--out {}: scores are written as CSV, TSV or Parquet", path.display());
        }
        let mut scores = self.scores(&Model::load(&self.model)?)?;
        match &self.out {
            Some(path) => scores.save(path)?,
            None if self.summary || self.json => {}
            None => {
                let mut out = BufWriter::new(crate::shown::rows_out());
                scores.write(&mut out, b',')?;
                out.flush()?;
            }
        }
        if self.summary || self.json {
            scores.summary.print(self.json)?;
        }
        Ok(Outcome::Done)
    }

    /// All scores of the file.
    fn scores(&self, model: &Model) -> Result<Scores> {
        let note = |text: String| note!("note: {}", spelled(&text, Spelling::Flags));
        let scoring = model
            .scoring()
            .missing_as_state(self.missing_as_state)
            .unknown(self.unknown.into())
            .tolerance(self.tolerance)
            .trees(self.trees)
            .seed(self.seed)
            .read(self.text.settings())
            .device(self.device)
            .note(&note);
        let mut scores = Scores::new();
        let streamed = scoring
            .stream(&self.data, &mut |score| scores.push(score).map_err(everytree::Error::while_writing))?;
        say_ignored(&self.data, &streamed.ignored);
        scores.incomplete = streamed.incomplete;
        Ok(scores)
    }
}

/// The scores of a file, in the order of its rows. Whether there is a column of errors is known only at its end.
struct Scores {
    spool: BufWriter<SpooledTempFile>,
    incomplete: usize,
    summary: Summary,
}

impl Scores {
    fn new() -> Self {
        let spool = BufWriter::new(SpooledTempFile::new(IN_MEMORY));
        Self { spool, incomplete: 0, summary: Summary::default() }
    }

    fn push(&mut self, score: Estimate) -> std::io::Result<()> {
        self.spool.write_all(&score.value.to_le_bytes())?;
        self.spool.write_all(&score.standard_error.to_le_bytes())?;
        self.summary.take(score.value);
        Ok(())
    }

    /// Every score and its error, from the first row on.
    fn all(&mut self) -> Result<impl Iterator<Item = std::io::Result<(f64, f64)>>> {
        self.spool.flush()?;
        let spool = self.spool.get_mut();
        spool.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(spool);
        let mut number = move || -> std::io::Result<f64> {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            Ok(f64::from_le_bytes(bytes))
        };
        Ok((0..self.summary.rows).map(move |_| Ok((number()?, number()?))))
    }

    fn write(&mut self, out: &mut dyn Write, delimiter: u8) -> Result<()> {
        let (with_errors, d) = (self.incomplete > 0, char::from(delimiter));
        let errors = if with_errors { format!("{d}standard_error") } else { String::new() };
        writeln!(out, "row{d}log_likelihood{errors}")?;
        for (row, both) in self.all()?.enumerate() {
            match both? {
                (score, error) if with_errors => writeln!(out, "{row}{d}{score}{d}{error}")?,
                (score, _) => writeln!(out, "{row}{d}{score}")?,
            }
        }
        Ok(())
    }

    /// Into a file, in the format that its name says.
    fn save(&mut self, path: &Path) -> Result<()> {
        let with_errors = self.incomplete > 0;
        write_through(path, |out| match Format::of(path) {
            Format::Text(delimiter) => compressed(path, out, |out| self.write(out, delimiter)),
            Format::Parquet | Format::Arrow => Ok(write_scores(out, with_errors, self.all()?)?),
        })
        .with_context(|| path.display().to_string())?
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
        let mut out = crate::shown::out();
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
        match self.impossible {
            0 => writeln!(out, "log-likelihood   {mean:.4} nats a row, standard error {error:.4}")?,
            _ => writeln!(out, "log-likelihood   {mean:.4} nats a row")?,
        }
        writeln!(out, "bits per row     {:.4}", -mean / std::f64::consts::LN_2)?;
        writeln!(out, "least likely rows:")?;
        for (row, score) in &self.least {
            writeln!(out, "  row {row:<8} {score:.4}")?;
        }
        Ok(())
    }
}
