//! The neighbours of the mixtures of all trees through every command, and all of them side by side.

mod program;

use program::{Chance, everytree, json, text};
use std::fs;
use std::path::Path;

/// Three columns that follow each other, and one that is another's copy most of the time.
fn table(rows: usize, seed: u32) -> String {
    let mut chance = Chance(seed);
    let mut text = String::from("colour,size,price,copy\n");
    for _ in 0..rows {
        let mut next = |n: u32| chance.next(n);
        let colour = next(3);
        let size = if next(4) == 0 { next(3) } else { colour };
        let price = if next(5) == 0 { next(2) } else { u32::from(size > 0) };
        let copy = if next(8) == 0 { 1 - price } else { price };
        let colour = ["red", "green", "blue"][colour as usize];
        let size = ["small", "medium", "large"][size as usize];
        text += &format!("{colour},{size},{},{copy}\n", ["low", "high"][price as usize]);
    }
    text
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), table(600, 4321)).unwrap();
    fs::write(folder.path().join("test.csv"), table(200, 99)).unwrap();
    let mut all = String::from("colour,size,price,copy\n");
    for colour in ["red", "green", "blue"] {
        for size in ["small", "medium", "large"] {
            for price in ["low", "high"] {
                all += &format!("{colour},{size},{price},0\n{colour},{size},{price},1\n");
            }
        }
    }
    fs::write(folder.path().join("all.csv"), all).unwrap();
    folder
}

/// Log-likelihoods of a file, row by row.
fn scores(folder: &Path, model: &str, rows: &str) -> Vec<f64> {
    let scores = text(&everytree(folder, &["score", model, rows]));
    scores.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect()
}

#[test]
fn every_family_goes_through_every_command() {
    let folder = folder();
    let run = |arguments: &[&str]| everytree(folder.path(), arguments);
    let mut reached = Vec::new();
    for (family, more, called) in [
        ("independent", vec![], "independent"),
        ("chow-liu", vec![], "chow-liu"),
        ("mixture-of-trees", vec!["--components", "3"], "mixture-of-trees"),
        ("hclt", vec!["--hidden", "6"], "hclt"),
        ("hclt", vec!["--hidden", "4", "--optimiser", "em", "--components", "2"], "hclt"),
        ("hclt", vec!["--hidden", "3", "--components", "2", "--average", "0.3", "--epochs", "4"], "hclt"),
    ] {
        let fit =
            [&["fit", "t.csv", "--test", "test.csv", "--json", "--out", "m", "--family", family], &more[..]];
        let fit = json(&run(&fit.concat()));
        assert_eq!(fit["family"], called);
        reached.push(fit["test_ll"].as_f64().unwrap());
        let p: Vec<f64> = scores(folder.path(), "m", "all.csv").into_iter().map(f64::exp).collect();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{family}");

        // Conditionals are exact, and those of the rows.
        let query = json(&run(&["query", "m", "--given", "colour=red", "--target", "price", "--json"]));
        assert_eq!(query["method"], "exact", "{query}");
        let (red, low): (f64, f64) = (p[..12].iter().sum(), [0, 1, 4, 5, 8, 9].map(|i| p[i]).iter().sum());
        let answer = query["answers"].as_array().unwrap().iter().find(|answer| answer["value"] == "low");
        let found = answer.unwrap()["probability"].as_f64().unwrap();
        assert!((found - low / red).abs() < 1e-9, "{family}: {query} {}", low / red);

        let rows = text(&run(&["sample", "m", "-n", "300", "--given", "size=large", "--seed", "3"]));
        assert_eq!(rows.lines().count(), 301);
        assert!(rows.lines().skip(1).all(|row| row.split(',').nth(1) == Some("large")));
        let map = json(&run(&["map", "m", "--json"]));
        let best = p.iter().copied().fold(0.0, f64::max);
        assert!((map["rows"][0]["log_likelihood"].as_f64().unwrap() - best.ln()).abs() < 1e-9, "{map}");

        fs::write(folder.path().join("holes.csv"), "colour,size,price,copy\nred,small,,\n,large,high,1\n")
            .unwrap();
        assert!(run(&["impute", "m", "holes.csv", "--out", "whole.csv"]).status.success());
        let partial = text(&run(&["score", "m", "holes.csv"]));
        let first: f64 = partial.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
        assert!((first - p[..4].iter().sum::<f64>().ln()).abs() < 1e-9, "{family}: {partial}");
        let told = json(&run(&["info", "m", "mutual-information", "colour", "size", "--json"]));
        assert!(told["mutual_information"].as_f64().unwrap() >= 0.0);

        let inspect = json(&run(&["inspect", "m", "--edges", "--json"]));
        assert_eq!(inspect["family"], called);
        assert!(
            inspect["edges"].as_array().unwrap().iter().all(|edge| edge["probability"].as_f64() > Some(0.0))
        );
        assert!(text(&run(&["inspect", "m", "--edges"])).contains("4 variables"));
    }
    // A tree knows more than nothing; these data are a tree.
    assert!(reached[1..].iter().all(|&better| better > reached[0] + 0.3), "{reached:?}");
}

#[test]
fn a_fit_that_was_put_aside_ends_like_one_that_was_not() {
    let folder = folder();
    for more in [vec!["--family", "mixture-of-trees"], vec!["--family", "hclt", "--epochs", "6"]] {
        let fit = |out: &str, others: &[&str]| {
            let arguments = [&["fit", "t.csv", "--quiet", "--out", out], others].concat();
            text(&everytree(folder.path(), &arguments));
            fs::read(folder.path().join(out)).unwrap()
        };
        let whole = fit("whole", &more);
        let file = folder.path().join("half");
        let _ = fs::remove_file(&file);
        // A clock that has run out stops after the first step.
        fit("part", &[&more[..], &["--checkpoint", "half", "--timeout", "0.02s"]].concat());
        if file.exists() {
            assert!(fit("resumed", &["--resume", "half"]) == whole, "{more:?}");
        }
    }
}

#[test]
fn families_are_laid_side_by_side() {
    let folder = folder();
    let arguments =
        ["compare", "t.csv", "--test", "test.csv", "--json", "--quiet", "--html", "c.html", "--time", "60s"];
    let found = json(&everytree(folder.path(), &arguments));
    assert_eq!((&found["compared_on"], &found["test_rows"]), (&"test".into(), &200.into()));
    let families = found["families"].as_array().unwrap();
    let names: Vec<&str> = families.iter().map(|family| family["family"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["independent", "chow-liu", "mixture-of-trees", "hclt", "moat", "directed"]));
    let best = families.iter().map(|family| family["test_ll"].as_f64().unwrap()).fold(f64::MIN, f64::max);
    for family in families {
        let behind = family["test_ll"].as_f64().unwrap() - best;
        assert!((family["difference"].as_f64().unwrap() - behind).abs() < 1e-9, "{family}");
        assert_eq!(behind == 0.0, family["difference_standard_error"] == 0.0);
        assert!(family["finished"] == true && family["microseconds_per_row"].as_f64() > Some(0.0));
    }
    // The very figures of a fit.
    let fit = json(&everytree(
        folder.path(),
        &["fit", "--family", "moat", "t.csv", "--test", "test.csv", "--no-refit", "--json"],
    ));
    let both = [&families[4], &fit].map(|found| found["test_ll"].as_f64().unwrap());
    assert!((both[0] - both[1]).abs() < 1e-12, "{both:?}");
    let page = fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(page.contains("mixture-of-trees") && page.contains("<polyline") && !page.contains("NaN"));

    // Without time nobody is compared, and that is said; a page that cannot be written loses nothing.
    let late = everytree(folder.path(), &["compare", "t.csv", "--time", "0s"]);
    assert_eq!(late.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&late.stderr)
            .contains("no family was done; independent: there was no time left")
    );
    let full =
        everytree(folder.path(), &["compare", "t.csv", "--families", "chow-liu", "--html", "/dev/full"]);
    assert_eq!(full.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&full.stdout).contains("chow-liu"));

    let table = text(&everytree(folder.path(), &["compare", "t.csv", "--families", "chow-liu,independent"]));
    assert_eq!(table.lines().next().unwrap().split_whitespace().next(), Some("family"));
    assert!(table.contains("give --test") && table.lines().nth(1).unwrap().contains("best"), "{table}");
}

/// Cells that were not observed are summed out of every family, in the rows to validate and to test with too; the figures are
/// those of a score.
#[test]
fn families_are_compared_on_incomplete_rows() {
    let folder = folder();
    let table = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    let (mut lines, mut holes) = (table.lines(), String::new());
    holes += lines.next().unwrap();
    for (row, line) in lines.enumerate() {
        let mut cells: Vec<&str> = line.split(',').collect();
        if row % 4 == 0 {
            let place = row / 4 % cells.len();
            cells[place] = "";
        }
        holes = holes + "\n" + &cells.join(",");
    }
    fs::write(folder.path().join("h.csv"), &holes).unwrap();
    let mut arguments = vec!["compare", "h.csv", "--missing", "marginalise", "--test", "h.csv", "--json"];
    arguments.extend(["--families", "independent,chow-liu,directed", "--quiet", "--out", "best.everytree"]);
    let found = json(&everytree(folder.path(), &arguments));
    let families = found["families"].as_array().unwrap();
    let of = |name: &str| {
        let line = families.iter().find(|line| line["family"] == name).unwrap();
        (line["valid_ll"].as_f64().unwrap(), line["test_ll"].as_f64().unwrap())
    };
    assert!(of("chow-liu").1 > of("independent").1 && of("directed").0 > of("independent").0, "{found}");
    let score = ["score", "best.everytree", "h.csv", "--summary", "--json"];
    let scored = json(&everytree(folder.path(), &score));
    let winner = of(found["winner"]["family"].as_str().unwrap()).1;
    let difference = scored["mean_log_likelihood"].as_f64().unwrap() - winner;
    assert!(difference.abs() < 1e-9, "{difference}");
}
