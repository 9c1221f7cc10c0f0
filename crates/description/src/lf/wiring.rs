//! Connections from cell to cell.

use super::class::{Classes, Mode, Ports};
use super::instances::{Builder, CellId, InstanceId, Tree, cells};
use super::syntax::{Attribute, Connection};
use super::{Origin, codes};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::federation::TagDelay;
use onbeat_model::limits;
use onbeat_model::time::Span;

/// A position in [`Wiring::edges`].
pub(in crate::lf) type EdgeId = usize;

/// A connection from one cell to another.
pub(in crate::lf) struct Edge<'t> {
    pub(in crate::lf) from: CellId,
    pub(in crate::lf) to: CellId,
    pub(in crate::lf) delay: TagDelay,
    pub(in crate::lf) is_physical: bool,
    /// Whether it leads from federate to federate.
    pub(in crate::lf) is_network: bool,
    /// Whether the federated reactor declares it.
    pub(in crate::lf) is_top: bool,
    pub(in crate::lf) declared: &'t Connection,
    mode: Mode,
}

impl Edge<'_> {
    /// Whether a value arrives at the tag at which it was set.
    pub(in crate::lf) fn is_immediate(&self) -> bool {
        self.delay == TagDelay::None && !self.is_physical
    }

    pub(in crate::lf) fn origin(&self) -> Origin {
        self.declared.at
    }

    pub(in crate::lf) fn attributes(&self) -> &[Attribute] {
        &self.declared.attributes
    }
}

/// All connections.
pub(in crate::lf) struct Wiring<'t> {
    pub(in crate::lf) edges: Vec<Edge<'t>>,
    /// Per cell, what leads to it: several only from several modes.
    pub(in crate::lf) into: Vec<Vec<EdgeId>>,
}

/// Which federate each instance belongs to; none: the main reactor.
pub(in crate::lf) fn federates(tree: &Tree) -> Vec<Option<u32>> {
    let mut federates: Vec<Option<u32>> = vec![None; tree.list.len()];
    for (federate, at) in (0..).zip(tree.list[0].children.iter().flatten()) {
        federates[*at] = Some(federate);
    }
    for (at, instance) in tree.list.iter().enumerate().skip(1) {
        // An instance stands behind the one that contains it.
        if let Some((parent, _)) = instance.parent.filter(|(parent, _)| *parent > 0) {
            federates[at] = federates[parent];
        }
    }
    federates
}

/// Connects the cells of all instances.
pub(in crate::lf) fn wire<'t>(
    builder: &mut Builder<'_, 't>,
    tree: &Tree,
    federates: &[Option<u32>],
) -> Option<Wiring<'t>> {
    let mut wiring = Wiring { edges: Vec::new(), into: vec![Vec::new(); tree.cells.len()] };
    let classes = builder.classes;
    for at in 0..tree.list.len() {
        let Some(class) = classes.list.get(&tree.list[at].class) else { continue };
        for wire in &class.connections {
            let declared = wire.declared;
            // A reference that is wrong has been reported.
            if wire.left.len() != declared.left.len() || wire.right.len() != declared.right.len() {
                continue;
            }
            let delay = match &declared.after {
                None => TagDelay::None,
                Some(after) => match builder.span(after, &tree.list[at]) {
                    Some(Span::ZERO) => TagDelay::Microstep,
                    Some(span) => TagDelay::Time(span),
                    None => continue,
                },
            };
            let pairs = pairs(builder, tree, at, (&wire.left, &wire.right), declared);
            for (from, to) in pairs {
                let of = |cell: CellId| federates[tree.cells[cell].instance];
                let edge = Edge {
                    from,
                    to,
                    delay,
                    is_physical: declared.is_physical,
                    is_network: at == 0 && of(from) != of(to),
                    is_top: at == 0,
                    declared,
                    mode: wire.mode,
                };
                add(builder, tree, classes, &mut wiring, edge);
            }
            if wiring.edges.len() > limits::CHANNELS {
                let message =
                    format!("more than {} pairs of ports are connected", limits::CHANNELS);
                let large =
                    Diagnostic::error(codes::TOO_LARGE, message, declared.at, "this connection");
                builder.sink.push(large.help("make the model smaller"));
                return None;
            }
        }
    }
    Some(wiring)
}

fn add<'t>(
    builder: &mut Builder<'_, 't>,
    tree: &Tree,
    classes: &Classes<'t>,
    wiring: &mut Wiring<'t>,
    edge: Edge<'t>,
) {
    // In different modes an input may be connected differently.
    let other = wiring.into[edge.to].iter().map(|other| &wiring.edges[*other]);
    let other = other.into_iter().find(|other| other.mode.is_none() || other.mode == edge.mode);
    if let Some(other) = other {
        let message = format!("`{}` is connected twice", name(tree, classes, edge.to));
        let twice = Diagnostic::error(codes::CONNECTION, message, edge.origin(), "the second");
        let twice = twice.related(other.origin(), "the first");
        builder.sink.push(twice.help("an input has one writer: use a multiport for several"));
        return;
    }
    wiring.into[edge.to].push(wiring.edges.len());
    wiring.edges.push(edge);
}

/// The cells on both sides, pair by pair.
fn pairs(
    builder: &mut Builder<'_, '_>,
    tree: &Tree,
    at: InstanceId,
    (left, right): (&[Ports], &[Ports]),
    declared: &Connection,
) -> Vec<(CellId, CellId)> {
    let all = |side: &[Ports]| -> Vec<CellId> {
        side.iter().flat_map(|ports| cells(tree, at, *ports)).collect()
    };
    let (left, right) = (all(left), all(right));
    let (from, to) = (left.len(), right.len());
    let fits = match declared.is_broadcast {
        true => from > 0 && to.is_multiple_of(from) || to == 0,
        false => from == to,
    };
    if !fits {
        let message = format!("{from} outputs are connected to {to} inputs");
        let differ = Diagnostic::error(codes::WIDTHS, message, declared.at, "this connection");
        let help = match (declared.is_broadcast, from < to) {
            (false, true) => "the last inputs receive nothing; ( … )+ repeats the outputs",
            (false, false) => "the last outputs lead nowhere",
            (true, _) => "some outputs are repeated more often than others",
        };
        builder.sink.push(differ.help(help).warning());
    }
    match declared.is_broadcast {
        true => left.into_iter().cycle().zip(right).collect(),
        false => left.into_iter().zip(right).collect(),
    }
}

/// The name of a cell, qualified: `fed.pid.out[1]`.
pub(in crate::lf) fn name(tree: &Tree, classes: &Classes<'_>, cell: CellId) -> String {
    let of = &tree.cells[cell];
    let instance = &tree.list[of.instance];
    let port = port_name(tree, classes, cell);
    if instance.path.is_empty() { port } else { format!("{}.{port}", instance.path) }
}

/// The name of a cell in its instance: `out[1]`.
pub(in crate::lf) fn port_name(tree: &Tree, classes: &Classes<'_>, cell: CellId) -> String {
    let of = &tree.cells[cell];
    let class = classes.list.get(&tree.list[of.instance].class);
    let declared = class.and_then(|class| class.ports.get(of.port)).map(|(port, _)| *port);
    match declared {
        Some(port) if port.width.is_some() => format!("{}[{}]", port.name.value, of.index),
        Some(port) => port.name.value.clone(),
        None => String::new(),
    }
}
