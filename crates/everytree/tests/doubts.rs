//! What should make a reader of the figures careful is said in one line each, and only where it is so.

use everytree::{Dataset, Effort, Fit, Observer};

#[derive(Default)]
struct Doubts(Vec<String>);

impl Observer for Doubts {
    fn doubt(&mut self, doubt: &str) {
        self.0.push(doubt.to_owned());
    }
}

fn doubts(fit: Fit, data: &Dataset) -> Vec<String> {
    let mut doubts = Doubts::default();
    fit.run_with(data, &mut doubts).unwrap();
    doubts.0
}

/// Columns of so many labels: the second mostly follows the first, or nothing follows anything.
fn table(rows: usize, labels: u64, ties: bool) -> Dataset {
    let mut state = 7u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rows {
        let first = next(labels);
        let second = if ties && next(10) < 8 { first } else { next(labels) };
        for (column, value) in columns.iter_mut().zip([first, second, next(labels)]) {
            column.push(format!("v{value}"));
        }
    }
    let cells = columns.iter().map(|column| column.iter().map(|cell| Some(cell.as_str())).collect());
    Dataset::from_columns(["a", "b", "c"].into_iter().zip(cells)).unwrap()
}

#[test]
fn a_fit_without_doubts_says_nothing() {
    let fit = Fit::new().family("directed").epochs(400).patience(20);
    assert_eq!(doubts(fit, &table(2000, 3, true)), Vec::<String>::new());
}

#[test]
fn few_rows_to_validate_with() {
    let said = doubts(Fit::new().family("chow-liu"), &table(300, 2, true));
    assert_eq!(said, ["30 rows to validate with: that tells little about which model is better"]);
}

#[test]
fn rows_learned_by_heart() {
    let said = doubts(Fit::new().family("chow-liu").laplace(0.01), &table(1000, 60, false));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("nats more probable than others: much was learned by heart"), "{said:?}");
}

#[test]
fn a_best_epoch_that_is_the_first() {
    let fit = Fit::new().family("moat").learning_rate(5.0).epochs(10);
    let said = doubts(fit, &table(2000, 2, true));
    assert!(said.iter().any(|doubt| doubt.starts_with("the best epoch was 0 of ")), "{said:?}");
}

#[test]
fn a_best_epoch_that_is_the_last() {
    let fit = Fit::new().family("directed").learning_rate(1e-3).epochs(3);
    let said = doubts(fit, &table(2000, 3, true));
    assert_eq!(said, ["the last epoch, 3, was the best: more `epochs` may be better"]);
}

#[test]
fn a_simpler_model_that_is_as_good() {
    let fit = || Fit::new().effort(Effort::Quick).folds(2);
    let simpler = |doubt: &String| doubt.contains("is as good, as far as the rows held out can tell");
    let said = doubts(fit(), &table(600, 2, false));
    let family = fit().run(&table(600, 2, false)).unwrap().family();
    assert_eq!(family == "independent", !said.iter().any(simpler), "{family} {said:?}");
    // Where columns are tied, independent ones are not as good.
    assert!(!doubts(fit(), &table(600, 2, true)).iter().any(simpler));
}
