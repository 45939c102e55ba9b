//! Delimited text: CSV, TSV and their relatives, plain or compressed.

use crate::error::{Place, Problem};
use crate::filled::{Fills, unwritten};
use crate::quotes::{LONGEST_ROW, Seen, Watched};
use crate::sheet::{Format, LONGEST_FIELD};
use csv::ByteRecord;
use everytree_core::data::{Cell, Decimal, NumberFormat};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::rc::Rc;

/// Bytes looked at to find the delimiter.
const GLANCE: usize = 1 << 16;

/// A text file, opened.
pub(crate) struct Text {
    reader: csv::Reader<Box<dyn Read>>,
    record: ByteRecord,
    /// Fields of the first line.
    columns: usize,
    /// The first line, not yet handed out.
    first: Vec<String>,
    delimiter: u8,
    /// Another delimiter that the first line has.
    other: Option<char>,
    /// Do lines end with a carriage return and a line feed?
    two_signs: bool,
    seen: Rc<Seen>,
}

impl Text {
    /// `input` is what the file holds, decompressed.
    pub fn open(path: &Path, input: Box<dyn Read>, delimiter: Option<u8>) -> Result<Self, Problem> {
        let mut input = BufReader::with_capacity(GLANCE, input);
        // A mark that says "this is UTF-8" is not part of the first name.
        if input.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        let glance = input.fill_buf()?;
        if glance.is_empty() {
            return Err(Problem::Empty);
        }
        let delimiter = delimiter.unwrap_or_else(|| guess(glance, by_name(path)));
        let line = glance.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let other = CANDIDATES.into_iter().find(|&c| c != delimiter && line.contains(&c)).map(char::from);
        let two_signs = line.ends_with(b"\r");
        let (input, seen) = Watched::new(input, delimiter);
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(Box::new(input) as Box<dyn Read>);
        let (record, columns, first) = (ByteRecord::new(), 0, Vec::new());
        let mut text = Self { reader, record, columns, first, delimiter, other, two_signs, seen };
        if !text.advance()? {
            return Err(Problem::Empty);
        }
        text.columns = text.record.len();
        let line = text.line();
        let fields: Result<Vec<String>, Problem> =
            (0..text.columns).map(|i| field(&text.record, i, line).map(str::to_owned)).collect();
        text.first = fields?;
        Ok(text)
    }

    fn delimiter(&self) -> char {
        self.delimiter.into()
    }

    fn advance(&mut self) -> Result<bool, Problem> {
        let read = self.reader.read_byte_record(&mut self.record);
        if let Some(line) = self.seen.unclosed.get() {
            return Err(Problem::UnclosedQuote { line });
        }
        if let Some(line) = self.seen.long.get() {
            return Err(Problem::LongRow { line, limit: LONGEST_ROW });
        }
        read.map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => Problem::Io(error),
            other => Problem::Format(format!("{other:?}")),
        })
    }

    /// The line that the record begins in. The reader notes where the record before it ended, which is before empty lines, and
    /// before the second half of an ending of two signs.
    fn line(&self) -> u64 {
        let within = self.record.as_slice().iter().filter(|&&byte| byte == b'\n').count() as u64;
        let ended = !self.two_signs && !self.seen.open_end.get();
        let after = self.reader.position().line().saturating_sub(within + u64::from(ended));
        self.record.position().map_or(1, |before| before.line()).max(after)
    }

    /// Hands out every line from the first on, as it is, of a file from which nothing else has been taken.
    pub fn records(
        &mut self,
        on_record: &mut dyn FnMut(&ByteRecord) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        loop {
            if self.record.len() != self.columns {
                let (line, found) = (self.line(), self.record.len());
                return Err(Problem::Ragged { line, found, expected: self.columns });
            }
            on_record(&self.record)?;
            if !self.advance()? {
                return Ok(());
            }
        }
    }

    /// Hands out every cell below the first line, row by row.
    fn visit_rows(
        &mut self,
        first_row: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut row = first_row;
        while self.advance()? {
            let line = self.line();
            if self.record.len() != self.columns {
                return Err(Problem::Ragged { line, found: self.record.len(), expected: self.columns });
            }
            let place = Place { row, line: Some(line) };
            for column in 0..self.columns {
                on_cell(place, column, Cell::Field(field(&self.record, column, line)?))?;
            }
            row += 1;
        }
        Ok(())
    }
}

/// A field as text, without blanks around it.
fn field(record: &ByteRecord, column: usize, line: u64) -> Result<&str, Problem> {
    let bytes = &record[column];
    // Nine of ten fields.
    if let [byte] = bytes
        && byte.is_ascii_graphic()
    {
        return Ok(std::str::from_utf8(bytes).unwrap_or_default());
    }
    if bytes.len() > LONGEST_FIELD {
        return Err(Problem::LongField {
            line,
            column: column + 1,
            bytes: bytes.len(),
            limit: LONGEST_FIELD,
        });
    }
    if bytes.contains(&0) {
        return Err(Problem::Nul { line, column: column + 1 });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::NotUtf8 {
        line,
        column: column + 1,
        text: String::from_utf8_lossy(bytes).chars().take(40).collect(),
    })?;
    Ok(text.trim())
}

impl Format for Text {
    fn first_line(&self) -> &[String] {
        &self.first
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn hint(&self) -> String {
        let Some(other) = self.other else { return String::new() };
        let name = if other == '\t' { "tab".to_owned() } else { other.to_string() };
        let cut = self.delimiter();
        format!("; its first line has {other:?}, fields were cut at {cut:?}: try `delimiter = {name}`")
    }

    fn has_decimal_commas(&self) -> bool {
        self.delimiter == b';'
    }

    fn visit(
        &mut self,
        first_row: u64,
        on_cell: &mut dyn FnMut(Place, usize, Cell<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.visit_rows(first_row, on_cell)
    }

    fn copy_filled(
        self: Box<Self>,
        header: bool,
        fills: &mut Fills<'_>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), Problem> {
        copy(*self, header, fills, out)
    }
}

fn copy(mut text: Text, header: bool, fills: &mut Fills<'_>, out: &mut dyn Write) -> Result<(), Problem> {
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

const CANDIDATES: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The delimiter that the name of a file promises.
fn by_name(path: &Path) -> Option<u8> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "csv" | "data" => Some(b','),
        "tsv" | "tab" => Some(b'\t'),
        _ => None,
    }
}

/// Lines that the delimiter is judged by.
const LINES: usize = 100;

/// The candidate that cuts all lines into the same number of fields, and into most. What the name of the file promises is left
/// only for one that fits better.
fn guess(glance: &[u8], promised: Option<u8>) -> u8 {
    let cut = |c: u8| -> Vec<csv::ByteRecord> {
        let reader =
            csv::ReaderBuilder::new().delimiter(c).has_headers(false).flexible(true).from_reader(glance);
        let mut lines: Vec<csv::ByteRecord> = reader.into_byte_records().take(LINES + 1).flatten().collect();
        if lines.len() > 1 && !glance.ends_with(b"\n") {
            // It may be cut short.
            lines.pop();
        }
        lines
    };
    let fields = |c: u8| {
        let lines = cut(c);
        let first = lines.first().map_or(0, csv::ByteRecord::len);
        (first > 1 && lines.iter().all(|line| line.len() == first), first)
    };
    if let Some(promised) = promised {
        let (fits, found) = fields(promised);
        let others = CANDIDATES.into_iter().filter(|&c| c != promised && c != b'|');
        let better = others.filter(|&c| fields(c).0).max_by_key(|&c| fields(c).1);
        return match better {
            // All of its commas are within numbers: 1,5;2,25
            Some(b';') if fits && promised == b',' && has_decimal_commas(&cut(b';')) => b';',
            Some(other) if !fits && found < fields(other).1.max(2) => other,
            // A title above the table, or a comma in a name, has commas of its own.
            Some(other) if !fits && cut(promised).iter().skip(1).all(|line| line.len() == 1) => other,
            Some(b';') if !fits && has_decimal_commas(&cut(b';')) => b';',
            _ => promised,
        };
    }
    let best = CANDIDATES.into_iter().rev().max_by_key(|&c| fields(c)).filter(|&c| fields(c).1 > 1);
    best.unwrap_or(b',')
}

/// Is there a comma in some field, and does every field below the first line that has one look like a number?
fn has_decimal_commas(lines: &[csv::ByteRecord]) -> bool {
    // The first line may be names.
    let fields = lines.iter().skip(usize::from(lines.len() > 1)).flat_map(|line| line.iter());
    let mut with_commas = fields.filter(|field| field.contains(&b',')).peekable();
    let number = |field: &[u8]| {
        std::str::from_utf8(field).is_ok_and(|text| {
            NumberFormat::detect(std::iter::once(text.trim()), Decimal::LikelyComma).is_some()
        })
    };
    with_commas.peek().is_some() && with_commas.all(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found_by_name_or_by_sight() {
        assert_eq!(by_name(Path::new("a/b.CSV.gz")), Some(b','));
        assert_eq!(by_name(Path::new("b.tsv")), Some(b'\t'));
        assert_eq!(by_name(Path::new("b.txt")), None);
        for (text, delimiter) in [
            (&b"a;b;c\n1,5;2;3\n"[..], b';'),
            (b"a\tb\n1\t2\n", b'\t'),
            (b"a|b\n1|2\n3|4", b'|'),
            (b"single\n", b','),
        ] {
            assert_eq!(guess(text, None), delimiter, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn what_a_name_promises_is_kept_unless_another_delimiter_fits() {
        for (text, delimiter) in [
            (&b"a,b\n1,2\n"[..], b','),
            (b"a;b\n1;2\n", b';'),
            (b"a\tb\nx y\t2\n", b'\t'),
            (b"price;size\n1,5;2,25\n3,5;4\n", b';'),
            (b"1,5;2,25\n3,5;4,75\n", b';'),
            (b"a,b\nx;y,1\nz;w,2\n", b','),
            (b"a,b\n\"x,y;z\",1\n\"u;v\",2\n", b','),
            (b"a,b\n1,2\n3\n", b','),
            (b"only\nx\ny\n", b','),
            (b"a;b, c\n1;2\n3;4\n", b';'),
        ] {
            assert_eq!(guess(text, Some(b',')), delimiter, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(guess(b"a\tb\n1,5\t2\n", Some(b'\t')), b'\t');
    }
}
