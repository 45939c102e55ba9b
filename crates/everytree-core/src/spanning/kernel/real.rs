//! The two precisions, and what the kernels ask of a SIMD register of them.

use super::compiled::Compiled;
use pulp::Simd;
use std::fmt::Debug;

/// Pivots below this leave the range in which `f32` vouches for its digits (the largest rate lies between 2⁻²⁰ and 2²⁰).
///
/// An underflow changes an entry by at most 2⁻¹⁴⁹, or 2⁻¹²⁶ where the machine flushes; all n² of them together are then
/// below 2⁻¹⁴ of any pivot that passes even at n = 65,536, and below 2⁻²⁴ up to n = 2,000.
pub(crate) const TINY_F32: f32 = 1.0 / (1u128 << 80) as f32;
/// Pivots and derivatives above this are not trusted either: sums of them must not overflow. 2¹⁰⁰.
pub(crate) const HUGE_F32: f32 = (1u128 << 100) as f32;
/// The same bounds for `f64`: 2⁻⁶⁰⁰ and 2⁹⁰⁰.
pub(crate) const HUGE_F64: f64 = f64::from_bits((1023 + 900) << 52);
/// See above.
pub(crate) const TINY_F64: f64 = f64::from_bits((1023 - 600) << 52);

/// A floating-point precision in which forests can be summed: `f32` or `f64`.
pub trait Real:
    Register + Compiled + Copy + Debug + Default + PartialOrd + Send + Sync + Into<f64> + 'static
{
    /// The nearest number of this precision.
    fn from_f64(value: f64) -> Self;
}

/// What the kernels ask of a precision: registers of numbers, bounds of trust. No part of the public interface.
pub trait Register: Sized {
    /// A register of numbers.
    type Vector<S: Simd>: Copy;
    /// A register of truth values.
    type Mask<S: Simd>: Copy;

    /// An integer as wide as a number.
    type Bits: Copy + Ord + Default;
    /// The bit pattern of infinity.
    const INFINITY_BITS: Self::Bits;
    /// How many pivots can be multiplied in `f64` before the exponent must be looked after.
    const PIVOTS_AT_ONCE: usize;
    /// Smallest pivot that is trusted.
    const TINY: Self;
    /// Largest pivot and largest derivative that are trusted.
    const HUGE: Self;

    /// The bits of the number.
    fn to_bits(self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self − other`.
    fn minus(self, other: Self) -> Self;
    /// `self · other`.
    fn times(self, other: Self) -> Self;
    /// `self / other`.
    fn over(self, other: Self) -> Self;

    /// Numbers in a register.
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn div<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a · b + c`, fused where the machine can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    fn max<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a >= b`, lane by lane.
    fn at_least<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    fn select<S: Simd>(
        simd: S,
        mask: Self::Mask<S>,
        yes: Self::Vector<S>,
        no: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// The larger bit pattern of two, lane by lane.
    fn max_bits<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of all lanes.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
}

macro_rules! real {
    ($t:ty, $bits:ty, $at_once:expr, $vec:ident, $mask:ident, $tiny:expr, $huge:expr, $splat:ident $add:ident $sub:ident $mul:ident $div:ident
     $fma:ident $max:ident $ge:ident $select:ident $sum:ident
     $to_bits:ident $max_bits:ident $from_bits:ident) => {
        impl Real for $t {
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
        }

        impl Register for $t {
            type Vector<S: Simd> = S::$vec;
            type Mask<S: Simd> = S::$mask;
            type Bits = $bits;
            const INFINITY_BITS: $bits = <$t>::INFINITY.to_bits();
            const PIVOTS_AT_ONCE: usize = $at_once;
            const TINY: Self = $tiny;
            const HUGE: Self = $huge;

            #[inline(always)]
            fn to_bits(self) -> $bits {
                self.to_bits()
            }
            #[inline(always)]
            fn from_bits(bits: $bits) -> Self {
                <$t>::from_bits(bits)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vec {
                simd.$splat(value)
            }
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn sub<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn mul<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn div<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$div(a, b)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$vec, b: S::$vec, c: S::$vec) -> S::$vec {
                simd.$fma(a, b, c)
            }
            #[inline(always)]
            fn max<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$max(a, b)
            }
            #[inline(always)]
            fn at_least<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$mask {
                simd.$ge(a, b)
            }
            #[inline(always)]
            fn select<S: Simd>(simd: S, mask: S::$mask, yes: S::$vec, no: S::$vec) -> S::$vec {
                simd.$select(mask, yes, no)
            }
            #[inline(always)]
            fn max_bits<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$from_bits(simd.$max_bits(simd.$to_bits(a), simd.$to_bits(b)))
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vec) -> Self {
                simd.$sum(a)
            }
        }
    };
}

real!(f32, u32, 8, f32s, m32s, TINY_F32, HUGE_F32,
      splat_f32s add_f32s sub_f32s mul_f32s div_f32s mul_add_e_f32s max_f32s
      greater_than_or_equal_f32s select_f32s reduce_sum_f32s
      transmute_u32s_f32s max_u32s transmute_f32s_u32s);
real!(f64, u64, 1, f64s, m64s, TINY_F64, HUGE_F64,
      splat_f64s add_f64s sub_f64s mul_f64s div_f64s mul_add_e_f64s max_f64s
      greater_than_or_equal_f64s select_f64s reduce_sum_f64s
      transmute_u64s_f64s max_u64s transmute_f64s_u64s);
