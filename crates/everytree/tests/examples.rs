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
