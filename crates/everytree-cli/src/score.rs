//! `everytree score`: the log-likelihood of every row of a table.

use crate::Outcome;
use crate::data::{Format, TextArguments, UnknownChoice, compressed, say_ignored, say_unknown, use_threads};
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{DeviceChoice, Estimate, Model, Spelling, count, spelled};
use everytree_core::file::write_through;
use everytree_read::{ScoredRow, io_error, write_scores};
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
    #[arg(long, default_value = "error", value_name = "error|unobserved|other", hide_possible_values = true)]
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
        self.out.as_deref().map(Format::to_write).transpose()?;
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
        let bar = crate::progress::bar(self.json, "{spinner} {human_pos} rows scored, {per_sec}")?;
        let on_rows = |rows: u64| bar.set_position(rows);
        let streamed = scoring.on_rows(&on_rows).stream_with_ids(&self.data, &mut |ids, score| {
            scores.push(ids, score).map_err(everytree::Error::while_writing)
        });
        bar.finish_and_clear();
        let streamed = streamed?;
        say_ignored(&self.data, &streamed.ignored);
        say_unknown(&self.data, streamed.unknown);
        (scores.incomplete, scores.ids) = (streamed.incomplete, streamed.ids);
        Ok(scores)
    }
}

/// The scores of a file, in the order of its rows. Whether there is a column of errors is known only at its end.
struct Scores {
    spool: BufWriter<SpooledTempFile>,
    incomplete: usize,
    /// The columns that tell rows apart.
    ids: Vec<String>,
    summary: Summary,
}

impl Scores {
    fn new() -> Self {
        let spool = BufWriter::new(SpooledTempFile::new(IN_MEMORY));
        Self { spool, incomplete: 0, ids: Vec::new(), summary: Summary::default() }
    }

    fn push(&mut self, ids: &[String], score: Estimate) -> std::io::Result<()> {
        self.spool.write_all(&score.value.to_le_bytes())?;
        self.spool.write_all(&score.standard_error.to_le_bytes())?;
        for id in ids {
            self.spool.write_all(&(id.len() as u64).to_le_bytes())?;
            self.spool.write_all(id.as_bytes())?;
        }
        self.summary.take(ids, score.value);
        Ok(())
    }

    /// Every score with its error and what tells its row apart, from the first row on.
    fn all(&mut self) -> Result<impl Iterator<Item = std::io::Result<ScoredRow>>> {
        self.spool.flush()?;
        let spool = self.spool.get_mut();
        spool.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(spool);
        let columns = self.ids.len();
        let mut row = move || -> std::io::Result<ScoredRow> {
            let mut eight = || -> std::io::Result<[u8; 8]> {
                let mut bytes = [0; 8];
                input.read_exact(&mut bytes)?;
                Ok(bytes)
            };
            let (log_likelihood, standard_error) =
                (f64::from_le_bytes(eight()?), f64::from_le_bytes(eight()?));
            let mut ids = Vec::with_capacity(columns);
            for _ in 0..columns {
                let mut length = [0; 8];
                input.read_exact(&mut length)?;
                let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
                input.read_exact(&mut bytes)?;
                ids.push(String::from_utf8(bytes).map_err(std::io::Error::other)?);
            }
            Ok(ScoredRow { ids, log_likelihood, standard_error })
        };
        Ok((0..self.summary.rows).map(move |_| row()))
    }

    fn write(&mut self, out: &mut dyn Write, delimiter: u8) -> Result<()> {
        let with_errors = self.incomplete > 0;
        let ids = self.ids.clone();
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        let names = std::iter::once("row").chain(ids.iter().map(String::as_str));
        let names = names.chain(["log_likelihood"]).chain(with_errors.then_some("standard_error"));
        writer.write_record(names).map_err(io_error)?;
        for (number, row) in self.all()?.enumerate() {
            let row = row?;
            let numbers = [row.log_likelihood, row.standard_error].map(|number| number.to_string());
            let cells = std::iter::once(number.to_string()).chain(row.ids);
            let numbers = numbers.into_iter().take(1 + usize::from(with_errors));
            writer.write_record(cells.chain(numbers)).map_err(io_error)?;
        }
        Ok(writer.flush()?)
    }

    /// Into a file, in the format that its name says.
    fn save(&mut self, path: &Path) -> Result<()> {
        let with_errors = self.incomplete > 0;
        write_through(path, |out| match Format::of(path) {
            Format::Text(delimiter) => compressed(path, out, |out| self.write(out, delimiter)),
            Format::Parquet | Format::Arrow => {
                let ids = self.ids.clone();
                Ok(write_scores(out, &ids, with_errors, self.all()?)?)
            }
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
    least: Vec<(usize, f64, Vec<String>)>,
}

impl Summary {
    fn take(&mut self, ids: &[String], score: f64) {
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
            let place = self.least.partition_point(|(_, other, _)| *other <= score);
            self.least.insert(place, (row, score, ids.to_vec()));
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
            let row = |(row, score, ids): &(usize, f64, Vec<String>)| {
                let mut entry = json!({"row": row, "log_likelihood": number(*score)});
                if !ids.is_empty() {
                    entry["id"] = json!(ids);
                }
                if *score == f64::NEG_INFINITY {
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
        for (row, score, ids) in &self.least {
            let ids = if ids.is_empty() { String::new() } else { format!("  {}", ids.join(", ")) };
            writeln!(out, "  row {row:<8} {score:.4}{ids}")?;
        }
        Ok(())
    }
}
