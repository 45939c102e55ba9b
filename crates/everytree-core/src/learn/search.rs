//! One fit after the other: which columns belong together, and how many components pay.
//!
//! What comes next is a function of what came out before, so a search can be put aside between any two epochs like a
//! single fit.

use super::engine::Engine;
use super::filled::Filled;
use super::source::Datasets;
use super::state::{Data, Ended, Epoch, LearnError, Observer, Progress, State};
use crate::blocks::Blocks;
use crate::memory::{self, TooMuchMemory};
use crate::model::{
    Component, ComponentShape, Footprint, HowMany, LEAST_GAIN, Member, Mixture, ModelError, Settings, Start,
    footprint_of_rows,
};
use crate::util::{Hurry, Stop};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Ways to group columns; where there are several, a pilot fit of each decides.
    pub groupings: Vec<Vec<Vec<usize>>>,
    /// How many components.
    pub components: HowMany,
    /// How many states hidden variables have, in families that have some.
    #[serde(default = "one")]
    pub hidden: HowMany,
    /// Epochs of a pilot fit.
    #[serde(rename = "look")]
    pub pilot_epochs: usize,
    /// How models begin.
    pub start: Start,
}

/// Of plans that know nothing of it.
fn one() -> HowMany {
    HowMany::Just(1)
}

/// States of hidden variables that are tried first.
const FIRST_HIDDEN: usize = 2;

/// One fit.
///
/// ```
/// use everytree_core::learn::Trial;
///
/// let trial = Trial { grouping: 0, components: 4, hidden: 1, pilot: false };
/// assert_eq!(trial.components, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which grouping of the plan.
    pub grouping: usize,
    /// How many components.
    pub components: usize,
    /// How many states hidden variables have.
    #[serde(default)]
    pub hidden: usize,
    /// A pilot fit, to compare groupings only.
    #[serde(rename = "look")]
    pub pilot: bool,
}

/// What came out of it.
///
/// ```
/// use everytree_core::learn::{Trial, TrialResult};
///
/// let trial = Trial { grouping: 0, components: 4, hidden: 1, pilot: false };
/// let result = TrialResult { trial, valid: -5.25, best_epoch: 7, epochs: 13 };
/// assert!(result.best_epoch <= result.epochs);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// What was tried.
    pub trial: Trial,
    /// The best mean log-likelihood of validation rows.
    pub valid: f64,
    /// After how many epochs.
    pub best_epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
}

impl Plan {
    /// One fit of columns as they are.
    pub fn simple(start: Start, components: usize) -> Self {
        let components = HowMany::Just(components);
        Self { groupings: vec![Vec::new()], components, hidden: one(), pilot_epochs: 1, start }
    }

    /// What to try next, if anything.
    pub fn next(&self, results: &[TrialResult]) -> Option<Trial> {
        let pilots: Vec<&TrialResult> = results.iter().filter(|result| result.trial.pilot).collect();
        if self.groupings.len() > 1 && pilots.len() < self.groupings.len() {
            let hidden = self.hidden.first(FIRST_HIDDEN);
            return Some(Trial { grouping: pilots.len(), components: 1, hidden, pilot: true });
        }
        // The first of the best.
        let grouping = pilots
            .iter()
            .copied()
            .reduce(|best, next| if next.valid > best.valid { next } else { best })
            .map_or(0, |best| best.trial.grouping);
        let fits: Vec<&TrialResult> = results.iter().filter(|result| !result.trial.pilot).collect();
        let Some((last, before)) = fits.split_last() else {
            let (components, hidden) = (self.components.first(1), self.hidden.first(FIRST_HIDDEN));
            return Some(Trial { grouping, components, hidden, pilot: false });
        };
        let worse = before.iter().any(|before| last.valid < before.valid + LEAST_GAIN);
        if worse {
            return None;
        }
        let Trial { components, hidden, .. } = last.trial;
        match (self.hidden.after(hidden), self.components.after(components)) {
            (Some(hidden), _) => Some(Trial { grouping, components, hidden, pilot: false }),
            (None, Some(components)) => Some(Trial { grouping, components, hidden, pilot: false }),
            (None, None) => None,
        }
    }
}

/// A search on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// What is tried.
    pub plan: Plan,
    /// What is done.
    pub results: Vec<TrialResult>,
    /// The best of what is done.
    pub best: Option<BestModel>,
    /// What is under way.
    pub running: Option<Running>,
}

/// The model of a fit, and its epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct BestModel {
    /// As validated best.
    pub model: Member,
    /// All epochs; the first is the initialisation.
    pub history: Vec<Epoch>,
}

/// A fit under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// Which.
    pub trial: Trial,
    /// Its columns.
    pub blocks: Blocks,
    /// Of the learning.
    pub state: State<Mixture<Component>>,
}

/// Someone who is told how a search goes, and may stop it.
pub trait SearchObserver {
    /// After a batch.
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        let _ = (trial, progress);
        ControlFlow::Continue(())
    }

    /// After an epoch, the initialisation among them.
    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        let _ = search;
        ControlFlow::Continue(())
    }

    /// Is it time to end? Asked now and then while something takes long: an initialisation, a validation.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody.
impl SearchObserver for () {}

impl Search {
    /// Before the first fit.
    pub fn new(plan: Plan) -> Self {
        Self { plan, results: Vec::new(), best: None, running: None }
    }

    /// Goes on until there is nothing left to try, or someone stops it.
    pub fn run<B: Engine<Mixture<Component>>, J: Engine<Mixture<Component>>>(
        &mut self,
        data: Datasets<'_>,
        settings: &Settings,
        backend: &B,
        evaluator: &J,
        observer: &mut dyn SearchObserver,
    ) -> Result<Ended, LearnError> {
        let Datasets { train, valid } = data;
        let complete = train.is_complete() && valid.is_complete();
        let weighted = [train, valid].iter().any(|data| !data.weights().is_empty());
        if weighted && !complete {
            return Err(LearnError::WeightedMissing);
        }
        if self.plan.start.family.stores_rows() && !train.is_complete() {
            return Err(LearnError::StoredMissing);
        }
        let mut ended = Ended::Done;
        loop {
            let (mut running, cut) = match self.running.take() {
                Some(running) => (running, false),
                None => match self.plan.next(&self.results) {
                    Some(trial) => {
                        self.check_memory(trial, data, settings)?;
                        let stop = || observer.stop();
                        let hurry = Hurry::new(&stop);
                        (self.begin(trial, data, &|| hurry.asked())?, hurry.was_cut())
                    }
                    None => return Ok(ended),
                },
            };
            let trial = running.trial;
            let settings = Settings {
                epochs: match trial.pilot {
                    // One tree, or none, is what the counts say: there is nothing to learn.
                    _ if complete && trial.components == 1 && self.plan.start.is_counted() => 0,
                    true => self.plan.pilot_epochs.min(settings.epochs),
                    false => settings.epochs,
                },
                ..settings.clone()
            };
            let Running { blocks, state, .. } = &mut running;
            let mut inside = Inside { search: self.clone(), trial, blocks: blocks.clone(), cut, observer };
            let result = if complete {
                let (train, valid) = (blocks.unique(train), blocks.unique(valid));
                let data = Data { train: &train, valid: &valid };
                state.run(data, &settings, backend, evaluator, &mut inside)
            } else {
                let filled = Filled::new(blocks, data, settings.seed)?;
                state.run(filled, &settings, backend, evaluator, &mut inside)
            };
            match result {
                Ok(Ended::Stopped) if cut => {
                    self.running = Some(running).filter(|_| self.best.is_none());
                    return Ok(Ended::Stopped);
                }
                // What has not been validated does not count beside what has.
                Ok(Ended::Unvalidated) if self.best.is_some() => return Ok(Ended::Stopped),
                Ok(Ended::Unvalidated) => {
                    self.running = Some(running);
                    return Ok(Ended::Stopped);
                }
                Ok(Ended::Stopped) | Err(_) => {
                    self.running = Some(running);
                    return result;
                }
                Ok(how) => ended = how,
            }
            self.finish(running)?;
        }
    }

    /// Is there room for a fit?
    fn check_memory(
        &self,
        trial: Trial,
        data: Datasets<'_>,
        settings: &Settings,
    ) -> Result<(), TooMuchMemory> {
        let states = data.train.schema().states();
        let rows = data.train.rows() + data.valid.rows();
        let family = self.plan.start.family;
        let stored = family.stores_rows().then(|| data.train.rows());
        let shape = ComponentShape { rows: stored, ..self.plan.start.shape(trial.hidden) };
        let batch = settings.batch_size.min(data.train.rows());
        let need = Footprint::of(family, &shape, &states, trial.components, batch).learning;
        let what = match trial.components {
            1 => "learning this model".to_owned(),
            components => format!("learning {components} components"),
        };
        memory::check(what, need.saturating_add(footprint_of_rows(&states, rows)))
    }

    fn begin(&self, trial: Trial, data: Datasets<'_>, stop: Stop<'_>) -> Result<Running, LearnError> {
        let groups = &self.plan.groupings[trial.grouping];
        let blocks = Blocks::observed(groups, data.train)?;
        let states = blocks.states();
        let start = &self.plan.start;
        let model = match data.train.is_complete() {
            true => {
                let rows = blocks.unique(data.train);
                start.model_until(&states, &rows, trial.components, trial.hidden, stop)?
            }
            false => {
                let filled = Filled::new(&blocks, data, start.seed)?;
                start.model_until(&states, filled.now(), trial.components, trial.hidden, stop)?
            }
        };
        Ok(Running { trial, blocks, state: State::new(model) })
    }

    fn finish(&mut self, running: Running) -> Result<(), ModelError> {
        let Running { trial, blocks, state } = running;
        let Some(best) = state.best_epoch() else { return Ok(()) };
        let result = TrialResult { trial, valid: best.valid, best_epoch: best.epoch, epochs: state.epochs() };
        if self.results.iter().all(|before| before.valid < result.valid) {
            self.best = Some(BestModel {
                model: Member::new(blocks, Arc::unwrap_or_clone(state.best))?,
                history: state.history,
            });
        }
        self.results.push(result);
        Ok(())
    }

    /// The best model so far: of what is done, or of what is under way. Nothing before the first validation.
    pub fn best_so_far(&self) -> Result<Option<BestModel>, ModelError> {
        let under_way = match &self.running {
            Some(running) if !running.state.history.is_empty() => Some(BestModel {
                model: Member::new(running.blocks.clone(), (*running.state.best).clone())?,
                history: running.state.history.clone(),
            }),
            _ => None,
        };
        let valid = |found: &BestModel| {
            found.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max)
        };
        Ok(match (&self.best, under_way) {
            (Some(best), Some(other)) if valid(&other) > valid(best) => Some(other),
            (Some(best), _) => Some(best.clone()),
            (None, other) => other,
        })
    }
}

/// Shows the search to the observer, as it is between two epochs.
struct Inside<'a> {
    search: Search,
    trial: Trial,
    blocks: Blocks,
    /// The initialisation was cut short: it is a model, but nothing to show or to go on from.
    cut: bool,
    observer: &'a mut dyn SearchObserver,
}

impl Observer<Mixture<Component>> for Inside<'_> {
    fn batch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.observer.batch(&self.trial, progress)
    }

    fn epoch(&mut self, state: &State<Mixture<Component>>) -> ControlFlow<()> {
        if self.cut {
            return ControlFlow::Break(());
        }
        self.search.running =
            Some(Running { trial: self.trial, blocks: self.blocks.clone(), state: state.clone() });
        self.observer.epoch(&self.search)
    }

    fn stop(&self) -> bool {
        self.observer.stop()
    }
}
