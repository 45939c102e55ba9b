//! Learning from a table of Python.

use crate::errors::{exception, spelled};
use crate::frame::{frame, numbers};
use crate::model::Model;
use crate::work::watched;
use anyhow::{Context, Result, bail};
use everytree::{
    DeviceChoice, Fitted, HowToLearn, Inputs, Machine, Recipe, Tables, Together, column, matching, plural,
    refit, run, say,
};
use everytree_core::data::Schema;
use everytree_core::data::scan::{MissingCells, ScanSettings};
use everytree_core::learn::{Ended, LearnError, Progress, Search, SearchObserver, Trial};
use everytree_read::{Frame, ReadSettings};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// What is said about the tables, not about the model.
struct Options {
    holdout: f64,
    scan: ScanSettings,
    marginalise: bool,
    /// Bins of every column of floating-point type.
    float_bins: Option<usize>,
    blocks: Value,
    block_states: Vec<usize>,
    refit: bool,
    timeout: Option<f64>,
    threads: Option<usize>,
    device: DeviceChoice,
}

impl Options {
    fn of(options: &Value) -> Result<Self> {
        let max_states = options["max_states"].as_i64().unwrap_or(0);
        if !(2..=1 << 14).contains(&max_states) {
            bail!("--max-states {max_states}: between 2 and {}", 1 << 14);
        }
        let mut bins = BTreeMap::new();
        for (name, count) in options["bins"].as_object().into_iter().flatten() {
            let count =
                count.as_u64().with_context(|| format!("--bins {name}: {count} is not a number of bins"))?;
            bins.insert(name.clone(), count as usize);
        }
        let missing = options["missing"].as_str().unwrap_or_default();
        let missing_cells = match missing {
            "category" => MissingCells::State,
            "marginalise" => MissingCells::Unobserved,
            "error" => MissingCells::Refused,
            other => bail!("--missing {other}: category, marginalise or error"),
        };
        let texts = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        let timeout = options["timeout"].as_f64();
        if timeout.is_some_and(|seconds| seconds.is_nan() || seconds < 0.0) {
            bail!("--timeout: not negative");
        }
        Ok(Self {
            holdout: options["holdout"].as_f64().unwrap_or(f64::NAN),
            scan: ScanSettings {
                max_states: max_states as usize,
                bins,
                bin_numbers: options["bin_numbers"].as_bool().unwrap_or(true),
                missing_cells,
                missing: texts(&options["na"]),
            },
            marginalise: missing_cells == MissingCells::Unobserved,
            float_bins: options["float_bins"].as_u64().map(|bins| bins as usize),
            blocks: options["blocks"].clone(),
            block_states: serde_json::from_value(options["block_states"].clone()).unwrap_or_default(),
            refit: options["refit"].as_bool().unwrap_or(false),
            timeout,
            threads: options["threads"].as_u64().map(|threads| threads as usize),
            device: options["device"].as_str().unwrap_or("auto").parse().map_err(anyhow::Error::msg)?,
        })
    }

    fn together(&self, schema: &Schema) -> Result<Together> {
        let mut together = Together { block_states: self.block_states.clone(), ..Together::default() };
        match &self.blocks {
            Value::Null => {}
            Value::String(word) if word == "none" => {}
            Value::String(word) if word == "auto" => together.auto = true,
            Value::String(pattern) => together.groups.push(matching(schema, pattern)?),
            Value::Array(groups) => {
                for group in groups {
                    together.groups.push(match group {
                        Value::String(pattern) => matching(schema, pattern)?,
                        group => {
                            let names: Vec<String> = serde_json::from_value(group.clone())
                                .context("--blocks: lists of names, or patterns")?;
                            let columns: Result<Vec<usize>> =
                                names.iter().map(|name| Ok(column(schema, name)?)).collect();
                            columns?
                        }
                    });
                }
            }
            _ => bail!("--blocks: none, auto, a pattern, or a list of lists of names"),
        }
        Ok(together)
    }
}

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
    deadline: Option<Instant>,
    last: Instant,
    again: bool,
    timed_out: bool,
}

impl Reporter<'_> {
    fn go_on(&mut self) -> ControlFlow<()> {
        self.timed_out |= self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match self.timed_out || self.stop.load(Ordering::Relaxed) {
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

impl SearchObserver for Reporter<'_> {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            self.tell(json!({
                "event": "batch", "again": self.again, "look": trial.look, "components": trial.components,
                "hidden": trial.hidden, "epoch": progress.epoch, "epochs": progress.epochs,
                "rows": progress.rows, "of_rows": progress.of_rows, "train": progress.train,
                "valid": progress.history.last().map(|epoch| epoch.valid),
            }));
        }
        self.go_on()
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        if let Some(running) = &search.running
            && let Some(epoch) = running.state.history.last()
        {
            let trial = running.trial;
            let go_on = self.ask(json!({
                "event": "epoch", "again": self.again, "look": trial.look, "components": trial.components,
                "hidden": trial.hidden, "epoch": epoch.epoch, "train": epoch.train, "valid": epoch.valid,
            }));
            if !go_on {
                return ControlFlow::Break(());
            }
        }
        self.go_on()
    }
}

/// Learns a model. `watch` hears events as JSON, and returns whether to go on. Returns the model, notes, and how it ended:
/// `done`, `patience`, `timeout`, `stopped`, `failed` or `interrupted`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "two tables, what they weigh, and how to learn from them")]
pub fn fit(
    py: Python<'_>,
    train: &Bound<'_, PyAny>,
    valid: Option<&Bound<'_, PyAny>>,
    weights: Option<&Bound<'_, PyAny>>,
    named: bool,
    recipe: &str,
    options: &str,
    watch: Option<Py<PyAny>>,
) -> PyResult<(Model, Vec<String>, &'static str)> {
    let train = Frame { named, ..frame(train, "X")? };
    let valid = valid.map(|valid| frame(valid, "valid")).transpose()?;
    let weights = weights.map(numbers).transpose()?.unwrap_or_default();
    let bad = |error: serde_json::Error| {
        // Where in the JSON is of no interest to whoever gave keywords.
        let text = error.to_string();
        exception(anyhow::anyhow!(text.split(" at line ").next().unwrap_or_default().to_owned()))
    };
    let recipe: Recipe = serde_json::from_str(recipe).map_err(bad)?;
    let options: Value = serde_json::from_str(options).map_err(bad)?;
    let options = Options::of(&options).map_err(exception)?;
    let (done, interrupted) = watched(
        py,
        options.threads,
        |stop, news| {
            let reporter = Reporter {
                news,
                heard: watch.is_some(),
                stop,
                deadline: None,
                last: Instant::now(),
                again: false,
                timed_out: false,
            };
            learn(&train, valid.as_ref(), &weights, &recipe, &options, reporter)
        },
        |py, (event, answer): News| {
            let Some(watch) = &watch else { return Ok(()) };
            let go_on: bool = watch.call1(py, (event.to_string(),))?.extract(py)?;
            // Whoever waits for an answer that does not come takes it for a no.
            answer.map(|answer| answer.send(go_on));
            Ok(())
        },
    )?;
    let (model, notes, ended) = done.map_err(|error| match interrupted {
        true => exception(everytree::Interrupted.into()),
        false => exception(error),
    })?;
    Ok((model, notes, if interrupted { "interrupted" } else { ended }))
}

fn learn(
    train: &Frame,
    valid: Option<&Frame>,
    weights: &[f64],
    recipe: &Recipe,
    options: &Options,
    mut reporter: Reporter<'_>,
) -> Result<(Model, Vec<String>, &'static str)> {
    let mut scan = options.scan.clone();
    if let Some(bins) = options.float_bins {
        let floats = train.schema.fields().iter().filter(|field| field.data_type().is_floating());
        scan.bins.extend(floats.map(|field| (field.name().clone(), bins)));
    }
    let inputs = Inputs {
        train: train.into(),
        valid: valid.map(Into::into),
        test: None,
        weights,
        holdout: options.holdout,
        seed: recipe.seed,
        read: &ReadSettings::default(),
        scan: &scan,
        schema: None,
        marginalise: options.marginalise,
    };
    let notes = std::cell::RefCell::new(Vec::new());
    let note = |text: String| notes.borrow_mut().push(spelled(&text));
    let tables = inputs.read(&mut |_, _| ())?;
    tables.notices.iter().for_each(|notice| note(say(notice)));
    let settings = recipe.settings(&tables)?;
    let together = options.together(&tables.schema)?;
    let groupings =
        together.groupings(&tables.schema, &tables.train, &tables.holes[0], &|text: String| {
            note(text.trim_start_matches("note: ").to_owned());
        })?;
    let mut search = recipe.search(groupings, &settings)?;
    reporter.deadline =
        options.timeout.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.min(1e9)));
    let machine = Machine::find(options.device, tables.states.len(), &note)?;
    let how = HowToLearn { settings: &settings, precision: recipe.precision, machine: &machine, note: &note };
    let ended = run(&mut search, tables.rows(), how, &mut reporter);
    let Some(found) = search.found()? else {
        return Err(explained(ended, &tables));
    };
    let how = match &ended {
        Ok(Ended::Stopped) if reporter.timed_out => "timeout",
        Ok(Ended::Stopped) => "stopped",
        Ok(Ended::Patience) => "patience",
        Ok(_) => "done",
        Err(error) => {
            note(error.to_string());
            "failed"
        }
    };
    let facts = tables.facts();
    let mut fitted = Fitted { model: found.model.clone(), settings, facts, all: None };
    if options.refit && matches!(ended, Ok(Ended::Done | Ended::Patience)) {
        reporter.again = true;
        let plan = &search.plan;
        let how = HowToLearn {
            settings: &fitted.settings,
            precision: recipe.precision,
            machine: &machine,
            note: &note,
        };
        match refit(&tables, how, plan, &found, &mut reporter) {
            Ok(Some(again)) => fitted = again,
            Ok(None) => note("stopped: the model without the rows held out is kept".to_owned()),
            // What was learned before is not lost for that.
            Err(error) => note(format!(
                "learning again from all rows: {error:#}; the model without the rows held out is kept"
            )),
        }
    }
    let results = fitted.results(&tables, &found, recipe.precision, &machine, &note)?;
    let file = fitted.file(&tables, &search.tried, &results, recipe.precision, &machine, &note)?;
    Ok((Model::new(file), notes.into_inner(), how))
}

/// Why there is no model at all.
fn explained(ended: Result<Ended, LearnError>, tables: &Tables) -> anyhow::Error {
    match ended {
        Err(LearnError::Blocks(error)) => {
            let name = &tables.schema.variables[error.column()].name;
            anyhow::Error::new(error).context(format!("the block of column {name:?}"))
        }
        Err(error) => error.into(),
        Ok(_) => anyhow::anyhow!("stopped after {}: there is no model yet", plural(0, "epoch")),
    }
}
