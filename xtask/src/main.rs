//! Every habit of the project, one word each: `cargo xtask test`, `cargo xtask docs`, `cargo xtask bench`.

#![forbid(unsafe_code)]

mod bench;
mod docs;
mod python;
mod unsafe_code;

use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test            format, links, lints, and every test (documentation, command line and Python included)
            --full          also the Python package inside Spark and Ray, and the notebooks under examples
cargo xtask gpu             builds target/release/everytree-gpu, which tests and measures a GPU, and runs its tests; exits with 4
                            where there is no GPU
cargo xtask wheel           the Python wheel, under target/python/wheel/wheels
cargo xtask docs            the book under target/book (installs mdBook under target/tools the first time)
cargo xtask bench           benches of the engine, random trees, learning and inference, as tables
cargo xtask bench NAME [N…] one bench (engine, cutover, trees, learning, inference, python), at the sizes N only
            --csv FILE      also write the lines as CSV, with the machine they came from
cargo xtask fuzz [SECONDS]  damaged models, checkpoints, tables, options; for a minute or as long as told
cargo xtask unsafe          docs/unsafe.md, the list of all unsafe code with its arguments
cargo xtask sanitise        the tests of the engine under the address sanitiser (a nightly toolchain)";

fn main() -> ExitCode {
    // Paths are those of the repository, from wherever this is called.
    if let Err(error) = std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")) {
        eprintln!("cannot go to the repository: {error}");
        return ExitCode::FAILURE;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words == ["gpu"] {
        return gpu();
    }
    let done = match words.as_slice() {
        ["test"] => test(false),
        ["test", "--full"] => test(true),
        ["wheel"] => python::wheel(),
        ["bench", "python"] => python::bench(None),
        ["bench", "python", "--csv", csv] => python::bench(Some(csv)),
        ["docs"] => docs::build(),
        ["bench", rest @ ..] => bench::bench(rest),
        ["unsafe"] => unsafe_code::write(),
        ["sanitise"] => sanitise(),
        ["fuzz"] => fuzz("60"),
        ["fuzz", seconds] => fuzz(seconds),
        _ => {
            println!("{HELP}");
            words.is_empty() || matches!(words.as_slice(), ["help" | "--help" | "-h"])
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything with one family more, which shows that a family is a file and an entry in a list.
const FEATURES: &str = "--features=everytree-cli/toy-family,everytree-py/toy-family";

/// What must pass before anything is submitted.
fn test(full: bool) -> bool {
    let lints = ["clippy", "--workspace", "--all-targets", FEATURES, "--", "--deny", "warnings"];
    cargo(&["fmt", "--all", "--", "--check"])
        && docs::check()
        && unsafe_code::check()
        && cargo(&lints)
        // Benches bring a library of linear algebra with them, which no test needs; the lints have looked at them.
        && cargo(&["test", "--workspace", "--exclude", "everytree-bench", FEATURES])
        // The library alone, with as little as it can do with.
        && cargo(&["check", "--package", "everytree", "--no-default-features"])
        && cargo_with(&[("RUSTDOCFLAGS", "--deny warnings")], &["doc", "--workspace", "--no-deps"])
        && python::test(full)
}

/// The binary that tests and measures a GPU, and its answer.
fn gpu() -> ExitCode {
    if !cargo(&["build", "--release", "--package", "everytree-cuda"]) {
        return ExitCode::FAILURE;
    }
    match Command::new("target/release/everytree-gpu").arg("test").status() {
        Ok(status) => status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)),
        Err(error) => {
            eprintln!("cannot run everytree-gpu: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Half of the time for files in process, half for tables and commands. Another seed every time.
fn fuzz(seconds: &str) -> bool {
    let half = (seconds.parse::<u64>().unwrap_or(60) / 2).max(1).to_string();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = now.map_or(1, |since| since.as_secs() % 1_000_000).to_string();
    let environment = [("EVERYTREE_FUZZ_SECONDS", half.as_str()), ("EVERYTREE_FUZZ_SEED", &seed)];
    let target = |package: &str, test: &str| {
        let arguments =
            ["test", "--package", package, "--test", test, "fuzz_", "--", "--ignored", "--nocapture"];
        cargo_with(&environment, &arguments)
    };
    target("everytree-core", "model_file") && target("everytree-cli", "fuzz")
}

/// The tests of the engine, the readers and the model file under the address sanitiser, which needs a nightly compiler. Tests that
/// count or limit memory are left out: the sanitiser takes much of its own.
fn sanitise() -> bool {
    let flags = [("RUSTFLAGS", "-Zsanitizer=address"), ("CARGO_TARGET_DIR", "target/sanitise")];
    let on = ["+nightly", "test", "--target", "x86_64-unknown-linux-gnu"];
    let tests =
        ["--lib", "--test", "model_file", "--package", "everytree-core", "--package", "everytree-read"];
    let done = command("cargo").args(on).args(tests).envs(flags).status();
    done.is_ok_and(|status| status.success())
}

/// A program that may call cargo. What is built here is built once, mostly from the beginning: noting down what the next build might
/// take over from it would take longer than it saves.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    if std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Runs cargo, telling what it runs.
fn cargo(arguments: &[&str]) -> bool {
    cargo_with(&[], arguments)
}

fn cargo_with(environment: &[(&str, &str)], arguments: &[&str]) -> bool {
    eprintln!("== cargo {}", arguments.join(" "));
    let done = command(env!("CARGO")).args(arguments).envs(environment.iter().copied()).status();
    match done {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            false
        }
    }
}
