//! Makes a system of texts with a fault small: as long as the fault stays, files, tables,
//! functions, blocks and lines go.

use std::collections::BTreeMap;
use std::ops::Range;

/// Texts by their path.
pub type Files = BTreeMap<String, String>;

/// The smallest system that this finds for which `fails` still holds. It asks at most `tries`
/// times.
pub fn reduce(files: Files, tries: usize, fails: impl Fn(&Files) -> bool) -> Files {
    let (mut best, mut left) = (files, tries);
    loop {
        let mut smaller = false;
        let mut known = parts(&best);
        let mut at = 0;
        while let Some(part) = known.get(at) {
            if left == 0 {
                return best;
            }
            let candidate = without(&best, part);
            left -= 1;
            if fails(&candidate) {
                best = candidate;
                smaller = true;
                known = parts(&best);
            } else {
                at += 1;
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// What may go: lines of a file. All of them: the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    file: String,
    gone: Vec<Range<usize>>,
    size: usize,
}

/// All parts, large ones first.
fn parts(files: &Files) -> Vec<Part> {
    let mut found = Vec::new();
    for (file, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        let mut add = |gone: &[Range<usize>]| {
            let gone = gone.to_vec();
            let size = gone.iter().map(ExactSizeIterator::len).sum();
            found.push(Part { file: file.clone(), gone, size });
        };
        add(std::slice::from_ref(&(0..lines.len())));
        for (at, line) in lines.iter().enumerate() {
            let end = if line.starts_with('[') { table(&lines, at) } else { block(&lines, at) };
            add(std::slice::from_ref(&(at..end)));
            if end > at + 2 && !line.starts_with('[') {
                // What is in it stays.
                add(&[at..at + 1, end - 1..end]);
            }
        }
    }
    found.sort_by_key(|part| std::cmp::Reverse(part.size));
    found
}

/// Where a table ends that begins there.
fn table(lines: &[&str], at: usize) -> usize {
    let next = lines[at + 1..].iter().position(|line| line.starts_with('['));
    next.map_or(lines.len(), |next| at + 1 + next)
}

/// Where a statement ends that begins there: with the brace that closes it, if it opens one.
fn block(lines: &[&str], at: usize) -> usize {
    let opened = |line: &str| {
        let count = |c| line.matches(c).count().cast_signed();
        count('{') - count('}')
    };
    // A function's brace has a line of its own.
    let is_head = opened(lines[at]) == 0 && lines.get(at + 1) == Some(&"{");
    let mut depth = 0;
    for (number, line) in lines.iter().enumerate().skip(at + usize::from(is_head)) {
        depth += opened(line);
        if depth <= 0 {
            return number + 1;
        }
    }
    at + 1
}

fn without(files: &Files, part: &Part) -> Files {
    let mut files = files.clone();
    let Some(text) = files.remove(&part.file) else { return files };
    let is_gone = |at: &usize| part.gone.iter().any(|range| range.contains(at));
    let kept = text.lines().enumerate().filter(|(at, _)| !is_gone(at));
    let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
    if !kept.is_empty() {
        files.insert(part.file.clone(), kept);
    }
    files
}
