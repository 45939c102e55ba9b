//! `family = auto`: the same model whatever the threads, the interruptions and the load; never below a candidate; a distribution.

use everytree::{
    Checkpoint, Dataset, Effort, Epoch, Fit, Fitted, MissingValues, Model, Observer, ReadOptions, Stopped,
    Trial, Trying,
};
use everytree_core::data::Table;
use std::ops::ControlFlow;
use std::path::Path;

/// Random numbers of a linear congruence.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Five columns: two classes that nobody sees, and a chain within each.
fn survey(rows: usize, seed: u64) -> Dataset {
    const NAMES: [&str; 3] = ["low", "middle", "high"];
    let mut chance = Chance(seed);
    let mut columns = vec![Vec::new(); 5];
    for _ in 0..rows {
        let class = chance.next(2);
        let mut last = chance.next(3);
        for (place, column) in columns.iter_mut().enumerate() {
            if chance.next(10) < 4 {
                last = (last + class + u64::from(place == 3)) % 3;
            }
            column.push(Some(NAMES[last as usize]));
        }
    }
    Dataset::from_columns(["a", "b", "c", "d", "e"].into_iter().zip(columns)).unwrap()
}

/// Five columns, each mostly like the last: a tree, which counts tell.
fn chain(rows: usize, seed: u64) -> Dataset {
    let mut chance = Chance(seed);
    let mut columns = vec![Vec::new(); 5];
    for _ in 0..rows {
        let mut last = chance.next(4);
        for column in &mut columns {
            if chance.next(10) < 3 {
                last = chance.next(4);
            }
            column.push(Some(["a", "b", "c", "d"][last as usize]));
        }
    }
    Dataset::from_columns(["a", "b", "c", "d", "e"].into_iter().zip(columns)).unwrap()
}

fn fit() -> Fit {
    Fit::new().family("auto").effort(Effort::Quick).folds(2).seed(3)
}

/// Every row that there can be has a probability, and they add up to 1.
fn total(model: &Model) -> f64 {
    let states = model.schema().states();
    let mut table = Table::new(&states);
    for number in 0..states.iter().product::<usize>() {
        let mut rest = number;
        let row: Vec<u16> = states
            .iter()
            .map(|&count| {
                let state = rest % count;
                rest /= count;
                state as u16
            })
            .collect();
        table.push(&row);
    }
    let rows = Dataset::from_codes(model.schema().clone(), table).unwrap();
    model.score(&rows).unwrap().log_likelihoods.iter().map(|row| row.value.exp()).sum()
}

#[test]
fn the_choice_is_a_distribution_and_never_below_a_candidate() {
    let (train, test) = survey(700, 1).split(0.3, 0);
    let Fitted { model, report, .. } = fit().test(test.clone()).run_with(&train, &mut ()).unwrap();
    assert!((total(&model) - 1.0).abs() < 1e-9, "{}", total(&model));
    let families: Vec<&str> = report.candidates.iter().map(|candidate| candidate.family).collect();
    for family in ["independent", "chow-liu", "mixture-of-trees", "hclt", "directed"] {
        assert!(families.contains(&family), "{family} is not in {families:?}");
    }
    for candidate in report.candidates.iter().filter(|candidate| !candidate.given_up) {
        assert!(report.valid_ll >= candidate.valid_ll - 1e-9, "{candidate:?}");
    }
    let weights: f64 = report.candidates.iter().map(|candidate| candidate.weight).sum();
    assert!((weights - 1.0).abs() < 1e-9 && report.refit && report.folds == 2);
    assert_eq!((report.stopped, report.train.rows), (Stopped::Done, 490));
    // The figure is that of `score`, and better than that of columns alone.
    let score = model.score(&test).unwrap();
    assert!((report.test_ll.unwrap() - score.mean).abs() < 1e-9);
    let alone = Fit::new().family("independent").run(&train).unwrap().score(&test).unwrap();
    assert!(score.mean > alone.mean + 0.1, "{} {}", score.mean, alone.mean);
    // The file has it all.
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
}

#[test]
fn threads_change_nothing() {
    let data = survey(300, 2);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit().run(&data).unwrap().to_bytes().unwrap())
    };
    assert_eq!(bytes(1), bytes(3));
}

/// Ends after so many epochs, of whatever candidate.
struct After(usize);

impl Observer for After {
    fn epoch(&mut self, _: &Trial, _: &Epoch) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// How many epochs there are in all.
#[derive(Default)]
struct Counter(usize);

impl Observer for Counter {
    fn epoch(&mut self, _: &Trial, _: &Epoch) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Ends as the fit of this number begins, before it has come to anything; refits count too.
struct AtTheBeginningOf {
    left: usize,
    stop: bool,
}

impl AtTheBeginningOf {
    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.stop |= self.left == 0;
    }
}

impl Observer for AtTheBeginningOf {
    fn trying(&mut self, _: &Trying<'_>) {
        self.count();
    }

    fn refit(&mut self, _: usize) {
        self.count();
    }

    fn stop(&self) -> bool {
        self.stop
    }
}

/// Between two fits a checkpoint is of the one or of the other, and not half of each.
#[test]
fn stopped_between_two_fits_it_goes_on_to_the_same_model() {
    // A single tree, which is counted and not learned in epochs, is among the members.
    let data = chain(1000, 4);
    let mut counter = AtTheBeginningOf { left: usize::MAX, stop: false };
    let whole = fit().run_with(&data, &mut counter).unwrap();
    assert!(whole.report.candidates.iter().any(|tried| tried.family == "chow-liu" && tried.weight > 0.0));
    let whole = whole.model.to_bytes().unwrap();
    let fits = usize::MAX - counter.left;
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("half.way");
    for left in [2, 3, fits / 2, fits - 3, fits - 2, fits - 1, fits] {
        let _ = std::fs::remove_file(path);
        fit().checkpoint(path).run_with(&data, &mut AtTheBeginningOf { left, stop: false }).unwrap();
        let resumed = Fit::new().resume(Checkpoint::load(path).unwrap()).run_with(&data, &mut ()).unwrap();
        assert_eq!(resumed.report.stopped, Stopped::Done, "{left} of {fits}");
        assert!(resumed.model.to_bytes().unwrap() == whole, "{left} of {fits}");
    }
}

/// Stopped wherever it is, in the first candidate, in the middle, while members learn once more: it goes on to the same bytes.
#[test]
fn what_was_put_aside_goes_on_to_the_same_model() {
    let data = survey(300, 4);
    let mut counter = Counter::default();
    let whole = fit().run_with(&data, &mut counter).unwrap().model.to_bytes().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("half.way");
    let epochs = counter.0;
    for stop in [1, 2, 5, epochs / 3, epochs / 2, epochs - 40, epochs - 3, epochs - 1] {
        let _ = std::fs::remove_file(path);
        let stopped = fit().checkpoint(path).run_with(&data, &mut After(stop)).unwrap();
        assert_eq!(stopped.report.stopped, Stopped::Observer, "{stop} of {epochs}");
        // What there is by then is a model.
        assert!((total(&stopped.model) - 1.0).abs() < 1e-9);
        let checkpoint = Checkpoint::load(path).unwrap();
        assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap().unwrap()).unwrap(), checkpoint);
        let resumed = Fit::new().resume(checkpoint).run_with(&data, &mut ()).unwrap();
        assert_eq!(resumed.report.stopped, Stopped::Done);
        assert!(resumed.model.to_bytes().unwrap() == whole, "{stop} of {epochs}");
    }
    // Other rows are refused.
    let checkpoint = Checkpoint::load(path).unwrap();
    let error = Fit::new().resume(checkpoint).run(&survey(300, 5)).unwrap_err().to_string();
    assert!(error.contains("other rows"), "{error}");
}

/// Rows are stored only by whoever asks for it. Then the kernel is the last candidate, and everything else holds as without it.
#[test]
fn rows_are_stored_by_choice() {
    // Rows that come again and again, which no tree has learned: every second one is one of sixty at random.
    let mut chance = Chance(12);
    let known: Vec<Vec<u64>> = (0..60).map(|_| (0..8).map(|_| chance.next(3)).collect()).collect();
    let mut columns = vec![Vec::new(); 8];
    for _ in 0..400 {
        let from = (chance.next(2) == 0).then(|| &known[chance.next(60) as usize]);
        for (place, column) in columns.iter_mut().enumerate() {
            let state = from.map_or_else(|| chance.next(3), |row| row[place]);
            column.push(Some(["x", "y", "z"][state as usize]));
        }
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let data = Dataset::from_columns(names.into_iter().zip(columns)).unwrap();
    let (train, test) = data.split(0.25, 0);
    let without = fit().run_with(&train, &mut ()).unwrap();
    assert_eq!(without.model.stored_rows(), None);
    assert!(without.report.candidates.iter().all(|candidate| candidate.family != "kernel"));
    let mut counter = Counter::default();
    let with = fit().kernel(true).run_with(&train, &mut counter).unwrap();
    assert_eq!(with.report.candidates.last().unwrap().family, "kernel");
    assert!(with.report.kernel_gain.is_none() && with.model.stored_rows().is_some());
    assert!((total(&with.model) - 1.0).abs() < 1e-9);
    // What it was said to gain, as far as these few rows tell.
    let (gain, error) = without.report.kernel_gain.unwrap();
    let mean = |model: &Model| model.score(&test).unwrap().mean;
    let found = mean(&with.model) - mean(&without.model);
    assert!(gain > error && found > 0.0 && (gain - found).abs() < 5.0 * error, "{gain} {error} {found}");
    // The same on any number of threads, and wherever it was put aside.
    let bytes = with.model.to_bytes().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert!(pool.install(|| fit().kernel(true).run(&train).unwrap().to_bytes().unwrap()) == bytes);
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("half.way");
    for stop in [counter.0 / 2, counter.0 - 5, counter.0 - 1] {
        let _ = std::fs::remove_file(path);
        fit().kernel(true).checkpoint(path).run_with(&train, &mut After(stop)).unwrap();
        let resumed = Fit::new().resume(Checkpoint::load(path).unwrap()).run_with(&train, &mut ()).unwrap();
        assert!(resumed.model.to_bytes().unwrap() == bytes && resumed.report.kernel_gain.is_none(), "{stop}");
    }
    // Alone, and where it makes no sense.
    let alone = Fit::new().family("kernel").run(&train).unwrap();
    assert!((total(&alone) - 1.0).abs() < 1e-9 && alone.stored_rows().is_some());
    for (fit, words) in [
        (Fit::new().family("kernel").components(2), "a kernel has one"),
        (Fit::new().family("kernel").laplace(0.0), "must be positive"),
        (Fit::new().family("directed").kernel(true), "goes with"),
    ] {
        let error = fit.run(&train).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let path = folder.path().join("gaps.csv");
    std::fs::write(&path, format!("a,b\n{}", "p,q\nq,p\n,q\np,\n".repeat(20))).unwrap();
    let gaps = ReadOptions::default().missing(MissingValues::Marginalise).open(&path).unwrap();
    for fit in [Fit::new().family("kernel"), fit().kernel(true)] {
        let error = fit.run(&gaps).unwrap_err().to_string();
        assert!(error.contains("a kernel stores rows"), "{error}");
    }
}

/// Rows to validate with that were given are never learned from; nor are those held out, if that is declined.
#[test]
fn rows_to_validate_with_stay_apart() {
    let (train, valid) = survey(400, 6).split(0.25, 0);
    let report = fit().valid(valid.clone()).run_with(&train, &mut ()).unwrap().report;
    assert!(!report.refit && report.folds == 1 && report.train.rows == 300 && report.valid.rows == 100);
    let report = fit().refit(false).run_with(&train, &mut ()).unwrap().report;
    assert!(!report.refit && report.folds == 1 && report.train.rows == 270);
}

/// Weights count: rows of weight 2 are rows that are there twice.
#[test]
fn weights_are_taken() {
    let data = survey(300, 8);
    let weighted = data.clone().with_weights(vec![2.0; 300]).unwrap();
    let Fitted { report, model, .. } = fit().run_with(&weighted, &mut ()).unwrap();
    assert!(report.valid_ll.is_finite() && (total(&model) - 1.0).abs() < 1e-9);
}

/// What the choice makes, nobody else may say.
#[test]
fn options_of_families_are_refused() {
    let data = survey(50, 9);
    for (fit, option) in [
        (fit().components(2), "components"),
        (fit().epochs(3), "epochs"),
        (fit().learning_rate(0.1), "learning_rate"),
    ] {
        let error = fit.run(&data).unwrap_err().to_string();
        assert!(error.contains(option) && error.contains("family = auto"), "{error}");
    }
}

/// Few rows are no reason to fail.
#[test]
fn tiny_tables_have_a_model() {
    for rows in [2, 3, 7] {
        let model = fit().run(&survey(rows, rows as u64)).unwrap();
        assert!((total(&model) - 1.0).abs() < 1e-9, "{rows}");
    }
}

/// Checkpoints whose parts do not fit together are refused, and none makes a panic.
#[test]
fn damaged_checkpoints_are_refused() {
    let data = survey(120, 10);
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("half.way");
    fit().checkpoint(path).run_with(&data, &mut After(60)).unwrap();
    let whole = Checkpoint::load(path).unwrap();
    let refused = |change: &dyn Fn(&mut everytree_core::learn::Choosing)| {
        let mut checkpoint = whole.clone();
        change(checkpoint.choosing.as_mut().unwrap());
        match Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap().unwrap()) {
            Err(_) => true,
            Ok(read) => Fit::new().resume(read).run(&data).is_err(),
        }
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|choosing| choosing.portfolio.groupings.clear()));
    assert!(refused(&|choosing| choosing.portfolio.folds = 1));
    assert!(refused(&|choosing| choosing.portfolio.states.clear()));
    assert!(refused(&|choosing| choosing.tried[0].candidate.grouping = 1000));
    assert!(refused(&|choosing| choosing.tried[1].log_p.push(0.0)));
    assert!(refused(&|choosing| choosing.tried.iter_mut().for_each(|tried| tried.log_p.truncate(3))));
    assert!(refused(&|choosing| choosing.tried[0].best_epochs.clear()));
    assert!(refused(&|choosing| {
        let under_way = choosing.under_way.as_mut().unwrap();
        under_way.best_epochs.extend([0; 9]);
    }));
    // Other folds are not what it was made with.
    let error = Fit::new().resume(whole.clone()).valid(data.clone()).run(&data).unwrap_err().to_string();
    assert!(error.contains("resume"), "{error}");
}
