//! Writing a file whole or not at all.

mod leftovers;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `bytes` whole or not at all; see [`write_through`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_through(path, |file| file.write_all(bytes))?
}

/// Writes to a temporary file beside `path`, then puts that in its place: whoever looks sees the old file or the new one, whole, even
/// if this process dies. Nothing is put in place where `write` fails. What is not an ordinary file (a pipe, a device)
/// is written to directly.
pub fn write_through<T, E>(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    let ordinary = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    if !ordinary {
        let mut file = BufWriter::new(File::options().write(true).open(path)?);
        let written = write(&mut file);
        file.flush()?;
        return Ok(written);
    }
    // A link is followed: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(folder)?;
    leftovers::remove(folder);
    let refused = |error: io::Error| {
        let kind = error.kind();
        io::Error::new(kind, format!("no file can be made in the folder {}: {kind}", folder.display()))
    };
    let file = leftovers::new_file(folder).map_err(refused)?;
    if let Ok(old) = fs::metadata(&target) {
        // Whoever may read or write the old file may do so with the new one.
        file.as_file().set_permissions(old.permissions())?;
    }
    // Past the wrapper, whose errors name a file that nobody has heard of.
    let mut buffer = BufWriter::new(file.as_file());
    let written = match write(&mut buffer) {
        Ok(written) => written,
        Err(error) => return Ok(Err(error)),
    };
    buffer.flush()?;
    drop(buffer);
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(Ok(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_takes_the_place_of_the_old_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomically(&folder.path().join("no/such/folder"), b"x").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, b"old").unwrap();
        for mode in [0o600, 0o640, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write_atomically(&path, b"new").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        assert!(write_atomically(Path::new("/dev/full"), b"x").is_err());
    }
}
