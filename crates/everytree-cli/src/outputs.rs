//! Files that a command is to write: looked at before any work is done, so that nothing is lost and nobody waits in vain.

use anyhow::{Context, Result, bail};
use everytree::Model;
use everytree_core::file::{ENOUGH, is_ours};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a command reads and writes.
#[derive(Default)]
pub struct Files<'a> {
    inputs: Vec<(&'a str, &'a Path)>,
    outputs: Vec<(&'a str, &'a Path)>,
}

impl<'a> Files<'a> {
    /// A file that is read, and what it is: "the table".
    pub fn input(mut self, what: &'a str, path: Option<&'a (impl AsRef<Path> + ?Sized)>) -> Self {
        self.inputs.extend(path.map(|path| (what, path.as_ref())));
        self
    }

    /// A file that is written, and the option that says where: `--out`.
    pub fn output(mut self, option: &'a str, path: Option<&'a (impl AsRef<Path> + ?Sized)>) -> Self {
        self.outputs.extend(path.map(|path| (option, path.as_ref())));
        self
    }

    /// Refuses to overwrite what is read, or the same file twice, and places where no file can be.
    pub fn check(&self) -> Result<()> {
        for (place, (option, path)) in self.outputs.iter().enumerate() {
            if let Some((what, input)) = self.inputs.iter().find(|(_, input)| is_same(input, path)) {
                if *what == "the table" && is_model(input) {
                    bail!(
                        "{}: this is a model, not a table; `everytree inspect` shows a model",
                        input.display()
                    );
                }
                bail!("{option} {}: this is {what} {}; it would be lost", path.display(), input.display());
            }
            if let Some((other, _)) = self.outputs[..place].iter().find(|(_, other)| is_same(other, path)) {
                bail!("{option} {}: {other} goes to the same file", path.display());
            }
            if path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator) {
                bail!("{option} {}: this is a folder, not a file", path.display());
            }
            let folder = folder_of(path);
            if !folder.is_dir() {
                bail!("{option} {}: there is no folder {}", path.display(), folder.display());
            }
            // A file that is there may be a pipe or a device: those are written as they are.
            if fs::metadata(path).map_or(true, |facts| facts.is_file())
                && let Err(error) = can_write(folder)
            {
                bail!("{option} {}: nothing can be written to {}: {error}", path.display(), folder.display());
            }
        }
        Ok(())
    }
}

/// Is there a model in this file?
fn is_model(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(ENOUGH as u64).read_to_end(&mut begin));
    read.is_ok() && is_ours(&begin)
}

/// Files are written beside their place and moved there: can one be made?
fn can_write(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".everytree-{}.part", std::process::id()));
    fs::OpenOptions::new().write(true).create_new(true).open(&probe)?;
    fs::remove_file(probe)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Are these one ordinary file, whatever it is called? Devices and pipes are nobody's.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one_is), Ok(other_is)) => {
            one_is.is_file() && other_is.is_file() && (identity(&one_is, one) == identity(&other_is, other))
        }
        // Two that are not there yet.
        (Err(_), Err(_)) => to_be(one).is_some_and(|place| Some(place) == to_be(other)),
        _ => false,
    }
}

/// Where a file would be.
fn to_be(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?))
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata, _: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata, path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Saves a model that took long to learn. Where its place cannot be written to any more, because a disk is full by now, it goes to the
/// folder of temporary files, and the error says so.
pub fn save(model: &Model, out: &Path) -> Result<()> {
    let Err(error) = model.save(out) else { return Ok(()) };
    let name = out.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy());
    let refuge = std::env::temp_dir().join(format!("everytree-{}-{name}", std::process::id()));
    match model.save(&refuge) {
        Ok(()) => Err(error).context(format!("the model is in {} instead", refuge.display())),
        Err(_) => Err(error.into()),
    }
}
