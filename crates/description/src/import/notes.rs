//! What a description cannot say, or says on the safe side: each kind once, with the first place
//! and how often it is there.

use super::codes;
use crate::Sink;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use std::collections::BTreeMap;

/// A kind of thing to know. The text is the name of a column or attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Note {
    /// A column that means nothing here.
    Column(String),
    /// An attribute without a unit.
    NoUnit(String),
    /// A port with another number of queues than eight.
    Queues,
    /// A link that has one direction only.
    OneWay,
    /// A link from a node to itself.
    SelfLink,
    /// A host that would forward.
    HostForwards,
    /// Names of ports.
    Ports,
    /// A limit of the variation of the latency.
    Jitter,
    /// A message that occupies more than its size says.
    Stretched,
    /// A deadline that is no whole number of microseconds.
    Deadline,
    /// Two directions with different propagation delays.
    Propagation,
    /// A node whose incoming links have different processing delays.
    Processing,
}

impl Note {
    fn diagnostic(&self, at: Origin, count: usize) -> Diagnostic {
        let links = if count == 1 { "1 link".to_owned() } else { format!("{count} links") };
        let streams = if count == 1 { "1 stream".to_owned() } else { format!("{count} streams") };
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        let first = if count == 1 { "here" } else { "the first" };
        let (code, message, help) = match self {
            Self::Column(name) => (
                codes::NOT_SAID,
                format!("the column `{}` is not read", crate::shorten(name)),
                "add what it means to the description",
            ),
            Self::NoUnit(name) => (
                codes::NOT_SAID,
                format!("the attribute `{name}` of {links} has no known unit and is not read"),
                "name it `rate_mbps`, `rate_bps` or `propagation_ns`",
            ),
            Self::Queues => (
                codes::NOT_SAID,
                format!("`q_num` of {links} is not 8"),
                "check that the bridges have a queue for scheduled traffic: ports here have eight",
            ),
            Self::OneWay => (
                codes::NOT_SAID,
                format!("one direction of {links} is missing"),
                "add it to the file, or ignore this: links of a description are full-duplex",
            ),
            Self::SelfLink => (
                codes::NOT_SAID,
                format!("{links} from a node to itself: left out"),
                "remove it from the file",
            ),
            Self::HostForwards => (
                codes::NOT_SAID,
                format!("{nodes} with `forwarding_ns` became hosts, which do not forward"),
                "set `kind` to `bridge`, or remove the attribute",
            ),
            Self::Ports => (
                codes::NOT_SAID,
                format!("the names of the ports of {links} are not read"),
                "add them to `ends` of the links",
            ),
            Self::Jitter => (
                codes::NOT_SAID,
                format!("a description does not limit the jitter of {streams}"),
                "compare `jitter_ns` of `onbeat bounds --json` with the file",
            ),
            Self::Stretched => (
                codes::ROUNDED,
                format!("frames of {streams} occupy more than their size: they have the least"),
                "expect more load, or state another meaning of sizes with `--size`",
            ),
            Self::Deadline => (
                codes::ROUNDED,
                format!("deadlines of {streams} are rounded down to whole microseconds"),
                "use whole microseconds, or expect deadlines up to 1 µs shorter",
            ),
            Self::Propagation => (
                codes::ROUNDED,
                format!("the directions of {links} have different propagation delays"),
                "expect the longer one in both directions",
            ),
            Self::Processing => (
                codes::ROUNDED,
                format!("links to {nodes} have different `t_proc`"),
                "expect the longest one for all frames to the node",
            ),
        };
        Diagnostic::error(code, message, at, first).help(help).warning()
    }
}

/// What there is to know so far.
#[derive(Default)]
pub(super) struct Notes {
    found: BTreeMap<Note, (Origin, usize)>,
}

impl Notes {
    /// One more of a kind, at a place.
    pub(super) fn add(&mut self, note: Note, at: Origin) {
        self.found.entry(note).or_insert((at, 0)).1 += 1;
    }

    /// Makes warnings of all of them.
    pub(super) fn tell(self, sink: &mut Sink) {
        for (note, (at, count)) in self.found {
            sink.push(note.diagnostic(at, count));
        }
    }
}
