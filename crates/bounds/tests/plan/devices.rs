//! Devices: what the plan may ask of them, and schedules for their ports in the engine.

use crate::scheduled::{CELL, Seen, check, description, loaded};
use onbeat_bounds::{document, plan};
use onbeat_model::device::DeviceLimits;
use onbeat_model::plan::Plan;
use onbeat_model::port::GateControl;
use onbeat_model::system::{NodeId, NodeKind, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_testkit::Random;

/// Devices whose ports open and close gates in steps, seldom, or not at all.
const DEVICES: &str = r#"
[[device]]
name = "coarse"
tick_granularity_ns = 200
supported_interval_max_ns = 100_100
[[device]]
name = "fine"
tick_granularity_ns = 8
supported_list_max = 30
[[device]]
name = "slow"
interval_min_ns = 900
tick_granularity_ns = 250
[[device]]
name = "odd"
tick_granularity_ns = 7
[[device]]
name = "once"
openings_max = 1
tick_granularity_ns = 1_000
"#;

/// What was planned of systems with devices.
#[derive(Debug, Default)]
struct Planned {
    systems: u32,
    refused: u32,
    /// Ports with gates, by the device of their node.
    gated: std::collections::BTreeMap<String, u32>,
    /// Scheduled channels whose talker has no gates.
    gateless: u32,
    split: u32,
    moved: u32,
}

/// The description with a device for some of its nodes.
pub(crate) fn with_devices(random: &mut Random, text: &str) -> String {
    let all = ["coarse", "fine", "slow", "once", "i210", "i225", "lan9662", "veth"];
    let some = [all[random.index(all.len())], all[random.index(all.len())]];
    let mut nodes = String::new();
    for line in text.lines() {
        nodes += line;
        nodes.push('\n');
        let is_host = line.starts_with("name = \"h");
        if (is_host || line.starts_with("name = \"b")) && random.percent(70) {
            // A bridge without gates has no scheduled channels.
            let name = random.one_of(&some);
            let name = if name == "i210" && !is_host { "coarse" } else { name };
            nodes += &format!("device = \"{name}\"\n");
        }
    }
    nodes + DEVICES
}

/// Whether a list can be given to a device, counted in another way than the plan does.
fn fits(list: &GateControl, limits: &DeviceLimits) -> Result<(), String> {
    let spans: Vec<i64> = list.entries.iter().map(|entry| entry.span.as_ns()).collect();
    let (least, most) =
        (spans.iter().min().expect("entries"), spans.iter().max().expect("entries"));
    let tick = limits.tick.map_or(1, Span::as_ns);
    let base = (list.base - NetTime::ZERO).as_ns();
    let all = spans.iter().chain([&base]);
    let right = [
        spans.iter().sum::<i64>() == list.cycle.as_ns(),
        all.map(|time| time.rem_euclid(tick)).sum::<i64>() == 0,
        limits.interval_min.is_none_or(|limit| *least >= limit.as_ns()),
        limits.interval_max.is_none_or(|limit| *most <= limit.as_ns()),
        limits.list_max.is_none_or(|limit| spans.len() <= limit),
        limits.cycle_max.is_none_or(|limit| list.cycle <= limit),
        limits.gates != Some(false),
        limits.openings_max.is_none_or(|limit| {
            // A gate that opens shows in the list as it would be laid end to end twice.
            let mut times = [0; 8];
            for (at, entry) in list.entries.iter().enumerate() {
                let closed = if at == 0 { 255 } else { !list.entries[at - 1].open };
                (0..8).for_each(|q| times[q] += usize::from(entry.open & closed) >> q & 1);
            }
            times.iter().all(|times| *times <= limit)
        }),
    ];
    let wrong = right.iter().position(|right| !right);
    wrong.map_or(Ok(()), |which| Err(format!("rule {which} of {limits:?}: {list:?}")))
}

fn count(system: &System, plan: &Plan, all: &mut Planned) {
    for (port, planned) in system.ports.iter().zip(&plan.ports) {
        let Some(device) = system.devices.get(&port.node) else { continue };
        for list in &planned.settings.gates {
            fits(list, &device.limits).unwrap_or_else(|why| panic!("{why}"));
            *all.gated.entry(device.name.clone()).or_default() += 1;
            let is_split = |pair: &[onbeat_model::port::GateEntry]| pair[0].open == pair[1].open;
            all.split += u32::from(list.entries.windows(2).any(is_split));
            all.moved += u32::from(list.base < NetTime::ZERO);
        }
    }
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        let no_gates = system.device_limits(channel.talker).gates == Some(false);
        all.gateless += u32::from(no_gates && planned.launch.is_some());
    }
}

#[test]
fn schedules_for_ports_of_devices_fit_these_and_no_frame_is_late_or_early() {
    let (mut all, mut seen) = (Planned::default(), Seen::default());
    for seed in 0..160 {
        let random = &mut Random(seed);
        let text = description(random);
        let text = with_devices(random, &text);
        let system = loaded(&text);
        match plan(&system, true) {
            Err(_) => all.refused += 1,
            Ok(plan) => {
                all.systems += 1;
                count(&system, &plan, &mut all);
                check(seed, &text, &system, &plan, &mut seen);
            }
        }
    }
    println!("{all:?} {seen:?}");
    assert!(all.systems > 60 && all.gateless > 20 && all.split > 10 && all.moved > 5, "{all:?}");
    assert!(all.gated.len() >= 7 && all.gated.values().all(|ports| *ports >= 5), "{all:?}");
    assert!(seen.latencies > 300, "{seen:?}");
}

#[test]
fn without_a_device_and_with_one_of_no_known_limits_the_plan_is_the_same() {
    for seed in 0..40 {
        let text = description(&mut Random(seed));
        let named = text.replace("name = \"b0\"\n", "name = \"b0\"\ndevice = \"any\"\n");
        let named = named.replace("name = \"h0\"\n", "name = \"h0\"\ndevice = \"any\"\n");
        let any = loaded(&format!("{named}[[device]]\nname = \"any\"\n"));
        assert_eq!(any.devices.len(), 2, "{named}");
        let none = loaded(&text);
        match (plan(&none, true), plan(&any, true)) {
            (Ok(none_plan), Ok(any_plan)) => {
                assert_eq!(document(&none, &none_plan), document(&any, &any_plan), "seed {seed}");
            }
            (Err(none), Err(any)) => {
                let said = |errors: Vec<onbeat_model::diagnostic::Diagnostic>| {
                    errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
                };
                assert_eq!(said(none), said(any), "seed {seed}");
            }
            (none, any) => panic!("seed {seed}: {none:?} {any:?}"),
        }
    }
}

/// The cell with devices of some of its nodes, and something more.
fn cell(devices: &[(&str, &str)], more: &str) -> System {
    let mut text = CELL.to_owned();
    for (node, device) in devices {
        let name = format!("name = \"{node}\"\n");
        text = text.replace(&name, &format!("{name}device = \"{device}\"\n"));
    }
    loaded(&format!("{text}{DEVICES}{more}"))
}

#[test]
fn windows_are_as_long_as_the_steps_of_the_port_ask() {
    let windows = |device: &str| {
        let system = cell(&[("s", device), ("a", device)], "");
        let plan = plan(&system, true).expect("a plan");
        let launch = plan.channels[0].launch.clone().expect("a launch time");
        launch.windows.iter().map(|window| (window.start.as_ns(), window.span.as_ns())).collect()
    };
    // 64 octets of payload, 46 of headers, 20 of preamble and gap, at 100 Mb/s.
    let ns = 10_400;
    let unknown: Vec<(i64, i64)> = windows("veth");
    assert_eq!(unknown.iter().map(|(_, span)| *span).collect::<Vec<_>>(), [ns; 3]);
    for (device, step) in [("coarse", 200), ("fine", 8), ("slow", 1_000), ("once", 1_000)] {
        let rounded = (ns + step - 1) / step * step;
        let planned = windows(device);
        let spans: Vec<i64> = planned.iter().map(|(_, span)| *span).collect();
        // `t` has no device.
        assert_eq!(spans, [rounded, rounded, ns], "{device}");
        assert!(planned[..2].iter().all(|(start, _)| start % step == 0), "{device}: {planned:?}");
    }
    let errors = plan(&cell(&[("s", "odd")], ""), true).expect_err("1 ms is no multiple of 7 ns");
    assert!(errors[0].message.contains("in steps of 7 ns"), "{}", errors[0].message);
}

#[test]
fn a_talker_without_gates_launches_its_frames_if_nothing_goes_first() {
    let alone = cell(&[("a", "i210")], "");
    let gated = plan(&cell(&[], ""), true).expect("a plan");
    let launched = plan(&alone, true).expect("a plan");
    let port = alone.node(NodeId(0)).ports[0];
    assert!(launched.ports[port.index()].settings.gates.is_empty());
    assert_eq!(gated.ports[port.index()].settings.gates.len(), 1);
    // A frame of best effort may be under way: 1,522 octets and 20 at 100 Mb/s.
    let [with, without] = [&gated, &launched].map(|plan| plan.channels[0].bound().expect("one"));
    assert_eq!(without - with, Span::from_ns(1_542 * 80));
    let stream = |class: u8| {
        format!(
            "[[stream]]\nname = \"q\"\ntalker = \"a\"\nlisteners = [\"b\"]\n\
             traffic_class = {class}\nframe_octets = 200\ninterval_ns = 10_000_000\n"
        )
    };
    plan(&cell(&[("a", "i210")], &stream(4)), true).expect("the scheduled frame goes first");
    let errors = plan(&cell(&[("a", "i210")], &stream(6)), true).expect_err("it goes first");
    assert!(errors[0].message.contains("frames of higher classes"), "{}", errors[0].message);
    let errors = plan(&cell(&[("s", "i210")], ""), true).expect_err("a bridge without gates");
    let NodeKind::Bridge(_) = cell(&[], "").node(NodeId(4)).kind else { panic!("a bridge") };
    assert_eq!(errors[0].message, "scheduled channel `x`: device `i210` of `s` has no gates");
}

#[test]
fn load_aware_routes_leave_a_port_whose_list_is_too_short() {
    // Two ways from s to t. One channel has a list of 3 entries at most, both have one of 34.
    let more = "[[bridge]]\nname = \"u\"\n[[link]]\nends = [\"s.u\", \"u.s\"]\nrate_mbps = 100\n\
                [[link]]\nends = [\"u.t\", \"t.u\"]\nrate_mbps = 100\n\
                [[device]]\nname = \"short\"\nsupported_list_max = 20\n\
                [[channel]]\nname = \"y\"\ndestination = \"91:e0:f0:00:fe:02\"\n\
                stream_id = 2\nclass = \"scheduled\"\nsize_octets = 64\n\
                interval_ns = 700_000\nfixed_delay_us = 900\ntalker = \"b\"\n\
                listeners = [\"d\"]\n";
    let system = |routing: &str, device: &str| {
        let text = CELL.replace("format = 1", &format!("format = 1\nrouting = \"{routing}\""));
        let named = format!("name = \"s\"\ndevice = \"{device}\"\n");
        loaded(&format!("{}{more}", text.replace("name = \"s\"\n", &named)))
    };
    let lengths = |plan: &Plan| plan.channels.iter().map(|c| c.paths[0].len()).sum::<usize>();
    let errors = plan(&system("shortest", "short"), true).expect_err("too many entries");
    assert!(errors[0].message.ends_with("of at most 20"), "{}", errors[0].message);
    for routing in ["shortest", "load-aware"] {
        let plan = plan(&system(routing, "veth"), true).expect("no limit is known");
        assert_eq!(lengths(&plan), 6, "{routing}");
    }
    let balanced = plan(&system("load-aware", "short"), true).expect("over u there is room");
    assert_eq!(lengths(&balanced), 7);
}
