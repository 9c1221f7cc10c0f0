//! Channel endpoints: where values are written and read, and the names that traces have for them.

use super::edits::{Edits, Rank};
use super::net::MOVERS;
use super::output::{place_names, quoted};
use super::syntax::{children, walk};
use super::unit::{Function, Unit};
use super::{Target, bound};
use tree_sitter::Node;

/// An endpoint of a fifochannel, of a network channel or of an abstract channel.
pub(super) struct Endpoint<'t> {
    pub call: Node<'t>,
    /// The line; `12.2` for the second end in it.
    pub place: String,
}

/// All of a unit, in the order of its functions.
pub(super) fn read<'t>(unit: &Unit<'t>) -> Vec<Endpoint<'t>> {
    let mut calls = Vec::new();
    for function in &unit.functions {
        walk(function.body, |node| {
            if is_end(unit, function, node) {
                calls.push(node);
            }
            !matches!(node.kind(), "sizeof_expression" | "alignof_expression")
        });
    }
    let starts: Vec<usize> = calls.iter().map(Node::start_byte).collect();
    let names = place_names(unit, &starts);
    calls.into_iter().zip(names).map(|(call, place)| Endpoint { call, place }).collect()
}

fn is_end<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let Some(callee) = unit.callee(node).filter(|_| node.kind() == "call_expression") else {
        return false;
    };
    let name = node.child_by_field_name("function");
    match callee {
        "cwrite" | "cread" => {
            name.is_some_and(|n| unit.is_word(function, n)) && !is_latest(unit, node)
        }
        // A function of the program's own may be called like one of the library's.
        _ => {
            MOVERS.contains(&callee) && !unit.defined.contains_key(callee)
                || bound::of(unit, function, node).is_some()
        }
    }
}

/// Whether a call is for an lvchannel: a variable, not an end of anything.
fn is_latest(unit: &Unit<'_>, call: Node<'_>) -> bool {
    let list = call.child_by_field_name("arguments").map(children).unwrap_or_default();
    let Some(name) = list.first().map(|n| unit.words(*n)) else { return false };
    let declared = &unit.prepared.channels;
    let mut of_name = declared.iter().filter(|c| &unit.text[c.name.clone()] == name);
    of_name.clone().next().is_some() && of_name.all(|c| c.is_latest)
}

/// Lets each end say that control has come to it.
pub(super) fn edit(unit: &Unit<'_>, ends: &[Endpoint<'_>], edits: &mut Edits) {
    if unit.options.target == Target::FreeRtos {
        return;
    }
    for end in ends {
        let text = format!("(timedc_reach({}), ", quoted(&end.place));
        edits.before(end.call.byte_range(), Rank::Close, &text);
        edits.after(end.call.byte_range(), Rank::Close, ")");
    }
}
