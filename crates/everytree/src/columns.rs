//! Datasets from columns of labels, and datasets in the words of another schema.

use crate::error::Kind;
use crate::{Dataset, Result, Unknown};
use everytree_core::data::scan::{Scan, ScanSettings};
use everytree_core::data::{Cell, Encoded, Encoder, Missing, Schema, Table};
use everytree_read::{Problem, ReadError};
use std::path::PathBuf;
use std::sync::Arc;

/// A dataset of columns by name.
pub(crate) fn dataset(columns: Vec<(String, Vec<Option<&str>>)>) -> Result<Dataset> {
    let error = |problem: Problem| ReadError { file: PathBuf::from("columns"), problem };
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    if rows == 0 {
        return Err(error(Problem::NoRowsAtAll).into());
    }
    if let Some((name, cells)) = columns.iter().find(|(_, cells)| cells.len() != rows) {
        let words = format!("column {name:?} has {} cells where the first has {rows}", cells.len());
        return Err(error(Problem::Format(words)).into());
    }
    let mut scan = Scan::new(columns.len(), ScanSettings::default());
    for (place, (_, cells)) in columns.iter().enumerate() {
        cells.iter().for_each(|cell| scan.observe(place, cell.map_or(Cell::Missing, Cell::Field)));
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    for (place, name) in names.iter().enumerate() {
        if let Some(first) = names[..place].iter().position(|other| other == name) {
            let problem =
                Problem::DuplicateColumn { name: name.clone(), first: first + 1, second: place + 1 };
            return Err(error(problem).into());
        }
    }
    let (schema, _) = scan.finish(names, true).map_err(|scan| error(scan.into()))?;
    let encoder = Encoder::new(&schema);
    let mut table = Table::new(&schema.states());
    for row in 0..rows {
        let code = |(place, (_, cells)): (usize, &(String, Vec<Option<&str>>))| {
            match encoder.encode(place, cells[row].map_or(Cell::Missing, Cell::Field)) {
                Encoded::State(state) => state,
                // Scanned above: what has no state is missing.
                _ => encoder.missing(place).unwrap_or(0),
            }
        };
        table.push(&columns.iter().enumerate().map(code).collect::<Vec<_>>());
    }
    drop(encoder);
    Dataset::from_codes(schema, table)
}

/// A dataset in the states of a schema.
pub(crate) struct Translated {
    /// Its columns are those of the schema; what is missing stays missing, also where it was a state.
    pub data: Dataset,
    /// Cells whose labels the schema does not know, and that were taken for missing.
    pub unknown: Missing,
    /// Columns that the schema does not know.
    pub ignored: Vec<String>,
}

/// A dataset with the columns and states of a schema: the same, or one whose labels the schema knows.
pub(crate) fn as_schema(data: &Dataset, schema: &Arc<Schema>, unknown: Unknown) -> Result<Translated> {
    if Arc::ptr_eq(data.schema(), schema) || **data.schema() == **schema {
        return Ok(Translated { data: unobserved(data)?, unknown: Missing::default(), ignored: Vec::new() });
    }
    let encoder = Encoder::new(schema);
    // For every column of the schema its place in the data, and what becomes of each state.
    let mut columns = Vec::new();
    for (v, variable) in schema.variables.iter().enumerate() {
        let own = crate::evidence::column(data.schema(), &variable.name)?;
        let from = &data.schema().variables[own];
        let encode = |(state, label): (usize, String)| match state < from.states.len() {
            true => {
                let encoded = encoder.encode(v, Cell::Field(&label));
                (label, encoded)
            }
            false => (label, Encoded::Unobserved),
        };
        columns.push((own, from.labels().into_iter().enumerate().map(encode).collect::<Vec<_>>()));
    }
    let (mut table, mut missing) = (Table::new(&schema.states()), Missing::default());
    let mut not_known = Missing::default();
    let mut codes = vec![0u16; schema.variables.len()];
    let (numeric, mut numbers) = (schema.numeric(), Vec::new());
    for row in 0..data.rows() {
        let (mut unobserved, mut passed) = (Vec::new(), Vec::new());
        for (v, (own, translated)) in columns.iter().enumerate() {
            // Of numbers each has a state of its own to be looked up.
            let number =
                data.number(row, *own).map(|number| data.schema().variables[*own].format.write(number));
            let found = number.map(|label| {
                let encoded = encoder.encode(v, Cell::Field(&label));
                (label, encoded)
            });
            let (label, encoded) = found.as_ref().unwrap_or(&translated[data.table().get(row, *own)]);
            codes[v] = 0;
            let mut number = f64::NAN;
            match encoded {
                _ if data.missing().of(row).contains(own) => unobserved.push(v),
                Encoded::State(state) => {
                    codes[v] = *state;
                    number = encoder.number(v, Cell::Field(label)).unwrap_or(f64::NAN);
                }
                Encoded::Unobserved => unobserved.push(v),
                Encoded::Unknown if unknown == Unknown::Unobserved => {
                    unobserved.push(v);
                    passed.push(v);
                }
                Encoded::Unknown => {
                    let (column, known) = (schema.variables[v].name.clone(), schema.variables[v].labels());
                    let (row, value) = (Some(row as u64), label.clone());
                    let hint = schema.variables[v].hint_about(&value);
                    return Err(Kind::UnknownValue { row, column, value, known, hint }.into());
                }
            }
            if numeric.contains(&v) {
                numbers.push(number);
            }
        }
        missing.push(row, unobserved);
        not_known.push(row, passed);
        table.push(&codes);
    }
    let names = data.schema().variables.iter().map(|variable| &variable.name);
    let ignored = names.filter(|name| schema.position(name).is_none()).cloned().collect();
    let made =
        Dataset::from_codes(Arc::clone(schema), table)?.with_missing(missing)?.with_numbers(numbers)?;
    Ok(Translated { data: made.with_weights(data.weights().to_vec())?, unknown: not_known, ignored })
}

/// Rows to validate or to test with, in the states of the rows to learn from: missing cells are the state "missing" where those
/// have one.
pub(crate) fn like(data: &Dataset, train: &Dataset, unknown: Unknown) -> Result<Dataset> {
    let schema = train.schema();
    if Arc::ptr_eq(data.schema(), schema) || **data.schema() == **schema {
        return Ok(data.clone());
    }
    let Translated { data, unknown, .. } = as_schema(data, schema, unknown)?;
    let (mut table, mut missing) = (Table::new(&schema.states()), Missing::default());
    let mut codes = vec![0u16; data.columns()];
    for row in 0..data.rows() {
        (0..codes.len()).for_each(|v| codes[v] = data.table().get(row, v) as u16);
        let (states, rest): (Vec<usize>, Vec<usize>) = data
            .missing()
            .of(row)
            .iter()
            .partition(|v| schema.variables[**v].missing && !unknown.of(row).contains(v));
        states.iter().for_each(|&v| codes[v] = schema.variables[v].states.len() as u16);
        missing.push(row, rest);
        table.push(&codes);
    }
    let made = Dataset::from_codes(Arc::clone(schema), table)?.with_missing(missing)?;
    made.with_numbers(data.numbers().to_vec())?.with_weights(data.weights().to_vec())
}

/// The same with missing cells that are a state taken as missing.
fn unobserved(data: &Dataset) -> Result<Dataset> {
    let variables = &data.schema().variables;
    if variables.iter().all(|variable| !variable.missing) {
        return Ok(data.clone());
    }
    let mut missing = Missing::default();
    for row in 0..data.rows() {
        let known = data.missing().of(row);
        let is_missing = |v: &usize| {
            known.contains(v)
                || (variables[*v].missing && data.table().get(row, *v) == variables[*v].states.len())
        };
        missing.push(row, (0..variables.len()).filter(is_missing).collect());
    }
    data.clone().with_missing(missing)
}
