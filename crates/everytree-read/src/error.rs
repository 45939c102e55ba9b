//! What can be wrong with a file, said so that it can be put right.

use everytree_core::data::did_you_mean;
use everytree_core::data::scan::ScanError;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A file that cannot be read as a table.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The row, from 0, without the header.
    pub row: u64,
    /// The line of a text file, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "row {} (line {line})", self.row),
            None => write!(f, "row {}", self.row),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The system says no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A folder.
    #[error("this is a folder, not a file")]
    Directory,
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Names and nothing else.
    #[error("there is a header but no row below it")]
    NoRows,
    /// More than may be used.
    #[error(transparent)]
    Memory(#[from] everytree_core::memory::TooMuchMemory),
    /// A table in memory that has columns and nothing else.
    #[error("there is no row")]
    NoRowsAtAll,
    /// Too few rows.
    #[error("one row is too few: at least two are needed, one to learn from and one to validate with")]
    OneRow,
    /// A single column.
    #[error("there is only one column, {name:?}; a tree needs two{hint}")]
    OneColumn {
        /// Its name.
        name: String,
        /// What may help.
        hint: String,
    },
    /// Another number of fields than in the first line.
    #[error("line {line} has {found} field{s} where line 1 has {expected}; check quotes and delimiters there", s = if *found == 1 { "" } else { "s" })]
    Ragged {
        /// Its line.
        line: u64,
        /// How many.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Bytes that are no text.
    #[error("line {line}, column {column}: {text:?} is not valid UTF-8; convert the file first (iconv can)")]
    NotUtf8 {
        /// Its line.
        line: u64,
        /// Its column, from 1.
        column: usize,
        /// The text as far as it goes.
        text: String,
    },
    /// A zero byte.
    #[error("line {line}, column {column}: there is a NUL byte; is this UTF-16, or not a text file?")]
    Nul {
        /// Its line.
        line: u64,
        /// Its column, from 1.
        column: usize,
    },
    /// A field that cannot be a label.
    #[error(
        "line {line}, column {column}: a field of {bytes} bytes; at most {limit} make a label; check quotes before it"
    )]
    LongField {
        /// Its line.
        line: u64,
        /// Its column, from 1.
        column: usize,
        /// Its length.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A text that is too long for a label, in a format with types.
    #[error("{place}, column {column:?}: a text of {bytes} bytes; at most {limit} make a label")]
    LongLabel {
        /// Its row.
        place: Place,
        /// Its column.
        column: String,
        /// Its length.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A quote that nothing closes.
    #[error(
        "line {line}: a quote opens here and nothing closes it; double it (\"\") where it is part of a value"
    )]
    UnclosedQuote {
        /// Where it opens.
        line: u64,
    },
    /// A row that cannot be one.
    #[error("line {line}: the row that begins here is longer than {limit} bytes; check quotes there")]
    LongRow {
        /// Where it begins.
        line: u64,
        /// The most there may be.
        limit: u64,
    },
    /// A model, or a checkpoint.
    #[error("this is a model or a checkpoint, not a table; `everytree inspect` shows a model")]
    Model,
    /// A pipe.
    #[error("this is not an ordinary file; it is read twice here, so write it to a file first")]
    Pipe,
    /// Two columns with one name.
    #[error("columns {first} and {second} are both named {name:?}; names must differ")]
    DuplicateColumn {
        /// The name.
        name: String,
        /// The first, from 1.
        first: usize,
        /// The second, from 1.
        second: usize,
    },
    /// Nothing observed at all.
    #[error("every cell is missing")]
    AllMissing,
    /// A table that cannot be made discrete.
    #[error("{0}")]
    Scan(Box<ScanError>),
    /// A column of the model that the file has not.
    #[error(
        "there is no column {name:?}{}; the columns are {}{hint}",
        did_you_mean(name, known),
        quoted(known, 20)
    )]
    MissingColumn {
        /// The name.
        name: String,
        /// Those that are.
        known: Vec<String>,
        /// What may help.
        hint: &'static str,
    },
    /// Another number of columns than the model has.
    #[error("there are {found} columns where the model has {expected}")]
    ColumnCount {
        /// How many.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A label that the model has not seen.
    #[error(
        "{place}, column {column:?}: unknown value {value:?}{}; known: {}{}",
        did_you_mean(value, known),
        quoted(known, 10),
        hint
    )]
    Unknown {
        /// Where.
        place: Place,
        /// The column.
        column: Box<str>,
        /// The offending value.
        value: Box<str>,
        /// What there is.
        known: Vec<String>,
        /// What may help.
        hint: Box<str>,
    },
    /// A missing cell where every cell is needed.
    #[error(
        "{place}, column {column:?}: the cell is missing, and no cell of this column was missing in training; every row must \
         be complete here"
    )]
    Unobserved {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// A type that has no states.
    #[error(
        "column {column:?} has type {kind}, which has no discrete states here; convert it to text or numbers, or leave it out \
         with `drop = {column}`"
    )]
    UnsupportedType {
        /// The column.
        column: String,
        /// The type.
        kind: String,
    },
    /// A format that this build was made without.
    #[error("this build does not read such files: it was made without the feature {feature:?}")]
    NotInThisBuild {
        /// What it would need.
        feature: &'static str,
    },
    /// A file of another kind than it seems to be.
    #[error("{0}")]
    Format(String),
}

impl From<ScanError> for Problem {
    fn from(error: ScanError) -> Self {
        Problem::Scan(Box::new(error))
    }
}

/// The first of a list, in quotes.
fn quoted(all: &[String], most: usize) -> String {
    let some: Vec<String> = all.iter().take(most).map(|one| format!("{one:?}")).collect();
    let more = if all.len() > most { format!(", … ({} in all)", all.len()) } else { String::new() };
    format!("{}{more}", some.join(", "))
}
