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
    /// Data of a topology that mean nothing here.
    Data(String),
    /// A termination point without a link.
    FreePort,
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
        let first = if count == 1 { "here" } else { "the first" };
        let code = match self {
            Self::Stretched | Self::Deadline | Self::Propagation | Self::Processing => {
                codes::ROUNDED
            }
            _ => codes::NOT_SAID,
        };
        Diagnostic::error(code, self.message(count), at, first).help(self.help()).warning()
    }

    fn message(&self, count: usize) -> String {
        let of = |what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let (links, streams, nodes) = (of("link"), of("stream"), of("node"));
        match self {
            Self::Column(name) => format!("the column `{}` is not read", crate::shorten(name)),
            Self::Data(name) => format!("`{name}` is not read"),
            Self::FreePort => format!("{} without a link: left out", of("termination point")),
            Self::NoUnit(name) => {
                format!("the attribute `{name}` of {links} has no known unit and is not read")
            }
            Self::Queues => format!("`q_num` of {links} is not 8"),
            Self::OneWay => format!("one direction of {links} is missing"),
            Self::SelfLink => format!("{links} from a node to itself: left out"),
            Self::HostForwards => {
                format!("{nodes} with `forwarding_ns` became hosts, which do not forward")
            }
            Self::Ports => format!("the names of the ports of {links} are not read"),
            Self::Jitter => format!("a description does not limit the jitter of {streams}"),
            Self::Stretched => {
                format!("frames of {streams} occupy more than their size: they have the least")
            }
            Self::Deadline => {
                format!("deadlines of {streams} are rounded down to whole microseconds")
            }
            Self::Propagation => {
                format!("the directions of {links} have different propagation delays")
            }
            Self::Processing => format!("links to {nodes} have different `t_proc`"),
        }
    }

    const fn help(&self) -> &'static str {
        match self {
            Self::Column(_) | Self::Data(_) => "add what it means to the description",
            Self::FreePort => "ignore this: a port of a description is the end of a link",
            Self::NoUnit(_) => "name it `rate_mbps`, `rate_bps` or `propagation_ns`",
            Self::Queues => {
                "check that the bridges have a queue for scheduled traffic: ports here have eight"
            }
            Self::OneWay => {
                "add it to the file, or ignore this: links of a description are full-duplex"
            }
            Self::SelfLink => "remove it from the file",
            Self::HostForwards => "set `kind` to `bridge`, or remove the attribute",
            Self::Ports => "add them to `ends` of the links",
            Self::Jitter => "compare `jitter_ns` of `onbeat bounds --json` with the file",
            Self::Stretched => "expect more load, or state another meaning of sizes with `--size`",
            Self::Deadline => "use whole microseconds, or expect deadlines up to 1 µs shorter",
            Self::Propagation => "expect the longer one in both directions",
            Self::Processing => "expect the longest one for all frames to the node",
        }
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
