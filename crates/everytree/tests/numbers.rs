//! Columns of numbers in cells: models of them are densities, and every figure has the same measure.

use everytree::{Dataset, Fit, Fitted, Schema};
use everytree_core::data::scan::{ColumnKind, Scan, ScanSettings};
use everytree_core::data::{Cell, Encoded, Encoder, States, Table};

/// What two columns of numbers and one of labels have in common.
fn rows(count: usize) -> Vec<(f64, f64, &'static str)> {
    // A linear congruence.
    let mut state = 4u64;
    let mut even = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| even()).sum::<f64>() - 6.0;
    (0..count)
        .map(|row| {
            let label = ["a", "b"][row % 2];
            let middle = if row % 2 == 0 { -1.0 } else { 2.0 };
            let x = middle + normal();
            // Whole years, never below zero.
            let years: f64 = 8.0 + 3.0 * x + 2.0 * normal();
            let years = years.round().max(0.0);
            (x, years, label)
        })
        .collect()
}

/// The schema of these rows, and the rows in it.
fn schema(of: &[(f64, f64, &'static str)]) -> Schema {
    let kinds = [("x", ColumnKind::Real), ("years", ColumnKind::Integer)];
    let kinds = kinds.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
    let mut scan = Scan::new(3, ScanSettings { kinds, ..ScanSettings::default() });
    for (x, years, label) in of {
        [Cell::Real(*x), Cell::Real(*years), Cell::Field(label)]
            .into_iter()
            .enumerate()
            .for_each(|(place, cell)| scan.observe(place, cell));
    }
    scan.finish(["x", "years", "label"].map(str::to_owned).to_vec(), true).unwrap().0
}

fn dataset(schema: &Schema, of: &[(f64, f64, &str)]) -> Dataset {
    let encoder = Encoder::new(schema);
    let (mut table, mut numbers) = (Table::new(&schema.states()), Vec::new());
    for (x, years, label) in of {
        let cells = [Cell::Real(*x), Cell::Real(*years), Cell::Field(label)];
        let code = |(place, cell): (usize, Cell<'_>)| match encoder.encode(place, cell) {
            Encoded::State(code) => code,
            other => panic!("{other:?}"),
        };
        table.push(&cells.into_iter().enumerate().map(code).collect::<Vec<u16>>());
        numbers.extend((0..2).map(|place| encoder.number(place, cells[place]).unwrap()));
    }
    Dataset::from_codes(schema.clone(), table).unwrap().with_numbers(numbers).unwrap()
}

#[test]
fn models_of_numbers_are_densities() {
    let all = rows(900);
    let schema = schema(&all);
    let (train, test) = dataset(&schema, &all).split(0.2, 1);
    let States::Numbers(cells) = &schema.variables[0].states else { panic!("numbers") };
    assert_eq!(schema.numeric(), [0, 1]);
    // Points of x: one in each inner cell, where the density is even, and many outside, closer where there is more.
    let edges = cells.edges();
    let mut points: Vec<(f64, f64)> =
        edges.windows(2).map(|two| ((two[0] + two[1]) / 2.0, two[1] - two[0])).collect();
    const OUTSIDE: usize = 4000;
    for i in 0..OUTSIDE {
        let u = (i as f64 + 0.5) / OUTSIDE as f64;
        let (t, width) = (u / (1.0 - u), 1.0 / (1.0 - u).powi(2) / OUTSIDE as f64);
        points.push((edges[0] - t, width));
        points.push((edges[edges.len() - 1] + t, width));
    }
    let years: Vec<f64> = (0..400).map(f64::from).chain((1..50).map(|y| -f64::from(y))).collect();
    for family in ["chow-liu", "directed", "moat", "hclt"] {
        let fit = Fit::new().family(family).epochs(3).test(test.clone());
        let Fitted { model, report, .. } = fit.run_with(&train, &mut ()).unwrap();
        // The figures of the fit are those of scores, and those of scores are of the numbers.
        let score = model.score(&test).unwrap();
        assert!((report.test_ll.unwrap() - score.mean).abs() < 1e-9, "{family}");
        let of_train = model.score(&train).unwrap();
        assert!((report.train_ll - of_train.mean).abs() < 1e-9, "{family}");
        // Rows that differ in nothing but their numbers within a cell are not alike.
        let outlier = dataset(&schema, &[(edges[edges.len() - 1] + 0.1, 9.0, "b"), (1e3, 9.0, "b")]);
        let logs = model.score(&outlier).unwrap().log_likelihoods;
        assert!(logs[0].value > logs[1].value + 8.0 && logs[1].value > -60.0, "{family}: {logs:?}");
        // Over everything there is they add up to 1: x and the label alone, years summed out; and years at one place of x.
        let grid: Vec<(f64, f64, &str)> =
            points.iter().flat_map(|(x, _)| ["a", "b"].map(|label| (*x, 9.0, label))).collect();
        let data = dataset(&schema, &grid);
        let rows = data.rows();
        let mut missing = everytree_core::data::Missing::default();
        (0..rows).for_each(|row| missing.push(row, vec![1]));
        let logs = model.score(&data.with_missing(missing).unwrap()).unwrap().log_likelihoods;
        let total: f64 = logs.iter().enumerate().map(|(row, log)| log.value.exp() * points[row / 2].1).sum();
        assert!((total - 1.0).abs() < 1e-4, "{family}: {total}");
        let one: Vec<(f64, f64, &str)> = years.iter().map(|y| (0.3, *y, "a")).collect();
        let logs = model.score(&dataset(&schema, &one)).unwrap().log_likelihoods;
        let sum: f64 = logs.iter().map(|log| log.value.exp()).sum();
        let alone = dataset(&schema, &[(0.3, 9.0, "a")]);
        let mut missing = everytree_core::data::Missing::default();
        missing.push(0, vec![1]);
        let expected = model.score(&alone.with_missing(missing).unwrap()).unwrap().mean.exp();
        assert!((sum / expected - 1.0).abs() < 1e-3, "{family}: {sum} {expected}");
    }
}
