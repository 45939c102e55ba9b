//! Temporary files to write to, and what is left of them when a process dies: the next one that writes into the folder removes
//! it.
//!
//! A file that is being written is locked by whoever writes it, and the system lets go of the lock when that process ends,
//! however it ends. So one that can be locked belongs to nobody.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

const PREFIX: &str = ".everytree-";
const SUFFIX: &str = ".part";
/// Letters and digits between the two.
const CHANCE: usize = 6;
/// Files that are made before it is given up.
const TRIES: usize = 16;

/// A temporary file to write to, locked.
pub(super) fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(CHANCE);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any new file: the mask of the user applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    for _ in 0..TRIES {
        let file = builder.tempfile_in(folder)?;
        // Where there are no locks nothing is ever removed. If it is gone, someone took it for a leftover before it was locked.
        if !cfg!(unix) || file.as_file().lock().is_err() || file.path().exists() {
            return Ok(file);
        }
    }
    Err(io::Error::other("every temporary file is removed as soon as it is made"))
}

/// Removes what processes that died have left in a folder; once for each folder, and as far as that is allowed.
pub(super) fn remove(folder: &Path) {
    static DONE: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let fresh =
        DONE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(folder.to_owned());
    if fresh && cfg!(unix) {
        remove_now(folder);
    }
}

fn remove_now(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // What somebody else has named so is not ours.
        let chance = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        let is_chance =
            |text: &str| text.len() == CHANCE && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let ours = chance.is_some_and(is_chance);
        // Not a link, nor anything that cannot be opened without waiting.
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // While it is locked: whoever has just made it sees that it is gone, and makes another.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_writes_to_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in [".everytree-abc123.part", ".everytree-notes.part", "other.part", ".everytree-abc123"] {
            fs::write(place(name), b"half").unwrap();
        }
        let writing = new_file(folder.path()).unwrap();
        remove_now(folder.path());
        assert!(writing.path().exists());
        assert!(!place(".everytree-abc123.part").exists());
        let others = ["other.part", ".everytree-notes.part", ".everytree-abc123"];
        assert!(others.into_iter().all(|name| place(name).exists()));
        drop(writing);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
