//! What a hunt finds among programs: made small, written below `tests/found_programs`, and read
//! again by the test that found it. `HUNT_KEEP=small` asks for that, `HUNT_KEEP=drawn` for what was
//! drawn.

use onbeat_hunt::reduce::{Files, reduce};
use std::fmt;
use std::path::{Path, PathBuf};

/// Systems that are tried to make one small.
const TRIES: usize = 500;

/// What does not agree with the analysis.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    /// Its kind: while it is made small, it stays.
    pub(crate) kind: String,
    /// For a person.
    pub(crate) what: String,
}

impl Wrong {
    pub(crate) fn new(kind: impl Into<String>, what: impl Into<String>) -> Self {
        Self { kind: kind.into(), what: what.into() }
    }

    /// Of a command that did not end well.
    pub(crate) fn command(arguments: &[&str], output: &std::process::Output) -> Self {
        let said = String::from_utf8_lossy(&output.stderr);
        let code = said.split_once("error[").and_then(|(_, rest)| rest.split(']').next());
        let is_panic = said.contains("panicked at");
        let word = if is_panic { "panic" } else { code.unwrap_or("") };
        let kind = format!("{} {:?} {word}", arguments[0], output.status.code());
        Self { kind, what: format!("onbeat {arguments:?}\n{said}") }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found_programs")
}

/// What was found once by a generator: copies, in which a test may leave something.
pub(crate) fn all(generator: &str) -> Vec<(String, tempfile::TempDir)> {
    let Ok(entries) = place().read_dir() else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mine = paths.filter(|path| name(path).starts_with(generator));
    let copy = |path: PathBuf| {
        let copy = tempfile::tempdir().expect("a directory");
        write(&read(&path), copy.path());
        (name(&path), copy)
    };
    mine.map(copy).collect()
}

/// The texts of a directory.
pub(crate) fn read(directory: &Path) -> Files {
    let entries = directory.read_dir().expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_source = |path: &PathBuf| {
        let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
        extension.is_some_and(|word| ["c", "h", "toml", "times"].contains(&word.as_str()))
    };
    let text = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a text"))
    };
    paths.filter(is_source).map(text).collect()
}

pub(crate) fn write(files: &Files, directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory");
    for (name, text) in files {
        std::fs::write(directory.join(name), text).expect("written");
    }
}

/// Makes a system small as long as something of the first kind is wrong, if a hunt asks for it, and
/// writes it where tests find it. `narrower` are systems of fewer parts, to begin with.
pub(crate) fn keep(
    name: &str,
    wrong: &Wrong,
    narrower: Vec<Files>,
    judge: impl Fn(&Path) -> Vec<Wrong>,
) {
    let Ok(how) = std::env::var("HUNT_KEEP") else { return };
    let tries = if how == "drawn" { 0 } else { TRIES };
    let fails = |files: &Files| {
        let copy = tempfile::tempdir().expect("a directory");
        write(files, copy.path());
        judge(copy.path()).iter().any(|found| found.kind == wrong.kind)
    };
    let Some(files) = narrower.into_iter().find(fails) else {
        return println!("{name}: {wrong}\nis not there in fewer parts: it is not kept");
    };
    let small = reduce(files, tries, fails);
    write(&small, &place().join(name));
    println!("{name}: {wrong}\nwritten to {}", place().join(name).display());
}
