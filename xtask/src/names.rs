//! Types have names of their own.

use crate::{File, Finding, Tree};
use anyhow::Result;
use std::collections::BTreeMap;

/// A name that two types have is told apart by their modules; more are not.
const VISIBLE_MAX: usize = 2;

/// Helpers that one module alone sees may repeat a word, the worn ones no more often than this.
const HIDDEN_MAX: usize = 3;

/// Words that once named up to twelve types each: they say nothing by themselves.
const WORN: [&str; 9] =
    ["Context", "End", "Line", "Network", "Node", "Place", "Port", "Scenario", "Shape"];

/// Names that more types share still. What is no longer shared has to go from here.
const STILL: [&str; 13] = [
    "Event", "Facts", "Fault", "Finding", "Header", "Kind", "Load", "Phases", "Role", "Settings",
    "Source", "State", "Verdict",
];

/// A type that its whole crate sees, or more than that, shares its name with one other at most, and
/// a worn word names three helpers at most.
pub(crate) fn overloaded(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(shared(tree, &STILL))
}

/// What breaks the rule but for the names in `still`, and those of them that do not.
fn shared(tree: &Tree, still: &[&str]) -> Vec<Finding> {
    // By name and whether the crate sees it, the places.
    let mut all: BTreeMap<(&str, bool), Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_product(file)) {
        for (number, line) in file.lines().take_while(|(_, line)| *line != "#[cfg(test)]") {
            if let Some(found) = defined(line) {
                all.entry(found).or_default().push((&file.path, number));
            }
        }
    }
    let is_shared = |&(name, is_visible): &(&str, bool), places: &[(&str, usize)]| match is_visible
    {
        true => places.len() > VISIBLE_MAX,
        false => places.len() > HIDDEN_MAX && WORN.contains(&name),
    };
    let shared = || all.iter().filter(|(key, places)| is_shared(key, places));
    let mut findings = Vec::new();
    for ((name, is_visible), places) in shared().filter(|((name, _), _)| !still.contains(name)) {
        let (path, line) = places[0];
        let others: Vec<_> = places[1..].iter().map(|(path, at)| format!("{path}:{at}")).collect();
        let others = others.join(", ");
        let most = if *is_visible { VISIBLE_MAX } else { HIDDEN_MAX };
        let message = format!("`{name}` is a type in {others} too: qualify all but {most}");
        findings.push(Finding::new(path, line, message));
    }
    for name in still.iter().filter(|name| !shared().any(|((shared, _), _)| shared == *name)) {
        let message = format!("`{name}` is not overloaded any more: remove it from `STILL`");
        findings.push(Finding::new("xtask/src/names.rs", None, message));
    }
    findings
}

/// Whether it is a source of the product, not of its tests.
fn is_product(file: &File) -> bool {
    let of_crate = file.path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    let is_source = |path: &str| path.starts_with("src/") && !path.contains("/tests/");
    of_crate.is_some_and(|(_, path)| is_source(path))
        && file.is(&[".rs"])
        && !file.is(&["tests.rs"])
}

/// The name of a type that a line begins to define, and whether its whole crate sees it. Types of
/// an `impl` are none.
fn defined(line: &str) -> Option<(&str, bool)> {
    let text = line.trim_start();
    let (visible, rest) = match text.strip_prefix("pub") {
        None if text.starts_with("type ") && text.len() < line.len() => return None,
        None => (false, text),
        Some(rest) => match rest.strip_prefix('(') {
            None => (true, rest),
            Some(within) => {
                let (within, rest) = within.split_once(')')?;
                (within == "crate", rest)
            }
        },
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (kind, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    (is_type && name.starts_with(char::is_uppercase)).then_some((name, visible))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(files: &[(&str, &str)], still: &[&str]) -> Vec<String> {
        shared(&tree(files), still).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_of_three_visible_types_is_found_with_all_places() {
        let files = [
            ("crates/a/src/lib.rs", "pub struct Row;\n"),
            ("crates/b/src/x/row.rs", "\npub(crate) enum Row<'a> {"),
            ("crates/c/src/lib.rs", "    pub type Row = u8;"),
        ];
        let none: [String; 0] = [];
        assert_eq!(found(&files[..2], &[]), none, "two are told apart");
        let three = found(&files, &[]);
        assert_eq!(three.len(), 1);
        assert!(three[0].starts_with("crates/a/src/lib.rs:1: `Row` is a type in "), "{three:?}");
        assert!(three[0].contains("crates/b/src/x/row.rs:2, crates/c/src/lib.rs:1"), "{three:?}");
        assert_eq!(found(&files, &["Row"]), none, "an exception");
    }

    #[test]
    fn helpers_may_repeat_words_but_for_worn_ones() {
        let paths = ["a", "b", "c", "d"].map(|name| format!("crates/{name}/src/lib.rs"));
        let with = |text: &'static str, count: usize| {
            let files = paths[..count].iter().map(|path| (path.as_str(), text));
            found(&files.collect::<Vec<_>>(), &[])
        };
        for text in ["struct Node;", "pub(super) struct Node {", "    pub(in crate::x) enum Node {"]
        {
            assert_eq!((with(text, 3).len(), with(text, 4).len()), (0, 1), "{text}");
        }
        assert_eq!(with("struct Reader;", 4).len(), 0, "no worn word");
        assert_eq!(with("    type Node = u8;", 4).len(), 0, "a type of an `impl`");
        assert_eq!(with("/// pub struct Node", 4).len(), 0, "prose");
        assert_eq!(with("#[cfg(test)]\npub struct Node;", 4).len(), 0, "of tests");
    }

    #[test]
    fn sources_alone_count() {
        let text = "pub struct Row;";
        let others = ["crates/a/tests/x.rs", "crates/a/src/tests.rs", "crates/a/src/x/tests/y.rs"];
        let files: Vec<_> = others.iter().map(|path| (*path, text)).collect();
        assert!(found(&files, &[]).is_empty());
    }

    #[test]
    fn an_exception_that_is_none_any_more_is_found() {
        let files = [("crates/a/src/lib.rs", "pub struct Row;")];
        let one = found(&files, &["Row"]);
        assert_eq!(
            one,
            ["xtask/src/names.rs: `Row` is not overloaded any more: remove it from `STILL`"]
        );
    }
}
