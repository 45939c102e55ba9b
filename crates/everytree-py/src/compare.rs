//! Families side by side on a table of Python.

use crate::errors::{exception, guarded};
use crate::frame::frame;
use crate::model::Model;
use crate::options::{CompareCall, parsed};
use crate::work::{INTERRUPTED, watched};
use everytree::{
    Compare, CompareObserver, ComparedFamily, Comparison, HowEnded, LeftOut, Observer, Spelling, say, spelled,
};
use everytree_read::{Frame, Source};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Passes on what every family came to.
struct Reporter<'a> {
    news: Sender<Value>,
    stop: &'a AtomicBool,
    notes: Vec<String>,
}

impl Observer for Reporter<'_> {
    /// What single fits have to say the table says.
    fn note(&mut self, _: &str) {}

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl CompareObserver for Reporter<'_> {
    fn compared(&mut self, line: &ComparedFamily, _: bool) {
        // If nobody listens any more, the work is about to be stopped.
        let _ = self.news.send(described(line));
    }
}

fn described(line: &ComparedFamily) -> Value {
    json!({
        "family": line.family,
        "components": line.model.components(),
        "parameters": line.model.parameters(),
        "train": line.train_ll,
        "valid": line.valid_ll,
        "test": line.test_ll,
        "difference": line.difference.mean,
        // Of one row there is none.
        "standard_error": Some(line.difference.standard_error).filter(|error| error.is_finite()),
        "within_error": line.within_error(),
        "seconds": line.seconds,
        "finished": line.ended == HowEnded::Done,
    })
}

/// What a comparison comes back with: everything about it as JSON, the models, and notes about the table.
type Compared = (String, Vec<Model>, Vec<String>);

/// Fits several families. `on_family` hears what each came to, as JSON.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    train: &Bound<'_, PyAny>,
    valid: Option<&Bound<'_, PyAny>>,
    test: Option<&Bound<'_, PyAny>>,
    named: bool,
    options: &str,
    on_family: Option<Py<PyAny>>,
) -> PyResult<Compared> {
    guarded(|| {
        let train = Frame { named, ..frame(train, "X")? };
        let valid = valid.map(|valid| frame(valid, "valid")).transpose()?;
        let test = test.map(|test| frame(test, "test")).transpose()?;
        let call: CompareCall = parsed(options)?;
        let (done, interrupted) = watched(
            py,
            call.threads,
            |stop, news| {
                let reporter = Reporter { news, stop, notes: Vec::new() };
                side_by_side([Some(&train), valid.as_ref(), test.as_ref()], &call, reporter)
            },
            |py, line: Value| match &on_family {
                Some(on_family) => on_family.call1(py, (line.to_string(),)).map(drop),
                None => Ok(()),
            },
        )?;
        match done {
            Ok(done) => Ok(done),
            Err(_) if interrupted => Err(INTERRUPTED()),
            Err(error) => Err(exception(error)),
        }
    })
}

fn side_by_side(
    [train, valid, test]: [Option<&Frame>; 3],
    call: &CompareCall,
    mut reporter: Reporter<'_>,
) -> everytree::Result<Compared> {
    let sources: Vec<Source<'_>> = [train, valid, test].into_iter().flatten().map(Source::from).collect();
    let scanned = 1 + usize::from(valid.is_some());
    let opened = call.read.open_all(&sources, scanned)?;
    reporter.notes.extend(opened.notices.iter().map(|notice| spelled(&say(notice), Spelling::Keywords)));
    let unknown: u64 = opened.unknown.iter().sum();
    let mut datasets = opened.datasets.into_iter();
    let train = match datasets.next() {
        Some(train) => train,
        None => unreachable!("the first table is always read"),
    };
    let mut compare = Compare::new().families(call.families.iter().cloned()).seed(call.seed);
    compare = compare.holdout(call.holdout).time(Duration::from_secs_f64(call.time.clamp(0.0, 1e9)));
    if let Some(valid) = valid.and_then(|_| datasets.next()) {
        compare = compare.valid(valid);
    }
    if let Some(test) = test.and_then(|_| datasets.next()) {
        compare = compare.test(test);
    }
    let comparison = compare.run_with(&train, &mut reporter)?;
    let about = json!({
        "winner": comparison.winner().family,
        "families": comparison.families.iter().map(described).collect::<Vec<_>>(),
        "left_out": comparison.left_out.iter().map(why).collect::<Vec<_>>(),
        "rows": comparison.train_rows,
        "valid_rows": comparison.valid_rows,
        "test_rows": comparison.test_rows,
        "interrupted": comparison.interrupted,
        "unknown": unknown,
    });
    let Comparison { families, .. } = comparison;
    let models = families.into_iter().map(|line| Model::new(line.model)).collect();
    Ok((about.to_string(), models, reporter.notes))
}

fn why(LeftOut { family, why, .. }: &LeftOut) -> [String; 2] {
    [family.clone(), spelled(why, Spelling::Keywords)]
}
