//! The streams of the scheduling benchmark (Xue et al., RTAS 2024) as scheduled channels:
//! `stream,src,dst,size,period,deadline,jitter`.

use super::SUGGESTED;
use super::notes::{Note, Notes};
use super::shape::{Names, Shape, plain};
use super::table::{Column, Row, Table, list};
use super::{STREAMS, SizeMeaning, codes, number, too_large};
use crate::{At, Sink, did_you_mean, shorten};
use onbeat_model::codes::description;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use onbeat_model::limits;
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};
use std::collections::{BTreeMap, BTreeSet};

const COLUMNS: [Column; 7] = [
    ("stream", Some("id"), true),
    ("src", None, true),
    ("dst", None, true),
    ("size", None, true),
    ("period", None, true),
    ("deadline", None, true),
    ("jitter", None, false),
];
const US: i64 = 1_000;

/// A channel of class `scheduled`.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) talker: usize,
    pub(super) listeners: Vec<usize>,
    pub(super) payload: i64,
    pub(super) interval: Span,
    /// Whole microseconds.
    pub(super) fixed_delay_us: i64,
}

impl SizeMeaning {
    /// The octets that a frame has beside those that the size counts.
    const fn beside(self) -> i64 {
        let frame = frame::AVTP_HEADER.get() + frame::HEADER.get() + frame::TAG.get();
        let frame = (frame + frame::FCS.get()) as i64;
        match self {
            Self::Payload => 0,
            Self::Frame => frame,
            Self::Wire => frame + frame::PREAMBLE.get() as i64 + frame::GAP.get() as i64,
        }
    }

    /// What of a channel's frame the size counts.
    fn of(self, payload: i64) -> i64 {
        let payload = Octets::new(u32::try_from(payload).unwrap_or(u32::MAX));
        let octets = match self {
            Self::Payload => payload,
            Self::Frame => frame::of_channel(payload),
            Self::Wire => frame::on_wire(frame::of_channel(payload)),
        };
        i64::from(octets.get())
    }
}

/// Reads the streams; nothing if no line can be read.
pub(super) fn read(
    text: &str,
    shape: &Shape,
    size: SizeMeaning,
    notes: &mut Notes,
    sink: &mut Sink,
) -> Option<Vec<Channel>> {
    let mut table = Table::new((text, STREAMS), &COLUMNS, notes, sink)?;
    let mut reader = Reader { shape, size, notes, sink };
    let mut known: BTreeMap<String, Origin> = BTreeMap::new();
    let mut names = Names::default();
    let mut channels = Vec::new();
    while let Some(row) = table.next(reader.sink) {
        if reader.sink.is_full() {
            return None;
        }
        if known.len() == limits::CHANNELS {
            let message = format!("there are more than {} streams", limits::CHANNELS);
            too_large(message, row.at, reader.sink);
            return None;
        }
        let id = row.cell(0);
        let name = super::identifier(id.value);
        if let Some(first) = known.insert(name.to_owned(), id.at) {
            let message = format!("the stream `{}` is there twice", shorten(name));
            let second = Diagnostic::error(codes::DUPLICATE, message, id.at, "the second");
            reader.sink.push(second.help("renumber one of them").related(first, "the first"));
        }
        let name = names.unique_of(&self::name(name), "_", limits::CHANNEL_NAME_OCTETS);
        channels.extend(reader.channel(name, &row));
    }
    Some(channels)
}

/// The name of a channel: a C identifier.
fn name(id: &str) -> String {
    let name = plain(id).replace('-', "_");
    match name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        true => format!("s{name}"),
        false => name,
    }
}

/// Reads the cells of a stream.
struct Reader<'a, 'b> {
    shape: &'a Shape,
    size: SizeMeaning,
    notes: &'b mut Notes,
    sink: &'b mut Sink,
}

impl Reader<'_, '_> {
    fn channel(&mut self, name: String, row: &Row<'_, 7>) -> Option<Channel> {
        let (id, src, dst) = (row.cell(0), row.cell(1), row.cell(2));
        let what = format!("stream `{}`", shorten(id.value));
        let talker = match list(src.value).as_deref() {
            Some([one]) => self.host(&what, &src.with(*one)),
            _ => {
                let text = format!("{what}: `src` is `{}`", shorten(src.value));
                self.error(codes::VALUE, text, src.at, "no node", "name one node");
                None
            }
        };
        let listeners = self.listeners(&what, &dst, talker);
        let payload = self.payload(&what, &row.cell(3));
        let most = limits::DURATION.as_ns();
        let period = number(&format!("{what}: `period`"), &row.cell(4), 0, 1..=most, self.sink);
        let fixed_delay_us = self.deadline(&what, row);
        let channel = Channel {
            name,
            talker: talker?,
            listeners: listeners?,
            payload: payload?,
            interval: Span::from_ns(period?),
            fixed_delay_us: fixed_delay_us?,
        };
        let parts = |host: usize| self.shape.nodes[host].part;
        let is_apart = |to: &&usize| parts(**to) != parts(channel.talker);
        if let Some(to) = channel.listeners.iter().find(is_apart) {
            let [from, to] = [channel.talker, *to].map(|at| &self.shape.nodes[at].name);
            let text = format!("{what}: no links lead from {from} to {to}");
            let help = "add the link that joins the two parts of the network";
            self.error(description::UNREACHABLE, text, dst.at, "not reachable", help);
        }
        Some(channel)
    }

    fn error(&mut self, code: Code, text: String, at: Origin, label: &str, help: &str) {
        self.sink.push(Diagnostic::error(code, text, at, label).help(help));
    }

    /// The host that a node is, or has.
    fn host(&mut self, what: &str, id: &At<&str>) -> Option<usize> {
        let Some(node) = self.shape.ids.get(id.value) else {
            let text = format!("{what}: unknown node `{}`", shorten(id.value));
            let known = self.shape.ids.keys().map(String::as_str);
            let help = match did_you_mean(id.value, known.take(SUGGESTED)) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "name a node of the network's file".to_owned(),
            };
            self.error(description::UNKNOWN_NODE, text, id.at, "not found", &help);
            return None;
        };
        let station = &self.shape.nodes[*node];
        if station.host.is_none() {
            let name = shorten(id.value);
            let text = match station.links {
                1 => format!("{what}: node `{name}` is a bridge"),
                links => format!("{what}: node `{name}` has {links} links and is a bridge"),
            };
            let help = "name a host, or use `--add-hosts` to give each bridge one";
            self.error(description::NOT_A_HOST, text, id.at, "no host", help);
        }
        station.host
    }

    fn listeners(
        &mut self,
        what: &str,
        dst: &At<&str>,
        talker: Option<usize>,
    ) -> Option<Vec<usize>> {
        let Some(ids) = list(dst.value).filter(|ids| ids.len() <= limits::LIST) else {
            let text = format!("{what}: `dst` is `{}`", shorten(dst.value));
            let help = format!("name 1 to {} nodes, as in \"[4, 7]\"", limits::LIST);
            self.error(codes::VALUE, text, dst.at, "no list of nodes", &help);
            return None;
        };
        // A line may have thousands of wrong nodes: each is looked for among all names.
        let mut hosts = Vec::with_capacity(ids.len());
        for id in &ids {
            if self.sink.is_full() {
                return None;
            }
            hosts.push(self.host(what, &dst.with(*id)));
        }
        let hosts: Vec<usize> = hosts.into_iter().collect::<Option<_>>()?;
        let mut seen = BTreeSet::new();
        for (host, id) in hosts.iter().zip(&ids) {
            let id = shorten(id);
            if Some(*host) == talker {
                let text = format!("{what}: node `{id}` is source and destination");
                let (code, help) = (description::TALKER_LISTENS, "remove it from `dst`");
                self.error(code, text, dst.at, "the source", help);
            } else if !seen.insert(*host) {
                let text = format!("{what}: node `{id}` is in `dst` twice");
                let (code, help) = (description::DUPLICATE_LISTENER, "name it once");
                self.error(code, text, dst.at, "twice", help);
            }
        }
        Some(hosts)
    }

    fn payload(&mut self, what: &str, size: &At<&str>) -> Option<i64> {
        let most = i64::from(u32::MAX);
        let octets = number(&format!("{what}: `size`"), size, 0, 1..=most, self.sink)?;
        let beside = self.size.beside();
        let payload = (octets - beside).max(1);
        let longest = i64::from(frame::MAX_CHANNEL_PAYLOAD.get());
        if payload > longest {
            let text = format!("{what}: `size` {octets} does not fit in one frame");
            let help = format!("use at most {}, or several streams", longest + beside);
            self.error(description::PAYLOAD_SIZE, text, size.at, "too long", &help);
            return None;
        }
        if self.size.of(payload) > octets {
            self.notes.add(Note::Stretched, size.at);
        }
        Some(payload)
    }

    /// The deadline as a fixed delay, and what is lost of the limit of the jitter.
    fn deadline(&mut self, what: &str, row: &Row<'_, 7>) -> Option<i64> {
        let [deadline, jitter] = [row.cell(5), row.cell(6)];
        let range = US..=limits::DELAY.as_ns();
        let ns = number(&format!("{what}: `deadline`"), &deadline, 0, range, self.sink);
        if !jitter.value.is_empty() {
            let most = i64::MAX;
            let limit = number(&format!("{what}: `jitter`"), &jitter, 0, 0..=most, self.sink)?;
            // A latency between zero and the deadline varies by no more than that.
            if ns.is_some_and(|ns| limit < ns) {
                self.notes.add(Note::Jitter, jitter.at);
            }
        }
        let ns = ns?;
        if ns % US != 0 {
            self.notes.add(Note::Deadline, deadline.at);
        }
        Some(ns / US)
    }
}
