//! `everytree info`: single figures about a model.

use crate::Outcome;
use crate::data::use_threads;
use crate::given::evidence;
use anyhow::Result;
use clap::{Args, Subcommand};
use everytree::Model;
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
        let model = Model::load(&self.model)?;
        let figures = model.figures().tolerance(self.tolerance).trees(self.trees).seed(self.seed);
        let (name, unit, found) = match &self.figure {
            Figure::Entropy => ("entropy", " nats", figures.entropy()?),
            Figure::Kl { other } => ("kl", " nats", figures.divergence(&Model::load(other)?)?),
            Figure::MutualInformation { column, other } => {
                ("mutual_information", " nats", figures.mutual_information(column, other)?)
            }
            Figure::Expect { conjunction } => {
                let given = conditions(conjunction);
                ("probability", "", figures.probability(&evidence(&model, "expect ", &given)?)?)
            }
        };
        let mut out = crate::shown::out();
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
                0.0 => writeln!(out, "{name} {:.6}{unit} (exact under the model)", found.value)?,
                error => writeln!(out, "{name} {:.6} ± {error:.6}{unit}", found.value)?,
            }
        }
        Ok(Outcome::Done)
    }
}

/// Conditions with & between, which does not count within double quotes.
fn conditions(text: &str) -> Vec<String> {
    let mut quoted = false;
    let parts = text.split(|sign: char| {
        quoted ^= sign == '"';
        sign == '&' && !quoted
    });
    parts.map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::conditions;

    #[test]
    fn signs_in_quotes_are_part_of_names() {
        assert_eq!(conditions("a=x & b=y"), ["a=x", "b=y"]);
        assert_eq!(conditions(r#""a & b"="u & v" & c=w"#), [r#""a & b"="u & v""#, "c=w"]);
    }
}
