//! Table 1 of the paper: test log-likelihoods on the Twenty Datasets.

use crate::datasets::{DATASETS, Dataset};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree::file::write_atomically;
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: &str = "dataset,variables,rows,unique_rows,train_ll,valid_ll,test_ll,moat_paper,better_by,best_epoch,epochs,parameters,seconds";

/// Fit every dataset of a folder with the default settings, and set the test log-likelihood beside the paper's.
///
/// The folder holds NAME/NAME.{train,valid,test}.data.gz. Lines that are already in the file are kept: an
/// interrupted run goes on where it stopped.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments table1 --data twenty --out table1-moat.csv --most 500"
)]
pub struct Table1 {
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
    /// More arguments for `everytree fit`.
    #[arg(last = true)]
    fit: Vec<String>,
}

impl Table1 {
    pub fn run(self) -> Result<()> {
        if let Some(name) =
            self.only.iter().find(|name| !DATASETS.iter().any(|dataset| dataset.name == *name))
        {
            bail!("there is no dataset {name:?}");
        }
        let mut lines = match std::fs::read_to_string(&self.out) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(_) => vec![
                format!("# everytree {}, {}", env!("CARGO_PKG_VERSION"), machine()),
                self.command(),
                COLUMNS.to_owned(),
            ],
        };
        if lines.get(1) != Some(&self.command()) || lines.get(2).map(String::as_str) != Some(COLUMNS) {
            bail!("{} was made by another command; give it another name", self.out.display());
        }
        let done: HashSet<String> =
            lines.iter().skip(3).filter_map(|line| Some(line.split(',').next()?.to_owned())).collect();
        for Dataset { name, variables, moat: paper, .. } in DATASETS {
            let asked = self.only.is_empty() || self.only.iter().any(|only| only == name);
            if variables > self.most || !asked || done.contains(name) {
                continue;
            }
            let line = self.one(name, variables, paper).with_context(|| name.to_owned())?;
            println!("{line}");
            lines.push(line);
            write_atomically(&self.out, (lines.join("\n") + "\n").as_bytes())?;
        }
        Ok(())
    }

    /// The command that makes the table, without what differs from folder to folder.
    fn command(&self) -> String {
        let fit: String = self.fit.iter().map(|argument| format!(" {argument}")).collect();
        format!(
            "# everytree-experiments table1: everytree fit NAME.train.data.gz --valid NAME.valid.data.gz --test NAME.test.data.gz{fit}"
        )
    }

    fn one(&self, name: &str, variables: usize, paper: f64) -> Result<String> {
        let fit = fit(&self.data, name, &self.fit)?;
        let number = |key: &str| fit[key].as_f64().ok_or_else(|| anyhow!("no {key} in the answer"));
        let whole = |key: &str| fit[key].as_u64().ok_or_else(|| anyhow!("no {key} in the answer"));
        let test = number("test_ll")?;
        Ok(format!(
            "{name},{variables},{},{},{:.4},{:.4},{test:.4},{paper:.2},{:.4},{},{},{},{:.1}",
            whole("rows")?,
            whole("unique_rows")?,
            number("train_ll")?,
            number("valid_ll")?,
            test - paper,
            whole("best_epoch")?,
            whole("epochs")?,
            whole("parameters")?,
            number("seconds")?,
        ))
    }
}

/// `everytree fit` of a dataset, with more arguments: what it says as JSON.
pub fn fit(data: &Path, name: &str, arguments: &[String]) -> Result<Value> {
    let file = |part: &str| data.join(name).join(format!("{name}.{part}.data.gz"));
    let model = std::env::temp_dir().join(format!("everytree-table1-{name}-{}", std::process::id()));
    let output = Command::new(program()?)
        .arg("fit")
        .arg(file("train"))
        .arg("--valid")
        .arg(file("valid"))
        .arg("--test")
        .arg(file("test"))
        .args(["--json", "--quiet", "--out"])
        .arg(&model)
        .args(arguments)
        .output()?;
    // The table is what counts here, not the model.
    let _ = std::fs::remove_file(&model);
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The `everytree` command beside this one.
pub fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().unwrap_or(Path::new("."));
    let program = folder.join(format!("everytree{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        bail!("{} is not there; build it first: cargo build --release --workspace", program.display());
    }
    Ok(program)
}

/// What it ran on.
pub fn machine() -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    format!("{}, {threads} threads", model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}
