//! `everytree sample`: rows by chance.

use crate::Outcome;
use crate::data::{Format, compressed};
use crate::given::{Asking, NO, possible, row_json};
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{Labels, count};
use everytree_core::data::Schema;
use everytree_core::file::write_through;
use everytree_core::infer::{Drawn, Sampling};
use everytree_read::write_parquet;
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
        let (file, known) = self.asking.open()?;
        let sampling = Sampling { seed: self.asking.seed, ..Sampling::default() };
        let found = possible(file.model.asked()?.sample(&known, self.rows, sampling), self.asking.json)?;
        let Some((rows, how)) = found else { return NO };
        let labels = Labels::new(&file.schema);
        if let Some(path) = &self.out {
            write_through(path, |out| match format {
                Format::Text(delimiter) => {
                    compressed(path, out, |out| write_csv(out, delimiter, &file.schema, &labels, &rows))
                }
                Format::Parquet | Format::Arrow => Ok(write_parquet(out, &file.schema, &rows)?),
            })
            .with_context(|| path.display().to_string())??;
        }
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        if self.asking.json {
            let mut object = match how {
                Drawn::Exactly => json!({"method": "exact", "rows": rows.len()}),
                Drawn::FromPools { pool, effective } => {
                    json!({"method": "pools", "rows": rows.len(), "pool": pool, "effective_sample_size": effective})
                }
                Drawn::FromChains { steps, r_hat } => {
                    json!({"method": "chains", "rows": rows.len(), "steps": steps, "r_hat": r_hat})
                }
            };
            if self.out.is_none() {
                object["values"] = json!(rows.iter().map(|row| row_json(&labels, row)).collect::<Vec<_>>());
            }
            writeln!(stdout, "{object}")?;
        } else if self.out.is_none() {
            write_csv(&mut stdout, b',', &file.schema, &labels, &rows)?;
        }
        stdout.flush()?;
        match how {
            Drawn::Exactly => {}
            Drawn::FromPools { pool, effective } => note!(
                "note: each row from a pool of {} trees, worth {} independent ones",
                count(pool),
                count(effective as usize)
            ),
            Drawn::FromChains { steps, r_hat } => note!(
                "note: hardly any random tree explains what is known; each row from a chain of {} steps of its own, R-hat {r_hat:.3}",
                count(steps)
            ),
        }
        Ok(Outcome::Done)
    }
}

fn write_csv(
    out: &mut dyn Write,
    delimiter: u8,
    schema: &Schema,
    labels: &Labels<'_>,
    rows: &[Vec<u16>],
) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    writer.write_record(schema.variables.iter().map(|variable| &variable.name))?;
    for row in rows {
        writer.write_record(row.iter().enumerate().map(|(v, &state)| labels.of(v, state)))?;
    }
    writer.flush()?;
    Ok(())
}
