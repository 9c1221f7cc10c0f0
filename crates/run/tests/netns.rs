//! The two-hosts example on the kernel's own network stack. Where namespaces are not permitted,
//! each test says so and checks that the error says what to do.
#![allow(unsafe_code)]

use onbeat::clock::{MonoTime, pause};
use onbeat_model::record::LoadSample;
use onbeat_model::system::{NodeId, NodeKind, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_run::netns::{self, INTERFACE, KernelNetwork, NetnsError, ipv4_of, ipv6_of};
use onbeat_run::noise::{NoiseNetwork, NoiseOptions, NoiseTraffic};
use onbeat_testkit::{Need, not_run};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::net::SendFlags;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Far longer than anything takes: what comes at all comes before.
const LONG: Duration = Duration::from_secs(60);
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x01, 0x11, 0x42];
const AVTP: [u8; 2] = [0x22, 0xf0];
/// Tells this test program, started by itself, to hold a network until it is killed.
const HOLD: &str = "ONBEAT_TEST_HOLDS_A_NETWORK";

fn two_hosts() -> System {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/01-two-hosts");
    let file = |name: &str| std::fs::read_to_string(example.join(name));
    let text = file("system.toml").expect("the example");
    let mut read = |name: &str| file(name).map_err(|e| e.to_string());
    onbeat_description::load("system.toml", &text, &mut read).system.expect("a valid example")
}

fn node(system: &System, name: &str) -> NodeId {
    NodeId(system.nodes.iter().position(|n| n.name == name).expect("a node") as u32)
}

#[test]
fn bridges_in_a_loop_are_refused_before_anything_is_made() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/04-tsn-ring/system.toml");
    let text = std::fs::read_to_string(path).expect("the example");
    let ring = onbeat_description::load("system.toml", &text, &mut |_| Err(String::new()));
    let error = KernelNetwork::build(&ring.system.expect("a valid example")).expect_err("a loop");
    assert!(matches!(error, NetnsError::Loop { .. }), "{error}");
    assert!(error.to_string().contains("west.north–north.west"), "{error}");
}

/// The network, or none where the machine does not permit it.
fn build(system: &System) -> Option<KernelNetwork> {
    match KernelNetwork::build(system) {
        Ok(network) => Some(network),
        Err(error @ NetnsError::NotPermitted { .. }) => {
            not_run(Need::Namespaces, &error);
            assert!(error.to_string().contains("unshare -Ur onbeat"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let octets = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is valid for the call.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), octets)
    })
    .map(drop)
}

/// A packet socket on the interface of the calling thread's namespace, for all frames.
fn packet_socket() -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls; the descriptor is new and nobody else's.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, kind, i32::from(all)))?)
    };
    // SAFETY: all zero is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index()? as i32;
    let octets = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), octets) })?;
    option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1_i32)?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(LONG),
    )?;
    Ok(socket)
}

/// The index of the interface of the calling thread's namespace.
fn index() -> io::Result<u32> {
    let name = std::ffi::CString::new(INTERFACE).expect("no zero");
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// A frame, and the tag that the kernel took out of it.
fn receive(socket: &OwnedFd) -> io::Result<(Vec<u8>, libc::tpacket_auxdata)> {
    let (mut octets, mut control) = (vec![0_u8; 2_000], [0_u64; 16]);
    let mut part = libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() };
    // SAFETY: all zero is a valid header, and what is then put into it outlives the call. The
    // control message is read only if it is there and of the kind that has this content.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&mut part, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        let got = checked(libc::recvmsg(socket.as_raw_fd(), &mut header, 0) as i32)?;
        octets.truncate(got as usize);
        let first = libc::CMSG_FIRSTHDR(&header);
        assert!(!first.is_null() && (*first).cmsg_type == libc::PACKET_AUXDATA);
        Ok((octets, libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned()))
    }
}

#[test]
fn a_tagged_frame_to_a_group_crosses_both_bridges_as_soon_as_the_network_is_there() {
    let system = two_hosts();
    let Some(network) = build(&system) else { return };
    let (talker, listener) = (node(&system, "talker"), node(&system, "listener"));
    let receiver = network.inside(listener, packet_socket).expect("a socket");
    let sender = network.inside(talker, packet_socket).expect("a socket");
    let NodeKind::Host(host) = &system.node(talker).kind else { panic!("a host") };
    let tag = [0x81, 0x00, 0x60, 0x02]; // priority 3, VLAN 2
    let frame = [&GROUP[..], &host.mac.0, &tag, &AVTP, &[0x5a; 88]].concat();
    let sent = rustix::net::send(&sender, &frame, SendFlags::empty()).expect("sent");
    assert_eq!(sent, frame.len());
    let (octets, tag) = loop {
        let (octets, tag) = receive(&receiver).expect("the frame");
        if octets[..6] == GROUP {
            break (octets, tag);
        }
    };
    assert_eq!(octets, [&GROUP[..], &host.mac.0, &AVTP, &[0x5a; 88]].concat());
    assert_ne!(tag.tp_status & libc::TP_STATUS_VLAN_VALID, 0);
    assert_eq!((tag.tp_vlan_tci, tag.tp_vlan_tpid), (0x6002, 0x8100));
}

/// The octets that arrive at `to` when `from` sends three to it.
fn exchange(from: UdpSocket, to: UdpSocket, address: SocketAddr) -> (Vec<u8>, SocketAddr) {
    to.set_read_timeout(Some(LONG)).expect("a timeout");
    from.send_to(b"abc", address).expect("sent");
    let mut octets = [0; 16];
    let (got, sender) = to.recv_from(&mut octets).expect("received");
    (octets[..got].to_vec(), sender)
}

#[test]
fn udp_reaches_hosts_and_groups_over_ipv4_and_ipv6() {
    let system = two_hosts();
    let Some(network) = build(&system) else { return };
    let (talker, listener) = (node(&system, "talker"), node(&system, "listener"));
    let open =
        |host, address: &str| network.inside(host, || UdpSocket::bind(address)).expect("a socket");
    let port = |socket: &UdpSocket| socket.local_addr().expect("an address").port();

    let to = open(listener, "0.0.0.0:0");
    let address = SocketAddr::from((ipv4_of(listener), port(&to)));
    let (octets, sender) = exchange(open(talker, "0.0.0.0:0"), to, address);
    assert_eq!((&octets[..], sender.ip()), (&b"abc"[..], ipv4_of(talker).into()));

    let to = open(listener, "0.0.0.0:0");
    let group = Ipv4Addr::new(239, 1, 17, 66);
    let joined = network.inside(listener, || to.join_multicast_v4(&group, &ipv4_of(listener)));
    joined.expect("joined");
    let address = SocketAddr::from((group, port(&to)));
    let (octets, sender) = exchange(open(talker, "0.0.0.0:0"), to, address);
    assert_eq!((&octets[..], sender.ip()), (&b"abc"[..], ipv4_of(talker).into()));

    if !Path::new("/proc/sys/net/ipv6").exists() {
        not_run(Need::Machine, "the kernel has no IPv6");
        return;
    }
    let ip = |host| match &system.node(host).kind {
        NodeKind::Host(host) => ipv6_of(host.mac),
        NodeKind::Bridge(_) => panic!("a host"),
    };
    let scope = network.inside(talker, index).expect("an index");
    let group = "ff02::1142".parse::<Ipv6Addr>().expect("an address");
    for destination in [ip(listener), group] {
        let to = open(listener, "[::]:0");
        let joined = network.inside(listener, || to.join_multicast_v6(&group, index()?));
        joined.expect("joined");
        let address = SocketAddrV6::new(destination, port(&to), 0, scope);
        let (octets, sender) = exchange(open(talker, "[::]:0"), to, address.into());
        assert_eq!((&octets[..], sender.ip()), (&b"abc"[..], ip(talker).into()));
    }
}

#[test]
fn noise_arrives_and_is_counted_at_both_ends() {
    let mut system = two_hosts();
    for noise in &mut system.noise {
        (noise.start, noise.interval) = (NetTime::ZERO, Span::from_us(500));
    }
    let Some(network) = build(&system) else { return };
    let until = NetTime::ZERO + Span::from_ms(500);
    let start = MonoTime::now() + Span::from_ms(20);
    let options = NoiseOptions { seed: 1, start, until, load_bin: Span::from_ms(50) };
    let network = NoiseNetwork::Namespaces(&network);
    let traffic = NoiseTraffic::start(network, &system, options).expect("noise");
    (start + Span::from_ms(500)).sleep();
    let load = traffic.finish();
    assert!(load.offered > 0, "{load:?}");
    assert_eq!(load.delivered, load.offered, "{load:?}");
    // 500 ms of 2,000 frames a second and source, with the jitter's spread.
    assert!(load.offered + load.skipped <= 3 * 1_050, "{load:?}");
    let bits = 8 * (1_470 + 28 + 18 + 20);
    let sum = |of: fn(&LoadSample) -> u64| load.samples.iter().map(of).sum::<u64>();
    assert_eq!(load.offered * bits, sum(|s| s.offered_bits));
    assert_eq!(load.delivered * bits, sum(|s| s.delivered_bits));
    let place = |at: usize| (NetTime::ZERO + Span::from_ms(50) * (at / 3) as i64, at as u32 % 3);
    let places: Vec<_> = load.samples.iter().map(|s| (s.at, s.noise.0)).collect();
    assert_eq!(places, (0..places.len()).map(place).collect::<Vec<_>>());
    assert!(places.len() >= 3 * 10, "{load:?}");
}

#[test]
fn noise_that_is_dropped_ends() {
    let system = two_hosts();
    let Some(network) = build(&system) else { return };
    let options = NoiseOptions {
        seed: 1,
        start: MonoTime::now(),
        until: NetTime::MAX,
        load_bin: Span::from_ms(50),
    };
    let network = NoiseNetwork::Namespaces(&network);
    drop(NoiseTraffic::start(network, &system, options).expect("noise"));
}

/// Waits until the interface in `namespace` is gone. Its link partner is in the namespace of a
/// bridge: when the kernel removes that, both ends of the link go.
fn wait_until_unplugged(namespace: BorrowedFd<'_>) {
    let gone = || {
        let look = || netns::enter(namespace).and_then(|()| index());
        let looked = std::thread::scope(|scope| scope.spawn(look).join().expect("no panic"));
        looked.is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV))
    };
    let deadline = MonoTime::now() + Span::from_s(60);
    while !gone() {
        assert!(MonoTime::now() < deadline, "the link is still there");
        pause(Span::from_ms(5));
    }
}

#[test]
fn a_dropped_network_leaves_no_interface() {
    let system = two_hosts();
    let Some(network) = build(&system) else { return };
    let talker = node(&system, "talker");
    let kept = network.namespace(talker).try_clone_to_owned().expect("a descriptor");
    network.inside(talker, index).expect("the interface is there");
    drop(network);
    wait_until_unplugged(kept.as_fd());
}

/// What the next test starts and kills; by itself it does nothing.
#[test]
fn holds_a_network_when_told_to() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let system = two_hosts();
    let network = KernelNetwork::build(&system).expect("a network");
    let descriptor = network.namespace(node(&system, "talker")).as_raw_fd();
    println!("\nholding {descriptor}");
    let _ = io::stdin().lines().count(); // until it is killed
}

/// The network namespaces that processes are in.
fn namespaces_in_use() -> Vec<PathBuf> {
    let processes = Path::new("/proc").read_dir().expect("processes").flatten();
    let link = |process: std::fs::DirEntry| std::fs::read_link(process.path().join("ns/net"));
    let mut namespaces: Vec<PathBuf> = processes.filter_map(|p| link(p).ok()).collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces
}

#[test]
fn a_killed_process_leaves_no_interface() {
    let system = two_hosts();
    if build(&system).is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "holds_a_network_when_told_to", "--nocapture"])
        .env(HOLD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let line = output.lines().map_while(Result::ok).find(|l| l.starts_with("holding "));
    let descriptor = line.expect("a network")["holding ".len()..].to_owned();
    let path = format!("/proc/{}/fd/{descriptor}", child.id());
    let kept = std::fs::File::open(path).expect("its namespace");
    let own = format!("net:[{}]", rustix::fs::fstat(&kept).expect("a file").st_ino);
    child.kill().expect("killed");
    child.wait().expect("its end");
    wait_until_unplugged(kept.as_fd());
    assert!(!namespaces_in_use().contains(&PathBuf::from(own)), "a process is left in it");
}

#[test]
fn without_the_right_to_make_namespaces_the_error_says_what_to_do() {
    let system = two_hosts();
    let built = std::thread::scope(|scope| {
        let build = || {
            // Capabilities are a thread's own; this one ends soon.
            let none = CapabilitySet::empty();
            let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
            rustix::thread::set_capabilities(None, none).expect("fewer rights");
            KernelNetwork::build(&system)
        };
        scope.spawn(build).join().expect("no panic")
    });
    let error = built.expect_err("no right to");
    assert!(matches!(error, NetnsError::NotPermitted { .. }), "{error}");
    assert!(error.to_string().contains("unshare -Ur onbeat"), "{error}");
}
