//! How time and memory of learning grow with rows, variables, states, components and threads.

use crate::table1::{machine, program};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree_core::file::write_atomically;
use everytree_plot::{Chart, Mark, Panel, Scale, Series};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;
use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Fit made-up tables of growing size for two epochs each, and note seconds and memory.
///
/// Memory is what the system says the process had at most, the program itself included (Linux only).
#[derive(Args)]
#[command(after_help = "Example:\n  everytree-experiments scaling --csv scaling.csv --svg scaling.svg")]
pub struct Scaling {
    /// Where the figures go.
    #[arg(long)]
    csv: PathBuf,
    /// Where the picture goes.
    #[arg(long)]
    svg: PathBuf,
    /// Of every kind the first so many sizes.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    sizes: usize,
}

/// A table, and how it is fitted.
#[derive(Clone, Copy)]
struct Task {
    rows: usize,
    variables: usize,
    states: usize,
    components: usize,
    threads: usize,
}

/// What grows, from where all of them begin.
const BASE: Task = Task { rows: 4000, variables: 32, states: 2, components: 1, threads: 2 };
const FAMILIES: [&str; 2] = ["moat", "directed"];

/// What grows, through which sizes, and what task that makes.
type Axis = (&'static str, &'static [usize], fn(usize) -> Task);
const AXES: [Axis; 5] = [
    ("rows", &[4000, 8000, 16000, 32000, 64000], |rows| Task { rows, ..BASE }),
    ("variables", &[16, 32, 64, 128, 256], |variables| Task { variables, ..BASE }),
    ("states", &[2, 4, 8, 16], |states| Task { states, ..BASE }),
    ("components", &[1, 2, 4, 8, 16], |components| Task { components, ..BASE }),
    ("threads", &[1, 2], |threads| Task { threads, variables: 100, ..BASE }),
];

const COLUMNS: &str = "grows,size,family,seconds,megabytes";

/// What was measured.
struct Line {
    family: usize,
    size: f64,
    seconds: f64,
    megabytes: f64,
}

impl Scaling {
    pub fn run(self) -> Result<()> {
        let mut text = vec![
            format!("# everytree {}, {}", env!("CARGO_PKG_VERSION"), machine()),
            "# everytree-experiments scaling: everytree fit TABLE --epochs 2, each the fastest of three"
                .to_owned(),
            COLUMNS.to_owned(),
        ];
        let mut panels = Vec::new();
        for (grows, sizes, task) in AXES {
            let mut lines = Vec::new();
            for (family, name) in FAMILIES.into_iter().enumerate() {
                for &size in sizes.iter().take(self.sizes) {
                    let (seconds, megabytes) =
                        measure(task(size), name).context(format!("{grows} {size}"))?;
                    println!("{grows} {size} {name}: {seconds:.3} s, {megabytes:.0} MB");
                    text.push(format!("{grows},{size},{name},{seconds:.4},{megabytes:.1}"));
                    lines.push(Line { family, size: size as f64, seconds, megabytes });
                }
                let own: Vec<&Line> = lines.iter().filter(|line| line.family == family).collect();
                let time = exponent(own.iter().map(|line| (line.size, line.seconds)));
                let memory = exponent(own.iter().map(|line| (line.size, line.megabytes)));
                println!("{grows}, {name}: time grows with the power {time:.2}, memory {memory:.2}");
                text.push(format!("# {grows} {name}: power of time {time:.2} and of memory {memory:.2}, over the larger half"));
            }
            panels.push(panel(grows, &lines));
        }
        write_atomically(&self.csv, (text.join("\n") + "\n").as_bytes())?;
        let chart = Chart {
            title: "How two epochs of learning grow".to_owned(),
            x: ("times the smallest".to_owned(), Scale::Logarithmic),
            y: ("times as much".to_owned(), Scale::Logarithmic),
            mark: Mark::Lines,
            across: 3,
            panels,
        };
        write_atomically(&self.svg, chart.svg().as_bytes())?;
        Ok(())
    }
}

/// Time and memory of both families, as multiples of what the smallest size takes.
fn panel(grows: &str, lines: &[Line]) -> Panel {
    let mut series = Vec::new();
    let smallest = lines.iter().map(|line| line.size).fold(f64::INFINITY, f64::min);
    for (family, name) in FAMILIES.into_iter().enumerate() {
        let own: Vec<&Line> = lines.iter().filter(|line| line.family == family).collect();
        for (place, what) in ["time", "memory"].into_iter().enumerate() {
            let value = |line: &Line| if place == 0 { line.seconds } else { line.megabytes };
            let first = own.first().map_or(1.0, |line| value(line));
            let points = own.iter().map(|line| (line.size / smallest, value(line) / first)).collect();
            let colour = [[0, 1], [2, 3]][family][place];
            series.push(Series { name: format!("{name}, {what}"), colour, points });
        }
    }
    Panel { title: format!("{grows}, from {smallest} on"), series }
}

/// The power with which the larger half of the points grows: the slope of logarithms, by least squares.
fn exponent(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let logs: Vec<(f64, f64)> = points.map(|(x, y)| (x.ln(), y.ln())).collect();
    let some = &logs[logs.len().saturating_sub((logs.len() / 2 + 1).max(2))..];
    let count = some.len() as f64;
    let (x, y) =
        some.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let both: f64 = some.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = some.iter().map(|point| (point.0 - x).powi(2)).sum();
    both / square
}

/// Seconds and most megabytes of a fit: the fastest of three.
fn measure(task: Task, family: &str) -> Result<(f64, f64)> {
    let folder = std::env::temp_dir().join(format!("everytree-scaling-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = (0..3).map(|_| once(task, family, &folder)).collect::<Result<Vec<_>>>();
    let _ = std::fs::remove_dir_all(&folder);
    let best = done?.into_iter().reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.ok_or_else(|| anyhow!("nothing was measured"))
}

fn once(task: Task, family: &str, folder: &std::path::Path) -> Result<(f64, f64)> {
    let table = folder.join("t.csv");
    if !table.exists() {
        std::fs::write(&table, rows(task))?;
    }
    let mut child = Command::new(program()?)
        .arg("fit")
        .arg(&table)
        .args(["--json", "--quiet", "--epochs", "2", "--holdout", "0.01", "--family", family])
        .args(["--components", &task.components.to_string(), "--threads", &task.threads.to_string(), "--out"])
        .arg(folder.join("m"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // What the system remembers is gone with the process, so it is asked again and again.
    let mut megabytes = 0.0f64;
    let status = loop {
        if let Ok(text) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) {
            megabytes = megabytes.max(high_water(&text).unwrap_or(0.0));
        }
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let (mut out, mut error) = (String::new(), String::new());
    if let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) {
        stdout.read_to_string(&mut out)?;
        stderr.read_to_string(&mut error)?;
    }
    if !status.success() {
        bail!("{error}");
    }
    let fit: Value = serde_json::from_str(&out)?;
    Ok((fit["seconds"].as_f64().ok_or_else(|| anyhow!("no seconds in the answer"))?, megabytes))
}

/// `VmHWM:   123456 kB`
fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// Rows in which every column follows the one before, mostly; all of them differ.
fn rows(task: Task) -> String {
    let mut rng = Pcg64::seed_from_u64(1);
    let names: Vec<String> = (0..task.variables).map(|v| format!("v{v}")).collect();
    let mut text = names.join(",") + "\n";
    for _ in 0..task.rows {
        let mut before = 0;
        for v in 0..task.variables {
            if rng.random_bool(0.5) {
                before = rng.random_range(0..task.states);
            }
            // To a string nothing can fail.
            let _ = write!(text, "{}s{before}", if v > 0 { "," } else { "" });
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_found() {
        let cubes = [1.0f64, 2.0, 4.0, 8.0, 16.0].map(|x| (x, 5.0 + x.powi(3)));
        // What is added to the cubes still shows at the smaller ones.
        assert!((exponent(cubes.into_iter()) - 3.0).abs() < 0.1);
        assert!((exponent([(1.0, 8.0), (2.0, 4.0)].into_iter()) + 1.0).abs() < 1e-12);
        assert_eq!(high_water("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2.0));
    }
}
