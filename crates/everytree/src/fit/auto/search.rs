//! Candidates are learned one after the other, on every fold.

use super::super::explained;
use super::super::monitor::Monitor;
use super::super::options::{FitOptions, Precision};
use super::super::plan::usual_pairs;
use super::super::run::{How, learn, log_p};
use super::{CandidateReport, Trying, budget};
use crate::device::Device;
use crate::error::Kind;
use crate::{Error, Result};
use everytree_core::blocks::Blocks;
use everytree_core::data;
use everytree_core::learn::{
    BestModel, CandidateResult, Choosing, Datasets, Ended, Folds, LearnError, Next, Plan, Portfolio, Search,
    SearchObserver, Stacking, UnderWay, within,
};
use everytree_core::model::{Candidate, HowMany, Met, Settings};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A candidate that is so many standard errors below the best after some folds is given up.
const FAR_BEHIND: f64 = 3.0;
/// If it is that far below, in nats a row.
const LEAST_LAG: f64 = 0.01;

/// A search as it goes.
pub(in super::super) struct Auto<'a> {
    pub state: Choosing,
    pub folds: &'a Folds,
    pub place: Where<'a>,
    /// The fit that was under way when the search was put aside.
    pub taken_up: Option<Search>,
    /// Why the first candidate that could not be learned was not.
    pub refused: Option<LearnError>,
    /// How the rows of the first fold are met in batches of so many.
    met: RefCell<BTreeMap<usize, Met>>,
}

/// In which precision, where, and who hears what there is to say.
#[derive(Clone, Copy)]
pub(in super::super) struct Where<'a> {
    pub precision: Precision,
    pub device: &'a Device,
    pub note: &'a dyn Fn(String),
}

impl Where<'_> {
    pub fn with<'s>(&'s self, candidate: &'s Candidate) -> How<'s> {
        How { settings: &candidate.settings, precision: self.precision, device: self.device, note: self.note }
    }
}

/// What becomes of a candidate.
enum Came {
    To(Box<CandidateResult>),
    /// It cannot be learned.
    Nothing,
    /// Someone stopped it.
    Stopped,
}

/// What all rows weigh.
fn total(data: &data::Dataset) -> f64 {
    match data.weights().is_empty() {
        true => data.rows() as f64,
        false => data.weights().iter().sum(),
    }
}

impl<'a> Auto<'a> {
    /// A search over these ways to group columns, among others.
    pub fn new(
        options: &FitOptions,
        groupings: Vec<Vec<Vec<usize>>>,
        folds: &'a Folds,
        place: Where<'a>,
    ) -> Result<Self> {
        let (train, valid) = &folds.pairs[0];
        let states: std::result::Result<Vec<Vec<usize>>, _> =
            groupings.iter().map(|groups| Ok(Blocks::observed(groups, train)?.states())).collect();
        let states = states.map_err(|error| explained(LearnError::Blocks(error), &train.clone().into()))?;
        let pairs = usual_pairs(&states[0], false);
        let mut portfolio = Portfolio {
            groupings,
            budget: budget(options.effort, train.rows() + valid.rows(), train.columns()),
            seed: options.seed,
            folds: folds.count(),
            rows: train.rows(),
            states,
            pairs,
            stored: None,
        };
        if options.kernel
            && let Some(last) = portfolio.last()
        {
            let work = portfolio.work(&last.candidate, train, valid).epochs(last.candidate.settings.epochs);
            portfolio.stored = Some(work * folds.count() as f64);
        }
        let state = Choosing {
            portfolio,
            tried: Vec::new(),
            failed: Vec::new(),
            under_way: None,
            refitted: Vec::new(),
        };
        Ok(Self { state, folds, place, taken_up: None, refused: None, met: RefCell::default() })
    }

    /// From where it was put aside.
    pub fn resumed(state: Choosing, search: Search, folds: &'a Folds, place: Where<'a>) -> Self {
        Self { state, folds, place, taken_up: Some(search), refused: None, met: RefCell::default() }
    }

    /// What comes first.
    pub fn first_plan(&self) -> Plan {
        self.plan_of(&self.first().candidate)
    }

    pub fn first_settings(&self) -> Settings {
        self.first().candidate.settings
    }

    fn first(&self) -> Next {
        let under_way = self.state.under_way.as_ref().map(|under_way| under_way.next.clone());
        let anything = |candidate, _| Some((candidate, 0.0));
        under_way
            .or_else(|| self.state.portfolio.next(&[], &[], &anything))
            .expect("there is always a family to begin with")
    }

    /// The plan of one candidate.
    pub fn plan_of(&self, candidate: &Candidate) -> Plan {
        Plan {
            groupings: vec![self.state.portfolio.groupings[candidate.grouping].clone()],
            components: HowMany::Just(candidate.components),
            hidden: HowMany::Just(candidate.hidden),
            pilot_epochs: 1,
            start: candidate.start,
        }
    }

    /// The fit that was put aside, or one from the beginning.
    pub fn search_of(&mut self, candidate: &Candidate) -> Search {
        self.taken_up.take().unwrap_or_else(|| Search::new(self.plan_of(candidate)))
    }

    /// From now on a checkpoint has this, and the fit that begins.
    pub fn put_aside(&self, candidate: &Candidate, monitor: &mut Monitor<'_, '_>) {
        if let Some(keep) = &mut monitor.keep {
            keep.begin(self.state.clone(), candidate.settings.clone());
        }
    }

    fn next(&self) -> Option<Next> {
        let (train, valid) = &self.folds.pairs[0];
        let portfolio = &self.state.portfolio;
        let folds = self.folds.count() as f64;
        let fits = |candidate: Candidate, shares: [f64; 2]| {
            let batch_size = candidate.settings.batch_size;
            let mut known = self.met.borrow_mut();
            let met =
                *known.entry(batch_size).or_insert_with(|| Met::new(&train.table().unique(), batch_size));
            let work = portfolio.work_of(&candidate, met, valid.rows());
            within(candidate, work, train.rows(), shares.map(|share| share / folds))
        };
        portfolio.next(&self.state.tried, &self.state.failed, &fits)
    }

    /// The best of those that were learned on all folds.
    fn leader(&self) -> Option<&CandidateResult> {
        let whole = self.state.tried.iter().filter(|tried| tried.is_whole());
        whole.reduce(|best, next| if next.valid > best.valid { next } else { best })
    }

    /// Goes on until nothing is left to try, or someone stops it.
    pub fn run(&mut self, monitor: &mut Monitor<'_, '_>) -> Result<Ended> {
        if !self.state.refitted.is_empty() || (self.taken_up.is_some() && self.state.under_way.is_none()) {
            // All is tried: members are learning once more.
            return Ok(Ended::Done);
        }
        loop {
            let under_way = match self.state.under_way.take().or_else(|| self.next().map(UnderWay::new)) {
                Some(under_way) => under_way,
                None => return Ok(Ended::Done),
            };
            // The very first is begun whatever happens, so that there is something to keep.
            let is_first = self.state.tried.is_empty() && self.state.failed.is_empty();
            if !is_first && monitor.stop() {
                return Ok(Ended::Stopped);
            }
            let next = under_way.next.clone();
            match self.candidate(under_way, monitor)? {
                Came::To(tried) => self.state.tried.push(*tried),
                Came::Nothing => self.state.failed.push(next),
                Came::Stopped => return Ok(Ended::Stopped),
            }
        }
    }

    /// Tells what is being tried.
    fn say(&self, under_way: &UnderWay, monitor: &mut Monitor<'_, '_>) {
        let candidate = &under_way.next.candidate;
        let leader = self.leader().map(|best| CandidateReport::new(best, 0.0));
        let portfolio = &self.state.portfolio;
        monitor.observer.borrow_mut().trying(&Trying {
            family: candidate.start.family.name(candidate.components),
            components: candidate.components,
            hidden: (candidate.hidden > 1).then_some(candidate.hidden),
            blocks: candidate.grouping > 0,
            fold: (under_way.folds() + 1, self.folds.count()),
            leader: leader.as_ref(),
            spent: 1.0 - (portfolio.left(&self.state.tried) - under_way.work) / portfolio.budget,
        });
    }

    /// Learns a candidate on every fold that is left.
    fn candidate(&mut self, mut under_way: UnderWay, monitor: &mut Monitor<'_, '_>) -> Result<Came> {
        let folds = self.folds;
        let candidate = under_way.next.candidate.clone();
        let complete = folds.pairs.iter().all(|(train, valid)| train.is_complete() && valid.is_complete());
        for (train, valid) in &folds.pairs[under_way.folds()..] {
            self.say(&under_way, monitor);
            let mut search = self.search_of(&candidate);
            self.state.under_way = Some(under_way.clone());
            self.put_aside(&candidate, monitor);
            let ended = learn(&mut search, Datasets { train, valid }, self.place.with(&candidate), monitor);
            let is_stopped = matches!(ended, Ok(Ended::Stopped | Ended::Unvalidated));
            let Some(BestModel { model, history }) = search.best_so_far()? else {
                return match ended {
                    // Something else may do.
                    Err(
                        error @ (LearnError::Memory(_)
                        | LearnError::NotFinite { .. }
                        | LearnError::ValidationNotFinite { .. }),
                    ) => {
                        self.state.under_way = None;
                        self.refused.get_or_insert(error);
                        Ok(Came::Nothing)
                    }
                    Err(error) => Err(explained(error, &train.clone().into())),
                    Ok(_) => Ok(Came::Stopped),
                };
            };
            if is_stopped {
                // All there is, if nothing was tried before.
                under_way.first.get_or_insert((model, history));
                self.state.under_way = Some(under_way);
                return Ok(Came::Stopped);
            }
            let best = history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
            let best = best.cloned().ok_or_else(|| Error::from(Kind::NoModel))?;
            let done = history.len() - 1;
            under_way.best_epochs.push(best.epoch);
            under_way.epochs.push(done);
            under_way.valid.push(best.valid);
            under_way.work += self.state.portfolio.work(&candidate, train, valid).epochs(done);
            if complete {
                let found = log_p(&model, &valid.clone().into(), self.place.with(&candidate))?;
                under_way.log_p.extend(found);
            }
            under_way.first.get_or_insert((model, history));
            // Stored rows are worth much beside a model even where they are worth little alone.
            let alone = !candidate.start.family.stores_rows();
            if alone && self.is_far_behind(&under_way.log_p) && under_way.folds() < folds.count() {
                break;
            }
        }
        self.state.under_way = None;
        Ok(self.tried(under_way).map_or(Came::Nothing, |tried| Came::To(Box::new(tried))))
    }

    /// What was under way when someone stopped the search before anything was tried: a model all the same.
    pub fn take_what_there_is(&mut self) {
        if let Some(UnderWay { next, first: Some((model, history)), .. }) = self.state.under_way.take()
            && self.state.tried.is_empty()
        {
            let best = history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
            let (epoch, valid) = best.map_or((0, f64::NEG_INFINITY), |best| (best.epoch, best.valid));
            let (best_epochs, epochs) = (vec![epoch], vec![history.len() - 1]);
            let Next { candidate, series } = next;
            let (log_p, whole, work) = (Vec::new(), false, 0.0);
            self.state.tried.push(CandidateResult {
                candidate,
                series,
                valid,
                best_epochs,
                epochs,
                log_p,
                whole,
                model,
                history,
                work,
            });
        }
    }

    /// What the folds of a candidate say together.
    fn tried(&self, under_way: UnderWay) -> Option<CandidateResult> {
        let UnderWay { next, best_epochs, epochs, valid, log_p, first, work } = under_way;
        let (model, history) = first?;
        let whole = best_epochs.len() == self.folds.count();
        let weights: Vec<f64> = self.folds.pairs.iter().map(|(_, valid)| total(valid)).collect();
        let sum: f64 = valid.iter().zip(&weights).map(|(valid, weight)| valid * weight).sum();
        let mean = sum / weights[..valid.len()].iter().sum::<f64>();
        // Some folds are easier than others: of some, what counts is how far it is behind on these.
        let valid = match self.to_the_best(&log_p).filter(|_| !whole) {
            Some((best, gain, _)) => best + gain,
            None => mean,
        };
        let log_p = if whole { log_p } else { Vec::new() };
        let Next { candidate, series } = next;
        Some(CandidateResult {
            candidate,
            series,
            valid,
            best_epochs,
            epochs,
            log_p,
            whole,
            model,
            history,
            work,
        })
    }

    /// What the best says about all rows held out, how much better than it these first ones are said to be, and the error of that.
    fn to_the_best(&self, log_p: &[f64]) -> Option<(f64, f64, f64)> {
        let known = self.state.tried.iter().filter(|tried| !tried.log_p.is_empty());
        let best = known.reduce(|best, next| if next.valid > best.valid { next } else { best })?;
        if log_p.is_empty() {
            return None;
        }
        let weights = self.folds.weights.get(..log_p.len()).unwrap_or_default();
        let (gain, error) = Stacking::new(weights).gain(&best.log_p[..log_p.len()], log_p);
        Some((best.valid, gain, error))
    }

    /// Is this clearly below the best, on the rows of the first folds?
    fn is_far_behind(&self, log_p: &[f64]) -> bool {
        self.to_the_best(log_p).is_some_and(|(_, gain, error)| gain < -(FAR_BEHIND * error).max(LEAST_LAG))
    }
}
