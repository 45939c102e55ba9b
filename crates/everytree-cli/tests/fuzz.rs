//! Tables, models, checkpoints, evidence and options at random: whatever comes, there is an answer or an error, in bounded memory and
//! time. A few of them in every run of the tests; `cargo xtask fuzz` goes on for as long as it is told.

#[path = "../../everytree-core/tests/mutate/mod.rs"]
mod mutate;
mod program;

use everytree::{Fit, ReadOptions};
use mutate::{mutate, sealed};
use program::{command, everytree, text};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Files of every format, and some that were trouble once.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// Reads changed tables, and learns from those that can be read. Returns how many of them could.
fn tables(seed: u64, rounds: u64) -> usize {
    // Rows that a few bytes speak of are refused soon.
    everytree::set_memory_limit(64_000_000);
    let corpus = corpus();
    let folder = tempfile::tempdir().unwrap();
    let mut read = 0;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let mut rng = Pcg64::seed_from_u64(seed);
        let (name, bytes) = &corpus[rng.random_range(0..corpus.len())];
        let mut bytes = bytes.clone();
        mutate(&mut bytes, &mut rng);
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let tried = std::panic::catch_unwind(|| {
            let data = ReadOptions::default().open(&path).ok()?;
            Fit::new()
                .family("chow-liu")
                .run(&data)
                .ok()
                .map(|model| model.score(&data).map(|score| score.mean))
        });
        match tried {
            Ok(Some(Ok(mean))) => {
                assert!(!mean.is_nan(), "seed {seed}: {name}");
                read += 1;
            }
            Ok(_) => {}
            Err(_) => panic!("seed {seed}: {name} makes the reader panic"),
        }
    }
    read
}

/// A table, models of it, and a checkpoint.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("t.csv"), format!("a,b,c\n{}", "x,1,p\ny,2,q\nx,2,q\nx,1,\n".repeat(15))).unwrap();
    fs::write(path.join("i.csv"), "a,b,c\nx,,p\n,2,\n").unwrap();
    for family in ["moat", "directed", "chow-liu", "hclt", "kernel"] {
        let fit = ["fit", "t.csv", "--family", family, "--epochs", "1", "--quiet", "--out", family];
        text(&everytree(path, &[&fit[..], &["--checkpoint", "c"]].concat()));
    }
    let mix = ["mix", "moat", "hclt", "kernel", "--weights", "3,2,1", "--out", "ensemble"];
    text(&everytree(path, &mix));
    folder
}

/// Numbers, names and signs that options and evidence are made of.
const WORDS: [&str; 28] = [
    "",
    "a",
    "b",
    "c",
    "x",
    "y",
    "1",
    "2",
    "=",
    ",",
    ";",
    "a=x",
    "b=1,2",
    "c=",
    "a=\"x\"",
    "=x",
    "a==x",
    "-1",
    "0",
    "1e308",
    "NaN",
    "99999999999999999999",
    "\u{1b}[2J",
    "ä",
    "*",
    "--json",
    "inf",
    "\n",
];
const OPTIONS: [&str; 12] = [
    "--given",
    "--trees",
    "--tolerance",
    "--seed",
    "-n",
    "--top",
    "--json",
    "--edges",
    "--target",
    "--how",
    "--threads",
    "--missing-as-state",
];

/// Runs commands on changed models and checkpoints, with odd options and evidence.
fn commands(seed: u64, rounds: u64) -> usize {
    let folder = folder();
    let path = folder.path();
    let read = |name: &str| fs::read(path.join(name)).unwrap();
    let models: Vec<Vec<u8>> =
        ["moat", "directed", "chow-liu", "hclt", "kernel", "ensemble"].map(read).into();
    let checkpoint = read("c");
    let mut fine = 0;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut model = models[rng.random_range(0..models.len())].clone();
        let mut damaged = checkpoint.clone();
        if rng.random_bool(0.6) {
            mutate(&mut model, &mut rng);
            mutate(&mut damaged, &mut rng);
        }
        fs::write(path.join("m"), sealed(model)).unwrap();
        fs::write(path.join("half"), sealed(damaged)).unwrap();
        let mut arguments: Vec<String> = match rng.random_range(0..13) {
            0 => vec!["inspect", "m"],
            1 => vec!["score", "m", "i.csv"],
            2 => vec!["sample", "m"],
            3 => vec!["query", "m", "--trees", "500"],
            4 => vec!["map", "m", "--trees", "500"],
            5 => vec!["impute", "m", "i.csv", "--out", "o.csv"],
            6 => vec!["info", "m", "entropy", "--trees", "500"],
            8 => vec!["info", "m", "mutual-information", "a", "b", "--trees", "500"],
            9 => vec!["mix", "m", "ensemble", "--weights-from", "t.csv", "--out", "o"],
            10 => vec!["mix", "ensemble", "m", "--weights", "1,2", "--out", "o"],
            11 => vec!["info", "m", "kl", "ensemble", "--trees", "500"],
            7 => vec!["fit", "t.csv", "--resume", "half", "--out", "o", "--timeout", "1s", "--quiet"],
            _ => vec!["query", "m", "--given", "a=x", "--trees", "500"],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        for _ in 0..rng.random_range(0..3) {
            arguments.push(OPTIONS[rng.random_range(0..OPTIONS.len())].to_owned());
            let word: String =
                (0..rng.random_range(1..4)).map(|_| WORDS[rng.random_range(0..WORDS.len())]).collect();
            arguments.push(word);
        }
        let output = run(path, &arguments, seed);
        match output.status.code() {
            Some(0 | 1) => fine += 1,
            Some(2) => assert!(!output.stderr.is_empty(), "seed {seed}: {arguments:?} says nothing"),
            other => {
                let words = String::from_utf8_lossy(&output.stderr);
                panic!("seed {seed}: {arguments:?} ended with {other:?}: {words}")
            }
        }
    }
    fine
}

/// Through a shell that gives it 16 GB of addresses: what asks for more than it said ends by a signal, which is fatal.
#[cfg(unix)]
fn limited(folder: &Path, arguments: &[&str]) -> Command {
    let program = command(folder, &[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell
        .current_dir(folder)
        .args(["-c", "ulimit -v 16000000; exec \"$0\" \"$@\""])
        .arg(program)
        .args(arguments);
    shell
}

#[cfg(not(unix))]
fn limited(folder: &Path, arguments: &[&str]) -> Command {
    command(folder, arguments)
}

/// Runs a command, but not for ever.
fn run(folder: &Path, arguments: &[String], seed: u64) -> Output {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = [&arguments[..], &["--memory", "500MB"]].concat();
    let mut child = limited(folder, &arguments)
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("stdout")).unwrap())
        .stderr(fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("seed {seed}: {arguments:?} goes on for a minute");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    Output { status, stdout: read("stdout"), stderr: read("stderr") }
}

#[test]
fn changed_tables_are_read_or_refused() {
    assert!(tables(0, 1500) > 0, "some of them can be read");
}

#[test]
fn commands_on_changed_models_answer_or_refuse() {
    assert!(commands(0, 120) > 0, "some of them are answered");
}

/// `cargo xtask fuzz` runs this until its time is up.
#[test]
#[ignore = "runs for EVERYTREE_FUZZ_SECONDS"]
fn fuzz_tables_and_commands_for_long() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("EVERYTREE_FUZZ_SECONDS").unwrap_or(60);
    let mut seed = number("EVERYTREE_FUZZ_SEED").unwrap_or(1) << 32;
    let begin = Instant::now();
    let (mut files, mut runs, mut read, mut fine) = (0, 0, 0, 0);
    while begin.elapsed().as_secs() < seconds {
        read += tables(seed, 2000);
        fine += commands(seed, 100);
        (files, runs, seed) = (files + 2000, runs + 100, seed + 2000);
        println!("{files} tables, {read} of them read; {runs} commands, {fine} of them answered; none fatal");
    }
}
