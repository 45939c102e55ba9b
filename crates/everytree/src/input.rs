//! Tables to be scored or imputed, wherever they are: files and frames are read as they go by.

use crate::columns::{Translated, as_schema};
use crate::{Dataset, Result, Unknown};
use everytree_core::data::Schema;
use everytree_read::{CellRules, FileFacts, Problem, ReadError, ReadSettings, Row, Source, for_each_row};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table: a file, a frame in memory (feature `parquet`), or a dataset.
///
/// ```
/// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")]), ("b", vec![Some("1"), Some("2")])])?;
/// let input: everytree::Input<'_> = (&data).into();
/// let file: everytree::Input<'_> = std::path::Path::new("new.csv").into();
/// # let _ = (input, file);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// Read as it goes by: it may be larger than memory.
    Source(Source<'a>),
    /// In memory; its labels are those of the model, or are translated to them.
    Dataset(&'a Dataset),
}

impl Input<'_> {
    /// What it is called where something is wrong with it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Source(source) => source.name().display().to_string(),
            Self::Dataset(_) => "data".to_owned(),
        }
    }

    /// Is it there a second time? A pipe is not.
    pub(crate) fn can_be_read_again(&self) -> bool {
        match self {
            Self::Source(Source::File(path)) => everytree_read::readable_twice(path).is_ok(),
            _ => true,
        }
    }

    /// Calls `on_row` with the codes of every row.
    pub(crate) fn for_each_row(
        &self,
        schema: &Arc<Schema>,
        read: &ReadSettings,
        rules: CellRules,
        on_row: &mut dyn FnMut(Row<'_>) -> Result<()>,
    ) -> Result<FileFacts> {
        match self {
            Self::Source(source) => {
                let mut failed = None;
                let facts = for_each_row(*source, schema, read, rules, &mut |row| {
                    on_row(row).map_err(|error| {
                        failed = Some(error);
                        Problem::Format("not read any further".to_owned())
                    })
                });
                match failed {
                    Some(error) => Err(error.at(self.name())),
                    None => Ok(facts?),
                }
            }
            Self::Dataset(data) => rows_of(data, schema, rules, on_row),
        }
    }
}

/// The rows of a dataset, in the states of a schema.
fn rows_of(
    data: &Dataset,
    schema: &Arc<Schema>,
    rules: CellRules,
    on_row: &mut dyn FnMut(Row<'_>) -> Result<()>,
) -> Result<FileFacts> {
    let unknown = if rules.unknown_is_unobserved { Unknown::Unobserved } else { Unknown::Error };
    let Translated { data, unknown, ignored } = as_schema(data, schema, unknown)?;
    let mut codes = vec![0u16; data.columns()];
    let numeric = schema.numeric().len();
    let unknown_numbers = vec![f64::NAN; numeric];
    for row in 0..data.rows() {
        (0..codes.len()).for_each(|v| codes[v] = data.table().get(row, v) as u16);
        let mut unobserved = Vec::new();
        for &v in data.missing().of(row) {
            let variable = &schema.variables[v];
            codes[v] = 0;
            match rules.missing_is_a_state && variable.missing && !unknown.of(row).contains(&v) {
                true => codes[v] = variable.states.len() as u16,
                false => unobserved.push(v),
            }
        }
        let numbers = data.numbers().get(row * numeric..(row + 1) * numeric).unwrap_or(&unknown_numbers);
        on_row(Row { codes: &codes, numbers, unobserved: &unobserved, unknown: unknown.of(row), ids: &[] })?;
    }
    if data.rows() == 0 {
        return Err(ReadError { file: PathBuf::from("data"), problem: Problem::NoRowsAtAll }.into());
    }
    Ok(FileFacts { rows: data.rows() as u64, ignored, ids: Vec::new(), unknown: unknown.cells() as u64 })
}

impl<'a> From<&'a Dataset> for Input<'a> {
    fn from(data: &'a Dataset) -> Self {
        Self::Dataset(data)
    }
}

impl<'a, S: Into<Source<'a>>> From<S> for Input<'a> {
    fn from(source: S) -> Self {
        Self::Source(source.into())
    }
}

impl<'a> Input<'a> {
    /// A file.
    pub fn file(path: &'a Path) -> Self {
        Self::Source(path.into())
    }
}
