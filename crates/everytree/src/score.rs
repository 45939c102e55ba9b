//! The log-likelihood of every row of a table, as it goes by.

use crate::device::{Device, DeviceChoice, Scorer};
use crate::error::Interrupted;
use crate::input::Input;
use crate::model::AnswerEffort;
use crate::{Dataset, Error, Model, Result, Work};
use everytree_core::data::{Cells, Schema, States, Table, Variable};
use everytree_core::infer::{self, Estimate, Evidence, InferError, Inference, seed_of};
use everytree_read::{CellRules, FileFacts, ReadSettings, Row};
use rayon::prelude::*;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows at once: memory does not grow with the table.
const CHUNK: usize = 2048;
/// Rows at once on a device, which has more to do at a time.
const DEVICE_CHUNK: usize = 1 << 15;

/// Memory for what is known of incomplete rows, about.
const EVIDENCE_BYTES: usize = 1 << 24;

/// What becomes of a label that a model does not know.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// use everytree::Unknown;
/// let scoring = model.scoring().unknown(Unknown::Unobserved);
/// assert_eq!(scoring.run(&data)?.log_likelihoods.len(), 40);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unknown {
    /// An error that names the cell.
    #[default]
    Error,
    /// The cell counts as missing.
    Unobserved,
    /// The state "other" of its column; a column without one refuses it.
    Other,
}

impl Unknown {
    /// Does a model of these columns have what is asked for?
    pub(crate) fn check(self, schema: &Schema) -> Result<()> {
        let has_others = |variable: &Variable| matches!(variable.states, States::Others(_));
        if self == Self::Other && !schema.variables.iter().any(has_others) {
            // Only of more labels than are told apart some are others.
            let labels = |variable: &&Variable| matches!(variable.states, States::Texts(_));
            let most = schema.variables.iter().filter(labels).max_by_key(|variable| variable.states.len());
            let problem = match most.filter(|variable| variable.states.len() > 1) {
                Some(variable) => format!(
                    "this model has no state for other labels; fit it with `other = {}={}`: a column has one if that tells \
                     fewer labels apart than it has",
                    variable.name,
                    (variable.states.len() - 1).min(63)
                ),
                None => "this model has no state for other labels, nor columns of labels".to_owned(),
            };
            return Err(Error::option("unknown", "other", problem));
        }
        Ok(())
    }
}

/// How the rows of a table are scored.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").run(&data)?;
/// let mut worst = f64::INFINITY;
/// model.scoring().seed(1).stream(&data, &mut |score| {
///     worst = worst.min(score.value);
///     Ok(())
/// })?;
/// assert!(worst < 0.0);
/// # Ok::<(), everytree::Error>(())
/// ```
///
/// Everything that can be said about it:
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// use everytree::{DeviceChoice, ReadOptions, Unknown};
/// use std::sync::atomic::AtomicBool;
///
/// let (stop, note) = (AtomicBool::new(false), |text: String| eprintln!("{text}"));
/// let scoring = model
///     .scoring()
///     .missing_as_state(false)
///     .unknown(Unknown::Error)
///     .tolerance(0.01) // of rows with missing cells
///     .trees(1000)
///     .seed(1)
///     .read(ReadOptions::default().text()?)
///     .device(DeviceChoice::Cpu)
///     .stop(&stop)
///     .note(&note)
///     .on_rows(&|rows| eprintln!("{rows} rows"));
/// assert_eq!(scoring.run(&data)?.log_likelihoods.len(), 40);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone)]
pub struct Scoring<'a> {
    model: &'a Model,
    missing_as_state: bool,
    unknown: Unknown,
    effort: AnswerEffort,
    read: ReadSettings,
    device: DeviceChoice,
    stop: Option<&'a AtomicBool>,
    note: Option<&'a (dyn Fn(String) + Sync)>,
    on_rows: Option<&'a (dyn Fn(u64) + Sync)>,
    /// The numbers of the rows in the table that they come from, where it is not this one.
    numbers: Option<&'a [usize]>,
}

impl fmt::Debug for Scoring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing_as_state, unknown, effort, device, .. } = self;
        write!(f, "Scoring {{ {missing_as_state}, {unknown:?}, {effort:?}, {device} }}")
    }
}

/// How likely the rows of a table are. It prints as mean and standard error.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let score = model.score(&data)?;
/// assert_eq!(score.log_likelihoods.len(), 40);
/// assert!(score.to_string().ends_with("nats a row"));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// The log-likelihood of every row in nats, of incomplete rows that of what was observed.
    pub log_likelihoods: Vec<Estimate>,
    /// Their mean, by the weights of the rows.
    pub mean: f64,
    /// The standard error of the mean, if rows are independent draws.
    pub standard_error: f64,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ± {:.4} nats a row", self.mean, self.standard_error)
    }
}

/// What there was in a table that was streamed.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let streamed = model.scoring().stream(&data, &mut |_| Ok(()))?;
/// assert_eq!((streamed.rows, streamed.incomplete), (40, 0));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Streamed {
    /// Rows.
    pub rows: u64,
    /// Columns that the model does not know, and that were passed over.
    pub ignored: Vec<String>,
    /// Rows with missing cells.
    pub incomplete: usize,
    /// Cells with labels that the model does not know, and that were taken for missing.
    pub unknown: u64,
    /// The columns that tell rows apart.
    pub ids: Vec<String>,
}

impl Streamed {
    pub(crate) fn of(facts: FileFacts, incomplete: usize) -> Self {
        let FileFacts { rows, ignored, ids, unknown } = facts;
        Self { rows, ignored, incomplete, unknown, ids }
    }
}

impl<'a> Scoring<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            missing_as_state: false,
            unknown: Unknown::Error,
            effort: AnswerEffort { tolerance: 0.05, trees: 20_000, seed: 0 },
            read: ReadSettings::default(),
            device: DeviceChoice::Auto,
            stop: None,
            note: None,
            on_rows: None,
            numbers: None,
        }
    }

    /// Takes a missing cell for the state "missing", where training had missing cells in its column.
    pub fn missing_as_state(mut self, missing_as_state: bool) -> Self {
        self.missing_as_state = missing_as_state;
        self
    }

    /// What becomes of a label that the model does not know.
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// The standard error of the log-likelihood of an incomplete row that is good enough.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.effort.tolerance = tolerance;
        self
    }

    /// Most trees to draw for an incomplete row.
    pub fn trees(mut self, trees: usize) -> Self {
        self.effort.trees = trees;
        self
    }

    /// Seed of the random trees.
    pub fn seed(mut self, seed: u64) -> Self {
        self.effort.seed = seed;
        self
    }

    /// How text files are cut into fields.
    pub fn read(mut self, read: ReadSettings) -> Self {
        self.read = read;
        self
    }

    /// Where complete rows are scored.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = device;
        self
    }

    /// Ends with an error soon after this is set.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Who hears what there is to say of the device.
    pub fn note(mut self, note: &'a (dyn Fn(String) + Sync)) -> Self {
        self.note = Some(note);
        self
    }

    /// Who hears how many rows are done, now and then.
    pub fn on_rows(mut self, on_rows: &'a (dyn Fn(u64) + Sync)) -> Self {
        self.on_rows = Some(on_rows);
        self
    }

    pub(crate) fn rows_done(&self, rows: u64) {
        if let Some(on_rows) = self.on_rows {
            on_rows(rows);
        }
    }

    pub(crate) fn model(&self) -> &'a Model {
        self.model
    }

    /// Are missing cells states?
    pub(crate) fn takes_missing_as_state(&self) -> bool {
        self.missing_as_state
    }

    fn rules(&self) -> CellRules {
        CellRules {
            missing_is_a_state: self.missing_as_state,
            unknown_is_unobserved: self.unknown == Unknown::Unobserved,
            incomplete_rows: true,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.unknown.check(self.model.schema())?;
        self.effort.check()
    }

    /// An error if someone has asked to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Interrupted.into()),
            _ => Ok(()),
        }
    }

    /// What one row that is not complete may cost.
    pub(crate) fn effort(&self, row: u64) -> infer::Effort<'static> {
        let row = match self.numbers {
            Some(numbers) => numbers[row as usize] as u64,
            None => row,
        };
        infer::Effort {
            trees: self.effort.trees,
            tolerance: Some(self.effort.tolerance),
            // Numbers of its own for every row: errors do not add up.
            seed: seed_of(self.effort.seed, row),
            // A millisecond or so of enumeration: trees are faster than more of it.
            operations: 1e8,
            ..infer::Effort::default()
        }
    }

    /// Scores all rows of a dataset.
    pub fn run(&self, data: &Dataset) -> Result<Score> {
        let mut log_likelihoods = Vec::with_capacity(data.rows());
        self.stream(data, &mut |score| {
            log_likelihoods.push(score);
            Ok(())
        })?;
        let weight = |row: usize| data.weights().get(row).copied().unwrap_or(1.0);
        let weights: Vec<f64> = (0..log_likelihoods.len()).map(weight).collect();
        let total: f64 = weights.iter().sum();
        let both = || log_likelihoods.iter().map(|score: &Estimate| score.value).zip(&weights);
        let mean = both().map(|(log, weight)| weight * log).sum::<f64>() / total;
        let squares: f64 = both().map(|(log, weight)| weight * (log - mean).powi(2)).sum();
        let standard_error = (squares / (total - 1.0).max(1.0) / total).sqrt();
        Ok(Score { log_likelihoods, mean, standard_error })
    }

    /// Scores all rows of a table as it goes by, in order. Of a row with missing cells the score is the log-probability of what was
    /// observed.
    pub fn stream<'t>(
        &self,
        table: impl Into<Input<'t>>,
        sink: &mut dyn FnMut(Estimate) -> Result<()>,
    ) -> Result<Streamed> {
        self.stream_with_ids(table, &mut |_, score| sink(score))
    }

    /// The same, with the cells of the columns that tell rows apart.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("survey.csv");
    /// # use everytree::{Fit, ReadOptions};
    /// std::fs::write(&path, format!("id,smoker,cough\n{}", "p1,yes,yes\np2,no,no\n".repeat(20)))?;
    /// let survey = ReadOptions::default().id("id").open(&path)?;
    /// let model = Fit::new().family("moat").epochs(1).run(&survey)?;
    /// let mut last = String::new();
    /// model.scoring().stream_with_ids(path.as_path(), &mut |ids, _score| {
    ///     last = ids[0].clone();
    ///     Ok(())
    /// })?;
    /// assert_eq!(last, "p2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream_with_ids<'t>(
        &self,
        table: impl Into<Input<'t>>,
        sink: &mut dyn FnMut(&[String], Estimate) -> Result<()>,
    ) -> Result<Streamed> {
        self.check()?;
        let quiet = |_: String| ();
        let note: &(dyn Fn(String) + Sync) = self.note.unwrap_or(&quiet);
        let choice = match self.device {
            // Nothing for a GPU.
            DeviceChoice::Auto if self.model.core().is_of_trees() => DeviceChoice::Cpu,
            choice => choice,
        };
        let device = Device::find(choice, self.model.schema().variables.len(), &note)?;
        let scorer = Scorer::new(&device, self.model.core().single(), note)?;
        let inference = self.model.inference_for(Work::Score)?;
        let mut incomplete = 0;
        let at_once = if scorer.is_on_device() { DEVICE_CHUNK } else { CHUNK };
        // What is known of incomplete rows has a number for every state.
        let states: usize = inference.states().iter().sum();
        let at_once = at_once.min((EVIDENCE_BYTES / (8 * states.max(1))).max(64));
        let facts = self.chunks(table.into(), at_once, &mut |chunk| {
            incomplete += chunk.incomplete.len();
            let scores = chunk.scores(&inference, Some(&scorer), self)?;
            let ids = |row: usize| chunk.ids.get(row).map_or(&[][..], Vec::as_slice);
            if let Some(on_rows) = self.on_rows {
                on_rows(chunk.first + scores.len() as u64);
            }
            scores.into_iter().enumerate().try_for_each(|(row, score)| sink(ids(row), score))
        })?;
        Ok(Streamed::of(facts, incomplete))
    }

    /// All rows, some at a time.
    pub(crate) fn chunks(
        &self,
        table: Input<'_>,
        at_once: usize,
        on_chunk: &mut dyn FnMut(&Chunk) -> Result<()>,
    ) -> Result<FileFacts> {
        let schema = self.model.schema();
        let states = schema.states();
        let mut chunk = Chunk::new(schema);
        let facts = table.for_each_row(schema, &self.read, self.rules(), &mut |row| {
            chunk.take(row, &states)?;
            if chunk.rows.rows() == at_once {
                self.go_on()?;
                on_chunk(&chunk)?;
                chunk.next();
            }
            Ok(())
        })?;
        if chunk.rows.rows() > 0 {
            self.go_on()?;
            on_chunk(&chunk).map_err(|error| error.at(table.name()))?;
        }
        Ok(facts)
    }

    pub(crate) const fn chunk_size() -> usize {
        CHUNK
    }
}

/// The mean log-likelihood of rows with missing cells.
pub(crate) struct ObservedMean {
    pub mean: f64,
    /// Of the random trees.
    pub standard_error: f64,
    /// Of the rows.
    pub share: f64,
}

/// Scores the rows of a dataset whose missing cells are not states, as `score` does; where `stop` asks for an end, some of them,
/// from all over the table.
pub(crate) fn observed(model: &Model, data: &Dataset, stop: &dyn Fn() -> bool) -> Result<ObservedMean> {
    const PORTION: usize = 256;
    let portions = data.rows().div_ceil(PORTION).max(1);
    let (mut total, mut sum, mut variance) = (0.0, 0.0, 0.0);
    let all: f64 = if data.weights().is_empty() { data.rows() as f64 } else { data.weights().iter().sum() };
    let inference = model.inference_for(Work::Score)?;
    for first in 0..portions {
        let rows: Vec<usize> = (first..data.rows()).step_by(portions).collect();
        for (&row, score) in rows.iter().zip(scores_as_read(model, &inference, data, &rows)?) {
            let weight = data.weights().get(row).copied().unwrap_or(1.0);
            total += weight;
            sum += weight * score.value;
            variance += (weight * score.standard_error).powi(2);
        }
        if stop() {
            break;
        }
    }
    Ok(ObservedMean { mean: sum / total, standard_error: variance.sqrt() / total, share: total / all })
}

/// The log-likelihoods of some rows, as they were read: what is a state has its code, what is not was not observed.
pub(crate) fn scores_as_read(
    model: &Model,
    inference: &Inference<'_>,
    data: &Dataset,
    rows: &[usize],
) -> Result<Vec<Estimate>> {
    let states = data.states();
    let scoring = Scoring { numbers: Some(rows), ..Scoring::new(model) };
    let mut chunk = Chunk::new(data.schema());
    for &row in rows {
        let codes: Vec<u16> = (0..states.len()).map(|v| data.table().get(row, v) as u16).collect();
        let unobserved = data.missing().of(row);
        let numbers: Vec<f64> =
            chunk.numeric.iter().map(|(v, _)| data.number(row, *v).unwrap_or(f64::NAN)).collect();
        let of_row = Row { codes: &codes, numbers: &numbers, unobserved, unknown: &[], ids: &[] };
        chunk.take(of_row, &states)?;
    }
    chunk.scores(inference, None, &scoring)
}

/// Some rows of a table.
pub(crate) struct Chunk {
    /// The number of the first row.
    pub first: u64,
    /// Their codes; of cells that were not observed 0.
    pub rows: Table,
    /// What was observed of rows that are not complete, by their places, and the columns that were not observed.
    pub incomplete: Vec<(usize, Evidence, Vec<usize>)>,
    /// The cells that tell them apart, if there are any.
    pub ids: Vec<Vec<String>>,
    /// The logarithm of the density of their numbers within their cells; none where all columns are of labels.
    densities: Vec<f64>,
    /// The columns of these numbers.
    numeric: Vec<(usize, Cells)>,
}

impl Chunk {
    fn new(schema: &Schema) -> Self {
        let cells = |v: usize| match &schema.variables[v].states {
            States::Numbers(cells) => Some((v, cells.clone())),
            _ => None,
        };
        let numeric = (0..schema.variables.len()).filter_map(cells).collect();
        let rows = Table::new(&schema.states());
        Self { first: 0, rows, incomplete: Vec::new(), ids: Vec::new(), densities: Vec::new(), numeric }
    }

    fn take(&mut self, row: Row<'_>, states: &[usize]) -> Result<()> {
        // Of a row that is not complete the codes take a place, but are not looked at.
        if !row.unobserved.is_empty() {
            let mut evidence = Evidence::none(states);
            for v in (0..row.codes.len()).filter(|v| !row.unobserved.contains(v)) {
                evidence.set(v, &[row.codes[v].into()])?;
            }
            self.incomplete.push((self.rows.rows(), evidence, row.unobserved.to_vec()));
        }
        if !row.ids.is_empty() {
            self.ids.push(row.ids.to_vec());
        }
        if !self.numeric.is_empty() {
            let there = self.numeric.iter().zip(row.numbers);
            let there = there.filter(|((v, _), number)| !number.is_nan() && !row.unobserved.contains(v));
            self.densities.push(there.map(|((_, cells), number)| cells.log_density(*number)).sum());
        }
        self.rows.push(row.codes);
        Ok(())
    }

    fn next(&mut self) {
        self.first += self.rows.rows() as u64;
        self.rows.clear();
        self.incomplete.clear();
        self.densities.clear();
        self.ids.clear();
    }

    /// The score of every row.
    pub fn scores(
        &self,
        inference: &Inference<'_>,
        scorer: Option<&Scorer>,
        scoring: &Scoring<'_>,
    ) -> Result<Vec<Estimate>> {
        let on_device = scorer.map(|scorer| scorer.log_p(&self.rows)).transpose()?.flatten();
        let scores = match on_device {
            Some(mut scores) => {
                let doubtful: Vec<usize> = (0..scores.len()).filter(|&row| scores[row].is_nan()).collect();
                if !doubtful.is_empty() {
                    let again = inference.log_p(&self.rows.select(doubtful.iter().copied()))?;
                    doubtful.into_iter().zip(again).for_each(|(row, score)| scores[row] = score);
                }
                scores
            }
            None => inference.log_p(&self.rows)?,
        };
        let mut scores: Vec<Estimate> = scores.into_iter().map(sure).collect();
        let of_one = |(place, evidence, _): &(usize, Evidence, Vec<usize>)| {
            scoring.go_on()?;
            let row = self.first + *place as u64;
            // What can be enumerated in little time has been.
            let effort = infer::Effort { operations: 0.0, ..scoring.effort(row) };
            match inference.log_evidence(evidence, effort) {
                Err(InferError::Impossible) => Ok((*place, sure(f64::NEG_INFINITY))),
                other => {
                    let found = other.map_err(|error| crate::Error::from(error).at(format!("row {row}")))?;
                    Ok((*place, found))
                }
            }
        };
        // As many as cost little, and the few that cost less than random trees in any case.
        let at_once = ((1e8 / (self.rows.variables() as f64).powi(3)) as usize).clamp(32, AT_ONCE);
        let (few, many): (Vec<_>, Vec<_>) =
            self.incomplete.iter().partition(|(_, evidence, _)| completions(evidence) <= at_once);
        for (place, score) in self.completed(inference, &few, scoring)? {
            scores[place] = sure(score);
        }
        let estimates: Result<Vec<(usize, Estimate)>> = many.into_par_iter().map(of_one).collect();
        estimates?.into_iter().for_each(|(place, estimate)| scores[place] = estimate);
        scores.iter_mut().zip(&self.densities).for_each(|(score, density)| score.value += density);
        Ok(scores)
    }

    /// The scores of rows that can be completed in a few ways: all ways of many rows at once, each pattern once.
    fn completed(
        &self,
        inference: &Inference<'_>,
        rows: &[&(usize, Evidence, Vec<usize>)],
        scoring: &Scoring<'_>,
    ) -> Result<Vec<(usize, f64)>> {
        let n = self.rows.variables();
        let states = inference.states();
        // What is seen of a row: the codes, and one more than any code where nothing is.
        let seen = |(place, _, unobserved): &(usize, Evidence, Vec<usize>)| -> Vec<u16> {
            let code = |v: usize| match unobserved.contains(&v) {
                true => u16::MAX,
                false => self.rows.get(*place, v) as u16,
            };
            (0..n).map(code).collect()
        };
        let mut patterns: HashMap<Vec<u16>, Vec<usize>> = HashMap::new();
        for row in rows {
            patterns.entry(seen(row)).or_default().push(row.0);
        }
        let mut patterns: Vec<(Vec<u16>, Vec<usize>)> = patterns.into_iter().collect();
        // In the order of the rows, whatever the order of the map.
        patterns.sort_by_key(|(_, places)| places[0]);
        let mut scores = Vec::with_capacity(rows.len());
        let mut table = Table::new(states);
        let mut ends: Vec<usize> = Vec::new();
        let mut first = 0;
        for (number, (pattern, _)) in patterns.iter().enumerate() {
            complete(pattern, states, &mut table);
            ends.push(table.rows());
            if table.rows() < COMPLETIONS && number + 1 < patterns.len() {
                continue;
            }
            scoring.go_on()?;
            let logs = inference.log_p(&table)?;
            let mut begin = 0;
            for ((_, places), end) in patterns[first..=number].iter().zip(&ends) {
                let score = log_sum_exp(&logs[begin..*end]);
                scores.extend(places.iter().map(|&place| (place, score)));
                begin = *end;
            }
            (first, ends) = (number + 1, Vec::new());
            table.clear();
        }
        Ok(scores)
    }
}

/// Most ways to complete a row that are all scored.
const AT_ONCE: usize = 512;
/// Completed rows that are scored together.
const COMPLETIONS: usize = 1 << 14;

/// In how many ways a row can be completed; as many as there can be where they are too many to count.
fn completions(evidence: &Evidence) -> usize {
    let possible = |v: usize| evidence.of(v).iter().filter(|likelihood| **likelihood > 0.0).count();
    (0..evidence.variables()).map(possible).try_fold(1usize, usize::checked_mul).unwrap_or(usize::MAX)
}

/// Adds every way to complete a row.
fn complete(pattern: &[u16], states: &[usize], table: &mut Table) {
    let free: Vec<usize> = (0..pattern.len()).filter(|&v| pattern[v] == u16::MAX).collect();
    let mut row = pattern.to_vec();
    free.iter().for_each(|&v| row[v] = 0);
    loop {
        table.push(&row);
        // The next one, the last column fastest.
        let Some(&v) = free.iter().rev().find(|&&v| usize::from(row[v]) + 1 < states[v]) else { return };
        row[v] += 1;
        free.iter().filter(|&&later| later > v).for_each(|&later| row[later] = 0);
    }
}

/// The logarithm of a sum of exponentials.
fn log_sum_exp(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

pub(crate) fn sure(value: f64) -> Estimate {
    Estimate { value, standard_error: 0.0 }
}
