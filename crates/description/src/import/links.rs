//! The links of the scheduling benchmark (Xue et al., RTAS 2024): `link,q_num,rate,t_proc,t_prop`,
//! one direction in each line.

use super::notes::{Note, Notes};
use super::table::{Column, Table, list};
use super::{Edge, Graph, NETWORK, Node, codes, number, too_large};
use crate::{At, Sink};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::limits;
use onbeat_model::port::QUEUES;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::collections::BTreeMap;

const COLUMNS: [Column; 5] = [
    ("link", None, true),
    ("q_num", None, false),
    ("rate", None, true),
    ("t_proc", None, true),
    ("t_prop", None, true),
];
/// Bits per second of a link that takes one nanosecond for each bit: rates are nanoseconds.
const GIGABIT: i64 = 1_000_000_000;

/// One direction of a link.
struct Direction {
    ends: [String; 2],
    rate: BitRate,
    processing: Span,
    propagation: Span,
    at: Origin,
}

/// Reads the links; nothing if no line can be read.
pub(super) fn read(text: &str, notes: &mut Notes, sink: &mut Sink) -> Option<Graph> {
    let mut table = Table::new((text, NETWORK), &COLUMNS, notes, sink)?;
    let mut directions: Vec<Direction> = Vec::new();
    let mut known: BTreeMap<[String; 2], Origin> = BTreeMap::new();
    while let Some(row) = table.next(sink) {
        if sink.is_full() {
            return None;
        }
        if directions.len() == 2 * limits::LINKS {
            let message = format!("there are more than {} links", limits::LINKS);
            too_large(message, row.at, sink);
            return None;
        }
        let ends = ends(&row.cell(0), sink);
        let rate = rate(&row.cell(2), sink);
        let delays = [3, 4].map(|column| {
            let what = format!("`{}`", COLUMNS[column].0);
            let most = limits::DELAY.as_ns();
            number(&what, &row.cell(column), 0, 0..=most, sink).map(Span::from_ns)
        });
        let queues = row.cell(1);
        if super::exact(queues.value, 0) != Some(QUEUES as i64) && !queues.value.is_empty() {
            notes.add(Note::Queues, queues.at);
        }
        let (Some(ends), Some(rate), [Some(processing), Some(propagation)]) = (ends, rate, delays)
        else {
            continue;
        };
        if ends[0] == ends[1] {
            notes.add(Note::SelfLink, row.at);
            continue;
        }
        if let Some(first) = known.insert(ends.clone(), row.at) {
            let message = format!("the link ({}, {}) is there twice", ends[0], ends[1]);
            let second = Diagnostic::error(codes::DUPLICATE, message, row.at, "the second");
            sink.push(second.help("remove one of them").related(first, "the first"));
        }
        directions.push(Direction { ends, rate, processing, propagation, at: row.at });
    }
    Some(graph(directions, notes))
}

fn ends(cell: &At<&str>, sink: &mut Sink) -> Option<[String; 2]> {
    if let Some([from, to]) = list(cell.value).as_deref() {
        return Some([from, to].map(|end| (*end).to_owned()));
    }
    let message = format!("`link` is `{}`", crate::shorten(cell.value));
    let wrong = Diagnostic::error(codes::VALUE, message, cell.at, "no two nodes");
    sink.push(wrong.help("name two nodes, as in \"(0, 1)\""));
    None
}

/// Nanoseconds for each bit: 1 is 1 Gb/s, 10 is 100 Mb/s.
fn rate(cell: &At<&str>, sink: &mut Sink) -> Option<BitRate> {
    let ns = super::exact(cell.value, 0).filter(|ns| *ns > 0 && GIGABIT % ns == 0);
    if let Some(ns) = ns {
        return Some(BitRate::from_bps((GIGABIT / ns).unsigned_abs()));
    }
    let message = format!("`rate` is `{}`", crate::shorten(cell.value));
    let wrong = Diagnostic::error(codes::VALUE, message, cell.at, "no time of a bit");
    sink.push(wrong.help("give nanoseconds per bit: 1 is 1 Gb/s, 10 is 100 Mb/s, 100 is 10 Mb/s"));
    None
}

/// The graph: nodes in the order of their numbers, edges in that of the file.
fn graph(directions: Vec<Direction>, notes: &mut Notes) -> Graph {
    // By length first: numbers have no leading zeros.
    let mut by_id: BTreeMap<(usize, &str), (Origin, Vec<Span>)> = BTreeMap::new();
    for direction in &directions {
        for (at, end) in direction.ends.iter().enumerate() {
            let key = (end.len(), end.as_str());
            let (_, processing) = by_id.entry(key).or_insert((direction.at, Vec::new()));
            if at == 1 {
                processing.push(direction.processing);
            }
        }
    }
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut nodes = Vec::new();
    for ((_, id), (at, processing)) in &by_id {
        if processing.iter().any(|one| *one != processing[0]) {
            notes.add(Note::Processing, *at);
        }
        places.insert(id, nodes.len());
        nodes.push(Node {
            id: (*id).to_owned(),
            label: None,
            is_bridge: None,
            processing: processing.iter().max().copied(),
            at: *at,
        });
    }
    let edge = |direction: &Direction| Edge {
        ends: [0, 1].map(|end| places[direction.ends[end].as_str()]),
        ports: [None, None],
        is_directed: true,
        rate: direction.rate,
        propagation: direction.propagation,
        at: direction.at,
    };
    let edges = directions.iter().map(edge).collect();
    Graph { nodes, edges, is_for_hosts: true }
}
