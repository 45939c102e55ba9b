//! Tables into everytree: delimited text (plain or gzip), Parquet, Arrow IPC, and Arrow in memory. And out of it: rows of codes as Parquet, and
//! copies of files with cells filled in.

mod columnar;
mod error;
mod filled;
mod frame;
mod parquet_out;
mod quotes;
mod sheet;
mod table;
mod text;
mod weights;

pub use error::{Place, Problem, ReadError};
pub use filled::{Fill, copy_filled};
pub use frame::{Frame, Source};
pub use parquet_out::write_parquet;
pub use sheet::{Header, ReadSettings};
pub use table::{
    CellRules, FileFacts, Row, Scanned, for_each_row, read_table, read_table_with_holes, scan_tables,
};
pub use weights::{Weights, WeightsError, read_weights};
