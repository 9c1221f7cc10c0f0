//! The repository's house rules as checks: each takes the tree and lists what breaks the rule.
//! `tests/tidy.rs` runs each as a test.

mod crates;
mod documents;
mod history;
pub mod hunt;
mod map;
mod mutants;
pub mod mutate;
mod names;
mod prose;
mod pure;
mod sources;
mod verbs;
mod words;

pub use mutants::{MUTANTS, Mutant};

use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// Kinds of files that the checks read, by the end of their names.
const READ: [&str; 11] =
    [".rs", ".c", ".h", ".cpp", ".hpp", ".md", ".toml", ".sh", ".py", ".mk", "Makefile"];

/// A text file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl File {
    /// Whether the name ends in one of `ends`.
    fn is(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.path.ends_with(end))
    }
    /// The lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// What the checks look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Where it was read from.
    pub root: PathBuf,
    /// In order of their paths. Hidden directories and what builds leave behind are not there.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads every text file below `root`.
    ///
    /// # Errors
    /// When a directory or a file cannot be read, or is no UTF-8.
    pub fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        let mut ahead = vec![root.to_owned()];
        while let Some(directory) = ahead.pop() {
            for entry in directory.read_dir().with_context(|| directory.display().to_string())? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    let left_behind = ["target", "build", "out", "node_modules"];
                    if !name.starts_with('.') && !left_behind.contains(&name.as_str()) {
                        ahead.push(entry.path());
                    }
                } else if kind.is_file() && READ.iter().any(|end| name.ends_with(end)) {
                    let path = entry.path();
                    let text = std::fs::read_to_string(&path)
                        .with_context(|| path.display().to_string())?;
                    let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                    files.push(File { path, text });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root: root.to_owned(), files })
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }
}

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root.
    pub path: String,
    /// The line, if the rule is about one.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: line.into(), message: message.into() }
    }
}
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// One house rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Lists what breaks it; fails when it cannot tell.
    pub check: fn(&Tree) -> Result<Vec<Finding>>,
}

/// All of them.
pub const RULES: [Rule; 21] = [
    Rule { name: "edges", check: crates::edges },
    Rule { name: "supply", check: crates::supply },
    Rule { name: "publishing", check: crates::publishing },
    Rule { name: "lints", check: crates::lints },
    Rule { name: "line-length", check: sources::line_length },
    Rule { name: "file-length", check: sources::file_length },
    Rule { name: "unsafe", check: sources::unsafe_code },
    Rule { name: "environment", check: sources::environment },
    Rule { name: "reading", check: sources::reading },
    Rule { name: "pure", check: pure::world },
    Rule { name: "floats", check: pure::floats },
    Rule { name: "unfinished", check: sources::unfinished },
    Rule { name: "error-codes", check: documents::error_codes },
    Rule { name: "dependencies", check: documents::dependencies },
    Rule { name: "links", check: documents::links },
    Rule { name: "anchors", check: prose::anchors },
    Rule { name: "sentences", check: prose::sentences },
    Rule { name: "words", check: words::retired },
    Rule { name: "commits", check: history::commits },
    Rule { name: "map", check: map::map },
    Rule { name: "overloaded", check: names::overloaded },
];

/// The root of the repository that this program was built in.
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a directory of the repository").to_owned()
}

/// A tree of invented files, for tests.
#[cfg(test)]
fn tree(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
    Tree { root: PathBuf::new(), files: files.iter().map(file).collect() }
}
