//! Files into schemas and tables: two passes over the file, so that memory holds codes and never text.

use crate::error::{Place, Problem, ReadError};
use crate::frame::Source;
use crate::selection::Selection;
use crate::sheet::{Header, ReadSettings, Sheet, Use};
use everytree_core::data::scan::{Notice, Scan, ScanError, ScanSettings};
use everytree_core::data::{
    Cell, Dataset, DatasetError, Decimal, Encoded, Encoder, Missing, NumberFormat, Schema, Table,
};
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// One code per variable; 0 where the cell was not observed.
    pub codes: &'a [u16],
    /// The numbers of columns whose numbers are more than labels, in their order; NaN where there is none.
    pub numbers: &'a [f64],
    /// The variables whose cells were not observed.
    pub unobserved: &'a [usize],
    /// Those of them that hold a label which was not seen in training.
    pub unknown: &'a [usize],
    /// The cells of the columns that tell rows apart.
    pub ids: &'a [String],
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
    let selection = &read.selection;
    let wanted: Vec<bool> = match sheet.typed_names() {
        Some(names) => names.iter().map(|name| selection.takes(name)).collect(),
        // Names are known once it is clear whether the first line has some.
        None => vec![true; sheet.columns()],
    };
    sheet.only(wanted.into_iter().map(Use::states_if))?;
    let decimal = match settings.decimal {
        Decimal::LikelyPoint if sheet.has_decimal_commas() => Decimal::LikelyComma,
        said => said,
    };
    let mut scan = Scan::new(sheet.columns(), ScanSettings { decimal, ..settings.clone() });
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
    selection.check(&names).map_err(|error| sheet.error(error.into()))?;
    let kept: Vec<bool> = names.iter().map(|name| selection.takes(name)).collect();
    scan.keep(&kept);
    let (names, left_out): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| selection.takes(name));
    match &names[..] {
        [] => return Err(sheet.error(ScanError::NothingLeft.into())),
        [name] => {
            let hint = "; all others are left out".to_owned();
            return Err(sheet.error(Problem::OneColumn { name: name.clone(), hint }));
        }
        _ => {}
    }
    all_differ(&names).map_err(|problem| sheet.error(problem))?;
    if rows == 0 {
        return Err(sheet.error(no_rows(train, header)));
    }
    let told = if header { Header::Yes } else { Header::No };
    // What is left out is known by now.
    let read = ReadSettings { header: told, delimiter: read.delimiter, selection: Selection::default() };
    for other in others {
        let mut sheet = Sheet::open(*other, &read)?;
        let known = Known { names: &names, left_out: &left_out, named: header };
        let columns =
            match_columns(&sheet, known, header, &read.selection).map_err(|problem| sheet.error(problem))?;
        sheet.only(columns.iter().map(|column| Use::states_if(column.is_some())))?;
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
    let (mut schema, mut notices) = scan.finish(names, header).map_err(|error| sheet.error(error.into()))?;
    schema.ids = left_out.iter().filter(|name| selection.is_id(name)).cloned().collect();
    if !left_out.is_empty() {
        notices.insert(0, Notice::LeftOut { columns: left_out.clone() });
    }
    schema.left_out = left_out;
    Ok(Scanned { schema, notices })
}

fn observe(scan: &mut Scan, column: Option<usize>, cell: Cell<'_>) {
    if let Some(column) = column {
        scan.observe(column, cell);
    }
}

/// A first line whose every cell is a number or missing, or occurs below, is data.
fn looks_like_names(first: &[String], scan: &Scan) -> bool {
    let number = |text: &String| {
        text.parse::<f64>().is_ok()
            || NumberFormat::detect(std::iter::once(text.as_str()), Decimal::default()).is_some()
    };
    let numbers = first.iter().all(|text| scan.is_missing(text) || number(text));
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

/// The columns that later tables are matched with.
struct Known<'a> {
    names: &'a [String],
    /// Those of the training table that are not in the model.
    left_out: &'a [String],
    /// Did the training table have names?
    named: bool,
}

/// Which variable each column of a file is. Columns of the model that the selection leaves out need not be there.
fn match_columns(
    sheet: &Sheet,
    known: Known<'_>,
    header: bool,
    selection: &Selection,
) -> Result<Vec<Option<usize>>, Problem> {
    let Known { names, left_out, named: named_in_training } = known;
    let mut found = match sheet.typed_names() {
        Some(found) => found.to_vec(),
        None if header => named(sheet.first_line()),
        None => Vec::new(),
    };
    // Names that were given are names, even if they look like those of a table that has none.
    let counted =
        |name: &String| name.strip_prefix('x').is_some_and(|number| number.parse::<usize>().is_ok());
    let anonymous = !named_in_training && names.iter().all(counted);
    if found.is_empty() || (anonymous && found.len() == names.len() && !found.contains(&names[0])) {
        let all = names.len() + left_out.len();
        match sheet.columns() {
            columns if columns == names.len() => {
                let taken = |v: usize| Some(v).filter(|&v| selection.takes(&names[v]));
                return Ok((0..names.len()).map(taken).collect());
            }
            // With those that were left out.
            columns if columns == all => found = (0..all).map(|column| format!("x{column}")).collect(),
            found => return Err(Problem::ColumnCount { found, expected: names.len() }),
        }
    }
    let of_model: Vec<String> = found.iter().filter(|name| names.contains(name)).cloned().collect();
    if let Err(problem) = all_differ(&of_model) {
        // Places in the file.
        return all_differ(&found).and(Err(problem));
    }
    selection.check(&[&found[..], names].concat())?;
    if let Some(name) = names.iter().find(|name| !found.contains(name) && selection.takes(name)) {
        let hint =
            if sheet.typed_names().is_none() { "; if the file has no header, say `header = no`" } else { "" };
        return Err(Problem::MissingColumn { name: name.clone(), known: found.clone(), hint });
    }
    let place =
        |name: &String| names.iter().position(|known| known == name).filter(|_| selection.takes(name));
    Ok(found.iter().map(place).collect())
}

/// What there was in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Rows.
    pub rows: u64,
    /// Columns that the schema does not know, nor as left out; they were passed over.
    pub ignored: Vec<String>,
    /// Columns that tell rows apart.
    pub ids: Vec<String>,
    /// Cells whose labels were not known, and that were taken for missing.
    pub unknown: u64,
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
    let known = Known { names: &names, left_out: &schema.left_out, named: schema.header };
    let columns =
        match_columns(sheet, known, header, &read.selection).map_err(|problem| sheet.error(problem))?;
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
    let names = sheet.typed_names().map_or_else(|| named(sheet.first_line()), <[String]>::to_vec);
    // Said now, or when the model was learned.
    let is_id = |name: &String| match read.selection.ids.is_empty() {
        true => schema.ids.contains(name),
        false => read.selection.is_id(name),
    };
    let named_columns = header || sheet.typed_names().is_some();
    let ids: Vec<usize> = (0..names.len()).filter(|&column| named_columns && is_id(&names[column])).collect();
    let id_of: Vec<Option<usize>> =
        (0..columns.len()).map(|column| ids.iter().position(|&id| id == column)).collect();
    sheet.only(columns.iter().zip(&id_of).map(|(variable, id)| match id {
        Some(_) if variable.is_none() => Use::Names,
        _ => Use::states_if(variable.is_some()),
    }))?;
    let encoder = Encoder::new(schema);
    let mut codes = vec![0u16; schema.variables.len()];
    let numeric = schema.numeric();
    let number_of: Vec<Option<usize>> =
        (0..codes.len()).map(|v| numeric.iter().position(|numeric| *numeric == v)).collect();
    let mut numbers = vec![f64::NAN; numeric.len()];
    // What the table does not have is not observed.
    let absent: Vec<usize> = (0..schema.variables.len()).filter(|&v| !columns.contains(&Some(v))).collect();
    let (mut unobserved, mut unknown, mut all_unknown) = (absent.clone(), Vec::new(), 0u64);
    let mut id_cells = vec![String::new(); ids.len()];
    let last = sheet.columns() - 1;
    let mut rows = 0u64;
    let mut take = |place: Place, column: usize, cell: Cell<'_>| -> Result<(), Problem> {
        if let Some(variable) = columns[column] {
            match code(&encoder, schema, rules, variable, place, cell)? {
                Encoded::State(code) => {
                    codes[variable] = code;
                    if let Some(place) = number_of[variable] {
                        numbers[place] = encoder.number(variable, cell).unwrap_or(f64::NAN);
                    }
                }
                other => {
                    codes[variable] = 0;
                    unobserved.push(variable);
                    if other == Encoded::Unknown {
                        unknown.push(variable);
                    }
                }
            }
        }
        if let Some(id) = id_of[column] {
            id_cells[id] = cell.to_string();
        }
        if column == last {
            rows += 1;
            all_unknown += unknown.len() as u64;
            on_row(Row {
                codes: &codes,
                numbers: &numbers,
                unobserved: &unobserved,
                unknown: &unknown,
                ids: &id_cells,
            })?;
            numbers.fill(f64::NAN);
            unobserved.truncate(absent.len());
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
            let said = |name: &String| {
                schema.left_out.contains(name) || is_id(name) || !read.selection.takes(name) || !named_columns
            };
            let ignored = names.iter().zip(&columns).filter(|(name, column)| column.is_none() && !said(name));
            let ignored = ignored.map(|(name, _)| name.clone()).collect();
            let ids = ids.iter().map(|&column| names[column].clone()).collect();
            Ok(FileFacts { rows, ignored, ids, unknown: all_unknown })
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
            let found = &schema.variables[variable];
            let value: Box<str> = cell.to_string().into();
            let hint = match () {
                // A name, under a model that was learned without names.
                () if place.row == 0 && !schema.header => {
                    "; the model was learned without names of columns: if the first line has some, say `header = yes`"
                        .to_owned()
                }
                () => found.hint_about(&value),
            };
            let (column, hint) = (column().into(), hint.into());
            Err(Problem::Unknown { place, column, value, known: found.labels(), hint })
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
    let mut numbers = Vec::new();
    let facts = for_each_row(source, schema, read, rules, &mut |row| {
        // Room doubles when it is used up.
        if table.rows().is_power_of_two() {
            let of_row = size_of_val(row.codes) + size_of_val(row.numbers);
            memory::check("the rows of this table", 3 * (table.rows() * of_row) as u64)?;
        }
        numbers.extend_from_slice(row.numbers);
        missing.push(table.rows(), row.unobserved.to_vec());
        table.push(row.codes);
        Ok(())
    })?;
    let data = Dataset::new(Arc::clone(schema), table);
    let data = data.and_then(|data| data.with_missing(missing)).and_then(|data| data.with_numbers(numbers));
    let bad =
        |error: DatasetError| ReadError { file: source.name(), problem: Problem::Format(error.to_string()) };
    Ok((data.map_err(bad)?, facts))
}
