//! Datasets, and how they are read.

use crate::{Error, Result, Unknown};
use everytree_core::data::scan::{MissingCells, Notice, ScanSettings};
use everytree_core::data::{self, Decimal, Missing, Schema, Table};
use everytree_read::{CellRules, Header, ReadSettings, Selection, Source, read_dataset, scan_tables};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// A table: columns with names and states, rows of codes, missing cells, and row weights.
///
/// The engine's [`everytree_core::data::Dataset`] (to which it dereferences), with a way in from files and out to them.
///
/// ```
/// use everytree::Dataset;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.csv");
/// std::fs::write(&path, "smoker,cough\nyes,yes\nno,no\nno,yes\n")?;
/// let survey = Dataset::open(&path)?;
/// assert_eq!((survey.rows(), survey.columns()), (3, 2));
/// assert_eq!(survey.label(2, 1).as_deref(), Some("yes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset(data::Dataset);

impl Dataset {
    /// Reads a file as [`ReadOptions`] do by default: CSV, TSV, headerless `.data`, each plain or gzip (feature `csv`),
    /// Parquet or Arrow (feature `parquet`).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        ReadOptions::default().open(path)
    }

    /// From columns of labels, each with its name; `None` is a missing cell.
    ///
    /// ```
    /// let data = everytree::Dataset::from_columns([
    ///     ("smoker", vec![Some("yes"), Some("no"), None]),
    ///     ("visits", vec![Some("2"), Some("11"), Some("2")]),
    /// ])?;
    /// assert_eq!(data.schema().variables[1].labels(), ["2", "11"]); // in the order of numbers
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn from_columns<'a, N: Into<String>>(
        columns: impl IntoIterator<Item = (N, Vec<Option<&'a str>>)>,
    ) -> Result<Self> {
        crate::columns::dataset(columns.into_iter().map(|(name, cells)| (name.into(), cells)).collect())
    }

    /// Rows of codes of a schema.
    ///
    /// ```
    /// use everytree::{Dataset, Schema};
    /// use everytree_core::data::Table;
    ///
    /// let mut table = Table::new(&[2, 3]);
    /// table.push(&[1, 2]);
    /// assert_eq!(Dataset::from_codes(Schema::anonymous(&[2, 3]), table)?.rows(), 1);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn from_codes(schema: impl Into<Arc<Schema>>, table: Table) -> Result<Self> {
        Ok(Self(data::Dataset::new(schema, table)?))
    }

    /// With these cells missing.
    ///
    /// ```
    /// use everytree_core::data::Missing;
    ///
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")])])?;
    /// let mut missing = Missing::default();
    /// missing.push(1, vec![0]);
    /// assert_eq!(data.with_missing(missing)?.label(1, 0), None);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn with_missing(self, missing: Missing) -> Result<Self> {
        Ok(Self(self.0.with_missing(missing)?))
    }

    /// With the numbers of columns of numbers, row by row (those of missing cells mean nothing).
    ///
    /// ```
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")])])?;
    /// assert_eq!(data.clone().with_numbers(Vec::new())?, data); // there is no such column
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn with_numbers(self, numbers: Vec<f64>) -> Result<Self> {
        Ok(Self(self.0.with_numbers(numbers)?))
    }

    /// With a weight for each row: what weighs 2 counts as if it were there twice.
    ///
    /// ```
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")])])?;
    /// assert_eq!(data.with_weights(vec![2.0, 0.5])?.weights(), [2.0, 0.5]);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn with_weights(self, weights: Vec<f64>) -> Result<Self> {
        Ok(Self(self.0.with_weights(weights)?))
    }

    /// Two parts: most rows, and a `fraction` of them drawn by seed. Rows keep their order.
    ///
    /// ```
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"); 10]), ("b", vec![Some("y"); 10])])?;
    /// let (train, test) = data.split(0.2, 0);
    /// assert_eq!((train.rows(), test.rows()), (8, 2));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn split(&self, fraction: f64, seed: u64) -> (Self, Self) {
        let (most, rest) = self.0.split(fraction, seed);
        (Self(most), Self(rest))
    }

    /// Writes the dataset: as Parquet (feature `parquet`) where the name ends so, tab-separated for `.tsv`, else as CSV. The
    /// file appears whole or not at all.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("copy.csv");
    /// let data = everytree::Dataset::from_columns([("a", vec![Some("x"), None]), ("b", vec![Some("1"), Some("2")])])?;
    /// data.write(&path)?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "a,b\nx,1\n,2\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        crate::write::dataset(self, path.as_ref())
    }
}

impl Deref for Dataset {
    type Target = data::Dataset;

    fn deref(&self) -> &data::Dataset {
        &self.0
    }
}

impl From<data::Dataset> for Dataset {
    fn from(data: data::Dataset) -> Self {
        Self(data)
    }
}

/// Rows, columns and missing cells.
impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {} columns", self.rows(), self.columns())?;
        match self.missing().cells() {
            0 => Ok(()),
            cells => write!(f, ", {cells} missing cells"),
        }
    }
}

/// What a missing cell of a table to learn from is.
///
/// ```
/// use everytree::{MissingValues, ReadOptions};
///
/// let options = ReadOptions::default().missing(MissingValues::Marginalise);
/// assert_eq!(options.missing, MissingValues::Marginalise);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MissingValues {
    /// One more state of its column.
    #[default]
    Category,
    /// A value that was not observed, and is summed out.
    Marginalise,
    /// A mistake.
    Error,
}

/// How cells become states.
///
/// ```
/// use everytree::{MissingValues, ReadOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.csv");
/// std::fs::write(&path, "smoker,cough\nyes,-\nno,no\nno,yes\n")?;
/// let survey = ReadOptions::default().na(["-"]).missing(MissingValues::Marginalise).open(&path)?;
/// assert_eq!(survey.missing().cells(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Everything that can be said about reading:
///
/// ```
/// use everytree::ReadOptions;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.txt");
/// std::fs::write(&path, "1.5|yes\n2.5|no\n3.5|no\n4.5|yes\n")?;
/// let reading = ReadOptions::default().delimiter('|').header(false).max_states(3).bins("x0", 2);
/// let survey = reading.open(&path)?;
/// assert_eq!(survey.schema().variables[0].labels().len(), 2);
/// // Columns of too many numbers can be refused instead of being cut into bins.
/// assert!(ReadOptions::default().header(false).max_states(3).bin_numbers(false).open(&path).is_err());
/// // Once more, with a schema that is known; and how text is cut into fields.
/// let again = reading.read_all(&[path.as_path().into()], 1, survey.schema())?;
/// assert_eq!(again.datasets[0], survey);
/// assert_eq!(reading.text()?.delimiter, Some(b'|'));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Most different values of a column that are states as they are.
    pub max_states: usize,
    /// Quantile bins by name of the column.
    pub bins: BTreeMap<String, usize>,
    /// Are columns of too many numbers cut into bins, or refused?
    pub bin_numbers: bool,
    /// What a missing cell is.
    pub missing: MissingValues,
    /// Texts that stand for a missing cell; the empty one always does.
    pub na: Vec<String>,
    /// Between fields of text files; else by the name of the file, or by its looks.
    pub delimiter: Option<char>,
    /// Do text files begin with names? Else it is seen in the first file.
    pub header: Option<bool>,
    /// Bins of every column of more different numbers than that.
    pub all_bins: Option<usize>,
    /// Of columns of more texts than that, so many of the most frequent are told apart; all others are one state, "other".
    pub other: Option<usize>,
    /// The same by name of the column.
    pub others: BTreeMap<String, usize>,
    /// What stands before the fraction of numbers, where it could be either: `.` or `,`. Else it is seen in the column.
    pub decimal: Option<char>,
    /// Only these columns; none: all. Names may have `*` for anything and `?` for one character.
    pub columns: Vec<String>,
    /// Not these columns.
    pub drop: Vec<String>,
    /// Columns that tell rows apart: not in the model, but they go with the rows into scores, samples and imputed files.
    pub id: Vec<String>,
    /// What becomes of a label of a table to test with that was not seen before.
    pub unknown: Unknown,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let ScanSettings { max_states, missing, .. } = ScanSettings::default();
        Self {
            max_states,
            bins: BTreeMap::new(),
            bin_numbers: true,
            missing: MissingValues::default(),
            na: missing,
            delimiter: None,
            header: None,
            all_bins: None,
            other: None,
            others: BTreeMap::new(),
            decimal: None,
            columns: Vec::new(),
            drop: Vec::new(),
            id: Vec::new(),
            unknown: Unknown::default(),
        }
    }
}

/// What there was in a table that was read.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.csv");
/// # std::fs::write(&path, "a,b\n1,x\n2,y\n")?;
/// let opened = everytree::ReadOptions::default().open_all(&[path.as_path().into()], 1)?;
/// assert_eq!(opened.datasets[0].rows(), 2);
/// assert!(opened.notices.is_empty() && opened.ignored[0].is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The table itself, and others that were read like it.
    pub datasets: Vec<Dataset>,
    /// What happened to its columns on the way.
    pub notices: Vec<Notice>,
    /// Of every table, the columns that were passed over.
    pub ignored: Vec<Vec<String>>,
    /// Of every table, how many cells had labels that are not known, and were taken for missing.
    pub unknown: Vec<u64>,
}

impl ReadOptions {
    /// Most different values of a column that are states as they are.
    pub fn max_states(mut self, most: usize) -> Self {
        self.max_states = most;
        self
    }

    /// Cuts a column of numbers into so many quantile bins.
    pub fn bins(mut self, column: impl Into<String>, bins: usize) -> Self {
        self.bins.insert(column.into(), bins);
        self
    }

    /// Are columns of too many numbers cut into bins, or refused?
    pub fn bin_numbers(mut self, bin_numbers: bool) -> Self {
        self.bin_numbers = bin_numbers;
        self
    }

    /// What a missing cell is.
    pub fn missing(mut self, missing: MissingValues) -> Self {
        self.missing = missing;
        self
    }

    /// Texts that stand for a missing cell, besides the empty one.
    pub fn na<'a>(mut self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        self.na = std::iter::once("").chain(texts).map(str::to_owned).collect();
        self
    }

    /// Between fields of text files.
    pub fn delimiter(mut self, delimiter: char) -> Self {
        self.delimiter = Some(delimiter);
        self
    }

    /// Cuts every column of more different numbers than that into so many quantile bins.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("t.csv");
    /// std::fs::write(&path, "a,b\n1,x\n2,y\n3,x\n4,y\n")?;
    /// let data = everytree::ReadOptions::default().all_bins(2).open(&path)?;
    /// assert_eq!(data.schema().variables[0].labels(), ["< 3", ">= 3"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn all_bins(mut self, bins: usize) -> Self {
        self.all_bins = Some(bins);
        self
    }

    /// Of columns of more texts than that, tells the most frequent apart, and takes all others for one state.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("t.csv");
    /// std::fs::write(&path, "job,b\nnurse,x\nnurse,y\ncook,x\nsmith,y\n")?;
    /// let data = everytree::ReadOptions::default().other(1).open(&path)?;
    /// assert_eq!(data.schema().variables[0].labels(), ["nurse", "other"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn other(mut self, most: usize) -> Self {
        self.other = Some(most);
        self
    }

    /// What stands before the fraction of numbers, where it could be either: `.` or `,`.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("t.tsv");
    /// std::fs::write(&path, "a\tb\n1,250\tx\n2,500\ty\n")?;
    /// let data = everytree::ReadOptions::default().decimal(',').open(&path)?;
    /// assert_eq!(data.schema().variables[0].labels(), ["1,25", "2,5"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decimal(mut self, decimal: char) -> Self {
        self.decimal = Some(decimal);
        self
    }

    /// Only columns of this name or pattern, and of others that are named so.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("t.csv");
    /// std::fs::write(&path, "id,x1,x2,note\n7,a,b,long story\n8,c,d,another\n")?;
    /// let reading = everytree::ReadOptions::default();
    /// let data = reading.clone().column("x*").open(&path)?;
    /// assert_eq!(data.table(), reading.clone().drop("note").id("id").open(&path)?.table());
    /// assert_eq!(data.schema().left_out, ["id", "note"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column(mut self, pattern: impl Into<String>) -> Self {
        self.columns.push(pattern.into());
        self
    }

    /// Leaves columns of this name or pattern out.
    pub fn drop(mut self, pattern: impl Into<String>) -> Self {
        self.drop.push(pattern.into());
        self
    }

    /// A column that tells rows apart: not in the model, but it goes with the rows into scores.
    pub fn id(mut self, pattern: impl Into<String>) -> Self {
        self.id.push(pattern.into());
        self
    }

    /// What becomes of a label of a table to test with that was not seen before.
    ///
    /// ```
    /// use everytree::{ReadOptions, Unknown};
    /// assert_eq!(ReadOptions::default().unknown(Unknown::Unobserved).unknown, Unknown::Unobserved);
    /// ```
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// Do text files begin with the names of their columns?
    pub fn header(mut self, header: bool) -> Self {
        self.header = Some(header);
        self
    }

    /// Reads a file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        let mut opened = self.open_all(&[path.as_ref().into()], 1)?;
        Ok(opened.datasets.swap_remove(0))
    }

    /// Reads a table whose columns and states are known: those of a model, or of another dataset.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("new.csv");
    /// # std::fs::write(&path, "b,a\n2,x\n")?;
    /// let known = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")]), ("b", vec![Some("1"), Some("2")])])?;
    /// let new = everytree::ReadOptions::default().open_like(&path, known.schema())?;
    /// assert_eq!(new.label(0, 0).as_deref(), Some("x"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_like(&self, path: impl AsRef<Path>, schema: &Arc<Schema>) -> Result<Dataset> {
        let rules =
            CellRules { missing_is_a_state: false, unknown_is_unobserved: false, incomplete_rows: true };
        Ok(read_dataset(path.as_ref(), schema, &self.text()?, rules)?.0.into())
    }

    /// Reads several tables with one schema, which comes from the labels of the first `scanned` of them. In the others, to test
    /// with, cells may be missing that are not a state.
    pub fn open_all(&self, sources: &[Source<'_>], scanned: usize) -> Result<Opened> {
        let Some(first) = sources.first() else {
            return Ok(Opened {
                datasets: Vec::new(),
                notices: Vec::new(),
                ignored: Vec::new(),
                unknown: Vec::new(),
            });
        };
        let scanned = scanned.clamp(1, sources.len());
        let found = scan_tables(*first, &sources[1..scanned], &self.text()?, &self.scan()?)?;
        let mut opened = self.read_all(sources, scanned, &Arc::new(found.schema))?;
        opened.notices = found.notices;
        Ok(opened)
    }

    /// The same with a schema that is known.
    pub fn read_all(&self, sources: &[Source<'_>], scanned: usize, schema: &Arc<Schema>) -> Result<Opened> {
        self.unknown.check(schema)?;
        let (mut datasets, mut ignored, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        // What is left out the schema knows.
        let read = ReadSettings { selection: Selection::default(), ..self.text()? };
        for (place, source) in sources.iter().enumerate() {
            let marginalise = self.missing == MissingValues::Marginalise;
            let to_test_with = place >= scanned;
            let rules = CellRules {
                missing_is_a_state: !marginalise,
                unknown_is_unobserved: to_test_with && self.unknown == Unknown::Unobserved,
                incomplete_rows: marginalise || to_test_with,
            };
            let (data, facts) = read_dataset(*source, schema, &read, rules)?;
            datasets.push(data.into());
            ignored.push(facts.ignored);
            unknown.push(facts.unknown);
        }
        Ok(Opened { datasets, notices: Vec::new(), ignored, unknown })
    }

    /// How text files are cut into fields.
    pub fn text(&self) -> Result<ReadSettings> {
        let delimiter = match self.delimiter {
            None => None,
            Some(c) if c.is_ascii() => Some(c as u8),
            Some(c) => return Err(Error::option("delimiter", c, "one ASCII character")),
        };
        let header = match self.header {
            None => Header::Auto,
            Some(true) => Header::Yes,
            Some(false) => Header::No,
        };
        let selection =
            Selection { columns: self.columns.clone(), drop: self.drop.clone(), ids: self.id.clone() };
        Ok(ReadSettings { delimiter, header, selection })
    }

    fn scan(&self) -> Result<ScanSettings> {
        const MOST: usize = data::MAX_STATES;
        if let Some(bins) = self.all_bins.filter(|bins| !(2..=1024).contains(bins)) {
            return Err(Error::option("bins", bins, "between 2 and 1024"));
        }
        let fewest = self.other.iter().chain(self.others.values()).find(|most| !(1..MOST).contains(most));
        if let Some(most) = fewest {
            return Err(Error::option("other", most, format!("between 1 and {}", MOST - 1)));
        }
        if !(2..=MOST).contains(&self.max_states) {
            return Err(Error::option("max_states", self.max_states, format!("between 2 and {MOST}")));
        }
        Ok(ScanSettings {
            kinds: BTreeMap::new(),
            max_states: self.max_states,
            bins: self.bins.clone(),
            all_bins: self.all_bins,
            other: self.other,
            others: self.others.clone(),
            decimal: match self.decimal {
                None => Decimal::default(),
                Some('.') => Decimal::Point,
                Some(',') => Decimal::Comma,
                Some(other) => return Err(Error::option("decimal", other, "a point or a comma")),
            },
            bin_numbers: self.bin_numbers,
            missing_cells: match self.missing {
                MissingValues::Category => MissingCells::State,
                MissingValues::Marginalise => MissingCells::Unobserved,
                MissingValues::Error => MissingCells::Refused,
            },
            missing: self.na.clone(),
        })
    }
}
