//! Channels over two network namespaces that a veth pair joins. Where these are not permitted,
//! each test says so.

use onbeat::clock::{MonoTime, pause};
use onbeat::context::{Listener, Talker};
use onbeat::interface::{
    ClockKind, Finding, Interface, InterfaceContext, InterfaceOptions, InterfaceSettings,
    PortState, Synchronisation, TransportKind, ask_ptp4l,
};
use onbeat_model::record::flag;
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::{ChannelError, Timeout};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_testkit::{Need, cable, not_run, run, within};
use rustix::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
const SIZE: Octets = Octets::new(8);

/// Two hosts on one cable; each has one interface, `eth0`.
struct Pair {
    hosts: [OwnedFd; 2],
}

impl Pair {
    /// `None`, after one line that says why, where this is not permitted.
    fn new() -> Option<Self> {
        match Self::build() {
            Ok(pair) => Some(pair),
            Err(error) => {
                not_run(Need::Namespaces, error);
                None
            }
        }
    }

    fn build() -> Result<Self, String> {
        let hosts = cable()?;
        for (number, host) in (1..).zip(&hosts) {
            within(host, || {
                run("ip link set lo up")?;
                // No address that the kernel makes of itself.
                run("ip link set eth0 down")?;
                run("ip link set eth0 addrgenmode none")?;
                run("ip link set eth0 up")?;
                run(&format!("ip addr add 10.0.0.{number}/24 dev eth0"))?;
                run(&format!("ip addr add fe80::{number}/64 dev eth0 nodad"))
            })?;
        }
        Ok(Self { hosts })
    }

    fn context(
        &self,
        host: usize,
        transport: TransportKind,
        options: InterfaceOptions,
    ) -> InterfaceContext {
        let name = "eth0".to_owned();
        let settings = InterfaceSettings { name, transport, options, ..Default::default() };
        within(&self.hosts[host], || InterfaceContext::open(settings))
            .expect("an interface that is up")
    }

    fn talker(&self, host: usize, context: &InterfaceContext, name: &str) -> Talker {
        within(&self.hosts[host], || context.open_talker(name, SIZE)).expect("a talker")
    }

    fn listener(&self, host: usize, context: &InterfaceContext, name: &str) -> Listener {
        within(&self.hosts[host], || context.open_listener(name, SIZE)).expect("a listener")
    }
}

fn channel(stream: u64) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([0x01, 0x00, 0x5e, 0x01, 0x11, 0x42]),
        source: MacAddress::default(),
        stream_id: StreamId(stream),
        vlan: 2,
        pcp: 3,
        size: SIZE,
        integrity: Default::default(),
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(100),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: LONG,
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

fn read(context: &InterfaceContext, listener: &mut Listener) -> [u8; 8] {
    let mut value = [0; 8];
    let until = context.base().now().expect("it has begun") + LONG;
    let info = listener.read(&mut value, Timeout::Until(until)).expect("a network");
    assert_eq!(info.expect("a message").gap, 0);
    value
}

/// What every transport over IP must do, from one host to both.
fn messages_reach_every_reader(transport: TransportKind) {
    let Some(pair) = Pair::new() else { return };
    let contexts = [0, 1].map(|host| pair.context(host, transport, InterfaceOptions::default()));
    for context in &contexts {
        for (name, stream) in [("there", 1), ("back", 2)] {
            context.declare(name, channel(stream)).expect("a channel");
        }
    }
    let [a, b] = &contexts;
    // Two readers on the other host, one on the writer's own.
    let mut readers =
        [pair.listener(1, b, "there"), pair.listener(1, b, "there"), pair.listener(0, a, "there")];
    let (mut answers, mut there) = (pair.listener(0, a, "back"), pair.talker(0, a, "there"));
    let mut back = pair.talker(1, b, "back");
    for number in 0..300_u64 {
        let value = number.to_le_bytes();
        there.write(&value).expect("there is room");
        for reader in &mut readers {
            assert_eq!(read(a, reader), value);
        }
        // The same group, another stream: only its own reader has it.
        back.write(&value).expect("there is room");
        assert_eq!(read(a, &mut answers), value);
    }
    for reader in &mut readers {
        assert_eq!(reader.read(&mut [0; 8], Timeout::None), Ok(None));
    }
}

#[test]
fn over_ipv4_each_message_reaches_every_reader_on_both_hosts_once() {
    messages_reach_every_reader(TransportKind::Udp4);
}

#[test]
fn over_ipv6_each_message_reaches_every_reader_on_both_hosts_once() {
    messages_reach_every_reader(TransportKind::Udp6);
}

#[test]
fn hostile_datagrams_to_the_same_group_and_port_cost_no_message() {
    let Some(pair) = Pair::new() else { return };
    let contexts =
        [0, 1].map(|host| pair.context(host, TransportKind::Udp4, InterfaceOptions::default()));
    for context in &contexts {
        context.declare("there", channel(1)).expect("a channel");
    }
    let [a, b] = &contexts;
    let mut reader = pair.listener(1, b, "there");
    let mut writer = pair.talker(0, a, "there");
    let hostile = within(&pair.hosts[0], || std::net::UdpSocket::bind("10.0.0.1:0"));
    let hostile = hostile.expect("an address");
    // Our stream's identifier in a data unit that claims more than there is, and so on.
    let mut unit = [0; 40];
    unit[4..6].copy_from_slice(&[0x7f, 0x81]);
    unit[15] = 1;
    unit[25] = 200;
    let group =
        (onbeat::interface::ipv4_group(channel(1).destination), onbeat::interface::UDP_PORT);
    for number in 0..100_u64 {
        for length in [0, 3, 4, 20, 40] {
            hostile.send_to(&unit[..length], group).expect("a way there");
        }
        hostile.send_to(&[0xff; 1_400], group).expect("a way there");
        writer.write(&number.to_le_bytes()).expect("there is room");
        assert_eq!(read(a, &mut reader), number.to_le_bytes());
    }
}

#[test]
fn without_an_address_of_ipv4_a_talker_is_refused_with_what_to_do() {
    let Some(pair) = Pair::new() else { return };
    within(&pair.hosts[0], || run("ip addr flush dev eth0")).expect("ours");
    let context = pair.context(0, TransportKind::Udp4, InterfaceOptions::default());
    context.declare("there", channel(1)).expect("a channel");
    let refused = within(&pair.hosts[0], || context.open_talker("there", SIZE));
    let error = refused.expect_err("no address").to_string();
    assert!(error.contains("eth0") && error.contains("has no IPv4 address"), "{error}");
}

// Of 300 octets the header of a stream takes 24; header and tag of the frame do not count.
#[test]
fn a_message_that_is_longer_than_the_mtu_allows_is_refused_when_its_end_is_opened() {
    let Some(pair) = Pair::new() else { return };
    within(&pair.hosts[0], || run("ip link set eth0 mtu 300")).expect("an MTU");
    let context = pair.context(0, TransportKind::Packet, InterfaceOptions::default());
    let sized = |stream, size, replicated| ChannelParameters {
        size: Octets::new(size),
        replicated,
        ..channel(stream)
    };
    let (fits, long, tagged) = (sized(1, 276, false), sized(2, 277, false), sized(3, 276, true));
    for (name, parameters) in [("fits", fits), ("long", long), ("r-tag", tagged)] {
        context.declare(name, parameters).expect("a channel");
    }
    // The kernel takes it.
    let open = |name, size| within(&pair.hosts[0], || context.open_talker(name, Octets::new(size)));
    let mut talker = open("fits", 276).expect("it fits");
    talker.write(&[7; 276]).expect("it is sent");
    for (name, size, longest, mtu) in [("long", 277, 276, 301), ("r-tag", 276, 270, 306)] {
        let reads = within(&pair.hosts[0], || context.open_listener(name, Octets::new(size)));
        let errors = [open(name, size).expect_err("too long"), reads.expect_err("too long")];
        for error in errors.map(|error| error.to_string()) {
            let says = |part: &str| assert!(error.contains(part), "{error}");
            says("eth0");
            says(&format!("with an MTU of 300 octets it may have {longest}"));
            says(&format!("`ip link set eth0 mtu {mtu}`"));
        }
    }
}

/// Says so where a test's interface is down.
fn is_up(name: &str) -> bool {
    let up = Interface::named(name).is_ok_and(|interface| interface.up);
    if !up {
        not_run(Need::Machine, format_args!("interface {name} is down"));
    }
    up
}

/// Tells this test program, started by itself, to open the loopback.
const OPENS: &str = "ONBEAT_TEST_OPENS_THE_LOOPBACK";

/// What a program that opens the loopback and wants launch times does, and says.
#[test]
fn a_program_is_told_once_that_launch_times_and_clock_are_not_what_it_wants() {
    let name = "a_program_is_told_once_that_launch_times_and_clock_are_not_what_it_wants";
    if std::env::var_os(OPENS).is_some() {
        launch_on_the_loopback();
        return;
    }
    if !is_up("lo") {
        return;
    }
    let this = std::env::current_exe().expect("this test");
    let output = Command::new(this)
        .args(["--exact", name, "--nocapture"])
        .env(OPENS, "1")
        .output()
        .expect("this test again");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Operation not permitted") {
        not_run(Need::Machine, "packet sockets are not permitted here");
        return;
    }
    assert!(output.status.success(), "{said}");
    let lines = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    let etf = "onbeat: lo: no etf queueing discipline on CLOCK_TAI (see tc-etf): launch times are \
               kept by software";
    assert_eq!(lines(etf), 1, "{said}");
    let clock = "onbeat: lo: it has no PTP hardware clock: CLOCK_TAI is used";
    assert_eq!(lines(clock), 1, "{said}");
    // No clock is as good as this program wants it.
    assert_eq!(lines("onbeat: lo: messages are marked uncertain (tu)"), 1, "{said}");
}

fn launch_on_the_loopback() {
    let settings = InterfaceSettings {
        name: "lo".to_owned(),
        options: InterfaceOptions {
            launch_time: true,
            timestamps: true,
            ..InterfaceOptions::default()
        },
        clock_error: Span::from_ns(-1),
        ptp4l: PathBuf::from("/nobody/listens/here"),
        ..InterfaceSettings::default()
    };
    let context = InterfaceContext::open(settings).expect("the loopback is up");
    context.declare("there", channel(1)).expect("a channel");
    let mut talker = context.open_talker("there", SIZE).expect("a talker");
    let mut reader = context.open_listener("there", SIZE).expect("a reader");
    for number in 0..20_u64 {
        let at = context.base().now().expect("it has begun") + Span::from_ms(5);
        let capture = talker.write_at(&number.to_le_bytes(), at).expect("the loopback");
        assert!(capture >= at && context.base().now().expect("it has begun") >= at);
        let mut value = [0; 8];
        let until = capture + LONG;
        let info = reader.read(&mut value, Timeout::Until(until)).expect("the loopback");
        let info = info.expect("the message");
        assert_eq!(value, number.to_le_bytes());
        // By the kernel's stamp it did not leave before its time.
        assert!(info.arrived >= at && info.capture == capture);
        assert!(info.flags & flag::UNCERTAIN != 0);
    }
    let verdict = context.base().clock().expect("it has begun").synchronisation();
    assert!(matches!(verdict, Some(Synchronisation::NotSynchronised { .. })), "{verdict:?}");
}

#[test]
fn a_hardware_clock_that_is_not_there_is_refused_with_what_to_do() {
    if !is_up("lo") {
        return;
    }
    let settings = InterfaceSettings {
        name: "lo".to_owned(),
        clock: ClockKind::Hardware,
        ..InterfaceSettings::default()
    };
    let error = InterfaceContext::open(settings).expect_err("no such clock").to_string();
    assert_eq!(error, "interface `lo`: it has no PTP hardware clock: use CLOCK_TAI");
}

/// A ptp4l of ours, ended with the test.
struct Ptp4l(Child);

impl Ptp4l {
    /// On a host's interface, with software time stamps. It may not set this machine's clock: it
    /// has lost the capability to. Its servo's constants make it lock within a second.
    fn start(pair: &Pair, host: usize, socket: &Path, options: &str) -> Self {
        let socket = socket.display();
        let line = format!(
            "--bounding-set -sys_time ptp4l -i eth0 -2 -S -q --logSyncInterval -3 \
             --logMinDelayReqInterval -3 --logAnnounceInterval -2 --pi_proportional_const 0.7 \
             --pi_integral_const 0.3 --uds_address {socket} {options}"
        );
        let mut command = Command::new("setpriv");
        command.args(line.split_whitespace()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(within(&pair.hosts[host], || command.spawn()).expect("setpriv"))
    }
}

impl Drop for Ptp4l {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks in a host's namespace, where ptp4l can answer, until it says what is waited for.
fn wait_for_state(pair: &Pair, host: usize, socket: &Path, state: PortState) -> Span {
    let begun = MonoTime::now();
    loop {
        let answer = within(&pair.hosts[host], || ask_ptp4l(socket, 0));
        if let Ok(status) = &answer
            && status.state == state
        {
            assert_eq!(status.has_grandmaster, state == PortState::Slave);
            return status.offset;
        }
        assert!(MonoTime::now() - begun < LONG, "ptp4l does not become {state}: {answer:?}");
        pause(Span::from_ms(50));
    }
}

#[test]
fn ptp4l_says_slave_and_its_offset_and_the_verdict_follows_it() {
    let there = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(program).exists())
    };
    if !there("ptp4l") || !there("setpriv") {
        not_run(Need::Tools, "ptp4l (linuxptp) or setpriv is not installed");
        return;
    }
    let Some(pair) = Pair::new() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [master, slave] = ["master", "slave"].map(|name| directory.path().join(name));
    let leads = Ptp4l::start(&pair, 0, &master, "--priority1 1");
    let follows = Ptp4l::start(&pair, 1, &slave, "-s");
    wait_for_state(&pair, 0, &master, PortState::Master);
    let offset = wait_for_state(&pair, 1, &slave, PortState::Slave);
    // Both read the same clock; a loaded machine delays time stamps, but not by a second.
    assert!(offset.abs() < Span::from_s(1), "{offset}");
    let other_domain = within(&pair.hosts[1], || ask_ptp4l(&slave, 7));
    assert_eq!(other_domain.expect_err("nobody").kind(), std::io::ErrorKind::TimedOut);

    let settings = InterfaceSettings {
        name: "eth0".to_owned(),
        transport: TransportKind::Udp4,
        clock_error: LONG,
        ptp4l: slave.clone(),
        ..InterfaceSettings::default()
    };
    let context =
        within(&pair.hosts[1], || InterfaceContext::open(settings)).expect("an interface");
    let verdict = || context.base().clock().expect("it has begun").synchronisation();
    let lost = |verdict: &Synchronisation| match verdict {
        Synchronisation::Synchronised { .. } => false,
        Synchronisation::NotSynchronised { reasons } => {
            reasons.iter().any(|reason| matches!(reason, Finding::State(_)))
        }
    };
    // This machine's own clock may have no leap seconds; ptp4l's part of the verdict is good.
    assert!(!lost(&verdict().expect("it is watched")), "{:?}", verdict());
    // Without its master the slave's port leaves that state, and the thread notices.
    drop(leads);
    let begun = MonoTime::now();
    while !verdict().is_some_and(|verdict| lost(&verdict)) {
        assert!(MonoTime::now() - begun < LONG, "nobody notices: {:?}", verdict());
        pause(Span::from_ms(50));
    }
    assert!(context.base().clock().expect("it has begun").is_uncertain());
    drop(follows);
}

#[test]
fn threads_on_an_interface_wake_each_other_and_a_stop_ends_their_waits() {
    if !is_up("lo") {
        println!("there is no loopback interface here: not tested");
        return;
    }
    let settings = InterfaceSettings { name: "lo".to_owned(), ..InterfaceSettings::default() };
    let opened = InterfaceContext::open(settings).expect("the loopback is up");
    let context = onbeat::context::Context::Interface(opened);
    let word = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while word.load(Ordering::Acquire) == 0 {
                assert_eq!(context.wait(&word, 0, Timeout::Endless), Ok(true));
            }
            // Nobody changes it again.
            context.wait(&word, 1, Timeout::Endless)
        });
        let now = context.now().expect("a clock").local;
        let soon = Timeout::Until(now + Span::from_ms(5));
        let unwatched = AtomicU32::new(3);
        assert_eq!(context.wait(&unwatched, 3, soon), Ok(false));
        assert!(context.now().expect("a clock").local >= now + Span::from_ms(5));
        word.store(1, Ordering::Release);
        context.wake(&word).expect("woken");
        context.stop();
        assert_eq!(waiting.join().expect("no panic"), Err(ChannelError::Stopped));
    });
    let now = context.now().expect("a clock").local;
    let at = context.machine_time(now).expect("a clock").expect("the machine's");
    assert!(at <= MonoTime::now());
}
