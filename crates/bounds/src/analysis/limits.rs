//! Where the analysis ended before it had looked at everything: its work is counted, and what is
//! left out has a bound all the same, by a method that takes less.

use super::flow::Analysis;
use super::multi_hop::MultiHop;
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::system::PortId;

/// One warning for windows, and one for the analysis of multi-hop paths.
pub(super) fn reached(analysis: &Analysis<'_>, multi_hop: &MultiHop) -> Vec<Diagnostic> {
    [windows(analysis), cut_short(analysis, multi_hop)].into_iter().flatten().collect()
}

fn windows(analysis: &Analysis<'_>) -> Option<Diagnostic> {
    let system = analysis.network.system;
    let (port, queue) = *analysis.cut_short.first()?;
    let others = match analysis.cut_short.len() - 1 {
        0 => String::new(),
        1 => " and of another queue".to_owned(),
        others => format!(" and of {others} other queues"),
    };
    let message = format!(
        "the frames of queue {queue} of port {}{others} were not analysed window by window: \
         that takes too long; their bounds hold for any phase",
        system.port_label(PortId(port as u32)),
    );
    let node = system.node(system.ports[port].node);
    let help = "choose a cycle and intervals with a small common multiple";
    Some(warning(message, node.origin, "has windows").help(help))
}

fn cut_short(analysis: &Analysis<'_>, multi_hop: &MultiHop) -> Option<Diagnostic> {
    let queues: Vec<_> = multi_hop.cut_short.iter().map(|queue| queue.to_string()).collect();
    let first = *multi_hop.cut_short.first()?;
    let system = analysis.network.system;
    let flow = analysis.network.flows.iter().position(|flow| flow.queue == first)?;
    let origin = match flow.checked_sub(system.channels.len()) {
        None => system.channels[flow].origin,
        Some(stream) => system.streams[stream].origin,
    };
    let message = format!(
        "not all paths of queue {} were analysed as a whole: that takes too long, and bounds are \
         sums over single queues there",
        queues.join(", "),
    );
    let help = "describe a part of the system by itself: the bounds hold, but may be larger \
                than necessary";
    Some(warning(message, origin, "the first of them").help(help))
}

fn warning(message: String, at: Origin, label: &str) -> Diagnostic {
    Diagnostic::error(codes::CUT_SHORT, message, at, label).warning()
}
