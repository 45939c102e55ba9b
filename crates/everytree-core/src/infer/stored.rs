//! Questions to a kernel over stored rows: every row answers for itself, exactly, and is weighed by how well it explains the
//! evidence.

use super::InferError;
use super::estimate::Estimate;
use super::evidence::Evidence;
use super::measure::{Functions, Measure};
use super::method::Method;
use super::posterior::Expectation;
use crate::data::Codes;
use crate::model::{FamilyModel, Kernel};
use crate::util::{choose, log_sum, stream};
use rand::{Rng, RngExt};
use rayon::prelude::*;

/// Rows of one stream of random numbers.
const CHUNK: usize = 64;

/// A kernel with evidence.
pub(crate) struct KernelPosterior<'a> {
    kernel: &'a Kernel,
    likelihood: &'a [f64],
    offsets: Vec<usize>,
    ways: Vec<Way>,
    /// Weights added up, bandwidth after bandwidth and row after row.
    up_to: Vec<f64>,
    log_evidence: f64,
}

/// One bandwidth.
struct Way {
    bandwidth: f64,
    /// How well a stored row explains the evidence about each variable, by its state.
    factors: Vec<f64>,
    /// How probable each stored row is, together with this bandwidth.
    weights: Vec<f64>,
}

impl<'a> KernelPosterior<'a> {
    pub fn new(kernel: &'a Kernel, evidence: &'a Evidence) -> Self {
        Self::with(kernel, evidence.all())
    }

    /// The same from one likelihood a state.
    fn with(kernel: &'a Kernel, likelihood: &'a [f64]) -> Self {
        let one = |(bandwidth, log_weight): (f64, f64)| {
            let factors = kernel.factors(bandwidth, likelihood);
            let mut logs = kernel.rows().joint(&factors);
            logs.iter_mut().for_each(|log| *log += log_weight);
            (bandwidth, factors, logs)
        };
        let ways: Vec<(f64, Vec<f64>, Vec<f64>)> = kernel.bandwidths().map(one).collect();
        let log_evidence = log_sum(ways.iter().flat_map(|(_, _, logs)| logs.iter().copied()));
        let ways = ways.into_iter().map(|(bandwidth, factors, mut logs)| {
            match log_evidence {
                f64::NEG_INFINITY => logs.fill(0.0),
                sum => logs.iter_mut().for_each(|log| *log = (*log - sum).exp()),
            }
            Way { bandwidth, factors, weights: logs }
        });
        let ways: Vec<Way> = ways.collect();
        let add = |sum: &mut f64, weight: &f64| {
            *sum += weight;
            Some(*sum)
        };
        let up_to = ways.iter().flat_map(|way| &way.weights).scan(0.0, add).collect();
        let offsets = kernel.rows().offsets().to_vec();
        Self { kernel, likelihood, offsets, ways, up_to, log_evidence }
    }

    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// The posterior of every state of every variable.
    pub fn posterior(&self) -> Vec<f64> {
        let mut posterior = self.over_factors();
        posterior.iter_mut().zip(self.likelihood).for_each(|(p, likelihood)| *p *= likelihood);
        posterior
    }

    /// The posterior over the likelihood: for each state `Σ weight · [(1 − ε) 1{s = r} + ε q(s)] / factor(r)`, where r is the state
    /// of the stored row.
    fn over_factors(&self) -> Vec<f64> {
        let n = self.offsets.len() - 1;
        let codes = self.kernel.rows().table().codes();
        let margins = self.kernel.margins();
        let mut sums = vec![0.0; self.offsets[n]];
        for Way { bandwidth, factors, weights } in &self.ways {
            // How much of all weight lies on stored rows with each state.
            let mut of_states = vec![0.0; sums.len()];
            for (row, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                for (v, offset) in self.offsets[..n].iter().enumerate() {
                    of_states[offset + codes.get(row, v)] += weight;
                }
            }
            for place in self.offsets.windows(2).map(|place| place[0]..place[1]) {
                let shares = of_states[place.clone()].iter_mut().zip(&factors[place.clone()]);
                shares.for_each(|(share, factor)| *share = if *share > 0.0 { *share / factor } else { 0.0 });
                let all: f64 = of_states[place.clone()].iter().sum();
                for state in place {
                    sums[state] += (1.0 - bandwidth) * of_states[state] + bandwidth * margins[state] * all;
                }
            }
        }
        sums
    }

    /// A row at random; none of evidence that is impossible.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> Option<Vec<u16>> {
        let (way, row) = self.a_row(rng.random())?;
        let Way { bandwidth, factors, .. } = &self.ways[way];
        let codes = self.kernel.rows().table().codes();
        let margins = self.kernel.margins();
        let cell = |(v, place): (usize, &[usize])| {
            let (own, state) = (place[0]..place[1], codes.get(row, v));
            let kept = (1.0 - bandwidth) * self.likelihood[place[0] + state];
            if rng.random::<f64>() * factors[place[0] + state] < kept {
                return state as u16;
            }
            let others: Vec<f64> = own.clone().map(|place| self.likelihood[place] * margins[place]).collect();
            choose(&others, rng.random()) as u16
        };
        Some(self.offsets.windows(2).enumerate().map(cell).collect())
    }

    /// The bandwidth and the stored row that a number between 0 and 1 falls on.
    fn a_row(&self, at: f64) -> Option<(usize, usize)> {
        let all = *self.up_to.last().filter(|all| **all > 0.0)?;
        // What rounding leaves over falls on the last that has any weight.
        let last = self.up_to.partition_point(|sum| *sum < all);
        let place = self.up_to.partition_point(|sum| *sum <= at * all).min(last);
        let rows = self.kernel.rows().count();
        Some((place / rows, place % rows))
    }

    /// The stored rows that explain the evidence best, each with the most probable state of every cell.
    pub fn most_probable(&self, count: usize) -> Vec<Vec<u16>> {
        let margins = self.kernel.margins();
        let mut best: Vec<(f64, usize, usize)> = Vec::new();
        for (number, way) in self.ways.iter().enumerate() {
            best.extend(
                way.weights
                    .iter()
                    .enumerate()
                    .filter(|(_, weight)| **weight > 0.0)
                    .map(|(row, w)| (*w, number, row)),
            );
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            best.truncate(count);
        }
        let codes = self.kernel.rows().table().codes();
        let row_of = |(_, way, row): (f64, usize, usize)| {
            let bandwidth = self.ways[way].bandwidth;
            let cell = |(v, place): (usize, &[usize])| {
                let stored = place[0] + codes.get(row, v);
                let worth = |state: usize| {
                    let kept = if state == stored { 1.0 - bandwidth } else { 0.0 };
                    self.likelihood[state] * (kept + bandwidth * margins[state])
                };
                let best = (place[0]..place[1])
                    .reduce(|best, next| if worth(next) > worth(best) { next } else { best });
                (best.unwrap_or(stored) - place[0]) as u16
            };
            self.offsets.windows(2).enumerate().map(cell).collect()
        };
        best.into_iter().map(row_of).collect()
    }
}

/// The logarithm of the probability of evidence.
pub(super) fn log_evidence(kernel: &Kernel, evidence: &Evidence) -> f64 {
    let one = |(bandwidth, log_weight): (f64, f64)| {
        let joint = kernel.rows().joint(&kernel.factors(bandwidth, evidence.all()));
        log_weight + log_sum(joint.iter().copied())
    };
    log_sum(kernel.bandwidths().map(one).collect::<Vec<_>>().into_iter())
}

/// Means of functions, as of random trees, but exact.
pub(super) fn means(
    kernel: &Kernel,
    evidence: &Evidence,
    functions: Functions<'_>,
) -> Result<Expectation, InferError> {
    let told = KernelPosterior::new(kernel, evidence);
    let log_evidence = told.log_evidence();
    if log_evidence == f64::NEG_INFINITY {
        return Err(InferError::Impossible);
    }
    let values = match (functions.measure, functions.projection) {
        (Measure::Posterior | Measure::Row, None) => told.posterior(),
        (Measure::Posterior | Measure::Row, Some(projection)) => projection.of(&told.posterior()),
        // There are none.
        (Measure::Edges, _) => kernel.weights(),
        (Measure::Nothing, _) => Vec::new(),
    };
    Ok(Expectation::exact(values, log_evidence))
}

/// Rows at random, independent and exact.
pub(super) fn sample(
    kernel: &Kernel,
    evidence: &Evidence,
    count: usize,
    seed: u64,
) -> Result<Vec<Vec<u16>>, InferError> {
    let told = KernelPosterior::new(kernel, evidence);
    let chunks: Option<Vec<Vec<Vec<u16>>>> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut rng = stream(seed, "samples of a kernel", chunk as u64);
            (chunk * CHUNK..count.min((chunk + 1) * CHUNK)).map(|_| told.draw(&mut rng)).collect()
        })
        .collect();
    Ok(chunks.ok_or(InferError::Impossible)?.into_iter().flatten().collect())
}

/// Logarithms of how much more probable a row would be with another state in one place.
pub(super) fn changes(kernel: &Kernel, row: &[u16]) -> Vec<f64> {
    let evidence = Evidence::of_row(kernel.rows().states(), row);
    let told = KernelPosterior::new(kernel, &evidence);
    // `Σ weight · f(s | r) / f(x_v | r)`
    told.over_factors().into_iter().map(f64::ln).collect()
}

/// The joint distribution of two variables, `[a][b]`.
pub(super) fn joint(kernel: &Kernel, u: usize, v: usize) -> Vec<f64> {
    let rows = kernel.rows();
    let (k_u, k_v) = (rows.states()[u], rows.states()[v]);
    let offsets = rows.offsets();
    let (q_u, q_v) = (&kernel.margins()[offsets[u]..][..k_u], &kernel.margins()[offsets[v]..][..k_v]);
    let codes: Codes<'_> = rows.table().codes();
    let mut stored = vec![0.0; k_u * k_v];
    for (row, log_weight) in rows.log_weights().iter().enumerate() {
        stored[codes.get(row, u) * k_v + codes.get(row, v)] += log_weight.exp();
    }
    let of_u: Vec<f64> = stored.chunks_exact(k_v).map(|line| line.iter().sum()).collect();
    let of_v: Vec<f64> = (0..k_v).map(|b| stored.iter().skip(b).step_by(k_v).sum()).collect();
    let mut joint = vec![0.0; k_u * k_v];
    for (width, log_weight) in kernel.bandwidths() {
        // Both cells are those of the stored row, one is, or none.
        let (keep, weight) = (1.0 - width, log_weight.exp());
        for (place, p) in joint.iter_mut().enumerate() {
            let (a, b) = (place / k_v, place % k_v);
            let one = keep * width * (of_u[a] * q_v[b] + q_u[a] * of_v[b]);
            *p += weight * (keep * keep * stored[place] + one + width * width * q_u[a] * q_v[b]);
        }
    }
    joint
}

impl Expectation {
    /// Of values that are no estimates.
    fn exact(values: Vec<f64>, log_evidence: f64) -> Self {
        let exact = |value: f64| Estimate { value, standard_error: 0.0 };
        Self {
            method: Method::Exact,
            means: values.into_iter().map(exact).collect(),
            covariances: Vec::new(),
            log_evidence: exact(log_evidence),
            effective: f64::INFINITY,
            trees: 0,
            r_hat: None,
        }
    }
}
