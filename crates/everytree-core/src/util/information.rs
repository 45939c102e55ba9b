//! How much two variables tell about each other.

/// Mutual information of a joint table, in nats.
pub(crate) fn mutual_information(joint: &[f64], p_u: &[f64], p_v: &[f64]) -> f64 {
    let lines = joint.chunks_exact(p_v.len()).zip(p_u);
    lines.fold(0.0, |sum, (line, &left)| mutual_information_with(sum, line, left, p_v)).max(0.0)
}

/// The sum so far, with one more line of the joint table: all states of v beside one of u.
pub(crate) fn mutual_information_with(sum: f64, line: &[f64], left: f64, p_v: &[f64]) -> f64 {
    line.iter().zip(p_v).fold(sum, |sum, (&both, &right)| match both > 0.0 {
        true => sum + both * (both / (left * right)).ln(),
        false => sum,
    })
}
