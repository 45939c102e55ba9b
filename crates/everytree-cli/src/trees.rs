//! `everytree trees`: weighted spanning trees of a matrix in a file.

use crate::Outcome;
use crate::report::Question;
use anyhow::{Result, anyhow};
use clap::Args;
use everytree_core::spanning::{Kind, RateError};
use everytree_read::read_weights;
use std::path::PathBuf;

/// Of every weight: as it was read, checked, and copies of the elimination and of what can be drawn from.
const BYTES_OF_CELL: u64 = 60;

/// Sum, rank and draw the weighted spanning trees of a matrix.
///
/// The file is a square CSV matrix of weights that are not negative, with or without a header of names. Undirected: the
/// matrix must be symmetric, its diagonal is not looked at. Directed: row v, column u is the rate of "u is the parent
/// of v", and the diagonal the rate of "v is a root"; the sum is over all rooted forests.
#[derive(Args)]
#[command(
    after_help = "Example:\n  printf 'a,b,c\\n0,1,2\\n1,0,4\\n2,4,0\\n' > w.csv\n  everytree trees w.csv"
)]
pub struct Trees {
    /// Square CSV matrix of weights.
    weights: PathBuf,
    /// Sum over rooted forests of directed rates.
    #[arg(long)]
    directed: bool,
    /// How many edges to show.
    #[arg(long, default_value_t = 10, value_name = "K")]
    top: usize,
    /// Seed of the random tree.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

impl Trees {
    pub fn run(self) -> Result<Outcome> {
        let weights = read_weights(&self.weights)?;
        let file = self.weights.display().to_string();
        let cells = weights.values.len() as u64;
        everytree_core::memory::check("the spanning trees of this matrix", BYTES_OF_CELL * cells)?;
        let kind = if self.directed { Kind::Directed } else { Kind::Undirected };
        if kind == Kind::Undirected {
            check_symmetric(&file, &weights.names, &weights.values)?;
        }
        let question = Question {
            title: &file,
            kind,
            names: &weights.names,
            rates: &weights.values,
            top: self.top,
            seed: self.seed,
            json: self.json,
        };
        question.answer().map_err(|error| match error.downcast_ref::<RateError>() {
            Some(RateError::BadRate { vertex, other, value, .. }) => {
                let (row, column) = (&weights.names[*vertex], &weights.names[*other]);
                anyhow!("{file}: the weight of row {row}, column {column} is {value}; it must be finite and not negative")
            }
            _ => error,
        })
    }
}

fn check_symmetric(file: &str, names: &[String], values: &[f64]) -> Result<()> {
    let n = names.len();
    for v in 0..n {
        for u in 0..v {
            let (a, b) = (values[v * n + u], values[u * n + v]);
            if a != b && !(a.is_nan() && b.is_nan()) {
                return Err(anyhow!(
                    "{file}: row {0}, column {1} is {a}, but row {1}, column {0} is {b}; make it symmetric, or use --directed",
                    names[v],
                    names[u]
                ));
            }
        }
    }
    Ok(())
}
