//! What a choice comes to: the best candidate or an average, learned once more from all rows, with everything that is saved beside.

use super::super::monitor::Monitor;
use super::super::run::{Learned, facts_of, refit_candidate};
use super::super::{Fit, FitReport, Fitted, Stopped, doubts, explained};
use super::search::Auto;
use super::{CandidateReport, Rows, kernel};
use crate::error::Kind;
use crate::score::observed;
use crate::{Dataset, Error, Model, Result};
use everytree_core::file::{Evaluated, Results};
use everytree_core::learn::{CandidateResult, Choice, Datasets, Ended, SearchObserver};
use everytree_core::model::Member;
use std::time::Instant;

impl Fit {
    /// The model and how it came about.
    pub(super) fn outcome(
        &self,
        mut auto: Auto<'_>,
        rows: &Rows,
        ended: Ended,
        monitor: &mut Monitor<'_, '_>,
        begin: Instant,
    ) -> Result<Fitted> {
        let Rows { all, folds, test, held_out } = rows;
        let (first, valid) = &folds.pairs[0];
        let complete = all.is_complete() && valid.is_complete();
        auto.take_what_there_is();
        let tried = &auto.state.tried;
        let choice = Choice::of(tried, &folds.weights, !complete).or_else(|| only_part(tried));
        let Some(choice) = choice else {
            if let Some(failure) = monitor.failed.take() {
                return Err(failure.into());
            }
            // The simplest is tried first: what it lacks, all others lack.
            let refused = auto.refused.take().map(|error| explained(error, &first.clone().into()));
            return Err(refused.unwrap_or_else(|| Kind::NoModel.into()));
        };
        let by = |timed_out: bool| if timed_out { Stopped::Timeout } else { Stopped::Observer };
        let mut stopped = match ended {
            Ended::Stopped | Ended::Unvalidated => by(monitor.timed_out.get()),
            Ended::Patience | Ended::Done => Stopped::Done,
        };
        let wanted = self.options.refit.unwrap_or(true) && held_out.is_some();
        let mut refitted = None;
        if wanted && stopped == Stopped::Done {
            refitted = refit(&mut auto, &choice, all, monitor)?;
            if refitted.is_none() {
                stopped = by(monitor.timed_out.get());
                (auto.place.note)("stopped: the model without the rows held out is what is kept".to_owned());
            }
        } else if wanted && monitor.failed.is_none() {
            (auto.place.note)("not learned again from all rows: there was no time for it".to_owned());
        }
        if let Some(keep) = &mut monitor.keep
            && stopped != Stopped::Done
            && let Err(error) = keep.save()
        {
            monitor.failed = Some(error);
        }
        let failure = monitor.failed.take().map(|error| Error::from(error).at("saving the checkpoint"));
        if failure.is_some() {
            stopped = Stopped::Failed;
        }
        let is_refit = refitted.is_some();
        let tried = &auto.state.tried;
        let members: Vec<Member> = refitted
            .unwrap_or_else(|| choice.members.iter().map(|&number| tried[number].model.clone()).collect());
        let first: Dataset = first.clone().into();
        let learned_from: &Dataset = if is_refit { all } else { &first };
        let valid: Dataset = valid.clone().into();
        let learning_seconds = begin.elapsed().as_secs_f64();
        let facts = [facts_of(learned_from), facts_of(&valid)];
        let stop = || monitor.stop();
        let mut models = Vec::new();
        for (member, &number) in members.iter().zip(&choice.members) {
            let CandidateResult { candidate, history, valid: valid_ll, best_epochs, .. } = &tried[number];
            let learned = Learned {
                model: member.clone(),
                settings: candidate.settings.clone(),
                facts: facts.clone(),
                all: is_refit.then(|| all.clone()),
            };
            // What the rows to learn from say is said of all members together, below.
            let results = Results {
                best_epoch: best_epochs[0],
                train_ll: *valid_ll,
                valid_ll: *valid_ll,
                test_ll: None,
                evaluated: None,
                history: history.clone(),
            };
            let how = auto.place.with(candidate);
            models.push(Model::from(learned.file(&first, &[], &results, how, !self.without_edges, &stop)?));
        }
        let leader = &tried[choice.members[0]];
        // Of what was asked for, the gain is in the choice.
        let portfolio = &auto.state.portfolio;
        let kernel_gain = match portfolio.stored {
            None if complete && stopped == Stopped::Done => {
                kernel::gain(folds, &choice, tried, portfolio.budget, &stop)
            }
            _ => None,
        };
        let mut model = match models.len() {
            1 => models.remove(0),
            _ => Model::ensemble(&models, &choice.weights)?,
        };
        let train_mean = observed(&model, &distinct(learned_from)?, &stop)?;
        let test_mean = test.as_ref().map(|test| observed(&model, test, &stop)).transpose()?;
        let test_share = test_mean.as_ref().map(|found| found.share);
        let evaluated = Evaluated { train: train_mean.share, valid: 1.0, test: test_share };
        let results = Results {
            best_epoch: leader.best_epochs[0],
            train_ll: train_mean.mean,
            valid_ll: choice.valid,
            test_ll: test_mean.as_ref().map(|found| found.mean),
            evaluated: Some(evaluated).filter(Evaluated::is_partial),
            history: leader.history.clone(),
        };
        model.say_results(results.clone(), stopped);
        let weight_of = |number: usize| {
            let place = choice.members.iter().position(|&member| member == number);
            place.map_or(0.0, |place| choice.weights[place])
        };
        let candidates = tried.iter().enumerate();
        let candidates =
            candidates.map(|(number, tried)| CandidateReport::new(tried, weight_of(number))).collect();
        let of_trees = members.iter().all(Member::is_of_trees);
        let [train_facts, valid_facts] = facts;
        let report = FitReport {
            train: train_facts,
            valid: if folds.count() == 1 { valid_facts } else { facts_of(all) },
            test_rows: test.as_ref().map(|test| test.rows()),
            held_out: held_out.is_some(),
            folds: folds.count(),
            train_ll: results.train_ll,
            valid_ll: results.valid_ll,
            test_ll: results.test_ll,
            test_standard_error: test_mean.map(|found| found.standard_error).filter(|error| *error > 0.0),
            evaluated: results.evaluated,
            estimated: [&first, &valid].map(|data| !data.is_complete() && !of_trees),
            best_epoch: results.best_epoch,
            epochs: leader.history.len() - 1,
            history: results.history,
            trials: Vec::new(),
            groupings: auto.state.portfolio.groupings.clone(),
            candidates,
            gain: choice.gain,
            kernel_gain,
            refit: is_refit,
            stopped,
            device: if of_trees { "cpu".to_owned() } else { auto.place.device.to_string() },
            settings: leader.candidate.settings.clone(),
            learning_seconds,
            seconds: begin.elapsed().as_secs_f64(),
        };
        let mut said = doubts::of(&report, model.stored_rows().is_some());
        if report.gain.is_none() {
            said.extend(
                doubts::of_choice(tried, &folds.weights, &leader.log_p).filter(|_| !is_simple(leader)),
            );
        }
        said.into_iter().for_each(|doubt| monitor.observer.borrow_mut().doubt(&doubt));
        Ok(Fitted { model, report, failure, unfinished: None })
    }
}

/// Learns every member once more, from all rows, for as many epochs as were best on the rows held out; nothing if that was stopped.
fn refit(
    auto: &mut Auto<'_>,
    choice: &Choice,
    all: &Dataset,
    monitor: &mut Monitor<'_, '_>,
) -> Result<Option<Vec<Member>>> {
    let valid = &auto.folds.pairs[0].1;
    for &number in &choice.members[auto.state.refitted.len().min(choice.members.len())..] {
        let CandidateResult { candidate, best_epochs, .. } = auto.state.tried[number].clone();
        let mean = best_epochs.iter().sum::<usize>() as f64 / best_epochs.len() as f64;
        let epochs = mean.round() as usize;
        monitor.observer.borrow_mut().refit(epochs);
        let search = auto.search_of(&candidate);
        auto.put_aside(&candidate, monitor);
        let data = Datasets { train: all, valid };
        match refit_candidate(search, data, auto.place.with(&candidate), epochs, monitor)? {
            Some(member) => auto.state.refitted.push(member),
            None => return Ok(None),
        }
    }
    Ok(Some(std::mem::take(&mut auto.state.refitted)))
}

/// Is it what the counts say, with nothing learned?
fn is_simple(tried: &CandidateResult) -> bool {
    tried.candidate.components == 1 && tried.candidate.start.is_counted()
}

/// Where there was no time for all folds of anything: what there is.
fn only_part(tried: &[CandidateResult]) -> Option<Choice> {
    let better = |best: usize, next: usize| if tried[next].valid > tried[best].valid { next } else { best };
    let best = (0..tried.len()).reduce(better)?;
    Some(Choice { members: vec![best], weights: vec![1.0], valid: tried[best].valid, gain: None })
}

/// Equal rows once, with weights, where nothing is missing.
fn distinct(data: &Dataset) -> Result<Dataset> {
    if !data.is_complete() {
        return Ok(data.clone());
    }
    let unique = data.table().unique_weighted(data.weights());
    Dataset::from_codes(data.schema().clone(), unique.table)?.with_weights(unique.weights)
}
