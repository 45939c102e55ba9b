//! Tables as people bring them: columns left out, identifiers, rare labels, unknown labels, gaps in test files, numbers as they are
//! written in other countries.

mod program;

use program::{Chance, command, everytree, json, text};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};

/// Identifiers, free text, jobs of which most are rare, and two columns that depend on each other.
fn people(rows: u32) -> String {
    let mut chance = Chance(3);
    let mut lines = String::from("id,note,job,smoker,cough\n");
    for i in 0..rows {
        let job = match chance.next(10) {
            0..=3 => "nurse".to_owned(),
            4..=6 => "cook".to_owned(),
            _ => format!("job {}", chance.next(200)),
        };
        let smoker = chance.next(2);
        let cough = if chance.next(10) == 0 { 1 - smoker } else { smoker };
        lines +=
            &format!("p{i},\"a story, number {i}\",{job},{},{}\n", ["no", "yes"][smoker as usize], cough);
    }
    lines
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = everytree(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", words(&output));
    words(&output)
}

#[test]
fn columns_are_left_out_and_remembered() {
    let folder = folder(&[("t.csv", &people(300))]);
    let folder = folder.path();
    // The error names ways that work.
    let error = refused(folder, &["fit", "--family", "moat", "t.csv", "--epochs", "1"]);
    assert!(error.contains("--drop id") && error.contains("--other 63"), "{error}");
    let fit = ["fit", "t.csv", "--epochs", "2", "--family", "chow-liu"];
    let said = everytree(folder, &[&fit[..], &["--id", "id", "--drop", "note", "--other", "2"]].concat());
    let said = words(&said);
    assert!(said.contains("left out: 2 columns (\"id\", \"note\")"), "{said}");
    assert!(said.contains("column \"job\": the most frequent 2 labels"), "{said}");

    // Scores carry identifiers, and pass over what was left out without a word.
    let scored = everytree(folder, &["score", "t.everytree", "t.csv"]);
    assert!(words(&scored).is_empty(), "{}", words(&scored));
    let scores = text(&scored);
    assert!(scores.starts_with("row,id,log_likelihood\n0,p0,-"), "{scores}");
    let summary = json(&everytree(folder, &["score", "t.everytree", "t.csv", "--json"]));
    assert!(summary["least_likely"][0]["id"][0].as_str().unwrap().starts_with('p'), "{summary}");
    text(&everytree(folder, &["score", "t.everytree", "t.csv", "--out", "s.parquet"]));
    let sampled = text(&everytree(folder, &["sample", "t.everytree", "-n", "2"]));
    assert!(sampled.starts_with("id,job,smoker,cough\n1,"), "{sampled}");
    text(&everytree(folder, &["impute", "t.everytree", "t.csv", "--out", "i.csv"]));
    assert_eq!(
        fs::read_to_string(folder.join("i.csv")).unwrap(),
        fs::read_to_string(folder.join("t.csv")).unwrap()
    );

    // A label that nobody has seen is one of the others, and so are all rare ones.
    fs::write(folder.join("n.csv"), "job,smoker,cough\nastronaut,yes,1\njob 3,yes,1\n").unwrap();
    let both = text(&everytree(folder, &["score", "t.everytree", "n.csv", "--unknown", "other"]));
    let both: Vec<&str> = both.lines().skip(1).map(|line| line.split_once(',').unwrap().1).collect();
    assert_eq!(both[0], both[1]);
    // Later, a column can be left out of the question too: it is not observed then.
    let less = text(&everytree(folder, &["score", "t.everytree", "n.csv", "--drop", "job"]));
    let p = |line: &str| line.split(',').nth(1).unwrap().parse::<f64>().unwrap();
    assert!(p(less.lines().nth(1).unwrap()) > both[0].parse::<f64>().unwrap(), "{less}");

    // Patterns, and mistakes in them.
    let only = [&fit[..], &["--columns", "s*,c?ugh", "--out", "o.everytree", "--json"]].concat();
    assert_eq!(json(&everytree(folder, &only))["parameters"], 3);
    let error = refused(folder, &[&fit[..], &["--drop", "notes"]].concat());
    assert!(error.contains("no column \"notes\" (did you mean \"note\"?)"), "{error}");
    assert!(refused(folder, &[&fit[..], &["--drop", "*"]].concat()).contains("every column is left out"));
    let error = refused(folder, &["score", "o.everytree", "n.csv", "--unknown", "other"]);
    assert!(error.contains("no state for other labels; fit it with --other "), "{error}");
}

#[test]
fn columns_of_files_without_names_are_left_out_by_number() {
    let rows: String = (0..60).map(|i| format!("{i},{},{}\n", i % 2, i % 3 % 2)).collect();
    let folder = folder(&[("t.data", &rows), ("short.data", "1,0\n0,1\n")]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "t.data", "--drop", "x0", "--family", "chow-liu", "--quiet"]));
    let whole = text(&everytree(folder, &["score", "t.everytree", "t.data"]));
    assert_eq!(whole.lines().count(), 61);
    let short = text(&everytree(folder, &["score", "t.everytree", "short.data"]));
    // Row 1 of the long file is 1,1,1 without its first column: 1,1; row 1 of the short one is 0,1.
    assert_eq!(short.lines().count(), 3);
}

#[test]
fn test_files_may_have_gaps_and_new_labels() {
    let mut train = String::from("a,b,c\n");
    (0..200).for_each(|i| {
        let c = if i % 7 == 0 { String::new() } else { (i % 2).to_string() };
        train += &format!("{},{},{c}\n", ["x", "y"][i % 2], ["p", "q", "r"][i / 3 % 3]);
    });
    let folder = folder(&[
        ("t.csv", &train),
        ("gaps.csv", "a,b,c\nx,p,0\n,q,1\ny,,\nx,p,\n"),
        ("new.csv", "a,b,c\nz,p,0\ny,q,1\n"),
    ]);
    let folder = folder.path();
    for family in ["moat", "directed", "chow-liu"] {
        let fit = ["fit", "t.csv", "--epochs", "3", "--family", family, "--out", "m", "--json", "--test"];
        let found = json(&everytree(folder, &[&fit[..], &["gaps.csv"]].concat()));
        let scored = json(&everytree(folder, &["score", "m", "gaps.csv", "--missing-as-state", "--json"]));
        let both = [&found["test_ll"], &scored["mean_log_likelihood"]].map(|x| x.as_f64().unwrap());
        assert!((both[0] - both[1]).abs() < 1e-9, "{family}: {both:?}");
        assert_eq!(found["test_standard_error"], 0.0);
        // What was not observed is summed out.
        let found = json(&everytree(folder, &[&fit[..], &["gaps.csv", "--missing", "marginalise"]].concat()));
        let scored = json(&everytree(folder, &["score", "m", "gaps.csv", "--json"]));
        let both = [&found["test_ll"], &scored["mean_log_likelihood"]].map(|x| x.as_f64().unwrap());
        assert!((both[0] - both[1]).abs() < 1e-9, "{family}: {both:?}");
        // Labels that are new.
        let error = refused(folder, &[&fit[..], &["new.csv"]].concat());
        assert!(error.contains("unknown value \"z\"") && error.contains("--unknown unobserved"), "{error}");
        let output = everytree(folder, &[&fit[..], &["new.csv", "--unknown", "unobserved"]].concat());
        let found = json(&output);
        let arguments = ["score", "m", "new.csv", "--unknown", "unobserved", "--missing-as-state", "--json"];
        let output = everytree(folder, &arguments);
        assert!(words(&output).contains("1 label that the model does not know: taken for not observed"));
        let both = [&found["test_ll"], &json(&output)["mean_log_likelihood"]].map(|x| x.as_f64().unwrap());
        assert!((both[0] - both[1]).abs() < 1e-9, "{family}: {both:?}");
    }
    let compared = everytree(
        folder,
        &[
            "compare",
            "t.csv",
            "--test",
            "gaps.csv",
            "--families",
            "independent,chow-liu",
            "--time",
            "20s",
            "--quiet",
        ],
    );
    assert!(text(&compared).contains("chow-liu"));
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let mut rows = String::from("price;share;size;answer\n");
    let mut chance = Chance(5);
    for i in 0..300u32 {
        let euros = 1000 + chance.next(2000);
        rows += &format!("{}.{:03},{:02};", euros / 1000, euros % 1000, i % 100);
        rows += &format!(
            "{} %;{},5;{}\n",
            chance.next(100),
            chance.next(9),
            ["no", "yes"][(euros > 1500) as usize]
        );
    }
    let folder = folder(&[("t.csv", &rows)]);
    let folder = folder.path();
    let fitted = everytree(folder, &["fit", "t.csv", "--family", "chow-liu", "--bins", "4"]);
    let said = words(&fitted);
    assert!(said.contains("column \"price\":") && said.contains("is read as the number"), "{said}");
    let inspected = json(&everytree(folder, &["inspect", "t.everytree", "--json"]));
    let variables = inspected["variables"].as_array().unwrap();
    assert!(variables[..3].iter().all(|v| v["states"].as_array().unwrap().len() == 4), "{inspected}");
    // Asked in either way, and cut bins count by their rows.
    let p = |given: &str| {
        let found = json(&everytree(
            folder,
            &["query", "t.everytree", "--given", given, "--target", "answer=yes", "--json"],
        ));
        found["answers"][0]["probability"].as_f64().unwrap()
    };
    assert_eq!(p("price=1.000,50"), p("price=1000.5"));
    assert!(p("price>2500") > 0.8 && p("price in 0..1200") < 0.2);
    // What fills a cell is written as the others are.
    fs::write(folder.join("h.csv"), "price;share;size;answer\n1.200,50;;;no\n").unwrap();
    text(&everytree(folder, &["impute", "t.everytree", "h.csv", "--out", "f.csv"]));
    let filled = fs::read_to_string(folder.join("f.csv")).unwrap();
    let cells: Vec<&str> = filled.lines().nth(1).unwrap().split(';').collect();
    assert!(cells[1].ends_with('%') && !cells[2].is_empty() && !cells[2].contains('.'), "{filled}");
}

#[test]
fn a_listener_who_has_heard_enough_is_no_error() {
    let folder = folder(&[("t.csv", &people(300))]);
    let folder = folder.path();
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--columns", "smoker,cough", "--quiet"];
    text(&everytree(folder, &fit));
    let many = "smoker,cough\n".to_owned() + &"yes,1\n".repeat(200_000);
    fs::write(folder.join("many.csv"), many).unwrap();
    for arguments in [&["sample", "t.everytree", "-n", "1000000"][..], &["score", "t.everytree", "many.csv"]]
    {
        let mut running =
            command(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut some = [0; 100];
        running.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let mut said = String::new();
        running.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((running.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// What is asked for one column is done, or said not to be.
#[test]
fn other_is_for_labels() {
    let table = (0..60).fold("a,b,c\n".to_owned(), |table, i| {
        table + &format!("{},{},{}\n", i % 7, ["x", "y", "z"][i % 3], ["other", "u", "v", "w"][i % 4])
    });
    let folder = folder(&[("t.csv", &table)]);
    let folder = folder.path();
    let error = refused(folder, &["fit", "t.csv", "--family", "chow-liu", "--other", "a=3"]);
    assert!(error.contains("column \"a\" has numbers") && error.contains("--bins a=8"), "{error}");
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--other", "b=5", "--other", "c=2"];
    let said = words(&everytree(folder, &fit));
    assert!(said.contains("column \"b\": all of its 3 labels are told apart"), "{said}");
    assert!(said.contains("a label \"other\" of its own is part of it"), "{said}");
}

/// Rows with labels that the model does not know are not among those that agree, and it is said how many they are.
#[test]
fn rows_with_unknown_labels_are_said_beside_answers() {
    let folder = folder(&[("t.csv", &people(200)), ("new.csv", "smoker,cough\nyes,0\nno,1\nperhaps,1\n")]);
    let folder = folder.path();
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--columns", "smoker,cough", "--quiet"];
    text(&everytree(folder, &fit));
    let query = ["query", "t.everytree", "--given", "smoker!=yes", "--data", "new.csv"];
    let said = text(&everytree(folder, &query));
    assert!(said.contains("1 of 3 rows in the data agrees with the evidence"), "{said}");
    assert!(said.contains("1 row has a value of a given column that the model does not know"), "{said}");
}

#[test]
fn a_table_is_not_a_model() {
    let folder = folder(&[("t.csv", &people(30))]);
    let error = refused(folder.path(), &["inspect", "t.csv"]);
    assert!(error.contains("this looks like a table, not like a model"), "{error}");
}

#[test]
fn answers_stand_beside_the_shares_of_a_table() {
    let folder = folder(&[("t.csv", &people(500))]);
    let folder = folder.path();
    text(&everytree(
        folder,
        &["fit", "t.csv", "--family", "chow-liu", "--columns", "smoker,cough", "--quiet"],
    ));
    let query = ["query", "t.everytree", "--given", "smoker!=no", "--data", "t.csv", "--target", "cough"];
    let found = json(&everytree(folder, &[&query[..], &["--json"]].concat()));
    let rows: Vec<String> =
        people(500).lines().filter(|line| line.contains(",yes,")).map(str::to_owned).collect();
    let coughs = rows.iter().filter(|line| line.ends_with('1')).count() as f64;
    assert_eq!(found["matching_rows"].as_f64(), Some(rows.len() as f64));
    assert!((found["answers"][1]["observed"].as_f64().unwrap() - coughs / rows.len() as f64).abs() < 1e-12);
    let shown = text(&everytree(folder, &query));
    assert!(shown.contains("agree with the evidence") && shown.contains("data"), "{shown}");
}

/// Ages and what depends on them.
fn ages(rows: u32) -> (String, Vec<u32>) {
    let mut chance = Chance(11);
    let mut lines = String::from("age,\"job, title\",ill\n");
    let mut all = Vec::new();
    for _ in 0..rows {
        let age = 18 + chance.next(53);
        let ill = u32::from(age + chance.next(30) > 60);
        lines +=
            &format!("{age},{},{}\n", ["a & b", "c"][chance.next(2) as usize], ["no", "yes"][ill as usize]);
        all.push(age);
    }
    (lines, all)
}

/// Whole numbers in bins: both ends of a range count, and rows of a table are counted by their numbers.
#[test]
fn ranges_count_the_rows_that_are_in_them() {
    let (lines, ages) = ages(800);
    let folder = folder(&[("t.csv", &lines)]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "t.csv", "--family", "chow-liu", "--bins", "8"]));
    let share_of = |inside: &dyn Fn(u32) -> bool| ages.iter().filter(|age| inside(**age)).count();
    let ranges: [(&str, &dyn Fn(u32) -> bool); 5] = [
        ("age in 30..30", &|age| age == 30),
        ("age>30", &|age| age > 30),
        ("age>=30", &|age| age >= 30),
        ("age<30", &|age| age < 30),
        ("age in 30..40", &|age| (30..=40).contains(&age)),
    ];
    for (given, inside) in ranges {
        let ask = ["query", "t.everytree", "--given", given, "--target", "ill", "--data", "t.csv", "--json"];
        let answer = json(&everytree(folder, &ask));
        let (rows, all) = (share_of(inside) as f64, ages.len() as f64);
        assert_eq!(answer["matching_rows"], rows, "{given}");
        // The model knows the column by its quantiles: to some of the 128 between them.
        let p = answer["log_evidence"].as_f64().unwrap().exp();
        assert!((p - rows / all).abs() < 0.02, "{given}: {p} {}", rows / all);
    }
    // Two ends, said one by one.
    let ask = |given: &[&str]| {
        let given: Vec<&str> = given.iter().flat_map(|text| ["--given", text]).collect();
        json(&everytree(
            folder,
            &[&["query", "t.everytree", "--target", "ill", "--json"], &given[..]].concat(),
        ))
    };
    assert_eq!(ask(&["age>=30", "age<=40"])["answers"], ask(&["age in 30..40"])["answers"]);
    for (given, hint) in [
        ("age in {}", "no value between the braces"),
        ("age in 40..30", "30..40"),
        ("age in 5", "{VALUE, VALUE} or A..B is needed after \"in\""),
    ] {
        let error = refused(folder, &["query", "t.everytree", "--given", given]);
        assert!(error.contains(hint), "{error}");
    }
}

/// Signs of the grammar within names and values.
#[test]
fn names_may_have_any_signs() {
    let folder = folder(&[("t.csv", &ages(200).0)]);
    let folder = folder.path();
    let left_out = json(&everytree(
        folder,
        &["fit", "t.csv", "--drop", "\"job, title\"", "--family", "chow-liu", "--json"],
    ));
    assert_eq!(left_out["rows"], 200);
    let columns = json(&everytree(folder, &["inspect", "t.everytree", "--json"]));
    assert_eq!(columns["variables"].as_array().unwrap().len(), 2);
    text(&everytree(folder, &["fit", "t.csv", "--family", "chow-liu", "--bins", "4"]));
    let expect = ["info", "t.everytree", "expect", "\"job, title\"=\"a & b\" & ill=no"];
    assert!(text(&everytree(folder, &expect)).contains("exact under the model"));
    let ask = ["query", "t.everytree", "--target", "\"job, title\"=\"a & b\"", "--json"];
    assert_eq!(json(&everytree(folder, &ask))["answers"][0]["value"], "a & b");
    let ask = ["query", "t.everytree", "--target", "\"job, title\"", "--json"];
    assert_eq!(json(&everytree(folder, &ask))["answers"].as_array().unwrap().len(), 2);
}

/// What stands between the whole part and the rest is what was said.
#[test]
fn the_decimal_sign_that_was_said_decides() {
    let numbers = |sign: char| -> String {
        let line = |i: u32| {
            format!("{}{sign}{:03};{}\n", 1 + i % 9, 100 + (i * 37) % 900, ["x", "y"][i as usize % 2])
        };
        "a;b\n".to_owned() + &(0..200).map(line).collect::<String>()
    };
    let folder = folder(&[("comma.csv", &numbers(',')), ("point.csv", &numbers('.'))]);
    let folder = folder.path();
    for (file, decimal, large) in [
        ("comma.csv", ",", false),
        ("comma.csv", ".", true),
        ("point.csv", ".", false),
        ("point.csv", ",", true),
    ] {
        let fit = ["fit", file, "--decimal", decimal, "--family", "independent", "--out", "m.everytree"];
        text(&everytree(folder, &fit));
        let columns = json(&everytree(folder, &["inspect", "m.everytree", "--json"]));
        let first = columns["variables"][0]["states"][0].as_str().unwrap().to_owned();
        let digits = first.chars().filter(char::is_ascii_digit).count();
        assert_eq!(!first.contains(['.', ',']) && digits == 4, large, "{file} {decimal}: {first}");
    }
}

/// Cells are filled with values: never with "missing", nor with "other", and columns that are left out stay as they are.
#[test]
fn cells_are_filled_with_values() {
    let gaps = people(300).replace(",nurse,", ",,").replace("yes,1", ",1");
    let folder = folder(&[
        ("t.csv", &people(300)),
        ("gaps.csv", &gaps),
        ("new.csv", &gaps.replace(",no,", ",perhaps,")),
    ]);
    let folder = folder.path();
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--id", "id", "--drop", "note", "--other", "job=1"];
    text(&everytree(folder, &fit));
    let filled = words(&everytree(folder, &["impute", "t.everytree", "gaps.csv", "--out", "f.csv"]));
    assert!(filled.contains("filled"), "{filled}");
    let table = fs::read_to_string(folder.join("f.csv")).unwrap();
    assert!(!table.lines().any(|line| line.contains(",other,")), "{table}");
    // A column that is left out has nothing to fill.
    let of = |more: &[&str]| {
        let all = ["impute", "t.everytree", "gaps.csv", "--out", "f.csv", "--json"];
        json(&everytree(folder, &[&all[..], more].concat()))["cells"].as_u64().unwrap()
    };
    let smokers = gaps.lines().filter(|line| line.ends_with(",,1")).count() as u64;
    assert_eq!(of(&[]) - of(&["--drop", "smoker"]), smokers);
    let said = words(&everytree(
        folder,
        &["impute", "t.everytree", "new.csv", "--out", "f.csv", "--unknown", "unobserved"],
    ));
    assert!(said.contains("labels that the model does not know"), "{said}");
    let fit = ["fit", "gaps.csv", "--family", "chow-liu", "--id", "id", "--drop", "note,job"];
    text(&everytree(folder, &fit));
    let error =
        refused(folder, &["impute", "gaps.everytree", "gaps.csv", "--out", "f.csv", "--unknown", "other"]);
    assert!(error.contains("no state for other labels"), "{error}");
    let error =
        refused(folder, &["impute", "gaps.everytree", "gaps.csv", "--out", "f.csv", "--given", "smoker="]);
    assert!(error.contains("missing cells are filled with values"), "{error}");
}

/// Endings that promise another format than is written.
#[test]
fn formats_that_are_not_written_are_refused() {
    let folder = folder(&[("t.csv", &people(50))]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "t.csv", "--family", "chow-liu", "--columns", "smoker,cough"]));
    for name in ["x.csv.bz2", "x.xlsx", "x.json", "x.parquet.gz"] {
        for command in [&["score", "t.everytree", "t.csv"][..], &["sample", "t.everytree", "-n", "3"]] {
            let error = refused(folder, &[command, &["--out", name]].concat());
            let words =
                if name.contains("parquet") { "compressed inside" } else { "tables are not written as" };
            assert!(error.contains(words) && !folder.join(name).exists(), "{error}");
        }
    }
}

/// Numbers of a question are read as those of cells, and edges of bins are shown as the column writes numbers.
#[test]
fn edges_of_bins_can_be_asked_about_as_they_are_shown() {
    let weight = |i: u32| format!("{},{:03}", i / 40, (i % 40) * 25);
    let rows: String =
        (0..400).map(|i| format!("{};{}\n", weight(i), if i < 200 { "A" } else { "B" })).collect();
    let folder = folder(&[("kg.csv", &format!("kg;kind\n{rows}"))]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "kg.csv", "--family", "chow-liu", "--bins", "4"]));
    let shown = text(&everytree(folder, &["inspect", "kg.everytree"]));
    assert!(shown.contains("< 2,5") && shown.contains("[2,5; 5)"), "{shown}");
    let p = |given: &str| -> f64 {
        let output =
            everytree(folder, &["query", "kg.everytree", "--given", given, "--target", "kind=A", "--json"]);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["log_evidence"].as_f64().unwrap().exp()
    };
    for (one, other) in
        [("kg<2.5", "kg<2,5"), ("kg=2.5", "kg in {\"[2,5; 5)\"}"), ("kg in 1.25..3.75", "kg in 1,25..3,75")]
    {
        assert!((p(one) - p(other)).abs() < 1e-9, "{one} {other}: {} {}", p(one), p(other));
    }
    assert!((p("kg<2.5") - 0.25).abs() < 0.01, "{}", p("kg<2.5"));
    let error = refused(folder, &["query", "kg.everytree", "--given", "kg>99", "--target", "kind"]);
    assert!(error.contains("its numbers are from 0 to 9,975"), "{error}");
}

/// Another label among those that are not told apart: they stay possible.
#[test]
fn one_of_many_labels_does_not_exclude_the_others() {
    let job = |i: usize| if i.is_multiple_of(2) { "nurse".to_owned() } else { format!("job {}", i % 60) };
    let rows: String =
        (0..400).map(|i| format!("{},{}\n", job(i), if i.is_multiple_of(3) { "x" } else { "y" })).collect();
    let folder = folder(&[("t.csv", &format!("job,kind\n{rows}"))]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "t.csv", "--family", "independent", "--other", "job=1"]));
    let log_evidence = |given: &str| -> f64 {
        let output =
            everytree(folder, &["query", "t.everytree", "--given", given, "--target", "kind", "--json"]);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["log_evidence"].as_f64().unwrap().exp()
    };
    assert!((log_evidence("job!=job 3") - 1.0).abs() < 1e-9);
    assert!((log_evidence("job!=nurse") - 0.5).abs() < 0.02);
    assert!((log_evidence("job!=other") - 0.5).abs() < 0.02);
    let found = everytree(folder, &["query", "t.everytree", "--given", "job!=other,nurse"]);
    assert!(!found.status.success() && words(&found).contains("no value is left"), "{}", words(&found));
}

/// What a stranger does wrong is answered by what to do, not by what was done.
#[test]
fn hints_lead_somewhere() {
    let rows: String =
        (0..60).map(|i| format!("{};{};{}\n", ["a", "b", "c"][i % 3], i % 7, 12 + i * 7919 % 800)).collect();
    let german: String =
        (0..60).map(|i| format!("{};{}.{:03}\n", i % 2, 12 + i % 30, i * 37 % 1000)).collect();
    let files = [
        ("t.csv", format!("job;visits;age\n{rows}")),
        ("new.csv", "job;visits;age\nz;1;20\n;2;30\n".to_owned()),
        ("ein.csv", format!("Ort;Einwohner\n{german}")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder(&files);
    let folder = folder.path();
    let fit = ["fit", "t.csv", "--family", "chow-liu", "--bins", "age=4", "--test", "new.csv"];
    // A state "other" needs a label that is not told apart.
    let error = refused(folder, &[&fit[..], &["--unknown", "other", "--other", "63"]].concat());
    assert!(error.contains("--other job=2"), "{error}");
    text(&everytree(folder, &[&fit[..], &["--unknown", "other", "--other", "job=2"]].concat()));
    // Gaps of a file to test with are told.
    let said = words(&everytree(folder, &[&fit[..], &["--unknown", "unobserved"]].concat()));
    assert!(said.contains("new.csv: 1 missing cell: not observed, and summed out"), "{said}");
    // Quotes that the shell needs, and those of the grammar.
    let error = refused(folder, &["query", "t.everytree", "--given", "age", "in", "30..40"]);
    assert!(error.contains("--given 'age in 30..40'"), "{error}");
    let error = refused(folder, &["query", "t.everytree", "--given", "visits~1,5:2"]);
    assert!(error.contains("double quotes"), "{error}");
    // Points that may stand between thousands.
    let output = everytree(folder, &["fit", "ein.csv", "--family", "chow-liu", "--bins", "8"]);
    assert!(words(&output).contains("say --decimal ,"), "{}", words(&output));
    // Rows that were drawn are rows that are known, ranges or not.
    text(&everytree(folder, &[&fit[..6], &["--out", "m"]].concat()));
    text(&everytree(folder, &["sample", "m", "-n", "50", "--given", "age<500", "--out", "s.csv"]));
    let asked = json(&everytree(folder, &["query", "m", "--given", "age<500", "--data", "s.csv", "--json"]));
    assert!(asked["matching_rows"].as_f64().unwrap() > 20.0, "{}", asked["matching_rows"]);
}

/// Names and labels as long as they may be are printed, not filled up to.
#[test]
fn long_names_are_printed() {
    let name = "x".repeat(65_536);
    let rows = format!("{name},1,p\ny,0,q\n").repeat(30);
    let folder = folder(&[("t.csv", &format!("a,{name},c\n{rows}"))]);
    let folder = folder.path();
    text(&everytree(folder, &["fit", "t.csv", "--family", "chow-liu"]));
    for ask in [&["inspect"][..], &["inspect", "--edges"], &["map"], &["query"], &["query", "--given", "c=p"]]
    {
        let arguments = [&ask[..1], &["t.everytree"], &ask[1..]].concat();
        assert!(text(&everytree(folder, &arguments)).contains(&name), "{ask:?}");
    }
}
