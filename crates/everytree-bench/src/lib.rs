//! Timing, and the two yardsticks: a matrix product, and what a library of linear algebra would do.

use everytree_core::spanning::{Kind, Real};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::lu::partial_pivoting as lu;
use faer::traits::ComplexField;
use faer::{Accum, Mat, Par};
use rayon::prelude::*;
use std::sync::Mutex;
use std::time::Instant;

/// The columns of every line that a bench prints.
pub const COLUMNS: &str =
    "what,kind,precision,threads,n,value_us,both_us,gflops,gemm_gflops,of_gemm,faer_us,faer_over_us,goal,met";

/// Shortest of several runs, in seconds: the one that was disturbed least.
pub fn best(mut run: impl FnMut()) -> f64 {
    run();
    let begin = Instant::now();
    let (mut best, mut rounds) = (f64::MAX, 0);
    while rounds < 3 || (begin.elapsed().as_secs_f64() < 0.25 && rounds < 2000) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        rounds += 1;
    }
    best
}

/// Runs `work` in a pool of so many threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(work)
}

/// One thread, and all there are.
pub fn thread_counts() -> Vec<usize> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    if all > 1 { vec![1, all] } else { vec![1] }
}

/// GFLOP/s of n × n matrix products, each thread its own: the best this machine does on matrices of this size.
pub fn gemm_rate<T: Real + ComplexField>(n: usize, threads: usize) -> f64 {
    let flops = 2.0 * (n as f64).powi(3);
    let repeats = (1e8 / flops).ceil() as usize;
    let entry = |i: usize, j: usize| <T as Real>::from_f64(((i * 7 + j * 3) % 11) as f64 / 11.0);
    let jobs: Vec<_> = (0..threads)
        .map(|_| Mutex::new((Mat::from_fn(n, n, entry), Mat::from_fn(n, n, entry), Mat::<T>::zeros(n, n))))
        .collect();
    let seconds = best(|| {
        jobs.par_iter().for_each(|job| {
            let (a, b, c) = &mut *job.lock().expect("a job");
            let one = <T as Real>::from_f64(1.0);
            for _ in 0..repeats {
                faer::linalg::matmul::matmul(
                    c.as_mut(),
                    Accum::Replace,
                    a.as_ref(),
                    b.as_ref(),
                    one,
                    Par::Seq,
                );
            }
        });
    });
    flops * (repeats * threads) as f64 / seconds / 1e9
}

/// Seconds a row for what one would do with a library, each thread its own row: factor and inverse of the reduced
/// Laplacian, by Cholesky (undirected) or by LU with partial pivoting (directed). In f32 this loses all accuracy on
/// uneven rates; here it is a yardstick for time only.
pub fn library_seconds<T: Real + ComplexField>(kind: Kind, n: usize, threads: usize) -> f64 {
    let m = if kind == Kind::Directed { n } else { n - 1 };
    let entry = |i: usize, j: usize| {
        let off = -(((i * 7 + j * 7) % 11) as f64 / 11.0 + 0.1);
        <T as Real>::from_f64(if i == j { 2.0 * n as f64 } else { off })
    };
    let laplacian = Mat::<T>::from_fn(m, m, entry);
    let repeats = (2e7 / (n as f64).powi(3)).ceil() as usize;
    let scratch = llt::factor::cholesky_in_place_scratch::<T>(m, Par::Seq, Default::default())
        .or(llt::inverse::inverse_scratch::<T>(m, Par::Seq))
        .or(lu::factor::lu_in_place_scratch::<usize, T>(m, m, Par::Seq, Default::default()))
        .or(lu::inverse::inverse_scratch::<usize, T>(m, Par::Seq));
    let jobs: Vec<_> = (0..threads)
        .map(|_| {
            let permutations = (vec![0usize; m], vec![0usize; m]);
            Mutex::new((Mat::<T>::zeros(m, m), Mat::<T>::zeros(m, m), permutations, MemBuffer::new(scratch)))
        })
        .collect();
    let seconds = best(|| {
        jobs.par_iter().for_each(|job| {
            let (factor, inverse, (forth, back), buffer) = &mut *job.lock().expect("a job");
            for _ in 0..repeats {
                let stack = MemStack::new(buffer);
                factor.copy_from(&laplacian);
                let a = factor.as_mut();
                if kind == Kind::Undirected {
                    let done = llt::factor::cholesky_in_place(
                        a,
                        Default::default(),
                        Par::Seq,
                        stack,
                        Default::default(),
                    );
                    assert!(done.is_ok(), "a positive definite matrix");
                    llt::inverse::inverse(inverse.as_mut(), factor.as_ref(), Par::Seq, stack);
                } else {
                    let (_, rows) =
                        lu::factor::lu_in_place(a, forth, back, Par::Seq, stack, Default::default());
                    let factor = factor.as_ref();
                    lu::inverse::inverse(inverse.as_mut(), factor, factor, rows, Par::Seq, stack);
                }
            }
        });
    });
    seconds / (repeats * threads) as f64
}

/// Floating-point operations of value and marginals, as agreed: n³ undirected, 2n³ directed.
pub fn operations(kind: Kind, n: usize) -> f64 {
    (n as f64).powi(3) * if kind == Kind::Directed { 2.0 } else { 1.0 }
}

/// How a kind and a precision are called.
pub fn names<T: Real>(kind: Kind) -> (&'static str, &'static str) {
    let kind = if kind == Kind::Directed { "directed" } else { "undirected" };
    (kind, if size_of::<T>() == 4 { "f32" } else { "f64" })
}
