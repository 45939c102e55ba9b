//! How long questions take on a learned model of a hundred variables.

use crate::fitted::Fitted;
use crate::table1::machine;
use anyhow::Result;
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_core::infer::{Effort, posterior_by_what_fits};
use std::path::PathBuf;
use std::time::Instant;

const DATASETS: [&str; 4] = ["baudio", "jester", "bnetflix", "accidents"];
const OBSERVED: usize = 20;
const QUESTIONS: u64 = 25;

/// Time to a standard error of 0.005 with 20 observed columns of random test rows: for all hidden variables, and for one.
#[derive(Args)]
#[command(after_help = "Example:\n  everytree-experiments questions --data twenty --csv questions.csv")]
pub struct Questions {
    /// Folder of the datasets.
    #[arg(long)]
    data: PathBuf,
    /// Where the figures go.
    #[arg(long)]
    csv: PathBuf,
}

impl Questions {
    pub fn run(self) -> Result<()> {
        let mut csv = format!(
            "# everytree {}, {}\n# everytree-experiments questions --data FOLDER --csv questions.csv\n\
             dataset,variables,observed,question,targets,method,trees,effective_sample_size,worst_error,milliseconds\n",
            env!("CARGO_PKG_VERSION"),
            machine()
        );
        for name in DATASETS {
            let fitted = Fitted::new(&self.data, name)?;
            let asked = fitted.inference()?;
            let asked = &*asked;
            for question in 0..QUESTIONS {
                let evidence = fitted.evidence(OBSERVED, question)?;
                let hidden: Vec<usize> =
                    (0..evidence.variables()).filter(|&v| !evidence.is_given(v)).collect();
                for targets in [&hidden[..], &hidden[..1]] {
                    let effort = Effort { targets, seed: question, ..Effort::default() };
                    let start = Instant::now();
                    let found = posterior_by_what_fits(asked, &evidence, effort)?;
                    let milliseconds = 1e3 * start.elapsed().as_secs_f64();
                    let errors =
                        targets.iter().flat_map(|&v| &found.states[v]).map(|state| state.standard_error);
                    csv += &format!(
                        "{name},{},{OBSERVED},{question},{},{:?},{},{:.0},{:.4},{milliseconds:.1}\n",
                        evidence.variables(),
                        targets.len(),
                        found.method,
                        found.trees,
                        found.effective_sample_size,
                        errors.fold(0.0, f64::max)
                    );
                }
            }
            eprintln!("{name}: done");
        }
        write_atomically(&self.csv, csv.as_bytes())?;
        Ok(())
    }
}
