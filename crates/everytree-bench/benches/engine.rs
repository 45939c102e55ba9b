//! Value, and value with marginals, per row: the kernel on rate matrices, and the forest backend on codes and counts.
//!
//! Prints CSV (`cargo xtask bench` makes a table of it). Arguments, all optional: sizes, to run only those.

use everytree_bench::{
    COLUMNS, best, gemm_rate, library_seconds, names, on_threads, operations, thread_counts,
};
use everytree_core::data::Codes;
use everytree_core::forest::{Backend, Counts, Cpu, Precision, Tables};
use everytree_core::spanning::{Elimination, Kind};
use faer::traits::ComplexField;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const SIZES: [usize; 9] = [16, 32, 64, 100, 163, 294, 500, 1058, 1556];

/// Rows enough for a tenth of a second on one core, and for every thread to have some.
fn rows(n: usize, threads: usize) -> usize {
    let groups = (1e9 / (n as f64).powi(3) / 16.0).clamp(1.0, 256.0) as usize;
    if n > 288 {
        ((4e9 / (n as f64).powi(3)) as usize).clamp(4, 64).next_multiple_of(threads)
    } else {
        16 * groups * threads
    }
}

/// Seconds a row for value alone and for both.
fn kernel<T: Precision>(kind: Kind, n: usize, rows: usize) -> (f64, f64) {
    let mut rng = Pcg64::seed_from_u64(1);
    let rates: Vec<T> = (0..rows * n * n).map(|_| T::from_f64(rng.random_range(0.01..1.0))).collect();
    let elimination = Elimination::<T>::new(kind, n).expect("a size");
    let mut log = vec![0.0; rows];
    let mut marginals = vec![T::default(); rows * n * n];
    let value = best(|| elimination.log_forests(&rates, &mut log).expect("rates"));
    let both = best(|| elimination.marginals(&rates, &mut log, &mut marginals).expect("rates"));
    (value / rows as f64, both / rows as f64)
}

/// The same through tables of `states` states and codes, with the counts added up.
fn backend<T: Precision>(kind: Kind, n: usize, rows: usize, states: usize, keep: bool) -> (f64, f64) {
    let mut rng = Pcg64::seed_from_u64(1);
    let tables =
        Tables::build(kind, &vec![states; n], |_, _, _, _| rng.random_range(0.01..1.0)).expect("tables");
    let codes: Vec<u8> = (0..rows * n).map(|_| rng.random_range(0..states) as u8).collect();
    let codes = Codes::new(&codes, n).expect("codes");
    let cpu = if keep { Cpu::<T>::new() } else { Cpu::new().keeping(0) };
    let prepared = cpu.prepare(&tables);
    let (mut trace, mut log) = (cpu.trace(), vec![0.0; rows]);
    let (weights, mut counts) = (vec![1.0; rows], Counts::new(&tables));
    let value = best(|| drop(cpu.forward(&prepared, codes, &mut trace, &mut log).expect("codes")));
    let both = best(|| {
        cpu.forward(&prepared, codes, &mut trace, &mut log).expect("codes");
        cpu.backward(&prepared, &mut trace, &weights, &mut counts).expect("weights");
    });
    (value / rows as f64, both / rows as f64)
}

/// What is asked of value and marginals, and whether it holds.
fn goals(
    what: &str,
    precision: &str,
    all: bool,
    n: usize,
    [both, of_gemm, kernel, faer]: [f64; 4],
) -> Vec<(String, bool)> {
    let mut goals = Vec::new();
    if what == "kernel" {
        goals.push(("faster than faer".to_owned(), both <= faer));
        if precision == "f32" && all && n >= 300 {
            goals.push(("0.5 of GEMM".to_owned(), of_gemm >= 0.5));
        } else if precision == "f32" && all && n >= 100 {
            goals.push(("0.33 of GEMM".to_owned(), of_gemm >= 1.0 / 3.0));
        } else if precision == "f32" && !all && n == 16 {
            goals.push(("0.6 us".to_owned(), both <= 0.6e-6));
        }
    } else if what == "backend 2 states" && n >= 100 {
        goals.push(("4/3 of kernel".to_owned(), both <= kernel * 4.0 / 3.0));
    }
    goals
}

fn measure<T: Precision + ComplexField>(n: usize, threads: usize, all: bool) {
    let gemm = gemm_rate::<T>(n, threads);
    for kind in [Kind::Undirected, Kind::Directed] {
        let faer = library_seconds::<T>(kind, n, threads);
        let rows = crate::rows(n, threads);
        let (name, precision) = names::<T>(kind);
        let mut kernel_both = 0.0;
        let mut line = |what: &str, (value, both): (f64, f64)| {
            if what == "kernel" {
                kernel_both = both;
            }
            let rate = operations(kind, n) / both / 1e9;
            let goals = goals(what, precision, all, n, [both, rate / gemm, kernel_both, faer]);
            let goal = goals.iter().map(|(goal, _)| goal.as_str()).collect::<Vec<_>>().join("; ");
            let met =
                goals.iter().map(|&(_, met)| if met { "yes" } else { "no" }).collect::<Vec<_>>().join("; ");
            println!(
                "{what},{name},{precision},{threads},{n},{:.3},{:.3},{rate:.1},{gemm:.1},{:.3},{:.3},{:.2},{goal},{met}",
                value * 1e6,
                both * 1e6,
                rate / gemm,
                faer * 1e6,
                faer / both,
            );
        };
        line("kernel", kernel::<T>(kind, n, rows));
        // Whole chunks for every thread.
        let rows = rows.next_multiple_of(32 * threads);
        line("backend 2 states", backend::<T>(kind, n, rows, 2, true));
        if precision == "f32" && all {
            line("backend 2 states recomputing", backend::<T>(kind, n, rows, 2, false));
            line("backend 4 states", backend::<T>(kind, n, rows, 4, true));
        }
    }
}

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if asked.is_empty() { SIZES.to_vec() } else { asked };
    println!("{COLUMNS}");
    let counts = thread_counts();
    for &threads in &counts {
        let all = Some(&threads) == counts.last();
        for &n in &sizes {
            on_threads(threads, || {
                measure::<f32>(n, threads, all);
                measure::<f64>(n, threads, all);
            });
        }
    }
}
