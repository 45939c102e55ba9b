//! What the commands that ask a model have in common: columns and values as people write them, and back.

use crate::Outcome;
use crate::data::use_threads;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use everytree::{Labels, column, state, unknown};
use everytree_core::data::{Encoder, Schema};
use everytree_core::file::ModelFile;
use everytree_core::infer::{Evidence, InferError};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

/// The model, what is known, and how to answer.
#[derive(Args)]
pub struct Asking {
    /// Model file.
    pub model: PathBuf,
    /// What is known: a value, or several of which it is one (repeatable). `COLUMN=` is a missing cell.
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
    /// The model and the evidence.
    pub fn open(&self) -> Result<(ModelFile, Evidence)> {
        use_threads(self.threads)?;
        let file = ModelFile::load(&self.model)?;
        let known = evidence(&file.schema, "--given ", &self.given)?;
        Ok((file, known))
    }
}

/// Evidence that no row has is an honest "no"; every other mistake is one.
pub fn possible<T>(found: Result<T, InferError>, json: bool) -> Result<Option<T>> {
    match found {
        Err(error @ (InferError::Impossible | InferError::Unexplained { .. })) => {
            note!("everytree: {error}");
            if json {
                writeln!(std::io::stdout().lock(), "{}", json!({"impossible": true}))?;
            }
            Ok(None)
        }
        other => Ok(Some(other?)),
    }
}

/// A row as an object.
pub fn row_json(labels: &Labels<'_>, row: &[u16]) -> Map<String, Value> {
    labels.row(row).map(|(name, label)| (name.to_owned(), json!(label))).collect()
}

/// What is not `given` is not a missing cell either.
pub fn observed_only(schema: &Schema, given: &[String], known: &mut Evidence) -> Result<()> {
    let named =
        |name: &str| given.iter().any(|text| split(schema, text).is_some_and(|(given, _)| given == name));
    everytree::observed_only(schema, named, known)
}

/// What an honest "no" comes to.
pub const NO: Result<Outcome> = Ok(Outcome::No);

/// `COLUMN=VALUE` or `COLUMN=VALUE,VALUE`, each column once; mistakes are named after what stands `before` them.
pub fn evidence(schema: &Schema, before: &str, given: &[String]) -> Result<Evidence> {
    let encoder = Encoder::new(schema);
    let mut evidence = Evidence::none(&schema.states());
    let mut seen = HashSet::new();
    for text in given {
        let (name, value) =
            split(schema, text).ok_or_else(|| anyhow!("{before}{text}: COLUMN=VALUE is needed"))?;
        let variable = column(schema, name)?;
        if !seen.insert(variable) {
            bail!("{before}{text}: column {name:?} is given twice");
        }
        evidence.set(variable, &states(schema, &encoder, variable, value)?)?;
    }
    Ok(evidence)
}

/// One value, or several with commas between. A label may have commas of its own: the longest that fits is meant.
fn states(schema: &Schema, encoder: &Encoder<'_>, variable: usize, value: &str) -> Result<Vec<usize>> {
    let parts: Vec<&str> = value.split(',').collect();
    let mut found = Vec::new();
    let mut place = 0;
    while place < parts.len() {
        let known = (place..parts.len()).rev().find_map(|last| {
            let label = parts[place..=last].join(",");
            state(schema, encoder, variable, label.trim()).map(|state| (state, last))
        });
        let (state, last) = known.ok_or_else(|| unknown(schema, variable, parts[place].trim()))?;
        found.push(state);
        place = last + 1;
    }
    Ok(found)
}

/// Cuts at the equals sign after which the name of a column ends; names may have such signs of their own.
pub fn split<'a>(schema: &Schema, text: &'a str) -> Option<(&'a str, &'a str)> {
    let mut cuts = text.match_indices('=').map(|(place, _)| (&text[..place], &text[place + 1..]));
    cuts.clone().find(|(name, _)| schema.position(name).is_some()).or_else(|| cuts.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everytree_core::data::{States, Variable};

    fn schema() -> Schema {
        let variable = |name: &str, states, missing| Variable { name: name.to_owned(), states, missing };
        Schema {
            variables: vec![
                variable("a=b", States::Texts(vec!["x".into(), "x,y".into(), "z".into()]), false),
                variable("age", States::Integers(vec![20, 30]), true),
            ],
            header: true,
            missing: vec![String::new()],
        }
    }

    #[test]
    fn evidence_is_read_as_it_is_written() {
        let read = |given: &[&str]| {
            evidence(&schema(), "--given ", &given.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(read(&["a=b=x,y"]).unwrap().of(0), [0.0, 1.0, 0.0]);
        assert_eq!(read(&["a=b=x,z"]).unwrap().of(0), [1.0, 0.0, 1.0]);
        assert_eq!(read(&["a=b=x, x,y"]).unwrap().of(0), [1.0, 1.0, 0.0]);
        assert_eq!(read(&["age=030"]).unwrap().of(1), [0.0, 1.0, 0.0]);
        assert_eq!(read(&["age="]).unwrap().of(1), [0.0, 0.0, 1.0]);
        for (given, words) in [
            (&["age=40"][..], "unknown value \"40\"; known: \"20\", \"30\", \"\""),
            (&["height=1"], "no column \"height\"; the columns are a=b, age"),
            (&["age=20", "age=30"], "given twice"),
            (&["age=20,30,", "age=30"], "given twice"),
            (&["age"], "COLUMN=VALUE is needed"),
        ] {
            let error = read(given).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
