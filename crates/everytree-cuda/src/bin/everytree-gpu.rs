//! Tests and measures the GPU, wherever there is one: `everytree-gpu test`, `everytree-gpu bench`. Without a GPU it says so and
//! exits with 4.

use everytree::forest::{Backend, Codes, Counts, Cpu, Tables};
use everytree::spanning::Kind;
use everytree_cuda::{Cuda, CudaReal};
use std::process::ExitCode;
use std::time::Instant;

/// There is no GPU.
const NO_GPU: u8 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (single, double) = match (Cuda::<f32>::open(0), Cuda::<f64>::open(0)) {
        (Ok(single), Ok(double)) => (single, double),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("no GPU to work on: {error}");
            return ExitCode::from(NO_GPU);
        }
    };
    eprintln!("{}", single.name());
    let done = match arguments.first().map(String::as_str) {
        Some("test") => test(&single, &double),
        Some("bench") => bench(&single, arguments.get(1).and_then(|size| size.parse().ok())),
        _ => Err("everytree-gpu test | bench [N]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers by chance, the same every time (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Tables whose rates spread over so many decades, and rows.
fn problem(kind: Kind, states: &[usize], rows: usize, decades: f64, seed: u64) -> (Tables, Vec<u16>) {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let rate = |_: usize, _: usize, _: usize, _: usize| 10f64.powf(decades * (chance.next() - 0.5));
    let tables = Tables::build(kind, states, rate).expect("rates that are fine");
    let mut chance = Chance(seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
    let codes = (0..rows).flat_map(|_| states.to_vec()).map(|count| (chance.next() * count as f64) as u16);
    (tables, codes.collect())
}

/// log F and counts of all rows on a machine.
fn run<M: Backend>(
    machine: &M,
    tables: &Tables,
    codes: &[u16],
    weights: &[f64],
) -> Result<(Vec<f64>, Counts, usize), String> {
    let words = |error: everytree::forest::ForestError| error.to_string();
    let n = tables.variables();
    let prepared = machine.prepare(tables);
    let mut trace = machine.trace();
    let mut logs = vec![0.0; weights.len()];
    let codes = Codes::new(codes, n).map_err(words)?;
    let summary = machine.forward(&prepared, codes, &mut trace, &mut logs).map_err(words)?;
    let mut counts = Counts::new(tables);
    machine.backward(&prepared, &mut trace, weights, &mut counts).map_err(words)?;
    Ok((logs, counts, summary.recomputed))
}

/// How far two machines are from each other: log F, and counts as a share of the weight of all rows.
fn apart(
    tables: &Tables,
    one: &(Vec<f64>, Counts, usize),
    other: &(Vec<f64>, Counts, usize),
    weight: f64,
) -> (f64, f64) {
    let logs = one.0.iter().zip(&other.0).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let n = tables.variables();
    let mut most = 0.0f64;
    for v in 0..n {
        for u in 0..if tables.kind() == Kind::Undirected { v } else { n } {
            for a in 0..tables.states(v) {
                for b in (0..tables.states(u)).filter(|&b| u != v || a == b) {
                    most = most.max((one.1.get(v, a, u, b) - other.1.get(v, a, u, b)).abs() / weight);
                }
            }
        }
    }
    (logs, most)
}

fn test(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<(), String> {
    let exact = Cpu::<f64>::new();
    let mut failed = 0;
    println!("kind,n,states,rows,decades,precision,log_f,counts,recomputed");
    for (number, (n, rows)) in [
        (2, 5),
        (3, 40),
        (16, 300),
        (31, 65),
        (32, 65),
        (33, 65),
        (64, 40),
        (65, 40),
        (100, 64),
        (163, 40),
        (294, 20),
        (500, 10),
    ]
    .into_iter()
    .enumerate()
    {
        for kind in [Kind::Undirected, Kind::Directed] {
            for (mixed, decades) in [(false, 2.0), (true, 4.0), (false, 60.0)] {
                let states: Vec<usize> = (0..n).map(|v| if mixed { 1 + v % 5 } else { 2 }).collect();
                let (tables, codes) = problem(kind, &states, rows, decades, number as u64 + 1);
                let weights: Vec<f64> = (0..rows).map(|row| [1.0, 0.0, 2.5, 0.5][row % 4]).collect();
                let total: f64 = weights.iter().sum();
                let truth = run(&exact, &tables, &codes, &weights)?;
                let mut check = |name: &str, found: (Vec<f64>, Counts, usize), logs: f64, counts: f64| {
                    let (log, count) = apart(&tables, &truth, &found, total);
                    let fine = log <= logs && count <= counts;
                    failed += usize::from(!fine);
                    println!(
                        "{kind:?},{n},{},{rows},{decades},{name},{log:.1e},{count:.1e},{}{}",
                        if mixed { "mixed" } else { "2" },
                        found.2,
                        if fine { "" } else { "  <-- too far" }
                    );
                };
                check("f32", run(single, &tables, &codes, &weights)?, 1e-4, 1e-4);
                check("f64", run(double, &tables, &codes, &weights)?, 1e-9, 1e-9);
                let (once, twice) =
                    (run(single, &tables, &codes, &weights)?, run(single, &tables, &codes, &weights)?);
                if apart(&tables, &once, &twice, total) != (0.0, 0.0) {
                    println!("not the same twice");
                    failed += 1;
                }
            }
        }
    }
    if failed > 0 { Err(format!("{failed} checks failed")) } else { Ok(()) }
}

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

/// All sizes, or one.
fn bench(machine: &Cuda<f32>, only: Option<usize>) -> Result<(), String> {
    let rate = machine.gemm_rate(8192, 10).map_err(|error| error.to_string())?;
    println!("# {}, matrix product of 8192 in f32: {:.1} TFLOP/s", machine.name(), rate / 1e12);
    println!("kind,n,batch,prepare_ms,forward_ms,backward_ms,published_ms,times_faster,share_of_gemm");
    let sizes = PUBLISHED.into_iter().chain([(500, 256, f64::NAN)]);
    for (n, batch, published) in sizes.filter(|(n, ..)| only.is_none_or(|only| only == *n)) {
        for kind in [Kind::Undirected, Kind::Directed] {
            let [prepare, forward, backward] = step(machine, kind, n, batch)?;
            let work = (n as f64).powi(3) * batch as f64 / (forward + backward);
            println!(
                "{kind:?},{n},{batch},{:.3},{:.3},{:.3},{published},{:.1},{:.3}",
                prepare * 1e3,
                forward * 1e3,
                backward * 1e3,
                published / 1e3 / (prepare + forward + backward),
                work / rate
            );
        }
    }
    Ok(())
}

/// The fastest of several steps, in seconds: tables to the device, forward, backward with counts back.
fn step<T: CudaReal>(machine: &Cuda<T>, kind: Kind, n: usize, batch: usize) -> Result<[f64; 3], String> {
    let words = |error: everytree::forest::ForestError| error.to_string();
    let (tables, codes) = problem(kind, &vec![2; n], batch, 2.0, 7);
    let codes = Codes::new(&codes, n).map_err(words)?;
    let (weights, mut logs) = (vec![1.0; batch], vec![0.0; batch]);
    let mut trace = machine.trace();
    let mut counts = Counts::new(&tables);
    let mut best = [f64::INFINITY; 3];
    for _ in 0..8 {
        let begin = Instant::now();
        let prepared = machine.prepare(&tables);
        let ready = begin.elapsed().as_secs_f64();
        machine.forward(&prepared, codes, &mut trace, &mut logs).map_err(words)?;
        let done = begin.elapsed().as_secs_f64();
        machine.backward(&prepared, &mut trace, &weights, &mut counts).map_err(words)?;
        let times = [ready, done - ready, begin.elapsed().as_secs_f64() - done];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
    }
    Ok(best)
}
