//! From cells to a schema: looks at every cell of the training files once, and remembers only what differs.

mod column;

use super::{
    Cell, Cells, Decimal, MAX_STATES, NumberFormat, OTHER, Schema, States, Variable, boolean, decimals_of,
    did_you_mean, listed,
};
use column::{Column, quantiles};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// Most bins of a column.
const MOST_BINS: usize = 1024;
/// Bins of a column of numbers that has too many of them.
const DEFAULT_BINS: usize = 8;

/// What the values of a column are taken for.
///
/// ```
/// assert_ne!(everytree_core::data::scan::ColumnKind::Integer, everytree_core::data::scan::ColumnKind::Real);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Labels, each a state.
    Categorical,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
}

/// What becomes of columns with many values, and of missing cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanSettings {
    /// What columns are, by name, where that is not for the scan to find out.
    pub kinds: BTreeMap<String, ColumnKind>,
    /// Most distinct values of a column that are states as they are.
    pub max_states: usize,
    /// Bins by name of the column.
    pub bins: BTreeMap<String, usize>,
    /// Bins of every column of more different numbers than that.
    pub all_bins: Option<usize>,
    /// Of columns of more texts than that, so many of the most frequent are told apart from the others.
    pub other: Option<usize>,
    /// The same by name of the column.
    pub others: BTreeMap<String, usize>,
    /// What stands between the whole part of a number and the rest.
    pub decimal: Decimal,
    /// Are columns of too many numbers cut into bins, or refused?
    pub bin_numbers: bool,
    /// What a missing cell is.
    pub missing_cells: MissingCells,
    /// Texts that stand for a missing cell.
    pub missing: Vec<String>,
}

/// What a missing cell of a training table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingCells {
    /// One more state of its column.
    State,
    /// A value that was not observed.
    Unobserved,
    /// A mistake.
    Refused,
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            max_states: 64,
            bins: BTreeMap::new(),
            all_bins: None,
            other: None,
            others: BTreeMap::new(),
            decimal: Decimal::default(),
            bin_numbers: true,
            missing_cells: MissingCells::State,
            missing: ["", "NA", "NaN", "null", "?"].map(str::to_owned).to_vec(),
        }
    }
}

impl ScanSettings {
    /// Are the most frequent labels of any column to be found?
    fn wants_others(&self) -> bool {
        self.other.is_some() || !self.others.is_empty()
    }
}

/// Why a table cannot be made discrete.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// Text with too many different values.
    #[error(
        "column {column:?} has {more}{states} different values, more than the {limit} allowed{why}; the tables of the \
         model would take {memory}; leave it out with `drop = {column}`, keep the most frequent with `other = 63`, or raise \
         `max_states`"
    )]
    TooManyStates {
        /// The column.
        column: String,
        /// Empty, or "more than ".
        more: &'static str,
        /// How many.
        states: usize,
        /// How many are allowed.
        limit: usize,
        /// Why they are not numbers, where most are.
        why: String,
        /// What they would take.
        memory: String,
    },
    /// Too many states of all columns together.
    #[error(
        "{states} states over all columns are too many: at most {limit}, for which the tables of the model take {memory}; \
         the column with most is {column:?} ({most}); leave it out with `drop = {column}`, or cut numbers into fewer `bins`"
    )]
    TooManyInAll {
        /// How many.
        states: usize,
        /// How many there may be.
        limit: usize,
        /// What those take.
        memory: String,
        /// The column with most.
        column: String,
        /// How many it has.
        most: usize,
    },
    /// Numbers with too many different values, and bins are not wanted.
    #[error(
        "column {column:?} has {more}{states} different numbers, more than the {limit} allowed; cut it into bins with \
         `bins = {column}=8`, or raise `max_states`"
    )]
    TooManyNumbers {
        /// The column.
        column: String,
        /// Empty, or "more than ".
        more: &'static str,
        /// How many.
        states: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Missing cells where they are refused.
    #[error("column {column:?} has {cells} missing cell{s}; allow them with `missing = category` or `missing = marginalise`", s = if *cells == 1 { "" } else { "s" })]
    Missing {
        /// The column.
        column: String,
        /// How many.
        cells: usize,
    },
    /// A number without end.
    #[error(
        "column {column:?} has an infinite number; replace it by the largest that makes sense, or leave the cell empty"
    )]
    Infinite {
        /// The column.
        column: String,
    },
    /// Nothing to learn about a column.
    #[error(
        "column {column:?} has no value at all; leave it out with `drop = {column}`, or take missing cells as a state with \
         `missing = category`"
    )]
    NeverObserved {
        /// The column.
        column: String,
    },
    /// Bins of something that is not a number.
    #[error("column {column:?} cannot be cut into bins: {value:?} is not a number")]
    NotNumbers {
        /// The column.
        column: String,
        /// The offending value.
        value: String,
    },
    /// A kind of number for something that is none.
    #[error(
        "column {column:?} is not {kind}: it has {value:?}; leave that to be found, or say `kind = {column}=categorical`"
    )]
    NotOfKind {
        /// The column.
        column: String,
        /// What it was said to be.
        kind: &'static str,
        /// The offending value.
        value: String,
    },
    /// A column of numbers in which there is nothing to cut.
    #[error(
        "column {column:?} has too few different numbers for a distribution; say `kind = {column}=categorical`"
    )]
    TooFewNumbers {
        /// The column.
        column: String,
    },
    /// The most frequent labels of something that has none.
    #[error(
        "column {column:?} has {what}, of which all are told apart; `other` is for labels; `bins = {column}=8` cuts numbers into bins"
    )]
    NotLabels {
        /// The column.
        column: String,
        /// What it has.
        what: &'static str,
    },
    /// An option for a column that is not there.
    #[error(
        "`{option}`: there is no column {column:?}{}; the columns are {}",
        did_you_mean(column, known),
        listed(known)
    )]
    NoSuchColumn {
        /// Which option.
        option: &'static str,
        /// The column.
        column: String,
        /// Those that are.
        known: Vec<String>,
    },
    /// Nothing is left.
    #[error("every column is left out")]
    NothingLeft,
    /// Too few bins, or too many.
    #[error("column {column:?}: {bins} bins; between 2 and {MOST_BINS} are possible")]
    BadBins {
        /// The column.
        column: String,
        /// How many were asked for.
        bins: usize,
    },
}

/// What happened to the data on the way to codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A column of numbers was cut into bins.
    Binned {
        /// The column.
        column: String,
        /// How many different numbers it has.
        numbers: usize,
        /// Or more.
        or_more: bool,
        /// How many bins.
        bins: usize,
    },
    /// Missing cells became a state.
    Missing {
        /// Over all columns.
        cells: usize,
        /// Columns that have any.
        columns: usize,
    },
    /// Missing cells are values that were not observed.
    Unobserved {
        /// Over all columns.
        cells: usize,
        /// Columns that have any.
        columns: usize,
    },
    /// Numbers that are not written as programs do.
    Formatted {
        /// The columns.
        columns: Vec<String>,
        /// One of them.
        example: String,
        /// How it was read.
        read_as: String,
    },
    /// Numbers with points before three digits each, in a table where that may stand between thousands.
    MaybeThousands {
        /// The columns.
        columns: Vec<String>,
        /// One of the numbers.
        example: String,
        /// How it was read.
        read_as: String,
    },
    /// Texts that are not among the most frequent are one state.
    Other {
        /// The column.
        column: String,
        /// Labels that are told apart.
        kept: usize,
        /// Labels that are not.
        others: usize,
        /// Or more.
        or_more: bool,
        /// Cells that have one of those.
        cells: usize,
        /// Is one of them "other"?
        named_so: bool,
    },
    /// A column in which there is nothing to make one state of.
    NoOther {
        /// The column.
        column: String,
        /// How many labels it has.
        labels: usize,
    },
    /// Columns that are not in the model, because it was said so.
    LeftOut {
        /// The columns.
        columns: Vec<String>,
    },
    /// Columns whose cells are all the same (or all missing).
    Constant {
        /// The columns.
        columns: Vec<String>,
    },
}

/// So many cells for so many rows: more of them are finer, and take more rows to learn.
fn cells_for(rows: usize) -> usize {
    match rows {
        0..500 => 8,
        500..5_000 => 16,
        5_000..20_000 => 32,
        _ => 64,
    }
}

/// What tables over so many states take: rates in f64 and f32, and counts, for every pair of states.
fn memory(states: usize) -> String {
    match 20.0 * (states as f64).powi(2) {
        bytes if bytes < 1e6 => format!("{:.0} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.0} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

/// Sees all cells of the files that define a schema.
#[derive(Clone, Debug)]
pub struct Scan {
    settings: ScanSettings,
    columns: Vec<Column>,
    buffer: String,
}

impl Scan {
    /// Of tables with so many columns.
    pub fn new(columns: usize, settings: ScanSettings) -> Self {
        Self { settings, columns: vec![Column::default(); columns], buffer: String::new() }
    }

    /// How many columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// One more cell of this column.
    ///
    /// # Panics
    /// When there is no such column.
    #[inline]
    pub fn observe(&mut self, column: usize, cell: Cell<'_>) {
        self.columns[column].observe(cell, &self.settings, &mut self.buffer);
    }

    /// Has no cell of any column been observed?
    pub fn all_missing(&self) -> bool {
        self.columns.iter().all(|column| column.labels.is_empty() && column.zeros == 0 && column.ones == 0)
    }

    /// Is this text a missing cell?
    pub fn is_missing(&self, text: &str) -> bool {
        self.settings.missing.iter().any(|missing| missing == text)
    }

    /// Has this column shown this text?
    pub fn has_seen(&self, column: usize, text: &str) -> bool {
        let column = &self.columns[column];
        match text {
            "0" => column.zeros > 0,
            "1" => column.ones > 0,
            _ => column.labels.contains_key(text),
        }
    }

    /// The schema of the columns with these names, and what there is to say about it.
    ///
    /// # Panics
    /// When there is not one name per column.
    pub fn finish(self, names: Vec<String>, header: bool) -> Result<(Schema, Vec<Notice>), ScanError> {
        assert_eq!(names.len(), self.columns.len(), "one name per column");
        let there = |option: &'static str, column: &String| match names.contains(column) {
            true => Ok(()),
            false => Err(ScanError::NoSuchColumn { option, column: column.clone(), known: names.clone() }),
        };
        self.settings.others.keys().try_for_each(|column| there("other", column))?;
        self.settings.kinds.keys().try_for_each(|column| there("kind", column))?;
        for (column, &bins) in &self.settings.bins {
            there("bins", column)?;
            if !(2..=MOST_BINS).contains(&bins) {
                return Err(ScanError::BadBins { column: column.clone(), bins });
            }
        }
        let mut notices = Vec::new();
        let mut constant = Vec::new();
        let mut formatted: Vec<(NumberFormat, Notice)> = Vec::new();
        let mut thousands: Option<Notice> = None;
        let (mut cells, mut with_missing) = (0, 0);
        let mut variables = Vec::new();
        let formats = self.formats();
        for ((column, format), name) in self.columns.iter().zip(formats).zip(names) {
            if column.infinite {
                return Err(ScanError::Infinite { column: name });
            }
            if column.missing > 0 {
                if self.settings.missing_cells == MissingCells::Refused {
                    return Err(ScanError::Missing { column: name, cells: column.missing });
                }
                cells += column.missing;
                with_missing += 1;
            }
            let states = self.states(column, &name, &format, &mut notices)?;
            if self.settings.others.contains_key(&name) {
                let what = match &states {
                    States::Integers(_) | States::Reals(_) | States::Bins(_) | States::Numbers(_) => {
                        Some("numbers")
                    }
                    States::Booleans(_) => Some("two values"),
                    States::Texts(labels) => {
                        notices.push(Notice::NoOther { column: name.clone(), labels: labels.len() });
                        None
                    }
                    States::Others(_) => None,
                };
                if let Some(what) = what {
                    return Err(ScanError::NotLabels { column: name, what });
                }
            }
            let missing = column.missing > 0 && self.settings.missing_cells == MissingCells::State;
            if states.is_empty() && !missing {
                return Err(ScanError::NeverObserved { column: name });
            }
            let mut variable = Variable::new(name, states, missing);
            if let (
                Some(format),
                States::Integers(_) | States::Reals(_) | States::Bins(_) | States::Numbers(_),
            ) = (format, &variable.states)
            {
                variable.format = format;
                if matches!(variable.states, States::Bins(_)) {
                    variable.quantiles = evenly(&column.all_numbers(&format));
                }
                say_format(&mut formatted, format, column, &variable.name);
                if self.settings.decimal == Decimal::LikelyComma && format.is_plain() && !column.typed_number
                {
                    say_thousands(&mut thousands, column, &variable.name);
                }
            }
            let seen = column.counted().len() + usize::from(missing);
            if seen == 1 && !column.overflow {
                constant.push(variable.name.clone());
            }
            variables.push(variable);
        }
        if cells > 0 {
            notices.insert(
                0,
                match self.settings.missing_cells {
                    MissingCells::Unobserved => Notice::Unobserved { cells, columns: with_missing },
                    _ => Notice::Missing { cells, columns: with_missing },
                },
            );
        }
        notices.extend(formatted.into_iter().map(|(_, notice)| notice));
        notices.extend(thousands);
        if !constant.is_empty() {
            notices.push(Notice::Constant { columns: constant });
        }
        let states: usize = variables.iter().map(Variable::len).sum();
        if let Some(widest) = variables.iter().max_by_key(|variable| variable.len())
            && states > MAX_STATES
        {
            return Err(ScanError::TooManyInAll {
                states,
                limit: MAX_STATES,
                memory: memory(MAX_STATES),
                column: widest.name.clone(),
                most: widest.len(),
            });
        }
        let (left_out, ids) = (Vec::new(), Vec::new());
        Ok((Schema { variables, header, missing: self.settings.missing, left_out, ids }, notices))
    }

    /// How the numbers of every column are written. Where some column has decimal commas for sure, points in others stand between
    /// groups of three digits if all of them could: nobody writes one table in both ways.
    fn formats(&self) -> Vec<Option<NumberFormat>> {
        let mut formats: Vec<_> = self.columns.iter().map(|column| column.format(&self.settings)).collect();
        let is_certain = |(column, format): (&Column, &Option<NumberFormat>)| {
            format.is_some_and(|format| format.has_decimal_comma())
                && column.format_by(Decimal::Point).is_none()
        };
        let may_be_either = matches!(self.settings.decimal, Decimal::LikelyPoint | Decimal::LikelyComma);
        if may_be_either && self.columns.iter().zip(&formats).any(is_certain) {
            for (column, format) in self.columns.iter().zip(&mut formats) {
                let is_plain = format.is_some_and(|format| format.is_plain());
                if is_plain && !column.overflow && !column.typed_number {
                    *format = column.format_by(Decimal::Comma).or(*format);
                }
            }
        }
        formats
    }

    /// Forgets all other columns.
    pub fn keep(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.columns.retain(|_| kept.next().copied().unwrap_or(false));
    }

    /// How many labels of a column are told apart from the others, if any are.
    fn most_frequent(&self, name: &str) -> Option<usize> {
        self.settings.others.get(name).copied().or(self.settings.other)
    }

    /// What the tables of a model take with so many states of this column, and the others as they are.
    fn memory(&self, column: &Column, states: usize) -> String {
        let limit = self.settings.max_states;
        let of = |other: &Column| {
            if std::ptr::eq(other, column) { states } else { other.counted().len().min(limit) }
        };
        memory(self.columns.iter().map(of).sum())
    }

    /// The cells of a column of numbers.
    fn cells(
        &self,
        column: &Column,
        name: &str,
        kind: ColumnKind,
        format: &NumberFormat,
        numbers: Result<Vec<(f64, usize)>, String>,
    ) -> Result<States, ScanError> {
        let refuse = |value: String| {
            let kind = if kind == ColumnKind::Integer { "of whole numbers" } else { "of numbers" };
            ScanError::NotOfKind { column: name.to_owned(), kind, value }
        };
        numbers.map_err(refuse)?;
        let all = column.all_numbers(format);
        let decimals = match kind {
            ColumnKind::Integer => {
                if let Some(other) = all.iter().find(|x| x.fract() != 0.0) {
                    return Err(refuse(format.write(*other)));
                }
                Some(0)
            }
            _ => decimals_of(&all),
        };
        let cells = Cells::new(&all, decimals, cells_for(column.observed));
        cells.map(States::Numbers).ok_or_else(|| ScanError::TooFewNumbers { column: name.to_owned() })
    }

    fn states(
        &self,
        column: &Column,
        name: &str,
        format: &Option<NumberFormat>,
        notices: &mut Vec<Notice>,
    ) -> Result<States, ScanError> {
        let labels = column.counted();
        let limit = self.settings.max_states;
        let more = if column.overflow { "more than " } else { "" };
        let format = format.unwrap_or_default();
        let asked = self.settings.bins.get(name).copied();
        let booleans: Option<Vec<bool>> = labels.iter().map(|(text, _)| boolean(text)).collect();
        // Text by its type stays text.
        if let Some(values) = booleans
            && !values.is_empty()
            && !column.overflow
            && !column.typed_text
        {
            let spelled = |value: bool| {
                let seen = labels.iter().zip(&values).find(|(_, seen)| **seen == value);
                let like = labels[0].0;
                let default = if value { "true" } else { "false" };
                seen.map(|((text, _), _)| (*text).to_owned()).unwrap_or_else(|| match like.as_bytes()[1] {
                    byte if byte.is_ascii_uppercase() => default.to_uppercase(),
                    _ if like.as_bytes()[0].is_ascii_uppercase() => {
                        default[..1].to_uppercase() + &default[1..]
                    }
                    _ => default.to_owned(),
                })
            };
            return Ok(States::Booleans([spelled(false), spelled(true)]));
        }
        let numbers = match &column.not_a_number {
            Some(text) => Err(text.to_string()),
            None => column.numbers(&format),
        };
        if let Some(&kind) = self.settings.kinds.get(name).filter(|kind| **kind != ColumnKind::Categorical) {
            return self.cells(column, name, kind, &format, numbers);
        }
        match numbers {
            Ok(numbers) if !numbers.is_empty() => {
                let of_all = self.settings.all_bins.filter(|&bins| column.overflow || numbers.len() > bins);
                let asked = asked.or(of_all);
                if numbers.iter().all(|&(value, _)| value == 0.0 || value == 1.0) && asked.is_none() {
                    return Ok(States::Integers(vec![0, 1]));
                }
                let many = column.overflow || numbers.len() > limit;
                if asked.is_some() || (many && self.settings.bin_numbers) {
                    let all = column.all_numbers(&format);
                    let edges = quantiles(&all, asked.unwrap_or(DEFAULT_BINS));
                    let (or_more, bins) = (column.overflow, edges.len() + 1);
                    let (column, numbers) = (name.to_owned(), numbers.len());
                    notices.push(Notice::Binned { column, numbers, or_more, bins });
                    return Ok(States::Bins(edges));
                }
                if many {
                    let (column, states) = (name.to_owned(), numbers.len());
                    return Err(ScanError::TooManyNumbers { column, more, states, limit });
                }
                if format.is_plain() && !column.is_exact() {
                    // Digits that f64 would confuse with others are names.
                    return Ok(States::Texts(labels.into_iter().map(|(text, _)| text.to_owned()).collect()));
                }
                let whole = |value: f64| value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64;
                if numbers.iter().all(|&(value, _)| whole(value)) {
                    Ok(States::Integers(numbers.iter().map(|&(value, _)| value as i64).collect()))
                } else {
                    Ok(States::Reals(numbers.iter().map(|&(value, _)| value).collect()))
                }
            }
            Ok(_) => Ok(States::Texts(Vec::new())),
            Err(value) if asked.is_some() => Err(ScanError::NotNumbers { column: name.to_owned(), value }),
            Err(_) if self.most_frequent(name).is_some_and(|kept| column.overflow || labels.len() > kept) => {
                let kept = self.most_frequent(name).unwrap_or_default();
                let mut by_count = labels.clone();
                by_count.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
                // A label of that name is one of the others.
                let named_so = by_count.iter().any(|(text, _)| *text == OTHER);
                by_count.retain(|(text, _)| *text != OTHER);
                let kept: Vec<(&str, usize)> = by_count.into_iter().take(kept).collect();
                let counted: usize = kept.iter().map(|(_, count)| count).sum();
                notices.push(Notice::Other {
                    column: name.to_owned(),
                    kept: kept.len(),
                    others: labels.len() - kept.len(),
                    or_more: column.overflow,
                    cells: column.observed - counted,
                    named_so,
                });
                let mut texts: Vec<String> = kept.into_iter().map(|(text, _)| text.to_owned()).collect();
                texts.sort();
                Ok(States::Others(texts))
            }
            Err(value) if column.overflow || labels.len() > limit => {
                let states = labels.len();
                let memory = self.memory(column, states);
                let why = match column.typed_text {
                    true => why_texts(&labels),
                    false => why_not_numbers(&labels, &value),
                };
                Err(ScanError::TooManyStates { column: name.to_owned(), more, states, limit, why, memory })
            }
            Err(_) => {
                let mut texts: Vec<String> = labels.into_iter().map(|(text, _)| text.to_owned()).collect();
                // Zeros and ones come in pairs, even as text.
                if texts == ["0"] || texts == ["1"] {
                    texts = vec!["0".to_owned(), "1".to_owned()];
                }
                Ok(States::Texts(texts))
            }
        }
    }
}

/// Why labels are not numbers, if most of them look as if they were.
fn why_not_numbers(labels: &[(&str, usize)], value: &str) -> String {
    let is_number = |text: &str| NumberFormat::detect(std::iter::once(text), Decimal::LikelyComma).is_some();
    let (numbers, others): (Vec<&str>, Vec<&str>) =
        labels.iter().map(|(text, _)| *text).partition(|text| is_number(text));
    if 2 * numbers.len() <= labels.len() {
        return String::new();
    }
    let missing = |text: &str| {
        format!(" (most are numbers, but {text:?} is not: if it means a missing cell, say so with `na`)")
    };
    match others.first() {
        Some(other) => missing(other),
        None if !is_number(value) => missing(value),
        None => {
            let by_length = |text: &&&str| text.len();
            let [short, long] = [numbers.iter().min_by_key(by_length), numbers.iter().max_by_key(by_length)];
            let [short, long] = [short, long].map(|text| text.copied().unwrap_or_default());
            format!(
                " (each is a number, but they are not written alike, as {short:?} and {long:?}: write all in one way)"
            )
        }
    }
}

/// What is said of texts that look like numbers: a file without types would have been read as numbers.
fn why_texts(labels: &[(&str, usize)]) -> String {
    let texts = labels.iter().map(|(text, _)| *text);
    match NumberFormat::detect(texts, Decimal::LikelyPoint) {
        Some(_) => " (each is a number that is stored as text: store numbers, or write CSV)".to_owned(),
        None => String::new(),
    }
}

/// The smallest, quantiles at equal distances, the largest.
fn evenly(rising: &[f64]) -> Vec<f64> {
    const QUANTILES: usize = 128;
    let Some(last) = rising.len().checked_sub(1) else { return Vec::new() };
    (0..=QUANTILES).map(|i| rising[i * last / QUANTILES]).collect()
}

/// Notes that a column has numbers in another format than programs write.
fn say_format(said: &mut Vec<(NumberFormat, Notice)>, format: NumberFormat, column: &Column, name: &str) {
    if format.is_plain() {
        return;
    }
    if let Some((_, Notice::Formatted { columns, .. })) = said.iter_mut().find(|(other, _)| *other == format)
    {
        columns.push(name.to_owned());
        return;
    }
    // One that shows what is special about it.
    let longest = column.counted().into_iter().map(|(text, _)| text).max_by_key(|text| text.len());
    let example = longest.unwrap_or_default().to_owned();
    let read_as = format.parse(&example).unwrap_or_default().to_string();
    said.push((format, Notice::Formatted { columns: vec![name.to_owned()], example, read_as }));
}

/// Could points stand between thousands? All that there are stand before three digits, and after one to three that begin with none.
fn say_thousands(said: &mut Option<Notice>, column: &Column, name: &str) {
    let grouped = |text: &str| {
        let (whole, rest) = text.split_once('.')?;
        let whole = whole.trim_start_matches('-');
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        Some(
            (1..=3).contains(&whole.len())
                && !whole.starts_with('0')
                && digits(whole)
                && rest.len() == 3
                && digits(rest),
        )
    };
    let counted = column.counted();
    let mut with_points = counted.iter().filter_map(|(text, _)| Some((text, grouped(text)?))).peekable();
    let Some(example) = with_points.peek().map(|(text, _)| (**text).to_owned()) else { return };
    if column.overflow || !with_points.all(|(_, grouped)| grouped) {
        return;
    }
    match said {
        Some(Notice::MaybeThousands { columns, .. }) => columns.push(name.to_owned()),
        _ => {
            let read_as = example.parse::<f64>().unwrap_or_default().to_string();
            *said = Some(Notice::MaybeThousands { columns: vec![name.to_owned()], example, read_as });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Encoded, Encoder};

    #[test]
    fn points_that_may_stand_between_thousands_are_told() {
        let comma = ScanSettings { decimal: Decimal::LikelyComma, ..ScanSettings::default() };
        let told = |cells: &[&str], settings: &ScanSettings| {
            let (_, notices) = scan(cells, settings.clone()).unwrap();
            notices.into_iter().find(|notice| matches!(notice, Notice::MaybeThousands { .. }))
        };
        let expected = Notice::MaybeThousands {
            columns: vec!["c".into()],
            example: "12.345".into(),
            read_as: "12.345".into(),
        };
        assert_eq!(told(&["549.280", "12.345", "7"], &comma), Some(expected));
        for other in [&["549.28", "12.345"][..], &["0.280", "12.345"], &["7", "8"], &["1549.280", "1.200"]] {
            assert_eq!(told(other, &comma), None, "{other:?}");
        }
        assert_eq!(told(&["549.280", "12.345"], &ScanSettings::default()), None);
    }

    fn scan(cells: &[&str], settings: ScanSettings) -> Result<(Schema, Vec<Notice>), ScanError> {
        let mut scan = Scan::new(1, settings);
        cells.iter().for_each(|cell| scan.observe(0, Cell::Field(cell)));
        scan.finish(vec!["c".to_owned()], true)
    }

    fn states(cells: &[&str]) -> States {
        scan(cells, ScanSettings::default()).unwrap().0.variables[0].states.clone()
    }

    #[test]
    fn zeros_and_ones_are_binary_seen_or_not() {
        for cells in [&["0", "1"][..], &["0"], &["1", "1"], &["1.0", "00"]] {
            assert_eq!(states(cells), States::Integers(vec![0, 1]));
        }
        assert_eq!(states(&["True", "True"]), States::Booleans(["False".into(), "True".into()]));
        assert_eq!(states(&["FALSE"]), States::Booleans(["FALSE".into(), "TRUE".into()]));
    }

    #[test]
    fn numbers_are_ordered_by_value_and_spellings_are_one() {
        assert_eq!(states(&["10", "9", "1.0", "01", "-3", "1"]), States::Integers(vec![-3, 1, 9, 10]));
        assert_eq!(states(&["0.5", "1e-3", "2"]), States::Reals(vec![0.001, 0.5, 2.0]));
        assert_eq!(states(&["-0", "0", "2"]), States::Integers(vec![0, 2]));
    }

    #[test]
    fn what_is_not_exactly_a_number_is_text() {
        assert_eq!(states(&["10", "9", "x"]), States::Texts(vec!["10".into(), "9".into(), "x".into()]));
        let (a, b) = ("12345678901234567890", "12345678901234567891");
        assert_eq!(states(&[a, b]), States::Texts(vec![a.into(), b.into()]));
        assert!(matches!(states(&["inf", "1"]), States::Texts(_)));
        let mut typed = Scan::new(1, ScanSettings::default());
        ["10", "9"].iter().for_each(|text| typed.observe(0, Cell::Text(text)));
        let (schema, _) = typed.finish(vec!["c".into()], true).unwrap();
        assert_eq!(schema.variables[0].states, States::Texts(vec!["10".into(), "9".into()]));
    }

    #[test]
    fn many_numbers_become_quantile_bins_with_a_notice() {
        let cells: Vec<String> = (0..800).map(|i| (f64::from(i) / 2.0).to_string()).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let (schema, notices) = scan(&cells, ScanSettings::default()).unwrap();
        assert_eq!(notices, [Notice::Binned { column: "c".into(), numbers: 800, or_more: false, bins: 8 }]);
        let edges: Vec<f64> = (1..8).map(|i| f64::from(i) * 50.0).collect();
        assert_eq!(schema.variables[0].states, States::Bins(edges));
        let encoder = Encoder::new(&schema);
        for (text, bin) in [("-7", 0), ("49.5", 0), ("50", 1), ("399", 7), ("1e9", 7)] {
            assert_eq!(encoder.encode(0, Cell::Field(text)), Encoded::State(bin), "{text}");
        }
        let refused = ScanSettings { bin_numbers: false, ..ScanSettings::default() };
        assert!(matches!(scan(&cells, refused), Err(ScanError::TooManyNumbers { states: 800, .. })));
    }

    #[test]
    fn more_numbers_than_are_told_apart_still_have_quantiles() {
        let mut scan = Scan::new(1, ScanSettings::default());
        for i in 0..1_500_000u32 {
            // A permutation of the residues, so that the order of the file says nothing.
            let value = u64::from(i) * 611_953 % 1_500_000;
            scan.observe(0, Cell::Integer(value as i64));
        }
        let (schema, _) = scan.finish(vec!["c".into()], true).unwrap();
        let States::Bins(edges) = &schema.variables[0].states else { panic!("bins") };
        assert_eq!(edges.len(), 7);
        for (i, edge) in edges.iter().enumerate() {
            let expected = 187_500.0 * (i + 1) as f64;
            assert!((edge - expected).abs() < 6_000.0, "{edge} {expected}");
        }
    }

    /// Values that come again after there are too many to tell apart count as often as they come.
    #[test]
    fn quantiles_count_repetitions_among_many_numbers() {
        let mut scan = Scan::new(1, ScanSettings::default());
        for i in 0..200_000u64 {
            let value = if i % 2 == 0 {
                "5.000".to_owned()
            } else {
                format!("{:.5}", (i * 7919 % 200_000) as f64 / 20_000.0)
            };
            scan.observe(0, Cell::Field(&value));
        }
        let (schema, notices) = scan.finish(vec!["c".into()], true).unwrap();
        assert!(matches!(notices[0], Notice::Binned { or_more: true, .. }));
        let States::Bins(edges) = &schema.variables[0].states else { panic!("bins") };
        // Half of the rows are 5: octiles at 2.5, 5 (four times), 7.5.
        assert_eq!(edges.len(), 4, "{edges:?}");
        for (edge, expected) in edges.iter().zip([2.5, 5.0, 5.0, 7.5]) {
            assert!((edge - expected).abs() < 0.1, "{edges:?}");
        }
    }

    #[test]
    fn large_numbers_can_be_cut_into_bins() {
        let cells: Vec<String> =
            (0..100u64).map(|i| (1_700_000_000_000_000_000 + i * 1_000_000_007).to_string()).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let (schema, _) = scan(&cells, ScanSettings::default()).unwrap();
        assert_eq!(schema.variables[0].len(), 8);
        let mut real = Scan::new(1, ScanSettings::default());
        [1e17, 2.5].iter().for_each(|&value| real.observe(0, Cell::Real(value)));
        let (schema, _) = real.finish(vec!["c".into()], true).unwrap();
        assert_eq!(schema.variables[0].states, States::Reals(vec![2.5, 1e17]));
    }

    #[test]
    fn too_many_states_in_all_are_refused_before_anything_is_counted() {
        let mut scan = Scan::new(300, ScanSettings::default());
        for column in 0..300 {
            (0..60).for_each(|i| scan.observe(column, Cell::Text(&format!("word{i}"))));
        }
        let names = (0..300).map(|i| format!("c{i}")).collect();
        let error = scan.finish(names, true).unwrap_err();
        assert!(matches!(error, ScanError::TooManyInAll { states: 18_000, most: 60, .. }), "{error}");
    }

    #[test]
    fn ties_leave_no_bin_empty() {
        let mut cells = vec!["0"; 900];
        let others: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        cells.extend(others.iter().map(String::as_str));
        let (schema, _) = scan(&cells, ScanSettings::default()).unwrap();
        // Seven of the eight quantiles are 0.
        assert_eq!(schema.variables[0].states, States::Bins(vec![1.0]));
    }

    #[test]
    fn too_many_texts_are_refused_with_the_numbers() {
        let cells: Vec<String> = (0..100).map(|i| format!("name{i}")).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let error = scan(&cells, ScanSettings::default()).unwrap_err().to_string();
        assert!(error.contains("\"c\" has 100 different values, more than the 64 allowed"), "{error}");
        let allowed = ScanSettings { max_states: 100, ..ScanSettings::default() };
        assert_eq!(scan(&cells, allowed).unwrap().0.variables[0].len(), 100);
    }

    #[test]
    fn missing_is_a_state_where_any_cell_is_missing() {
        let (schema, notices) = scan(&["a", "", "b", "NA"], ScanSettings::default()).unwrap();
        assert_eq!(schema.variables[0].labels(), ["a", "b", ""]);
        assert_eq!(notices, [Notice::Missing { cells: 2, columns: 1 }]);
        let encoder = Encoder::new(&schema);
        assert_eq!(encoder.encode(0, Cell::Field("?")), Encoded::Unobserved);
        assert_eq!(encoder.missing(0), Some(2));
        assert_eq!(encoder.encode(0, Cell::Field("c")), Encoded::Unknown);
        let strict = ScanSettings { missing_cells: MissingCells::Refused, ..ScanSettings::default() };
        assert!(matches!(scan(&["a", ""], strict), Err(ScanError::Missing { cells: 1, .. })));
        let open = ScanSettings { missing_cells: MissingCells::Unobserved, ..ScanSettings::default() };
        let (schema, notices) = scan(&["a", "", "b"], open.clone()).unwrap();
        assert_eq!(schema.variables[0].labels(), ["a", "b"]);
        assert_eq!(notices, [Notice::Unobserved { cells: 1, columns: 1 }]);
        assert!(matches!(scan(&["", "NA"], open), Err(ScanError::NeverObserved { .. })));
    }
}
