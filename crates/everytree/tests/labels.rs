//! Datasets of other files: labels are translated, never codes; nothing is lost on the way.

use everytree::{Dataset, ErrorCode, Fit, Model, Unknown};

type Column<'a> = (&'a str, Vec<Option<&'a str>>);

fn dataset(columns: [Column<'_>; 2]) -> Dataset {
    Dataset::from_columns(columns).unwrap()
}

/// A colour, and whether it is red but for one row in ten.
fn train() -> Dataset {
    let colours = ["blue", "green", "red"].repeat(30);
    let red =
        |(row, colour): (usize, &&str)| if (*colour == "red") != (row % 10 == 0) { "yes" } else { "no" };
    let is_red = colours.iter().enumerate().map(red).map(Some).collect();
    dataset([("colour", colours.into_iter().map(Some).collect()), ("is_red", is_red)])
}

fn model() -> Model {
    Fit::new().family("chow-liu").run(&train()).unwrap()
}

/// Only two colours, and the columns the other way round: other codes for the same labels.
fn other() -> Dataset {
    let (colours, red) = (["red", "green"].repeat(5), ["yes", "no"].repeat(5));
    let some = |labels: Vec<&'static str>| labels.into_iter().map(Some).collect();
    dataset([("is_red", some(red)), ("colour", some(colours))])
}

#[test]
fn rows_of_another_file_are_validated_by_their_labels() {
    let own = {
        let all = train();
        let rows: Vec<usize> = (0..all.rows())
            .filter(|&row| {
                let labels = (all.label(row, 0).unwrap(), all.label(row, 1).unwrap());
                labels == ("red".into(), "yes".into()) || labels == ("green".into(), "no".into())
            })
            .collect();
        Dataset::from(all.select(&rows))
    };
    let fit = || Fit::new().family("chow-liu");
    let report = |valid: Dataset, test: Dataset| {
        fit().valid(valid).test(test).run_with(&train(), &mut ()).unwrap().report
    };
    let (found, expected) = (report(other(), other()), report(own.clone(), own));
    // Of both there are as many of each kind, so the means are the same.
    assert!((found.valid_ll - expected.valid_ll).abs() < 1e-12, "{found:?}");
    assert_eq!(found.test_ll, Some(found.valid_ll));
    let strange =
        dataset([("colour", vec![Some("pink"), Some("red")]), ("is_red", vec![Some("no"), Some("yes")])]);
    let error = fit().valid(strange).run(&train()).unwrap_err();
    assert_eq!((error.code(), error.row(), error.value()), (ErrorCode::UnknownValue, Some(0), Some("pink")));
    assert_eq!(error.known(), ["blue", "green", "red"]);
}

#[test]
fn unknown_labels_can_be_taken_for_missing() {
    let model = model();
    let strange =
        dataset([("colour", vec![Some("pink"), Some("red")]), ("is_red", vec![Some("no"), Some("yes")])]);
    let missing = dataset([("colour", vec![None, Some("red")]), ("is_red", vec![Some("no"), Some("yes")])]);
    assert_eq!(model.score(&strange).unwrap_err().code(), ErrorCode::UnknownValue);
    let scoring = model.scoring().unknown(Unknown::Unobserved);
    assert_eq!(scoring.run(&strange).unwrap(), model.score(&missing).unwrap());
    // Imputation leaves such a cell as it is: it is not one of those that are filled.
    let imputation = model.imputation().unknown(Unknown::Unobserved);
    assert!(imputation.cells(&strange).unwrap().cells.is_empty());
    assert_eq!(imputation.run(&strange).unwrap().label(0, 0), None);
    assert!(model.impute(&missing).unwrap().is_complete());
}

#[test]
fn weights_and_columns_are_not_lost() {
    let model = model();
    let weighted = other().with_weights((0..10).map(|row| f64::from(u8::from(row < 1))).collect()).unwrap();
    let first = model.score(&other()).unwrap().log_likelihoods[0].value;
    assert!((model.score(&weighted).unwrap().mean - first).abs() < 1e-12);
    assert_eq!(model.impute(&weighted).unwrap().weights(), weighted.weights());
    let wider = Dataset::from_columns([
        ("colour", vec![Some("red")]),
        ("name", vec![Some("rose")]),
        ("is_red", vec![Some("yes")]),
    ]);
    let streamed = model.scoring().stream(&wider.unwrap(), &mut |_| Ok(())).unwrap();
    assert_eq!(streamed.ignored, ["name"]);
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    let one = Dataset::from_columns([("a", vec![Some("x"), Some("y")])]).unwrap();
    assert_eq!(Fit::new().run(&one).unwrap_err().code(), ErrorCode::InvalidData);
    let row = dataset([("a", vec![Some("x")]), ("b", vec![Some("y")])]);
    assert_eq!(Fit::new().run(&row).unwrap_err().code(), ErrorCode::InvalidData);
    let few =
        dataset([("a", vec![Some("x"), None, Some("y")]), ("b", vec![Some("1"), Some("2"), Some("1")])]);
    let both = Fit::new().family("chow-liu").valid(few.clone()).refit(true).run_with(&few, &mut ()).unwrap();
    assert!(both.report.refit && both.report.train.rows == 6);
    for wrong in [Fit::new().holdout(2.0), Fit::new().components(0), Fit::new().family("oak")] {
        assert_eq!(wrong.run(&few).unwrap_err().code(), ErrorCode::InvalidOption);
    }
}

/// Weights that add up to 1 are weights of rows: states that nobody has seen have what they have without weights.
#[test]
fn weights_that_add_up_to_one_do_not_make_the_unseen_probable() {
    let all = |cells: &[&'static str]| cells.iter().copied().map(Some).collect::<Vec<_>>();
    let rows = 60;
    let a: Vec<&str> =
        (0..rows).map(|row| if row == rows - 1 { "rare" } else { ["x", "y"][row % 2] }).collect();
    let b: Vec<&str> = (0..rows).map(|row| ["1", "2"][row % 2]).collect();
    let data = Dataset::from_columns([("a", all(&a)), ("b", all(&b))]).unwrap();
    // The state "rare" is among the validation rows only.
    let (train, valid) = (data.select(&(0..rows - 1).collect::<Vec<_>>()), data.select(&[rows - 1]));
    let (train, valid) = (Dataset::from(train), Dataset::from(valid));
    let rare = |train: Dataset| {
        let model = Fit::new().family("directed").epochs(3).valid(valid.clone()).run(&train).unwrap();
        model.query().target("a").unwrap().run().unwrap().probability("a", "rare").unwrap()
    };
    let plain = rare(train.clone());
    let weighted = rare(train.with_weights(vec![1.0 / 59.0; 59]).unwrap());
    assert!(plain < 0.02 && (weighted / plain - 1.0).abs() < 0.2, "{plain} {weighted}");
}
