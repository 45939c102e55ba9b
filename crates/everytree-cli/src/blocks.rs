//! Columns that are modelled jointly, as people ask for it.

use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{BlockOptions, ColumnGroup};
use everytree_read::small_text;
use std::path::{Path, PathBuf};

/// Which columns are taken as one variable.
#[derive(Args)]
pub struct BlockArguments {
    /// Columns modelled jointly, exact over all their combinations: `none`, `auto` (what validation prefers), or a FILE with
    /// one block a line, its columns separated by commas.
    #[arg(long, default_value = "none", value_name = "none|auto|FILE")]
    blocks: PathBuf,
    /// With --blocks auto: most combinations of a block; several limits are tried one by one. Default: 6,12,24.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub block_states: Vec<usize>,
    /// Columns modelled jointly, by name; * stands for anything (repeatable).
    #[arg(long, value_name = "PATTERN")]
    group: Vec<String>,
}

impl BlockArguments {
    /// The file that says it, if one does.
    pub fn file(&self) -> Option<&Path> {
        Some(&*self.blocks).filter(|blocks| ![Path::new("auto"), Path::new("none")].contains(blocks))
    }

    /// What is asked for.
    pub fn options(&self) -> Result<BlockOptions> {
        let mut options = BlockOptions::default();
        options.auto = self.blocks == Path::new("auto");
        options.groups = self.group.iter().map(|pattern| ColumnGroup::Pattern(pattern.clone())).collect();
        if let Some(file) = self.file() {
            options.groups.extend(read(file)?);
        }
        Ok(options)
    }
}

/// No list of columns is longer.
const MOST_BYTES: u64 = 64 << 20;

/// One block a line, its columns separated by commas.
fn read(path: &Path) -> Result<Vec<ColumnGroup>> {
    let file = small_text(path, MOST_BYTES)
        .with_context(|| format!("--blocks {}: none, auto, or a file", path.display()))?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(file);
    let mut groups = Vec::new();
    for (line, record) in reader.records().enumerate() {
        let at = || format!("{}: block {}", path.display(), line + 1);
        let record = record.with_context(at)?;
        let names = record.iter().filter(|name| !name.is_empty());
        groups.push(ColumnGroup::Columns(names.map(str::to_owned).collect()));
    }
    if groups.is_empty() {
        bail!(
            "--blocks {}: there is no block in this file; one a line, column names separated by commas",
            path.display()
        );
    }
    Ok(groups)
}
