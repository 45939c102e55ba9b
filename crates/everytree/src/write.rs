//! Datasets into files.

use crate::{Dataset, Result};
use std::path::Path;

#[cfg(any(feature = "csv", feature = "parquet"))]
fn through(
    path: &Path,
    write: impl FnOnce(&mut (dyn std::io::Write + Send)) -> std::io::Result<()>,
) -> Result<()> {
    use crate::error::Kind;
    let failed = |cause| Kind::Write { path: path.to_owned(), cause };
    everytree_core::file::write_through(path, write).map_err(failed)?.map_err(failed)?;
    Ok(())
}

/// Parquet, or text.
pub(crate) fn dataset(data: &Dataset, path: &Path) -> Result<()> {
    let name = path.to_string_lossy().to_lowercase();
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "parquet" => parquet(data, path),
        "tsv" | "tab" => text(data, path, b'\t'),
        _ => text(data, path, b','),
    }
}

#[cfg(feature = "parquet")]
fn parquet(data: &Dataset, path: &Path) -> Result<()> {
    through(path, |out| everytree_read::write_parquet(out, data))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Dataset, path: &Path) -> Result<()> {
    Err(unsupported(path, "parquet"))
}

#[cfg(feature = "csv")]
fn text(data: &Dataset, path: &Path, delimiter: u8) -> Result<()> {
    through(path, |out| everytree_read::write_text(out, delimiter, data))
}

#[cfg(not(feature = "csv"))]
fn text(_: &Dataset, path: &Path, _: u8) -> Result<()> {
    Err(unsupported(path, "csv"))
}

#[cfg(not(all(feature = "csv", feature = "parquet")))]
fn unsupported(path: &Path, feature: &str) -> crate::Error {
    let path = path.display();
    crate::error::Kind::Unsupported(format!("{path}: this build was made without the feature {feature:?}"))
        .into()
}
