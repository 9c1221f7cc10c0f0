//! The table of channels for programs of the C target: which connection of a decentralised
//! federation is on which channel. `lf/README.md` has its format, `lf/src/table.c` reads it.
//!
//! Programs know connections by numbers, which are those that `lfc` gives.

use super::instances::Tree;
use super::wiring::{Edge, EdgeId, Wiring};
use super::{Description, Loaded, codes};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::federation::Coordination;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a table begins with.
const FIRST_LINE: &str = "onbeat-lf-channels 1";
/// The most rows of a table.
const ROWS: usize = 4_096;

/// The number of the network input at the end of each of these connections.
///
/// `lfc` goes through the instances of the federated reactor in their order, a bank as one; through
/// the outputs of each in the order of their declaration; and through the connections of each
/// output. Each pair of ports becomes the next input of the federate that reads it, also on a
/// physical connection and on one from a federate to itself.
pub(super) fn inputs<'e>(
    tree: &Tree,
    wiring: &Wiring<'_>,
    owners: &[Option<u32>],
    connections: impl Iterator<Item = &'e EdgeId>,
) -> Vec<usize> {
    let children = &tree.list[0].children;
    let children = children.iter().enumerate();
    let declared: BTreeMap<usize, usize> = children
        .flat_map(|(at, members)| members.iter().map(move |member| (*member, at)))
        .collect();
    let place = |edge: &Edge<'_>| {
        let from = &tree.cells[edge.from];
        (declared.get(&from.instance).copied(), from.port)
    };
    let mut order: Vec<EdgeId> =
        (0..wiring.edges.len()).filter(|edge| wiring.edges[*edge].is_top).collect();
    // Connections of one output, and pairs of one connection, keep their order.
    order.sort_by_key(|edge| place(&wiring.edges[*edge]));
    let mut next: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    let mut numbers: BTreeMap<EdgeId, usize> = BTreeMap::new();
    for edge in order {
        let reader = owners[tree.cells[wiring.edges[edge].to].instance];
        let next = next.entry(reader).or_default();
        numbers.insert(edge, *next);
        *next += 1;
    }
    connections.map(|edge| numbers.get(edge).copied().unwrap_or(0)).collect()
}

/// A table of channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its text.
    pub text: String,
    /// How many rows it has.
    pub rows: usize,
    /// How many channels have none, because their connections are physical.
    pub physical: usize,
}

/// The table, with a row for each channel of a logical connection.
///
/// # Errors
/// If no program of the federation reads one: with another target or centralised coordination, or
/// with more or longer rows than a table has.
///
/// # Panics
/// When the description is another model's.
pub fn table(loaded: &Loaded, description: &Description) -> Result<Table, Box<Diagnostic>> {
    let details = &loaded.details;
    let Some(federation) = &loaded.federation else {
        return Err(none("the model has errors", details.target_at, "correct them"));
    };
    if details.target != "C" {
        let message = format!("programs of target {} read no table of channels", details.target);
        return Err(none(&message, details.target_at, "leave out --table, or use target C"));
    }
    if federation.coordination != Coordination::Decentralized {
        let message = "with centralized coordination no message is on a channel";
        let help = "add `coordination: decentralized` to the target";
        return Err(none(message, details.target_at, help));
    }
    let mut text = format!("{FIRST_LINE}\n# from port to port channel octets delay_ns\n");
    let (mut rows, mut physical) = (0, 0);
    let names = federation.connections.iter().enumerate();
    let names: BTreeMap<&str, usize> = names.map(|(at, one)| (one.name.as_str(), at)).collect();
    for (channel, delay) in description.document.channels.iter().zip(&description.delays) {
        let at = names[channel.name.as_str()];
        let connection = &federation.connections[at];
        if connection.physical {
            physical += 1;
            continue;
        }
        let (from, to, input) = (connection.from.0, connection.to.0, details.inputs[at]);
        let fits = |number: usize| u16::try_from(number).is_ok();
        if rows == ROWS || ![from, to].map(|n| n as usize).into_iter().chain([input]).all(fits) {
            let message = format!("a table has at most {ROWS} channels of 65,536 federates");
            return Err(none(&message, connection.origin, "split the federation"));
        }
        let (name, octets, ns) = (&channel.name, channel.value_octets, delay.as_ns());
        let _ = writeln!(text, "{from} {} {to} {input} {name} {octets} {ns}", channel.from);
        rows += 1;
    }
    Ok(Table { text, rows, physical })
}

fn none(message: &str, at: Origin, help: &str) -> Box<Diagnostic> {
    let none = Diagnostic::error(codes::TABLE, message, at, "this model has no table");
    Box::new(none.help(help))
}
