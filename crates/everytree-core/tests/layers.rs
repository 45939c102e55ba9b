//! The order of the modules of this crate, as ARCHITECTURE.md has it: a module uses modules before it, never one after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The line of ARCHITECTURE.md after which the order comes.
const MARK: &str = "Order of the modules of everytree-core:";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn order() -> Vec<String> {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let after = text.lines().skip_while(|line| *line != MARK).skip(1);
    let line = after.into_iter().find(|line| !line.is_empty()).expect("the order of the modules");
    line.split_whitespace().map(str::to_owned).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module of the crate that a file belongs to, and the modules that it names, with the lines.
fn uses(path: &Path, root: &Path) -> (String, Vec<(String, usize)>) {
    let inside = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
    let module = inside.split(['/', '.']).next().unwrap().to_owned();
    let mut named = Vec::new();
    let mut tests = false;
    for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
        tests |= line.starts_with("#[cfg(test)]");
        let code = line.trim_start();
        if tests || code.starts_with("//") {
            continue;
        }
        for (place, _) in code.match_indices("crate::") {
            let rest = &code[place + "crate::".len()..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            named.push((rest[..end].to_owned(), number + 1));
        }
    }
    (module, named)
}

#[test]
fn no_module_uses_one_that_comes_after_it() {
    let order = order();
    let rank: BTreeMap<&str, usize> = order.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut edges, mut forbidden) = (0, Vec::new());
    for path in files.iter().filter(|path| !path.ends_with("src/lib.rs")) {
        let (module, named) = uses(path, &root);
        let own = *rank.get(module.as_str()).unwrap_or_else(|| panic!("{module} is not in ARCHITECTURE.md"));
        for (other, line) in named {
            let Some(&used) = rank.get(other.as_str()) else { panic!("{}:{line}: {other}", path.display()) };
            edges += usize::from(used != own);
            if used > own {
                forbidden.push(format!("{}:{line}: {module} uses {other}", path.display()));
            }
        }
    }
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
    assert!(edges > 100, "only {edges} uses found: is this test looking at the sources?");
}

/// Only data, and the files that carry it, know labels.
#[test]
fn the_engine_is_free_of_labels() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for module in ["spanning", "forest", "blocks", "model", "infer", "learn"] {
        sources(&root.join(module), &mut files);
    }
    files.push(root.join("blocks.rs"));
    assert!(files.len() > 60);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in ["Schema", "Variable,", "Encoder", ".label(", ".labels("] {
            assert!(!code.contains(word), "{} names {word}", path.display());
        }
    }
}

/// Inference and learning know families only through what every family can do.
#[test]
fn inference_and_learning_name_no_family() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = fs::read_to_string(root.join("model/families.rs")).unwrap();
    let entry = |line: &str| Some(line.trim().split_once("(super::")?.0.to_owned());
    let families: Vec<String> = list.lines().filter_map(entry).collect();
    assert!(families.len() > 5 && families.contains(&"Moat".to_owned()), "{families:?}");
    let mut files = Vec::new();
    ["infer", "learn"].iter().for_each(|module| sources(&root.join(module), &mut files));
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            for family in &families {
                let named =
                    line.contains(&format!("{family}(")) || line.contains(&format!("Family::{family}"));
                let imported = line.starts_with("use ") && line.contains(&format!("model::{family}"));
                assert!(!named && !imported, "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
}
