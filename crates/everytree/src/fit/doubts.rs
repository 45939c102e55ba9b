//! What should make a reader of the figures careful, in one line each.

use super::FitReport;
use crate::words::{count, plural};
use everytree_core::learn::{CandidateResult, Stacking};

/// Fewer rows to validate with than this say little.
const FEW_ROWS: usize = 100;
/// Training rows that are better by this share of their log-likelihood are learned by heart.
const FAR_APART: f64 = 0.15;

/// Of any fit.
pub(super) fn of(report: &FitReport, stores_rows: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    let valid = if report.folds > 1 { report.train.rows } else { report.valid.rows };
    if valid < FEW_ROWS {
        let rows = plural(valid, "row");
        doubts.push(format!("{rows} to validate with: that tells little about which model is better"));
    }
    let gap = report.train_ll - report.valid_ll;
    // Of a model that has learned from all rows, too: what it said of those held out is from before.
    // Rows that are stored are better than others, by what such a model is.
    let by_heart = !stores_rows && gap > FAR_APART * report.valid_ll.abs();
    if by_heart && report.evaluated.is_none() {
        doubts.push(format!(
            "rows to learn from are {gap:.2} nats more probable than others: much was learned by heart; fewer states \
             (`bins`, `other`) or more rows may help"
        ));
    }
    doubts
}

/// Of one family, with its epochs.
pub(super) fn of_epochs(report: &FitReport) -> Vec<String> {
    let mut doubts = Vec::new();
    let learned = report.trials.last().is_none_or(|trial| trial.epochs > 0) && report.epochs > 0;
    if learned && report.best_epoch == 0 {
        doubts.push(format!(
            "the best epoch was 0 of {}: nothing that was learned was better than counts; another family may be \
             (`family = auto`), or a smaller `learning_rate`",
            count(report.epochs)
        ));
    }
    let planned = report.epochs >= report.settings.epochs;
    if learned && planned && report.best_epoch == report.epochs && report.epochs > 1 {
        doubts.push(format!(
            "the last epoch, {}, was the best: more `epochs` may be better",
            count(report.epochs)
        ));
    }
    doubts
}

/// Of a choice: a simpler model that is as good, as far as the rows held out can tell.
pub(super) fn of_choice(tried: &[CandidateResult], weights: &[f64], chosen: &[f64]) -> Option<String> {
    // Those of one component and nothing latent, the fewest numbers first.
    let mut simple: Vec<&CandidateResult> = tried
        .iter()
        .filter(|tried| tried.candidate.components == 1 && tried.candidate.start.is_counted())
        .filter(|tried| tried.log_p.len() == chosen.len() && !chosen.is_empty())
        .collect();
    simple.sort_by_key(|tried| tried.model.degrees_of_freedom());
    simple.into_iter().find_map(|tried| {
        let (gain, error) = Stacking::new(weights).gain(&tried.log_p, chosen);
        (gain <= error).then(|| {
            format!(
                "{} ({}) is as good, as far as the rows held out can tell: {gain:.4} ± {error:.4} nats a row behind",
                tried.model.title(),
                plural(tried.model.degrees_of_freedom(), "parameter")
            )
        })
    })
}
