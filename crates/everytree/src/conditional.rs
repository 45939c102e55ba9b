//! One column given the others, row by row: its distribution, and the surprisal of its values.
//!
//! Of a complete row this is exact in every family: the row is scored with every value of the column in its place.

use crate::evidence::column;
use crate::input::Input;
use crate::score::{Chunk, Scoring, Streamed};
use crate::{Dataset, Error, Result};
use everytree_core::data::Table;
use everytree_core::infer::{Effort, Estimate, Evidence, InferError, Inference};
use rayon::prelude::*;

/// How surprising the rows of a table are, and their cells given the others: `−log p`, in nats.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
/// let surprisal = model.scoring().surprisal(&data)?;
/// let oddest = (0..40).max_by(|a, b| surprisal.rows[*a].total_cmp(&surprisal.rows[*b]));
/// assert!(oddest.is_some());
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Surprisal {
    /// Of every row.
    pub rows: Vec<f64>,
    /// Of every cell, row by row; NaN where it is missing.
    pub cells: Vec<Vec<f64>>,
}

impl Scoring<'_> {
    /// The distribution of one column given the others, for every row of a dataset; see [`Scoring::conditional_stream`].
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// let p = model.scoring().conditional(&data, "cough")?; // in the order of the labels: no, yes
    /// assert!(p[0][1].value > 0.8 && p[1][1].value < 0.2);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn conditional(&self, data: &Dataset, target: &str) -> Result<Vec<Vec<Estimate>>> {
        let mut all = Vec::new();
        self.conditional_stream(data, target, &mut |row| {
            all.push(row.to_vec());
            Ok(())
        })?;
        Ok(all)
    }

    /// The distribution of one column given the others, for every row of a table as it goes by; its own cell is not looked
    /// at. Exact where all other cells were observed, else estimated. Over the states that were observed in training, or
    /// over all, with the one for missing cells. Rows that are impossible whatever the column holds come as NaN.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let mut sure = 0;
    /// model.scoring().conditional_stream(&data, "cough", &mut |p| {
    ///     sure += usize::from(p.iter().any(|p| p.value > 0.8));
    ///     Ok(())
    /// })?;
    /// assert_eq!(sure, 40);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn conditional_stream<'t>(
        &self,
        table: impl Into<Input<'t>>,
        target: &str,
        sink: &mut dyn FnMut(&[Estimate]) -> Result<()>,
    ) -> Result<Streamed> {
        self.check()?;
        let schema = self.model().schema();
        let target = column(schema, target)?;
        let inference = &self.model().inference()?;
        let variable = &schema.variables[target];
        let states = if self.takes_missing_as_state() { variable.len() } else { variable.states.len() };
        let mut incomplete = 0;
        // A missing cell of the column is what is asked for, not a state.
        let reading = self.clone().missing_as_state(false);
        let facts = reading.chunks(table.into(), Scoring::chunk_size(), &mut |chunk| {
            let rows = chunk.rows.rows();
            let mut missing: Vec<Option<&(usize, Evidence, Vec<usize>)>> = vec![None; rows];
            chunk.incomplete.iter().for_each(|row| missing[row.0] = Some(row));
            let known = |row: usize| missing[row].is_none_or(|(_, _, columns)| columns[..] == [target]);
            let exact = with_every_state(inference, chunk, target, states)?;
            let estimated: Result<Vec<Option<Vec<Estimate>>>> = (0..rows)
                .into_par_iter()
                .map(|row| match missing[row] {
                    Some((place, evidence, _)) if !known(row) => {
                        self.go_on()?;
                        let number = chunk.first + *place as u64;
                        let others = without(evidence, target, inference.states())?;
                        posterior(inference, &others, target, states, self.effort(number))
                            .map_err(|error| error.at(format!("row {number}")))
                            .map(Some)
                    }
                    _ => Ok(None),
                })
                .collect();
            for (row, estimated) in estimated?.into_iter().enumerate() {
                match estimated {
                    Some(estimates) => {
                        incomplete += 1;
                        sink(&estimates)?;
                    }
                    None => sink(&normalised(&exact[row * states..(row + 1) * states]))?,
                }
            }
            Ok(())
        })?;
        Ok(Streamed::of(facts, incomplete))
    }

    /// The surprisal of every row and cell of a dataset: which rows are anomalies, and which of their cells make them so.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").run(&data)?;
    /// let surprisal = model.scoring().surprisal(&data)?;
    /// assert!(surprisal.cells[0][1] < surprisal.rows[0]);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn surprisal(&self, data: &Dataset) -> Result<Surprisal> {
        let mut all = Surprisal { rows: Vec::new(), cells: Vec::new() };
        self.surprisal_stream(data, &mut |row, cells| {
            all.rows.push(row.value);
            all.cells.push(cells.to_vec());
            Ok(())
        })?;
        Ok(all)
    }

    /// The surprisal of every row, `−log p(x)`, and of every cell of it given the others, `−log p(x_v | rest)`, of a table as
    /// it goes by; in nats. A cell that is missing comes as NaN.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let model = Fit::new().family("moat").epochs(2).run(&data)?;
    /// let mut most: f64 = 0.0;
    /// model.scoring().surprisal_stream(&data, &mut |row, _cells| {
    ///     most = most.max(row.value);
    ///     Ok(())
    /// })?;
    /// assert!(most > 0.0);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn surprisal_stream<'t>(
        &self,
        table: impl Into<Input<'t>>,
        sink: &mut dyn FnMut(Estimate, &[f64]) -> Result<()>,
    ) -> Result<Streamed> {
        self.check()?;
        let schema = self.model().schema();
        let inference = &self.model().inference()?;
        let mut incomplete = 0;
        let n = schema.variables.len();
        let facts = self.chunks(table.into(), Scoring::chunk_size(), &mut |chunk| {
            let rows = chunk.rows.rows();
            let scores = chunk.scores(inference, None, self)?;
            let mut cells = vec![f64::NAN; rows * n];
            for v in 0..n {
                let states = schema.variables[v].len();
                let logs = with_every_state(inference, chunk, v, states)?;
                for row in 0..rows {
                    let own = &logs[row * states..(row + 1) * states];
                    let p = normalised(own)[chunk.rows.get(row, v)].value;
                    cells[row * n + v] = -p.ln() + 0.0;
                }
            }
            let estimated: Result<Vec<(usize, Vec<f64>)>> = chunk
                .incomplete
                .par_iter()
                .map(|(place, evidence, columns)| {
                    self.go_on()?;
                    let number = chunk.first + *place as u64;
                    let cells: Result<Vec<f64>> = (0..n)
                        .map(|v| match columns.contains(&v) {
                            true => Ok(f64::NAN),
                            false => {
                                let others = without(evidence, v, inference.states())?;
                                let states = schema.variables[v].len();
                                let found = posterior(inference, &others, v, states, self.effort(number))?;
                                Ok(-found[chunk.rows.get(*place, v)].value.ln() + 0.0)
                            }
                        })
                        .collect();
                    Ok((*place, cells.map_err(|error| error.at(format!("row {number}")))?))
                })
                .collect();
            for (place, own) in estimated? {
                incomplete += 1;
                cells[place * n..(place + 1) * n].copy_from_slice(&own);
            }
            self.rows_done(chunk.first + rows as u64);
            scores.into_iter().zip(cells.chunks_exact(n)).try_for_each(|(score, cells)| {
                let surprisal = Estimate { value: -score.value + 0.0, ..score };
                sink(surprisal, cells)
            })
        })?;
        Ok(Streamed::of(facts, incomplete))
    }
}

/// The evidence but for one column.
fn without(evidence: &Evidence, column: usize, states: &[usize]) -> Result<Evidence, Error> {
    let mut others = Evidence::none(states);
    for u in (0..states.len()).filter(|&u| u != column) {
        if let Some(state) = evidence.state(u) {
            others.set(u, &[state])?;
        }
    }
    Ok(others)
}

/// The log-probability of all rows with every state of one column in its place, the states of a row together.
fn with_every_state(
    inference: &Inference<'_>,
    chunk: &Chunk,
    target: usize,
    states: usize,
) -> Result<Vec<f64>> {
    let n = inference.states().len();
    let mut table = Table::new(inference.states());
    let mut line = vec![0u16; n];
    for row in 0..chunk.rows.rows() {
        (0..n).for_each(|v| line[v] = chunk.rows.get(row, v) as u16);
        for state in 0..states {
            line[target] = state as u16;
            table.push(&line);
        }
    }
    Ok(inference.log_p(&table)?)
}

/// Logarithms up to a constant as probabilities.
fn normalised(logs: &[f64]) -> Vec<Estimate> {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| Estimate { value: weight / sum, standard_error: 0.0 }).collect()
}

/// Of one column, from what was observed, among its first states.
fn posterior(
    inference: &Inference<'_>,
    evidence: &Evidence,
    target: usize,
    states: usize,
    effort: Effort<'_>,
) -> Result<Vec<Estimate>> {
    let targets = [target];
    let found = match inference.posterior(evidence, None, Effort { targets: &targets, ..effort }) {
        Err(InferError::Impossible) => {
            return Ok(vec![Estimate { value: f64::NAN, standard_error: f64::NAN }; states]);
        }
        other => other?,
    };
    let some = &found.states[target][..states];
    let sum: f64 = some.iter().map(|estimate| estimate.value).sum();
    let share = |of: &Estimate| Estimate { value: of.value / sum, standard_error: of.standard_error / sum };
    Ok(some.iter().map(share).collect())
}
