//! `everytree info`: single figures about a model.

use crate::Outcome;
use crate::data::use_threads;
use crate::given::evidence;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use everytree::{Translation, column};
use everytree_core::file::ModelFile;
use everytree_core::infer::{Effort, Estimate, InferError};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// One figure about a model: its entropy, its divergence from another, the mutual information of two columns, or the
/// probability of a conjunction.
///
/// Exact where all rows can be enumerated; otherwise from random rows or trees, with a standard error. In nats.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree info survey.everytree entropy\n  everytree info survey.everytree kl other.everytree\n  everytree info survey.everytree mutual-information smoker cancer\n  everytree info survey.everytree expect 'smoker=yes & cancer=no'"
)]
pub struct Info {
    /// Model file.
    model: PathBuf,
    #[command(subcommand)]
    figure: Figure,
    /// Standard error that is good enough.
    #[arg(long, default_value_t = 0.005, value_name = "X", global = true)]
    tolerance: f64,
    /// Most random rows or trees.
    #[arg(long, default_value_t = 200_000, value_name = "N", global = true)]
    trees: usize,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, value_name = "N", global = true)]
    seed: u64,
    /// Threads. Default: all. The result does not depend on it.
    #[arg(long, value_name = "N", global = true)]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Figure {
    /// The entropy of the model, in nats.
    Entropy,
    /// The Kullback–Leibler divergence from this model to another, in nats.
    Kl {
        /// Model file with the same columns.
        other: PathBuf,
    },
    /// The mutual information of two columns, in nats.
    MutualInformation {
        /// One column.
        column: String,
        /// The other column.
        other: String,
    },
    /// The probability that columns have these values together.
    Expect {
        /// `COLUMN=VALUE & COLUMN=VALUE …`
        conjunction: String,
    },
}

impl Info {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            bail!("--tolerance {}: must be positive", self.tolerance);
        }
        if self.trees == 0 {
            bail!("--trees 0: at least one");
        }
        let file = ModelFile::load(&self.model)?;
        let asked = file.model.asked()?;
        let effort = Effort {
            trees: self.trees,
            tolerance: Some(self.tolerance),
            seed: self.seed,
            ..Effort::default()
        };
        let (name, unit, found) = match &self.figure {
            Figure::Entropy => ("entropy", " nats", asked.entropy(effort)?),
            Figure::Kl { other } => {
                let other = ModelFile::load(other)?;
                let translation = Translation::new(&file.schema, &other.schema)?;
                let found = asked.divergence(&other.model.asked()?, &|row| translation.row(row), effort)?;
                ("kl", " nats", found)
            }
            Figure::MutualInformation { column: one, other } => {
                let (u, v) = (column(&file.schema, one)?, column(&file.schema, other)?);
                if u == v {
                    bail!("mutual-information {one} {other}: two different columns are needed");
                }
                ("mutual_information", " nats", asked.mutual_information(u, v, effort)?)
            }
            Figure::Expect { conjunction } => {
                let given: Vec<String> = conjunction.split('&').map(|part| part.trim().to_owned()).collect();
                let known = evidence(&file.schema, "expect ", &given)?;
                // The error of a probability is that of its logarithm times itself.
                let found = match asked.log_evidence(&known, effort) {
                    Ok(log) => {
                        let p = log.value.exp();
                        Estimate { value: p, standard_error: p * log.standard_error }
                    }
                    Err(InferError::Impossible) => Estimate { value: 0.0, standard_error: 0.0 },
                    Err(error) => return Err(error.into()),
                };
                ("probability", "", found)
            }
        };
        let mut out = std::io::stdout().lock();
        if self.json {
            let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
            let mut object = json!({"standard_error": number(found.standard_error)});
            object[name] = number(found.value);
            if found.value.is_infinite() {
                object["infinite"] = json!(true);
            }
            writeln!(out, "{object}")?;
        } else {
            let name = name.replace('_', " ");
            match found.standard_error {
                0.0 => writeln!(out, "{name} {:.6}{unit} (exact)", found.value)?,
                error => writeln!(out, "{name} {:.6} ± {error:.6}{unit}", found.value)?,
            }
        }
        Ok(Outcome::Done)
    }
}
