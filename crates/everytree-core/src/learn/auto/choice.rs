//! What comes out of a search: the best candidate, or several together.

use super::plan::CandidateResult;
use crate::learn::Stacking;

/// An average must gain this much over the best alone, in nats a row, and more than the standard error of it.
pub const LEAST_ENSEMBLE_GAIN: f64 = 1e-3;
/// With fewer rows held out than this, weights are judged by rows that they were not fitted to.
const FEW_ROWS: usize = 1000;
const PARTS: usize = 10;
/// Members at most.
const MOST: usize = 8;

/// Candidates and how much each counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// By their numbers among those tried, the best alone first.
    pub members: Vec<usize>,
    /// They add up to 1.
    pub weights: Vec<f64>,
    /// The mean log-likelihood of the rows held out.
    pub valid: f64,
    /// What the average gains over the best alone, and the standard error of it; none where nothing was averaged.
    pub gain: Option<(f64, f64)>,
}

impl Choice {
    /// The best of what was tried on rows that weigh so much (none: all the same); nothing if nothing was. `alone`: without an
    /// average.
    pub fn of(tried: &[CandidateResult], weights: &[f64], alone: bool) -> Option<Self> {
        let whole: Vec<usize> = (0..tried.len()).filter(|&number| tried[number].is_whole()).collect();
        let valid = |number: usize| tried[number].valid;
        let best =
            whole.iter().copied().reduce(|best, next| if valid(next) > valid(best) { next } else { best })?;
        let single = Self { members: vec![best], weights: vec![1.0], valid: valid(best), gain: None };
        let known: Vec<usize> = whole.into_iter().filter(|&number| !tried[number].log_p.is_empty()).collect();
        if alone || known.len() < 2 || tried[best].log_p.is_empty() {
            return Some(single);
        }
        let stacking = |members: &[usize]| {
            let mut stacking = Stacking::new(weights);
            members.iter().for_each(|&number| stacking.push(tried[number].log_p.clone()));
            stacking
        };
        // All of them first; then again those that count most.
        let all = stacking(&known).fit();
        let mut members: Vec<usize> = (0..known.len()).filter(|&place| all.weights[place] > 0.0).collect();
        members.sort_by(|&a, &b| all.weights[b].total_cmp(&all.weights[a]));
        members.truncate(MOST);
        let mut members: Vec<usize> = members.into_iter().map(|place| known[place]).collect();
        members.sort_by(|&a, &b| valid(b).total_cmp(&valid(a)));
        let some = stacking(&members);
        let fitted = some.fit();
        let judged = match tried[best].log_p.len() < FEW_ROWS {
            true => some.out_of_fold(PARTS),
            false => some.mixed(&fitted.weights),
        };
        let (gain, error) = some.gain(&tried[best].log_p, &judged);
        if members.len() < 2 || gain <= error.max(LEAST_ENSEMBLE_GAIN) {
            return Some(single);
        }
        let counting = || (0..members.len()).filter(|&place| fitted.weights[place] > 0.0);
        Some(Self {
            members: counting().map(|place| members[place]).collect(),
            weights: counting().map(|place| fitted.weights[place]).collect(),
            valid: fitted.mean,
            gain: Some((gain, error)),
        })
    }
}
