//! `everytree map`: the most probable rows (MAP).

use crate::Outcome;
use crate::given::{Asking, NO, possible, row_json};
use crate::interrupt::Interrupts;
use crate::progress::bar;
use anyhow::Result;
use clap::Args;
use everytree::column_width;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::time::Duration;

/// The most probable rows (MAP, MPE), given the values of some columns or none.
///
/// Proven for a single tree without latent variables, and where there are so few rows that each can be looked at. Otherwise the
/// best that a search within a budget has found, with its exact probability; Ctrl-C ends it early and shows the best so far.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree map survey.everytree --given 'smoker=yes'\n  everytree map survey.everytree -n 5 --json"
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

/// Between two looks at signals a search may take long; beyond this it is ended without an answer.
const PATIENCE: Duration = Duration::from_secs(2);

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
        let (interrupts, bar) =
            (Interrupts::listen_and_end(PATIENCE)?, bar(self.asking.json, "searching {bar:30} {percent} %")?);
        bar.set_length(1000);
        let go_on = |done: f64| {
            bar.set_position((1000.0 * done) as u64);
            !interrupts.any()
        };
        let found = search.progress(&go_on).run();
        bar.finish_and_clear();
        let Some(found) = possible(found, self.asking.json)? else { return NO };
        let outcome = || if interrupts.any() { Outcome::Interrupted } else { Outcome::Done };
        let schema = model.schema();
        let mut out = BufWriter::new(crate::shown::out());
        if self.asking.json {
            // Row by row: all of them as one value would take many times the memory of the rows.
            write!(out, "{{\"rows\":[")?;
            for (place, row) in found.iter().enumerate() {
                let values = row_json(schema, row.labels(schema).into_iter());
                let object = json!({"values": values, "log_likelihood": row.log_p, "proven": row.proven});
                write!(out, "{}{object}", if place > 0 { "," } else { "" })?;
            }
            writeln!(out, "]}}")?;
            out.flush()?;
            return Ok(outcome());
        }
        let width = column_width(schema.variables.iter().map(|variable| variable.name.chars().count()));
        for (place, row) in found.iter().enumerate() {
            let how = if row.proven { "proven" } else { "the best found, not proven" };
            writeln!(out, "{}. log-probability {:.4} ({how})", place + 1, row.log_p)?;
            for (variable, label) in schema.variables.iter().zip(row.labels(schema)) {
                let label = if label.is_empty() { "(missing)" } else { &label };
                let given = match evidence.is_given(&variable.name) {
                    true if evidence.is_settled(&variable.name) => "  (given)",
                    true => "  (one of those given)",
                    false => "",
                };
                writeln!(out, "   {:<width$}  {label}{given}", variable.name)?;
            }
        }
        out.flush()?;
        Ok(outcome())
    }
}
