//! Fits of the Twenty Datasets with any settings, one line each; and the best of them by validation.

use crate::datasets::{DATASETS, Dataset};
use crate::table1::{fit, machine};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree::file::write_atomically;
use std::path::PathBuf;

const COLUMNS: &str = "dataset,family,components,blocks,train_ll,valid_ll,test_ll,best_epoch,epochs,parameters,seconds,seed,command";

/// Fit datasets with the arguments after `--`, and add a line for each to a table.
///
/// The folder holds NAME/NAME.{train,valid,test}.data.gz. Lines that are already in the table, with the same arguments, are
/// kept: an interrupted run goes on where it stopped. `best` chooses among the lines.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments fits --data twenty --out table1-directed.csv --only nltcs,plants -- --family directed --components 4"
)]
pub struct Fits {
    /// Folder of the datasets.
    #[arg(long)]
    data: PathBuf,
    /// Where the table goes.
    #[arg(long)]
    out: PathBuf,
    /// Most variables of a dataset.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    most: usize,
    /// Only these datasets.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Arguments for `everytree fit`.
    #[arg(last = true)]
    fit: Vec<String>,
}

impl Fits {
    pub fn run(self) -> Result<()> {
        if let Some(name) =
            self.only.iter().find(|name| !DATASETS.iter().any(|dataset| dataset.name == **name))
        {
            bail!("there is no dataset {name:?}");
        }
        let asked = |dataset: &&Dataset| {
            dataset.variables <= self.most
                && (self.only.is_empty() || self.only.iter().any(|only| only == dataset.name))
        };
        for dataset in DATASETS.iter().filter(asked) {
            let command = format!("everytree fit {}.train.data.gz … {}", dataset.name, self.fit.join(" "));
            // Read anew each time: several of these may add to one table in turn.
            let mut lines: Vec<String> = match std::fs::read_to_string(&self.out) {
                Ok(text) => text.lines().map(str::to_owned).collect(),
                Err(_) => vec![
                    format!("# everytree {}, {}", env!("CARGO_PKG_VERSION"), machine()),
                    "# everytree-experiments fits: everytree fit NAME.train.data.gz --valid NAME.valid.data.gz --test NAME.test.data.gz …".to_owned(),
                    COLUMNS.to_owned(),
                ],
            };
            if lines.get(2).map(String::as_str) != Some(COLUMNS) {
                bail!("{} is another table; give it another name", self.out.display());
            }
            if lines.iter().any(|line| line.ends_with(&format!(",{command}"))) {
                continue;
            }
            let line = self.one(dataset, &command).with_context(|| dataset.name.to_owned())?;
            println!("{line}");
            lines.push(line);
            write_atomically(&self.out, (lines.join("\n") + "\n").as_bytes())?;
        }
        Ok(())
    }

    fn one(&self, dataset: &Dataset, command: &str) -> Result<String> {
        let fit = fit(&self.data, dataset.name, &self.fit)?;
        let number = |key: &str| fit[key].as_f64().ok_or_else(|| anyhow!("no {key} in the answer"));
        let whole = |key: &str| fit[key].as_u64().ok_or_else(|| anyhow!("no {key} in the answer"));
        Ok(format!(
            "{},{},{},{},{:.4},{:.4},{:.4},{},{},{},{:.1},{},{command}",
            dataset.name,
            fit["family"].as_str().unwrap_or_default(),
            whole("components")?,
            fit["blocks"].as_u64().map_or(String::new(), |blocks| blocks.to_string()),
            number("train_ll")?,
            number("valid_ll")?,
            number("test_ll")?,
            whole("best_epoch")?,
            whole("epochs")?,
            whole("parameters")?,
            number("seconds")?,
            whole("seed")?,
        ))
    }
}

/// Of a table of fits, for every dataset the best with one component and the best of all, by validation; beside them what
/// others have published. As Markdown.
#[derive(Args)]
pub struct Best {
    /// The table.
    table: PathBuf,
}

impl Best {
    pub fn run(self) -> Result<()> {
        let text = std::fs::read_to_string(&self.table)?;
        let fits: Vec<Vec<&str>> = text.lines().skip(3).map(|line| line.splitn(13, ',').collect()).collect();
        println!(
            "| | one component | best by validation | components | columns | MoAT | HCLT | mixture of trees | best normalised |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for dataset in &DATASETS {
            let own: Vec<(&Vec<&str>, f64, f64)> = fits
                .iter()
                .filter(|fit| fit.first() == Some(&dataset.name) && fit.len() == 13)
                .map(|fit| Ok((fit, fit[5].parse()?, fit[6].parse()?)))
                .collect::<Result<_>>()?;
            let best = |some: &dyn Fn(&[&str]) -> bool| {
                let of = own.iter().filter(|(fit, ..)| some(fit));
                of.copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
            };
            let Some((fit, _, test)) = best(&|_| true) else { continue };
            let one = best(&|fit| fit[2] == "1").map_or(String::new(), |(_, _, test)| format!("{test:.3}"));
            let mark = |found: f64, other: f64| if found > other { "" } else { " (ahead)" };
            println!(
                "| {} | {one} | {test:.3} | {} | {} | {:.2}{} | {:.2}{} | {:.2}{} | {:.2}{} ({}) |",
                dataset.name,
                fit[2],
                if fit[3].is_empty() { "by themselves".to_owned() } else { format!("{} blocks", fit[3]) },
                dataset.moat,
                mark(test, dataset.moat),
                dataset.hclt,
                mark(test, dataset.hclt),
                dataset.trees,
                mark(test, dataset.trees),
                dataset.best.0,
                mark(test, dataset.best.0),
                dataset.best.1,
            );
        }
        Ok(())
    }
}
