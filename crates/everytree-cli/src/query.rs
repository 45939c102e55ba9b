//! `everytree query`: probabilities given what is known.

use crate::Outcome;
use crate::data::{count, use_threads};
use crate::given::{column, evidence, split, state};
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use everytree::file::ModelFile;
use everytree::infer::{Effort, Estimate, InferError, Method, Posterior, posterior, posterior_by_what_fits};
use everytree::schema::{Encoder, Schema};
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
    BlockGibbs,
}

/// Probabilities of columns given the values of others.
///
/// Exact by enumeration where that is cheap; otherwise from random trees, with a standard error on every number.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree query survey.everytree --given smoker=yes --target cancer\n  everytree query survey.everytree --given age=20,30 --given smoker=no --target cancer=yes --json"
)]
pub struct Query {
    /// Model file.
    model: PathBuf,
    /// What is known: a value, or several of which it is one (repeatable).
    #[arg(long, value_name = "COLUMN=VALUE[,VALUE]")]
    given: Vec<String>,
    /// What is asked: a column, or one value of it (repeatable). Default: every column that is not known.
    #[arg(long, value_name = "COLUMN[=VALUE]")]
    target: Vec<String>,
    /// auto, exact, importance, collapsed, tilted or block-gibbs.
    #[arg(long, default_value = "auto", hide_possible_values = true)]
    method: MethodChoice,
    /// Standard error of probabilities that is good enough.
    #[arg(long, default_value_t = 0.005, value_name = "X")]
    tolerance: f64,
    /// Most trees to draw.
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    trees: usize,
    /// Seed of the random trees.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// One number of the answer.
struct Answer {
    variable: String,
    value: String,
    estimate: Estimate,
}

impl Query {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            bail!("--tolerance {}: must be positive", self.tolerance);
        }
        if self.trees == 0 {
            bail!("--trees 0: at least one");
        }
        let file = ModelFile::load(&self.model)?;
        let known = evidence(&file.schema, &self.given)?;
        let targets = self.targets(&file.schema, &known)?;
        let asked = file.model.asked()?;
        let method = match self.method {
            MethodChoice::Auto => None,
            MethodChoice::Exact => Some(Method::Exact),
            MethodChoice::Importance => Some(Method::Importance),
            MethodChoice::Collapsed => Some(Method::Collapsed),
            MethodChoice::Tilted => Some(Method::Tilted),
            MethodChoice::BlockGibbs => Some(Method::BlockGibbs),
        };
        let effort = Effort { trees: self.trees, tolerance: Some(self.tolerance), seed: self.seed };
        let found = match method {
            None => posterior_by_what_fits(&asked, &known, effort),
            Some(method) => posterior(&asked, &known, method, effort),
        };
        let found = match found {
            Err(InferError::Impossible) => {
                note!("everytree: {}", InferError::Impossible);
                return Ok(Outcome::No);
            }
            other => other?,
        };
        let answers: Vec<Answer> = targets
            .into_iter()
            .map(|(variable, state)| Answer {
                variable: file.schema.variables[variable].name.clone(),
                value: file.schema.variables[variable].label(state),
                estimate: found.states[variable][state],
            })
            .collect();
        if self.json { print_json(&answers, &found) } else { print_table(&answers, &found) }?;
        Ok(Outcome::Done)
    }

    /// Variables and states that are asked for.
    fn targets(&self, schema: &Schema, known: &everytree::infer::Evidence) -> Result<Vec<(usize, usize)>> {
        let all = |variable: usize| (0..schema.variables[variable].len()).map(move |state| (variable, state));
        if self.target.is_empty() {
            let hidden = (0..schema.variables.len()).filter(|&variable| known.state(variable).is_none());
            return Ok(hidden.flat_map(all).collect());
        }
        let encoder = Encoder::new(schema);
        let mut targets = Vec::new();
        for text in &self.target {
            match schema.position(text) {
                Some(variable) => targets.extend(all(variable)),
                None => {
                    let (name, value) = split(schema, text).unwrap_or((text, ""));
                    let variable = column(schema, name)?;
                    let state = state(schema, &encoder, variable, value).ok_or_else(|| {
                        anyhow!("--target {text}: {value:?} is not a value of column {name:?}")
                    })?;
                    targets.push((variable, state));
                }
            }
        }
        Ok(targets)
    }
}

fn print_json(answers: &[Answer], found: &Posterior) -> Result<()> {
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    let answer = |answer: &Answer| {
        json!({
            "variable": answer.variable,
            "value": answer.value,
            "probability": answer.estimate.value,
            "standard_error": number(answer.estimate.standard_error),
        })
    };
    let object = json!({
        "method": found.method,
        "trees": found.trees,
        "effective_sample_size": number(found.effective_sample_size),
        "log_evidence": found.log_evidence.value,
        "log_evidence_standard_error": number(found.log_evidence.standard_error),
        "answers": answers.iter().map(answer).collect::<Vec<_>>(),
    });
    let mut object = object;
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
        Method::BlockGibbs => writeln!(
            out,
            "\nchains of {} steps in all (block Gibbs), worth {} independent ones, R-hat {:.3}; log-probability of what is \
             known: {evidence:.4} ± {:.4}",
            count(found.trees),
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
