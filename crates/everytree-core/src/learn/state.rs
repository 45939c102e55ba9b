//! Learning as a state that goes from epoch to epoch.

use super::adam::Adam;
use super::batches::{Batch, order};
use super::engine::{Engine, Step, Steps};
use super::evaluate::Evaluator;
use super::source::{Source, SourceError};
use crate::blocks::BlocksError;
use crate::data::Unique;
use crate::memory::TooMuchMemory;
use crate::model::{
    Learnable, ModelError, Optimiser, ParamsView, Settings, SettingsError, UnseenStates, within_range,
};
use crate::util::first_not_finite;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use thiserror::Error;

/// What to learn from, and what to choose the epoch by.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Rows for gradients.
    pub train: &'a Unique,
    /// Rows for validation.
    pub valid: &'a Unique,
}

/// One epoch as it went.
///
/// ```
/// use everytree_core::learn::Epoch;
///
/// let start = Epoch { epoch: 0, train: -5.0, valid: -5.25 };
/// assert!(start.valid < start.train);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// From 1; 0 is the initialisation.
    pub epoch: usize,
    /// Mean over the batches as they were met, each under the parameters of its moment.
    pub train: f64,
    /// Mean over the validation rows after the epoch.
    pub valid: f64,
}

/// Everything that learning knows between two epochs.
///
/// What is large is shared: a state that is put aside, or shown to somebody, takes no memory but for what changes afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct State<M> {
    /// As of the last step.
    pub model: Arc<M>,
    /// The model that validated best.
    pub best: Arc<M>,
    /// The optimiser's memory.
    pub adam: Arc<Adam>,
    /// The average of the parameters, where one is kept.
    pub average: Arc<Option<Vec<f64>>>,
    /// The expected counts so far, where there is an [`Optimiser::Em`].
    pub expected: Option<Vec<f64>>,
    /// What the rows were filled with where values are missing.
    pub memory: Option<Vec<f64>>,
    /// All epochs so far; the first is the initialisation.
    pub history: Vec<Epoch>,
}

/// Where learning stands within an epoch.
///
/// ```
/// use everytree_core::learn::Progress;
///
/// fn in_words(progress: &Progress<'_>) -> String {
///     format!("epoch {} of {}, row {} of {}", progress.epoch, progress.epochs, progress.rows, progress.of_rows)
/// }
/// # let _ = in_words;
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The epoch under way, from 1.
    pub epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Rows of this epoch that are done.
    pub rows: usize,
    /// Rows of an epoch.
    pub of_rows: usize,
    /// Mean log-likelihood over these rows so far.
    pub train: f64,
    /// Epochs that are done.
    pub history: &'a [Epoch],
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All epochs are done.
    Done,
    /// Validation did not get better any more.
    Patience,
    /// The observer said so.
    Stopped,
    /// The observer said so before the initialisation had been evaluated on all rows: there is a model, but nothing to go on from.
    Unvalidated,
}

/// With [`Optimiser::Em`], the newest counts have the weight `step` to the minus this.
const FORGETTING: f64 = 0.6;
/// Steps for which counts are only collected.
const FIRST_STEPS: usize = 4;

/// Rows of a batch that are gone through before someone may ask for an end.
const ROWS_AT_ONCE: usize = 1024;

/// After so many steps in doubt, one after the other, a backend is not asked again in this epoch.
const MOST_DOUBTS: usize = 4;

/// Why learning stopped short.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LearnError {
    /// Settings that make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The model cannot be computed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// There are no rows to learn from.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Columns cannot be taken together.
    #[error(transparent)]
    Blocks(#[from] BlocksError),
    /// A likelihood or a derivative that is not a number.
    #[error(
        "epoch {epoch}, batch {batch}: {what} is not finite; the best model so far is kept; try a smaller `learning_rate`"
    )]
    NotFinite {
        /// The epoch, from 1.
        epoch: usize,
        /// The batch, from 1.
        batch: usize,
        /// What was not finite.
        what: &'static str,
    },
    /// A validation that is not a number.
    #[error("epoch {epoch}: the validation is not finite; try a smaller `learning_rate`")]
    ValidationNotFinite {
        /// The epoch, from 1.
        epoch: usize,
    },
    /// Expectation–maximisation of a family whose tables have no closed form.
    #[error(
        "expectation–maximisation is not for the paper's family: its tables are bound to its margins; use adam"
    )]
    NoClosedForm,
    /// Weights of rows with cells that were not observed.
    #[error(
        "rows with cells that were not observed cannot have weights; take missing cells as a state (`missing = category`)"
    )]
    WeightedMissing,
    /// Rows to store with cells that were not observed.
    #[error(
        "a kernel stores rows, and cells of some were not observed; take missing cells as a state (`missing = category`)"
    )]
    StoredMissing,
    /// A model that would not fit.
    #[error(transparent)]
    Memory(#[from] TooMuchMemory),
    /// No rows.
    #[error("there are no rows to {0}")]
    NoRows(&'static str),
}

impl<M: Learnable> State<M> {
    /// Before the first epoch.
    pub fn new(model: M) -> Self {
        let adam = Arc::new(Adam::new(model.size()));
        let model = Arc::new(model);
        Self {
            best: Arc::clone(&model),
            model,
            adam,
            average: Arc::default(),
            expected: None,
            memory: None,
            history: Vec::new(),
        }
    }

    /// Epochs done.
    pub fn epochs(&self) -> usize {
        self.history.last().map_or(0, |epoch| epoch.epoch)
    }

    /// The epoch that validated best (the first of them, if several did).
    pub fn best_epoch(&self) -> Option<&Epoch> {
        self.history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best })
    }

    /// Learns until the settings are content. `observer` is asked after every batch and after every epoch (then with the
    /// state as it is between two epochs); it may stop the run. Gradients come from `backend`, validation from `evaluator`.
    pub fn run<B: Engine<M>, J: Engine<M>>(
        &mut self,
        mut data: impl Source<M>,
        settings: &Settings,
        backend: &B,
        evaluator: &J,
        observer: &mut dyn Observer<M>,
    ) -> Result<Ended, LearnError> {
        settings.check()?;
        let (train, valid) = data.rows();
        for (rows, what) in [(train, "learn from"), (valid, "validate with")] {
            if rows == 0 {
                return Err(LearnError::NoRows(what));
            }
        }
        if let Some(memory) = &self.memory {
            data.recall(memory)?;
        }
        let unseen = data.unseen(&self.model);
        if self.history.is_empty() {
            Arc::make_mut(&mut self.model).smooth_unseen(&unseen);
            self.best = Arc::clone(&self.model);
            let stop = || observer.stop();
            let mut evaluator = Evaluator::new(&*self.model, evaluator);
            let valid = data.validate(&mut evaluator, &stop)?;
            let train = evaluator.mean_until(data.train(&self.model, 0, &stop)?, &stop)?;
            self.memory = data.memory();
            self.history.push(Epoch { epoch: 0, train: train.mean, valid: valid.mean });
            if valid.is_partial() || train.is_partial() {
                return Ok(Ended::Unvalidated);
            }
            if observer.epoch(self).is_break() {
                return Ok(Ended::Stopped);
            }
        }
        let mut worker = Worker {
            backend,
            ready: None,
            steps: match settings.optimiser {
                Optimiser::Adam => backend.steps(&self.model, &unseen, settings)?,
                Optimiser::Em => None,
            },
            expected: None,
        };
        while self.epochs() < settings.epochs {
            let since_best = self.epochs().saturating_sub(self.best_epoch().map_or(0, |best| best.epoch));
            if settings.patience.is_some_and(|patience| since_best >= patience) {
                return Ok(Ended::Patience);
            }
            // An epoch that is broken off leaves no trace: what can be taken up again is the state between epochs.
            let mut next = self.clone();
            let epoch = self.epochs() + 1;
            let rows = data.train(&self.model, epoch, &|| observer.stop())?;
            if observer.stop() {
                return Ok(Ended::Stopped);
            }
            let train = match next.epoch(epoch, (rows, &unseen), settings, &mut worker, observer)? {
                Some(train) => train,
                None => return Ok(Ended::Stopped),
            };
            let mut candidate = Arc::clone(&next.model);
            if let Some(average) = &*next.average {
                let averaged = Arc::make_mut(&mut candidate);
                averaged.set(average)?;
                if !unseen.is_empty() {
                    averaged.smooth_unseen(&unseen);
                    next.average = Arc::new(Some(averaged.to_vec()));
                }
            }
            let valid = data.validate(&mut Evaluator::new(&*candidate, evaluator), &|| observer.stop())?;
            if valid.is_partial() {
                return Ok(Ended::Stopped);
            }
            let valid = valid.mean;
            if !valid.is_finite() {
                return Err(LearnError::ValidationNotFinite { epoch });
            }
            if self.best_epoch().is_none_or(|best| valid > best.valid) {
                next.best = candidate;
            }
            next.memory = data.memory();
            next.history.push(Epoch { epoch, train, valid });
            *self = next;
            if observer.epoch(self).is_break() {
                return Ok(Ended::Stopped);
            }
        }
        Ok(Ended::Done)
    }

    /// One epoch; the mean log-likelihood of its batches, or nothing if it was broken off.
    fn epoch<B: Engine<M>>(
        &mut self,
        epoch: usize,
        (data, unseen): (&Unique, &[UnseenStates]),
        settings: &Settings,
        worker: &mut Worker<'_, M, B>,
        observer: &mut dyn Observer<M>,
    ) -> Result<Option<f64>, LearnError> {
        let order = order(data, settings.seed, epoch);
        let batches = order.len().div_ceil(settings.batch_size);
        let (mut batch, mut next) = (Batch::new(data), Batch::new(data));
        worker.expected = None;
        if let Some(sums) = self.expected.take() {
            let Work { ready, .. } = worker.work(&self.model)?;
            let mut expected = self.model.stats(ready);
            expected.set(&sums)?;
            worker.expected = Some(expected);
        }
        if let Some(steps) = &mut worker.steps {
            steps.rows(data)?;
            steps.take(&self.model, &self.adam, (*self.average).as_deref())?;
        }
        let whole = data.total();
        let mut rows_of = order.chunks(settings.batch_size);
        if let Some(places) = rows_of.next() {
            batch.choose(data, places);
        }
        let (mut sum, mut weight, mut rows) = (0.0, 0.0, 0);
        // Steps in doubt, one after the other.
        let mut doubts = 0;
        for number in 0..batches {
            let step = (epoch - 1).saturating_mul(batches).saturating_add(number);
            if let Some(steps) = worker.steps.as_mut().filter(|_| doubts < MOST_DOUBTS) {
                steps.begin(&Step {
                    places: &batch.places,
                    weights: &batch.weights,
                    total: batch.total,
                    share: batch.total / whole,
                    rate: settings.rate(step, settings.epochs.saturating_mul(batches)),
                })?;
            }
            // While a backend is at work, the next batch is chosen.
            if let Some(places) = rows_of.next() {
                next.choose(data, places);
            }
            let mut made = None;
            if let Some(steps) = worker.steps.as_mut().filter(|_| doubts < MOST_DOUBTS) {
                made = steps.end()?;
                doubts = if made.is_none() { doubts + 1 } else { 0 };
                if made.is_none() {
                    self.receive(steps.as_mut())?;
                }
            }
            let total = match made {
                Some(total) => total,
                None => {
                    batch.gather(data);
                    let place = (epoch, number, batches);
                    let Some(total) =
                        self.step(place, (&batch, whole), unseen, settings, worker, observer)?
                    else {
                        return Ok(None);
                    };
                    if let Some(steps) = worker.steps.as_mut().filter(|_| doubts < MOST_DOUBTS) {
                        steps.take(&self.model, &self.adam, (*self.average).as_deref())?;
                    }
                    total
                }
            };
            sum += total;
            weight += batch.total;
            rows = (rows + settings.batch_size).min(order.len());
            let progress = Progress {
                epoch,
                epochs: settings.epochs,
                rows,
                of_rows: order.len(),
                train: sum / weight,
                history: &self.history,
            };
            if observer.batch(&progress).is_break() {
                return Ok(None);
            }
            std::mem::swap(&mut batch, &mut next);
        }
        if let Some(steps) = worker.steps.as_mut().filter(|_| doubts < MOST_DOUBTS) {
            self.receive(steps.as_mut())?;
        }
        self.expected = worker.expected.as_ref().map(|expected| expected.to_vec());
        Ok(Some(sum / weight))
    }

    /// What a backend has made of it.
    fn receive(&mut self, steps: &mut (dyn Steps<M> + '_)) -> Result<(), ModelError> {
        let Self { model, adam, average, .. } = self;
        steps.give(Arc::make_mut(model), Arc::make_mut(adam), Arc::make_mut(average))?;
        let parameters = Arc::make_mut(model).slices_mut().into_iter().flatten();
        parameters.for_each(|parameter| *parameter = within_range(*parameter));
        Ok(())
    }

    /// A step from a batch; the sum of its weighted log-likelihoods before it, or nothing if it was broken off.
    fn step<B: Engine<M>>(
        &mut self,
        // The batch, of so many, of an epoch.
        (epoch, number, batches): (usize, usize, usize),
        (batch, whole): (&Batch, f64),
        unseen: &[UnseenStates],
        settings: &Settings,
        worker: &mut Worker<'_, M, B>,
        observer: &dyn Observer<M>,
    ) -> Result<Option<f64>, LearnError> {
        let not_finite = |what| LearnError::NotFinite { epoch, batch: number + 1, what };
        let backend = worker.backend;
        let Work { ready, stats, gradient, log_likelihood } = worker.work(&self.model)?;
        log_likelihood.resize(batch.weights.len(), 0.0);
        self.model.refresh(backend, ready)?;
        stats.clear();
        // All rows at once may be many: in pieces, so that someone can ask for an end.
        for start in (0..batch.weights.len()).step_by(ROWS_AT_ONCE) {
            if start > 0 && observer.stop() {
                return Ok(None);
            }
            let some = start..(start + ROWS_AT_ONCE).min(batch.weights.len());
            let codes = batch.table.some(some.clone());
            self.model.log_likelihood(backend, ready, codes, &mut log_likelihood[some.clone()])?;
            self.model.accumulate(backend, ready, codes, &batch.weights[some], stats)?;
        }
        let total: f64 = log_likelihood.iter().zip(&batch.weights).map(|(log, weight)| log * weight).sum();
        if !total.is_finite() {
            return Err(not_finite("the log-likelihood"));
        }
        let step = (epoch - 1).saturating_mul(batches).saturating_add(number);
        match settings.optimiser {
            Optimiser::Adam => {
                self.model.gradient(ready, stats, gradient);
                self.model.regularise(&settings.regularisation, batch.total / whole, gradient);
                if first_not_finite(gradient).is_some() {
                    return Err(not_finite("a derivative"));
                }
                let rate = settings.rate(step, settings.epochs.saturating_mul(batches));
                let scale = 1.0 / batch.total;
                let model = Arc::make_mut(&mut self.model);
                Arc::make_mut(&mut self.adam).ascend(&mut model.slices_mut(), gradient, scale, rate);
            }
            Optimiser::Em => {
                // The first counts are forgotten soon, so that the start does not matter for long.
                // All rows at once leave nothing to remember.
                let take = if batches == 1 { 1.0 } else { (step as f64 + 1.0).powf(-FORGETTING) };
                let Worker { ready, expected, .. } = worker;
                let Some(Work { ready, stats, .. }) = ready else { unreachable!("asked for above") };
                let expected = expected.get_or_insert_with(|| self.model.stats(ready));
                expected.blend(stats, 1.0 - take, take * (whole / batch.total));
                // A few rows alone say nothing about most tables.
                if step >= FIRST_STEPS.min(batches - 1)
                    && !Arc::make_mut(&mut self.model).maximise(
                        ready,
                        expected,
                        None,
                        &settings.regularisation,
                    )
                {
                    return Err(LearnError::NoClosedForm);
                }
            }
        }
        Arc::make_mut(&mut self.model).smooth_unseen(unseen);
        if self.model.slices().iter().any(|piece| first_not_finite(piece).is_some()) {
            return Err(not_finite("a parameter"));
        }
        if let Some(decay) = settings.ema {
            let average = Arc::make_mut(&mut self.average).get_or_insert_with(|| self.model.to_vec());
            let pieces = self.model.slices();
            average
                .iter_mut()
                .zip(pieces.into_iter().flatten())
                // What does not change stays as it is, to the bit.
                .for_each(|(mean, now)| *mean += (1.0 - decay) * (now - *mean));
        }
        Ok(Some(total))
    }
}

/// Who makes the steps: the backend alone, or the model with its help.
struct Worker<'a, M: Learnable, B: Engine<M>> {
    backend: &'a B,
    steps: Option<Box<dyn Steps<M> + 'a>>,
    ready: Option<Work<M, B>>,
    /// The expected counts so far, where there is an [`Optimiser::Em`].
    expected: Option<M::Stats>,
}

/// What a model needs to make a step.
struct Work<M: Learnable, B: Engine<M>> {
    ready: M::Ready<B>,
    stats: M::Stats,
    gradient: Vec<f64>,
    log_likelihood: Vec<f64>,
}

impl<M: Learnable, B: Engine<M>> Worker<'_, M, B> {
    /// Made when it is needed for the first time.
    fn work(&mut self, model: &M) -> Result<&mut Work<M, B>, ModelError> {
        if self.ready.is_none() {
            let ready = model.ready(self.backend)?;
            let (stats, gradient) = (model.stats(&ready), vec![0.0; model.size()]);
            self.ready = Some(Work { ready, stats, gradient, log_likelihood: Vec::new() });
        }
        match &mut self.ready {
            Some(work) => Ok(work),
            None => unreachable!("made above"),
        }
    }
}

/// Someone who is told how learning goes, and may stop it.
pub trait Observer<M> {
    /// After a batch.
    fn batch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// After an epoch, the initialisation among them.
    fn epoch(&mut self, state: &State<M>) -> ControlFlow<()> {
        let _ = state;
        ControlFlow::Continue(())
    }

    /// Is it time to end? Asked now and then while something takes long: an initialisation, a validation.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody.
impl<M> Observer<M> for () {}
