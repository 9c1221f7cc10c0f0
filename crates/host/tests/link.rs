//! Channels over two network namespaces that a veth pair joins. Where these are not permitted,
//! each test says so.

use onbeat_host::context::{Listener, Talker};
use onbeat_host::link::{Context, InterfaceSettings, LinkOptions, TransportKind};
use onbeat_host::netns::enter;
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::port::Patience;
use onbeat_runtime::talker::ChannelParameters;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
const SIZE: Octets = Octets::new(8);

/// Two hosts on one cable; each has one interface, `eth0`.
struct Pair {
    hosts: [OwnedFd; 2],
}

/// Runs a command in the calling thread's namespace.
fn run(command: &str) -> Result<(), String> {
    let mut words = command.split(' ');
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Runs in a namespace, on a thread of its own.
fn within<T: Send>(host: &OwnedFd, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter(host.as_fd()).expect("a namespace of ours");
            body()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn new_namespace() -> Result<OwnedFd, String> {
    let thread = std::thread::spawn(|| {
        // SAFETY: only this thread changes its namespace, and it ends here.
        #[allow(unsafe_code)]
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
            .map_err(|error| format!("a network namespace: {error}"))?;
        let file = std::fs::File::open("/proc/thread-self/ns/net").map_err(|e| e.to_string())?;
        Ok(OwnedFd::from(file))
    });
    thread.join().expect("no panic")
}

impl Pair {
    /// `None`, after one line that says why, where this is not permitted.
    fn new() -> Option<Self> {
        match Self::build() {
            Ok(pair) => Some(pair),
            Err(error) => {
                println!("not run: {error}");
                None
            }
        }
    }

    fn build() -> Result<Self, String> {
        let hosts = [new_namespace()?, new_namespace()?];
        let far = format!("/proc/{}/fd/{}", std::process::id(), hosts[1].as_raw_fd());
        within(&hosts[0], || run(&format!("ip link add eth0 type veth peer eth0 netns {far}")))?;
        for (number, host) in (1..).zip(&hosts) {
            within(host, || {
                run("ip link set lo up")?;
                run("ip link set eth0 addrgenmode none")?;
                run("ip link set eth0 up")?;
                run(&format!("ip addr add 10.0.0.{number}/24 dev eth0"))?;
                run(&format!("ip addr add fe80::{number}/64 dev eth0 nodad"))
            })?;
        }
        Ok(Self { hosts })
    }

    fn context(&self, host: usize, transport: TransportKind, options: LinkOptions) -> Context {
        let name = "eth0".to_owned();
        let settings = InterfaceSettings { name, transport, options, ..Default::default() };
        within(&self.hosts[host], || Context::open(settings)).expect("an interface that is up")
    }

    fn talker(&self, host: usize, context: &Context, name: &str) -> Talker {
        within(&self.hosts[host], || context.open_talker(name, SIZE)).expect("a talker")
    }

    fn listener(&self, host: usize, context: &Context, name: &str) -> Listener {
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
        interval: Span::from_us(100),
        tolerance: Span::ZERO,
        fixed_delay: LONG,
        epoch: 0,
    }
}

fn read(context: &Context, listener: &mut Listener) -> [u8; 8] {
    let mut value = [0; 8];
    let until = context.base().now().expect("it has begun") + LONG;
    let info = listener.read(&mut value, Patience::Until(until)).expect("a network");
    assert_eq!(info.expect("a message").gap, 0);
    value
}

/// What every transport over IP must do, from one host to both.
fn messages_reach_every_reader(transport: TransportKind) {
    let Some(pair) = Pair::new() else { return };
    let contexts = [0, 1].map(|host| pair.context(host, transport, LinkOptions::default()));
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
        assert_eq!(reader.read(&mut [0; 8], Patience::None), Ok(None));
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
        [0, 1].map(|host| pair.context(host, TransportKind::Udp4, LinkOptions::default()));
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
        (onbeat_host::link::ipv4_group(channel(1).destination), onbeat_host::link::UDP_PORT);
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
    let context = pair.context(0, TransportKind::Udp4, LinkOptions::default());
    context.declare("there", channel(1)).expect("a channel");
    let refused = within(&pair.hosts[0], || context.open_talker("there", SIZE));
    let error = refused.expect_err("no address").to_string();
    assert!(error.contains("eth0") && error.contains("has no IPv4 address"), "{error}");
}
