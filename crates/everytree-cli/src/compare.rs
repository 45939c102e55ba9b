//! `everytree compare`: families side by side on one table.

mod page;

use crate::Outcome;
use crate::data::use_threads;
use crate::families::FamilyParser;
use crate::members;
use crate::progress::{Progress, duration, parse_duration};
use crate::tables::Sources;
use anyhow::Result;
use clap::Args;
use everytree::{
    Compare as Comparing, CompareObserver, ComparedFamily, Comparison, ErrorCode, HowEnded, LeftOut, Model,
    Spelling, count, plural, spelled,
};
use everytree::{column_width, in_shell};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// What a model answers exactly.
fn exact(model: &Model) -> String {
    model.exact_answers().join(", ")
}

/// Fit several families to one table, within a time, and lay them side by side.
///
/// Every family gets an equal part of the time that is left; what it does not need goes to the others. Differences to the
/// best are means over the same rows, with the standard error of that mean. Without --test they are over the validation
/// rows, by which epochs and sizes were chosen: then they flatter.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree compare data.csv\n  everytree compare train.csv --valid valid.csv --test test.csv --time 10m --html compare.html\n  everytree compare data.csv --families chow-liu,moat,directed --json"
)]
pub struct Compare {
    #[command(flatten)]
    sources: Sources,
    /// Who takes part; auto: what `fit` chooses by itself. Default: all but that.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = FamilyParser { auto: true })]
    families: Vec<String>,
    /// Time for all fits together (90s, 10m, 2h).
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    time: Duration,
    /// Save the model that is best on the validation rows here.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// Write a page with the table and the learning curves here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Threads. Default: all. Without a time that runs out, the result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
    /// No progress, no notices.
    #[arg(long)]
    quiet: bool,
}

/// Says what every family came to as soon as it is known.
impl CompareObserver for Progress {
    fn family(&mut self, family: &str) {
        self.again(family);
    }

    fn compared(&mut self, line: &ComparedFamily, again: bool) {
        self.finish();
        if !self.is_quiet() {
            let ComparedFamily { family, valid_ll, .. } = line;
            let (more, seconds) = (if again { " with more time," } else { "" }, duration(line.seconds));
            note!("{family}: validation {valid_ll:.4}{more} in {seconds}{}", line.ended.in_words());
        }
    }

    fn left_out(&mut self, LeftOut { family, why, .. }: &LeftOut) {
        self.finish();
        if !self.is_quiet() {
            note!("{family}: {}; left out", spelled(why, Spelling::Flags));
        }
    }
}

impl Compare {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let files = self.sources.files().output("--html", self.html.as_ref());
        files.output("--out", self.out.as_ref()).check()?;
        let tables = self.sources.read(self.quiet, None)?;
        let mut progress = Progress::new(self.quiet, tables.train.schema(), &tables.notices)?;
        let mut compare = Comparing::new().families(self.families.iter().cloned()).time(self.time);
        compare = compare.seed(self.seed).holdout(self.sources.holdout);
        if let Some(valid) = &tables.valid {
            compare = compare.valid(valid.clone());
        }
        if let Some(test) = &tables.test {
            compare = compare.test(test.clone());
        }
        let comparison = compare.run_with(&tables.train, &mut progress);
        progress.finish();
        let comparison = match comparison {
            // Interrupted before anything was there to keep.
            Err(error) if error.code() == ErrorCode::Stopped && progress.is_interrupted() => {
                note!("everytree: {}", error.spelled(Spelling::Flags));
                return Ok(Outcome::Interrupted);
            }
            other => other?,
        };
        let winner = comparison.winner();
        let mut out = crate::shown::out();
        if self.json {
            let mut object = object(&comparison, tables.train.columns());
            object["winner"] = json!({"family": winner.family, "command": self.command(winner)});
            writeln!(out, "{object}")?;
        } else {
            print(&mut out, &comparison)?;
            let near = near(&comparison);
            if !near.is_empty() {
                writeln!(out, "within two standard errors of the best: {}", near.join(", "))?;
            }
            for LeftOut { family, why, .. } in &comparison.left_out {
                writeln!(out, "left out: {family} ({})", spelled(why, Spelling::Flags))?;
            }
            writeln!(out, "\nbest on the validation rows:\n  {}", self.command(winner))?;
        }
        if let Some(path) = &self.out {
            crate::outputs::save(&winner.model, path)?;
            if !self.json {
                writeln!(out, "saved {}", path.display())?;
            }
        }
        if let Some(html) = &self.html {
            page::write(html, &self.sources.train, &comparison)?;
            if !self.json {
                writeln!(out, "written: {}", html.display())?;
            }
        }
        Ok(if comparison.interrupted { Outcome::Interrupted } else { Outcome::Done })
    }

    /// What learns such a model.
    fn command(&self, line: &ComparedFamily) -> String {
        let mut command = format!("everytree fit {}", in_shell(&self.sources.train.to_string_lossy()));
        if let Some(valid) = &self.sources.valid {
            command += &format!(" --valid {}", in_shell(&valid.to_string_lossy()));
        }
        self.sources.flags().iter().for_each(|(flag, value)| {
            command += &format!(" --{flag} {}", in_shell(value));
        });
        command += &format!(" --family {}", line.family);
        if let [member] = &line.model.members()[..]
            && line.family != "auto"
        {
            match member.hidden {
                Some(states) => command += &format!(" --hidden {states}"),
                None if member.components > 1 => command += &format!(" --components {}", member.components),
                None => {}
            }
        }
        if self.seed != 0 {
            command += &format!(" --seed {}", self.seed);
        }
        command
    }
}

/// Rows to test with, or those that validate.
fn on(comparison: &Comparison) -> &'static str {
    if comparison.test_rows.is_some() { "test" } else { "valid" }
}

/// Families that are behind the best by less than two standard errors.
fn near(comparison: &Comparison) -> Vec<String> {
    let near = comparison.families.iter().filter(|line| !line.is_best && line.within_error());
    near.map(|line| line.family.clone()).collect()
}

/// How large it is: components, or hidden states.
fn size(model: &Model) -> String {
    let members = model.members();
    let [member] = &members[..] else { return plural(members.len(), "member") };
    let size = match member.hidden {
        Some(count) => format!("H = {count}"),
        None => member.components.to_string(),
    };
    match member.blocks {
        None => size,
        Some(blocks) => format!("{size}, {}", plural(blocks, "block")),
    }
}

fn cells(line: &ComparedFamily) -> Vec<String> {
    let (name, behind) = (&line.family, line.difference);
    let microseconds = line.microseconds_per_row;
    vec![
        if line.ended == HowEnded::Done { name.clone() } else { format!("{name} *") },
        size(&line.model),
        count(line.model.parameters()),
        format!("{:.4}", line.train_ll),
        format!("{:.4}", line.valid_ll),
        line.test_ll.map_or("–".to_owned(), |test| format!("{test:.4}")),
        match behind.mean == 0.0 {
            true if line.is_best => "best".to_owned(),
            true => "the same".to_owned(),
            false if behind.standard_error.is_finite() => {
                format!("{:.4} ± {:.4}", behind.mean, behind.standard_error)
            }
            false => format!("{:.4}", behind.mean),
        },
        duration(line.seconds),
        format!("{microseconds:.*}", if microseconds < 10.0 { 2 } else { 0 }),
        exact(&line.model),
    ]
}

const HEADS: [&str; 10] =
    ["family", "K", "parameters", "train", "valid", "test", "to the best", "fit", "µs a row", "exact"];

/// What the difference is over, in words.
fn over(on: &str) -> &'static str {
    match on {
        "test" => "mean log-likelihoods in nats; differences over test rows, with their standard error",
        _ => {
            "mean log-likelihoods in nats; differences over the validation rows that chose epochs and sizes: give --test"
        }
    }
}

/// What a star means, if there is one.
fn stopped(lines: &[ComparedFamily]) -> Option<&'static str> {
    let any = |how: HowEnded| lines.iter().any(|line| line.ended == how);
    match (any(HowEnded::Interrupted), any(HowEnded::Clock)) {
        (true, true) => Some("* interrupted, or stopped by the clock; --time gives more"),
        (true, false) => Some("* interrupted"),
        (false, true) => Some("* stopped by the clock; --time gives more"),
        (false, false) => None,
    }
}

fn print(out: &mut dyn Write, comparison: &Comparison) -> Result<()> {
    let lines = &comparison.families;
    let rows: Vec<Vec<String>> = lines.iter().map(cells).collect();
    let heads: Vec<String> = HEADS.iter().map(|head| (*head).to_owned()).collect();
    let width =
        |column: usize| column_width(rows.iter().chain([&heads]).map(|row| row[column].chars().count()));
    for row in std::iter::once(&heads).chain(&rows) {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| match column {
                0 | 9 => format!("{cell:<width$}", width = width(column)),
                _ => format!("{cell:>width$}", width = width(column)),
            })
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    writeln!(out, "\n{}", over(on(comparison)))?;
    if let Some(words) = stopped(lines) {
        writeln!(out, "{words}")?;
    }
    Ok(())
}

fn object(comparison: &Comparison, columns: usize) -> Value {
    let of = |line: &ComparedFamily| {
        let mut object = json!({
            "family": line.family,
            "components": line.model.components(),
            "parameters": line.model.parameters(),
            "train_ll": line.train_ll,
            "valid_ll": line.valid_ll,
            "test_ll": line.test_ll,
            "difference": line.difference.mean,
            "difference_standard_error": line.difference.standard_error,
            "within_error": line.within_error(),
            "seconds": line.seconds,
            "microseconds_per_row": line.microseconds_per_row,
            "finished": line.ended == HowEnded::Done,
            "exact": exact(&line.model),
            "history": line.history,
        });
        members::describe(&line.model, &mut object);
        object
    };
    let left_out = |LeftOut { family, why, .. }: &LeftOut| json!({"family": family, "why": why});
    json!({
        "rows": comparison.train_rows,
        "valid_rows": comparison.valid_rows,
        "test_rows": comparison.test_rows,
        "columns": columns,
        "compared_on": on(comparison),
        "families": comparison.families.iter().map(of).collect::<Vec<_>>(),
        "left_out": comparison.left_out.iter().map(left_out).collect::<Vec<_>>(),
    })
}
