//! Learning once more from the rows held out: by itself for every family, never from rows that were given, and to the same bits
//! wherever it was interrupted.

use everytree::{Checkpoint, Dataset, Epoch, Fit, Observer, Stopped, Trial, families};
use std::ops::ControlFlow;

/// Three columns that follow each other, more or less.
fn survey(rows: usize) -> Dataset {
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let (one, two) = (row % 3, (row * 7 + row / 5) % 11);
        a.push(Some(["x", "y", "z"][one]));
        b.push(Some(["x", "y", "z"][if two < 7 { one } else { two % 3 }]));
        c.push(Some(if (one + two) % 4 == 0 { "yes" } else { "no" }));
    }
    Dataset::from_columns([("a", a), ("b", b), ("c", c)]).unwrap()
}

/// Ends the work at an epoch of the refit, or of what comes before.
struct Stop {
    refitting: bool,
    epochs: usize,
    at: usize,
    in_refit: bool,
}

impl Observer for Stop {
    fn epoch(&mut self, _: &Trial, _: &Epoch) -> ControlFlow<()> {
        if self.refitting == self.in_refit {
            self.epochs += 1;
            if self.epochs >= self.at {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn refit(&mut self, _: usize) {
        self.refitting = true;
    }
}

#[test]
fn every_family_learns_from_all_rows_in_the_end() {
    let data = survey(300);
    let (train, valid) = data.split(0.2, 1);
    for (family, _) in families() {
        let fit = Fit::new().family(family).epochs(3);
        let (by_itself, declined) = (fit.clone(), fit.clone().refit(false));
        let [by_itself, declined] = [by_itself, declined].map(|fit| fit.run_with(&data, &mut ()).unwrap());
        assert!(by_itself.report.refit && by_itself.report.train.rows == 300, "{}", family);
        assert!(!declined.report.refit && declined.report.train.rows == 270, "{}", family);
        let difference = by_itself.report.valid_ll - declined.report.valid_ll;
        assert!(difference.abs() < 1e-9, "{}: from before", family);
        let given = fit.valid(valid.clone()).run_with(&train, &mut ()).unwrap();
        assert!(!given.report.refit && given.report.train.rows == 240, "{}", family);
    }
}

#[test]
fn a_refit_goes_on_to_the_same_bits() {
    let data = survey(300);
    let folder = tempfile::tempdir().unwrap();
    for (number, fit) in [
        Fit::new().family("moat").epochs(8).batch_size(32),
        // Ends by patience.
        Fit::new().family("directed").epochs(200).patience(3).batch_size(32).learning_rate(0.3),
        Fit::new().family("directed").components(2).epochs(6).ema(0.9).batch_size(64),
        Fit::new().family("hclt").hidden(4).epochs(6),
    ]
    .into_iter()
    .enumerate()
    {
        let whole = fit.run_with(&data, &mut ()).unwrap();
        assert!(whole.report.refit, "{number}");
        let expected = whole.model.to_bytes().unwrap();
        for (in_refit, at) in [(false, 2), (true, 1), (true, 2)] {
            let path = folder.path().join(format!("{number}-{in_refit}-{at}"));
            let mut stop = Stop { refitting: false, epochs: 0, at, in_refit };
            let cut = fit.clone().checkpoint(&path).run_with(&data, &mut stop).unwrap();
            if cut.report.stopped != Stopped::Observer {
                // The best epoch came before that.
                continue;
            }
            assert!(!cut.report.refit && cut.report.train.rows == 270, "{number}: nothing half learned");
            let checkpoint = Checkpoint::load(&path).unwrap();
            let resumed = Fit::new().resume(checkpoint).run_with(&data, &mut ()).unwrap();
            assert!(resumed.report.refit, "{number}");
            assert!(
                resumed.model.to_bytes().unwrap() == expected,
                "{number}, in the refit: {in_refit}, {at}"
            );
        }
    }
}
