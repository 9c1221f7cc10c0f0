//! `cargo run -p xtask -- mutate [WORD]`: whether the tests of the bounds notice when a bound is a
//! little too small, or a promise made without its proof. Mutation testing: each formula of
//! the analyses is mutated on its own, in a copy of the repository, and the tests must fail. With a
//! word, only mutants whose file or expression contains it.

use crate::mutants::{ANALYSIS, MUTANTS, Mutant, TIMING};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tests that may notice a mutant, fastest first.
fn tests(mutant: &Mutant) -> &'static [&'static str] {
    match mutant.file.strip_prefix(TIMING) {
        Some(file) if file.starts_with("schedule/") => &["schedule"],
        Some(_) => &["tfg"],
        // Which messages meet, tables of programs say.
        None if mutant.file == "coincidence.rs" => &["tfg"],
        None => &["cases", "regression", "fifo", "plan", "soundness"],
    }
}

/// What of the repository the tests need not have.
const LEFT_OUT: [&str; 4] = ["target", ".git", "out", "node_modules"];

/// Applies every mutant by itself and runs the tests; prints which of them notices. Returns how
/// many mutants survive: no test noticed.
///
/// # Errors
/// When the repository cannot be copied, an expression is not in its file exactly once, a mutated
/// analysis does not compile, or tests fail without any change.
pub fn mutate(root: &Path, word: &str) -> Result<usize> {
    let chosen = |w: &&Mutant| w.file.contains(word) || w.expression.contains(word);
    let chosen: Vec<_> = MUTANTS.iter().filter(chosen).collect();
    let copy = Copied::new(root)?;
    let all: BTreeSet<&str> = chosen.iter().flat_map(|w| tests(w)).copied().collect();
    let all: Vec<&str> = all.into_iter().collect();
    copy.build(&all).context("without any change")?;
    for test in all {
        ensure!(copy.passes(test)?, "`{test}` fails without any change");
    }
    let mut survivors = 0;
    for mutant in &chosen {
        let whole = source(&copy.0, mutant)?;
        let path = copy.0.join(ANALYSIS).join(mutant.file);
        std::fs::write(&path, whole.replacen(mutant.expression, mutant.mutated, 1))?;
        copy.build(tests(mutant)).with_context(|| mutant.to_string())?;
        let mut noticed = None;
        for test in tests(mutant) {
            if !copy.passes(test)? {
                noticed = Some(*test);
                break;
            }
        }
        println!("{}: {mutant}", noticed.unwrap_or("SURVIVED"));
        survivors += usize::from(noticed.is_none());
        std::fs::write(&path, whole)?;
    }
    println!("mutate: {} mutants, {survivors} survived", chosen.len());
    Ok(survivors)
}

/// The text of a mutant's file, in which its expression is exactly once.
///
/// # Errors
/// When it is not.
pub fn source(root: &Path, mutant: &Mutant) -> Result<String> {
    let path = root.join(ANALYSIS).join(mutant.file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let times = text.matches(mutant.expression).count();
    ensure!(times == 1, "{mutant}: the expression is there {times} times, not once");
    Ok(text)
}

/// A copy of the repository that goes away by itself.
struct Copied(PathBuf);

impl Copied {
    fn new(root: &Path) -> Result<Self> {
        let to = std::env::temp_dir().join(format!("onbeat-mutate-{}", std::process::id()));
        let copied = Self(to);
        copy(root, &copied.0)?;
        Ok(copied)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or("cargo".into()));
        command.current_dir(&self.0).args(["test", "--quiet"]);
        command.args(["-p", "onbeat-bounds", "-p", "onbeat-timing"]);
        command.args(arguments).env("INSTA_UPDATE", "no").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Not the repository's own: cargo could not tell the copy's crates from its.
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| crate::repository_root().join("target"));
        command.env("CARGO_TARGET_DIR", target.join("mutate"));
        // Little is run, much is compiled.
        for package in ["bounds", "timing"] {
            let level = format!("profile.dev.package.onbeat-{package}.opt-level=1");
            command.args(["--config", &level]);
        }
        command
    }

    fn build(&self, tests: &[&str]) -> Result<()> {
        let tests = tests.iter().copied().flat_map(|test| ["--test", test]);
        let arguments: Vec<_> = ["--no-run"].into_iter().chain(tests).collect();
        if !self.cargo(&arguments).status()?.success() {
            bail!("the tests do not compile");
        }
        Ok(())
    }

    fn passes(&self, test: &str) -> Result<bool> {
        Ok(self.cargo(&["--test", test]).status()?.success())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // What is left behind is in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in from.read_dir().with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let to = to.join(&name);
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to)?,
            kind if kind.is_file() => {
                std::fs::copy(entry.path(), to)?;
            }
            // Neither sockets nor links are sources.
            _ => {}
        }
    }
    Ok(())
}
