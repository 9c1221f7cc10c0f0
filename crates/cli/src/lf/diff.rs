//! Changes of a text as a unified diff, which `patch` and `git apply` read.

use std::fmt::Write;
use std::ops::Range;

/// Lines that are shown before and behind what is changed.
const CONTEXT: usize = 3;

/// Octets of a text that become others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// Lines that become others.
struct Change<'t> {
    old: Range<usize>,
    new: Vec<&'t str>,
}

/// The changes as a unified diff; empty if there are none. Edits do not overlap, and are at
/// boundaries of characters.
pub(super) fn unified(path: &str, text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line_of = |at: usize| ends.partition_point(|end| *end < at).min(lines.len().max(1) - 1);
    let starts: Vec<usize> = [0].into_iter().chain(ends.iter().map(|end| end + 1)).collect();
    // Lines that edits change together, with what they become.
    let mut pieces: Vec<(Range<usize>, String, usize)> = Vec::new();
    for edit in &edits {
        let touched = line_of(edit.range.start)..line_of(edit.range.end) + 1;
        match pieces.last_mut() {
            Some((old, new, done)) if touched.start < old.end => {
                new.push_str(&text[*done..edit.range.start]);
                new.push_str(&edit.text);
                (old.end, *done) = (touched.end.max(old.end), edit.range.end);
            }
            _ => {
                let before = &text[starts[touched.start]..edit.range.start];
                pieces.push((touched, format!("{before}{}", edit.text), edit.range.end));
            }
        }
    }
    for (old, new, done) in &mut pieces {
        let end = starts.get(old.end).copied().unwrap_or(text.len());
        new.push_str(&text[*done..end]);
    }
    let changes = pieces.iter().map(|(old, new, _)| change(&lines, old.clone(), new));
    let changes: Vec<Change<'_>> =
        changes.filter(|change| !change.old.is_empty() || !change.new.is_empty()).collect();
    hunks(path, &lines, &changes)
}

/// Without the lines at both ends that stay as they are.
fn change<'t>(lines: &[&str], mut old: Range<usize>, new: &'t str) -> Change<'t> {
    let mut new: Vec<&str> = new.split_inclusive('\n').collect();
    while !old.is_empty() && new.last() == Some(&lines[old.end - 1]) {
        old.end -= 1;
        new.pop();
    }
    let same = old.clone().zip(&new).take_while(|(at, new)| lines[*at] == **new).count();
    old.start += same;
    Change { old, new: new.split_off(same) }
}

fn hunks(path: &str, lines: &[&str], changes: &[Change<'_>]) -> String {
    let Some(first) = changes.first() else { return String::new() };
    // A name that has blanks ends at the tab.
    let end = if path.contains(' ') { "\t" } else { "" };
    let mut text = format!("--- {path}{end}\n+++ {path}{end}\n");
    let mut groups: Vec<&[Change<'_>]> = Vec::new();
    let (mut begin, mut last) = (0, first.old.end);
    for (at, change) in changes.iter().enumerate() {
        if change.old.start > last + 2 * CONTEXT {
            groups.push(&changes[begin..at]);
            begin = at;
        }
        last = change.old.end;
    }
    groups.push(&changes[begin..]);
    let mut before = 0;
    let mut after = 0;
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let from = first.old.start.saturating_sub(CONTEXT);
        let to = (last.old.end + CONTEXT).min(lines.len());
        let removed: usize = group.iter().map(|change| change.old.len()).sum();
        let added: usize = group.iter().map(|change| change.new.len()).sum();
        let new_from = from + after - before;
        let (old, new) = (to - from, to - from + added - removed);
        let _ = writeln!(text, "@@ -{},{old} +{},{new} @@", from + 1, new_from + 1);
        let mut at = from;
        for change in group {
            lines[at..change.old.start].iter().for_each(|line| put(&mut text, ' ', line));
            lines[change.old.clone()].iter().for_each(|line| put(&mut text, '-', line));
            change.new.iter().for_each(|line| put(&mut text, '+', line));
            at = change.old.end;
        }
        lines[at..to].iter().for_each(|line| put(&mut text, ' ', line));
        before += removed;
        after += added;
    }
    text
}

fn put(text: &mut String, mark: char, line: &str) {
    text.push(mark);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, find: &str, with: &str) -> Edit {
        let at = text.find(find).expect("it is there");
        Edit { range: at..at + find.len(), text: with.to_owned() }
    }

    #[test]
    fn lines_that_are_far_apart_are_in_hunks_of_their_own() {
        let lines: String = (1..=30).map(|n| format!("line {n}\n")).collect();
        let edits = ["line 2\n", "line 9\n", "line 20\n"];
        let edits = edits.map(|line| edit(&lines, line, &line.replace("line", "a\nb")));
        let headers = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.starts_with("@@")).map(str::to_owned).collect()
        };
        let found = unified("x", &lines, edits.to_vec());
        assert_eq!(headers(&found), ["@@ -1,12 +1,14 @@", "@@ -17,7 +19,8 @@"], "{found}");
        assert_eq!(unified("x", &lines, Vec::new()), "");
        assert_eq!(unified("x", &lines, vec![edit(&lines, "line 3", "line 3")]), "");
    }

    #[test]
    fn ends_of_lines_stay_as_they_are() {
        let text = "a\r\n  b = 1; c = 2";
        let edits = vec![
            Edit { range: 3..3, text: "  @x\r\n".to_owned() },
            edit(text, "1", "3"),
            edit(text, "2", "\"4\""),
        ];
        let end = "\n\\ No newline at end of file\n";
        let expected = format!(
            "--- my x\t\n+++ my x\t\n@@ -1,2 +1,3 @@\n a\r\n-  b = 1; c = 2{end}+  @x\r\n\
             +  b = 3; c = \"4\"{end}"
        );
        assert_eq!(unified("my x", text, edits), expected);
    }
}
