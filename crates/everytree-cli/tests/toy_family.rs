//! A family that is one file and one entry in the list of families works in every command. (Its file is
//! `everytree-core/src/model/toy.rs`, compiled for tests only.)

mod program;

use program::{everytree, json};
use std::fs;
use std::path::Path;

/// Two columns that are mostly in their first state.
fn table(folder: &Path) {
    let rows: String =
        (0..60).map(|i| format!("{},{}\n", u8::from(i % 3 == 0), ["x", "x", "x", "y"][i % 4])).collect();
    fs::write(folder.join("t.csv"), format!("a,b\n{rows}")).unwrap();
}

#[test]
fn a_family_is_a_file_and_an_entry_in_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    table(folder);
    let fit = json(&everytree(
        folder,
        &["fit", "t.csv", "--family", "toy", "--json", "--quiet", "--checkpoint", "half.way"],
    ));
    assert_eq!((fit["family"].as_str(), fit["parameters"].as_u64()), (Some("toy"), Some(2)));
    // P(a = 0) = 2/3 and P(b = x) = 3/4, but for rows that are held out and the pseudocount.
    let answer = json(&everytree(folder, &["query", "t.everytree", "--json"]));
    let p = |place: usize| answer["answers"][place]["probability"].as_f64().unwrap();
    assert_eq!(answer["method"], "exact");
    assert!((p(0) - 2.0 / 3.0).abs() < 0.05 && (p(2) - 0.75).abs() < 0.05, "{answer}");
    assert!((p(0) + p(1) - 1.0).abs() < 1e-12);
    let score = json(&everytree(folder, &["score", "t.everytree", "t.csv", "--summary", "--json"]));
    let entropy = -(2.0f64 / 3.0 * (2.0f64 / 3.0).ln() + (1.0f64 / 3.0).ln() / 3.0)
        - (0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln());
    assert!((score["mean_log_likelihood"].as_f64().unwrap() + entropy).abs() < 0.02, "{score}");
    let compare =
        json(&everytree(folder, &["compare", "t.csv", "--families", "toy,independent", "--json", "--quiet"]));
    assert_eq!(compare["families"][0]["family"], "toy");
    // Learning goes on from a checkpoint, and the file says what the family is.
    let resumed = json(&everytree(
        folder,
        &["fit", "t.csv", "--resume", "half.way", "--json", "--quiet", "--out", "again"],
    ));
    assert_eq!(resumed["valid_ll"], fit["valid_ll"]);
    assert_eq!(fs::read(folder.join("again")).unwrap(), fs::read(folder.join("t.everytree")).unwrap());
    for command in [&["sample", "t.everytree"][..], &["map", "t.everytree"], &["inspect", "t.everytree"]] {
        assert!(everytree(folder, command).status.success(), "{command:?}");
    }
    // It is for tests: no list shows it.
    let help = everytree(folder, &["fit", "--family", "moat", "--help"]);
    assert!(!String::from_utf8_lossy(&help.stdout).contains("toy"));
}
