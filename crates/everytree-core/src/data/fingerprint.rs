//! Numbers by which data are known again.

/// A number that changes with any weight; 0 where there is none.
pub(super) fn fingerprint_of_weights(weights: &[f64]) -> u64 {
    let mut hash = Fnv::new();
    weights.iter().for_each(|weight| hash.push(weight.to_bits()));
    if weights.is_empty() { 0 } else { hash.0 }
}

/// Fowler, Noll and Vo's hash: short, stable, good enough to notice other data.
pub(super) struct Fnv(pub u64);

impl Fnv {
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub fn push(&mut self, value: u64) {
        value.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }
}
