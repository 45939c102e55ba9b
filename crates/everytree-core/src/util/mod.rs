//! Small things that everything else stands on. Nothing here knows of data or trees.

mod hurry;
mod information;
mod logs;
mod normal;
mod numbers;
mod offsets;
mod pool;
mod stream;
pub(crate) mod triangle;

/// Asks whether work is to end soon. Long work asks it now and then, on the thread that began it.
pub(crate) type Stop<'a> = &'a dyn Fn() -> bool;

pub use hurry::Hurry;
pub(crate) use hurry::MOMENT;
pub(crate) use information::{mutual_information, mutual_information_with};
pub(crate) use logs::{choose, log_sum, softmax};
pub(crate) use normal::standard_normals;
pub(crate) use numbers::{clear, exp_below, first_not_finite, softmax_lines};
pub(crate) use offsets::offsets;
pub(crate) use pool::Pool;
pub use stream::seed_of;
pub(crate) use stream::{mix, shuffle, stream};
