//! Learning a hidden tree: a mini-batch with everything that belongs to it, beside a matrix product.
//!
//! Prints CSV. `gflops` counts the products of messages alone: up, down and expected counts, `3 n H²` multiplications with an
//! addition a row, and `3 n H` for the leaves. What a step does a parameter (exponentials, gradient, Adam) is in the time and not
//! in the operations, so the share of the rate of a product grows with the rows of a batch.

use everytree_bench::{gemm_rate, on_threads, thread_counts};
use everytree_core::data::{Table, Unique};
use everytree_core::forest::Cpu;
use everytree_core::learn::{Data, Observer, Progress, State};
use everytree_core::model::{Component, Family, Mixture, Pairs, Settings, Start};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::ops::ControlFlow;
use std::time::Instant;

const COLUMNS: usize = 100;
const BATCHES: usize = 8;

/// Rows in which neighbours tend to agree.
fn rows(count: usize, seed: u64) -> Unique {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&[2; COLUMNS]);
    let mut row = vec![0u16; COLUMNS];
    for _ in 0..count {
        for v in 0..COLUMNS {
            let last = if v == 0 { 0 } else { row[v - 1] };
            row[v] = if rng.random_bool(0.5) { last } else { u16::from(rng.random_bool(0.4)) };
        }
        table.push(&row);
    }
    table.unique()
}

/// The shortest time of a batch, in seconds.
struct Clock {
    last: Option<Instant>,
    best: f64,
}

impl Observer<Mixture<Component>> for Clock {
    fn batch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let now = Instant::now();
        // The first batch of an epoch comes after a validation.
        if let Some(last) = self.last.filter(|_| progress.rows > progress.of_rows / BATCHES) {
            self.best = self.best.min((now - last).as_secs_f64());
        }
        self.last = Some(now);
        ControlFlow::Continue(())
    }
}

fn batch(hidden: usize, size: usize) -> f64 {
    let (train, valid) = (rows(size * BATCHES, 1), rows(64, 2));
    let start =
        Start { family: Family::Hclt, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 3 };
    let model = start.model(&[2; COLUMNS], &train, 1, hidden).expect("a hidden tree");
    let settings = Settings { epochs: 5, batch_size: size, patience: None, ..Family::Hclt.settings(COLUMNS) };
    let mut clock = Clock { last: None, best: f64::MAX };
    let data = Data { train: &train, valid: &valid };
    let (learns, judges) = (Cpu::<f32>::new(), Cpu::<f64>::new().keeping(0));
    State::new(model).run(data, &settings, &learns, &judges, &mut clock).expect("learning");
    clock.best
}

fn main() {
    println!("what,hidden,batch,threads,ms_a_batch,gflops,gemm_gflops,of_gemm");
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    for hidden in [32, 64, 128] {
        if !(asked.is_empty() || asked.contains(&hidden)) {
            continue;
        }
        for size in [256, 1024] {
            for threads in thread_counts() {
                let seconds = on_threads(threads, || batch(hidden, size));
                let (n, h) = (COLUMNS as f64, hidden as f64);
                let operations = size as f64 * (3.0 * n * h * h + 3.0 * n * h) * 2.0;
                let (rate, gemm) = (operations / seconds / 1e9, gemm_rate::<f32>(hidden, threads));
                println!(
                    "hidden tree,{hidden},{size},{threads},{:.3},{rate:.1},{gemm:.1},{:.3}",
                    seconds * 1e3,
                    rate / gemm
                );
            }
        }
    }
}
