//! What a kernel over stored rows would add to a choice, for whoever has not asked for one: such a model contains the training
//! rows, so it is never taken by itself.

use everytree_core::learn::{CandidateResult, Choice, Folds, Stacking};
use everytree_core::model::Kernel;

/// Rows held out that are asked about at most, and at least, if there are as many.
const ROWS: usize = 2000;
const LEAST_ROWS: usize = 100;
/// This share of the budget may be spent on it.
const SHARE: f64 = 0.05;
/// The gain is that on rows to which weights were not fitted, in so many parts.
const PARTS: usize = 10;
/// What a pair of rows takes for each state and bandwidth, in operations.
const COMPARED: f64 = 8.0;
/// Rows that are asked about at once: in between it can be time to end.
const PORTION: usize = 128;

/// The gain over the choice in nats a row, and its standard error; nothing where there was no time for it.
pub(super) fn gain(
    folds: &Folds,
    choice: &Choice,
    tried: &[CandidateResult],
    budget: f64,
    stop: &dyn Fn() -> bool,
) -> Option<(f64, f64)> {
    let held_out = folds.held_out();
    let chosen = mixed(choice, tried, folds)?;
    let (train, _) = &folds.pairs[0];
    let states: usize = train.schema().states().iter().sum();
    let a_row = COMPARED * (states * train.table().unique().table.rows()) as f64;
    let affordable = (SHARE * budget / a_row) as usize;
    let count = ROWS.min(held_out).min(affordable);
    if count < LEAST_ROWS.min(held_out) {
        return None;
    }
    // Evenly over all that are held out, fold after fold.
    let taken: Vec<usize> = (0..count).map(|number| number * held_out / count).collect();
    let weights = |row: &usize| folds.weights.get(*row).copied();
    let mut stacking = Stacking::new(&taken.iter().filter_map(weights).collect::<Vec<f64>>());
    stacking.push(taken.iter().map(|&row| chosen[row]).collect());
    // Each bandwidth is a model of its own here.
    let mut by_bandwidth: Vec<Vec<f64>> = Vec::new();
    let mut first = 0;
    for (train, valid) in &folds.pairs {
        let own: Vec<usize> =
            taken.iter().filter_map(|row| row.checked_sub(first).filter(|row| *row < valid.rows())).collect();
        first += valid.rows();
        let rows = train.table().unique_weighted(train.weights());
        let scale = rows.row_scale();
        let weights: Vec<f64> = rows.weights.iter().map(|weight| weight * scale).collect();
        let kernel = Kernel::over(&train.schema().states(), rows.table, &weights, 1.0).ok()?;
        for portion in own.chunks(PORTION) {
            if stop() {
                return None;
            }
            let logs = kernel.log_p_by_bandwidth(valid.select(portion).table().codes()).ok()?;
            by_bandwidth.extend(logs);
        }
    }
    for bandwidth in 0..by_bandwidth.first()?.len() {
        stacking.push(by_bandwidth.iter().map(|logs| logs[bandwidth]).collect());
    }
    Some(stacking.gain(stacking.log_p(0), &stacking.out_of_fold(PARTS)))
}

/// What the choice says about every row held out, where that is known.
fn mixed(choice: &Choice, tried: &[CandidateResult], folds: &Folds) -> Option<Vec<f64>> {
    let mut stacking = Stacking::new(&folds.weights);
    for &number in &choice.members {
        if tried[number].log_p.len() != folds.held_out() {
            return None;
        }
        stacking.push(tried[number].log_p.clone());
    }
    Some(stacking.mixed(&choice.weights))
}
