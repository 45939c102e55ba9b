//! `everytree query`: probabilities given what is known.

use crate::Outcome;
use crate::given::{Asking, NO, possible, split};
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use everytree::{
    Answer, Target, TreeEdge, all_unknown, all_values, answers, column, count, names, state, tree_edges,
};
use everytree_core::data::{Encoder, Schema};
use everytree_core::infer::{EdgePosterior, Effort, Evidence, Method, Posterior};
use serde_json::{Value, json};
use std::io::Write;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodChoice {
    Auto,
    Exact,
    Importance,
    Collapsed,
    Tilted,
    Gibbs,
    BlockGibbs,
}

/// Probabilities of columns given the values of others.
///
/// Exact in families of one tree, and by enumeration where that is cheap; otherwise from random trees, with a standard error
/// on every number.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree query survey.everytree --given smoker=yes --target cancer\n  everytree query survey.everytree --given age=20,30 --given smoker=no --target cancer=yes --json"
)]
pub struct Query {
    #[command(flatten)]
    asking: Asking,
    /// What is asked: a column, or one value of it (repeatable). Default: every column that is not known.
    #[arg(long, value_name = "COLUMN[=VALUE]")]
    target: Vec<String>,
    /// auto, exact, importance, collapsed, tilted, gibbs or block-gibbs.
    #[arg(long, default_value = "auto", hide_possible_values = true)]
    method: MethodChoice,
    /// Standard error of probabilities that is good enough.
    #[arg(long, default_value_t = 0.005, value_name = "X")]
    tolerance: f64,
    /// Most trees to draw.
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    trees: usize,
    /// Also the edges of the tree, given what is known: which columns explain which.
    #[arg(long)]
    edges: bool,
    /// Report "missing" as a value like others, where training had missing cells in a column. Default: probabilities are
    /// those of the observed values.
    #[arg(long)]
    missing_as_state: bool,
}

impl Query {
    pub fn run(self) -> Result<Outcome> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            bail!("--tolerance {}: must be positive", self.tolerance);
        }
        if self.trees == 0 {
            bail!("--trees 0: at least one");
        }
        let (file, known) = self.asking.open()?;
        let targets = self.targets(&file.schema, &known)?;
        if file.model.structure().is_some()
            && !matches!(self.method, MethodChoice::Auto | MethodChoice::Exact)
        {
            bail!("--method: one tree answers exactly; leave it out");
        }
        let asked = file.model.asked()?;
        let method = match self.method {
            MethodChoice::Auto => None,
            MethodChoice::Exact => Some(Method::Exact),
            MethodChoice::Importance => Some(Method::Importance),
            MethodChoice::Collapsed => Some(Method::Collapsed),
            MethodChoice::Tilted => Some(Method::Tilted),
            MethodChoice::Gibbs => Some(Method::Gibbs),
            MethodChoice::BlockGibbs => Some(Method::BlockGibbs),
        };
        let mut variables: Vec<usize> = targets.iter().map(|target| target.variable).collect();
        variables.dedup();
        let effort = Effort {
            trees: self.trees,
            tolerance: Some(self.tolerance),
            seed: self.asking.seed,
            targets: &variables,
            ..Effort::default()
        };
        let found = asked.posterior(&known, method, effort);
        let Some(found) = possible(found, self.asking.json)? else { return NO };
        if self.method == MethodChoice::Auto && found.method == Method::BlockGibbs {
            note!(
                "note: hardly any random tree explains what is known; chains of trees and rows (block Gibbs) were taken"
            );
        }
        let edges = if self.edges { possible(asked.edges(&known, effort), false)? } else { None };
        let edges = edges.map(|edges| (tree_edges(&names(&file), asked.kind(), &edges), edges));
        let answers = answers(&file.schema, &found, &targets);
        if self.asking.json {
            print_json(&answers, &found, edges.as_ref())?;
        } else {
            print_table(&answers, &found)?;
            if let Some((edges, _)) = edges {
                print_edges(&edges)?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Variables and states that are asked for.
    fn targets(&self, schema: &Schema, known: &Evidence) -> Result<Vec<Target>> {
        if self.target.is_empty() {
            return Ok(all_unknown(schema, known, self.missing_as_state));
        }
        let encoder = Encoder::new(schema);
        let mut targets = Vec::new();
        for text in &self.target {
            match schema.position(text) {
                Some(variable) => targets.extend(all_values(schema, known, variable, self.missing_as_state)),
                None => {
                    let (name, value) = split(schema, text).unwrap_or((text, ""));
                    let variable = column(schema, name)?;
                    let state = state(schema, &encoder, variable, value).ok_or_else(|| {
                        anyhow!("--target {text}: {value:?} is not a value of column {name:?}")
                    })?;
                    let missing = state == schema.variables[variable].states.len();
                    targets.push(Target { variable, state, observed: !missing && !self.missing_as_state });
                }
            }
        }
        Ok(targets)
    }
}

/// Edges that a table shows.
const SHOWN: usize = 20;

fn print_edges(edges: &[TreeEdge]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nedges of the tree, given what is known:")?;
    for edge in edges.iter().take(SHOWN) {
        let words = match (&edge.from, edge.directed) {
            (None, _) => format!("{} is a root", edge.to),
            (Some(from), true) => format!("{from} → {}", edge.to),
            (Some(from), false) => format!("{from} - {}", edge.to),
        };
        let error = match edge.probability.standard_error {
            0.0 => String::new(),
            error => format!(" ± {error:.4}"),
        };
        writeln!(out, "  {:.4}{error}  {words}", edge.probability.value)?;
    }
    if edges.len() > SHOWN {
        writeln!(out, "  … and {} more; all of them with --json", count(edges.len() - SHOWN))?;
    }
    Ok(())
}

fn print_json(
    answers: &[Answer],
    found: &Posterior,
    edges: Option<&(Vec<TreeEdge>, EdgePosterior)>,
) -> Result<()> {
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    let answer = |answer: &Answer| {
        json!({
            "variable": answer.variable,
            "value": answer.value,
            "probability": answer.estimate.value,
            "standard_error": number(answer.estimate.standard_error),
        })
    };
    let mut object = json!({
        "method": found.method,
        "trees": found.trees,
        "effective_sample_size": number(found.effective_sample_size),
        "log_evidence": found.log_evidence.value,
        "log_evidence_standard_error": number(found.log_evidence.standard_error),
        "answers": answers.iter().map(answer).collect::<Vec<_>>(),
    });
    if let Some((edges, how)) = edges {
        object["edges_method"] = json!(how.method);
        object["edges_trees"] = json!(how.trees);
        object["edges_effective_sample_size"] = number(how.effective_sample_size);
        let edge = |edge: &TreeEdge| {
            json!({
                "from": edge.from,
                "to": edge.to,
                "probability": edge.probability.value,
                "standard_error": number(edge.probability.standard_error),
            })
        };
        object["edges"] = json!(edges.iter().map(edge).collect::<Vec<_>>());
    }
    if let Some(r_hat) = found.r_hat {
        object["r_hat"] = json!(r_hat);
    }
    writeln!(std::io::stdout().lock(), "{object}")?;
    Ok(())
}

fn print_table(answers: &[Answer], found: &Posterior) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let shown =
        |answer: &Answer| if answer.value.is_empty() { "(missing)".to_owned() } else { answer.value.clone() };
    let width = answers.iter().map(|answer| answer.variable.chars().count()).max().unwrap_or(0);
    let values = answers.iter().map(|answer| shown(answer).chars().count()).max().unwrap_or(0);
    let mut last = "";
    for answer in answers {
        let name = if answer.variable == last { "" } else { &answer.variable };
        last = &answer.variable;
        let error = match answer.estimate.standard_error {
            0.0 => String::new(),
            error => format!("  ± {error:.4}"),
        };
        let bar = "█".repeat((answer.estimate.value * 30.0).round() as usize);
        let line =
            format!("{name:<width$}  {:<values$}  {:.4}{error}  {bar}", shown(answer), answer.estimate.value);
        writeln!(out, "{}", line.trim_end())?;
    }
    let evidence = found.log_evidence.value;
    match found.method {
        Method::Exact => writeln!(out, "\nexact; log-probability of what is known: {evidence:.4}")?,
        Method::Gibbs | Method::BlockGibbs => writeln!(
            out,
            "\nchains of {} steps in all ({}), worth {} independent ones, R-hat {:.3}; log-probability of what is \
             known: {evidence:.4} ± {:.4}",
            count(found.trees),
            if found.method == Method::Gibbs { "Gibbs" } else { "block Gibbs" },
            count(found.effective_sample_size as usize),
            found.r_hat.unwrap_or(f64::NAN),
            found.log_evidence.standard_error,
        )?,
        method => writeln!(
            out,
            "\n{} random trees ({}), worth {} independent ones; log-probability of what is known: {evidence:.4} ± {:.4}",
            count(found.trees),
            json!(method).as_str().unwrap_or_default(),
            count(found.effective_sample_size as usize),
            found.log_evidence.standard_error,
        )?,
    }
    Ok(())
}
