//! Stacking: weights of models that were learned one by one, by what they say about rows that none of them has seen.

/// Rounds of expectation–maximisation at most, and the gain of a round below which there is nothing left to gain, in nats a row.
const ROUNDS: usize = 2000;
const LEAST_GAIN: f64 = 1e-10;
/// Members with less weight than this go.
const LEAST_WEIGHT: f64 = 0.01;

/// What models say about rows: the natural logarithm of the probability of each.
#[derive(Clone, Debug, Default)]
pub struct Stacking {
    /// Model by model.
    log_p: Vec<Vec<f64>>,
    /// How much every row counts; none: all the same.
    weights: Vec<f64>,
}

/// Models and how much each counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacked {
    /// By the numbers of the models; those that are left out have none.
    pub weights: Vec<f64>,
    /// The mean log-likelihood of the rows.
    pub mean: f64,
}

impl Stacking {
    /// Of rows that weigh so much each; none: all the same.
    pub fn new(weights: &[f64]) -> Self {
        Self { log_p: Vec::new(), weights: weights.to_vec() }
    }

    /// Adds a model.
    ///
    /// # Panics
    /// When the others, or the weights, are about another number of rows.
    pub fn push(&mut self, log_p: Vec<f64>) {
        let same = self.log_p.first().is_none_or(|first| first.len() == log_p.len());
        assert!(same && (self.weights.is_empty() || self.weights.len() == log_p.len()), "of the same rows");
        self.log_p.push(log_p);
    }

    /// How many models there are.
    pub fn models(&self) -> usize {
        self.log_p.len()
    }

    fn rows(&self) -> usize {
        self.log_p.first().map_or(0, Vec::len)
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// The mean of one number a row.
    pub fn mean(&self, of: &[f64]) -> f64 {
        let total: f64 = (0..of.len()).map(|row| self.weight(row)).sum();
        of.iter().enumerate().map(|(row, value)| self.weight(row) * value).sum::<f64>() / total
    }

    /// What one model says.
    pub fn log_p(&self, model: usize) -> &[f64] {
        &self.log_p[model]
    }

    /// The log-likelihood of every row under the models together.
    pub fn mixed(&self, weights: &[f64]) -> Vec<f64> {
        (0..self.rows()).map(|row| self.mixed_at(row, weights)).collect()
    }

    fn mixed_at(&self, row: usize, weights: &[f64]) -> f64 {
        let counting = || self.log_p.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let most = counting().map(|(logs, _)| logs[row]).fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return most;
        }
        most + counting().map(|(logs, weight)| weight * (logs[row] - most).exp()).sum::<f64>().ln()
    }

    /// The weights that make all rows together most probable, without models that count for little.
    pub fn fit(&self) -> Stacked {
        self.fit_on(&|_| true)
    }

    /// The same, by some of the rows.
    fn fit_on(&self, taken: &dyn Fn(usize) -> bool) -> Stacked {
        let rows: Vec<usize> = (0..self.rows()).filter(|&row| taken(row)).collect();
        let mut kept: Vec<usize> = (0..self.models()).collect();
        loop {
            let found = self.maximised(&rows, &kept);
            let most = found.iter().copied().fold(0.0, f64::max);
            let before = kept.len();
            // Of several that count for little all go at once, but never all there are.
            let counts = |weight: f64| weight >= LEAST_WEIGHT || weight == most;
            let left: Vec<usize> = kept
                .iter()
                .zip(&found)
                .filter(|(_, weight)| counts(**weight))
                .map(|(&model, _)| model)
                .collect();
            kept = left;
            if kept.len() == before {
                let mut weights = vec![0.0; self.models()];
                kept.iter().zip(found).for_each(|(&model, weight)| weights[model] = weight);
                let mixed = self.mixed(&weights);
                return Stacked { mean: self.mean(&mixed), weights };
            }
        }
    }

    /// Expectation–maximisation from equal weights.
    fn maximised(&self, rows: &[usize], kept: &[usize]) -> Vec<f64> {
        let k = kept.len();
        let mut weights = vec![1.0 / k as f64; k];
        // Relative to the best of each row; rows that are impossible under all say nothing.
        let mut relative: Vec<f64> = Vec::with_capacity(rows.len() * k);
        let mut counts: Vec<f64> = Vec::with_capacity(rows.len());
        for &row in rows {
            let most = kept.iter().map(|&model| self.log_p[model][row]).fold(f64::NEG_INFINITY, f64::max);
            if most > f64::NEG_INFINITY {
                relative.extend(kept.iter().map(|&model| (self.log_p[model][row] - most).exp()));
                counts.push(self.weight(row));
            }
        }
        let total: f64 = counts.iter().sum();
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let mut expected = vec![0.0; k];
            let mut log_likelihood = 0.0;
            for (own, count) in relative.chunks_exact(k).zip(&counts) {
                let p: f64 = own.iter().zip(&weights).map(|(p, weight)| p * weight).sum();
                log_likelihood += count * p.ln();
                let share = count / p;
                expected
                    .iter_mut()
                    .zip(own.iter().zip(&weights))
                    .for_each(|(sum, (p, w))| *sum += share * p * w);
            }
            if log_likelihood - before <= LEAST_GAIN * total {
                break;
            }
            before = log_likelihood;
            let sum: f64 = expected.iter().sum();
            weights.iter_mut().zip(expected).for_each(|(weight, own)| *weight = own / sum);
        }
        weights
    }

    /// The log-likelihood of every row under weights that were fitted to other rows: the rows are dealt out to folds, in turn.
    pub fn out_of_fold(&self, folds: usize) -> Vec<f64> {
        let folds = folds.min(self.rows()).max(2);
        let mut logs = vec![0.0; self.rows()];
        for fold in 0..folds {
            let weights = self.fit_on(&|row| row % folds != fold).weights;
            for row in (fold..self.rows()).step_by(folds) {
                logs[row] = self.mixed_at(row, &weights);
            }
        }
        logs
    }

    /// How much better the one says rows are than the other, in nats a row, and its standard error.
    pub fn gain(&self, over: &[f64], of: &[f64]) -> (f64, f64) {
        // What both rule out is no difference.
        let difference = |(of, over): (&f64, &f64)| if of == over { 0.0 } else { of - over };
        let differences: Vec<f64> = of.iter().zip(over).map(difference).collect();
        let mean = self.mean(&differences);
        let total: f64 = (0..of.len()).map(|row| self.weight(row)).sum();
        let squares: f64 =
            differences.iter().enumerate().map(|(row, d)| (self.weight(row) * (d - mean)).powi(2)).sum();
        let rows = of.len() as f64;
        (mean, (squares * rows / (rows - 1.0).max(1.0)).sqrt() / total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two coins, of which each row is one: the weights that maximise the likelihood are known in closed form.
    fn coins(heads: usize, of: usize) -> Stacking {
        let mut stacking = Stacking::new(&[]);
        let row = |row: usize| row < heads;
        stacking.push((0..of).map(|i| if row(i) { 0.9f64.ln() } else { 0.1f64.ln() }).collect());
        stacking.push((0..of).map(|i| if row(i) { 0.2f64.ln() } else { 0.8f64.ln() }).collect());
        stacking
    }

    #[test]
    fn weights_are_those_of_the_maximum() {
        // 0.2 + 0.7 w = 0.6 of the rows are heads.
        let found = coins(60, 100).fit();
        assert!((found.weights[0] - 4.0 / 7.0).abs() < 1e-4, "{found:?}");
        let entropy = 0.6 * 0.6f64.ln() + 0.4 * 0.4f64.ln();
        assert!((found.mean - entropy).abs() < 1e-8);
        // More heads than any mixture has: the other one goes.
        assert_eq!(coins(95, 100).fit().weights, [1.0, 0.0]);
    }

    #[test]
    fn rows_count_by_their_weights() {
        let mut weighted = Stacking::new(&[60.0, 40.0]);
        weighted.push(vec![0.9f64.ln(), 0.1f64.ln()]);
        weighted.push(vec![0.2f64.ln(), 0.8f64.ln()]);
        assert!((weighted.fit().weights[0] - coins(60, 100).fit().weights[0]).abs() < 1e-9);
    }

    #[test]
    fn rows_that_one_model_rules_out_do_no_harm() {
        let mut stacking = Stacking::new(&[]);
        stacking.push(vec![f64::NEG_INFINITY, -1.0, f64::NEG_INFINITY]);
        stacking.push(vec![-2.0, -3.0, f64::NEG_INFINITY]);
        let found = stacking.fit();
        assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found.weights[1] > 0.3);
        let mixed = stacking.mixed(&found.weights);
        assert!(mixed[0].is_finite() && mixed[2] == f64::NEG_INFINITY);
    }

    /// Of noise, weights that were fitted to the same rows look better than they are.
    #[test]
    fn out_of_fold_is_lower_than_in_sample() {
        let noise = |row: usize, model: usize| ((row * 7919 + model * 104_729) % 1000) as f64 / 1000.0 - 2.0;
        let mut stacking = Stacking::new(&[]);
        (0..6).for_each(|model| stacking.push((0..40).map(|row| noise(row, model)).collect()));
        let inside = stacking.fit();
        let outside = stacking.out_of_fold(5);
        assert!(stacking.mean(&outside) < inside.mean);
        let (gain, error) = stacking.gain(&outside, &stacking.mixed(&inside.weights));
        assert!(gain > 0.0 && error > 0.0);
    }
}
