//! `everytree query`: labels in and out, errors in words, and answers that agree with each other.

mod program;

use program::{everytree, json};

fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("weather,mood,umbrella\n");
    for i in 0..400u32 {
        let rain = (i * 7) % 10 < 4;
        let umbrella = rain != (i % 9 == 0);
        let mood = ["bad", "fair", "good"][((i / 3 + if rain { 0 } else { 1 }) % 3) as usize];
        text += &format!("{},{mood},{umbrella}\n", if rain { "rain" } else { "dry" });
    }
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    assert!(
        everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--quiet", "--epochs", "5"])
            .status
            .success()
    );
    folder
}

#[test]
fn answers_have_labels_and_add_up() {
    let folder = model();
    for method in ["auto", "exact", "importance", "collapsed", "tilted", "gibbs", "block-gibbs"] {
        let arguments = ["query", "t.everytree", "--given", "umbrella=true", "--json", "--method", method];
        let answer = json(&everytree(folder.path(), &arguments));
        let answers = answer["answers"].as_array().unwrap();
        let labels: Vec<&str> = answers.iter().map(|a| a["value"].as_str().unwrap()).collect();
        assert_eq!(labels, ["dry", "rain", "bad", "fair", "good"]);
        let p: Vec<f64> = answers.iter().map(|a| a["probability"].as_f64().unwrap()).collect();
        assert!((p[0] + p[1] - 1.0).abs() < 1e-9 && (p[2] + p[3] + p[4] - 1.0).abs() < 1e-9);
        assert!(p[1] > 0.8, "{method}: {p:?}");
        let expected = if method == "auto" { "exact" } else { method };
        assert_eq!(answer["method"], expected);
        assert_eq!(answer["trees"] == 0, expected == "exact");
    }
}

#[test]
fn one_value_and_sets_of_values_can_be_asked() {
    let folder = model();
    let ask = |more: &[&str]| {
        let answer = json(&everytree(folder.path(), &[&["query", "t.everytree", "--json"], more].concat()));
        answer["answers"][0]["probability"].as_f64().unwrap()
    };
    let any = ask(&["--target", "weather=rain"]);
    let all = ask(&["--target", "weather=rain", "--given", "mood=bad,fair,good"]);
    assert!((any - all).abs() < 1e-12);
    let some = ask(&["--target", "mood=bad", "--given", "mood=bad,fair"]);
    let one =
        ask(&["--target", "mood=bad"]) / (ask(&["--target", "mood=bad"]) + ask(&["--target", "mood=fair"]));
    assert!((some - one).abs() < 1e-12);
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let folder = model();
    for (more, words) in [
        (
            &["--given", "height=2"][..],
            "there is no column \"height\"; the columns are weather, mood, umbrella",
        ),
        (
            &["--given", "mood=sour"],
            "column \"mood\": unknown value \"sour\"; known: \"bad\", \"fair\", \"good\"",
        ),
        (&["--given", "mood=bad", "--given", "mood=good"], "column \"mood\" is given twice"),
        (&["--given", "mood"], "--given \"mood\": an operator is needed: mood=VALUE"),
        (&["--target", "mood=sour"], "--target mood=sour: column \"mood\": unknown value \"sour\""),
        (&["--target", "height"], "there is no column \"height\""),
        (&["--tolerance", "0"], "--tolerance 0: must be positive"),
        (&["--trees", "0"], "--trees 0: at least one"),
    ] {
        let output = everytree(folder.path(), &[&["query", "t.everytree"], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr.contains(words), "{more:?}: {stderr}");
    }
}

#[test]
fn samples_and_most_probable_rows_keep_what_is_given() {
    let folder = model();
    let arguments = ["sample", "t.everytree", "-n", "50", "--given", "umbrella=true"];
    let text = String::from_utf8(everytree(folder.path(), &arguments).stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("weather,mood,umbrella"));
    assert!(lines.clone().all(|line| line.ends_with(",true")));
    assert_eq!(lines.count(), 50);
    let to_file = [&arguments[..], &["--out", "s.csv", "--json"]].concat();
    assert_eq!(json(&everytree(folder.path(), &to_file))["rows"], 50);
    assert_eq!(std::fs::read_to_string(folder.path().join("s.csv")).unwrap(), text);

    let map = json(&everytree(
        folder.path(),
        &["map", "t.everytree", "-n", "2", "--given", "umbrella=true", "--json"],
    ));
    let rows = map["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["values"]["umbrella"], &rows[0]["values"]["weather"]),
        (&"true".into(), &"rain".into())
    );
    assert_eq!(rows[0]["proven"], true);
    assert!(rows[0]["log_likelihood"].as_f64().unwrap() >= rows[1]["log_likelihood"].as_f64().unwrap());
}

#[test]
fn the_same_seed_gives_the_same_answer_on_any_number_of_threads() {
    let folder = model();
    let ask = |threads: &str, seed: &str| {
        let arguments = [
            "query",
            "t.everytree",
            "--method",
            "tilted",
            "--given",
            "umbrella=true",
            "--seed",
            seed,
            "--threads",
            threads,
            "--json",
        ];
        everytree(folder.path(), &arguments).stdout
    };
    assert!(ask("1", "3") == ask("2", "3"));
    assert!(ask("1", "3") == ask("7", "3"));
    assert!(ask("1", "3") != ask("1", "4"));
}
