//! `everytree query`: posteriors, given evidence.

use crate::Outcome;
use crate::data::TextArguments;
use crate::given::{Asking, NO, possible, target, unquoted};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use everytree::{Answer, Method, TreeEdge, ValueAnswer};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

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

/// Posterior probabilities of columns, given evidence about others.
///
/// Exact (belief propagation) in families of one tree, and by enumeration where that is cheap; otherwise from random trees or
/// MCMC, with a standard error on every number.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree query survey.everytree --given 'smoker=yes' --target cancer\n  everytree query survey.everytree --given 'age in 20..39' --given 'smoker!=yes' --target cancer=yes --json\n  everytree query survey.everytree --given 'smoker=yes' --data survey.csv"
)]
pub struct Query {
    #[command(flatten)]
    asking: Asking,
    /// Target: a column, or one value of it (repeatable). Default: every column that is not in the evidence.
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
    /// Also the edges of the tree, given the evidence: which columns explain which.
    #[arg(long)]
    edges: bool,
    /// Report "missing" as a value like others, where training had missing cells in a column. Default: probabilities are
    /// those of the observed values.
    #[arg(long)]
    missing_as_state: bool,
    /// Show every value of a column, not only the 12 most probable.
    #[arg(long)]
    all: bool,
    /// A table: how many of its rows agree with the evidence, and their raw shares beside the model's answer.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    text: TextArguments,
}

impl Query {
    pub fn run(self) -> Result<Outcome> {
        let model = self.asking.open()?;
        let mut query = model
            .query()
            .evidence(self.asking.evidence(&model)?)
            .missing_as_state(self.missing_as_state)
            .edges(self.edges)
            .tolerance(self.tolerance)
            .trees(self.trees)
            .seed(self.asking.seed);
        if let Some(method) = self.method.of() {
            query = query.method(method);
        }
        for text in &self.target {
            let bare = unquoted(text);
            query = match model.schema().position(text).or(model.schema().position(bare)) {
                Some(place) => query.target(&model.schema().variables[place].name)?,
                None => {
                    let (name, value) = target(model.schema(), text);
                    query.target_value(&name, Some(&value)).with_context(|| format!("--target {text}"))?
                }
            };
        }
        let Some(answer) = possible(query.run(), self.asking.json)? else { return NO };
        if answer.chosen && answer.method == Method::BlockGibbs {
            note!("note: hardly any random tree explains the evidence; MCMC (block Gibbs chains) answered");
        }
        let mut answer = answer;
        if let Some(data) = &self.data {
            query.beside(&mut answer, data.as_path(), &self.text.settings())?;
        }
        let mut out = crate::shown::out();
        match self.asking.json {
            true => writeln!(out, "{}", object(&answer))?,
            false if self.all => write!(out, "{answer:#}")?,
            false => write!(out, "{answer}")?,
        }
        Ok(Outcome::Done)
    }
}

impl MethodChoice {
    fn of(self) -> Option<Method> {
        match self {
            Self::Auto => None,
            Self::Exact => Some(Method::Exact),
            Self::Importance => Some(Method::Importance),
            Self::Collapsed => Some(Method::Collapsed),
            Self::Tilted => Some(Method::Tilted),
            Self::Gibbs => Some(Method::Gibbs),
            Self::BlockGibbs => Some(Method::BlockGibbs),
        }
    }
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

fn object(answer: &Answer) -> Value {
    let value = |value: &ValueAnswer| {
        let mut entry = json!({
            "variable": value.variable,
            "value": value.value,
            "probability": value.probability.value,
            "standard_error": number(value.probability.standard_error),
        });
        if answer.matching.is_some() {
            entry["observed"] = json!(value.observed);
        }
        entry
    };
    let mut object = json!({
        "method": answer.method,
        "trees": answer.trees,
        "effective_sample_size": number(answer.effective_sample_size),
        "log_evidence": answer.log_evidence.value,
        "log_evidence_standard_error": number(answer.log_evidence.standard_error),
        "answers": answer.values.iter().map(value).collect::<Vec<_>>(),
    });
    if let Some(found) = &answer.edges {
        object["edges_method"] = json!(found.method);
        object["edges_trees"] = json!(found.trees);
        object["edges_effective_sample_size"] = number(found.effective_sample_size);
        let edge = |edge: &TreeEdge| {
            json!({
                "from": edge.from,
                "to": edge.to,
                "probability": edge.probability.value,
                "standard_error": number(edge.probability.standard_error),
            })
        };
        object["edges"] = json!(found.edges.iter().map(edge).collect::<Vec<_>>());
    }
    if let Some(matching) = answer.matching {
        // A count, unless evidence is soft.
        object["matching_rows"] = match matching.rows.fract() == 0.0 {
            true => json!(matching.rows as u64),
            false => json!(matching.rows),
        };
        object["data_rows"] = json!(matching.of);
        object["unknown_rows"] = json!(matching.unknown);
    }
    if let Some(r_hat) = answer.r_hat {
        object["r_hat"] = json!(r_hat);
    }
    object
}
