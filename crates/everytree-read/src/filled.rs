//! A copy of a file with some of its cells filled in, and everything else as it was.

use crate::columnar::Columnar;
use crate::error::{Problem, ReadError};
use crate::frame::Source;
use crate::sheet::{Body, ReadSettings, Sheet};
use crate::table::columns_of;
use crate::text::Text;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use everytree_core::data::Schema;
use parquet::arrow::ArrowWriter;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A cell to fill: its row (from 0), its variable, and the text of its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The row.
    pub row: u64,
    /// The variable.
    pub variable: usize,
    /// What it says from now on; in a file with types it becomes a value of the column's type.
    pub text: String,
}

/// Copies the file at `path` to `out` in its own format, with these cells (in the order of rows) filled in. Of text files that
/// were compressed the copy is not; a column that had no type at all becomes text.
pub fn copy_filled(
    path: &Path,
    schema: &Schema,
    read: &ReadSettings,
    fills: &[Fill],
    out: &mut (dyn Write + Send),
) -> Result<(), ReadError> {
    let sheet = Sheet::open(Source::File(path), read)?;
    let (variables, header) = columns_of(&sheet, schema, read)?;
    let path = path.to_owned();
    let column_of = |variable: usize| variables.iter().position(|of| *of == Some(variable));
    let fills = fills
        .iter()
        .filter_map(|fill| column_of(fill.variable).map(|column| (fill.row, column, fill.text.as_str())));
    let mut fills = Fills { left: fills.collect::<Vec<_>>().into_iter().peekable() };
    let copied = match sheet.into_body() {
        Body::Text(text) => copy_text(*text, header, &mut fills, out),
        Body::Columnar(columnar) => copy_columnar(*columnar, &mut fills, out),
    };
    copied.map_err(|problem| ReadError { file: path, problem })
}

/// Fills by row, as the file goes by.
struct Fills<'a> {
    left: std::iter::Peekable<std::vec::IntoIter<(u64, usize, &'a str)>>,
}

impl<'a> Fills<'a> {
    /// Those of the rows before this one that have not been handed out.
    fn before(&mut self, row: u64) -> Vec<(u64, usize, &'a str)> {
        let mut some = Vec::new();
        while let Some(fill) = self.left.next_if(|fill| fill.0 < row) {
            some.push(fill);
        }
        some
    }
}

fn copy_text(
    mut text: Text,
    header: bool,
    fills: &mut Fills<'_>,
    out: &mut dyn Write,
) -> Result<(), Problem> {
    let bad = |error: csv::Error| unwritten(error);
    let mut writer =
        csv::WriterBuilder::new().delimiter(text.delimiter() as u8).flexible(true).from_writer(out);
    let mut row = 0;
    let mut names = header;
    text.records(&mut |record| {
        if std::mem::take(&mut names) {
            return writer.write_byte_record(record).map_err(bad);
        }
        row += 1;
        let here = fills.before(row);
        if here.is_empty() {
            return writer.write_byte_record(record).map_err(bad);
        }
        let fill = |column: usize| here.iter().find(|fill| fill.1 == column).map(|fill| fill.2.as_bytes());
        let fields = record.iter().enumerate().map(|(column, field)| fill(column).unwrap_or(field));
        writer.write_record(fields).map_err(bad)
    })?;
    writer.flush().map_err(unwritten)
}

/// What the system says about the copy is not about the file that is copied.
fn unwritten(error: impl std::fmt::Display) -> Problem {
    Problem::Format(format!("its copy cannot be written: {error}"))
}

fn copy_columnar(
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
                fill_array(array, kind, &texts)
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
