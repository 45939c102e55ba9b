//! Parquet and Arrow IPC files.

mod copy;
mod framing;
mod isolated;
mod packed;
mod pages;

use crate::error::{Place, Problem};
use crate::filled::Fills;
use crate::frame::Frame;
use crate::sheet::{Format, LONGEST_FIELD, Use};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use everytree_core::data::Cell;
use isolated::isolated;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Rows at once.
const ROWS: usize = 1024;
/// Texts of so many bytes are long: a column that is packed well may have millions of them in a few bytes.
const LONG_TEXT: usize = 1024;
/// Bytes of them that are gone through in any case, and for each byte of the file.
const LONG_TEXTS: u64 = 1 << 32;
const LONG_TEXTS_OF_BYTE: u64 = 1000;

/// How much of long texts a file may have.
fn long_texts(file: &File) -> Result<u64, Problem> {
    Ok(file.metadata()?.len().saturating_mul(LONG_TEXTS_OF_BYTE).max(LONG_TEXTS))
}

/// A file whose columns have names and types.
pub(crate) struct Columnar {
    names: Vec<String>,
    schema: Arc<Schema>,
    /// Parquet, or Arrow IPC?
    is_parquet: bool,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>,
    /// Bytes of long texts that may be gone through.
    long_texts: u64,
    /// Which columns are looked at; the others come as missing cells, whatever their type.
    uses: Vec<Use>,
}

/// One column of a batch, as one of the types that have states.
enum Column {
    Integers(ArrayRef),
    Reals(ArrayRef),
    Singles(ArrayRef),
    Texts(ArrayRef),
    Booleans(ArrayRef),
    Nothing,
}

impl Columnar {
    /// A table in memory, looked at through slices: casts of a few rows take no memory worth speaking of.
    pub fn frame(frame: &Frame) -> Result<Self, Problem> {
        let slices = frame.batches.clone().into_iter().flat_map(|batch| {
            let rows = batch.num_rows();
            (0..rows).step_by(ROWS).map(move |first| Ok(batch.slice(first, ROWS.min(rows - first))))
        });
        Self::of(Arc::clone(&frame.schema), false, slices)
    }

    /// Batches under a schema; all columns are looked at.
    fn of(
        schema: Arc<Schema>,
        is_parquet: bool,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'static,
    ) -> Result<Self, Problem> {
        let names = names(&schema)?;
        let uses = vec![Use::States; names.len()];
        Ok(Self { names, schema, is_parquet, batches: Box::new(batches), long_texts: u64::MAX, uses })
    }

    pub fn parquet(file: File) -> Result<Self, Problem> {
        let bad = |error: parquet::errors::ParquetError| {
            Problem::Format(format!("not a whole Parquet file: {error}"))
        };
        let found = isolated(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?.map_err(bad)?;
        pages::check(&file, found.metadata())?;
        let schema = Arc::clone(found.schema());
        let long_texts = long_texts(&file)?;
        // Texts as views of the pages they are in: a label that occurs in every row is there once.
        let view = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => {
                Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
            }
            _ => Arc::clone(field),
        };
        let fields: Vec<Arc<Field>> = schema.fields().iter().map(view).collect();
        let views = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let options = ArrowReaderOptions::new().with_schema(views);
        let found = isolated(|| ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, found.map_err(bad)?);
        let reader = isolated(|| builder.with_batch_size(ROWS).build())?.map_err(bad)?;
        Ok(Self { long_texts, ..Self::of(schema, true, Isolated(Some(reader)))? })
    }

    /// A stream of batches, without the index at the end that a file has.
    pub fn arrow_stream(mut file: File) -> Result<Self, Problem> {
        framing::check_stream(&mut file)?;
        let long_texts = long_texts(&file)?;
        let bad = |error: ArrowError| Problem::Format(format!("not a whole Arrow stream: {error}"));
        let reader =
            isolated(|| arrow_ipc::reader::StreamReader::try_new_buffered(file, None))?.map_err(bad)?;
        Ok(Self { long_texts, ..Self::of(reader.schema(), false, Isolated(Some(reader)))? })
    }

    pub fn arrow(mut file: File) -> Result<Self, Problem> {
        framing::check_file(&mut file)?;
        let long_texts = long_texts(&file)?;
        let bad = |error: ArrowError| Problem::Format(format!("not a whole Arrow file: {error}"));
        let reader =
            isolated(|| arrow_ipc::reader::FileReader::try_new_buffered(file, None))?.map_err(bad)?;
        Ok(Self { long_texts, ..Self::of(reader.schema(), false, Isolated(Some(reader)))? })
    }
}

/// What is said of a batch that cannot be read.
fn damaged(error: ArrowError) -> Problem {
    const WORDS: &str = "the file is damaged: ";
    let text = error.to_string();
    // A panic of the reader has its words already.
    let cause = text.split_once(WORDS).map_or(&*text, |(_, cause)| cause);
    Problem::Format(format!("{WORDS}{cause}"))
}

/// Batches of a reader that may panic; after that there are no more.
struct Isolated<R>(Option<R>);

impl<R: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Isolated<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.0.as_mut()?;
        isolated(|| reader.next()).unwrap_or_else(|problem| {
            self.0 = None;
            Some(Err(ArrowError::ParseError(problem.to_string())))
        })
    }
}

impl Format for Columnar {
    fn names(&self) -> Option<&[String]> {
        Some(&self.names)
    }

    fn columns(&self) -> usize {
        self.names.len()
    }

    /// Columns with states must be of types that have some, and whatever tells rows apart must be something that can be written.
    fn only(&mut self, uses: Vec<Use>) -> Result<(), Problem> {
        for (field, wanted) in self.schema.fields().iter().zip(&uses) {
            match wanted {
                Use::Nothing => {}
                Use::Names if arrow_cast::can_cast_types(field.data_type(), &DataType::Utf8View) => {}
                Use::States | Use::Names => check_type(field)?,
            }
        }
        self.uses = uses;
        Ok(())
    }

    /// Hands out every cell, row by row.
    fn visit(
        &mut self,
        _: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut first = 0;
        for batch in &mut self.batches {
            let batch = batch.map_err(damaged)?;
            check_rows(&batch)?;
            let both = batch.columns().iter().zip(&self.names).zip(&self.uses);
            let columns: Result<Vec<Column>, Problem> = both
                .map(
                    |((array, name), wanted)| {
                        if *wanted == Use::Nothing { Ok(Column::Nothing) } else { column(array, name) }
                    },
                )
                .collect();
            let columns = columns?;
            for row in 0..batch.num_rows() {
                let place = Place { row: first + row as u64, line: None };
                for (number, column) in columns.iter().enumerate() {
                    let cell = column.cell(row);
                    if let Cell::Text(text) = cell
                        && text.len() > LONGEST_FIELD
                    {
                        let (column, bytes) = (self.names[number].clone(), text.len());
                        return Err(Problem::LongLabel { place, column, bytes, limit: LONGEST_FIELD });
                    }
                    if let Cell::Text(text) = cell
                        && text.len() > LONG_TEXT
                    {
                        let left = self.long_texts.checked_sub(text.len() as u64);
                        self.long_texts = left.ok_or_else(|| {
                            let words = "it has gigabytes of texts of a thousand bytes each, which are no labels; leave it out";
                            let column = &self.names[number];
                            Problem::Format(format!("column {column:?}: {words} with `drop = {column}`"))
                        })?;
                    }
                    on_cell(place, number, cell)?;
                }
            }
            first += batch.num_rows() as u64;
        }
        Ok(())
    }

    fn copy_filled(
        self: Box<Self>,
        _: bool,
        fills: &mut Fills<'_>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), Problem> {
        copy::copy(*self, fills, out)
    }
}

/// Rows cost at least a bit each, unless all columns are of a type without values: then a few bytes may speak of any number of them.
fn check_rows(batch: &RecordBatch) -> Result<(), Problem> {
    const ROWS_WITHOUT_BYTES: usize = 1 << 20;
    let (rows, bytes) = (batch.num_rows(), batch.get_array_memory_size());
    if rows > ROWS_WITHOUT_BYTES.max(bytes.saturating_mul(64)) {
        return Err(Problem::Format(format!("it speaks of {rows} rows in {bytes} bytes")));
    }
    Ok(())
}

fn names(schema: &Schema) -> Result<Vec<String>, Problem> {
    if schema.fields().is_empty() {
        return Err(Problem::Empty);
    }
    Ok(schema.fields().iter().map(|field| field.name().trim().to_owned()).collect())
}

/// The key under which a column says what its type is called where it comes from.
pub const TYPE_NAME: &str = "everytree.type";

fn check_type(field: &Field) -> Result<(), Problem> {
    fn has_states(kind: &DataType) -> bool {
        use DataType::{Boolean, Dictionary, LargeUtf8, Null, Utf8, Utf8View};
        match kind {
            Boolean | Null | Utf8 | LargeUtf8 | Utf8View => true,
            Dictionary(_, values) => has_states(values),
            kind => kind.is_integer() || kind.is_floating(),
        }
    }
    if has_states(field.data_type()) {
        return Ok(());
    }
    let named = field.metadata().get(TYPE_NAME).cloned();
    let kind = named.unwrap_or_else(|| field.data_type().to_string());
    Err(Problem::UnsupportedType { column: field.name().clone(), kind })
}

fn column(array: &ArrayRef, name: &str) -> Result<Column, Problem> {
    // Taken apart first: a view of a dictionary would forget which of its values are null.
    let plain;
    let array = match array.data_type() {
        DataType::Dictionary(_, values) => {
            plain = arrow_cast::cast(array, values)
                .map_err(|error| Problem::Format(format!("column {name:?}: {error}")))?;
            &plain
        }
        _ => array,
    };
    let cast = |to: &DataType| {
        arrow_cast::cast_with_options(
            array,
            to,
            &arrow_cast::CastOptions { safe: false, ..Default::default() },
        )
        .map_err(|error| match (array.data_type(), to) {
            (DataType::UInt64, DataType::Int64) => Problem::Format(format!(
                "column {name:?} has whole numbers from 2⁶³ on, which have no place here; store it as text"
            )),
            _ => Problem::Format(format!("column {name:?}: {error}")),
        })
    };
    Ok(match array.data_type().clone() {
        DataType::Null => Column::Nothing,
        DataType::Boolean => Column::Booleans(cast(&DataType::Boolean)?),
        kind if kind.is_integer() => Column::Integers(cast(&DataType::Int64)?),
        DataType::Float64 => Column::Reals(cast(&DataType::Float64)?),
        kind if kind.is_floating() => Column::Singles(cast(&DataType::Float32)?),
        _ => Column::Texts(cast(&DataType::Utf8View)?),
    })
}

impl Column {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Column::Integers(array) if array.is_valid(row) => {
                Cell::Integer(array.as_primitive::<Int64Type>().value(row))
            }
            Column::Reals(array) if array.is_valid(row) => {
                Cell::Real(array.as_primitive::<Float64Type>().value(row))
            }
            // 0.1 in f32 is the number that people wrote as 0.1, not the nearest f64 to its bits.
            Column::Singles(array) if array.is_valid(row) => Cell::Real(
                array.as_primitive::<Float32Type>().value(row).to_string().parse().unwrap_or(f64::NAN),
            ),
            Column::Texts(array) if array.is_valid(row) => Cell::Text(array.as_string_view().value(row)),
            Column::Booleans(array) if array.is_valid(row) => Cell::Boolean(array.as_boolean().value(row)),
            _ => Cell::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, NullArray};

    #[test]
    fn rows_without_values_are_not_counted_for_ever() {
        let of = |array: ArrayRef| RecordBatch::try_from_iter([("a", array)]).unwrap();
        assert!(check_rows(&of(Arc::new(NullArray::new(1000)))).is_ok());
        let problem = check_rows(&of(Arc::new(NullArray::new(1 << 60)))).unwrap_err();
        assert!(problem.to_string().contains("1152921504606846976 rows"), "{problem}");
        assert!(check_rows(&of(Arc::new(BooleanArray::from(vec![true; 10_000_000])))).is_ok());
    }
}
