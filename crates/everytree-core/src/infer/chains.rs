//! Means over chains, and how far to trust them.
//!
//! Every chain is cut into halves, and every half is a witness of its own: how much their means differ gives the standard
//! error, and, next to how much the chain moves within a half, split R-hat and the effective sample size.

use super::estimate::Estimate;
use super::measure::Values;

/// How many chains there are.
pub(crate) const CHAINS: usize = 16;

/// What the chains found.
pub(crate) struct Chains {
    pub estimates: Vec<Estimate>,
    /// The smallest over all functions.
    pub effective: f64,
    /// The largest over all functions: 1 where all halves of all chains tell the same.
    pub r_hat: f64,
    /// Steps of all chains, with those that do not count.
    pub steps: usize,
    /// The share of steps whose tree took an elimination.
    pub long: f64,
}

/// How long a chain is: steps that do not count, and steps of each half.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub warm_up: usize,
    pub half: usize,
}

impl Length {
    /// Of so many steps the first fifth does not count.
    pub fn of(steps: usize) -> Self {
        let half = (steps - steps / 5) / 2;
        Self { warm_up: steps - 2 * half, half }
    }

    pub fn steps(self) -> usize {
        self.warm_up + 2 * self.half
    }
}

/// Sums over the two halves of one chain.
pub(crate) struct Halves {
    length: Length,
    step: usize,
    /// `Σ f` and `Σ f²` of each half.
    sums: [[Vec<f64>; 2]; 2],
}

impl Halves {
    pub fn new(length: Length, functions: usize) -> Self {
        let zeros = || [vec![0.0; functions], vec![0.0; functions]];
        Self { length, step: 0, sums: [zeros(), zeros()] }
    }

    /// Does the next step count?
    pub fn counts(&self) -> bool {
        self.step >= self.length.warm_up
    }

    /// A step that does not count.
    pub fn pass(&mut self) {
        self.step += 1;
    }

    /// A step that does.
    pub fn push(&mut self, values: &Values<'_>) {
        let half = (self.step - self.length.warm_up) / self.length.half;
        self.step += 1;
        let [first, second] = &mut self.sums[half];
        match values {
            Values::Dense(values) => {
                for ((first, second), &value) in first.iter_mut().zip(second).zip(*values) {
                    *first += value;
                    *second += value * value;
                }
            }
            Values::Ones(ones) => {
                for &i in *ones {
                    first[i] += 1.0;
                    second[i] += 1.0;
                }
            }
        }
    }
}

/// All chains together.
pub(crate) fn judge(chains: Vec<Halves>) -> Chains {
    let length = chains[0].length;
    let steps = chains.len() * length.steps();
    let halves: Vec<[Vec<f64>; 2]> = chains.into_iter().flat_map(|chain| chain.sums).collect();
    let (count, length) = (halves.len() as f64, length.half as f64);
    let (mut effective, mut r_hat) = (f64::INFINITY, 1.0f64);
    let estimates = (0..halves[0][0].len())
        .map(|i| {
            let means: Vec<f64> = halves.iter().map(|[first, _]| first[i] / length).collect();
            let value = means.iter().sum::<f64>() / count;
            let between = means.iter().map(|mean| (mean - value).powi(2)).sum::<f64>() / (count - 1.0);
            let spread = |(half, mean): (&[Vec<f64>; 2], &f64)| (half[1][i] / length - mean * mean).max(0.0);
            let within = halves.iter().zip(&means).map(spread).sum::<f64>() / count * length / (length - 1.0);
            if within > 1e-20 && between > 0.0 {
                effective = effective.min(count * within / between).min(count * length);
                r_hat = r_hat.max(((length - 1.0) / length + between / within).sqrt());
            }
            // Chains that do not move, each somewhere else, have not mixed at all.
            if within <= 1e-20 && between > 1e-20 {
                effective = effective.min(count / 2.0);
                r_hat = f64::INFINITY;
            }
            Estimate { value, standard_error: (between / count).sqrt() }
        })
        .collect();
    Chains { estimates, effective: effective.min(count * length), r_hat, steps, long: 0.0 }
}
