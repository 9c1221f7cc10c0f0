//! Rules for the prose of documents: sentences that can be read once, and links that lead to a
//! heading.

use crate::{File, Finding, Tree};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The most words of a sentence.
const WORDS_MAX: usize = 35;

/// Where sentences are counted: what users and newcomers read.
fn is_read(path: &str) -> bool {
    let is_first = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].contains(&path);
    is_first || path.starts_with("docs/")
}

/// No sentence of a document has more words than can be read at once. Tables, headings and code are
/// not counted; code within a sentence is one word.
pub(crate) fn sentences(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.is(&[".md"]) && is_read(&f.path)) {
        for (at, block) in blocks(&file.text) {
            for sentence in split(&block) {
                let words = sentence.split_whitespace().count();
                if words > WORDS_MAX {
                    let start: String = sentence.chars().take(40).collect();
                    let message = format!("`{start}…` has {words} words, {WORDS_MAX} at most");
                    let line = file.text[..at].matches('\n').count() + 1;
                    findings.push(Finding::new(&file.path, line, message));
                }
            }
        }
    }
    Ok(findings)
}

/// The paragraphs, and items of lists, with where they begin.
fn blocks(markdown: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut apart = 0;
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Table(_) | Tag::CodeBlock(_) | Tag::Heading { .. }) => apart += 1,
            Event::End(TagEnd::Table | TagEnd::CodeBlock | TagEnd::Heading(_)) => apart -= 1,
            Event::Start(Tag::Paragraph | Tag::Item) | Event::End(TagEnd::Item) => {
                found.push((range.start, String::new()));
            }
            _ => {}
        }
        let Some((_, block)) = found.last_mut().filter(|_| apart == 0) else {
            continue;
        };
        match event {
            Event::Text(text) => block.push_str(&text),
            Event::Code(_) => block.push_str("Code"),
            Event::SoftBreak | Event::HardBreak => block.push(' '),
            _ => {}
        }
    }
    found
}

/// Sentences end with a point, a question or exclamation mark before what begins like another.
fn split(block: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    for (at, c) in block.char_indices() {
        let rest = &block[at + c.len_utf8()..];
        let closed = rest.trim_start_matches(['"', ')', '”']);
        let begins = |c: char| c.is_uppercase() || "\"(“".contains(c);
        let ends = closed.starts_with(' ') && closed.trim_start().starts_with(begins);
        if matches!(c, '.' | '?' | '!') && ends {
            found.push(&block[from..=at]);
            from = at + 1;
        }
    }
    found.push(&block[from..]);
    found
}

/// Every link to a part of a document leads to one of its headings.
pub(crate) fn anchors(tree: &Tree) -> Result<Vec<Finding>> {
    let documents = || tree.files.iter().filter(|f| f.is(&[".md"]));
    let headings: BTreeMap<PathBuf, BTreeSet<String>> =
        documents().map(|file| (PathBuf::from(&file.path), headings(&file.text))).collect();
    let mut findings = Vec::new();
    for file in documents() {
        for (line, to, anchor) in parts(file) {
            if headings.get(&to).is_some_and(|of| !of.contains(&anchor)) {
                let message = format!("{} has no heading `#{anchor}`", to.display());
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    Ok(findings)
}

/// The links of a document to parts of documents: the line, the document and the part.
fn parts(file: &File) -> Vec<(usize, PathBuf, String)> {
    let own = Path::new(&file.path);
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(&file.text, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
        let Some((path, anchor)) = dest_url.split_once('#') else { continue };
        if path.contains("://") {
            continue;
        }
        let to = match path {
            "" => own.to_owned(),
            _ => normal(&own.parent().unwrap_or(Path::new("")).join(path)),
        };
        let line = file.text[..range.start].matches('\n').count() + 1;
        found.push((line, to, anchor.to_owned()));
    }
    found
}

/// Without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(made.pop()),
            part => made.push(part),
        }
    }
    made
}

/// The anchors of a document's headings, as code hosts make them.
fn headings(markdown: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let text = heading.take().unwrap_or_default().to_lowercase();
                let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
                let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let again = (1..).map(|n| format!("{anchor}-{n}"));
                let mut names = std::iter::once(anchor.clone()).chain(again);
                found.extend(names.find(|name| !found.contains(name)));
            }
            Event::Text(text) | Event::Code(text) => {
                heading.as_mut().into_iter().for_each(|heading| heading.push_str(&text));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn long_sentences_are_found_and_their_parts_are_not_summed() {
        let long = "word ".repeat(WORDS_MAX + 1);
        let check = |text: &str| {
            let found = sentences(&tree(&[("docs/a.md", text), ("src/a.md", &long)])).unwrap();
            found.into_iter().map(|f| f.line).collect::<Vec<_>>()
        };
        assert_eq!(check(&format!("# A\n\nOne.\n\n{long}.\n")), [Some(5)]);
        assert_eq!(check(&format!("- a\n- {long}\n\n| {long} |\n|-|\n| {long} |\n")), [Some(2)]);
        let half = "word ".repeat(WORDS_MAX / 2);
        assert_eq!(check(&format!("{half} ends. Another {half}\n\n{half}\n- {half}\n")), []);
        assert_eq!(check(&format!("```\n{long}\n```\n\n# {long}\n")), []);
        assert_eq!(check(&format!("`{long}` is one\n")), []);
        assert_eq!(check(&format!("{half} of 1.5 to 2. 0 {half}\n")), [Some(1)]);
    }

    #[test]
    fn anchors_without_a_heading_are_found() {
        let check = |text: &str| {
            let other = "# Some `Code`, too\n\n## Twice\n\n## Twice\n";
            let found = anchors(&tree(&[("docs/a.md", text), ("docs/sub/b.md", other)])).unwrap();
            found.into_iter().map(|f| f.message).collect::<Vec<_>>()
        };
        assert_eq!(
            check("# X\n[a](sub/b.md#some-code-too) [b](sub/b.md#twice-1) [c](#x)\n"),
            [""; 0]
        );
        assert_eq!(check("[a](sub/../sub/b.md#some)"), ["docs/sub/b.md has no heading `#some`"]);
        assert_eq!(check("[a](#none) [b](https://x.y/#z)"), ["docs/a.md has no heading `#none`"]);
    }
}
