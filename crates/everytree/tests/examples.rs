//! Every public item of the front door has an example that runs.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// The names that the crate exports.
fn exported(lib: &str) -> Vec<String> {
    let mut names = Vec::new();
    for item in lib.split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap();
        let list = item.split_once('{').map_or_else(
            || item.rsplit("::").next().unwrap().to_owned(),
            |(_, list)| list.trim_end_matches('}').to_owned(),
        );
        let own = |name: &String| !name.is_empty() && !name.starts_with("everytree_");
        names.extend(list.split(',').map(|name| name.trim().to_owned()).filter(own));
    }
    names
}

/// The documentation above the definition of a public item.
fn documentation(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_definition = |line: &str| {
        ["struct", "enum", "trait", "fn", "type"].iter().any(|kind| {
            line.strip_prefix(&format!("pub {kind} {name}"))
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    let place = lines.iter().position(|line| is_definition(line))?;
    let above =
        lines[..place].iter().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
    Some(above.copied().collect::<Vec<_>>().join("\n"))
}

/// The code of all examples of a text: what stands between fences in comments.
fn example_code(text: &str) -> String {
    let mut code = String::new();
    let mut inside = false;
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!"));
        match comment.map(str::trim_start) {
            None => inside = false,
            Some(fence) if fence.starts_with("```") => inside = !inside,
            Some(line) if inside => code.push_str(line),
            Some(_) => {}
        }
        code.push('\n');
    }
    code
}

/// The public methods of the exported types, and the options that a macro makes methods of.
fn methods(text: &str, names: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut of_exported = false;
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("impl").filter(|_| !line.contains(" for ")) {
            let name = header.rsplit(' ').nth(1).unwrap_or("").split('<').next().unwrap_or("");
            of_exported = names.iter().any(|exported| exported == name);
        } else if line == "options! {" {
            of_exported = true;
        }
        let line = line.strip_prefix("    ").unwrap_or("");
        let name = line.strip_prefix("pub fn ").or(line.ends_with(';').then_some(line));
        let name = name.and_then(|name| name.split(['(', '<']).next()).unwrap_or("");
        if of_exported && !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn every_public_method_is_called_in_an_example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&here.join("src"), &mut files);
    let texts: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let code: String = texts.iter().map(|text| example_code(text)).collect();
    let names = exported(&fs::read_to_string(here.join("src/lib.rs")).unwrap());
    let all: Vec<String> = texts.iter().flat_map(|text| methods(text, &names)).collect();
    assert!(all.len() > 120, "only {all:?}");
    for known in ["learning_rate", "given_missing", "surprisal_stream", "split"] {
        assert!(all.iter().any(|name| name == known), "{known} is not looked at");
    }
    let is_called = |name: &String| [".", "::"].iter().any(|dot| code.contains(&format!("{dot}{name}(")));
    let without: Vec<&String> = all.iter().filter(|name| !is_called(name)).collect();
    assert!(without.is_empty(), "no example: {without:?}");
}

#[test]
fn every_public_item_has_an_example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&here.join("src"), &mut files);
    sources(&here.join("../everytree-core/src"), &mut files);
    let texts: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let names = exported(&fs::read_to_string(here.join("src/lib.rs")).unwrap());
    assert!(names.len() > 50, "only {names:?}");
    let mut without = Vec::new();
    for name in &names {
        let found: Vec<String> = texts.iter().filter_map(|text| documentation(text, name)).collect();
        assert!(!found.is_empty(), "{name} is defined nowhere");
        if !found.iter().any(|words| words.contains("```")) {
            without.push(name.as_str());
        }
    }
    assert!(without.is_empty(), "no example: {without:?}");
}
