//! Interfaces that go and come while programs have channels on them: `ip link` takes them from a
//! talker and a listener, and both are told what docs/links.md says.

use crate::common::TestSystem;
use onbeat::clock::MonoTime;
use onbeat::{Span, interface::Interface};
use onbeat_testkit::{Need, bridged, cable, not_run, within};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process};
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
            if self.lines.buffer().is_empty() {
                let mut pipe = [PollFd::new(self.lines.get_ref(), PollFlags::IN)];
                let limit = Timespec { tv_sec: LONG.as_ns() / 1_000_000_000, tv_nsec: 0 };
                let ready = poll(&mut pipe, Some(&limit)).expect("it waits");
                assert!(ready > 0, "nothing is said, so no `{begin}`: {seen:?}");
            }
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
        (figures(&line), lived)
    }

    /// What it knows of its talker when that is so, with all that has changed until then.
    fn knows(
        &mut self,
        what: &str,
        is_so: impl Fn(&BTreeMap<String, i64>) -> bool,
    ) -> BTreeMap<String, i64> {
        let mut changed = 0;
        loop {
            let line = self.line("live");
            eprintln!("{what}: {line}");
            let mut known = figures(&line);
            changed |= known["changed"];
            if is_so(&known) {
                known.insert("changed".to_owned(), changed);
                return known;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }
}

/// The names and numbers of a line behind its first word.
fn figures(line: &str) -> BTreeMap<String, i64> {
    let words: Vec<_> = line.split_whitespace().skip(1).collect();
    let (pairs, _) = words.as_chunks::<2>();
    let figure = |[name, count]: &[&str; 2]| ((*name).to_owned(), count.parse().expect("a number"));
    pairs.iter().map(figure).collect()
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
    same_number(&hosts, transport, || listener.line(nothing));
    listener.line("ok");
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

/// Another interface with the same number: deleted and made again, or moved to another namespace
/// and back, which AF_XDP does not follow.
fn same_number(hosts: &[OwnedFd; 2], transport: u32, mut is_gone: impl FnMut() -> String) {
    let number = |host| within(host, || Interface::named("eth0")).expect("it is there").index;
    let numbers = hosts.each_ref().map(number);
    let path = |host: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), host.as_raw_fd());
    if transport == 1 {
        take_away(hosts);
        is_gone();
        let [near, far] = numbers;
        let pair =
            format!("index {near} type veth peer eth0 index {far} netns {}", path(&hosts[1]));
        ip(&hosts[0], &format!("link add eth0 {pair}"));
        set_up(hosts);
    } else {
        // Its cable is there as long as both ends are.
        let [elsewhere, _far] = cable().expect("as before");
        ip(&elsewhere, "link delete eth0");
        let away = |host| ip(host, &format!("link set eth0 netns {}", path(&elsewhere)));
        let back = |host| ip(&elsewhere, &format!("link set eth0 netns {}", path(host)));
        away(&hosts[0]);
        is_gone();
        back(&hosts[0]);
        // This one is back before anybody may have looked.
        away(&hosts[1]);
        back(&hosts[1]);
        set_up(hosts);
    }
    assert_eq!(hosts.each_ref().map(number), numbers);
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

const MATCHED: i64 = 1;
const DEADLINE_MISSED: i64 = 2;
const RESTARTED: i64 = 8;
const SECOND_TALKER: i64 = 16;

/// What becomes of a talker, and what a listener with a deadline is told of it.
fn watch(system: &TestSystem, transport: u32) {
    let Ok((_bridge, hosts)) = bridged(3) else {
        return not_run(Need::Namespaces, "a bridge");
    };
    for (host, number) in hosts.iter().zip(1..) {
        ip(host, &format!("address add 10.0.0.{number}/24 dev eth0"));
    }
    let talks = format!("talk write {transport}");
    let mut listener = End::start(system, &hosts[1], &format!("listen watch {transport}"));
    type Known = BTreeMap<String, i64>;
    let is_silent = |known: &Known| known["state"] & DEADLINE_MISSED != 0;
    let is_heard = |known: &Known| !is_silent(known) && known["state"] & MATCHED != 0;
    let known = listener.knows("no talker", is_silent);
    assert_eq!(known["changed"] & MATCHED, 0, "{transport}");
    let talker = End::start(system, &hosts[0], &talks);
    let known = listener.knows("a talker", is_heard);
    assert_eq!(known["changed"] & (MATCHED | RESTARTED), MATCHED, "{transport}");
    talker.signal(Signal::STOP);
    listener.knows("it stands still", is_silent);
    talker.signal(Signal::CONT);
    listener.knows("it continues", is_heard);
    ip(&hosts[0], "link set eth0 down");
    listener.knows("its link is down", is_silent);
    ip(&hosts[0], "link set eth0 up");
    let known = listener.knows("its link is up", is_heard);
    // All of that was one start.
    assert_eq!(known["restarts"], 0, "{transport}");
    talker.signal(Signal::KILL);
    listener.knows("it is killed", is_silent);
    let talker = End::start(system, &hosts[0], &talks);
    let known = listener.knows("it is started again", |known| known["restarts"] > 0);
    assert_eq!((known["restarts"], known["changed"] & RESTARTED), (1, RESTARTED), "{transport}");
    let other = End::start(system, &hosts[2], &talks);
    // Where the first one stands still for long, the other is its successor.
    listener.knows("a second talker", |known| known["changed"] & SECOND_TALKER != 0);
    drop(other);
    drop(talker);
    let known = listener.knows("there is none", is_silent);
    let _other = End::start(system, &hosts[2], &talks);
    let is_another = |later: &Known| is_heard(later) && later["restarts"] > known["restarts"];
    let known = listener.knows("the other one", is_another);
    assert_ne!(known["changed"] & RESTARTED, 0, "{transport}");
    let (heard, _) = listener.end();
    assert!(heard["talker"] > 0 && heard["received"] == heard["ok"], "{transport}: {heard:?}");
}

#[test]
fn a_listener_is_told_what_becomes_of_its_talker_on_every_transport() {
    let system = &program();
    std::thread::scope(|scope| {
        for transport in [0, 1, 2] {
            scope.spawn(move || watch(system, transport));
        }
    });
}
