//! A case: a Timed C program and what its comments state (`conformance/timedc/README.md`).

use super::execute::Diagnosed;
use crate::trace::{Event, expand};
use std::path::{Path, PathBuf};

/// A program and what must come of it.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Its directory, where it is compiled.
    pub(crate) directory: PathBuf,
    /// What holds, in one sentence.
    pub(crate) meaning: String,
    /// How long the run is; empty if it is not run.
    pub(crate) duration: String,
    /// The program's exit status.
    pub(crate) status: i32,
    /// Further flags of the compiler.
    pub(crate) flags: Vec<String>,
    /// Further source files.
    pub(crate) files: Vec<String>,
    /// The program's arguments.
    pub(crate) arguments: Vec<String>,
    /// Whether best cases pass instead of worst ones.
    pub(crate) best: bool,
    /// How many processors its host has; empty: each thread has one.
    pub(crate) cores: String,
    /// Lines of a file of execution times.
    pub(crate) times: Vec<String>,
    pub(crate) trace: Vec<Event>,
    /// Standard output, line by line.
    pub(crate) output: Vec<String>,
    /// Parts of what standard error must have.
    pub(crate) says: Vec<String>,
    /// In order of files and lines.
    pub(crate) diagnostics: Vec<Diagnosed>,
}

impl Case {
    /// Reads a case.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a case is text");
        let directory = path.parent().expect("a directory").to_owned();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut case = Self { name, directory, ..Self::default() };
        let mut trace = Vec::new();
        let mut in_meaning = false;
        for line in text.lines() {
            if let Some((key, value)) = key_and_value(line) {
                in_meaning = false;
                match key {
                    "trace" => trace.push(value),
                    _ => case.state(key, value),
                }
            } else if line.trim() == "/*" && case.meaning.is_empty() {
                in_meaning = true;
            } else if in_meaning && line.starts_with(" * ") {
                case.meaning = format!("{} {}", case.meaning, &line[3..]).trim().to_owned();
            } else {
                in_meaning = false;
            }
        }
        let files = case.sources(&text);
        for line in trace {
            let resolved = resolve(line, &files);
            case.trace.extend(expand(&resolved).unwrap_or_else(|e| panic!("{path:?}: {e}")));
        }
        case.times.iter_mut().for_each(|line| *line = resolve(line, &files));
        case.diagnostics = files.iter().flat_map(|(name, text)| stated(name, text)).collect();
        case.diagnostics.sort();
        case
    }

    fn state(&mut self, key: &str, value: &str) {
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "duration" => value.clone_into(&mut self.duration),
            "status" => self.status = value.parse().expect("a status"),
            "cc" => self.flags = words(),
            "files" => self.files = words(),
            "arguments" => self.arguments = words(),
            "cores" => value.clone_into(&mut self.cores),
            "execution" => self.best = value == "best",
            "times" => self.times.push(value.to_owned()),
            "output" => self.output.push(value.to_owned()),
            "says" => self.says.push(value.to_owned()),
            _ => panic!("{}: what is `{key}`?", self.name),
        }
    }

    /// The case's own file, and those of `with/` that it names, by the names that places have.
    fn sources(&self, text: &str) -> Vec<(String, String)> {
        let mut sources = vec![(format!("{}.c", self.name), text.to_owned())];
        let with = self.directory.join("with");
        let mut entries: Vec<_> = with.read_dir().into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if text.contains(&name) {
                let text = std::fs::read_to_string(entry.path()).expect("text");
                sources.push((name, text));
            }
        }
        sources
    }
}

/// ` * key: value`
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    const KEYS: [&str; 11] = [
        "duration",
        "status",
        "cc",
        "files",
        "arguments",
        "cores",
        "execution",
        "times",
        "trace",
        "output",
        "says",
    ];
    let (key, value) = line.strip_prefix(" * ")?.split_once(':')?;
    KEYS.contains(&key).then(|| (key, value.strip_prefix(' ').unwrap_or(value)))
}

/// Puts line numbers in the place of labels: `@p` is the line with the comment `@p`, `@p+2` two
/// lines below, `loop.h:@p` in that file.
fn resolve(line: &str, files: &[(String, String)]) -> String {
    let mut resolved = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('@') {
        let end = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let (label, mut behind) = after.split_at(end);
        let mut more = 0;
        if let Some(number) = behind.strip_prefix('+') {
            let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            more = number[..end].parse().expect("a number");
            behind = &number[end..];
        }
        let named = files.iter().find(|(name, _)| before.ends_with(&format!("{name}:")));
        let found = match named {
            Some(file) => line_of(label, &file.1),
            None => files.iter().find_map(|(_, text)| line_of(label, text)),
        };
        let found: usize = found.unwrap_or_else(|| panic!("{}: no label @{label}", files[0].0));
        resolved = format!("{resolved}{before}{}", found + more);
        rest = behind;
    }
    resolved + rest
}

/// The line of a label's comment. Lines that state something are none.
fn line_of(label: &str, text: &str) -> Option<usize> {
    let has = |line: &str| {
        line.split('@').skip(1).any(|after| {
            after.strip_prefix(label).is_some_and(|b| !b.starts_with(|c: char| c.is_alphanumeric()))
        })
    };
    let mut lines = (1..).zip(text.lines()).filter(|(_, l)| key_and_value(l).is_none() && has(l));
    let found = lines.next().map(|(number, _)| number);
    assert!(lines.next().is_none(), "the label @{label} stands twice");
    found
}

/// What the comments of a file say about diagnostics: `/* error: OB4001 */`, `/* error: cc */`.
fn stated(name: &str, text: &str) -> Vec<Diagnosed> {
    let mut stated = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some(comment) = text.rfind("/* ").map(|at| &text[at + 3..]) else { continue };
        for one in comment.trim_end_matches("*/").split(',') {
            if let Some((severity @ ("error" | "warning"), code)) = one.trim().split_once(": ") {
                let (severity, code) = (severity.to_owned(), code.to_owned());
                stated.push(Diagnosed { file: name.to_owned(), line, severity, code });
            }
        }
    }
    stated
}
