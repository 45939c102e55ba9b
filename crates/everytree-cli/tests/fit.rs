//! `everytree fit` from end to end: what it prints, what it saves, how it is stopped and taken up again.

mod program;

use everytree_core::file::{Checkpoint, ModelFile};
use program::{Chance, command, everytree, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A table of words, numbers, truth values and gaps, with dependencies.
fn table(rows: usize) -> String {
    let mut text = String::from("weather,visits,ill,ward\n");
    let mut chance = Chance(12345);
    for _ in 0..rows {
        let mut next = |n: u32| chance.next(n);
        let rain = next(3);
        let visits = (rain + next(2)) % 4;
        let ill = next(10) < 2 + 2 * visits;
        let ward = if next(12) == 0 { "" } else { ["north", "south"][usize::from(ill != (next(5) == 0))] };
        text += &format!("{},{visits},{ill},{ward}\n", ["dry", "rain", "snow"][rain as usize]);
    }
    text
}

fn folder_with(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), table(rows)).unwrap();
    folder
}

#[test]
fn json_has_what_the_contract_says() {
    let folder = folder_with(400);
    fs::write(folder.path().join("test.csv"), table(100)).unwrap();
    let output = everytree(
        folder.path(),
        &["fit", "--family", "moat", "t.csv", "--test", "test.csv", "--json", "--epochs", "5"],
    );
    let fit = json(&output);
    for key in ["train_ll", "valid_ll", "test_ll", "seconds"] {
        assert!(fit[key].is_f64(), "{key}: {fit}");
    }
    // Of both, because it has learned once more from the rows held out.
    assert_eq!((&fit["rows"], &fit["refit"]), (&400.into(), &true.into()));
    assert_eq!(fit["valid_rows"], 40);
    assert_eq!(fit["epochs"], 5);
    assert_eq!(fit["model"], "t.everytree");
    assert_eq!((&fit["family"], &fit["components"], &fit["seed"]), (&"moat".into(), &1.into(), &0.into()));
    assert_eq!(fit["device"], "cpu");
    assert!(fit["unique_rows"].as_u64().unwrap() < 360);
    assert!(fit["best_epoch"].as_u64().unwrap() <= 5);
    assert!(fit["parameters"].as_u64().unwrap() > 0);
    let file = ModelFile::load(&folder.path().join("t.everytree")).unwrap();
    let results = file.provenance.results.unwrap();
    assert_eq!(fit["valid_ll"].as_f64().unwrap(), results.valid_ll);
    let labels: Vec<Vec<String>> = file.schema.variables.iter().map(|v| v.labels()).collect();
    assert_eq!(labels[0], ["dry", "rain", "snow"]);
    assert_eq!(labels[1], ["0", "1", "2", "3"]);
    assert_eq!(labels[2], ["false", "true"]);
    assert_eq!(labels[3], ["north", "south", ""]);

    // Scores of the same rows have the same mean, missing cells as the state they are.
    let arguments = ["score", "t.everytree", "test.csv", "--summary", "--json", "--missing-as-state"];
    let score = json(&everytree(folder.path(), &arguments));
    assert_eq!(score["rows"], 100);
    let difference = score["mean_log_likelihood"].as_f64().unwrap() - fit["test_ll"].as_f64().unwrap();
    assert!(difference.abs() < 1e-12, "{difference}");
    assert!(score["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(score["least_likely"].as_array().unwrap().len(), 10);

    let inspect = json(&everytree(folder.path(), &["inspect", "t.everytree", "--json"]));
    assert_eq!(inspect["edges"].as_array().unwrap().len(), 6);
    let sum: f64 =
        inspect["edges"].as_array().unwrap().iter().map(|e| e["probability"].as_f64().unwrap()).sum();
    assert!((sum - 3.0).abs() < 1e-9);
    assert_eq!(inspect["variables"][0]["name"], "weather");
}

#[test]
fn scores_are_one_line_a_row() {
    let folder = folder_with(300);
    assert!(
        everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--epochs", "2", "--quiet"])
            .status
            .success()
    );
    let output = everytree(folder.path(), &["score", "t.everytree", "t.csv", "--missing-as-state"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("row,log_likelihood"));
    for (row, line) in lines.enumerate() {
        let (number, score) = line.split_once(',').unwrap();
        assert_eq!(number, row.to_string());
        assert!(score.parse::<f64>().unwrap() < 0.0);
    }
    assert_eq!(text.lines().count(), 301);
    let arguments = ["score", "t.everytree", "t.csv", "--missing-as-state", "--out", "s.csv"];
    assert!(everytree(folder.path(), &arguments).status.success());
    assert_eq!(fs::read_to_string(folder.path().join("s.csv")).unwrap(), text);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = folder_with(500);
    let mut models = Vec::new();
    for threads in ["1", "2", "7"] {
        let arguments = [
            "fit",
            "--family",
            "moat",
            "t.csv",
            "--epochs",
            "4",
            "--batch",
            "50",
            "--threads",
            threads,
            "--out",
            "m",
            "--quiet",
        ];
        assert!(everytree(folder.path(), &arguments).status.success());
        models.push(fs::read(folder.path().join("m")).unwrap());
    }
    assert!(models.windows(2).all(|pair| pair[0] == pair[1]));
    let other = [
        "fit", "--family", "moat", "t.csv", "--epochs", "4", "--batch", "50", "--seed", "1", "--out", "m",
        "--quiet",
    ];
    assert!(everytree(folder.path(), &other).status.success());
    assert_ne!(fs::read(folder.path().join("m")).unwrap(), models[0]);
}

/// Every choice changes the model, and what it says of itself.
#[test]
fn every_choice_makes_a_difference() {
    let folder = folder_with(300);
    let fit = |more: &[&str]| {
        let learn = [
            "fit", "--family", "moat", "t.csv", "--epochs", "3", "--batch", "50", "--json", "--quiet",
            "--out", "m",
        ];
        let report = json(&everytree(folder.path(), &[&learn[..], more].concat()));
        (report, ModelFile::load(&folder.path().join("m")).unwrap())
    };
    let (plain, model) = fit(&[]);
    for more in [
        &["--pairs", "lambda"][..],
        &["--init", "random"],
        &["--smoothing", "20"],
        &["--precision", "f64"],
        &["--cosine"],
        &["--average", "0.9"],
        &["--lr", "0.01"],
        &["--seed", "5"],
        &["--no-refit"],
        &["--no-refit", "--average", "0.9"],
        &["--missing", "category", "--na", "north,-"],
        &["--bins", "visits=2"],
        &["--holdout", "0.3"],
        &["--timeout", "0s"],
    ] {
        let (report, other) = fit(more);
        assert!(report["valid_ll"].as_f64().unwrap() > -6.0, "{more:?}");
        assert!(other.model != model.model, "{more:?}");
    }
    assert!(fit(&["--refit"]).1.model == model.model, "so it is anyway");
    assert_eq!((&plain["rows"], &plain["refit"]), (&300.into(), &true.into()));
    assert_eq!(model.provenance.train.unwrap().rows, 300);
    let (declined, file) = fit(&["--no-refit"]);
    assert_eq!((&declined["rows"], &declined["refit"]), (&270.into(), &false.into()));
    assert_eq!(file.provenance.train.unwrap().rows, 270);
    assert_eq!(declined["valid_ll"], plain["valid_ll"], "from before the refit");
    assert_eq!(fit(&["--holdout", "0.3"]).0["valid_rows"], 90);
    assert_eq!(fit(&["--timeout", "0s"]).0["epochs"], 0);
    assert_eq!(fit(&["--bins", "visits=2"]).1.schema.variables[1].len(), 2);
    assert_eq!(plain["epochs"], 3);
    let patience = [
        "fit",
        "--family",
        "moat",
        "t.csv",
        "--lr",
        "3",
        "--epochs",
        "40",
        "--patience",
        "2",
        "--json",
        "--quiet",
    ];
    let stopped = json(&everytree(folder.path(), &patience));
    let (epochs, best) = (stopped["epochs"].as_u64().unwrap(), stopped["best_epoch"].as_u64().unwrap());
    assert_eq!(epochs, best + 2);
    assert!(
        !everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--missing", "error"])
            .status
            .success()
    );
}

/// A checkpoint that cannot be saved, after an epoch that was: the model is there all the same.
#[test]
fn a_checkpoint_that_fails_does_not_take_the_model_along() {
    let folder = folder_with(100);
    let output = everytree(
        folder.path(),
        &["fit", "--family", "moat", "t.csv", "--checkpoint", "/dev/full", "--out", "m", "--quiet"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(ModelFile::load(&folder.path().join("m")).is_ok());
}

/// Nobody listens to what is said on the way: that is no reason to stop.
#[cfg(unix)]
#[test]
fn a_closed_standard_error_is_no_error() {
    let folder = folder_with(100);
    let mut child =
        command(folder.path(), &["fit", "--family", "moat", "t.csv", "--epochs", "2", "--out", "m"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(ModelFile::load(&folder.path().join("m")).is_ok());
}

#[test]
fn a_resumed_run_keeps_its_seed_and_its_holdout() {
    let folder = folder_with(200);
    let begin = [
        "fit",
        "--family",
        "moat",
        "t.csv",
        "--seed",
        "7",
        "--holdout",
        "0.25",
        "--epochs",
        "2",
        "--checkpoint",
        "c",
        "--json",
    ];
    let first = json(&everytree(folder.path(), &begin));
    let again =
        json(&everytree(folder.path(), &["fit", "t.csv", "--resume", "c", "--epochs", "4", "--json"]));
    assert_eq!((&first["seed"], &again["seed"]), (&7.into(), &7.into()));
    assert_eq!((&again["valid_rows"], &again["epochs"]), (&50.into(), &4.into()));
}

#[test]
fn gzip_tsv_and_headerless_files_hold_the_same_table() {
    let folder = folder_with(200);
    let text = table(200);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("t.tsv"), text.replace(',', "\t")).unwrap();
    fs::write(at("semicolons.txt"), text.replace(',', ";")).unwrap();
    fs::write(at("bom.csv"), format!("\u{feff}{text}")).unwrap();
    fs::write(at("crlf.csv"), text.replace('\n', "\r\n")).unwrap();
    fs::write(at("quoted.csv"), text.replace("rain", "\"rain\"").replace("ward", "\"ward\"")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    fs::write(at("t2.csv.gz"), packed.finish().unwrap()).unwrap();
    let fit = |file: &str| {
        let output = everytree(
            folder.path(),
            &["fit", "--family", "moat", file, "--epochs", "1", "--out", "m", "--quiet"],
        );
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        fs::read(at("m")).unwrap()
    };
    let expected = fit("t.csv");
    for file in ["t.tsv", "semicolons.txt", "bom.csv", "crlf.csv", "quoted.csv", "t2.csv.gz"] {
        assert!(fit(file) == expected, "{file}");
    }
    let body = text.split_once('\n').unwrap().1;
    fs::write(at("bare.csv"), body).unwrap();
    fit("bare.csv");
    let file = ModelFile::load(&at("m")).unwrap();
    assert!(!file.schema.header);
    assert_eq!(file.schema.variables[0].name, "x0");
    // Forced to have a header, the first row is names.
    let arguments = ["fit", "--family", "moat", "bare.csv", "--header", "yes", "--epochs", "1", "--json"];
    let first = body.lines().next().unwrap();
    if first.split(',').all(|cell| !cell.is_empty()) {
        assert_eq!(json(&everytree(folder.path(), &arguments))["rows"], 199);
    }
}

#[test]
fn resuming_ends_with_the_very_same_model() {
    let folder = folder_with(600);
    let learn =
        ["fit", "--family", "moat", "t.csv", "--batch", "32", "--average", "0.98", "--cosine", "--quiet"];
    let run = |more: &[&str]| {
        let output = everytree(folder.path(), &[&learn[..], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["--epochs", "12", "--out", "whole"]);
    // No time at all: only the initialisation is there.
    run(&["--epochs", "12", "--timeout", "0s", "--checkpoint", "half", "--out", "parts"]);
    assert_eq!(
        Checkpoint::load(&folder.path().join("half")).unwrap().search.running.unwrap().state.epochs(),
        0
    );
    let resumed =
        everytree(folder.path(), &["fit", "t.csv", "--resume", "half", "--out", "parts", "--quiet"]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let at = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(at("whole") == at("parts"));
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ctrl-C, SIGTERM, SIGHUP: an orderly end, a model, a checkpoint that goes on to the same result.
#[cfg(unix)]
#[test]
fn an_interrupted_fit_saves_and_can_go_on() {
    let folder = folder_with(3000);
    let at = |name: &str| folder.path().join(name);
    let learn = ["fit", "--family", "moat", "t.csv", "--batch", "16", "--epochs", "40", "--quiet"];
    assert!(everytree(folder.path(), &[&learn[..], &["--out", "whole"]].concat()).status.success());
    for name in ["-INT", "-TERM", "-HUP"] {
        let child =
            command(folder.path(), &[&learn[..], &["--out", "part", "--checkpoint", "half"]].concat())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        wait_for(&at("half"));
        signal(&child, name);
        let status = { child }.wait().unwrap();
        assert_eq!(status.code(), Some(130));
        assert!(ModelFile::load(&at("part")).is_ok());
        assert!(Checkpoint::load(&at("half")).unwrap().search.running.unwrap().state.epochs() < 40);
        assert!(
            everytree(folder.path(), &["fit", "t.csv", "--resume", "half", "--out", "part", "--quiet"])
                .status
                .success()
        );
        assert!(fs::read(at("part")).unwrap() == fs::read(at("whole")).unwrap());
        fs::remove_file(at("half")).unwrap();
    }
}

/// Kill -9 at any moment leaves the old checkpoint or the new one, whole.
#[cfg(unix)]
#[test]
fn a_killed_fit_leaves_a_whole_checkpoint() {
    let folder = folder_with(300);
    let at = folder.path().join("half");
    let learn = [
        "fit",
        "--family",
        "moat",
        "t.csv",
        "--epochs",
        "1000000",
        "--quiet",
        "--checkpoint",
        "half",
        "--out",
        "m",
    ];
    for round in 0..12u64 {
        let mut child =
            command(folder.path(), &learn).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(&at);
        std::thread::sleep(Duration::from_millis(7 + 11 * round));
        signal(&child, "-KILL");
        assert_eq!(child.wait().unwrap().code(), None);
        Checkpoint::load(&at).unwrap();
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = folder_with(20_000);
    assert!(
        everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--epochs", "1", "--quiet"])
            .status
            .success()
    );
    let mut child = command(folder.path(), &["score", "t.everytree", "t.csv", "--missing-as-state"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_demo_comes_close_to_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let demo = json(&everytree(folder.path(), &["demo", "--json"]));
    assert!((demo["sum_of_probabilities"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!(demo["kullback_leibler"].as_f64().unwrap() < 0.05);
    for answer in demo["answers"].as_array().unwrap() {
        let (learned, exact) = (answer["learned"].as_f64().unwrap(), answer["exact"].as_f64().unwrap());
        assert!((learned - exact).abs() < 0.05, "{answer}");
    }
}

#[test]
fn every_command_has_help_with_an_example_and_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let help = String::from_utf8(everytree(folder.path(), &["--help"]).stdout).unwrap();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 7, "{help}");
    assert!(everytree(folder.path(), &["man", "--out", "."]).status.success());
    for name in commands {
        let help = String::from_utf8(everytree(folder.path(), &[name, "--help"]).stdout).unwrap();
        assert!(help.contains(&format!("  everytree {name}")), "{name}: {help}");
        let page = fs::read_to_string(folder.path().join(format!("everytree-{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME"));
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(everytree(folder.path(), &["completions", shell]).stdout.len() > 100);
    }
}

/// A GPU that was asked for and is not there is named, whoever asks; nobody else needs one.
#[test]
fn a_gpu_that_is_not_there_is_named() {
    let folder = folder_with(100);
    assert!(
        everytree(folder.path(), &["fit", "--family", "moat", "t.csv", "--epochs", "1", "--device", "cpu"])
            .status
            .success()
    );
    let plain = everytree(folder.path(), &["score", "t.everytree", "t.csv"]);
    for device in ["auto", "cpu"] {
        let scored = everytree(folder.path(), &["score", "t.everytree", "t.csv", "--device", device]);
        assert_eq!(program::text(&scored), program::text(&plain));
    }
    let unknown = everytree(folder.path(), &["score", "t.everytree", "t.csv", "--device", "abacus"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("auto, cpu, cuda, or cuda:N"));
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    for arguments in [&["fit", "--family", "moat", "t.csv"][..], &["score", "t.everytree", "t.csv"]] {
        let missing = command(folder.path(), arguments).args(["--device", "cuda:1"]).output().unwrap();
        assert!(!missing.status.success());
        let words = String::from_utf8_lossy(&missing.stderr);
        assert!(words.contains("--device cuda:1: there is no"), "{words}");
    }
}
