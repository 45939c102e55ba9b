//! Log-likelihood of whole tables.

use super::engine::Engine;
use crate::data::{Table, Unique};
use crate::forest::Backend;
use crate::model::{Component, ComponentStats, Learnable, Mixture, ModelError};

/// Rows at once: the memory of an evaluation does not grow with the table.
const CHUNK: usize = 4096;

/// The log-likelihood of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Of every distinct row, in nats.
    pub log_likelihood: Vec<f64>,
    /// Over all rows.
    pub mean: f64,
}

impl Evaluation {
    /// Standard error of the mean over rows, if they are independent draws.
    pub fn standard_error(&self, data: &Unique) -> f64 {
        let rows = data.total();
        let spread = |(log, weight): (&f64, &f64)| weight * (log - self.mean).powi(2);
        let squares: f64 = self.log_likelihood.iter().zip(&data.weights).map(spread).sum();
        (squares / (rows - 1.0).max(1.0) / rows).sqrt()
    }
}

/// The log-likelihood of every distinct row under a model, and the mean over all rows.
pub fn evaluate<M: Learnable, E: Engine<M>>(
    model: &M,
    data: &Unique,
    engine: &E,
) -> Result<Evaluation, ModelError> {
    let mut log_likelihood = log_likelihoods(model, &data.table, engine)?;
    log_likelihood.iter_mut().zip(&data.log_shares).for_each(|(log, share)| *log += share);
    let sum: f64 = log_likelihood.iter().zip(&data.weights).map(|(log, weight)| log * weight).sum();
    Ok(Evaluation { log_likelihood, mean: sum / data.total() })
}

/// The log-likelihood of every row of a table under a model.
pub fn log_likelihoods<M: Learnable, E: Engine<M>>(
    model: &M,
    table: &Table,
    engine: &E,
) -> Result<Vec<f64>, ModelError> {
    if let Some(mut found) = engine.log_likelihoods(model, table)? {
        let doubtful: Vec<usize> = (0..found.len()).filter(|&row| found[row].is_nan()).collect();
        if !doubtful.is_empty() {
            let rows = table.select(doubtful.iter().copied());
            let again = by_the_model(model, &rows, engine)?;
            doubtful.into_iter().zip(again).for_each(|(row, log)| found[row] = log);
        }
        return Ok(found);
    }
    by_the_model(model, table, engine)
}

/// The same by the model, with the backend's forests.
fn by_the_model<M: Learnable, B: Backend>(
    model: &M,
    table: &Table,
    engine: &B,
) -> Result<Vec<f64>, ModelError> {
    let mut ready = model.ready(engine)?;
    let rows = table.rows();
    let mut log_likelihood = vec![0.0; rows];
    for start in (0..rows).step_by(CHUNK) {
        let some = start..(start + CHUNK).min(rows);
        let out = &mut log_likelihood[some.clone()];
        model.log_likelihood(engine, &mut ready, table.some(some), out)?;
    }
    Ok(log_likelihood)
}

/// For every component, the share of rows that are its own and whose tree has each edge: an `n × n` matrix in the layout of
/// [`Kind`](crate::spanning::Kind). Over all components they add up to how probable every edge is given a row, on average.
pub fn edge_posteriors<B: Backend>(
    model: &Mixture<Component>,
    data: &Unique,
    backend: &B,
) -> Result<Vec<Vec<f64>>, ModelError> {
    let mut ready = model.ready(backend)?;
    let mut stats = model.stats(&ready);
    let rows = data.table.rows();
    let mut log_likelihood = vec![0.0; CHUNK.min(rows)];
    // Smaller chunks: what is kept between forward and backward takes memory.
    for start in (0..rows).step_by(CHUNK / 8) {
        let some = start..(start + CHUNK / 8).min(rows);
        let codes = data.table.some(some.clone());
        model.log_likelihood(backend, &mut ready, codes, &mut log_likelihood[..some.len()])?;
        model.accumulate(backend, &mut ready, codes, &data.weights[some], &mut stats)?;
    }
    let total = data.total();
    let both = model.components().iter().zip(stats.components());
    let edges = |(component, stats): (&Component, &ComponentStats)| {
        component.edge_counts(stats).into_iter().map(|weight| weight / total).collect()
    };
    Ok(both.map(edges).collect())
}
