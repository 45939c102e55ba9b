//! Datasets as delimited text with a header.

use everytree_core::data::{Dataset, Schema};
use std::io::{self, Write};

/// Writes names and labels with a delimiter between them; missing cells are empty.
pub fn write_text(out: &mut dyn Write, delimiter: u8, data: &Dataset) -> io::Result<()> {
    TextWriter::new(out, delimiter, data.schema()).write(data)
}

/// The same for rows that come in portions.
pub struct TextWriter<'a> {
    writer: csv::Writer<&'a mut dyn Write>,
    /// Until they are written.
    names: Option<Vec<String>>,
    labels: Vec<Vec<String>>,
}

impl<'a> TextWriter<'a> {
    /// Writes nothing yet.
    pub fn new(out: &'a mut dyn Write, delimiter: u8, schema: &Schema) -> Self {
        let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        let variables = &schema.variables;
        let names = Some(variables.iter().map(|variable| variable.name.clone()).collect());
        Self { writer, names, labels: variables.iter().map(|variable| variable.labels()).collect() }
    }

    /// Writes rows with these columns; names before the first of them.
    pub fn write(&mut self, data: &Dataset) -> io::Result<()> {
        if let Some(names) = self.names.take() {
            self.writer.write_record(names).map_err(io::Error::other)?;
        }
        for row in 0..data.rows() {
            let missing = data.missing().of(row);
            let cell = |column: usize| match missing.contains(&column) {
                true => "",
                // The state for missing cells has an empty label.
                false => &self.labels[column][data.table().get(row, column)],
            };
            self.writer.write_record((0..data.columns()).map(cell)).map_err(io::Error::other)?;
        }
        self.writer.flush()
    }
}
