//! The most probable rows (MAP), given evidence.

use crate::error::Kind;
use crate::evidence::{Evidence, with_evidence};
use crate::{Error, Model, Result, Work};
use everytree_core::data::Schema;
use everytree_core::infer::Search;
use everytree_core::memory;
use std::fmt;

/// Most rows that are looked for.
const MOST: usize = 100_000;
/// Most cells of these rows.
const MOST_CELLS: usize = 1 << 26;

/// The most probable rows of a model, to be found.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").run(&data)?;
/// let best = model.most_probable(1).given("smoker", "yes")?.run()?;
/// assert_eq!(best[0].labels(model.schema()), ["yes", "yes"]);
/// assert!(best[0].proven);
/// # Ok::<(), everytree::Error>(())
/// ```
///
/// How hard to look, in models that mix trees, and whether missing cells count as values:
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let rows = model.most_probable(2).trees(100).seed(1).missing_as_state(true).run()?;
/// assert!(rows[0].log_p >= rows[1].log_p);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone)]
pub struct MostProbable<'m> {
    model: &'m Model,
    evidence: Evidence<'m>,
    rows: usize,
    trees: usize,
    seed: u64,
    missing_as_state: bool,
    progress: Option<&'m (dyn Fn(f64) -> bool + Sync)>,
}

impl fmt::Debug for MostProbable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MostProbable").field("rows", &self.rows).finish_non_exhaustive()
    }
}

with_evidence!(MostProbable);

/// One of the most probable rows.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let row = &model.most_probable(1).run()?[0];
/// assert!(row.proven && row.log_p > -1.0);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProbableRow {
    /// The codes of its states.
    pub codes: Vec<u16>,
    /// Its log-probability, exact.
    pub log_p: f64,
    /// Is it certain that there is no better one?
    pub proven: bool,
}

impl ProbableRow {
    /// The labels of its states; empty for missing.
    pub fn labels(&self, schema: &Schema) -> Vec<String> {
        let both = schema.variables.iter().zip(&self.codes);
        both.map(|(variable, &code)| variable.label(code.into())).collect()
    }
}

impl<'m> MostProbable<'m> {
    pub(crate) fn new(model: &'m Model, rows: usize) -> Self {
        let Search { trees, seed, .. } = Search::default();
        Self { model, evidence: model.evidence(), rows, trees, seed, missing_as_state: false, progress: None }
    }

    /// Random trees to begin the search with.
    pub fn trees(mut self, trees: usize) -> Self {
        self.trees = trees;
        self
    }

    /// Seed of the search.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets a cell that is not known be missing, where training had missing cells in its column.
    pub fn missing_as_state(mut self, missing_as_state: bool) -> Self {
        self.missing_as_state = missing_as_state;
        self
    }

    /// Who hears what part of the search is done, and says whether to go on; what was found so far comes back.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let go_on = |done: f64| {
    ///     eprintln!("{:.0} %", 100.0 * done);
    ///     true
    /// };
    /// assert_eq!(model.most_probable(1).progress(&go_on).run()?.len(), 1);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn progress(mut self, progress: &'m (dyn Fn(f64) -> bool + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Is there room for the rows that are found, and for those that trees begin with?
    fn check_room(&self) -> Result<()> {
        let columns = self.model.schema().variables.len() as u64;
        // Codes, twice while they are sorted, and what a list needs besides.
        let bytes = |rows: usize| (rows as u64).saturating_mul(4 * columns + 100);
        let is_tree = self.model.core().members().iter().all(|member| member.is_of_trees());
        let begun = if is_tree { 0 } else { self.trees };
        let need = bytes(self.rows).saturating_add(bytes(begun));
        let need = need.saturating_add(self.model.memory_needed(Work::Search));
        let fits = memory::check("the rows of this search", need);
        Ok(fits.map_err(|error| Kind::Memory(error, "; fewer rows or `trees` take less"))?)
    }

    /// The rows, the most probable first.
    pub fn run(&self) -> Result<Vec<ProbableRow>> {
        if !(1..=MOST).contains(&self.rows) {
            return Err(Error::option("rows", self.rows, format!("between 1 and {MOST} rows")));
        }
        if self.rows.saturating_mul(self.model.schema().variables.len()) > MOST_CELLS {
            return Err(Error::option("rows", self.rows, format!("at most {MOST_CELLS} cells in all")));
        }
        self.check_room()?;
        let known = match self.missing_as_state {
            true => self.evidence.likelihoods().clone(),
            false => self.evidence.observed_only()?,
        };
        let search = Search { trees: self.trees, seed: self.seed, ..Search::default() };
        let go_on = self.progress.unwrap_or(&|_| true);
        let found =
            self.model.inference_for(Work::Search)?.most_probable_with(&known, self.rows, search, go_on)?;
        let row = |found: everytree_core::infer::MostProbable| ProbableRow {
            codes: found.row,
            log_p: found.log_p,
            proven: found.proven,
        };
        Ok(found.into_iter().map(row).collect())
    }
}
