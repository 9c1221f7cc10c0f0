//! Noise, chains and runs.

use super::channels::Channels;
use super::fields::{Fields, S, US};
use super::names::{Alphabet, Names, check_name};
use super::nodes::Nodes;
use super::parse::Entry;
use super::programs::{self, Programs};
use super::{At, Sink, codes, limits, raw};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{
    Backend, Chain, ChannelId, Node, NodeId, Noise, ProgramLimits, ReservationMode, RunSettings,
    Scenario, SchedulingPolicy, Synchronisation, TimeMode, TuneProfile,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{Octets, frame};

const HANG_TIMEOUT_DEFAULT: Span = Span::from_s(30);

/// All scenarios and their names.
pub(super) struct Scenarios {
    pub(super) list: Vec<Scenario>,
    pub(super) names: Names<()>,
}

/// The system's name, and the keys that stand before all tables.
pub(super) fn system_name(head: &Entry<raw::File>, sink: &mut Sink) -> String {
    let mut fields = Fields::new(head, "description", &None, sink);
    fields.need("format", &head.raw.format);
    let Some(name) = fields.need("name", &head.raw.name) else { return String::new() };
    check_name(&name, "the system", Alphabet::Plain, limits::NAME_OCTETS, sink);
    name.value
}

/// Checks the name of a table that has one, and adds it to the others of its kind.
pub(crate) fn named<R, Id: Copy>(
    fields: &mut Fields<'_, R>,
    kind: &str,
    name: &Option<At<String>>,
    names: &mut Names<Id>,
    id: Id,
) -> String {
    let Some(name) = fields.need("name", name) else {
        names.incomplete();
        return String::new();
    };
    check_name(&name, kind, Alphabet::Plain, limits::NAME_OCTETS, fields.sink);
    names.add(&name, id, fields.sink);
    name.value
}

/// The host that a key names.
pub(super) fn host<R>(
    fields: &mut Fields<'_, R>,
    key: &str,
    name: &Option<At<String>>,
    nodes: &Nodes,
) -> Option<NodeId> {
    let name = fields.need(key, name)?;
    nodes.host(&name, &fields.what, fields.sink)
}

/// Checks how clocks are kept together.
pub(super) fn synchronisation(
    entry: &Entry<raw::Synchronisation>,
    nodes: &Nodes,
    sink: &mut Sink,
) -> Option<Synchronisation> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "synchronisation", &None, sink);
    let grandmaster = fields.need("grandmaster", &raw.grandmaster)?;
    let in_run = raw.in_run.as_ref().is_some_and(|in_run| in_run.value);
    let described = |node: &&Node| in_run && node.clock != ClockError::default();
    for node in nodes.list.iter().filter(described) {
        let message =
            format!("`{}` has a `clock`, but gPTP steers its clock in the run", node.name);
        let help = "remove the `clock`, or `in_run`: without `in_run` the described clock applies";
        let wrong = Diagnostic::error(codes::CLOCK_KEPT, message, node.origin, "its clock");
        fields.sink.push(wrong.help(help).related(grandmaster.at, "gPTP is enabled here"));
    }
    Some(Synchronisation {
        grandmaster: nodes.names.find(codes::UNKNOWN_NODE, &grandmaster, fields.sink)?,
        stamps: raw.timestamping.as_ref().map(|kind| kind.value).unwrap_or_default(),
        seed: raw.seed.as_ref().map_or(0, |seed| seed.value),
        in_run,
        origin: grandmaster.at,
    })
}

/// Checks all noise sources.
pub(super) fn noise(entries: &[Entry<raw::Noise>], nodes: &Nodes, sink: &mut Sink) -> Vec<Noise> {
    let mut names = Names::new("noise source");
    entries.iter().filter_map(|entry| noise_source(entry, nodes, &mut names, sink)).collect()
}

fn noise_source(
    entry: &Entry<raw::Noise>,
    nodes: &Nodes,
    names: &mut Names<()>,
    sink: &mut Sink,
) -> Option<Noise> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "noise source", &raw.name, sink);
    let name = named(&mut fields, "noise source", &raw.name, names, ());
    let from = host(&mut fields, "from", &raw.from, nodes);
    let to = host(&mut fields, "to", &raw.to, nodes);
    if let (Some(from), Some(to), Some(at)) = (from, to, raw.to.as_ref().map(|t| t.at)) {
        if from == to {
            let help = "name two different hosts";
            let text = "source and destination are the same host";
            fields.error(codes::NOISE_TO_SELF, text, at, "the same host", help);
        }
        nodes.need_path(&fields.what, from, to, at, fields.sink);
    }
    let size = fields.need("size_octets", &raw.size_octets);
    let most = i64::from(frame::MAX_UDP_PAYLOAD.get());
    let size = fields.int(codes::PAYLOAD_SIZE, ("size_octets", &size), 1..=most);
    let payload = Octets::new(size.unwrap_or(1) as u32);
    let interval = noise_interval(&mut fields, payload);
    let (start, on, off) = noise_cycle(&mut fields);
    Some(Noise {
        name,
        from: from?,
        to: to?,
        payload,
        interval: interval?,
        jitter: raw.jitter.as_ref().is_some_and(|j| j.value),
        start,
        on,
        off,
        origin: raw.name.as_ref().map_or(entry.at, |n| n.at),
    })
}

/// The mean time between two frames, rounded down: rather more noise than less.
fn noise_interval(fields: &mut Fields<'_, raw::Noise>, payload: Octets) -> Option<Span> {
    let raw = &fields.entry.raw;
    let (mbps, frames) = (("rate_mbps", &raw.rate_mbps), ("frames_per_s", &raw.frames_per_s));
    fields.need_one(mbps, frames);
    let ns = match fields.either(mbps, frames)? {
        0 => {
            let rate = fields.int(codes::RATE, mbps, 1..=limits::LINK_BPS / 1_000_000)?;
            i64::from(frame::on_wire(frame::of_udp(payload)).get()) * 8 * 1_000 / rate
        }
        _ => S / fields.int(codes::RATE, frames, 1..=S)?,
    };
    Some(Span::from_ns(ns.max(1)))
}

fn noise_cycle(fields: &mut Fields<'_, raw::Noise>) -> (NetTime, Span, Span) {
    let raw = &fields.entry.raw;
    let from_zero = Span::ZERO..=limits::DURATION;
    let positive = Span::from_ns(1)..=limits::DURATION;
    let code = codes::DURATION;
    let keys = (("start_s", &raw.start_s), ("start_ms", &raw.start_ms));
    let start = fields.seconds(code, keys.0, keys.1, from_zero.clone()).unwrap_or_default();
    let keys = (("off_s", &raw.off_s), ("off_ms", &raw.off_ms));
    let off = fields.seconds(code, keys.0, keys.1, from_zero).unwrap_or_default();
    let keys = (("on_s", &raw.on_s), ("on_ms", &raw.on_ms));
    if off > Span::ZERO {
        fields.need_one(keys.0, keys.1);
    }
    let on = fields.seconds(code, keys.0, keys.1, positive);
    (NetTime::ZERO + start, on.unwrap_or(limits::DURATION), off)
}

/// Checks all chains.
pub(super) fn chains(
    entries: &[Entry<raw::Chain>],
    channels: &Channels,
    sink: &mut Sink,
) -> Vec<Chain> {
    let mut names = Names::new("chain");
    entries.iter().filter_map(|entry| chain(entry, channels, &mut names, sink)).collect()
}

fn chain(
    entry: &Entry<raw::Chain>,
    channels: &Channels,
    names: &mut Names<()>,
    sink: &mut Sink,
) -> Option<Chain> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "chain", &raw.name, sink);
    let name = named(&mut fields, "chain", &raw.name, names, ());
    let deadline = fields.need("deadline_us", &raw.deadline_us);
    let keys =
        [("deadline_us", &deadline), ("age_us", &raw.age_us), ("reaction_us", &raw.reaction_us)];
    let [deadline, age, reaction] = keys.map(|key| {
        let range = Span::from_us(1)..=limits::DURATION;
        fields.time(codes::DURATION, key, US, range)
    });
    let list = fields.need("channels", &raw.channels)?;
    if list.value.is_empty() || list.value.len() > limits::LIST {
        let help = format!("name 1 to {} channels", limits::LIST);
        let text = "a chain needs channels";
        fields.error(codes::BROKEN_CHAIN, text, list.at, "this list", &help);
        return None;
    }
    let ids: Vec<Option<ChannelId>> = list
        .value
        .iter()
        .map(|name| channels.names.find(codes::UNKNOWN_CHANNEL, name, fields.sink))
        .collect();
    for (pair, place) in ids.windows(2).zip(&list.value[1..]) {
        if let [Some(before), Some(after)] = *pair {
            check_meeting(&mut fields, before, after, place, channels);
        }
    }
    let channels = ids.into_iter().collect::<Option<Vec<_>>>()?;
    let origin = raw.name.as_ref().map_or(entry.at, |n| n.at);
    Some(Chain { name, channels, deadline: deadline?, age, reaction, origin })
}

fn check_meeting(
    fields: &mut Fields<'_, raw::Chain>,
    before: ChannelId,
    after: ChannelId,
    place: &At<String>,
    channels: &Channels,
) {
    let known = channels.ends_known[before.index()] && channels.ends_known[after.index()];
    let (before, after) = (&channels.list[before.index()], &channels.list[after.index()]);
    if known && !before.listeners.contains(&after.talker) {
        let text = format!("the talker of `{}` does not listen to `{}`", after.name, before.name);
        let message = format!("{}: {text}", fields.what);
        let apart = Diagnostic::error(codes::BROKEN_CHAIN, message, place.at, "this channel")
            .help("start each channel of a chain at a listener of the previous one")
            .related(before.origin, "the previous channel")
            .related(after.origin, "this channel");
        fields.sink.push(apart);
    }
}

/// What a `[run]` or a `[[scenario]]` says of a run.
struct RunKeys<'a> {
    duration_s: &'a Option<At<i64>>,
    duration_ms: &'a Option<At<i64>>,
    seed: &'a Option<At<u64>>,
    time: &'a Option<At<TimeMode>>,
    protected: &'a Option<At<bool>>,
    reservation: &'a Option<At<ReservationMode>>,
    backend: &'a Option<At<Backend>>,
    slot_error_us: &'a Option<At<i64>>,
    noise: &'a Option<At<bool>>,
    companions: &'a Option<At<bool>>,
    policy: &'a Option<At<SchedulingPolicy>>,
    tune: &'a Option<At<TuneProfile>>,
    hang_timeout_s: &'a Option<At<i64>>,
}

/// The keys that both tables have.
macro_rules! run_keys {
    ($raw:expr) => {
        RunKeys {
            duration_s: &$raw.duration_s,
            duration_ms: &$raw.duration_ms,
            seed: &$raw.seed,
            time: &$raw.time,
            protected: &$raw.protected,
            reservation: &$raw.reservation,
            backend: &$raw.backend,
            slot_error_us: &$raw.slot_error_us,
            noise: &$raw.noise,
            companions: &$raw.companions,
            policy: &$raw.policy,
            tune: &$raw.tune,
            hang_timeout_s: &$raw.hang_timeout_s,
        }
    };
}

/// The settings, with what is left out taken from `base`.
fn settings<R>(fields: &mut Fields<'_, R>, keys: &RunKeys<'_>, base: &RunSettings) -> RunSettings {
    let (s, ms) = (("duration_s", keys.duration_s), ("duration_ms", keys.duration_ms));
    let range = Span::from_ns(1)..=limits::DURATION;
    let duration = fields.seconds(codes::DURATION, s, ms, range);
    let hang = ("hang_timeout_s", keys.hang_timeout_s);
    let range = Span::from_ns(1)..=limits::HANG_TIMEOUT;
    let hang = fields.time(codes::DURATION, hang, S, range);
    let (backend, protected) = backend(fields, keys, base);
    let slot_error = ("slot_error_us", keys.slot_error_us);
    let range = Span::ZERO..=limits::SLOT_ERROR;
    let slot_error = fields.time(codes::OUT_OF_RANGE, slot_error, US, range);
    RunSettings {
        duration: duration.unwrap_or(base.duration),
        seed: keys.seed.as_ref().map_or(base.seed, |s| s.value),
        time: keys.time.as_ref().map_or(base.time, |t| t.value),
        protected,
        asks_protection: keys.protected.as_ref().map_or(base.asks_protection, |p| p.value),
        reservation: keys.reservation.as_ref().map_or(base.reservation, |r| r.value),
        backend,
        slot_error: slot_error.unwrap_or(base.slot_error),
        noise: keys.noise.as_ref().map_or(base.noise, |noise| noise.value),
        companions: keys.companions.as_ref().map_or(base.companions, |c| c.value),
        policy: keys.policy.as_ref().map_or(base.policy, |policy| policy.value),
        tune: keys.tune.as_ref().map_or(base.tune, |tune| tune.value),
        hang_timeout: hang.unwrap_or(base.hang_timeout),
        limits: base.limits,
    }
}

/// What keeps channels apart, and whether anything does: stations always do.
fn backend<R>(
    fields: &mut Fields<'_, R>,
    keys: &RunKeys<'_>,
    base: &RunSettings,
) -> (Backend, bool) {
    let backend = keys.backend.as_ref().map_or(base.backend, |b| b.value);
    let protected = keys.protected.as_ref().map_or(base.protected, |p| p.value);
    let at = keys.backend.as_ref().map(|b| b.at).or(keys.protected.as_ref().map(|p| p.at));
    if let (Backend::NetworkCode, false, Some(at)) = (backend, protected, at) {
        let message = format!(
            "{}: `protected = false` beside `backend = \"network-code\"`, whose stations send in \
             their slots only",
            fields.what
        );
        let help = "remove `protected`, or use `backend = \"bridges\"`";
        let both = Diagnostic::error(codes::BOTH_KEYS, message, at, "excludes the other one");
        fields.sink.push(both.help(help));
    }
    (backend, protected)
}

/// What the programs may use of the machine.
fn program_limits(fields: &mut Fields<'_, raw::Run>) -> ProgramLimits {
    let raw = &fields.entry.raw;
    let memory = ("memory_max_octets", &raw.memory_max_octets);
    let memory = fields.int(codes::OUT_OF_RANGE, memory, limits::MEMORY_MIN..=limits::MEMORY_MAX);
    let processes = ("processes_max", &raw.processes_max);
    let processes = fields.int(codes::OUT_OF_RANGE, processes, 1..=limits::PROCESSES);
    ProgramLimits { memory: memory.map(|m| m as u64), processes: processes.map(|p| p as u64) }
}

/// Checks the run settings and their variations.
pub(super) fn runs(
    run: Option<&Entry<raw::Run>>,
    entries: &[Entry<raw::Scenario>],
    (nodes, programs): (&Nodes, &Programs),
    sink: &mut Sink,
) -> (RunSettings, Scenarios) {
    let mut base = RunSettings {
        duration: Span::ZERO,
        seed: 0,
        time: TimeMode::Virtual,
        protected: true,
        asks_protection: false,
        reservation: ReservationMode::Plan,
        backend: Backend::Bridges,
        slot_error: Span::ZERO,
        noise: true,
        companions: true,
        policy: SchedulingPolicy::Fifo,
        tune: TuneProfile::Off,
        hang_timeout: HANG_TIMEOUT_DEFAULT,
        limits: ProgramLimits::default(),
    };
    match run {
        Some(entry) => {
            let keys = run_keys!(&entry.raw);
            let mut fields = Fields::new(entry, "run", &None, sink);
            let (s, ms) = (keys.duration_s, keys.duration_ms);
            fields.need_one(("duration_s", s), ("duration_ms", ms));
            base.limits = program_limits(&mut fields);
            base = settings(&mut fields, &keys, &base);
        }
        None => {
            let message = "there is no [run] table";
            let at = super::origin(0, 0..0);
            let help = "add [run] with duration_s";
            sink.push(Diagnostic::error(codes::MISSING_KEY, message, at, "here").help(help));
        }
    }
    let names = Names::new("scenario");
    let mut scenarios = Scenarios { list: Vec::new(), names };
    for entry in entries {
        let name = &entry.raw.name;
        let keys = run_keys!(&entry.raw);
        let mut fields = Fields::new(entry, "scenario", name, sink);
        let name = named(&mut fields, "scenario", name, &mut scenarios.names, ());
        let run = settings(&mut fields, &keys, &base);
        let programs = programs::variations(&mut fields, nodes, programs);
        scenarios.list.push(Scenario { name, run, programs });
    }
    (base, scenarios)
}
