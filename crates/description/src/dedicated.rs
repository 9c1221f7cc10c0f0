//! Bridges with a dedicated path: what they cannot have beside it.

use super::nodes::Nodes;
use super::{Sink, codes};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::port::PortSettings;
use onbeat_model::system::{Link, NodeKind, Port};

/// Checks all bridges that have one. Octets leave as they come in, so all links are of one rate;
/// and beside the path there is one queue of best effort for each port, which nothing shapes.
pub(super) fn check(nodes: &Nodes, ports: &[Port], links: &[Link], sink: &mut Sink) {
    for node in &nodes.list {
        let NodeKind::Bridge(bridge) = &node.kind else { continue };
        if bridge.dedicated_path.is_none() {
            continue;
        }
        let mut refuse = |what: &str, help: &str| {
            let message = format!("bridge `{}` has a dedicated path, and {what}", node.name);
            let error = Diagnostic::error(codes::DEDICATED, message, node.origin, "this bridge");
            sink.push(error.help(help));
        };
        if bridge.cut_through {
            let help = "remove `cut_through`: it stores best effort, and only that";
            refuse("cuts through best effort", help);
        }
        let own = || node.ports.iter().map(|port| &ports[port.index()]);
        let rate = |port: &Port| links[port.link.index()].rate;
        let first = own().next().map(rate);
        if let Some(other) = own().map(rate).find(|other| first != Some(*other)) {
            let first = first.unwrap_or_default();
            let what = format!("links of {first} and of {other}");
            refuse(&what, "give all its links one rate: each octet leaves as it comes in");
        }
        for port in own().filter(|port| port.settings != PortSettings::default()) {
            let what = format!("settings of its port `{}`", port.name);
            let help = "remove the [[port]]: there is one queue of best effort, without shapers, \
                        gates, preemption and VLANs";
            refuse(&what, help);
        }
    }
}
