//! Runs benches, which print CSV, and makes one table of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const ALL: [&str; 5] = ["engine", "trees", "learning", "inference", "hidden"];

/// `bench [NAME [N…]] [--csv FILE]`
pub fn bench(arguments: &[&str]) -> bool {
    let (mut names, mut sizes, mut csv) = (Vec::new(), Vec::new(), None);
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "--csv" => csv = rest.next().copied(),
            _ if argument.chars().all(|c| c.is_ascii_digit()) => sizes.push(argument),
            _ => names.push(argument),
        }
    }
    let names = if names.is_empty() { ALL.to_vec() } else { names };
    let mut lines = Vec::new();
    for name in names {
        if !run(name, &sizes, &mut lines) {
            return false;
        }
    }
    // Every bench prints its header first; those with the same header make one table.
    let headers: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].starts_with("what,")).collect();
    let mut tables: Vec<Vec<String>> = Vec::new();
    for (i, &start) in headers.iter().enumerate() {
        let part = &lines[start..headers.get(i + 1).copied().unwrap_or(lines.len())];
        match tables.iter_mut().find(|table| table[0] == part[0]) {
            Some(table) => table.extend_from_slice(&part[1..]),
            None => tables.push(part.to_vec()),
        }
    }
    tables.iter().for_each(|table| print_table(table));
    let lines = tables.concat();
    let Some(path) = csv else { return true };
    let command = format!("cargo xtask bench {}", arguments.join(" "));
    let text = format!("# {}\n# {command}\n{}\n", machine(), lines.join("\n"));
    match fs::write(path, text) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{path}: {error}");
            false
        }
    }
}

/// Runs one bench and collects its lines, showing progress.
fn run(name: &str, sizes: &[&str], lines: &mut Vec<String>) -> bool {
    let child = Command::new(env!("CARGO"))
        .args(["bench", "--quiet", "--package", "everytree-bench", "--bench", name, "--"])
        .args(sizes)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            return false;
        }
    };
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok).filter(|line| line.contains(',')) {
            eprint!("\r{:100.100}", line);
            lines.push(line);
        }
        eprintln!("\r{:100}", "");
    }
    child.wait().is_ok_and(|status| status.success())
}

fn print_table(lines: &[String]) {
    let cells: Vec<Vec<&str>> = lines.iter().map(|line| line.split(',').collect()).collect();
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.len()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &cells {
        let padded = widths.iter().enumerate().map(|(column, &width)| {
            let cell = row.get(column).copied().unwrap_or("");
            if column < 3 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    println!();
}

/// The processor, as Linux tells it, and the number of threads.
fn machine() -> String {
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = information.lines().find(|line| line.starts_with(name))?;
        line.split(':').nth(1).map(|value| value.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let family = field("cpu family").map_or(String::new(), |family| format!(", family {family}"));
    let flags = field("flags").unwrap_or_default();
    let simd = ["avx512f", "avx2"].into_iter().find(|flag| flags.contains(flag)).unwrap_or("no avx2");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}{family}, {threads} threads, {simd}")
}
