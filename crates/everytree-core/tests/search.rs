//! Fits one after the other: what is tried next, put aside and taken up at any point, on any number of threads.

mod every;

use everytree_core::data::Schema;
use everytree_core::data::{Dataset, Table};
use everytree_core::file::{Checkpoint, TableFacts};
use everytree_core::forest::Cpu;
use everytree_core::learn::{
    Data, Datasets, Ended, LearnError, Plan, Progress, Search, SearchObserver, State, Trial, TrialResult,
    edge_posteriors, evaluate, evaluate_until,
};
use everytree_core::model::{
    Component, Family, HowMany, LEAST_GAIN, Learnable, Mixture, Optimiser, Pairs, ParamsView, Regularisation,
    Settings, Start, UnseenStates,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::ops::ControlFlow;

const STATES: [usize; 6] = [2, 2, 2, 3, 2, 2];

const FAMILIES: [(Family, Optimiser); 7] = [
    (Family::Directed, Optimiser::Adam),
    (Family::Directed, Optimiser::Em),
    (Family::Moat, Optimiser::Adam),
    (Family::Independent, Optimiser::Em),
    (Family::ChowLiu, Optimiser::Em),
    (Family::Hclt, Optimiser::Em),
    (Family::Hclt, Optimiser::Adam),
];

/// Two kinds of rows; the first three columns are one in disguise, and the last copies the fifth, mostly.
fn rows(count: usize, seed: u64) -> Table {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut table = Table::new(&STATES);
    for _ in 0..count {
        let kind = rng.random_bool(0.4);
        let color = if rng.random_bool(0.7) { usize::from(kind) } else { rng.random_range(0..3) };
        let size =
            if rng.random_bool(0.6) { (color + usize::from(kind)) % 3 } else { rng.random_range(0..3) };
        let flag = rng.random_bool(if kind { 0.8 } else { 0.3 });
        let copy = flag != rng.random_bool(0.1);
        let one_hot = [0, 1, 2].map(|state| u16::from(color == state));
        table.push(&[one_hot[0], one_hot[1], one_hot[2], size as u16, u16::from(flag), u16::from(copy)]);
    }
    table
}

fn start(family: Family) -> Start {
    Start { family, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 2 }
}

fn plan(family: Family, components: HowMany) -> Plan {
    let groupings = vec![Vec::new(), vec![vec![0, 1, 2]]];
    Plan { groupings, components, hidden: HowMany::Just(3), pilot_epochs: 2, start: start(family) }
}

fn settings(family: Family, optimiser: Optimiser) -> Settings {
    Settings {
        epochs: 4,
        batch_size: 64,
        // Trees have no average.
        ema: if family == Family::ChowLiu { None } else { Some(0.9) },
        optimiser,
        regularisation: Regularisation { shrinkage: 0.5, laplace: 0.2 },
        patience: None,
        ..Family::Directed.settings(STATES.len())
    }
}

fn dataset(table: &Table) -> Dataset {
    Dataset::anonymous(&STATES, table.clone()).unwrap()
}

fn run(
    search: &mut Search,
    settings: &Settings,
    watch: &mut dyn SearchObserver,
) -> Result<Ended, LearnError> {
    let (train, valid) = (rows(500, 1), rows(200, 2));
    let (train, valid) = (dataset(&train), dataset(&valid));
    let rows = Datasets { train: &train, valid: &valid };
    search.run(rows, settings, &Cpu::<f32>::new(), &Cpu::<f64>::new().keeping(0), watch)
}

/// Breaks off after so many batches, or epochs of all fits.
struct Impatient {
    batches: usize,
    epochs: usize,
    seen: Option<Search>,
}

impl SearchObserver for Impatient {
    fn batch(&mut self, _: &Trial, _: &Progress<'_>) -> ControlFlow<()> {
        self.batches -= 1;
        if self.batches == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn epoch(&mut self, search: &Search) -> ControlFlow<()> {
        self.seen = Some(search.clone());
        self.epochs -= 1;
        if self.epochs == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_search_that_was_put_aside_ends_like_one_that_was_not() {
    for (family, optimiser) in FAMILIES {
        let settings = settings(family, optimiser);
        let fresh = || Search::new(plan(family, HowMany::UpTo(2)));
        let mut whole = fresh();
        assert_eq!(run(&mut whole, &settings, &mut ()).unwrap(), Ended::Done);
        // In the first look, in the second, in the first fit, and in the second one after an epoch. Where one component is
        // counted and not learned, the second fit is all there is to break off.
        let places = match family.spec().counted {
            true => [(3, 99), (12, 99), (21, 99), (999, 5)],
            false => [(3, 99), (21, 99), (50, 99), (999, 14)],
        };
        for (batches, epochs) in places {
            let mut watch = Impatient { batches, epochs, seen: None };
            let mut broken = fresh();
            assert_eq!(run(&mut broken, &settings, &mut watch).unwrap(), Ended::Stopped);
            // What was shown last is what is kept, and what a file holds.
            assert_eq!(watch.seen, Some(broken.clone()));
            let facts = TableFacts { rows: 1, unique_rows: 1, fingerprint: String::new() };
            let checkpoint = Checkpoint {
                search: broken,
                settings: settings.clone(),
                precision: "f32".to_owned(),
                schema: Schema::anonymous(&STATES),
                train: facts.clone(),
                valid: facts,
                holdout: None,
                choosing: None,
            };
            let read = Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap().unwrap()).unwrap();
            assert_eq!(read, checkpoint);
            let mut search = read.search;
            assert_eq!(run(&mut search, &settings, &mut ()).unwrap(), Ended::Done);
            assert_eq!(search, whole, "{family:?} {optimiser:?} {batches} {epochs}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut search = Search::new(plan(Family::Directed, HowMany::Just(3)));
            run(&mut search, &settings(Family::Directed, Optimiser::Adam), &mut ()).unwrap();
            search
        })
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(5));
}

/// What is learned normalises over rows of columns, those that were never seen included.
#[test]
fn what_is_learned_sums_to_one_over_all_rows() {
    let mut all = Table::new(&STATES);
    every::row(&STATES).iter().for_each(|row| all.push(row));
    for (family, optimiser) in FAMILIES {
        let mut search = Search::new(Plan {
            groupings: vec![vec![vec![0, 1, 2], vec![3, 5]]],
            ..plan(family, HowMany::Just(2))
        });
        run(&mut search, &settings(family, optimiser), &mut ()).unwrap();
        let found = search.best_so_far().unwrap().unwrap();
        assert!(found.history.last().unwrap().valid > found.history[0].valid);
        let data = found.model.blocks().unique(&dataset(&all));
        let evaluated = evaluate(found.model.mixture(), &data, &Cpu::<f64>::new()).unwrap();
        let sum: f64 =
            evaluated.log_likelihood.iter().zip(&data.weights).map(|(log, weight)| weight * log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{family:?}: {sum}");
        let single = evaluate(found.model.mixture(), &data, &Cpu::<f32>::new()).unwrap();
        for (double, single) in evaluated.log_likelihood.iter().zip(&single.log_likelihood) {
            assert!((double - single).abs() < 1e-4, "{family:?}: {double} {single}");
        }
        // Every component adds the edges of its rows: n in a rooted forest (one may be a root), n − 1 in a tree.
        let train = found.model.blocks().unique(&dataset(&rows(500, 1)));
        let edges = edge_posteriors(found.model.mixture(), &train, &Cpu::<f64>::new()).unwrap();
        let blocks = found.model.blocks().blocks().len() as f64;
        let expected = if family == Family::Moat { blocks - 1.0 } else { blocks };
        assert!((edges.iter().flatten().sum::<f64>() - expected).abs() < 1e-6);
    }
}

/// What no row shows is neither forgotten nor learned away: it keeps the probability that states seen once suggest, in
/// every family, whatever the way of learning, and whatever else is in the row.
#[test]
fn combinations_that_were_never_seen_keep_their_probability() {
    let train = rows(500, 1);
    for (family, optimiser) in FAMILIES {
        // Of the first block, three of eight combinations were seen, each often.
        let plan =
            Plan { groupings: vec![vec![vec![0, 1, 2], vec![3, 5]]], ..plan(family, HowMany::Just(2)) };
        let mut search = Search::new(plan);
        run(&mut search, &Settings { epochs: 20, ..settings(family, optimiser) }, &mut ()).unwrap();
        let found = search.best_so_far().unwrap().unwrap();
        let blocks = found.model.blocks();
        assert_eq!((blocks.blocks()[0].states(), blocks.blocks()[0].unseen()), (4, 5));
        let unique = blocks.unique(&dataset(&train));
        let unseen = UnseenStates::find(&blocks.states(), &unique.table, &unique.weights, |_, _| true);
        assert_eq!(unseen, [UnseenStates { variable: 0, states: vec![3], probability: 0.5 / 500.5 }]);
        let probability = in_state_three(found.model.mixture());
        assert!(
            (probability / unseen[0].probability - 1.0).abs() < 1e-9,
            "{family:?} {optimiser:?}: {probability}"
        );
    }
}

/// The probability that the first variable is in state 3.
fn in_state_three(mixture: &Mixture<Component>) -> f64 {
    let mut all = Table::new(mixture.states());
    every::row(mixture.states()).iter().filter(|row| row[0] == 3).for_each(|row| all.push(row));
    let evaluated = evaluate(mixture, &all.unique(), &Cpu::<f64>::new()).unwrap();
    evaluated.log_likelihood.iter().map(|log| log.exp()).sum()
}

/// So does the average of the parameters between two epochs, which is what stays when all rows have been learned from.
#[test]
fn averages_keep_the_probability_of_what_was_never_seen() {
    for family in [Family::Directed, Family::Moat] {
        let states = [4, 3, 2];
        let mut table = Table::new(&states);
        (0..200u16).for_each(|row| table.push(&[row % 7 % 3, row % 3, row % 5 % 2]));
        let rows = table.unique();
        let settings = Settings { ema: Some(0.9), epochs: 3, ..settings(family, Optimiser::Adam) };
        let mut state = State::new(start(family).model(&states, &rows, 2, 1).unwrap());
        let data = Data { train: &rows, valid: &rows };
        state.run(data, &settings, &Cpu::<f64>::new(), &Cpu::<f64>::new(), &mut ()).unwrap();
        let mut averaged = Mixture::clone(&state.model);
        averaged.set(state.average.as_ref().as_ref().unwrap()).unwrap();
        let probability = in_state_three(&averaged);
        assert!((probability / (0.5 / 200.5) - 1.0).abs() < 1e-9, "{family:?}: {probability}");
    }
}

#[test]
fn validation_decides_what_comes_next() {
    let plan = plan(Family::Directed, HowMany::UpTo(8));
    let tried = |grouping, components, pilot, valid| TrialResult {
        trial: Trial { grouping, components, hidden: 3, pilot },
        valid,
        best_epoch: 1,
        epochs: 2,
    };
    let looks = [tried(0, 1, true, -3.0), tried(1, 1, true, -2.0)];
    let next = |more: &[TrialResult]| plan.next(&[&looks[..], more].concat());
    assert_eq!(plan.next(&[]), Some(Trial { grouping: 0, components: 1, hidden: 3, pilot: true }));
    assert_eq!(plan.next(&looks[..1]), Some(Trial { grouping: 1, components: 1, hidden: 3, pilot: true }));
    // The second grouping was better; one component, then two, four, as long as it pays.
    assert_eq!(next(&[]), Some(Trial { grouping: 1, components: 1, hidden: 3, pilot: false }));
    let one = tried(1, 1, false, -1.9);
    assert_eq!(next(&[one]), Some(Trial { grouping: 1, components: 2, hidden: 3, pilot: false }));
    let two = tried(1, 2, false, -1.8);
    assert_eq!(next(&[one, two]), Some(Trial { grouping: 1, components: 4, hidden: 3, pilot: false }));
    assert_eq!(next(&[one, two, tried(1, 4, false, -1.8)]), None);
    assert_eq!(
        next(&[one, two, tried(1, 4, false, -1.8 + 0.9 * LEAST_GAIN)]),
        None,
        "not worth twice as much"
    );
    let four = tried(1, 4, false, -1.7);
    assert_eq!(next(&[one, two, four]), Some(Trial { grouping: 1, components: 8, hidden: 3, pilot: false }));
    assert_eq!(next(&[one, two, four, tried(1, 8, false, -1.6)]), None, "no more than eight");
    let just = Plan { groupings: vec![Vec::new()], components: HowMany::Just(5), ..plan.clone() };
    assert_eq!(just.next(&[]), Some(Trial { grouping: 0, components: 5, hidden: 3, pilot: false }));
    assert_eq!(just.next(&[tried(0, 5, false, -1.0)]), None);
}

/// Columns in disguise are better taken together, and the search finds out.
#[test]
fn the_search_prefers_what_validates_better() {
    let mut search = Search::new(plan(Family::Moat, HowMany::Just(1)));
    run(&mut search, &settings(Family::Directed, Optimiser::Adam), &mut ()).unwrap();
    let [columns, block, fit] = &search.results[..] else { panic!("two looks and a fit") };
    assert!(block.valid > columns.valid && fit.trial.grouping == 1);
    assert_eq!(search.best.unwrap().model.blocks().blocks().len(), 4);
}

#[test]
fn expectation_maximisation_of_the_papers_family_is_refused() {
    let mut search = Search::new(plan(Family::Moat, HowMany::Just(1)));
    assert_eq!(
        run(&mut search, &settings(Family::Moat, Optimiser::Em), &mut ()),
        Err(LearnError::NoClosedForm)
    );
}

/// Says that it is time to end after it was asked so often, whatever was under way.
struct Late {
    asked: std::cell::Cell<usize>,
    most: usize,
}

impl SearchObserver for Late {
    fn stop(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() > self.most
    }

    fn batch(&mut self, _: &Trial, _: &Progress<'_>) -> ControlFlow<()> {
        if self.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Wherever a search is ended, there is a model that is a distribution, and at most one question later.
#[test]
fn a_search_can_be_ended_anywhere_and_has_a_model() {
    for (family, optimiser) in FAMILIES {
        let settings = settings(family, optimiser);
        let mut ended = Ended::Stopped;
        for most in (0..).step_by(7) {
            let mut late = Late { asked: 0.into(), most };
            let mut search = Search::new(plan(family, HowMany::UpTo(2)));
            ended = run(&mut search, &settings, &mut late).unwrap();
            let found = search.best_so_far().unwrap().expect("a model");
            let mut all = Table::new(&STATES);
            every::row(&STATES).iter().for_each(|row| all.push(row));
            let all = found.model.blocks().unique(&dataset(&all));
            let evaluated = evaluate(found.model.mixture(), &all, &Cpu::<f64>::new()).unwrap();
            let sum: f64 =
                evaluated.log_likelihood.iter().zip(&all.weights).map(|(log, rows)| rows * log.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{family:?} {most}: {sum}");
            if ended != Ended::Stopped {
                break;
            }
        }
        assert_eq!(ended, Ended::Done, "{family:?}");
    }
}

/// What a mean is over where there was no time for all rows, and that pieces change nothing.
#[test]
fn an_evaluation_can_be_ended_early() {
    let data =
        rows(3000, 4).unique_weighted(&(0..3000).map(|row| 1.0 + (row % 3) as f64).collect::<Vec<_>>());
    let model = start(Family::Directed).model(&STATES, &data, 3, 1).unwrap();
    let cpu = Cpu::<f64>::new();
    let whole = evaluate(&model, &data, &cpu).unwrap();
    let until = evaluate_until(&model, &data, &cpu, &|| false).unwrap();
    assert_eq!((until.mean, until.share), (whole.mean, 1.0), "to the bit");
    // Rows that take long: 600 of 300 columns, about a second on two cores.
    let mut rng = Pcg64::seed_from_u64(8);
    let mut table = Table::new(&[2; 300]);
    (0..600).for_each(|_| table.push(&std::array::from_fn::<u16, 300, _>(|_| rng.random_range(0..2))));
    let data = table.unique();
    let model = start(Family::Directed).model(&[2; 300], &data, 1, 1).unwrap();
    let part = evaluate_until(&model, &data, &cpu, &|| true).unwrap();
    assert!(part.share > 0.0 && part.share <= 1.0, "{part:?}");
    // Coins: about ln 2 a column, whichever rows there was time for.
    assert!((part.mean / 300.0 + std::f64::consts::LN_2).abs() < 0.1, "{part:?}");
}
