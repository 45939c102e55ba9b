//! A kernel density over stored rows, after Aitchison and Aitken: every row that was learned from is the middle of a product
//! distribution, and the model is the mean of them.
//!
//! ```text
//! p(x) = Σ_b π_b Σ_i w_i Π_j [(1 − ε_b) 1{x_j = x_ij} + ε_b q_j(x_j)]
//! ```
//!
//! q are the margins, ε a few bandwidths. How much each bandwidth counts is found by leaving out one row after the other, so no rows
//! need be held out for it. There is no tree, and nothing else is learned. The rows themselves are in the model, and in its file.

mod bandwidths;
mod rows;

pub use rows::StoredRows;

use super::family::{ComponentShape, FamilyModel, FamilySpec, Initialisation, Preset, Trees};
use super::settings::{ALL_ROWS, Optimiser};
use super::{ComponentInference, Learnable, ModelError, ParamsView, Regularisation, Settings, UnseenStates};
use crate::data::{Codes, Table};
use crate::forest::Backend;
use crate::spanning::Kind;
use crate::util::{log_sum, offsets, softmax, stream};
use rand::RngExt;
use std::borrow::Cow;
use std::sync::Arc;

/// Weights and probabilities of a file add up to 1 as nearly as this.
const ROUNDING: f64 = 1e-10;
/// Learning begins at a thousandth; products of much less over many columns are no numbers.
const LEAST_BANDWIDTH: f64 = 1e-6;
/// Bandwidths at most.
const MAX_BANDWIDTHS: usize = 64;
/// Rows of a kernel at random, if nothing else is said.
const RANDOM_ROWS: usize = 8;

/// A kernel density.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Shared by all copies: they never change.
    rows: Arc<StoredRows>,
    bandwidths: Vec<f64>,
    /// The logarithms of what each bandwidth counts, which add up to 1.
    log_weights: Vec<f64>,
    /// `P(x_j = s)` of every state of every variable.
    margins: Vec<f64>,
}

impl Kernel {
    /// Rows that are there so many times, with all bandwidths, each as much as the other; the pseudocount is of the margins.
    pub fn over(
        states: &[usize],
        table: Table,
        weights: &[f64],
        pseudocount: f64,
    ) -> Result<Self, ModelError> {
        let total: f64 = weights.iter().sum();
        let mut margins = Vec::with_capacity(offsets(states)[states.len()]);
        for (v, &count) in states.iter().enumerate() {
            let mut own = vec![pseudocount / count as f64; count];
            weights.iter().enumerate().for_each(|(row, weight)| own[table.get(row, v)] += weight);
            let sum: f64 = own.iter().sum();
            margins.extend(own.into_iter().map(|count| count / sum));
        }
        let log_weights = weights.iter().map(|weight| (weight / total).ln()).collect();
        let rows = Arc::new(StoredRows::new(states, table, log_weights)?);
        let all = bandwidths::ALL.len();
        let log_weights = vec![-(all as f64).ln(); all];
        Ok(Self { rows, bandwidths: bandwidths::ALL.to_vec(), log_weights, margins })
    }

    /// The rows in the middle.
    pub fn rows(&self) -> &StoredRows {
        &self.rows
    }

    /// How far rows spread, each with the logarithm of its weight.
    pub fn bandwidths(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.bandwidths.iter().copied().zip(self.log_weights.iter().copied())
    }

    /// The probability of every state of a variable.
    pub fn margin(&self, variable: usize) -> &[f64] {
        &self.margins[self.rows.offsets()[variable]..self.rows.offsets()[variable + 1]]
    }

    /// The probability of every state of every variable.
    pub fn margins(&self) -> &[f64] {
        &self.margins
    }

    /// For a bandwidth and every state r of every variable, `Σ_s L(s) [(1 − ε) 1{s = r} + ε q(s)]`: how well a stored row with that
    /// state explains evidence with the likelihoods L, variable by variable.
    pub fn factors(&self, bandwidth: f64, likelihood: &[f64]) -> Vec<f64> {
        let offsets = self.rows.offsets();
        let mut factors = Vec::with_capacity(likelihood.len());
        for own in offsets.windows(2).map(|place| place[0]..place[1]) {
            let others: f64 =
                likelihood[own.clone()].iter().zip(&self.margins[own.clone()]).map(|(l, q)| l * q).sum();
            let factor = |l: &f64| (1.0 - bandwidth) * l + bandwidth * others;
            factors.extend(likelihood[own].iter().map(factor));
        }
        factors
    }

    /// About how many operations the probability of a row takes.
    pub(crate) fn operations(&self) -> f64 {
        2.0 * (self.rows.count() * self.margins.len() * self.bandwidths.len()) as f64 + 100.0
    }

    /// The natural logarithm of the probability of complete rows.
    pub fn log_p(&self, codes: Codes<'_>, out: &mut [f64]) -> Result<(), ModelError> {
        let offsets = self.rows.offsets();
        codes.check(offsets)?;
        let by_bandwidth = self.bandwidths.len();
        self.rows.log_sums(
            out.len(),
            by_bandwidth,
            |row, bandwidth, logs| self.log_factors(self.bandwidths[bandwidth], &codes, row, logs),
            |_| None,
            |_, logs, out| {
                *out = log_sum(logs.iter().zip(&self.log_weights).map(|(log, weight)| log + weight));
            },
            out,
        );
        Ok(())
    }

    /// The same for each bandwidth alone: row by row, a list of all bandwidths.
    pub fn log_p_by_bandwidth(&self, codes: Codes<'_>) -> Result<Vec<Vec<f64>>, ModelError> {
        codes.check(self.rows.offsets())?;
        let mut found = vec![Vec::new(); codes.rows()];
        self.rows.log_sums(
            found.len(),
            self.bandwidths.len(),
            |row, bandwidth, logs| self.log_factors(self.bandwidths[bandwidth], &codes, row, logs),
            |_| None,
            |_, logs, out: &mut Vec<f64>| *out = logs.to_vec(),
            &mut found,
        );
        Ok(found)
    }

    /// The logarithms of [`Kernel::factors`] where a row is known.
    fn log_factors(&self, bandwidth: f64, codes: &Codes<'_>, row: usize, logs: &mut [f64]) {
        let offsets = self.rows.offsets();
        for (v, place) in offsets.windows(2).enumerate() {
            let own = &mut logs[place[0]..place[1]];
            let state = codes.get(row, v);
            let other = bandwidth * self.margins[place[0] + state];
            own.fill(other.ln());
            own[state] = (1.0 - bandwidth + other).ln();
        }
    }
}

/// Rows are counted, and nothing else.
pub struct KernelStats {
    total: f64,
}

impl ParamsView for KernelStats {
    fn slices(&self) -> Vec<&[f64]> {
        vec![std::slice::from_ref(&self.total)]
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        vec![std::slice::from_mut(&mut self.total)]
    }
}

/// There is nothing for an optimiser to change.
impl ParamsView for Kernel {
    fn slices(&self) -> Vec<&[f64]> {
        Vec::new()
    }

    fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        Vec::new()
    }
}

impl Learnable for Kernel {
    type Ready<B: Backend> = ();
    type Stats = KernelStats;

    fn states(&self) -> &[usize] {
        self.rows.states()
    }

    fn ready<B: Backend>(&self, _: &B) -> Result<(), ModelError> {
        Ok(())
    }

    fn refresh<B: Backend>(&self, _: &B, (): &mut ()) -> Result<(), ModelError> {
        Ok(())
    }

    fn log_likelihood<B: Backend>(
        &self,
        _: &B,
        (): &mut (),
        codes: Codes<'_>,
        out: &mut [f64],
    ) -> Result<(), ModelError> {
        self.log_p(codes, out)
    }

    fn stats<B: Backend>(&self, (): &()) -> KernelStats {
        KernelStats { total: 0.0 }
    }

    fn accumulate<B: Backend>(
        &self,
        _: &B,
        (): &mut (),
        _: Codes<'_>,
        weights: &[f64],
        stats: &mut KernelStats,
    ) -> Result<(), ModelError> {
        stats.total += weights.iter().sum::<f64>();
        Ok(())
    }

    fn gradient<B: Backend>(&self, (): &(), _: &KernelStats, _: &mut [f64]) {}

    /// Rows are no parameters.
    fn has_a_mean(&self) -> bool {
        false
    }

    /// It is what the counts say.
    fn maximise<B: Backend>(
        &mut self,
        (): &(),
        _: &KernelStats,
        _: Option<&KernelStats>,
        _: &Regularisation,
    ) -> bool {
        true
    }

    /// Margins are smoothed by a pseudocount: every state has a probability.
    fn smooth_unseen(&mut self, _: &[UnseenStates]) {}
}

impl FamilyModel for Kernel {
    const SPEC: FamilySpec = FamilySpec {
        name: "kernel",
        title: "kernel over stored rows",
        presets: &[Preset::one("kernel", "kernel density; the model stores the training rows")],
        trees: Trees::Stored,
        optimisers: &[Optimiser::Em],
        counted: true,
        shrinkage: false,
        ema: false,
        ..FamilySpec::USUAL
    };

    fn settings(_: usize) -> Settings {
        Settings {
            epochs: 1,
            batch_size: ALL_ROWS,
            optimiser: Optimiser::Em,
            regularisation: Regularisation { laplace: 1.0, ..Regularisation::default() },
            ..Settings::paper(0)
        }
    }

    fn from_counts(from: &Initialisation<'_>) -> Result<Self, ModelError> {
        let scale = from.data.row_scale();
        let weights: Vec<f64> = from.weights.iter().map(|weight| weight * scale).collect();
        let mut kernel = Self::over(from.states, from.data.table.clone(), &weights, from.pseudocount)?;
        kernel.weigh_bandwidths(&weights, from.seed, from.stop);
        Ok(kernel)
    }

    /// Rows, weights and margins at random.
    fn random(states: &[usize], shape: &ComponentShape, seed: u64) -> Result<Self, ModelError> {
        let mut rng = stream(seed, "a random kernel", 0);
        let count = shape.rows.unwrap_or(RANDOM_ROWS).max(1);
        let mut table = Table::new(states);
        for _ in 0..count {
            let row: Vec<u16> = states.iter().map(|&count| rng.random_range(0..count) as u16).collect();
            table.push(&row);
        }
        let mut logs = |count: usize| -> Vec<f64> {
            let own: Vec<f64> = (0..count).map(|_| rng.random::<f64>()).collect();
            softmax(&own).into_iter().map(f64::ln).collect()
        };
        let log_weights = logs(count);
        let margins = states.iter().flat_map(|&count| logs(count)).map(f64::exp).collect();
        let rows = Arc::new(StoredRows::new(states, table, log_weights)?);
        Ok(Self { rows, bandwidths: vec![0.05, 0.3], log_weights: logs(2), margins })
    }

    fn shape(&self) -> ComponentShape {
        ComponentShape { rows: Some(self.rows.count()), ..ComponentShape::default() }
    }

    fn list_names(_: &ComponentShape) -> &'static [&'static str] {
        &["rows.code", "rows.log_weight", "margins.probability", "bandwidths"]
    }

    fn lists(&self) -> Vec<Cow<'_, [f64]>> {
        let bandwidths: Vec<f64> = self.bandwidths().flat_map(|(width, log)| [width, log]).collect();
        vec![
            self.rows.words().into(),
            self.rows.log_weights().into(),
            (&self.margins).into(),
            bandwidths.into(),
        ]
    }

    fn from_numbers(states: &[usize], shape: &ComponentShape, numbers: Vec<f64>) -> Result<Self, ModelError> {
        let count = shape.rows.unwrap_or(0);
        let total = offsets(states)[states.len()];
        let words = StoredRows::words_of_a_row(states).saturating_mul(count);
        let rest = numbers.len().checked_sub(words.saturating_add(count).saturating_add(total));
        let bandwidths = rest.filter(|rest| rest.is_multiple_of(2)).map(|rest| rest / 2);
        let Some(bandwidths @ 1..=MAX_BANDWIDTHS) = bandwidths else {
            let what = format!("the list of a kernel over {count} rows");
            let expected = words.saturating_add(count).saturating_add(total).saturating_add(2);
            return Err(ModelError::Length { what, found: numbers.len(), expected });
        };
        let (own, rest) = numbers.split_at(words);
        let (log_weights, rest) = rest.split_at(count);
        let (margins, rest) = rest.split_at(total);
        let rows = StoredRows::of_words(states, count, own, log_weights.to_vec())?;
        for (v, place) in rows.offsets().windows(2).enumerate() {
            adds_up(&format!("the margin of variable {v}"), &margins[place[0]..place[1]])?;
        }
        let (widths, logs): (Vec<f64>, Vec<f64>) =
            (0..bandwidths).map(|b| (rest[2 * b], rest[2 * b + 1])).unzip();
        if let Some(&value) = widths.iter().find(|width| !(**width >= LEAST_BANDWIDTH && **width < 1.0)) {
            return Err(ModelError::Probability { what: "a bandwidth".to_owned(), value });
        }
        let shares: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        adds_up("the list of the weights of bandwidths", &shares)?;
        Ok(Self { rows: Arc::new(rows), bandwidths: widths, log_weights: logs, margins: margins.to_vec() })
    }

    fn structure_length(&self) -> usize {
        self.lists().iter().map(|list| list.len()).sum()
    }

    fn kind(&self) -> Kind {
        Kind::Directed
    }

    /// There are no edges: every variable is a root.
    fn weights(&self) -> Vec<f64> {
        let n = self.states().len();
        (0..n * n).map(|place| f64::from(u8::from(place / n == place % n))).collect()
    }

    fn degrees_of_freedom(&self) -> usize {
        self.rows.count() * self.states().len() + self.margins.len() + 2 * self.bandwidths.len()
    }

    fn prior_edges<B: Backend>(&self, (): &()) -> Vec<f64> {
        self.weights()
    }

    fn edge_counts(&self, stats: &KernelStats) -> Vec<f64> {
        self.weights().iter().map(|weight| weight * stats.total).collect()
    }

    fn inference(&self) -> Result<ComponentInference<'_>, ModelError> {
        Ok(ComponentInference::Stored(self))
    }
}

/// Is this a distribution without a zero?
fn adds_up(what: &str, probabilities: &[f64]) -> Result<(), ModelError> {
    if let Some(&value) = probabilities.iter().find(|p| !(**p > 0.0 && **p <= 1.0 + ROUNDING)) {
        return Err(ModelError::Probability { what: what.to_owned(), value });
    }
    let sum: f64 = probabilities.iter().sum();
    match (sum - 1.0).abs() <= ROUNDING {
        true => Ok(()),
        false => Err(ModelError::Sum { what: what.to_owned(), sum, expected: 1.0 }),
    }
}
