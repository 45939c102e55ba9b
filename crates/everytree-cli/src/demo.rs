//! `everytree demo`: the whole way on data whose truth is known.

use crate::Outcome;
use crate::asia::{self, Row};
use crate::inspect::{edge_json, print_edges};
use anyhow::Result;
use clap::Args;
use everytree::{Dataset, Fit, Precision};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::json;
use std::io::Write;

const ROWS: usize = 20_000;

/// Learn a model of a made-up chest clinic, and compare it with the truth.
///
/// Draws 20,000 patients from the eight-variable "Asia" network of Lauritzen and Spiegelhalter (1988), learns a mixture
/// of all trees from them, and prints conditional probabilities beside the exact ones of the network.
#[derive(Args)]
#[command(after_help = "Example:\n  everytree demo")]
pub struct Demo {
    /// Seed of the patients.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// What is asked: a variable, and evidence about others.
const QUESTIONS: [(usize, &[(usize, bool)]); 8] = [
    (3, &[]),
    (3, &[(2, true)]),
    (3, &[(6, true)]),
    (3, &[(6, true), (2, true)]),
    (3, &[(6, true), (2, false)]),
    (4, &[(7, true)]),
    (1, &[(6, true)]),
    (7, &[(2, true)]),
];

/// P(variable | evidence) from the probability of every row.
fn conditional(p: &[(Row, f64)], variable: usize, evidence: &[(usize, bool)]) -> f64 {
    let given = |row: &Row| evidence.iter().all(|&(v, value)| row[v] == value);
    let sum =
        |keep: &dyn Fn(&Row) -> bool| p.iter().filter(|(row, _)| keep(row)).map(|(_, p)| p).sum::<f64>();
    sum(&|row| given(row) && row[variable]) / sum(&given)
}

impl Demo {
    pub fn run(self) -> Result<Outcome> {
        let mut rng = Pcg64::seed_from_u64(self.seed);
        let rows = Dataset::from_codes(asia::schema(), asia::table((0..ROWS).map(|_| asia::draw(&mut rng))))?;
        // In f64, so that the answer is the same on every machine to more digits than are printed.
        let (train, valid) = rows.split(0.1, self.seed);
        let model = Fit::new().precision(Precision::F64).valid(valid).run(&train)?;
        let all = Dataset::from_codes(asia::schema(), asia::table(asia::all_rows()))?;
        let learned = model.score(&all)?.log_likelihoods;
        let learned: Vec<(Row, f64)> =
            asia::all_rows().zip(learned).map(|(row, log)| (row, log.value.exp())).collect();
        let exact: Vec<(Row, f64)> = asia::all_rows().map(|row| (row, asia::probability(&row))).collect();
        let entropy: f64 = exact.iter().filter(|(_, p)| *p > 0.0).map(|(_, p)| -p * p.ln()).sum();
        let cross: f64 = exact
            .iter()
            .zip(&learned)
            .filter(|((_, p), _)| *p > 0.0)
            .map(|((_, p), (_, q))| -p * q.ln())
            .sum();
        let mut edges = model.edges()?;
        edges.truncate(8);

        let answers: Vec<(String, f64, f64)> = QUESTIONS
            .iter()
            .map(|&(variable, evidence)| {
                let known: Vec<String> = evidence
                    .iter()
                    .map(|&(v, value)| format!("{}={}", asia::NAMES[v], if value { "yes" } else { "no" }))
                    .collect();
                let bar = if known.is_empty() { String::new() } else { format!(" | {}", known.join(", ")) };
                let name = format!("P({}{bar})", asia::NAMES[variable]);
                (name, conditional(&learned, variable, evidence), conditional(&exact, variable, evidence))
            })
            .collect();
        let total: f64 = learned.iter().map(|(_, p)| p).sum();
        let mut out = crate::shown::out();
        if self.json {
            let answer = |(name, learned, exact): &(String, f64, f64)| json!({"question": name, "learned": learned, "exact": exact});
            let edge = edge_json;
            let object = json!({
                "rows": ROWS,
                "parameters": model.parameters(),
                "answers": answers.iter().map(answer).collect::<Vec<_>>(),
                "edges": edges.iter().map(edge).collect::<Vec<_>>(),
                "sum_of_probabilities": total,
                "kullback_leibler": cross - entropy,
            });
            writeln!(out, "{object}")?;
            return Ok(Outcome::Done);
        }
        writeln!(
            out,
            "Learned from 20,000 patients of the chest clinic \"Asia\" (8 yes/no variables): {}.\n",
            crate::members::in_words(&model)
        )?;
        let width = answers.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        writeln!(out, "{:<width$}  learned   exact", "")?;
        for (name, learned, exact) in &answers {
            writeln!(out, "{name:<width$}   {learned:.3}    {exact:.3}")?;
        }
        writeln!(
            out,
            "\nAll 256 rows together have probability {total:.9}; the model is {:.4} nats a row from the truth.",
            cross - entropy
        )?;
        writeln!(out, "\nWhich columns are tied, the most probable first:")?;
        print_edges(&mut out, &edges, None)?;
        writeln!(
            out,
            "\nTry it on a table of yours:\n  everytree fit data.csv\n  everytree inspect data.everytree\n  everytree score data.everytree data.csv --summary"
        )?;
        Ok(Outcome::Done)
    }
}
