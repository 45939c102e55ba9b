//! Learning a model from a dataset: options, plan, search, progress, results.

mod auto;
mod blocks;
mod builder;
mod doubts;
mod monitor;
mod observer;
mod options;
mod plan;
mod report;
mod run;

pub(crate) use auto::AUTO_FAMILY;
pub use auto::{CandidateReport, Trying};
pub use blocks::grouping_in_words;
pub use observer::{FitRows, Observer};
pub use options::{BlockOptions, ColumnGroup, Effort, FitOptions, Init, Precision};
pub use report::{FitReport, Fitted, Stopped};

use crate::columns::like;
use crate::device::Device;
use crate::error::Kind;
use crate::memory::REMEDY;
use crate::score::observed;
use crate::words::plural;
use crate::{Dataset, Error, Model, Result, Unknown};
use everytree_core::file::{Checkpoint, Evaluated, TableFacts};
use everytree_core::learn::{Datasets, Ended, Hurry, LearnError, Search, SearchObserver};
use everytree_core::memory;
use everytree_core::model::{Optimiser, Settings, footprint_of_rows};
use monitor::{Keep, Monitor};
use plan::Checked;
use run::{How, Learned, best_epoch, facts_of, learn, refit};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
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
///
/// Everything that can be said about learning:
///
/// ```
/// use everytree::{BlockOptions, DeviceChoice, Fit, Init, Optimiser, Pairs, Precision};
/// use std::time::Duration;
///
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = everytree::Dataset::from_columns([("a", cells("x", "y")), ("b", cells("1", "2"))])?;
/// let (train, valid) = data.split(0.5, 0);
/// let folder = tempfile::tempdir()?;
/// let fit = Fit::new()
///     .family("directed")
///     .components_auto() // or .components(4)
///     .blocks(BlockOptions::auto())
///     .block_states(vec![4])
///     .init(Init::Counts)
///     .pseudocount(1.0)
///     .laplace(0.1)
///     .shrinkage(1.0)
///     .optimiser(Optimiser::Adam)
///     .epochs(3)
///     .patience(2)
///     .batch_size(16)
///     .learning_rate(0.02)
///     .cosine(true)
///     .ema(0.9)
///     .precision(Precision::F64)
///     .device(DeviceChoice::Cpu)
///     .seed(7)
///     .timeout(Duration::from_secs(60))
///     .checkpoint(folder.path().join("half.way"))
///     .valid(valid.clone())
///     .test(valid)
///     .without_edges();
/// let fitted = fit.run_with(&train, &mut ())?;
/// assert_eq!(fitted.report.test_ll, Some(fitted.report.valid_ll));
///
/// // From where it was left, with epochs or patience anew; here nothing is left to do.
/// let checkpoint = everytree::Checkpoint::load(&folder.path().join("half.way"))?;
/// assert_eq!(fit.resume(checkpoint).run_with(&train, &mut ())?.report.valid_ll, fitted.report.valid_ll);
///
/// // The paper's intervals for its family; latent variables; a tenth held out, and not learned from in the end.
/// Fit::new().family("moat").pairs(Pairs::Lambda).epochs(1).holdout(0.1).refit(false).run(&train)?;
/// Fit::new().family("hclt").hidden_auto().epochs(1).run(&train)?; // or .hidden(4)
/// # Ok::<(), Box<dyn std::error::Error>>(())
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

    /// The ways to group columns that this fit would compare; of none or one it would take that.
    ///
    /// ```
    /// # let data = everytree::Dataset::from_columns([("a", vec![Some("x"), Some("y")]), ("b", vec![Some("1"), Some("2")])])?;
    /// assert_eq!(everytree::Fit::new().family("moat").groupings(&data)?, [Vec::<Vec<usize>>::new()]);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn groupings(&self, train: &Dataset) -> Result<Vec<Vec<Vec<usize>>>> {
        self.groupings_until(train, &|| false)
    }

    /// The same; of fewer rows, or none, where `stop` asks for an end.
    pub(crate) fn groupings_until(
        &self,
        train: &Dataset,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<Vec<usize>>>> {
        let checked = Checked::new(&self.options)?;
        blocks::groupings(&self.options, checked.looks_for_blocks(), train, &|_| (), stop)
    }

    /// Learns a model.
    pub fn run(&self, train: &Dataset) -> Result<Model> {
        // On one of the threads that compute: small steps of learning would mostly be waiting for one to take them.
        let Fitted { model, failure, .. } = rayon::scope(|_| self.run_with(train, &mut ()))?;
        match failure {
            Some(error) => Err(error),
            None => Ok(model),
        }
    }

    /// Learns a model, telling an observer how it goes.
    pub fn run_with(&self, train: &Dataset, observer: &mut dyn Observer) -> Result<Fitted> {
        let chooses = match &self.resume {
            Some(checkpoint) => checkpoint.choosing.is_some(),
            None => self.options.family == auto::AUTO_FAMILY,
        };
        if chooses {
            return self.choose(train, observer);
        }
        let resumed = self.resume.as_deref();
        let options = match resumed {
            // What is gone on with says itself what it is.
            Some(checkpoint) => {
                let family = checkpoint.search.plan.start.family.spec().presets[0].name.to_owned();
                Cow::Owned(FitOptions { family, ..self.options.clone() })
            }
            None => Cow::Borrowed(&self.options),
        };
        let checked = Checked::new(&options)?;
        let seed = resumed.map_or(self.options.seed, |checkpoint| checkpoint.settings.seed);
        if train.columns() < 2 {
            return Err(Kind::OneColumn.into());
        }
        self.check_checkpoint()?;
        room_for_rows(train)?;
        let all = Dataset::from((**train).clone().weighing());
        let test = self.test.as_ref().map(|test| like(test, &all, Unknown::Error)).transpose()?;
        let (train, valid, held_out) = match &self.valid {
            Some(valid) => {
                let valid = like(valid, &all, Unknown::Error)?;
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
        let observer = RefCell::new(observer);
        let note = |text: String| observer.borrow_mut().note(&text);
        let warn = |text: String| observer.borrow_mut().warning(&text);
        let device = Device::find(self.options.device, train.columns(), &note)?;
        let begin = Instant::now();
        let timeout = self.options.timeout.map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
        let deadline = timeout.map(|timeout| begin + timeout);
        let facts = [facts_of(&train), facts_of(&valid)];
        let mut cut = false;
        let (mut search, settings, precision) = match resumed {
            Some(checkpoint) => self.resumed(checkpoint, &facts)?,
            None => {
                let settings = checked.settings(train.columns(), train.rows())?;
                let late = || {
                    observer.borrow().stop() || deadline.is_some_and(|deadline| Instant::now() >= deadline)
                };
                let hurry = Hurry::new(&late);
                let auto = checked.looks_for_blocks();
                let groupings = blocks::groupings(&self.options, auto, &train, &note, &|| hurry.asked())?;
                cut = hurry.was_cut();
                (
                    checked.search(groupings, &train.schema().states(), &settings),
                    settings,
                    self.options.precision,
                )
            }
        };
        let put_aside = |search: &Search, settings: &Settings| Checkpoint {
            search: search.clone(),
            settings: settings.clone(),
            precision: precision.name().to_owned(),
            schema: (**train.schema()).clone(),
            train: facts[0].clone(),
            valid: facts[1].clone(),
            holdout: held_out,
            choosing: None,
        };
        // A plan that was cut short is not what someone would want to go on with.
        let mut keep = self
            .checkpoint
            .as_ref()
            .filter(|_| !cut)
            .map(|path| Keep::new(path.clone(), put_aside(&search, &settings)));
        let mut monitor = Monitor {
            observer: &observer,
            deadline,
            keep: keep.as_mut(),
            timed_out: Cell::new(false),
            failed: None,
        };
        let data = Datasets { train: &train, valid: &valid };
        let how = How { settings: &settings, precision, device: &device, note: &note };
        let ended = learn(&mut search, data, how, &mut monitor);
        let Some(best) = search.best_so_far()? else {
            return Err(match ended {
                Err(error) => explained(error, &train),
                Ok(_) => monitor.failed.map_or(Kind::NoModel.into(), Error::from),
            });
        };
        let mut stopped = match &ended {
            Ok(Ended::Stopped | Ended::Unvalidated) if monitor.timed_out.get() => Stopped::Timeout,
            Ok(Ended::Stopped | Ended::Unvalidated) => Stopped::Observer,
            Ok(Ended::Patience) => Stopped::Patience,
            Ok(Ended::Done) => Stopped::Done,
            Err(_) => Stopped::Failed,
        };
        let mut failure = ended.err().map(|error| explained(error, &train));
        if let Some(error) = monitor.failed.take() {
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
        let under_way = |search: &Search| {
            search.running.as_ref().is_some_and(|running| !running.state.history.is_empty())
        };
        let is_stopped = matches!(stopped, Stopped::Timeout | Stopped::Observer);
        let unfinished =
            (is_stopped && !cut && under_way(&search)).then(|| Box::new(put_aside(&search, &settings)));
        let mut learned = Learned { model: best.model.clone(), settings, facts: facts.clone(), all: None };
        if self.options.refit.unwrap_or(held_out.is_some()) {
            if matches!(stopped, Stopped::Done | Stopped::Patience) {
                observer.borrow_mut().refit(best_epoch(&best));
                monitor.keep = None;
                let how = How { settings: &learned.settings, precision, device: &device, note: &note };
                match refit(&train, &valid, how, &search.plan, &best, &mut monitor) {
                    Ok(Some(again)) => learned = again,
                    Ok(None) => {
                        stopped = if monitor.timed_out.get() { Stopped::Timeout } else { Stopped::Observer };
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
        let stop = || monitor.stop();
        let complete = test.as_ref().filter(|test| test.is_complete());
        let results = learned.results((&train, &valid, complete), &best, how, &stop)?;
        let file = learned.file(&train, &search.results, &results, how, !self.without_edges, &stop)?;
        let mut model = Model::from(file);
        let (mut test_ll, mut evaluated, mut test_standard_error) =
            (results.test_ll, results.evaluated, None);
        if let Some(test) = test.as_ref().filter(|test| !test.is_complete()) {
            let found = observed(&model, test, &stop)?;
            (test_ll, test_standard_error) = (Some(found.mean), Some(found.standard_error));
            let all = evaluated.unwrap_or(Evaluated { train: 1.0, valid: 1.0, test: None });
            evaluated = Some(Evaluated { test: Some(found.share), ..all }).filter(Evaluated::is_partial);
            model.say_of_test(test_ll, evaluated);
        }
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
            test_ll,
            test_standard_error,
            evaluated,
            estimated,
            best_epoch: results.best_epoch,
            epochs: best.history.len() - 1,
            history: results.history,
            trials: search.results,
            candidates: Vec::new(),
            gain: None,
            kernel_gain: None,
            folds: 1,
            groupings: search.plan.groupings,
            refit: all.is_some(),
            stopped,
            device,
            settings,
            learning_seconds,
            seconds: begin.elapsed().as_secs_f64(),
        };
        if failure.is_none() {
            let doubts = doubts::of(&report, model.stored_rows().is_some())
                .into_iter()
                .chain(doubts::of_epochs(&report));
            doubts.for_each(|doubt| observer.borrow_mut().doubt(&doubt));
        }
        Ok(Fitted { model, report, failure, unfinished })
    }

    /// Better now than after the first epoch.
    fn check_checkpoint(&self) -> Result<()> {
        match self.checkpoint.as_ref().and_then(|path| path.parent()) {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(Error::unwanted("checkpoint", format!("there is no folder {}", folder.display())))
            }
            _ => Ok(()),
        }
    }

    /// Was a checkpoint made with these rows?
    fn check_rows(checkpoint: &Checkpoint, facts: &[TableFacts; 2]) -> Result<()> {
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
        Ok(())
    }

    /// A search that was put aside, if it was of these rows.
    fn resumed(
        &self,
        checkpoint: &Checkpoint,
        facts: &[TableFacts; 2],
    ) -> Result<(Search, Settings, Precision)> {
        Self::check_rows(checkpoint, facts)?;
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

/// Is there room for what is made of the rows while they are learned from?
fn room_for_rows(data: &Dataset) -> Result<()> {
    let need = footprint_of_rows(&data.schema().states(), data.rows());
    Ok(memory::check("learning from the rows of this table", need)
        .map_err(|error| Kind::Memory(error, REMEDY))?)
}

/// An error of learning, in the words of the columns.
fn explained(error: LearnError, data: &Dataset) -> Error {
    match error {
        LearnError::Blocks(error) => {
            let column = data.schema().variables[error.column()].name.clone();
            Kind::Blocks { column, error }.into()
        }
        LearnError::Memory(error) => Kind::Memory(error, REMEDY).into(),
        error => error.into(),
    }
}
