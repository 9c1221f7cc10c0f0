//! Hosts, channels and chains.

use super::parse::Tables;
use super::raw::{self, Kind};
use super::{codes, limits};
use crate::codes as shared;
use crate::fields::{Fields, NS, S, US, presence};
use crate::names::Names;
use crate::parse::Entry;
use crate::rest::named;
use crate::{At, Sink};
use onbeat_model::diagnostic::Origin;
use onbeat_model::graph::{Channel, ChannelKind, Host, Interval, NetworkChannel};
use onbeat_model::rate::rate_tolerance;
use onbeat_model::time::Span;
use onbeat_model::timing::Chain;

/// Values that wait in a channel whose capacity is not stated.
const CAPACITY_DEFAULT: i64 = 1_024;

/// All channels.
pub(super) struct Channels {
    pub(super) list: Vec<Channel>,
    pub(super) names: Names<usize>,
    pub(super) origins: Vec<Origin>,
    /// Of those of a network.
    pub(super) latencies: Vec<Interval>,
    /// Of those of a network: whether an end may wait.
    pub(super) has_fixed_delay: Vec<bool>,
}

/// What a program's description says, its tasks do not.
pub(super) fn only_in_descriptions(tables: &Tables, sink: &mut Sink) {
    let hosts = tables.hosts.first().map(|host| ("host", host.at));
    let chains = tables.chains.first().map(|chain| ("chain", chain.at));
    for (table, at) in hosts.into_iter().chain(chains) {
        let mut fields = Fields::new(&tables.head, "program's task model", &None, sink);
        let text = format!("it has [[{table}]]");
        let help = format!("move [[{table}]] into the description");
        fields.error(shared::PROGRAM_TASKS, &text, at, "this table", &help);
    }
}

/// Checks all hosts; without any there is one.
pub(super) fn hosts(entries: &[Entry<raw::Host>], sink: &mut Sink) -> (Vec<Host>, Names<usize>) {
    let mut names = Names::new("host");
    if entries.is_empty() {
        let only = Host { name: "host".to_owned(), ..no_host() };
        let name = At { value: only.name.clone(), at: Origin::default() };
        names.add(&name, 0, sink);
        return (vec![only], names);
    }
    let mut list = Vec::with_capacity(entries.len());
    for entry in entries {
        let raw = &entry.raw;
        let mut fields = Fields::new(entry, "host", &raw.name, sink);
        let cores = fields.int(shared::OUT_OF_RANGE, ("cores", &raw.cores), 1..=limits::CORE + 1);
        let start = ("start_ns", &raw.start_ns);
        let start = fields.time(shared::OUT_OF_RANGE, start, NS, -limits::START..=limits::START);
        let wakeup = raw.wakeup_ns.as_ref().map(|range| self::range(&mut fields, range, true));
        list.push(Host {
            name: named(&mut fields, "a host", &raw.name, &mut names, list.len()),
            start: start.unwrap_or_default(),
            wakeup: wakeup.unwrap_or(Interval::ZERO),
            cores: cores.map(|cores| cores as u16),
        });
    }
    (list, names)
}

/// A host that is never late.
fn no_host() -> Host {
    Host { wakeup: Interval::ZERO, ..Host::default() }
}

/// A time from `min` on, to `max` if there is to be a bound.
fn range<R>(fields: &mut Fields<'_, R>, range: &At<raw::Range>, is_bounded: bool) -> Interval {
    let At { value: raw::Range { min, max }, at } = range;
    let all = || Span::ZERO..=limits::DELAY;
    let lo = fields.time(shared::OUT_OF_RANGE, ("min", min), NS, all()).unwrap_or_default();
    let hi = fields.time(shared::OUT_OF_RANGE, ("max", max), NS, all());
    match (max, is_bounded) {
        (None, true) => {
            let help = "write { min = 10000, max = 20000 }";
            fields.error(shared::MISSING_KEY, "`max` is missing", *at, "this time", help);
        }
        (Some(max), false) => {
            let text = "an IP channel's latency has no `max`";
            let help = "remove it, or make the channel's kind \"network\"";
            fields.error(codes::CHANNEL, text, max.at, "this key", help);
        }
        _ => {}
    }
    match hi {
        Some(hi) if hi < lo => {
            let text = format!("`min` {} is above `max` {}", lo.as_ns(), hi.as_ns());
            fields.error(shared::MIN_ABOVE_MAX, &text, *at, "this time", "swap them");
            Interval::ZERO
        }
        _ => Interval { lo, hi },
    }
}

/// Checks all channels. Those that are `described` need no table, and no kind in it.
pub(super) fn channels(
    entries: &[Entry<raw::Channel>],
    described: Option<&[&str]>,
    sink: &mut Sink,
) -> Channels {
    let mut channels = Channels {
        list: Vec::new(),
        names: Names::new("channel"),
        origins: Vec::new(),
        latencies: Vec::new(),
        has_fixed_delay: Vec::new(),
    };
    for entry in entries {
        channel(entry, described, &mut channels, sink);
    }
    for name in described.unwrap_or_default() {
        if channels.names.get(name).is_none() {
            let name = At { value: (*name).to_owned(), at: Origin::default() };
            channels.names.add(&name, channels.list.len(), sink);
            add(&mut channels, name.value, ChannelKind::Named, name.at);
        }
    }
    channels
}

fn add(channels: &mut Channels, name: String, kind: ChannelKind, at: Origin) {
    channels.list.push(Channel { name, kind });
    channels.origins.push(at);
    channels.latencies.push(Interval::ZERO);
    channels.has_fixed_delay.push(false);
}

fn channel(
    entry: &Entry<raw::Channel>,
    described: Option<&[&str]>,
    channels: &mut Channels,
    sink: &mut Sink,
) {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "channel", &raw.name, sink);
    let name = named(&mut fields, "a channel", &raw.name, &mut channels.names, channels.list.len());
    let at = raw.name.as_ref().map_or(entry.at, |name| name.at);
    let is_described = described.is_some_and(|all| all.contains(&name.as_str()));
    let kind = match raw.kind {
        Some(At { at, .. }) if is_described => {
            let help = "remove `kind`, or rename the channel";
            let text = "the description defines this channel already";
            fields.error(shared::PROGRAM_TASKS, text, at, "this key", help);
            None
        }
        Some(At { value: Kind::Network | Kind::Ip, at }) if described.is_some() => {
            let help = "add [[channel]] to the description, and remove `kind` here";
            let text = "the description lacks this channel";
            fields.error(shared::PROGRAM_TASKS, text, at, "a channel of the network", help);
            None
        }
        None if is_described => None,
        kind => fields.need("kind", &kind).map(|kind| kind.value),
    };
    strangers(&mut fields, kind);
    let Some(kind) = kind else { return add(channels, name, ChannelKind::Named, at) };
    let capacity = ("capacity", &raw.capacity);
    let capacity = fields.int(shared::OUT_OF_RANGE, capacity, 1..=limits::CAPACITY);
    let capacity = capacity.unwrap_or(CAPACITY_DEFAULT) as u32;
    if kind == Kind::Fifo {
        return add(channels, name, ChannelKind::Fifo { capacity }, at);
    }
    let latency = match &raw.latency_ns {
        Some(latency) => range(&mut fields, latency, kind == Kind::Network),
        None if kind == Kind::Ip => Interval::from(Span::ZERO),
        None => {
            fields.need("latency_ns", &raw.latency_ns);
            Interval::ZERO
        }
    };
    let fixed = ("fixed_delay_us", &raw.fixed_delay_us);
    let fixed = fields.time(shared::OUT_OF_RANGE, fixed, US, Span::from_us(1)..=limits::DELAY);
    let (interval, tolerance) = rate(&mut fields);
    let network = NetworkChannel {
        latencies: Vec::new(),
        fixed_delay: fixed.unwrap_or_default(),
        interval,
        tolerance,
        catch_up: Span::ZERO,
        early: tolerance,
        capacity,
    };
    add(channels, name, ChannelKind::Network(network), at);
    let last = channels.list.len() - 1;
    channels.latencies[last] = latency;
    channels.has_fixed_delay[last] = fixed.is_some();
}

/// Reports keys that the channel's kind does not have.
fn strangers(fields: &mut Fields<'_, raw::Channel>, kind: Option<Kind>) {
    if matches!(kind, Some(Kind::Network | Kind::Ip)) {
        return;
    }
    let raw = &fields.entry.raw;
    let keys = [
        ("capacity", raw.capacity.filter(|_| kind != Some(Kind::Fifo))),
        ("latency_ns", presence(&raw.latency_ns)),
        ("fixed_delay_us", raw.fixed_delay_us),
        ("rate_hz", raw.rate_hz),
        ("interval_ns", raw.interval_ns),
        ("burst_messages", raw.burst_messages),
    ];
    // Without a kind that would only be right, there is nothing to compare with.
    if kind.is_none() && raw.kind.is_none() && fields.entry.is_broken("kind") {
        return;
    }
    for (key, at) in keys.into_iter().filter_map(|(key, value)| Some((key, value?.at))) {
        let text = match kind {
            Some(_) => format!("a fifochannel has no `{key}`"),
            None => format!("`{key}` needs a `kind` of channel that has it"),
        };
        let help = "remove it: a fifochannel has a `capacity`, and the description has the rest";
        fields.error(codes::CHANNEL, &text, at, "this key", help);
    }
}

/// The least mean time between two messages, and by how much one may come before.
fn rate(fields: &mut Fields<'_, raw::Channel>) -> (Span, Span) {
    let raw = &fields.entry.raw;
    let (hz, ns) = (("rate_hz", &raw.rate_hz), ("interval_ns", &raw.interval_ns));
    let interval = match fields.either(hz, ns) {
        Some(0) => fields.int(shared::RATE, hz, 1..=S).map(|hz| Span::from_ns(S / hz)),
        Some(_) => fields.time(shared::RATE, ns, NS, Span::from_ns(1)..=limits::DURATION),
        None => None,
    };
    let most = onbeat_model::limits::BURST;
    let burst = ("burst_messages", &raw.burst_messages);
    let burst = fields.int(shared::OUT_OF_RANGE, burst, 1..=most);
    if let (Some(stated), None, None) = (raw.burst_messages, raw.rate_hz, raw.interval_ns) {
        let help = "add `rate_hz` or `interval_ns`";
        let text = "`burst_messages` needs a rate";
        fields.error(codes::CHANNEL, text, stated.at, "this key", help);
    }
    match interval {
        Some(interval) => (interval, rate_tolerance(interval, burst.unwrap_or(1) as u32)),
        None => (Span::ZERO, Span::ZERO),
    }
}

/// Checks all chains.
pub(super) fn chains(
    entries: &[Entry<raw::Chain>],
    channels: &Names<usize>,
    sink: &mut Sink,
) -> Vec<At<Chain>> {
    let mut names = Names::new("chain");
    let mut chains = Vec::with_capacity(entries.len());
    for entry in entries {
        let raw = &entry.raw;
        let mut fields = Fields::new(entry, "chain", &raw.name, sink);
        let name = named(&mut fields, "a chain", &raw.name, &mut names, chains.len());
        let [deadline, age, reaction] = [
            ("deadline_us", &raw.deadline_us),
            ("age_us", &raw.age_us),
            ("reaction_us", &raw.reaction_us),
        ]
        .map(|key| {
            let range = Span::from_us(1)..=limits::DURATION;
            fields.time(shared::DURATION, key, US, range)
        });
        let Some(list) = fields.need("channels", &raw.channels) else { continue };
        if list.value.is_empty() || list.value.len() > limits::LIST {
            let help = format!("name 1 to {} channels", limits::LIST);
            let text = "a chain needs channels";
            fields.error(shared::BROKEN_CHAIN, text, list.at, "this list", &help);
        }
        let found = list.value.iter();
        let found = found.map(|name| channels.find(shared::UNKNOWN_CHANNEL, name, fields.sink));
        let channels = found.collect::<Vec<_>>().into_iter().flatten().collect();
        let value = Chain { name, channels, deadline, age, reaction, ..Chain::default() };
        chains.push(At { value, at: list.at });
    }
    chains
}
