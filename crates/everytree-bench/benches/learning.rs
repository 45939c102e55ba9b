//! A training step (value, gradient, update) per row, and how time and memory grow with rows and variables.
//!
//! Prints CSV. `pytorch_us` is the step of the published PyTorch code on two CPU cores, measured elsewhere.

use everytree_bench::{on_threads, thread_counts};
use everytree_core::data::{Table, Unique};
use everytree_core::forest::Cpu;
use everytree_core::learn::{Data, Observer, Progress, State};
use everytree_core::model::{Moat, PairCounts, Pairs, Settings};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::ops::ControlFlow;
use std::time::Instant;

/// Rows in which neighbours tend to agree.
fn rows(n: usize, count: usize, seed: u64) -> Unique {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&vec![2; n]);
    let mut row = vec![0u16; n];
    for _ in 0..count {
        for v in 0..n {
            let last = if v == 0 { 0 } else { row[v - 1] };
            row[v] = if rng.random_bool(0.2) { last } else { u16::from(rng.random_bool(0.4)) };
        }
        table.push(&row);
    }
    table.unique()
}

/// Times the batches.
struct Clock {
    last: Instant,
    rows: usize,
    /// Shortest seconds a row.
    best: f64,
    seconds: f64,
}

impl Observer<Moat> for Clock {
    fn batch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let (now, done) = (Instant::now(), progress.rows);
        if done > self.rows {
            let seconds = (now - self.last).as_secs_f64();
            self.seconds += seconds;
            self.best = self.best.min(seconds / (done - self.rows) as f64);
        }
        (self.last, self.rows) = (now, done);
        ControlFlow::Continue(())
    }
}

/// Seconds a row of the quickest batch, and of all batches but the first of each epoch together.
fn learn(n: usize, count: usize, epochs: usize) -> (f64, f64) {
    let (train, valid) = (rows(n, count, 1), rows(n, 16, 2));
    let counts = PairCounts::new(&vec![2; n], &train.table, &train.weights);
    let model = Moat::from_counts(&counts, Pairs::Lambda, 1.0).expect("counts");
    let settings = Settings { epochs, ..Settings::paper(n) };
    let mut clock = Clock { last: Instant::now(), rows: usize::MAX, best: f64::MAX, seconds: 0.0 };
    let data = Data { train: &train, valid: &valid };
    let judge = Cpu::<f64>::new().keeping(0);
    State::new(model).run(data, &settings, &Cpu::<f32>::new(), &judge, &mut clock).expect("learning");
    (clock.best, clock.seconds)
}

/// Most memory of this process so far, in MB, from now on counted anew.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    Some(kilobytes / 1e3)
}

fn main() {
    println!(
        "what,n,rows,batch,threads,us_per_row,pytorch_us,times_faster,exponent,peak_mb,memory_exponent,goal,met"
    );
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let wanted = |n: usize| asked.is_empty() || asked.contains(&n);
    let all = *thread_counts().last().expect("a thread");
    for (n, pytorch, goal) in [
        (16, 30.0, 30.0),
        (100, 950.0, 30.0),
        (163, 2300.0, 30.0),
        (500, 24_000.0, 15.0),
        (1058, 262_000.0, 0.0),
    ] {
        if !wanted(n) {
            continue;
        }
        let batch = Settings::paper(n).batch_size;
        let epochs = if n > 500 { 1 } else { 5 };
        for threads in thread_counts() {
            let (seconds, _) = on_threads(threads, || learn(n, 5 * batch, epochs));
            let times = pytorch / (seconds * 1e6);
            let (goal, met) = match threads == all && goal > 0.0 {
                true => (format!("{goal} times"), if times >= goal { "yes" } else { "no" }),
                false => (String::new(), ""),
            };
            println!(
                "training step,{n},{},{batch},{threads},{:.3},{pytorch},{times:.1},,,,{goal},{met}",
                5 * batch,
                seconds * 1e6
            );
        }
    }
    if !asked.is_empty() {
        return;
    }
    let mut last: Option<f64> = None;
    for count in [5 * 1024, 9 * 1024, 17 * 1024] {
        // The first batch of an epoch is not timed.
        let (_, seconds) = on_threads(all, || learn(64, count, 3));
        let timed = (count - 1024) as f64;
        let exponent = last.map_or(String::new(), |last| format!("{:.2}", (seconds / last).log2()));
        println!(
            "growth with rows,64,{},1024,{all},{:.3},,,{exponent},,,,",
            count - 1024,
            seconds / 3.0 / timed * 1e6
        );
        last = Some(seconds);
    }
    let mut last: Option<(usize, f64, Option<f64>)> = None;
    let _ = peak_memory();
    for n in [500, 700, 1000, 1400] {
        let (seconds, _) = on_threads(all, || learn(n, 192, 1));
        let memory = peak_memory();
        let (exponent, memory_exponent) = match last {
            Some((smaller, before, memory_before)) => {
                let size = (n as f64 / smaller as f64).ln();
                let slope = |now: f64, before: f64| format!("{:.2}", (now / before).ln() / size);
                let memory_slope =
                    memory.zip(memory_before).map_or(String::new(), |(now, before)| slope(now, before));
                (slope(seconds, before), memory_slope)
            }
            None => (String::new(), String::new()),
        };
        let megabytes = memory.map_or(String::new(), |memory| format!("{memory:.0}"));
        println!(
            "growth with variables,{n},192,64,{all},{:.3},,,{exponent},{megabytes},{memory_exponent},,",
            seconds * 1e6
        );
        last = Some((n, seconds, memory));
    }
}
