//! The Python package: built, installed into a fresh environment, and tested there.

use crate::command;
use std::path::{Path, PathBuf};

/// Where the package is.
const PACKAGE: &str = "crates/everytree-py";
/// The largest that a wheel may be, in bytes.
const MOST: u64 = 15 << 20;

/// A fresh environment with the package and what its tests need; `full`: engines and notebooks too.
pub fn test(full: bool) -> bool {
    let Some(environment) = Environment::fresh("test") else { return false };
    let lists: &[&str] = if full { &["test", "full"] } else { &["test"] };
    if !lists.iter().all(|list| environment.install_list(list)) {
        return false;
    }
    // Not optimised for size or linked as a whole: the same code, sooner.
    let Some(wheel) = environment.wheel("dev", &["--features", "toy-family"]) else { return false };
    let (config, tests) = (format!("{PACKAGE}/pyproject.toml"), format!("{PACKAGE}/tests"));
    let marked = if full { "full or not full" } else { "not full" };
    environment.pip(&["install", "--no-deps", &wheel.to_string_lossy()])
        && environment.module("ruff", &["check", "--quiet", "--config", &config, PACKAGE, "examples"])
        && environment
            .module("ruff", &["format", "--quiet", "--check", "--config", &config, PACKAGE, "examples"])
        && environment.module("mypy", &["--config-file", &config, "-p", "everytree"])
        && environment.module("pytest", &["-c", &config, "-m", marked, &tests])
}

/// The wheel as it is shipped, under `target/wheels`.
pub fn wheel() -> bool {
    let Some(environment) = Environment::fresh("wheel") else { return false };
    if !environment.install_list("build") {
        return false;
    }
    let Some(wheel) = environment.wheel("release", &[]) else { return false };
    let bytes = std::fs::metadata(&wheel).map_or(u64::MAX, |metadata| metadata.len());
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    if bytes > MOST {
        eprintln!("larger than {} bytes", MOST);
    }
    bytes <= MOST
}

/// The benchmark of the package: Python beside the command line program, from the wheel as it is shipped.
pub fn bench(csv: Option<&str>) -> bool {
    let Some(environment) = Environment::fresh("bench") else { return false };
    if !environment.install_list("build") || !environment.install_list("bench") {
        return false;
    }
    let Some(wheel) = environment.wheel("release", &[]) else { return false };
    let script = format!("{PACKAGE}/benches/score.py");
    let mut arguments = vec![script.as_str()];
    arguments.extend(csv);
    environment.pip(&["install", "--no-deps", &wheel.to_string_lossy()])
        && super::cargo(&["build", "--release", "--package", "everytree-cli"])
        && environment.python(&arguments)
}

/// A virtual environment under `target`.
struct Environment {
    python: PathBuf,
    wheels: PathBuf,
}

impl Environment {
    fn fresh(name: &str) -> Option<Self> {
        let folder = Path::new("target/python").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        let folder_text = folder.to_string_lossy().into_owned();
        if !run("python3", &["-m", "venv", &folder_text]) {
            return None;
        }
        let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
        Some(Self { python: bin.join("python"), wheels: folder.join("wheels") })
    }

    fn python(&self, arguments: &[&str]) -> bool {
        run(&self.python.to_string_lossy(), arguments)
    }

    fn module(&self, name: &str, arguments: &[&str]) -> bool {
        self.python(&[&["-m", name], arguments].concat())
    }

    fn pip(&self, arguments: &[&str]) -> bool {
        let quiet = ["--quiet", "--disable-pip-version-check"];
        self.module("pip", &[&arguments[..1], &quiet, &arguments[1..]].concat())
    }

    fn install_list(&self, name: &str) -> bool {
        self.pip(&["install", "--requirement", &format!("{PACKAGE}/requirements/{name}.txt")])
    }

    /// Builds the wheel with a profile of cargo, and finds it.
    fn wheel(&self, profile: &str, more: &[&str]) -> Option<PathBuf> {
        let (manifest, out) = (format!("{PACKAGE}/Cargo.toml"), self.wheels.to_string_lossy().into_owned());
        let arguments = ["build", "--profile", profile, "--manifest-path", &manifest, "--out", &out];
        if !self.module("maturin", &[&arguments[..], more].concat()) {
            return None;
        }
        let wheels = std::fs::read_dir(&self.wheels).ok()?;
        wheels
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|e| e == "whl"))
    }
}

/// Runs a program, telling what it runs.
fn run(program: &str, arguments: &[&str]) -> bool {
    eprintln!("== {program} {}", arguments.join(" "));
    match command(program).args(arguments).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {program}: {error}");
            false
        }
    }
}
