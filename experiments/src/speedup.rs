//! How much sooner one build of the program learns than another: seconds an epoch, in turns.

use crate::table1::machine;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree_core::file::write_atomically;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Measure how long an epoch of hidden trees takes in two builds of the program, one after the other in turns.
#[derive(Args)]
pub struct Speedup {
    /// The build to compare with.
    #[arg(long)]
    before: PathBuf,
    /// The build.
    #[arg(long, default_value = "target/release/everytree")]
    program: PathBuf,
    /// The table.
    #[arg(long)]
    table: PathBuf,
    /// States of latent variables.
    #[arg(long, value_delimiter = ',', default_value = "32,64")]
    hidden: Vec<usize>,
    /// Times that each is measured; the fastest counts.
    #[arg(long, default_value_t = 3)]
    times: usize,
    /// Where the results go.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Epochs between the two fits of which the difference is taken.
const EPOCHS: usize = 10;

impl Speedup {
    pub fn run(self) -> Result<()> {
        let mut lines = vec![
            format!("# {}", machine()),
            "# everytree-experiments speedup: everytree fit TABLE --family hclt --hidden H --epochs 11, less --epochs 1".to_owned(),
            "hidden,before_seconds_an_epoch,seconds_an_epoch,times_faster,before_valid_ll,valid_ll".to_owned(),
        ];
        for &hidden in &self.hidden {
            let mut best = [f64::INFINITY; 2];
            let mut valid = [0.0; 2];
            for _ in 0..self.times {
                for (place, program) in [&self.before, &self.program].into_iter().enumerate() {
                    let (short, _) = fit(program, &self.table, hidden, 1)?;
                    let (long, found) = fit(program, &self.table, hidden, 1 + EPOCHS)?;
                    best[place] = best[place].min((long - short) / EPOCHS as f64);
                    valid[place] = found;
                }
            }
            if best[1] <= 0.0 {
                bail!("too quick to be measured: give a larger table");
            }
            lines.push(format!(
                "{hidden},{:.4},{:.4},{:.1},{:.4},{:.4}",
                best[0],
                best[1],
                best[0] / best[1],
                valid[0],
                valid[1]
            ));
            println!("{}", lines[lines.len() - 1]);
        }
        Ok(write_atomically(&self.out, (lines.join("\n") + "\n").as_bytes())?)
    }
}

/// Seconds of learning, and the log-likelihood of the rows to validate with.
fn fit(program: &PathBuf, table: &PathBuf, hidden: usize, epochs: usize) -> Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.arg("fit").arg(table).args(["--family", "hclt", "--json", "--quiet", "--no-refit"]);
    command.args(["--hidden", &hidden.to_string(), "--epochs", &epochs.to_string(), "--patience", "1000"]);
    let mut output = command.arg("--out").arg(folder.path().join("m")).output()?;
    if !output.status.success() {
        // Older builds never learned once more, and do not know the option.
        let rest: Vec<_> =
            command.get_args().filter(|word| *word != "--no-refit").map(ToOwned::to_owned).collect();
        output = Command::new(program).args(rest).output()?;
    }
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let said: Value = serde_json::from_slice(&output.stdout).context("what a fit says")?;
    let number = |name: &str| said[name].as_f64().ok_or_else(|| anyhow!("a fit without {name}"));
    Ok((number("seconds")?, number("valid_ll")?))
}
