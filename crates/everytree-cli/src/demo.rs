//! `everytree demo`: the main job on a built-in example.

use crate::Outcome;
use crate::report::Question;
use anyhow::Result;
use clap::Args;
use everytree::spanning::Kind;

/// Count the spanning trees of a built-in example.
///
/// The Petersen graph: ten vertices, fifteen edges, and exactly 2000 spanning trees, so that the answer must be
/// ln 2000 = 7.600902459542, with every edge in 9/15 of the trees.
#[derive(Args)]
#[command(after_help = "Example:\n  everytree demo --json")]
pub struct Demo {
    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
    /// Seed of the random tree.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Demo {
    pub fn run(self) -> Result<Outcome> {
        let (names, rates) = petersen();
        let title = "The Petersen graph";
        let Self { json, seed } = self;
        Question { title, kind: Kind::Undirected, names: &names, rates: &rates, top: 5, seed, json }.answer()
    }
}

/// Outer pentagon `o0…o4`, inner pentagram `i0…i4`, and the spokes between them; every edge of weight 1.
fn petersen() -> (Vec<String>, Vec<f64>) {
    let n = 10;
    let mut rates = vec![0.0; n * n];
    let mut join = |u: usize, v: usize| {
        rates[u * n + v] = 1.0;
        rates[v * n + u] = 1.0;
    };
    for k in 0..5 {
        join(k, (k + 1) % 5);
        join(5 + k, 5 + (k + 2) % 5);
        join(k, 5 + k);
    }
    let names = (0..5).map(|k| format!("o{k}")).chain((0..5).map(|k| format!("i{k}"))).collect();
    (names, rates)
}
