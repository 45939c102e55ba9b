//! The book: built by mdBook, and every link in it followed.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that the book is built with.
const MDBOOK: &str = "0.5.4";
/// Pages outside the book.
/// Most characters of a line.
const WIDTH: usize = 100;

const OUTSIDE: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Builds the book under `target/book`, beside the results that its pages point to.
pub fn build() -> bool {
    if !check() {
        return false;
    }
    let Some(mdbook) = mdbook() else { return false };
    eprintln!("== mdbook build docs");
    match Command::new(mdbook).args(["build", "docs"]).status() {
        Ok(status) if status.success() => {}
        Ok(_) => return false,
        Err(error) => {
            eprintln!("cannot run mdbook: {error}");
            return false;
        }
    }
    let copied = copy(Path::new("experiments/results"), Path::new("target/book/experiments/results"));
    if let Err(error) = &copied {
        eprintln!("copying the results: {error}");
    } else {
        eprintln!("the book: target/book/docs/index.html");
    }
    copied.is_ok()
}

/// The program, installed under `target/tools` where it is not there yet.
fn mdbook() -> Option<PathBuf> {
    let own = Path::new("target/tools/bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if own.exists()
        || super::cargo(&["install", "mdbook", "--version", MDBOOK, "--locked", "--root", "target/tools"])
    {
        return Some(own);
    }
    None
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A page: what it links to, and the names of its headings.
struct Page {
    links: Vec<String>,
    anchors: HashSet<String>,
}

impl Page {
    fn new(text: &str) -> Self {
        let (mut links, mut anchors) = (Vec::new(), HashSet::new());
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push(dest_url.to_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    anchors.extend(heading.take().map(|words| anchor(&words)));
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                _ => {}
            }
        }
        Self { links, anchors }
    }
}

/// The name of a heading, as mdBook and most others make it.
fn anchor(words: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    words.chars().filter_map(kept).collect()
}

/// Does every link lead somewhere, is every page of the book in its summary, and is no line too long?
pub fn check() -> bool {
    eprintln!("== links and lines of the book");
    let mut files: Vec<PathBuf> = OUTSIDE.iter().map(PathBuf::from).collect();
    match std::fs::read_dir("docs") {
        Ok(entries) => {
            let pages = entries.filter_map(|entry| Some(entry.ok()?.path()));
            files.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
        }
        Err(error) => {
            eprintln!("docs: {error}");
            return false;
        }
    }
    let mut pages: HashMap<PathBuf, Page> = HashMap::new();
    let mut wrong = Vec::new();
    for file in files {
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let long = |line: usize| format!("{}:{line}: more than {WIDTH} characters", file.display());
                wrong.extend(long_lines(&text).map(long));
                pages.insert(file, Page::new(&text));
            }
            Err(error) => wrong.push(format!("{}: {error}", file.display())),
        }
    }
    for (file, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            if let Some(what) = broken(file, link, &pages) {
                wrong.push(format!("{}: {link}: {what}", file.display()));
            }
        }
    }
    let listed: HashSet<String> = pages
        .get(Path::new("docs/SUMMARY.md"))
        .map(|page| page.links.iter().cloned().collect())
        .unwrap_or_default();
    for file in pages.keys().filter(|file| file.starts_with("docs")) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != "SUMMARY.md" && !listed.contains(&name) {
            wrong.push(format!("{}: not in docs/SUMMARY.md", file.display()));
        }
    }
    wrong.sort();
    wrong.iter().for_each(|what| eprintln!("{what}"));
    wrong.is_empty()
}

/// Lines of prose that are too long, from 1: tables, code and addresses cannot be broken.
fn long_lines(text: &str) -> impl Iterator<Item = usize> {
    let mut code = false;
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        code ^= line.starts_with("```");
        let whole = code || line.starts_with('|') || line.contains("://");
        if !whole && line.chars().count() > WIDTH {
            long.push(number + 1);
        }
    }
    long.into_iter()
}

/// What is wrong with a link from a file, if anything.
fn broken(file: &Path, link: &str, pages: &HashMap<PathBuf, Page>) -> Option<&'static str> {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let mut target = file.to_owned();
    if !path.is_empty() {
        target.pop();
        for part in Path::new(path).components() {
            match part {
                std::path::Component::ParentDir => {
                    target.pop();
                }
                part => target.push(part),
            }
        }
    }
    if !target.exists() {
        return Some("there is no such file");
    }
    match pages.get(&target) {
        Some(page) if !fragment.is_empty() && !page.anchors.contains(fragment) => {
            Some("there is no such heading")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prose_can_be_too_long() {
        let long = "x".repeat(101);
        let text = format!("{long}\n| {long} |\n```\n{long}\n```\nhttps://{long}\nshort\n{long}");
        assert_eq!(long_lines(&text).collect::<Vec<_>>(), [1, 8]);
    }

    #[test]
    fn links_and_headings_are_found() {
        let page =
            Page::new("# A `fit` – of *one*\n\n[x](y.md#z) ![p](q.svg)\n\n| a |\n|---|\n| [t](u.md) |\n");
        assert_eq!(page.links, ["y.md#z", "q.svg", "u.md"]);
        assert!(page.anchors.contains("a-fit--of-one"));
        let pages = HashMap::from([(PathBuf::from("Cargo.toml"), page)]);
        assert_eq!(broken(Path::new("Cargo.toml"), "#a-fit--of-one", &pages), None);
        assert_eq!(broken(Path::new("Cargo.toml"), "#b", &pages), Some("there is no such heading"));
        assert_eq!(broken(Path::new("src/main.rs"), "../nowhere.md", &pages), Some("there is no such file"));
    }
}
