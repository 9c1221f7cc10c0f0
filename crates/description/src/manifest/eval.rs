//! Constant expressions, as C computes them, in 128 bits: what does not fit is an error.

use super::layout::Layouts;
use super::preprocess::Source;
use super::{named_children, parse, walk, words};
use onbeat_model::limits;
use std::collections::BTreeMap;
use tree_sitter::{Node, Tree};

/// How deep expressions and macros may nest.
const DEPTH: u32 = 64;

/// What an expression stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// An integer.
    Int(i128),
    /// A brace-enclosed list of integers.
    List(Vec<i128>),
}

/// The constants that the library's headers define, in both generations.
const KNOWN: [(&str, i128); 6] = [
    ("US_IN_MS", 1_000),
    ("US_IN_SEC", 1_000_000),
    ("NS_IN_US", 1_000),
    ("NS_IN_MS", 1_000_000),
    ("NS_IN_SEC", 1_000_000_000),
    ("NS_IN_HOUR", 3_600_000_000_000),
];
/// The library's group address without a group.
const DEFAULT_MCAST: (&str, [i128; 6]) = ("DEFAULT_MCAST", [0x01, 0x00, 0x5e, 0, 0, 0]);

/// Everything that has a name and a constant value.
pub(super) struct Constants<'a> {
    macros: &'a BTreeMap<String, String>,
    layouts: Layouts,
    /// Macros and enumerators that have been computed; `None` while one is being computed.
    known: BTreeMap<String, Option<Result<Value, String>>>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(source: &'a Source, tree: &Tree) -> Self {
        let mut known: BTreeMap<_, _> = KNOWN
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some(Ok(Value::Int(*value)))))
            .collect();
        let (name, list) = DEFAULT_MCAST;
        known.insert(name.to_owned(), Some(Ok(Value::List(list.to_vec()))));
        // The file's own definitions go before the library's.
        source.macros.keys().for_each(|name| drop(known.remove(name)));
        let mut constants = Self { macros: &source.macros, layouts: Layouts::default(), known };
        let mut definitions = Vec::new();
        walk(tree.root_node(), |node| {
            definitions.push(node);
            !matches!(node.kind(), "initializer_list" | "compound_statement")
        });
        for node in definitions {
            match node.kind() {
                // What is packed in ways that are not read has no known size.
                "struct_specifier" | "type_definition" if source.packing.is_some() => {}
                "enumerator_list" => constants.enumerators(node, &source.text),
                "struct_specifier" | "type_definition" => constants.layout(node, &source.text),
                _ => {}
            }
        }
        constants
    }

    fn enumerators(&mut self, list: Node<'_>, text: &str) {
        let mut next = Ok(0);
        for enumerator in named_children(list) {
            let Some(name) = enumerator.child_by_field_name("name") else { continue };
            if let Some(value) = enumerator.child_by_field_name("value") {
                next = self.int(value, text, 0);
            }
            let value = next.clone().map(Value::Int);
            self.known.insert(words(name, text).to_owned(), Some(value));
            next = next.and_then(|n| n.checked_add(1).ok_or_else(too_large));
        }
    }

    fn layout(&mut self, node: Node<'_>, text: &str) {
        // Taken out for the time being: array lengths are constant expressions themselves.
        let mut layouts = std::mem::take(&mut self.layouts);
        layouts.add(node, text, &mut |length| self.int(length, text, 0).ok());
        self.layouts = layouts;
    }

    /// The value of an expression or list, or why it has none.
    pub(super) fn value(&mut self, node: Node<'_>, text: &str) -> Result<Value, String> {
        self.value_at(node, text, 0)
    }

    fn value_at(&mut self, node: Node<'_>, text: &str, depth: u32) -> Result<Value, String> {
        if depth > DEPTH {
            return Err("the nesting is too deep".to_owned());
        }
        match node.kind() {
            "initializer_list" => {
                let children = named_children(node);
                if children.len() > limits::LIST {
                    return Err("this list is too long".to_owned());
                }
                let int = |n: Node<'_>| self.int(n, text, depth + 1);
                children.into_iter().map(int).collect::<Result<_, _>>().map(Value::List)
            }
            "identifier" => self.named(words(node, text), depth),
            "parenthesized_expression" => match named_children(node)[..] {
                [inner] => self.value_at(inner, text, depth + 1),
                _ => Err(not_constant(node, text)),
            },
            _ => self.arithmetic(node, text, depth).map(Value::Int),
        }
    }

    pub(super) fn int(&mut self, node: Node<'_>, text: &str, depth: u32) -> Result<i128, String> {
        match self.value_at(node, text, depth)? {
            Value::Int(value) => Ok(value),
            Value::List(_) => Err("a list where a number is expected".to_owned()),
        }
    }

    fn named(&mut self, name: &str, depth: u32) -> Result<Value, String> {
        match self.known.get(name) {
            Some(Some(value)) => return value.clone(),
            Some(None) => return Err(format!("`{name}` is defined by itself")),
            None => {}
        }
        let unknown = || format!("the value of `{name}` is unknown");
        let body = self.macros.get(name).ok_or_else(unknown)?;
        self.known.insert(name.to_owned(), None);
        let value = self.body(name, body, depth);
        self.known.insert(name.to_owned(), Some(value.clone()));
        value
    }

    /// The value of a macro's body: read as the initializer of a variable.
    fn body(&mut self, name: &str, body: &str, depth: u32) -> Result<Value, String> {
        let text = format!("int x = {body};");
        let tree = parse(&text).ok_or_else(String::new)?;
        let declaration = named_children(tree.root_node());
        let value = match declaration[..] {
            [one] if !one.has_error() => {
                one.child_by_field_name("declarator").and_then(|d| d.child_by_field_name("value"))
            }
            _ => None,
        };
        let value = value.ok_or_else(|| format!("`{name}` is not a number"))?;
        self.value_at(value, &text, depth + 1)
    }

    fn arithmetic(&mut self, node: Node<'_>, text: &str, depth: u32) -> Result<i128, String> {
        let part = |field| node.child_by_field_name(field).ok_or_else(|| not_constant(node, text));
        let operator = node.child_by_field_name("operator").map_or("", |o| o.kind());
        match node.kind() {
            "number_literal" => number(words(node, text)),
            "unary_expression" => {
                let value = self.int(part("argument")?, text, depth + 1)?;
                match operator {
                    "-" => value.checked_neg().ok_or_else(too_large),
                    "+" => Ok(value),
                    _ => Err(not_constant(node, text)),
                }
            }
            "binary_expression" => {
                let left = self.int(part("left")?, text, depth + 1)?;
                let right = self.int(part("right")?, text, depth + 1)?;
                binary(operator, left, right).unwrap_or_else(|| Err(not_constant(node, text)))
            }
            "cast_expression" => self.int(part("value")?, text, depth + 1),
            "sizeof_expression" => {
                let size = self.layouts.size_of(node, text);
                let source = words(node, text);
                size.ok_or_else(|| format!("the value of `{source}` is unknown"))
            }
            _ => Err(not_constant(node, text)),
        }
    }
}

/// `None` for an operator that is not computed.
fn binary(operator: &str, left: i128, right: i128) -> Option<Result<i128, String>> {
    if matches!(operator, "/" | "%") && right == 0 {
        return Some(Err("a division by zero".to_owned()));
    }
    let shift = u32::try_from(right).ok().filter(|s| *s < 64);
    let value = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => shift.and_then(|s| left.checked_mul(1 << s)),
        ">>" => shift.map(|s| left >> s),
        "|" => Some(left | right),
        "&" => Some(left & right),
        _ => return None,
    };
    Some(value.ok_or_else(too_large))
}

fn too_large() -> String {
    "this number is too large".to_owned()
}

fn not_constant(node: Node<'_>, text: &str) -> String {
    let words: String = words(node, text).chars().take(60).collect();
    format!("`{words}` is not a constant that Onbeat can compute")
}

/// A C integer constant: decimal, hexadecimal, octal or binary, with any integer suffix.
fn number(text: &str) -> Result<i128, String> {
    let wrong = || format!("`{text}` is not an integer");
    let lower = text.to_ascii_lowercase().replace('\'', "");
    let digits = lower.trim_end_matches(['u', 'l']);
    if lower.len() - digits.len() > 3 {
        return Err(wrong());
    }
    // The grammar takes a sign before digits for a part of the number.
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (digits, radix) = match digits {
        d if d.starts_with("0x") => (&d[2..], 16),
        d if d.starts_with("0b") => (&d[2..], 2),
        d if d.len() > 1 && d.starts_with('0') => (&d[1..], 8),
        d => (d, 10),
    };
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    i128::from_str_radix(digits, radix).map(|n| sign * n).map_err(|_| wrong())
}
