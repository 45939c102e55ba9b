//! `everytree compare`: families side by side on one table.

mod page;

use crate::Outcome;
use crate::data::use_threads;
use crate::families::FamilyParser;
use crate::members;
use crate::progress::{Progress, duration, parse_duration};
use crate::tables::{Sources, Tables};
use anyhow::{Result, bail};
use clap::Args;
use everytree::{
    Checkpoint, Dataset, DeviceChoice, Epoch, ErrorCode, Fit, FitRows, Fitted, Model, Observer, Stopped,
    Work, count, plural,
};
use everytree_core::model::{Family, Preset, Trees};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Times that rows are scored; the fastest counts.
const PASSES: usize = 3;
/// Rows that are evaluated between two looks at whether to stop.
const PORTION: usize = 4096;

/// Who takes part if nobody is named: every family of the registry, the baselines first.
fn all() -> Vec<&'static str> {
    let mut presets: Vec<(Family, &'static Preset)> = Family::listed().collect();
    presets.sort_by_key(|(family, _)| family.spec().trees == Trees::All);
    presets.into_iter().map(|(_, preset)| preset.name).collect()
}

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

/// What one family came to.
struct Line {
    family: String,
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
    /// Where it was stopped.
    unfinished: Option<Box<Checkpoint>>,
}

/// Going on is worth the while with this much time.
const LEAST_TIME: Duration = Duration::from_millis(500);

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
    family: String,
    why: String,
}

/// How far a family is behind the best, and how sure that is.
struct Behind {
    mean: f64,
    standard_error: f64,
    /// Is it the first of those that are not behind?
    first: bool,
}

impl Behind {
    /// By so little that other rows might say otherwise?
    fn is_near(&self) -> bool {
        self.mean == 0.0 || -self.mean < 2.0 * self.standard_error
    }
}

impl Compare {
    pub fn run(self) -> Result<Outcome> {
        use_threads(self.threads)?;
        let files = self.sources.files().output("--html", self.html.as_ref());
        files.output("--out", self.out.as_ref()).check()?;
        let tables = self.sources.read(self.quiet, None)?;
        let note = |text: String| {
            if !self.quiet {
                note!("{text}");
            }
        };
        let mut progress = Progress::new(self.quiet, tables.train.schema(), &tables.notices)?;
        let rows = Rows::new(&tables, &self.sources, self.seed)?;
        rows.introduce(&mut progress, self.seed);
        let families = if self.families.is_empty() {
            all().into_iter().map(str::to_owned).collect()
        } else {
            self.families.clone()
        };
        let begin = Instant::now();
        let (mut lines, mut left_out): (Vec<Line>, Vec<LeftOut>) = (Vec::new(), Vec::new());
        for (place, family) in families.iter().enumerate() {
            let mut leave = |why: String| {
                note(format!("{family}: {why}; left out"));
                left_out.push(LeftOut { family: family.clone(), why });
            };
            let fit = self.fit_of(family, &rows);
            let looks_for_blocks = Family::preset(family).is_ok_and(|(_, preset)| preset.blocks);
            if looks_for_blocks && fit.groupings(&rows.train)?.iter().all(Vec::is_empty) {
                leave("no columns belong together".to_owned());
                continue;
            }
            let left = self.time.saturating_sub(begin.elapsed());
            if progress.is_interrupted() || left.is_zero() {
                leave("there was no time left".to_owned());
                continue;
            }
            progress.again(family);
            let line =
                line(family, &fit.timeout(left / (families.len() - place) as u32), &rows, &mut progress);
            progress.finish();
            match line {
                Ok(Some(line)) => {
                    let how = line.ended.in_words();
                    let seconds = duration(line.seconds);
                    note(format!("{family}: validation {:.4} in {seconds}{how}", line.valid));
                    lines.push(line);
                }
                Ok(None) => leave("there was no time left".to_owned()),
                // What the others came to is not lost.
                Err(error) => leave(crate::in_words(&error)),
            }
        }
        // Time that others did not need is for those that had too little: they go on from where they were.
        let again: Vec<usize> =
            (0..lines.len()).filter(|&place| lines[place].ended == HowEnded::Clock).collect();
        for (done, &place) in again.iter().enumerate() {
            let left = self.time.saturating_sub(begin.elapsed());
            let share = left / (again.len() - done) as u32;
            if progress.is_interrupted() || share < LEAST_TIME {
                continue;
            }
            let family = lines[place].family.clone();
            progress.again(&family);
            let mut fit = self.fit_of(&family, &rows).timeout(share);
            let before = lines[place].seconds;
            if let Some(checkpoint) = lines[place].unfinished.take() {
                fit = fit.resume(*checkpoint);
            }
            let longer = line(&family, &fit, &rows, &mut progress);
            progress.finish();
            if let Ok(Some(mut longer)) = longer
                && longer.valid >= lines[place].valid
            {
                longer.seconds += before;
                let seconds = duration(longer.seconds);
                note(format!("{family}: validation {:.4} with more time, in {seconds}", longer.valid));
                lines[place] = longer;
            }
        }
        if lines.is_empty() {
            let why: Vec<String> =
                left_out.iter().map(|out| format!("{}: {}", out.family, out.why)).collect();
            bail!("no family was done; {}", why.join("; "));
        }
        let behind = behind(&lines);
        // Chosen by the rows that are for choosing, whatever test rows say.
        let Some(winner) =
            lines.iter().reduce(|best, next| if next.valid > best.valid { next } else { best })
        else {
            bail!("no family was done");
        };
        let on = if rows.test.is_some() { "test" } else { "valid" };
        let mut out = crate::shown::out();
        if self.json {
            let mut object = object(&rows, &lines, &behind, &left_out, on);
            object["winner"] = json!({"family": winner.family, "command": self.command(winner)});
            writeln!(out, "{object}")?;
        } else {
            print(&mut out, &lines, &behind, on)?;
            let near = near(&lines, &behind);
            if !near.is_empty() {
                writeln!(out, "within two standard errors of the best: {}", near.join(", "))?;
            }
            for LeftOut { family, why } in &left_out {
                writeln!(out, "left out: {family} ({why})")?;
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
            page::write(html, &self.sources.train, &lines, &behind, on)?;
            if !self.json {
                writeln!(out, "written: {}", html.display())?;
            }
        }
        Ok(if progress.is_interrupted() { Outcome::Interrupted } else { Outcome::Done })
    }

    /// What learns such a model.
    fn command(&self, line: &Line) -> String {
        let mut command = format!("everytree fit {}", self.sources.train.display());
        if let Some(valid) = &self.sources.valid {
            command += &format!(" --valid {}", valid.display());
        }
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

    /// The same fit as `everytree fit --family NAME`, on the CPU.
    fn fit_of(&self, family: &str, rows: &Rows) -> Fit {
        let fit = Fit::new().family(family).seed(self.seed).device(DeviceChoice::Cpu);
        fit.valid(rows.valid.clone()).without_edges()
    }
}

/// The rows that families are compared on: the same for all of them.
struct Rows {
    train: Dataset,
    valid: Dataset,
    test: Option<Dataset>,
    held_out: bool,
}

impl Rows {
    fn new(tables: &Tables, sources: &Sources, seed: u64) -> Result<Self> {
        let (train, valid) = match &tables.valid {
            Some(valid) => (tables.train.clone(), valid.clone()),
            None => everytree::hold_out(&tables.train, sources.holdout, seed)?,
        };
        Ok(Self { train, valid, test: tables.test.clone(), held_out: tables.valid.is_none() })
    }

    fn introduce(&self, progress: &mut Progress, seed: u64) {
        let test = self.test.as_ref().map(|test| test.rows());
        progress.data(&FitRows::new(
            self.train.rows(),
            self.valid.rows(),
            test,
            self.held_out.then_some(seed),
        ));
    }
}

/// Fits one family; nothing if there was no time for a first validation, or for the rows that families are compared on.
fn line(family: &str, fit: &Fit, rows: &Rows, progress: &mut Progress) -> Result<Option<Line>> {
    let fitted = match fit.run_with(&rows.train, progress) {
        Err(error) if error.code() == ErrorCode::Stopped => return Ok(None),
        other => other?,
    };
    let Fitted { model, report, failure, unfinished, .. } = fitted;
    if let Some(error) = failure {
        return Err(error.into());
    }
    let ended = match report.stopped {
        Stopped::Observer => HowEnded::Interrupted,
        Stopped::Timeout => HowEnded::Clock,
        // Learned to the end, but there was no time to evaluate all rows.
        _ if report.evaluated.is_some() => HowEnded::Clock,
        _ => HowEnded::Done,
    };
    // What nothing was learned of is no comparison.
    if ended != HowEnded::Done && report.epochs == 0 && report.trials.is_empty() {
        return Ok(None);
    }
    let compared = rows.test.as_ref().unwrap_or(&rows.valid);
    model.check_memory(Work::Score)?;
    let mut log_p = Vec::new();
    let mut fastest = f64::INFINITY;
    if !compared.is_complete() {
        let begin = Instant::now();
        let scores = model.scoring().missing_as_state(true).device(DeviceChoice::Cpu).run(compared)?;
        log_p = scores.log_likelihoods.iter().map(|score| score.value).collect();
        fastest = begin.elapsed().as_secs_f64();
    }
    let inference = model.file().model.inference()?;
    let all: Vec<usize> = (0..compared.rows()).collect();
    for _ in 0..if compared.is_complete() { PASSES } else { 0 } {
        let begin = Instant::now();
        let mut found = Vec::with_capacity(all.len());
        for some in all.chunks(PORTION) {
            // Rows that are left out would make another comparison.
            if progress.is_interrupted() && log_p.is_empty() {
                return Ok(None);
            }
            found.extend(inference.log_p(&compared.table().select(some.iter().copied()))?);
        }
        log_p = found;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
        if progress.is_interrupted() {
            break;
        }
    }
    drop(inference);
    let microseconds = fastest * 1e6 / compared.rows().max(1) as f64;
    let test = rows.test.as_ref().map(|_| log_p.iter().sum::<f64>() / log_p.len() as f64);
    Ok(Some(Line {
        family: family.to_owned(),
        train: report.train_ll,
        valid: report.valid_ll,
        test,
        log_p,
        seconds: report.learning_seconds,
        microseconds,
        ended,
        unfinished,
        history: report.history,
        model,
    }))
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
        Behind { mean, standard_error: (squares / (rows - 1.0) / rows).sqrt(), first: false }
    };
    let mut all: Vec<Behind> = lines.iter().map(one).collect();
    if let Some(first) = all.iter_mut().find(|behind| behind.mean == 0.0) {
        first.first = true;
    }
    all
}

/// Families that are behind the best by less than two standard errors.
fn near(lines: &[Line], behind: &[Behind]) -> Vec<String> {
    let both = lines.iter().zip(behind).filter(|(_, behind)| !behind.first && behind.is_near());
    both.map(|(line, _)| line.family.clone()).collect()
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

fn cells(line: &Line, behind: &Behind) -> Vec<String> {
    let name = &line.family;
    vec![
        if line.ended == HowEnded::Done { name.clone() } else { format!("{name} *") },
        size(&line.model),
        count(line.model.parameters()),
        format!("{:.4}", line.train),
        format!("{:.4}", line.valid),
        line.test.map_or("–".to_owned(), |test| format!("{test:.4}")),
        match behind.mean == 0.0 {
            true if behind.first => "best".to_owned(),
            true => "the same".to_owned(),
            false if behind.standard_error.is_finite() => {
                format!("{:.4} ± {:.4}", behind.mean, behind.standard_error)
            }
            false => format!("{:.4}", behind.mean),
        },
        duration(line.seconds),
        format!("{:.*}", if line.microseconds < 10.0 { 2 } else { 0 }, line.microseconds),
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

fn object(rows: &Rows, lines: &[Line], behind: &[Behind], left_out: &[LeftOut], on: &str) -> Value {
    let families: Vec<Value> = lines
        .iter()
        .zip(behind)
        .map(|(line, behind)| {
            let mut object = json!({
                "family": line.family,
                "components": line.model.components(),
                "parameters": line.model.parameters(),
                "train_ll": line.train,
                "valid_ll": line.valid,
                "test_ll": line.test,
                "difference": behind.mean,
                "difference_standard_error": behind.standard_error,
                "within_error": behind.is_near(),
                "seconds": line.seconds,
                "microseconds_per_row": line.microseconds,
                "finished": line.ended == HowEnded::Done,
                "exact": exact(&line.model),
                "history": line.history,
            });
            members::describe(&line.model, &mut object);
            object
        })
        .collect();
    json!({
        "rows": rows.train.rows(),
        "valid_rows": rows.valid.rows(),
        "test_rows": rows.test.as_ref().map(|test| test.rows()),
        "columns": rows.train.columns(),
        "compared_on": on,
        "families": families,
        "left_out": left_out
            .iter()
            .map(|out| json!({"family": out.family, "why": out.why}))
            .collect::<Vec<_>>(),
    })
}
