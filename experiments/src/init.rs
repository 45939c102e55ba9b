//! The paper's ablation: how far learning gets from counts and mutual information, and from random numbers.

use crate::fitted::learned;
use crate::table1::machine;
use anyhow::{Context, Result};
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_plot::{Chart, Mark, Panel, Scale, Series};
use std::path::{Path, PathBuf};

/// Learn with both initialisations from several seeds, and note the validation after every epoch.
#[derive(Args)]
#[command(after_help = "Example:\n  everytree-experiments init --data twenty --csv init.csv --svg init.svg")]
pub struct Init {
    /// Folder of the datasets.
    #[arg(long)]
    data: PathBuf,
    /// Where the figures go.
    #[arg(long)]
    csv: PathBuf,
    /// Where the picture goes.
    #[arg(long)]
    svg: PathBuf,
    /// Which datasets.
    #[arg(long, value_delimiter = ',', default_value = "nltcs,jester")]
    only: Vec<String>,
    /// How many seeds.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
}

const COLUMNS: &str = "dataset,init,seed,epoch,train_ll,valid_ll";
const STARTS: [&str; 2] = ["counts", "random"];
/// Differences smaller than this are drawn as this, in nats.
const LEAST: f64 = 1e-3;

/// One fit: from where, by which seed, and the validation after every epoch.
struct Run {
    start: usize,
    valid: Vec<(usize, f64)>,
}

impl Init {
    pub fn run(self) -> Result<()> {
        let mut lines = vec![
            format!("# everytree {}, {}", env!("CARGO_PKG_VERSION"), machine()),
            "# everytree-experiments init: everytree fit NAME.train.data.gz --valid NAME.valid.data.gz --family moat --init INIT --seed SEED".to_owned(),
            COLUMNS.to_owned(),
        ];
        let mut panels = Vec::new();
        for name in &self.only {
            let mut runs = Vec::new();
            for (start, init) in STARTS.into_iter().enumerate() {
                for seed in 0..self.seeds {
                    let history = history(&self.data, name, init, seed).with_context(|| name.clone())?;
                    for epoch in &history {
                        let (number, train, valid) = (epoch.epoch, epoch.train, epoch.valid);
                        lines.push(format!("{name},{init},{seed},{number},{train:.4},{valid:.4}"));
                    }
                    println!(
                        "{name} {init} {seed}: {:.4}",
                        history.last().map_or(f64::NAN, |last| last.valid)
                    );
                    let valid = history.iter().map(|epoch| (epoch.epoch, epoch.valid)).collect();
                    runs.push(Run { start, valid });
                }
            }
            panels.push(panel(name, &runs));
        }
        write_atomically(&self.csv, (lines.join("\n") + "\n").as_bytes())?;
        let chart = Chart {
            title: "Initialisation: from counts and mutual information, or at random".to_owned(),
            x: ("epoch".to_owned(), Scale::Linear),
            y: ("nats a row below the best validation".to_owned(), Scale::Logarithmic),
            mark: Mark::Lines,
            across: 2,
            panels,
        };
        write_atomically(&self.svg, chart.svg().as_bytes())?;
        Ok(())
    }
}

/// Every run as a line: how far below the best validation of all it is.
fn panel(name: &str, runs: &[Run]) -> Panel {
    let best =
        runs.iter().flat_map(|run| &run.valid).map(|(_, valid)| *valid).fold(f64::NEG_INFINITY, f64::max);
    let series = |run: &Run| Series {
        name: STARTS[run.start].to_owned(),
        colour: 2 * run.start,
        points: run.valid.iter().map(|&(epoch, valid)| (epoch as f64, (best - valid).max(LEAST))).collect(),
    };
    Panel { title: format!("{name}, every seed a line"), series: runs.iter().map(series).collect() }
}

/// The epochs of a fit.
fn history(data: &Path, name: &str, init: &str, seed: u64) -> Result<Vec<everytree_core::learn::Epoch>> {
    let model = learned(data, name, &["--init", init, "--seed", &seed.to_string()])?;
    Ok(model.provenance.results.map(|results| results.history).unwrap_or_default())
}
