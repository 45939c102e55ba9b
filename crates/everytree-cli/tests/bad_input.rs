//! Everything that can be wrong with a file, and the exact words for it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn everytree(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_everytree")).current_dir(folder).args(arguments).output().unwrap()
}

/// One case: a name, files to make, and what is run.
struct Case {
    name: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    arguments: Vec<&'static str>,
}

fn case(name: &'static str, content: impl AsRef<[u8]>, more: &[&'static str]) -> Case {
    // The paper's family is the quickest; nothing here depends on it.
    let says = more.iter().any(|word| ["--family", "--resume"].contains(word));
    let family: &[&str] = if says { &[] } else { &["--family", "moat"] };
    let arguments = [&["fit", "t.csv"], more, family].concat();
    Case { name, files: vec![("t.csv", content.as_ref().to_vec())], arguments }
}

/// A table that is fine, for cases where something else is wrong.
const GOOD: &str = "a,b,c\n0,x,1\n1,y,2\n0,x,2\n1,y,1\n0,y,1\n1,x,2\n";

fn score(name: &'static str, content: impl AsRef<[u8]>, more: &[&'static str]) -> Case {
    let arguments = [&["score", "m.everytree", "s.csv"], more].concat();
    Case { name, files: vec![("s.csv", content.as_ref().to_vec())], arguments }
}

fn impute(name: &'static str, content: impl AsRef<[u8]>, more: &[&'static str]) -> Case {
    let arguments = [&["impute", "m.everytree", "s.csv"], more].concat();
    Case { name, files: vec![("s.csv", content.as_ref().to_vec())], arguments }
}

fn ask(name: &'static str, arguments: &[&'static str]) -> Case {
    Case { name, files: vec![], arguments: arguments.to_vec() }
}

fn cases() -> Vec<Case> {
    let long = format!("a,b\n0,1\n1,{}\n", "x".repeat(10_000_000));
    let words: String = (0..100).map(|i| format!("word{i},{}\n", i % 2)).collect();
    let numbers: String = (0..100).map(|i| format!("{i}.5,{}\n", i % 2)).collect();
    let line = |row: usize| {
        (0..70).map(|c| format!("w{}", (row * 7 + c) % 240)).collect::<Vec<_>>().join(",") + "\n"
    };
    let wide: String = (0..240).map(line).collect();
    let model = |bytes: &[u8], name| Case {
        name,
        files: vec![("x.everytree", bytes.to_vec())],
        arguments: vec!["inspect", "x.everytree"],
    };
    vec![
        case("empty file", "", &[]),
        case("only blank lines", "\n\n\n", &[]),
        case("header only", "a,b,c\n", &["--header", "yes"]),
        case("ragged row", "a,b,c\n0,x,1\n1,y\n0,x,2\n", &[]),
        case("row too long", "a,b\n0,1\n1,0,1\n", &[]),
        case("NUL bytes", b"a,b\n0,1\n\0\0,1\n", &[]),
        case("UTF-16", b"\xff\xfea\0,\0b\0\n\0", &[]),
        case("invalid UTF-8", b"a,b\n0,caf\xe9\n1,tea\n", &[]),
        case("a field of 10 MB", long, &[]),
        case("unclosed quote", "a,b\n0,\"x\n1,y\n0,x\n", &[]),
        case("one row", "a,b\n0,1\n", &["--header", "yes"]),
        case("one column", "a\n0\n1\n0\n", &[]),
        case("wrong delimiter", "a|b|c\n0|1|1\n1|0|1\n", &[]),
        case("wrong delimiter, told", "a;b;c\n0;1;1\n1;0;1\n", &["--delimiter", ","]),
        case("all cells missing", "a,b\n,NA\n?,\n,\n", &[]),
        case("duplicate column names", "a,b,a\n0,1,1\n1,0,1\n", &[]),
        case("too many words", format!("name,b\n{words}"), &[]),
        case("too many numbers, no bins", format!("z,b\n{numbers}"), &["--bins", "none"]),
        case("bins of words", GOOD, &["--bins", "b=4"]),
        case("bins of no column", GOOD, &["--bins", "z=4"]),
        case("one bin", GOOD, &["--bins", "c=1"]),
        case("too many bins", GOOD, &["--bins", "c=70000"]),
        case("numbers with a word among them", format!("z,b\n{numbers}unknown,1\n"), &[]),
        case("no patience", GOOD, &["--patience", "0"]),
        case("too many threads", GOOD, &["--threads", "100000"]),
        case("a folder for the model", GOOD, &["--out", "folder"]),
        case("options that a checkpoint has settled", GOOD, &["--resume", "half.way", "--max-states", "3"]),
        Case { name: "a pipe", files: vec![], arguments: vec!["fit", "/dev/null"] },
        Case {
            name: "too many states in all",
            files: vec![("t.csv", wide.into_bytes())],
            arguments: vec!["fit", "t.csv", "--max-states", "300"],
        },
        case("bins of nothing", GOOD, &["--bins", "c"]),
        case("missing cells refused", "a,b\n0,1\n,0\n1,1\n", &["--missing", "error"]),
        case("no threads", GOOD, &["--threads", "0"]),
        case("no batch", GOOD, &["--batch", "0"]),
        case("negative learning rate", GOOD, &["--lr=-1"]),
        case("holdout of everything", GOOD, &["--holdout", "1.5"]),
        case("unknown family", GOOD, &["--family", "oak"]),
        case("no components", GOOD, &["--components", "0"]),
        case("hidden states of a family without", GOOD, &["--hidden", "4"]),
        case("no hidden states", GOOD, &["--family", "hclt", "--hidden", "0"]),
        case("two sizes at once", GOOD, &["--family", "hclt", "--components", "auto"]),
        case("shrinkage of hidden trees", GOOD, &["--family", "hclt", "--shrinkage", "1"]),
        case("pair tables of another family", GOOD, &["--family", "directed", "--pairs", "sinkhorn"]),
        case("a model over its table", GOOD, &["--out", "t.csv"]),
        case("several chow-liu trees", GOOD, &["--family", "chow-liu", "--components", "2"]),
        case("trees along a gradient", GOOD, &["--family", "mixture-of-trees", "--optimiser", "adam"]),
        case("an average of trees", GOOD, &["--family", "mixture-of-trees", "--average", "0.9"]),
        ask("a comparison of nobody", &["compare", "t.csv", "--families", "forest"]),
        ask("a page in no folder", &["compare", "t.csv", "--html", "nowhere/c.html"]),
        case("expectation–maximisation of the paper's family", GOOD, &["--optimiser", "em"]),
        case("negative shrinkage", GOOD, &["--family", "directed", "--shrinkage=-1"]),
        case("a group of one column", GOOD, &["--group", "a*"]),
        case("a column in two groups", GOOD, &["--group", "*", "--group", "*"]),
        case("no file of blocks", GOOD, &["--blocks", "nowhere.txt"]),
        case("blocks of a column that is not there", "a,c\nx,1\ny,2\nx,2\n", &["--blocks", "t.csv"]),
        case("an empty file of blocks", GOOD, &["--blocks", "/dev/null"]),
        case("limits without a search", GOOD, &["--block-states", "4"]),
        case("smoothing of tables that are not free", GOOD, &["--prior", "1"]),
        case(
            "a step length without steps",
            GOOD,
            &["--family", "directed", "--optimiser", "em", "--lr", "1"],
        ),
        case(
            "a block never seen whole",
            "a,b\n1,\n,1\n0,\n,0\n",
            &["--missing", "marginalise", "--group", "*"],
        ),
        case("a column never observed", "a,c\nx,\ny,\nx,\n", &["--missing", "marginalise"]),
        case("bad timeout", GOOD, &["--timeout", "soon"]),
        case("disk full while saving the model", GOOD, &["--epochs", "1", "--out", "/dev/full"]),
        case("disk full while saving a checkpoint", GOOD, &["--epochs", "1", "--checkpoint", "/dev/full"]),
        case("no folder for the model", GOOD, &["--epochs", "1", "--out", "no/such/folder/m.everytree"]),
        Case { name: "no such file", files: vec![], arguments: vec!["fit", "nowhere.csv"] },
        Case { name: "a folder", files: vec![], arguments: vec!["fit", "folder"] },
        case("broken gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03not really", &[]),
        case("broken Parquet", b"PAR1 and then something else", &[]),
        case("broken Arrow", b"ARROW1\0\0 and then something else", &[]),
        Case {
            name: "validation file with other columns",
            files: vec![("t.csv", GOOD.into()), ("v.csv", "a,b,d\n0,x,1\n".into())],
            arguments: vec!["fit", "t.csv", "--valid", "v.csv"],
        },
        Case {
            name: "test file with an unknown label",
            files: vec![("t.csv", GOOD.into()), ("v.csv", "a,b,c\n0,x,1\n1,z,2\n".into())],
            arguments: vec!["fit", "t.csv", "--test", "v.csv"],
        },
        Case {
            name: "checkpoint of other data",
            files: vec![("t.csv", "a,b,c\n0,x,1\n1,y,2\n0,x,2\n".into())],
            arguments: vec!["fit", "t.csv", "--resume", "half.way"],
        },
        score("score: unknown label", "a,b,c\n0,x,1\n1,w,2\n", &[]),
        score("score: no tolerance", "a,b,c\n0,x,1\n", &["--tolerance", "0"]),
        score("score: no trees", "a,b,c\n0,x,1\n", &["--trees", "0"]),
        impute("impute: unknown label", "a,b,c\n0,,1\n1,w,2\n", &["--out", "w.csv"]),
        impute("impute: missing column", "a,c\n0,\n", &["--out", "w.csv"]),
        impute("impute: another format", "a,b,c\n0,,1\n", &["--out", "w.parquet"]),
        impute("impute: no folder", "a,b,c\n0,,1\n", &["--out", "no/such/folder/w.csv"]),
        impute("impute: disk full", "a,b,c\n0,,1\n", &["--out", "/dev/full"]),
        impute("impute: ragged", "a,b,c\n0,,1\n0,x\n", &["--out", "w.csv"]),
        ask("query: no column", &["query", "m.everytree", "--given", "z=1"]),
        ask("query: unknown label", &["query", "m.everytree", "--given", "b=w"]),
        ask("query: a column twice", &["query", "m.everytree", "--given", "b=x", "--given", "b=y"]),
        ask("map: no rows", &["map", "m.everytree", "-n", "0"]),
        ask("sample: unknown label", &["sample", "m.everytree", "--given", "b=w"]),
        ask("info: one column", &["info", "m.everytree", "mutual-information", "a", "a"]),
        ask("info: not a conjunction", &["info", "m.everytree", "expect", "a & b=x"]),
        score("score: missing column", "a,c\n0,1\n", &[]),
        score("score: no header", "0,x,1\n1,y,2\n", &[]),
        score("score: no rows", "a,b,c\n", &[]),
        score("score: a column twice", "a,b,c,a\n0,x,1,1\n", &[]),
        score("score: unclosed quote", "a,b,c\n0,x,1\n0,\"x,1\n1,y,2\n", &[]),
        score("score: number out of the known", "a,b,c\n0,x,3\n", &[]),
        score("score: disk full", "a,b,c\n0,x,1\n", &["--out", "/dev/full"]),
        Case {
            name: "score: a table for a model",
            files: vec![("s.csv", GOOD.into())],
            arguments: vec!["score", "s.csv", "s.csv"],
        },
        model(b"", "model: empty"),
        model(b"\x10\0\0\0\0\0\0\0{\"__metadata__\"", "model: cut short"),
        model(b"\x02\0\0\0\0\0\0\0{}", "model: someone else's"),
        Case { name: "model: a checkpoint", files: vec![], arguments: vec!["inspect", "half.way"] },
    ]
}

#[test]
fn bad_input_is_refused_in_exact_words() {
    let mut table = String::new();
    let cases = cases();
    assert!(cases.len() >= 25);
    for Case { name, files, arguments } in cases {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        fs::write(folder.path().join("good.csv"), GOOD).unwrap();
        let made = everytree(
            folder.path(),
            &[
                "fit",
                "--family",
                "moat",
                "good.csv",
                "--out",
                "m.everytree",
                "--checkpoint",
                "half.way",
                "--epochs",
                "1",
                "--quiet",
            ],
        );
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (file, content) in files {
            fs::write(folder.path().join(file), content).unwrap();
        }
        let output = everytree(folder.path(), &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        // What `fit` says before it fails is not the point here.
        let message: Vec<&str> = stderr
            .lines()
            .filter(|line| {
                !line.contains("to learn from, ") && !line.starts_with("note: ") && !line.is_empty()
            })
            .collect();
        let message = without_kept_model(&message.join("\n"));
        writeln!(table, "# {name}\n$ everytree {}\n{message}\n", arguments.join(" ")).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// The message without the place where a model was kept, which has another name each time; that file is removed.
fn without_kept_model(message: &str) -> String {
    let (start, end) = ("the model is in ", " instead: ");
    let place = message.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map(|(place, _)| place);
    let Some(place) = place else { return message.to_string() };
    fs::remove_file(place).unwrap();
    message.replace(place, "TEMPORARY")
}

/// Only where the user may not read everything.
#[cfg(unix)]
#[test]
fn an_unreadable_file_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, GOOD).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // This user reads everything: nothing to see.
        return;
    }
    let output = everytree(folder.path(), &["fit", "--family", "moat", "t.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "everytree: t.csv: Permission denied (os error 13)\n"
    );
}
