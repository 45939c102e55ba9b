//! The paper's histogram of sample weights, and that of trees which lean towards the evidence.

use crate::fitted::Fitted;
use crate::table1::machine;
use anyhow::Result;
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_core::infer::{Method, weighted_trees};
use everytree_plot::{Chart, Mark, Panel, Scale, Series};
use std::path::PathBuf;

const OBSERVED: usize = 4;
const SEEDS: u64 = 5;
const TREES: usize = 20_000;
const WIDTH: f64 = 0.1;
/// Weights from here on are counted in one bar.
const MOST: f64 = 3.0;

/// Weights of random trees at four observed variables of nltcs, over their mean.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments weights --data twenty --csv weights.csv --svg weights.svg"
)]
pub struct Weights {
    /// Folder of the datasets.
    #[arg(long)]
    data: PathBuf,
    /// Where the figures go.
    #[arg(long)]
    csv: PathBuf,
    /// Where the picture goes.
    #[arg(long)]
    svg: PathBuf,
}

impl Weights {
    pub fn run(self) -> Result<()> {
        let nltcs = Fitted::new(&self.data, "nltcs")?;
        let asked = nltcs.inference()?;
        let asked = &*asked;
        let mut csv = format!(
            "# everytree {}, {}\n# everytree-experiments weights --data FOLDER --csv weights.csv --svg weights.svg\n\
             method,observed,from,to,share,effective_share\n",
            env!("CARGO_PKG_VERSION"),
            machine()
        );
        let bars = (MOST / WIDTH).round() as usize;
        let mut panels = Vec::new();
        for (colour, name, method) in
            [(2, "prior (the paper)", Method::Collapsed), (3, "tilted", Method::Tilted)]
        {
            let mut shares = vec![0.0; bars + 1];
            let mut effective = 0.0;
            for seed in 0..SEEDS {
                let evidence = nltcs.evidence(OBSERVED, seed)?;
                let trees = weighted_trees(asked, &evidence, method, TREES, seed)?;
                let most = trees.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = trees.iter().map(|(_, log)| (log - most).exp()).collect();
                let count = weights.len() as f64;
                let mean = weights.iter().sum::<f64>() / count;
                let square = weights.iter().map(|w| w * w).sum::<f64>() / count;
                effective += mean * mean / square / SEEDS as f64;
                for weight in weights {
                    shares[((weight / mean / WIDTH) as usize).min(bars)] += 1.0 / count / SEEDS as f64;
                }
            }
            for (bar, share) in shares.iter().enumerate() {
                let to =
                    if bar == bars { "inf".to_owned() } else { format!("{:.1}", (bar + 1) as f64 * WIDTH) };
                csv +=
                    &format!("{name},{OBSERVED},{:.1},{to},{share:.6},{effective:.4}\n", bar as f64 * WIDTH);
            }
            let points = shares.iter().enumerate().map(|(bar, share)| (bar as f64 * WIDTH, *share)).collect();
            panels.push(Panel {
                title: format!("{name}: worth {:.0} % of as many", 100.0 * effective),
                series: vec![Series { name: name.to_owned(), colour, points }],
            });
        }
        let chart = Chart {
            title: format!("nltcs, {OBSERVED} of 16 observed: weights of random trees"),
            x: (format!("weight over mean weight (last bar: {MOST} and more)"), Scale::Linear),
            y: ("share of trees".to_owned(), Scale::Linear),
            mark: Mark::Bars(WIDTH),
            across: 2,
            panels,
        };
        write_atomically(&self.csv, csv.as_bytes())?;
        write_atomically(&self.svg, chart.svg().as_bytes())?;
        Ok(())
    }
}
