//! From tables and settings to a model as it is saved.

use crate::device::{Gpu, Machine, failed_device};
use crate::recipe::Precision;
use crate::tables::{Tables, facts_of};
use anyhow::Result;
use everytree_core::data::{Missing, Table};
use everytree_core::file::{ModelFile, Provenance, Results, TableFacts};
use everytree_core::forest::{Cpu, ForestError};
use everytree_core::learn::{
    Ended, Family, Found, HowMany, LearnError, Plan, Progress, Rows, Running, Search, Settings, Trial, Tried,
    WatchSearch, completed, edge_posteriors, evaluate, evaluate_observed,
};
use everytree_core::model::{Model, Numbers, Structure};
use everytree_cuda::{Cuda, CudaError};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a fit came to: the model, how it was learned, and from what.
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// How it was learned.
    pub settings: Settings,
    /// Enough to know the tables again.
    pub facts: [TableFacts; 2],
    /// All rows, where it has learned from those held out too.
    pub all: Option<AllRows>,
}

/// Rows to learn from and rows held out, together.
pub struct AllRows {
    table: Table,
    holes: Missing,
    weights: Vec<f64>,
}

impl AllRows {
    fn of(tables: &Tables) -> Self {
        let mut table = tables.train.clone();
        let mut row = vec![0u16; table.variables()];
        for place in 0..tables.valid.rows() {
            (0..row.len()).for_each(|v| row[v] = tables.valid.get(place, v) as u16);
            table.push(&row);
        }
        let mut holes = tables.holes[0].clone();
        for (row, columns) in tables.holes[1].rows() {
            holes.push(tables.train.rows() + row, columns.clone());
        }
        Self { table, holes, weights: tables.weights.concat() }
    }
}

/// The epoch that validated best.
pub fn best_epoch(found: &Found) -> usize {
    let best = found.history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
    best.map_or(0, |epoch| epoch.epoch)
}

/// Memory for what a step keeps of all components together.
const KEPT: usize = 1 << 30;

/// What evaluates.
pub fn judge() -> Cpu<f64> {
    Cpu::<f64>::new().keeping(0)
}

/// With which settings, in which precision, and where.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The precision.
    pub precision: Precision,
    /// The device.
    pub machine: &'a Machine,
    /// Who hears if the device fails and the processor takes over.
    pub note: &'a dyn Fn(String),
}

/// Goes on with a search.
pub fn run(
    search: &mut Search,
    rows: Rows<'_>,
    how: How<'_>,
    watcher: &mut dyn WatchSearch,
) -> Result<Ended, LearnError> {
    // Trees are counted, on the processor.
    let trees = !matches!(search.plan.start.family, Family::Moat | Family::Directed);
    if let (Machine::Cuda(gpu), false) = (how.machine, trees)
        && !gpu.has_failed()
    {
        let ended = on_gpu(search, rows, how, gpu, watcher);
        match &ended {
            Err(error) if gpu.fall_back => match failed_device(error) {
                // What was learned until the last epoch is kept, and goes on from there.
                Some(why) => {
                    (how.note)(format!("{why}; going on on the processor"));
                    gpu.give_up();
                }
                None => return ended,
            },
            _ => return ended,
        }
    }
    let keep = match search.plan.components {
        HowMany::Just(components) => KEPT / components.max(1),
        HowMany::UpTo(_) => KEPT / 16,
    };
    let settings = how.settings;
    match how.precision {
        Precision::F32 => search.run(rows, settings, &Cpu::<f32>::new().keeping(keep), &judge(), watcher),
        Precision::F64 => search.run(rows, settings, &Cpu::<f64>::new().keeping(keep), &judge(), watcher),
    }
}

/// On a GPU: steps in a precision, validation in f64.
fn on_gpu(
    search: &mut Search,
    rows: Rows<'_>,
    how: How<'_>,
    gpu: &Gpu,
    watcher: &mut dyn WatchSearch,
) -> Result<Ended, LearnError> {
    let device = |error: CudaError| LearnError::Model(ForestError::Device(error.to_string()).into());
    let judge = gpu.double().map_err(device)?;
    match how.precision {
        Precision::F32 => search.run(rows, how.settings, gpu.single().map_err(device)?, judge, watcher),
        Precision::F64 => search.run(rows, how.settings, judge, judge, watcher),
    }
}

/// Learns from all rows for as many epochs as were best on the rows held out; nothing if that was stopped.
pub fn refit(
    tables: &Tables,
    how: How<'_>,
    plan: &Plan,
    found: &Found,
    watcher: &mut dyn WatchSearch,
) -> Result<Option<Fitted>> {
    let all = AllRows::of(tables);
    let groups = found.model.blocks().combinations().into_iter().map(|(columns, _)| columns).collect();
    let components = HowMany::Just(found.model.mixture().components().len());
    let hidden = match found.model.structure() {
        Some(Structure::Hidden(count)) => HowMany::Just(count),
        _ => plan.hidden,
    };
    let mut search = Search::new(Plan { groupings: vec![groups], components, hidden, ..plan.clone() });
    // Decay, if any, goes as it went: by the epochs that were planned.
    let wanted = best_epoch(found);
    let mut until = Until { epoch: wanted, watcher };
    let settings = Settings { patience: None, ..how.settings.clone() };
    let rows = Rows {
        train: &all.table,
        holes: [&all.holes, &tables.holes[1]],
        weights: [&all.weights, &tables.weights[1]],
        ..tables.rows()
    };
    run(&mut search, rows, How { settings: &settings, ..how }, &mut until)?;
    // As it is after the last epoch: these rows cannot validate what has learned from them.
    let Some(Running { blocks, state, .. }) = search.running else { return Ok(None) };
    if state.epochs() < wanted {
        return Ok(None);
    }
    let mut mixture = Arc::unwrap_or_clone(state.model);
    if let Some(average) = &*state.average {
        mixture.set(average)?;
    }
    let model = Model::new(blocks, mixture)?;
    let facts = [facts_of(&all.table, &all.holes, &all.weights), tables.facts()[1].clone()];
    Ok(Some(Fitted { model, settings, facts, all: Some(all) }))
}

/// Ends a run after an epoch; else as the watcher says.
struct Until<'a> {
    epoch: usize,
    watcher: &'a mut dyn WatchSearch,
}

impl WatchSearch for Until<'_> {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        self.watcher.batch(trial, progress)
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        match &search.running {
            Some(running) if running.state.epochs() >= self.epoch => ControlFlow::Break(()),
            _ => self.watcher.epoch(search),
        }
    }
}

impl Fitted {
    /// The rows that it has learned from, the cells that were not observed, and what rows weigh.
    fn learned_from<'a>(&'a self, tables: &'a Tables) -> (&'a Table, &'a Missing, &'a [f64]) {
        match &self.all {
            Some(all) => (&all.table, &all.holes, &all.weights),
            None => (&tables.train, &tables.holes[0], &tables.weights[0]),
        }
    }

    /// Evaluates the model in f64, and says where f32 would have said something else.
    pub fn results(
        &self,
        tables: &Tables,
        found: &Found,
        precision: Precision,
        machine: &Machine,
        warn: &dyn Fn(String),
    ) -> Result<Results> {
        let (blocks, mixture) = (self.model.blocks(), self.model.mixture());
        let mean = |table: &Table, holes: &Missing, weights: &[f64]| -> Result<f64> {
            if holes.is_empty() {
                let rows = blocks.unique_weighted(table, weights);
                let on_gpu = |gpu: &Cuda<f64>| Ok(evaluate(mixture, &rows, gpu)?.mean);
                return Ok(machine
                    .in_f64(&self.model, warn, on_gpu, |cpu| Ok(evaluate(mixture, &rows, cpu)?.mean))?);
            }
            Ok(machine.in_f64(
                &self.model,
                warn,
                |gpu| evaluate_observed(blocks, mixture, table, holes, gpu),
                |cpu| evaluate_observed(blocks, mixture, table, holes, cpu),
            )?)
        };
        let (train, holes, weights) = self.learned_from(tables);
        let train_ll = mean(train, holes, weights)?;
        // Of a model that has learned from these rows too, what they said before counts.
        let refitted = self.all.is_some();
        let best = found.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
        let complete = tables.holes[1].is_empty();
        let valid_ll = match refitted || !complete {
            true => best,
            false => mean(&tables.valid, &tables.holes[1], &tables.weights[1])?,
        };
        let test_ll = tables.test.as_ref().map(|test| mean(test, Missing::none(), &[])).transpose()?;
        if precision == Precision::F32 && !refitted && complete {
            let valid = blocks.unique_weighted(&tables.valid, &tables.weights[1]);
            let on_gpu = match (machine, self.model.structure()) {
                (Machine::Cuda(gpu), None) => gpu.single().ok(),
                _ => None,
            };
            let found = on_gpu.and_then(|gpu| evaluate(mixture, &valid, gpu).ok());
            let single = match found {
                Some(found) => found.mean,
                None => evaluate(mixture, &valid, &Cpu::<f32>::new().keeping(0))?.mean,
            };
            if (single - valid_ll).abs() > 1e-3 {
                warn(format!(
                    "in f32 the validation log-likelihood is {single:.6}, in f64 {valid_ll:.6}; learn with \
                     --precision f64"
                ));
            }
        }
        let (best_epoch, history) = (best_epoch(found), found.history.clone());
        Ok(Results { best_epoch, train_ll, valid_ll, test_ll, history })
    }

    /// The model with everything that is saved beside it.
    pub fn file(
        &self,
        tables: &Tables,
        tried: &[Tried],
        results: &Results,
        precision: Precision,
        machine: &Machine,
        note: &dyn Fn(String),
    ) -> Result<ModelFile> {
        let (train, holes, weights) = self.learned_from(tables);
        let (blocks, mixture) = (self.model.blocks(), self.model.mixture());
        let train = match holes.is_empty() {
            true => blocks.unique_weighted(train, weights),
            false => completed(blocks, mixture, train, holes, self.settings.seed)?,
        };
        // One tree has the edges it has.
        let posteriors = match self.model.structure() {
            Some(_) => None,
            None => Some(machine.in_f64(
                &self.model,
                note,
                |gpu| Ok(edge_posteriors(mixture, &train, gpu)?),
                |_| Ok(edge_posteriors(mixture, &train, &Cpu::<f64>::new().keeping(1 << 28))?),
            )?),
        };
        Ok(ModelFile {
            model: self.model.clone(),
            schema: tables.schema.clone(),
            provenance: Provenance {
                settings: Some(self.settings.clone()),
                // Trees are learned in f64, whatever was asked for.
                precision: Some(match self.model.structure() {
                    Some(_) => Precision::F64.name().to_owned(),
                    None => precision.name().to_owned(),
                }),
                train: Some(self.facts[0].clone()),
                valid: Some(self.facts[1].clone()),
                results: Some(results.clone()),
                tried: tried.to_vec(),
            },
            edge_posteriors: posteriors,
        })
    }
}
