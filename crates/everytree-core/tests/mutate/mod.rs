//! Files changed at random.
#![allow(dead_code)]

use rand::RngExt;
use rand_pcg::Pcg64;

/// Changes a whole file at random; the loader may refuse it, or read it, but nothing else.
pub fn mutate(bytes: &mut Vec<u8>, rng: &mut Pcg64) {
    for _ in 0..rng.random_range(1..6) {
        let place = rng.random_range(0..bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        // Most of what can go wrong is in the header.
        let place = if rng.random_bool(0.7) { place % 2048.min(bytes.len()) } else { place };
        match rng.random_range(0..6) {
            0 => bytes[place] ^= 1 << rng.random_range(0..8),
            1 => bytes[place] = rng.random(),
            2 => bytes.truncate(place.max(1)),
            3 => bytes.insert(place, rng.random_range(32..127)),
            4 => drop(bytes.remove(place)),
            _ => {
                let end = (place + rng.random_range(1..40)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                let to = rng.random_range(0..bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

/// The bytes with the checksum they should have, as the last four of them.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.len().checked_sub(4) {
        let sum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}
