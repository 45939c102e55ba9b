//! One fit after the other: which columns belong together, and how many components pay.
//!
//! What comes next is a function of what came out before, so a search can be put aside between any two epochs like a
//! single fit.

use super::engine::Engine;
use super::filled::Filled;
use super::settings::Settings;
use super::start::Start;
use super::state::{Data, Ended, Epoch, LearnError, Progress, State, Watch};
use crate::blocks::Blocks;
use crate::data::{Missing, Table, Unique};
use crate::model::{Component, Mixture, Model, ModelError};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Ways to group columns; where there are several, a short fit of each decides.
    pub groupings: Vec<Vec<Vec<usize>>>,
    /// How many components.
    pub components: HowMany,
    /// How many states hidden variables have, in families that have some.
    #[serde(default = "one")]
    pub hidden: HowMany,
    /// Epochs of a short fit.
    pub look: usize,
    /// How models begin.
    pub start: Start,
}

/// How many components a mixture has, or states a hidden variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HowMany {
    /// So many.
    Just(usize),
    /// Twice as many as before as long as validation gets better by [`LEAST_GAIN`], up to so many.
    UpTo(usize),
}

/// Of plans that know nothing of it.
fn one() -> HowMany {
    HowMany::Just(1)
}

/// States of hidden variables that are tried first.
const FIRST_HIDDEN: usize = 2;

impl HowMany {
    /// The most there can be.
    pub fn most(self) -> usize {
        match self {
            Self::Just(count) | Self::UpTo(count) => count,
        }
    }

    /// What is tried first.
    fn first(self, least: usize) -> usize {
        match self {
            Self::Just(count) => count,
            Self::UpTo(most) => least.min(most),
        }
    }

    /// What is tried after so many, if anything.
    fn after(self, last: usize) -> Option<usize> {
        match self {
            Self::UpTo(most) if last < most => Some((2 * last).min(most)),
            _ => None,
        }
    }
}

/// Most components of a mixture.
pub const MAX_COMPONENTS: usize = 1024;

/// What twice as many components must gain before there are more, in nats a row.
pub const LEAST_GAIN: f64 = 1e-3;

/// One fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which grouping of the plan.
    pub grouping: usize,
    /// How many components.
    pub components: usize,
    /// How many states hidden variables have.
    #[serde(default)]
    pub hidden: usize,
    /// A short fit, to compare groupings only.
    pub look: bool,
}

/// What came out of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
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
        Self { groupings: vec![Vec::new()], components, hidden: one(), look: 1, start }
    }

    /// What to try next, if anything.
    pub fn next(&self, tried: &[Tried]) -> Option<Trial> {
        let looks: Vec<&Tried> = tried.iter().filter(|tried| tried.trial.look).collect();
        if self.groupings.len() > 1 && looks.len() < self.groupings.len() {
            let hidden = self.hidden.first(FIRST_HIDDEN);
            return Some(Trial { grouping: looks.len(), components: 1, hidden, look: true });
        }
        // The first of the best.
        let grouping = looks
            .iter()
            .copied()
            .reduce(|best, next| if next.valid > best.valid { next } else { best })
            .map_or(0, |best| best.trial.grouping);
        let fits: Vec<&Tried> = tried.iter().filter(|tried| !tried.trial.look).collect();
        let Some((last, before)) = fits.split_last() else {
            let (components, hidden) = (self.components.first(1), self.hidden.first(FIRST_HIDDEN));
            return Some(Trial { grouping, components, hidden, look: false });
        };
        let worse = before.iter().any(|before| last.valid < before.valid + LEAST_GAIN);
        if worse {
            return None;
        }
        let Trial { components, hidden, .. } = last.trial;
        match (self.hidden.after(hidden), self.components.after(components)) {
            (Some(hidden), _) => Some(Trial { grouping, components, hidden, look: false }),
            (None, Some(components)) => Some(Trial { grouping, components, hidden, look: false }),
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
    pub tried: Vec<Tried>,
    /// The best of what is done.
    pub best: Option<Found>,
    /// What is under way.
    pub running: Option<Running>,
}

/// The model of a fit, and its epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As validated best.
    pub model: Model,
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

/// Rows of columns to learn from, and to choose by.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// For gradients.
    pub train: &'a Table,
    /// For validation.
    pub valid: &'a Table,
    /// The number of states of every column.
    pub states: &'a [usize],
    /// Cells that were not observed, of the rows for gradients and for validation.
    pub holes: [&'a Missing; 2],
    /// What rows weigh, for gradients and for validation; none: 1 each. Only of rows without holes.
    pub weights: [&'a [f64]; 2],
}

impl<'a> Rows<'a> {
    /// Tables without holes.
    pub fn complete(train: &'a Table, valid: &'a Table, states: &'a [usize]) -> Self {
        Self { train, valid, states, holes: [Missing::none(); 2], weights: [&[]; 2] }
    }

    /// Distinct rows of blocks.
    fn unique(self, blocks: &Blocks) -> [Unique; 2] {
        let [train, valid] = self.weights;
        [blocks.unique_weighted(self.train, train), blocks.unique_weighted(self.valid, valid)]
    }

    fn with_holes(self) -> [(&'a Table, &'a Missing); 2] {
        [(self.train, self.holes[0]), (self.valid, self.holes[1])]
    }
}

/// Someone who watches a search, and may stop it.
pub trait WatchSearch {
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
}

/// Nobody.
impl WatchSearch for () {}

impl Search {
    /// Before the first fit.
    pub fn new(plan: Plan) -> Self {
        Self { plan, tried: Vec::new(), best: None, running: None }
    }

    /// Goes on until there is nothing left to try, or someone stops it.
    pub fn run<B: Engine<Mixture<Component>>, J: Engine<Mixture<Component>>>(
        &mut self,
        rows: Rows<'_>,
        settings: &Settings,
        machine: &B,
        judge: &J,
        watch: &mut dyn WatchSearch,
    ) -> Result<Ended, LearnError> {
        let complete = rows.holes.iter().all(|holes| holes.is_empty());
        if !complete && rows.weights.iter().any(|weights| !weights.is_empty()) {
            return Err(LearnError::WeightedHoles);
        }
        let mut ended = Ended::Done;
        loop {
            let mut running = match self.running.take() {
                Some(running) => running,
                None => match self.plan.next(&self.tried) {
                    Some(trial) => self.begin(trial, rows)?,
                    None => return Ok(ended),
                },
            };
            let trial = running.trial;
            let settings = Settings {
                epochs: match trial.look {
                    // One tree, or none, is what the counts say: there is nothing to learn.
                    _ if complete && trial.components == 1 && self.plan.start.is_counted() => 0,
                    true => self.plan.look.min(settings.epochs),
                    false => settings.epochs,
                },
                ..settings.clone()
            };
            let Running { blocks, state, .. } = &mut running;
            let mut inside = Inside { search: self.clone(), trial, blocks: blocks.clone(), watch };
            let result = if complete {
                let [train, valid] = rows.unique(blocks);
                let data = Data { train: &train, valid: &valid };
                state.run(data, &settings, machine, judge, &mut inside)
            } else {
                let filled = Filled::new(blocks, rows.with_holes(), settings.seed)?;
                state.run(filled, &settings, machine, judge, &mut inside)
            };
            match result {
                Ok(Ended::Stopped) | Err(_) => {
                    self.running = Some(running);
                    return result;
                }
                Ok(how) => ended = how,
            }
            self.finish(running)?;
        }
    }

    fn begin(&self, trial: Trial, rows: Rows<'_>) -> Result<Running, LearnError> {
        let groups = &self.plan.groupings[trial.grouping];
        let blocks = Blocks::observed(rows.states, groups, rows.train, rows.holes[0])?;
        let states = blocks.states();
        let start = &self.plan.start;
        let model = match rows.holes[0].is_empty() {
            true => start.model(
                &states,
                &blocks.unique_weighted(rows.train, rows.weights[0]),
                trial.components,
                trial.hidden,
            )?,
            false => {
                let filled = Filled::new(&blocks, rows.with_holes(), start.seed)?;
                start.model(&states, filled.now(), trial.components, trial.hidden)?
            }
        };
        Ok(Running { trial, blocks, state: State::new(model) })
    }

    fn finish(&mut self, running: Running) -> Result<(), ModelError> {
        let Running { trial, blocks, state } = running;
        let Some(best) = state.best_epoch() else { return Ok(()) };
        let tried = Tried { trial, valid: best.valid, best_epoch: best.epoch, epochs: state.epochs() };
        if self.tried.iter().all(|before| before.valid < tried.valid) {
            self.best = Some(Found {
                model: Model::new(blocks, Arc::unwrap_or_clone(state.best))?,
                history: state.history,
            });
        }
        self.tried.push(tried);
        Ok(())
    }

    /// The best model so far: of what is done, or of what is under way. Nothing before the first validation.
    pub fn found(&self) -> Result<Option<Found>, ModelError> {
        let under_way = match &self.running {
            Some(running) if !running.state.history.is_empty() => Some(Found {
                model: Model::new(running.blocks.clone(), (*running.state.best).clone())?,
                history: running.state.history.clone(),
            }),
            _ => None,
        };
        let valid =
            |found: &Found| found.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
        Ok(match (&self.best, under_way) {
            (Some(best), Some(other)) if valid(&other) > valid(best) => Some(other),
            (Some(best), _) => Some(best.clone()),
            (None, other) => other,
        })
    }
}

/// Shows the search to whoever watches it, as it is between two epochs.
struct Inside<'a> {
    search: Search,
    trial: Trial,
    blocks: Blocks,
    watch: &'a mut dyn WatchSearch,
}

impl Watch<Mixture<Component>> for Inside<'_> {
    fn batch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.watch.batch(&self.trial, progress)
    }

    fn epoch(&mut self, state: &State<Mixture<Component>>) -> ControlFlow<()> {
        self.search.running =
            Some(Running { trial: self.trial, blocks: self.blocks.clone(), state: state.clone() });
        self.watch.epoch(&self.search)
    }
}
