//! Channels: the manifest's attributes joined with the description's.

use super::fields::{Fields, NS, US};
use super::names::{Alphabet, Names, check_name};
use super::nodes::Nodes;
use super::parse::Entry;
use super::paths::{PathKeys, Topology};
use super::types::{self, Types};
use super::{At, Manifest, Sink, codes, limits, paths, raw};
use crate::manifest::Rate;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use onbeat_model::fragment::MESSAGE_MAX;
use onbeat_model::integrity::Integrity;
use onbeat_model::system::{Channel, ChannelId, Class, NodeId};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId, frame};
use std::collections::{BTreeMap, BTreeSet};

/// 802.1Q's default for stream reservation (802.1Q Table 35-3, SR_PVID).
pub(super) const VLAN_DEFAULT: i64 = 2;
/// 802.1Q Table 8-1: bridges never forward 01:80:C2:00:00:00 to 0F.
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// All channels. One with errors is there too, so that ids stay what they are.
pub(super) struct Channels {
    pub(super) list: Vec<Channel>,
    pub(super) names: Names<ChannelId>,
    /// Whether talker and listeners are known, one per channel.
    pub(super) ends_known: Vec<bool>,
}

/// What the manifest gives, or the description repeats, or gives alone.
#[derive(Clone, Copy, Default)]
struct Attributes {
    destination: Option<At<MacAddress>>,
    stream_id: Option<At<u64>>,
    /// None of them: the plan chooses.
    class: Option<At<Option<Class>>>,
    size: Option<At<i64>>,
    interval: Option<At<Span>>,
}

/// What must differ between channels, with the first to use it.
#[derive(Default)]
struct Taken {
    streams: BTreeMap<u64, Origin>,
    destinations: BTreeMap<MacAddress, Origin>,
}

/// Checks all channels.
pub(super) fn check(
    entries: &[Entry<raw::Channel>],
    manifest: Option<Manifest>,
    network: Topology<'_>,
    types: &mut Types<'_>,
    sink: &mut Sink,
) -> Channels {
    let names = Names::new("channel");
    let mut channels = Channels { list: Vec::new(), names, ends_known: Vec::new() };
    let by_name = manifest.as_ref().map(|m| by_name(m, sink)).unwrap_or_default();
    let mut taken = Taken::default();
    for entry in entries {
        let id = ChannelId(channels.list.len() as u32);
        let in_manifest = entry.raw.name.as_ref().and_then(|n| by_name.get(n.value.as_str()));
        if let Some(name) = &entry.raw.name {
            let most = limits::CHANNEL_NAME_OCTETS;
            check_name(name, "channel", Alphabet::C, most, sink);
            channels.names.add(name, id, sink);
        } else {
            channels.names.incomplete();
        }
        let mut fields = Fields::new(entry, "channel", &entry.raw.name, sink);
        fields.need("name", &entry.raw.name);
        let mut attributes = attributes(&mut fields, manifest.as_ref(), in_manifest.copied());
        let message_type = message_type(&mut fields, &mut attributes, manifest.as_ref(), types);
        let (mut channel, known) = channel(&mut fields, attributes, network, &mut taken);
        channel.message_type = message_type;
        channels.list.push(channel);
        channels.ends_known.push(known);
    }
    if let Some(manifest) = &manifest {
        report_unused(manifest, &channels, sink);
    }
    channels
}

fn by_name<'a>(
    manifest: &'a Manifest,
    sink: &mut Sink,
) -> BTreeMap<&'a str, &'a crate::manifest::ManifestEntry> {
    let mut map: BTreeMap<&str, &crate::manifest::ManifestEntry> = BTreeMap::new();
    for entry in &manifest.entries {
        let Some(name) = &entry.name else { continue };
        check_name(name, "channel", Alphabet::C, limits::CHANNEL_NAME_OCTETS, sink);
        let first = map.get(name.value.as_str()).and_then(|e| e.name.as_ref());
        if let Some(first) = first {
            let message = format!("duplicate channel name `{}`", name.value);
            let second = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the second")
                .help("rename one of them")
                .related(first.at, "the first");
            sink.push(second);
        } else {
            map.insert(name.value.as_str(), entry);
        }
    }
    map
}

fn report_unused(manifest: &Manifest, channels: &Channels, sink: &mut Sink) {
    for entry in &manifest.entries {
        let Some(name) = &entry.name else { continue };
        if channels.names.get(&name.value).is_none() {
            let path = &manifest.path;
            let message = format!("channel `{}` of {path} has no [[channel]]", name.value);
            let help = format!(
                "add a [[channel]] with name = \"{}\", `talker` and `listeners`",
                name.value
            );
            let unused = Diagnostic::error(codes::MANIFEST_UNUSED, message, name.at, "this entry")
                .help(help)
                .related(manifest.named_at, "the description that reads the manifest");
            sink.push(unused);
        }
    }
}

/// The five attributes, each from one of its two places.
fn attributes(
    fields: &mut Fields<'_, raw::Channel>,
    manifest: Option<&Manifest>,
    entry: Option<&crate::manifest::ManifestEntry>,
) -> Attributes {
    let here = written_here(fields);
    let Some(there) = entry else {
        let unread = manifest.is_some_and(|m| !m.complete);
        if !unread && !missing_from_manifest(fields, manifest) {
            need_all(fields, &here);
        }
        return here;
    };
    let interval = there.rate.and_then(|rate| interval(fields, rate));
    Attributes {
        destination: same(fields, "destination", here.destination, there.destination),
        stream_id: same(fields, "stream_id", here.stream_id, there.stream_id),
        class: same(
            fields,
            "class",
            here.class,
            there.class.map(|class| class.with(Some(class.value))),
        ),
        size: same(fields, "size_octets", here.size, there.size),
        interval: same(fields, "rate", here.interval, interval),
    }
}

/// A channel that gives no attribute at all was meant to be in the manifest.
fn missing_from_manifest(
    fields: &mut Fields<'_, raw::Channel>,
    manifest: Option<&Manifest>,
) -> bool {
    let raw = &fields.entry.raw;
    let none = raw.destination.is_none()
        && raw.stream_id.is_none()
        && raw.class.is_none()
        && raw.size_octets.is_none()
        && raw.rate_hz.is_none()
        && raw.interval_ns.is_none();
    let (true, Some(manifest), Some(name)) = (none, manifest, &raw.name) else { return false };
    let entries = manifest.entries.iter().filter_map(|e| e.name.as_ref());
    let entries = entries.map(|name| name.value.as_str());
    let place = (codes::UNKNOWN_CHANNEL, name.at);
    let help = match fields.sink.did_you_mean(place, &name.value, entries) {
        Some(close) => format!("did you mean `{close}`?"),
        None => "add it there, or give its attributes here".to_owned(),
    };
    let text = format!("not in {}", manifest.path);
    fields.error(codes::UNKNOWN_CHANNEL, &text, name.at, "this channel", &help);
    true
}

fn written_here(fields: &mut Fields<'_, raw::Channel>) -> Attributes {
    let raw = &fields.entry.raw;
    let (hz, ns) = (("rate_hz", &raw.rate_hz), ("interval_ns", &raw.interval_ns));
    let rate = match fields.either(hz, ns) {
        Some(0) => raw.rate_hz.map(|hz| hz.with(Rate::Hz(hz.value))),
        Some(_) => raw.interval_ns.map(|ns| ns.with(Rate::IntervalNs(ns.value))),
        None => None,
    };
    let class = raw.class.map(|class| {
        class.with(match class.value {
            raw::ClassName::A => Some(Class::A),
            raw::ClassName::B => Some(Class::B),
            raw::ClassName::Scheduled => Some(Class::Scheduled),
            raw::ClassName::Asynchronous => Some(Class::Asynchronous),
            raw::ClassName::Any => None,
        })
    });
    let destination = raw.destination.as_ref().and_then(|text| {
        let parsed = text.value.parse::<MacAddress>();
        if let Err(error) = &parsed {
            let help = "as in destination = \"01:00:5e:01:11:42\"";
            let error = format!("`destination`: {error}");
            fields.error(codes::BAD_ADDRESS, &error, text.at, "this text", help);
        }
        parsed.ok().map(|address| text.with(address))
    });
    let interval = rate.and_then(|rate| interval(fields, rate));
    Attributes { destination, stream_id: raw.stream_id, class, size: raw.size_octets, interval }
}

fn interval(fields: &mut Fields<'_, raw::Channel>, rate: At<Rate>) -> Option<At<Span>> {
    let interval = rate.value.interval();
    if interval.is_none() {
        let text = match rate.value {
            Rate::Hz(hz) => format!("a rate of {hz} Hz"),
            Rate::IntervalNs(ns) => format!("an interval of {ns} ns"),
        };
        let help = format!("use an interval of 1 ns to {}", limits::DURATION);
        fields.error(codes::RATE, &text, rate.at, "out of range", &help);
    }
    interval.map(|interval| rate.with(interval))
}

fn need_all(fields: &mut Fields<'_, raw::Channel>, here: &Attributes) {
    let raw = &fields.entry.raw;
    fields.need("destination", &raw.destination);
    fields.need("stream_id", &here.stream_id);
    fields.need("class", &here.class);
    if raw.message_type.is_none() && !fields.entry.is_broken("type") {
        fields.need("size_octets", &here.size);
    }
    fields.need_one(("rate_hz", &raw.rate_hz), ("interval_ns", &raw.interval_ns));
}

/// The manifest's value; it is an error if the description says otherwise.
fn same<T: Copy + PartialEq>(
    fields: &mut Fields<'_, raw::Channel>,
    key: &str,
    here: Option<At<T>>,
    there: Option<At<T>>,
) -> Option<At<T>> {
    if let (Some(here), Some(there)) = (&here, &there)
        && here.value != there.value
    {
        let message = format!("{}: manifest and description differ in {key}", fields.what);
        let code = codes::MANIFEST_CONTRADICTION;
        let differ = Diagnostic::error(code, message, here.at, "this value")
            .help("remove it here: the manifest gives it")
            .related(there.at, "the manifest's");
        fields.sink.push(differ);
    }
    there.or(here)
}

/// The struct that messages are, by the key or by the manifest. It gives their size where nothing
/// else does.
fn message_type(
    fields: &mut Fields<'_, raw::Channel>,
    attributes: &mut Attributes,
    manifest: Option<&Manifest>,
    types: &mut Types<'_>,
) -> Option<String> {
    let raw = &fields.entry.raw;
    let Some(named) = &raw.message_type else {
        let (manifest, size) = (manifest?, attributes.size?.value);
        let (name, octets) = manifest.types.get(&raw.name.as_ref()?.value)?;
        return (i64::from(*octets) == size).then(|| format!("{}:{name}", manifest.path));
    };
    let octets = types.octets(fields, named)?;
    match attributes.size {
        Some(size) => types::compare(fields, named, octets, size),
        None => attributes.size = Some(octets),
    }
    Some(named.value.clone())
}

/// The channel and whether its ends are known. Placeholders stand where an error was reported.
fn channel(
    fields: &mut Fields<'_, raw::Channel>,
    attributes: Attributes,
    network: Topology<'_>,
    taken: &mut Taken,
) -> (Channel, bool) {
    let raw = &fields.entry.raw;
    let (talker, listeners) = ends(fields, &raw.talker, &raw.listeners, network.nodes, true);
    let at_name = raw.name.as_ref().map_or(fields.entry.at, |n| n.at);
    if let Some(stream) = attributes.stream_id {
        let first = taken.streams.insert(stream.value, stream.at);
        let text = format!("duplicate stream identifier {}", stream.value);
        report_taken(fields, codes::DUPLICATE_STREAM, &text, stream.at, first);
        if stream.value == 0 {
            let help = "use a unique number, such as the talker's address and a count";
            let text = "the stream identifier is 0";
            fields.error(codes::BAD_STREAM, text, stream.at, "this number", help);
        }
    }
    if let Some(destination) = attributes.destination {
        let first = taken.destinations.insert(destination.value, destination.at);
        let text = format!("duplicate destination {}", destination.value);
        report_taken(fields, codes::DUPLICATE_DESTINATION, &text, destination.at, first);
        check_destination(fields, destination, (talker, listeners.as_deref()), network.nodes);
    }
    let integrity = raw.integrity.map_or(Integrity::None, |p| p.value);
    let talker_address = talker_address(fields);
    let keys =
        PathKeys { paths: &raw.paths, disjoint_paths: &raw.disjoint_paths, history: &raw.history };
    let paths = paths::check(fields, &keys, network, talker, listeners.as_deref());
    let size = size(fields, &attributes, integrity, paths.is_replicated());
    let class = attributes.class.map_or(Some(Class::A), |c| c.value);
    if class.is_none() {
        need_for_any(fields);
    }
    let (class, class_is_open) = (class.unwrap_or(Class::B), class.is_none());
    let delay = ("fixed_delay_us", &raw.fixed_delay_us);
    let delay = fields.time(codes::OUT_OF_RANGE, delay, US, Span::from_us(1)..=limits::DELAY);
    let burst = ("burst_messages", &raw.burst_messages);
    let burst = fields.int(codes::OUT_OF_RANGE, burst, 1..=limits::BURST);
    let vlan = fields.int(codes::OUT_OF_RANGE, ("vlan", &raw.vlan), 1..=4_094);
    let pcp = fields.int(codes::OUT_OF_RANGE, ("pcp", &raw.pcp), 0..=7);
    let phase = ("phase_ns", &raw.phase_ns);
    let phase = fields.time(codes::OUT_OF_RANGE, phase, NS, Span::ZERO..=limits::DURATION);
    let jitter = ("phase_jitter_ns", &raw.phase_jitter_ns);
    let phase_jitter = fields.time(codes::OUT_OF_RANGE, jitter, NS, Span::ZERO..=limits::DELAY);
    let known = talker.is_some() && listeners.is_some();
    let fixed_delay = delay.unwrap_or(class.fixed_delay());
    let channel = Channel {
        name: raw.name.as_ref().map_or_else(String::new, |n| n.value.clone()),
        destination: attributes.destination.map_or(MacAddress::default(), |d| d.value),
        stream_id: StreamId(attributes.stream_id.map_or(0, |s| s.value)),
        class,
        class_is_open,
        size: Octets::new(size.unwrap_or(1) as u32),
        message_type: None,
        integrity,
        talker_address,
        interval: attributes.interval.map_or(Span::from_ns(1), |i| i.value),
        burst: burst.unwrap_or(1) as u32,
        talker: talker.unwrap_or(NodeId(0)),
        listeners: listeners.unwrap_or_default(),
        paths,
        fixed_delay,
        deadline: deadline(fields, attributes.interval.map(|interval| interval.value)),
        lifespan: lifespan(fields, fixed_delay),
        reserve: raw.reserve.as_ref().is_none_or(|r| r.value),
        vlan: vlan.unwrap_or(VLAN_DEFAULT) as u16,
        pcp: pcp.unwrap_or(i64::from(class.default_pcp())) as u8,
        phase: phase.unwrap_or_default(),
        phase_jitter,
        origin: at_name,
    };
    (channel, known)
}

/// The octets of a message. One that is sent in several frames may come over one path, and at no
/// given time.
fn size(
    fields: &mut Fields<'_, raw::Channel>,
    attributes: &Attributes,
    integrity: Integrity,
    is_replicated: bool,
) -> Option<i64> {
    let most = i64::from(MESSAGE_MAX.get());
    let size = fields.int(codes::PAYLOAD_SIZE, ("size", &attributes.size), 1..=most)?;
    let is_scheduled = attributes.class.is_some_and(|c| c.value == Some(Class::Scheduled));
    let of = match (is_replicated, is_scheduled) {
        (true, _) => "a replicated channel",
        (false, true) => "a channel of class scheduled",
        (false, false) => return Some(size),
    };
    let r_tag = if is_replicated { frame::R_TAG } else { Octets::default() };
    let most = frame::MAX_CHANNEL_PAYLOAD.get() - (integrity.trailer() + r_tag).get();
    if size <= i64::from(most) {
        return Some(size);
    }
    let text = format!("messages of {size} octets do not fit in one frame, and {of} has no other");
    let help = format!("send at most {most} octets, or use class A, B or asynchronous on one path");
    let at = attributes.size.as_ref()?.at;
    fields.error(codes::PAYLOAD_SIZE, &text, at, "this number", &help);
    None
}

/// How long listeners put up with silence. Messages that keep the rate are an interval apart.
fn deadline(fields: &mut Fields<'_, raw::Channel>, interval: Option<Span>) -> Option<Span> {
    let given = &fields.entry.raw.deadline_us;
    let range = Span::from_us(1)..=limits::DURATION;
    let deadline = fields.time(codes::OUT_OF_RANGE, ("deadline_us", given), US, range)?;
    let interval = interval?;
    if deadline >= interval {
        return Some(deadline);
    }
    let text = format!("`deadline_us` is {deadline}, and messages are {interval} apart");
    let help = "give more than the interval, and what messages are delayed by";
    let at = given.as_ref()?.at;
    fields.error(codes::OUT_OF_RANGE, &text, at, "this number", help);
    None
}

/// Until what age listeners get a message. Until capture + D one is in time.
fn lifespan(fields: &mut Fields<'_, raw::Channel>, fixed_delay: Span) -> Option<Span> {
    let given = &fields.entry.raw.lifespan_us;
    let range = Span::from_us(1)..=limits::DURATION;
    let lifespan = fields.time(codes::OUT_OF_RANGE, ("lifespan_us", given), US, range)?;
    if lifespan >= fixed_delay {
        return Some(lifespan);
    }
    let text = format!("`lifespan_us` is {lifespan}, and a message is in time until {fixed_delay}");
    let help = "give at least the fixed delay, or a shorter `fixed_delay_us`";
    let at = given.as_ref()?.at;
    fields.error(codes::OUT_OF_RANGE, &text, at, "this number", help);
    None
}

/// What the choice of a class needs, and what it decides.
fn need_for_any(fields: &mut Fields<'_, raw::Channel>) {
    let raw = &fields.entry.raw;
    fields.need("fixed_delay_us", &raw.fixed_delay_us);
    if let Some(pcp) = &raw.pcp {
        let text = "`pcp` is given, and `class` is \"any\"";
        let help = "remove it: it is the one of the class that the plan chooses";
        fields.error(codes::BOTH_KEYS, text, pcp.at, "this number", help);
    }
}

/// The one station that may talk.
fn talker_address(fields: &mut Fields<'_, raw::Channel>) -> Option<MacAddress> {
    let text = fields.entry.raw.talker_address.as_ref()?;
    let help = "give the address of the talker's interface, as in talker_address = \
                \"02:00:00:00:00:01\"";
    let wrong = match text.value.parse::<MacAddress>() {
        Ok(address) if address.is_multicast() || address == MacAddress::default() => {
            format!("`talker_address` is {address}, which is no station's")
        }
        Ok(address) => return Some(address),
        Err(error) => format!("`talker_address`: {error}"),
    };
    fields.error(codes::BAD_ADDRESS, &wrong, text.at, "this text", help);
    None
}

fn report_taken(
    fields: &mut Fields<'_, raw::Channel>,
    code: Code,
    text: &str,
    at: Origin,
    first: Option<Origin>,
) {
    let Some(first) = first else { return };
    let message = format!("{}: {text}", fields.what);
    let help = "give each channel another one";
    let taken = Diagnostic::error(code, message, at, "the second").help(help);
    fields.sink.push(taken.related(first, "the first"));
}

fn check_destination(
    fields: &mut Fields<'_, raw::Channel>,
    destination: At<MacAddress>,
    (talker, listeners): (Option<NodeId>, Option<&[NodeId]>),
    nodes: &Nodes,
) {
    let At { value: address, at } = destination;
    if address == MacAddress::default() {
        let text = format!("no host has the address {address}");
        let help = "use a group address (odd first octet) or the `mac` of a [[host]]";
        fields.error(codes::BAD_ADDRESS, &text, at, "this address", help);
    } else if address.0[..5] == LINK_LOCAL && address.0[5] < 0x10 {
        let text = format!("bridges do not forward frames to {address}");
        let help = "use a group address outside 01:80:c2:00:00:00 to 0f";
        fields.error(codes::BAD_ADDRESS, &text, at, "this address", help);
    } else if !address.is_multicast() {
        let Some((host, named)) = nodes.addresses.get(&address) else {
            let text = format!("{address} is neither a group address nor a host's");
            let help = "use a group address (odd first octet) or the `mac` of a [[host]]";
            fields.error(codes::UNKNOWN_DESTINATION, &text, at, "this address", help);
            return;
        };
        // What is for the own address does not leave.
        if Some(*host) == talker || listeners.is_some_and(|l| l != [*host]) {
            let name = &nodes.list[host.index()].name;
            let message = format!("{}: {address} only reaches `{name}`", fields.what);
            let code = codes::UNICAST_LISTENERS;
            let help = match Some(*host) == talker {
                true => "use a group address: the talker's own does not leave".to_owned(),
                false => format!("use a group address, or listeners = [\"{name}\"]"),
            };
            let wrong = Diagnostic::error(code, message, at, "one host's address").help(help);
            fields.sink.push(wrong.related(*named, "the host's address"));
        }
    }
}

/// Talker and listeners, if all of them are known hosts. If the talker may hear itself, it is the
/// last of the listeners.
pub(super) fn ends<R>(
    fields: &mut Fields<'_, R>,
    talker: &Option<At<String>>,
    listeners: &Option<At<Vec<At<String>>>>,
    nodes: &Nodes,
    may_hear_itself: bool,
) -> (Option<NodeId>, Option<Vec<NodeId>>) {
    let talker_name = fields.need("talker", talker);
    let what = fields.what.clone();
    let talker = talker_name.and_then(|name| nodes.host(&name, &what, fields.sink));
    let Some(names) = fields.need("listeners", listeners) else { return (talker, None) };
    if names.value.is_empty() || names.value.len() > limits::LIST {
        let text = format!("`listeners` names {} hosts", names.value.len());
        let help = format!("name 1 to {} hosts", limits::LIST);
        fields.error(codes::NO_LISTENER, &text, names.at, "this list", &help);
        return (talker, None);
    }
    let mut listeners = Vec::with_capacity(names.value.len());
    let mut seen = BTreeSet::new();
    for name in &names.value {
        let Some(listener) = nodes.host(name, &what, fields.sink) else { continue };
        let is_own = Some(listener) == talker;
        if is_own && !may_hear_itself {
            let text = format!("the talker `{}` is among the listeners", name.value);
            let help = "remove it from `listeners`";
            fields.error(codes::TALKER_LISTENS, &text, name.at, "this listener", help);
        } else if !seen.insert(listener) {
            let text = format!("duplicate listener `{}`", name.value);
            fields.error(
                codes::DUPLICATE_LISTENER,
                &text,
                name.at,
                "the second",
                "remove one of them",
            );
        } else if let Some(talker) = talker.filter(|_| !is_own) {
            nodes.need_path(&what, talker, listener, name.at, fields.sink);
        }
        listeners.push(listener);
    }
    let all = listeners.len() == names.value.len();
    listeners.sort_by_key(|listener| Some(*listener) == talker);
    (talker, all.then_some(listeners))
}
