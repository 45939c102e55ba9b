//! Every habit of the project, one word each: `cargo xtask test`, `cargo xtask bench`.

mod bench;

use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test            format, lints, and every test (documentation and command line included)
cargo xtask bench           benches of the engine and of random trees, as one table
cargo xtask bench NAME [N…] one bench (engine, cutover, trees), at the sizes N only
            --csv FILE      also write the lines as CSV, with the machine they came from";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(),
        ["bench", rest @ ..] => bench::bench(rest),
        _ => {
            println!("{HELP}");
            words.is_empty() || matches!(words.as_slice(), ["help" | "--help" | "-h"])
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What must pass before anything is submitted.
fn test() -> bool {
    let lints = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    cargo(&["fmt", "--all", "--", "--check"])
        && cargo(&lints)
        && cargo(&["test", "--workspace"])
        && cargo_with(&[("RUSTDOCFLAGS", "--deny warnings")], &["doc", "--workspace", "--no-deps"])
}

/// Runs cargo, telling what it runs.
fn cargo(arguments: &[&str]) -> bool {
    cargo_with(&[], arguments)
}

fn cargo_with(environment: &[(&str, &str)], arguments: &[&str]) -> bool {
    eprintln!("== cargo {}", arguments.join(" "));
    let done = Command::new(env!("CARGO")).args(arguments).envs(environment.iter().copied()).status();
    match done {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            false
        }
    }
}
