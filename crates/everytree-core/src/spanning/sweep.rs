//! The elimination as the mathematics writes it: one row, one vertex after the other, plain loops.
//!
//! This is the slow and obvious version. The kernels are tested against it, and it finishes the rare rows whose
//! numbers leave the range in which the kernels can vouch for their digits.

use super::kernel::real::{HUGE_F64, TINY_F64};
use super::wide::Wide;
use std::ops::{Add, Div, Mul, Sub};

/// What a number must do to be eliminated with.
pub(crate) trait Scalar:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// From a finite `f64`.
    fn new(value: f64) -> Self;
    /// The nearest `f64`.
    fn value(self) -> f64;
    /// Natural logarithm of a positive number.
    fn ln(self) -> f64;
    /// Exactly zero?
    fn is_zero(self) -> bool;
    /// Neither infinite nor NaN?
    fn is_in_range(self) -> bool;
    /// Below zero?
    fn is_negative(self) -> bool;
    /// Far enough from underflow and overflow that every digit of the result can be trusted?
    fn is_safe_pivot(self) -> bool;
}

impl Scalar for f64 {
    fn new(value: f64) -> Self {
        value
    }
    fn value(self) -> f64 {
        self
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn is_zero(self) -> bool {
        self == 0.0
    }
    fn is_in_range(self) -> bool {
        self.is_finite()
    }
    fn is_negative(self) -> bool {
        self < 0.0
    }
    fn is_safe_pivot(self) -> bool {
        (TINY_F64..=HUGE_F64).contains(&self)
    }
}

/// What one elimination gives: `log F` and the derivatives of it.
pub(crate) struct Swept {
    /// Natural logarithm of the forest polynomial; `-inf` when there is no forest.
    pub log_forest: f64,
    /// `mu[v * n + u]`: probability that u is the parent of v; on the diagonal, that v is a root.
    pub marginals: Vec<f64>,
}

impl Swept {
    fn impossible(n: usize) -> Self {
        Self { log_forest: f64::NEG_INFINITY, marginals: vec![0.0; n * n] }
    }
}

/// The answer for one row, whatever the spread of its rates: in `f64` where that suffices, with unbounded exponents
/// where it does not. Rates are finite and not negative.
pub(crate) fn sweep_surely(n: usize, rates: &[f64], marginals: bool) -> Swept {
    if unreached(n, rates).is_some() {
        return Swept::impossible(n);
    }
    sweep::<f64>(n, rates, marginals)
        .or_else(|| sweep::<Wide>(n, rates, marginals))
        .unwrap_or_else(|| unreachable!("numbers of unbounded exponent refuse no pivot"))
}

/// A vertex without a path of positive rates to a vertex with a positive root rate. `F > 0` exactly when there is
/// none. `O(n²)`.
pub(crate) fn unreached(n: usize, rates: &[f64]) -> Option<usize> {
    let mut reached: Vec<bool> = (0..n).map(|v| rates[v * n + v] > 0.0).collect();
    let mut frontier: Vec<usize> = (0..n).filter(|&v| reached[v]).collect();
    let mut left = n - frontier.len();
    while let (Some(u), true) = (frontier.pop(), left > 0) {
        for v in 0..n {
            if !reached[v] && rates[v * n + u] > 0.0 {
                reached[v] = true;
                frontier.push(v);
                left -= 1;
            }
        }
    }
    reached.iter().position(|&yes| !yes)
}

/// Eliminates every vertex of the `n × n` rates `q` (`q[v·n + u]`: rate of "u is the parent of v", root rates on
/// the diagonal), forwards and, when `marginals` are wanted, backwards. `O(n³)`.
///
/// `None` when a number came so near to underflow or overflow that the digits cannot be vouched for.
pub(crate) fn sweep<S: Scalar>(n: usize, rates: &[f64], marginals: bool) -> Option<Swept> {
    let mut q: Vec<S> = rates.iter().map(|&x| S::new(x)).collect();
    let mut r: Vec<S> = (0..n).map(|v| q[v * n + v]).collect();
    let mut pivots = Vec::with_capacity(n);
    let mut log_forest = 0.0;
    for k in 0..n {
        let mut p = r[k];
        for j in k + 1..n {
            p = p + q[k * n + j];
        }
        if !p.is_safe_pivot() {
            return None;
        }
        if p.is_zero() {
            return Some(Swept::impossible(n));
        }
        log_forest += p.ln();
        for i in k + 1..n {
            let f = q[i * n + k] / p;
            for j in k + 1..n {
                if i != j {
                    q[i * n + j] = q[i * n + j] + f * q[k * n + j];
                }
            }
            r[i] = r[i] + f * r[k];
        }
        pivots.push(p);
    }
    let marginals = if marginals { backward(n, rates, &q, &r, &pivots)? } else { Vec::new() };
    Some(Swept { log_forest, marginals })
}

/// The same sweep backwards: `G[i·n + j] = ∂log F/∂q[i][j]`, `g[i] = ∂log F/∂r[i]`, times the rates.
fn backward<S: Scalar>(n: usize, rates: &[f64], q: &[S], r: &[S], pivots: &[S]) -> Option<Vec<f64>> {
    let zero = S::new(0.0);
    let mut gq = vec![zero; n * n];
    let mut gr = vec![zero; n];
    for k in (0..n).rev() {
        let p = pivots[k];
        let mut t = S::new(1.0) / p;
        for i in k + 1..n {
            let mut column = gr[i] * (r[k] / p);
            for j in k + 1..n {
                if i != j {
                    column = column + gq[i * n + j] * (q[k * n + j] / p);
                }
            }
            gq[i * n + k] = column;
            t = t - (q[i * n + k] / p) * column;
        }
        gr[k] = t;
        for j in k + 1..n {
            gq[k * n + j] = t;
        }
        for i in k + 1..n {
            let f = q[i * n + k] / p;
            gr[k] = gr[k] + f * gr[i];
            for j in k + 1..n {
                if i != j {
                    gq[k * n + j] = gq[k * n + j] + f * gq[i * n + j];
                }
            }
        }
    }
    if gq.iter().chain(&gr).any(|derivative| !derivative.is_in_range()) {
        return None;
    }
    let mut marginals = vec![0.0; n * n];
    for v in 0..n {
        for u in 0..n {
            let derivative = if u == v { gr[v] } else { gq[v * n + u] };
            marginals[v * n + u] = (S::new(rates[v * n + u]) * derivative).value().max(0.0);
        }
    }
    Some(marginals)
}
