//! `everytree mix`: one model out of several.

use crate::Outcome;
use crate::data::TextArguments;
use crate::members;
use crate::outputs::Files;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{Model, ReadOptions, plural};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Average models of the same columns: an ensemble, which answers every question that its members answer.
///
/// The probability of a row is the weighted mean of what the members say. --weights-from takes the weights that make the rows of a
/// table most probable (stacking); these should be rows that the models have not learned from, such as those of `fit --valid`.
/// Members with less than a hundredth of the weight are left out.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree mix trees.everytree forests.everytree --weights-from valid.csv --out both.everytree\n  everytree mix a.everytree b.everytree --weights 3,1 --out both.everytree"
)]
pub struct Mix {
    /// Model files; of an ensemble among them, its members.
    #[arg(required = true, num_args = 2..)]
    models: Vec<PathBuf>,
    /// Table that the weights are fitted to.
    #[arg(long, value_name = "FILE", conflicts_with = "weights", required_unless_present = "weights")]
    weights_from: Option<PathBuf>,
    /// Weights in these proportions, one a model.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    weights: Option<Vec<f64>>,
    /// Where the ensemble goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    text: TextArguments,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

impl Mix {
    pub fn run(self) -> Result<Outcome> {
        let mut files = Files::default().input("the table", self.weights_from.as_ref());
        for model in &self.models {
            files = files.input("the model", Some(model));
        }
        files.output("--out", Some(&self.out)).check()?;
        let models = Model::load_all(&self.models)?;
        let Some(first) = models.first() else { bail!("at least two models are needed") };
        let mut mean = None;
        let model = match (&self.weights_from, &self.weights) {
            (Some(table), _) => {
                let rows = self.text.with(ReadOptions::default()).open_like(table, first.schema())?;
                let (model, found) = Model::stacked(&models, &rows)?;
                mean = Some((found, rows.rows()));
                model
            }
            (None, weights) => Model::ensemble(&models, weights.as_deref().unwrap_or_default())?,
        };
        model.save(&self.out).context("saving the ensemble")?;
        let mut out = crate::shown::out();
        if self.json {
            let mut object = json!({
                "family": model.family(),
                "components": model.components(),
                "parameters": model.parameters(),
                "model": self.out.display().to_string(),
            });
            if let Some((mean, rows)) = mean {
                object["weights_ll"] = json!(mean);
                object["weights_rows"] = json!(rows);
            }
            members::describe(&model, &mut object);
            writeln!(out, "{object}")?;
            return Ok(Outcome::Done);
        }
        match model.members().len() {
            1 => writeln!(out, "one model alone has all the weight: {}", model.title())?,
            count => {
                writeln!(out, "ensemble of {}, by weight:", plural(count, "member"))?;
                members::lines(&model).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
        if let Some((mean, rows)) = mean {
            let rows = plural(rows, "row");
            writeln!(
                out,
                "log-likelihood per row, nats: {mean:.4} ({rows}, to which the weights were fitted)"
            )?;
        }
        members::stored(&model).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "saved {}", self.out.display())?;
        Ok(Outcome::Done)
    }
}
