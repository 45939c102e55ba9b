//! How an Arrow file or stream is cut into messages: checked before its reader allocates what they say.
//!
//! The reader of the crate takes lengths as they are, and a length that is wrong by a bit may be of terabytes.

use crate::error::Problem;
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
        let message = arrow_ipc::root_as_message(&metadata).map_err(|_| damaged("a message that is none"))?;
        place += within(message.bodyLength(), end - place, "a body that goes on beyond its end")?;
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
        let metadata = within(i64::from(block.metaDataLength()), end - offset, bad)?;
        within(block.bodyLength(), end - offset - metadata, bad)?;
    }
    file.seek(SeekFrom::Start(begin))?;
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
