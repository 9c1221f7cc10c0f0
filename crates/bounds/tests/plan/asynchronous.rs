//! Channels of class asynchronous: schedulers, admission, and random systems in the engine, whose
//! talkers write whenever they may.
//!
//! `ONBEAT_ASYNCHRONOUS_SYSTEMS=20000` runs as many systems.

use crate::build::{Net, two_hosts};
use onbeat_bounds::{difference, document, plan};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::system::{
    Bridge, Channel, ChannelId, Class, Delay, IdleSlopes, NodeKind, PortId, ReservationMode,
    Routing,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_net::{Engine, Options, Output};
use onbeat_testkit::Random;

/// More with ONBEAT_ASYNCHRONOUS_SYSTEMS.
const SYSTEMS: u64 = 400;

/// So many octets of the wire each millisecond.
fn sporadic(channel: &mut Channel, octets: u32) {
    channel.class = Class::Asynchronous;
    channel.size = Octets::new(octets - 66);
    channel.interval = Span::from_ms(1);
    channel.fixed_delay = Class::Asynchronous.fixed_delay();
}

/// Rate in bit/s and burst in octets of each scheduler of the first channel.
fn buckets(net: &Net) -> Vec<(u64, u32)> {
    let plan = plan(&net.0, true).expect("a plan");
    let schedulers = plan.channels[0].schedulers.iter();
    schedulers.map(|at| (at.bucket.rate.as_bps(), at.bucket.burst.get())).collect()
}

fn refused(net: &Net) -> (Vec<Code>, String) {
    let errors: Vec<Diagnostic> = plan(&net.0, true).expect_err("refused");
    let text: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
    (errors.iter().map(|error| error.code).collect(), text.join("\n"))
}

#[test]
fn a_bridge_lets_through_what_the_talker_may_send() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    // 800 bits a millisecond; an eighth of it early, and 40 µs of the stack: 932 bits.
    assert_eq!(buckets(&net), [(800_000, 117); 2]);
    net.0.channels[0].burst = 3;
    assert_eq!(buckets(&net), [(800_000, 317); 2]);
    let plan = plan(&net.0, true).unwrap();
    let planned = &plan.channels[0];
    let label = |port: PortId| net.0.port_label(port);
    let ends = planned.schedulers.iter().map(|at| [label(at.group), label(at.port)]);
    assert_eq!(ends.collect::<Vec<_>>(), [["cat1.p1", "cat1.p2"], ["cat2.p1", "cat2.p2"]]);
    assert_eq!(planned.reserved_rate, BitRate::from_bps(800_000));
    // What a talker's library lets it send needs no scheduler.
    let selected = |port: PortId| plan.ports[port.index()].settings.selection[4];
    let of_path: Vec<_> = planned.paths[0].iter().map(|port| selected(*port)).collect();
    let shaped = [Selection::StrictPriority, Selection::Asynchronous, Selection::Asynchronous];
    assert_eq!(of_path, shaped);
    let shared = planned.paths[0].iter().map(|port| &plan.ports[port.index()]);
    let shared = shared.map(|port| (port.asynchronous_streams, port.asynchronous_rate.as_bps()));
    assert_eq!(shared.collect::<Vec<_>>(), [(1, 800_000); 3]);
}

#[test]
fn clocks_that_run_apart_raise_rates_and_bursts_from_bridge_to_bridge() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    net.node("cat2").clock.drift_ppb = -50_000;
    // 800,000 / 0.99995 is 800,040.002. 117 octets, 4 ns of rounding and 1 ns of a reading at
    // that rate are more than 936 bits.
    assert_eq!(buckets(&net), [(800_000, 117), (800_041, 118)]);
    assert!(plan(&net.0, true).unwrap().channels[0].bound().is_some());
    // 1 ms of a clock's wander, twice, are 1,600 bits at its rate.
    let wander = ClockError {
        wander: Span::from_ms(1),
        wander_period: Span::from_s(100),
        ..ClockError::default()
    };
    net.node("cat2").clock = wander;
    assert_eq!(buckets(&net), [(800_000, 117), (800_000, 318)]);
    // A talker's own clock: 50 ppm more a second.
    net.node("cat2").clock = ClockError::default();
    net.node("h1").clock.drift_ppb = 50_000;
    assert_eq!(buckets(&net)[0].0, 800_040);
}

#[test]
fn no_bound_of_another_class_depends_on_asynchronous_channels() {
    let bounds = |with: bool| {
        let mut net = two_hosts();
        net.channel("b", "h1", &["h2"]).class = Class::B;
        let scheduled = net.channel("s", "h1", &["h2"]);
        (scheduled.class, scheduled.interval) = (Class::Scheduled, Span::from_ms(2));
        if with {
            sporadic(net.channel("x", "h1", &["h2"]), 1_500);
            sporadic(net.channel("y", "h2", &["h1"]), 1_500);
        }
        let plan = plan(&net.0, true).unwrap();
        plan.channels[..3].iter().map(|channel| channel.bounds.clone()).collect::<Vec<_>>()
    };
    assert_eq!(bounds(true), bounds(false));
}

#[test]
fn all_shaped_classes_share_what_may_be_reserved_of_a_port() {
    let mut net = Net::new(&["h1", "h2"], &["b"]);
    net.link("h1", "b", 100_000_000).link("b", "h2", 1_000_000_000);
    let a = net.channel("a", "h1", &["h2"]);
    // 625 octets each 125 µs: 40 Mb/s.
    (a.size, a.interval) = (Octets::new(625 - 66), Span::from_us(125));
    for at in 0..2 {
        let channel = net.channel(["x", "y"][at], "h1", &["h2"]);
        sporadic(channel, 1_000);
        // 8,000 bits: 16 Mb/s, and at the second more.
        channel.interval = Span::from_us(500);
    }
    plan(&net.0, true).expect("72 of 75 Mb/s");
    net.0.channels[2].interval = Span::from_us(420);
    let (codes, text) = refused(&net);
    assert_eq!(codes, [codes::OVERLOADED]);
    let names = "`a` 40 Mb/s, `y` 19.047 Mb/s, `x` 16 Mb/s";
    assert!(text.contains("port h1.p1") && text.contains(names), "{text}");
    // What is left is not raised for deadlines either.
    net.0.channels[2].interval = Span::from_us(500);
    net.0.idle_slopes = IdleSlopes::Deadline;
    net.0.channels[0].fixed_delay = Span::from_us(1);
    let raised = plan(&net.0, true).expect("it fits");
    let slope = raised.ports[0].idle_slope(Class::A).as_bps();
    assert!(slope + 32_000_000 <= 75_000_000, "{slope}");
}

#[test]
fn channels_that_do_not_fit_beside_each_other_take_other_paths() {
    let mut net = Net::new(&["h1", "h2", "h3", "h4"], &["b", "c", "d"]);
    for (a, b) in [("h1", "b"), ("h3", "b"), ("c", "h2"), ("c", "h4")] {
        net.link(a, b, 1_000_000_000);
    }
    for (a, b) in [("b", "c"), ("b", "d"), ("d", "c")] {
        net.link(a, b, 100_000_000);
    }
    for (name, from, to) in [("x", "h1", "h2"), ("y", "h3", "h4")] {
        let channel = net.channel(name, from, &[to]);
        sporadic(channel, 1_000);
        channel.interval = Span::from_us(160);
    }
    assert_eq!(refused(&net).0, [codes::OVERLOADED]);
    net.0.routing = Routing::LoadAware;
    let plan = plan(&net.0, true).expect("by another path");
    let hops: Vec<_> = plan.channels.iter().map(|channel| channel.paths[0].len()).collect();
    assert!(hops == [3, 4] || hops == [4, 3], "{hops:?}");
}

#[test]
fn a_queue_with_credit_is_refused_and_one_with_shaping_of_its_own_is_shared() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    let port = net.0.nodes[net.id("cat1").index()].ports[1].index();
    net.0.ports[port].settings.selection[4] = Selection::Asynchronous;
    assert_eq!(buckets(&net).len(), 2);
    let idle_slope = BitRate::from_mbps(10);
    net.0.ports[port].settings.selection[4] = Selection::CreditBased { idle_slope };
    let (codes, text) = refused(&net);
    assert_eq!(codes, [codes::TOO_LITTLE]);
    assert!(text.contains("queue 4 of port cat1.p2 has an idleSlope"), "{text}");
}

#[test]
fn the_reservation_protocol_has_no_asynchronous_class() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    net.0.run.reservation = ReservationMode::Srp;
    let (codes, text) = refused(&net);
    assert_eq!(codes, [codes::NOT_BY_PROTOCOL]);
    assert!(text.contains("`mcast42` is of class asynchronous"), "{text}");
}

#[test]
fn a_bridge_whose_device_has_no_asynchronous_shaping_is_refused_but_not_a_host() {
    use onbeat_model::device::{Device, DeviceLimits};
    use onbeat_model::diagnostic::Origin;
    let limits = DeviceLimits { asynchronous: Some(false), ..DeviceLimits::UNKNOWN };
    let device = Device { name: "plain".to_owned(), limits, origin: Origin::default() };
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    let [host, bridge] = ["h1", "cat2"].map(|name| net.id(name));
    net.0.devices.insert(host, device.clone());
    plan(&net.0, true).expect("a host needs none");
    net.0.devices.insert(bridge, device);
    let (codes, text) = refused(&net);
    assert_eq!(codes, [codes::DEVICE]);
    assert!(text.contains("port cat2.p2 has asynchronous shaping"), "{text}");
}

#[test]
fn without_protection_an_asynchronous_channel_has_no_scheduler() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    let unprotected = plan(&net.0, false).unwrap();
    assert!(unprotected.channels[0].schedulers.is_empty());
    assert!(unprotected.ports.iter().all(|port| port.asynchronous_streams == 0));
    net.0.channels[0].reserve = false;
    assert_eq!(plan(&net.0, true).unwrap().channels[0].bounds, []);
}

#[test]
fn the_document_has_the_schedulers_and_what_has_changed_of_them() {
    let mut net = two_hosts();
    sporadic(&mut net.0.channels[0], 100);
    let documents = [100, 200].map(|octets| {
        sporadic(&mut net.0.channels[0], octets);
        document(&net.0, &plan(&net.0, true).unwrap())
    });
    let text = serde_json::to_string(&documents[0]).unwrap();
    let all = "\"schedulers\":[{\"port\":\"cat1.p2\",\"group\":\"cat1.p1\",\"rate_bps\":800000,\
               \"burst_octets\":117},";
    assert!(text.contains(all), "{text}");
    assert!(text.contains("\"asynchronous_rate_bps\":800000,\"asynchronous_streams\":1"), "{text}");
    let changes = difference(&documents[0], &documents[1]);
    let told = ["cat1", "cat2", "h1", "h2"];
    assert_eq!(changes.nodes, told);
    let fields = &changes.items[0].fields;
    let scheduler = fields.iter().find(|field| field.what == "scheduler at cat1.p2").unwrap();
    assert_eq!(scheduler.before.as_deref(), Some("800000 bit/s, burst 117 octets"));
}

/// What was seen over all systems.
#[derive(Debug, Default)]
struct Seen {
    systems: u64,
    refused: u64,
    /// Asynchronous channels, per listener.
    channels: u64,
    /// Of them: within 50 %, and 90 %, of their bound.
    near: [u64; 2],
    /// Systems with bridges whose clocks run apart, with gates, with shapers by credit.
    apart: u64,
    gated: u64,
    credit: u64,
    messages: u64,
}

fn system(random: &mut Random) -> Net {
    let hosts = ["h1", "h2", "h3", "h4", "h5"];
    let bridges = &["b1", "b2", "b3", "b4"][..1 + random.index(4)];
    let mut net = Net::new(&hosts, bridges);
    let rates = [100_000_000, 100_000_000, 1_000_000_000];
    let apart = random.percent(50);
    for (at, bridge) in bridges.iter().enumerate() {
        let forwarding = Span::from_ns(random.between(0, 3_000));
        let cut_through = random.one_in(5);
        net.node(bridge).kind =
            NodeKind::Bridge(Bridge { forwarding, cut_through, ..Bridge::default() });
        if apart {
            let wander = Span::from_ns(random.one_of(&[0, 0, 700]));
            net.node(bridge).clock = ClockError {
                drift_ppb: random.between(-100_000, 100_000) as i32,
                wander,
                wander_period: Span::from_ms(20),
                ..ClockError::default()
            };
        }
        if at > 0 {
            net.link(bridge, bridges[random.index(at)], random.one_of(&rates));
        }
    }
    for host in hosts {
        net.link(host, bridges[random.index(bridges.len())], random.one_of(&rates));
        let max = Span::from_ns(random.one_of(&[0, 0, 5_000, 100_000]));
        net.host(host).stack_tx = Delay::Interval { min: Span::ZERO, max };
    }
    for at in 0..2 + random.index(8) {
        let from = random.index(hosts.len());
        let mut others: Vec<_> = (0..hosts.len()).filter(|to| *to != from).collect();
        let mut to = vec![hosts[others.swap_remove(random.index(others.len()))]];
        if random.one_in(3) {
            to.push(hosts[others[random.index(others.len())]]);
        }
        let channel = net.channel(&format!("c{at}"), hosts[from], &to);
        channel.class = match random.below(10) {
            0 => Class::A,
            1 => Class::B,
            2 => Class::Scheduled,
            _ => Class::Asynchronous,
        };
        channel.size = Octets::new(random.between(1, 1_000) as u32);
        channel.interval = match channel.class {
            Class::Scheduled => Span::from_ms(2),
            _ => Span::from_ns(random.between(300_000, 2_000_000)),
        };
        if channel.class != Class::Scheduled {
            channel.burst = random.one_of(&[1, 1, 1, 2, 4]);
        }
    }
    net
}

/// Talkers write as early as they may, or some time later; those of scheduled channels in each
/// interval. The worst latency per channel and listener.
fn run(net: &Net, plan: &Plan, random: &mut Random, seen: &mut Seen) -> Vec<Vec<Span>> {
    let end = NetTime::from_ns(30_000_000);
    let options = Options {
        seed: random.draw(),
        host_delays: true,
        load_bin: Span::from_ms(100),
        noise_until: NetTime::ZERO,
        traffic_until: NetTime::ZERO,
        model_channels: false,
    };
    let mut engine = Engine::new(&net.0, plan, options);
    // Best effort that is in the way wherever it may be.
    engine.meet_best_effort();
    let channels = &net.0.channels;
    let mut due = vec![NetTime::ZERO; channels.len()];
    let mut worst: Vec<_> = channels.iter().map(|c| vec![Span::ZERO; c.listeners.len()]).collect();
    let (mut sent, mut received) = (0, 0);
    for (token, channel) in (0u64..).zip(channels) {
        let first = match channel.class {
            Class::Scheduled => plan.phase(&net.0, ChannelId(token as u32)),
            _ => Span::from_ns(random.one_of(&[0, 0, 1, 100_000, 500_000])),
        };
        engine.alarm(NetTime::ZERO + first, token);
    }
    while let Some(output) = engine.advance(end + Span::from_ms(200)) {
        match output {
            Output::Overfull(overfull) => panic!("{overfull:?}"),
            Output::Woke { token } => {
                let now = engine.now();
                let (at, channel) = (token as usize, &channels[token as usize]);
                let octets = channel.frame().get();
                let mut octets = vec![0; (octets - frame::FCS.get()) as usize];
                octets[..8].copy_from_slice(&now.as_ns().to_le_bytes());
                engine.send(ChannelId(token as u32), &octets);
                sent += channel.listeners.len();
                due[at] = due[at].max(now) + channel.interval;
                let next = match channel.class {
                    Class::Scheduled => now + channel.interval,
                    _ => {
                        let lag = random.one_of(&[0, 0, 0, 0, 0, 1, 50_000, 3_000_000]);
                        (due[at] - channel.tolerance()).max(now) + Span::from_ns(lag)
                    }
                };
                if next < end {
                    engine.alarm(next, token);
                }
            }
            Output::Delivered { channel, listener, .. } => {
                let capture = engine.delivered_frame()[..8].try_into().expect("eight octets");
                let latency = engine.now() - NetTime::from_ns(i64::from_le_bytes(capture));
                let longest = &mut worst[channel.index()][listener];
                *longest = latency.max(*longest);
                received += 1;
            }
        }
    }
    assert_eq!(received, sent, "messages with a reservation were lost");
    seen.messages += received as u64;
    worst
}

#[test]
fn no_sporadic_message_takes_longer_than_its_bound_and_none_is_lost() {
    let systems = std::env::var("ONBEAT_ASYNCHRONOUS_SYSTEMS").ok();
    let systems = systems.and_then(|count| count.parse().ok()).unwrap_or(SYSTEMS);
    let mut seen = Seen::default();
    for seed in 0..systems {
        let mut random = Random(seed);
        let mut net = system(&mut random);
        let Ok(roomy) = plan(&net.0, true) else {
            seen.refused += 1;
            continue;
        };
        for node in &mut net.0.nodes {
            // Queues that just hold what the plan says may be there.
            let queues = node.ports.iter().flat_map(|port| &roomy.backlogs[port.index()]);
            let frames = queues.filter_map(|backlog| Some(backlog.as_ref()?.frames)).max();
            node.queue.frames = frames.unwrap_or(1).max(1) as u32;
        }
        let plan = plan(&net.0, true).expect("it fits");
        let worst = run(&net, &plan, &mut random, &mut seen);
        seen.systems += 1;
        let clock = |node: &onbeat_model::system::Node| node.clock != ClockError::default();
        seen.apart += u64::from(net.0.nodes.iter().any(clock));
        seen.gated += u64::from(plan.ports.iter().any(|port| !port.settings.gates.is_empty()));
        let is_credit = |port: &onbeat_model::plan::PortPlan| port.class_a_streams > 0;
        seen.credit += u64::from(plan.ports.iter().any(is_credit));
        for ((channel, planned), worst) in net.0.channels.iter().zip(&plan.channels).zip(worst) {
            for (bound, worst) in planned.bounds.iter().zip(worst) {
                let (name, total) = (&channel.name, bound.total());
                assert!(worst <= total, "seed {seed}: {name} took {worst}, promised {total}");
                if channel.class == Class::Asynchronous {
                    seen.channels += 1;
                    let per_cent = worst.as_ns() * 100 / total.as_ns();
                    seen.near[0] += u64::from(per_cent >= 50);
                    seen.near[1] += u64::from(per_cent >= 90);
                }
            }
        }
    }
    println!("{seen:?}");
    // If little of it was planned or came near its bound, this test would say little.
    assert!(seen.systems * 2 > systems && seen.channels > 3 * systems, "{seen:?}");
    assert!(seen.near[0] * 4 > seen.channels && seen.near[1] * 50 > seen.channels, "{seen:?}");
    assert!(seen.apart.min(seen.gated).min(seen.credit) * 12 > systems, "{seen:?}");
}
