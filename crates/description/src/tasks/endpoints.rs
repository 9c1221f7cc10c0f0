//! Channel endpoints: checks that hosts, kinds and directions fit, and finds where each channel is
//! read.

use super::channels::Channels;
use super::{Whole, codes};
use crate::{At, Sink};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{ChannelKind, Host, Interval, NetworkChannel, NodeKind, TaskNode};
use onbeat_model::timing::Chain;
use std::collections::BTreeSet;

/// A channel endpoint.
#[derive(Clone, Copy)]
struct Endpoint {
    task: usize,
    host: usize,
    is_write: bool,
    waits: bool,
    at: Origin,
}

/// Checks the endpoints of all channels and sets where each network channel is read.
pub(super) fn check(
    hosts: &[Host],
    channels: &mut Channels,
    tasks: &[Whole],
    chains: &[At<Chain>],
    sink: &mut Sink,
) {
    let mut ends: Vec<Vec<Endpoint>> = vec![Vec::new(); channels.list.len()];
    for (number, whole) in tasks.iter().enumerate() {
        for (node, at) in whole.nodes() {
            let (task, host) = (number, whole.task.host);
            match node.kind {
                NodeKind::Write { channel, waits } => {
                    ends[channel].push(Endpoint { task, host, is_write: true, waits, at });
                }
                NodeKind::Read { channel, waits } => {
                    ends[channel].push(Endpoint { task, host, is_write: false, waits, at });
                }
                _ => {}
            }
        }
    }
    for (id, ends) in ends.iter().enumerate() {
        let name = channels.list[id].name.clone();
        let readers: BTreeSet<usize> =
            ends.iter().filter(|end| !end.is_write).map(|end| end.host).collect();
        match &mut channels.list[id].kind {
            ChannelKind::Fifo { .. } => fifo(&name, ends, hosts, sink),
            ChannelKind::Network(network) => {
                let latency = channels.latencies[id];
                set_latencies(network, latency, &readers);
                if !channels.has_fixed_delay[id] {
                    no_fixed_delay(&name, ends, channels.origins[id], sink);
                }
                one_talker(&name, ends, hosts, sink);
                unwritten(&name, ends, sink);
            }
            ChannelKind::Named => {}
        }
    }
    for chain in chains {
        meets(chain, channels, &ends, sink);
    }
}

fn set_latencies(network: &mut NetworkChannel, latency: Interval, readers: &BTreeSet<usize>) {
    network.latencies = readers.iter().map(|host| (*host, latency)).collect();
}

fn wrong(message: String, at: Origin, help: &str) -> Diagnostic {
    Diagnostic::error(codes::CHANNEL, message, at, "this endpoint").help(help)
}

fn unwritten(name: &str, ends: &[Endpoint], sink: &mut Sink) {
    if let Some(reader) = ends.first().filter(|_| !ends.iter().any(|end| end.is_write)) {
        let message = format!("no task writes `{name}`");
        let help = "add a task that writes: a reader would wait for ever";
        sink.push(wrong(message, reader.at, help));
    }
}

fn fifo(name: &str, ends: &[Endpoint], hosts: &[Host], sink: &mut Sink) {
    unwritten(name, ends, sink);
    if let Some(end) = ends.iter().find(|end| end.waits) {
        let message = format!("`wait` on `{name}`, a fifochannel, which has no fixed delay");
        sink.push(wrong(message, end.at, "remove `wait`"));
    }
    let other = |end: &&Endpoint| end.host != ends[0].host;
    if let Some(end) = ends.iter().find(other) {
        let message = format!(
            "the fifochannel `{name}` has endpoints on `{}` and `{}`",
            hosts[ends[0].host].name, hosts[end.host].name
        );
        let apart = wrong(message, end.at, "use a channel of kind \"network\" between hosts");
        sink.push(apart.related(ends[0].at, "an endpoint on another host"));
    }
}

fn no_fixed_delay(name: &str, ends: &[Endpoint], declared: Origin, sink: &mut Sink) {
    if let Some(end) = ends.iter().find(|end| end.waits) {
        let message = format!("`wait` on `{name}`, which has no fixed delay");
        let missing = wrong(message, end.at, "give the channel `fixed_delay_us`");
        sink.push(missing.related(declared, "the channel"));
    }
}

fn one_talker(name: &str, ends: &[Endpoint], hosts: &[Host], sink: &mut Sink) {
    let mut writers = ends.iter().filter(|end| end.is_write);
    let Some(first) = writers.next() else { return };
    if let Some(other) = writers.find(|end| end.host != first.host) {
        let message = format!(
            "`{name}` is written on `{}` and on `{}`",
            hosts[first.host].name, hosts[other.host].name
        );
        let two = wrong(message, other.at, "use two channels: a network channel has one talker");
        sink.push(two.related(first.at, "the first talker"));
    }
}

/// Some task reads each channel of a chain and writes the next.
fn meets(chain: &At<Chain>, channels: &Channels, ends: &[Vec<Endpoint>], sink: &mut Sink) {
    let tasks = |channel: usize, is_write: bool| -> BTreeSet<usize> {
        let of = ends[channel].iter().filter(|end| end.is_write == is_write);
        of.map(|end| end.task).collect()
    };
    for pair in chain.value.channels.windows(2) {
        if tasks(pair[0], false).is_disjoint(&tasks(pair[1], true)) {
            let [before, after] = [pair[0], pair[1]].map(|id| &channels.list[id].name);
            let message = format!(
                "chain `{}`: no task reads `{before}` and writes `{after}`",
                chain.value.name
            );
            let apart = Diagnostic::error(codes::CHANNEL, message, chain.at, "this chain");
            sink.push(apart.help("name all channels on the path, those within a host too"));
        }
    }
    if let Some(last) = chain.value.channels.last().filter(|last| tasks(**last, false).is_empty()) {
        let name = &channels.list[*last].name;
        let message = format!("chain `{}`: no task reads `{name}`", chain.value.name);
        let open = Diagnostic::error(codes::CHANNEL, message, chain.at, "this chain");
        sink.push(open.help("end the chain with a channel that a task reads"));
    }
}

/// Whether control may come back to a node.
pub(super) fn is_on_cycle(nodes: &[TaskNode], node: usize) -> bool {
    let mut seen = vec![false; nodes.len()];
    let ways = |at: usize| nodes[at].next.iter().copied().chain(nodes[at].guard);
    let mut work: Vec<usize> = ways(node).collect();
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut seen[at], true) {
            work.extend(ways(at));
        }
    }
    seen[node]
}
