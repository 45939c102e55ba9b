//! Small things that everything else stands on. Nothing here knows of data or trees.

mod information;
mod logs;
mod normal;
mod offsets;
mod pool;
mod stream;
pub(crate) mod triangle;

pub(crate) use information::mutual_information;
pub(crate) use logs::{choose, log_sum, softmax};
pub(crate) use normal::standard_normals;
pub(crate) use offsets::offsets;
pub(crate) use pool::Pool;
pub use stream::seed_of;
pub(crate) use stream::{mix, shuffle, stream};
