//! Files into schemas and tables: two passes over the file, so that memory holds codes and never text.

use crate::error::{Place, Problem, ReadError};
use crate::frame::Source;
use crate::sheet::{Header, ReadSettings, Sheet};
use everytree_core::data::scan::{Notice, Scan, ScanSettings};
use everytree_core::data::{Cell, Dataset, DatasetError, Encoded, Encoder, Missing, Schema, Table};
use everytree_core::memory;
use std::path::Path;
use std::sync::Arc;

/// What the training files hold.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// Names and states.
    pub schema: Schema,
    /// What there is to say about it.
    pub notices: Vec<Notice>,
}

/// What becomes of cells that have no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRules {
    /// Is a missing cell the state "missing", where its column has one?
    pub missing_is_a_state: bool,
    /// Is a label that was not seen in training taken for a cell that was not observed?
    pub unknown_is_unobserved: bool,
    /// May a row have cells that were not observed?
    pub incomplete_rows: bool,
}

/// One row of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// One code per variable; 0 where the cell was not observed.
    pub codes: &'a [u16],
    /// The variables whose cells were not observed.
    pub unobserved: &'a [usize],
    /// Those of them that hold a label which was not seen in training.
    pub unknown: &'a [usize],
}

/// Refuses pipes and devices, where a file is looked at first and read again later.
pub fn readable_twice(path: &Path) -> Result<(), ReadError> {
    match std::fs::metadata(path) {
        Ok(facts) if !facts.is_file() && !facts.is_dir() => {
            Err(ReadError { file: path.to_path_buf(), problem: Problem::Pipe })
        }
        _ => Ok(()),
    }
}

/// Looks at the training table, and at others whose labels count too (validation), and makes a schema.
pub fn scan_tables(
    train: Source<'_>,
    others: &[Source<'_>],
    read: &ReadSettings,
    settings: &ScanSettings,
) -> Result<Scanned, ReadError> {
    for source in std::iter::once(&train).chain(others) {
        // Looked at now, encoded later.
        #[allow(irrefutable_let_patterns, reason = "without frames there are only files")]
        if let Source::File(path) = source {
            readable_twice(path)?;
        }
    }
    let mut sheet = Sheet::open(train, read)?;
    sheet.only(std::iter::repeat_n(true, sheet.columns()))?;
    let mut scan = Scan::new(sheet.columns(), settings.clone());
    let mut rows = 0u64;
    let last = sheet.columns() - 1;
    sheet.visit(0, &mut |_, column, cell| {
        scan.observe(column, cell);
        rows += u64::from(column == last);
        Ok(())
    })?;
    let (names, header) = match sheet.typed_names() {
        Some(names) => (names.to_vec(), train.is_named()),
        None => {
            let header = match read.header {
                Header::Yes => true,
                Header::No => false,
                Header::Auto => !sheet.never_has_a_header() && looks_like_names(sheet.first_line(), &scan),
            };
            if header {
                (named(sheet.first_line()), true)
            } else {
                let first = sheet.first_line();
                first.iter().enumerate().for_each(|(column, text)| scan.observe(column, Cell::Field(text)));
                rows += 1;
                ((0..first.len()).map(|column| format!("x{column}")).collect(), false)
            }
        }
    };
    if names.len() == 1 {
        let problem = Problem::OneColumn { name: names[0].clone(), hint: sheet.hint() };
        return Err(sheet.error(problem));
    }
    all_differ(&names).map_err(|problem| sheet.error(problem))?;
    if rows == 0 {
        return Err(sheet.error(no_rows(train, header)));
    }
    let read = ReadSettings { header: if header { Header::Yes } else { Header::No }, ..*read };
    for other in others {
        let mut sheet = Sheet::open(*other, &read)?;
        let columns =
            match_columns(&sheet, &names, header, header).map_err(|problem| sheet.error(problem))?;
        sheet.only(columns.iter().map(Option::is_some))?;
        if !header && sheet.typed_names().is_none() {
            let first = sheet.first_line().to_vec();
            first
                .iter()
                .zip(&columns)
                .for_each(|(text, column)| observe(&mut scan, *column, Cell::Field(text)));
        }
        sheet.visit(0, &mut |_, column, cell| {
            observe(&mut scan, columns[column], cell);
            Ok(())
        })?;
    }
    if scan.all_missing() {
        return Err(sheet.error(Problem::AllMissing));
    }
    let (schema, notices) = scan.finish(names, header).map_err(|error| sheet.error(error.into()))?;
    Ok(Scanned { schema, notices })
}

fn observe(scan: &mut Scan, column: Option<usize>, cell: Cell<'_>) {
    if let Some(column) = column {
        scan.observe(column, cell);
    }
}

/// A first line whose every cell is a number or missing, or occurs below, is data.
fn looks_like_names(first: &[String], scan: &Scan) -> bool {
    let numbers = first.iter().all(|text| scan.is_missing(text) || text.parse::<f64>().is_ok());
    let below = first.iter().enumerate().all(|(column, text)| scan.has_seen(column, text));
    !numbers && !below
}

/// A column without a name gets that of a file without header.
fn named(first: &[String]) -> Vec<String> {
    let name =
        |(column, text): (usize, &String)| if text.is_empty() { format!("x{column}") } else { text.clone() };
    first.iter().enumerate().map(name).collect()
}

fn all_differ(names: &[String]) -> Result<(), Problem> {
    let mut seen = std::collections::HashMap::new();
    for (place, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, place) {
            let (first, second) = (first + 1, place + 1);
            return Err(Problem::DuplicateColumn { name: name.clone(), first, second });
        }
    }
    Ok(())
}

/// Which variable each column of a file is.
fn match_columns(
    sheet: &Sheet,
    names: &[String],
    header: bool,
    named_in_training: bool,
) -> Result<Vec<Option<usize>>, Problem> {
    let found = match sheet.typed_names() {
        Some(found) => found.to_vec(),
        None if header => named(sheet.first_line()),
        None => Vec::new(),
    };
    // Names that were given are names, even if they look like those of a table that has none.
    let anonymous =
        !named_in_training && names.iter().enumerate().all(|(column, name)| *name == format!("x{column}"));
    if found.is_empty() || (anonymous && found.len() == names.len() && !found.contains(&names[0])) {
        if sheet.columns() != names.len() {
            return Err(Problem::ColumnCount { found: sheet.columns(), expected: names.len() });
        }
        return Ok((0..names.len()).map(Some).collect());
    }
    all_differ(&found)?;
    if let Some(name) = names.iter().find(|name| !found.contains(name)) {
        let hint =
            if sheet.typed_names().is_none() { "; if the file has no header, say `header = no`" } else { "" };
        return Err(Problem::MissingColumn { name: name.clone(), known: found.clone(), hint });
    }
    Ok(found.iter().map(|name| names.iter().position(|known| known == name)).collect())
}

/// What there was in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Rows.
    pub rows: u64,
    /// Columns that the schema does not know; they were passed over.
    pub ignored: Vec<String>,
}

/// Which variable each column of a file is, and whether its first line has names.
pub(crate) fn columns_of(
    sheet: &Sheet,
    schema: &Schema,
    read: &ReadSettings,
) -> Result<(Vec<Option<usize>>, bool), ReadError> {
    let header = match read.header {
        Header::Auto => schema.header,
        told => told == Header::Yes,
    };
    let names: Vec<String> = schema.variables.iter().map(|variable| variable.name.clone()).collect();
    let columns =
        match_columns(sheet, &names, header, schema.header).map_err(|problem| sheet.error(problem))?;
    Ok((columns, header))
}

/// What a table without rows is called.
fn no_rows(source: Source<'_>, header: bool) -> Problem {
    match source {
        #[cfg(feature = "parquet")]
        Source::Frame(_) => Problem::NoRowsAtAll,
        Source::File(_) if header => Problem::NoRows,
        Source::File(_) => Problem::Empty,
    }
}

/// Calls `on_row` with the codes of every row of a table.
pub fn for_each_row<'a>(
    source: impl Into<Source<'a>>,
    schema: &Schema,
    read: &ReadSettings,
    rules: CellRules,
    on_row: &mut dyn FnMut(Row<'_>) -> Result<(), Problem>,
) -> Result<FileFacts, ReadError> {
    let source = source.into();
    let mut sheet = Sheet::open(source, read)?;
    let (columns, header) = columns_of(&sheet, schema, read)?;
    sheet.only(columns.iter().map(Option::is_some))?;
    let encoder = Encoder::new(schema);
    let mut codes = vec![0u16; schema.variables.len()];
    let (mut unobserved, mut unknown) = (Vec::new(), Vec::new());
    let last = sheet.columns() - 1;
    let mut rows = 0u64;
    let mut take = |place: Place, column: usize, cell: Cell<'_>| -> Result<(), Problem> {
        if let Some(variable) = columns[column] {
            match code(&encoder, schema, rules, variable, place, cell)? {
                Encoded::State(code) => codes[variable] = code,
                other => {
                    codes[variable] = 0;
                    unobserved.push(variable);
                    if other == Encoded::Unknown {
                        unknown.push(variable);
                    }
                }
            }
        }
        if column == last {
            rows += 1;
            on_row(Row { codes: &codes, unobserved: &unobserved, unknown: &unknown })?;
            unobserved.clear();
            unknown.clear();
        }
        Ok(())
    };
    let mut first_row = 0;
    if !header && sheet.typed_names().is_none() {
        let place = Place { row: 0, line: Some(1) };
        let first = sheet.first_line().to_vec();
        for (column, text) in first.iter().enumerate() {
            take(place, column, Cell::Field(text)).map_err(|problem| sheet.error(problem))?;
        }
        first_row = 1;
    }
    sheet.visit(first_row, &mut take)?;
    match rows {
        0 => Err(sheet.error(no_rows(source, header))),
        _ => {
            let names = sheet.typed_names().map_or_else(|| named(sheet.first_line()), <[String]>::to_vec);
            let ignored = names.into_iter().zip(&columns).filter(|(_, column)| column.is_none());
            Ok(FileFacts { rows, ignored: ignored.map(|(name, _)| name).collect() })
        }
    }
}

/// The code of a cell, if it must have one.
fn code(
    encoder: &Encoder<'_>,
    schema: &Schema,
    rules: CellRules,
    variable: usize,
    place: Place,
    cell: Cell<'_>,
) -> Result<Encoded, Problem> {
    let column = || schema.variables[variable].name.clone();
    match encoder.encode(variable, cell) {
        Encoded::State(code) => Ok(Encoded::State(code)),
        Encoded::Unobserved => match encoder.missing(variable).filter(|_| rules.missing_is_a_state) {
            Some(code) => Ok(Encoded::State(code)),
            None if rules.incomplete_rows => Ok(Encoded::Unobserved),
            None => Err(Problem::Unobserved { place, column: column() }),
        },
        Encoded::Unknown if rules.unknown_is_unobserved && rules.incomplete_rows => Ok(Encoded::Unknown),
        Encoded::Unknown => {
            let known = schema.variables[variable].labels();
            let maybe_names = place.row == 0 && !schema.header;
            Err(Problem::Unknown {
                place,
                column: column(),
                value: cell.to_string().into(),
                known,
                maybe_names,
            })
        }
    }
}

/// A table encoded by a schema that is known. Where rows may be incomplete, the missing cells are listed.
pub fn read_dataset<'a>(
    source: impl Into<Source<'a>>,
    schema: &Arc<Schema>,
    read: &ReadSettings,
    rules: CellRules,
) -> Result<(Dataset, FileFacts), ReadError> {
    let source = source.into();
    let mut table = Table::new(&schema.states());
    let mut missing = Missing::default();
    let facts = for_each_row(source, schema, read, rules, &mut |row| {
        // Room doubles when it is used up.
        if table.rows().is_power_of_two() {
            let need = 3 * (table.rows() * row.codes.len() * size_of::<u16>()) as u64;
            memory::check("the rows of this table", need)?;
        }
        missing.push(table.rows(), row.unobserved.to_vec());
        table.push(row.codes);
        Ok(())
    })?;
    let data = Dataset::new(Arc::clone(schema), table).and_then(|data| data.with_missing(missing));
    let bad =
        |error: DatasetError| ReadError { file: source.name(), problem: Problem::Format(error.to_string()) };
    Ok((data.map_err(bad)?, facts))
}
