//! Sampling: rows drawn from a model, given evidence.

use crate::evidence::{Evidence, with_evidence};
use crate::{Dataset, Error, Model, Result};
use everytree_core::data::Table;
use everytree_core::infer::{Drawn, Sampling};
use std::sync::Arc;

/// Most cells that are drawn at once.
const MOST_CELLS: usize = 1 << 28;

/// Rows to be drawn from a model.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().run(&data)?;
/// let rows = model.sample(100).given("smoker", "yes")?.seed(1).run()?;
/// assert_eq!(rows.rows(), 100);
/// assert_eq!(rows.label(7, 0).as_deref(), Some("yes"));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sample<'m> {
    model: &'m Model,
    evidence: Evidence<'m>,
    rows: usize,
    seed: u64,
}

with_evidence!(Sample);

impl<'m> Sample<'m> {
    pub(crate) fn new(model: &'m Model, rows: usize) -> Self {
        Self { model, evidence: model.evidence(), rows, seed: 0 }
    }

    /// Seed of the rows: the same seed, the same rows.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The rows, as a dataset with the columns of the model.
    pub fn run(&self) -> Result<Dataset> {
        Ok(self.run_with_method()?.0)
    }

    /// The same, and how they were drawn.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().epochs(2).run(&data)?;
    /// let (rows, drawn) = model.sample(10).run_with_method()?;
    /// assert_eq!((rows.rows(), drawn), (10, everytree::Drawn::Exactly));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn run_with_method(&self) -> Result<(Dataset, Drawn)> {
        let schema = self.model.schema();
        if self.rows.saturating_mul(schema.variables.len()) > MOST_CELLS {
            let problem = format!("at most {MOST_CELLS} cells at once; draw some rows after the other");
            return Err(Error::option("rows", self.rows, problem));
        }
        let sampling = Sampling { seed: self.seed, ..Sampling::default() };
        let inference = self.model.core().inference()?;
        let (rows, drawn) = inference.sample(self.evidence.likelihoods(), self.rows, sampling)?;
        let mut table = Table::new(&schema.states());
        rows.iter().for_each(|row| table.push(row));
        Ok((Dataset::from_codes(Arc::clone(schema), table)?, drawn))
    }
}
