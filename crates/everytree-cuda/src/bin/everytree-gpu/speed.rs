//! How long steps take, beside the published code and a floor; and how many rows a second are scored.

use crate::parity::learned;
use crate::{table, table_along};
use everytree_core::data::Unique;
use everytree_core::forest::Cpu;
use everytree_core::learn::{Data, Engine, State, Step, log_likelihoods};
use everytree_core::model::{Component, Family, Learnable, Mixture, Pairs, Settings, Start};
use everytree_cuda::{Cuda, CudaReal, Timed};
use std::time::Instant;

/// The published code on the same GPU, in milliseconds: variables, rows of a batch, time.
const PUBLISHED: [(usize, usize, f64); 7] = [
    (16, 1024, 7.7),
    (100, 1024, 72.0),
    (163, 1024, 173.0),
    (294, 1024, 581.0),
    (500, 64, 119.0),
    (1058, 64, 511.0),
    (1556, 64, 1019.0),
];

/// All sizes, or one: whole steps of both families, from a batch to new parameters.
pub fn bench(gpu: &Cuda<f32>, only: Option<usize>) -> Result<(), String> {
    let rate = gpu.gemm_rate(8192, 10).map_err(|error| error.to_string())?;
    println!("# {}, matrix product of 8192 in f32: {:.1} TFLOP/s", gpu.name(), rate / 1e12);
    println!("family,n,batch,step_ms,published_ms,times_faster,floor_ms,floor_share,share_of_gemm");
    let mut sizes: Vec<_> = PUBLISHED.into_iter().chain([(500, 256, f64::NAN)]).collect();
    if let Some(only) = only {
        sizes.retain(|(n, ..)| *n == only);
        if sizes.is_empty() {
            sizes.push((only, Settings::paper(only).batch_size, f64::NAN));
        }
    }
    for (n, batch, published) in sizes {
        for family in [Family::Moat, Family::Directed] {
            let time = step(gpu, family, n, batch)?;
            // Operations of rows: n³ a row, 2n³ in the directed family.
            let cubes = if family == Family::Moat { 1.0 } else { 2.0 };
            let work = cubes * (n as f64).powi(3) * batch as f64;
            // Bytes of parameters, Adam's memory and derivatives, each read and written once.
            let parameters = if family == Family::Moat { n * (n - 1) + n } else { 5 * n * n } as f64;
            let floor = work / rate + parameters * 8.0 * 7.0 / 4.0e12;
            println!(
                "{family:?},{n},{batch},{:.3},{published},{:.1},{:.3},{:.3},{:.3}",
                time * 1e3,
                published / 1e3 / time,
                floor * 1e3,
                floor / time,
                (n as f64).powi(3) * batch as f64 / time / rate
            );
        }
    }
    Ok(())
}

/// Does something with the steps of a made-up batch: what is handed over makes one.
fn with_steps<T: CudaReal, X>(
    gpu: &Cuda<T>,
    family: Family,
    n: usize,
    batch: usize,
    work: impl FnOnce(&mut dyn FnMut() -> Result<(), String>) -> Result<X, String>,
) -> Result<X, String> {
    let words = |error: everytree_core::model::ModelError| error.to_string();
    let states = vec![2; n];
    let train = table(&states, batch, 1).unique();
    let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 5 };
    let model = start.model(&states, &train, 1, 1).map_err(words)?;
    with_steps_of(gpu, model, &train, train.table.rows(), work)
}

/// The same for a model, and the first rows of a table.
fn with_steps_of<T: CudaReal, X>(
    gpu: &Cuda<T>,
    model: Mixture<Component>,
    train: &Unique,
    batch: usize,
    work: impl FnOnce(&mut dyn FnMut() -> Result<(), String>) -> Result<X, String>,
) -> Result<X, String> {
    let words = |error: everytree_core::model::ModelError| error.to_string();
    let n = model.states().len();
    let mut steps = gpu
        .steps(&model, &[], &Settings::paper(n))
        .map_err(words)?
        .ok_or("the device does not know this family")?;
    let state = State::new(model);
    steps.rows(train).map_err(words)?;
    steps.take(&state.model, &state.adam, None).map_err(words)?;
    let places: Vec<u32> = (0..batch.min(train.table.rows()) as u32).collect();
    let weights = &train.weights[..places.len()];
    let total = weights.iter().sum();
    let step = Step { places: &places, weights, total, share: 1.0, rate: 1e-3 };
    work(&mut || {
        steps.begin(&step).map_err(words)?;
        steps.end().map_err(words)?.ok_or("a step in doubt").map(drop)?;
        Ok(())
    })
}

/// The time of a step, in seconds: the fastest of several runs of some.
fn step<T: CudaReal>(gpu: &Cuda<T>, family: Family, n: usize, batch: usize) -> Result<f64, String> {
    with_steps(gpu, family, n, batch, fastest)
}

/// The same of a model, with the first rows of a table.
fn fastest_step<T: CudaReal>(
    gpu: &Cuda<T>,
    model: Mixture<Component>,
    train: &Unique,
    batch: usize,
) -> Result<f64, String> {
    with_steps_of(gpu, model, train, batch, fastest)
}

fn fastest(step: &mut dyn FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..6 {
        const SOME: u32 = 4;
        let begin = Instant::now();
        for _ in 0..SOME {
            step()?;
        }
        best = best.min(begin.elapsed().as_secs_f64() / f64::from(SOME));
    }
    Ok(best)
}

/// Where the time of a step goes: every kernel, and matrix products by their sizes.
pub fn profile(gpu: &Cuda<f32>, n: usize, batch: usize) -> Result<(), String> {
    println!("family,n,batch,work,times,milliseconds");
    for family in [Family::Moat, Family::Directed] {
        let of_step = step(gpu, family, n, batch)?;
        println!("{family:?},{n},{batch},a whole step,1,{:.3}", of_step * 1e3);
        let found = with_steps(gpu, family, n, batch, |step| {
            step()?;
            step()?;
            let (done, found) = gpu.timed(step).map_err(|error| error.to_string())?;
            done.map(|()| found)
        })?;
        for Timed { name, times, seconds } in found {
            println!("{family:?},{n},{batch},\"{name}\",{times},{:.3}", seconds * 1e3);
        }
    }
    Ok(())
}

/// Rows a second that are scored: in f64 and f32 on the device, in f64 on all cores of the CPU.
pub fn score(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("# {}, and {cores} threads of the CPU beside it", single.name());
    println!("family,n,rows,gpu_f64,gpu_f32,cpu_f64,times_faster");
    let words = |error: everytree_core::model::ModelError| error.to_string();
    for (n, rows) in [(16, 1_000_000), (100, 100_000), (500, 4000), (1556, 512)] {
        for family in [Family::Moat, Family::Directed] {
            let states = vec![2; n];
            let train = table(&states, 1000, 1).unique();
            let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 5 };
            let model = start.model(&states, &train, 1, 1).map_err(words)?;
            let rows = table(&states, rows, 2);
            let fastest = |work: &mut dyn FnMut() -> Result<(), String>| -> Result<f64, String> {
                let mut best = f64::INFINITY;
                for _ in 0..3 {
                    let begin = Instant::now();
                    work()?;
                    best = best.min(begin.elapsed().as_secs_f64());
                }
                Ok(rows.rows() as f64 / best)
            };
            let on_gpu = fastest(&mut || log_likelihoods(&model, &rows, double).map(drop).map_err(words))?;
            let in_f32 = fastest(&mut || log_likelihoods(&model, &rows, single).map(drop).map_err(words))?;
            let cpu = Cpu::<f64>::new().keeping(0);
            // The CPU has more than enough to do with some of them.
            let some = rows.select(0..(rows.rows() / 10).max(512));
            let begin = Instant::now();
            log_likelihoods(&model, &some, &cpu).map_err(words)?;
            let on_cpu = some.rows() as f64 / begin.elapsed().as_secs_f64();
            println!(
                "{family:?},{n},{},{on_gpu:.0},{in_f32:.0},{on_cpu:.0},{:.1}",
                rows.rows(),
                on_gpu / on_cpu
            );
        }
    }
    Ok(())
}

/// Hidden trees: an epoch of learning on the device beside one on all cores of the CPU, both in f32 with validation in f64; and a step
/// alone beside a matrix product. Columns follow each other in a binary tree, or in a chain, which has as many levels as columns.
pub fn hidden(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<(), String> {
    const N: usize = 100;
    const ROWS: usize = 16_384;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rate = single.gemm_rate(8192, 10).map_err(|error| error.to_string())?;
    println!("# {}, and {cores} threads of the CPU beside it; {N} columns, {ROWS} rows", single.name());
    println!("# everytree-gpu hidden");
    println!(
        "tree,hidden,batch,step_ms,tflops,of_gemm,gpu_epoch_ms,cpu_epoch_ms,times_faster,gpu_valid,cpu_valid"
    );
    let states = vec![2; N];
    let (fast, exact) = (Cpu::<f32>::new(), Cpu::<f64>::new());
    for (shape, follows) in [("binary", 2), ("chain", 1)] {
        let [train, valid] =
            [(1, ROWS), (2, 64)].map(|(seed, rows)| table_along(&states, rows, seed, follows).unique());
        let data = Data { train: &train, valid: &valid };
        for hidden in [16, 32, 64, 128, 256] {
            let start = Start {
                family: Family::Hclt,
                pairs: Pairs::Lambda,
                pseudocount: 1.0,
                random: false,
                seed: 5,
            };
            let start = start.model(&states, &train, 1, hidden).map_err(|error| error.to_string())?;
            for batch_size in [256, 1024, 4096] {
                let run = |epochs: usize, on_gpu: bool| {
                    let settings =
                        Settings { epochs, batch_size, learning_rate: 0.01, ..Family::Hclt.settings(N) };
                    let begin = Instant::now();
                    let state = match on_gpu {
                        true => learned(&start, data, &settings, single, double)?,
                        false => learned(&start, data, &settings, &fast, &exact)?,
                    };
                    let valid = state.history.last().map_or(f64::NAN, |epoch| epoch.valid);
                    Ok::<_, String>((begin.elapsed().as_secs_f64(), valid))
                };
                // What comes before the first epoch and after the last is in both.
                let epoch = |on_gpu: bool| {
                    let ((one, _), (two, valid)) = (run(1, on_gpu)?, run(2, on_gpu)?);
                    Ok::<_, String>((two - one, valid))
                };
                epoch(true)?;
                let ((gpu, gpu_valid), (cpu, cpu_valid)) = (epoch(true)?, epoch(false)?);
                let step = fastest_step(single, start.clone(), &train, batch_size)?;
                // Three products a latent variable and row.
                let flops = 6.0 * (batch_size * N) as f64 * (hidden * hidden) as f64 / step;
                println!(
                    "{shape},{hidden},{batch_size},{:.3},{:.2},{:.3},{:.1},{:.1},{:.1},{gpu_valid:.4},{cpu_valid:.4}",
                    step * 1e3,
                    flops / 1e12,
                    flops / rate,
                    gpu * 1e3,
                    cpu * 1e3,
                    cpu / gpu
                );
            }
        }
    }
    Ok(())
}
