//! What a person sees while learning goes on, and how it is stopped.

use crate::interrupt::Interrupts;
use anyhow::Result;
use everytree::{FitRows, Observer, Schema, Spelling, Trial, Trying, count, plural, say, spelled};
use everytree_core::data::scan::Notice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Shows how fits go on the terminal, and ends them when a signal asks for it.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    interrupts: Interrupts,
    /// What is said about the table when its rows are known.
    introduction: Option<Introduction>,
    begin: Instant,
    /// Epochs done when this run began.
    first: Option<usize>,
    /// The fit under way.
    trial: Option<Trial>,
    /// Before everything that the bar says.
    label: String,
    /// After it: what leads, and how much of the budget is spent.
    standing: String,
    /// Was it said that members learn once more?
    refitting: bool,
    /// Is what is learned laid beside others? Then the table says what there is to doubt.
    is_one_of_several: bool,
}

/// The columns of a table, in words.
struct Introduction {
    columns: usize,
    named: bool,
    states: usize,
    notices: Vec<String>,
    more: usize,
}

impl Introduction {
    fn new(schema: &Schema, notices: &[Notice]) -> Self {
        const MOST: usize = 8;
        Self {
            columns: schema.variables.len(),
            named: schema.header,
            states: schema.states().iter().sum(),
            notices: notices.iter().take(MOST).map(|notice| spelled(&say(notice), Spelling::Flags)).collect(),
            more: notices.len().saturating_sub(MOST),
        }
    }

    fn print(&self, rows: &FitRows) {
        let test = rows.test.map_or(String::new(), |test| format!(", {} to test", count(test)));
        let columns = plural(self.columns, "column");
        let names = if self.named { ", named in the file," } else { " without names," };
        let states = plural(self.states, "state");
        match (rows.folds, rows.held_out) {
            (folds, Some(seed)) if folds > 1 => note!(
                "{columns}{names} with {states}; {}, all held out in turn to validate ({folds} folds, seed {seed}){test}",
                plural(rows.train + rows.valid, "row"),
            ),
            _ => note!(
                "{columns}{names} with {states}; {} to learn from, {} to validate{}{test}",
                plural(rows.train, "row"),
                count(rows.valid),
                rows.held_out.map_or(String::new(), |seed| format!(" (held out by seed {seed})")),
            ),
        }
        self.notices.iter().for_each(|notice| note!("note: {notice}"));
        if self.more > 0 {
            note!("note: and {} more columns like these", self.more);
        }
    }
}

impl Progress {
    /// For a table with these columns.
    pub fn new(quiet: bool, schema: &Schema, notices: &[Notice]) -> Result<Self> {
        let bar = bar(quiet, "{bar:30} {msg}")?;
        Ok(Self {
            bar,
            quiet,
            interrupts: Interrupts::listen()?,
            introduction: Some(Introduction::new(schema, notices)),
            begin: Instant::now(),
            first: None,
            trial: None,
            label: String::new(),
            standing: String::new(),
            refitting: false,
            is_one_of_several: false,
        })
    }

    /// Another fit of several, of this name.
    pub fn again(&mut self, name: &str) {
        self.is_one_of_several = true;
        self.relabel(name);
    }

    fn relabel(&mut self, name: &str) {
        self.label = format!("{name}: ");
        self.restart();
    }

    fn restart(&mut self) {
        self.first = None;
        self.trial = None;
        self.begin = Instant::now();
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Was there a signal to end?
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.any()
    }

    fn go_on(&self) -> ControlFlow<()> {
        if self.is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for Progress {
    fn data(&mut self, rows: &FitRows) {
        if let (Some(introduction), false) = (self.introduction.take(), self.quiet) {
            introduction.print(rows);
        }
    }

    fn note(&mut self, note: &str) {
        if !self.quiet {
            self.bar.suspend(|| note!("note: {}", spelled(note, Spelling::Flags)));
        }
    }

    fn warning(&mut self, warning: &str) {
        self.bar.suspend(|| note!("everytree: warning: {}", spelled(warning, Spelling::Flags)));
    }

    fn doubt(&mut self, doubt: &str) {
        if !self.quiet && !self.is_one_of_several {
            self.bar.suspend(|| note!("warning: {}", spelled(doubt, Spelling::Flags)));
        }
    }

    fn trying(&mut self, trying: &Trying<'_>) {
        let (fold, folds) = trying.fold;
        let of_folds = if folds > 1 { format!(" (fold {fold} of {folds})") } else { String::new() };
        let blocks = if trying.blocks { ", blocks" } else { "" };
        self.relabel(&format!("{}{blocks}{of_folds}", trying.family));
        let leader = trying.leader.map_or(String::new(), |leader| {
            format!("  best so far {:.3} ({})", leader.valid_ll, leader.family)
        });
        self.standing = format!("{leader}  {:.0} % of the work", 100.0 * trying.spent);
        self.bar.set_message(format!("{}{}", self.label, self.standing));
    }

    fn batch(&mut self, trial: &Trial, progress: &everytree::Progress<'_>) -> ControlFlow<()> {
        if self.trial != Some(*trial) {
            // Another fit, another time to come.
            if self.trial.replace(*trial).is_some() {
                self.first = None;
                self.begin = Instant::now();
            }
        }
        if !self.bar.is_hidden() {
            let done = (progress.epoch - 1).saturating_mul(progress.of_rows).saturating_add(progress.rows);
            let all = progress.epochs.saturating_mul(progress.of_rows);
            let first = self.first.get_or_insert(progress.epoch - 1).saturating_mul(progress.of_rows);
            let seconds = self.begin.elapsed().as_secs_f64();
            let rate = (done - first) as f64 / seconds.max(1e-9);
            let valid = progress.history.last().map_or(f64::NAN, |epoch| epoch.valid);
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
            if !self.standing.is_empty() {
                let size = size_of(trial).map_or(String::new(), |size| size + ": ");
                self.bar.set_message(format!("{}{size}valid {valid:.3}{}", self.label, self.standing));
                return self.go_on();
            }
            self.bar.set_message(format!(
                "{}epoch {}/{}  train {:.3}  valid {valid:.3}  {} rows/s  {} left",
                match trial.pilot {
                    true => format!("{}pilot fit {}: ", self.label, trial.grouping + 1),
                    false =>
                        format!("{}{}", self.label, size_of(trial).map_or(String::new(), |size| size + ": ")),
                },
                progress.epoch,
                progress.epochs,
                progress.train,
                count(rate as usize),
                duration((all - done) as f64 / rate.max(1e-9)),
            ));
        }
        self.go_on()
    }

    fn epoch(&mut self, _: &Trial, _: &everytree::Epoch) -> ControlFlow<()> {
        self.go_on()
    }

    fn stop(&self) -> bool {
        self.is_interrupted()
    }

    fn refit(&mut self, epochs: usize) {
        // Of several members one after the other, once.
        if !std::mem::replace(&mut self.refitting, true) {
            let epochs = match self.standing.is_empty() {
                true => format!(", {}", plural(epochs, "epoch")),
                false => String::new(),
            };
            self.note(&format!("learning again from all rows{epochs}"));
        }
        self.label = String::new();
        self.standing = String::new();
        self.restart();
    }
}

/// A bar on the terminal; hidden where there is none, or where nobody wants it.
pub fn bar(quiet: bool, template: &str) -> Result<ProgressBar> {
    let bar = if quiet || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr())
    };
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// How large what is tried is, in words; nothing where it is one of the simplest.
pub fn size_of(trial: &Trial) -> Option<String> {
    let components = (trial.components > 1).then(|| plural(trial.components, "component"));
    let hidden = (trial.hidden > 1).then(|| plural(trial.hidden, "hidden state"));
    components.into_iter().chain(hidden).reduce(|both, next| format!("{both}, {next}"))
}

/// Seconds in words.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// `90s`, `10m`, `2h`, or seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(place) => text.split_at(place),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a number with s, m or h, such as 90s or 10m".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => {
            Ok(Duration::from_secs_f64((number * factor).min(1e9)))
        }
        _ => Err("a number with s, m or h, such as 90s or 10m".to_owned()),
    }
}
