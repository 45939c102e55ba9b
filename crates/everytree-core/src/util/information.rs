//! How much two variables tell about each other.

/// Mutual information of a joint table, in nats.
pub(crate) fn mutual_information(joint: &[f64], p_u: &[f64], p_v: &[f64]) -> f64 {
    let mut information = 0.0;
    for (a, &left) in p_u.iter().enumerate() {
        for (b, &right) in p_v.iter().enumerate() {
            let both = joint[a * p_v.len() + b];
            if both > 0.0 {
                information += both * (both / (left * right)).ln();
            }
        }
    }
    information.max(0.0)
}
