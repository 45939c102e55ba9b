//! Copies of files whose columns have types, with cells filled in.

use super::Columnar;
use crate::error::Problem;
use crate::filled::{Fills, unwritten};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use parquet::arrow::ArrowWriter;
use std::io::Write;
use std::sync::Arc;

pub(super) fn copy(
    columnar: Columnar,
    fills: &mut Fills<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), Problem> {
    let bad = |error: ArrowError| Problem::Format(error.to_string());
    let old = columnar.schema.as_ref();
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Null => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        _ => Arc::clone(field),
    };
    let fields: Vec<Arc<Field>> = old.fields().iter().map(field).collect();
    let schema = Arc::new(ArrowSchema::new_with_metadata(fields, old.metadata().clone()));
    let mut writer = Output::new(columnar.is_parquet, &schema, out)?;
    let mut first = 0;
    for batch in columnar.batches {
        let batch = batch.map_err(bad)?;
        let rows = batch.num_rows();
        let here = fills.before(first + rows as u64);
        let columns: Result<Vec<ArrayRef>, ArrowError> = batch
            .columns()
            .iter()
            .enumerate()
            .map(|(number, array)| {
                let kind = schema.field(number).data_type();
                let mut texts: Vec<Option<&str>> = vec![None; rows];
                for (row, _, text) in here.iter().filter(|fill| fill.1 == number) {
                    texts[(row - first) as usize] = Some(text);
                }
                fill_array(array, kind, &texts).map_err(|error| match error {
                    ArrowError::CastError(_) => {
                        let name = schema.field(number).name();
                        let text = texts.iter().flatten().next().unwrap_or(&"");
                        ArrowError::CastError(format!(
                            "column {name:?} has the type {kind}, which has no place for a value such as {text:?}; \
                             store it as text, or write CSV"
                        ))
                    }
                    error => error,
                })
            })
            .collect();
        let filled = RecordBatch::try_new(Arc::clone(&schema), columns.map_err(bad)?).map_err(bad)?;
        writer.write(&filled)?;
        first += rows as u64;
    }
    writer.close()
}

/// The array with these texts, as its type has them, in their places.
fn fill_array(array: &ArrayRef, kind: &DataType, texts: &[Option<&str>]) -> Result<ArrayRef, ArrowError> {
    let array = if array.data_type() == kind { Arc::clone(array) } else { arrow_cast::cast(array, kind)? };
    if texts.iter().all(Option::is_none) {
        return Ok(array);
    }
    let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
    let strings: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let values = arrow_cast::cast_with_options(&strings, kind, &options)?;
    let mask: BooleanArray = texts.iter().map(|text| Some(text.is_some())).collect();
    arrow_select::zip::zip(&mask, &values.as_ref() as &dyn arrow_array::Datum, &array.as_ref())
}

/// A file in one of the formats with types.
enum Output<'a> {
    Parquet(Box<ArrowWriter<&'a mut (dyn Write + Send)>>),
    Arrow(Box<arrow_ipc::writer::FileWriter<&'a mut (dyn Write + Send)>>),
}

impl<'a> Output<'a> {
    fn new(
        parquet: bool,
        schema: &Arc<ArrowSchema>,
        out: &'a mut (dyn Write + Send),
    ) -> Result<Self, Problem> {
        Ok(match parquet {
            true => Self::Parquet(Box::new(
                ArrowWriter::try_new(out, Arc::clone(schema), None).map_err(unwritten)?,
            )),
            false => {
                Self::Arrow(Box::new(arrow_ipc::writer::FileWriter::try_new(out, schema).map_err(unwritten)?))
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Problem> {
        match self {
            Self::Parquet(writer) => writer.write(batch).map_err(unwritten)?,
            Self::Arrow(writer) => writer.write(batch).map_err(unwritten)?,
        }
        Ok(())
    }

    fn close(self) -> Result<(), Problem> {
        match self {
            Self::Parquet(writer) => drop(writer.close().map_err(unwritten)?),
            Self::Arrow(mut writer) => writer.finish().map_err(unwritten)?,
        }
        Ok(())
    }
}
