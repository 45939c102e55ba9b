//! The directed family, mixtures, blocks of columns and holes, through every command: people see their columns and labels only.

mod program;

use program::{Chance, everytree, json, text};
use std::fs;
use std::path::Path;

/// Colours taken apart into three columns of which one is 1, a size that follows the colour, and a price that follows the size.
fn table(rows: usize, hole: u32) -> String {
    let mut text = String::from("color_red,color_green,color_blue,size,price\n");
    let mut chance = Chance(4321);
    for _ in 0..rows {
        let mut next = |n: u32| chance.next(n);
        let color = next(3);
        let size = if next(4) == 0 { next(3) } else { color };
        let price = if next(5) == 0 { next(2) } else { u32::from(size > 0) };
        let cells = [
            u32::from(color == 0).to_string(),
            u32::from(color == 1).to_string(),
            u32::from(color == 2).to_string(),
            ["small", "medium", "large"][size as usize].to_owned(),
            ["low", "high"][price as usize].to_owned(),
        ];
        let cells = cells.map(|cell| if hole > 0 && next(hole) == 0 { String::new() } else { cell });
        text += &(cells.join(",") + "\n");
    }
    text
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), table(600, 0)).unwrap();
    fs::write(folder.path().join("test.csv"), table(120, 0)).unwrap();
    folder
}

/// All rows there can be.
fn all(folder: &Path) {
    let mut text = String::from("color_red,color_green,color_blue,size,price\n");
    for number in 0..48 {
        let bit = |place: u32| number >> place & 1;
        let size = ["small", "medium", "large"][number / 16];
        let price = ["low", "high"][bit(3)];
        text += &format!("{},{},{},{size},{price}\n", bit(0), bit(1), bit(2));
    }
    fs::write(folder.join("all.csv"), text).unwrap();
}

#[test]
fn a_mixture_over_blocks_goes_through_every_command() {
    let folder = folder();
    let run = |arguments: &[&str]| everytree(folder.path(), arguments);
    let fit = json(&run(&[
        "fit",
        "t.csv",
        "--test",
        "test.csv",
        "--family",
        "directed",
        "--components",
        "2",
        "--group",
        "color_*",
        "--epochs",
        "8",
        "--json",
        "--out",
        "m",
    ]));
    assert_eq!((&fit["family"], &fit["components"]), (&"directed".into(), &2.into()));
    assert_eq!(fit["blocks"], 3);

    // Exactly normalised over all rows, colours that were never seen together included.
    all(folder.path());
    let scores = text(&run(&["score", "m", "all.csv"]));
    let sum: f64 = scores
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap().parse::<f64>().unwrap().exp())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let score = json(&run(&["score", "m", "test.csv", "--json"]));
    let test = fit["test_ll"].as_f64().unwrap();
    assert!((score["mean_log_likelihood"].as_f64().unwrap() - test).abs() < 1e-12);

    // Evidence about one column of a block says something about the others.
    let query = json(&run(&["query", "m", "--given", "color_red=1", "--target", "color_green=1", "--json"]));
    assert!(query["answers"][0]["probability"].as_f64().unwrap() < 0.02, "{query}");
    let query =
        json(&run(&["query", "m", "--given", "color_red=1", "--target", "size", "--edges", "--json"]));
    assert!(
        query["answers"][2]["value"] == "small" && query["answers"][2]["probability"].as_f64() > Some(0.6),
        "{query}"
    );
    assert!(
        query["edges"]
            .as_array()
            .unwrap()
            .iter()
            .any(|e| e["from"] == "color_red + color_green + color_blue")
    );

    let rows = text(&run(&["sample", "m", "-n", "200", "--given", "size=large", "--seed", "3"]));
    assert_eq!(rows.lines().next().unwrap(), "color_red,color_green,color_blue,size,price");
    assert!(rows.lines().skip(1).all(|row| row.split(',').nth(3) == Some("large")));
    assert!(rows.lines().filter(|row| row.starts_with("0,0,1,")).count() > 100);

    let map = json(&run(&["map", "m", "--given", "color_blue=1", "-n", "3", "--json"]));
    let best = &map["rows"][0]["values"];
    assert_eq!(
        (&best["color_red"], &best["size"], &best["price"]),
        (&"0".into(), &"large".into(), &"high".into())
    );
    assert_eq!(map["rows"].as_array().unwrap().len(), 3);

    fs::write(
        folder.path().join("holes.csv"),
        "color_red,color_green,color_blue,size,price\n1,0,,,low\n,0,1,large,\n",
    )
    .unwrap();
    assert!(run(&["impute", "m", "holes.csv", "--out", "whole.csv", "--probabilities"]).status.success());
    let whole = fs::read_to_string(folder.path().join("whole.csv")).unwrap();
    assert_eq!(whole, "color_red,color_green,color_blue,size,price\n1,0,0,small,low\n0,0,1,large,high\n");
    let partial = text(&run(&["score", "m", "holes.csv"]));
    assert!(partial.starts_with("row,log_likelihood,standard_error\n0,-"), "{partial}");

    let information = json(&run(&["info", "m", "mutual-information", "color_red", "color_green", "--json"]));
    assert!(information["mutual_information"].as_f64().unwrap() > 0.1);
    assert!(json(&run(&["info", "m", "entropy", "--json"]))["entropy"].as_f64().unwrap() > 1.0);

    let inspect = json(&run(&["inspect", "m", "--edges", "--json"]));
    assert_eq!(inspect["blocks"][0].as_array().unwrap().len(), 3);
    assert_eq!(inspect["edges"].as_array().unwrap().len(), 6);
    let total = |list: &str| -> f64 {
        inspect[list].as_array().unwrap().iter().map(|e| e["probability"].as_f64().unwrap()).sum()
    };
    assert!((total("edges") + total("roots") - 3.0).abs() < 1e-6, "everyone has a parent or is a root");
    let shares: f64 = inspect["shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-12);
    assert_eq!(inspect["mixture"].as_array().unwrap().len(), 2);
    for edge in inspect["edges"].as_array().unwrap() {
        for line in edge["table"]["probabilities"].as_array().unwrap() {
            let sum: f64 = line.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{edge}");
        }
    }
    let words = text(&run(&["inspect", "m", "--edges"]));
    for part in ["2 components, by mixing weight:", "roots a forest: ", " → size", "any other", "small"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn one_hot_columns_are_noticed_and_taken_together_where_that_pays() {
    let folder = folder();
    let plain = everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--epochs", "1"]);
    let said = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(said.contains("columns color_red, color_green, color_blue never meet"), "{said}");
    let auto = json(&everytree(
        folder.path(),
        &[
            "fit",
            "t.csv",
            "--family",
            "directed",
            "--blocks",
            "auto",
            "--components",
            "auto",
            "--epochs",
            "6",
            "--json",
        ],
    ));
    assert_eq!(auto["blocks"], 3, "{auto}");
    let tried = auto["tried"].as_array().unwrap();
    assert!(tried.iter().filter(|tried| tried["trial"]["look"] == true).count() >= 2);
    // A file of blocks; the paper's family takes them too.
    fs::write(
        folder.path().join("blocks.txt"),
        "# one a line\ncolor_red, color_green, color_blue\nsize,price\n",
    )
    .unwrap();
    let fit = json(&everytree(
        folder.path(),
        &[
            "fit",
            "--family",
            "moat",
            "t.csv",
            "--blocks",
            "blocks.txt",
            "--components",
            "2",
            "--epochs",
            "3",
            "--json",
        ],
    ));
    assert_eq!((&fit["family"], &fit["blocks"], &fit["components"]), (&"moat".into(), &2.into(), &2.into()));
}

#[test]
fn a_search_is_taken_up_to_the_very_same_model() {
    let folder = folder();
    fs::write(folder.path().join("holes.csv"), table(400, 6)).unwrap();
    for (data, more) in [
        ("t.csv", &["--family", "directed", "--components", "auto", "--blocks", "auto", "--epochs", "3"][..]),
        ("t.csv", &["--family", "directed", "--components", "2", "--optimiser", "em", "--epochs", "4"]),
        ("t.csv", &["--family", "moat", "--components", "2", "--epochs", "3"]),
        ("holes.csv", &["--family", "directed", "--missing", "marginalise", "--epochs", "3"]),
    ] {
        let at = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let fit = ["fit", data, "--batch", "32", "--quiet"];
        text(&everytree(folder.path(), &[&fit[..], more, &["--out", "whole"]].concat()));
        let aside = ["--timeout", "0s", "--checkpoint", "half", "--out", "parts"];
        text(&everytree(folder.path(), &[&fit[..], more, &aside].concat()));
        text(&everytree(
            folder.path(),
            &["fit", data, "--resume", "half", "--out", "parts", "--quiet", "--threads", "1"],
        ));
        assert!(at("whole") == at("parts"), "{more:?}");
    }
}

/// Columns that never change have no parameters, and are saved and read all the same.
#[test]
fn a_model_without_parameters_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.csv"), "a,b\nx,y\nx,y\nx,y\n").unwrap();
    for family in ["moat", "directed"] {
        let fit = ["fit", "c.csv", "--family", family, "--group", "*", "--epochs", "1", "--out", "c"];
        text(&everytree(folder.path(), &fit));
        let map = json(&everytree(folder.path(), &["map", "c", "--json"]));
        assert_eq!(map["rows"][0]["log_likelihood"].as_f64(), Some(0.0), "{family}");
        text(&everytree(folder.path(), &["inspect", "c", "--edges"]));
    }
}

#[test]
fn holes_in_training_are_no_state() {
    let folder = folder();
    fs::write(folder.path().join("holes.csv"), table(600, 5)).unwrap();
    let fit = |more: &[&str]| {
        let arguments = [
            &[
                "fit",
                "holes.csv",
                "--test",
                "test.csv",
                "--family",
                "directed",
                "--epochs",
                "15",
                "--json",
                "--out",
                "m",
            ],
            more,
        ]
        .concat();
        json(&everytree(folder.path(), &arguments))
    };
    let summed_out = fit(&["--missing", "marginalise"]);
    assert_eq!(summed_out["train_ll_estimated"], true);
    let inspect = json(&everytree(folder.path(), &["inspect", "m", "--json"]));
    assert!(inspect["variables"].as_array().unwrap().iter().all(|v| v["missing"].is_null()), "{inspect}");
    assert_eq!(inspect["variables"][3]["states"].as_array().unwrap().len(), 3);
    // A state for missing cells costs where there are none.
    let as_state = fit(&["--missing", "category"]);
    let test = |fit: &serde_json::Value| fit["test_ll"].as_f64().unwrap();
    assert!(test(&summed_out) > test(&as_state) + 0.2, "{summed_out} {as_state}");
    // And with the rows held out, all of them.
    assert!(fit(&["--missing", "marginalise", "--refit"])["test_ll"].is_f64());
}
