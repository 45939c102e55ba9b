//! Asking a model: trees a second with their messages, rows a second given evidence, the most probable row, and how long a
//! question takes to a standard error of 0.005. On all threads.
//!
//! Models are initialised from 4,000 rows of a mixture of profiles; evidence is that of rows of the same kind, a fifth of
//! their columns. Profiles are near to each other (weak ties between columns) or far apart (strong ties): the stronger the
//! ties, the fewer random trees explain the evidence. Prints CSV.

use everytree_core::data::Table;
use everytree_core::infer::{
    Effort, Evidence, Method, Sampling, Search, most_probable, posterior, posterior_by_what_fits, sample,
};
use everytree_core::model::{Density, Moat, PairCounts, Pairs};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::time::Instant;

/// How far profiles are apart: how many, the share of columns that are mostly 1, and how often those and the others are 1.
#[derive(Clone, Copy)]
struct Ties(usize, f64, f64, f64);

const WEAK: Ties = Ties(10, 0.1, 0.7, 0.1);
const STRONG: Ties = Ties(4, 0.3, 0.8, 0.05);

fn rows(n: usize, ties: Ties, count: usize, seed: u64) -> Vec<Vec<u16>> {
    let Ties(profiles, share, high, low) = ties;
    let mut rng = Pcg64::seed_from_u64(1);
    let profiles: Vec<Vec<f64>> = (0..profiles)
        .map(|_| (0..n).map(|_| if rng.random_bool(share) { high } else { low }).collect())
        .collect();
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut row = || -> Vec<u16> {
        let profile = &profiles[rng.random_range(0..profiles.len())];
        profile.iter().map(|&p| u16::from(rng.random_bool(p))).collect()
    };
    (0..count).map(|_| row()).collect()
}

fn model(n: usize, ties: Ties) -> Moat {
    let states = vec![2; n];
    let mut table = Table::new(&states);
    rows(n, ties, 4000, 2).iter().for_each(|row| table.push(row));
    let counts = PairCounts::new(&states, &table, &vec![1.0; 4000]);
    Moat::from_counts(&counts, Pairs::Lambda, 1.0).expect("a model")
}

/// A fifth of the columns of a row.
fn evidence(n: usize, ties: Ties, seed: u64) -> Evidence {
    let row = &rows(n, ties, 1, 100 + seed)[0];
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut columns: Vec<usize> = (0..n).collect();
    let mut evidence = Evidence::none(&vec![2; n]);
    for _ in 0..n / 5 {
        let column = columns.swap_remove(rng.random_range(0..columns.len()));
        evidence.set(column, &[row[column].into()]).expect("a state");
    }
    evidence
}

fn seconds<R>(mut run: impl FnMut() -> R) -> f64 {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed().as_secs_f64()
    };
    // The shortest of three: the one that was disturbed least.
    std::iter::repeat_with(once).take(3).fold(f64::MAX, f64::min)
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("what,n,observed,threads,per_second,milliseconds,goal,met");
    for (n, trees) in [(16, 65_536), (100, 32_768), (500, 4096), (1058, 1024)] {
        let moat = model(n, WEAK);
        let asked = moat.density().expect("a model");
        let known = evidence(n, WEAK, 0);
        let effort = Effort { trees, tolerance: None, ..Effort::default() };
        for (what, method) in [("collapsed trees", Method::Collapsed), ("tilted trees", Method::Tilted)] {
            let time = seconds(|| posterior(&asked, &known, method, effort));
            println!("{what},{n},{},{threads},{:.0},{:.1},,", n / 5, trees as f64 / time, 1e3 * time);
        }
        let time = seconds(|| posterior(&asked, &known, Method::BlockGibbs, effort));
        println!("block Gibbs steps,{n},{},{threads},{:.0},{:.1},,", n / 5, trees as f64 / time, 1e3 * time);
        let count = if n <= 100 { 1000 } else { 50 };
        let sampling = Sampling { operations: 0.0, ..Sampling::default() };
        let time = seconds(|| sample(&asked, &known, count, sampling));
        println!(
            "samples given evidence,{n},{},{threads},{:.0},{:.1},,",
            n / 5,
            count as f64 / time,
            1e3 * time
        );
        let nothing = Evidence::none(asked.states());
        let time = seconds(|| sample(&asked, &nothing, 10 * count, sampling));
        println!("samples,{n},0,{threads},{:.0},{:.1},,", 10.0 * count as f64 / time, 1e3 * time);
        if n == 100 {
            let time = seconds(|| most_probable(&asked, &known, 1, Search::default()));
            println!("most probable row,{n},{},{threads},{:.2},{:.1},,", n / 5, 1.0 / time, 1e3 * time);
        }
    }
    questions("weak ties", WEAK, threads);
    questions("strong ties", STRONG, threads);
}

/// The goal: a question to 100 variables of which 20 are observed, in 50 ms. Twenty questions, for all hidden variables, and
/// for one of them.
fn questions(name: &str, ties: Ties, threads: usize) {
    let moat = model(100, ties);
    let asked = moat.density().expect("a model");
    for one in [false, true] {
        let mut times: Vec<f64> = (0..20)
            .map(|seed| {
                let known = evidence(100, ties, seed);
                let hidden = (0..100).find(|&v| !known.is_given(v)).expect("a hidden variable");
                let targets = [hidden];
                let effort = Effort { targets: if one { &targets } else { &[] }, ..Effort::default() };
                1e3 * seconds(|| posterior_by_what_fits(&asked, &known, effort))
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let what = if one { "one variable" } else { "all variables" };
        for (which, time) in [("fastest", times[0]), ("median", times[10]), ("slowest", times[19])] {
            let met = if time < 50.0 { "yes" } else { "no" };
            println!(
                "question: {what}; {name}; {which} of 20,100,20,{threads},{:.1},{time:.1},50 ms,{met}",
                1e3 / time
            );
        }
    }
}
