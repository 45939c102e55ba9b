//! Which method answers, and how much an answer may cost.

use super::evidence::Evidence;
use super::exact;
use crate::model::Density;
use serde::Serialize;

/// How posteriors are found.
///
/// ```
/// use everytree_core::infer::Method;
///
/// assert_eq!(Method::BlockGibbs.as_str(), "block-gibbs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Every hidden row is looked at.
    Exact,
    /// Trees from the prior, a row from each (the paper).
    Importance,
    /// Trees from the prior, posteriors from each (the paper).
    Collapsed,
    /// Trees that lean towards the evidence, posteriors from each.
    Tilted,
    /// One variable at a time given all others, in several chains (the paper's yardstick).
    Gibbs,
    /// A tree given a row, a row given the tree, and so on, in several chains.
    BlockGibbs,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 6] =
        [Self::Exact, Self::Importance, Self::Collapsed, Self::Tilted, Self::Gibbs, Self::BlockGibbs];

    /// As text, such as `block-gibbs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Importance => "importance",
            Self::Collapsed => "collapsed",
            Self::Tilted => "tilted",
            Self::Gibbs => "gibbs",
            Self::BlockGibbs => "block-gibbs",
        }
    }

    /// Enumeration where it takes no more than so many operations, or a few rows; else random trees that lean towards the evidence.
    pub fn within<D: Density + ?Sized>(_: &D, evidence: &Evidence, operations: f64) -> Method {
        Self::affordable(evidence, operations)
    }

    /// The same, of any model.
    pub(crate) fn affordable(evidence: &Evidence, operations: f64) -> Method {
        const MOST_ROWS: u64 = 1 << 20;
        // Before the first random tree is drawn, a few eliminations have been made to prepare for it, and more for every round.
        const FEW_ROWS: u64 = 32;
        let cost = (evidence.variables() as f64).powi(3) + 100.0;
        match exact::rows(evidence) {
            Some(rows) if rows <= FEW_ROWS && operations > 0.0 => Method::Exact,
            Some(rows) if rows <= MOST_ROWS && rows as f64 * cost <= operations => Method::Exact,
            _ => Method::Tilted,
        }
    }
}

/// Operations of about a second.
pub(crate) const A_SECOND: f64 = 1e11;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort<'a> {
    /// Most trees (steps, of chains).
    pub trees: usize,
    /// Standard error that is good enough; none: all trees are drawn.
    pub tolerance: Option<f64>,
    /// Of the random trees.
    pub seed: u64,
    /// The variables whose errors matter; none: all.
    pub targets: &'a [usize],
    /// Everything hidden is enumerated where that takes no more operations than this, or a few rows; 0: never.
    pub operations: f64,
}

impl Default for Effort<'_> {
    fn default() -> Self {
        Self { trees: 200_000, tolerance: Some(0.005), seed: 0, targets: &[], operations: A_SECOND }
    }
}
