//! What is tried next, as a function of what came out before.

use crate::data::Dataset;
use crate::learn::Epoch;
use crate::model::{
    Candidate, Family, Grows, LEAST_GAIN, MAX_COMPONENTS, MAX_HIDDEN, Member, Met, Optimiser, Pairs, Series,
    Settings, Start, Work,
};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// One candidate may take this share of what is left of the budget; and this, if it could not be learned at all otherwise, or if
/// it grows from what leads.
const SHARE: f64 = 0.2;
const LARGE_SHARE: f64 = 0.5;
/// Epochs, and steps of gradients, without which a candidate is not worth beginning.
const LEAST_EPOCHS: usize = 6;
const LEAST_STEPS: usize = 300;
/// Series of a lower order than this are begun before any goes on.
const FIRST: u32 = 4;
/// The series that leads goes on before others whose next candidate is cheaper, unless it is so many times cheaper.
const LEAD: f64 = 4.0;
/// With one fold rows are many and candidates dear, so latent variables have this many times as many states from one to the next; if
/// that is too much, and otherwise, twice as many.
const LEAP: usize = 4;
/// A series goes on only if it would catch up with the best if its gains went on to shrink as they do; by this factor at most, which
/// is also what is taken for granted where there is one gain only.
const SHRINKING: f64 = 0.8;
/// Gains of mixtures shrink less and less, so what is cheap goes on if gains that shrink by this factor would do: diamonds' mixtures
/// of trees gain 0.31, 0.14, and more than 0.2 yet. Cheap is what takes at most this share of what is left.
const SLOWLY: f64 = 0.7;
const CHEAP: f64 = 0.05;

/// A search over candidates of all families.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portfolio {
    /// Ways to group columns, the first of them without any.
    pub groupings: Vec<Vec<Vec<usize>>>,
    /// Operations that may be spent, with those of the last candidate.
    pub budget: f64,
    /// Of everything random.
    pub seed: u64,
    /// How many folds every candidate is learned on.
    pub folds: usize,
    /// Rows to learn from, in the first of them.
    pub rows: usize,
    /// States of every variable, grouping by grouping.
    pub states: Vec<Vec<usize>>,
    /// How pair tables are parameterised, in families with a choice.
    pub pairs: Pairs,
    /// Operations for a family that stores rows, which is tried last, after all others; none: it is not tried at all.
    #[serde(default)]
    pub stored: Option<f64>,
}

/// A candidate, and what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateResult {
    /// What was tried.
    pub candidate: Candidate,
    /// Which series of its family it is of.
    pub series: usize,
    /// The mean log-likelihood of the rows held out; where it was given up after some folds, as far as these tell.
    pub valid: f64,
    /// After how many epochs each fold validated best.
    pub best_epochs: Vec<usize>,
    /// Epochs in all, fold by fold.
    pub epochs: Vec<usize>,
    /// Of every row held out; none where it was given up, or where rows have missing cells.
    pub log_p: Vec<f64>,
    /// Learned on all folds?
    pub whole: bool,
    /// As learned on the first fold, and how it went there.
    pub model: Member,
    /// Epoch by epoch, on the first fold.
    pub history: Vec<Epoch>,
    /// Operations spent.
    pub work: f64,
}

impl CandidateResult {
    /// Was it learned on all folds?
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Of the epochs that it might have taken, so many it has.
    fn share_of_epochs(&self) -> f64 {
        let most = (self.candidate.settings.epochs * self.epochs.len()) as f64;
        let taken = self.epochs.iter().sum::<usize>() as f64;
        if taken > 0.0 && taken < most { taken / most } else { 1.0 }
    }
}

/// What comes next: a candidate, and the number of its series in the list of its family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// What it is.
    pub candidate: Candidate,
    /// Which series of its family.
    pub series: usize,
}

impl Portfolio {
    /// Operations that are left, without those that are reserved for what is tried last.
    pub fn left(&self, tried: &[CandidateResult]) -> f64 {
        let reserved = self.stored.filter(|_| !tried.iter().any(|tried| stores(&tried.candidate)));
        self.budget - reserved.unwrap_or(0.0) - tried.iter().map(|tried| tried.work).sum::<f64>()
    }

    /// How much work a candidate is, on rows like these.
    pub fn work(&self, candidate: &Candidate, train: &Dataset, valid: &Dataset) -> Work {
        let met = Met::new(&train.table().unique(), candidate.settings.batch_size);
        self.work_of(candidate, met, valid.rows())
    }

    /// The same, where it is known how rows are met.
    pub fn work_of(&self, candidate: &Candidate, met: Met, valid_rows: usize) -> Work {
        Work::of(candidate, &self.states[candidate.grouping], met, valid_rows)
    }

    /// What to try next, if anything; a series of which something has failed is over. `fits` makes a candidate fit into an amount of
    /// work, or says that it cannot.
    pub fn next(
        &self,
        tried: &[CandidateResult],
        failed: &[Next],
        fits: &dyn Fn(Candidate, [f64; 2]) -> Option<(Candidate, f64)>,
    ) -> Option<Next> {
        if tried.iter().any(|tried| stores(&tried.candidate)) {
            return None;
        }
        let left = self.left(tried);
        let best = tried.iter().map(|tried| tried.valid).fold(f64::NEG_INFINITY, f64::max);
        let mut open: Vec<Open> = Vec::new();
        for &family in Family::ALL.iter().filter(|family| !family.stores_rows()) {
            for (number, series) in family.spec().series.iter().enumerate() {
                let own: Vec<&CandidateResult> = tried
                    .iter()
                    .filter(|tried| tried.candidate.start.family == family && tried.series == number)
                    .collect();
                let is_over = |next: &Next| next.candidate.start.family == family && next.series == number;
                if failed.iter().any(is_over) {
                    continue;
                }
                let leads = own.iter().any(|tried| tried.valid == best);
                let usual = if leads { LARGE_SHARE } else { SHARE };
                let leaps = if self.folds == 1 { &[LEAP, 2][..] } else { &[2] };
                let after = |&leap: &usize| {
                    let candidate = self.after((family, series), &own, tried, best, leap)?;
                    let (candidate, work) = fits(candidate, [usual * left, LARGE_SHARE * left])?;
                    // Most are done long before the epochs that they may take.
                    let work = work * own.last().map_or(1.0, |last| last.share_of_epochs());
                    let goes_on = work <= CHEAP * left || catches_up(&own, best, 0.0);
                    (goes_on || series.grows == Grows::Blocks).then_some((candidate, work))
                };
                let Some((candidate, work)) = leaps.iter().find_map(after) else { continue };
                open.push(Open {
                    is_first: own.is_empty() && series.order < FIRST,
                    work: if leads { work / LEAD } else { work },
                    order: series.order,
                    next: Next { candidate, series: number },
                });
            }
        }
        let found = open.into_iter().min_by(Open::compare).map(|open| open.next);
        found.or_else(|| self.stored.and_then(|_| self.last()).filter(|last| !failed.contains(last)))
    }

    /// What stores rows: there is one way to do it.
    pub fn last(&self) -> Option<Next> {
        let &family = Family::ALL.iter().find(|family| family.stores_rows())?;
        let settings = Settings { seed: self.seed, ..family.settings(self.states[0].len()) };
        Some(Next { candidate: self.candidate(family, settings, (1, 1, 0, 1.0)), series: 0 })
    }

    /// The candidate after those of a series, if it is to go on.
    fn after(
        &self,
        (family, series): (Family, &Series),
        own: &[&CandidateResult],
        tried: &[CandidateResult],
        best: f64,
        leap: usize,
    ) -> Option<Candidate> {
        // What lies in between was leapt over: it is tried if there was nothing to gain beyond.
        let between = if series.grows.is_hidden() { leapt_over(own) } else { None };
        if let Some((last, before)) = own.split_last().filter(|_| between.is_none()) {
            let reached = before.iter().map(|tried| tried.valid).fold(f64::NEG_INFINITY, f64::max);
            let gain = last.valid - reached;
            // Ways to group columns are tried all: the next is not larger than the last.
            let goes_on = series.grows == Grows::Blocks || gain >= LEAST_GAIN;
            if !goes_on || !(catches_up(own, best, SLOWLY) || series.grows == Grows::Blocks) {
                return None;
            }
        }
        let of_family = || tried.iter().filter(|tried| tried.candidate.start.family == family);
        let last = own.last().map(|tried| &tried.candidate);
        let more_hidden = |last: &Candidate| between.unwrap_or(leap * last.hidden);
        let (mut components, mut hidden, mut grouping, mut prior) = (1, 1, 0, 1.0);
        match series.grows {
            Grows::Prior(values) => prior = *values.get(own.len())?,
            Grows::Components(first) | Grows::ComponentsWithPrior(first, _) => {
                let base = best_of(of_family().filter(|tried| tried.candidate.components == 1));
                (prior, grouping) = base.map_or((1.0, 0), |base| (prior_of(base), base.grouping));
                components = last.map_or(first, |last| 2 * last.components);
                if let Grows::ComponentsWithPrior(_, own) = series.grows {
                    // Where rows are many a prior matters little.
                    if own == prior || self.folds == 1 {
                        return None;
                    }
                    prior = own;
                }
            }
            Grows::Hidden(first) => hidden = last.map_or(first, more_hidden),
            Grows::HiddenFrom(other) => {
                let from = best_of(of_family().filter(|tried| tried.series == other))?;
                hidden = last.map_or(from.hidden, more_hidden);
            }
            Grows::HiddenOfBlocks(first) => {
                grouping = self.best_grouping(tried)?;
                hidden = last.map_or(first, more_hidden);
            }
            Grows::Blocks => grouping = own.len() + 1,
        }
        let larger = |last: &Candidate| own.iter().any(|tried| tried.candidate.hidden > last.hidden);
        if between.is_none() && last.is_some_and(larger) {
            return None;
        }
        if components > MAX_COMPONENTS || hidden > MAX_HIDDEN || grouping >= self.groupings.len() {
            return None;
        }
        let states = &self.states[grouping];
        let usual = Settings { seed: self.seed, ..family.settings(states.len()) };
        let settings = (series.settings)(usual).lasting(self.rows);
        Some(self.candidate(family, settings, (components, hidden, grouping, prior)))
    }

    fn candidate(
        &self,
        family: Family,
        mut settings: Settings,
        (components, hidden, grouping, prior): (usize, usize, usize, f64),
    ) -> Candidate {
        let counted = family.spec().counted;
        if counted {
            settings.regularisation.laplace = prior;
        }
        let start = Start { family, pairs: self.pairs, pseudocount: prior, random: false, seed: self.seed };
        Candidate { start, settings, grouping, components, hidden }
    }

    /// Columns that are better taken together, if some are.
    fn best_grouping(&self, tried: &[CandidateResult]) -> Option<usize> {
        let of = |grouped: bool| {
            let some = tried.iter().filter(move |tried| (tried.candidate.grouping > 0) == grouped);
            let plain = some.filter(|tried| tried.candidate.components == 1);
            plain.filter(|tried| self.has_blocks(tried.candidate.start.family))
        };
        let valid = |tried: &CandidateResult| tried.valid;
        let single = of(false).map(valid).fold(f64::NEG_INFINITY, f64::max);
        let grouped = of(true).reduce(|best, next| if next.valid > best.valid { next } else { best })?;
        (grouped.valid > single + LEAST_GAIN).then_some(grouped.candidate.grouping)
    }

    fn has_blocks(&self, family: Family) -> bool {
        family.spec().series.iter().any(|series| series.grows == Grows::Blocks)
    }
}

/// A series that can go on.
struct Open {
    /// Is it to be begun before others go on?
    is_first: bool,
    /// Operations of its next candidate; fewer where it leads.
    work: f64,
    order: u32,
    next: Next,
}

impl Open {
    /// The simplest of every family come first. Then what is cheapest: the work of a series doubles from one candidate to the next,
    /// so all that are worth going on with get about the same, and little is lost on any that is not.
    fn compare(&self, other: &Self) -> Ordering {
        let by_work = if self.is_first { Ordering::Equal } else { self.work.total_cmp(&other.work) };
        other.is_first.cmp(&self.is_first).then(by_work).then(self.order.cmp(&other.order))
    }
}

/// Could a series come as far as the best, if its gains shrink by no smaller a factor?
fn catches_up(own: &[&CandidateResult], best: f64, factor: f64) -> bool {
    own.len() < 2 || own.last().is_none_or(|last| last.valid + still_to_gain(own, factor) >= best)
}

/// What a series would gain yet: its gains are taken for a geometric series.
fn still_to_gain(own: &[&CandidateResult], factor: f64) -> f64 {
    let gains: Vec<f64> = own.windows(2).map(|two| two[1].valid - two[0].valid).collect();
    match gains[..] {
        [.., before, last] if before > 0.0 => {
            let ratio = (last / before).clamp(factor, SHRINKING);
            last * ratio / (1.0 - ratio)
        }
        [last] => last * SHRINKING / (1.0 - SHRINKING),
        _ => 0.0,
    }
}

/// How many latent states were leapt over between the best of a series and the last, which was no better; nothing once they
/// have been tried.
fn leapt_over(own: &[&CandidateResult]) -> Option<usize> {
    let (last, before) = own.split_last()?;
    let best = before.iter().reduce(|best, next| if next.valid > best.valid { next } else { best })?;
    let between = last.candidate.hidden / 2;
    (last.valid < best.valid + LEAST_GAIN && between > best.candidate.hidden).then_some(between)
}

/// Are training rows in it?
fn stores(candidate: &Candidate) -> bool {
    candidate.start.family.stores_rows()
}

/// The best of some.
fn best_of<'a>(tried: impl Iterator<Item = &'a CandidateResult>) -> Option<&'a Candidate> {
    tried.reduce(|best, next| if next.valid > best.valid { next } else { best }).map(|tried| &tried.candidate)
}

/// Rows that say that columns are independent.
fn prior_of(candidate: &Candidate) -> f64 {
    candidate.start.pseudocount
}

/// A candidate within an amount of work, and how much it is: with fewer epochs, if need be; with as few as make sense within a larger
/// amount; nothing if that does not do. It learns from so many rows.
pub fn within(
    candidate: Candidate,
    work: Work,
    rows: usize,
    [usual, most]: [f64; 2],
) -> Option<(Candidate, f64)> {
    if candidate.components == 1 && candidate.start.is_counted() {
        let work = work.epochs(0);
        return (work <= most).then_some((candidate, work));
    }
    let steps = rows.div_ceil(candidate.settings.batch_size.max(1)).max(1);
    let least = match candidate.settings.optimiser {
        Optimiser::Adam => LEAST_EPOCHS.max(LEAST_STEPS.div_ceil(steps)),
        _ => LEAST_EPOCHS,
    };
    let least = least.min(candidate.settings.epochs);
    if work.epochs(least) > most {
        return None;
    }
    let epochs = ((usual - work.start) / work.epoch).floor().max(0.0) as usize;
    let epochs = candidate.settings.epochs.min(epochs.max(least));
    let settings = Settings { epochs, ..candidate.settings };
    Some((Candidate { settings, ..candidate }, work.epochs(epochs)))
}
