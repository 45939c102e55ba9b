//! Long lists of numbers, with all threads and whole registers.

use rayon::prelude::*;

/// Numbers worth a thread of their own.
const CHUNK: usize = 1 << 14;

/// Where the first number stands that is none, or is infinite.
pub(crate) fn first_not_finite(numbers: &[f64]) -> Option<usize> {
    let is_finite = |chunk: &[f64]| {
        // Without a way out in the middle, so that a register is looked at at once.
        let all = || chunk.iter().fold(true, |all, number| all & number.is_finite());
        pulp::Arch::new().dispatch(all)
    };
    let chunk = numbers.par_chunks(CHUNK).position_first(|chunk| !is_finite(chunk))?;
    numbers[chunk * CHUNK..].iter().position(|number| !number.is_finite()).map(|place| chunk * CHUNK + place)
}

/// All zero.
pub(crate) fn clear(numbers: &mut [f64]) {
    numbers.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(0.0));
}

/// `numbers[i] = e^(numbers[i] − most[i])`, where no number is above its `most`.
///
/// Tables of probabilities are made of logits with every step of learning; the exponentials of the standard library come one by
/// one, and took longer than everything else that is done a parameter. Below e⁻⁷⁰⁸ there is nothing.
pub(crate) fn exp_below(numbers: &mut [f64], most: &[f64]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || numbers.iter_mut().zip(most).for_each(|(number, most)| *number = exp(*number - most)),
    );
}

/// Distributions of so many states from their logits, one after the other.
pub(crate) fn softmax_lines(logits: &[f64], states: usize, lines: &mut [f64]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (line, logits) in lines.chunks_exact_mut(states).zip(logits.chunks_exact(states)) {
                let most = logits.iter().copied().fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
                line.iter_mut().zip(logits).for_each(|(p, logit)| *p = exp(logit - most));
                let inverse = 1.0 / line.iter().sum::<f64>();
                line.iter_mut().for_each(|p| *p *= inverse);
            }
        },
    );
}

/// `e^x` of a number that is not above zero, without a branch, so that a register is computed at once.
///
/// `x = k log 2 + r` with a whole k and r at most half of log 2, whose exponential is the first fourteen terms of its series: what
/// is left out is below 2⁻⁵⁷.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// Adding it leaves the whole part in the last bits.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    /// log 2 in two parts, the first with zeros at its end.
    const LOG_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    /// 1 / j!, the highest first.
    const SERIES: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let shifted = x.mul_add(std::f64::consts::LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = k.mul_add(-LOG_2[1], k.mul_add(-LOG_2[0], x));
    let mut sum = SERIES[0];
    for term in &SERIES[1..] {
        sum = sum.mul_add(r, *term);
    }
    let power = shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(1023) << 52;
    if x < -708.0 { 0.0 } else { sum * f64::from_bits(power) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_standard_library() {
        let numbers: Vec<f64> = (0..200_000).map(|i| -0.003_541 * f64::from(i)).collect();
        let mut found = numbers.clone();
        exp_below(&mut found, &vec![0.0; numbers.len()]);
        for (x, found) in numbers.iter().zip(&found) {
            let expected = if *x < -708.0 { 0.0 } else { x.exp() };
            assert!((found - expected).abs() <= 4e-16 * expected, "{x}: {found} {expected}");
        }
        let mut odd = [0.0, -0.0, -1e-300, f64::NEG_INFINITY, f64::NAN, -1e5, -707.999];
        exp_below(&mut odd, &[0.0; 7]);
        assert_eq!(odd[..4], [1.0, 1.0, 1.0, 0.0]);
        assert!(odd[4].is_nan() && odd[5] == 0.0 && odd[6] > 0.0);
        let mut lines = [0.0; 6];
        softmax_lines(&[3.0, 1.0, 2.0, -1e5, 0.0, 0.0], 3, &mut lines);
        let total = 1.0 + (-2.0f64).exp() + (-1.0f64).exp();
        assert!((lines[0] - 1.0 / total).abs() < 1e-15 && lines[3..] == [0.0, 0.5, 0.5]);
    }

    #[test]
    fn what_is_no_number_is_found_where_it_stands() {
        for length in [0, 1, 7, CHUNK, 3 * CHUNK + 5] {
            let mut numbers = vec![1.5; length];
            assert_eq!(first_not_finite(&numbers), None);
            for place in [0, length / 2, length.saturating_sub(1)].into_iter().filter(|place| *place < length)
            {
                for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    numbers[place] = bad;
                    assert_eq!(first_not_finite(&numbers), Some(place));
                }
                numbers[place] = f64::MIN;
            }
            clear(&mut numbers);
            assert!(numbers.iter().all(|number| *number == 0.0));
        }
    }
}
