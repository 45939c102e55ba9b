//! Tests and measures the GPU, wherever there is one: `everytree-gpu test`, `everytree-gpu bench`, `everytree-gpu
//! score`. Without a GPU it says so and
//! exits with 4.

use everytree::forest::{Backend, Codes, Counts, Cpu, Tables};
use everytree::learn::{
    Data, Engine, Family, Settings, Start, State, Step, edge_posteriors, evaluate, log_likelihoods,
};
use everytree::model::{Component, Mixture, Numbers, Pairs, Regularisation};
use everytree::spanning::Kind;
use everytree::table::Table;
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
        Some("score") => score(&single, &double),
        Some("bench") => bench(&single, arguments.get(1).and_then(|size| size.parse().ok())),
        _ => Err("everytree-gpu test | bench [N] | score".to_owned()),
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
        (128, 20),
        (129, 20),
        (143, 20),
        (144, 20),
        (145, 20),
        (150, 300),
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
    failed += learning(single, double)?;
    println!("a few rows at a time");
    single.at_most(7);
    double.at_most(7);
    failed += learning(single, double)?;
    single.at_most(usize::MAX);
    double.at_most(usize::MAX);
    failed += large(single)?;
    if failed > 0 { Err(format!("{failed} checks failed")) } else { Ok(()) }
}

/// Rows in which variables depend on each other: each follows the one before, or chance. The last state of the fourth variable is
/// never seen.
fn table(states: &[usize], rows: usize, seed: u64) -> Table {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut table = Table::new(states);
    for _ in 0..rows {
        let mut row = vec![0u16; states.len()];
        for v in 0..states.len() {
            let count = if v == 3 && states[v] > 1 { states[v] - 1 } else { states[v] };
            let follows = v > 0 && chance.next() < 0.6;
            let wish = if follows { row[v - 1] as usize } else { (chance.next() * count as f64) as usize };
            row[v] = wish.min(count - 1) as u16;
        }
        table.push(&row);
    }
    table
}

/// Some epochs of learning with these settings.
fn learned<M: Engine<Mixture<Component>>, J: Engine<Mixture<Component>>>(
    start: &Mixture<Component>,
    data: Data<'_>,
    settings: &Settings,
    machine: &M,
    judge: &J,
) -> Result<State<Mixture<Component>>, String> {
    let mut state = State::new(start.clone());
    state.run(data, settings, machine, judge, &mut ()).map_err(|error| error.to_string())?;
    Ok(state)
}

/// Whole steps on the device against those of the processor: both families, mixtures, variables of many states, states that no row
/// shows, everything that regularises. How many checks failed.
fn learning(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<usize, String> {
    println!("family,n,states,components,precision,parameters,validation");
    let cpu = Cpu::<f64>::new();
    let mut failed = 0;
    for (family, n, mixed, components, rows) in [
        (Family::Moat, 9, false, 1, 300),
        (Family::Moat, 9, true, 1, 300),
        (Family::Moat, 40, false, 3, 300),
        (Family::Moat, 40, true, 2, 300),
        (Family::Moat, 150, false, 1, 200),
        (Family::Moat, 270, true, 2, 100),
        (Family::Directed, 9, false, 1, 300),
        (Family::Directed, 9, true, 1, 300),
        (Family::Directed, 40, false, 3, 300),
        (Family::Directed, 40, true, 2, 300),
        (Family::Directed, 150, false, 1, 200),
        (Family::Directed, 270, true, 2, 100),
    ] {
        let states: Vec<usize> = (0..n).map(|v| if mixed { 1 + v % 5 } else { 2 }).collect();
        let [train, valid] = [1, 2].map(|seed| table(&states, rows, seed).unique());
        let start = Start { family, pairs: Pairs::Lambda, pseudo_rows: 1.0, random: false, seed: 5 };
        let start = start.model(&states, &train, components, 1).map_err(|error| error.to_string())?;
        // Parameters that rows say next to nothing about are drawn to the mean of the components, and there Adam makes large steps of
        // small noise: shrinkage is for the others.
        let settings = Settings {
            epochs: 2,
            batch: 64,
            learning_rate: 0.03,
            averaging: Some(0.8),
            regularisation: Regularisation { shrinkage: if mixed { 0.0 } else { 2.0 }, smoothing: 0.1 },
            ..Settings::paper(n)
        };
        let data = Data { train: &train, valid: &valid };
        let truth = learned(&start, data, &settings, &cpu, &cpu)?;
        let mut check = |name: &str, found: State<Mixture<Component>>, most: [f64; 2]| {
            let both = truth.model.to_vec().into_iter().zip(found.model.to_vec());
            let parameters = both.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let epochs = truth.history.iter().zip(&found.history);
            let valid = epochs.map(|(a, b)| (a.valid - b.valid).abs()).fold(0.0, f64::max);
            let fine = parameters <= most[0] && valid <= most[1];
            failed += usize::from(!fine);
            println!(
                "{family:?},{n},{},{components},{name},{parameters:.1e},{valid:.1e}{}",
                if mixed { "mixed" } else { "2" },
                if fine { "" } else { "  <-- too far" }
            );
        };
        // Steps of Adam are as long for small derivatives as for large ones: in f32 single parameters may go other ways.
        check("f32", learned(&start, data, &settings, single, double)?, [f64::INFINITY, 2e-2]);
        check("f64", learned(&start, data, &settings, double, double)?, [1e-4, 1e-8]);
        // Edges go through the door of forests, all components at once.
        let words = |error: everytree::model::ModelError| error.to_string();
        let edges = [
            edge_posteriors(&truth.model, &valid, &cpu).map_err(words)?.concat(),
            edge_posteriors(&truth.model, &valid, double).map_err(words)?.concat(),
        ];
        let far = edges[0].iter().zip(&edges[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if far > 1e-9 {
            println!("edges {far:.1e}  <-- too far");
            failed += 1;
        }
        let twice = [0, 1].map(|_| learned(&start, data, &settings, single, double));
        let [once, twice] = twice;
        if once?.model != twice?.model {
            println!("not the same twice");
            failed += 1;
        }
    }
    Ok(failed)
}

/// Models of as many variables as the datasets have, after some steps: log-likelihoods of rows and probabilities of edges in f32
/// against f64 of the processor.
fn large(single: &Cuda<f32>) -> Result<usize, String> {
    println!("family,n,log_likelihood,edges");
    let cpu = Cpu::<f64>::new();
    let mut failed = 0;
    for (family, n) in
        [(Family::Moat, 500), (Family::Directed, 500), (Family::Moat, 1556), (Family::Directed, 1556)]
    {
        let states = vec![2; n];
        let [train, valid] = [(1, 400), (2, 4)].map(|(seed, rows)| table(&states, rows, seed).unique());
        let start = Start { family, pairs: Pairs::Lambda, pseudo_rows: 1.0, random: false, seed: 5 };
        let start = start.model(&states, &train, 1, 1).map_err(|error| error.to_string())?;
        let settings = Settings { epochs: 3, ..Settings::paper(n) };
        let data = Data { train: &train, valid: &valid };
        let model = learned(&start, data, &settings, single, single)?.model;
        let words = |error: everytree::model::ModelError| error.to_string();
        let truth = evaluate(&model, &valid, &cpu).map_err(words)?.log_likelihood;
        let found = evaluate(&model, &valid, single).map_err(words)?.log_likelihood;
        let logs = truth.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let truth = edge_posteriors(&model, &valid, &cpu).map_err(words)?;
        let found = edge_posteriors(&model, &valid, single).map_err(words)?;
        let edges = truth[0].iter().zip(&found[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let fine = logs <= if n <= 500 { 1e-4 } else { 1e-3 } && edges <= 1e-4;
        failed += usize::from(!fine);
        println!("{family:?},{n},{logs:.1e},{edges:.1e}{}", if fine { "" } else { "  <-- too far" });
    }
    Ok(failed)
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

/// All sizes, or one: whole steps of both families, from a batch to new parameters.
fn bench(machine: &Cuda<f32>, only: Option<usize>) -> Result<(), String> {
    let rate = machine.gemm_rate(8192, 10).map_err(|error| error.to_string())?;
    println!("# {}, matrix product of 8192 in f32: {:.1} TFLOP/s", machine.name(), rate / 1e12);
    println!("family,n,batch,step_ms,published_ms,times_faster,floor_ms,floor_share,share_of_gemm");
    let mut sizes: Vec<_> = PUBLISHED.into_iter().chain([(500, 256, f64::NAN)]).collect();
    if let Some(only) = only {
        sizes.retain(|(n, ..)| *n == only);
        if sizes.is_empty() {
            sizes.push((only, Settings::paper(only).batch, f64::NAN));
        }
    }
    for (n, batch, published) in sizes {
        for family in [Family::Moat, Family::Directed] {
            let time = step(machine, family, n, batch)?;
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

/// The time of a step, in seconds: the fastest of several runs of some.
fn step<T: CudaReal>(machine: &Cuda<T>, family: Family, n: usize, batch: usize) -> Result<f64, String> {
    let words = |error: everytree::model::ModelError| error.to_string();
    let states = vec![2; n];
    let train = table(&states, batch, 1).unique();
    let start = Start { family, pairs: Pairs::Lambda, pseudo_rows: 1.0, random: false, seed: 5 };
    let model = start.model(&states, &train, 1, 1).map_err(words)?;
    let mut steps = machine
        .steps(&model, &[], &Settings::paper(n))
        .map_err(words)?
        .ok_or("the device does not know this family")?;
    let state = State::new(model);
    steps.rows(&train).map_err(words)?;
    steps.take(&state.model, &state.adam, None).map_err(words)?;
    let places: Vec<u32> = (0..train.table.rows() as u32).collect();
    let total = train.weights.iter().sum();
    let step = Step { places: &places, weights: &train.weights, total, share: 1.0, rate: 1e-3 };
    let mut best = f64::INFINITY;
    for _ in 0..6 {
        const SOME: u32 = 4;
        let begin = Instant::now();
        for _ in 0..SOME {
            steps.begin(&step).map_err(words)?;
            steps.end().map_err(words)?.ok_or("a step in doubt")?;
        }
        best = best.min(begin.elapsed().as_secs_f64() / f64::from(SOME));
    }
    Ok(best)
}

/// Rows a second that are scored: in f64 and f32 on the device, in f64 on all cores of the processor.
fn score(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("# {}, and {cores} threads of the processor beside it", single.name());
    println!("family,n,rows,gpu_f64,gpu_f32,cpu_f64,times_faster");
    let words = |error: everytree::model::ModelError| error.to_string();
    for (n, rows) in [(16, 1_000_000), (100, 100_000), (500, 4000), (1556, 512)] {
        for family in [Family::Moat, Family::Directed] {
            let states = vec![2; n];
            let train = table(&states, 1000, 1).unique();
            let start = Start { family, pairs: Pairs::Lambda, pseudo_rows: 1.0, random: false, seed: 5 };
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
            // The processor has more than enough to do with some of them.
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
