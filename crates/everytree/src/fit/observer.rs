//! Who hears how a fit goes, and may stop it.

use super::auto::Trying;
use everytree_core::learn::{Epoch, Progress, Trial};
use std::ops::ControlFlow;

/// Someone who is told how a fit goes, and may stop it.
///
/// ```
/// use everytree::{Dataset, Epoch, Fit, Observer, Trial};
/// use std::ops::ControlFlow;
///
/// /// Enough after three epochs.
/// struct Three;
///
/// impl Observer for Three {
///     fn epoch(&mut self, _: &Trial, epoch: &Epoch) -> ControlFlow<()> {
///         if epoch.epoch == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
///     }
/// }
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("a", cells("x", "y")), ("b", cells("1", "2"))])?;
/// let fitted = Fit::new().family("moat").run_with(&data, &mut Three)?;
/// assert_eq!(fitted.report.epochs, 3);
/// # Ok::<(), everytree::Error>(())
/// ```
pub trait Observer {
    /// The rows are there: to learn from, and to validate with.
    fn data(&mut self, rows: &FitRows) {
        let _ = rows;
    }

    /// Something worth saying; options in it are in backticks (see [`spelled`](crate::spelled)).
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Something that should not go unheard.
    fn warning(&mut self, warning: &str) {
        let _ = warning;
    }

    /// Something that should make a reader of the figures careful, in one line.
    fn doubt(&mut self, doubt: &str) {
        self.note(&format!("warning: {doubt}"));
    }

    /// Another candidate begins, or another fold of it, where the family is chosen.
    fn trying(&mut self, trying: &Trying<'_>) {
        let _ = trying;
    }

    /// After a mini-batch.
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        let _ = (trial, progress);
        ControlFlow::Continue(())
    }

    /// After an epoch, the initialisation (epoch 0) among them.
    fn epoch(&mut self, trial: &Trial, epoch: &Epoch) -> ControlFlow<()> {
        let _ = (trial, epoch);
        ControlFlow::Continue(())
    }

    /// Is it time to end? Asked now and then while something takes long: the initialisation, a validation, what follows
    /// learning. There is a model all the same, of what there was time for.
    fn stop(&self) -> bool {
        false
    }

    /// The best size is known: now all rows are learned from, for so many epochs.
    fn refit(&mut self, epochs: usize) {
        let _ = epochs;
    }
}

/// Nobody.
impl Observer for () {}

/// The rows of a fit.
///
/// ```
/// let rows = everytree::FitRows::new(90, 10, None, Some(0));
/// assert_eq!(rows.held_out, Some(0)); // by seed 0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FitRows {
    /// To learn from.
    pub train: usize,
    /// To validate with.
    pub valid: usize,
    /// To test with.
    pub test: Option<usize>,
    /// The seed by which rows to validate with were held out from those to learn from, if they were.
    pub held_out: Option<u64>,
    /// In how many folds all rows are held out, one after the other; 1: some of them, once.
    pub folds: usize,
}

impl FitRows {
    /// So many of each.
    pub fn new(train: usize, valid: usize, test: Option<usize>, held_out: Option<u64>) -> Self {
        Self { train, valid, test, held_out, folds: 1 }
    }
}
