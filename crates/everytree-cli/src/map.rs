//! `everytree map`: the most probable rows.

use crate::Outcome;
use crate::given::{Asking, NO, observed_only, possible, row_json};
use anyhow::{Result, bail};
use clap::Args;
use everytree::Labels;
use everytree_core::infer::Search;
use serde_json::json;
use std::io::Write;

/// The most probable rows, given the values of some columns or none.
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
        if self.rows == 0 {
            bail!("-n 0: at least one row");
        }
        const MOST: usize = 100_000;
        if self.rows > MOST {
            bail!("-n {}: at most {MOST} rows", self.rows);
        }
        let (file, known) = self.asking.open()?;
        let mut allowed = known.clone();
        if !self.missing_as_state {
            observed_only(&file.schema, &self.asking.given, &mut allowed)?;
        }
        let search = Search { trees: self.trees, seed: self.asking.seed, ..Search::default() };
        let found = file.model.asked()?.most_probable(&allowed, self.rows, search);
        let Some(found) = possible(found, self.asking.json)? else { return NO };
        let labels = Labels::new(&file.schema);
        let mut out = std::io::stdout().lock();
        if self.asking.json {
            let rows: Vec<_> = found
                .iter()
                .map(|row| json!({"values": row_json(&labels, &row.row), "log_likelihood": row.log_p, "proven": row.proven}))
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
                let label = labels.of(v, state);
                let label = if label.is_empty() { "(missing)" } else { label };
                let given = if known.is_given(v) { "  (given)" } else { "" };
                writeln!(out, "   {:<width$}  {label}{given}", file.schema.variables[v].name)?;
            }
        }
        Ok(Outcome::Done)
    }
}
