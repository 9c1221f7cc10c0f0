//! The description of a federation's channels: one channel for each connected pair of ports whose
//! federates execute on different stations.

use super::rates::{Doubt, Rate};
use super::sidecar::Settings;
use super::types::Size;
use super::{Details, Loaded, codes};
use crate::raw::ClassName;
use crate::{FORMAT, Sink, has_error, schema_of};
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::federation::{
    Connection, Coordination, FederateId, Federation, MaxWait, TagDelay,
};
use onbeat_model::limits;
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, frame};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The header of a tagged message: type 1, port 2, federate 2, length 4, time 8, microstep 4.
pub const HEADER_OCTETS: u32 = 21;
/// The most octets of a value that one message carries.
pub(super) const VALUE_MOST: i64 = (frame::MAX_CHANNEL_PAYLOAD.get() - HEADER_OCTETS) as i64;
/// The interval of a channel that carries so few messages that they have no rate.
const SELDOM: Span = Span::from_s(1);
/// How long a description runs if neither model nor sidecar says.
const DURATION: Span = Span::from_s(10);
/// The first of the stream identifiers: a locally administered address and a number.
const STREAMS: u64 = 0x024c_4600_0000_0001;
/// The rate of links where no topology is given.
const LINK_MBPS: u32 = 1_000;

/// A description and what it was made of.
#[derive(Clone, Debug)]
pub struct Description {
    /// The text of `system.toml`. Further tables may follow it.
    pub text: String,
    /// The same for machines.
    pub document: Document,
    /// Per channel, its fixed delay.
    pub(super) delays: Vec<Span>,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
}

/// What `onbeat lf import --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "Onbeat federation of a model in Lingua Franca")]
pub struct Document {
    /// Version of this format.
    pub version: u32,
    /// The described system.
    pub name: String,
    /// The target language, as the model writes it.
    pub target: String,
    /// Who advances tags: `centralized` or `decentralized`.
    pub coordination: String,
    /// The federates; members of banks one by one.
    pub federates: Vec<FederateEntry>,
    /// All reactions in the order in which they execute at one tag, federate by federate.
    pub reactions: Vec<ReactionEntry>,
    /// A channel for each connected pair of ports on different stations.
    pub channels: Vec<ChannelEntry>,
    /// Connected pairs of ports on one station: they need no channel.
    pub local: Vec<Pair>,
}

/// A federate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FederateEntry {
    /// Its name.
    pub name: String,
    /// The host that it executes on.
    pub station: String,
    /// How long it waits for inputs: nanoseconds or `forever`; null if the model does not say.
    pub maxwait: Option<Wait>,
    /// The line of its instantiation.
    pub line: usize,
}

/// A time in nanoseconds, or the word `forever`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Wait {
    /// Nanoseconds.
    Ns(i64),
    /// `forever`.
    Word(String),
}

/// A reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReactionEntry {
    /// Its qualified name.
    pub name: String,
    /// Its shortest execution time in nanoseconds; null if it is not given.
    pub execution_min_ns: Option<i64>,
    /// Its longest execution time in nanoseconds; null if it is not given.
    pub execution_max_ns: Option<i64>,
    /// Its deadline in nanoseconds.
    pub deadline_ns: Option<i64>,
    /// The file that declares it.
    pub file: String,
    /// The line there.
    pub line: usize,
}

/// Two connected ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pair {
    /// The output, qualified: `sensor.out[1]`.
    pub from: String,
    /// The input.
    pub to: String,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelEntry {
    /// Its name in the description.
    pub name: String,
    /// The output, qualified: `sensor.out[1]`.
    pub from: String,
    /// The input.
    pub to: String,
    /// The host that writes.
    pub talker: String,
    /// The host that reads.
    pub listener: String,
    /// The delay of `after` in nanoseconds; 0 is one microstep, null no delay.
    pub after_ns: Option<i64>,
    /// Whether the connection is physical.
    pub physical: bool,
    /// How long the reader waits for this input: nanoseconds or `forever`.
    pub absent_after: Option<Wait>,
    /// The type of the values, as the model writes it.
    #[serde(rename = "type")]
    pub payload: String,
    /// The most octets of a value.
    pub value_octets: u32,
    /// Octets of a message: header and value.
    pub size_octets: u32,
    /// The least mean time between two messages.
    pub interval_ns: i64,
    /// Messages that may come at once.
    pub burst_messages: u32,
    /// Stream class.
    pub class: String,
    /// Fixed delay in microseconds; null is the class's.
    pub fixed_delay_us: Option<i64>,
    /// Whether it is reserved for.
    pub reserve: bool,
    /// Stream identifier.
    pub stream_id: u64,
    /// Group address.
    pub destination: String,
    /// The reactions that write it.
    pub writers: Vec<String>,
    /// The line of the connection.
    pub line: usize,
}

/// The JSON Schema of [`Document`]. Ends with a line feed.
pub fn schema() -> String {
    schema_of::<Document>()
}

impl Details {
    /// What the sidecar says of a connection, the last table first.
    fn settings(&self, at: usize) -> Vec<&Settings> {
        let [from, to] = &self.ports[at];
        let of = |names: &'_ [String; 2]| [names[0].clone(), names[1].clone()];
        let (from, to) = (of(from), of(to));
        let mut found = self
            .sidecar
            .settings([from[0].as_str(), from[1].as_str()], [to[0].as_str(), to[1].as_str()]);
        found.reverse();
        found
    }
}

/// Names connections and adds what their rates, notes and the sidecar say of them.
pub(super) fn fill(federation: &mut Federation, details: &Details) {
    let mut taken = BTreeSet::new();
    for (at, connection) in federation.connections.iter_mut().enumerate() {
        let [from, to] = &details.ports[at];
        connection.name = name(&from[0], &to[0], &mut taken);
        let settings = details.settings(at);
        let note = &details.notes[at];
        let noted = note.size.and_then(|size| u32::try_from(size.value).ok());
        let declared = settings.iter().find_map(|s| s.size).and_then(|n| u32::try_from(n).ok());
        let declared = declared.or(noted);
        connection.octets = match connection.octets {
            Some(known) => Some(declared.map_or(known, |declared| declared.max(known))),
            None => declared,
        };
        let derived = match details.rates.get(at) {
            Some(Rate::Known { interval, .. }) => Some(interval.unwrap_or(SELDOM)),
            Some(Rate::Unknown(_)) | None => None,
        };
        let given = settings.iter().find_map(|s| s.interval).or(note.interval);
        connection.interval = given.or(derived).map(|it| it.min(limits::DURATION));
    }
}

/// A name of a channel: unique, a C identifier of at most 31 octets. Long names end in a number
/// that depends on the whole name only, so that it stays when the model grows.
fn name(from: &str, to: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let full = format!("{from} {to}");
    let parts = [from, to].map(|port| port.replace(']', "").chars().map(plain).collect::<String>());
    let whole = parts.join("_");
    let most = limits::CHANNEL_NAME_OCTETS;
    if whole.len() <= most && taken.insert(whole.clone()) {
        return whole;
    }
    let head: String = whole.chars().take(most - 9).collect();
    let mut hash = full.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    loop {
        let name = format!("{head}_{:08x}", hash >> 32 ^ hash & 0xffff_ffff);
        if taken.insert(name.clone()) {
            return name;
        }
        hash = hash.wrapping_mul(0x0100_0000_01b3).wrapping_add(1);
    }
}

/// What is wrong, and the files that it is in.
#[derive(Clone, Debug)]
pub struct Undescribed {
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files of the model; if the tables taken over have errors, the description behind them.
    pub sources: Vec<SourceFile>,
}

/// The description of a federation's channels.
///
/// `read` fetches a file that the description names, by its path relative to the directory of the
/// model.
///
/// # Errors
/// All that is not known: rates, sizes and stations; and what is wrong with the tables that the
/// sidecar brings.
pub fn describe(
    loaded: &Loaded,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Description, Undescribed> {
    let mut sink = Sink::of(super::DOCUMENT);
    let fail = |diagnostics, sources: &[SourceFile]| {
        Err(Undescribed { diagnostics, sources: sources.to_vec() })
    };
    let Some(federation) = &loaded.federation else {
        return fail(loaded.diagnostics.clone(), &loaded.sources);
    };
    let mut sources = loaded.sources.clone();
    let details = &loaded.details;
    let tables = tables(details, read, &mut sources, &mut sink);
    let stations = stations(federation, &tables, &mut sink);
    let ends = sources.iter().map(|source| {
        let ends = source.text.match_indices('\n').map(|(at, _)| at);
        ends.collect()
    });
    let ends = ends.collect();
    let writer = Writer { federation, details, sources: &sources, ends, stations: &stations };
    let (channels, local) = writer.channels(&mut sink);
    if sink.has_error() {
        return fail(sink.into_sorted(), &sources);
    }
    let document = writer.document(channels, local);
    let text = writer.text(&tables, &document);
    let checked = crate::load("the description", &text, read);
    if has_error(&checked.diagnostics) {
        let before = u16::try_from(sources.len()).unwrap_or(u16::MAX);
        let moved = |mut wrong: Diagnostic| {
            let places = wrong.at.iter_mut().chain(&mut wrong.related);
            places.for_each(|(at, _)| at.file = at.file.saturating_add(before));
            wrong
        };
        sources.extend(checked.sources);
        return fail(checked.diagnostics.into_iter().map(moved).collect(), &sources);
    }
    let system = checked.system.iter().flat_map(|system| &system.channels);
    let delays: BTreeMap<&str, Span> =
        system.map(|channel| (channel.name.as_str(), channel.fixed_delay)).collect();
    let of = |channel: &ChannelEntry| delays.get(channel.name.as_str()).copied();
    let delays = document.channels.iter().map(|channel| of(channel).unwrap_or_default()).collect();
    Ok(Description { text, document, delays, warnings: sink.into_sorted() })
}

/// The tables that the sidecar and its topology bring.
fn tables(
    details: &Details,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Vec<SourceFile>,
    sink: &mut Sink,
) -> toml::Table {
    let mut tables = toml::Table::new();
    if let Some(path) = &details.sidecar.topology {
        match read(&path.value) {
            Ok(text) => {
                let file = u16::try_from(sources.len()).unwrap_or(u16::MAX);
                let mut inner = Sink::default();
                if crate::parse::document(&text, &mut inner).is_some() {
                    tables = super::sidecar::taken_over(&text);
                }
                for mut wrong in inner.into_sorted() {
                    wrong.at.iter_mut().for_each(|(at, _)| at.file = file);
                    sink.push(wrong);
                }
                sources.push(SourceFile { path: path.value.clone(), text });
            }
            Err(reason) => {
                let message = format!("the topology {} cannot be read: {reason}", path.value);
                let wrong = Diagnostic::error(codes::IMPORT, message, path.at, "named here");
                sink.push(wrong.help("give a path relative to the directory of the model"));
            }
        }
    }
    for (key, value) in &details.sidecar.tables {
        match (tables.get_mut(key), value) {
            (Some(toml::Value::Array(known)), toml::Value::Array(more)) => {
                known.extend(more.iter().cloned());
            }
            _ => {
                tables.insert(key.clone(), value.clone());
            }
        }
    }
    tables
}

/// The station of each federate.
fn stations(federation: &Federation, tables: &toml::Table, sink: &mut Sink) -> Vec<String> {
    let hosts = tables.get("host").and_then(toml::Value::as_array);
    let names = hosts.into_iter().flatten().filter_map(|host| host.get("name")?.as_str());
    let names: BTreeSet<&str> = names.collect();
    if names.is_empty() {
        let message = "no topology is given: each station has a link of 1 Gb/s to one bridge";
        let mut assumed = Diagnostic::error(codes::NO_TOPOLOGY, message, Origin::default(), "");
        assumed.at = None;
        let help = "name a topology in the sidecar, or add [[host]], [[bridge]] and [[link]] to it";
        sink.push(assumed.help(help).warning());
    }
    let of = |federate: &onbeat_model::federation::Federate| {
        let own = || federate.name.clone();
        let station = federate.station.clone().unwrap_or_else(own);
        if !names.is_empty() && !names.contains(station.as_str()) {
            let message = match &federate.station {
                Some(station) => {
                    format!("the topology has no host `{station}` for the federate `{}`", own())
                }
                None => format!("the federate `{}` has no station", own()),
            };
            let missing = Diagnostic::error(
                codes::STATION,
                message,
                federate.origin,
                "where does it execute?",
            );
            let help = match crate::did_you_mean(&station, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!(
                    "add [[federate]] with name = \"{}\" and `station` to the sidecar",
                    own()
                ),
            };
            sink.push(missing.help(help));
        }
        station
    };
    federation.federates.iter().map(of).collect()
}

struct Writer<'w> {
    federation: &'w Federation,
    details: &'w Details,
    sources: &'w [SourceFile],
    /// Where the lines of each end.
    ends: Vec<Vec<usize>>,
    /// Per federate.
    stations: &'w [String],
}

impl Writer<'_> {
    fn station(&self, of: FederateId) -> &str {
        &self.stations[of.index()]
    }

    fn line(&self, at: Origin) -> usize {
        let ends = self.ends.get(usize::from(at.file));
        ends.map_or(0, |ends| 1 + ends.partition_point(|end| *end < at.start as usize))
    }

    /// All channels, and the pairs that need none. What is not known is asked for.
    fn channels(&self, sink: &mut Sink) -> (Vec<ChannelEntry>, Vec<Pair>) {
        let (mut channels, mut local) = (Vec::new(), Vec::new());
        let mut asked = BTreeSet::new();
        for (at, connection) in self.federation.connections.iter().enumerate() {
            let [from, to] = self.details.ports[at].each_ref().map(|names| names[0].clone());
            if self.station(connection.from) == self.station(connection.to) {
                local.push(Pair { from, to });
                continue;
            }
            let interval = connection.interval;
            if interval.is_none() {
                self.ask_rate(at, connection, &mut asked, sink);
            }
            let octets = self.octets(at, connection, sink);
            let number = u64::try_from(channels.len()).unwrap_or(u64::MAX);
            let (Some(interval), Some(octets)) = (interval, octets) else { continue };
            channels.push(self.channel(at, connection, interval, octets, number, sink));
        }
        (channels, local)
    }

    fn channel(
        &self,
        at: usize,
        connection: &Connection,
        interval: Span,
        octets: u32,
        number: u64,
        sink: &mut Sink,
    ) -> ChannelEntry {
        let settings = self.details.settings(at);
        let note = &self.details.notes[at];
        let class = match settings.iter().find_map(|s| s.class) {
            Some(ClassName::A) => "A",
            Some(ClassName::B) => "B",
            Some(ClassName::Scheduled) => "scheduled",
            Some(ClassName::Asynchronous) => "asynchronous",
            Some(ClassName::Any) => "any",
            None => match note.class.as_ref().map(|class| class.value.as_str()) {
                None | Some("A") => "A",
                Some("B") => "B",
                Some("scheduled") => "scheduled",
                Some("asynchronous") => "asynchronous",
                Some(other) => {
                    let message = format!("unknown class `{}`", crate::shorten(other));
                    let place = note.class.as_ref().map_or(connection.origin, |class| class.at);
                    let unknown = Diagnostic::error(codes::ATTRIBUTE, message, place, "this word");
                    sink.push(unknown.help("write A, B, scheduled or asynchronous"));
                    "A"
                }
            },
        };
        let derived = match self.details.rates.get(at) {
            Some(Rate::Known { burst, .. }) => *burst,
            Some(Rate::Unknown(_)) | None => 1,
        };
        // A declared interval replaces the derived rate with its burst.
        let declared = settings.iter().any(|s| s.interval.is_some()) || note.interval.is_some();
        let derived = if declared { 1 } else { derived };
        let noted = note.burst.and_then(|burst| u32::try_from(burst.value).ok());
        let burst = settings.iter().find_map(|s| s.burst).or(noted).unwrap_or(derived);
        self.rate_suffices(at, connection, (interval, burst), sink);
        let delay = settings.iter().find_map(|s| s.fixed_delay).or(note.fixed_delay);
        let writers = connection.writers.iter().map(|id| {
            let reaction = &self.federation.reactions[id.index()];
            let federate = &self.federation.federates[reaction.federate.index()].name;
            format!("{federate}.{}", reaction.name)
        });
        let [from, to] = self.details.ports[at].each_ref().map(|names| names[0].clone());
        let [_, .., c, b, a] = number.to_be_bytes();
        ChannelEntry {
            name: connection.name.clone(),
            from,
            to,
            talker: self.station(connection.from).to_owned(),
            listener: self.station(connection.to).to_owned(),
            after_ns: match connection.after {
                TagDelay::None => None,
                delay => Some(delay.time().as_ns()),
            },
            physical: connection.physical,
            absent_after: connection.absent_after.map(wait),
            payload: connection.payload.clone(),
            value_octets: octets,
            size_octets: octets + HEADER_OCTETS,
            interval_ns: interval.as_ns(),
            burst_messages: burst,
            class: class.to_owned(),
            fixed_delay_us: delay.map(|delay| (delay.as_ns() / 1_000).max(1)),
            reserve: settings.iter().find_map(|s| s.reserve).or(note.reserve).unwrap_or(true),
            stream_id: STREAMS + number,
            destination: MacAddress([0x03, 0x4c, 0x46, c, b, a]).to_string(),
            writers: writers.collect(),
            line: self.line(connection.origin),
        }
    }

    /// Warns of a declared rate that is below what the writers may send.
    fn rate_suffices(
        &self,
        at: usize,
        connection: &Connection,
        (interval, burst): (Span, u32),
        sink: &mut Sink,
    ) {
        let Some(Rate::Known { interval: Some(most), burst: at_once }) = self.details.rates.get(at)
        else {
            return;
        };
        if interval <= *most && burst >= *at_once {
            return;
        }
        let rate = |interval: Span, burst: u32| match burst {
            1 => format!("a message each {interval}"),
            burst => format!("a message each {interval} and {burst} at once"),
        };
        let (name, declared, most) =
            (&connection.name, rate(interval, burst), rate(*most, *at_once));
        let message = format!("`{name}` may carry {declared}, its writers may send {most}");
        let slow = Diagnostic::error(codes::SLOW, message, connection.origin, "this connection");
        let help = "what comes too soon waits, and bounds do not count with that: declare more, or \
                    see that the reactions send no more";
        sink.push(slow.help(help).warning());
    }

    /// Asks how often a connection carries messages, by what decides it.
    fn ask_rate(
        &self,
        at: usize,
        connection: &Connection,
        asked: &mut BTreeSet<Doubt>,
        sink: &mut Sink,
    ) {
        let Some(Rate::Unknown(doubts)) = self.details.rates.get(at) else { return };
        let from = &self.details.ports[at][0][0];
        for doubt in doubts {
            // Drafts of one action give the same answer.
            let key = match doubt {
                Doubt::Action(name, _) => Doubt::Action(name.clone(), 0),
                Doubt::Cycle(draft) => Doubt::Cycle(*draft),
            };
            if !asked.insert(key) {
                continue;
            }
            let needed = format!("`{from}` needs it");
            let unknown = match doubt {
                Doubt::Action(name, _) => {
                    let message = format!("how often the action `{name}` happens is unknown");
                    let place = self.details.actions.get(name).copied();
                    let place = place.unwrap_or(connection.origin);
                    Diagnostic::error(codes::NO_RATE, message, place, "how often?").help(format!(
                        "add [[action]] with name = \"{name}\" and `interval_ns` to the sidecar, \
                         or a minimum spacing to the action"
                    ))
                }
                Doubt::Cycle(draft) => {
                    let (name, place) = &self.details.drafts[*draft];
                    let message =
                        format!("how often `{name}` executes is unknown: it causes itself");
                    Diagnostic::error(codes::NO_RATE, message, *place, "how often?").help(format!(
                        "add [[connection]] with from = \"{from}\" and `interval_ns` to the sidecar"
                    ))
                }
            };
            sink.push(unknown.related(connection.origin, needed));
        }
    }

    /// The most octets of a value.
    fn octets(&self, at: usize, connection: &Connection, sink: &mut Sink) -> Option<u32> {
        let from = &self.details.ports[at][0][0];
        let Some(octets) = connection.octets else {
            let why = match self.details.sizes.get(at) {
                Some(Size::Variable) => "its values differ in size",
                _ => "no compiler says",
            };
            let kind = match connection.payload.as_str() {
                "void" => "value".to_owned(),
                kind => format!("`{kind}`"),
            };
            let message = format!("how large a {kind} of `{from}` may be is unknown: {why}");
            let unknown =
                Diagnostic::error(codes::NO_SIZE, message, connection.origin, "how large?");
            sink.push(unknown.help(format!(
                "add [[connection]] with from = \"{from}\" and `size_octets` to the sidecar, or \
                 // @channel(size = …) to the connection"
            )));
            return None;
        };
        if i64::from(octets) > VALUE_MOST {
            let message = format!("a value of `{from}` has {octets} octets");
            let long = Diagnostic::error(codes::TOO_LONG, message, connection.origin, "too large");
            let help = format!("one message carries at most {VALUE_MOST}: send parts");
            sink.push(long.help(help));
            return None;
        }
        Some(octets)
    }

    fn document(&self, channels: Vec<ChannelEntry>, local: Vec<Pair>) -> Document {
        let federation = self.federation;
        let federates = federation.federates.iter().zip(self.stations);
        let federates = federates.map(|(federate, station)| FederateEntry {
            name: federate.name.clone(),
            station: station.clone(),
            maxwait: federate.maxwait.map(wait),
            line: self.line(federate.origin),
        });
        let reactions = federation.reactions.iter().map(|reaction| {
            let federate = &federation.federates[reaction.federate.index()].name;
            let file = self.sources.get(usize::from(reaction.origin.file));
            ReactionEntry {
                name: format!("{federate}.{}", reaction.name),
                execution_min_ns: reaction.execution.map(|time| time.lo.as_ns()),
                execution_max_ns: reaction.execution.and_then(|time| time.hi).map(Span::as_ns),
                deadline_ns: reaction.deadline.map(Span::as_ns),
                file: file.map_or_else(String::new, |file| file.path.clone()),
                line: self.line(reaction.origin),
            }
        });
        let coordination = match federation.coordination {
            Coordination::Centralized => "centralized",
            Coordination::Decentralized => "decentralized",
        };
        Document {
            version: 1,
            name: self.name(),
            target: self.details.target.clone(),
            coordination: coordination.to_owned(),
            federates: federates.collect(),
            reactions: reactions.collect(),
            channels,
            local,
        }
    }

    /// The system's name: the sidecar's or the main reactor's.
    fn name(&self) -> String {
        let own = || self.federation.name.chars().take(limits::NAME_OCTETS).collect();
        self.details.sidecar.name.as_ref().map_or_else(own, |name| name.value.clone())
    }

    /// The text of the description.
    fn text(&self, tables: &toml::Table, document: &Document) -> String {
        let mut text = String::new();
        let name = quoted(&document.name);
        let _ = writeln!(text, "# Made by `onbeat lf import` of a model in Lingua Franca.\n");
        let _ = writeln!(text, "format = {FORMAT}\nname = {name}\n");
        if !tables.contains_key("run") {
            let duration = self.details.timeout.unwrap_or(DURATION);
            let duration = duration.clamp(Span::from_ms(1), limits::DURATION);
            let ms = duration.as_ns().div_euclid(1_000_000);
            let _ = writeln!(text, "[run]\nduration_ms = {ms}\n");
        }
        if tables.contains_key("host") {
            text += &toml::to_string(tables).unwrap_or_default();
        } else {
            text += &toml::to_string(tables).unwrap_or_default();
            self.star(&mut text);
        }
        for channel in &document.channels {
            let _ = writeln!(text, "\n# {} -> {}, line {}", channel.from, channel.to, channel.line);
            let _ = writeln!(text, "[[channel]]\nname = {}", quoted(&channel.name));
            let _ = writeln!(text, "talker = {}", quoted(&channel.talker));
            let _ = writeln!(text, "listeners = [{}]", quoted(&channel.listener));
            let _ = writeln!(text, "destination = {}", quoted(&channel.destination));
            let _ = writeln!(text, "stream_id = {}", channel.stream_id);
            let _ = writeln!(text, "class = {}", quoted(&channel.class));
            let _ = writeln!(text, "size_octets = {}", channel.size_octets);
            let _ = writeln!(text, "interval_ns = {}", channel.interval_ns);
            if channel.burst_messages > 1 {
                let _ = writeln!(text, "burst_messages = {}", channel.burst_messages);
            }
            if let Some(delay) = channel.fixed_delay_us {
                let _ = writeln!(text, "fixed_delay_us = {delay}");
            }
            if !channel.reserve {
                let _ = writeln!(text, "reserve = false");
            }
        }
        text
    }

    /// One bridge, to which each station has a link.
    fn star(&self, text: &mut String) {
        let stations: BTreeMap<&str, ()> =
            self.stations.iter().map(|station| (station.as_str(), ())).collect();
        let mut bridge = "bridge".to_owned();
        while stations.contains_key(bridge.as_str()) {
            bridge.push('_');
        }
        let _ = writeln!(text, "[[bridge]]\nname = {}", quoted(&bridge));
        for station in stations.keys() {
            let (station, bridge) = (quoted(station), quoted(&bridge));
            let _ = writeln!(text, "\n[[host]]\nname = {station}\n");
            let _ = writeln!(text, "[[link]]\nends = [{station}, {bridge}]");
            let _ = writeln!(text, "rate_mbps = {LINK_MBPS}");
        }
    }
}

fn wait(of: MaxWait) -> Wait {
    match of {
        MaxWait::For(span) => Wait::Ns(span.as_ns()),
        MaxWait::Forever => Wait::Word("forever".to_owned()),
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
