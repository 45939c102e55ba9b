//! A dataset as delimited text with a header.

use everytree_core::data::Dataset;
use std::io::{self, Write};

/// Writes names and labels with a delimiter between them; missing cells are empty.
pub fn write_text(out: &mut dyn Write, delimiter: u8, data: &Dataset) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    let variables = &data.schema().variables;
    writer.write_record(variables.iter().map(|variable| &variable.name)).map_err(io::Error::other)?;
    let labels: Vec<Vec<String>> = variables.iter().map(|variable| variable.labels()).collect();
    for row in 0..data.rows() {
        let missing = data.missing().of(row);
        let cell = |column: usize| match missing.contains(&column) {
            true => "",
            // The state for missing cells has an empty label.
            false => &labels[column][data.table().get(row, column)],
        };
        writer.write_record((0..data.columns()).map(cell)).map_err(io::Error::other)?;
    }
    writer.flush()
}
