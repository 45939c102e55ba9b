//! Reading: the header first, then the checksum, then list after list into the memory where it stays. Whatever the file is (a device
//! that never ends, a table, a file that was cut short), nothing is read or allocated that its header does not speak of.

use super::pack::{CHECKSUM, CHECKSUM_BYTES, KEY, LENGTH, MAX_HEADER};
use super::{ContentError, FileError};
use crate::memory;
use crc32fast::Hasher;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// The first format that has a checksum.
const FIRST_WITH_CHECKSUM: u64 = 3;

/// What is read from: a file, or bytes.
trait Source: Read + Seek {}
impl<S: Read + Seek> Source for S {}

/// A file taken apart.
pub(super) struct Unpacked<'a> {
    source: Box<dyn Source + 'a>,
    header: Metadata,
    /// Where the lists begin.
    begin: u64,
    description: String,
    /// The format it says it has.
    pub format: u64,
}

/// What every description begins with.
#[derive(Deserialize)]
struct Head {
    format: u64,
    kind: String,
    version: String,
}

/// Something of the file cannot be read, though it was there a moment ago.
fn unreadable(error: io::Error) -> ContentError {
    ContentError::Container(error.to_string())
}

impl<'a> Unpacked<'a> {
    /// A file of this kind and of a format up to `known`.
    pub fn of_file(path: &Path, kind: &'static str, known: u64) -> Result<Unpacked<'static>, FileError> {
        let failed = |cause| FileError::Io { path: path.to_owned(), cause };
        let content = |what| FileError::Content { path: path.to_owned(), what };
        let mut file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.is_file() {
            return Unpacked::new(Box::new(BufReader::new(file)), facts.len(), kind, known).map_err(content);
        }
        // What can be read only once is kept, as far as its header says.
        let mut bytes = Vec::new();
        file.by_ref().take(LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
        let length = header_length(&bytes).map_err(content)?;
        file.by_ref().take(length).read_to_end(&mut bytes).map_err(failed)?;
        let data = parse_header(&bytes[LENGTH..]).map_err(content)?.data_len() as u64;
        // One byte more would be too many.
        file.take(data.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        let length = bytes.len() as u64;
        Unpacked::new(Box::new(Cursor::new(bytes)), length, kind, known).map_err(content)
    }

    /// The same from its bytes.
    pub fn of_bytes(bytes: &'a [u8], kind: &'static str, known: u64) -> Result<Self, ContentError> {
        Self::new(Box::new(Cursor::new(bytes)), bytes.len() as u64, kind, known)
    }

    fn new(
        mut source: Box<dyn Source + 'a>,
        size: u64,
        kind: &'static str,
        known: u64,
    ) -> Result<Self, ContentError> {
        let broken = |what: String| ContentError::Container(what);
        let mut bytes = Vec::new();
        source.by_ref().take(LENGTH as u64).read_to_end(&mut bytes).map_err(unreadable)?;
        let length = header_length(&bytes)?;
        let begin = LENGTH as u64 + length;
        if size < begin {
            return Err(broken("it ends within its header".to_owned()));
        }
        bytes.clear();
        source.by_ref().take(length).read_to_end(&mut bytes).map_err(unreadable)?;
        let header = parse_header(&bytes)?;
        let expected = begin.saturating_add(header.data_len() as u64);
        if size != expected {
            return Err(broken(format!("{size} bytes where its header speaks of {expected}")));
        }
        // Read once, into the memory where it stays, and a little more.
        memory::check("this model", size.saturating_add(size / 2))?;
        let description = header.metadata().as_ref().and_then(|all| all.get(KEY)).cloned();
        let description = description.ok_or(ContentError::Foreign)?;
        if header.info(CHECKSUM).is_some() {
            check_sum(&header, &mut source, size)?;
        }
        let head: Head = parse(&description)?;
        if head.format > known {
            return Err(ContentError::TooNew { found: head.format, version: head.version, known });
        }
        if head.format >= FIRST_WITH_CHECKSUM && header.info(CHECKSUM).is_none() {
            let what = format!("it is not there, though files of format {} have one", head.format);
            return Err(ContentError::Tensor { name: CHECKSUM.to_owned(), what });
        }
        if head.kind != kind {
            let hint = match kind {
                "model" => "; go on from a checkpoint with `resume`",
                _ => "",
            };
            return Err(ContentError::Kind { found: head.kind, expected: kind, hint });
        }
        Ok(Self { source, header, begin, description, format: head.format })
    }

    /// The description as what it describes.
    pub fn description<D: DeserializeOwned>(&self) -> Result<D, ContentError> {
        parse(&self.description)
    }

    /// Is there such a list?
    pub fn has(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    /// How many numbers a list has.
    pub fn length(&self, name: &str) -> Result<usize, ContentError> {
        let bad = |what: String| ContentError::Tensor { name: name.to_owned(), what };
        let info = self.header.info(name).ok_or_else(|| bad("it is not there".to_owned()))?;
        match (info.dtype, &info.shape[..]) {
            (Dtype::F64, &[length]) => Ok(length),
            (dtype, shape) => Err(bad(format!("{dtype:?} of shape {shape:?} instead of a list of F64"))),
        }
    }

    /// A list of numbers.
    pub fn numbers(&mut self, name: &str) -> Result<Vec<f64>, ContentError> {
        let length = self.length(name)?;
        let mut numbers = Vec::new();
        self.append(name, 0..length, &mut numbers)?;
        Ok(numbers)
    }

    /// A list of numbers that may be missing.
    pub fn maybe(&mut self, name: &str) -> Result<Option<Vec<f64>>, ContentError> {
        if self.has(name) { self.numbers(name).map(Some) } else { Ok(None) }
    }

    /// Adds a part of a list to what is there.
    pub fn append(&mut self, name: &str, part: Range<usize>, to: &mut Vec<f64>) -> Result<(), ContentError> {
        const SIZE: usize = size_of::<f64>();
        let bad = |what: String| ContentError::Tensor { name: name.to_owned(), what };
        if part.end > self.length(name)? {
            return Err(bad(format!("it has no entry {}", part.end - 1)));
        }
        let info = self.header.info(name).ok_or_else(|| bad("it is not there".to_owned()))?;
        let begin = self.begin + (info.data_offsets.0 + part.start * SIZE) as u64;
        to.try_reserve_exact(part.len()).map_err(|_| ContentError::Memory { bytes: part.len() * SIZE })?;
        self.source.seek(SeekFrom::Start(begin)).map_err(unreadable)?;
        let mut buffer = vec![0; SIZE * part.len().min(8192)];
        let mut place = part.start;
        while place < part.end {
            let bytes = &mut buffer[..SIZE * (part.end - place).min(8192)];
            self.source.read_exact(bytes).map_err(unreadable)?;
            for number in bytes.chunks_exact(SIZE) {
                let number = f64::from_le_bytes(number.try_into().expect("eight bytes"));
                if !number.is_finite() {
                    return Err(bad(format!("entry {place} is {number}")));
                }
                to.push(number);
                place += 1;
            }
        }
        Ok(())
    }
}

/// Are these the first bytes of a text, or of a file of columns? A header of a model is not as long as they would say.
fn is_table(bytes: &[u8]) -> bool {
    let text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte >= 0x80;
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    let text = bytes.len() == LENGTH && bytes.iter().all(text);
    text || begins(b"PAR1") || begins(b"ARROW1") || begins(&[0x1f, 0x8b])
}

/// So many bytes tell whether a file is a model or a checkpoint.
pub const ENOUGH: usize = 64;

/// Are these the first bytes of a model, or of a checkpoint?
///
/// ```
/// assert!(!everytree_core::file::is_ours(b"smoker,cough\nyes,no\n"));
/// ```
pub fn is_ours(bytes: &[u8]) -> bool {
    let Some((length, header)) = bytes.split_at_checked(LENGTH) else { return false };
    let key = format!("\"{KEY}\"");
    header_length(length).is_ok() && header.windows(key.len()).any(|some| some == key.as_bytes())
}

/// How long the header is, from the first bytes of a file.
fn header_length(bytes: &[u8]) -> Result<u64, ContentError> {
    if is_table(bytes) {
        return Err(ContentError::Table);
    }
    let Ok(length) = <[u8; LENGTH]>::try_from(bytes) else {
        return Err(ContentError::Container(format!("it ends after {} bytes", bytes.len())));
    };
    match u64::from_le_bytes(length) {
        length if (2..=MAX_HEADER as u64).contains(&length) => Ok(length),
        _ => Err(ContentError::Container("it does not begin with a header".to_owned())),
    }
}

fn parse_header(bytes: &[u8]) -> Result<Metadata, ContentError> {
    serde_json::from_slice(bytes).map_err(|error| ContentError::Container(format!("its header: {error}")))
}

fn parse<D: DeserializeOwned>(description: &str) -> Result<D, ContentError> {
    serde_json::from_str(description).map_err(|error| ContentError::Description(error.to_string()))
}

/// Is every byte as it was written?
fn check_sum(header: &Metadata, source: &mut dyn Source, size: u64) -> Result<(), ContentError> {
    match header.info(CHECKSUM) {
        Some(info)
            if info.dtype == Dtype::U32 && info.shape == [1] && info.data_offsets.1 == header.data_len() => {}
        _ => {
            let what = "it is not the last four bytes".to_owned();
            return Err(ContentError::Tensor { name: CHECKSUM.to_owned(), what });
        }
    }
    source.rewind().map_err(unreadable)?;
    let (mut sum, mut rest) = (Hasher::new(), size - CHECKSUM_BYTES as u64);
    let mut buffer = vec![0; 1 << 16];
    while rest > 0 {
        let bytes = &mut buffer[..rest.min(1 << 16) as usize];
        source.read_exact(bytes).map_err(unreadable)?;
        sum.update(bytes);
        rest -= bytes.len() as u64;
    }
    let mut said = [0; CHECKSUM_BYTES];
    source.read_exact(&mut said).map_err(unreadable)?;
    let (said, found) = (u32::from_le_bytes(said), sum.finalize());
    if said == found { Ok(()) } else { Err(ContentError::Checksum { said, found }) }
}
