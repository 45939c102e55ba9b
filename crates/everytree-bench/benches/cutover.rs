//! Both routes of the kernel side by side, to choose up to which size rows go by lanes.
//!
//! Prints CSV. Arguments, all optional: sizes, to run only those.

use everytree_bench::{COLUMNS, best, gemm_rate, names, on_threads, operations, thread_counts};
use everytree_core::spanning::{Elimination, Kind, Level, Real, Route};
use faer::traits::ComplexField;
use rand::{RngExt, SeedableRng};

const SIZES: [usize; 8] = [64, 128, 200, 240, 272, 304, 336, 400];

fn measure<T: Real + ComplexField>(n: usize, threads: usize) {
    let gemm = gemm_rate::<T>(n, threads);
    let rows = 32 * threads;
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    let rates: Vec<T> =
        (0..rows * n * n).map(|_| <T as Real>::from_f64(rng.random_range(0.01..1.0))).collect();
    let mut log = vec![0.0; rows];
    let mut marginals = vec![T::default(); rows * n * n];
    for kind in [Kind::Undirected, Kind::Directed] {
        for route in [Route::Lanes, Route::Rows] {
            let elimination = Elimination::<T>::with(kind, n, Level::best(), Some(route)).expect("a size");
            let value = best(|| elimination.log_forests(&rates, &mut log).expect("rates")) / rows as f64;
            let both = best(|| elimination.marginals(&rates, &mut log, &mut marginals).expect("rates"))
                / rows as f64;
            let (name, precision) = names::<T>(kind);
            let rate = operations(kind, n) / both / 1e9;
            println!(
                "{route:?},{name},{precision},{threads},{n},{:.3},{:.3},{rate:.1},{gemm:.1},{:.3},,,,",
                value * 1e6,
                both * 1e6,
                rate / gemm
            );
        }
    }
}

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if asked.is_empty() { SIZES.to_vec() } else { asked };
    println!("{COLUMNS}");
    let threads = thread_counts().last().copied().unwrap_or(1);
    for n in sizes {
        on_threads(threads, || {
            measure::<f32>(n, threads);
            measure::<f64>(n, threads);
        });
    }
}
