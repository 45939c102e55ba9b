//! What a fit came to, in words.

use super::Fit;
use crate::progress::{duration, size_of};
use anyhow::Result;
use everytree::{Fitted, Machine, Tables, count, grouping_in_words, plural};
use everytree_core::file::Results;
use everytree_core::learn::{Found, Search, Tried};
use everytree_core::model::Structure;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

impl Fit {
    #[expect(clippy::too_many_arguments, reason = "everything that is told at the end")]
    pub(super) fn print(
        &self,
        tables: &Tables,
        search: &Search,
        found: &Found,
        fitted: &Fitted,
        report: &Results,
        (begin, machine): (Instant, &Machine),
        out: &Path,
    ) -> Result<()> {
        let seconds = begin.elapsed().as_secs_f64();
        let tried = &search.tried;
        // Of rows with holes likelihoods are estimates.
        let estimated =
            tables.holes.each_ref().map(|holes| !holes.is_empty() && fitted.model.structure().is_none());
        let parameters = fitted.model.degrees_of_freedom();
        let components = fitted.model.mixture().components().len();
        let blocks = fitted.model.blocks();
        let epochs = found.history.len() - 1;
        // Single trees are learned by the processor, whatever else there is.
        let device = if fitted.model.structure().is_some() { "cpu".to_owned() } else { machine.to_string() };
        let mut stdout = std::io::stdout().lock();
        if self.json {
            let mut object = json!({
                "family": fitted.model.family(),
                "components": components,
                "rows": fitted.facts[0].rows,
                "unique_rows": fitted.facts[0].unique_rows,
                "valid_rows": fitted.facts[1].rows,
                "epochs": epochs,
                "best_epoch": report.best_epoch,
                "train_ll": report.train_ll,
                "valid_ll": report.valid_ll,
                "seconds": seconds,
                "parameters": parameters,
                "model": out.display().to_string(),
                "seed": fitted.settings.seed,
                "device": device,
            });
            if let Some(test_ll) = report.test_ll {
                object["test_ll"] = json!(test_ll);
            }
            if let Some(Structure::Hidden(count)) = fitted.model.structure() {
                object["hidden"] = json!(count);
            }
            if !blocks.is_none() {
                object["blocks"] = json!(blocks.blocks().len());
            }
            if tried.len() > 1 {
                object["tried"] = json!(tried);
                object["groupings"] = json!(search.plan.groupings);
            }
            for (key, estimated) in ["train_ll_estimated", "valid_ll_estimated"].into_iter().zip(estimated) {
                if estimated {
                    object[key] = json!(true);
                }
            }
            writeln!(stdout, "{object}")?;
            return Ok(());
        }
        if tried.len() > 1 {
            writeln!(stdout, "tried, by validation:")?;
            for Tried { trial, valid, best_epoch, .. } in tried {
                let what = match trial.look {
                    true => {
                        let groups = &search.plan.groupings[trial.grouping];
                        format!("{}, a look", grouping_in_words(&tables.schema, groups))
                    }
                    false => size_of(trial).unwrap_or_else(|| plural(1, "component")),
                };
                writeln!(stdout, "  {valid:>12.4}   {what}, epoch {best_epoch}")?;
            }
        }
        writeln!(stdout, "log-likelihood per row, nats (best epoch {} of {epochs}):", report.best_epoch)?;
        let (rows, distinct) = (plural(fitted.facts[0].rows, "row"), count(fitted.facts[0].unique_rows));
        let [train, valid] = estimated.map(|estimated| if estimated { ", estimated" } else { "" });
        writeln!(stdout, "  train {:>12.4}   {rows}, {distinct} distinct{train}", report.train_ll)?;
        let held = if tables.held_out { ", held out" } else { "" };
        writeln!(
            stdout,
            "  valid {:>12.4}   {}{held}{valid}",
            report.valid_ll,
            plural(tables.valid.rows(), "row")
        )?;
        if let (Some(test_ll), Some(test)) = (report.test_ll, &tables.test) {
            writeln!(stdout, "  test  {test_ll:>12.4}   {}", plural(test.rows(), "row"))?;
        }
        let mut made = plural(parameters, "parameter");
        if components > 1 {
            made = format!("{}, {made}", plural(components, "component"));
        }
        if let Some(Structure::Hidden(count)) = fitted.model.structure() {
            made = format!("{}, {made}", plural(count, "hidden state"));
        }
        if !blocks.is_none() {
            made = format!("{} of columns, {made}", plural(blocks.blocks().len(), "block"));
        }
        writeln!(stdout, "{made} in {} on {device}; saved {}", duration(seconds), out.display())?;
        Ok(())
    }
}
