//! Learning a model from a dataset: options, plan, search, progress, results.

mod blocks;
mod observer;
mod options;
mod plan;
mod run;

pub use blocks::grouping_in_words;
pub use observer::{FitRows, Observer};
pub use options::{BlockOptions, ColumnGroup, FitOptions, Init, Precision};

use crate::columns::like;
use crate::device::Device;
use crate::error::Kind;
use crate::words::plural;
use crate::{Dataset, Error, Model, Result};
use everytree_core::file::{Checkpoint, FileError, TableFacts};
use everytree_core::learn::{
    Datasets, Ended, Epoch, LearnError, Progress, Search, SearchObserver, Trial, TrialResult,
};
use everytree_core::model::{HowMany, Optimiser, Settings};
use plan::Checked;
use run::{How, Learned, best_epoch, facts_of, learn, refit};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Learns a model from a dataset.
///
/// ```
/// use everytree::{Dataset, Fit};
///
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("a", cells("x", "y")), ("b", cells("1", "2"))])?;
/// let model = Fit::new().family("directed").components(2).epochs(5).seed(1).run(&data)?;
/// assert_eq!(model.components(), 2);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fit {
    options: FitOptions,
    valid: Option<Dataset>,
    test: Option<Dataset>,
    checkpoint: Option<PathBuf>,
    resume: Option<Box<Checkpoint>>,
    without_edges: bool,
}

/// How a fit ended.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().epochs(2).run(&data)?;
/// let fitted = Fit::new().epochs(2).run_with(&data, &mut ())?;
/// assert_eq!(fitted.report.stopped.as_str(), "done");
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// All epochs were done, and nothing was left to try.
    Done,
    /// Early stopping: validation did not get better any more.
    Patience,
    /// The time was up.
    Timeout,
    /// The observer said so.
    Observer,
    /// Something went wrong when there was a model already; see [`Fitted::failure`].
    Failed,
}

impl Stopped {
    /// As text: `done`, `patience`, `timeout`, `stopped` or `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Patience => "patience",
            Self::Timeout => "timeout",
            Self::Observer => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// A model, and how it came about.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().epochs(2).run(&data)?;
/// let fitted = Fit::new().epochs(2).run_with(&data, &mut ())?;
/// assert!(fitted.failure.is_none());
/// assert_eq!(fitted.model, model);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// How it went.
    pub report: FitReport,
    /// What went wrong after there was a model: it is the best so far, without what was to follow.
    pub failure: Option<Error>,
}

/// How a fit went. Log-likelihoods are means over rows, in nats, in f64.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().epochs(2).run(&data)?;
/// let report = Fit::new().epochs(2).run_with(&data, &mut ())?.report;
/// assert_eq!((report.epochs, report.train.rows, report.valid.rows), (2, 36, 4));
/// assert!(report.train_ll > -1.0);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FitReport {
    /// Rows that the model has learned from, and those of them that differ.
    pub train: TableFacts,
    /// Rows to validate with.
    pub valid: TableFacts,
    /// Rows to test with.
    pub test_rows: Option<usize>,
    /// Were the rows to validate with held out from those to learn from?
    pub held_out: bool,
    /// Mean log-likelihood of the training rows.
    pub train_ll: f64,
    /// Of the validation rows.
    pub valid_ll: f64,
    /// Of the test rows.
    pub test_ll: Option<f64>,
    /// Are the first two estimates, because cells are missing?
    pub estimated: [bool; 2],
    /// The epoch that validated best; 0 is the initialisation.
    pub best_epoch: usize,
    /// Epochs in all, of the fit that was best.
    pub epochs: usize,
    /// Epoch by epoch, of the fit that was best.
    pub history: Vec<Epoch>,
    /// Every candidate and how it validated.
    pub trials: Vec<TrialResult>,
    /// The groups of columns that candidates name by number.
    pub groupings: Vec<Vec<Vec<usize>>>,
    /// Has the model learned from the held-out rows too?
    pub refit: bool,
    /// How it ended.
    pub stopped: Stopped,
    /// Where it was learned.
    pub device: String,
    /// The settings of learning.
    pub settings: Settings,
    /// Of learning alone.
    pub learning_seconds: f64,
    /// With everything that follows: evaluation, and what rows say about edges.
    pub seconds: f64,
}

/// What is said of a [`Fit`], option by option.
macro_rules! options {
    ($($(#[doc = $about:literal])* $name:ident($($argument:ident: $kind:ty)?) $(=> $value:expr)?;)*) => {
        impl Fit {$(
            $(#[doc = $about])*
            pub fn $name(mut self, $($argument: $kind)?) -> Self {
                self.options.$name = options!(@value $name $($argument)? $(=> $value)?);
                self
            }
        )*}
    };
    (@value $name:ident $argument:ident => $value:expr) => { $value };
    (@value $name:ident => $value:expr) => { $value };
    (@value $name:ident $argument:ident) => { $argument };
}

options! {
    /// How many components are mixed.
    components(components: usize) => Some(HowMany::Just(components));
    /// How many states latent variables have.
    hidden(states: usize) => Some(HowMany::Just(states));
    /// Which columns are modelled jointly.
    blocks(blocks: BlockOptions);
    /// Times through the data.
    epochs(epochs: usize) => Some(epochs);
    /// Early stopping: epochs without a better validation.
    patience(epochs: usize) => Some(epochs);
    /// Rows of a mini-batch.
    batch_size(rows: usize) => Some(rows);
    /// Learning rate of Adam.
    learning_rate(rate: f64) => Some(rate);
    /// Decay of an exponential moving average of the parameters.
    ema(decay: f64) => Some(decay);
    /// Laplace smoothing of free tables.
    laplace(pseudocount: f64) => Some(pseudocount);
    /// How much components are shrunk towards what they have in common.
    shrinkage(strength: f64) => Some(strength);
    /// How parameters are updated.
    optimiser(optimiser: Optimiser) => Some(optimiser);
    /// Seed of everything random: the same seed, the same model, on any number of threads.
    seed(seed: u64);
    /// Precision of gradients.
    precision(precision: Precision);
    /// Fraction of the rows held out for validation.
    holdout(fraction: f64);
    /// Learn once more, from the validation rows too, for as many epochs as were best.
    refit(refit: bool);
    /// Where the work is done.
    device(device: crate::DeviceChoice);
}

impl Fit {
    /// With what is usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// With these options.
    pub fn with(options: FitOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The options.
    pub fn options(&self) -> &FitOptions {
        &self.options
    }

    /// Family of models, by name: `moat`, `directed`, `chow-liu` … ([`families`](crate::families) lists them).
    pub fn family(mut self, name: impl Into<String>) -> Self {
        self.options.family = name.into();
        self
    }

    /// As many components as validation prefers.
    pub fn components_auto(mut self) -> Self {
        self.options.components = Some(HowMany::UpTo(everytree_core::model::AUTO));
        self
    }

    /// Keeps the best model so far after this long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout.as_secs_f64());
        self
    }

    /// Validates with these rows instead of rows that are held out. Their labels must be known to the rows to learn from.
    pub fn valid(mut self, valid: Dataset) -> Self {
        self.valid = Some(valid);
        self
    }

    /// Reports how likely these rows are at the end. Their labels must be known to the rows to learn from.
    pub fn test(mut self, test: Dataset) -> Self {
        self.test = Some(test);
        self
    }

    /// Saves the state of learning to this file after every epoch.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// Goes on from a checkpoint, to the very same result. Its settings count; epochs and patience may be given anew.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resume = Some(Box::new(checkpoint));
        self
    }

    /// Leaves out what the training rows say about edges: less to compute, for whoever does not look at them.
    pub fn without_edges(mut self) -> Self {
        self.without_edges = true;
        self
    }

    /// The ways to group columns that this fit would compare; of none or one it would take that.
    ///
    /// ```
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")]), ("b", vec![Some("1"), Some("2")])])?;
    /// assert_eq!(everytree::Fit::new().groupings(&data)?, [Vec::<Vec<usize>>::new()]);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn groupings(&self, train: &Dataset) -> Result<Vec<Vec<Vec<usize>>>> {
        let checked = Checked::new(&self.options)?;
        blocks::groupings(&self.options, checked.looks_for_blocks(), train, &|_| ())
    }

    /// Learns a model.
    pub fn run(&self, train: &Dataset) -> Result<Model> {
        let Fitted { model, failure, .. } = self.run_with(train, &mut ())?;
        match failure {
            Some(error) => Err(error),
            None => Ok(model),
        }
    }

    /// Learns a model, telling an observer how it goes.
    pub fn run_with(&self, train: &Dataset, observer: &mut dyn Observer) -> Result<Fitted> {
        let checked = Checked::new(&self.options)?;
        let resumed = self.resume.as_deref();
        let seed = resumed.map_or(self.options.seed, |checkpoint| checkpoint.settings.seed);
        if train.columns() < 2 {
            return Err(Kind::OneColumn.into());
        }
        let all = Dataset::from((**train).clone().weighing());
        let test = self.test.as_ref().map(|test| like(test, &all)).transpose()?;
        if test.as_ref().is_some_and(|test| !(test.is_complete() || test.weights().is_empty())) {
            return Err(LearnError::WeightedMissing.into());
        }
        let (train, valid, held_out) = match &self.valid {
            Some(valid) => {
                let valid = like(valid, &all)?;
                (all, valid, None)
            }
            None => {
                let fraction =
                    resumed.and_then(|checkpoint| checkpoint.holdout).unwrap_or(self.options.holdout);
                let (train, valid) = hold_out(&all, fraction, seed)?;
                (train, valid, Some(fraction))
            }
        };
        let test_rows = test.as_ref().map(|test| test.rows());
        let rows = FitRows::new(train.rows(), valid.rows(), test_rows, held_out.map(|_| seed));
        observer.data(&rows);
        let told = RefCell::new(observer);
        let note = |text: String| told.borrow_mut().note(&text);
        let warn = |text: String| told.borrow_mut().warning(&text);
        let device = Device::find(self.options.device, train.columns(), &note)?;
        let begin = Instant::now();
        let facts = [facts_of(&train), facts_of(&valid)];
        let (mut search, settings, precision) = match resumed {
            Some(checkpoint) => self.resumed(checkpoint, &facts)?,
            None => {
                let settings = checked.settings(train.columns())?;
                let groupings = blocks::groupings(&self.options, checked.looks_for_blocks(), &train, &note)?;
                (checked.search(groupings, &settings), settings, self.options.precision)
            }
        };
        let mut keep = self.checkpoint.as_ref().map(|path| Keep {
            path: path.clone(),
            checkpoint: Checkpoint {
                search: search.clone(),
                settings: settings.clone(),
                precision: precision.name().to_owned(),
                schema: (**train.schema()).clone(),
                train: facts[0].clone(),
                valid: facts[1].clone(),
                holdout: held_out,
            },
        });
        let timeout = self.options.timeout.map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
        let mut watch = Watch {
            told: &told,
            deadline: timeout.map(|timeout| begin + timeout),
            keep: keep.as_mut(),
            timed_out: false,
            failed: None,
        };
        let data = Datasets { train: &train, valid: &valid };
        let how = How { settings: &settings, precision, device: &device, note: &note };
        let ended = learn(&mut search, data, how, &mut watch);
        let Some(best) = search.best_so_far()? else {
            return Err(match ended {
                Err(error) => explained(error, &train),
                Ok(_) => watch.failed.map_or(Kind::NoModel.into(), Error::from),
            });
        };
        let mut stopped = match &ended {
            Ok(Ended::Stopped) if watch.timed_out => Stopped::Timeout,
            Ok(Ended::Stopped) => Stopped::Observer,
            Ok(Ended::Patience) => Stopped::Patience,
            Ok(Ended::Done) => Stopped::Done,
            Err(_) => Stopped::Failed,
        };
        let mut failure = ended.err().map(|error| explained(error, &train));
        if let Some(error) = watch.failed.take() {
            failure.get_or_insert(Error::from(error).at("saving the checkpoint"));
        }
        match stopped {
            Stopped::Patience if search.results.len() == 1 => {
                note(format!("no better validation for {}", plural(settings.patience.unwrap_or(0), "epoch")));
            }
            Stopped::Timeout => {
                note(format!("the time is up after {}", plural(best.history.len() - 1, "epoch")));
            }
            _ => {}
        }
        let mut learned = Learned { model: best.model.clone(), settings, facts, all: None };
        if self.options.refit {
            if matches!(stopped, Stopped::Done | Stopped::Patience) {
                told.borrow_mut().refit(best_epoch(&best));
                watch.keep = None;
                let how = How { settings: &learned.settings, precision, device: &device, note: &note };
                match refit(&train, &valid, how, &search.plan, &best, &mut watch) {
                    Ok(Some(again)) => learned = again,
                    Ok(None) => {
                        stopped = if watch.timed_out { Stopped::Timeout } else { Stopped::Observer };
                        note("stopped: the model without the rows held out is what is kept".to_owned());
                    }
                    // What was learned before is not lost for that.
                    Err(error) => failure = Some(error.at("learning again from all rows")),
                }
            } else if stopped != Stopped::Failed {
                note("not learned again from all rows: there was no time for it".to_owned());
            }
        }
        if failure.is_some() {
            stopped = Stopped::Failed;
        }
        let learning_seconds = begin.elapsed().as_secs_f64();
        let how = How { settings: &learned.settings, precision, device: &device, note: &warn };
        let results = learned.results((&train, &valid, test.as_ref()), &best, how)?;
        let file = learned.file(&train, &search.results, &results, how, !self.without_edges)?;
        let estimated = [&train, &valid].map(|data| !data.is_complete() && !learned.model.is_of_trees());
        // Single trees are learned by the CPU, whatever else there is.
        let device = if learned.model.is_of_trees() { "cpu".to_owned() } else { device.to_string() };
        let Learned { settings, facts: [train_facts, valid_facts], all, .. } = learned;
        let report = FitReport {
            train: train_facts,
            valid: valid_facts,
            test_rows: rows.test,
            held_out: held_out.is_some(),
            train_ll: results.train_ll,
            valid_ll: results.valid_ll,
            test_ll: results.test_ll,
            estimated,
            best_epoch: results.best_epoch,
            epochs: best.history.len() - 1,
            history: results.history,
            trials: search.results,
            groupings: search.plan.groupings,
            refit: all.is_some(),
            stopped,
            device,
            settings,
            learning_seconds,
            seconds: begin.elapsed().as_secs_f64(),
        };
        Ok(Fitted { model: file.into(), report, failure })
    }

    /// A search that was put aside, if it was of these rows.
    fn resumed(
        &self,
        checkpoint: &Checkpoint,
        facts: &[TableFacts; 2],
    ) -> Result<(Search, Settings, Precision)> {
        for (what, found, expected) in
            [("learn from", &facts[0], &checkpoint.train), ("validate with", &facts[1], &checkpoint.valid)]
        {
            if found != expected {
                let problem = format!(
                    "the checkpoint was made with other rows to {what} ({} rows, fingerprint {}; now {} rows, {})",
                    expected.rows, expected.fingerprint, found.rows, found.fingerprint
                );
                return Err(Error::unwanted("resume", problem));
            }
        }
        let mut settings = checkpoint.settings.clone();
        let steps_are_planned = settings.cosine && settings.optimiser == Optimiser::Adam;
        if steps_are_planned && self.options.epochs.is_some_and(|epochs| epochs != settings.epochs) {
            let planned = plural(settings.epochs, "epoch");
            let problem = format!("the learning rate was planned for {planned}; leave it out");
            return Err(Error::unwanted("epochs", problem));
        }
        settings.epochs = self.options.epochs.unwrap_or(settings.epochs);
        settings.patience = self.options.patience.or(settings.patience);
        let precision = if checkpoint.precision == "f64" { Precision::F64 } else { Precision::F32 };
        Ok((checkpoint.search.clone(), settings, precision))
    }
}

/// Rows to learn from, and rows to validate with: what [`Fit`] does with the fraction to hold out.
///
/// ```
/// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"); 10]), ("b", vec![Some("y"); 10])])?;
/// let (train, valid) = everytree::hold_out(&data, 0.1, 0)?;
/// assert_eq!((train.rows(), valid.rows()), (9, 1));
/// # Ok::<(), everytree::Error>(())
/// ```
pub fn hold_out(data: &Dataset, fraction: f64, seed: u64) -> Result<(Dataset, Dataset)> {
    if data.rows() < 2 {
        return Err(Kind::OneRow.into());
    }
    if !(fraction > 0.0 && fraction < 1.0) {
        return Err(Error::option("holdout", fraction, "between 0 and 1"));
    }
    Ok(data.split(fraction, seed))
}

/// An error of learning, in the words of the columns.
fn explained(error: LearnError, data: &Dataset) -> Error {
    match error {
        LearnError::Blocks(error) => {
            let column = data.schema().variables[error.column()].name.clone();
            Kind::Blocks { column, error }.into()
        }
        error => error.into(),
    }
}

/// Where checkpoints go, and what is in them.
struct Keep {
    path: PathBuf,
    checkpoint: Checkpoint,
}

/// Tells the observer, looks at the clock, and saves checkpoints.
struct Watch<'a, 'o> {
    told: &'a RefCell<&'o mut dyn Observer>,
    deadline: Option<Instant>,
    keep: Option<&'a mut Keep>,
    timed_out: bool,
    failed: Option<FileError>,
}

impl Watch<'_, '_> {
    fn go_on(&mut self, told: ControlFlow<()>) -> ControlFlow<()> {
        self.timed_out |= self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if self.timed_out { ControlFlow::Break(()) } else { told }
    }
}

impl SearchObserver for Watch<'_, '_> {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        let told = self.told.borrow_mut().batch(trial, progress);
        self.go_on(told)
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        if let Some(Keep { path, checkpoint }) = &mut self.keep {
            checkpoint.search = search.clone();
            if let Err(error) = checkpoint.save(path) {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        let told = match &search.running {
            Some(running) => match running.state.history.last() {
                Some(epoch) => self.told.borrow_mut().epoch(&running.trial, epoch),
                None => ControlFlow::Continue(()),
            },
            None => ControlFlow::Continue(()),
        };
        self.go_on(told)
    }
}
