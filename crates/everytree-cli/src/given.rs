//! What the commands that ask a model have in common: columns and values as people write them, and back.

use crate::Outcome;
use crate::data::use_threads;
use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::everytree_core::data::{States, did_you_mean};
use everytree::{Condition, ErrorCode, Evidence, Model, Schema, Spelling, Variable};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;

/// The model, the evidence, and how to answer.
#[derive(Args)]
pub struct Asking {
    /// Model file.
    pub model: PathBuf,
    /// Evidence (repeatable), in quotes: 'C=V', 'C!=V', 'C in {V, V}', 'C in A..B' (both ends included), 'C>A' and its kin,
    /// 'C~V:w, V:w' (likelihoods; values not listed weigh 0), 'C=' (missing).
    #[arg(long, value_name = "CONDITION")]
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

/// Conditions as people write them; mistakes are named after what stands `before` them.
pub fn evidence<'m>(model: &'m Model, before: &str, given: &[String]) -> Result<Evidence<'m>> {
    let schema = model.schema();
    let mut evidence = model.evidence();
    for text in given {
        let place = || format!("{before}{text}");
        let (name, condition) = match Condition::parse(schema, text) {
            // It says itself what it is about.
            Err(error) if error.code() == ErrorCode::InvalidOption => bail!("{before}{error}"),
            other => other.with_context(place)?,
        };
        if let Some(variable) = schema.position(&name).map(|variable| &schema.variables[variable]) {
            if let Condition::In(values) = &condition
                && let Some(reading) = reading(text.trim_start().strip_prefix(&*name).unwrap_or(text), values)
            {
                note!("note: {before}{text}: read as {reading}");
            }
            for what in coarser(variable, &condition) {
                note!("note: {before}{text}: {what}");
            }
        }
        evidence = evidence.given_that(&name, condition).with_context(place)?;
    }
    Ok(evidence)
}

/// In words how the values that follow a column were read, where a comma leaves a doubt.
fn reading(text: &str, values: &[Option<String>]) -> Option<String> {
    if !text.contains(',') || text.contains('"') || text.contains('{') {
        return None;
    }
    let quoted: Vec<String> =
        values.iter().map(|value| format!("{:?}", value.as_deref().unwrap_or(""))).collect();
    Some(match &quoted[..] {
        [one] => format!("the value {one}"),
        several => format!("any of the values {}", several.join(" and ")),
    })
}

/// In words which values stand for more than themselves: numbers for their bin, labels that are not told apart for all others.
fn coarser(variable: &Variable, condition: &Condition) -> Vec<String> {
    let values: Vec<&str> = match condition {
        Condition::In(values) | Condition::NotIn(values) => {
            values.iter().flatten().map(String::as_str).collect()
        }
        Condition::Likelihoods(values) => values.iter().map(|(value, _)| value.as_str()).collect(),
        _ => Vec::new(),
    };
    let known = variable.labels();
    let values = values.into_iter().filter(|value| !known.iter().any(|label| label == value));
    match &variable.states {
        States::Bins(edges) => {
            let bin = |value: &str| {
                let number = variable.format.parse_cell(value)?;
                let bin = edges.partition_point(|edge| *edge <= number);
                Some(format!("{value} stands for its bin, {:?}; a range cuts bins", known[bin]))
            };
            values.filter_map(bin).collect()
        }
        States::Others(_) => {
            let other = |value: &str| {
                let hint = did_you_mean(value, &known);
                format!(
                    "{value:?} is not among the labels that are told apart, so it is one of the others{hint}"
                )
            };
            values.map(other).collect()
        }
        _ => Vec::new(),
    }
}

/// A column and a value, as they are asked about: in quotes, or as they are.
pub fn target(schema: &Schema, text: &str) -> (String, String) {
    match Condition::parse(schema, text) {
        Ok((name, Condition::In(values))) if text.contains('"') && values.len() == 1 => {
            (name, values.into_iter().flatten().next().unwrap_or_default())
        }
        _ => {
            let (name, value) = split(schema, text).unwrap_or((text, ""));
            (name.to_owned(), value.to_owned())
        }
    }
}

/// A name without the double quotes around it.
pub fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

/// Cuts at the equals sign after which the name of a column ends; names may have such signs of their own.
fn split<'a>(schema: &Schema, text: &'a str) -> Option<(&'a str, &'a str)> {
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
            ("age!=", 2.0),
            ("age!=20", 1.0),
            ("age in {20, 30}", 2.0),
            ("age in 10..20", 1.0),
            ("age>20", 1.0),
            ("a=b~x:1,z:1", 2.0),
        ] {
            assert!((p(&[given]) - states / 3.0).abs() < 0.05, "{given} {}", p(&[given]));
        }
        // Values that a column does not have narrow whatever else is said of it.
        for (given, states) in [
            (&["a=b!=x", "a=b!=z"][..], 1.0),
            (&["age in 10..40", "age!=20"], 1.0),
            (&["age!=20", "age in 10..40"], 1.0),
            (&["a=b in {x,z}", "a=b!=z"], 1.0),
            (&["age!=", "age!=20"], 1.0),
        ] {
            assert!((p(given) - states / 3.0).abs() < 0.05, "{given:?} {}", p(given));
        }
        let said = |text: &str| match Condition::parse(model.schema(), text).unwrap().1 {
            Condition::In(values) => reading(text, &values),
            _ => None,
        };
        assert_eq!(said("a=b=x,y").as_deref(), Some("the value \"x,y\""));
        assert_eq!(said("a=b=x,z").as_deref(), Some("any of the values \"x\" and \"z\""));
        assert_eq!(said("a=b=x"), None);
        assert_eq!(said("a=b in {x, \"x,y\"}"), None);
        for (given, words) in [
            (&["age=40"][..], "unknown value \"40\"; known: \"20\", \"30\", (missing)"),
            (&["height=1"], "no column \"height\"; the columns are a=b, age"),
            (&["age=20", "age=30"], "given twice"),
            (&["age=20,30,", "age=30"], "given twice"),
            (&["age"], "an operator is needed: age=VALUE"),
            (&["agee=20"], "did you mean \"age\"?"),
            (&["age in 50..60"], "no value in 50..60"),
            (&["age!=20", "age!=30"], "column \"age\": no value is left"),
            (&["a=b="], "no cell was missing in training"),
            (&["age in 30...40"], "two points are between the numbers"),
            (&["age=20..30"], "a range follows \"in\": age in 20..30"),
            (&["25<age"], "the column comes first: age>25"),
            (&["age IN {20}"], "\"in\" is written in small letters: age in {20}"),
            (&["age not in {20}"], "\"not in\" is written !=, as in age!=20"),
        ] {
            let error = format!("{:#}", read(given).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
