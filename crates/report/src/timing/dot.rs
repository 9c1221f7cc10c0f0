//! The graph for Graphviz.

use super::draw::wires;
use super::words::{self, letter};
use onbeat_model::graph::{Graph, NodeKind};
use onbeat_model::timing::TimingReport;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The graph in the language of Graphviz: a cluster for each host and in it one for each task.
pub fn dot(study: &TimingReport) -> String {
    let graph = &study.graph;
    let mut text = format!("digraph {} {{\n", quoted(&study.name));
    text.push_str("  node [fontname=\"sans-serif\" fontsize=11];\n");
    text.push_str("  edge [fontname=\"sans-serif\" fontsize=10];\n");
    let mut hosts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, task) in graph.tasks.iter().enumerate() {
        hosts.entry(task.host).or_default().push(number);
    }
    for (host, tasks) in hosts {
        let name = graph.hosts.get(host).map(|host| host.name.as_str()).unwrap_or_default();
        let _ = writeln!(text, "  subgraph cluster_{host} {{\n    label={};", quoted(name));
        for task in tasks {
            cluster(&mut text, graph, task);
        }
        text.push_str("  }\n");
    }
    for wire in wires(graph) {
        let [(a, b), (c, d)] = [wire.ends.0, wire.ends.1];
        let style = match wire.class {
            "network" => "penwidth=2",
            "best-effort" => "style=dashed",
            "named" | "starts" => "style=dotted",
            _ => "style=solid",
        };
        let label = quoted(&wire.name);
        let _ = writeln!(text, "  n{a}_{b} -> n{c}_{d} [constraint=false {style} label={label}];");
    }
    text.push_str("}\n");
    text
}

fn cluster(text: &mut String, graph: &Graph, number: usize) {
    let task = &graph.tasks[number];
    let _ = writeln!(text, "    subgraph cluster_task_{number} {{");
    let _ = writeln!(text, "      label={};", quoted(&task.name));
    for (at, node) in task.nodes.iter().enumerate() {
        let shape = match node.kind {
            NodeKind::Point { .. } => "circle",
            NodeKind::Fragment { .. } => "square",
            NodeKind::Write { .. } | NodeKind::Read { .. } => "hexagon",
            NodeKind::Branch(_) => "diamond",
            _ => "point",
        };
        let label =
            letter(&node.kind).map_or(String::new(), |letter| format!("{letter}{}", node.place));
        let (label, tip) = (quoted(&label), quoted(&words::phrase(graph, node)));
        let _ = writeln!(text, "      n{number}_{at} [shape={shape} label={label} tooltip={tip}];");
    }
    for (at, node) in task.nodes.iter().enumerate() {
        for next in &node.next {
            let _ = writeln!(text, "      n{number}_{at} -> n{number}_{next};");
        }
    }
    text.push_str("    }\n");
}

/// A string that Graphviz takes as it is.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
