//! The list of all unsafe code with its arguments, `docs/unsafe.md`: made from the sources, and compared with them by the tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/unsafe.md";

const HEAD: &str = "\
# Unsafe code

Every `unsafe` of the project with the argument for it, made by `cargo xtask unsafe` from the
comments beside the code and compared with them by `cargo xtask test`. A lint refuses blocks without
an argument. What the kernels promise is checked under the address sanitiser:
`cargo xtask sanitise`.
";

/// Writes the page.
pub fn write() -> bool {
    match page().and_then(|text| std::fs::write(PAGE, text).map_err(|error| format!("{PAGE}: {error}"))) {
        Ok(()) => true,
        Err(problem) => {
            eprintln!("{problem}");
            false
        }
    }
}

/// Does the page say what the sources say?
pub fn check() -> bool {
    eprintln!("== {PAGE}");
    match (page(), std::fs::read_to_string(PAGE)) {
        (Ok(now), Ok(then)) if now == then => true,
        (Err(problem), _) => {
            eprintln!("{problem}");
            false
        }
        _ => {
            eprintln!("{PAGE} is not what the sources say: run `cargo xtask unsafe`");
            false
        }
    }
}

fn page() -> Result<String, String> {
    let mut files = Vec::new();
    // The other two, experiments and xtask, forbid it.
    sources(Path::new("crates"), &mut files).map_err(|error| format!("crates: {error}"))?;
    files.sort();
    let mut page = HEAD.to_owned();
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut times: BTreeMap<(usize, &str, String), usize> = BTreeMap::new();
        for (order, (what, why)) in found(&text).into_iter().enumerate() {
            let why = why.ok_or(format!("{}: an `unsafe {what}` without an argument", file.display()))?;
            // In the order of their first appearance.
            match times.iter_mut().find(|((_, other, argument), _)| *other == what && *argument == why) {
                Some((_, count)) => *count += 1,
                None => drop(times.insert((order, what, why), 1)),
            }
        }
        if !times.is_empty() {
            let name = file.display().to_string().replace('\\', "/");
            let _ = write!(page, "\n## {name}\n\n| what | times | argument |\n|---|---|---|\n");
        }
        for ((_, what, why), count) in times {
            let _ = writeln!(page, "| {what} | {count} | {} |", why.replace('|', "\\|"));
        }
    }
    Ok(page)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => sources(&path, files)?,
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
    Ok(())
}

/// Every `unsafe` of a source: block, function or implementation, and the comment that argues for it.
fn found(text: &str) -> Vec<(&'static str, Option<String>)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for (place, _) in code.match_indices("unsafe ") {
            let before = code[..place].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"') {
                continue;
            }
            let after = &code[place + "unsafe ".len()..];
            let what = match () {
                () if after.starts_with("fn") => "fn",
                () if after.starts_with("impl") => "impl",
                () => "block",
            };
            all.push((what, argument(&lines[..number], what)));
        }
    }
    all
}

/// The last comment of the right kind above a line, not further up than the beginning of the item.
fn argument(above: &[&str], what: &str) -> Option<String> {
    let mark = if what == "fn" { "/// # Safety" } else { "// SAFETY:" };
    let start = above.iter().rposition(|line| line.starts_with(mark));
    let sort = if what == "fn" { "///" } else { "//" };
    let words = start.map(|start| {
        let first = above[start].trim_start_matches(mark).trim();
        let rest = above[start + 1..].iter().take_while(|line| line.starts_with(sort));
        let rest = rest.map(|line| line.trim_start_matches(sort).trim());
        std::iter::once(first).chain(rest).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    // An unsafe function that only carries out what a trait has promised has no words of its own.
    match (words, what) {
        (Some(words), "fn") => {
            let end = start.unwrap_or_default()
                + above[start.unwrap_or_default()..]
                    .iter()
                    .take_while(|line| line.starts_with("///"))
                    .count();
            let own = above[end..].iter().all(|line| line.starts_with('#') || line.starts_with("//"));
            Some(if own { words } else { "as the trait says".to_owned() })
        }
        (None, "fn") => Some("as the trait says".to_owned()),
        (words, _) => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found() {
        let text = "/// Adds.\n///\n/// # Safety\n/// Within\n/// bounds.\n#[inline]\nunsafe fn add() {\n\
                    // SAFETY: the caller's\n// promise.\nunsafe { add() }\n}\nfn x() {\n    unsafe fn y() {}\n}";
        let expected = [
            ("fn", Some("Within bounds.".to_owned())),
            ("block", Some("the caller's promise.".to_owned())),
            ("fn", Some("as the trait says".to_owned())),
        ];
        assert_eq!(found(text), expected);
        assert_eq!(found("// unsafe {\nlet x = unsafe { 1 };"), [("block", None)]);
    }
}
