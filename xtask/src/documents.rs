//! Rules that tie documents to each other and to the sources.

use crate::{File, Finding, Tree};
use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

const REGISTRY: &str = "crates/model/src/codes.rs";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Only the registry writes a code as a literal, every code of it is used somewhere, and all
/// codes that sources and documents speak of are in it. That `docs/errors.md` has the sections of
/// the registry is a test of its own crate.
pub(crate) fn error_codes(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(registry) = tree.file(REGISTRY) else {
        return Ok(vec![Finding::new(REGISTRY, None, "is missing")]);
    };
    let entries = entries(registry);
    let known = |code: &str| entries.iter().any(|entry| entry.code == code);
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| speaks_of_codes(&file.path)) {
        let is_source = is_source(&file.path);
        for (number, line) in file.lines() {
            for code in quoted_codes(line).filter(|_| is_source) {
                let message = format!("{code} is a literal: use its name in {REGISTRY}");
                findings.push(Finding::new(&file.path, number, message));
            }
            for code in codes(line).filter(|code| !known(code)) {
                let message = format!("{code} is not in {REGISTRY}");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    let used = used(tree);
    for entry in entries.iter().filter(|entry| !used.contains(&(entry.area, entry.name))) {
        let message = format!("nothing uses {}::{} ({})", entry.area, entry.name, entry.code);
        findings.push(Finding::new(REGISTRY, entry.line, message));
    }
    Ok(findings)
}

/// A line of the registry.
struct Entry<'t> {
    area: &'t str,
    name: &'t str,
    code: &'t str,
    line: usize,
}

/// The registry's codes: `name = "OB1001", "title";` within `area {`.
fn entries(registry: &File) -> Vec<Entry<'_>> {
    let mut area = "";
    let mut entries = Vec::new();
    for (line, text) in registry.lines() {
        let text = text.trim();
        if let Some(name) = text.strip_suffix(" {").filter(|name| is_name(name)) {
            area = name;
        }
        let Some((name, rest)) = text.split_once(" = ") else { continue };
        let code = quoted_codes(rest).next().filter(|_| is_name(name));
        entries.extend(code.map(|code| Entry { area, name, code, line }));
    }
    entries
}

/// Area and name of every code that a crate uses. Sources name the area, as in `plan::LATE`, or
/// call one of it `codes` in their crate.
fn used(tree: &Tree) -> BTreeSet<(&str, &str)> {
    let sources = || tree.files.iter().filter(|file| is_source(&file.path));
    let mut renamed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in sources() {
        let areas = file.text.match_indices(" as codes").filter_map(|(at, _)| {
            file.text[..at].rsplit(|c: char| !is_name_char(c)).next().filter(|area| is_name(area))
        });
        renamed.entry(package(&file.path)).or_default().extend(areas);
    }
    let mut used = BTreeSet::new();
    for file in sources() {
        for (at, _) in file.text.match_indices("::") {
            let area = file.text[..at].rsplit(|c: char| !is_name_char(c)).next().unwrap_or("");
            let name = file.text[at + 2..].split(|c: char| !is_name_char(c)).next().unwrap_or("");
            match area {
                "codes" => {
                    let areas = renamed.get(package(&file.path)).into_iter().flatten();
                    used.extend(areas.map(|area| (*area, name)));
                }
                area => {
                    used.insert((area, name));
                }
            }
        }
    }
    used
}

/// The crate that a source is of.
fn package(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

fn is_name_char(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_char)
}

/// Whether a file is of a crate and no test, and not the registry.
fn is_source(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && path != REGISTRY
}

fn speaks_of_codes(path: &str) -> bool {
    let is_ours = ["docs/", "timedc/", "python/", "compat/"].iter().any(|p| path.starts_with(p));
    is_source(path) || is_ours
}

fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix("OB").unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The codes that a line has as string literals.
fn quoted_codes(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|literal| is_code(literal))
}

/// The codes that a line speaks of.
fn codes(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_name_char(c)).filter(|word| is_code(word))
}

/// Every dependency of the workspace has a line in the table of "Dependencies", and none is left
/// over. The first cell of a line names one dependency or, with commas, several.
pub(crate) fn dependencies(tree: &Tree) -> Result<Vec<Finding>> {
    let manifest = tree.file("Cargo.toml").context("Cargo.toml is missing")?;
    let Some(document) = tree.file(ARCHITECTURE) else {
        return Ok(vec![Finding::new(ARCHITECTURE, None, "is missing")]);
    };
    let manifest: toml::Table = manifest.text.parse().context("Cargo.toml")?;
    let used = manifest
        .get("workspace")
        .and_then(|w| w.get("dependencies")?.as_table())
        .context("Cargo.toml has no [workspace.dependencies]")?;
    let used: Vec<_> =
        used.iter().filter(|(_, d)| d.get("path").is_none()).map(|(name, _)| name).collect();
    let justified = justified(&document.text);
    let mut findings = Vec::new();
    for name in used.iter().filter(|name| !justified.contains(name)) {
        let message = format!("dependency `{name}` has no line in the table of \"Dependencies\"");
        findings.push(Finding::new(ARCHITECTURE, None, message));
    }
    for name in justified.iter().filter(|name| !used.contains(name)) {
        let message = format!("`{name}` is justified, but the workspace does not depend on it");
        findings.push(Finding::new(ARCHITECTURE, None, message));
    }
    Ok(findings)
}

/// The names in the first cells of the tables below the heading "Dependencies…", headings aside.
fn justified(markdown: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut heading, mut inside) = (None, false);
    let mut cell: Option<(usize, String)> = None;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                inside = heading.take().is_some_and(|h| h.starts_with("Dependencies"));
            }
            Event::Start(Tag::TableRow) if inside => cell = Some((0, String::new())),
            Event::End(TagEnd::TableCell) => cell = cell.map(|(column, text)| (column + 1, text)),
            Event::End(TagEnd::TableRow) => {
                let text = cell.take().map(|c| c.1).unwrap_or_default();
                names.extend(text.split(',').map(|name| name.trim().to_owned()));
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                } else if let Some((0, cell)) = &mut cell {
                    cell.push_str(&text);
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Every relative link or image of a Markdown file leads to a file or directory.
pub(crate) fn links(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.is(&[".md"])) {
        let directory = tree.root.join(&file.path);
        let directory = directory.parent().context("a file is in a directory")?;
        for (number, target) in relative_links(file) {
            if !directory.join(&target).exists() {
                let message = format!("link to `{target}` leads nowhere");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    Ok(findings)
}

/// The links that are neither to the web nor within the file, without what follows `#`.
fn relative_links(file: &File) -> Vec<(usize, String)> {
    let parser = Parser::new_ext(&file.text, Options::ENABLE_TABLES).into_offset_iter();
    let links = parser.filter_map(|(event, range)| {
        let Event::Start(tag) = event else { return None };
        let (Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = tag else { return None };
        let path = dest_url.split('#').next().unwrap_or_default();
        let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
        let line = 1 + file.text[..range.start].matches('\n').count();
        (!elsewhere).then(|| (line, path.to_owned()))
    });
    links.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn codes_that_are_literals_or_unknown_or_unused_are_found() {
        let code = |number: &str| ["OB", number].concat();
        let quoted = |number: &str| format!("\"{}\"", code(number));
        let registry = format!(
            "areas! {{\n    plan {{\n        /// Late.\n        LATE = {}, \"late\";\n    }}\n    \
             run {{\n        LATE = {}, \"late\";\n    }}\n}}\n",
            quoted("1001"),
            quoted("1002")
        );
        let check = |source: &str, document: &str| {
            let files = [
                (REGISTRY, registry.as_str()),
                ("crates/x/src/a.rs", source),
                ("docs/a.md", document),
            ];
            let found = error_codes(&tree(&files)).unwrap();
            found.into_iter().map(|f| (f.path, f.line)).collect::<Vec<_>>()
        };
        let both = "use m::codes::plan as codes;\nerror(codes::LATE);\nerror(run::LATE);\n";
        assert_eq!(check(both, &code("1002")), []);
        let unused = vec![(REGISTRY.to_owned(), Some(7))];
        assert_eq!(check("use m::codes::plan as codes;\nerror(codes::LATE);\n", ""), unused);
        let literal = format!("{both}Code({})\n", quoted("1001"));
        assert_eq!(check(&literal, ""), [("crates/x/src/a.rs".to_owned(), Some(4))]);
        assert_eq!(check(both, &code("1003")), [("docs/a.md".to_owned(), Some(1))]);
    }

    #[test]
    fn dependencies_and_their_justifications_must_agree() {
        let manifest = "[workspace.dependencies]\na = '1'\nb = '1'\nown = { path = 'x' }\n";
        let check = |rows: &str| {
            let text = format!(
                "| z | other table |\n|-|-|\n| y | . |\n\n## Dependencies\n\n\
                 | name | why |\n|-|-|\n{rows}\n\n## Else\n\n| q | r |\n|-|-|\n| z | z |\n"
            );
            let files = [("Cargo.toml", manifest), (ARCHITECTURE, text.as_str())];
            let found = dependencies(&tree(&files)).unwrap();
            found.into_iter().map(|f| f.message).collect::<Vec<_>>()
        };
        assert_eq!(check("| `a` | one |\n| `b` | two |"), [""; 0]);
        assert_eq!(check("| a, b | both |"), [""; 0]);
        assert!(check("| `a` | one |")[0].contains("`b` has no line"));
        assert!(check("| `a`, `b`, `c` | c too |")[0].contains("`c` is justified"));
    }

    #[test]
    fn only_relative_links_that_lead_nowhere_are_found() {
        let text = "[here](Cargo.toml#top) [web](https://example.org/x) [top](#top)\n\
                    `[code](gone)`\n\n[gone](no/such/file.md)\n\n![gone](no.png)\n";
        let mut tree = tree(&[("a.md", text)]);
        tree.root = crate::repository_root();
        let lines: Vec<_> = links(&tree).unwrap().into_iter().map(|f| f.line).collect();
        assert_eq!(lines, [Some(4), Some(6)]);
    }
}
