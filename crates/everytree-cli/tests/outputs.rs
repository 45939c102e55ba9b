//! No file is overwritten by mistake, whatever it is called; what is in the way of a result is said before the work.

mod program;

use program::{command, everytree, text};
use std::fs;
use std::path::Path;

/// A table, a model of it and a checkpoint.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("d.csv"), format!("a,b\n{}", "x,1\ny,2\n,1\n".repeat(20))).unwrap();
    fs::write(path.join("blocks"), "a,b\n").unwrap();
    text(&everytree(
        path,
        &["fit", "--family", "moat", "d.csv", "--epochs", "2", "--out", "m", "--checkpoint", "c"],
    ));
    folder
}

/// All files of a folder, with what is in them.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn what_is_read_is_not_overwritten() {
    let folder = folder();
    let path = folder.path();
    // Other names of the same files.
    fs::hard_link(path.join("d.csv"), path.join("hard.csv")).unwrap();
    fs::hard_link(path.join("m"), path.join("hard.m")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("d.csv", path.join("soft.csv")).unwrap();
    #[cfg(not(unix))]
    fs::hard_link(path.join("d.csv"), path.join("soft.csv")).unwrap();
    let before = contents(path);
    let refused: &[(&[&str], &str)] = &[
        (
            &["fit", "--family", "moat", "d.csv", "--out", "d.csv"],
            "--out d.csv: this is the table d.csv; it would be lost",
        ),
        (&["fit", "d.csv", "--out", "./hard.csv"], "--out ./hard.csv: this is the table d.csv"),
        (&["fit", "d.csv", "--checkpoint", "soft.csv"], "--checkpoint soft.csv: this is the table d.csv"),
        (&["fit", "hard.csv", "--valid", "d.csv", "--out", "d.csv"], "--out d.csv: this is the table"),
        (&["fit", "d.csv", "--blocks", "blocks", "--out", "blocks"], "this is the file of blocks blocks"),
        (&["fit", "d.csv", "--resume", "c", "--out", "c"], "--out c: this is the checkpoint c"),
        (
            &["fit", "--family", "moat", "d.csv", "--checkpoint", "new", "--out", "./new"],
            "--checkpoint new: --out goes to the same file",
        ),
        (&["fit", "m", "--out", "m"], "m: this is a model, not a table"),
        (&["compare", "m"], "m: this is a model or a checkpoint, not a table"),
        (&["score", "m", "d.csv", "--out", "d.csv"], "--out d.csv: this is the table d.csv"),
        (&["score", "m", "soft.csv", "--out", "hard.csv"], "--out hard.csv: this is the table soft.csv"),
        (&["score", "m", "d.csv", "--out", "m"], "--out m: this is the model m"),
        (&["sample", "m", "--out", "hard.m"], "--out hard.m: this is the model m"),
        (&["impute", "m", "d.csv", "--out", "hard.csv"], "--out hard.csv: this is the table d.csv"),
        (&["compare", "d.csv", "--html", "soft.csv"], "--html soft.csv: this is the table d.csv"),
        (
            &["fit", "--family", "moat", "d.csv", "--checkpoint", "no/such/c"],
            "--checkpoint no/such/c: there is no folder no/such",
        ),
    ];
    for (arguments, words) in refused {
        let output = everytree(path, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
        assert_eq!(contents(path), before, "{arguments:?}");
    }
    // A checkpoint that is gone on from is replaced: that is what it is for.
    let again = ["fit", "d.csv", "--resume", "c", "--checkpoint", "./c", "--epochs", "3", "--out", "m"];
    text(&everytree(path, &again));
}

#[cfg(unix)]
#[test]
fn permissions_of_what_is_replaced_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let model = folder.path().join("m");
    fs::set_permissions(&model, fs::Permissions::from_mode(0o640)).unwrap();
    text(&everytree(folder.path(), &["fit", "--family", "moat", "d.csv", "--epochs", "1", "--out", "m"]));
    assert_eq!(fs::metadata(&model).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Killed while it writes, a command leaves a half-written neighbour; the next one that writes there removes it.
#[cfg(unix)]
#[test]
fn leftovers_of_a_killed_command_are_removed_by_the_next() {
    let folder = folder();
    let left = folder.path().join(".everytree-x1y2z3.part");
    fs::write(&left, b"half a model").unwrap();
    let status = command(folder.path(), &["sample", "m", "-n", "3", "--out", "rows.csv"]).status().unwrap();
    assert!(status.success() && !left.exists());
    let parts = contents(folder.path()).into_iter().filter(|(name, _)| name.ends_with(".part"));
    assert_eq!(parts.count(), 0);
}

/// Scores go into the format that the name says.
#[test]
fn scores_are_written_as_their_name_says() {
    let folder = folder();
    let path = folder.path();
    let read = |name: &str| fs::read(path.join(name)).unwrap();
    for name in ["s.csv", "s.tsv", "s.csv.gz", "s.parquet"] {
        text(&everytree(path, &["score", "m", "d.csv", "--out", name]));
    }
    let plain = String::from_utf8(read("s.csv")).unwrap();
    assert_eq!(String::from_utf8(read("s.tsv")).unwrap(), plain.replace(',', "\t"));
    assert!(read("s.csv.gz").starts_with(&[0x1f, 0x8b]) && read("s.parquet").starts_with(b"PAR1"));
    // As tables again: the same numbers.
    let inspect = |name: &str| {
        let fit =
            ["fit", "--family", "moat", name, "--epochs", "1", "--out", "of", "--bins", "row=2", "--json"];
        let fit: serde_json::Value = serde_json::from_str(&text(&everytree(path, &fit))).unwrap();
        fit["valid_ll"].clone()
    };
    assert_eq!(inspect("s.csv"), inspect("s.csv.gz"));
    assert_eq!(inspect("s.csv"), inspect("s.parquet"));
    let refused = everytree(path, &["score", "m", "d.csv", "--out", "s.arrow"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// A name that a terminal would obey is shown, not obeyed.
#[test]
fn escapes_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "\u{1b}[31mred,1\nblue,2\n".repeat(20);
    fs::write(folder.path().join("d.csv"), format!("a,b\n{rows}")).unwrap();
    text(&everytree(
        folder.path(),
        &["fit", "--family", "moat", "d.csv", "--epochs", "1", "--out", "m", "--quiet"],
    ));
    for arguments in
        [&["inspect", "m"][..], &["query", "m"], &["map", "m"], &["query", "m", "--given", "a=x"]]
    {
        let output = everytree(folder.path(), arguments);
        let both = [output.stdout, output.stderr].concat();
        assert!(!both.contains(&0x1b), "{arguments:?}");
        assert!(String::from_utf8_lossy(&both).contains("[31mred"), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_that_would_be_read_twice_is_refused() {
    let folder = folder();
    assert!(
        std::process::Command::new("mkfifo").arg(folder.path().join("p.csv")).status().unwrap().success()
    );
    for arguments in [&["impute", "m", "p.csv", "--out", "w.csv"][..], &["fit", "--family", "moat", "p.csv"]]
    {
        let output = everytree(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("it is read twice here"), "{arguments:?}");
    }
}

/// What a command says that is bad input.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = everytree(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Files that are read beside tables end somewhere, and places for files are files.
#[test]
fn small_files_are_read_no_further_than_is_reasonable() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let table: String = (0..40).map(|i| format!("{},{}\n", i % 2, i % 3)).collect();
    fs::write(folder.join("t.csv"), format!("a,b\n{table}")).unwrap();
    for arguments in
        [&["trees", "/dev/zero"][..], &["fit", "t.csv", "--family", "moat", "--blocks", "/dev/zero"]]
    {
        let error = refusal(folder, arguments);
        assert!(error.contains("NUL byte"), "{error}");
    }
    fs::write(folder.join("long"), "0,1\n".repeat(1 << 20)).unwrap();
    let error = refusal(folder, &["trees", "long", "--memory", "40MB"]);
    assert!(error.contains("longer than there is room for"), "{error}");
    let error = refusal(folder, &["fit", "t.csv", "--out", "x/"]);
    assert!(error.contains("--out x/: this is a folder"), "{error}");
}
