//! Datasets as delimited text with a header.

use everytree_core::data::{Dataset, Schema};
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes names and labels with a delimiter between them; missing cells are empty.
pub fn write_text(out: &mut dyn Write, delimiter: u8, data: &Dataset) -> io::Result<()> {
    TextWriter::new(out, delimiter, data.schema()).write(data)
}

/// What the system said, without the words around it: whoever reads our output may have seen enough.
pub fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The same for rows that come in portions.
pub struct TextWriter<'a> {
    writer: csv::Writer<&'a mut dyn Write>,
    /// Until they are written.
    names: Option<Vec<String>>,
    labels: Vec<Vec<String>>,
    ids: usize,
    rows: u64,
}

impl<'a> TextWriter<'a> {
    /// Writes nothing yet.
    pub fn new(out: &'a mut dyn Write, delimiter: u8, schema: &Schema) -> Self {
        let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        let variables = &schema.variables;
        let names = Some(variables.iter().map(|variable| variable.name.clone()).collect());
        let labels = variables.iter().map(|variable| variable.labels()).collect();
        Self { writer, names, labels, ids: 0, rows: 0 }
    }

    /// Before all others, columns of these names that number the rows from 1 on.
    pub fn numbering(mut self, ids: &[String]) -> Self {
        if let Some(names) = &mut self.names {
            names.splice(0..0, ids.iter().cloned());
            self.ids = ids.len();
        }
        self
    }

    /// Writes rows with these columns; names before the first of them.
    pub fn write(&mut self, data: &Dataset) -> io::Result<()> {
        if let Some(names) = self.names.take() {
            self.writer.write_record(names).map_err(io_error)?;
        }
        for row in 0..data.rows() {
            let missing = data.missing().of(row);
            let cell = |column: usize| match (missing.contains(&column), data.number(row, column)) {
                (true, _) => Cow::Borrowed(""),
                (_, Some(number)) => data.schema().variables[column].format.write(number).into(),
                // The state for missing cells has an empty label.
                _ => Cow::Borrowed(&self.labels[column][data.table().get(row, column)][..]),
            };
            self.rows += 1;
            let number = if self.ids > 0 { self.rows.to_string() } else { String::new() };
            let numbers = std::iter::repeat_n(Cow::Borrowed(number.as_str()), self.ids);
            let cells = numbers.chain((0..data.columns()).map(cell));
            self.writer
                .write_record(cells.collect::<Vec<_>>().iter().map(|cell| cell.as_bytes()))
                .map_err(io_error)?;
        }
        self.writer.flush()
    }
}
