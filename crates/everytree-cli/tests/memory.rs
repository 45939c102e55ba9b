//! What would not fit is refused before it begins; what streams does not grow.

mod program;

use program::everytree;
use std::fs;
use std::path::Path;
use std::process::Output;

/// Columns of so many labels: the tables of a model take 8 S² bytes each, for S labels in all.
fn table(folder: &Path, columns: usize, labels: usize) {
    let mut text = (0..columns).map(|column| format!("c{column}")).collect::<Vec<_>>().join(",") + "\n";
    for row in 0..3 * labels {
        let cell = |column: usize| format!("v{}", (row * (column + 1) + row / labels) % labels);
        text += &((0..columns).map(cell).collect::<Vec<_>>().join(",") + "\n");
    }
    fs::write(folder.join("t.csv"), text).unwrap();
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_would_not_fit_is_refused_with_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 6, 60);
    let fit = ["fit", "--family", "moat", "t.csv", "--epochs", "1", "--quiet", "--out", "m.everytree"];
    let refused = everytree(folder.path(), &[&fit[..], &["--memory", "12MB"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused).contains("would take about"), "{}", words(&refused));
    assert!(words(&refused).contains("at most 12 MB may be used (--memory)"), "{}", words(&refused));
    assert!(!folder.path().join("m.everytree").exists());
    assert_eq!(everytree(folder.path(), &fit).status.code(), Some(0));
    let commands: [&[&str]; 6] = [
        &["score", "m.everytree", "t.csv"],
        &["sample", "m.everytree", "-n", "1"],
        &["query", "m.everytree", "--given", "c0=v1"],
        &["map", "m.everytree"],
        &["impute", "m.everytree", "t.csv", "--out", "o.csv"],
        &["inspect", "m.everytree"],
    ];
    for command in commands {
        let refused = everytree(folder.path(), &[command, &["--memory", "1MB"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{command:?}");
        assert!(words(&refused).contains("at most 1 MB may be used"), "{command:?}: {}", words(&refused));
    }
    assert!(!folder.path().join("o.csv").exists());
    let odd = everytree(folder.path(), &["score", "m.everytree", "t.csv", "--memory", "much"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(words(&odd).contains("such as 500MB"), "{}", words(&odd));
}

/// A limit changes nothing but whether something is done.
#[test]
fn a_limit_does_not_change_the_model() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 4, 5);
    for (name, more) in [("a", &[][..]), ("b", &["--memory", "300MB"])] {
        let fit = ["fit", "--family", "moat", "t.csv", "--epochs", "2", "--quiet", "--out", name];
        assert_eq!(everytree(folder.path(), &[&fit[..], more].concat()).status.code(), Some(0));
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a"), read("b"));
}

/// Rows are drawn in portions; those of a few are the first of those of many.
#[test]
fn samples_stream() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 3, 2);
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--quiet", "--out", "m"];
    assert_eq!(everytree(folder.path(), &fit).status.code(), Some(0));
    let sample = |rows: &str, out: &str| {
        let output = everytree(folder.path(), &["sample", "m", "-n", rows, "--out", out]);
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        fs::read(folder.path().join(out)).unwrap()
    };
    let (few, many) = (sample("65536", "few.csv"), sample("140000", "many.csv"));
    assert!(many.starts_with(&few));
    assert_eq!(many.iter().filter(|&&byte| byte == b'\n').count(), 140_001);
    assert_eq!(many, sample("140000", "again.csv"));
    let parquet = sample("140000", "many.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let scored = everytree(folder.path(), &["score", "m", "many.parquet", "--json"]);
    let scored: serde_json::Value = serde_json::from_slice(&scored.stdout).unwrap();
    assert_eq!(scored["rows"], 140_000);
}
