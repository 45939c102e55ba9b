//! A choice under way, as it can be put aside.

use super::folds::Folds;
use super::plan::{CandidateResult, Next, Portfolio};
use crate::learn::Epoch;
use crate::model::Member;

/// Everything that a choice knows between two fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Choosing {
    /// What may be tried.
    pub portfolio: Portfolio,
    /// What was, in order.
    pub tried: Vec<CandidateResult>,
    /// What could not be learned.
    pub failed: Vec<Next>,
    /// The candidate that is being learned, on one fold after the other; none where that is over.
    pub under_way: Option<UnderWay>,
    /// Members that have learned once more, from all rows.
    pub refitted: Vec<Member>,
}

impl Choosing {
    /// Was it made with folds of so many rows?
    pub fn is_about(&self, folds: &Folds) -> bool {
        let rows = folds.held_out();
        let fits = |log_p: &[f64]| log_p.is_empty() || log_p.len() == rows;
        let under_way = self.under_way.iter().all(|under_way| under_way.log_p.len() <= rows);
        self.portfolio.folds == folds.count()
            && self.tried.iter().all(|tried| fits(&tried.log_p))
            && under_way
    }
}

/// A candidate that was learned on some of the folds.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderWay {
    /// Which.
    pub next: Next,
    /// The epoch that validated best, fold by fold.
    pub best_epochs: Vec<usize>,
    /// Epochs in all, fold by fold.
    pub epochs: Vec<usize>,
    /// The best validation of each fold.
    pub valid: Vec<f64>,
    /// Of the rows held out so far.
    pub log_p: Vec<f64>,
    /// As learned on the first fold, and how it went there.
    pub first: Option<(Member, Vec<Epoch>)>,
    /// Operations spent.
    pub work: f64,
}

impl UnderWay {
    /// Before the first fold.
    pub fn new(next: Next) -> Self {
        let (best_epochs, epochs, valid, log_p) = Default::default();
        Self { next, best_epochs, epochs, valid, log_p, first: None, work: 0.0 }
    }

    /// Folds that are done.
    pub fn folds(&self) -> usize {
        self.best_epochs.len()
    }
}
