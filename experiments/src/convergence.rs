//! How fast posteriors converge: the paper's figure, with our methods beside its own.

use crate::fitted::Fitted;
use crate::table1::machine;
use anyhow::Result;
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_core::infer::{Effort, Evidence, Messages, Method, Posterior, posterior, weighted_trees};
use everytree_core::model::Density;
use everytree_plot::{Chart, Mark, Panel, Scale, Series};
use std::path::PathBuf;
use std::time::Instant;

const OBSERVED: [usize; 6] = [2, 4, 6, 8, 12, 14];
/// Rows to take evidence from, and seeds of the samples for each.
const ROWS: u64 = 10;
const SEEDS: u64 = 5;
/// Samples: sweeps, trees, or steps of chains.
const SAMPLES: [usize; 6] = [32, 128, 512, 2048, 8192, 32768];
/// Chains are not cut shorter than this.
const SHORTEST: usize = 2048;

/// KL divergence of the posteriors of single variables from the truth, against the number of samples.
///
/// Evidence is that of random columns of random test rows of nltcs. Writes a CSV file and a picture.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments convergence --data twenty --csv convergence.csv --svg convergence.svg"
)]
pub struct Convergence {
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

/// The ways to be compared.
const METHODS: [&str; 6] = ["gibbs", "importance", "collapsed", "tilted", "block gibbs", "tilted twice"];

impl Convergence {
    pub fn run(self) -> Result<()> {
        let nltcs = Fitted::new(&self.data, "nltcs")?;
        let asked = nltcs.inference()?;
        let asked = &*asked;
        let mut csv = format!(
            "# everytree {}, {}\n# everytree-experiments convergence --data FOLDER --csv convergence.csv --svg convergence.svg\n\
             method,observed,row,seed,samples,kl,seconds\n",
            env!("CARGO_PKG_VERSION"),
            machine()
        );
        let mut panels = Vec::new();
        for observed in OBSERVED {
            let mut sums = vec![[0.0; SAMPLES.len()]; METHODS.len()];
            for (row, seed) in (0..ROWS).flat_map(|row| (0..SEEDS).map(move |seed| (row, seed))) {
                let evidence = nltcs.evidence(observed, row)?;
                let truth = posterior(asked, &evidence, Method::Exact, Effort::default())?;
                for (number, method) in METHODS.into_iter().enumerate() {
                    for (place, samples) in SAMPLES.into_iter().enumerate() {
                        if !long_enough(method, samples) {
                            continue;
                        }
                        let start = Instant::now();
                        let found = estimate(asked, &evidence, method, samples, seed)?;
                        let seconds = start.elapsed().as_secs_f64();
                        let kl = divergence(&evidence, &truth, &found, samples);
                        csv +=
                            &format!("{method},{observed},{row},{seed},{samples},{kl:.3e},{seconds:.2e}\n");
                        sums[number][place] += kl / (ROWS * SEEDS) as f64;
                    }
                }
            }
            let series = METHODS.into_iter().enumerate().map(|(number, name)| Series {
                name: name.to_owned(),
                colour: number,
                points: (0..SAMPLES.len())
                    .filter(|&place| long_enough(name, SAMPLES[place]))
                    .map(|place| (SAMPLES[place] as f64, sums[number][place]))
                    .collect(),
            });
            panels.push(Panel { title: format!("{observed} of 16 observed"), series: series.collect() });
            eprintln!("{observed} observed: done");
        }
        let chart = Chart {
            title: "Posteriors of nltcs: distance from the truth".to_owned(),
            x: ("samples".to_owned(), Scale::Logarithmic),
            y: ("KL divergence, nats (mean of 50)".to_owned(), Scale::Logarithmic),
            mark: Mark::Lines,
            across: 3,
            panels,
        };
        write_atomically(&self.csv, csv.as_bytes())?;
        write_atomically(&self.svg, chart.svg().as_bytes())?;
        Ok(())
    }
}

fn long_enough(method: &str, samples: usize) -> bool {
    // The second round of the tilted proposal spends 256 trees before it begins.
    !matches!(method, "gibbs" | "block gibbs" | "tilted twice") || samples >= SHORTEST
}

/// Posteriors of all states from so many samples.
fn estimate<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    method: &str,
    samples: usize,
    seed: u64,
) -> Result<Vec<Vec<f64>>> {
    let effort = Effort { trees: samples, tolerance: None, seed, ..Effort::default() };
    let values = |found: Posterior| {
        found.states.iter().map(|states| states.iter().map(|state| state.value).collect()).collect()
    };
    Ok(match method {
        "gibbs" => values(posterior(density, evidence, Method::Gibbs, effort)?),
        "block gibbs" => values(posterior(density, evidence, Method::BlockGibbs, effort)?),
        "importance" => values(posterior(density, evidence, Method::Importance, effort)?),
        "collapsed" => values(posterior(density, evidence, Method::Collapsed, effort)?),
        "tilted twice" => {
            let effort = Effort { trees: samples - 256, ..effort };
            values(posterior(density, evidence, Method::Tilted, effort)?)
        }
        _ => tilted_once(density, evidence, samples, seed)?,
    })
}

/// The tilted proposal without its second round: exactly so many trees, and none to find out what they should be.
fn tilted_once<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    samples: usize,
    seed: u64,
) -> Result<Vec<Vec<f64>>> {
    let trees = weighted_trees(density, evidence, Method::Tilted, samples, seed)?;
    let most = trees.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
    let mut messages = Messages::new(density.tables());
    let mut sums = vec![0.0; density.states().iter().sum()];
    let mut total = 0.0;
    for (tree, log) in &trees {
        let weight = (log - most).exp();
        messages.collect(tree, evidence);
        sums.iter_mut().zip(messages.distribute(tree)).for_each(|(sum, p)| *sum += weight * p);
        total += weight;
    }
    let mut rest = sums.iter().map(|sum| sum / total);
    Ok(density.states().iter().map(|&count| rest.by_ref().take(count).collect()).collect())
}

/// The mean over hidden variables. An estimate below half a sample counts as that: a state that was never drawn is not
/// impossible.
fn divergence(evidence: &Evidence, truth: &Posterior, found: &[Vec<f64>], samples: usize) -> f64 {
    let least = 0.5 / samples as f64;
    let hidden: Vec<usize> = (0..evidence.variables()).filter(|&v| !evidence.is_given(v)).collect();
    let of = |&v: &usize| -> f64 {
        let sum: f64 = found[v].iter().map(|q| q.max(least)).sum();
        let terms = truth.states[v].iter().zip(&found[v]).filter(|(p, _)| p.value > 0.0);
        terms.map(|(p, q)| p.value * (p.value * sum / q.max(least)).ln()).sum()
    };
    // What rounding leaves of an exact answer.
    (hidden.iter().map(of).sum::<f64>() / hidden.len() as f64).max(1e-16)
}
