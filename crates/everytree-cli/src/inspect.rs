//! `everytree inspect`: what a model has learned, and where it comes from.

use crate::Outcome;
use crate::data::{count, plural};
use anyhow::Result;
use clap::Args;
use everytree::file::{ModelFile, Provenance};
use everytree::forest::Cpu;
use everytree::model::Learnable;
use everytree::schema::Schema;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Variables and states, the strongest edges, parameters and provenance of a model.
///
/// The probability of an edge is how probable it is, given a row of the training data, that the tree behind the row has
/// it, on average over the rows. Weights are relative to the largest.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree inspect model.everytree\n  everytree inspect model.everytree --edges --json"
)]
pub struct Inspect {
    /// Model file.
    model: PathBuf,
    /// All edges, not only the strongest.
    #[arg(long)]
    edges: bool,
    /// How many edges to show.
    #[arg(long, default_value_t = 20, value_name = "K")]
    top: usize,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// An edge and what it is worth.
pub struct Edge {
    pub from: String,
    pub to: String,
    pub probability: f64,
    pub weight: f64,
}

/// All edges, the most probable first.
pub fn ranked(file: &ModelFile) -> Result<Vec<Edge>> {
    let probabilities = match &file.edge_posteriors {
        Some(posteriors) => posteriors.clone(),
        None => file.model.ready(&Cpu::<f64>::new().keeping(0))?.prior().to_vec(),
    };
    let weights = file.model.weights();
    let n = file.schema.variables.len();
    let name = |v: usize| file.schema.variables[v].name.clone();
    let pairs = (0..n).flat_map(|v| (0..v).map(move |u| (u, v)));
    let mut edges: Vec<Edge> = pairs
        .zip(probabilities.into_iter().zip(weights))
        .map(|((u, v), (probability, weight))| Edge { from: name(u), to: name(v), probability, weight })
        .collect();
    edges.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    Ok(edges)
}

impl Inspect {
    pub fn run(self) -> Result<Outcome> {
        let file = ModelFile::load(&self.model)?;
        let mut edges = ranked(&file)?;
        let all = edges.len();
        if !self.edges {
            edges.truncate(self.top);
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            let variable = |v: &everytree::schema::Variable| {
                let mut entry = json!({"name": v.name, "states": v.labels()});
                if v.missing {
                    entry["missing"] = json!(true);
                }
                entry
            };
            let edge = |e: &Edge| json!({"from": e.from, "to": e.to, "probability": e.probability, "weight": e.weight});
            let object = json!({
                "family": "moat",
                "components": 1,
                "variables": file.schema.variables.iter().map(variable).collect::<Vec<_>>(),
                "edges": edges.iter().map(edge).collect::<Vec<_>>(),
                "parameters": file.model.parameters().len(),
                "provenance": file.provenance,
            });
            writeln!(out, "{object}")?;
            return Ok(Outcome::Done);
        }
        let n = file.schema.variables.len();
        writeln!(
            out,
            "mixture of all trees: {}, {}, {}",
            plural(n, "variable"),
            plural(file.schema.states().iter().sum(), "state"),
            plural(file.model.parameters().len(), "parameter")
        )?;
        variables(&mut out, &file.schema)?;
        if self.edges || all <= self.top {
            writeln!(out, "\nedges, the most probable first")?;
        } else {
            writeln!(out, "\nedges, the {} most probable of {}", edges.len(), count(all))?;
        }
        print_edges(&mut out, &edges)?;
        provenance(&mut out, &file.provenance)?;
        Ok(Outcome::Done)
    }
}

/// A table of edges, with bars.
pub fn print_edges(out: &mut dyn Write, edges: &[Edge]) -> Result<()> {
    let width = edges.iter().map(|edge| edge.from.chars().count()).max().unwrap_or(0);
    let other = edges.iter().map(|edge| edge.to.chars().count()).max().unwrap_or(0);
    for edge in edges {
        let bar = "█".repeat((edge.probability * 20.0).round() as usize);
        let line = format!(
            "  {:<width$} – {:<other$}  {:.3}  weight {:<9.3e} {bar}",
            edge.from, edge.to, edge.probability, edge.weight
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn variables(out: &mut dyn Write, schema: &Schema) -> Result<()> {
    const MOST: usize = 30;
    let shown = &schema.variables[..schema.variables.len().min(MOST)];
    let width = shown.iter().map(|variable| variable.name.chars().count()).max().unwrap_or(0);
    for variable in shown {
        let labels = variable.labels();
        let mut text: Vec<String> = labels.iter().take(8).cloned().collect();
        if variable.missing && labels.len() <= 8 {
            text.pop();
            text.push("(missing)".to_owned());
        }
        let more = if labels.len() > 8 { format!(", … {} in all", labels.len()) } else { String::new() };
        writeln!(out, "  {:<width$}  {}{more}", variable.name, text.join(", "))?;
    }
    if schema.variables.len() > MOST {
        writeln!(out, "  … and {} more", count(schema.variables.len() - MOST))?;
    }
    Ok(())
}

fn provenance(out: &mut dyn Write, provenance: &Provenance) -> Result<()> {
    let (Some(settings), Some(results)) = (&provenance.settings, &provenance.results) else { return Ok(()) };
    writeln!(
        out,
        "\nlearned by Adam: batches of {}, steps of {}, seed {}",
        settings.batch, settings.learning_rate, settings.seed
    )?;
    if let Some(train) = &provenance.train {
        writeln!(
            out,
            "  from {} ({} distinct), fingerprint {}",
            plural(train.rows, "row"),
            count(train.unique_rows),
            train.fingerprint
        )?;
    }
    let test = results.test_ll.map_or(String::new(), |test| format!(", test {test:.4}"));
    writeln!(
        out,
        "  log-likelihood per row, nats: train {:.4}, valid {:.4}{test} (epoch {})",
        results.train_ll, results.valid_ll, results.best_epoch
    )?;
    Ok(())
}
