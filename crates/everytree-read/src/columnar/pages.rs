//! How large the pages of a Parquet file are once they are unpacked: looked up before its reader unpacks them.
//!
//! The end of the file says how large a column is, but the reader goes by the header of every page, and the two need not agree.
//! A header is a struct of Thrift's compact protocol, whose second and third field are the two sizes.

use super::packed;
use crate::error::Problem;
use everytree_core::memory;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Structs within structs of a header; the format has three.
const DEPTH: usize = 8;

/// Checks every page of a file. One page of every column is in memory at a time.
pub(super) fn check(file: &File, metadata: &ParquetMetaData) -> Result<(), Problem> {
    let mut file = BufReader::new(file);
    let end = file.seek(SeekFrom::End(0))?;
    for group in metadata.row_groups() {
        let mut together = 0;
        for column in group.columns() {
            let name = column.column_path().string();
            let largest = largest_page(&mut file, end, column).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                    Problem::Format(format!("not a whole Parquet file: column {name:?}: {error}"))
                }
                _ => Problem::from(error),
            })?;
            together += largest;
            memory::check(format!("column {name:?} of this file, unpacked,"), together)?;
        }
    }
    file.rewind()?;
    Ok(())
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Bytes of the largest page of a column, unpacked.
fn largest_page(file: &mut BufReader<&File>, end: u64, column: &ColumnChunkMetaData) -> io::Result<u64> {
    let (first, length) = (column.dictionary_page_offset(), column.compressed_size());
    // Some writers say that there is a dictionary at 0, where there is none.
    let first = first.filter(|&first| first > 0).unwrap_or(i64::MAX).min(column.data_page_offset());
    let outside = || damaged("it goes on beyond the end of the file");
    let first = u64::try_from(first).map_err(|_| outside())?;
    let last = u64::try_from(length).ok().and_then(|length| first.checked_add(length));
    let last = last.filter(|&last| last <= end).ok_or_else(outside)?;
    if column.num_values() == 0 {
        // Without rows there need not be a page.
        return Ok(0);
    }
    let mut largest = 0;
    let mut place = first;
    while place < last {
        file.seek(SeekFrom::Start(place))?;
        let (unpacked, packed) = sizes(&mut file.by_ref().take(last - place))?;
        let unpacked = match column.compression() {
            Compression::UNCOMPRESSED => packed,
            _ => unpacked,
        };
        packed::check_ratio(packed, unpacked).map_err(damaged)?;
        largest = largest.max(unpacked);
        place = file.stream_position()?.checked_add(packed).ok_or_else(outside)?;
    }
    Ok(largest)
}

/// Reads a header of a page: its bytes when unpacked, and as they are in the file.
fn sizes(header: &mut impl BufRead) -> io::Result<(u64, u64)> {
    let (mut unpacked, mut packed) = (None, None);
    fields(header, 0, &mut |number, value| match number {
        2 => unpacked = u64::try_from(value).ok(),
        3 => packed = u64::try_from(value).ok(),
        _ => {}
    })?;
    unpacked.zip(packed).ok_or_else(|| damaged("a page without a size"))
}

/// Goes through the fields of a struct, and hands out those that are whole numbers.
fn fields(from: &mut impl BufRead, depth: usize, on_number: &mut dyn FnMut(i64, i64)) -> io::Result<()> {
    let bad = || damaged("the header of a page is none");
    let mut number = 0i64;
    loop {
        let head = byte(from)?;
        if head == 0 {
            return Ok(());
        }
        number = match head >> 4 {
            0 => signed(from)?,
            step => number.saturating_add(i64::from(step)),
        };
        match head & 15 {
            // True, and false.
            1 | 2 => {}
            3 => skip(from, 1)?,
            4..=6 => on_number(number, signed(from)?),
            7 => skip(from, 8)?,
            8 => {
                let length = varint(from)?;
                skip(from, length)?;
            }
            12 if depth < DEPTH => fields(from, depth + 1, &mut |_, _| {})?,
            // Lists and maps have no place in the header of a page.
            _ => return Err(bad()),
        }
    }
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Seven bits a byte, the lowest first.
fn varint(from: &mut impl Read) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(from)?;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    Err(damaged("the header of a page has a number without an end"))
}

/// Signs in the lowest bit.
fn signed(from: &mut impl Read) -> io::Result<i64> {
    let value = varint(from)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn skip(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut from.take(bytes), &mut io::sink())? == bytes {
        true => Ok(()),
        false => Err(damaged("the header of a page goes on beyond its column")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
    use parquet::basic::ZstdLevel;
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use std::sync::Arc;

    /// A table of numbers and texts as a Parquet file.
    fn written(rows: i64, properties: WriterProperties) -> File {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("{:080}", row % 7))));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut writer =
            ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    fn looked_at(file: &File) -> Result<(), Problem> {
        let found = ArrowReaderMetadata::load(file, ArrowReaderOptions::new()).unwrap();
        check(file, found.metadata())
    }

    #[test]
    fn pages_of_every_kind_are_walked_to_their_end() {
        let base = || WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Page);
        let zstd = Compression::ZSTD(ZstdLevel::default());
        for properties in [
            base().build(),
            base().set_compression(zstd).build(),
            base().set_compression(Compression::SNAPPY).set_dictionary_enabled(false).build(),
            base().set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0).build(),
            base().set_data_page_size_limit(100).build(),
        ] {
            looked_at(&written(5000, properties)).unwrap();
        }
    }

    #[test]
    fn the_sizes_are_those_that_the_header_says() {
        // Field 1: 0, field 2: 300, field 3: −1 → no size; field 5: a struct with a binary and a nested struct.
        let header = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 20, 0x2c, 0x18, 2, b'a', b'b', 0x1c, 0, 0, 0];
        assert_eq!(sizes(&mut &header[..]).unwrap(), (300, 10));
        assert!(sizes(&mut &[0x15, 0, 0x15, 4, 0x15, 1, 0][..]).is_err(), "a negative size");
        assert!(sizes(&mut &header[..9]).is_err(), "cut off");
        assert!(sizes(&mut &[0x1c; 100][..]).is_err(), "structs within structs");
        assert!(sizes(&mut &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..]).is_err());
    }

    #[test]
    fn a_little_that_says_to_be_much_is_refused() {
        // Texts that are all alike, not by a dictionary: 320 MB in a few thousand bytes.
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(false)
            .set_data_page_size_limit(1 << 30)
            .set_data_page_row_count_limit(1 << 30)
            .build();
        let text = "x".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(); 320]));
        let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut writer =
            ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let problem = looked_at(&file).unwrap_err().to_string();
        assert!(problem.contains("bytes that say to be 336 MB when unpacked"), "{problem}");
    }
}
