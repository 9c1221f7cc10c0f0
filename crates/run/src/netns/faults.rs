//! The description's faults on a [`KernelNetwork`]: a program in the kernel at one end of every
//! link that may fail drops what the fault costs, of both directions. A node that is down is a node
//! whose links are. A babbling stream is left out, as all streams are.
//!
//! At a host's interface a reader's AF_XDP would come before the program, so it is at the other
//! end wherever that is a bridge.

use crate::netns::{KernelNetwork, interface_index};
use onbeat::bpf::*;
use onbeat::clock::MonoTime;
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{Link, LinkId, NodeKind, PortId, System};
use onbeat_model::time::NetTime;
use std::io;

/// What a program says of a frame, of linux/bpf.h: others may look at it, or it is dropped.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

/// The most faults of one link: a program's jumps reach over 32,767 lines.
const MAX_FAULTS: usize = 1_000;

/// When a link loses frames, by the machine's clock, and how many in 10⁹.
type Window = ([u64; 2], u32);

/// The faults of a network's links. Dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct LinkFaults {
    _attached: Vec<Attachment>,
}

impl LinkFaults {
    /// Lets links fail as described by a network time that began, or begins, at `start`.
    ///
    /// # Errors
    /// When the kernel takes no such programs: it is older than 6.6, or this process may not.
    pub(crate) fn begin(
        network: &KernelNetwork,
        system: &System,
        start: MonoTime,
    ) -> io::Result<Self> {
        let mut attached = Vec::new();
        for (id, link) in (0..).map(LinkId).zip(&system.links) {
            let windows = windows(system, id, start);
            if windows.is_empty() {
                continue;
            }
            if windows.len() > MAX_FAULTS {
                return Err(io::Error::other(format!("a link has more than {MAX_FAULTS}")));
            }
            let port = place(system, link);
            let index = interface_index(system, port);
            attached.extend(network.inside(system.port(port).node, || {
                let program = load_program(PROG_TYPE_SCHED_CLS, 0, &program(&windows))?;
                let at = |hook| Attachment::new(&program, index, hook, 0);
                Ok([at(ATTACH_TCX_INGRESS)?, at(ATTACH_TCX_EGRESS)?])
            })?);
        }
        Ok(Self { _attached: attached })
    }
}

/// Which of a link's ends has the program.
fn place(system: &System, link: &Link) -> PortId {
    let is_bridge = |port: &PortId| {
        let node = system.node(system.port(*port).node);
        matches!(node.kind, NodeKind::Bridge(_))
    };
    link.ports.into_iter().find(is_bridge).unwrap_or(link.ports[0])
}

fn windows(system: &System, link: LinkId, start: MonoTime) -> Vec<Window> {
    let nodes = system.links[link.index()].ports.map(|port| system.port(port).node);
    let at = |time: NetTime| {
        let ns = start.as_ns().saturating_add(time.as_ns());
        ns.max(0).unsigned_abs()
    };
    let window = |fault: &onbeat_model::stream::Fault| {
        let per_billion = match fault.kind {
            FaultKind::LinkDown(down) => (down == link).then_some(1_000_000_000),
            FaultKind::NodeDown(node) => nodes.contains(&node).then_some(1_000_000_000),
            FaultKind::FrameErrors { link: bad, per_billion } => {
                (bad == link).then_some(per_billion)
            }
            FaultKind::Babble(_) | FaultKind::ClockStep { .. } => None,
        };
        Some(([at(fault.from), at(fault.until)], per_billion?))
    };
    system.faults.iter().filter_map(window).collect()
}

/// Drops a frame with the probability of each window that it is now.
fn program(windows: &[Window]) -> Vec<LabelledInstruction> {
    let mut lines = vec![with(CALL, 0, MONOTONIC_NOW), copy(6, 0)];
    for ([from, until], per_billion) in windows {
        // Of the next lines so many are passed over.
        let past = |code, lines| LabelledInstruction { offset: lines, ..compare(code, 6, 1, "") };
        let share = (u64::from(*per_billion) << 32) / 1_000_000_000;
        let draw = match u32::try_from(share) {
            Ok(share) => vec![with(CALL, 0, RANDOM), go(IF_LESS_32, 0, share as i32, "drop")],
            Err(_) => vec![go(GO, 0, 0, "drop")],
        };
        lines.extend(set_64(1, *from));
        lines.push(past(IF_LESS_THAN_REGISTER, 3 + draw.len() as i16));
        lines.extend(set_64(1, *until));
        lines.push(past(UNLESS_LESS_THAN_REGISTER, draw.len() as i16));
        lines.extend(draw);
    }
    lines.extend([
        with(SET, 0, GO_ON),
        with(RETURN, 0, 0),
        at("drop", with(SET, 0, DROP)),
        with(RETURN, 0, 0),
    ]);
    lines
}
