//! One model that may be tried: what it is, and how it learns.

use super::{Settings, Start};
use serde::{Deserialize, Serialize};

/// A model before it is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Of which family, and how it begins.
    pub start: Start,
    /// How it learns.
    pub settings: Settings,
    /// Which way to group the columns, of those of the search.
    pub grouping: usize,
    /// How many components.
    pub components: usize,
    /// How many states latent variables have, in families that have some.
    pub hidden: usize,
}
