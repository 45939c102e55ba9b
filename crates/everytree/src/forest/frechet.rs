//! Two binary variables with given margins, without cancellation (maths §3 and §4).

/// `z[a][b] = P_uv(a, b) / (P_u(a) P_v(b))` for two binary variables with `P_u(1) = σ(alpha_u)`, `P_v(1) = σ(alpha_v)`
/// and `P_uv(1,1)` at the fraction `σ(beta)` of the interval that the margins allow.
///
/// No two nearly equal numbers are ever subtracted, so even entries of 10⁻²⁰ keep their relative accuracy:
/// the interval has width `w = min(p_u, p_v, 1 − p_u, 1 − p_v)`, its ends are differences of two sigmoids, and
///
/// ```text
/// P(1,1) = max(0, p_u + p_v − 1) + σ(β) w       P(0,0) = max(0, 1 − p_u − p_v) + σ(β) w
/// P(1,0) = max(0, p_u − p_v) + σ(−β) w          P(0,1) = max(0, p_v − p_u) + σ(−β) w
/// ```
///
/// ```
/// // Independent variables have ratios of 1: p = ½ each, P(1,1) in the middle of [0, ½].
/// let z = everytree::forest::binary_ratios(0.0, 0.0, 0.0);
/// assert!(z.iter().flatten().all(|&z| (z - 1.0f64).abs() < 1e-15));
/// ```
/// Logits beyond ±700 count as ±700: e⁻⁷⁰⁰ is near the smallest number of f64, and a probability of 0 has no ratio.
pub fn binary_ratios(alpha_u: f64, alpha_v: f64, beta: f64) -> [[f64; 2]; 2] {
    let [alpha_u, alpha_v, beta] = [alpha_u, alpha_v, beta].map(|logit| logit.clamp(-700.0, 700.0));
    let u = [sigmoid(-alpha_u), sigmoid(alpha_u)];
    let v = [sigmoid(-alpha_v), sigmoid(alpha_v)];
    let width = u[0].min(u[1]).min(v[0]).min(v[1]);
    let (agree, differ) = (sigmoid(beta) * width, sigmoid(-beta) * width);
    let joint = [
        [excess(-alpha_u, alpha_v) + agree, excess(alpha_v, alpha_u) + differ],
        [excess(alpha_u, alpha_v) + differ, excess(alpha_u, -alpha_v) + agree],
    ];
    let mut ratios = [[0.0; 2]; 2];
    for a in 0..2 {
        for b in 0..2 {
            ratios[a][b] = joint[a][b] / u[a] / v[b];
        }
    }
    ratios
}

fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

/// `max(0, σ(a) − σ(b)) = σ(a) σ(−b) (1 − e^{b−a})`
fn excess(a: f64, b: f64) -> f64 {
    if a > b { sigmoid(a) * sigmoid(-b) * -(b - a).exp_m1() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain formula, good to 1e-16 absolutely.
    fn plain(alpha_u: f64, alpha_v: f64, beta: f64) -> [[f64; 2]; 2] {
        let (p, q) = (sigmoid(alpha_u), sigmoid(alpha_v));
        let (low, high) = ((p + q - 1.0).max(0.0), p.min(q));
        let both = low + sigmoid(beta) * (high - low);
        [[1.0 - p - q + both, q - both], [p - both, both]]
    }

    #[test]
    fn agrees_with_the_plain_formula_where_that_can_be_trusted() {
        for &a in &[-3.0, -0.4, 0.0, 0.7, 2.5] {
            for &b in &[-2.0, -0.4, 0.3, 0.7] {
                for &beta in &[-2.0, 0.0, 1.5] {
                    let (z, joint) = (binary_ratios(a, b, beta), plain(a, b, beta));
                    for x in 0..2 {
                        for y in 0..2 {
                            let product = [sigmoid(-a), sigmoid(a)][x] * [sigmoid(-b), sigmoid(b)][y];
                            assert!((z[x][y] * product - joint[x][y]).abs() < 1e-15);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tiny_entries_keep_their_digits() {
        // β = −46: P(1,1) is e⁻⁴⁶ of its interval [0, ½]; subtraction would round it to nothing.
        let z = binary_ratios(0.0, 0.0, -46.0);
        assert!((z[1][1] / (2.0 * (-46f64).exp()) - 1.0).abs() < 1e-14);
        assert!((z[0][0] / (2.0 * (-46f64).exp()) - 1.0).abs() < 1e-14);
        // Margins that differ by 1e-15: the interval's end is the difference of two sigmoids.
        let z = binary_ratios(1e-15, 0.0, 40.0);
        let expected = 4.0 * (0.25e-15 + 0.5 * (-40f64).exp());
        assert!((z[1][0] / expected - 1.0).abs() < 1e-9, "{} {expected}", z[1][0]);
        // Rare against rare: p = e⁻³⁰ both, mostly exclusive.
        let z = binary_ratios(-30.0, -30.0, -5.0);
        let p = sigmoid(-30.0);
        assert!((z[1][1] - sigmoid(-5.0) / p).abs() < 1e-9 * z[1][1]);
    }

    #[test]
    fn no_logit_gives_a_nan_or_an_infinity() {
        let logits = [f64::NEG_INFINITY, -1e4, -745.0, -700.0, -1.0, 0.0, 36.0, 710.0, f64::INFINITY];
        for a in logits {
            for b in logits {
                for beta in logits {
                    let z = binary_ratios(a, b, beta);
                    assert!(z.iter().flatten().all(|z| z.is_finite() && *z >= 0.0), "{a} {b} {beta}: {z:?}");
                }
            }
        }
    }

    #[test]
    fn margins_are_kept() {
        for &(a, b, beta) in &[(8.0, -3.0, 2.0), (-20.0, 5.0, -7.0), (0.1, 0.1, 30.0)] {
            let z = binary_ratios(a, b, beta);
            let v = [sigmoid(-b), sigmoid(b)];
            for row in z {
                assert!((row[0] * v[0] + row[1] * v[1] - 1.0).abs() < 1e-14);
            }
        }
    }
}
