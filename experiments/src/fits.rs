//! Fits of the Twenty Datasets with any settings, one line each; and the best of them by validation.

use crate::datasets::{DATASETS, Dataset};
use crate::table1::{fit, machine};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree_core::file::write_atomically;
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
    pub data: PathBuf,
    /// Where the table goes.
    #[arg(long)]
    pub out: PathBuf,
    /// Most variables of a dataset.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    pub most: usize,
    /// Only these datasets.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Arguments for `everytree fit`.
    #[arg(last = true)]
    pub fit: Vec<String>,
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
            let more: String = self.fit.iter().map(|argument| format!(" {argument}")).collect();
            let command = format!("everytree fit {}.train.data.gz …{more}", dataset.name);
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

/// A line of a table of fits.
pub struct Line<'a> {
    pub dataset: &'a str,
    family: &'a str,
    components: &'a str,
    blocks: &'a str,
    valid: f64,
    pub test: f64,
    command: &'a str,
}

impl Line<'_> {
    /// Was this family asked for? A mixture of trees may have turned out to be one tree.
    pub fn is_of(&self, family: &str) -> bool {
        match self.command.split_once("--family ") {
            Some((_, rest)) => rest.split(' ').next() == Some(family),
            None => self.family == family,
        }
    }
}

/// The lines of a table of fits.
pub fn lines_of(text: &str) -> Vec<Line<'_>> {
    text.lines()
        .skip(3)
        .filter_map(|line| {
            let cells: Vec<&str> = line.splitn(13, ',').collect();
            let [dataset, family, components, blocks, _, valid, test, .., command] = cells[..] else {
                return None;
            };
            let (valid, test) = (valid.parse().ok()?, test.parse().ok()?);
            Some(Line { dataset, family, components, blocks, valid, test, command })
        })
        .collect()
}

/// Of tables of fits, for every dataset the best with one component and the best of all, by validation; beside them what
/// others have published. As Markdown.
#[derive(Args)]
pub struct Best {
    /// The tables.
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// Only fits of this family.
    #[arg(long)]
    family: Option<String>,
}

impl Best {
    pub fn run(self) -> Result<()> {
        let texts: std::io::Result<Vec<String>> = self.tables.iter().map(std::fs::read_to_string).collect();
        let texts = texts?;
        let mut lines: Vec<Line<'_>> = texts.iter().flat_map(|text| lines_of(text)).collect();
        if let Some(family) = &self.family {
            lines.retain(|line| line.is_of(family));
        }
        println!(
            "| | one component | best by validation | components | columns | MoAT | HCLT | mixture of trees | best normalised |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for dataset in &DATASETS {
            let best = |some: &dyn Fn(&Line<'_>) -> bool| {
                let of = lines.iter().filter(|line| line.dataset == dataset.name && some(line));
                of.reduce(|best, next| if next.valid > best.valid { next } else { best })
            };
            let Some(Line { test, components, blocks, .. }) = best(&|_| true) else { continue };
            let one = best(&|line| line.components == "1");
            let mark = |other: f64| if *test > other { "" } else { " (ahead)" };
            let row = format!(
                "| {} | {} | {test:.3} | {components} | {} | {:.2}{} | {:.2}{} | {:.2}{} | {:.2}{} ({}) |",
                dataset.name,
                one.map_or(String::new(), |line| format!("{:.3}", line.test)),
                if blocks.is_empty() { "by themselves".to_owned() } else { format!("{blocks} blocks") },
                dataset.moat,
                mark(dataset.moat),
                dataset.hclt,
                mark(dataset.hclt),
                dataset.trees,
                mark(dataset.trees),
                dataset.best.0,
                mark(dataset.best.0),
                dataset.best.1,
            );
            println!("{}", row.replace('-', "−"));
        }
        Ok(())
    }
}
