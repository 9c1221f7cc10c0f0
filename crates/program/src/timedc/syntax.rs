//! Small questions to the syntax tree.

use std::ops::Range;
use tree_sitter::Node;

/// All nodes below `root`, in the order of the text, without recursion; `enter` says whether to
/// look inside.
pub(super) fn walk<'t>(root: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = root.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// How deep the tree is.
pub(super) fn depth(root: Node<'_>) -> usize {
    let mut cursor = root.walk();
    let (mut now, mut most) = (0, 0);
    loop {
        if cursor.goto_first_child() {
            now += 1;
            most = most.max(now);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return most;
            }
            now -= 1;
        }
    }
}

/// The children that have names.
pub(super) fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|n| n.kind() != "comment").collect()
}

/// The first child that is this token.
pub(super) fn token<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|n| n.kind() == kind && !n.is_missing())
}

/// The last child that is this token.
pub(super) fn last_token<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).filter(|n| n.kind() == kind && !n.is_missing()).last()
}

/// The children in a field.
pub(super) fn fields<'t>(node: Node<'t>, name: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(name, &mut cursor).collect()
}

/// The text of a range.
pub(super) fn words(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or("")
}

/// The identifier that a declarator declares.
pub(super) fn declared<'t>(mut node: Node<'t>) -> Option<Node<'t>> {
    loop {
        if matches!(node.kind(), "identifier" | "type_identifier" | "field_identifier") {
            return Some(node);
        }
        let inner = node.child_by_field_name("declarator");
        node = match inner {
            Some(inner) => inner,
            None if node.kind().ends_with("declarator") => *children(node).first()?,
            None => return None,
        };
    }
}

/// Takes the parentheses off an expression.
pub(super) fn plain<'t>(mut node: Node<'t>) -> Node<'t> {
    while node.kind() == "parenthesized_expression"
        && let [inner] = children(node)[..]
        && inner.kind() != "compound_statement"
    {
        node = inner;
    }
    node
}

/// Takes the parentheses and casts off an expression.
pub(super) fn bare<'t>(node: Node<'t>) -> Node<'t> {
    let mut node = plain(node);
    while node.kind() == "cast_expression"
        && let Some(inner) = node.child_by_field_name("value")
    {
        node = plain(inner);
    }
    node
}

/// The operands of the commas on top of an expression, and the commas.
pub(super) fn comma_parts<'t>(node: Node<'t>) -> (Vec<Node<'t>>, Vec<Node<'t>>) {
    let (mut parts, mut commas, mut rest) = (Vec::new(), Vec::new(), node);
    while rest.kind() == "comma_expression" {
        let (Some(left), Some(comma), Some(right)) =
            (rest.child_by_field_name("left"), token(rest, ","), rest.child_by_field_name("right"))
        else {
            break;
        };
        parts.push(left);
        commas.push(comma);
        rest = right;
    }
    parts.push(rest);
    (parts, commas)
}

/// The value of a number as C writes it.
pub(super) fn number(text: &str) -> Option<i128> {
    let text = text.replace('\'', "").to_ascii_lowercase();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest.trim_start()),
        None => (1, text.trim_start_matches('+')),
    };
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        i128::from_str_radix(hex.trim_end_matches(['u', 'l']), 16).ok()?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary.trim_end_matches(['u', 'l']), 2).ok()?
    } else {
        let digits = digits.trim_end_matches(['u', 'l']);
        let radix = if digits.len() > 1 && digits.starts_with('0') { 8 } else { 10 };
        i128::from_str_radix(digits, radix).ok()?
    };
    Some(sign * value)
}
