//! `everytree sample`: rows drawn from a model.

use crate::Outcome;
use crate::data::{Format, compressed};
use crate::given::{Asking, NO, possible, row_json};
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{Drawn, count};
use everytree_core::file::write_through;
use everytree_read::{write_parquet, write_text};
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Draw rows from a model, given the values of some columns or none.
///
/// Exact and independent without evidence, and where enumeration is cheap; otherwise independent, each row from a fresh
/// pool of weighted trees or from a chain of its own, and a note says what a pool is worth or how well chains agree.
/// Writes CSV with a header; TSV or Parquet where the name of the file ends so; compressed where it ends in .gz.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree sample survey.everytree -n 1000 --out rows.csv\n  everytree sample survey.everytree -n 1000 --out rows.parquet\n  everytree sample survey.everytree -n 20 --given smoker=yes"
)]
pub struct Sample {
    #[command(flatten)]
    asking: Asking,
    /// How many rows.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    rows: usize,
    /// Where the rows go. Default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Sample {
    pub fn run(self) -> Result<Outcome> {
        let format = self.out.as_deref().map_or(Format::Text(b','), Format::of);
        if let (Some(path), Format::Arrow) = (&self.out, format) {
            bail!("--out {}: rows are written as CSV, TSV or Parquet", path.display());
        }
        Files::default()
            .input("the model", Some(&self.asking.model))
            .output("--out", self.out.as_ref())
            .check()?;
        let model = self.asking.open()?;
        let evidence = self.asking.evidence(&model)?;
        let sample = model.sample(self.rows).evidence(evidence).seed(self.asking.seed);
        let Some((rows, how)) = possible(sample.run_with_method(), self.asking.json)? else { return NO };
        if let Some(path) = &self.out {
            write_through(path, |out| match format {
                Format::Text(delimiter) => compressed(path, out, |out| write_text(out, delimiter, &rows)),
                Format::Parquet | Format::Arrow => write_parquet(out, &rows),
            })
            .with_context(|| path.display().to_string())??;
        }
        let mut stdout = BufWriter::new(crate::shown::rows_out());
        if self.asking.json {
            let mut object = match how {
                Drawn::Exactly => json!({"method": "exact", "rows": rows.rows()}),
                Drawn::FromPools { pool, effective } => {
                    json!({"method": "pools", "rows": rows.rows(), "pool": pool, "effective_sample_size": effective})
                }
                Drawn::FromChains { steps, r_hat } => {
                    json!({"method": "chains", "rows": rows.rows(), "steps": steps, "r_hat": r_hat})
                }
            };
            if self.out.is_none() {
                let row = |row: usize| {
                    let label = |column: usize| rows.label(row, column).unwrap_or_default();
                    row_json(rows.schema(), (0..rows.columns()).map(label))
                };
                object["values"] = json!((0..rows.rows()).map(row).collect::<Vec<_>>());
            }
            writeln!(stdout, "{object}")?;
        } else if self.out.is_none() {
            write_text(&mut stdout, b',', &rows)?;
        }
        stdout.flush()?;
        match how {
            Drawn::Exactly => {}
            Drawn::FromPools { pool, effective } => note!(
                "note: each row from a pool of {} trees, effective sample size {}",
                count(pool),
                count(effective as usize)
            ),
            Drawn::FromChains { steps, r_hat } => note!(
                "note: hardly any random tree explains the evidence; each row from an MCMC chain of {} steps of its own, R-hat {r_hat:.3}",
                count(steps)
            ),
        }
        Ok(Outcome::Done)
    }
}
