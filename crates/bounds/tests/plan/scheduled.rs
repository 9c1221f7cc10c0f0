//! Scheduled channels: random systems whose gates the plan computes, in the engine, at their
//! described phases and at any.

use onbeat_bounds::{KeptPlan, PlanDocument, document, plan, plan_and_limits};
use onbeat_model::plan::Plan;
use onbeat_model::system::{Channel, ChannelId, Class, NodeKind, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_net::{Phases, Simulation, simulate};
use onbeat_testkit::Random;
use std::fmt::Write;

/// What was seen over all systems.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    planned: u32,
    refused: u32,
    pub(crate) latencies: u32,
    /// Of them: 95 % of their bound or more. Stacks are not always slow.
    near: u32,
    erring_clocks: u32,
    multicast: u32,
    shaped: u32,
    cut_through: u32,
    slow_stacks: u32,
    /// Frames in queues of scheduled channels.
    waiting: u32,
}

fn clock(random: &mut Random) -> String {
    match random.below(3) {
        0 => String::new(),
        1 => format!("clock = {{ offset_ns = {} }}\n", random.between(-500, 500)),
        _ => format!(
            "clock = {{ offset_ns = {}, drift_ppb = {}, wander_ns = {}, wander_period_ms = 50 }}\n",
            random.between(-300, 300),
            random.between(-20_000, 20_000),
            random.between(0, 200),
        ),
    }
}

fn delay(random: &mut Random) -> String {
    let min = random.between(0, 5_000);
    // A few stacks take longer than an interval, in which a frame may leave at an earlier one.
    let varies = if random.one_in(8) { 1_500_000 } else { 8_000 };
    format!("{{ min = {min}, max = {} }}", min + random.between(0, varies))
}

/// A tree of bridges with hosts; scheduled channels among others.
pub(crate) fn description(random: &mut Random) -> String {
    let mut text =
        "format = 1\nname = \"cell\"\n[run]\nduration_ms = 40\nprotected = true\n".to_owned();
    let (bridges, hosts) = (random.between(1, 4), random.between(3, 7));
    let errs = random.percent(50);
    for bridge in 0..bridges {
        let forwarding = random.between(0, 4_000);
        let _ = writeln!(text, "[[bridge]]\nname = \"b{bridge}\"\nforwarding_ns = {forwarding}");
        let _ = writeln!(text, "cut_through = {}", random.one_in(4));
        text += &if errs { clock(random) } else { String::new() };
        if bridge > 0 {
            let to = random.below(bridge.unsigned_abs());
            let rate = random.one_of(&[100, 1_000]);
            let _ = writeln!(text, "[[link]]\nends = [\"b{bridge}\", \"b{to}\"]");
            let _ = writeln!(text, "rate_mbps = {rate}\npropagation_ns = {}", random.below(500));
        }
    }
    for host in 0..hosts {
        let _ = writeln!(text, "[[host]]\nname = \"h{host}\"\nstack_tx_ns = {}", delay(random));
        let _ = writeln!(text, "stack_rx_ns = {}", delay(random));
        text += &if errs { clock(random) } else { String::new() };
        let to = random.below(bridges.unsigned_abs());
        let _ = writeln!(text, "[[link]]\nends = [\"h{host}\", \"b{to}\"]");
        let _ = writeln!(text, "rate_mbps = {}", random.one_of(&[100, 1_000]));
    }
    for channel in 0..random.between(2, 12) {
        let talker = random.below(hosts.unsigned_abs());
        let listeners: Vec<String> = (0..hosts.unsigned_abs())
            .filter(|host| *host != talker && random.one_in(3))
            .map(|host| format!("\"h{host}\""))
            .collect();
        if listeners.is_empty() {
            continue;
        }
        let class = random.one_of(&["scheduled", "scheduled", "scheduled", "A", "B"]);
        let _ = writeln!(text, "[[channel]]\nname = \"c{channel}\"\nclass = \"{class}\"");
        let _ = writeln!(text, "destination = \"91:e0:f0:00:fe:{channel:02x}\"");
        let _ = writeln!(text, "stream_id = {}\ntalker = \"h{talker}\"", channel + 1);
        let _ = writeln!(text, "listeners = [{}]", listeners.join(", "));
        let _ = writeln!(text, "size_octets = {}", random.between(1, 400));
        let interval = random.one_of(&[250, 500, 1_000, 2_000, 3_000]);
        let _ = writeln!(text, "interval_ns = {interval}_000");
        let _ = writeln!(text, "fixed_delay_us = {}", interval + 2_000);
        if random.one_in(4) {
            let _ = writeln!(text, "phase_ns = {}", random.below(2_000_000));
        }
    }
    if random.percent(60) {
        text += "[[noise]]\nname = \"n\"\nfrom = \"h0\"\nto = \"h1\"\nsize_octets = 1200\n";
        text += "rate_mbps = 50\n";
    }
    text
}

pub(crate) fn check(seed: u64, text: &str, system: &System, plan: &Plan, all: &mut Seen) {
    for phases in [Phases::Described, Phases::Random, Phases::Aligned] {
        let duration = Span::from_ms(40);
        let simulation = Simulation { phases, repetitions: 2, seed, duration };
        let seen = simulate(system, plan, &simulation, &mut |_, _| true).expect("few events");
        for (port, backlogs) in seen.ports.iter().zip(&plan.backlogs) {
            let queue = Class::Scheduled.queue();
            let (frames, octets) =
                (port.queues[queue].deepest_frames, port.queues[queue].deepest_octets);
            let backlog = backlogs[queue].expect("windows of their own");
            assert!(
                u64::from(frames) <= backlog.frames,
                "seed {seed} {phases:?}: {frames}\n{text}"
            );
            assert!(
                u64::from(octets) <= backlog.octets,
                "seed {seed} {phases:?}: {octets}\n{text}"
            );
            all.waiting += frames;
        }
        for (at, (channel, planned)) in system.channels.iter().zip(&plan.channels).enumerate() {
            let flow = &seen.channels[at];
            let what =
                |what: &str| format!("seed {seed} {phases:?} {}: {what}\n{text}", channel.name);
            for (bound, latency) in planned.bounds.iter().zip(&flow.listeners) {
                assert_eq!(flow.released, latency.frames, "{}", what("lost"));
                let (Some(min), Some(max)) = (latency.min, latency.max) else { continue };
                all.latencies += u32::from(planned.launch.is_some());
                let is_near = max.as_ns() * 100 >= bound.total().as_ns() * 95;
                all.near += u32::from(planned.launch.is_some() && is_near);
                assert!(max <= bound.total(), "{}", what(&format!("{max} of {}", bound.total())));
                assert!(min >= bound.best, "{}", what(&format!("{min}, best {}", bound.best)));
            }
        }
    }
}

#[test]
fn frames_of_scheduled_channels_come_in_their_windows_whatever_else_is_sent() {
    let mut all = Seen::default();
    for seed in 0..150 {
        let text = description(&mut Random(seed));
        let system = loaded(&text);
        let is_scheduled = |c: &&Channel| c.class == Class::Scheduled;
        let mut scheduled = system.channels.iter().filter(is_scheduled);
        if scheduled.next().is_none() {
            continue;
        }
        match plan(&system, true) {
            Err(_) => all.refused += 1,
            Ok(plan) => {
                all.planned += 1;
                let cuts = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.cut_through);
                all.cut_through += u32::from(system.nodes.iter().any(|n| cuts(&n.kind)));
                let slow = Span::from_us(250);
                let is_slow =
                    |kind: &NodeKind| matches!(kind, NodeKind::Host(h) if h.stack_tx.max() > slow);
                all.slow_stacks += u32::from(system.nodes.iter().any(|n| is_slow(&n.kind)));
                let errs = system.nodes.iter().any(|node| node.clock != Default::default());
                all.erring_clocks += u32::from(errs);
                all.multicast += u32::from(scheduled.any(|channel| channel.listeners.len() > 1));
                all.shaped +=
                    u32::from(system.channels.iter().any(|c| c.class != Class::Scheduled));
                check(seed, &text, &system, &plan, &mut all);
            }
        }
    }
    println!("{all:?}");
    assert!(all.planned > 80 && all.refused < 60, "{all:?}");
    let drawn = [all.erring_clocks, all.multicast, all.shaped, all.cut_through, all.slow_stacks];
    assert!(drawn.iter().all(|count| *count > 15), "{all:?}");
    assert!(all.near * 2 > all.latencies && all.waiting > 100, "{all:?}");
}

pub(crate) fn loaded(text: &str) -> System {
    let loaded = onbeat_description::load("system.toml", text, &mut |_| Err(String::new()));
    loaded.system.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.diagnostics))
}

/// The plan of a system as a file has it.
fn written(system: &System, plan: &Plan) -> PlanDocument {
    let octets = serde_json::to_vec(&document(system, plan)).expect("JSON");
    PlanDocument::read(&octets).expect("a plan")
}

#[test]
fn an_earlier_plan_is_kept_when_a_channel_goes_changes_or_comes_and_its_windows_are_promises() {
    let (mut all, mut changed, mut held) = (Seen::default(), 0, [0, 0]);
    for seed in 200..250 {
        let text = description(&mut Random(seed));
        let system = loaded(&text);
        let Ok(before) = plan(&system, true) else { continue };
        let kept = KeptPlan::new(&system, &written(&system, &before));
        let (again, _) = plan_and_limits(&system, true, &kept).expect("it was right");
        assert_eq!(again, before, "seed {seed}\n{text}");
        // One more, another interval of the second, another size of the last; the first is gone.
        let earlier = written(&system, &before);
        let mut system = system;
        let (name, stream_id) = ("more".to_owned(), StreamId(99));
        let destination = MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 0xaa]);
        let more = Channel { name, stream_id, destination, ..system.channels[0].clone() };
        system.channels.remove(0);
        if let [second, .., last] = &mut system.channels[..] {
            second.interval = second.interval * 2;
            last.size = Octets::new(last.size.get() + 100);
        }
        system.channels.push(more);
        let kept = KeptPlan::new(&system, &earlier);
        let Ok((after, _)) = plan_and_limits(&system, true, &kept) else { continue };
        changed += 1;
        let [stay, known] = kept.held(&after);
        (held[0], held[1]) = (held[0] + stay, held[1] + known);
        check(seed, &text, &system, &after, &mut all);
    }
    println!("{changed} changed systems, {held:?} channels held; {all:?}");
    assert!(changed > 30 && held[1] > 150 && held[0] * 10 > held[1] * 8, "{changed}, {held:?}");
}

#[test]
fn a_program_that_is_not_told_when_to_write_may_wait_an_interval_longer() {
    let mut compared = 0;
    for seed in 0..20 {
        let text = description(&mut Random(seed));
        let program = "[[program]]\nname = \"p\"\nhost = \"h0\"\ncommand = [\"true\"]\n";
        let [told, untold] = [loaded(&text), loaded(&format!("{text}{program}"))];
        let (Ok(told_plan), Ok(untold_plan)) = (plan(&told, true), plan(&untold, true)) else {
            continue;
        };
        for (id, channel) in (0..).map(ChannelId).zip(&told.channels) {
            let is_its_own = told.node(channel.talker).name == "h0";
            if channel.class != Class::Scheduled || !is_its_own || channel.phase > Span::ZERO {
                continue;
            }
            let [told, untold] = [&told_plan, &untold_plan].map(|plan| plan.channel(id).bound());
            let more = untold.expect("a bound") - told.expect("a bound");
            assert!(more >= channel.interval, "{}: {more}", channel.name);
            compared += 1;
        }
    }
    assert!(compared > 3, "{compared}");
}

/// Two hosts at each of two bridges; a scheduled channel from `a` to `c`.
pub(crate) const CELL: &str = r#"
format = 1
name = "cell"
[run]
duration_ms = 40
[[bridge]]
name = "s"
[[bridge]]
name = "t"
[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "c"
[[host]]
name = "d"
[[link]]
ends = ["a", "s"]
rate_mbps = 100
[[link]]
ends = ["b", "s"]
rate_mbps = 100
[[link]]
ends = ["c", "t"]
rate_mbps = 100
[[link]]
ends = ["d", "t"]
rate_mbps = 100
[[link]]
ends = ["s.t", "t.s"]
rate_mbps = 100
[[channel]]
name = "x"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "scheduled"
size_octets = 64
interval_ns = 1_000_000
fixed_delay_us = 500
talker = "a"
listeners = ["c"]
"#;

/// What the plan says against the cell with something more.
fn refused(more: &str) -> Vec<String> {
    let errors = plan(&loaded(&format!("{CELL}{more}")), true).err().unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}

#[test]
fn what_else_uses_the_queue_on_the_path_excludes_a_scheduled_channel_and_nothing_elsewhere() {
    assert_eq!(refused(""), Vec::<String>::new());
    for shaper in ["idle_slope_bps = { 5 = 2_000_000 }", "asynchronous = [5]"] {
        let errors = refused(&format!("[[port]]\nname = \"s.t\"\n{shaper}\n"));
        assert_eq!(errors, ["scheduled channel `x`: queue 5 of port s.t has a shaper"]);
        assert!(refused(&format!("[[port]]\nname = \"t.s\"\n{shaper}\n")).is_empty());
    }
    let stream = |from: &str, to: &str| {
        refused(&format!(
            "[[stream]]\nname = \"q\"\ntalker = \"{from}\"\nlisteners = [\"{to}\"]\n\
             traffic_class = 5\nframe_octets = 200\ninterval_ns = 10_000_000\n"
        ))
    };
    let errors = ["scheduled channel `x`: stream `q` is in queue 5 of its ports, too"];
    assert_eq!(stream("b", "d"), errors);
    assert!(stream("c", "a").is_empty() && stream("d", "c") == errors);
}

#[test]
fn a_bound_counts_what_a_program_may_write_at_once() {
    let program = "[[program]]\nname = \"p\"\nhost = \"a\"\ncommand = [\"true\"]\n";
    let bound = |keys: &str| {
        let text = CELL.replace("name = \"x\"", &format!("name = \"x\"\n{keys}"));
        let system = loaded(&format!("{text}{program}"));
        let plan = plan(&system, true).expect("it has a plan");
        plan.channels[0].bound().expect("a bound")
    };
    let once = bound("phase_jitter_ns = 10_000");
    assert_eq!(bound("phase_jitter_ns = 0"), once - Span::from_us(10));
    let burst = bound("phase_jitter_ns = 10_000\nburst_messages = 3");
    assert_eq!(burst, once + Span::from_ms(2));
    // Within so much of an interval it may write twice: that is no phase.
    assert_eq!(bound("phase_jitter_ns = 875_000"), bound(""));
}
