//! quick
use everytree::spanning::*;
use rand::{RngExt, SeedableRng};
use std::time::Instant;
use rayon::prelude::*;

fn best(mut f: impl FnMut()) -> f64 {
    f();
    let mut best = f64::MAX;
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || (start.elapsed().as_secs_f64() < 0.25 && rounds < 1000) {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64());
        rounds += 1;
    }
    best
}

fn gemm<T: Real + faer::traits::ComplexField>(n: usize, threads: usize) -> f64 {
    let reps = (2e8 / (2.0 * (n as f64).powi(3))).ceil().max(1.0) as usize;
    let mats: Vec<_> = (0..threads).map(|_| {
        let a = faer::Mat::<T>::from_fn(n, n, |i, j| T::from_f64(((i * 7 + j * 3) % 11) as f64 / 11.0));
        let b = a.clone();
        let c = faer::Mat::<T>::zeros(n, n);
        std::sync::Mutex::new((a, b, c))
    }).collect();
    let t = best(|| mats.par_iter().for_each(|m| {
        let mut g = m.lock().unwrap();
        let (a, b, c) = &mut *g;
        for _ in 0..reps {
            faer::linalg::matmul::matmul(c.as_mut(), faer::Accum::Replace, a.as_ref(), b.as_ref(), T::from_f64(1.0), faer::Par::Seq);
        }
    }));
    2.0 * (n as f64).powi(3) * (reps * threads) as f64 / t / 1e9
}

fn kernel<T: Real>(kind: Kind, n: usize, route: Option<Route>, level: Level) -> (f64, f64) {
    let rows = ((3e8 / (n as f64).powi(3)) as usize).clamp(4, 4096).div_ceil(32) * 32;
    let rows = if n > 200 { ((2e9 / (n as f64).powi(3)) as usize).clamp(2, 64) } else { rows };
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    let rates: Vec<T> = (0..rows * n * n).map(|_| T::from_f64(rng.random::<f64>() + 0.01)).collect();
    let e = Elimination::<T>::with(kind, n, level, route).unwrap();
    let mut log = vec![0.0; rows];
    let mut mu = vec![T::default(); rows * n * n];
    let v = best(|| e.log_forests(&rates, &mut log).unwrap());
    let m = best(|| e.marginals(&rates, &mut log, &mut mu).unwrap());
    (v / rows as f64, m / rows as f64)
}

fn backend<T: Real>(kind: Kind, n: usize, level: Level, states: usize, keep: usize) -> (f64, f64) {
    use everytree::forest::*;
    let rows = ((3e8 / (n as f64).powi(3)) as usize).clamp(4, 4096).div_ceil(256) * 256;
    let rows = if n > 200 { ((4e9 / (n as f64).powi(3)) as usize).clamp(16, 64) } else { rows };
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    let tables = Tables::build(kind, &vec![states; n], |_, _, _, _| rng.random::<f64>() + 0.01).unwrap();
    let codes: Vec<u8> = (0..rows * n).map(|_| (rng.random::<f64>() * states as f64) as u8).collect();
    let codes = Codes::new(&codes, n).unwrap();
    let cpu = Cpu::<T>::new().with_level(level).keeping(keep);
    let prepared = cpu.prepare(&tables);
    let mut trace = cpu.trace();
    let mut log = vec![0.0; rows];
    let weights = vec![1.0; rows];
    let mut counts = Counts::new(&tables);
    let v = best(|| { cpu.forward(&prepared, codes, &mut trace, &mut log).unwrap(); });
    let m = best(|| {
        cpu.forward(&prepared, codes, &mut trace, &mut log).unwrap();
        cpu.backward(&prepared, &mut trace, &weights, &mut counts).unwrap();
    });
    (v / rows as f64, m / rows as f64)
}

fn table<T: Real + faer::traits::ComplexField>(name: &str, threads: usize, level: Level) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let sizes: Vec<usize> = std::env::var("N").map(|s| s.split(",").map(|x| x.parse().unwrap()).collect()).unwrap_or(vec![16, 32, 64, 100, 163, 294, 500, 1058]); for n in sizes {
            let g = gemm::<T>(n, threads);
            print!("{name} {threads} n={n:5} gemm {g:6.1} |");
            for kind in [Kind::Undirected, Kind::Directed] {
                for route in [Route::Lanes, Route::Rows] {
                    if route == Route::Lanes && n > 400 { continue; }
                    if let Ok(only) = std::env::var("ONLY") { if only != format!("{kind:?}{route:?}") { continue; } }
                    let (v, m) = kernel::<T>(kind, n, Some(route), level);
                    let ops = (n as f64).powi(3) * if kind == Kind::Directed { 2.0 } else { 1.0 };
                    let rate = ops / m / 1e9;
                    print!(" {:.3?}{:?} {:8.2}us {:8.2}us {:.2} |", if kind == Kind::Directed {'d'} else {'u'}, route, v * 1e6, m * 1e6, rate / g);
                }
            }
            if std::env::var("BACK").is_ok() {
            for kind in [Kind::Undirected, Kind::Directed] {
                for (k, keep) in [(2, 1 << 30), (2, 0), (4, 1 << 30)] {
                    let (v, m) = backend::<T>(kind, n, level, k, keep);
                    print!(" {kind:?} k={k} keep={} {:8.2}us {:8.2}us |", keep > 0, v * 1e6, m * 1e6);
                }
            }}
            println!();
        }
    });
}

fn main() {
    let level = match std::env::var("LEVEL").as_deref() { Ok("avx2") => Level::Avx2, Ok("portable") => Level::Portable, _ => Level::best() };
    table::<f32>("f32", 1, level);
    if std::env::var("ALL").is_ok() {
    table::<f32>("f32", 2, level);
    table::<f64>("f64", 1, level);
    }
}
