//! How an Arrow file or stream is cut into messages: checked before its reader allocates what they say.
//!
//! The reader of the crate takes lengths as they are, and a length that is wrong by a bit may be of terabytes. Columns may be
//! compressed, each buffer by itself, with its length when unpacked before it.

use super::packed;
use crate::error::Problem;
use arrow_ipc::{CompressionType, Message};
use everytree_core::memory;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// What an Arrow file begins and ends with.
const MAGIC: &[u8; 6] = b"ARROW1";
/// Before the length of the metadata of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

fn damaged(what: &str) -> Problem {
    Problem::Format(format!("not a whole Arrow file: {what}"))
}

/// A number of bytes that lies within what is left.
fn within(length: i64, left: u64, what: &str) -> Result<u64, Problem> {
    u64::try_from(length).ok().filter(|&length| length <= left).ok_or_else(|| damaged(what))
}

/// Are all messages of a stream within the file? Leaves the file as it was.
pub(super) fn check_stream(file: &mut File) -> Result<(), Problem> {
    let (begin, end) = (file.stream_position()?, file.metadata()?.len());
    let mut place = begin;
    loop {
        file.seek(SeekFrom::Start(place))?;
        let Some(mut word) = next_word(file)? else { break };
        place += 4;
        if word == CONTINUATION {
            let Some(next) = next_word(file)? else { break };
            (word, place) = (next, place + 4);
        }
        let length = i64::from(i32::from_le_bytes(word));
        if length == 0 {
            break;
        }
        let length = within(length, end - place, "a message that goes on beyond its end")?;
        let mut metadata = Vec::new();
        file.by_ref().take(length).read_to_end(&mut metadata)?;
        place += length;
        let message = message(&metadata)?;
        let body = within(message.bodyLength(), end - place, "a body that goes on beyond its end")?;
        check_unpacked(file, &message, place, body)?;
        place += body;
    }
    file.seek(SeekFrom::Start(begin))?;
    Ok(())
}

/// Are all blocks that the end of a file speaks of within it? Leaves the file as it was.
pub(super) fn check_file(file: &mut File) -> Result<(), Problem> {
    let (begin, end) = (file.stream_position()?, file.metadata()?.len());
    let tail = (MAGIC.len() + 4) as u64;
    let bad = "it does not end with a list of its blocks";
    let place = end.checked_sub(tail).ok_or_else(|| damaged(bad))?;
    file.seek(SeekFrom::Start(place))?;
    let mut word = [0; 4];
    file.read_exact(&mut word)?;
    let length = within(i64::from(i32::from_le_bytes(word)), place, bad)?;
    file.seek(SeekFrom::Start(place - length))?;
    let mut footer = Vec::new();
    file.by_ref().take(length).read_to_end(&mut footer)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|_| damaged(bad))?;
    for block in footer.recordBatches().iter().chain(&footer.dictionaries()).flat_map(|blocks| blocks.iter())
    {
        let offset = within(block.offset(), end, bad)?;
        let length = within(i64::from(block.metaDataLength()), end - offset, bad)?;
        let body = within(block.bodyLength(), end - offset - length, bad)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut metadata = Vec::new();
        file.by_ref().take(length).read_to_end(&mut metadata)?;
        let before = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
        let message = message(metadata.get(before..).unwrap_or_default())?;
        check_unpacked(file, &message, offset + length, body)?;
    }
    file.seek(SeekFrom::Start(begin))?;
    Ok(())
}

fn message(metadata: &[u8]) -> Result<Message<'_>, Problem> {
    arrow_ipc::root_as_message(metadata).map_err(|_| damaged("a message that is none"))
}

/// Do the rows of a message fit into memory once they are unpacked? They are unpacked together.
fn check_unpacked(file: &mut File, message: &Message<'_>, place: u64, body: u64) -> Result<(), Problem> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return Ok(()) };
    let Some(compression) = batch.compression() else { return Ok(()) };
    let is_lz4 = compression.codec() == CompressionType::LZ4_FRAME;
    let mut together = 0u64;
    for buffer in batch.buffers().iter().flat_map(|buffers| buffers.iter()) {
        let bad = "a column that goes on beyond its end";
        let offset = within(buffer.offset(), body, bad)?;
        let length = within(buffer.length(), body - offset, bad)?;
        if length < 8 {
            continue;
        }
        file.seek(SeekFrom::Start(place + offset))?;
        let mut word = [0; 8];
        file.read_exact(&mut word)?;
        let length = length - 8;
        together += match i64::from_le_bytes(word) {
            // As it is, because nothing would have been gained.
            -1 => length,
            said => {
                let said = u64::try_from(said).map_err(|_| damaged("a column whose length is below zero"))?;
                packed::check_ratio(length, said).map_err(|what| damaged(&what))?;
                if is_lz4 && !packed::is_lz4_of(&mut file.by_ref().take(length), length, said)? {
                    return Err(damaged("a column that is longer than it says when unpacked"));
                }
                said
            }
        };
        memory::check("a batch of rows of this file, unpacked,", together)?;
    }
    Ok(())
}

/// Four bytes, if there are any more.
fn next_word(file: &mut File) -> io::Result<Option<[u8; 4]>> {
    let mut word = [0; 4];
    match file.read_exact(&mut word) {
        Ok(()) => Ok(Some(word)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columnar::Columnar;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use std::io::Write;
    use std::sync::Arc;

    /// A table of numbers and texts as an Arrow file, or a stream.
    fn written(rows: i64, codec: Option<CompressionType>, is_stream: bool) -> Vec<u8> {
        let numbers: ArrayRef = Arc::new((0..rows).map(|row| row / 7).collect::<Int64Array>());
        let texts: ArrayRef =
            Arc::new((0..rows).map(|row| Some(format!("v{}", row % 5))).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
        if is_stream {
            let mut writer = StreamWriter::try_new_with_options(vec![], &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap()
        } else {
            let mut writer = FileWriter::try_new_with_options(vec![], &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap()
        }
    }

    fn opened(bytes: &[u8], is_stream: bool) -> Result<usize, Problem> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let found = if is_stream { Columnar::arrow_stream(file) } else { Columnar::arrow(file) }?;
        let rows = found.batches.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<usize, _>>();
        rows.map_err(|error| Problem::Format(error.to_string()))
    }

    #[test]
    fn compressed_files_and_streams_are_read() {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            for is_stream in [false, true] {
                let rows = opened(&written(20_000, codec, is_stream), is_stream).unwrap();
                assert_eq!(rows, 20_000, "{codec:?} {is_stream}");
            }
        }
    }

    /// The length that a compressed column says it has, in another's place: 8 bytes a row, less is not compressed at all.
    #[test]
    fn what_cannot_be_unpacked_is_refused_before_it_is_unpacked() {
        let rows = 20_000;
        for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            for is_stream in [false, true] {
                let whole = written(rows, Some(codec), is_stream);
                let said = (8 * rows).to_le_bytes();
                let place = whole.windows(8).position(|bytes| bytes == said).unwrap();
                for (length, words) in [
                    (1 << 50, "when unpacked"),
                    (-5, "below zero"),
                    (8 * rows - 8, ""),
                    (i64::MAX, "when unpacked"),
                ] {
                    let mut changed = whole.clone();
                    changed[place..place + 8].copy_from_slice(&length.to_le_bytes());
                    let problem = opened(&changed, is_stream).unwrap_err().to_string();
                    assert!(problem.contains(words), "{codec:?} {length} {problem}");
                }
            }
        }
    }

    /// LZ4 says nothing of lengths in its frames: a frame of 400 MB of nothing that is said to be a byte.
    #[test]
    fn frames_that_are_longer_than_they_say_are_not_unpacked() {
        let mut frame = lz4_flex::frame::FrameEncoder::new(vec![]);
        io::copy(&mut io::repeat(0).take(400 << 20), &mut frame).unwrap();
        let frame = frame.finish().unwrap();
        let length = frame.len() as u64;
        assert!(length < 4 << 20);
        assert!(!packed::is_lz4_of(&mut frame.as_slice(), length, 1).unwrap());
        assert!(packed::is_lz4_of(&mut frame.as_slice(), length, 400 << 20).unwrap());
    }
}
