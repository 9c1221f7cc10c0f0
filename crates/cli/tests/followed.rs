//! Interfaces that go and come while programs have channels on them: `ip link` takes them from a
//! talker and a listener, and both are told what docs/links.md says.

use crate::common::TestSystem;
use onbeat::clock::MonoTime;
use onbeat::{Span, interface::Interface};
use onbeat_testkit::{Need, cable, not_run, within};
use rustix::fd::{AsRawFd, OwnedFd};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// For something that takes moments.
const LONG: Span = Span::from_s(60);
/// Between two messages of the program's channel, in milliseconds.
const EVERY_MS: i64 = 5;
/// The address of an interface that another one replaces.
const OTHER: &str = "02:00:00:00:00:99";

/// A process of the test's program in a namespace, ended with its value.
struct End {
    child: Child,
    lines: BufReader<ChildStdout>,
    begun: MonoTime,
}

impl End {
    fn start(system: &TestSystem, host: &OwnedFd, arguments: &str) -> Self {
        let mut command = Command::new(system.path().join("build/link_end"));
        command.args(arguments.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = within(host, || command.spawn().expect("it starts"));
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, lines, begun: MonoTime::now() }
    }

    /// The next line that begins so; how long it may take is generous.
    fn line(&mut self, begin: &str) -> String {
        let (asked, mut seen) = (MonoTime::now(), Vec::new());
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).expect("text");
            assert!(length > 0, "it ended without `{begin}`: {seen:?}");
            if line.starts_with(begin) {
                assert!(MonoTime::now() - asked < LONG, "{begin}: {seen:?}");
                return line;
            }
            seen.push(line);
        }
    }

    /// Lets it end: what it counted, and for how many milliseconds it was there.
    fn end(mut self) -> (BTreeMap<String, i64>, i64) {
        drop(self.child.stdin.take());
        let line = self.line("end");
        let lived = (MonoTime::now() - self.begun).as_ns() / 1_000_000;
        assert!(self.child.wait().expect("it ends").success());
        let words: Vec<_> = line.split_whitespace().skip(1).collect();
        let (pairs, _) = words.as_chunks::<2>();
        let counted = pairs
            .iter()
            .map(|[name, count]| ((*name).to_owned(), count.parse().expect("a number")));
        (counted.collect(), lived)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ip(host: &OwnedFd, command: &str) {
    within(host, || onbeat_testkit::run(&format!("ip {command}"))).expect("ip");
}

/// Gives both interfaces the addresses that datagrams need, and sets them up.
fn set_up(hosts: &[OwnedFd; 2]) {
    for (host, number) in hosts.iter().zip(1..) {
        ip(host, &format!("address add 10.0.0.{number}/24 dev eth0"));
        ip(host, &format!("address add fd00::{number}/64 dev eth0 nodad"));
        ip(host, "link set eth0 up");
    }
}

/// Deletes the cable of both hosts.
fn take_away(hosts: &[OwnedFd; 2]) {
    ip(&hosts[0], "link delete eth0");
}

/// Makes another cable between both hosts; the talker's interface is as `like` says.
fn bring_back(hosts: &[OwnedFd; 2], like: &str) {
    let far = format!("/proc/{}/fd/{}", std::process::id(), hosts[1].as_raw_fd());
    ip(&hosts[0], &format!("link add eth0 {like} type veth peer eth0 netns {far}"));
    set_up(hosts);
}

fn program() -> TestSystem {
    let system = TestSystem::new("");
    system.program("link_end.c", "link_end");
    system
}

/// What happens to the cable: how it goes away, and how it comes back.
type Event = (fn(&[OwnedFd; 2]), fn(&[OwnedFd; 2]));

const EVENTS: [Event; 4] = [
    // The talker's interface goes down, and the listener's has no carrier.
    (
        |hosts| ip(&hosts[0], "link set eth0 down"),
        |hosts| {
            ip(&hosts[0], "link set eth0 up");
            ip(&hosts[0], "address replace fd00::1/64 dev eth0 nodad");
        },
    ),
    // The same of the listener's.
    (|hosts| ip(&hosts[1], "link set eth0 down"), |hosts| ip(&hosts[1], "link set eth0 up")),
    (take_away, |hosts| {
        let address = within(&hosts[0], || Interface::named("eth0"));
        assert!(address.is_err(), "it has gone");
        bring_back(hosts, "address 02:00:00:00:00:01");
    }),
    (take_away, |hosts| bring_back(hosts, &format!("address {OTHER}"))),
];

/// Goes through the events with a talker and a listener that wait as these words say.
fn go_through(system: &TestSystem, transport: u32, talks: &str, hears: &str) {
    let hosts = cable().expect("as before");
    ip(&hosts[0], "link set eth0 address 02:00:00:00:00:01");
    set_up(&hosts);
    let nothing = if hears == "poll" { "empty" } else { "timed_out" };
    let mut listener = End::start(system, &hosts[1], &format!("listen {hears} {transport}"));
    listener.line(nothing);
    let mut talker = End::start(system, &hosts[0], &format!("talk {talks} {transport}"));
    talker.line("ok");
    listener.line("ok");
    for (goes, comes) in EVENTS {
        goes(&hosts);
        talker.line("link_down");
        listener.line(nothing);
        comes(&hosts);
        talker.line("ok");
        listener.line("ok");
    }
    let (said, there) = talker.end();
    let (heard, listened) = listener.end();
    let all = format!("{transport} {talks} {hears}: {said:?} in {there} ms, {heard:?}");
    let of = |counts: &BTreeMap<String, i64>, name: &str| counts[name];
    assert_eq!(of(&said, "sent"), of(&said, "ok"), "{all}");
    assert_eq!(of(&heard, "received"), of(&heard, "ok"), "{all}");
    // Until a talker knows of a listener's end that is down, a full queue may be what it is told.
    let (sent, full) = (of(&said, "sent"), of(&said, "network"));
    assert_eq!(sent + full, of(&heard, "received") + of(&heard, "lost"), "{all}");
    for name in ["link_down", "network", "other", "talker"] {
        assert_eq!(of(&heard, name), 0, "{name}: {all}");
    }
    assert_eq!((of(&said, "other"), of(&said, "timed_out")), (0, 0), "{all}");
    // Nobody was let through sooner than by rate, sleeps and time-outs.
    let calls = |counts: &BTreeMap<String, i64>, names: &[&str]| {
        names.iter().map(|name| counts[*name]).sum::<i64>()
    };
    assert!(calls(&said, &["ok", "link_down", "network"]) <= there / EVERY_MS + 2, "{all}");
    assert!(of(&heard, "timed_out") <= listened / 200 + 2, "{all}");
    // One that a descriptor wakes for nothing is woken once for each change.
    let empty = if hears == "poll" { listened / EVERY_MS + 2 } else { 50 };
    assert!(of(&heard, "empty") <= empty, "{all}");
    assert!(of(&said, "cpu") < there * 1_000 / 2, "{all}");
    assert!(of(&heard, "cpu") < listened * 1_000 / 2, "{all}");
}

/// Each pair of a talker and a listener beside the others.
fn follow(transport: u32, pairs: &[[&str; 2]]) {
    if let Err(why) = cable() {
        return not_run(Need::Namespaces, why);
    }
    let system = &program();
    std::thread::scope(|scope| {
        for [talks, hears] in pairs {
            scope.spawn(move || go_through(system, transport, talks, hears));
        }
    });
}

#[test]
fn frames_come_again_by_af_packet_when_the_interface_does() {
    follow(0, &[["write", "read"], ["try", "epoll"], ["at", "select"], ["wait", "poll"]]);
}

#[test]
fn frames_come_again_by_af_xdp_when_the_interface_does() {
    follow(1, &[["write", "read"], ["try", "epoll"], ["at", "timeout"], ["wait", "select"]]);
}

#[test]
fn datagrams_come_again_when_the_interface_does() {
    follow(2, &[["write", "timeout"], ["try", "epoll"], ["at", "poll"]]);
    follow(3, &[["write", "read"], ["try", "epoll"]]);
}

#[test]
fn an_interface_that_comes_back_too_short_says_so_until_it_is_not() {
    if let Err(why) = cable() {
        return not_run(Need::Namespaces, why);
    }
    let system = program();
    for transport in [0, 1, 2, 3] {
        let hosts = cable().expect("as before");
        set_up(&hosts);
        let mut listener = End::start(&system, &hosts[1], &format!("listen read {transport} 1300"));
        listener.line("timed_out");
        let mut talker = End::start(&system, &hosts[0], &format!("talk write {transport} 1300"));
        listener.line("ok");
        take_away(&hosts);
        let far = format!("/proc/{}/fd/{}", std::process::id(), hosts[1].as_raw_fd());
        // IPv6 needs 1280.
        let mtu = "mtu 1290";
        ip(&hosts[0], &format!("link add eth0 {mtu} type veth peer eth0 {mtu} netns {far}"));
        set_up(&hosts);
        for end in [&mut talker, &mut listener] {
            let said = end.line("network");
            assert!(said.contains("too long for the interface's MTU"), "{transport}: {said}");
        }
        // First that of the listener, for which nothing may be too long that is sent.
        hosts.iter().rev().for_each(|host| ip(host, "link set eth0 mtu 1500"));
        talker.line("ok");
        listener.line("ok");
        let (said, _) = talker.end();
        let (heard, _) = listener.end();
        assert_eq!(heard["received"] + heard["lost"], said["sent"], "{said:?} {heard:?}");
    }
}
