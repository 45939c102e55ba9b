//! Imputation: missing cells, and what fills them.

use crate::condition::Range;
use crate::error::{Interrupted, Kind};
use crate::input::Input;
use crate::score::Unknown;
use crate::{Dataset, Error, Model, Result, Work};
use everytree_core::data::{Missing, Schema, States, Table, Variable};
use everytree_core::infer::{Effort, Estimate, Evidence, InferError, Inference, Sampling, Search, seed_of};
use everytree_read::{CellRules, ReadSettings};
use rayon::prelude::*;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations of enumeration for one row: a few milliseconds. Trees are faster than more of it.
const OPERATIONS: f64 = 3e8;

/// How missing cells are filled.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// use everytree::ImputeMethod;
/// let incomplete = Dataset::from_columns([("smoker", vec![Some("no")]), ("cough", vec![None])])?;
/// let drawn = model.imputation().method(ImputeMethod::Sample).seed(1).run(&incomplete)?;
/// assert!(drawn.is_complete());
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ImputeMethod {
    /// The most probable way to complete the row.
    #[default]
    Map,
    /// One way at random, as probable as the model says.
    Sample,
    /// Each cell alone: its most probable value; of columns of numbers, the value nearest to the mean.
    MeanState,
}

/// How the missing cells of a table are to be filled.
///
/// ```
/// # use everytree::{Dataset, Fit, ImputeMethod};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").run(&data)?;
/// let incomplete = Dataset::from_columns([("smoker", vec![Some("no")]), ("cough", vec![None])])?;
/// let cells = model.imputation().method(ImputeMethod::Map).probabilities(true).cells(&incomplete)?.cells;
/// assert_eq!((cells[0].row, cells[0].variable, cells[0].state), (0, 1, 0));
/// assert!(cells[0].probability.unwrap().value > 0.8);
/// # Ok::<(), everytree::Error>(())
/// ```
///
/// Files as they go by, with a way to stop and with progress:
///
/// ```
/// # use everytree::{Dataset, Fit};
/// use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("new.csv");
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(1).run(&data)?;
/// std::fs::write(&path, "smoker;cough\nyes;\n;no\n")?;
/// let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
/// let on_row = |_: usize| _ = done.fetch_add(1, Ordering::Relaxed);
/// let read = everytree::ReadOptions::default().delimiter(';').text()?;
/// let imputed = model.imputation().read(read).stop(&stop).on_row(&on_row).cells(path.as_path())?;
/// assert_eq!((imputed.cells.len(), done.into_inner()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Imputation<'a> {
    model: &'a Model,
    method: ImputeMethod,
    probabilities: bool,
    unknown: Unknown,
    seed: u64,
    read: ReadSettings,
    stop: Option<&'a AtomicBool>,
    on_row: Option<&'a (dyn Fn(usize) + Sync)>,
    given: Option<crate::Evidence<'a>>,
}

impl std::fmt::Debug for Imputation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, probabilities, unknown, seed, .. } = self;
        write!(f, "Imputation {{ {method:?}, {probabilities}, {unknown:?}, {seed} }}")
    }
}

/// A row with missing cells.
struct IncompleteRow {
    row: u64,
    codes: Vec<u16>,
    /// Variables whose cells were not observed.
    unobserved: Vec<usize>,
    /// Those of them that are to be filled.
    missing: Vec<usize>,
}

/// One filled cell.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let incomplete = Dataset::from_columns([("smoker", vec![Some("no")]), ("cough", vec![None])])?;
/// let cell = model.imputation().cells(&incomplete)?.cells[0];
/// assert_eq!(model.schema().variables[cell.variable].label(cell.state), "no");
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ImputedCell {
    /// Its row.
    pub row: u64,
    /// Its column.
    pub variable: usize,
    /// What fills it.
    pub state: usize,
    /// How probable that is, if that was wanted.
    pub probability: Option<Estimate>,
    /// The numbers that evidence allows in its column, if it is about numbers.
    range: Option<Range>,
}

impl ImputedCell {
    /// What is written into the cell: the label; of a bin, a number in it, and in the range that evidence gave.
    ///
    /// ```
    /// # use everytree::{Condition, Fit, ReadOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("ages.csv");
    /// # let rows: String = (0..40).map(|i| format!("{i},{}\n", if i < 20 { "young" } else { "old" })).collect();
    /// # std::fs::write(&path, format!("age,group\n{rows}"))?;
    /// let ages = ReadOptions::default().all_bins(4).open(&path)?;
    /// let model = Fit::new().family("chow-liu").run(&ages)?;
    /// # std::fs::write(&path, "age,group\n,young\n")?;
    /// let known = model.evidence().given_that("age", Condition::between(12.0, 13.0))?;
    /// let cell = model.imputation().evidence(known).cells(path.as_path())?.cells[0];
    /// assert_eq!(cell.text(model.schema()), "13");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text(&self, schema: &Schema) -> String {
        crate::evidence::cell(&schema.variables[self.variable], self.state, self.range)
    }
}

/// What fills the missing cells of a table.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let incomplete = Dataset::from_columns([("smoker", vec![Some("no"), None]), ("cough", vec![None, None])])?;
/// let imputed = model.imputation().cells(&incomplete)?;
/// assert_eq!((imputed.rows, imputed.incomplete_rows, imputed.cells.len()), (2, 2, 3));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImputedCells {
    /// In the order of the rows.
    pub cells: Vec<ImputedCell>,
    /// Rows of the table.
    pub rows: u64,
    /// Rows with cells to fill.
    pub incomplete_rows: usize,
    /// Columns that the model does not know, and that were passed over.
    pub ignored: Vec<String>,
    /// Cells with labels that the model does not know, and that stayed as they are.
    pub unknown: u64,
    /// Of every column the missing cells that nothing can fill, because training had no value of it.
    pub never_seen: Vec<usize>,
}

impl IncompleteRow {
    /// The observed cells as evidence; of what is to be filled, that it is one of the values seen in training.
    fn evidence(&self, schema: &Schema, given: Option<&crate::Evidence<'_>>) -> Result<Evidence> {
        let mut evidence = Evidence::none(&schema.states());
        for (v, variable) in schema.variables.iter().enumerate() {
            if self.missing.contains(&v) {
                let mut likelihoods = match given {
                    Some(given) => given.likelihoods().of(v).to_vec(),
                    None => vec![1.0; variable.len()],
                };
                // Nothing is no value, nor is "other", where there are values to choose from.
                likelihoods[values_of(variable)..].fill(0.0);
                evidence.soft(v, &likelihoods)?;
            } else if !self.unobserved.contains(&v) {
                evidence.set(v, &[self.codes[v].into()])?;
            }
        }
        Ok(evidence)
    }
}

impl<'a> Imputation<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            method: ImputeMethod::Map,
            probabilities: false,
            unknown: Unknown::Error,
            seed: 0,
            read: ReadSettings::default(),
            stop: None,
            on_row: None,
            given: None,
        }
    }

    /// How cells are filled.
    pub fn method(mut self, method: ImputeMethod) -> Self {
        self.method = method;
        self
    }

    /// Says how probable what fills a cell is.
    pub fn probabilities(mut self, probabilities: bool) -> Self {
        self.probabilities = probabilities;
        self
    }

    /// What becomes of a label that the model does not know; where it counts as missing it stays as it is.
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// Seed of everything random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What is known of missing cells, whatever their row: only such values fill them.
    ///
    /// ```
    /// # use everytree::{Condition, Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let incomplete = Dataset::from_columns([("smoker", vec![Some("no")]), ("cough", vec![None])])?;
    /// let known = model.evidence().given_that("cough", Condition::is_not("no"))?;
    /// assert_eq!(model.imputation().evidence(known).run(&incomplete)?.label(0, 1).as_deref(), Some("yes"));
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn evidence(mut self, given: crate::Evidence<'a>) -> Self {
        self.given = Some(given);
        self
    }

    /// How text files are cut into fields.
    pub fn read(mut self, read: ReadSettings) -> Self {
        self.read = read;
        self
    }

    /// Ends with an error soon after this is set.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Who is told after every row, with the number of rows that are to be filled.
    pub fn on_row(mut self, on_row: &'a (dyn Fn(usize) + Sync)) -> Self {
        self.on_row = Some(on_row);
        self
    }

    /// A copy of a dataset, in the states of the model, with its missing cells filled.
    pub fn run(&self, data: &Dataset) -> Result<Dataset> {
        let schema = self.model.schema();
        let whole = crate::columns::as_schema(data, schema, self.unknown)?.data;
        let mut table = Table::new(&schema.states());
        let mut cells = self.cells(data)?.cells.into_iter().peekable();
        let mut missing = Missing::default();
        let mut codes = vec![0u16; whole.columns()];
        for row in 0..whole.rows() {
            (0..codes.len()).for_each(|v| codes[v] = whole.table().get(row, v) as u16);
            let mut left = whole.missing().of(row).to_vec();
            while let Some(cell) = cells.next_if(|cell| cell.row == row as u64) {
                codes[cell.variable] = cell.state as u16;
                left.retain(|v| *v != cell.variable);
            }
            missing.push(row, left);
            table.push(&codes);
        }
        let made = Dataset::from_codes(Arc::clone(schema), table)?.with_missing(missing)?;
        made.with_weights(data.weights().to_vec())
    }

    /// What fills the missing cells of a table.
    pub fn cells<'t>(&self, table: impl Into<Input<'t>>) -> Result<ImputedCells> {
        let (table, schema) = (table.into(), self.model.schema());
        self.unknown.check(schema)?;
        let only_missing = |v: usize| {
            let likelihoods = self.given.as_ref().map(|given| given.likelihoods().of(v));
            let values = values_of(&schema.variables[v]);
            values > 0 && likelihoods.is_some_and(|all| all[..values].iter().all(|p| *p == 0.0))
        };
        if let Some(v) = (0..schema.variables.len()).find(|&v| only_missing(v)) {
            let problem = "missing cells are filled with values; evidence that leaves none cannot be given";
            return Err(Error::option("given", &schema.variables[v].name, problem));
        }
        let inference = self.model.inference_for(Work::Impute)?;
        let mut found = self.incomplete_rows(table)?;
        let cells: Result<Vec<Vec<ImputedCell>>> = found
            .0
            .par_iter()
            .map(|row| {
                if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Interrupted.into());
                }
                let filled = self.fill(schema, &inference, row);
                if let Some(on_row) = self.on_row {
                    on_row(found.0.len());
                }
                filled.map_err(|error| error.at(format!("{}: row {}", table.name(), row.row)))
            })
            .collect();
        found.1.cells = cells?.concat();
        Ok(found.1)
    }

    /// Rows with cells to fill.
    fn incomplete_rows(&self, table: Input<'_>) -> Result<(Vec<IncompleteRow>, ImputedCells)> {
        let schema = self.model.schema();
        let rules = CellRules {
            missing_is_a_state: false,
            unknown_is_unobserved: self.unknown == Unknown::Unobserved,
            incomplete_rows: true,
        };
        // A column that is left out has no cells to fill.
        let taken: Vec<bool> =
            schema.variables.iter().map(|variable| self.read.selection.takes(&variable.name)).collect();
        let mut rows = Vec::new();
        let mut never_seen = vec![0usize; schema.variables.len()];
        let mut number = 0;
        let facts = table.for_each_row(schema, &self.read, rules, &mut |row| {
            let fillable = |v: &usize| !schema.variables[*v].states.is_empty();
            let is_there = |v: &usize| !row.unknown.contains(v) && taken[*v];
            let (missing, lost): (Vec<usize>, Vec<usize>) =
                row.unobserved.iter().copied().filter(is_there).partition(fillable);
            lost.iter().for_each(|&v| never_seen[v] += 1);
            if !missing.is_empty() {
                let (codes, unobserved) = (row.codes.to_vec(), row.unobserved.to_vec());
                rows.push(IncompleteRow { row: number, codes, unobserved, missing });
            }
            number += 1;
            Ok(())
        })?;
        let incomplete_rows = rows.len();
        let found = ImputedCells {
            cells: Vec::new(),
            rows: facts.rows,
            incomplete_rows,
            ignored: facts.ignored,
            unknown: facts.unknown,
            never_seen,
        };
        Ok((rows, found))
    }

    /// What fills the cells of a row.
    fn fill(
        &self,
        schema: &Schema,
        inference: &Inference<'_>,
        row: &IncompleteRow,
    ) -> Result<Vec<ImputedCell>> {
        // Numbers of its own for every row.
        let seed = seed_of(self.seed, row.row);
        let evidence = &row.evidence(schema, self.given.as_ref())?;
        let effort = Effort {
            trees: 20_000,
            tolerance: Some(0.02),
            seed,
            targets: &row.missing,
            operations: OPERATIONS,
        };
        let posterior = if self.probabilities || self.method == ImputeMethod::MeanState {
            Some(inference.posterior(evidence, None, effort).map_err(explain)?)
        } else {
            None
        };
        let filled: Vec<u16> = match self.method {
            ImputeMethod::Map => {
                let search =
                    Search { trees: 64, climbs: 2, seed, operations: OPERATIONS, budget: 10.0 * OPERATIONS };
                let found = inference.most_probable(evidence, 1, search).map_err(explain)?;
                found.into_iter().next().map(|best| best.row).ok_or(Kind::ImpossibleRow)?
            }
            ImputeMethod::Sample => {
                let sampling = Sampling { seed, operations: OPERATIONS };
                inference.sample(evidence, 1, sampling).map_err(explain)?.0.swap_remove(0)
            }
            ImputeMethod::MeanState => {
                let mut filled = vec![0; inference.states().len()];
                if let Some(posterior) = &posterior {
                    for &v in &row.missing {
                        filled[v] = alone(&schema.variables[v], &posterior.states[v]);
                    }
                }
                filled
            }
        };
        let cell = |&variable: &usize| {
            let state = usize::from(filled[variable]);
            let probability =
                posterior.as_ref().filter(|_| self.probabilities).map(|found| found.states[variable][state]);
            let range = self.given.as_ref().and_then(|given| given.range(variable));
            ImputedCell { row: row.row, variable, state, probability, range }
        };
        Ok(row.missing.iter().map(cell).collect())
    }
}

/// How many states of a column stand for one value each; they come first.
fn values_of(variable: &Variable) -> usize {
    match &variable.states {
        States::Others(values) if !values.is_empty() => values.len(),
        states => states.len(),
    }
}

fn explain(error: InferError) -> Error {
    match error {
        InferError::Impossible | InferError::Unexplained { .. } => Kind::ImpossibleRow.into(),
        other => other.into(),
    }
}

/// The value of a cell alone: of numbers the one nearest to the mean, else the most probable.
fn alone(variable: &Variable, posterior: &[Estimate]) -> u16 {
    let numbers: Option<Vec<f64>> = match &variable.states {
        States::Integers(values) => Some(values.iter().map(|&value| value as f64).collect()),
        States::Reals(values) => Some(values.clone()),
        States::Numbers(cells) => Some((0..cells.len()).map(|state| cells.moments(state).0).collect()),
        States::Booleans(_) | States::Texts(_) | States::Others(_) | States::Bins(_) => None,
    };
    let seen = &posterior[..values_of(variable)];
    let best = match numbers {
        Some(numbers) => {
            let mean: f64 = numbers.iter().zip(seen).map(|(x, p)| x * p.value).sum();
            let off = |i: &usize| (numbers[*i] - mean).abs();
            (0..numbers.len()).min_by(|a, b| off(a).total_cmp(&off(b)))
        }
        // Of equals the first.
        None => (0..seen.len()).rev().max_by(|a, b| seen[*a].value.total_cmp(&seen[*b].value)),
    };
    best.unwrap_or(0) as u16
}
