//! Network channels: which ends a unit opens, and whether the manifest has them.

use super::codes;
use super::edits::{Edits, Rank};
use super::integer::{Integer, integer, word};
use super::syntax::{bare, children, declared, fields, token, walk};
use super::unit::{Function, Unit, Variable};
use onbeat_description::manifest;
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use tree_sitter::Node;

/// A channel endpoint that the unit opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenedEndpoint {
    pub name: String,
    pub is_talker: bool,
    pub is_first_generation: bool,
    pub array: String,
}

/// The function that moves a value of which this is the address: `chan_read(speed_du, &value)`.
pub(super) fn moves<'t>(unit: &Unit<'t>, address: Node<'t>) -> Option<&'static str> {
    let mut argument = address;
    while argument.parent()?.kind() != "argument_list" {
        let outer = argument.parent()?;
        if bare(outer).id() != address.id() {
            return None;
        }
        argument = outer;
    }
    let list = argument.parent()?;
    let callee = unit.callee(list.parent()?)?;
    let mover = MOVERS.iter().find(|name| **name == callee)?;
    (children(list).get(1)? == &argument).then_some(*mover)
}

/// Whether a function that moves a value sends it.
pub(super) fn writes(mover: &str) -> bool {
    mover.contains("_send")
}

/// What opens an end, and whether it is the first generation's.
pub(super) const OPENERS: [(&str, bool); 2] =
    [("pdu_create_standalone", true), ("chan_create_standalone", false)];

/// What moves a value.
pub(super) const MOVERS: [&str; 9] = [
    "pdu_send",
    "chan_send_now",
    "chan_send_now_wait",
    "chan_read",
    "chan_read_wait",
    "pdu_send_now",
    "pdu_send_now_wait",
    "pdu_read",
    "pdu_read_wait",
];

/// A row: the size of its messages, and where that stands.
struct Row {
    size: Option<i64>,
    place: Range<usize>,
}

/// The manifests of a unit, by array.
struct Manifests<'t> {
    arrays: HashMap<&'t str, BTreeMap<String, Row>>,
}

/// Reads ends and manifests, and checks one against the other.
pub(super) fn read<'t>(unit: &mut Unit<'t>, edits: &mut Edits) -> Vec<OpenedEndpoint> {
    let manifests = manifests(unit, edits);
    let mut ends: Vec<OpenedEndpoint> = Vec::new();
    let mut found = Vec::new();
    for function in &unit.functions {
        let mut calls = Vec::new();
        walk(function.body, |node| {
            if node.kind() == "call_expression" {
                calls.push(node);
            }
            true
        });
        let mut names: HashMap<&str, (String, &str)> = HashMap::new();
        for call in calls {
            let callee = unit.callee(call).unwrap_or("");
            if let Some((_, is_first)) = OPENERS.iter().find(|(n, _)| *n == callee) {
                let Some((end, place)) = end(unit, call, *is_first) else { continue };
                let rows = unit.globals.iter().find(|g| g.name == end.array);
                if let Some(variable) = receiver(unit, call) {
                    let array = rows.map_or("", |g| g.name);
                    names.insert(variable, (end.name.clone(), array));
                }
                found.extend(absent(unit, &manifests, &end, place));
                if rows.is_some() && !ends.contains(&end) {
                    ends.push(end);
                }
            } else if MOVERS.contains(&callee) {
                found.extend(wrong_size(unit, function, &manifests, &names, call, edits));
            }
        }
    }
    unit.diagnostics.extend(found);
    ends
}

/// `pdu_create_standalone("name", 1, net_fifo_chans, …)`
pub(super) fn end<'t>(
    unit: &Unit<'t>,
    call: Node<'t>,
    is_first: bool,
) -> Option<(OpenedEndpoint, Node<'t>)> {
    let arguments = children(call.child_by_field_name("arguments")?);
    let [name, talks, array, ..] = arguments[..] else { return None };
    let text = unit.words(name).strip_prefix('"')?.strip_suffix('"')?;
    let end = OpenedEndpoint {
        name: text.to_owned(),
        is_talker: unit.constant(talks)? != 0,
        is_first_generation: is_first,
        array: unit.words(bare(array)).to_owned(),
    };
    Some((end, name))
}

/// The variable that gets an end.
pub(super) fn receiver<'t>(unit: &Unit<'t>, call: Node<'t>) -> Option<&'t str> {
    let outer = call.parent()?;
    match outer.kind() {
        "init_declarator" => declared(outer).map(|n| unit.words(n)),
        "assignment_expression" => outer.child_by_field_name("left").map(|n| unit.words(n)),
        _ => None,
    }
}

/// Whether a variable begins as an end.
pub(super) fn opens(unit: &Unit<'_>, variable: &Variable<'_>) -> bool {
    let callee = variable.value.and_then(|value| unit.callee(value)).unwrap_or("");
    OPENERS.iter().any(|(name, _)| *name == callee)
}

fn absent(
    unit: &Unit<'_>,
    manifests: &Manifests<'_>,
    end: &OpenedEndpoint,
    place: Node<'_>,
) -> Option<Diagnostic> {
    let rows = manifests.arrays.get(end.array.as_str())?;
    if rows.contains_key(&end.name) {
        return None;
    }
    let text = format!("the manifest `{}` has no channel `{}`", end.array, end.name);
    let known: Vec<&str> = rows.keys().map(String::as_str).collect();
    let help = match known[..] {
        [] => "add a row with this name".to_owned(),
        _ => format!("add a row with this name; there are {}", known.join(", ")),
    };
    let at = unit.at(place.byte_range());
    Some(Diagnostic::error(codes::CHANNEL, text, at, "not in the manifest").help(help))
}

/// The arrays of rows. One row may stand there without braces of its own.
fn manifests<'t>(unit: &mut Unit<'t>, edits: &mut Edits) -> Manifests<'t> {
    let mut lists = Vec::new();
    walk(unit.root, |node| {
        if node.kind() == "declaration" {
            let kind = node.child_by_field_name("type").and_then(|k| k.child_by_field_name("name"));
            if kind.is_some_and(|k| matches!(unit.words(k), "net_fifo" | "channel_attrs")) {
                lists.extend(fields(node, "declarator"));
            }
        }
        !matches!(node.kind(), "declaration" | "function_definition")
    });
    lists.retain(|d| d.kind() == "init_declarator");
    let mut made = Manifests { arrays: HashMap::new() };
    if lists.is_empty() {
        return made;
    }
    let (entries, _) = manifest::read(&unit.prepared.text, 0);
    for declarator in lists {
        let (Some(name), Some(list)) =
            (declared(declarator), declarator.child_by_field_name("value"))
        else {
            continue;
        };
        let range = list.byte_range();
        let mut rows = BTreeMap::new();
        for entry in &entries {
            let Some(name) = &entry.name else { continue };
            let place = name.at.start as usize..name.at.end as usize;
            if range.contains(&place.start) {
                let size = entry.size.as_ref().map(|s| s.value);
                rows.insert(name.value.clone(), Row { size, place });
            }
        }
        made.arrays.insert(unit.words(name), rows);
        braces(unit, edits, list);
    }
    made
}

fn braces<'t>(unit: &mut Unit<'t>, edits: &mut Edits, list: Node<'t>) {
    let is_field = |n: &Node<'_>| {
        n.child_by_field_name("designator").is_some_and(|d| d.kind() == "field_designator")
    };
    let Some(first) = children(list).into_iter().find(is_field) else { return };
    let (Some(open), Some(close)) = (token(list, "{"), token(list, "}")) else { return };
    edits.after(open.byte_range(), Rank::Open, "{");
    edits.before(close.byte_range(), Rank::Open, "}");
    let text = "the manifest's row has no braces: taken as one row";
    let help = "write `{{ .dst = …, … }}`";
    let found = unit.error(codes::BRACES, first.byte_range(), text, "here", help);
    *found = found.clone().warning();
}

/// A value that is not as large as its channel's messages.
fn wrong_size<'t>(
    unit: &Unit<'t>,
    function: &Function<'t>,
    manifests: &Manifests<'t>,
    names: &HashMap<&str, (String, &str)>,
    call: Node<'t>,
    edits: &mut Edits,
) -> Option<Diagnostic> {
    let arguments = children(call.child_by_field_name("arguments")?);
    let [end, value] = arguments[..] else { return None };
    let variable = unit.words(bare(end));
    let label = variable.strip_suffix("_du").unwrap_or(variable);
    let (row, name) = match names.get(variable) {
        Some((name, array)) => (manifests.arrays.get(array)?.get(name)?, name.as_str()),
        // Opened by another function: the macros' names say which channel it is.
        None => (manifests.arrays.values().find_map(|rows| rows.get(label))?, label),
    };
    let wanted = row.size?;
    let at = bare(value);
    let Some(size) = size_of(unit, function, at) else {
        assert_size(unit, at, wanted, name, call, edits);
        return None;
    };
    let fits = match size {
        Size::Exactly(size) => size == wanted,
        Size::Many(size) => size > 0 && wanted % size == 0,
    };
    if fits {
        return None;
    }
    let (Size::Exactly(size) | Size::Many(size)) = size;
    let text = format!("a value of {size} octets, but messages of `{name}` have {wanted}");
    let help = "give the value the size of the channel, or change .size in the manifest";
    let place = unit.at(value.byte_range());
    let found = Diagnostic::error(codes::SIZE, text, place, "of another size").help(help);
    Some(found.related(unit.at(row.place.clone()), "the channel"))
}

/// Lets the C compiler compare the size of a value whose type is not known here.
fn assert_size<'t>(
    unit: &Unit<'t>,
    value: Node<'t>,
    wanted: i64,
    name: &str,
    call: Node<'t>,
    edits: &mut Edits,
) -> Option<()> {
    let target =
        value.child_by_field_name("argument").filter(|_| unit.words(value).starts_with('&'))?;
    let mut pure = true;
    walk(target, |n| {
        pure &=
            !matches!(n.kind(), "call_expression" | "update_expression" | "assignment_expression");
        true
    });
    let statement = call.parent().filter(|p| p.kind() == "expression_statement")?;
    let is_in_block = statement.parent().is_some_and(|p| p.kind() == "compound_statement");
    if pure && is_in_block {
        let target = unit.words(target).split_whitespace().collect::<Vec<_>>().join(" ");
        let code = codes::SIZE;
        let text = format!(
            "_Static_assert(sizeof({target}) == {wanted}, \"{code}: messages of {name} have \
             {wanted} octets\"); "
        );
        edits.before(statement.byte_range(), Rank::Open, &text);
    }
    None
}

/// What a pointer leads to.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// One object.
    Exactly(i64),
    /// Any number of objects.
    Many(i64),
}

fn size_of<'t>(unit: &Unit<'t>, function: &Function<'t>, value: Node<'t>) -> Option<Size> {
    let find = |node: Node<'t>| -> Option<&Variable<'t>> {
        let (name, at) = (unit.words(node), node.start_byte());
        let local = unit.resolve(function, name, at);
        local.or_else(|| unit.globals.iter().find(|g| g.name == name))
    };
    if value.kind() == "pointer_expression" && unit.words(value).starts_with('&') {
        let target = bare(value.child_by_field_name("argument")?);
        let variable = find(target).filter(|_| target.kind() == "identifier")?;
        return object(unit, variable).map(Size::Exactly);
    }
    let variable = find(value).filter(|_| value.kind() == "identifier")?;
    match variable.declarator.kind() {
        "array_declarator" if !variable.is_parameter => object(unit, variable).map(Size::Exactly),
        "pointer_declarator" => {
            let inner = variable.declarator.child_by_field_name("declarator")?;
            let known = (inner.kind() == "identifier").then(|| scalar(unit, variable))?;
            // Through a pointer to octets anything is passed.
            known.filter(|s| *s > 1).map(Size::Many)
        }
        _ => None,
    }
}

/// The octets of a variable.
pub(super) fn object(unit: &Unit<'_>, variable: &Variable<'_>) -> Option<i64> {
    let (mut size, mut declarator) = element(unit, variable)?;
    while declarator.kind() == "array_declarator" {
        let length = match declarator.child_by_field_name("size") {
            Some(size) => unit.constant(size)?,
            None => listed(variable, declarator)?,
        };
        size = size.checked_mul(i64::try_from(length).ok()?)?;
        declarator = declarator.child_by_field_name("declarator")?;
    }
    (declarator.kind() == "identifier").then_some(size)
}

/// The octets of what an array has, or of a plain variable, and the declarator that is left.
pub(super) fn element<'t>(unit: &Unit<'_>, variable: &Variable<'t>) -> Option<(i64, Node<'t>)> {
    let mut declarator = variable.declarator;
    if declarator.kind() != "pointer_declarator" {
        return Some((scalar(unit, variable)?, declarator));
    }
    while declarator.kind() == "pointer_declarator" {
        declarator = declarator.child_by_field_name("declarator")?;
    }
    Some((i64::from(word(unit.options.target) / 8), declarator))
}

/// How many elements an array has whose initialiser says it: one expression for each.
fn listed(variable: &Variable<'_>, array: Node<'_>) -> Option<i128> {
    let list = variable.value.filter(|v| v.kind() == "initializer_list")?;
    let all = children(list);
    let is_pointer = variable.declarator.kind() == "pointer_declarator";
    let is_element = |n: &Node<'_>| match n.kind() {
        "initializer_pair" | "initializer_list" => false,
        "string_literal" | "concatenated_string" => is_pointer,
        _ => true,
    };
    let is_plain = array.child_by_field_name("declarator")?.kind() == "identifier";
    (is_plain && all.iter().all(is_element)).then_some(all.len() as i128)
}

/// The octets of the type in front of a declarator.
pub(super) fn scalar(unit: &Unit<'_>, variable: &Variable<'_>) -> Option<i64> {
    let kind = variable.kind?;
    match unit.words(kind) {
        "float" => Some(4),
        "double" => Some(8),
        _ => {
            let kind = integer(unit, kind).filter(|kind| *kind != Integer::ENUM)?;
            Some(i64::from(kind.bits / 8))
        }
    }
}
