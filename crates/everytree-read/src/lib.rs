//! Files into everytree: delimited text (plain or gzip), Parquet and Arrow IPC.

mod columnar;
mod error;
mod quotes;
mod sheet;
mod table;
mod text;
mod weights;

pub use error::{Place, Problem, ReadError};
pub use sheet::{Header, ReadSettings};
pub use table::{CellRules, FileFacts, Scanned, for_each_row, read_table, scan_files};
pub use weights::{Weights, WeightsError, read_weights};
