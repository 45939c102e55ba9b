//! Commands that are killed, asked to end, run out of disk or of memory, or may not write: nothing is lost, nothing is half-written,
//! and exit codes are as documented.
#![cfg(unix)]

mod program;

use program::{command, everytree, text};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// What stood in the place of a result.
const OLD: &str = "what was there before";

/// A table that takes a while, and a model of it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Pcg64::seed_from_u64(3);
    let mut table = "a,b,c,d,e,f,g,h\n".to_owned();
    for _ in 0..4000 {
        let kind = rng.random_range(0..4);
        let mut cell = || match rng.random_range(0..10) {
            0 => String::new(),
            1..=5 => format!("v{kind}"),
            _ => format!("v{}", rng.random_range(0..4)),
        };
        let cells: Vec<String> = (0..8).map(|_| cell()).collect();
        table += &(cells.join(",") + "\n");
    }
    fs::write(folder.path().join("t.csv"), table).unwrap();
    let fit = ["fit", "t.csv", "--family", "directed", "--epochs", "1", "--quiet", "--out", "m"];
    text(&everytree(folder.path(), &fit));
    folder
}

/// Commands that write the file `out`.
fn commands() -> [Vec<&'static str>; 4] {
    [
        vec!["fit", "t.csv", "--family", "directed", "--epochs", "400", "--quiet", "--out", "out"],
        vec!["score", "m", "t.csv", "--out", "out"],
        vec!["impute", "m", "t.csv", "--out", "out"],
        vec!["sample", "m", "-n", "3000000", "--out", "out"],
    ]
}

/// Is it a result, whole?
fn is_whole(folder: &Path, name: &str) -> bool {
    let bytes = fs::read(folder.join("out")).unwrap();
    match name {
        "fit" => everytree(folder, &["inspect", "out"]).status.success(),
        "sample" => bytes.iter().filter(|&&byte| byte == b'\n').count() == 3_000_001,
        _ => bytes.iter().filter(|&&byte| byte == b'\n').count() == 4001,
    }
}

/// Nothing but what was there, and `out`.
fn check(folder: &Path, name: &str, output: &Output, what: &str) {
    let found = fs::read(folder.join("out")).unwrap();
    let replaced = found != OLD.as_bytes();
    if replaced {
        assert!(is_whole(folder, name), "{what}: half-written");
    }
    match (output.status.code(), output.status.signal()) {
        // Done before anything happened, or ended in good order: the result is there.
        (Some(0 | 130), _) => assert!(replaced, "{what}: no result"),
        (Some(2), _) => {
            assert!(!replaced, "{what}: an error, and a result");
            assert!(output.stderr.starts_with(b"everytree: "), "{what}");
        }
        (None, Some(_)) => {}
        other => panic!("{what}: {other:?} {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// What a command may have left behind is gone after the next one.
fn check_leftovers(folder: &Path) {
    text(&everytree(folder, &["sample", "m", "-n", "1", "--out", "last"]));
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["last", "m", "out", "t.csv"]);
}

#[test]
fn signals_at_any_moment() {
    let folder = folder();
    let path = folder.path();
    let mut rng = Pcg64::seed_from_u64(21);
    for arguments in commands() {
        for signal in ["KILL", "TERM", "INT", "HUP"] {
            for _ in 0..3 {
                fs::write(path.join("out"), OLD).unwrap();
                let mut child = command(path, &arguments)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the program");
                let wait = rng.random_range(0..250);
                std::thread::sleep(Duration::from_millis(wait));
                let _ = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).output();
                let begin = std::time::Instant::now();
                while child.try_wait().unwrap().is_none() {
                    assert!(begin.elapsed() < Duration::from_secs(60), "{arguments:?} {signal}: goes on");
                    std::thread::sleep(Duration::from_millis(2));
                }
                let output = child.wait_with_output().unwrap();
                check(path, arguments[0], &output, &format!("{} {signal} after {wait} ms", arguments[0]));
            }
        }
    }
    check_leftovers(path);
}

/// Through a shell, which sets limits.
fn limited(folder: &Path, limits: &str, arguments: &[&str]) -> Output {
    let program = command(folder, &[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(folder).arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(program);
    shell.args(arguments).output().unwrap()
}

/// A disk that is full in the middle of a file: files may not be larger than a few blocks.
#[test]
fn a_full_disk() {
    let folder = folder();
    for arguments in commands() {
        let arguments: Vec<&str> =
            arguments.into_iter().map(|word| if word == "400" { "1" } else { word }).collect();
        fs::write(folder.path().join("out"), OLD).unwrap();
        // Without the signal, writing fails as on a full disk.
        let output = limited(folder.path(), "trap '' XFSZ; ulimit -f 4", &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        check(folder.path(), arguments[0], &output, arguments[0]);
        // A device that is full from the beginning.
        let full: Vec<&str> =
            arguments.iter().map(|&word| if word == "out" { "/dev/full" } else { word }).collect();
        let refuge = tempfile::tempdir().unwrap();
        let output = command(folder.path(), &full).env("TMPDIR", refuge.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{full:?}");
        // What was learned is not lost.
        let kept: Vec<_> = fs::read_dir(refuge.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        match (arguments[0], &kept[..]) {
            ("fit", [kept]) => {
                let kept = kept.to_str().unwrap();
                assert!(String::from_utf8_lossy(&output.stderr).contains(kept));
                text(&everytree(folder.path(), &["inspect", kept]));
            }
            (name, kept) => assert!(name != "fit" && kept.is_empty(), "{name}: {kept:?}"),
        }
    }
    check_leftovers(folder.path());
}

/// A folder in which no file can be made.
#[test]
fn a_folder_that_cannot_be_written_to() {
    let folder = folder();
    for arguments in commands() {
        let arguments: Vec<&str> = arguments
            .into_iter()
            .map(|word| match word {
                "out" => "/proc/out",
                "400" => "1",
                word => word,
            })
            .collect();
        let output = everytree(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stderr.starts_with(b"everytree: "), "{arguments:?}");
    }
}

/// Little memory, by option and by the system: refused, or done.
#[test]
fn little_memory() {
    let folder = folder();
    for arguments in commands() {
        let arguments: Vec<&str> = arguments
            .into_iter()
            .map(|word| match word {
                "400" => "1",
                "3000000" => "1000",
                word => word,
            })
            .collect();
        fs::write(folder.path().join("out"), OLD).unwrap();
        let output = everytree(folder.path(), &[&arguments[..], &["--memory", "2MB"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        check(folder.path(), arguments[0], &output, arguments[0]);
        // Address space, of which threads and the program itself take some.
        let output = limited(folder.path(), "ulimit -v 3000000", &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A choice for which there is no room at all ends, and says what it needs; so do models that become one.
#[test]
fn little_memory_for_a_choice() {
    let folder = folder();
    let folder = folder.path();
    let refused = |arguments: &[&str]| {
        let output = everytree(folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("at most"), "{arguments:?}: {said}");
    };
    refused(&["fit", "t.csv", "--effort", "quick", "--out", "out", "--memory", "2MB"]);
    let size = fs::metadata(folder.join("m")).unwrap().len();
    // Room for one of them, but not for both and what they come to.
    let memory = format!("{}B", 3 * size);
    refused(&["mix", "m", "m", "--weights", "1,1", "--out", "out", "--memory", &memory]);
    assert!(!folder.join("out").exists());
}

/// Whatever the only family came to that there was time for is kept.
#[test]
fn a_comparison_without_time_has_a_model() {
    let folder = folder();
    let compare =
        ["compare", "t.csv", "--families", "directed,moat", "--time", "0.001s", "--quiet", "--out", "out"];
    let output = everytree(folder.path(), &compare);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_whole(folder.path(), "fit"));
}
