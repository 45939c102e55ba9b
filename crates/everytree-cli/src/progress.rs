//! What a person sees while learning goes on, and how it is stopped.

use anyhow::Result;
use everytree::{count, plural};
use everytree_core::data::Schema;
use everytree_core::file::{Checkpoint, FileError, TableFacts};
use everytree_core::learn::{Progress, Search, Settings, Trial, WatchSearch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Why learning was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupted,
    /// `--timeout`.
    TimeOut,
}

/// Where checkpoints go, and what is in them besides the state.
pub struct Keep {
    pub path: PathBuf,
    pub settings: Settings,
    pub precision: String,
    pub schema: Schema,
    pub train: TableFacts,
    pub valid: TableFacts,
    pub holdout: Option<f64>,
}

/// Watches learning for the command line.
pub struct Watcher {
    bar: ProgressBar,
    interrupts: Arc<AtomicUsize>,
    begin: Instant,
    deadline: Option<Instant>,
    keep: Option<Keep>,
    /// Epochs done when this run began.
    first: Option<usize>,
    /// The fit under way.
    trial: Option<Trial>,
    /// Before everything that the bar says.
    label: String,
    pub stop: Option<Stop>,
    pub failed: Option<FileError>,
}

impl Watcher {
    pub fn new(quiet: bool, timeout: Option<Duration>, keep: Option<Keep>) -> Result<Self> {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr())
        };
        bar.set_style(ProgressStyle::with_template("{bar:30} {msg}").expect("a valid template"));
        let interrupts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&interrupts);
        // The first asks for an orderly end, the second does not wait for it.
        ctrlc::set_handler(move || {
            if count.fetch_add(1, Ordering::SeqCst) > 0 {
                std::process::exit(130);
            }
        })?;
        let begin = Instant::now();
        let deadline = timeout.map(|timeout| begin + timeout);
        Ok(Self {
            bar,
            interrupts,
            begin,
            deadline,
            keep,
            first: None,
            trial: None,
            label: String::new(),
            stop: None,
            failed: None,
        })
    }

    /// Another fit, with so much time.
    pub fn again(&mut self, name: &str, timeout: Duration) {
        self.label = format!("{name}: ");
        self.keep_nothing();
        self.stop = None;
        self.deadline = Some(Instant::now() + timeout);
    }

    /// From here on nothing is put aside any more: what follows is another run.
    pub fn keep_nothing(&mut self) {
        self.keep = None;
        self.first = None;
        self.trial = None;
        self.begin = Instant::now();
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn continue_or_stop(&mut self) -> ControlFlow<()> {
        if self.interrupts.load(Ordering::SeqCst) > 0 {
            self.stop = Some(Stop::Interrupted);
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.stop = Some(Stop::TimeOut);
        }
        match self.stop {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

impl WatchSearch for Watcher {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.trial != Some(*trial) {
            // Another fit, another time to come.
            if self.trial.replace(*trial).is_some() {
                self.first = None;
                self.begin = Instant::now();
            }
        }
        if !self.bar.is_hidden() {
            let done = (progress.epoch - 1) * progress.of_rows + progress.rows;
            let all = progress.epochs * progress.of_rows;
            let first = *self.first.get_or_insert(progress.epoch - 1) * progress.of_rows;
            let seconds = self.begin.elapsed().as_secs_f64();
            let rate = (done - first) as f64 / seconds.max(1e-9);
            let valid = progress.history.last().map_or(f64::NAN, |epoch| epoch.valid);
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
            self.bar.set_message(format!(
                "{}epoch {}/{}  train {:.3}  valid {valid:.3}  {} rows/s  {} left",
                match trial.look {
                    true => format!("{}grouping {}: ", self.label, trial.grouping + 1),
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
        self.continue_or_stop()
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        if let Some(keep) = &self.keep {
            let checkpoint = Checkpoint {
                search: search.clone(),
                settings: keep.settings.clone(),
                precision: keep.precision.clone(),
                schema: keep.schema.clone(),
                train: keep.train.clone(),
                valid: keep.valid.clone(),
                holdout: keep.holdout,
            };
            if let Err(error) = checkpoint.save(&keep.path) {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        self.continue_or_stop()
    }
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
