//! The best model without asking: a search over families, sizes, blocks and settings, and in the end an average of what is best
//! together.

mod kernel;
mod outcome;
mod search;

use super::blocks;
use super::monitor::{Keep, Monitor};
use super::options::{Effort, FitOptions, Init, Precision};
use super::run::facts_of;
use super::{Fit, FitRows, Fitted, Observer, hold_out, room_for_rows};
use crate::columns::like;
use crate::device::Device;
use crate::error::Kind;
use crate::{Dataset, Error, Result, Unknown};
use everytree_core::file::Checkpoint;
use everytree_core::learn::{CandidateResult, Folds, LearnError, Search, SearchObserver};
use everytree_core::model::{A_SECOND, Candidate};
use search::{Auto, Where};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The name of the family that stands for the best of all.
pub(crate) const AUTO_FAMILY: &str = "auto";
/// Cells of a table that take a minute, and what the least table takes, in seconds.
const CELLS: f64 = 2e6;
const MINUTE: f64 = 55.0;
const LEAST: f64 = 12.0;
/// Columns from which there is more time.
const WIDE: f64 = 100.0;

/// A candidate that was tried, for people and machines.
///
/// ```
/// # use everytree::{Dataset, Effort, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let fitted = Fit::new().family("auto").effort(Effort::Quick).folds(2).run_with(&data, &mut ())?;
/// let weights: f64 = fitted.report.candidates.iter().map(|candidate| candidate.weight).sum();
/// assert!((weights - 1.0).abs() < 1e-9);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CandidateReport {
    /// The name of its family.
    pub family: &'static str,
    /// The same in full.
    pub title: &'static str,
    /// How many components it mixes.
    pub components: usize,
    /// States of its latent variables, if it has some.
    pub hidden: Option<usize>,
    /// Blocks of columns, if some are modelled jointly.
    pub blocks: Option<usize>,
    /// Which way to group the columns; 0: none.
    pub grouping: usize,
    /// Rows that say that columns are independent.
    pub prior: f64,
    /// Mean log-likelihood of the rows held out; where it was given up early, as far as is known.
    pub valid_ll: f64,
    /// Was it given up before all folds were done?
    pub given_up: bool,
    /// How much it counts in the model; 0: not at all.
    pub weight: f64,
    /// Epochs, of all folds together.
    pub epochs: usize,
    /// Operations that it took.
    pub work: f64,
}

impl CandidateReport {
    fn new(tried: &CandidateResult, weight: f64) -> Self {
        let Candidate { start, components, hidden, grouping, .. } = &tried.candidate;
        let (has_hidden, blocks) = (tried.model.hidden().is_some(), tried.model.blocks());
        Self {
            family: start.family.name(*components),
            title: tried.model.title(),
            components: *components,
            hidden: has_hidden.then_some(*hidden),
            blocks: (!blocks.is_none()).then(|| blocks.blocks().len()),
            grouping: *grouping,
            prior: start.pseudocount,
            valid_ll: tried.valid,
            given_up: !tried.whole,
            weight,
            epochs: tried.epochs.iter().sum(),
            work: tried.work,
        }
    }
}

/// What is being tried.
///
/// ```
/// use everytree::{Observer, Trying};
///
/// struct Said;
///
/// impl Observer for Said {
///     fn trying(&mut self, trying: &Trying<'_>) {
///         println!("{}, {:.0} % of the work", trying.family, 100.0 * trying.spent);
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Trying<'a> {
    /// The name of its family.
    pub family: &'static str,
    /// How many components it mixes.
    pub components: usize,
    /// States of its latent variables, where it has some.
    pub hidden: Option<usize>,
    /// Are columns taken together?
    pub blocks: bool,
    /// Which fold of how many, from 1.
    pub fold: (usize, usize),
    /// What leads so far, if anything.
    pub leader: Option<&'a CandidateReport>,
    /// Which share of the budget is spent.
    pub spent: f64,
}

/// What does not go with a choice that is left to the program.
pub(super) fn check(options: &FitOptions) -> Result<()> {
    let usual = FitOptions::default();
    let said = [
        ("components", options.components.is_some()),
        ("hidden", options.hidden.is_some()),
        ("laplace", options.laplace.is_some()),
        ("shrinkage", options.shrinkage.is_some()),
        ("optimiser", options.optimiser.is_some()),
        ("epochs", options.epochs.is_some()),
        ("patience", options.patience.is_some()),
        ("batch_size", options.batch_size.is_some()),
        ("learning_rate", options.learning_rate.is_some()),
        ("cosine", options.cosine),
        ("ema", options.ema.is_some()),
        ("init", options.init != Init::Counts),
        ("pseudocount", options.pseudocount != usual.pseudocount),
    ];
    match said.into_iter().find(|(_, said)| *said) {
        Some((option, _)) => {
            let problem = "`family = auto` chooses it; goes with a family, such as `family = directed`";
            Err(Error::unwanted(option, problem))
        }
        None => Ok(()),
    }
}

/// Operations for a table of so many cells; more where columns are so many that sums over all trees would not be learned otherwise.
fn budget(effort: Effort, rows: usize, columns: usize) -> f64 {
    let cells = rows as f64 * columns as f64 / CELLS;
    let seconds = LEAST + MINUTE * if cells < 1.0 { cells.sqrt() } else { cells.powf(0.75) };
    let wide = (columns as f64 / WIDE).max(1.0).powf(0.75);
    let times = match effort {
        Effort::Quick => 1.0 / 6.0,
        Effort::Normal => 1.0,
        Effort::Thorough => 20.0,
    };
    times * seconds * wide * A_SECOND
}

/// The rows of a choice.
struct Rows {
    /// All there are, but for those to test with.
    all: Dataset,
    folds: Folds,
    test: Option<Dataset>,
    /// The fraction that is held out, or would be if rows were not held out in turn; none where rows to validate with were given.
    held_out: Option<f64>,
}

impl Fit {
    /// Chooses a model, and learns it.
    pub(super) fn choose(&self, train: &Dataset, observer: &mut dyn Observer) -> Result<Fitted> {
        let resumed = self.resume.as_deref();
        if resumed.is_none() {
            check(&self.options)?;
        }
        if train.columns() < 2 {
            return Err(Kind::OneColumn.into());
        }
        self.check_checkpoint()?;
        room_for_rows(train)?;
        let rows = self.rows_of_choice(train, resumed)?;
        let Rows { folds, test, held_out, .. } = &rows;
        if self.options.kernel && !rows.all.is_complete() {
            return Err(LearnError::StoredMissing.into());
        }
        let (first, valid) = &folds.pairs[0];
        let seed = resumed.map_or(self.options.seed, |checkpoint| checkpoint.settings.seed);
        let test_rows = test.as_ref().map(|test| test.rows());
        let counts = FitRows::new(first.rows(), valid.rows(), test_rows, held_out.map(|_| seed));
        observer.data(&FitRows { folds: folds.count(), ..counts });
        let facts = [facts_of(&first.clone().into()), facts_of(&valid.clone().into())];
        if let Some(checkpoint) = resumed {
            Self::check_rows(checkpoint, &facts)?;
            if let Some(choosing) = &checkpoint.choosing
                && !choosing.is_about(folds)
            {
                return Err(Error::unwanted(
                    "resume",
                    "the checkpoint was made with other folds of the rows",
                ));
            }
        }
        let observer = RefCell::new(observer);
        let note = |text: String| observer.borrow_mut().note(&text);
        let device = Device::find(self.options.device, train.columns(), &note)?;
        let begin = Instant::now();
        let timeout = self.options.timeout.map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
        let precision = match resumed {
            Some(checkpoint) if checkpoint.precision == "f64" => Precision::F64,
            Some(_) => Precision::F32,
            None => self.options.precision,
        };
        let mut monitor = Monitor {
            observer: &observer,
            deadline: timeout.map(|timeout| begin + timeout),
            keep: None,
            timed_out: Cell::new(false),
            failed: None,
        };
        let place = Where { precision, device: &device, note: &note };
        let mut auto =
            match resumed.and_then(|checkpoint| Some((checkpoint, checkpoint.choosing.as_deref()?))) {
                Some((checkpoint, choosing)) => {
                    Auto::resumed(choosing.clone(), checkpoint.search.clone(), folds, place)
                }
                None => {
                    let data: Dataset = first.clone().into();
                    let groupings = blocks::groupings(&self.options, true, &data, &note, &|| monitor.stop())?;
                    Auto::new(&self.options, groupings, folds, place)?
                }
            };
        let mut keep = self.checkpoint.as_ref().map(|path| {
            let checkpoint = Checkpoint {
                search: Search::new(auto.first_plan()),
                settings: resumed.map_or_else(|| auto.first_settings(), |old| old.settings.clone()),
                precision: precision.name().to_owned(),
                schema: (**train.schema()).clone(),
                train: facts[0].clone(),
                valid: facts[1].clone(),
                holdout: *held_out,
                choosing: None,
            };
            Keep::new(path.clone(), checkpoint)
        });
        monitor.keep = keep.as_mut();
        let ended = auto.run(&mut monitor)?;
        self.outcome(auto, &rows, ended, &mut monitor, begin)
    }

    /// Which rows are held out, and how.
    fn rows_of_choice(&self, train: &Dataset, resumed: Option<&Checkpoint>) -> Result<Rows> {
        let all = Dataset::from((**train).clone().weighing());
        let test = self.test.as_ref().map(|test| like(test, &all, Unknown::Error)).transpose()?;
        let (folds, held_out) = match &self.valid {
            Some(valid) => {
                let valid = like(valid, &all, Unknown::Error)?;
                (Folds::one((*all).clone(), (*valid).clone()), None)
            }
            None => {
                let seed = resumed.map_or(self.options.seed, |checkpoint| checkpoint.settings.seed);
                let fraction =
                    resumed.and_then(|checkpoint| checkpoint.holdout).unwrap_or(self.options.holdout);
                // The same words for what makes no sense.
                hold_out(&all, fraction, seed)?;
                let declined = self.options.refit == Some(false) || !all.is_complete();
                let folds = match resumed.and_then(|checkpoint| checkpoint.choosing.as_ref()) {
                    Some(choosing) => Some(choosing.portfolio.folds),
                    None if declined => Some(1),
                    None => self.options.folds,
                };
                (Folds::of(&all, fraction, folds, seed), Some(fraction))
            }
        };
        Ok(Rows { all, folds, test, held_out })
    }
}
