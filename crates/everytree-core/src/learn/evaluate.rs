//! Log-likelihood of whole tables.

use super::engine::Engine;
use super::pieces::Pieces;
use crate::data::{Table, Unique};
use crate::forest::Backend;
use crate::model::{Component, ComponentStats, Learnable, MANY_VARIABLES, Mixture, ModelError};
use crate::util::Stop;

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

/// A mean over rows, of all of them or of those that there was time for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanSoFar {
    /// The mean.
    pub mean: f64,
    /// Which share of the rows it is over, by weight: 1, or less where it was ended early.
    pub share: f64,
}

impl MeanSoFar {
    /// Over fewer rows than there are?
    pub fn is_partial(&self) -> bool {
        self.share < 1.0
    }
}

/// The mean log-likelihood of all rows under a model; where `stop` asks for an end, of some of them, from all over the table.
pub fn evaluate_until<M: Learnable, E: Engine<M>>(
    model: &M,
    data: &Unique,
    engine: &E,
    stop: Stop<'_>,
) -> Result<MeanSoFar, ModelError> {
    Evaluator::new(model, engine).mean_until(data, stop)
}

/// The log-likelihood of every row of a table under a model.
pub fn log_likelihoods<M: Learnable, E: Engine<M>>(
    model: &M,
    table: &Table,
    engine: &E,
) -> Result<Vec<f64>, ModelError> {
    Evaluator::new(model, engine).log_likelihoods(table)
}

/// A model that table after table is evaluated under: its tables are made once.
pub struct Evaluator<'a, M: Learnable, E: Engine<M>> {
    model: &'a M,
    engine: &'a E,
    /// Made when it is needed for the first time.
    ready: Option<M::Ready<E>>,
}

impl<'a, M: Learnable, E: Engine<M>> Evaluator<'a, M, E> {
    /// Nothing is computed yet.
    pub fn new(model: &'a M, engine: &'a E) -> Self {
        Self { model, engine, ready: None }
    }

    /// What is evaluated.
    pub fn model(&self) -> &'a M {
        self.model
    }

    /// The mean log-likelihood of all rows; where `stop` asks for an end, of some of them, from all over the table.
    pub fn mean_until(&mut self, data: &Unique, stop: Stop<'_>) -> Result<MeanSoFar, ModelError> {
        let mut log_likelihood = vec![None; data.table.rows()];
        let mut pieces = Pieces::new(data.table.rows(), stop);
        let mut some = data.table.alike();
        while let Some(places) = pieces.next() {
            data.table.gather(places.iter().copied(), &mut some);
            let found = self.log_likelihoods(&some)?;
            places.into_iter().zip(found).for_each(|(row, log)| log_likelihood[row] = Some(log));
        }
        let (mut sum, mut weight, mut complete) = (0.0, 0.0, true);
        for (row, (log, own)) in log_likelihood.iter().zip(&data.weights).enumerate() {
            match log {
                Some(log) => {
                    let share = data.log_shares.get(row).copied().unwrap_or(0.0);
                    (sum, weight) = (sum + (log + share) * own, weight + own);
                }
                None => complete = false,
            }
        }
        let total = data.total();
        match complete {
            true => Ok(MeanSoFar { mean: sum / total, share: 1.0 }),
            // Rounding does not make all of some.
            false => Ok(MeanSoFar { mean: sum / weight, share: (weight / total).min(1.0 - f64::EPSILON) }),
        }
    }

    fn log_likelihoods(&mut self, table: &Table) -> Result<Vec<f64>, ModelError> {
        let Some(mut found) = self.engine.log_likelihoods(self.model, table)? else {
            return self.by_the_model(table);
        };
        let doubtful: Vec<usize> = (0..found.len()).filter(|&row| found[row].is_nan()).collect();
        if !doubtful.is_empty() {
            let rows = table.select(doubtful.iter().copied());
            let again = self.by_the_model(&rows)?;
            doubtful.into_iter().zip(again).for_each(|(row, log)| found[row] = log);
        }
        Ok(found)
    }

    /// The same by the model, with the backend's forests.
    fn by_the_model(&mut self, table: &Table) -> Result<Vec<f64>, ModelError> {
        if self.ready.is_none() {
            self.ready = Some(self.model.ready(self.engine)?);
        }
        let Some(ready) = &mut self.ready else { unreachable!("made above") };
        let rows = table.rows();
        let mut log_likelihood = vec![0.0; rows];
        for start in (0..rows).step_by(CHUNK) {
            let some = start..(start + CHUNK).min(rows);
            let out = &mut log_likelihood[some.clone()];
            self.model.log_likelihood(self.engine, ready, table.some(some), out)?;
        }
        Ok(log_likelihood)
    }
}

/// For every component, the share of rows that are its own and whose tree has each edge: an `n × n` matrix in the layout of
/// [`Kind`](crate::spanning::Kind). Over all components they add up to how probable every edge is given a row, on average.
pub fn edge_posteriors<B: Backend>(
    model: &Mixture<Component>,
    data: &Unique,
    backend: &B,
) -> Result<Vec<Vec<f64>>, ModelError> {
    Ok(edge_posteriors_until(model, data, backend, &|| false)?.0)
}

/// The same, where `stop` asks for an end: of the first rows, some at least; the second value is their share of all.
pub fn edge_posteriors_until<B: Backend>(
    model: &Mixture<Component>,
    data: &Unique,
    backend: &B,
    stop: Stop<'_>,
) -> Result<(Vec<Vec<f64>>, f64), ModelError> {
    let mut ready = model.ready(backend)?;
    let mut stats = model.stats(&ready);
    let rows = data.table.rows();
    let mut log_likelihood = vec![0.0; CHUNK.min(rows)];
    // Smaller chunks: what is kept between forward and backward takes memory, and with many variables time.
    let chunk = if model.states().len() < MANY_VARIABLES { CHUNK / 8 } else { CHUNK / 64 };
    let mut done = 0;
    while done < rows && (done == 0 || !stop()) {
        let some = done..(done + chunk).min(rows);
        done = some.end;
        let codes = data.table.some(some.clone());
        model.log_likelihood(backend, &mut ready, codes, &mut log_likelihood[..some.len()])?;
        model.accumulate(backend, &mut ready, codes, &data.weights[some], &mut stats)?;
    }
    let all = data.total();
    let total = if done == rows { all } else { data.weights[..done].iter().sum() };
    let both = model.components().iter().zip(stats.components());
    let edges = |(component, stats): (&Component, &ComponentStats)| {
        component.edge_counts(stats).into_iter().map(|weight| weight / total).collect()
    };
    Ok((both.map(edges).collect(), total / all))
}
