//! Writing: a JSON text and named lists of numbers as safetensors, with a checksum at the end. Nothing is held twice: lists go from
//! the model to the file.

use crc32fast::Hasher;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

/// The key of the metadata under which the description lies.
pub(super) const KEY: &str = "everytree";
/// The name of the last four bytes: the CRC-32 of all bytes before them, little-endian.
pub(super) const CHECKSUM: &str = "checksum";
/// How long the checksum is.
pub(super) const CHECKSUM_BYTES: usize = 4;
/// The longest header that safetensors has.
pub(super) const MAX_HEADER: usize = 100_000_000;
/// The length of a header comes first, in so many bytes; the header is padded to a multiple of it.
pub(super) const LENGTH: usize = 8;

/// A named list of numbers, in pieces that follow one another.
pub(super) struct List<'a> {
    pub name: String,
    pub pieces: Vec<Cow<'a, [f64]>>,
}

impl<'a> List<'a> {
    /// In one piece.
    pub fn whole(name: impl Into<String>, numbers: impl Into<Cow<'a, [f64]>>) -> Self {
        Self { name: name.into(), pieces: vec![numbers.into()] }
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }
}

/// Writes a file. The order of the lists does not matter: the same content gives the same bytes.
pub(super) fn write(description: String, mut lists: Vec<List<'_>>, to: &mut dyn Write) -> io::Result<()> {
    lists.sort_by(|one, other| one.name.cmp(&other.name));
    let header = header(description, &lists)?;
    let mut to = Summed { to, sum: Hasher::new() };
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(&header)?;
    let mut buffer = Vec::new();
    for chunk in lists.iter().flat_map(|list| &list.pieces).flat_map(|piece| piece.chunks(8192)) {
        buffer.clear();
        buffer.extend(chunk.iter().flat_map(|number| number.to_le_bytes()));
        to.write_all(&buffer)?;
    }
    let Summed { to, sum } = to;
    to.write_all(&sum.finalize().to_le_bytes())
}

/// The same in memory.
pub(super) fn to_bytes(description: String, lists: Vec<List<'_>>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let numbers: usize = lists.iter().map(List::len).sum();
    bytes
        .try_reserve(numbers * size_of::<f64>() + description.len())
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    write(description, lists, &mut bytes)?;
    Ok(bytes)
}

/// The header, padded.
fn header(description: String, lists: &[List<'_>]) -> io::Result<Vec<u8>> {
    let mut end = 0;
    let mut entry = |name: &str, dtype: Dtype, length: usize| {
        let begin = end;
        end += length * dtype.bitsize() / 8;
        (name.to_owned(), TensorInfo { dtype, shape: vec![length], data_offsets: (begin, end) })
    };
    let mut entries: Vec<_> = lists.iter().map(|list| entry(&list.name, Dtype::F64, list.len())).collect();
    entries.push(entry(CHECKSUM, Dtype::U32, 1));
    let metadata = HashMap::from([(KEY.to_owned(), description)]);
    let metadata = Metadata::new(Some(metadata), entries).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    if header.len() > MAX_HEADER {
        let (found, most) = (header.len() / 1_000_000, MAX_HEADER / 1_000_000);
        let what = format!("names and labels would take {found} MB of the file; at most {most} are possible");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(header)
}

/// Takes the checksum of what goes by.
struct Summed<'a> {
    to: &'a mut dyn Write,
    sum: Hasher,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
