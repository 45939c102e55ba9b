//! What the commands that ask a model have in common: columns and values as people write them, and back.

use crate::Outcome;
use crate::data::use_threads;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use everytree::{ErrorCode, Evidence, Model, Schema, Spelling, Variable};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;

/// The model, the evidence, and how to answer.
#[derive(Args)]
pub struct Asking {
    /// Model file.
    pub model: PathBuf,
    /// Evidence: a value, or several of which it is one (repeatable). `COLUMN=` is a missing cell.
    #[arg(long, value_name = "COLUMN=VALUE[,VALUE]")]
    pub given: Vec<String>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

impl Asking {
    /// The model.
    pub fn open(&self) -> Result<Model> {
        use_threads(self.threads)?;
        Ok(Model::load(&self.model)?)
    }

    /// The evidence.
    pub fn evidence<'m>(&self, model: &'m Model) -> Result<Evidence<'m>> {
        evidence(model, "--given ", &self.given)
    }
}

/// Evidence that no row has: the answer is no. Every other mistake is one.
pub fn possible<T>(found: everytree::Result<T>, json: bool) -> Result<Option<T>> {
    match found {
        Err(error) if error.code() == ErrorCode::ImpossibleEvidence => {
            note!("everytree: {}", error.spelled(Spelling::Flags));
            if json {
                writeln!(crate::shown::out(), "{}", json!({"impossible": true}))?;
            }
            Ok(None)
        }
        other => Ok(Some(other?)),
    }
}

/// A row as an object, of labels in the order of the columns.
pub fn row_json(schema: &Schema, labels: impl Iterator<Item = String>) -> Map<String, Value> {
    let names = schema.variables.iter().map(|variable| variable.name.clone());
    names.zip(labels.map(Value::String)).collect()
}

/// "The answer is no."
pub const NO: Result<Outcome> = Ok(Outcome::No);

/// `COLUMN=VALUE` or `COLUMN=VALUE,VALUE`, each column once; mistakes are named after what stands `before` them.
pub fn evidence<'m>(model: &'m Model, before: &str, given: &[String]) -> Result<Evidence<'m>> {
    let schema = model.schema();
    let mut evidence = model.evidence();
    for text in given {
        let (name, value) =
            split(schema, text).ok_or_else(|| anyhow!("{before}{text}: COLUMN=VALUE is needed"))?;
        let place = || format!("{before}{text}");
        let labels = match schema.position(name) {
            Some(variable) => {
                let variable = &schema.variables[variable];
                let labels = labels(variable, &schema.missing, value);
                if let Some(reading) = reading(variable, value, &labels) {
                    note!("note: {before}{text}: read as {reading}");
                }
                labels
            }
            None => vec![value.to_owned()],
        };
        let labels = labels.iter().map(String::as_str);
        evidence = match evidence.given_any(name, labels) {
            Err(error) if error.code() == ErrorCode::InvalidOption => return Err(error).with_context(place),
            other => other?,
        };
    }
    Ok(evidence)
}

/// One value, or several with commas between. A label may have commas of its own: the longest that fits is meant.
fn labels(variable: &Variable, missing: &[String], value: &str) -> Vec<String> {
    let known = variable.labels();
    let parts: Vec<&str> = value.split(',').collect();
    let mut found = Vec::new();
    let mut place = 0;
    while place < parts.len() {
        let joined = |last: usize| parts[place..=last].join(",").trim().to_owned();
        let fits = |last: &usize| known.contains(&joined(*last)) || missing.contains(&joined(*last));
        // What is no label as it stands may be a number that is written otherwise: one part alone.
        let last = (place..parts.len()).rev().find(fits).unwrap_or(place);
        found.push(joined(last));
        place = last + 1;
    }
    found
}

/// In words how values were read, where labels with commas leave a doubt.
fn reading(variable: &Variable, value: &str, labels: &[String]) -> Option<String> {
    if !(value.contains(',') && variable.labels().iter().any(|label| label.contains(','))) {
        return None;
    }
    let quoted: Vec<String> = labels.iter().map(|label| format!("{label:?}")).collect();
    Some(match &quoted[..] {
        [one] => format!("the value {one}"),
        several => format!("any of the values {}", several.join(" and ")),
    })
}

/// Cuts at the equals sign after which the name of a column ends; names may have such signs of their own.
pub fn split<'a>(schema: &Schema, text: &'a str) -> Option<(&'a str, &'a str)> {
    let mut cuts = text.match_indices('=').map(|(place, _)| (&text[..place], &text[place + 1..]));
    cuts.clone().find(|(name, _)| schema.position(name).is_some()).or_else(|| cuts.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everytree::{Dataset, Fit};

    fn model() -> Model {
        let texts = ["x", "x,y", "z"].into_iter().cycle().map(Some).take(30).collect();
        let ages = [Some("20"), Some("30"), None].into_iter().cycle().take(30).collect();
        let data = Dataset::from_columns([("a=b", texts), ("age", ages)]).unwrap();
        Fit::new().family("independent").run(&data).unwrap()
    }

    /// The logarithm of the probability of evidence tells which states it allows: all are equally probable.
    #[test]
    fn evidence_is_read_as_it_is_written() {
        let model = model();
        let read = |given: &[&str]| {
            evidence(&model, "--given ", &given.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>())
        };
        let p = |given: &[&str]| model.log_evidence(&read(given).unwrap()).unwrap().value.exp();
        for (given, states) in [
            ("a=b=x,y", 1.0),
            ("a=b=x,z", 2.0),
            ("a=b=x, x,y", 2.0),
            ("age=030", 1.0),
            ("age=20,030", 2.0),
            ("age=", 1.0),
        ] {
            assert!((p(&[given]) - states / 3.0).abs() < 0.05, "{given} {}", p(&[given]));
        }
        let variable = &model.schema().variables[0];
        let said = |value: &str| reading(variable, value, &labels(variable, &[], value));
        assert_eq!(said("x,y").as_deref(), Some("the value \"x,y\""));
        assert_eq!(said("x,z").as_deref(), Some("any of the values \"x\" and \"z\""));
        assert_eq!(said("x"), None);
        for (given, words) in [
            (&["age=40"][..], "unknown value \"40\"; known: \"20\", \"30\", \"\""),
            (&["height=1"], "no column \"height\"; the columns are a=b, age"),
            (&["age=20", "age=30"], "given twice"),
            (&["age=20,30,", "age=30"], "given twice"),
            (&["age"], "COLUMN=VALUE is needed"),
        ] {
            let error = format!("{:#}", read(given).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
