//! Sampling: rows drawn from a model, given evidence.

use crate::evidence::{Evidence, with_evidence};
use crate::{Dataset, Error, Model, Result};
use everytree_core::data::Table;
use everytree_core::infer::{Drawn, Sampling, seed_of};
use std::sync::Arc;

/// Most cells that are held.
const MOST_CELLS: usize = 1 << 28;
/// Most rows and cells of a portion.
const PORTION: usize = 1 << 16;
const PORTION_CELLS: usize = 1 << 23;
/// Rows of the first portion, so that whoever waits sees some soon, and how many times as many each has as the one before.
const FIRST: usize = 256;
const GROWTH: usize = 4;

/// Rows to be drawn from a model.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").run(&data)?;
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
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let (rows, drawn) = model.sample(10).run_with_method()?;
    /// assert_eq!((rows.rows(), drawn), (10, everytree::Drawn::Exactly));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn run_with_method(&self) -> Result<(Dataset, Drawn)> {
        let schema = self.model.schema();
        if self.rows.saturating_mul(schema.variables.len()) > MOST_CELLS {
            let problem = format!("at most {MOST_CELLS} cells at once; take the rows portion by portion");
            return Err(Error::option("rows", self.rows, problem));
        }
        let mut table = Table::new(&schema.states());
        let drawn = self.draw::<Error>(|rows| {
            rows.iter().for_each(|row| table.push(row));
            Ok(())
        })?;
        Ok((Dataset::from_codes(Arc::clone(schema), table)?, drawn))
    }

    /// The same rows, portion by portion: there may be more than fit in memory.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let mut rows = 0;
    /// model.sample(200_000).for_each_portion(|portion| {
    ///     rows += portion.rows();
    ///     Ok::<(), everytree::Error>(())
    /// })?;
    /// assert_eq!(rows, 200_000);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn for_each_portion<E: From<Error>>(
        &self,
        mut take: impl FnMut(&Dataset) -> std::result::Result<(), E>,
    ) -> std::result::Result<Drawn, E> {
        let schema = self.model.schema();
        self.draw(|rows| {
            let mut table = Table::new(&schema.states());
            rows.iter().for_each(|row| table.push(row));
            take(&Dataset::from_codes(Arc::clone(schema), table)?)
        })
    }

    fn draw<E: From<Error>>(
        &self,
        mut take: impl FnMut(Vec<Vec<u16>>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Drawn, E> {
        let inference = self.model.inference()?;
        // A function of the columns alone, so that the same seed gives the same rows however they are asked for.
        let most = (PORTION_CELLS / self.model.schema().variables.len().max(1)).clamp(1, PORTION);
        let mut worst = Drawn::Exactly;
        let (mut portion, mut done, mut size) = (0, 0, FIRST.min(most));
        loop {
            let seed = if portion == 0 { self.seed } else { seed_of(self.seed, portion as u64) };
            let sampling = Sampling { seed, ..Sampling::default() };
            let count = size.min(self.rows - done);
            let found = inference.sample(self.evidence.likelihoods(), count, sampling);
            let (rows, drawn) = found.map_err(Error::from)?;
            worst = worst.worse(drawn);
            take(rows)?;
            done += count;
            if done == self.rows {
                return Ok(worst);
            }
            (portion, size) = (portion + 1, size.saturating_mul(GROWTH).min(most));
        }
    }
}
