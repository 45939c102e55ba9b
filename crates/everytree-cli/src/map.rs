//! `everytree map`: the most probable rows (MAP).

use crate::Outcome;
use crate::given::{Asking, NO, possible, row_json};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::io::Write;

/// The most probable rows (MAP, MPE), given the values of some columns or none.
///
/// Proven by looking at every row where there are few enough, and the first of a single tree; otherwise the best that a search
/// has found, with its exact probability.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree map survey.everytree --given smoker=yes\n  everytree map survey.everytree -n 5 --json"
)]
pub struct Map {
    #[command(flatten)]
    asking: Asking,
    /// How many rows.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "K")]
    rows: usize,
    /// Random trees to begin the search with.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    trees: usize,
    /// Let a cell that is not known be missing, where training had missing cells in its column.
    #[arg(long)]
    missing_as_state: bool,
}

impl Map {
    pub fn run(self) -> Result<Outcome> {
        let model = self.asking.open()?;
        let evidence = self.asking.evidence(&model)?;
        let search = model
            .most_probable(self.rows)
            .evidence(evidence.clone())
            .trees(self.trees)
            .seed(self.asking.seed)
            .missing_as_state(self.missing_as_state);
        let Some(found) = possible(search.run(), self.asking.json)? else { return NO };
        let schema = model.schema();
        let mut out = std::io::stdout().lock();
        if self.asking.json {
            let rows: Vec<_> = found
                .iter()
                .map(|row| {
                    let values = row_json(schema, row.labels(schema).into_iter());
                    json!({"values": values, "log_likelihood": row.log_p, "proven": row.proven})
                })
                .collect();
            writeln!(out, "{}", json!({ "rows": rows }))?;
            return Ok(Outcome::Done);
        }
        let width = schema.variables.iter().map(|variable| variable.name.chars().count()).max().unwrap_or(0);
        for (place, row) in found.iter().enumerate() {
            let how = if row.proven { "proven" } else { "the best found, not proven" };
            writeln!(out, "{}. log-probability {:.4} ({how})", place + 1, row.log_p)?;
            for (variable, label) in schema.variables.iter().zip(row.labels(schema)) {
                let label = if label.is_empty() { "(missing)" } else { &label };
                let given = if evidence.is_given(&variable.name) { "  (given)" } else { "" };
                writeln!(out, "   {:<width$}  {label}{given}", variable.name)?;
            }
        }
        Ok(Outcome::Done)
    }
}
