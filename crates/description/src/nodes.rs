//! Hosts and bridges.

use super::devices;
use super::fields::{Fields, MS, NS};
use super::names::{Alphabet, Names, check_name};
use super::parse::{Entry, Tables};
use super::{At, Sink, codes, limits, raw};
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::device::Device;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::system::{Bridge, Delay, Host, Node, NodeId, NodeKind, QueueLimits};
use onbeat_model::time::{ClockError, Span};
use onbeat_model::units::{MacAddress, Octets};
use std::collections::BTreeMap;

const QUEUE_FRAMES_DEFAULT: i64 = 1_000;
const HOST_QUEUE_OCTETS_DEFAULT: i64 = 16 << 20;
const BRIDGE_QUEUE_OCTETS_DEFAULT: i64 = 512 << 10;

/// All nodes, hosts first. An entry with errors has its node too, so that ids stay what they are.
pub(super) struct Nodes {
    pub(super) list: Vec<Node>,
    pub(super) names: Names<NodeId>,
    pub(super) devices: BTreeMap<NodeId, Device>,
    pub(super) addresses: BTreeMap<MacAddress, (NodeId, Origin)>,
    /// Which nodes are joined by links: equal numbers. Filled in by the topology's check.
    pub(super) component: Vec<usize>,
    /// Whether every link could be read, so that a missing path really is missing.
    pub(super) links_complete: bool,
}

impl Nodes {
    /// The host of that name, or a diagnostic.
    pub(super) fn host(&self, name: &At<String>, what: &str, sink: &mut Sink) -> Option<NodeId> {
        let id = self.names.find(codes::UNKNOWN_NODE, name, sink)?;
        if matches!(self.list[id.index()].kind, NodeKind::Host(_)) {
            return Some(id);
        }
        let message = format!("{what}: `{}` is a bridge", name.value);
        let bridge = self.list[id.index()].origin;
        let wrong = Diagnostic::error(codes::NOT_A_HOST, message, name.at, "must be a host")
            .help("name a host: only hosts run programs, talk and listen")
            .related(bridge, "the bridge");
        sink.push(wrong);
        None
    }

    /// What the node is that is added next.
    fn set_device(&mut self, device: Option<Device>) {
        let next = NodeId(self.list.len() as u32);
        self.devices.extend(device.map(|device| (next, device)));
    }

    /// Reports that no path leads from one host to another, unless links are missing anyway.
    pub(super) fn need_path(
        &self,
        what: &str,
        from: NodeId,
        to: NodeId,
        at: Origin,
        sink: &mut Sink,
    ) {
        let linked = |id: NodeId| !self.list[id.index()].ports.is_empty();
        let joined = self.component[from.index()] == self.component[to.index()];
        if joined || !self.links_complete || !linked(from) || !linked(to) {
            return;
        }
        let name = |id: NodeId| &self.list[id.index()].name;
        let message = format!("{what}: no path from `{}` to `{}`", name(from), name(to));
        let unreachable = Diagnostic::error(codes::UNREACHABLE, message, at, "not reachable")
            .help("add the [[link]] that joins the two parts of the network");
        sink.push(unreachable);
    }
}

/// Checks all hosts and bridges.
pub(super) fn check(tables: &Tables, sink: &mut Sink) -> Nodes {
    let mut nodes = Nodes {
        list: Vec::new(),
        names: Names::new("node"),
        devices: BTreeMap::new(),
        addresses: BTreeMap::new(),
        component: Vec::new(),
        links_complete: true,
    };
    let devices = devices::check(&tables.devices, sink);
    for entry in &tables.hosts {
        let host = host(entry, &mut nodes, sink);
        nodes.set_device(devices.find(&entry.raw.device, sink));
        add(&mut nodes, host, &entry.raw.name, sink);
    }
    for entry in &tables.bridges {
        let bridge = bridge(entry, sink);
        nodes.set_device(devices.find(&entry.raw.device, sink));
        add(&mut nodes, bridge, &entry.raw.name, sink);
    }
    nodes
}

fn add(nodes: &mut Nodes, node: Node, name: &Option<At<String>>, sink: &mut Sink) {
    let id = NodeId(nodes.list.len() as u32);
    let kind = if matches!(node.kind, NodeKind::Host(_)) { "host" } else { "bridge" };
    match name {
        Some(name) => {
            check_name(name, kind, Alphabet::Plain, limits::NAME_OCTETS, sink);
            nodes.names.add(name, id, sink);
        }
        None => nodes.names.incomplete(),
    }
    nodes.component.push(nodes.list.len());
    nodes.list.push(node);
}

fn host(entry: &Entry<raw::Host>, nodes: &mut Nodes, sink: &mut Sink) -> Node {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "host", &raw.name, sink);
    let name = fields.need("name", &raw.name);
    let frames = ("queue_frames", &raw.queue_frames);
    let octets = ("queue_octets", &raw.queue_octets);
    let queue = queue(&mut fields, frames, octets, HOST_QUEUE_OCTETS_DEFAULT);
    let cores = ("cores", &raw.cores);
    let cores = fields.int(codes::OUT_OF_RANGE, cores, 1..=limits::CORE + 1);
    let kind = NodeKind::Host(Host {
        mac: address(&mut fields, nodes),
        stack_tx: delay(&mut fields, &raw.stack_tx_ns),
        stack_rx: delay(&mut fields, &raw.stack_rx_ns),
        wakeup: delay(&mut fields, &raw.wakeup_ns),
        cores: cores.map(|cores| cores as u16),
    });
    let clock = clock(&mut fields, &raw.clock);
    let origin = name.as_ref().map_or(entry.at, |n| n.at);
    let name = name.map_or_else(String::new, |n| n.value);
    Node { name, kind, clock, queue, ports: Vec::new(), origin }
}

fn bridge(entry: &Entry<raw::Bridge>, sink: &mut Sink) -> Node {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "bridge", &raw.name, sink);
    let name = fields.need("name", &raw.name);
    let frames = ("queue_frames", &raw.queue_frames);
    let octets = ("queue_octets", &raw.queue_octets);
    let queue = queue(&mut fields, frames, octets, BRIDGE_QUEUE_OCTETS_DEFAULT);
    let forwarding = ("forwarding_ns", &raw.forwarding_ns);
    let range = Span::ZERO..=limits::DELAY;
    let forwarding = fields.time(codes::OUT_OF_RANGE, forwarding, NS, range);
    let shared = ("shared_buffer_octets", &raw.shared_buffer_octets);
    let range = limits::QUEUE_OCTETS_LEAST..=limits::QUEUE_OCTETS;
    let shared = fields.int(codes::OUT_OF_RANGE, shared, range);
    let kind = NodeKind::Bridge(Bridge {
        forwarding: forwarding.unwrap_or_default(),
        cut_through: raw.cut_through.as_ref().is_some_and(|c| c.value),
        learning: raw.learning.as_ref().is_some_and(|l| l.value),
        shared_buffer: shared.map(|octets| Octets::new(octets as u32)),
        dedicated_path: raw
            .dedicated_path
            .as_ref()
            .map(|it| dedicated_path(&mut fields, &it.value)),
    });
    let clock = clock(&mut fields, &raw.clock);
    let origin = name.as_ref().map_or(entry.at, |n| n.at);
    let name = name.map_or_else(String::new, |n| n.value);
    Node { name, kind, clock, queue, ports: Vec::new(), origin }
}

fn dedicated_path(fields: &mut Fields<'_, raw::Bridge>, raw: &raw::DedicatedPath) -> DedicatedPath {
    let range = Span::ZERO..=limits::DEDICATED_WAIT;
    let wait = fields.time(codes::OUT_OF_RANGE, ("wait_ns", &raw.wait_ns), NS, range);
    DedicatedPath {
        on_best_effort: raw.on_best_effort.as_ref().map(|it| it.value).unwrap_or_default(),
        wait: wait.unwrap_or_default(),
    }
}

/// The host's own address: the one that it asks for, or 02:00:00:00 (locally administered,
/// IEEE 802 8.2) and its number from 1.
fn address(fields: &mut Fields<'_, raw::Host>, nodes: &mut Nodes) -> MacAddress {
    let number = nodes.list.len() + 1;
    let [.., high, low] = number.to_be_bytes();
    let mut address = MacAddress([2, 0, 0, 0, high, low]);
    let mut at = fields.entry.at;
    if let Some(text) = &fields.entry.raw.mac {
        at = text.at;
        match text.value.parse::<MacAddress>() {
            Ok(given) if given.is_multicast() || given == MacAddress::default() => {
                let help = "use an address with an even first octet that is not all zero";
                let text = format!("`mac` is {given}, which is not a host's address");
                fields.error(codes::BAD_ADDRESS, &text, at, "this address", help);
                return address;
            }
            Ok(given) => address = given,
            Err(error) => {
                let help = "write it as in mac = \"02:00:00:00:00:01\"";
                fields.error(codes::BAD_ADDRESS, &error.to_string(), at, "this text", help);
                return address;
            }
        }
    }
    let id = NodeId(nodes.list.len() as u32);
    if let Some((_, first)) = nodes.addresses.get(&address) {
        let message = format!("{}: duplicate address {address}", fields.what);
        let taken = Diagnostic::error(codes::DUPLICATE_ADDRESS, message, at, "the second")
            .help("give one of the two hosts another `mac`")
            .related(*first, "the first");
        fields.sink.push(taken);
    } else {
        nodes.addresses.insert(address, (id, at));
    }
    address
}

fn queue<R>(
    fields: &mut Fields<'_, R>,
    frames: super::fields::Key<'_>,
    octets: super::fields::Key<'_>,
    octets_default: i64,
) -> QueueLimits {
    let code = codes::OUT_OF_RANGE;
    let frames = fields.int(code, frames, 1..=limits::QUEUE_FRAMES);
    let octets = fields.int(code, octets, limits::QUEUE_OCTETS_LEAST..=limits::QUEUE_OCTETS);
    QueueLimits {
        frames: frames.unwrap_or(QUEUE_FRAMES_DEFAULT) as u32,
        octets: Octets::new(octets.unwrap_or(octets_default) as u32),
    }
}

fn clock<R>(fields: &mut Fields<'_, R>, raw: &Option<raw::Clock>) -> ClockError {
    let Some(raw) = raw else { return ClockError::default() };
    let most = limits::CLOCK_OFFSET;
    let offset = ("offset_ns", &raw.offset_ns);
    let offset = fields.time(codes::OUT_OF_RANGE, offset, NS, -most..=most);
    let most = i64::from(ClockError::MAX_DRIFT_PPB);
    let drift = fields.int(codes::DRIFT, ("drift_ppb", &raw.drift_ppb), -most..=most);
    let (wander, wander_period) = wander(fields, raw);
    let clock = ClockError {
        offset: offset.unwrap_or_default(),
        drift_ppb: drift.unwrap_or(0) as i32,
        wander,
        wander_period,
        ..ClockError::default()
    };
    if let Some(written) = raw.wander_ns
        && clock.wander > Span::ZERO
        && i64::from(clock.drift_ppb).abs().saturating_add(clock.wander_ppb()) >= most
    {
        let text = format!(
            "it wanders by up to {} ppb and drifts by {} ppb",
            clock.wander_ppb(),
            clock.drift_ppb
        );
        let help = format!(
            "keep their sum below {most} ppb; the wander is four times `wander_ns` per period"
        );
        fields.error(codes::DRIFT, &text, written.at, "too much", &help);
    }
    clock
}

/// Amplitude and period of a clock's wander: both are given, or none.
fn wander<R>(fields: &mut Fields<'_, R>, raw: &raw::Clock) -> (Span, Span) {
    let keys = (("wander_ns", &raw.wander_ns), ("wander_period_ms", &raw.wander_period_ms));
    let code = codes::OUT_OF_RANGE;
    let wander = fields.time(code, keys.0, NS, Span::ZERO..=limits::WANDER);
    let period = fields.time(code, keys.1, MS, Span::from_ms(1)..=limits::DURATION);
    let alone = match (raw.wander_ns, raw.wander_period_ms) {
        (Some(alone), None) => Some((alone, keys.1.0)),
        (None, Some(alone)) => Some((alone, keys.0.0)),
        _ => None,
    };
    if let Some((alone, other)) = alone {
        let help = "write both, as in { wander_ns = 200, wander_period_ms = 60000 }";
        let text = format!("`{other}` is missing");
        fields.error(codes::MISSING_KEY, &text, alone.at, "is not enough", help);
    }
    wander.zip(period).unwrap_or_default()
}

pub(super) fn delay<R>(fields: &mut Fields<'_, R>, raw: &Option<At<raw::Delay>>) -> Delay {
    let Some(At { value: raw, at }) = raw else { return Delay::Zero };
    if let Some(histogram) = &raw.histogram {
        if let Some(other) = raw.min.as_ref().or(raw.max.as_ref()) {
            let help = "keep `histogram`, or `min` and `max`";
            let text = "both `histogram` and `min` or `max` are given";
            fields.error(codes::BOTH_KEYS, text, other.at, "this key", help);
        }
        return self::histogram(fields, histogram);
    }
    let (Some(min), Some(max)) = (&raw.min, &raw.max) else {
        let help = "write { min = 10000, max = 20000 } or { histogram = [[10000, 1]] }";
        let text = "a delay needs `min` and `max`, or `histogram`";
        fields.error(codes::MISSING_KEY, text, *at, "this delay", help);
        return Delay::Zero;
    };
    if min.value > max.value {
        let text = format!("`min` {} is above `max` {}", min.value, max.value);
        fields.error(codes::MIN_ABOVE_MAX, &text, *at, "this delay", "swap them");
    }
    let range = Span::ZERO..=limits::DELAY;
    let min = fields.time(codes::OUT_OF_RANGE, ("min", &raw.min), NS, range.clone());
    let max = fields.time(codes::OUT_OF_RANGE, ("max", &raw.max), NS, range);
    match (min, max) {
        (Some(min), Some(max)) => Delay::Interval { min, max },
        _ => Delay::Zero,
    }
}

fn histogram<R>(fields: &mut Fields<'_, R>, pairs: &At<raw::Histogram>) -> Delay {
    let help = "write pairs of nanoseconds and a weight, as in [[900, 80], [1500, 20]]";
    if pairs.value.is_empty() || pairs.value.len() > limits::LIST {
        let text = format!("a histogram has 1 to {} values", limits::LIST);
        fields.error(codes::HISTOGRAM, &text, pairs.at, "this histogram", help);
        return Delay::Zero;
    }
    let mut values = Vec::with_capacity(pairs.value.len());
    for At { value: (ns, weight), at } in &pairs.value {
        if !(1..=limits::WEIGHT).contains(weight) {
            let text = format!("the weight {weight} is outside 1 to {}", limits::WEIGHT);
            fields.error(codes::HISTOGRAM, &text, *at, "this value", help);
        }
        let ns = Some(At { value: *ns, at: *at });
        let range = Span::ZERO..=limits::DELAY;
        let value = fields.time(codes::OUT_OF_RANGE, ("histogram", &ns), NS, range);
        values.push((value.unwrap_or_default(), *weight as u32));
    }
    values.sort_unstable();
    Delay::Histogram(values)
}
