//! What the grammar does not understand: text that is no C, or C of a kind that it does not know.
//! The C compiler says which; no time is stated of a program where it may matter.

use super::program::Program;
use super::unit::{Role, Unit};
use onbeat_model::diagnostic::Origin;
use std::collections::HashSet;
use tree_sitter::Node;

/// Words of constructs, or the ends of their names.
const WORDS: [&str; 11] = [
    "delay", "stp", "ftp", "htp", "gettime", "cread", "cwrite", "cinit", "_read", "_write", "pdu_",
];

/// The first such place where it may matter, and what it is in: a function that has constructs or
/// is called by one that does, or braces or constructs outside of functions.
pub(super) fn find(unit: &Unit<'_>, program: &Program<'_>) -> Option<(String, Origin)> {
    let has_words = |node: Node<'_>| WORDS.iter().any(|word| unit.words(node).contains(word));
    let own = unit.functions.iter().enumerate().filter(|(index, function)| {
        function.role != Role::Plain
            || program.is_with_points(*index)
            || function.definition.has_error() && has_words(function.definition)
    });
    let own: HashSet<usize> = own.map(|(index, _)| index).collect();
    let matter = program.callees(own);
    let mut found: Option<(String, Node<'_>)> = None;
    super::syntax::walk(unit.root, |node| {
        if found.is_some() || !node.has_error() && !node.is_missing() {
            return false;
        }
        if let Some(index) = unit.functions.iter().position(|f| f.definition == node) {
            let is_it = matter.contains(&index) || is_torn(unit, node);
            let place = first(unit, node).filter(|_| is_it);
            let name = unit.functions[index].name;
            found = place.map(|place| (format!("`{name}`"), place));
            return false;
        }
        if is_brace(unit, node) || node.is_error() && has_words(node) {
            found = first(unit, node).map(|place| ("this file".to_owned(), place));
        }
        true
    });
    found.map(|(what, node)| (what, unit.at(node.byte_range())))
}

/// Whether a place that is not understood has braces, or lacks one.
fn is_brace(unit: &Unit<'_>, node: Node<'_>) -> bool {
    match node.is_missing() {
        true => matches!(node.kind(), "{" | "}"),
        false => node.is_error() && unit.words(node).contains(['{', '}']),
    }
}

/// Whether what follows a function may be in it, or what is in it may follow.
fn is_torn(unit: &Unit<'_>, function: Node<'_>) -> bool {
    let mut is_it = false;
    super::syntax::walk(function, |node| {
        is_it |= is_brace(unit, node) || node != function && node.kind() == "function_definition";
        node.has_error()
    });
    is_it
}

/// Whether others see what the grammar does not: `case 1 ... 3:` and `goto *there;`.
fn is_known(unit: &Unit<'_>, node: Node<'_>) -> bool {
    let Some(parent) = node.parent().filter(|_| node.is_error()) else { return false };
    match parent.kind() {
        "case_statement" => unit.words(node).contains("..."),
        "goto_statement" => unit.words(node).starts_with('*'),
        _ => false,
    }
}

/// The first place in a tree that is not understood.
fn first<'t>(unit: &Unit<'t>, node: Node<'t>) -> Option<Node<'t>> {
    let mut found = None;
    super::syntax::walk(node, |node| {
        if found.is_some() || is_known(unit, node) {
            return false;
        }
        if node.is_missing() {
            found = Some(node);
        } else if node.is_error() {
            // What is whole in it was understood.
            let mut cursor = node.walk();
            let mut parts = node.children(&mut cursor);
            let is_whole = |n: &Node<'_>| {
                !n.has_error()
                    && (n.kind().ends_with("definition")
                        || n.kind() == "declaration"
                        || n.kind().starts_with("preproc")
                        || n.kind() == "comment")
            };
            found = parts.find(|n| !is_whole(n)).or(Some(node));
        }
        found.is_none() && node.has_error()
    });
    found
}
