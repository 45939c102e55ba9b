//! One stream of random numbers per seed, purpose and block, so that no use of chance disturbs another.

use rand::RngExt;
use rand_pcg::Pcg64;

/// The numbers for one block (an epoch, say) of one purpose.
pub(crate) fn stream(seed: u64, purpose: &str, block: u64) -> Pcg64 {
    let name = purpose.bytes().fold(0u64, |sum, byte| mix(sum ^ u64::from(byte)));
    let (high, low) = (mix(seed), mix(mix(seed) ^ block));
    Pcg64::new(u128::from(high) << 64 | u128::from(low), u128::from(name))
}

/// A seed for one of many rows, say: numbers of its own, and others for another seed.
pub fn seed_of(seed: u64, number: u64) -> u64 {
    mix(mix(seed) ^ mix(number.wrapping_add(1)))
}

/// Steele, Lea and Flood's SplitMix64: neighbouring numbers end far apart.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Another order (Fisher and Yates).
pub(crate) fn shuffle(places: &mut [u32], rng: &mut Pcg64) {
    for i in (1..places.len()).rev() {
        places.swap(i, rng.random_range(0..=i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_part() {
        let first = |seed, purpose, block| stream(seed, purpose, block).random::<u64>();
        let all = [first(0, "a", 0), first(1, "a", 0), first(0, "b", 0), first(0, "a", 1)];
        for i in 0..4 {
            for j in 0..i {
                assert_ne!(all[i], all[j]);
            }
        }
        assert_eq!(first(0, "a", 0), first(0, "a", 0));
    }
}
