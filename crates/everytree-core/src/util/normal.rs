//! Random parameters.

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;

/// Numbers from a normal distribution of deviation 1, by seed.
pub(crate) fn standard_normals(seed: u64, numbers: &mut [f64]) {
    let mut rng = Pcg64::seed_from_u64(seed);
    numbers.iter_mut().for_each(|number| *number = rng.sample(StandardNormal));
}
