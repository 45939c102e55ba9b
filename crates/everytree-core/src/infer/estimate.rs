//! Estimates with error bars, and sums from which they are made.

use serde::Serialize;

/// A number, and how far it may be off.
///
/// ```
/// use everytree_core::infer::Estimate;
///
/// let exact = Estimate { value: 0.25, standard_error: 0.0 };
/// assert_eq!(exact.value, 0.25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error; 0 where it is exact.
    pub standard_error: f64,
}

/// Sums over weighted draws of a vector of functions.
///
/// Weights are kept relative to the largest so far, so that nothing over- or underflows.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// Logarithm of the scale of all weights.
    log_scale: f64,
    draws: usize,
    /// `Σ w`, `Σ w²`
    weight: f64,
    square: f64,
    /// `Σ w f`, `Σ w² f`, `Σ w² f²`
    first: Vec<f64>,
    cross: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    pub fn new(functions: usize) -> Self {
        let zero = vec![0.0; functions];
        Self {
            log_scale: f64::NEG_INFINITY,
            draws: 0,
            weight: 0.0,
            square: 0.0,
            first: zero.clone(),
            cross: zero.clone(),
            second: zero,
        }
    }

    fn rescale(&mut self, log_scale: f64) {
        if log_scale <= self.log_scale {
            return;
        }
        let factor =
            if self.log_scale == f64::NEG_INFINITY { 0.0 } else { (self.log_scale - log_scale).exp() };
        self.weight *= factor;
        self.square *= factor * factor;
        self.first.iter_mut().for_each(|sum| *sum *= factor);
        self.cross.iter_mut().chain(&mut self.second).for_each(|sum| *sum *= factor * factor);
        self.log_scale = log_scale;
    }

    /// One draw with the logarithm of its weight.
    pub fn push(&mut self, log_weight: f64, values: &[f64]) {
        self.draws += 1;
        if log_weight == f64::NEG_INFINITY {
            return;
        }
        self.rescale(log_weight);
        let weight = (log_weight - self.log_scale).exp();
        self.weight += weight;
        self.square += weight * weight;
        for (i, &value) in values.iter().enumerate() {
            self.first[i] += weight * value;
            self.cross[i] += weight * weight * value;
            self.second[i] += weight * weight * value * value;
        }
    }

    /// One draw of functions that are 1 at these places and 0 elsewhere.
    pub fn push_ones(&mut self, log_weight: f64, ones: &[usize]) {
        self.push(log_weight, &[]);
        if log_weight == f64::NEG_INFINITY {
            return;
        }
        let weight = (log_weight - self.log_scale).exp();
        for &i in ones {
            self.first[i] += weight;
            self.cross[i] += weight * weight;
            self.second[i] += weight * weight;
        }
    }

    /// The draws of another, after these.
    pub fn merge(&mut self, other: &Sums) {
        self.draws += other.draws;
        if other.log_scale == f64::NEG_INFINITY {
            return;
        }
        self.rescale(other.log_scale);
        let factor = (other.log_scale - self.log_scale).exp();
        self.weight += factor * other.weight;
        self.square += factor * factor * other.square;
        for i in 0..self.first.len() {
            self.first[i] += factor * other.first[i];
            self.cross[i] += factor * factor * other.cross[i];
            self.second[i] += factor * factor * other.second[i];
        }
    }

    pub fn functions(&self) -> usize {
        self.first.len()
    }

    pub fn draws(&self) -> usize {
        self.draws
    }

    /// How many draws of equal weight would be worth as much.
    pub fn effective(&self) -> f64 {
        if self.square > 0.0 { self.weight * self.weight / self.square } else { 0.0 }
    }

    /// The weighted mean of function i; by the delta method for a ratio.
    pub fn mean(&self, i: usize) -> Estimate {
        if self.weight == 0.0 {
            return Estimate { value: 0.0, standard_error: f64::INFINITY };
        }
        let mean = self.first[i] / self.weight;
        let spread = self.second[i] - 2.0 * mean * self.cross[i] + mean * mean * self.square;
        Estimate { value: mean, standard_error: spread.max(0.0).sqrt() / self.weight }
    }

    /// The covariance of the mean of function i and the logarithm of the mean weight, by the delta method.
    pub fn covariance(&self, i: usize) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        let mean = self.first[i] / self.weight;
        (self.cross[i] - mean * self.square) / (self.weight * self.weight)
    }

    /// The logarithm of the mean weight.
    pub fn log_mean_weight(&self) -> Estimate {
        let draws = self.draws as f64;
        if self.weight == 0.0 {
            return Estimate { value: f64::NEG_INFINITY, standard_error: f64::INFINITY };
        }
        let mean = self.weight / draws;
        let variance = (self.square / draws - mean * mean).max(0.0) / (draws - 1.0).max(1.0);
        Estimate { value: self.log_scale + mean.ln(), standard_error: variance.sqrt() / mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_how_they_are_cut_or_scaled() {
        let draws: Vec<(f64, f64)> =
            (0..40).map(|i| ((i as f64 * 0.7).sin() * 3.0, (i as f64 * 1.3).cos())).collect();
        let all = |shift: f64, cut: usize| {
            let mut total = Sums::new(1);
            for part in draws.chunks(cut) {
                let mut sums = Sums::new(1);
                part.iter().for_each(|(log, value)| sums.push(log + shift, &[*value]));
                total.merge(&sums);
            }
            total
        };
        let weights: Vec<f64> = draws.iter().map(|(log, _)| log.exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mean = draws.iter().zip(&weights).map(|((_, value), w)| w * value).sum::<f64>() / sum;
        let spread: f64 =
            draws.iter().zip(&weights).map(|((_, value), w)| (w * (value - mean)).powi(2)).sum();
        for (shift, cut) in [(0.0, 40), (0.0, 7), (-900.0, 40), (800.0, 3)] {
            let sums = all(shift, cut);
            let found = sums.mean(0);
            assert!((found.value - mean).abs() < 1e-12);
            assert!((found.standard_error - spread.sqrt() / sum).abs() < 1e-12);
            let log = sums.log_mean_weight();
            assert!((log.value - shift - (sum / 40.0).ln()).abs() < 1e-9);
            assert!(sums.effective() > 1.0 && sums.effective() < 40.0);
        }
    }
}
