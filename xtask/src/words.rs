//! The rule against retired words: one thing has one word, the field's. A word that was given up
//! does not come back, neither in prose nor as a name.

use crate::sources::{has_word, written};
use crate::{File, Finding, Tree};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Words and phrases that prose has no more, each with what is said instead. In lower case, with
/// one space between words. Only such as have no other, proper use.
const PHRASES: [(&str, &str); 44] = [
    ("anew", "again"),
    ("announcement", "Announce message (802.1AS)"),
    ("announcements", "Announce messages (802.1AS)"),
    ("came again", "repeated"),
    ("come again", "repeat"),
    ("comes again", "repeats"),
    ("culprit", "cause"),
    ("file of tasks", "task model"),
    ("files of tasks", "task models"),
    ("free time", "LocalClock time (802.1AS)"),
    ("go on", "continue"),
    ("go round", "have a cycle"),
    ("goes on", "continues"),
    ("goes round", "has a cycle"),
    ("going on", "continuing"),
    ("gone on", "continued"),
    ("in a circle", "in a cycle, in a ring"),
    ("in circles", "in cycles"),
    ("in its way", "interferes with it, prevents it"),
    ("in the way of", "interferes with, affects"),
    ("in their way", "interferes with them, prevents them"),
    ("local time", "synchronised time"),
    ("made-up", "fake, invented"),
    ("nobody", "no task, no host, no program; or the passive"),
    ("nonsense", "a protocol violation"),
    ("put off", "delayed; of interrupts: interrupt coalescing"),
    ("puts off", "delays; of interrupts: interrupt coalescing"),
    ("set apart", "isolated"),
    ("speak against", "affect"),
    ("speaks against", "affects"),
    ("stairs", "staircase curve"),
    ("stand in the way", "affect, prevent"),
    ("stands in the way", "affects, prevents"),
    ("taken away", "removed; of a CPU: an involuntary context switch"),
    ("time-aware system", "PTP Instance (802.1AS-2020)"),
    ("time-aware systems", "PTP Instances (802.1AS-2020)"),
    ("under way", "in flight, in progress"),
    ("updtrolestree", "updtStatesTree (802.1AS-2020)"),
    ("wait in between", "suspend itself"),
    ("waits in between", "suspends itself"),
    ("went on", "continued"),
    ("whither", "where to"),
    ("whole way", "whole path"),
    ("whole ways", "whole paths; multi-hop path analysis"),
];

/// Names that code has no more: below which directory (an empty one is everywhere), the name, and
/// the name that the thing has now. One in lower case is that of a file or directory, without its
/// ending.
const NAMES: [(&str, &str, &str); 58] = [
    ("", "Culprit", "Cause"),
    ("", "EndLog", "EndpointLog"),
    ("", "EndPort", "EndpointIo"),
    ("", "FabricPort", "CoordinatorIo"),
    ("", "FreeClock", "LocalClock"),
    ("", "FreeTime", "LocalClockTime"),
    ("", "LinkOptions", "InterfaceOptions"),
    ("", "LinkPort", "InterfaceIo"),
    ("", "ListenerEnd", "ListenerEndpoint"),
    ("", "LiveEnd", "LiveEndpoint"),
    ("", "LocalTime", "SyncedTime"),
    ("", "Nonsense", "ProtocolViolation"),
    ("", "Patience", "Timeout"),
    ("", "Pretended", "FakeMachine"),
    ("", "TableEnd", "TableEndpoint"),
    ("", "TalkerEnd", "TalkerEndpoint"),
    ("", "TasksFile", "TaskModel"),
    ("", "Trouble", "Hazard"),
    ("", "Weakening", "Mutant"),
    ("", "Wish", "Requirement"),
    ("compat/src/", "world", "backend"),
    ("crates/bounds/src/", "Meeting", "Coincidence"),
    ("crates/bounds/src/", "meeting", "coincidence"),
    ("crates/bounds/src/", "Ways", "MultiHop"),
    ("crates/bounds/src/", "ways", "multi_hop"),
    ("crates/description/src/", "ways", "paths"),
    ("crates/cli/tests/", "fabric", "coordinator"),
    ("crates/machine/src/", "Promise", "Guarantee"),
    ("crates/model/src/", "Pattern", "PeriodicRegime"),
    ("crates/model/src/", "Study", "TimingReport"),
    ("crates/net/src/", "Lane", "DelayLine"),
    ("crates/net/src/", "lane", "delay_line"),
    ("crates/net/src/", "Then", "NextHop"),
    ("crates/onbeat/", "Fault", "ChannelError"),
    ("crates/onbeat/", "ThreadTicket", "AnnouncedThread"),
    ("crates/onbeat/src/", "fabric", "coordinator"),
    ("crates/onbeat/src/", "link", "interface"),
    ("crates/report/src/", "Lane", "Swimlane"),
    ("crates/run/src/", "fabric", "coordinator"),
    ("crates/runtime/", "Fault", "ChannelError"),
    ("crates/runtime/", "Fine", "ScaledNs"),
    ("crates/runtime/", "Ticket", "TimestampId"),
    ("crates/timing/src/", "explore", "fixpoint"),
    ("crates/timing/src/", "Explorer", "Fixpoint"),
    ("crates/timing/src/", "Feed", "Activation"),
    ("crates/timing/src/", "feed", "activation"),
    ("crates/timing/src/", "margin", "sensitivity"),
    ("crates/timing/src/", "meeting", "coincidence"),
    ("crates/timing/src/", "pattern", "regime"),
    ("crates/timing/src/", "propose", "assignment"),
    ("crates/timing/src/", "room", "buffer_space"),
    ("crates/timing/src/", "step", "transfer"),
    ("crates/timing/src/", "study", "report"),
    ("crates/timing/src/", "Walk", "Extraction"),
    ("crates/timing/src/", "walk", "extraction"),
    ("timedc/src/", "world", "backend"),
    ("xtask/src/", "weaken", "mutate"),
    ("xtask/src/", "weakenings", "mutants"),
];

/// Neither prose nor code has a retired word: documents outside of code, comments that are
/// documentation, identifiers of Rust and names of files.
pub(crate) fn retired(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_document(file)) {
        findings.extend(markdown(&file.text).iter().flat_map(|text| text.findings(file)));
    }
    for file in written(tree) {
        findings.extend(comments(file).iter().flat_map(|text| text.findings(file)));
        findings.extend(names(file));
    }
    Ok(findings)
}

/// Whether it is written for readers of today: the log of changes has the words of its time.
fn is_document(file: &File) -> bool {
    file.is(&[".md"]) && !file.is(&["CHANGELOG.md"])
}

/// Text in lower case with one space between words, and where each line of the file begins in it.
#[derive(Default)]
struct Text {
    text: String,
    lines: Vec<(usize, usize)>,
}

impl Text {
    fn push(&mut self, line: usize, words: &str) {
        self.lines.push((self.text.len(), line));
        for word in words.split_whitespace() {
            self.text.push_str(&word.to_lowercase());
            self.text.push(' ');
        }
    }

    /// What breaks the rule in this text of `file`. Code, between backticks, is not prose.
    fn findings(&self, file: &File) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut at = 0;
        for (part, is_code) in self.text.split('`').zip([false, true].into_iter().cycle()) {
            for (phrase, instead) in PHRASES.iter().filter(|_| !is_code) {
                for found in places(part, phrase) {
                    let before = self.lines.partition_point(|(from, _)| *from <= at + found);
                    let line = self.lines[before - 1].1;
                    let message = format!("`{phrase}`: {instead}");
                    findings.push(Finding::new(&file.path, line, message));
                }
            }
            at += part.len() + 1;
        }
        findings
    }
}

/// Where `phrase` is in `text` as words of its own, not as a part of a path.
fn places<'t>(text: &'t str, phrase: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_part = |c: char| c.is_alphanumeric() || "_:/#".contains(c);
    text.match_indices(phrase).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[*at + phrase.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// The paragraphs, items, cells and headings of a document, without code.
fn markdown(document: &str) -> Vec<Text> {
    let mut found = vec![Text::default()];
    let (mut at, mut line, mut in_code) = (0, 1, false);
    for (event, range) in Parser::new_ext(document, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::TableCell | Tag::Heading { .. })
            | Event::End(TagEnd::Item) => found.push(Text::default()),
            Event::Text(_) | Event::Code(_) if !in_code => {
                line += document[at..range.start].matches('\n').count();
                at = range.start;
                // Code is a word that no phrase has.
                let words = if let Event::Text(text) = &event { text } else { "``" };
                found.last_mut().expect("one at least").push(line, words);
            }
            _ => {}
        }
    }
    found
}

/// The comments of a source that document it: in Rust those of items and modules, in C all.
fn comments(file: &File) -> Vec<Text> {
    let marks: &[&str] = match file.is(&[".rs"]) {
        true => &["///", "//!"],
        false => &["/**", "/*", "*/", "*", "//"],
    };
    let mut found = vec![Text::default()];
    let mut in_code = false;
    for (number, line) in file.lines() {
        let line = line.trim();
        let words = marks.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or_default();
        let is_fence = words.trim_start().starts_with("```");
        in_code ^= is_fence;
        match words.trim().is_empty() || is_fence {
            true => found.push(Text::default()),
            false if in_code => {}
            false => found.last_mut().expect("one at least").push(number, words),
        }
    }
    found
}

/// Names of items and of the file that are retired where the file is.
fn names(file: &File) -> Vec<Finding> {
    let here = NAMES.iter().filter(|(below, ..)| file.path.starts_with(below));
    let mut findings = Vec::new();
    for (_, name, instead) in here {
        let message = format!("`{name}` is `{instead}`");
        let mut parts = file.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        if parts.any(|part| part == *name) {
            findings.push(Finding::new(&file.path, None, message.clone()));
        }
        let is_item = file.is(&[".rs"]) && name.starts_with(char::is_uppercase);
        for (number, line) in file.lines().filter(|_| is_item) {
            if has_word(&code(line), name) {
                findings.push(Finding::new(&file.path, number, message.clone()));
            }
        }
    }
    findings
}

/// A line without comment and without what is between its quotation marks.
fn code(line: &str) -> String {
    let outside = |(at, part)| if at % 2 == 0 { part } else { "\"" };
    let line: String = line.split('"').enumerate().map(outside).collect();
    line.split("//").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(path: &str, text: &str) -> Vec<(Option<usize>, String)> {
        let found = retired(&tree(&[(path, text)])).unwrap();
        found.into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    // In parts, so that this file has none of them.
    const ANEW: &str = concat!("an", "ew");
    const LOCAL_TIME: &str = concat!("Local", "Time");

    #[test]
    fn retired_words_of_documents_are_found_over_ends_of_lines_but_not_in_code() {
        let two = concat!("in the\n", "way of");
        let text = format!("# {ANEW}\n\nIt is\n{two} it.\n\n    {ANEW}\n\n- `{ANEW}` is code\n");
        let lines: Vec<_> = found("docs/a.md", &text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [Some(1), Some(4)]);
        let table = format!("| a | b |\n| --- | --- |\n| `x` | *{}* |\n", ANEW.to_uppercase());
        let message = format!("`{ANEW}`: again");
        assert_eq!(found("README.md", &table), [(Some(3), message)]);
        for (path, text) in [
            ("CHANGELOG.md", ANEW.to_owned()),
            ("a.md", format!("{ANEW}er {ANEW}2 r{ANEW}")),
            ("a.md", format!("```\n{ANEW}\n```\n")),
            ("a.toml", format!("# {ANEW}")),
        ] {
            assert_eq!(found(path, &text), [], "{path}: {text}");
        }
    }

    #[test]
    fn retired_words_of_comments_that_document_are_found() {
        let lines = |path, text: &str| -> Vec<_> {
            found(path, text).into_iter().map(|(line, _)| line.unwrap_or_default()).collect()
        };
        let rust = format!(
            "//! Once {ANEW}.\nfn f() {{}} // {ANEW}\n/// In the\n/// way of it; `{ANEW}`\n///\n\
             /// ```\n/// {ANEW}\n/// ```\n/// {ANEW}\n"
        );
        assert_eq!(lines("a.rs", &rust), [1, 3, 9]);
        assert_eq!(lines("a.rs", &format!("/// in the\n///\n/// way of it {}", "a")), [0; 0]);
        let c = format!("/** {ANEW} */\n/*\n * in the\n * way of\n */\nchar *{ANEW};\n");
        assert_eq!(lines("a.c", &c), [1, 3]);
        assert_eq!(lines("x/assets/a.c", &c), [0; 0]);
    }

    #[test]
    fn retired_names_are_found_in_code_and_as_files() {
        let uses = format!("use a::{LOCAL_TIME};\n// {LOCAL_TIME}\nlet a = \"{LOCAL_TIME}\";\n");
        let message = format!("`{LOCAL_TIME}` is `SyncedTime`");
        assert_eq!(found("a.rs", &uses), [(Some(1), message.clone())]);
        assert_eq!(found(&format!("src/{LOCAL_TIME}/a.rs"), ""), [(None, message)]);
        assert_eq!(found("a.rs", &format!("struct {LOCAL_TIME}s;")), []);
        // Elsewhere, a fault is one that is injected.
        let fault = concat!("struct Fa", "ult;");
        assert_eq!(found("crates/model/src/a.rs", fault), []);
        assert_eq!(found("crates/runtime/src/a.rs", fault).len(), 1);
    }

    #[test]
    fn the_tables_are_such_that_every_entry_can_be_found() {
        for (phrase, instead) in PHRASES {
            let (mut text, file) = (Text::default(), File { path: "a.md".into(), text: "".into() });
            text.push(1, phrase);
            assert!(!text.findings(&file).is_empty(), "{phrase}");
            assert!(!instead.is_empty() && !instead.contains(phrase), "{phrase}: {instead}");
        }
        for (below, name, instead) in NAMES {
            assert!(below.is_empty() || below.ends_with('/'), "{below}");
            assert!(name != instead && NAMES.iter().all(|(_, name, _)| *name != instead), "{name}");
        }
    }
}
