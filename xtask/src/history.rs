//! A rule about the commits themselves.

use crate::{Finding, Tree};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Commits from here on are looked at; the rule is no older.
const SINCE: &str = "2026-11-23T07:30:00Z";
/// A commit that changes more lines has to say why.
const LINES_MAX: u64 = 20;
/// What a change of something else makes, by the ends of the files' names.
const MADE: [&str; 2] = ["Cargo.lock", ".snap"];

/// A commit that changes more than a few lines has a body, which says why. A tree without a
/// history, as from an archive, breaks no rule.
pub(crate) fn commits(tree: &Tree) -> Result<Vec<Finding>> {
    if !tree.root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let since = format!("--since={SINCE}");
    let output = Command::new("git")
        .arg("-C")
        .arg(&tree.root)
        // The owner of a checkout may be another, as where a container has it.
        .args(["-c", "safe.directory=*", "log", "--no-merges", "--numstat", &since])
        .arg("--format=%x01%h%x02%b%x02")
        .output()
        .context("git")?;
    if !output.status.success() {
        bail!("git log: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(without_a_why(&String::from_utf8_lossy(&output.stdout)))
}

fn without_a_why(log: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for commit in log.split('\x01').skip(1) {
        let mut parts = commit.splitn(3, '\x02');
        let [hash, body, files] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let lines: u64 = files.lines().filter_map(changed).sum();
        if lines > LINES_MAX && body.trim().is_empty() {
            let message = format!("changes {lines} lines and does not say why: it wants a body");
            findings.push(Finding::new(&format!("commit {hash}"), None, message));
        }
    }
    findings
}

/// How many lines a line of `--numstat` counts, but for files that are made; of binary files none.
fn changed(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, '\t');
    let [added, removed, path] = [(); 3].map(|()| fields.next().unwrap_or_default());
    if MADE.iter().any(|end| path.ends_with(end)) {
        return None;
    }
    Some(added.parse::<u64>().ok()? + removed.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_commit_without_a_body_is_found_and_others_are_not() {
        let large = "\n12\t9\tcrates/a.rs\n";
        let log = [
            "\x01one\x02\x02",
            large,
            "\x01two\x02Because.\n\x02",
            large,
            "\x01three\x02\n\x02\n20\t0\ta\n-\t-\tpicture.png\n900\t2\tCargo.lock\n7\t7\tx.snap\n",
            "\x01four\x02\x02\n15\t0\ta\n0\t6\tb\n",
            "\x01five\x02\x02",
        ];
        let found: Vec<String> =
            without_a_why(&log.concat()).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("one") && found[0].contains("21 lines"), "{found:?}");
        assert!(found[1].contains("four"), "{found:?}");
    }
}
