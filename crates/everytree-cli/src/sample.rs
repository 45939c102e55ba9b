//! `everytree sample`: rows drawn from a model.

use crate::Outcome;
use crate::data::{Format, compressed};
use crate::given::{Asking, NO, possible, row_json};
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{Drawn, Schema, count};
use everytree_core::file::write_through;
use everytree_read::{ParquetWriter, TextWriter};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Draw rows from a model, given the values of some columns or none.
///
/// Exact and independent without evidence, and where enumeration is cheap; otherwise independent, each row from a fresh
/// pool of weighted trees or from a chain of its own, and a note says what a pool is worth or how well chains agree.
/// Writes CSV with a header; TSV or Parquet where the name of the file ends so; compressed where it ends in .gz.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree sample survey.everytree -n 1000 --out rows.csv\n  everytree sample survey.everytree -n 1000 --out rows.parquet\n  everytree sample survey.everytree -n 20 --given 'smoker=yes'"
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
        let format = self.out.as_deref().map_or(Ok(Format::Text(b',')), Format::to_write)?;
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
        let schema = model.schema();
        let mut stdout = BufWriter::new(crate::shown::rows_out());
        let drawn = match &self.out {
            Some(path) => write_through(path, |out| write(&sample, schema, path, format, out))
                .with_context(|| path.display().to_string())?,
            None if self.asking.json => stream_json(&sample, schema, &mut stdout),
            None => write_rows(&sample, TextWriter::new(&mut stdout, b',', schema).numbering(&schema.ids)),
        };
        let how = match drawn.or_else(|error| possible(Err(error.downcast()?), self.asking.json)) {
            Ok(Some(how)) => how,
            Ok(None) => return NO,
            Err(error) => return Err(error),
        };
        if self.asking.json {
            let facts = facts(&how, self.rows);
            match self.out {
                Some(_) => writeln!(stdout, "{facts}")?,
                // After the rows, in the same object.
                None => writeln!(stdout, ",{}", &facts.to_string()[1..])?,
            }
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

type Rows<'m> = everytree::Sample<'m>;

/// All rows, as they come, in the format of a file. Whether evidence is possible is known before the first of them.
fn write(
    rows: &Rows<'_>,
    schema: &Schema,
    path: &Path,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<Option<Drawn>> {
    let mut how = None;
    match format {
        Format::Text(delimiter) => compressed(path, out, |out| -> Result<()> {
            how = write_rows(rows, TextWriter::new(out, delimiter, schema).numbering(&schema.ids))?;
            Ok(())
        })?,
        Format::Parquet | Format::Arrow => {
            let mut writer = ParquetWriter::numbering(out, schema, false, &schema.ids)?;
            how = Some(rows.for_each_portion(|rows| -> Result<()> { Ok(writer.write(rows)?) })?);
            writer.finish()?;
        }
    }
    Ok(how)
}

fn write_rows(rows: &Rows<'_>, mut writer: TextWriter<'_>) -> Result<Option<Drawn>> {
    Ok(Some(rows.for_each_portion(|rows| -> Result<()> { Ok(writer.write(rows)?) })?))
}

/// The beginning of an object with all rows.
fn stream_json(rows: &Rows<'_>, schema: &Schema, out: &mut dyn Write) -> Result<Option<Drawn>> {
    let mut before = "{\"values\":[";
    let how = rows.for_each_portion(|rows| -> Result<()> {
        for row in 0..rows.rows() {
            let label = |column: usize| rows.label(row, column).unwrap_or_default();
            let object = Value::from(row_json(schema, (0..rows.columns()).map(label)));
            write!(out, "{before}{object}")?;
            before = ",";
        }
        Ok(())
    })?;
    // Of no rows, too.
    write!(out, "{}]", before.trim_start_matches(','))?;
    Ok(Some(how))
}

/// How rows were drawn, for machines.
fn facts(how: &Drawn, rows: usize) -> Value {
    match how {
        Drawn::Exactly => json!({"method": "exact", "rows": rows}),
        Drawn::FromPools { pool, effective } => {
            json!({"method": "pools", "rows": rows, "pool": pool, "effective_sample_size": effective})
        }
        Drawn::FromChains { steps, r_hat } => {
            json!({"method": "chains", "rows": rows, "steps": steps, "r_hat": r_hat})
        }
    }
}
