//! A selector says what a select of the same ends says, whatever comes, is read or is missed.

mod common;

use common::{Hosts, declare, hosts, parameters};
use onbeat::context::{Context, Listener, Talker};
use onbeat::interface::{InterfaceOptions, InterfaceSettings, TransportKind};
use onbeat::selector::Selector;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_runtime::channel_io::{ChannelError, Timeout};

const SIZE: Octets = Octets::new(8);

/// Programs on the two hosts with so many channels, all their ends, and the listeners' selector.
struct Channels {
    left: Context,
    right: Context,
    talkers: Vec<Talker>,
    listeners: Vec<Listener>,
    selector: Selector,
}

impl Channels {
    fn open(hosts: &mut Hosts, transport: TransportKind, count: u64) -> Self {
        let [left, right] = ["talker", "listener"].map(|host| {
            let options = InterfaceOptions { timestamps: true, ..InterfaceOptions::default() };
            let settings = InterfaceSettings { transport, options, ..Default::default() };
            hosts.context_with(host, settings)
        });
        let (mut talkers, mut listeners) = (Vec::new(), Vec::new());
        for stream in 1..=count {
            let name = stream.to_string();
            for context in [&left, &right] {
                declare(context, &name, parameters(stream, 1_000));
            }
            let reader = hosts.inside("listener", || right.open_listener(&name, SIZE));
            listeners.push(reader.expect("a listener"));
            let writer = hosts.inside("talker", || left.open_talker(&name, SIZE));
            talkers.push(writer.expect("a talker"));
        }
        let selector = Selector::new(&right, listeners.iter()).expect("a selector");
        Self { left, right, talkers, listeners, selector }
    }

    fn write(&mut self, at: usize) {
        self.talkers[at].write(&(at as u64).to_le_bytes()).expect("written");
    }

    /// For ever is a minute: what is not told fails the test, and does not hang it.
    fn wait(&mut self, patience: Timeout) -> Option<usize> {
        let minute = self.right.now().expect("the time").local + Span::from_s(60);
        let patience = if patience == Timeout::Endless { Timeout::Until(minute) } else { patience };
        self.selector.wait(|at| &self.listeners[at], patience).expect("no fault")
    }

    fn read(&mut self, at: usize) -> Option<u64> {
        let mut value = [0; 8];
        let read = self.listeners[at].read(&mut value, Timeout::None).expect("no fault");
        read.map(|_| u64::from_le_bytes(value))
    }
}

#[test]
fn the_first_end_that_has_something_is_found_however_often_it_is_asked_for() {
    for transport in [TransportKind::Packet, TransportKind::Udp4] {
        let Some(mut hosts) = hosts() else { return };
        let mut all = Channels::open(&mut hosts, transport, 130);
        assert_eq!(all.wait(Timeout::None), None);
        for at in [129, 70, 70, 3, 64] {
            all.write(at);
        }
        // They are there when the last one is, which comes by the same way.
        while all.wait(Timeout::Endless) != Some(3) {}
        let ends: Vec<&Listener> = all.listeners.iter().collect();
        while all.right.select(&ends[64..65], Timeout::Endless) != Ok(Some(0)) {}
        for (at, value) in [(3, 3), (64, 64), (70, 70), (70, 70), (129, 129)] {
            for _ in 0..2 {
                assert_eq!(all.wait(Timeout::Endless), Some(at));
            }
            assert_eq!(all.read(at), Some(value));
        }
        assert_eq!(all.wait(Timeout::None), None);
        // One that the program has read already is not told.
        all.write(5);
        assert_eq!(all.wait(Timeout::Endless), Some(5));
        assert_eq!((all.read(5), all.wait(Timeout::None)), (Some(5), None));
        all.write(5);
        all.write(6);
        assert_eq!(all.wait(Timeout::Endless), Some(5));
        assert_eq!((all.read(5), all.wait(Timeout::Endless)), (Some(5), Some(6)));
    }
}

#[test]
fn what_came_while_the_program_waited_it_received_when_it_continued() {
    let Some(mut hosts) = hosts() else { return };
    let mut all = Channels::open(&mut hosts, TransportKind::Packet, 3);
    let mut talker = all.talkers.remove(1);
    let (left, right) = (all.left.clone(), all.right.clone());
    let writing = std::thread::spawn(move || {
        let soon = left.now().expect("the time").local + Span::from_ms(30);
        left.sleep_until(soon).expect("slept");
        talker.write(&[1; 8]).expect("written")
    });
    assert_eq!(all.wait(Timeout::Endless), Some(1));
    let continued = right.now().expect("the time").local;
    let capture = writing.join().expect("the writer");
    right.sleep_until(continued + Span::from_ms(5)).expect("slept");
    let info = all.listeners[1].read(&mut [0; 8], Timeout::None).expect("no fault").expect("one");
    assert_eq!(info.capture, capture);
    assert!(info.latency <= continued - capture && info.age >= info.latency + Span::from_ms(5));
}

#[test]
fn each_deadline_that_is_missed_is_told_once_and_again_after_the_next_message() {
    let Some(mut hosts) = hosts() else { return };
    let mut all = Channels::open(&mut hosts, TransportKind::Packet, 80);
    assert_eq!(all.wait(Timeout::None), None, "no deadline is known yet");
    let after = |all: &Channels, ms| {
        Timeout::Until(all.right.now().expect("the time").local + Span::from_ms(ms))
    };
    all.listeners[77].set_deadline(Some(Span::from_ms(20))).expect("set");
    assert_eq!(all.wait(Timeout::Endless), Some(77));
    all.listeners[2].set_deadline(Some(Span::from_ms(20))).expect("set");
    assert_eq!(all.wait(Timeout::Endless), Some(2));
    let patience = after(&all, 60);
    assert_eq!(all.wait(patience), None, "each is told once");
    // A message that is read though nobody was told of it lets its deadline count again.
    all.write(77);
    while all.read(77).is_none() {}
    assert_eq!(all.wait(Timeout::Endless), Some(77));
    assert_eq!(all.read(77), None, "it is the deadline again");
    // With a message that waits no deadline is missed: the program is told of the message.
    all.write(2);
    assert_eq!(all.wait(Timeout::Endless), Some(2));
    let late = all.right.now().expect("the time").local + Span::from_ms(50);
    all.right.sleep_until(late).expect("slept");
    assert_eq!(all.wait(Timeout::Endless), Some(2));
    assert_eq!(all.read(2), Some(2));
    assert_eq!(all.wait(Timeout::Endless), Some(2), "it is over for the next one already");
    assert_eq!(all.read(2), None);
    // A deadline that was set anew, to be earlier.
    all.listeners[2].set_deadline(Some(Span::from_s(3_600))).expect("set");
    let patience = after(&all, 5);
    assert_eq!(all.wait(patience), None);
    all.listeners[2].set_deadline(Some(Span::from_ms(5))).expect("set");
    assert_eq!(all.wait(Timeout::Endless), Some(2));
}

#[test]
fn a_stop_ends_the_wait_and_ends_must_be_there() {
    let Some(mut hosts) = hosts() else { return };
    let mut all = Channels::open(&mut hosts, TransportKind::Packet, 2);
    let none: [&Listener; 0] = [];
    assert!(Selector::new(&all.right, none.into_iter()).is_err());
    let right = all.right.clone();
    let stopping = std::thread::spawn(move || right.stop());
    let stopped = loop {
        match all.selector.wait(|at| &all.listeners[at], Timeout::Endless) {
            Ok(None) => {}
            other => break other,
        }
    };
    assert_eq!(stopped, Err(ChannelError::Stopped));
    stopping.join().expect("stopped");
}
