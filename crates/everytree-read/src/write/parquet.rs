//! A dataset as a Parquet file: every column by the type of its states.

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use everytree_core::data::{Cells, Dataset, Schema, States, Variable};
use parquet::arrow::ArrowWriter;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a row group.
const GROUP: usize = 1 << 16;

/// Writes truth values, numbers and texts as such, bins by their labels, and missing cells as nulls.
pub fn write_parquet(out: &mut (dyn Write + Send), data: &Dataset) -> io::Result<()> {
    let mut writer = ParquetWriter::new(out, data.schema(), !data.is_complete())?;
    writer.write(data)?;
    writer.finish()
}

/// The same for rows that come in portions.
pub struct ParquetWriter<'a> {
    arrow: Arc<ArrowSchema>,
    writer: ArrowWriter<&'a mut (dyn Write + Send)>,
    /// Columns that number the rows.
    ids: usize,
    rows: i64,
}

impl<'a> ParquetWriter<'a> {
    /// Of such columns; cells that are no state may be missing where rows are `incomplete`.
    pub fn new(out: &'a mut (dyn Write + Send), schema: &Schema, incomplete: bool) -> io::Result<Self> {
        Self::numbering(out, schema, incomplete, &[])
    }

    /// The same; before all others, columns of these names number the rows from 1 on.
    pub fn numbering(
        out: &'a mut (dyn Write + Send),
        schema: &Schema,
        incomplete: bool,
        ids: &[String],
    ) -> io::Result<Self> {
        let field = |variable: &Variable| {
            Field::new(&variable.name, kind(&variable.states), variable.missing || incomplete)
        };
        let numbers = ids.iter().map(|id| Field::new(id, DataType::Int64, false));
        let fields: Vec<Field> = numbers.chain(schema.variables.iter().map(field)).collect();
        let arrow = Arc::new(ArrowSchema::new(fields));
        let writer = ArrowWriter::try_new(out, Arc::clone(&arrow), None).map_err(io::Error::other)?;
        Ok(Self { arrow, writer, ids: ids.len(), rows: 0 })
    }

    /// Writes rows with these columns.
    pub fn write(&mut self, data: &Dataset) -> io::Result<()> {
        for first in (0..data.rows()).step_by(GROUP) {
            let rows = first..(first + GROUP).min(data.rows());
            let code = |row: usize, v: usize| match data.missing().of(row).contains(&v) {
                true => usize::MAX,
                false => data.table().get(row, v),
            };
            let codes = |v: usize| rows.clone().map(|row| code(row, v)).collect::<Vec<usize>>();
            let variables = data.schema().variables.iter().enumerate();
            let last = self.rows + rows.len() as i64;
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(self.rows + 1..=last));
            self.rows = last;
            let ids = std::iter::repeat_n(numbers, self.ids);
            let columns: Vec<ArrayRef> = ids
                .chain(variables.map(|(v, variable)| match &variable.states {
                    States::Numbers(cells) => numbers_of(data, rows.clone(), v, cells),
                    _ => column(variable, &codes(v)),
                }))
                .collect();
            let batch = RecordBatch::try_new(Arc::clone(&self.arrow), columns).map_err(io::Error::other)?;
            self.writer.write(&batch).map_err(io::Error::other)?;
            // What is written is not held until there is enough for a larger group.
            self.writer.flush().map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Without this, there is no file.
    pub fn finish(self) -> io::Result<()> {
        self.writer.close().map_err(io::Error::other)?;
        Ok(())
    }
}

/// What is said of a row that was scored.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredRow {
    /// The cells that tell it apart.
    pub ids: Vec<String>,
    /// In nats.
    pub log_likelihood: f64,
    /// Of the random trees, where cells were missing.
    pub standard_error: f64,
}

/// Writes log-likelihoods of rows, with their errors or without, after the columns that tell rows apart, as they come.
pub fn write_scores(
    out: &mut (dyn Write + Send),
    ids: &[String],
    with_errors: bool,
    mut scores: impl Iterator<Item = io::Result<ScoredRow>>,
) -> io::Result<()> {
    let column = |name: &str, kind: DataType| Field::new(name, kind, false);
    let mut fields = vec![column("row", DataType::Int64)];
    fields.extend(ids.iter().map(|id| column(id, DataType::Utf8)));
    fields.push(column("log_likelihood", DataType::Float64));
    if with_errors {
        fields.push(column("standard_error", DataType::Float64));
    }
    let schema = Arc::new(ArrowSchema::new(fields));
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), None).map_err(io::Error::other)?;
    let mut first = 0i64;
    loop {
        let some: io::Result<Vec<ScoredRow>> = scores.by_ref().take(GROUP).collect();
        let some = some?;
        if some.is_empty() {
            break;
        }
        let last = first + some.len() as i64;
        let numbers = |number: fn(&ScoredRow) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(some.iter().map(number)))
        };
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(first..last))];
        for id in 0..ids.len() {
            columns.push(Arc::new(StringArray::from_iter_values(some.iter().map(|row| &row.ids[id]))));
        }
        columns.push(numbers(|row| row.log_likelihood));
        if with_errors {
            columns.push(numbers(|row| row.standard_error));
        }
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(io::Error::other)?;
        writer.write(&batch).map_err(io::Error::other)?;
        first = last;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

fn kind(states: &States) -> DataType {
    match states {
        States::Booleans(_) => DataType::Boolean,
        States::Integers(_) => DataType::Int64,
        States::Reals(_) => DataType::Float64,
        States::Numbers(cells) if cells.decimals() == Some(0) => DataType::Int64,
        States::Numbers(_) => DataType::Float64,
        States::Texts(_) | States::Others(_) | States::Bins(_) => DataType::Utf8,
    }
}

/// The numbers of some rows; where nothing but the cell is known, the number in its middle.
fn numbers_of(data: &Dataset, rows: Range<usize>, column: usize, cells: &Cells) -> ArrayRef {
    let number = |row: usize| {
        let state = data.table().get(row, column);
        let there = state < cells.len() && !data.missing().of(row).contains(&column);
        there.then(|| data.number(row, column).unwrap_or_else(|| cells.draw(state, 0.5)))
    };
    match cells.decimals() {
        Some(0) => Arc::new(rows.map(|row| number(row).map(|x| x as i64)).collect::<Int64Array>()),
        _ => Arc::new(rows.map(number).collect::<Float64Array>()),
    }
}

fn column(variable: &Variable, codes: &[usize]) -> ArrayRef {
    // A state after all others is "missing".
    let codes = codes.iter().copied();
    match &variable.states {
        States::Booleans(_) => {
            let value = |code: usize| (code < 2).then_some(code == 1);
            Arc::new(codes.map(value).collect::<BooleanArray>())
        }
        States::Integers(values) => {
            Arc::new(codes.map(|code| values.get(code).copied()).collect::<Int64Array>())
        }
        States::Reals(values) => {
            Arc::new(codes.map(|code| values.get(code).copied()).collect::<Float64Array>())
        }
        States::Texts(_) | States::Others(_) | States::Bins(_) | States::Numbers(_) => {
            let labels = variable.labels();
            let seen = variable.states.len();
            let label = |code: usize| labels[..seen].get(code).map(String::as_str);
            Arc::new(codes.map(label).collect::<StringArray>())
        }
    }
}
