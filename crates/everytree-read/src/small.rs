//! Small text files beside the tables: read no further than is reasonable.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A text file of so many bytes at most; beyond them there is an error, and not an end.
pub fn small_text(path: &Path, most: u64) -> io::Result<impl Read + use<>> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "there is a NUL byte; this is not a text file",
        ));
    }
    Ok(Limited { file, left: most })
}

struct Limited<R> {
    file: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(to)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, "the file is longer than there is room for")
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_are_not_read_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        std::fs::write(&path, "0,1\n".repeat(100_000)).unwrap();
        let read = |most| {
            let mut text = Vec::new();
            small_text(&path, most)?.read_to_end(&mut text).map(|_| text.len())
        };
        assert_eq!(read(400_000).unwrap(), 400_000);
        assert!(read(399_999).unwrap_err().to_string().contains("longer"));
        if cfg!(unix) {
            let error = small_text(Path::new("/dev/zero"), 10).map(drop).unwrap_err();
            assert!(error.to_string().contains("NUL"), "{error}");
        }
    }
}
