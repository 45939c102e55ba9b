//! `everytree compare`: families side by side on one table.

mod page;

use crate::Outcome;
use crate::data::use_threads;
use crate::progress::{Stop, Watcher, duration, parse_duration};
use crate::tables::Sources;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use everytree::{HowToLearn, LOOK, MOST_BY_ITSELF, Machine, Precision, Tables, Together, count, judge, run};
use everytree_core::data::Table;
use everytree_core::learn::{Ended, Epoch, Family, HowMany, Plan, Search, Settings, Start, evaluate};
use everytree_core::model::{Model, Pairs, Structure};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Times that rows are scored; the fastest counts.
const PASSES: usize = 3;

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contender {
    /// Columns that have nothing to do with each other: the floor.
    Independent,
    /// One tree.
    ChowLiu,
    /// Several trees, as many as pay.
    MixtureOfTrees,
    /// One tree of hidden variables, with as many states as pay.
    Hclt,
    /// The mixture of all trees of the paper.
    Moat,
    /// The mixture of all rooted forests.
    Directed,
    /// As many of those as pay.
    DirectedMixture,
    /// The same over blocks of columns, where validation prefers them.
    DirectedBlocks,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::ChowLiu => "chow-liu",
            Self::MixtureOfTrees => "mixture-of-trees",
            Self::Hclt => "hclt",
            Self::Moat => "moat",
            Self::Directed => "directed",
            Self::DirectedMixture => "directed-mixture",
            Self::DirectedBlocks => "directed-blocks",
        }
    }

    fn family(self) -> Family {
        match self {
            Self::Independent => Family::Independent,
            Self::ChowLiu | Self::MixtureOfTrees => Family::ChowLiu,
            Self::Hclt => Family::Hclt,
            Self::Moat => Family::Moat,
            Self::Directed | Self::DirectedMixture | Self::DirectedBlocks => Family::Directed,
        }
    }

    /// How many components, and states of hidden variables.
    fn sizes(self) -> (HowMany, HowMany) {
        let (one, auto) = (HowMany::Just(1), HowMany::UpTo(MOST_BY_ITSELF));
        match self {
            Self::MixtureOfTrees | Self::DirectedMixture | Self::DirectedBlocks => (auto, one),
            Self::Hclt => (one, auto),
            _ => (one, one),
        }
    }
}

/// What a family answers exactly.
fn exact(model: &Model) -> &'static str {
    match (model.structure(), model.mixture().components().len()) {
        (Some(Structure::Independent | Structure::ChowLiu), 1) => {
            "likelihoods, conditionals, samples, most probable row"
        }
        (Some(_), _) => "likelihoods, conditionals, samples",
        (None, _) => "likelihoods, one column given the rest, samples",
    }
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
    /// Who takes part. Default: all.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    families: Vec<Contender>,
    /// Time for all fits together (90s, 10m, 2h).
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    time: Duration,
    /// Write a page with the table and the learning curves here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Seed of everything that is left to chance.
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

/// What one family came to.
struct Line {
    contender: Contender,
    model: Model,
    history: Vec<Epoch>,
    train: f64,
    valid: f64,
    test: Option<f64>,
    /// Of every row that is compared.
    log_p: Vec<f64>,
    seconds: f64,
    microseconds: f64,
    ended: HowEnded,
}

/// How a fit ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HowEnded {
    Done,
    Clock,
    Interrupted,
}

impl HowEnded {
    fn in_words(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::Clock => ", stopped by the clock",
            Self::Interrupted => ", interrupted",
        }
    }
}

/// Who did not take part, and why.
struct LeftOut {
    contender: Contender,
    why: String,
}

/// How far a family is behind the best, and how sure that is.
struct Behind {
    mean: f64,
    standard_error: f64,
}

impl Compare {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        if let Some(html) = &self.html {
            crate::fit::check_place("--html", html, &self.sources)?;
        }
        let tables = self.sources.read(self.seed, self.quiet, None)?;
        let note = |text: String| {
            if !self.quiet {
                note!("{text}");
            }
        };
        tables.introduce(self.seed, &note);
        if tables.holes.iter().any(|holes| !holes.is_empty()) {
            bail!("--missing marginalise: families are compared on complete rows; use category");
        }
        let contenders: Vec<Contender> = match self.families.is_empty() {
            true => Contender::value_variants().to_vec(),
            false => self.families.clone(),
        };
        let begin = Instant::now();
        let mut watcher = Watcher::new(self.quiet, None, None)?;
        let (mut lines, mut left_out) = (Vec::new(), Vec::new());
        for (place, &contender) in contenders.iter().enumerate() {
            let mut leave = |why: String| {
                note(format!("{}: {why}; left out", contender.name()));
                left_out.push(LeftOut { contender, why });
            };
            let groupings = groupings(contender, &tables)?;
            let left = self.time.saturating_sub(begin.elapsed());
            if contender == Contender::DirectedBlocks && groupings.iter().all(Vec::is_empty) {
                leave("no columns belong together".to_owned());
                continue;
            }
            if watcher.stop == Some(Stop::Interrupted) || left.is_zero() {
                leave("there was no time left".to_owned());
                continue;
            }
            watcher.again(contender.name(), left / (contenders.len() - place) as u32);
            let line = self.fit(contender, groupings, &tables, &mut watcher);
            watcher.finish();
            match line {
                Ok(Some(line)) => {
                    let how = line.ended.in_words();
                    let seconds = duration(line.seconds);
                    note(format!("{}: validation {:.4} in {seconds}{how}", contender.name(), line.valid));
                    lines.push(line);
                }
                Ok(None) => leave("there was no time left".to_owned()),
                // What the others came to is not lost.
                Err(error) => leave(format!("{error:#}")),
            }
        }
        if lines.is_empty() {
            let why: Vec<String> =
                left_out.iter().map(|out| format!("{}: {}", out.contender.name(), out.why)).collect();
            bail!("no family was done; {}", why.join("; "));
        }
        let behind = behind(&lines);
        let on = if tables.test.is_some() { "test" } else { "valid" };
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", object(&tables, &lines, &behind, &left_out, on))?;
        } else {
            print(&mut out, &lines, &behind, on)?;
            for LeftOut { contender, why } in &left_out {
                writeln!(out, "left out: {} ({why})", contender.name())?;
            }
        }
        if let Some(html) = &self.html {
            page::write(html, &self.sources.train, &lines, &behind, on)?;
            if !self.json {
                writeln!(out, "written: {}", html.display())?;
            }
        }
        Ok(match watcher.stop {
            Some(Stop::Interrupted) => Outcome::Interrupted,
            _ => Outcome::Done,
        })
    }

    /// Fits one family; nothing if there was no time for a first validation.
    fn fit(
        &self,
        contender: Contender,
        groupings: Vec<Vec<Vec<usize>>>,
        tables: &Tables,
        watcher: &mut Watcher,
    ) -> Result<Option<Line>> {
        let begin = Instant::now();
        let family = contender.family();
        let settings = Settings { seed: self.seed, ..Settings::usual(family, tables.states.len()) };
        let start = Start { family, pairs: Pairs::Lambda, pseudo_rows: 1.0, random: false, seed: self.seed };
        let (components, hidden) = contender.sizes();
        let mut search = Search::new(Plan { groupings, components, hidden, look: LOOK, start });
        let how = HowToLearn {
            settings: &settings,
            precision: Precision::F32,
            machine: &Machine::Cpu,
            note: &|_| (),
        };
        let ended = run(&mut search, tables.rows(), how, watcher)?;
        let Some(found) = search.found()? else { return Ok(None) };
        let ended = match (ended, watcher.stop) {
            (Ended::Stopped, Some(Stop::Interrupted)) => HowEnded::Interrupted,
            (Ended::Stopped, _) => HowEnded::Clock,
            _ => HowEnded::Done,
        };
        // What nothing was learned of is no comparison.
        if ended != HowEnded::Done && found.history.len() <= 1 && search.tried.is_empty() {
            return Ok(None);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let mean = |table: &Table| -> Result<f64> {
            Ok(evaluate(found.model.mixture(), &found.model.blocks().unique(table), &judge())?.mean)
        };
        let (train, valid) = (mean(&tables.train)?, mean(&tables.valid)?);
        let rows = tables.test.as_ref().unwrap_or(&tables.valid);
        let asked = found.model.asked()?;
        let mut log_p = Vec::new();
        let mut fastest = f64::INFINITY;
        for _ in 0..PASSES {
            let begin = Instant::now();
            log_p = asked.log_p(rows)?;
            fastest = fastest.min(begin.elapsed().as_secs_f64());
        }
        let microseconds = fastest * 1e6 / rows.rows().max(1) as f64;
        let test = tables.test.as_ref().map(|_| log_p.iter().sum::<f64>() / log_p.len() as f64);
        Ok(Some(Line {
            contender,
            train,
            valid,
            test,
            log_p,
            seconds,
            microseconds,
            ended,
            history: found.history.clone(),
            model: found.model.clone(),
        }))
    }
}

/// Ways to group columns.
fn groupings(contender: Contender, tables: &Tables) -> Result<Vec<Vec<Vec<usize>>>> {
    match contender {
        Contender::DirectedBlocks => {
            Together::auto().groupings(&tables.schema, &tables.train, &tables.holes[0], &|_| ())
        }
        _ => Ok(vec![Vec::new()]),
    }
}

/// By how much each is behind the best on the rows that are compared.
fn behind(lines: &[Line]) -> Vec<Behind> {
    let mean = |log_p: &[f64]| log_p.iter().sum::<f64>() / log_p.len().max(1) as f64;
    let best = lines.iter().map(|line| &line.log_p);
    let Some(best) = best.reduce(|best, next| if mean(next) > mean(best) { next } else { best }) else {
        return Vec::new();
    };
    let one = |line: &Line| {
        let differences: Vec<f64> = line.log_p.iter().zip(best).map(|(own, best)| own - best).collect();
        let (rows, mean) = (differences.len() as f64, mean(&differences));
        let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
        // Of one row there is no telling.
        Behind { mean, standard_error: (squares / (rows - 1.0) / rows).sqrt() }
    };
    lines.iter().map(one).collect()
}

/// How large it is: components, or hidden states.
fn size(model: &Model) -> String {
    let size = match model.structure() {
        Some(Structure::Hidden(count)) => format!("H = {count}"),
        _ => model.mixture().components().len().to_string(),
    };
    match model.blocks().is_none() {
        true => size,
        false => format!("{size}, {} blocks", model.blocks().blocks().len()),
    }
}

fn cells(line: &Line, behind: &Behind) -> Vec<String> {
    let name = line.contender.name();
    vec![
        if line.ended == HowEnded::Done { name.to_owned() } else { format!("{name} *") },
        size(&line.model),
        count(line.model.degrees_of_freedom()),
        format!("{:.4}", line.train),
        format!("{:.4}", line.valid),
        line.test.map_or("–".to_owned(), |test| format!("{test:.4}")),
        match behind.mean == 0.0 {
            true => "best".to_owned(),
            false if behind.standard_error.is_finite() => {
                format!("{:.4} ± {:.4}", behind.mean, behind.standard_error)
            }
            false => format!("{:.4}", behind.mean),
        },
        duration(line.seconds),
        format!("{:.*}", if line.microseconds < 10.0 { 2 } else { 0 }, line.microseconds),
        exact(&line.model).to_owned(),
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
fn stopped(lines: &[Line]) -> Option<&'static str> {
    let any = |how: HowEnded| lines.iter().any(|line| line.ended == how);
    match (any(HowEnded::Interrupted), any(HowEnded::Clock)) {
        (true, true) => Some("* interrupted, or stopped by the clock; --time gives more"),
        (true, false) => Some("* interrupted"),
        (false, true) => Some("* stopped by the clock; --time gives more"),
        (false, false) => None,
    }
}

fn print(out: &mut dyn Write, lines: &[Line], behind: &[Behind], on: &str) -> Result<()> {
    let rows: Vec<Vec<String>> = lines.iter().zip(behind).map(|(line, behind)| cells(line, behind)).collect();
    let heads: Vec<String> = HEADS.iter().map(|head| (*head).to_owned()).collect();
    let width =
        |column: usize| rows.iter().chain([&heads]).map(|row| row[column].chars().count()).max().unwrap_or(0);
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
    writeln!(out, "\n{}", over(on))?;
    if let Some(words) = stopped(lines) {
        writeln!(out, "{words}")?;
    }
    Ok(())
}

fn object(tables: &Tables, lines: &[Line], behind: &[Behind], left_out: &[LeftOut], on: &str) -> Value {
    let families: Vec<Value> = lines
        .iter()
        .zip(behind)
        .map(|(line, behind)| {
            let mut object = json!({
                "family": line.contender.name(),
                "components": line.model.mixture().components().len(),
                "parameters": line.model.degrees_of_freedom(),
                "train_ll": line.train,
                "valid_ll": line.valid,
                "test_ll": line.test,
                "difference": behind.mean,
                "difference_standard_error": behind.standard_error,
                "seconds": line.seconds,
                "microseconds_per_row": line.microseconds,
                "finished": line.ended == HowEnded::Done,
                "exact": exact(&line.model),
                "history": line.history,
            });
            if let Some(Structure::Hidden(count)) = line.model.structure() {
                object["hidden"] = json!(count);
            }
            if !line.model.blocks().is_none() {
                object["blocks"] = json!(line.model.blocks().blocks().len());
            }
            object
        })
        .collect();
    json!({
        "rows": tables.train.rows(),
        "valid_rows": tables.valid.rows(),
        "test_rows": tables.test.as_ref().map(Table::rows),
        "columns": tables.states.len(),
        "compared_on": on,
        "families": families,
        "left_out": left_out
            .iter()
            .map(|out| json!({"family": out.contender.name(), "why": out.why}))
            .collect::<Vec<_>>(),
    })
}
