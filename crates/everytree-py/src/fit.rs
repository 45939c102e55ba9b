//! Learning from a table of Python.

use crate::errors::{exception, guarded};
use crate::frame::{frame, numbers};
use crate::model::Model;
use crate::options::{FitCall, parsed};
use crate::work::{INTERRUPTED, watched};
use everytree::{Epoch, Fit, Fitted, Observer, Progress, Spelling, Trial, say, spelled};
use everytree_read::{Frame, Source};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Between two of these, news of batches are kept back.
const EVERY: Duration = Duration::from_millis(100);

/// An event, and whom to tell whether to go on.
type News = (Value, Option<SyncSender<bool>>);

/// Passes the news on.
struct Reporter<'a> {
    news: Sender<News>,
    /// Does anybody listen?
    heard: bool,
    stop: &'a AtomicBool,
    last: Instant,
    refit: bool,
    notes: Vec<String>,
    doubts: Vec<String>,
}

impl Reporter<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Tells without waiting. If nobody listens any more, the work is about to be stopped.
    fn tell(&self, event: Value) {
        let _ = self.news.send((event, None));
    }

    /// Waits for the answer, so that an end that is asked for comes at that very epoch, however slow the listener is.
    fn ask(&self, event: Value) -> bool {
        let (sender, answer) = sync_channel(1);
        !self.heard || (self.news.send((event, Some(sender))).is_ok() && answer.recv().unwrap_or(false))
    }
}

impl Observer for Reporter<'_> {
    fn note(&mut self, note: &str) {
        self.notes.push(spelled(note, Spelling::Keywords));
    }

    fn doubt(&mut self, doubt: &str) {
        self.doubts.push(spelled(doubt, Spelling::Keywords));
    }

    fn warning(&mut self, warning: &str) {
        self.note(warning);
    }

    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            self.tell(json!({
                "event": "batch", "refit": self.refit, "pilot": trial.pilot, "components": trial.components,
                "hidden": trial.hidden, "epoch": progress.epoch, "epochs": progress.epochs,
                "rows": progress.rows, "of_rows": progress.of_rows, "train": progress.train,
                "valid": progress.history.last().map(|epoch| epoch.valid),
            }));
        }
        self.go_on()
    }

    fn epoch(&mut self, trial: &Trial, epoch: &Epoch) -> ControlFlow<()> {
        let go_on = self.ask(json!({
            "event": "epoch", "refit": self.refit, "pilot": trial.pilot, "components": trial.components,
            "hidden": trial.hidden, "epoch": epoch.epoch, "train": epoch.train, "valid": epoch.valid,
        }));
        if go_on { self.go_on() } else { ControlFlow::Break(()) }
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn refit(&mut self, _: usize) {
        self.refit = true;
    }
}

/// What a fit comes back with: the model, notes, what should make one careful, and how it ended.
type Learned = (Model, Vec<String>, Vec<String>, &'static str);

/// Learns a model. `on_event` hears events as JSON, and returns whether to go on. How it ended:
/// `done`, `patience`, `timeout`, `stopped`, `failed` or `interrupted`.
#[pyfunction]
pub fn fit(
    py: Python<'_>,
    train: &Bound<'_, PyAny>,
    valid: Option<&Bound<'_, PyAny>>,
    weights: Option<&Bound<'_, PyAny>>,
    named: bool,
    options: &str,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Learned> {
    guarded(|| {
        let train = Frame { named, ..frame(train, "X")? };
        let valid = valid.map(|valid| frame(valid, "valid")).transpose()?;
        let weights = weights.map(numbers).transpose()?.unwrap_or_default();
        let call: FitCall = parsed(options)?;
        let (done, interrupted) = watched(
            py,
            call.threads,
            |stop, news| {
                let heard = on_event.is_some();
                let (last, notes, doubts) = (Instant::now(), Vec::new(), Vec::new());
                let reporter = Reporter { news, heard, stop, last, refit: false, notes, doubts };
                learn(&train, valid.as_ref(), weights, &call, reporter)
            },
            |py, (event, answer): News| {
                let Some(on_event) = &on_event else { return Ok(()) };
                let go_on: bool = on_event.call1(py, (event.to_string(),))?.extract(py)?;
                // Whoever waits for an answer that does not come takes it for a no.
                answer.map(|answer| answer.send(go_on));
                Ok(())
            },
        )?;
        let (model, notes, doubts, ended) = match done {
            Ok(done) => done,
            Err(_) if interrupted => return Err(INTERRUPTED()),
            Err(error) => return Err(exception(error)),
        };
        Ok((model, notes, doubts, if interrupted { "interrupted" } else { ended }))
    })
}

fn learn(
    train: &Frame,
    valid: Option<&Frame>,
    weights: Vec<f64>,
    call: &FitCall,
    mut reporter: Reporter<'_>,
) -> everytree::Result<Learned> {
    let read = &call.read;
    let sources: Vec<Source<'_>> = std::iter::once(train).chain(valid).map(Source::from).collect();
    let opened = read.open_all(&sources, sources.len())?;
    opened.notices.iter().for_each(|notice| reporter.note(&say(notice)));
    let mut datasets = opened.datasets.into_iter();
    let (train, valid) = (datasets.next(), datasets.next());
    let mut fit = Fit::with(call.fit.clone());
    if let Some(valid) = valid {
        fit = fit.valid(valid);
    }
    let train = match train {
        Some(train) => train.with_weights(weights)?,
        None => unreachable!("the first table is always read"),
    };
    let Fitted { model, report, failure, .. } = fit.run_with(&train, &mut reporter)?;
    reporter.notes.extend(report.kernel_words().map(|words| spelled(&words, Spelling::Keywords)));
    if let Some(error) = &failure {
        reporter.notes.push(error.spelled(Spelling::Keywords));
    }
    Ok((Model::new(model), reporter.notes, reporter.doubts, report.stopped.as_str()))
}
