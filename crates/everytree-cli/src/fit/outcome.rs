//! What a fit came to, in words.

use super::Fit;
use crate::members;
use crate::progress::{duration, size_of};
use anyhow::Result;
use everytree::{
    CandidateReport, FitReport, Fitted, Model, Schema, Spelling, TrialResult, count, grouping_in_words,
    plural, spelled,
};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

impl Fit {
    pub(super) fn print(&self, schema: &Schema, fitted: &Fitted, out: &Path) -> Result<()> {
        let mut stdout = crate::shown::out();
        match self.json {
            true => writeln!(stdout, "{}", object(fitted, out))?,
            false => write!(stdout, "{}", words(schema, fitted, out))?,
        }
        Ok(())
    }
}

/// For machines.
fn object(fitted: &Fitted, out: &Path) -> Value {
    let Fitted { model, report, .. } = fitted;
    let mut object = json!({
        "family": model.family(),
        "components": model.components(),
        "rows": report.train.rows,
        "unique_rows": report.train.unique_rows,
        "valid_rows": report.valid.rows,
        "epochs": report.epochs,
        "best_epoch": report.best_epoch,
        "train_ll": report.train_ll,
        "valid_ll": report.valid_ll,
        "seconds": report.seconds,
        "parameters": model.parameters(),
        "model": out.display().to_string(),
        "seed": report.settings.seed,
        "device": report.device,
    });
    if let Some(test_ll) = report.test_ll {
        object["test_ll"] = json!(test_ll);
    }
    if let Some(error) = report.test_standard_error {
        object["test_standard_error"] = json!(error);
    }
    members::describe(model, &mut object);
    if report.trials.len() > 1 {
        object["tried"] = json!(report.trials);
        object["groupings"] = json!(report.groupings);
    }
    object["refit"] = json!(report.refit);
    object["stopped"] = json!(report.stopped.as_str());
    if !report.candidates.is_empty() {
        let candidate = |tried: &CandidateReport| {
            json!({
                "family": tried.family, "components": tried.components, "hidden": tried.hidden,
                "blocks": tried.blocks, "grouping": tried.grouping, "prior": tried.prior, "valid_ll": tried.valid_ll,
                "given_up": tried.given_up, "weight": tried.weight, "epochs": tried.epochs, "work": tried.work,
            })
        };
        object["candidates"] = json!(report.candidates.iter().map(candidate).collect::<Vec<_>>());
        object["groupings"] = json!(report.groupings);
        object["folds"] = json!(report.folds);
        if let Some((gain, error)) = report.kernel_gain {
            object["kernel_gain"] = json!(gain);
            object["kernel_gain_standard_error"] = json!(error);
        }
        if let Some((gain, error)) = report.gain {
            object["gain"] = json!(gain);
            object["gain_standard_error"] = json!(error);
        }
    }
    if let Some(evaluated) = report.evaluated {
        object["partial"] = json!(evaluated);
    }
    for (key, estimated) in ["train_ll_estimated", "valid_ll_estimated"].into_iter().zip(report.estimated) {
        if estimated {
            object[key] = json!(true);
        }
    }
    object
}

/// For people.
fn words(schema: &Schema, fitted: &Fitted, out: &Path) -> String {
    let Fitted { model, report, .. } = fitted;
    let mut lines = trials(schema, report);
    lines.extend(chosen(model, report));
    lines.push(match report.candidates.is_empty() {
        true => {
            format!("log-likelihood per row, nats (best epoch {} of {}):", report.best_epoch, report.epochs)
        }
        false => "log-likelihood per row, nats:".to_owned(),
    });
    let (rows, distinct) = (plural(report.train.rows, "row"), count(report.train.unique_rows));
    let [train, valid] = report.estimated.map(|estimated| if estimated { ", estimated" } else { "" });
    let shares = report.evaluated;
    let [train_share, valid_share, test_share] = [
        shares.map(|shares| shares.train),
        shares.map(|shares| shares.valid),
        shares.and_then(|shares| shares.test),
    ]
    .map(partial);
    lines
        .push(format!("  train {:>12.4}   {rows}, {distinct} distinct{train}{train_share}", report.train_ll));
    let held = match (report.held_out, report.folds) {
        (false, _) => String::new(),
        (true, 1) => ", held out".to_owned(),
        (true, folds) => format!(", held out in {folds} folds"),
    };
    let rows = plural(report.valid.rows, "row");
    lines.push(format!("  valid {:>12.4}   {rows}{held}{valid}{valid_share}", report.valid_ll));
    if let (Some(test_ll), Some(rows)) = (report.test_ll, report.test_rows) {
        let error = match report.test_standard_error {
            Some(error) if error >= 0.00005 => {
                format!(" ± {error:.4} (random trees: some cells are missing)")
            }
            _ => String::new(),
        };
        lines.push(format!("  test  {test_ll:>12.4}   {}{error}{test_share}", plural(rows, "row")));
    }
    let mut made = plural(model.parameters(), "parameter");
    if let [member] = &model.members()[..] {
        if member.components > 1 {
            made = format!("{}, {made}", plural(member.components, "component"));
        }
        if let Some(count) = member.hidden {
            made = format!("{}, {made}", plural(count, "hidden state"));
        }
        if let Some(count) = member.blocks {
            made = format!("{} of columns, {made}", plural(count, "block"));
        }
    }
    let (seconds, device) = (duration(report.seconds), &report.device);
    lines.extend(members::stored(model));
    lines.push(format!("{made} in {seconds} on {device}; saved {}\n", out.display()));
    lines.join("\n")
}

/// What was chosen among families, and from what.
fn chosen(model: &Model, report: &FitReport) -> Vec<String> {
    if report.candidates.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![format!("{} tried; the best, by rows held out:", plural(report.candidates.len(), "candidate"))];
    let mut best: Vec<&CandidateReport> = report.candidates.iter().filter(|tried| !tried.given_up).collect();
    best.sort_by(|a, b| b.valid_ll.total_cmp(&a.valid_ll));
    lines.extend(
        best.iter().take(SHOWN).map(|tried| format!("  {:>12.4}   {}", tried.valid_ll, candidate(tried))),
    );
    match (report.gain, model.members().len()) {
        (Some((gain, error)), count) if count > 1 => {
            lines.push(format!(
                "an average of {} gains {gain:.4} ± {error:.4} over the best alone; by weight:",
                plural(count, "member")
            ));
            lines.extend(members::lines(model));
        }
        _ => lines.push(format!(
            "chosen: {}",
            best.first().map_or_else(|| model.title().to_owned(), |tried| candidate(tried))
        )),
    }
    lines.extend(report.kernel_words().map(|words| spelled(&words, Spelling::Flags)));
    lines
}

/// Candidates that are shown.
const SHOWN: usize = 5;

/// A candidate in words.
fn candidate(tried: &CandidateReport) -> String {
    let mut words = tried.title.to_owned();
    if tried.components > 1 {
        words += &format!(", {}", plural(tried.components, "component"));
    }
    if let Some(count) = tried.hidden {
        words += &format!(", {}", plural(count, "hidden state"));
    }
    if let Some(count) = tried.blocks {
        words += &format!(", {}", plural(count, "block"));
    }
    if tried.prior != 1.0 {
        words += &format!(", prior of {} rows", tried.prior);
    }
    words
}

/// Of how many rows a mean is, where there was no time for all.
fn partial(share: Option<f64>) -> String {
    match share.filter(|share| *share < 1.0) {
        // Never 100, however many.
        Some(share) => format!("; partial: of {:.1} % of them", (100.0 * share).min(99.9)),
        None => String::new(),
    }
}

/// Every candidate, where there were several.
fn trials(schema: &Schema, report: &FitReport) -> Vec<String> {
    if report.trials.len() < 2 {
        return Vec::new();
    }
    let line = |TrialResult { trial, valid, best_epoch, .. }: &TrialResult| {
        let what = match trial.pilot {
            true => {
                let groups = &report.groupings[trial.grouping];
                format!("{}, pilot fit", grouping_in_words(schema, groups))
            }
            false => size_of(trial).unwrap_or_else(|| plural(1, "component")),
        };
        format!("  {valid:>12.4}   {what}, epoch {best_epoch}")
    };
    std::iter::once("trials, by validation:".to_owned()).chain(report.trials.iter().map(line)).collect()
}
