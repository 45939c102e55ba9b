//! Enumeration of everything that is hidden.

use super::InferError;
use super::estimate::Sums;
use super::evidence::Evidence;
use super::measure::places;
use crate::data::Table;
use crate::model::{Density, EdgeTables, Likelihood, ModelError};
use crate::spanning::Elimination;

/// Rows at once.
const CHUNK: usize = 4096;

/// How many rows agree with the evidence; `None` beyond 2⁶³.
pub(crate) fn rows(evidence: &Evidence) -> Option<u64> {
    let possible = |v: usize| evidence.of(v).iter().filter(|likelihood| **likelihood > 0.0).count() as u64;
    (0..evidence.variables()).map(possible).try_fold(1u64, |rows, count| rows.checked_mul(count))
}

/// Calls `visit` with every row that agrees with the evidence and the logarithm of its probability times its likelihood.
pub(crate) fn each<D: Likelihood + ?Sized>(
    density: &D,
    evidence: &Evidence,
    visit: &mut dyn FnMut(&[u16], f64),
) -> Result<(), ModelError> {
    let n = evidence.variables();
    let possible: Vec<Vec<u16>> = (0..n)
        .map(|v| {
            (0..)
                .zip(evidence.of(v))
                .filter(|(_, likelihood)| **likelihood > 0.0)
                .map(|(state, _)| state)
                .collect()
        })
        .collect();
    if possible.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut place = vec![0usize; n];
    let mut table = Table::new(density.states());
    let mut log_p = Vec::new();
    let mut done = false;
    while !done {
        table.clear();
        while !done && table.rows() < CHUNK {
            let row: Vec<u16> = (0..n).map(|v| possible[v][place[v]]).collect();
            table.push(&row);
            // The next combination, the last variable fastest.
            match (0..n).rev().find(|&v| place[v] + 1 < possible[v].len()) {
                Some(v) => {
                    place[v] += 1;
                    place[v + 1..].fill(0);
                }
                None => done = true,
            }
        }
        log_p.resize(table.rows(), 0.0);
        density.log_p(table.codes(), &mut log_p)?;
        let mut row = vec![0u16; n];
        for (number, log_p) in log_p.iter().enumerate() {
            (0..n).for_each(|v| row[v] = table.get(number, v) as u16);
            let likelihood: f64 = (0..n).map(|v| evidence.of(v)[usize::from(row[v])].ln()).sum();
            visit(&row, log_p + likelihood);
        }
    }
    Ok(())
}

/// The posterior of every state of every variable, and the logarithm of the probability of the evidence.
pub(crate) fn posterior<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
) -> Result<(Vec<f64>, f64), ModelError> {
    let offsets = density.tables().offsets();
    let mut sums = Sums::new(offsets[evidence.variables()]);
    let mut ones = Vec::new();
    each(density, evidence, &mut |row, log| {
        ones.clear();
        ones.extend(places(offsets, row));
        sums.push_ones(log, &ones);
    })?;
    Ok(totals(&sums))
}

/// The posterior of every edge, in the layout of [`Kind`](crate::spanning::Kind), and the logarithm of the probability of the
/// evidence.
pub(crate) fn edges<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
) -> Result<(Vec<f64>, f64), InferError> {
    let n = evidence.variables();
    let elimination = Elimination::<f64>::new(density.kind(), n)?;
    let mut rates = density.rates().to_vec();
    let mut sums = Sums::new(n * n);
    let mut failed = None;
    each(density, evidence, &mut |row, log| {
        if log == f64::NEG_INFINITY || failed.is_some() {
            return;
        }
        density.rates_at(row, &mut rates);
        match elimination.one(&rates) {
            Ok((_, marginals)) => sums.push(log, &marginals),
            Err(error) => failed = Some(error),
        }
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(totals(&sums)),
    }
}

/// The logarithm of the probability of the evidence.
pub(crate) fn log_evidence<D: Density + ?Sized>(density: &D, evidence: &Evidence) -> Result<f64, ModelError> {
    let mut sums = Sums::new(0);
    each(density, evidence, &mut |_, log| sums.push(log, &[]))?;
    Ok(totals(&sums).1)
}

/// Means, and the logarithm of the sum of all weights.
fn totals(sums: &Sums) -> (Vec<f64>, f64) {
    let means = (0..sums.functions()).map(|i| sums.mean(i).value).collect();
    (means, sums.log_mean_weight().value + (sums.draws().max(1) as f64).ln())
}
