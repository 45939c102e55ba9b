//! Columns that are modelled together, as people ask for it.

use anyhow::{Context, Result, bail};
use clap::Args;
use everytree::{Together, column, matching};
use everytree_core::data::Schema;
use std::path::{Path, PathBuf};

/// Which columns are taken as one variable.
#[derive(Args)]
pub struct TogetherArguments {
    /// Columns modelled jointly, exact over all their combinations: `none`, `auto` (what validation prefers), or a FILE with
    /// one block a line, its columns separated by commas.
    #[arg(long, default_value = "none", value_name = "none|auto|FILE")]
    blocks: PathBuf,
    /// With --blocks auto: most combinations of a block; several limits are tried one by one. Default: 6,12,24.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    block_states: Vec<usize>,
    /// Columns modelled jointly, by name; * stands for anything (repeatable).
    #[arg(long, value_name = "PATTERN")]
    group: Vec<String>,
}

impl TogetherArguments {
    /// What is asked for, of these columns.
    pub fn of(&self, schema: &Schema) -> Result<Together> {
        let groups: Result<Vec<Vec<usize>>> =
            self.group.iter().map(|pattern| matching(schema, pattern)).collect();
        let mut groups = groups?;
        let auto = self.blocks == Path::new("auto");
        if !auto && self.blocks != Path::new("none") {
            groups.extend(read(&self.blocks, schema)?);
        }
        Ok(Together { auto, block_states: self.block_states.clone(), groups })
    }
}

/// One block a line, its columns separated by commas.
fn read(path: &Path, schema: &Schema) -> Result<Vec<Vec<usize>>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .with_context(|| format!("--blocks {}: none, auto, or a file", path.display()))?;
    let mut groups = Vec::new();
    for (line, record) in reader.records().enumerate() {
        let at = || format!("{}: block {}", path.display(), line + 1);
        let record = record.with_context(at)?;
        let names = record.iter().filter(|name| !name.is_empty());
        let columns: Result<Vec<usize>> = names.map(|name| Ok(column(schema, name)?)).collect();
        groups.push(columns.with_context(at)?);
    }
    if groups.is_empty() {
        bail!(
            "--blocks {}: there is no block in this file; one a line, column names separated by commas",
            path.display()
        );
    }
    Ok(groups)
}
