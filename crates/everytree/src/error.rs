//! What can go wrong, with a code and fields, so that every door can say it in its own words.

use crate::spelling::{Spelling, spelled};
use everytree_core::blocks::BlocksError;
use everytree_core::data::scan::ScanError;
use everytree_core::data::{DatasetError, did_you_mean, listed};
use everytree_core::file::{ContentError, FileError};
use everytree_core::infer::{EvidenceError, InferError};
use everytree_core::learn::{LearnError, SourceError};
use everytree_core::memory::TooMuchMemory;
use everytree_core::model::{ModelError, SettingsError, UnknownFamily};
use everytree_read::{Problem, ReadError};
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What went wrong.
///
/// [`Error::code`] says what kind of mistake it is; [`Error::file`], [`Error::row`], [`Error::column`], [`Error::value`] and
/// [`Error::known`] say where, as far as that is known. The message names options as fields of this library, in backticks;
/// [`Error::spelled`] spells them as flags of the command or as keywords of Python.
///
/// ```
/// use everytree::{ErrorCode, Model};
///
/// let error = Model::load("no such file").unwrap_err();
/// assert_eq!(error.code(), ErrorCode::Io);
/// assert_eq!(error.file().unwrap().to_str(), Some("no such file"));
/// ```
///
/// Where it is:
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("new.csv");
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let survey = everytree::Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = everytree::Fit::new().family("moat").epochs(1).run(&survey)?;
/// std::fs::write(&path, "smoker,cough\nyes,no\nno,perhaps\n")?;
/// let error = model.open(&path).unwrap_err();
/// assert_eq!((error.row(), error.column(), error.value()), (Some(1), Some("cough"), Some("perhaps"))); // from 0
/// assert_eq!(error.known(), ["no", "yes"]);
/// let error = everytree::Fit::new().holdout(2.0).run(&survey).unwrap_err();
/// assert_eq!(error.option_name(), Some("holdout"));
/// assert!(error.spelled(everytree::Spelling::Flags).contains("--holdout"));
/// assert!(error.io().is_none() && !error.is_interrupted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Error {
    kind: Box<Kind>,
    /// Where it happened, the innermost place first.
    places: Vec<String>,
}

/// The kinds of mistakes, stable across versions.
///
/// ```
/// use everytree::{ErrorCode, Fit};
///
/// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"); 4]), ("b", vec![Some("1"); 4])])?;
/// let error = Fit::new().family("oak").run(&data).unwrap_err();
/// assert_eq!(error.code(), ErrorCode::InvalidOption);
/// assert_eq!(error.code().as_str(), "invalid-option");
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// A value of an option that is not possible, or options that do not go together.
    InvalidOption,
    /// A file that the system does not let us read or write.
    Io,
    /// A file that is not what it should be.
    InvalidFile,
    /// A table that cannot be made discrete, or is too small to learn from.
    InvalidData,
    /// A column that is not there.
    UnknownColumn,
    /// A value that a column does not have.
    UnknownValue,
    /// A missing cell where a value is needed.
    MissingValue,
    /// Evidence that no row has.
    ImpossibleEvidence,
    /// Too much to enumerate.
    TooLarge,
    /// More memory than may be used.
    Memory,
    /// A GPU that is not there, or failed.
    Device,
    /// Numbers that are not finite any more.
    Numeric,
    /// Stopped before there was anything to return.
    Stopped,
    /// Something that this build was made without.
    Unsupported,
}

impl ErrorCode {
    /// The code as text, such as `unknown-column`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidOption => "invalid-option",
            Self::Io => "io",
            Self::InvalidFile => "invalid-file",
            Self::InvalidData => "invalid-data",
            Self::UnknownColumn => "unknown-column",
            Self::UnknownValue => "unknown-value",
            Self::MissingValue => "missing-value",
            Self::ImpossibleEvidence => "impossible-evidence",
            Self::TooLarge => "too-large",
            Self::Memory => "memory",
            Self::Device => "device",
            Self::Numeric => "numeric",
            Self::Stopped => "stopped",
            Self::Unsupported => "unsupported",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What happened.
#[derive(Debug, Error)]
#[allow(dead_code, reason = "not every build can come to every mistake")]
pub(crate) enum Kind {
    #[error("`{option}{}`: {problem}", value.as_ref().map_or(String::new(), |value| format!(" = {value}")))]
    Option { option: &'static str, value: Option<String>, problem: String },
    #[error(
        "there is no column {column:?}{}; the columns are {}",
        did_you_mean(column, known),
        first_of(known, 200)
    )]
    UnknownColumn { column: String, known: Vec<String> },
    #[error("column {column:?} was left out when the model was learned")]
    LeftOut { column: String },
    #[error("{}column {column:?}: unknown value {value:?}{}; known: {}{hint}", at_row(*row), did_you_mean(value, known), quoted(known))]
    UnknownValue { row: Option<u64>, column: String, value: String, known: Vec<String>, hint: String },
    #[error("{text:?}: {problem}")]
    Condition { text: String, problem: String },
    #[error("column {column:?}: its values are not numbers, and have no range {range}")]
    NoNumbers { column: String, range: String },
    #[error("column {column:?}: there is no value in {range}; {numbers}")]
    EmptyRange { column: String, range: String, numbers: String, known: Vec<String> },
    #[error("column {column:?}: no value is left; known: {}", quoted(known))]
    NoValueLeft { column: String, known: Vec<String> },
    #[error("column {column:?}: no cell was missing in training, so it has no such state")]
    NeverMissing { column: String },
    #[error("column {column:?} is given twice")]
    GivenTwice { column: String },
    #[error("{0}")]
    Schemas(String),
    #[error("{0}{1}")]
    Memory(TooMuchMemory, &'static str),
    #[error("the block of column {column:?}: {error}")]
    Blocks { column: String, error: BlocksError },
    #[error("its observed cells are impossible under this model: nothing can be said of the others")]
    ImpossibleRow,
    #[error("one row is too few: at least two are needed, one to learn from and one to validate with")]
    OneRow,
    #[error("there is only one column; a tree needs two")]
    OneColumn,
    #[error("stopped before there was a model")]
    NoModel,
    #[error("no family was done; {0}")]
    NobodyCompared(String),
    #[error("{0}")]
    Interrupted(Interrupted),
    #[error("{0}")]
    Device(String),
    #[error("{0}")]
    Unsupported(String),
    #[error(transparent)]
    Dataset(DatasetError),
    #[error(transparent)]
    Evidence(EvidenceError),
    #[error(transparent)]
    Family(UnknownFamily),
    #[error(transparent)]
    File(FileError),
    #[error(transparent)]
    Infer(InferError),
    #[error(transparent)]
    Learn(LearnError),
    #[error(transparent)]
    Read(ReadError),
    #[error("{}: {cause}", path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error(transparent)]
    Sink(std::io::Error),
}

/// Someone has asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Error {
    pub(crate) fn option(option: &'static str, value: impl ToString, problem: impl Into<String>) -> Self {
        Kind::Option { option, value: Some(value.to_string()), problem: problem.into() }.into()
    }

    /// An option that should not be there, whatever its value.
    pub(crate) fn unwanted(option: &'static str, problem: impl Into<String>) -> Self {
        Kind::Option { option, value: None, problem: problem.into() }.into()
    }

    /// Something that a caller's own code wants to be told as one of ours: an error while writing what is streamed to it.
    ///
    /// ```
    /// let error = everytree::Error::while_writing(std::io::ErrorKind::BrokenPipe.into());
    /// assert!(error.io().is_some());
    /// ```
    pub fn while_writing(cause: std::io::Error) -> Self {
        Kind::Sink(cause).into()
    }

    /// The same, and where it happened.
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.places.push(place.into());
        self
    }

    /// What kind of mistake it is.
    pub fn code(&self) -> ErrorCode {
        match &*self.kind {
            Kind::Option { .. } | Kind::Family(_) | Kind::GivenTwice { .. } => ErrorCode::InvalidOption,
            Kind::Condition { .. } | Kind::NoNumbers { .. } => ErrorCode::InvalidOption,
            Kind::EmptyRange { .. } | Kind::NeverMissing { .. } => ErrorCode::UnknownValue,
            Kind::NoValueLeft { .. } => ErrorCode::ImpossibleEvidence,
            Kind::UnknownColumn { .. } | Kind::LeftOut { .. } => ErrorCode::UnknownColumn,
            Kind::UnknownValue { .. } => ErrorCode::UnknownValue,
            Kind::Evidence(_) => ErrorCode::InvalidOption,
            Kind::Schemas(_) | Kind::Blocks { .. } | Kind::OneRow | Kind::OneColumn | Kind::Dataset(_) => {
                ErrorCode::InvalidData
            }
            Kind::ImpossibleRow => ErrorCode::ImpossibleEvidence,
            Kind::NoModel | Kind::NobodyCompared(_) | Kind::Interrupted(_) => ErrorCode::Stopped,
            Kind::Memory(..) => ErrorCode::Memory,
            Kind::Device(_) => ErrorCode::Device,
            Kind::Unsupported(_) => ErrorCode::Unsupported,
            Kind::Write { .. } | Kind::Sink(_) | Kind::File(FileError::Io { .. }) => ErrorCode::Io,
            Kind::File(FileError::Content { what: ContentError::TooMuch(_), .. }) => ErrorCode::Memory,
            Kind::File(_) => ErrorCode::InvalidFile,
            Kind::Infer(error) => infer_code(error),
            Kind::Learn(error) => learn_code(error),
            Kind::Read(error) => read_code(&error.problem),
        }
    }

    /// The file, if it is about one.
    pub fn file(&self) -> Option<&Path> {
        match &*self.kind {
            Kind::Read(error) => Some(&error.file),
            Kind::File(FileError::Io { path, .. } | FileError::Content { path, .. }) => Some(path),
            Kind::Write { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The row, from 0, if it is about one.
    pub fn row(&self) -> Option<u64> {
        match &*self.kind {
            Kind::UnknownValue { row, .. } => *row,
            Kind::Dataset(
                DatasetError::Code { row, .. }
                | DatasetError::Cell { row, .. }
                | DatasetError::Weight { row, .. },
            ) => Some(*row as u64),
            _ => match self.problem()? {
                Problem::Unknown { place, .. } | Problem::Unobserved { place, .. } => Some(place.row),
                _ => None,
            },
        }
    }

    /// The column, if it is about one.
    pub fn column(&self) -> Option<&str> {
        match &*self.kind {
            Kind::UnknownColumn { column, .. }
            | Kind::LeftOut { column }
            | Kind::UnknownValue { column, .. }
            | Kind::GivenTwice { column }
            | Kind::NoNumbers { column, .. }
            | Kind::EmptyRange { column, .. }
            | Kind::NoValueLeft { column, .. }
            | Kind::NeverMissing { column }
            | Kind::Blocks { column, .. }
            | Kind::Dataset(DatasetError::Code { column, .. }) => Some(column),
            _ => match self.problem()? {
                Problem::Unknown { column, .. } => Some(column),
                Problem::Unobserved { column, .. } | Problem::UnsupportedType { column, .. } => Some(column),
                Problem::MissingColumn { name, .. }
                | Problem::DuplicateColumn { name, .. }
                | Problem::OneColumn { name, .. } => Some(name),
                Problem::Scan(error) => scan_column(error),
                _ => None,
            },
        }
    }

    /// The value that was not possible, if it is about one.
    pub fn value(&self) -> Option<&str> {
        match &*self.kind {
            Kind::UnknownValue { value, .. } => Some(value),
            Kind::Option { value, .. } => value.as_deref(),
            Kind::Family(error) => Some(&error.name),
            _ => match self.problem()? {
                Problem::Unknown { value, .. } => Some(value),
                Problem::Scan(error) => match &**error {
                    ScanError::NotNumbers { value, .. } => Some(value),
                    _ => None,
                },
                _ => None,
            },
        }
    }

    /// What would have been possible: the names of the columns, or the values of the column.
    pub fn known(&self) -> &[String] {
        match &*self.kind {
            Kind::UnknownColumn { known, .. }
            | Kind::UnknownValue { known, .. }
            | Kind::EmptyRange { known, .. }
            | Kind::NoValueLeft { known, .. } => known,
            _ => match self.problem() {
                Some(Problem::Unknown { known, .. } | Problem::MissingColumn { known, .. }) => known,
                _ => &[],
            },
        }
    }

    /// The option that it is about, as a field of this library.
    pub fn option_name(&self) -> Option<&'static str> {
        match &*self.kind {
            Kind::Option { option, .. } => Some(option),
            Kind::Family(_) => Some("family"),
            _ => None,
        }
    }

    /// What the system said, if it was the system.
    pub fn io(&self) -> Option<&std::io::Error> {
        match &*self.kind {
            Kind::Write { cause, .. } | Kind::Sink(cause) | Kind::File(FileError::Io { cause, .. }) => {
                Some(cause)
            }
            _ => match self.problem()? {
                Problem::Io(cause) => Some(cause),
                _ => None,
            },
        }
    }

    /// Did someone ask to stop?
    pub fn is_interrupted(&self) -> bool {
        matches!(&*self.kind, Kind::Interrupted(_))
    }

    /// The message, with options spelled as its reader would write them.
    pub fn spelled(&self, spelling: Spelling) -> String {
        spelled(&self.to_string(), spelling)
    }

    fn problem(&self) -> Option<&Problem> {
        match &*self.kind {
            Kind::Read(error) => Some(&error.problem),
            _ => None,
        }
    }
}

fn infer_code(error: &InferError) -> ErrorCode {
    match error {
        InferError::Impossible | InferError::Unexplained { .. } => ErrorCode::ImpossibleEvidence,
        InferError::TooManyRows { .. } => ErrorCode::TooLarge,
        InferError::Variables { .. } => ErrorCode::InvalidData,
        _ => ErrorCode::InvalidFile,
    }
}

fn learn_code(error: &LearnError) -> ErrorCode {
    match error {
        LearnError::Settings(_)
        | LearnError::NoClosedForm
        | LearnError::WeightedMissing
        | LearnError::StoredMissing => ErrorCode::InvalidOption,
        LearnError::Memory(_) => ErrorCode::Memory,
        LearnError::NotFinite { .. } | LearnError::ValidationNotFinite { .. } => ErrorCode::Numeric,
        LearnError::Model(ModelError::Forest(everytree_core::forest::ForestError::Device(_))) => {
            ErrorCode::Device
        }
        _ => ErrorCode::InvalidData,
    }
}

fn read_code(problem: &Problem) -> ErrorCode {
    match problem {
        Problem::Io(_) | Problem::Directory | Problem::Pipe => ErrorCode::Io,
        Problem::Memory(_) => ErrorCode::Memory,
        Problem::MissingColumn { .. } => ErrorCode::UnknownColumn,
        Problem::Unknown { .. } => ErrorCode::UnknownValue,
        Problem::Unobserved { .. } => ErrorCode::MissingValue,
        Problem::Scan(error) => match &**error {
            ScanError::NoSuchColumn { .. } => ErrorCode::UnknownColumn,
            ScanError::BadBins { .. } => ErrorCode::InvalidOption,
            _ => ErrorCode::InvalidData,
        },
        Problem::NotInThisBuild { .. } => ErrorCode::Unsupported,
        Problem::NoRows
        | Problem::NoRowsAtAll
        | Problem::OneRow
        | Problem::OneColumn { .. }
        | Problem::AllMissing
        | Problem::ColumnCount { .. } => ErrorCode::InvalidData,
        _ => ErrorCode::InvalidFile,
    }
}

fn scan_column(error: &ScanError) -> Option<&str> {
    match error {
        ScanError::TooManyStates { column, .. }
        | ScanError::TooManyInAll { column, .. }
        | ScanError::TooManyNumbers { column, .. }
        | ScanError::Missing { column, .. }
        | ScanError::Infinite { column }
        | ScanError::NeverObserved { column }
        | ScanError::NotNumbers { column, .. }
        | ScanError::NoSuchColumn { column, .. }
        | ScanError::BadBins { column, .. } => Some(column),
        _ => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.places.iter().rev() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind), places: Vec::new() }
    }
}

/// Errors of the layers below, as ours.
macro_rules! from {
    ($($error:ty => $kind:expr),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let kind: fn($error) -> Kind = $kind;
                kind(error).into()
            }
        }
    )*};
}

from! {
    Interrupted => Kind::Interrupted,
    DatasetError => Kind::Dataset,
    EvidenceError => Kind::Evidence,
    UnknownFamily => Kind::Family,
    FileError => Kind::File,
    InferError => Kind::Infer,
    LearnError => Kind::Learn,
    ReadError => Kind::Read,
    ModelError => |error| Kind::Learn(error.into()),
    SourceError => |error| Kind::Learn(error.into()),
    SettingsError => |error| Kind::Learn(error.into()),
}

/// Where a value is, if that is known.
fn at_row(row: Option<u64>) -> String {
    row.map_or(String::new(), |row| format!("row {row}, "))
}

/// The first names of a list.
fn first_of(all: &[String], most: usize) -> String {
    let more = if all.len() > most { ", …" } else { "" };
    format!("{}{more}", listed(&all[..all.len().min(most)]))
}

/// The first values of a list; nothing stands for a missing cell.
pub(crate) fn quoted(all: &[String]) -> String {
    const MOST: usize = 10;
    let one = |value: &String| if value.is_empty() { "(missing)".to_owned() } else { format!("{value:?}") };
    let some: Vec<String> = all.iter().take(MOST).map(one).collect();
    let more = if all.len() > MOST { format!(", … ({} in all)", all.len()) } else { String::new() };
    format!("{}{more}", some.join(", "))
}
