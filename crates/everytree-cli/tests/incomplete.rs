//! Rows that are not complete: scored, filled in, and asked about; and single figures about a model.

mod program;

use program::{everytree, json, text};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Words, numbers, truth values and, in `ward`, gaps; every column tells something of the others.
fn table(rows: u32) -> String {
    let mut lines = String::from("name,weather,visits,ill,ward\n");
    for i in 0..rows {
        let rain = (i * 7) % 10 < 4;
        let visits = (i / 3) % 3 + u32::from(rain);
        let ill = (visits > 1) != (i % 9 == 0);
        let ward = if i % 8 == 0 { "" } else { ["north", "south, old"][usize::from(ill)] };
        lines += &format!("row {i},{},{visits},{ill},\"{ward}\"\n", if rain { "rain" } else { "dry" });
    }
    lines
}

/// A folder with a model of four columns.
fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let without_names: String =
        table(400).lines().map(|line| line.split_once(',').unwrap().1.to_owned() + "\n").collect();
    fs::write(folder.path().join("t.csv"), without_names).unwrap();
    text(&everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--quiet", "--epochs", "5"]));
    folder
}

/// `row,log_likelihood[,standard_error]` as numbers.
fn scores(text: &str) -> Vec<Vec<f64>> {
    text.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect()
}

#[test]
fn an_incomplete_row_has_the_probability_of_what_was_observed() {
    let folder = model();
    let holes = "weather,visits,ill,ward\nrain,2,true,north\n,2,true,north\nrain,,,north\n,,,\n";
    fs::write(folder.path().join("h.csv"), holes).unwrap();
    let output = text(&everytree(folder.path(), &["score", "t.everytree", "h.csv"]));
    assert!(output.starts_with("row,log_likelihood,standard_error\n"), "{output}");
    let found = scores(&output);
    // By adding up complete rows; `ward` can be missing, too.
    let sum = |wanted: &dyn Fn(&[&str]) -> bool| {
        let mut all = String::from("weather,visits,ill,ward\n");
        for weather in ["dry", "rain"] {
            for visits in ["0", "1", "2", "3"] {
                for ill in ["false", "true"] {
                    for ward in ["north", "\"south, old\"", ""] {
                        if wanted(&[weather, visits, ill, ward]) {
                            all += &format!("{weather},{visits},{ill},{ward}\n");
                        }
                    }
                }
            }
        }
        fs::write(folder.path().join("all.csv"), all).unwrap();
        let arguments = ["score", "t.everytree", "all.csv", "--missing-as-state"];
        let output = text(&everytree(folder.path(), &arguments));
        assert!(output.starts_with("row,log_likelihood\n"));
        scores(&output).iter().map(|row| row[1].exp()).sum::<f64>().ln()
    };
    let expected = [
        sum(&|row| row == ["rain", "2", "true", "north"]),
        sum(&|row| row[1..] == ["2", "true", "north"]),
        sum(&|row| row[0] == "rain" && row[3] == "north"),
        sum(&|_| true),
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found[1] - expected).abs() < 1e-9 && found[2] == 0.0, "{found:?} {expected}");
    }
    assert!(expected[3].abs() < 1e-9);

    // An unknown label is an error, or as good as a missing cell.
    fs::write(folder.path().join("u.csv"), "weather,visits,ill,ward\nhail,2,true,north\n").unwrap();
    let refused = everytree(folder.path(), &["score", "t.everytree", "u.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    let arguments = ["score", "t.everytree", "u.csv", "--unknown", "unobserved"];
    let unknown = scores(&text(&everytree(folder.path(), &arguments)));
    assert!((unknown[0][1] - expected[1]).abs() < 1e-9);
    let summary = json(&everytree(folder.path(), &["score", "t.everytree", "h.csv", "--json"]));
    assert_eq!(summary["rows"], 4);
}

/// Fields of a CSV file.
fn fields(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn imputing_fills_what_is_missing_and_nothing_else() {
    let folder = model();
    // A column that the model does not know, blanks, and columns in another order.
    let holes = "ward,note,ill,visits,weather\nnorth, a \"\"b ,true,2,rain\n?,\"x, y\",NA,2,rain\n,keep,true, 1 ,\nnorth,,,,dry\n";
    let holes = holes.replace(" a \"\"b ", "\" a \"\"b \"");
    fs::write(folder.path().join("h.csv"), &holes).unwrap();
    let before = fields(&folder.path().join("h.csv"));
    let missing = ["", "NA", "?"];
    for how in ["map", "sample", "mean-state"] {
        let arguments =
            ["impute", "t.everytree", "h.csv", "--out", "w.csv", "--how", how, "--probabilities", "--json"];
        let told = json(&everytree(folder.path(), &arguments));
        assert_eq!(
            (&told["rows"], &told["incomplete_rows"], &told["cells"]),
            (&4.into(), &3.into(), &6.into())
        );
        let after = fields(&folder.path().join("w.csv"));
        assert_eq!(after.len(), before.len());
        let mut filled = Vec::new();
        for (row, (old, new)) in before.iter().zip(&after).enumerate() {
            for (column, (old, new)) in old.iter().zip(new).enumerate() {
                if row > 0 && column != 1 && missing.contains(&old.as_str()) {
                    let known: &[&str] = match column {
                        0 => &["north", "south, old"],
                        2 => &["false", "true"],
                        3 => &["0", "1", "2", "3"],
                        _ => &["dry", "rain"],
                    };
                    assert!(known.contains(&new.as_str()), "{how}: {new:?}");
                    filled.push(((row - 1).to_string(), before[0][column].clone(), new.clone()));
                } else {
                    assert_eq!(new, old, "{how}: row {row}, column {column}");
                }
            }
        }
        // Every filled cell has a line with its probability.
        let confidence = fields(&folder.path().join("w.csv.probabilities.csv"));
        assert_eq!(confidence[0], ["row", "column", "value", "probability", "standard_error"]);
        let mut told: Vec<_> =
            confidence[1..].iter().map(|line| (line[0].clone(), line[1].clone(), line[2].clone())).collect();
        told.sort();
        filled.sort();
        assert_eq!(told, filled, "{how}");
        assert!(confidence[1..].iter().all(|line| (0.0..=1.0).contains(&line[3].parse::<f64>().unwrap())));
        // What was filled is what a query says.
        if how == "mean-state" {
            let line = confidence.iter().find(|line| line[0] == "1" && line[1] == "ward").unwrap();
            let arguments =
                ["query", "t.everytree", "--given", "visits=2", "--given", "weather=rain", "--json"];
            let answer = json(&everytree(folder.path(), &arguments));
            let same = answer["answers"]
                .as_array()
                .unwrap()
                .iter()
                .find(|answer| answer["value"] == line[2].as_str());
            let p = same.unwrap()["probability"].as_f64().unwrap();
            // There `ill` may be missing as well, here not: it never is.
            assert!((p - line[3].parse::<f64>().unwrap()).abs() < 1e-9, "{p} {line:?}");
        }
    }
    // The same seed, the same table; a file without gaps comes back as it was.
    let run = |seed: &str, out: &str| {
        let arguments = ["impute", "t.everytree", "h.csv", "--out", out, "--how", "sample", "--seed", seed];
        text(&everytree(folder.path(), &arguments));
        fs::read(folder.path().join(out)).unwrap()
    };
    assert_eq!(run("1", "a.csv"), run("1", "b.csv"));
    fs::write(folder.path().join("whole.csv"), "weather,visits,ill,ward\nrain,2,true,north\n").unwrap();
    text(&everytree(folder.path(), &["impute", "t.everytree", "whole.csv", "--out", "same.csv"]));
    assert_eq!(fields(&folder.path().join("same.csv")), fields(&folder.path().join("whole.csv")));
    let refused = everytree(folder.path(), &["impute", "t.everytree", "h.csv", "--out", "w.parquet"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has the format of h.csv"));
}

/// Samples as Parquet have types, and can be read, scored and filled like any other file.
#[test]
fn parquet_goes_out_and_comes_back() {
    let folder = model();
    let sample = |out: &str| {
        let arguments = ["sample", "t.everytree", "-n", "300", "--seed", "5", "--out", out];
        text(&everytree(folder.path(), &arguments));
    };
    sample("s.parquet");
    sample("s.csv");
    let score =
        |file: &str| text(&everytree(folder.path(), &["score", "t.everytree", file, "--missing-as-state"]));
    assert_eq!(score("s.parquet"), score("s.csv"));
    // Some wards of the sample are missing: filled, nothing is.
    let mut whole = Vec::new();
    for (holes, out) in [("s.csv", "w.csv"), ("s.parquet", "w.parquet")] {
        let told = json(&everytree(folder.path(), &["impute", "t.everytree", holes, "--out", out, "--json"]));
        assert!(told["cells"].as_u64().unwrap() > 10, "{told}");
        let output = text(&everytree(folder.path(), &["score", "t.everytree", out]));
        assert!(output.starts_with("row,log_likelihood\n"), "nothing is missing any more");
        whole.push(output);
    }
    assert_eq!(whole[0], whole[1]);
    let again = json(&everytree(
        folder.path(),
        &["fit", "--family", "moat", "w.parquet", "--epochs", "1", "--json", "--quiet"],
    ));
    assert_eq!(again["rows"], 300);
}

/// Numbers in bins: filled with whole numbers where edges are whole, and samples can be read again, by text and by type.
#[test]
fn bins_are_filled_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::from("age,old\n");
    for i in 0..600u32 {
        let age = 20 + (i * 37) % 200;
        lines += &format!("{age},{}\n", if age > 120 { "yes" } else { "no" });
    }
    fs::write(folder.path().join("t.csv"), lines).unwrap();
    text(&everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--quiet", "--epochs", "2"]));
    for out in ["s.csv", "s.parquet", "s.tsv", "s.csv.gz"] {
        text(&everytree(folder.path(), &["sample", "t.everytree", "-n", "50", "--out", out]));
        let scored = text(&everytree(folder.path(), &["score", "t.everytree", out]));
        assert_eq!(scored.lines().count(), 51, "{out}");
    }
    assert!(fs::read(folder.path().join("s.csv.gz")).unwrap().starts_with(b"\x1f\x8b"));
    assert!(fs::read_to_string(folder.path().join("s.tsv")).unwrap().starts_with("age\told\n"));
    fs::write(folder.path().join("h.csv"), "age,old\n,yes\n,no\n33,\n").unwrap();
    text(&everytree(folder.path(), &["impute", "t.everytree", "h.csv", "--out", "w.csv"]));
    for row in &fields(&folder.path().join("w.csv"))[1..] {
        assert!(row[0].parse::<i64>().is_ok_and(|age| (20..220).contains(&age)), "{row:?}");
    }
}

/// Another seed draws other rows, not the same ones further down.
#[test]
fn seeds_are_not_shifts_of_each_other() {
    let folder = model();
    let holes: String =
        std::iter::once("weather,visits,ill,ward\n").chain(std::iter::repeat_n(",,,north\n", 100)).collect();
    fs::write(folder.path().join("h.csv"), holes).unwrap();
    let run = |seed: &str| {
        let arguments =
            ["impute", "t.everytree", "h.csv", "--out", "w.csv", "--how", "sample", "--seed", seed];
        text(&everytree(folder.path(), &arguments));
        fields(&folder.path().join("w.csv"))
    };
    let (zero, one) = (run("0"), run("1"));
    let same = zero[2..].iter().zip(&one[1..]).filter(|(a, b)| a == b).count();
    assert!(same < 60, "{same} of 99");
}

#[test]
fn missing_is_never_the_answer_unless_it_is_asked_for() {
    let folder = model();
    let ask = |more: &[&str]| -> HashMap<String, f64> {
        let answer = json(&everytree(folder.path(), &[&["query", "t.everytree", "--json"], more].concat()));
        let pair = |answer: &serde_json::Value| {
            (answer["value"].as_str().unwrap().to_owned(), answer["probability"].as_f64().unwrap())
        };
        answer["answers"].as_array().unwrap().iter().map(pair).collect()
    };
    let observed = ask(&["--target", "ward"]);
    assert_eq!(observed.len(), 2);
    assert!((observed.values().sum::<f64>() - 1.0).abs() < 1e-12);
    let all = ask(&["--target", "ward", "--missing-as-state"]);
    assert_eq!(all.len(), 3);
    assert!((all["north"] / (1.0 - all[""]) - observed["north"]).abs() < 1e-12);
    assert!((ask(&["--target", "ward="])[""] - all[""]).abs() < 1e-12);
    // Given that it is missing, that is what it is.
    assert_eq!(ask(&["--target", "ward", "--given", "ward="])[""], 1.0);
    let map = json(&everytree(folder.path(), &["map", "t.everytree", "-n", "48", "--json"]));
    let wards: Vec<&serde_json::Value> =
        map["rows"].as_array().unwrap().iter().map(|row| &row["values"]["ward"]).collect();
    assert!(wards.len() > 10 && wards.iter().all(|ward| *ward != ""));
}

#[test]
fn edges_are_those_of_a_tree() {
    let folder = model();
    let arguments = ["query", "t.everytree", "--given", "weather=rain", "--edges", "--json"];
    let answer = json(&everytree(folder.path(), &arguments));
    let edges = answer["edges"].as_array().unwrap();
    let total: f64 = edges.iter().map(|edge| edge["probability"].as_f64().unwrap()).sum();
    assert!((total - 3.0).abs() < 1e-9, "four columns make three edges");
    assert!(edges.iter().all(|edge| edge["from"].is_string() && edge["to"].is_string()));
    let words = text(&everytree(folder.path(), &["query", "t.everytree", "--edges"]));
    assert!(words.contains("edges of the tree, given the evidence:"));
}

#[test]
fn figures_about_a_model_agree_with_each_other() {
    let folder = model();
    text(&everytree(
        folder.path(),
        &["fit", "--family", "moat", "t.csv", "--quiet", "--epochs", "1", "--out", "u.everytree"],
    ));
    let figure = |arguments: &[&str], name: &str| -> f64 {
        let answer =
            json(&everytree(folder.path(), &[&["info", "t.everytree"], arguments, &["--json"]].concat()));
        assert_eq!(answer["standard_error"], 0.0);
        answer[name].as_f64().unwrap()
    };
    // By adding up all 48 rows.
    let map =
        json(&everytree(folder.path(), &["map", "t.everytree", "-n", "48", "--missing-as-state", "--json"]));
    let logs: Vec<f64> =
        map["rows"].as_array().unwrap().iter().map(|row| row["log_likelihood"].as_f64().unwrap()).collect();
    assert_eq!(logs.len(), 48);
    let entropy: f64 = logs.iter().map(|log| -log * log.exp()).sum();
    assert!((figure(&["entropy"], "entropy") - entropy).abs() < 1e-9);
    assert!(figure(&["kl", "t.everytree"], "kl").abs() < 1e-12);
    assert!(figure(&["kl", "u.everytree"], "kl") > 0.0);
    let information = figure(&["mutual-information", "weather", "visits"], "mutual_information");
    assert!(
        (figure(&["mutual-information", "visits", "weather"], "mutual_information") - information).abs()
            < 1e-12
    );
    assert!(information > 0.0);
    let both = figure(&["expect", "weather=rain & ill=true"], "probability");
    let arguments = ["query", "t.everytree", "--given", "weather=rain", "--target", "ill=true", "--json"];
    let given = json(&everytree(folder.path(), &arguments));
    let p =
        given["log_evidence"].as_f64().unwrap().exp() * given["answers"][0]["probability"].as_f64().unwrap();
    assert!((both - p).abs() < 1e-12);
    for (arguments, words) in [
        (&["mutual-information", "ill", "ill"][..], "two different columns are needed"),
        (&["mutual-information", "ill", "height"], "there is no column \"height\""),
        (&["expect", "ill"], "an operator is needed"),
        (&["expect", "ill=true & ill=false"], "given twice"),
        (&["kl", "nowhere.everytree"], "nowhere.everytree"),
    ] {
        let output = everytree(folder.path(), &[&["info", "t.everytree"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(words), "{arguments:?}: {stderr}");
    }
}
