//! Joint tables of two variables with given margins, and how they change with their parameters (maths §4).
//!
//! A table of two categorical variables is here a matrix of `k_u × k_v` probabilities. Two parameterisations:
//!
//! - [`lambda`]: the paper's. States are taken in one after the other; every step is a pair of *binary* variables ("one of the
//!   states before" against "this one"), with a Fréchet interval of its own. With two states each it is the paper's
//!   binary parameterisation. `min(k_u, k_v) − 1` parameters: valid, but not every table can be had.
//! - [`sinkhorn`]: any positive matrix, scaled to the margins. `k_u · k_v` parameters; every positive table can be had.
//!
//! Both give the gradient of `Σ N[a][b] log P_uv(a, b)` by their own parameters and by the logarithms of the margins.

pub(crate) mod lambda;
pub(crate) mod sinkhorn;

use crate::forest::frechet::Binary;

/// A variable's probabilities, and what the pair tables need of them.
#[derive(Clone, Debug)]
pub(crate) struct Margin {
    pub p: Vec<f64>,
    pub log_p: Vec<f64>,
    /// `prefix[i] = P(0) + … + P(i − 1)`
    prefix: Vec<f64>,
    /// `steps[i]`: state i (1) against all states before it (0); `steps[0]` is not used.
    steps: Vec<Binary>,
}

impl Margin {
    /// From the logits that make it: none for one state, one for two, else one a state.
    pub fn from_logits(states: usize, logits: &[f64]) -> Self {
        match states {
            1 => Self::of(vec![1.0], vec![0.0]),
            2 => {
                let step = Binary::new(logits[0]);
                let log_p = step.p.map(f64::ln).to_vec();
                let prefix = vec![0.0, step.p[0], 1.0];
                Self { p: step.p.to_vec(), log_p, prefix, steps: vec![step, step] }
            }
            _ => {
                let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                // A probability of zero has no logarithm.
                let shifted: Vec<f64> = logits.iter().map(|&logit| (logit - most).max(-700.0)).collect();
                let log_sum = shifted.iter().map(|x| x.exp()).sum::<f64>().ln();
                let log_p: Vec<f64> = shifted.iter().map(|x| x - log_sum).collect();
                Self::of(log_p.iter().map(|x| x.exp()).collect(), log_p)
            }
        }
    }

    fn of(p: Vec<f64>, log_p: Vec<f64>) -> Self {
        let mut prefix = vec![0.0];
        for &p in &p {
            prefix.push(prefix[prefix.len() - 1] + p);
        }
        let step = |i: usize| Binary::new(if i == 0 { 0.0 } else { log_p[i] - prefix[i].ln() });
        let steps = (0..p.len()).map(step).collect();
        Self { p, log_p, prefix, steps }
    }

    /// Probabilities as they are, zeros and all.
    pub fn raw(p: Vec<f64>) -> Self {
        let log_p = p.iter().map(|p| p.ln()).collect();
        Self { prefix: Vec::new(), steps: Vec::new(), log_p, p }
    }

    /// A variable of two states as one.
    pub fn binary(&self) -> Binary {
        self.steps[1]
    }

    /// A derivative by the logit of a binary variable, as one by the logarithm of a probability.
    pub fn push_logit(&self, by_logit: f64, by_log_p: &mut [f64]) {
        // log P(1) − log P(0)
        by_log_p[1] += by_logit;
        by_log_p[0] -= by_logit;
    }

    pub fn states(&self) -> usize {
        self.p.len()
    }

    /// The logits of given probabilities.
    pub fn logits(p: &[f64]) -> Vec<f64> {
        match p.len() {
            1 => Vec::new(),
            2 => vec![(p[1] / p[0]).ln()],
            _ => p.iter().map(|p| p.ln()).collect(),
        }
    }

    /// How many logits a variable with so many states has.
    pub fn parameters(states: usize) -> usize {
        match states {
            1 => 0,
            2 => 1,
            _ => states,
        }
    }

    /// The derivatives by the logits, from those by the logarithms of the probabilities.
    pub fn pull_back(&self, by_log_p: &[f64], by_logits: &mut [f64]) {
        match self.states() {
            1 => {}
            2 => by_logits[0] += by_log_p[1] * self.p[0] - by_log_p[0] * self.p[1],
            _ => {
                let total: f64 = by_log_p.iter().sum();
                for ((logit, &by), &p) in by_logits.iter_mut().zip(by_log_p).zip(&self.p) {
                    *logit += by - p * total;
                }
            }
        }
    }
}
