//! `everytree sample`: rows by chance.

use crate::Outcome;
use crate::data::{count, use_threads};
use crate::given::evidence;
use anyhow::{Context, Result};
use clap::Args;
use everytree::file::{ModelFile, write_through};
use everytree::infer::{Drawn, InferError, sample};
use everytree::schema::Schema;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Draw rows from a model, given the values of some columns or none.
///
/// Exact and independent without evidence, and where enumeration is cheap; otherwise independent, each row from a fresh
/// pool of weighted trees, and the note says what a pool is worth. Writes CSV with a header.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree sample survey.everytree -n 1000 --out rows.csv\n  everytree sample survey.everytree -n 20 --given smoker=yes"
)]
pub struct Sample {
    /// Model file.
    model: PathBuf,
    /// How many rows.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    rows: usize,
    /// What is known: a value, or several of which it is one (repeatable).
    #[arg(long, value_name = "COLUMN=VALUE[,VALUE]")]
    given: Vec<String>,
    /// Where the rows go. Default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seed of the rows.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout; with --out, without the rows.
    #[arg(long)]
    json: bool,
}

impl Sample {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let file = ModelFile::load(&self.model)?;
        let known = evidence(&file.schema, &self.given)?;
        let (rows, how) = match sample(&file.model.asked()?, &known, self.rows, self.seed) {
            Err(InferError::Impossible) => {
                note!("everytree: {}", InferError::Impossible);
                return Ok(Outcome::No);
            }
            other => other?,
        };
        let labels: Vec<Vec<String>> =
            file.schema.variables.iter().map(|variable| variable.labels()).collect();
        if let Some(path) = &self.out {
            write_through(path, |out| write_csv(out, &file.schema, &labels, &rows))
                .with_context(|| path.display().to_string())??;
        }
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        if self.json {
            let mut object = match how {
                Drawn::Exactly => json!({"method": "exact", "rows": rows.len()}),
                Drawn::FromPools { pool, effective } => {
                    json!({"method": "pools", "rows": rows.len(), "pool": pool, "effective_sample_size": effective})
                }
            };
            if self.out.is_none() {
                let row = |row: &Vec<u16>| {
                    let cells = row.iter().enumerate().map(|(v, &state)| {
                        (file.schema.variables[v].name.clone(), json!(labels[v][usize::from(state)]))
                    });
                    cells.collect::<serde_json::Map<_, _>>()
                };
                object["values"] = json!(rows.iter().map(row).collect::<Vec<_>>());
            }
            writeln!(stdout, "{object}")?;
        } else if self.out.is_none() {
            write_csv(&mut stdout, &file.schema, &labels, &rows)?;
        }
        stdout.flush()?;
        if let Drawn::FromPools { pool, effective } = how {
            note!(
                "note: each row from a pool of {} trees, worth {} independent ones",
                count(pool),
                count(effective as usize)
            );
        }
        Ok(Outcome::Done)
    }
}

fn write_csv(out: &mut dyn Write, schema: &Schema, labels: &[Vec<String>], rows: &[Vec<u16>]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(schema.variables.iter().map(|variable| &variable.name))?;
    for row in rows {
        writer.write_record(row.iter().enumerate().map(|(v, &state)| &labels[v][usize::from(state)]))?;
    }
    writer.flush()?;
    Ok(())
}
