//! The device against the CPU's f64: forests, whole steps, large models; and everything twice.

use crate::{Chance, table};
use everytree_core::data::Codes;
use everytree_core::data::Table;
use everytree_core::forest::{Backend, Counts, Cpu, Tables};
use everytree_core::learn::{Data, Engine, State, edge_posteriors, evaluate};
use everytree_core::model::{Component, Family, Mixture, Pairs, ParamsView, Regularisation, Settings, Start};
use everytree_core::spanning::Kind;
use everytree_cuda::Cuda;

/// Tables whose rates spread over so many decades, and rows.
fn problem(kind: Kind, states: &[usize], rows: usize, decades: f64, seed: u64) -> (Tables, Vec<u16>) {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let rate = |_: usize, _: usize, _: usize, _: usize| 10f64.powf(decades * (chance.next() - 0.5));
    let tables = Tables::build(kind, states, rate).expect("rates that are fine");
    let mut chance = Chance(seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
    let codes = (0..rows).flat_map(|_| states.to_vec()).map(|count| (chance.next() * count as f64) as u16);
    (tables, codes.collect())
}

/// log F and counts of all rows on a gpu.
fn run<M: Backend>(
    gpu: &M,
    tables: &Tables,
    codes: &[u16],
    weights: &[f64],
) -> Result<(Vec<f64>, Counts, usize), String> {
    let words = |error: everytree_core::forest::ForestError| error.to_string();
    let n = tables.variables();
    let prepared = gpu.prepare(tables);
    let mut trace = gpu.trace();
    let mut logs = vec![0.0; weights.len()];
    let codes = Codes::new(codes, n).map_err(|error| error.to_string())?;
    // On a thread that has never seen the device: the door is open to all of them.
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| gpu.forward(&prepared, codes, &mut trace, &mut logs)).join().expect("no panic")
    });
    let summary = summary.map_err(words)?;
    let mut counts = Counts::new(tables);
    gpu.backward(&prepared, &mut trace, weights, &mut counts).map_err(words)?;
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

/// All checks; an error that says how many failed.
pub fn test(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<(), String> {
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
        (111, 20),
        (112, 20),
        (113, 20),
        (128, 20),
        (129, 20),
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
    failed += crowded(single, double)?;
    failed += large(single)?;
    if failed > 0 { Err(format!("{failed} checks failed")) } else { Ok(()) }
}

/// Some epochs of learning with these settings.
pub fn learned<M: Engine<Mixture<Component>>, J: Engine<Mixture<Component>>>(
    start: &Mixture<Component>,
    data: Data<'_>,
    settings: &Settings,
    gpu: &M,
    judge: &J,
) -> Result<State<Mixture<Component>>, String> {
    let mut state = State::new(start.clone());
    state.run(data, settings, gpu, judge, &mut ()).map_err(|error| error.to_string())?;
    Ok(state)
}

/// Whole steps on the device against those of the CPU: all families it knows, mixtures, variables of many states, states that no row
/// shows, everything that regularises. Of the small models, that the probabilities of all rows sum to 1. How many checks failed.
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
        (Family::Hclt, 9, false, 1, 300),
        (Family::Hclt, 9, true, 1, 300),
        (Family::Hclt, 40, true, 1, 300),
        (Family::Hclt, 150, false, 1, 200),
        (Family::Hclt, 270, true, 1, 100),
    ] {
        let states: Vec<usize> = (0..n).map(|v| if mixed { 1 + v % 5 } else { 2 }).collect();
        let [train, valid] = [1, 2].map(|seed| table(&states, rows, seed).unique());
        let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 5 };
        // Not a multiple of anything.
        let hidden = if family == Family::Hclt { 17 + n % 50 } else { 1 };
        let start = start.model(&states, &train, components, hidden).map_err(|error| error.to_string())?;
        // Parameters that rows say next to nothing about are drawn to the mean of the components, and there Adam makes large steps of
        // small noise: shrinkage is for the others.
        let settings = Settings {
            epochs: 2,
            batch_size: 64,
            learning_rate: 0.03,
            ema: Some(0.8),
            regularisation: Regularisation { shrinkage: if mixed { 0.0 } else { 2.0 }, laplace: 0.1 },
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
        let words = |error: everytree_core::model::ModelError| error.to_string();
        let edges = [
            edge_posteriors(&truth.model, &valid, &cpu).map_err(words)?.concat(),
            edge_posteriors(&truth.model, &valid, double).map_err(words)?.concat(),
        ];
        let far = edges[0].iter().zip(&edges[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if far > 1e-9 {
            println!("edges {far:.1e}  <-- too far");
            failed += 1;
        }
        if n < 10 {
            let all = everything(&states).unique();
            for (name, found, most) in [
                ("f32", evaluate(&*truth.model, &all, single), 1e-5),
                ("f64", evaluate(&*truth.model, &all, double), 1e-12),
            ] {
                let mass: f64 = found.map_err(words)?.log_likelihood.iter().map(|log| log.exp()).sum();
                let fine = (mass - 1.0).abs() <= most;
                failed += usize::from(!fine);
                println!("all rows,{name},1{:+.1e}{}", mass - 1.0, if fine { "" } else { "  <-- too far" });
            }
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

/// Learning with hardly any memory: it takes fewer rows at a time, and comes to the same; with less than the model itself takes, it says
/// so, and goes on when there is room. How many checks failed.
fn crowded(single: &Cuda<f32>, double: &Cuda<f64>) -> Result<usize, String> {
    println!("family,n,megabytes,precision,validation");
    let cpu = Cpu::<f64>::new();
    let mut failed = 0;
    // Enough for the model and the sums of counts, not for 128 rows beside them.
    for (family, n, megabytes) in [(Family::Moat, 500, 160), (Family::Directed, 400, 160)] {
        let states = vec![2; n];
        let [train, valid] = [(1, 256), (2, 64)].map(|(seed, rows)| table(&states, rows, seed).unique());
        let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 5 };
        let mut start = start.model(&states, &train, 1, 1).map_err(|error| error.to_string())?;
        // Of few rows, margins of many variables are the same, and where two are, the paper's family has a kink: the last bit of an
        // exponential would say which way is uphill.
        let mut chance = Chance(1);
        let apart: Vec<f64> = start.to_vec().iter().map(|number| number + 0.01 * chance.next()).collect();
        start.set(&apart).map_err(|error| error.to_string())?;
        let settings = Settings { epochs: 1, batch_size: 128, ..Settings::paper(n) };
        let data = Data { train: &train, valid: &valid };
        let truth = learned(&start, data, &settings, &cpu, &cpu)?;
        let mut check = |name: &str, found: State<Mixture<Component>>, most: f64| {
            let epochs = truth.history.iter().zip(&found.history);
            let far = epochs.map(|(a, b)| (a.valid - b.valid).abs()).fold(0.0, f64::max);
            failed += usize::from(far > most);
            let remark = if far > most { "  <-- too far" } else { "" };
            println!("{family:?},{n},{megabytes},{name},{far:.1e}{remark}");
        };
        let words = |error: everytree_cuda::CudaError| error.to_string();
        let crowd = single.crowd(megabytes << 20).map_err(words)?;
        check("f32", learned(&start, data, &settings, single, single)?, 2e-2);
        drop(crowd);
        let crowd = double.crowd((2 * megabytes) << 20).map_err(words)?;
        check("f64", learned(&start, data, &settings, double, double)?, 1e-8);
        drop(crowd);
        let crowd = single.crowd(1 << 20).map_err(words)?;
        let said = learned(&start, data, &settings, single, single).map(drop);
        drop(crowd);
        check("f32", learned(&start, data, &settings, single, single)?, 2e-2);
        if !said.as_ref().is_err_and(|words| words.contains("MB more of memory")) {
            println!("without memory it says: {said:?}  <-- not what it should");
            failed += 1;
        }
    }
    Ok(failed)
}

/// Every row there can be, once.
fn everything(states: &[usize]) -> Table {
    let mut table = Table::new(states);
    for number in 0..states.iter().product() {
        let mut rest: usize = number;
        let row: Vec<u16> = states
            .iter()
            .map(|count| {
                let code = rest % count;
                rest /= count;
                code as u16
            })
            .collect();
        table.push(&row);
    }
    table
}

/// Models of as many variables as the datasets have, after some steps: log-likelihoods of rows and probabilities of edges in f32
/// against f64 of the CPU.
fn large(single: &Cuda<f32>) -> Result<usize, String> {
    println!("family,n,log_likelihood,edges");
    let cpu = Cpu::<f64>::new();
    let mut failed = 0;
    for (family, n) in
        [(Family::Moat, 500), (Family::Directed, 500), (Family::Moat, 1556), (Family::Directed, 1556)]
    {
        let states = vec![2; n];
        let [train, valid] = [(1, 400), (2, 4)].map(|(seed, rows)| table(&states, rows, seed).unique());
        let start = Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 5 };
        let start = start.model(&states, &train, 1, 1).map_err(|error| error.to_string())?;
        let settings = Settings { epochs: 3, ..Settings::paper(n) };
        let data = Data { train: &train, valid: &valid };
        let model = learned(&start, data, &settings, single, single)?.model;
        let words = |error: everytree_core::model::ModelError| error.to_string();
        let truth = evaluate(&*model, &valid, &cpu).map_err(words)?.log_likelihood;
        let found = evaluate(&*model, &valid, single).map_err(words)?.log_likelihood;
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
