//! Sums and choices of weights of which only the logarithms are known.

/// `log Σ exp`
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// Probabilities in proportion to `exp`; all the same where nothing has any weight.
pub(crate) fn softmax(logs: &[f64]) -> Vec<f64> {
    match log_sum(logs.iter().copied()) {
        f64::NEG_INFINITY => vec![1.0 / logs.len() as f64; logs.len()],
        sum => logs.iter().map(|log| (log - sum).exp()).collect(),
    }
}

/// The place that a number between 0 and 1 falls on, by weights.
pub(crate) fn choose(weights: &[f64], at: f64) -> usize {
    let mut left = at * weights.iter().sum::<f64>();
    let mut last = 0;
    // The last with any weight catches what rounding leaves over.
    for (place, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        left -= weight;
        last = place;
        if left < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_by_logarithms_is_one_by_weights() {
        let logs = [-700.0 + 0.25f64.ln(), f64::NEG_INFINITY, -700.0 + 0.75f64.ln()];
        assert!((log_sum(logs.iter().copied()) + 700.0).abs() < 1e-12);
        let weights = softmax(&logs);
        assert_eq!(choose(&weights, 0.2), 0);
        assert_eq!(choose(&weights, 0.3), 2);
        assert_eq!(choose(&weights, 1.0), 2);
        assert_eq!(softmax(&[f64::NEG_INFINITY; 2]), [0.5, 0.5]);
    }
}
