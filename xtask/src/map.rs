//! ARCHITECTURE.md is a map: what it names is there, and the rooms may use what it says.

use crate::crates::EDGES;
use crate::{Finding, RULES, Tree};
use anyhow::Result;
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::Path;

const MAP: &str = "ARCHITECTURE.md";
/// The section whose first table has a crate in its first column and its edges in the second.
const ROOMS: &str = "## Rooms";
/// The section whose first column asks and whose second names a place.
const QUESTIONS: &str = "## Where is it?";
/// Ends of names of files. What ends otherwise and has no `/` is an item, a command or a word.
const FILES: [&str; 8] = [".rs", ".c", ".h", ".S", ".txt", ".md", ".toml", ".sh"];
/// What users write, by its name.
const USERS: &str = "system.toml";

/// What the map says of the tree is true: [`names`] and [`edges`].
pub(crate) fn map(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = names(tree)?;
    findings.extend(edges(tree));
    Ok(findings)
}

/// The table of rooms has every crate, with the edges that it may have and no others.
fn edges(tree: &Tree) -> Vec<Finding> {
    let lines = || tree.file(MAP).into_iter().flat_map(|map| map.lines());
    let section = lines().skip_while(|(_, line)| *line != ROOMS).skip(1);
    let rows: Vec<_> = section
        .take_while(|(_, line)| !line.starts_with('#'))
        .filter_map(|(number, line)| {
            let mut cells = line.strip_prefix('|')?.split('|');
            let room = spans(cells.next()?).next()?;
            Some((number, room, spans(cells.next()?).collect::<BTreeSet<_>>()))
        })
        .collect();
    let short = |name: &'static str| name.strip_prefix("onbeat-").unwrap_or(name);
    let wrong = EDGES.iter().filter_map(|(name, to)| {
        let allowed: BTreeSet<_> = to.iter().map(|to| short(to)).collect();
        let is_of = |room: &str| room == *name || room.strip_prefix("crates/") == Some(short(name));
        let Some((number, _, named)) = rows.iter().find(|(_, room, _)| is_of(room)) else {
            let message = format!("`{ROOMS}` has no row of `{name}`");
            return Some(Finding::new(MAP, None, message));
        };
        let message = format!("`{name}` may use {allowed:?}, the row says {named:?}");
        (allowed != *named).then(|| Finding::new(MAP, *number, message))
    });
    wrong.collect()
}

/// Every file and directory that the map names is in the tree: from the root, or below the room
/// whose paragraph it is in. In a table, an item named after a file is in that file. A rule that is
/// named is one.
fn names(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(map) = tree.file(MAP) else {
        return Ok(vec![Finding::new(MAP, None, "is missing")]);
    };
    let mut findings = Vec::new();
    let (mut room, mut questions, mut is_asking) = (String::new(), 0, false);
    for (number, line) in map.lines() {
        for rule in named_rules(line).filter(|rule| RULES.iter().all(|known| known.name != *rule)) {
            findings.push(Finding::new(MAP, number, format!("there is no rule `{rule}`")));
        }
        if line.starts_with('#') {
            room.clear();
            is_asking = line == QUESTIONS;
        }
        if line.starts_with("**`") {
            room = spans(line).next().unwrap_or_default().to_owned();
        }
        questions += usize::from(is_asking && line.starts_with("| ") && line.contains('`'));
        let mut file = None;
        for span in spans(line) {
            if is_place(span) {
                // In a table, further files are beside the first.
                let beside = file.and_then(|file: &str| Some(file.rsplit_once('/')?.0));
                let room = beside.unwrap_or(&room);
                let found = find(tree, room, span);
                // From the root, or below the room.
                let is_there =
                    || tree.root.join(span).exists() || is_on_disk(&tree.root.join(room), span);
                if found.is_none() && !is_there() {
                    let message = format!("there is no `{span}`{}", below(room));
                    findings.push(Finding::new(MAP, number, message));
                }
                // A directory's name says of no file what is in it.
                file = found.filter(|path| line.starts_with('|') && path.ends_with(span));
            } else if let Some(path) = file
                && let Some(file) = tree.file(path)
            {
                let item = span.rsplit("::").next().unwrap_or(span);
                if !file.text.contains(item) {
                    let message = format!("`{path}` has no `{item}`");
                    findings.push(Finding::new(MAP, number, message));
                }
            }
        }
    }
    if questions < 10 {
        let message = format!("`{QUESTIONS}` answers {questions} questions of a newcomer, not ten");
        findings.push(Finding::new(MAP, None, message));
    }
    Ok(findings)
}

fn below(room: &str) -> String {
    if room.is_empty() { String::new() } else { format!(" below `{room}`") }
}

/// What stands between backquotes.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The rules that a line names, as in: rule `edges`, rules `pure` and `floats`.
fn named_rules(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.to_ascii_lowercase();
    let starts: Vec<_> = starts.match_indices("rule").map(|(at, word)| at + word.len()).collect();
    starts.into_iter().flat_map(|at| {
        let mut parts = line[at..].split('`');
        let is_first = parts.next().is_some_and(|between| between.trim_start_matches('s') == " ");
        let mut rules: Vec<_> = parts.clone().next().into_iter().filter(|_| is_first).collect();
        let is_second = parts.nth(1).is_some_and(|between| between == " and ");
        rules.extend(parts.next().into_iter().filter(|_| is_first && is_second));
        rules
    })
}

fn is_place(span: &str) -> bool {
    if span == USERS {
        return false;
    }
    let is_path = span.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    is_path && (span.ends_with('/') || FILES.iter().any(|end| span.ends_with(end)) || is_room(span))
}

/// Whether it is a directory from the root, as `crates/net`.
fn is_room(span: &str) -> bool {
    ["crates/", "docs/", "xtask/", "timedc/", "fuzz/", "examples/", "conformance/"]
        .iter()
        .any(|root| span.starts_with(root))
}

/// A file that a span names, or one of the directory that it names.
fn find<'a>(tree: &'a Tree, room: &str, span: &str) -> Option<&'a str> {
    let span = span.trim_end_matches('/');
    let mut paths = tree.files.iter().map(|file| file.path.as_str());
    paths.find(|path| {
        let is_named = |path: &str| {
            path.strip_prefix(span).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let in_room = path.strip_prefix(room).and_then(|path| path.strip_prefix('/'));
        let mut places = in_room
            .into_iter()
            .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[at + 1..]).chain([path]));
        is_named(path) || (!room.is_empty() && places.any(is_named))
    })
}

/// Whether a file of a kind that the checks do not read, or a directory of such, is below a room.
fn is_on_disk(room: &Path, span: &str) -> bool {
    let is_below = |entry: DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_on_disk(&entry.path(), span)
    };
    let entries = || room.read_dir().into_iter().flatten().flatten();
    room.join(span).exists() || entries().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    /// Ten questions, the first about this place.
    fn asked(place: &str) -> String {
        let rows: String = (0..9).map(|n| format!("| where is {n} | `docs/a.md` |\n")).collect();
        format!("## Where is it?\n\n| to see | look at |\n| where is x | {place} |\n{rows}")
    }

    fn found(map: &str) -> Vec<String> {
        let files = [
            (MAP, map),
            ("crates/net/src/port/gate.rs", "pub struct Gate;"),
            ("crates/run/src/port.rs", ""),
            ("docs/a.md", ""),
        ];
        names(&tree(&files)).expect("checked").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_map_names_has_to_be_there() {
        let none: [String; 0] = [];
        assert_eq!(found(&asked("`crates/net/src/port/gate.rs`: `Gate`")), none);
        assert_eq!(found(&asked("`crates/net/src/port`")), none);
        assert_eq!(found(&asked("`crates/net/src/port/gate.rs`: `Gate::open`")).len(), 1);
        assert_eq!(found(&asked("`crates/net/src/gate.rs`")).len(), 1);
        let room = |text: &str| asked("`docs/a.md`") + "\n## Rooms\n\n**`crates/net`** — " + text;
        assert_eq!(found(&room("`gate.rs`, `port/`, `port/gate.rs` and `Gate`.")), none);
        assert_eq!(found(&room("`run/`.")).len(), 1, "another room's");
        assert_eq!(found(&room("`ate.rs`.")).len(), 1, "a part of a name");
        assert_eq!(found(&room("x.\n\n## Rest\n\n`gate.rs`.")).len(), 1, "in no room");
    }

    #[test]
    fn rules_that_the_map_names_are_rules() {
        let named = |line| named_rules(line).collect::<Vec<_>>();
        assert_eq!(named("Rule `edges`; the rules `map` and `a`; `b`"), ["edges", "map", "a"]);
        let none: [&str; 0] = [];
        assert_eq!(named("the rules of [x](y), overrule, `c`"), none);
        assert_eq!(found(&(asked("`docs/a.md`") + "\nrule `edges`\n")), none);
        assert_eq!(found(&(asked("`docs/a.md`") + "\nrule `wedges`\n")).len(), 1);
    }

    #[test]
    fn the_rooms_have_the_edges_that_they_may_have() {
        let room = |name: &str| match name.strip_prefix("onbeat-") {
            None if name == "onbeat" => "crates/onbeat".to_owned(),
            None => name.to_owned(),
            Some(short) => format!("crates/{short}"),
        };
        let row = |(name, to): &(&str, &[&str])| {
            let to =
                to.iter().map(|to| format!("`{}`, ", to.strip_prefix("onbeat-").unwrap_or(to)));
            format!("| `{}` | {} | `x` |\n", room(name), to.collect::<String>())
        };
        let rows: String = EDGES.iter().map(row).collect();
        let wrong = |rows: &str| {
            let map = format!("## Rooms\n\n| room | may use |\n| --- | --- |\n{rows}\n## X\n");
            edges(&tree(&[(MAP, &map)])).len()
        };
        assert_eq!(wrong(&rows), 0);
        assert_eq!(wrong(&rows.replacen("`net`, ", "", 1)), 1, "an edge too few");
        assert_eq!(wrong(&rows.replacen("| `crates/model` | ", "| `crates/model` | `net`", 1)), 1);
        assert_eq!(wrong(&rows.replacen("| `crates/net` ", "| `crates/nets` ", 1)), 1);
    }

    #[test]
    fn a_map_answers_ten_questions() {
        let few = asked("`docs/a.md`").replacen("| where is 1 | `docs/a.md` |\n", "", 1);
        assert_eq!(found(&few).len(), 1);
    }
}
