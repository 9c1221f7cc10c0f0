//! What a frame in flight takes of memory: counted is what the engine has allocated.
#![allow(unsafe_code)] // a counting allocator

#[path = "engine/network.rs"]
#[allow(dead_code, reason = "shared with the other tests, which use all of it")]
mod network;

use network::{Network, every};
use onbeat_model::port::{GateControl, GateEntry, Selection, TokenBucket};
use onbeat_model::system::{Delay, NodeId, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What the design allows for one frame, in octets.
const LIMIT: i64 = 200;
/// A few more than fill the engine's lists, so that they have just doubled: the worst case. A few,
/// because the last ones are not yet where the others wait.
const FRAMES: i64 = (1 << 15) + 100;
/// From one frame to the next, in ns: longer than a frame takes of the wire.
const INTERVAL: i64 = 100;
/// Longer than all of them take.
const SECOND: Span = Span::from_s(1);

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// Counts the octets that each thread holds.
struct Counting;

fn count(octets: i64) {
    // A thread that is ending allocates without being counted.
    let _ = LIVE.try_with(|live| live.set(live.get() + octets));
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two hosts and a bridge between them that holds any number of frames; its port to the second.
fn line() -> (Network, [NodeId; 2], PortId) {
    let mut network = Network::new();
    let hosts = [(); 2].map(|()| network.host());
    let bridge = network.bridge(1_000);
    network.limits(bridge, u32::MAX, u32::MAX);
    network.link(hosts[0], bridge, 10_000, 50);
    let port = network.link(bridge, hosts[1], 10_000, 50);
    (network, hosts, port)
}

/// What has frames wait somewhere in the line.
type Keep = fn(&mut Network, [NodeId; 2], PortId);

/// A gate at `port` that opens only after a second.
fn close(network: &mut Network, port: PortId) {
    let entry = |open, ms| GateEntry { open, span: Span::from_ms(ms) };
    network.plan.ports[port.index()].settings.gates.push(GateControl {
        base: NetTime::ZERO,
        cycle: Span::from_ms(1_001),
        entries: vec![entry(0, 1_000), entry(0xff, 1)],
        length_aware: false,
    });
}

/// A delay of a second.
fn late() -> Delay {
    Delay::Interval { min: SECOND, max: SECOND }
}

/// When as many as wanted are in flight.
fn end() -> NetTime {
    NetTime::from_ns(INTERVAL * FRAMES - 1)
}

/// Lets a stream of the first host release frames that do not arrive; what each takes.
fn per_frame(network: &mut Network, hosts: [NodeId; 2]) -> i64 {
    network.stream(hosts[0], &[hosts[1]], [64, 64], every(INTERVAL));
    network.system.streams[0].regulator =
        Some(TokenBucket { rate: BitRate::from_mbps(10_000), burst: Octets::new(100) });
    let mut engine = network.engine(1, SECOND.as_ns());
    let before = LIVE.get();
    assert_eq!(engine.advance(end()), None);
    let taken = LIVE.get() - before;
    let seen = &engine.observed().streams[0];
    let ended = seen.overflowed + seen.policed + seen.faulted + seen.listeners[0].frames;
    assert_eq!(((seen.released - ended) as i64, ended), (FRAMES, 0));
    taken / FRAMES
}

/// Has the first host send messages, of which none is delivered; what each takes, with its octets.
fn per_message(network: &mut Network, hosts: [NodeId; 2]) -> i64 {
    let channel = network.channel(hosts[0], &[hosts[1]], None);
    let mut engine = network.engine(1, 0);
    let before = LIVE.get();
    for at in 0..FRAMES {
        assert_eq!(engine.advance(NetTime::from_ns(at * INTERVAL)), None);
        engine.send(channel, &[0; 60]);
    }
    assert_eq!(engine.advance(end()), None);
    let taken = LIVE.get() - before;
    assert_eq!(engine.frames_under_way() as i64, FRAMES);
    taken / FRAMES
}

/// Where frames wait: in a host's stack, on a wire, in a queue, in one with a bucket per stream.
#[test]
fn a_frame_under_way_takes_at_most_200_octets_wherever_it_is() {
    let places: [(&str, Keep); 4] = [
        ("stack", |network, hosts, _| network.delays(hosts[0], late(), Delay::Zero, Delay::Zero)),
        ("wire", |network, _, _| network.system.links[0].propagation = SECOND),
        ("queue", |network, _, port| close(network, port)),
        ("asynchronous queue", |network, _, port| {
            close(network, port);
            network.plan.ports[port.index()].settings.selection[4] = Selection::Asynchronous;
        }),
    ];
    for (place, keep) in places {
        let (mut network, hosts, port) = line();
        keep(&mut network, hosts, port);
        let octets = per_frame(&mut network, hosts);
        assert!((24..=LIMIT).contains(&octets), "{octets} octets a frame in a {place}");
    }
}

/// 60 of them are the message itself.
#[test]
fn a_short_message_under_way_takes_at_most_200_octets_with_its_own() {
    let places: [(&str, Keep); 3] = [
        ("talker's stack", |network, hosts, _| {
            network.delays(hosts[0], late(), Delay::Zero, Delay::Zero);
        }),
        ("queue", |network, _, port| close(network, port)),
        ("listener's stack", |network, hosts, _| {
            network.delays(hosts[1], Delay::Zero, late(), Delay::Zero);
        }),
    ];
    for (place, keep) in places {
        let (mut network, hosts, port) = line();
        keep(&mut network, hosts, port);
        let octets = per_message(&mut network, hosts);
        assert!((84..=LIMIT).contains(&octets), "{octets} octets a message in a {place}");
    }
}
