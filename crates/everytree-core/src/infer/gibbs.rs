//! Gibbs sampling as in the paper: one variable at a time given all others, each from as many likelihoods as it has states.
//!
//! It is here to be compared with: a sweep over the hidden variables costs as much as hundreds of random trees, and
//! neighbours that are bound to each other change slowly.

use super::InferError;
use super::block_gibbs::Start;
use super::chains::{CHAINS, Chains, Halves, Length, judge};
use super::evidence::Evidence;
use super::measure::{Functions, Space};
use crate::data::Table;
use crate::model::{Density, EdgeTables};
use crate::util::stream;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Chains of `sweeps` sweeps each, of which the first fifth does not count. All chains go together, so that their
/// likelihoods are computed together.
pub(crate) fn run<D: Density + ?Sized>(
    density: &D,
    evidence: &Evidence,
    functions: Functions<'_>,
    sweeps: usize,
    seed: u64,
) -> Result<Chains, InferError> {
    let start = Start::new(density, evidence)?;
    let begin = |chain: usize| {
        let rng = stream(seed, "gibbs", chain as u64);
        start.walk(rng).map(|walk| (walk.row, walk.rng))
    };
    let mut chains: Vec<(Vec<u16>, Pcg64)> = (0..CHAINS).map(begin).collect::<Result<_, _>>()?;
    let length = Length::of(sweeps);
    let offsets = density.tables().offsets();
    let mut halves: Vec<Halves> =
        chains.iter().map(|_| Halves::new(length, functions.count(density))).collect();
    let mut sweep = Sweep::new(density, evidence);
    let mut space = Space::default();
    for _ in 0..length.steps() {
        sweep.go(&mut chains)?;
        for ((row, _), halves) in chains.iter().zip(&mut halves) {
            if halves.counts() {
                halves.push(&functions.of_row(offsets, row, &mut space));
            } else {
                halves.pass();
            }
        }
    }
    Ok(judge(halves))
}

/// What a sweep over the hidden variables needs.
struct Sweep<'a, D: ?Sized> {
    density: &'a D,
    evidence: &'a Evidence,
    hidden: Vec<usize>,
    table: Table,
    log_p: Vec<f64>,
}

impl<'a, D: Density + ?Sized> Sweep<'a, D> {
    fn new(density: &'a D, evidence: &'a Evidence) -> Self {
        let hidden = (0..evidence.variables()).filter(|&v| evidence.state(v).is_none()).collect();
        Self { density, evidence, hidden, table: Table::new(density.states()), log_p: Vec::new() }
    }

    /// Every hidden variable of every chain once.
    fn go(&mut self, chains: &mut [(Vec<u16>, Pcg64)]) -> Result<(), InferError> {
        for &v in &self.hidden {
            let likelihood = self.evidence.of(v);
            self.table.clear();
            for (row, _) in chains.iter_mut() {
                let old = row[v];
                for state in 0..likelihood.len() {
                    row[v] = state as u16;
                    self.table.push(row);
                }
                row[v] = old;
            }
            self.log_p.resize(self.table.rows(), 0.0);
            self.density.log_p(self.table.codes(), &mut self.log_p)?;
            for ((row, rng), log_p) in chains.iter_mut().zip(self.log_p.chunks_exact(likelihood.len())) {
                let allowed = log_p.iter().zip(likelihood).filter(|(_, likelihood)| **likelihood > 0.0);
                let most = allowed.map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
                let weight = |(log, &likelihood): (&f64, &f64)| {
                    if likelihood > 0.0 { (log - most).exp() * likelihood } else { 0.0 }
                };
                let weights: Vec<f64> = log_p.iter().zip(likelihood).map(weight).collect();
                let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
                // The last state with any chance catches what rounding leaves over.
                for (state, weight) in weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0) {
                    row[v] = state as u16;
                    left -= weight;
                    if left < 0.0 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
