//! Datasets into files.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "csv")]
mod text;

#[cfg(feature = "parquet")]
pub use parquet::{ParquetWriter, ScoredRow, write_parquet, write_scores};
#[cfg(feature = "csv")]
pub use text::{TextWriter, io_error, write_text};
