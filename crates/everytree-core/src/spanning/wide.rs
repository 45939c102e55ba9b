//! Numbers whose exponent cannot run out.

use super::sweep::Scalar;
use std::ops::{Add, Div, Mul, Sub};

/// A real number `mantissa · 2^exponent` with `|mantissa|` in `[1, 2)`, or zero.
///
/// `f64` keeps 16 digits but only 616 decades. Chains of tiny rates multiply past that, and an underflow would
/// turn "astronomically unlikely" into "impossible". Rows that come near the edge of the range of `f64` are
/// recomputed with this type: about ten times slower, and never asked for by ordinary data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide {
    mantissa: f64,
    exponent: i64,
}

const MANTISSA_BITS: u64 = (1 << 52) - 1;

impl Wide {
    const ZERO: Self = Self { mantissa: 0.0, exponent: 0 };

    /// Brings `mantissa` (finite) back into `[1, 2)`.
    fn normal(mantissa: f64, exponent: i64) -> Self {
        debug_assert!(mantissa.is_finite());
        if mantissa == 0.0 {
            return Self::ZERO;
        }
        let bits = mantissa.to_bits();
        let biased = (bits >> 52) & 0x7ff;
        if biased == 0 {
            // Subnormal: lift it into the normal range first.
            return Self::normal(mantissa * 2f64.powi(64), exponent - 64);
        }
        let sign_and_fraction = (bits & (1 << 63)) | (bits & MANTISSA_BITS);
        Self {
            mantissa: f64::from_bits(sign_and_fraction | (1023 << 52)),
            exponent: exponent + biased as i64 - 1023,
        }
    }
}

impl Add for Wide {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        if self.mantissa == 0.0 {
            return other;
        }
        if other.mantissa == 0.0 {
            return self;
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let gap = large.exponent - small.exponent;
        if gap > 64 {
            return large;
        }
        Self::normal(large.mantissa + small.mantissa * 2f64.powi(-(gap as i32)), large.exponent)
    }
}

impl Sub for Wide {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + Self { mantissa: -other.mantissa, ..other }
    }
}

impl Mul for Wide {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::normal(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }
}

impl Div for Wide {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        Self::normal(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }
}

impl Scalar for Wide {
    fn new(value: f64) -> Self {
        Self::normal(value, 0)
    }

    fn value(self) -> f64 {
        // Two steps, so that a result within the range of f64 is never lost on the way.
        let half = self.exponent.clamp(-2200, 2200) / 2;
        let rest = self.exponent.clamp(-2200, 2200) - half;
        self.mantissa * 2f64.powi(half as i32) * 2f64.powi(rest as i32)
    }

    fn ln(self) -> f64 {
        self.mantissa.ln() + self.exponent as f64 * std::f64::consts::LN_2
    }

    fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    fn is_in_range(self) -> bool {
        true
    }

    fn is_negative(self) -> bool {
        self.mantissa < 0.0
    }

    fn is_safe_pivot(self) -> bool {
        true
    }
}

/// A running product whose logarithm is wanted: one logarithm at the end, no overflow on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogProduct(Wide);

impl LogProduct {
    pub(crate) fn new() -> Self {
        Self(Wide { mantissa: 1.0, exponent: 0 })
    }

    /// Multiplies by a positive, finite factor.
    #[inline]
    pub(crate) fn push(&mut self, factor: f64) {
        self.0 = self.0 * Wide { mantissa: factor, exponent: 0 };
    }

    pub(crate) fn ln(self) -> f64 {
        self.0.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_f64_inside_its_range() {
        for &(a, b) in &[(3.5, 0.125), (1e-300, 7e-9), (1e200, 3e100), (5e-324, 2.0), (1.0, 1.0 - 1e-16)] {
            let (x, y) = (Wide::new(a), Wide::new(b));
            assert_eq!((x + y).value(), a + b);
            assert_eq!((x - y).value(), a - b);
            assert_eq!((x / y).value(), a / b);
            if a * b < 1e308 && a * b > 1e-307 {
                assert_eq!((x * y).value(), a * b);
            }
        }
    }

    #[test]
    fn survives_what_f64_cannot_hold() {
        let mut x = Wide::new(1e-300);
        for _ in 0..10 {
            x = x * x;
        }
        assert!((x.ln() / (1024.0 * 1e-300f64.ln()) - 1.0).abs() < 1e-14);
        assert!((x / x - Wide::new(1.0)).is_zero());
    }
}
