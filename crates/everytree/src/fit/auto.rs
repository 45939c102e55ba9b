//! The best model without asking: a search over families, sizes, blocks and settings, and in the end an average of what is best
//! together.

use super::blocks;
use super::monitor::Monitor;
use super::options::{Effort, FitOptions, Init};
use super::run::{How, Learned, facts_of, learn, log_p, refit_candidate};
use super::{Fit, FitReport, FitRows, Fitted, Observer, Stopped, explained, hold_out};
use crate::columns::like;
use crate::device::Device;
use crate::error::Kind;
use crate::score::observed;
use crate::{Dataset, Error, Model, Result, Unknown};
use everytree_core::blocks::Blocks;
use everytree_core::file::{Evaluated, Results};
use everytree_core::learn::{
    BestModel, Choice, Datasets, Ended, Folds, LearnError, Next, Plan, Portfolio, Search, SearchObserver,
    Stacking, Tried, within,
};
use everytree_core::model::{A_SECOND, Candidate, HowMany, Member, Pairs};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The name of the family that stands for the best of all.
pub(super) const AUTO_FAMILY: &str = "auto";
/// Cells of a table that take a minute, and what the least table takes, in seconds.
const CELLS: f64 = 2e6;
const MINUTE: f64 = 60.0;
const LEAST: f64 = 12.0;
/// A candidate that is so many standard errors below the best after the first fold is given up.
const FAR_BEHIND: f64 = 3.0;

/// A candidate that was tried, for people and machines.
///
/// ```
/// # use everytree::{Dataset, Effort, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let fitted = Fit::new().family("auto").effort(Effort::Quick).folds(2).run_with(&data, &mut ())?;
/// let weights: f64 = fitted.report.candidates.iter().map(|candidate| candidate.weight).sum();
/// assert!((weights - 1.0).abs() < 1e-9);
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CandidateReport {
    /// The name of its family.
    pub family: &'static str,
    /// How many components it mixes.
    pub components: usize,
    /// States of its latent variables, if it has some.
    pub hidden: Option<usize>,
    /// Which way to group the columns; 0: none.
    pub grouping: usize,
    /// Rows that say that columns are independent.
    pub prior: f64,
    /// Mean log-likelihood of the rows held out; where it was given up early, as far as is known.
    pub valid_ll: f64,
    /// Was it given up before all folds were done?
    pub given_up: bool,
    /// How much it counts in the model; 0: not at all.
    pub weight: f64,
    /// Epochs, of all folds together.
    pub epochs: usize,
    /// Operations that it took.
    pub work: f64,
}

impl CandidateReport {
    fn new(tried: &Tried, weight: f64) -> Self {
        let Candidate { start, components, hidden, grouping, .. } = &tried.candidate;
        let has_hidden = tried.model.hidden().is_some();
        Self {
            family: start.family.name(*components),
            components: *components,
            hidden: has_hidden.then_some(*hidden),
            grouping: *grouping,
            prior: start.pseudocount,
            valid_ll: tried.valid,
            given_up: !tried.whole,
            weight,
            epochs: tried.epochs.iter().sum(),
            work: tried.work,
        }
    }
}

/// What is being tried.
///
/// ```
/// use everytree::{Observer, Trying};
///
/// struct Said;
///
/// impl Observer for Said {
///     fn trying(&mut self, trying: &Trying<'_>) {
///         println!("{}, {:.0} % of the work", trying.family, 100.0 * trying.spent);
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Trying<'a> {
    /// The name of its family.
    pub family: &'static str,
    /// How many components it mixes.
    pub components: usize,
    /// States of its latent variables, where it has some.
    pub hidden: Option<usize>,
    /// Are columns taken together?
    pub blocks: bool,
    /// Which fold of how many, from 1.
    pub fold: (usize, usize),
    /// What leads so far, if anything.
    pub leader: Option<&'a CandidateReport>,
    /// Which share of the budget is spent.
    pub spent: f64,
}

/// What does not go with a choice that is left to the program.
pub(super) fn check(options: &FitOptions) -> Result<()> {
    let usual = FitOptions::default();
    let said = [
        ("components", options.components.is_some()),
        ("hidden", options.hidden.is_some()),
        ("laplace", options.laplace.is_some()),
        ("shrinkage", options.shrinkage.is_some()),
        ("optimiser", options.optimiser.is_some()),
        ("epochs", options.epochs.is_some()),
        ("patience", options.patience.is_some()),
        ("batch_size", options.batch_size.is_some()),
        ("learning_rate", options.learning_rate.is_some()),
        ("cosine", options.cosine),
        ("ema", options.ema.is_some()),
        ("init", options.init != Init::Counts),
        ("pseudocount", options.pseudocount != usual.pseudocount),
    ];
    match said.into_iter().find(|(_, said)| *said) {
        Some((option, _)) => {
            let problem = "`family = auto` chooses it; goes with a family, such as `family = directed`";
            Err(Error::unwanted(option, problem))
        }
        None => Ok(()),
    }
}

/// Operations for a table of so many cells.
fn budget(effort: Effort, rows: usize, columns: usize) -> f64 {
    let cells = rows as f64 * columns as f64 / CELLS;
    let seconds = LEAST + MINUTE * if cells < 1.0 { cells } else { cells.powf(0.75) };
    let times = match effort {
        Effort::Quick => 1.0 / 6.0,
        Effort::Normal => 1.0,
        Effort::Thorough => 20.0,
    };
    times * seconds * A_SECOND
}

/// A search as it goes.
pub(super) struct Auto<'a> {
    portfolio: Portfolio,
    tried: Vec<Tried>,
    folds: &'a Folds,
    how: AutoHow<'a>,
}

/// Where and how.
#[derive(Clone, Copy)]
pub(super) struct AutoHow<'a> {
    pub precision: super::Precision,
    pub device: &'a Device,
    pub note: &'a dyn Fn(String),
}

impl AutoHow<'_> {
    fn with<'s>(&'s self, candidate: &'s Candidate) -> How<'s> {
        How { settings: &candidate.settings, precision: self.precision, device: self.device, note: self.note }
    }
}

/// The plan of one candidate.
fn plan_of(candidate: &Candidate, groupings: &[Vec<Vec<usize>>]) -> Plan {
    Plan {
        groupings: vec![groupings[candidate.grouping].clone()],
        components: HowMany::Just(candidate.components),
        hidden: HowMany::Just(candidate.hidden),
        pilot_epochs: 1,
        start: candidate.start,
    }
}

impl<'a> Auto<'a> {
    fn new(
        options: &FitOptions,
        groupings: Vec<Vec<Vec<usize>>>,
        folds: &'a Folds,
        how: AutoHow<'a>,
    ) -> Result<Self> {
        let (train, valid) = &folds.pairs[0];
        let states: std::result::Result<Vec<Vec<usize>>, _> =
            groupings.iter().map(|groups| Ok(Blocks::observed(groups, train)?.states())).collect();
        let states = states.map_err(|error| explained(LearnError::Blocks(error), &train.clone().into()))?;
        let binary = states[0].iter().all(|&count| count == 2);
        let portfolio = Portfolio {
            groupings,
            budget: budget(options.effort, train.rows() + valid.rows(), train.columns()),
            seed: options.seed,
            folds: folds.count(),
            rows: train.rows(),
            states,
            // Of two states both are the same, and intervals are quicker.
            pairs: if binary { Pairs::Lambda } else { Pairs::Sinkhorn },
        };
        Ok(Self { portfolio, tried: Vec::new(), folds, how })
    }

    fn next(&self) -> Option<Next> {
        let (train, valid) = &self.folds.pairs[0];
        let fits = |candidate: Candidate, most: f64| {
            let work = self.portfolio.work(&candidate, train, valid);
            within(candidate, work, train.rows(), most / self.folds.count() as f64)
        };
        self.portfolio.next(&self.tried, &fits)
    }

    fn leader(&self) -> Option<CandidateReport> {
        let whole = self.tried.iter().filter(|tried| tried.is_whole());
        let best = whole.reduce(|best, next| if next.valid > best.valid { next } else { best })?;
        Some(CandidateReport::new(best, 0.0))
    }

    /// Goes on until nothing is left to try, or someone stops it.
    fn run(&mut self, monitor: &mut Monitor<'_, '_>) -> Result<Ended> {
        while let Some(next) = self.next() {
            if monitor.stop() {
                return Ok(Ended::Stopped);
            }
            let (tried, ended) = self.candidate(next, monitor)?;
            self.tried.extend(tried);
            if ended == Ended::Stopped {
                return Ok(Ended::Stopped);
            }
        }
        Ok(Ended::Done)
    }

    /// Learns a candidate on every fold.
    fn candidate(&self, next: Next, monitor: &mut Monitor<'_, '_>) -> Result<(Option<Tried>, Ended)> {
        let Next { candidate, series } = next;
        let (mut log_p_of_rows, mut first) = (Vec::new(), None);
        let (mut best_epochs, mut epochs, mut work) = (Vec::new(), Vec::new(), 0.0);
        let (mut sum, mut weight, mut was_stopped) = (0.0, 0.0, false);
        let leader = self.leader();
        let complete =
            self.folds.pairs.iter().all(|(train, valid)| train.is_complete() && valid.is_complete());
        for (fold, (train, valid)) in self.folds.pairs.iter().enumerate() {
            let one = self.portfolio.work(&candidate, train, valid);
            let trying = Trying {
                family: candidate.start.family.name(candidate.components),
                components: candidate.components,
                hidden: (candidate.hidden > 1).then_some(candidate.hidden),
                blocks: candidate.grouping > 0,
                fold: (fold + 1, self.folds.count()),
                leader: leader.as_ref(),
                spent: 1.0 - (self.portfolio.left(&self.tried) - work) / self.portfolio.budget,
            };
            monitor.observer.borrow_mut().trying(&trying);
            let mut search = Search::new(plan_of(&candidate, &self.portfolio.groupings));
            let data = Datasets { train, valid };
            let ended = learn(&mut search, data, self.how.with(&candidate), monitor);
            let stopped = matches!(ended, Ok(Ended::Stopped | Ended::Unvalidated));
            let found = search.best_so_far()?;
            let Some(found) = found else {
                return match ended {
                    // Something else may do.
                    Err(
                        LearnError::Memory(_)
                        | LearnError::NotFinite { .. }
                        | LearnError::ValidationNotFinite { .. },
                    ) => Ok((None, Ended::Done)),
                    Err(error) => Err(explained(error, &train.clone().into())),
                    Ok(_) => Ok((None, Ended::Stopped)),
                };
            };
            if stopped && (fold > 0 || !self.tried.is_empty()) {
                return Ok((None, Ended::Stopped));
            }
            let BestModel { model, history } = found;
            let best = history.iter().reduce(|best, next| if next.valid > best.valid { next } else { best });
            let best = best.cloned().ok_or_else(|| Error::from(Kind::NoModel))?;
            let done = history.len() - 1;
            best_epochs.push(best.epoch);
            epochs.push(done);
            work += one.epochs(done);
            let total = |data: &everytree_core::data::Dataset| match data.weights().is_empty() {
                true => data.rows() as f64,
                false => data.weights().iter().sum(),
            };
            (sum, weight) = (sum + best.valid * total(valid), weight + total(valid));
            if complete && !stopped {
                log_p_of_rows.extend(log_p(&model, &valid.clone().into(), self.how.with(&candidate))?);
            }
            if fold == 0 {
                first = Some((model, history));
            }
            if stopped {
                was_stopped = true;
                break;
            }
            if self.is_far_behind(&log_p_of_rows) && fold + 1 < self.folds.count() {
                break;
            }
        }
        let whole = best_epochs.len() == self.folds.count();
        let Some((model, history)) = first else { return Ok((None, Ended::Done)) };
        let valid = match whole {
            true => sum / weight,
            // Some folds are easier than others: what counts is how far it is behind on these.
            false => self.estimated(&log_p_of_rows).unwrap_or(sum / weight),
        };
        let log_p = if whole { log_p_of_rows } else { Vec::new() };
        let tried =
            Tried { candidate, series, valid, best_epochs, epochs, log_p, whole, model, history, work };
        Ok((Some(tried), if was_stopped { Ended::Stopped } else { Ended::Done }))
    }

    fn best(&self) -> Option<&Tried> {
        let known = self.tried.iter().filter(|tried| !tried.log_p.is_empty());
        known.reduce(|best, next| if next.valid > best.valid { next } else { best })
    }

    /// Is this clearly below the best, on the rows of the first folds?
    fn is_far_behind(&self, log_p: &[f64]) -> bool {
        let Some(best) = self.best() else { return false };
        if log_p.is_empty() {
            return false;
        }
        let weights =
            if self.folds.weights.is_empty() { &[][..] } else { &self.folds.weights[..log_p.len()] };
        let (gain, error) = Stacking::new(weights).gain(&best.log_p[..log_p.len()], log_p);
        gain < -FAR_BEHIND * error && gain < -0.01
    }

    fn estimated(&self, log_p: &[f64]) -> Option<f64> {
        let best = self.best().filter(|_| !log_p.is_empty())?;
        let weights =
            if self.folds.weights.is_empty() { &[][..] } else { &self.folds.weights[..log_p.len()] };
        Some(best.valid + Stacking::new(weights).gain(&best.log_p[..log_p.len()], log_p).0)
    }
}

impl Fit {
    /// Chooses a model, and learns it.
    pub(super) fn choose(&self, train: &Dataset, observer: &mut dyn Observer) -> Result<Fitted> {
        check(&self.options)?;
        if train.columns() < 2 {
            return Err(Kind::OneColumn.into());
        }
        super::room_for_rows(train)?;
        let seed = self.options.seed;
        let all = Dataset::from((**train).clone().weighing());
        let test = self.test.as_ref().map(|test| like(test, &all, Unknown::Error)).transpose()?;
        let (folds, held_out) = match &self.valid {
            Some(valid) => {
                let valid = like(valid, &all, Unknown::Error)?;
                (Folds::one((*all).clone(), (*valid).clone()), None)
            }
            None => {
                let fraction = self.options.holdout;
                // The same words for what makes no sense.
                hold_out(&all, fraction, seed)?;
                let declined = self.options.refit == Some(false) || !all.is_complete();
                let folds = if declined { Some(1) } else { self.options.folds };
                (Folds::of(&all, fraction, folds, seed), Some(fraction))
            }
        };
        let (first, valid) = &folds.pairs[0];
        let test_rows = test.as_ref().map(|test| test.rows());
        let rows = FitRows {
            folds: folds.count(),
            ..FitRows::new(first.rows(), valid.rows(), test_rows, held_out.map(|_| seed))
        };
        observer.data(&rows);
        let observer = RefCell::new(observer);
        let note = |text: String| observer.borrow_mut().note(&text);
        let device = Device::find(self.options.device, train.columns(), &note)?;
        let begin = Instant::now();
        let timeout = self.options.timeout.map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
        let mut monitor = Monitor {
            observer: &observer,
            deadline: timeout.map(|timeout| begin + timeout),
            keep: None,
            timed_out: Cell::new(false),
            failed: None,
        };
        let how = AutoHow { precision: self.options.precision, device: &device, note: &note };
        self.run_auto(&all, &folds, test.as_ref(), held_out, how, &mut monitor, begin)
    }

    #[expect(clippy::too_many_arguments, reason = "what was set up just above")]
    fn run_auto(
        &self,
        all: &Dataset,
        folds: &Folds,
        test: Option<&Dataset>,
        held_out: Option<f64>,
        how: AutoHow<'_>,
        monitor: &mut Monitor<'_, '_>,
        begin: Instant,
    ) -> Result<Fitted> {
        let (train, valid) = &folds.pairs[0];
        let first: Dataset = train.clone().into();
        let stop = || monitor.stop();
        let groupings = blocks::groupings(&self.options, true, &first, how.note, &stop)?;
        let mut auto = Auto::new(&self.options, groupings, folds, how)?;
        let ended = auto.run(monitor)?;
        let complete = all.is_complete() && valid.is_complete();
        let choice = Choice::of(&auto.tried, &folds.weights, !complete).or_else(|| only_part(&auto.tried));
        let Some(choice) = choice else { return Err(Kind::NoModel.into()) };
        let refits = self.options.refit.unwrap_or(true) && held_out.is_some();
        let mut stopped = match ended {
            Ended::Stopped | Ended::Unvalidated if monitor.timed_out.get() => Stopped::Timeout,
            Ended::Stopped | Ended::Unvalidated => Stopped::Observer,
            Ended::Patience | Ended::Done => Stopped::Done,
        };
        let mut members: Vec<Member> =
            choice.members.iter().map(|&number| auto.tried[number].model.clone()).collect();
        let mut refitted = false;
        if refits && stopped == Stopped::Done {
            let mut again = Vec::new();
            for &number in &choice.members {
                let Tried { candidate, best_epochs, .. } = &auto.tried[number];
                let mean = best_epochs.iter().sum::<usize>() as f64 / best_epochs.len() as f64;
                let epochs = mean.round() as usize;
                monitor.observer.borrow_mut().refit(epochs);
                let plan = plan_of(candidate, &auto.portfolio.groupings);
                let data = Datasets { train: all, valid };
                match refit_candidate(plan, data, how.with(candidate), epochs, monitor)? {
                    Some(member) => again.push(member),
                    None => break,
                }
            }
            match again.len() == members.len() {
                true => (members, refitted) = (again, true),
                false => {
                    stopped = if monitor.timed_out.get() { Stopped::Timeout } else { Stopped::Observer };
                    (how.note)("stopped: the model without the rows held out is what is kept".to_owned());
                }
            }
        } else if refits {
            (how.note)("not learned again from all rows: there was no time for it".to_owned());
        }
        let learned_from: &Dataset = if refitted { all } else { &first };
        let valid: Dataset = valid.clone().into();
        let learning_seconds = begin.elapsed().as_secs_f64();
        let facts = [facts_of(learned_from), facts_of(&valid)];
        let stop = || monitor.stop();
        let mut models = Vec::new();
        for (member, &number) in members.iter().zip(&choice.members) {
            let Tried { candidate, history, valid: valid_ll, best_epochs, .. } = &auto.tried[number];
            let learned = Learned {
                model: member.clone(),
                settings: candidate.settings.clone(),
                facts: facts.clone(),
                all: refitted.then(|| all.clone()),
            };
            let results = Results {
                best_epoch: best_epochs[0],
                // Of the average, below.
                train_ll: *valid_ll,
                valid_ll: *valid_ll,
                test_ll: None,
                evaluated: None,
                history: history.clone(),
            };
            let file =
                learned.file(&first, &[], &results, how.with(candidate), !self.without_edges, &stop)?;
            models.push(Model::from(file));
        }
        let leader = &auto.tried[choice.members[0]];
        let mut model = match &models[..] {
            [_] => models.remove(0),
            several => Model::ensemble(several, &choice.weights)?,
        };
        let train_mean = observed(&model, &distinct(learned_from)?, &stop)?;
        let test_mean = test.map(|test| observed(&model, test, &stop)).transpose()?;
        let evaluated = Evaluated {
            train: train_mean.share,
            valid: 1.0,
            test: test_mean.as_ref().map(|found| found.share),
        };
        let evaluated = Some(evaluated).filter(Evaluated::is_partial);
        let results = Results {
            best_epoch: leader.best_epochs[0],
            train_ll: train_mean.mean,
            valid_ll: choice.valid,
            test_ll: test_mean.as_ref().map(|found| found.mean),
            evaluated,
            history: leader.history.clone(),
        };
        model.say_results(results.clone());
        let weight_of = |number: usize| {
            let place = choice.members.iter().position(|&member| member == number);
            place.map_or(0.0, |place| choice.weights[place])
        };
        let candidates: Vec<CandidateReport> = auto
            .tried
            .iter()
            .enumerate()
            .map(|(number, tried)| CandidateReport::new(tried, weight_of(number)))
            .collect();
        let of_trees = members.iter().all(Member::is_of_trees);
        let report = FitReport {
            train: facts[0].clone(),
            valid: match folds.count() {
                1 => facts[1].clone(),
                _ => facts_of(all),
            },
            test_rows: test.map(|test| test.rows()),
            held_out: held_out.is_some(),
            folds: folds.count(),
            train_ll: results.train_ll,
            valid_ll: results.valid_ll,
            test_ll: results.test_ll,
            test_standard_error: test_mean.map(|found| found.standard_error).filter(|error| *error > 0.0),
            evaluated,
            estimated: [train, &*valid].map(|data| !data.is_complete() && !of_trees),
            best_epoch: results.best_epoch,
            epochs: leader.history.len() - 1,
            history: results.history,
            trials: Vec::new(),
            groupings: auto.portfolio.groupings.clone(),
            candidates,
            gain: choice.gain,
            refit: refitted,
            stopped,
            device: if of_trees { "cpu".to_owned() } else { how.device.to_string() },
            settings: leader.candidate.settings.clone(),
            learning_seconds,
            seconds: begin.elapsed().as_secs_f64(),
        };
        Ok(Fitted { model, report, failure: None, unfinished: None })
    }
}

/// Where there was no time for all folds of anything: what there is.
fn only_part(tried: &[Tried]) -> Option<Choice> {
    let best = (0..tried.len())
        .reduce(|best, next| if tried[next].valid > tried[best].valid { next } else { best })?;
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
