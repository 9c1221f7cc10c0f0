//! Modelled streams.

use super::channels::{Channels, VLAN_DEFAULT, ends};
use super::fields::{Fields, Key, NS, US};
use super::names::{Alphabet, Names, check_name};
use super::nodes::Nodes;
use super::parse::Entry;
use super::paths::{PathKeys, Topology};
use super::trace::Traces;
use super::{At, Sink, codes, limits, paths, raw, source};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::port::{Policing, TokenBucket};
use onbeat_model::stream::Stream;
use onbeat_model::system::{Port, StreamIndex};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};

/// The nodes and ports that streams cross, and the channels beside them.
pub(super) struct Infrastructure<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) ports: &'a [Port],
    pub(super) channels: &'a Channels,
}

/// All streams without errors, and the names of all.
pub(super) struct Streams {
    pub(super) list: Vec<Stream>,
    pub(super) names: Names<StreamIndex>,
}

/// Checks all streams.
pub(super) fn check(
    entries: &[Entry<raw::Stream>],
    network: &Infrastructure<'_>,
    traces: &mut Traces<'_>,
    sink: &mut Sink,
) -> Streams {
    let mut streams = Streams { list: Vec::new(), names: Names::new("stream") };
    for (index, entry) in (0..).map(StreamIndex).zip(entries) {
        let mut fields = Fields::new(entry, "stream", &entry.raw.name, sink);
        let name = name(&mut fields, network, &mut streams.names, index);
        streams.list.extend(stream(&mut fields, name, network, traces));
    }
    streams
}

/// Streams and channels share their names: figures of both stand in one table.
fn name(
    fields: &mut Fields<'_, raw::Stream>,
    network: &Infrastructure<'_>,
    names: &mut Names<StreamIndex>,
    index: StreamIndex,
) -> String {
    let Some(name) = fields.need("name", &fields.entry.raw.name) else {
        names.incomplete();
        return String::new();
    };
    check_name(&name, "stream", Alphabet::Plain, limits::NAME_OCTETS, fields.sink);
    names.add(&name, index, fields.sink);
    if let Some((_, first)) = network.channels.names.get(&name.value) {
        let message = format!("a channel and a stream share the name `{}`", name.value);
        let taken = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the stream")
            .help("rename one of them")
            .related(first, "the channel");
        fields.sink.push(taken);
    }
    name.value
}

fn stream(
    fields: &mut Fields<'_, raw::Stream>,
    name: String,
    network: &Infrastructure<'_>,
    traces: &mut Traces<'_>,
) -> Option<Stream> {
    let raw = &fields.entry.raw;
    let (talker, listeners) = ends(fields, &raw.talker, &raw.listeners, network.nodes, false);
    let class = fields.need("traffic_class", &raw.traffic_class);
    let class = fields.int(codes::OUT_OF_RANGE, ("traffic_class", &class), 0..=7);
    let vlan = fields.int(codes::OUT_OF_RANGE, ("vlan", &raw.vlan), 1..=4_094);
    let pcp = fields.int(codes::OUT_OF_RANGE, ("pcp", &raw.pcp), 0..=7);
    let source = source::check(fields, traces);
    let phase = ("phase_ns", &raw.phase_ns);
    let phase = fields.time(codes::OUT_OF_RANGE, phase, NS, Span::ZERO..=limits::DURATION);
    let longest = source.as_ref().map(|(frame, _)| frame[1]);
    let regulator = raw.regulator.as_ref().and_then(|r| regulator(fields, r, longest));
    let policing = raw.policing.as_ref().map(|p| policing(fields, p, longest));
    let keys =
        PathKeys { paths: &raw.paths, disjoint_paths: &raw.disjoint_paths, history: &raw.history };
    let topology = Topology { nodes: network.nodes, ports: network.ports };
    let paths = paths::check(fields, &keys, topology, talker, listeners.as_deref());
    let deadline = ("deadline_us", &raw.deadline_us);
    let deadline = fields.time(codes::DURATION, deadline, US, Span::from_us(1)..=limits::DURATION);
    let (frame, source) = source?;
    let class = class? as u8;
    Some(Stream {
        name,
        talker: talker?,
        listeners: listeners?,
        traffic_class: class,
        vlan: vlan.unwrap_or(VLAN_DEFAULT) as u16,
        pcp: pcp.map_or(default_pcp(class), |pcp| pcp as u8),
        frame,
        source,
        phase: phase.unwrap_or_default(),
        regulator,
        policing,
        paths,
        deadline,
        origin: raw.name.as_ref().map_or(fields.entry.at, |n| n.at),
    })
}

/// The priority that a bridge with eight queues puts into the class (802.1Q-2022 Table 8-5).
const fn default_pcp(traffic_class: u8) -> u8 {
    match traffic_class {
        0 => 1,
        1 => 0,
        class => class,
    }
}

fn regulator(
    fields: &mut Fields<'_, raw::Stream>,
    written: &At<raw::Bucket>,
    longest: Option<Octets>,
) -> Option<TokenBucket> {
    let raw::Bucket { rate_mbps, rate_bps, burst_octets } = &written.value;
    let keys = [("rate_mbps", rate_mbps), ("rate_bps", rate_bps)];
    bucket(fields, written.at, keys, burst_octets, longest)
}

/// A token bucket; what it misses is reported at `at`.
fn bucket(
    fields: &mut Fields<'_, raw::Stream>,
    at: Origin,
    [mbps, bps]: [Key<'_>; 2],
    burst: &Option<At<i64>>,
    longest: Option<Octets>,
) -> Option<TokenBucket> {
    if burst.is_none() || (mbps.1.is_none() && bps.1.is_none()) {
        let help = "write { rate_mbps = 10, burst_octets = 1542 }";
        let text = "a token bucket needs a rate and `burst_octets`";
        fields.error(codes::MISSING_KEY, text, at, "this bucket", help);
        return None;
    }
    let rate = fields.bit_rate(mbps, bps);
    let range = 1..=limits::BUCKET_OCTETS;
    let octets = fields.int(codes::OUT_OF_RANGE, ("burst_octets", burst), range)? as u32;
    let least = longest.map(frame::on_wire);
    if let Some(least) = least.filter(|least| octets < least.get()) {
        let text = format!("a bucket of {octets} octets for frames of up to {}", least.get());
        let help = "enlarge the bucket: a frame counts with preamble and gap, 20 octets more";
        fields.error(codes::BUCKET, &text, at, "too small", help);
    }
    Some(TokenBucket { rate: rate?, burst: Octets::new(octets) })
}

fn policing(
    fields: &mut Fields<'_, raw::Stream>,
    written: &At<raw::Policing>,
    longest: Option<Octets>,
) -> Policing {
    let raw::Policing { rate_mbps, rate_bps, burst_octets, frame_octets_max, block } =
        &written.value;
    let metered = [rate_mbps, rate_bps, burst_octets].iter().any(|key| key.is_some());
    let keys = [("rate_mbps", rate_mbps), ("rate_bps", rate_bps)];
    let meter = metered.then(|| bucket(fields, written.at, keys, burst_octets, longest)).flatten();
    if !metered && frame_octets_max.is_none() {
        let help = "write { rate_mbps = 10, burst_octets = 1542 } or { frame_octets_max = 128 }";
        let text = "policing needs a token bucket or `frame_octets_max`";
        fields.error(codes::MISSING_KEY, text, written.at, "drops nothing", help);
    }
    let range = i64::from(frame::MIN_TAGGED.get())..=i64::from(frame::MAX_TAGGED.get());
    let most = fields.int(codes::PAYLOAD_SIZE, ("frame_octets_max", frame_octets_max), range);
    Policing {
        meter,
        max_frame: most.map(|octets| Octets::new(octets as u32)),
        block: block.as_ref().is_some_and(|b| b.value),
    }
}
