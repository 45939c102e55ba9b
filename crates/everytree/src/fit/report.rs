//! What a fit comes back with.

use super::auto::CandidateReport;
use crate::{Error, Model};
use everytree_core::file::{Checkpoint, Evaluated, TableFacts};
use everytree_core::learn::{Epoch, LEAST_ENSEMBLE_GAIN, TrialResult};
use everytree_core::model::Settings;

/// How a fit ended.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let fitted = Fit::new().family("moat").epochs(2).run_with(&data, &mut ())?;
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
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let fitted = Fit::new().family("moat").epochs(2).run_with(&data, &mut ())?;
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
    /// Where learning was stopped, to go on from; none where it came to its end.
    pub unfinished: Option<Box<Checkpoint>>,
}

/// How a fit went. Log-likelihoods are means over rows, in nats, in f64.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let report = Fit::new().family("moat").epochs(2).run_with(&data, &mut ())?.report;
/// assert_eq!((report.epochs, report.train.rows, report.valid.rows), (2, 40, 4)); // learned once more from all
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
    /// Its standard error, where test rows have missing cells that are summed out by random trees; not that of drawing other
    /// rows.
    pub test_standard_error: Option<f64>,
    /// Which share of the rows these means are over, where it was time to end before all were evaluated.
    pub evaluated: Option<Evaluated>,
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
    /// Every candidate of a choice among families, in the order in which they were tried.
    pub candidates: Vec<CandidateReport>,
    /// What an average of several gains over the best alone on the rows held out, in nats a row, and the standard error of it.
    pub gain: Option<(f64, f64)>,
    /// Of a choice without stored rows: what a kernel over them (`kernel = true`) would gain, and the standard error of it,
    /// estimated on at most 2,000 of the rows held out.
    pub kernel_gain: Option<(f64, f64)>,
    /// In how many folds rows were held out.
    pub folds: usize,
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

impl FitReport {
    /// What a kernel over stored rows would gain, in one line; options in it are in backticks (see [`spelled`](crate::spelled)).
    ///
    /// ```
    /// # use everytree::{Dataset, Effort, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// let report = Fit::new().effort(Effort::Quick).folds(2).run_with(&data, &mut ())?.report;
    /// assert!(report.kernel_words().is_some_and(|words| words.contains("`kernel`")));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn kernel_words(&self) -> Option<String> {
        let (gain, error) = self.kernel_gain?;
        Some(match gain > error.max(LEAST_ENSEMBLE_GAIN) {
            true => format!(
                "a kernel over stored rows (`kernel`) would gain about {gain:.4} ± {error:.4} more; the model would then contain \
                 the training rows"
            ),
            false => "a kernel over stored rows (`kernel`) would gain nothing".to_owned(),
        })
    }
}
