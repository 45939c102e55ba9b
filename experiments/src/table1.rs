//! Table 1 of the paper, and baselines: test log-likelihoods of all families on the Twenty Datasets.

use crate::datasets::{DATASETS, Dataset};
use crate::fits::{Fits, Line, lines_of};
use anyhow::{Result, bail};
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_core::model::{Family, Preset, Trees};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The families of the registry that come with sizes of their own and store no rows: the baselines first, as in the paper's table.
fn families() -> Vec<&'static str> {
    let mut presets: Vec<(Family, &'static Preset)> = Family::listed().collect();
    presets.retain(|(family, _)| !family.stores_rows());
    presets.retain(|(family, preset)| family.spec().trees != Trees::All || preset.name == family.spec().name);
    presets.sort_by_key(|(family, _)| family.spec().trees == Trees::All);
    presets.into_iter().map(|(_, preset)| preset.name).collect()
}

/// What others have published of a family.
fn published(family: &str, dataset: &Dataset) -> Option<f64> {
    match family {
        "mixture-of-trees" => Some(dataset.trees),
        "hclt" => Some(dataset.hclt),
        "moat" => Some(dataset.moat),
        _ => None,
    }
}

/// Fit every family to every dataset of a folder with its usual settings, and set the test log-likelihoods
/// beside what others have published.
///
/// The folder holds NAME/NAME.{train,valid,test}.data.gz. Lines that are already in the table are kept: an interrupted run
/// goes on where it stopped.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments table1 --data twenty --out table1.csv --markdown table1.md --most 500"
)]
pub struct Table1 {
    /// Folder of the datasets.
    #[arg(long)]
    data: PathBuf,
    /// Where the table goes, as CSV.
    #[arg(long)]
    out: PathBuf,
    /// And as Markdown.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Which families. Default: all.
    #[arg(long, value_delimiter = ',')]
    family: Vec<String>,
    /// Most variables of a dataset.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    most: usize,
    /// Only these datasets.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the work is done, as for `everytree fit`.
    #[arg(long, value_name = "auto|cpu|cuda[:N]")]
    device: Option<String>,
    /// More arguments for `everytree fit`.
    #[arg(last = true)]
    fit: Vec<String>,
}

impl Table1 {
    pub fn run(self) -> Result<()> {
        let families: Vec<String> = match self.family.is_empty() {
            true => families().into_iter().map(str::to_owned).collect(),
            false => self.family.clone(),
        };
        for family in families {
            Family::preset(&family)?;
            let mut fit = vec!["--family".to_owned(), family];
            fit.extend(self.fit.iter().cloned());
            if let Some(device) = &self.device {
                fit.extend(["--device".to_owned(), device.clone()]);
            }
            Fits {
                data: self.data.clone(),
                out: self.out.clone(),
                most: self.most,
                only: self.only.clone(),
                fit,
            }
            .run()?;
        }
        let markdown = markdown(&lines_of(&std::fs::read_to_string(&self.out)?));
        match &self.markdown {
            Some(path) => write_atomically(path, markdown.as_bytes())?,
            None => print!("{markdown}"),
        }
        Ok(())
    }
}

/// A line for every dataset, a column for every family; what others have published in brackets.
fn markdown(lines: &[Line<'_>]) -> String {
    let families = families();
    let heads: String = families.iter().map(|family| format!(" {family} |")).collect();
    let mut text = format!("| |{heads}\n|---|{}\n", "---|".repeat(families.len()));
    for dataset in &DATASETS {
        let own: Vec<&Line<'_>> = lines.iter().filter(|line| line.dataset == dataset.name).collect();
        if own.is_empty() {
            continue;
        }
        let mut row = format!("| {} |", dataset.name);
        for family in &families {
            // Of several fits of a family, the one with usual settings comes first in the table.
            let found = own.iter().find(|line| line.is_of(family));
            let published =
                published(family, dataset).map_or(String::new(), |known| format!(" ({known:.2})"));
            row += &found.map_or(" |".to_owned(), |line| format!(" {:.3}{published} |", line.test));
        }
        text += &(row.replace('-', "−") + "\n");
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_is_known_beside_what_was_found() {
        let text = "# a\n# b\ndataset,…\n\
            nltcs,chow-liu,1,,-6.7,-6.7,-6.7591,0,5,31,0.0,0,everytree fit nltcs.train.data.gz … --family chow-liu\n\
            nltcs,moat,1,,-6.0777,-6.0117,-6.0828,47,50,256,0.3,0,everytree fit nltcs.train.data.gz …\n";
        let table = markdown(&lines_of(text));
        let row = "| nltcs | | −6.759 | | | −6.083 (−6.07) | |";
        assert_eq!(table.lines().nth(2), Some(row));
    }
}
