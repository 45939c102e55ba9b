//! What the commands that read tables have in common.

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use everytree::{MissingValues, ReadOptions, plural};
use everytree_read::{Header, ReadSettings, Selection};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

#[derive(Clone, Copy, ValueEnum)]
pub enum HeaderChoice {
    Yes,
    No,
    Auto,
}

/// How text files are cut into fields.
#[derive(Args)]
pub struct TextArguments {
    /// Between fields: one character, or `tab`. Default: by extension (.csv, .tsv, .data), else detected.
    #[arg(long, value_name = "C", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Does the file begin with the names of its columns? Default: seen in the training file, and remembered.
    #[arg(
        long,
        value_name = "yes|no|auto",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    header: HeaderChoice,
    /// Only these columns, separated by commas (repeatable); * stands for anything, ? for one character. A name with a comma
    /// stands in double quotes.
    #[arg(long, value_name = "LIST", value_parser = names)]
    columns: Vec<Names>,
    /// Not these columns (repeatable). A model remembers what it was learned without.
    #[arg(long, value_name = "LIST", value_parser = names)]
    drop: Vec<Names>,
    /// A column that tells rows apart (repeatable): not in the model, but carried into scores, samples and imputed files.
    #[arg(long, value_name = "COLUMN", value_parser = names)]
    id: Vec<Names>,
}

impl TextArguments {
    /// What was said: flags with their values.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        if let Some(delimiter) = self.delimiter {
            flags.push((
                "delimiter",
                if delimiter == b'\t' { "tab".into() } else { char::from(delimiter).to_string() },
            ));
        }
        match self.header {
            HeaderChoice::Auto => {}
            HeaderChoice::Yes => flags.push(("header", "yes".into())),
            HeaderChoice::No => flags.push(("header", "no".into())),
        }
        for (flag, lists) in [("columns", &self.columns), ("drop", &self.drop), ("id", &self.id)] {
            flags.extend(lists.iter().map(|names| (flag, names.to_string())));
        }
        flags
    }

    pub fn settings(&self) -> ReadSettings {
        let header = match self.header {
            HeaderChoice::Yes => Header::Yes,
            HeaderChoice::No => Header::No,
            HeaderChoice::Auto => Header::Auto,
        };
        let all = |lists: &[Names]| lists.iter().flat_map(|Names(names)| names.iter().cloned()).collect();
        let selection = Selection { columns: all(&self.columns), drop: all(&self.drop), ids: all(&self.id) };
        ReadSettings { delimiter: self.delimiter, header, selection }
    }

    /// The same beside other options.
    pub fn with(&self, mut options: ReadOptions) -> ReadOptions {
        let ReadSettings { delimiter, header, selection } = self.settings();
        (options.columns, options.drop, options.id) = (selection.columns, selection.drop, selection.ids);
        options.delimiter = delimiter.map(char::from);
        options.header = match header {
            Header::Auto => None,
            Header::Yes => Some(true),
            Header::No => Some(false),
        };
        options
    }
}

/// Names of columns.
#[derive(Clone)]
struct Names(Vec<String>);

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, name) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match name.contains([',', '"']) || name.trim() != name {
                true => write!(f, "{comma}\"{}\"", name.replace('"', "\"\""))?,
                false => write!(f, "{comma}{name}")?,
            }
        }
        Ok(())
    }
}

/// Names with commas between, as in a line of CSV: one with a comma of its own stands in double quotes.
fn names(text: &str) -> Result<Names, String> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(text.as_bytes());
    match reader.records().next() {
        Some(Ok(names)) => Ok(Names(names.iter().map(str::to_owned).collect())),
        _ => Err("names of columns, with commas between".to_owned()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() => Ok(*byte),
            _ => Err("one ASCII character, or tab".to_owned()),
        },
    }
}

/// A label that the model does not know.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnknownChoice {
    /// An error that names the cell.
    Error,
    /// As if the cell had not been observed.
    Unobserved,
    /// The state "other" of its column, which a model has that was learned with --other.
    Other,
}

impl From<UnknownChoice> for everytree::Unknown {
    fn from(choice: UnknownChoice) -> Self {
        match choice {
            UnknownChoice::Error => Self::Error,
            UnknownChoice::Unobserved => Self::Unobserved,
            UnknownChoice::Other => Self::Other,
        }
    }
}

/// What a file of this name holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Text with this between fields.
    Text(u8),
    Parquet,
    Arrow,
}

/// Endings of formats that are not written.
const NOT_WRITTEN: [&str; 14] =
    ["bz2", "xz", "zst", "zip", "7z", "lz4", "xlsx", "xls", "ods", "json", "jsonl", "ndjson", "html", "pkl"];

impl Format {
    /// The same, of a table that is to be written; some endings promise what is not kept.
    pub fn to_write(path: &Path) -> Result<Self> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.filter(|ending| NOT_WRITTEN.contains(&ending.as_str())) {
            Some(ending) => bail!(
                "--out {}: tables are not written as .{ending}; take .csv, .csv.gz, .tsv or .parquet",
                path.display()
            ),
            None => match Self::of(path) {
                Self::Parquet | Self::Arrow if is_gzip(path) => bail!(
                    "--out {}: a file of this format is compressed inside; leave .gz out",
                    path.display()
                ),
                format => Ok(format),
            },
        }
    }

    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "parquet" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "tsv" | "tab" => Self::Text(b'\t'),
            _ => Self::Text(b','),
        }
    }
}

/// Does the name promise gzip?
fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Compresses what is written where the name ends in `.gz`.
pub fn compressed<E: From<std::io::Error>>(
    path: &Path,
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    if !is_gzip(path) {
        return write(out);
    }
    let mut encoder = GzEncoder::new(out, Compression::default());
    write(&mut encoder)?;
    encoder.finish()?;
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingChoice {
    Category,
    Marginalise,
    Error,
}

/// What stands for a missing cell, where nothing is said.
const USUAL_NA: &str = "NA,NaN,null,?";

/// How cells become states.
#[derive(Args)]
pub struct StateArguments {
    /// Most different values of a column that are states as they are.
    #[arg(long, default_value_t = 64, value_name = "K")]
    max_states: usize,
    /// Cut a column of numbers into K quantile bins (repeatable); K alone: every column of more than K different numbers;
    /// `none`: refuse columns of too many numbers.
    #[arg(long, value_name = "[COLUMN=]K")]
    bins: Vec<String>,
    /// Tell the K most frequent labels of a column apart, and take all others for one state, "other" (repeatable); K alone: in
    /// every column of more than K texts.
    #[arg(long, value_name = "[COLUMN=]K")]
    other: Vec<String>,
    /// What stands before the fraction of a number, where it could be either. Default: seen in each column.
    #[arg(long, value_name = ".|,")]
    decimal: Option<char>,
    /// What to do with a label of --test that was not seen in training: `error`, `unobserved` (the cell is summed out) or `other`.
    #[arg(long, default_value = "error", value_name = "error|unobserved|other", hide_possible_values = true)]
    unknown: UnknownChoice,
    /// Missing cells are one more state of their column (`category`), values that were not observed and are summed out
    /// (`marginalise`), or refused (`error`).
    #[arg(
        long,
        default_value = "category",
        value_name = "category|marginalise|error",
        hide_possible_values = true
    )]
    missing: MissingChoice,
    /// What stands for a missing cell, separated by commas; the empty cell always does.
    #[arg(long, default_value = USUAL_NA, value_name = "LIST")]
    na: String,
}

impl StateArguments {
    /// What was said: flags with their values.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        if self.max_states != 64 {
            flags.push(("max-states", self.max_states.to_string()));
        }
        flags.extend(self.bins.iter().map(|bins| ("bins", bins.clone())));
        flags.extend(self.other.iter().map(|other| ("other", other.clone())));
        flags.extend(self.decimal.map(|decimal| ("decimal", decimal.to_string())));
        match self.missing {
            MissingChoice::Category => {}
            MissingChoice::Marginalise => flags.push(("missing", "marginalise".into())),
            MissingChoice::Error => flags.push(("missing", "error".into())),
        }
        if self.na != USUAL_NA {
            flags.push(("na", self.na.clone()));
        }
        flags
    }

    /// With how text files are cut into fields.
    pub fn options(&self, text: &TextArguments) -> Result<ReadOptions> {
        let mut options = ReadOptions::default().max_states(self.max_states).na(self.na.split(','));
        for bins in &self.bins {
            if bins == "none" {
                options.bin_numbers = false;
                continue;
            }
            let (column, count) = counted("bins", bins)?;
            match column {
                Some(column) => options = options.bins(column, count),
                None => options.all_bins = Some(count),
            }
        }
        for other in &self.other {
            let (column, count) = counted("other", other)?;
            match column {
                Some(column) => drop(options.others.insert(column.to_owned(), count)),
                None => options.other = Some(count),
            }
        }
        options.decimal = self.decimal;
        options.unknown = self.unknown.into();
        options.missing = match self.missing {
            MissingChoice::Category => MissingValues::Category,
            MissingChoice::Marginalise => MissingValues::Marginalise,
            MissingChoice::Error => MissingValues::Error,
        };
        Ok(text.with(options))
    }
}

/// `COLUMN=K` or `K`.
fn counted<'a>(option: &str, text: &'a str) -> Result<(Option<&'a str>, usize)> {
    let (column, number) = match text.rsplit_once('=') {
        Some((column, number)) => (Some(column), number),
        None => (None, text),
    };
    let number = number.trim().parse();
    let column = column.map(crate::given::unquoted);
    Ok((column, number.map_err(|_| anyhow!("--{option} {text}: K or COLUMN=K is needed, K a number"))?))
}

/// Cells whose labels were not known, and were taken for missing.
pub fn say_unknown(path: &Path, cells: u64) {
    if cells > 0 {
        note!(
            "note: {}: {} that the model does not know: taken for not observed",
            path.display(),
            plural(cells as usize, "label")
        );
    }
}

/// Cells of a table to test with that are missing, and no state.
pub fn say_gaps(path: &Path, cells: usize) {
    if cells > 0 {
        note!("note: {}: {}: not observed, and summed out", path.display(), plural(cells, "missing cell"));
    }
}

/// Columns that were passed over.
pub fn say_ignored(path: &Path, ignored: &[String]) {
    if !ignored.is_empty() {
        note!(
            "note: {}: columns that the model does not have are passed over: {}",
            path.display(),
            ignored.join(", ")
        );
    }
}

/// Threads to work on, for everything that follows.
pub fn use_threads(threads: Option<usize>) -> Result<()> {
    if let Some(threads) = threads {
        const MOST: usize = 1024;
        if threads == 0 || threads > MOST {
            bail!("--threads {threads}: between 1 and {MOST}");
        }
    }
    // This thread is one of them: small steps of learning would mostly be waiting for another one to take them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).use_current_thread();
    match (pool.build_global(), threads) {
        (Err(error), Some(_)) => Err(error.into()),
        // There are threads already: as a function of a longer program.
        _ => Ok(()),
    }
}
