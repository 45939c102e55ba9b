//! From datasets and a plan to a model as it is saved.

use super::options::Precision;
use crate::device::{Compute, Device, evaluator};
use crate::{Dataset, Result};
use everytree_core::blocks::Blocks;
use everytree_core::data::{Table, Unique};
use everytree_core::file::{Evaluated, ModelFile, Provenance, Results, TableFacts};
use everytree_core::forest::Cpu;
use everytree_core::learn::{
    BestModel, Datasets, Ended, Engine, Evaluator, LearnError, MeanSoFar, Plan, Progress, Running, Search,
    SearchObserver, SourceError, Trial, TrialResult, completed, edge_posteriors_until, evaluate,
    evaluate_observed,
};
use everytree_core::model::{Component, HowMany, Member, Mixture, ParamsView, Settings, Trees};
use std::ops::ControlFlow;
use std::sync::Arc;

/// With which settings, in which precision, and where.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub settings: &'a Settings,
    pub precision: Precision,
    pub device: &'a Device,
    /// Who hears if the device fails and the CPU takes over.
    pub note: &'a dyn Fn(String),
}

/// A model and what it was learned from.
pub(super) struct Learned {
    pub model: Member,
    pub settings: Settings,
    pub facts: [TableFacts; 2],
    /// All rows, where it has learned from those held out too.
    pub all: Option<Dataset>,
}

/// The epoch that validated best.
pub(super) fn best_epoch(best: &BestModel) -> usize {
    let best = best.history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
    best.map_or(0, |epoch| epoch.epoch)
}

/// Enough to know a dataset again.
pub(super) fn facts_of(data: &Dataset) -> TableFacts {
    let unique_rows = match data.is_complete() {
        true => data.table().unique().table.rows(),
        false => {
            // What is not observed is one more value here, as long as codes have two bytes.
            let more: Vec<usize> = data.states().iter().map(|count| (count + 1).min(1 << 16)).collect();
            let mut table = Table::new(&more);
            for row in 0..data.rows() {
                let missing = data.missing().of(row);
                let code =
                    |v: usize| if missing.contains(&v) { more[v] - 1 } else { data.table().get(row, v) };
                table.push(&(0..more.len()).map(|v| code(v) as u16).collect::<Vec<_>>());
            }
            table.unique().table.rows()
        }
    };
    TableFacts { rows: data.rows(), unique_rows, fingerprint: format!("{:016x}", data.fingerprint()) }
}

/// Memory for what a step keeps of all components together.
const KEPT: usize = 1 << 30;

/// Goes on with a search.
pub(super) fn learn(
    search: &mut Search,
    data: Datasets<'_>,
    how: How<'_>,
    observer: &mut dyn SearchObserver,
) -> Result<Ended, LearnError> {
    let How { settings, precision, device, note } = how;
    if let Some(ended) = device.learn(search, data, (settings, precision), note, observer) {
        return ended;
    }
    let keep = match search.plan.components {
        HowMany::Just(components) => KEPT / components.max(1),
        HowMany::UpTo(_) => KEPT / 16,
    };
    match precision {
        Precision::F32 => {
            search.run(data, settings, &Cpu::<f32>::new().keeping(keep), &evaluator(), observer)
        }
        Precision::F64 => {
            search.run(data, settings, &Cpu::<f64>::new().keeping(keep), &evaluator(), observer)
        }
    }
}

/// Learns from all rows for as many epochs as were best on the rows held out; nothing if that was stopped.
pub(super) fn refit(
    train: &Dataset,
    valid: &Dataset,
    how: How<'_>,
    plan: &Plan,
    best: &BestModel,
    observer: &mut dyn SearchObserver,
) -> Result<Option<Learned>> {
    let all: Dataset = train.followed_by(valid).into();
    let groups = best.model.blocks().combinations().into_iter().map(|(columns, _)| columns).collect();
    let components = HowMany::Just(best.model.mixture().components().len());
    let hidden = best.model.hidden().map_or(plan.hidden, HowMany::Just);
    let plan = Plan { groupings: vec![groups], components, hidden, ..plan.clone() };
    let data = Datasets { train: &all, valid };
    let Some(model) = refit_candidate(Search::new(plan), data, how, best_epoch(best), observer)? else {
        return Ok(None);
    };
    let facts = [facts_of(&all), facts_of(valid)];
    let settings = Settings { patience: None, ..how.settings.clone() };
    Ok(Some(Learned { model, settings, facts, all: Some(all) }))
}

/// Learns a model of one size for so many epochs, whatever the rows to validate with say; nothing if that was stopped.
pub(super) fn refit_candidate(
    mut search: Search,
    data: Datasets<'_>,
    how: How<'_>,
    epochs: usize,
    observer: &mut dyn SearchObserver,
) -> Result<Option<Member>> {
    // Decay, if any, goes as it went: by the epochs that were planned.
    let mut until = Until { epoch: epochs, observer };
    let settings = Settings { patience: None, ..how.settings.clone() };
    // One that was put aside may have been at its end.
    let is_there = |running: &Running| !running.state.history.is_empty() && running.state.epochs() >= epochs;
    if !search.running.as_ref().is_some_and(is_there) {
        learn(&mut search, data, How { settings: &settings, ..how }, &mut until)?;
    }
    // As it is after the last epoch: these rows cannot validate what has learned from them.
    let Some(Running { blocks, state, .. }) = search.running else { return Ok(None) };
    if state.epochs() < epochs || (epochs == 0 && observer.stop()) {
        return Ok(None);
    }
    let mut mixture = Arc::unwrap_or_clone(state.model);
    if let Some(average) = &*state.average {
        mixture.set(average)?;
    }
    Ok(Some(Member::new(blocks, mixture)?))
}

/// The log-likelihood of every row of a dataset without missing cells.
pub(super) fn log_p(model: &Member, data: &Dataset, how: How<'_>) -> Result<Vec<f64>> {
    let rows = model.blocks().unique(data);
    let found = how.device.compute(model, how.note, &LogP { model, rows: &rows })?;
    Ok(rows.of_row.iter().map(|&place| found[place as usize]).collect())
}

/// The log-likelihood of distinct rows.
struct LogP<'a> {
    model: &'a Member,
    rows: &'a Unique,
}

impl Compute for LogP<'_> {
    type Output = Vec<f64>;

    fn on<E: Engine<Mixture<Component>>>(&self, backend: &E) -> Result<Vec<f64>, SourceError> {
        Ok(evaluate(self.model.mixture(), self.rows, backend)?.log_likelihood)
    }
}

/// Ends a run after an epoch; else as the observer says.
struct Until<'a> {
    epoch: usize,
    observer: &'a mut dyn SearchObserver,
}

impl SearchObserver for Until<'_> {
    fn batch(&mut self, trial: &Trial, progress: &Progress<'_>) -> ControlFlow<()> {
        self.observer.batch(trial, progress)
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        match &search.running {
            Some(running) if running.state.epochs() >= self.epoch => ControlFlow::Break(()),
            _ => self.observer.epoch(search),
        }
    }

    fn stop(&self) -> bool {
        self.observer.stop()
    }
}

/// The mean log-likelihoods of datasets.
struct Means<'a> {
    model: &'a Member,
    data: &'a [&'a Dataset],
    stop: &'a dyn Fn() -> bool,
}

impl Compute for Means<'_> {
    /// One of each.
    type Output = Vec<MeanSoFar>;

    fn on<E: Engine<Mixture<Component>>>(&self, backend: &E) -> Result<Vec<MeanSoFar>, SourceError> {
        let blocks = self.model.blocks();
        // The tables of a model may be large: they are made once.
        let mut evaluator = Evaluator::new(self.model.mixture(), backend);
        let mean = |data: &&Dataset| match data.is_complete() {
            true => Ok(evaluator.mean_until(&blocks.unique(data), self.stop)?),
            false => evaluate_observed(blocks, &mut evaluator, data, self.stop),
        };
        self.data.iter().map(mean).collect()
    }
}

/// What rows say about edges.
struct Edges<'a> {
    model: &'a Member,
    rows: Unique,
    stop: &'a dyn Fn() -> bool,
}

impl Compute for Edges<'_> {
    /// And the share of the rows that they are of.
    type Output = (Vec<Vec<f64>>, f64);

    fn on<E: Engine<Mixture<Component>>>(&self, backend: &E) -> Result<Self::Output, SourceError> {
        Ok(edge_posteriors_until(self.model.mixture(), &self.rows, backend, self.stop)?)
    }

    fn cpu(&self) -> Cpu<f64> {
        Cpu::<f64>::new().keeping(1 << 28)
    }
}

impl Learned {
    /// The rows that it has learned from.
    fn learned_from<'a>(&'a self, train: &'a Dataset) -> &'a Dataset {
        self.all.as_ref().unwrap_or(train)
    }

    /// Evaluates the model in f64, and says where f32 would have said something else. Where `stop` asks for an end, of as many
    /// rows as a moment allows.
    pub fn results(
        &self,
        (train, valid, test): (&Dataset, &Dataset, Option<&Dataset>),
        best: &BestModel,
        how: How<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Results> {
        let How { precision, device, note: warn, .. } = how;
        let model = &self.model;
        // Of a model that has learned from these rows too, what they said before counts.
        let refitted = self.all.is_some();
        let validate = !refitted && valid.is_complete();
        let mut asked = vec![self.learned_from(train)];
        asked.extend(validate.then_some(valid));
        asked.extend(test);
        let means = device.compute(model, warn, &Means { model, data: &asked, stop })?;
        let train_ll = means[0];
        let found = best.history.iter().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
        let valid_ll = if validate { means[1] } else { MeanSoFar { mean: found, share: 1.0 } };
        let test_ll = test.map(|_| means[asked.len() - 1]);
        let evaluated = Evaluated {
            train: train_ll.share,
            valid: valid_ll.share,
            test: test_ll.map(|test_ll| test_ll.share),
        };
        let (train_ll, valid_ll) = (train_ll.mean, valid_ll.mean);
        if precision == Precision::F32 && validate && !stop() {
            let in_single = Means { model, data: &[valid], stop };
            let single = match device.compute_single(model, &in_single) {
                Some(means) => means,
                None => in_single.on(&Cpu::<f32>::new().keeping(0))?,
            };
            let single = single[0];
            // Means over different rows say nothing about each other.
            let comparable = !(single.is_partial() || evaluated.valid < 1.0);
            let single = single.mean;
            if comparable && (single - valid_ll).abs() > 1e-3 {
                warn(format!(
                    "in f32 the validation log-likelihood is {single:.6}, in f64 {valid_ll:.6}; learn with \
                     `precision = f64`"
                ));
            }
        }
        let (best_epoch, history) = (best_epoch(best), best.history.clone());
        let evaluated = Some(evaluated).filter(Evaluated::is_partial);
        let test_ll = test_ll.map(|test_ll| test_ll.mean);
        Ok(Results { best_epoch, train_ll, valid_ll, test_ll, evaluated, history })
    }

    /// The model with everything that is saved beside it.
    pub fn file(
        &self,
        train: &Dataset,
        trials: &[TrialResult],
        results: &Results,
        how: How<'_>,
        edges: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<ModelFile> {
        let data = self.learned_from(train);
        let blocks: &Blocks = self.model.blocks();
        // One tree has the edges it has.
        let edge_posteriors = match edges && !self.model.is_of_trees() {
            false => None,
            true if stop() => {
                (how.note)("stopped: how probable edges are given the rows is not in the model".to_owned());
                None
            }
            true => {
                let rows = match data.is_complete() {
                    true => blocks.unique(data),
                    false => completed(blocks, self.model.mixture(), data, self.settings.seed, stop)?,
                };
                let edges = Edges { model: &self.model, rows, stop };
                let (posteriors, share) = how.device.compute(&self.model, how.note, &edges)?;
                if share < 1.0 {
                    let share = 100.0 * share;
                    (how.note)(format!(
                        "stopped: how probable edges are is known from {share:.1} % of the rows"
                    ));
                }
                Some(posteriors)
            }
        };
        // What is counted, not computed, is counted in f64, whatever was asked for.
        let precision = match self.model.family().spec().trees {
            Trees::One => Precision::F64,
            _ => how.precision,
        };
        Ok(ModelFile {
            model: self.model.clone().into(),
            schema: (**train.schema()).clone(),
            provenance: Provenance {
                settings: Some(self.settings.clone()),
                precision: Some(precision.name().to_owned()),
                train: Some(self.facts[0].clone()),
                valid: Some(self.facts[1].clone()),
                results: Some(results.clone()),
                trials: trials.to_vec(),
                members: Vec::new(),
                stopped: None,
            },
            edge_posteriors: vec![edge_posteriors],
        })
    }
}
