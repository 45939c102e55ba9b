//! Which instructions this machine has, asked once at run time.

use pulp::{Simd, WithSimd};

/// A level of SIMD instructions for which the kernels are compiled.
///
/// The best one the machine has is taken by default; a lower one can be asked for, to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 512-bit registers (x86-64 with AVX-512 F, BW, CD, DQ and VL).
    Avx512,
    /// 256-bit registers with fused multiply–add (x86-64 with AVX2 and FMA).
    Avx2,
    /// Whatever the compiler makes of plain arrays; NEON on 64-bit ARM.
    Portable,
}

impl Level {
    /// The best level of this machine.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// All levels of this machine, the best first.
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if pulp::x86::V4::try_new().is_some() {
                levels.push(Self::Avx512);
            }
            if pulp::x86::V3::try_new().is_some() {
                levels.push(Self::Avx2);
            }
        }
        levels.push(Self::Portable);
        levels
    }

    /// Runs `operation` compiled for this level; for the portable one where the machine lacks it.
    #[inline]
    pub(crate) fn run<Op: WithSimd>(self, operation: Op) -> Op::Output {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512 => {
                if let Some(simd) = pulp::x86::V4::try_new() {
                    return Simd::vectorize(simd, operation);
                }
            }
            Self::Avx2 => {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    return Simd::vectorize(simd, operation);
                }
            }
            Self::Portable => {}
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(simd) = pulp::aarch64::Neon::try_new() {
            return Simd::vectorize(simd, operation);
        }
        Simd::vectorize(pulp::Scalar256b, operation)
    }
}
