//! A copy of a file with some of its cells filled in, and everything else as it was.

#![cfg_attr(not(any(feature = "csv", feature = "parquet")), allow(dead_code, reason = "no format to copy"))]

use crate::error::{Problem, ReadError};
use crate::frame::Source;
use crate::sheet::{ReadSettings, Sheet};
use crate::table::columns_of;
use everytree_core::data::Schema;
use std::io::Write;
use std::path::Path;

/// A cell to fill: its row (from 0), its variable, and the text of its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The row.
    pub row: u64,
    /// The variable.
    pub variable: usize,
    /// What it says from now on; in a file with types it becomes a value of the column's type.
    pub text: String,
}

/// Copies the file at `path` to `out` in its own format, with these cells (in the order of rows) filled in. Of text files that
/// were compressed the copy is not; a column that had no type at all becomes text.
pub fn copy_filled(
    path: &Path,
    schema: &Schema,
    read: &ReadSettings,
    fills: &[Fill],
    out: &mut (dyn Write + Send),
) -> Result<(), ReadError> {
    let sheet = Sheet::open(Source::File(path), read)?;
    let (variables, header) = columns_of(&sheet, schema, read)?;
    let path = path.to_owned();
    let column_of = |variable: usize| variables.iter().position(|of| *of == Some(variable));
    let fills = fills
        .iter()
        .filter_map(|fill| column_of(fill.variable).map(|column| (fill.row, column, fill.text.as_str())));
    let mut fills = Fills { left: fills.collect::<Vec<_>>().into_iter().peekable() };
    let copied = sheet.into_format().copy_filled(header, &mut fills, out);
    copied.map_err(|problem| ReadError { file: path, problem })
}

/// Fills by row, as the file goes by.
pub(crate) struct Fills<'a> {
    left: std::iter::Peekable<std::vec::IntoIter<(u64, usize, &'a str)>>,
}

impl<'a> Fills<'a> {
    /// Those of the rows before this one that have not been handed out.
    pub fn before(&mut self, row: u64) -> Vec<(u64, usize, &'a str)> {
        let mut some = Vec::new();
        while let Some(fill) = self.left.next_if(|fill| fill.0 < row) {
            some.push(fill);
        }
        some
    }
}

/// What the system says about the copy is not about the file that is copied.
pub(crate) fn unwritten(error: impl std::fmt::Display) -> Problem {
    Problem::Format(format!("its copy cannot be written: {error}"))
}
