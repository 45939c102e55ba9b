//! Two binary variables with given margins, without cancellation (maths §3 and §4).

/// A binary variable by its logit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary {
    alpha: f64,
    /// `P(0)` and `P(1)`, each with all its digits.
    pub p: [f64; 2],
}

impl Binary {
    /// `P(1) = σ(alpha)`. Logits beyond ±700 count as ±700: e⁻⁷⁰⁰ is near the smallest number of f64.
    pub fn new(alpha: f64) -> Self {
        let alpha = alpha.clamp(-700.0, 700.0);
        Self { alpha, p: [sigmoid(-alpha), sigmoid(alpha)] }
    }
}

/// Two binary variables, `P_uv(1,1)` at the fraction `σ(beta)` of the interval that their margins allow.
///
/// No two nearly equal numbers are ever subtracted, so even entries of 10⁻²⁰ keep their relative accuracy:
/// the interval has width `w = min(p_u, p_v, 1 − p_u, 1 − p_v)`, its ends are differences of two sigmoids, and
///
/// ```text
/// P(1,1) = max(0, p_u + p_v − 1) + σ(β) w       P(0,0) = max(0, 1 − p_u − p_v) + σ(β) w
/// P(1,0) = max(0, p_u − p_v) + σ(−β) w          P(0,1) = max(0, p_v − p_u) + σ(−β) w
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frechet {
    u: Binary,
    v: Binary,
    /// `σ(−β)` and `σ(β)`
    fraction: [f64; 2],
    width: f64,
    /// `P_uv`
    pub joint: [[f64; 2]; 2],
}

impl Frechet {
    #[inline]
    pub fn new(u: Binary, v: Binary, beta: f64) -> Self {
        let beta = beta.clamp(-700.0, 700.0);
        let fraction = [sigmoid(-beta), sigmoid(beta)];
        let width = u.p[0].min(u.p[1]).min(v.p[0]).min(v.p[1]);
        let (agree, differ) = (fraction[1] * width, fraction[0] * width);
        let mut joint = [[agree, differ], [differ, agree]];
        // σ(a) − σ(b) = σ(a) σ(−b) (1 − e^{b−a})
        let (sum, difference) = (u.alpha + v.alpha, u.alpha - v.alpha);
        let same = usize::from(sum > 0.0);
        joint[same][same] += u.p[same] * v.p[same] * -(-sum.abs()).exp_m1();
        let first = usize::from(difference > 0.0);
        joint[first][1 - first] += u.p[first] * v.p[1 - first] * -(-difference.abs()).exp_m1();
        Self { u, v, fraction, width, joint }
    }

    /// `z[a][b] = P_uv(a, b) / (P_u(a) P_v(b))`
    pub fn ratios(&self) -> [[f64; 2]; 2] {
        let mut ratios = self.joint;
        for a in 0..2 {
            for b in 0..2 {
                ratios[a][b] = ratios[a][b] / self.u.p[a] / self.v.p[b];
            }
        }
        ratios
    }

    /// Derivatives of `Σ counts[a][b] · log P_uv(a, b)` by the two logits and by beta.
    pub fn gradient(&self, counts: &[[f64; 2]; 2]) -> [f64; 3] {
        let Self { u, v, fraction, width, joint } = self;
        // The width follows the smallest of the four probabilities.
        let smallest = |p: &[f64; 2], state: usize| p[state] == *width;
        let (by_u, by_v) = if smallest(&u.p, 1) {
            (1.0, 0.0)
        } else if smallest(&u.p, 0) {
            (-1.0, 0.0)
        } else if smallest(&v.p, 1) {
            (0.0, 1.0)
        } else {
            (0.0, -1.0)
        };
        let (sum, difference) = (u.alpha + v.alpha, u.alpha - v.alpha);
        let (mut alpha_u, mut alpha_v, mut beta) = (0.0, 0.0, 0.0);
        for a in 0..2 {
            for b in 0..2 {
                let per = if joint[a][b] > 0.0 { counts[a][b] / joint[a][b] } else { 0.0 };
                let part = fraction[usize::from(a == b)];
                let sign = if a == b { 1.0 } else { -1.0 };
                // Does the excess of this entry take part? It grows with p_u if a = 1, with p_v if b = 1.
                let excess = match (a, b) {
                    (1, 1) => sum > 0.0,
                    (0, 0) => sum < 0.0,
                    (1, 0) => difference > 0.0,
                    _ => difference < 0.0,
                };
                let towards = |state: usize| {
                    if !excess {
                        0.0
                    } else if state == 1 {
                        1.0
                    } else {
                        -1.0
                    }
                };
                alpha_u += per * (towards(a) + part * by_u);
                alpha_v += per * (towards(b) + part * by_v);
                beta += sign * per * (part * width) * (1.0 - part);
            }
        }
        [alpha_u * u.p[0] * u.p[1], alpha_v * v.p[0] * v.p[1], beta]
    }

    /// The beta that puts `P_uv(1,1)` where `joint` has it, kept away from the ends of the interval.
    pub fn beta(u: Binary, v: Binary, joint: &[[f64; 2]; 2]) -> f64 {
        const NEAREST: f64 = 1e-6;
        let bare = Self::new(u, v, 0.0);
        let agree = joint[1][1] - (bare.joint[1][1] - 0.5 * bare.width);
        let fraction = (agree / bare.width).clamp(NEAREST, 1.0 - NEAREST);
        (fraction / (1.0 - fraction)).ln()
    }
}

/// `z[a][b] = P_uv(a, b) / (P_u(a) P_v(b))` for two binary variables with `P_u(1) = σ(alpha_u)`, `P_v(1) = σ(alpha_v)`
/// and `P_uv(1,1)` at the fraction `σ(beta)` of the interval that the margins allow, without cancellation: even ratios of
/// 10⁻²⁰ keep their relative accuracy. Logits beyond ±700 count as ±700.
///
/// ```
/// // Independent variables have ratios of 1: p = ½ each, P(1,1) in the middle of [0, ½].
/// let z = everytree_core::forest::binary_ratios(0.0, 0.0, 0.0);
/// assert!(z.iter().flatten().all(|&z| (z - 1.0f64).abs() < 1e-15));
/// ```
pub fn binary_ratios(alpha_u: f64, alpha_v: f64, beta: f64) -> [[f64; 2]; 2] {
    Frechet::new(Binary::new(alpha_u), Binary::new(alpha_v), beta).ratios()
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
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

    #[test]
    fn gradient_agrees_with_central_differences() {
        let counts = [[3.0, 0.7], [1.9, 5.2]];
        let value = |x: [f64; 3]| {
            let joint = Frechet::new(Binary::new(x[0]), Binary::new(x[1]), x[2]).joint;
            (0..4).map(|i| counts[i / 2][i % 2] * joint[i / 2][i % 2].ln()).sum::<f64>()
        };
        for x in [[0.3, -1.2, 0.8], [1.5, 0.9, -2.0], [-2.0, -0.5, 1.0], [-1.0, 2.5, 0.0], [4.0, 4.5, 3.0]] {
            let found = Frechet::new(Binary::new(x[0]), Binary::new(x[1]), x[2]).gradient(&counts);
            for i in 0..3 {
                let step = 1e-6;
                let (mut above, mut below) = (x, x);
                above[i] += step;
                below[i] -= step;
                let expected = (value(above) - value(below)) / (2.0 * step);
                assert!(
                    (found[i] - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                    "{x:?} {i}: {} {expected}",
                    found[i]
                );
            }
        }
    }

    #[test]
    fn beta_finds_the_table_again() {
        for (a, b, beta) in [(0.4, -1.0, 0.7), (2.0, 1.0, -3.0), (-4.0, -3.0, 5.0)] {
            let (u, v) = (Binary::new(a), Binary::new(b));
            let joint = Frechet::new(u, v, beta).joint;
            assert!((Frechet::beta(u, v, &joint) - beta).abs() < 1e-9);
        }
    }
}
