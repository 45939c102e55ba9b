//! Peak memory of every command beside what was predicted, over numbers of columns and states.

use anyhow::{Context, Result, bail};
use clap::Args;
use everytree_core::file::ModelFile;
use everytree_core::model::{
    ComponentShape, Family, Footprint, Pairs, Trees, footprint_of_pair, footprint_of_rows,
};
use nix::sys::resource::{UsageWho, getrusage};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Columns, states of each, and rows; more would be too many states in all.
const SHAPES: [(usize, usize, usize); 5] =
    [(100, 2, 2000), (100, 64, 2000), (1000, 2, 300), (4000, 2, 12), (4, 4096, 20_000)];
/// Their names, components, and rows of a batch.
const FAMILIES: [(&str, Family, usize, usize); 6] = [
    ("moat", Family::Moat, 1, 1024),
    // The paper's intervals, where free matrices are usual.
    (INTERVALS, Family::Moat, 1, 1024),
    ("directed", Family::Directed, 1, 256),
    ("chow-liu", Family::ChowLiu, 1, usize::MAX),
    ("mixture-of-trees", Family::ChowLiu, 3, usize::MAX),
    ("hclt", Family::Hclt, 1, usize::MAX),
];
const HIDDEN: usize = 4;
const HEADER: &str = "\
# cargo run --release -p everytree-experiments -- memory --folder FOLDER [--columns N] [--family F] [--command C]
# A run replaces the lines of the models and commands that it measures; the others are those of runs before.
columns,states,rows,family,command,predicted_mb,measured_mb,ratio,seconds
";
const INTERVALS: &str = "moat-lambda";

/// Measure what commands take of memory, beside what is predicted. On Unix.
#[derive(Args)]
pub struct Memory {
    /// The program.
    #[arg(long, default_value = "target/release/everytree")]
    program: PathBuf,
    /// Where tables and models go.
    #[arg(long)]
    folder: PathBuf,
    /// Where the results go.
    #[arg(long, default_value = "docs/results/memory.csv")]
    out: PathBuf,
    /// Only shapes of so many columns.
    #[arg(long)]
    columns: Option<usize>,
    /// Only this family.
    #[arg(long)]
    family: Option<String>,
    /// Only this command, beside the fit.
    #[arg(long)]
    command: Option<String>,
}

/// What a command came to.
struct Measured {
    peak: f64,
    seconds: f64,
    fine: bool,
}

impl Memory {
    pub fn run(self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut lines = String::new();
        for (columns, states, rows) in SHAPES {
            if self.columns.is_some_and(|wanted| wanted != columns) {
                continue;
            }
            let train = self.folder.join(format!("{columns}x{states}.csv"));
            let incomplete = self.folder.join(format!("{columns}x{states}-incomplete.csv"));
            write_table(&train, columns, states, rows, false)?;
            for (name, family, components, batch) in FAMILIES {
                if self.family.as_ref().is_some_and(|wanted| wanted != name) {
                    continue;
                }
                let intervals = name == INTERVALS;
                if intervals && states == 2 {
                    // They are usual there.
                    continue;
                }
                let pairs = if intervals || states == 2 { Pairs::Lambda } else { Pairs::Sinkhorn };
                let preset = if intervals { "moat" } else { name };
                // Trees score so quickly that all threads can have some.
                let rows_to_score = match family.spec().trees {
                    Trees::All if columns >= 4000 => 4,
                    Trees::All => 20,
                    _ => 512,
                };
                write_table(&incomplete, columns, states, rows_to_score, true)?;
                let model = self.folder.join(format!("{columns}x{states}-{name}.everytree"));
                let mut fit =
                    vec!["fit", path(&train)?, "--family", preset, "--max-states", "5000", "--device", "cpu"];
                fit.extend(["--timeout", "600s", "--quiet", "--out", path(&model)?]);
                if intervals {
                    fit.extend(["--pairs", "lambda"]);
                }
                if family == Family::Hclt {
                    fit.extend(["--hidden", "4"]);
                }
                if components > 1 {
                    // What an epoch keeps of the one before is there from the second on.
                    fit.extend(["--components", "3", "--epochs", "3"]);
                } else {
                    fit.extend(["--epochs", "1"]);
                }
                let shape =
                    ComponentShape { pairs: Some(pairs), hidden: Some(HIDDEN), ..ComponentShape::default() };
                let batch = if columns >= 500 { batch.min(64) } else { batch };
                let all = vec![states; columns];
                let of_rows = footprint_of_rows(&all, rows);
                let learning =
                    Footprint::of(family, &shape, &all, components, batch.min(rows)).learning + of_rows;
                _ = fs::remove_file(&model);
                let fitted = self.measure(&fit)?;
                if !model.exists() {
                    let predicted = learning as f64 / 1e6;
                    writeln!(lines, "{columns},{states},{rows},{name},fit (refused),{predicted:.0},,,")?;
                    continue;
                }
                let file = ModelFile::load(&model).context("the model that was just learned")?;
                let all = file.schema.states();
                let need = Footprint::of(family, &shape, &all, components, batch.min(rows));
                let looking = if file.edge_posteriors.iter().all(Option::is_some) {
                    need.looking
                } else {
                    need.finding
                };
                let (out, mixed) = (self.folder.join("out.csv"), self.folder.join("mixed.everytree"));
                let (model, table, out, mixed) =
                    (path(&model)?, path(&incomplete)?, path(&out)?, path(&mixed)?);
                let of_pair = footprint_of_pair(family.spec().trees, (all[0], all[1]));
                // Columns that are in every table.
                // Of tables of millions of numbers few trees: memory does not depend on it.
                let trees = if states > 1000 { "1" } else { "2000" };
                let together = ["info", model, "mutual-information", "c0", "c1", "--trees", trees];
                let mut commands: Vec<(&str, u64, Vec<&str>)> = vec![
                    ("score", need.scoring, vec!["score", model, table]),
                    ("impute", need.imputing, vec!["impute", model, table, "--out", out]),
                    ("sample", need.answers, vec!["sample", model, "-n", "1000", "--out", out]),
                    ("query", need.answers, vec!["query", model, "--given", "c1=v1", "--trees", "2000"]),
                    ("inspect", looking, vec!["inspect", model, "--edges"]),
                    ("map", need.searching, vec!["map", model, "--given", "c1=v1"]),
                    ("info", need.answers + of_pair, together.to_vec()),
                    (
                        "mix",
                        // They score one after the other; the other model, and both together, beside what a program has.
                        need.scoring + 2 * need.model.saturating_sub(10_000_000),
                        vec!["mix", model, model, "--weights-from", table, "--out", mixed],
                    ),
                ];
                // The others grow for as long as it pays.
                if components == 1 && family != Family::Hclt && !intervals {
                    let mut compare = vec!["compare", path(&train)?, "--families", preset, "--time", "60s"];
                    compare.extend(["--max-states", "5000"]);
                    commands.push(("compare", need.learning + of_rows, compare));
                }
                let mut line = |command: &str, predicted: u64, found: Measured| {
                    let predicted = predicted as f64 / 1e6;
                    let Measured { peak, seconds, fine } = found;
                    let ratio = predicted / peak;
                    let failed = if fine { "" } else { " (failed)" };
                    let text = format!(
                        "{columns},{states},{rows},{name},{command}{failed},{predicted:.0},{peak:.0},{ratio:.2},{seconds:.1}"
                    );
                    println!("{text}");
                    writeln!(lines, "{text}")
                };
                line("fit", need.learning + of_rows, fitted)?;
                let wanted = |command: &str| self.command.as_ref().is_none_or(|wanted| wanted == command);
                for (command, predicted, arguments) in commands.into_iter().filter(|(name, ..)| wanted(name))
                {
                    line(command, predicted, self.measure(&arguments)?)?;
                }
            }
        }
        self.save(&lines)
    }

    /// Puts new lines in the place of those for the same model and command; all others stay as they were measured.
    fn save(&self, new: &str) -> Result<()> {
        let key = |line: &str| line.split(',').take(5).map(str::to_owned).collect::<Vec<_>>();
        let before = fs::read_to_string(&self.out).unwrap_or_default();
        let is_line = |line: &&str| !line.starts_with('#') && !line.starts_with("columns,");
        let mut lines: Vec<&str> = before.lines().filter(is_line).collect();
        for line in new.lines() {
            match lines.iter_mut().find(|old| key(old) == key(line)) {
                Some(old) => *old = line,
                None => lines.push(line),
            }
        }
        let mut out = HEADER.to_owned();
        lines.iter().for_each(|line| out += &format!("{line}\n"));
        Ok(fs::write(&self.out, out)?)
    }

    /// Runs a command by a process of its own, which has no other child.
    fn measure(&self, arguments: &[&str]) -> Result<Measured> {
        let begin = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("peak").arg(&self.program).args(arguments).stderr(Stdio::null());
        let output = command.output().context("running the program")?;
        let seconds = begin.elapsed().as_secs_f64();
        let words = String::from_utf8(output.stdout)?;
        let kilobytes: f64 = words.trim().parse().context("the peak of a command")?;
        Ok(Measured { peak: kilobytes * 1024.0 / 1e6, seconds, fine: output.status.success() })
    }
}

/// Run a command and print its peak memory in kilobytes.
#[derive(Args)]
pub struct Peak {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Peak {
    pub fn run(self) -> Result<()> {
        let [program, arguments @ ..] = &self.command[..] else { bail!("a command is needed") };
        let ended = Command::new(program).args(arguments).stdout(Stdio::null()).status()?;
        println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
        if ended.success() { Ok(()) } else { bail!("it failed") }
    }
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no text")
}

/// Columns that follow a hidden one, and every state at least once.
fn write_table(path: &Path, columns: usize, states: usize, rows: usize, incomplete: bool) -> Result<()> {
    let mut rng = Pcg64::seed_from_u64(7);
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..rows {
        let kind = rng.random_range(0..states);
        let cell = |column: usize, rng: &mut Pcg64| match () {
            () if incomplete && column == 1 => String::new(),
            () if !incomplete && row < states => format!("v{}", (row + column) % states),
            () if rng.random_bool(0.5) => format!("v{kind}"),
            () => format!("v{}", rng.random_range(0..states)),
        };
        let cells: Vec<String> = (0..columns).map(|column| cell(column, &mut rng)).collect();
        text += &(cells.join(",") + "\n");
    }
    Ok(fs::write(path, text)?)
}
