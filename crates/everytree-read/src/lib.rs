//! Tables into everytree: delimited text (plain or gzip; feature `csv`), Parquet, Arrow IPC and Arrow in memory (feature
//! `parquet`). And out of it: datasets as text or Parquet, and copies of files with cells filled in.

#[cfg(feature = "parquet")]
mod columnar;
#[cfg(feature = "parquet")]
mod copied;
mod error;
mod filled;
mod frame;
#[cfg(feature = "csv")]
mod quotes;
mod selection;
mod sheet;
#[cfg(feature = "csv")]
mod small;
mod table;
#[cfg(feature = "csv")]
mod text;
#[cfg(feature = "csv")]
mod weights;
mod write;

#[cfg(feature = "parquet")]
pub use columnar::TYPE_NAME;
#[cfg(feature = "parquet")]
pub use copied::copied;
pub use error::{Place, Problem, ReadError};
pub use filled::{Fill, copy_filled};
#[cfg(feature = "parquet")]
pub use frame::Frame;
pub use frame::Source;
pub use selection::Selection;
pub use sheet::{Header, ReadSettings};
#[cfg(feature = "csv")]
pub use small::small_text;
pub use table::{
    CellRules, FileFacts, Row, Scanned, for_each_row, read_dataset, readable_twice, scan_tables,
};
#[cfg(feature = "csv")]
pub use weights::{Weights, WeightsError, read_weights};
#[cfg(feature = "parquet")]
pub use write::{ParquetWriter, ScoredRow, write_parquet, write_scores};
#[cfg(feature = "csv")]
pub use write::{TextWriter, io_error, write_text};
