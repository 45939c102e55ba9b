//! Reading a file as far as its header says, and no further: whatever it is (a device that never ends, a table, a file that was cut
//! short), nothing is read or allocated that the header does not speak of.

use super::{ContentError, FileError};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest header that safetensors has.
const MAX_HEADER: u64 = 100_000_000;
/// The length of a header comes first.
const LENGTH: u64 = 8;

/// What a header says about a list of numbers. Everything else is looked at later.
#[derive(Deserialize)]
struct Entry {
    data_offsets: Option<(u64, u64)>,
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |cause| FileError::Io { path: path.to_owned(), cause };
    let content =
        |what: String| FileError::Content { path: path.to_owned(), what: ContentError::Container(what) };
    let mut file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    let mut bytes = Vec::new();
    take(&mut file, LENGTH, &mut bytes).map_err(failed)?;
    let length = match <[u8; 8]>::try_from(&bytes[..]) {
        Ok(length) => u64::from_le_bytes(length),
        Err(_) => return Err(content(format!("it ends after {} bytes", bytes.len()))),
    };
    if !(2..=MAX_HEADER).contains(&length) {
        return Err(content("it does not begin with a header".to_owned()));
    }
    if facts.is_file() && facts.len() < LENGTH + length {
        return Err(content("it ends within its header".to_owned()));
    }
    take(&mut file, length, &mut bytes).map_err(failed)?;
    let header = &bytes[LENGTH as usize..];
    let entries: HashMap<&str, Entry> =
        serde_json::from_slice(header).map_err(|error| content(format!("its header: {error}")))?;
    let data = entries.values().filter_map(|entry| entry.data_offsets).map(|(_, end)| end).max().unwrap_or(0);
    let expected = (LENGTH + length).saturating_add(data);
    if facts.is_file() && facts.len() != expected {
        return Err(content(format!("{} bytes where its header speaks of {expected}", facts.len())));
    }
    take(&mut file, data, &mut bytes).map_err(failed)?;
    // One more would be too many; who reads on says so.
    take(&mut file, 1, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// So many bytes more, or as many as there are.
fn take(file: &mut File, count: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let room = usize::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(count).read_to_end(bytes).map(drop)
}
