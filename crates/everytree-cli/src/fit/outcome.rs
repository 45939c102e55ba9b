//! What a fit came to: figures, a file, and words.

use super::{Fit, Precision};
use crate::data::{count, plural};
use crate::progress::{duration, size_of};
use crate::tables::Tables;
use crate::together::grouping_in_words;
use anyhow::Result;
use everytree::file::{ModelFile, Provenance, Results, TableFacts};
use everytree::forest::Cpu;
use everytree::learn::{
    Found, Search, Settings, Tried, completed, edge_posteriors, evaluate, evaluate_observed,
};
use everytree::model::Model;
use everytree::model::Structure;
use everytree::table::{Holes, Table};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// What a fit came to: the model, how it was learned, and from what.
pub struct Fitted {
    pub model: Model,
    pub settings: Settings,
    pub facts: [TableFacts; 2],
    /// All rows, where it has learned from those held out too.
    pub train: Option<(Table, Holes)>,
}

/// The epoch that validated best.
pub fn best_epoch(found: &Found) -> usize {
    let best = found.history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
    best.map_or(0, |epoch| epoch.epoch)
}

impl Fit {
    /// Evaluates the model in f64, and says where f32 would have said something else.
    pub(super) fn report(
        &self,
        tables: &Tables,
        found: &Found,
        fitted: &Fitted,
        precision: Precision,
    ) -> Result<Results> {
        let judge = Cpu::<f64>::new().keeping(0);
        let (blocks, mixture) = (fitted.model.blocks(), fitted.model.mixture());
        let mean = |table: &Table, holes: &Holes| -> Result<f64> {
            Ok(match holes.is_empty() {
                true => evaluate(mixture, &blocks.unique(table), &judge)?.mean,
                false => evaluate_observed(blocks, mixture, table, holes, &judge)?,
            })
        };
        let (train, train_holes) =
            fitted.train.as_ref().map_or((&tables.train, &tables.holes[0]), |(t, h)| (t, h));
        let train_ll = mean(train, train_holes)?;
        // Of a model that has learned from these rows too, what they said before counts.
        let refitted = fitted.train.is_some();
        let best = found.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
        let complete = tables.holes[1].is_empty();
        let valid_ll = if refitted || !complete { best } else { mean(&tables.valid, &tables.holes[1])? };
        let test_ll = tables.test.as_ref().map(|test| mean(test, Holes::none())).transpose()?;
        if precision == Precision::F32 && !refitted && complete {
            let single = Cpu::<f32>::new().keeping(0);
            let single = evaluate(mixture, &blocks.unique(&tables.valid), &single)?.mean;
            if (single - valid_ll).abs() > 1e-3 {
                note!(
                    "everytree: warning: in f32 the validation log-likelihood is {single:.6}, in f64 {valid_ll:.6}; \
                     learn with --precision f64"
                );
            }
        }
        let (best_epoch, history) = (best_epoch(found), found.history.clone());
        Ok(Results { best_epoch, train_ll, valid_ll, test_ll, history })
    }

    pub(super) fn file(
        &self,
        tables: &Tables,
        tried: &[Tried],
        fitted: &Fitted,
        results: &Results,
        precision: Precision,
    ) -> Result<ModelFile> {
        let (train, holes) = fitted.train.as_ref().map_or((&tables.train, &tables.holes[0]), |(t, h)| (t, h));
        let (blocks, mixture) = (fitted.model.blocks(), fitted.model.mixture());
        let train = match holes.is_empty() {
            true => blocks.unique(train),
            false => completed(blocks, mixture, train, holes, fitted.settings.seed)?,
        };
        // One tree has the edges it has.
        let posteriors = match fitted.model.structure() {
            Some(_) => None,
            None => Some(edge_posteriors(mixture, &train, &Cpu::<f64>::new().keeping(1 << 28))?),
        };
        Ok(ModelFile {
            model: fitted.model.clone(),
            schema: tables.schema.clone(),
            provenance: Provenance {
                settings: Some(fitted.settings.clone()),
                // Trees are learned in f64, whatever was asked for.
                precision: Some(match fitted.model.structure() {
                    Some(_) => Precision::F64.name().to_owned(),
                    None => precision.name().to_owned(),
                }),
                train: Some(fitted.facts[0].clone()),
                valid: Some(fitted.facts[1].clone()),
                results: Some(results.clone()),
                tried: tried.to_vec(),
            },
            edge_posteriors: posteriors,
        })
    }

    #[expect(clippy::too_many_arguments, reason = "everything that is told at the end")]
    pub(super) fn print(
        &self,
        tables: &Tables,
        search: &Search,
        found: &Found,
        fitted: &Fitted,
        report: &Results,
        begin: Instant,
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
                "device": "cpu",
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
        writeln!(stdout, "{made} in {}; saved {}", duration(seconds), out.display())?;
        Ok(())
    }
}
