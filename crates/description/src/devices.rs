//! Devices: what `[[device]]` says of them, and which one a node is.

use super::fields::{Fields, NS};
use super::names::{Alphabet, Names, check_name, shorten};
use super::parse::Entry;
use super::{At, Sink, codes, limits, raw};
use onbeat_model::device::{BuiltInDevice, Device, DeviceLimits};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::port::QUEUES;
use onbeat_model::time::Span;

/// All devices that a node may be.
pub(super) struct Devices {
    names: Names<usize>,
    limits: Vec<DeviceLimits>,
    /// Whether every table has a name that can be used.
    complete: bool,
}

/// Checks all `[[device]]` tables.
pub(super) fn check(entries: &[Entry<raw::Device>], sink: &mut Sink) -> Devices {
    let mut devices = Devices { names: Names::new("device"), limits: Vec::new(), complete: true };
    for entry in entries {
        let mut fields = Fields::new(entry, "device", &entry.raw.name, sink);
        let name = fields.need("name", &entry.raw.name);
        let limits = device_limits(&mut fields);
        match name {
            Some(name) => devices.add(&name, limits, sink),
            None => devices.complete = false,
        }
    }
    devices
}

fn device_limits(fields: &mut Fields<'_, raw::Device>) -> DeviceLimits {
    let raw = &fields.entry.raw;
    let flag = |value: &Option<At<bool>>| value.as_ref().map(|it| it.value);
    let mut count = |key, value: &Option<At<i64>>, range| {
        let number = fields.int(codes::OUT_OF_RANGE, (key, value), range)?;
        usize::try_from(number).ok()
    };
    let queues = QUEUES as i64;
    let entries = 1..=limits::DEVICE_ENTRIES;
    let traffic_classes = count("traffic_classes", &raw.traffic_classes, 1..=queues);
    let credit_based = count("credit_based_shapers", &raw.credit_based_shapers, 0..=queues);
    let list_max = count("supported_list_max", &raw.supported_list_max, entries.clone());
    let shared_list_max = count("shared_list_max", &raw.shared_list_max, entries.clone());
    let openings_max = count("openings_max", &raw.openings_max, entries);
    let mut time = |key, value: &Option<At<i64>>, most| {
        fields.time(codes::OUT_OF_RANGE, (key, value), NS, Span::from_ns(1)..=most)
    };
    let most = limits::DURATION;
    let own = DeviceLimits {
        traffic_classes: traffic_classes.map(|count| count as u8),
        credit_based: credit_based.map(|count| count as u8),
        gates: flag(&raw.gates),
        list_max,
        shared_list_max,
        openings_max,
        cycle_max: time("supported_cycle_max_ns", &raw.supported_cycle_max_ns, most),
        interval_max: time("supported_interval_max_ns", &raw.supported_interval_max_ns, most),
        interval_min: time("interval_min_ns", &raw.interval_min_ns, limits::TICK),
        tick: time("tick_granularity_ns", &raw.tick_granularity_ns, limits::TICK),
        length_aware: flag(&raw.length_aware),
        cut_through: flag(&raw.cut_through),
        preemption: flag(&raw.preemption),
        asynchronous: flag(&raw.asynchronous),
        elimination: flag(&raw.elimination),
    };
    own.or(raw.base.as_ref().map_or(DeviceLimits::UNKNOWN, |base| base.value.limits()))
}

impl Devices {
    fn add(&mut self, name: &At<String>, limits: DeviceLimits, sink: &mut Sink) {
        check_name(name, "device", Alphabet::Plain, limits::NAME_OCTETS, sink);
        if built_in(&name.value).is_some() {
            let message = format!("duplicate device name `{}`: it is built in", name.value);
            let help = "use another name, with `base` for the built-in device";
            let taken = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "this name");
            sink.push(taken.help(help));
        }
        self.names.add(name, self.limits.len(), sink);
        self.limits.push(limits);
    }

    /// The device that a node names, or a diagnostic.
    pub(super) fn find(&self, name: &Option<At<String>>, sink: &mut Sink) -> Option<Device> {
        let At { value, at } = name.as_ref()?;
        let described = self.names.get(value).map(|(number, _)| self.limits[number]);
        let limits = described.or_else(|| Some(built_in(value)?.limits()));
        if limits.is_none() && self.complete {
            let known = BuiltInDevice::ALL.map(BuiltInDevice::name);
            let names = self.names.all().chain(known);
            let help = match sink.did_you_mean((codes::UNKNOWN_DEVICE, *at), value, names) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("add a [[device]] of this name, or use {}", known.join(", ")),
            };
            let message = format!("unknown device `{}`", shorten(value));
            let unknown = Diagnostic::error(codes::UNKNOWN_DEVICE, message, *at, "not found");
            sink.push(unknown.help(help));
        }
        Some(Device { name: value.clone(), limits: limits?, origin: *at })
    }
}

fn built_in(name: &str) -> Option<BuiltInDevice> {
    BuiltInDevice::ALL.into_iter().find(|device| device.name() == name)
}
