//! Rules that tie documents to each other and to the sources.

use crate::{File, Finding, Tree};
use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;

const ERRORS: &str = "docs/errors.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Every error code of the sources has one section in the list of errors, in order, and no section
/// is left over.
pub(crate) fn error_codes(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(document) = tree.file(ERRORS) else {
        return Ok(vec![Finding::new(ERRORS, None, "is missing")]);
    };
    let mut used = BTreeMap::new();
    for file in &tree.files {
        if !(file.path.starts_with("crates/") && file.path.contains("/src/")) {
            continue;
        }
        for (number, line) in file.lines() {
            for code in quoted_codes(line) {
                used.entry(code).or_insert((file.path.as_str(), number));
            }
        }
    }
    let mut findings = Vec::new();
    let mut last = "";
    for (number, line) in document.lines() {
        let heading = line.strip_prefix("## ").and_then(|title| title.get(..6));
        let Some(code) = heading.filter(|code| is_code(code)) else { continue };
        if code <= last {
            let message = format!("section {code} is not in order after {last}");
            findings.push(Finding::new(ERRORS, number, message));
        } else if used.remove(code).is_none() {
            let message = format!("no source uses {code}");
            findings.push(Finding::new(ERRORS, number, message));
        }
        last = code;
    }
    for (code, (path, number)) in used {
        let message = format!("{code} has no section `## {code}` in {ERRORS}");
        findings.push(Finding::new(path, number, message));
    }
    Ok(findings)
}

fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix("OB").unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The codes that a line of Rust has as string literals.
fn quoted_codes(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|literal| is_code(literal))
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
    fn codes_without_a_section_and_sections_without_a_code_are_found() {
        let source = concat!("const A: Code = Code(\"OB", "1001\"); // \"OB", "1\"");
        let check = |sections: &str| {
            error_codes(&tree(&[("crates/x/src/a.rs", source), (ERRORS, sections)])).unwrap()
        };
        assert_eq!(check("# Errors\n## OB1001: a\n"), []);
        assert_eq!(check("# Errors\n")[0].path, "crates/x/src/a.rs");
        assert_eq!(check("## OB1001: a\n## OB1002: b\n")[0].line, Some(2));
        let unordered = check("## OB1002: b\n## OB1001: a\n");
        assert!(unordered.iter().any(|f| f.message.contains("not in order")));
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
