//! One column given the others, row by row: its distribution, and how surprising its values are.
//!
//! Of a complete row this is exact in every family: the row is scored with every value of the column in its place.

use crate::score::{Chunk, Scored, Scoring};
use anyhow::{Context, Result};
use everytree_core::data::Schema;
use everytree_core::data::Table;
use everytree_core::infer::{AskedModel, Effort, Estimate, Evidence, InferError};
use everytree_read::Source;
use rayon::prelude::*;

impl Scoring<'_> {
    /// The distribution of one column given the others, for every row, in order; its own cell is not looked at where it is
    /// missing, and must be missing in the table. Exact where all other cells were observed, else estimated. Over the states
    /// that were observed in training, or over all, with the one for missing cells. Rows that are impossible whatever the
    /// column holds come as NaN.
    pub fn conditional(
        &self,
        source: Source<'_>,
        schema: &Schema,
        asked: &AskedModel<'_>,
        target: usize,
        sink: &mut dyn FnMut(&[Estimate]) -> Result<()>,
    ) -> Result<Scored> {
        let variable = &schema.variables[target];
        let states = if self.missing_as_state { variable.len() } else { variable.states.len() };
        let mut incomplete = 0;
        // A missing cell of the column is what is asked for, not a state.
        let reading = Scoring { missing_as_state: false, ..*self };
        let facts = reading.chunks(source, schema, asked, &mut |chunk| {
            let rows = chunk.rows.rows();
            let mut holes: Vec<Option<&(usize, Evidence, Vec<usize>)>> = vec![None; rows];
            chunk.incomplete.iter().for_each(|hole| holes[hole.0] = Some(hole));
            let known = |row: usize| holes[row].is_none_or(|(_, _, columns)| columns[..] == [target]);
            let exact = with_every_state(asked, chunk, target, states, &(0..rows).collect::<Vec<_>>())?;
            let estimated: Result<Vec<Option<Vec<Estimate>>>> = (0..rows)
                .into_par_iter()
                .map(|row| match holes[row] {
                    Some((place, evidence, _)) if !known(row) => {
                        self.go_on()?;
                        let number = chunk.first + *place as u64;
                        posterior(asked, evidence, target, states, self.effort(number))
                            .with_context(|| format!("row {number}"))
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
        Ok(Scored { facts, incomplete })
    }

    /// How surprising every row is, `−log p(x)`, and every cell of it given the others, `−log p(x_v | rest)`; in nats. A cell
    /// that was not observed comes as NaN.
    pub fn surprise(
        &self,
        source: Source<'_>,
        schema: &Schema,
        asked: &AskedModel<'_>,
        sink: &mut dyn FnMut(Estimate, &[f64]) -> Result<()>,
    ) -> Result<Scored> {
        let mut incomplete = 0;
        let n = schema.variables.len();
        let facts = self.chunks(source, schema, asked, &mut |chunk| {
            let rows = chunk.rows.rows();
            let scores = chunk.scores(asked, self)?;
            let mut cells = vec![f64::NAN; rows * n];
            let all: Vec<usize> = (0..rows).collect();
            for v in 0..n {
                let states = schema.variables[v].len();
                let logs = with_every_state(asked, chunk, v, states, &all)?;
                for row in 0..rows {
                    let own = &logs[row * states..(row + 1) * states];
                    let p = normalised(own)[chunk.rows.get(row, v)].value;
                    cells[row * n + v] = -p.ln() + 0.0;
                }
            }
            let holes: Result<Vec<(usize, Vec<f64>)>> = chunk
                .incomplete
                .par_iter()
                .map(|(place, evidence, columns)| {
                    self.go_on()?;
                    let number = chunk.first + *place as u64;
                    let cells: Result<Vec<f64>> = (0..n)
                        .map(|v| match columns.contains(&v) {
                            true => Ok(f64::NAN),
                            false => {
                                let mut others = Evidence::none(asked.states());
                                for u in (0..n).filter(|&u| u != v) {
                                    if let Some(state) = evidence.state(u) {
                                        others.set(u, &[state])?;
                                    }
                                }
                                let states = schema.variables[v].len();
                                let found = posterior(asked, &others, v, states, self.effort(number))?;
                                Ok(-found[chunk.rows.get(*place, v)].value.ln() + 0.0)
                            }
                        })
                        .collect();
                    Ok((*place, cells.with_context(|| format!("row {number}"))?))
                })
                .collect();
            for (place, own) in holes? {
                incomplete += 1;
                cells[place * n..(place + 1) * n].copy_from_slice(&own);
            }
            scores.into_iter().zip(cells.chunks_exact(n)).try_for_each(|(score, cells)| {
                let surprise = Estimate { value: -score.value + 0.0, ..score };
                sink(surprise, cells)
            })
        })?;
        Ok(Scored { facts, incomplete })
    }
}

/// The log-probability of these rows with every state of one column in its place, the states of a row together.
fn with_every_state(
    asked: &AskedModel<'_>,
    chunk: &Chunk,
    target: usize,
    states: usize,
    rows: &[usize],
) -> Result<Vec<f64>> {
    let n = asked.states().len();
    let mut table = Table::new(asked.states());
    let mut line = vec![0u16; n];
    for &row in rows {
        (0..n).for_each(|v| line[v] = chunk.rows.get(row, v) as u16);
        for state in 0..states {
            line[target] = state as u16;
            table.push(&line);
        }
    }
    Ok(asked.log_p(&table)?)
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
    asked: &AskedModel<'_>,
    evidence: &Evidence,
    target: usize,
    states: usize,
    effort: Effort<'_>,
) -> Result<Vec<Estimate>> {
    let targets = [target];
    let found = match asked.posterior(evidence, None, Effort { targets: &targets, ..effort }) {
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
