//! The sidecar: what a model does not say. TOML whose tables name things of the model.

use super::syntax::Time;
use super::values::{Value, arithmetic};
use super::{codes, parser};
use crate::codes as shared;
use crate::fields::{Fields, NS, US};
use crate::parse::{Entry, document, many, recover};
use crate::raw::ClassName;
use crate::{At, Sink, did_you_mean, raw, shorten};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::graph::Interval;
use onbeat_model::limits;
use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const MONTH_NS: i64 = limits::DURATION.as_ns();
const DELAY_US: i64 = limits::DELAY.as_ns() / 1_000;

/// What a model in Lingua Franca does not say. Names are qualified, as in `controller.pid.gain`;
/// without the indices of banks and multiports a name means all members.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Onbeat sidecar of a model in Lingua Franca")]
#[expect(dead_code, reason = "for schema and key list; tables are read one by one")]
pub(super) struct File {
    /// Version of this format: 1.
    #[schemars(required)]
    #[schemars(range(min = 1, max = 1))]
    format: Option<At<i64>>,
    /// Name of the described system; the main reactor's by default.
    name: Option<At<String>>,
    /// A description whose hosts, bridges, links and other tables are taken over; relative to the
    /// model. Its channels are not.
    topology: Option<At<String>>,
    /// Where federates execute.
    federate: Option<Vec<Federate>>,
    /// What connections need.
    connection: Option<Vec<Connection>>,
    /// Execution times.
    reaction: Option<Vec<Reaction>>,
    /// How often actions happen.
    action: Option<Vec<Action>>,
    /// Values of parameters.
    parameter: Option<Vec<Parameter>>,
    /// As in a description; by default the model's `timeout`, or 10 s.
    run: Option<raw::Run>,
    /// As in a description.
    scenario: Option<Vec<raw::Scenario>>,
    /// As in a description.
    synchronisation: Option<raw::Synchronisation>,
    /// As in a description.
    device: Option<Vec<raw::Device>>,
    /// As in a description. Without hosts here and in `topology`, each federate has a host of its
    /// own at one bridge.
    host: Option<Vec<raw::Host>>,
    /// As in a description.
    bridge: Option<Vec<raw::Bridge>>,
    /// As in a description.
    link: Option<Vec<raw::Link>>,
    /// As in a description.
    port: Option<Vec<raw::Port>>,
    /// As in a description.
    stream: Option<Vec<raw::Stream>>,
    /// As in a description.
    fault: Option<Vec<raw::Fault>>,
    /// As in a description.
    program: Option<Vec<raw::Program>>,
    /// As in a description.
    noise: Option<Vec<raw::Noise>>,
    /// As in a description.
    tcp: Option<Vec<raw::Tcp>>,
}

/// Where a federate executes.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Federate {
    /// A federate, or a bank of them.
    #[schemars(required)]
    name: Option<At<String>>,
    /// The host of the topology; federates of one host exchange no frames.
    #[schemars(required)]
    station: Option<At<String>>,
}

/// What a connection between federates needs.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Connection {
    /// The output, as in `sensor.out` or `sensor.out[1]`.
    #[schemars(required)]
    from: Option<At<String>>,
    /// The input; all that the output is connected to by default.
    to: Option<At<String>>,
    /// Stream class; A by default.
    class: Option<At<ClassName>>,
    /// Fixed delay in microseconds; the class's by default.
    #[schemars(range(min = 1, max = DELAY_US))]
    fixed_delay_us: Option<At<i64>>,
    /// The most octets of a value.
    #[schemars(range(min = 0, max = super::channels::VALUE_MOST))]
    size_octets: Option<At<i64>>,
    /// Least mean time between two messages in nanoseconds. Give this or `rate_hz`.
    #[schemars(range(min = 1, max = MONTH_NS))]
    interval_ns: Option<At<i64>>,
    /// Messages per second at most.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    rate_hz: Option<At<i64>>,
    /// Messages that may come at once.
    #[schemars(range(min = 1, max = limits::BURST))]
    burst_messages: Option<At<i64>>,
    /// Whether it is reserved for; true by default.
    reserve: Option<At<bool>>,
}

/// How long a reaction executes.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reaction {
    /// A reaction by its name or number, as in `sensor.reaction_1`.
    #[schemars(required)]
    name: Option<At<String>>,
    /// The shortest, in nanoseconds; 0 by default.
    #[schemars(range(min = 0, max = MONTH_NS))]
    execution_min_ns: Option<At<i64>>,
    /// The longest, in nanoseconds.
    #[schemars(required)]
    #[schemars(range(min = 0, max = MONTH_NS))]
    execution_max_ns: Option<At<i64>>,
}

/// How often an action happens.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    /// An action, as in `sensor.interrupt`.
    #[schemars(required)]
    name: Option<At<String>>,
    /// Least time between two in nanoseconds.
    #[schemars(required)]
    #[schemars(range(min = 1, max = MONTH_NS))]
    interval_ns: Option<At<i64>>,
}

/// The value of a parameter whose code cannot be computed.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    /// A parameter, as in `sensor.period`; of the federated reactor its name alone.
    #[schemars(required)]
    name: Option<At<String>>,
    /// As the model would write it: `4` or `10 ms`.
    #[schemars(required)]
    value: Option<At<String>>,
}

/// Tables that go into the description as they are.
const TAKEN_OVER: [&str; 13] = [
    "run",
    "scenario",
    "synchronisation",
    "device",
    "host",
    "bridge",
    "link",
    "port",
    "stream",
    "fault",
    "program",
    "noise",
    "tcp",
];

/// What a sidecar says, as far as it is right.
#[derive(Debug, Default)]
pub(super) struct Sidecar {
    pub(super) name: Option<At<String>>,
    pub(super) topology: Option<At<String>>,
    pub(super) stations: BTreeMap<String, At<String>>,
    pub(super) connections: Vec<Settings>,
    pub(super) executions: BTreeMap<String, Interval>,
    pub(super) actions: BTreeMap<String, Span>,
    pub(super) parameters: BTreeMap<String, Value>,
    /// Tables that go into the description as they are.
    pub(super) tables: toml::Table,
    /// Every name that must be the model's, by what it names.
    names: Vec<(Kind, At<String>)>,
}

/// What a connection's table says.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) from: String,
    pub(super) to: Option<At<String>>,
    pub(super) class: Option<ClassName>,
    pub(super) fixed_delay: Option<Span>,
    pub(super) size: Option<i64>,
    pub(super) interval: Option<Span>,
    pub(super) burst: Option<u32>,
    pub(super) reserve: Option<bool>,
}

/// What a name of the sidecar is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Federate,
    /// A port that is connected with one of another federate.
    Output,
    Input,
    Reaction,
    Action,
    Parameter,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Federate => "federate",
            Self::Output => "output that is connected to another federate",
            Self::Input => "input that is connected to another federate",
            Self::Reaction => "reaction",
            Self::Action => "action",
            Self::Parameter => "parameter",
        }
    }
}

/// Reads a sidecar, which is file 0.
pub(super) fn read(text: &str, sink: &mut Sink) -> Sidecar {
    let mut sidecar = Sidecar::default();
    let Some(mut root) = document(text, sink) else { return sidecar };
    sidecar.tables = taken_over(text);
    for key in TAKEN_OVER {
        root.remove(key);
    }
    let federates: Vec<Entry<Federate>> = many(&mut root, "federate", limits::OTHERS, sink);
    let connections: Vec<Entry<Connection>> = many(&mut root, "connection", limits::CHANNELS, sink);
    let reactions: Vec<Entry<Reaction>> = many(&mut root, "reaction", limits::CHANNELS, sink);
    let actions: Vec<Entry<Action>> = many(&mut root, "action", limits::CHANNELS, sink);
    let parameters: Vec<Entry<Parameter>> = many(&mut root, "parameter", limits::CHANNELS, sink);
    let head: Entry<File> = recover(root, 0..0, sink);
    Fields::new(&head, "sidecar", &None, sink).need("format", &head.raw.format);
    for entry in &federates {
        let mut fields = Fields::new(entry, "federate", &entry.raw.name, sink);
        let name = fields.need("name", &entry.raw.name);
        let station = fields.need("station", &entry.raw.station);
        if let (Some(name), Some(station)) = (name, station) {
            sidecar.names.push((Kind::Federate, name.clone()));
            sidecar.stations.insert(name.value, station);
        }
    }
    for entry in &connections {
        sidecar.connection(entry, sink);
    }
    for entry in &reactions {
        sidecar.reaction(entry, sink);
    }
    for entry in &actions {
        let mut fields = Fields::new(entry, "action", &entry.raw.name, sink);
        let name = fields.need("name", &entry.raw.name);
        let interval = fields.need("interval_ns", &entry.raw.interval_ns);
        let range = Span::from_ns(1)..=limits::DURATION;
        let interval = fields.time(shared::RATE, ("interval_ns", &interval), NS, range);
        if let (Some(name), Some(interval)) = (name, interval) {
            sidecar.names.push((Kind::Action, name.clone()));
            sidecar.actions.insert(name.value, interval);
        }
    }
    for entry in &parameters {
        sidecar.parameter(entry, sink);
    }
    Sidecar { name: head.raw.name, topology: head.raw.topology, ..sidecar }
}

/// The tables of a file that go into the description as they are.
pub(super) fn taken_over(text: &str) -> toml::Table {
    let mut tables: toml::Table = toml::from_str(text).unwrap_or_default();
    tables.retain(|key, _| TAKEN_OVER.contains(&key));
    tables
}

impl Sidecar {
    fn connection(&mut self, entry: &Entry<Connection>, sink: &mut Sink) {
        let raw = &entry.raw;
        let mut fields = Fields::new(entry, "connection from", &raw.from, sink);
        let from = fields.need("from", &raw.from);
        let delay = ("fixed_delay_us", &raw.fixed_delay_us);
        let range = Span::from_us(1)..=limits::DELAY;
        let fixed_delay = fields.time(shared::OUT_OF_RANGE, delay, US, range);
        let size = ("size_octets", &raw.size_octets);
        let size = fields.int(shared::PAYLOAD_SIZE, size, 0..=super::channels::VALUE_MOST);
        let (ns, hz) = (("interval_ns", &raw.interval_ns), ("rate_hz", &raw.rate_hz));
        let interval = match fields.either(ns, hz) {
            Some(0) => fields.time(shared::RATE, ns, NS, Span::from_ns(1)..=limits::DURATION),
            Some(_) => {
                let hz = fields.int(shared::RATE, hz, 1..=1_000_000_000);
                hz.map(|hz| Span::from_ns(1_000_000_000 / hz))
            }
            None => None,
        };
        let burst = ("burst_messages", &raw.burst_messages);
        let burst = fields.int(shared::OUT_OF_RANGE, burst, 1..=limits::BURST);
        let Some(from) = from else { return };
        self.names.push((Kind::Output, from.clone()));
        self.names.extend(raw.to.clone().map(|to| (Kind::Input, to)));
        self.connections.push(Settings {
            from: from.value,
            to: raw.to.clone(),
            class: raw.class.map(|class| class.value),
            fixed_delay,
            size,
            interval,
            burst: burst.and_then(|burst| u32::try_from(burst).ok()),
            reserve: raw.reserve.map(|reserve| reserve.value),
        });
    }

    fn reaction(&mut self, entry: &Entry<Reaction>, sink: &mut Sink) {
        let raw = &entry.raw;
        let mut fields = Fields::new(entry, "reaction", &raw.name, sink);
        let name = fields.need("name", &raw.name);
        let most = fields.need("execution_max_ns", &raw.execution_max_ns);
        let range = Span::ZERO..=limits::DURATION;
        let least = ("execution_min_ns", &raw.execution_min_ns);
        let lo = fields.time(shared::OUT_OF_RANGE, least, NS, range.clone()).unwrap_or_default();
        let hi = fields.time(shared::OUT_OF_RANGE, ("execution_max_ns", &most), NS, range);
        let (Some(name), Some(hi), Some(most)) = (name, hi, most) else { return };
        if lo > hi {
            let text = format!("`execution_min_ns` {} is above `execution_max_ns`", lo.as_ns());
            fields.error(shared::MIN_ABOVE_MAX, &text, most.at, "this time", "swap them");
            return;
        }
        self.names.push((Kind::Reaction, name.clone()));
        self.executions.insert(name.value, Interval::between(lo, hi));
    }

    fn parameter(&mut self, entry: &Entry<Parameter>, sink: &mut Sink) {
        let raw = &entry.raw;
        let mut fields = Fields::new(entry, "parameter", &raw.name, sink);
        let name = fields.need("name", &raw.name);
        let text = fields.need("value", &raw.value);
        let (Some(name), Some(text)) = (name, text) else { return };
        let value = match parser::time(&text.value) {
            Some(time) => Some(Value::Time(time)),
            None => arithmetic(&text.value, &BTreeMap::new()),
        };
        match value {
            Some(value @ (Value::Integer(_) | Value::Time(Time::Ns(_) | Time::Forever))) => {
                self.names.push((Kind::Parameter, name.clone()));
                self.parameters.insert(name.value, value);
            }
            _ => {
                let message = format!("`{}` is no value of a parameter", shorten(&text.value));
                let wrong = Diagnostic::error(codes::VALUE, message, text.at, "this text");
                sink.push(wrong.help("write an integer, or a time such as \"10 ms\""));
            }
        }
    }

    /// Reports names that the model does not have.
    pub(super) fn check(&self, known: &BTreeMap<Kind, BTreeSet<String>>, sink: &mut Sink) {
        for (kind, name) in &self.names {
            let of_kind = known.get(kind);
            if of_kind.is_some_and(|names| names.contains(&name.value)) {
                continue;
            }
            let message = format!("the model has no {} `{}`", kind.word(), shorten(&name.value));
            let names = of_kind.into_iter().flatten().map(String::as_str);
            let help = match did_you_mean(&name.value, names) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "`onbeat lf import --json` lists all names".to_owned(),
            };
            let unknown = Diagnostic::error(codes::SIDECAR, message, name.at, "not found");
            sink.push(unknown.help(help));
        }
    }

    /// Reports pairs of ports that are not connected. `pairs` has the names of both ends of each
    /// connection.
    pub(super) fn check_pairs(&self, pairs: &[[[String; 2]; 2]], sink: &mut Sink) {
        for Settings { from, to, .. } in &self.connections {
            let Some(to) = to else { continue };
            let fits = |[a, b]: &[[String; 2]; 2]| a.contains(from) && b.contains(&to.value);
            if pairs.iter().any(fits) {
                continue;
            }
            let message =
                format!("`{}` is not connected to `{}`", shorten(from), shorten(&to.value));
            let unknown = Diagnostic::error(codes::SIDECAR, message, to.at, "not its input");
            sink.push(unknown.help("name an input that the output leads to, or leave out `to`"));
        }
    }

    /// The station of a federate, by its name or that of its bank.
    pub(super) fn station(&self, name: &str, bank: &str) -> Option<&At<String>> {
        self.stations.get(name).or(self.stations.get(bank))
    }

    /// What the tables say of a connection; a later one overrides an earlier one.
    pub(super) fn settings(&self, from: [&str; 2], to: [&str; 2]) -> Vec<&Settings> {
        let fits = |settings: &&Settings| {
            from.contains(&settings.from.as_str())
                && settings.to.as_ref().is_none_or(|name| to.contains(&name.value.as_str()))
        };
        self.connections.iter().filter(fits).collect()
    }
}
