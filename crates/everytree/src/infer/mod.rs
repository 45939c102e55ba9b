//! Asking a model: exact answers on one tree, from which everything else is made.

mod evidence;
mod messages;

pub use evidence::{Evidence, EvidenceError};
pub use messages::Messages;
