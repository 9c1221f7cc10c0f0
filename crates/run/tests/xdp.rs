//! Channels over AF_XDP, between two network namespaces that a veth pair joins.
#![allow(unsafe_code)] // a counting allocator, and namespaces of one's own

use onbeat::clock::{MonoTime, pause};
use onbeat::context::Context;
use onbeat::interface::{
    Arrival, Interface, InterfaceContext, InterfaceOptions, InterfaceSettings, PacketSocket,
    TransportKind, XdpSocket,
};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::{ChannelError, Timeout};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_testkit::{Need, not_run};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::thread::UnshareFlags;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How many messages are on their way at once, so that no test depends on who runs when.
const WINDOW: usize = 8;
const MESSAGES: u64 = 1_000;
const PACKET: TransportKind = TransportKind::Packet;
const XDP: TransportKind = TransportKind::Xdp;

/// Two network namespaces, `left` and `right`, with the interface `wire` in each; they go with it.
struct Pair {
    left: OwnedFd,
    right: OwnedFd,
}

impl Pair {
    /// Nothing, and a line that says so, where the machine permits none.
    fn new() -> Option<Self> {
        match std::thread::spawn(Self::build).join().expect("no panic") {
            Ok(pair) => Some(pair),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                not_run(Need::Namespaces, error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn build() -> std::io::Result<Self> {
        let [left, right] = [namespace()?, namespace()?];
        let far = format!("/proc/{}/fd/{}", std::process::id(), left.as_raw_fd());
        // This thread is in the right one.
        ip("link add wire type veth peer name far");
        ip(&format!("link set far netns {far}"));
        let pair = Self { left, right };
        pair.inside(&pair.left, || ip("link set far name wire"));
        for (side, address) in [(&pair.left, "10.9.8.1/24"), (&pair.right, "10.9.8.2/24")] {
            pair.inside(side, || {
                ip("link set lo up");
                ip(&format!("address add {address} dev wire"));
                ip("link set wire up");
            });
        }
        Ok(pair)
    }

    fn inside<T: Send>(&self, side: &OwnedFd, what: impl FnOnce() -> T + Send) -> T {
        let run = || {
            onbeat_run::netns::enter(side.as_fd()).expect("entered");
            what()
        };
        std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| {
            std::panic::resume_unwind(panic);
        })
    }

    fn left<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.inside(&self.left, what)
    }

    fn right<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.inside(&self.right, what)
    }
}

fn namespace() -> std::io::Result<OwnedFd> {
    // SAFETY: a network namespace has nothing to do with memory.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
}

fn ip(arguments: &str) {
    let got = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2");
    assert!(got.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&got.stderr));
}

fn has_program() -> bool {
    let got = Command::new("ip").args(["link", "show", "wire"]).output().expect("iproute2");
    let text = String::from_utf8_lossy(&got.stdout).into_owned();
    assert!(got.status.success() && text.contains("wire"), "{text}");
    text.contains("prog/xdp")
}

/// A channel of which all messages may come at once.
fn channel(stream: u64) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([0x01, 0x00, 0x5e, 0x01, 0x11, stream as u8]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(stream),
        vlan: 2,
        pcp: 3,
        size: Octets::new(8),
        integrity: Default::default(),
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(10),
        tolerance: Span::from_us(10) * MESSAGES as i64,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

/// The frame of the channel's next message.
fn frame(channel: &ChannelParameters) -> Vec<u8> {
    let mut talker = Talker::new(*channel);
    talker.write(SyncedTime::ZERO, &[9; 8], false).expect("the first");
    talker.frame().to_vec()
}

fn wire() -> Interface {
    Interface::named("wire").expect("both sides have it")
}

fn xdp_listener(channel: &ChannelParameters) -> std::io::Result<XdpSocket> {
    XdpSocket::listener(&wire(), channel, &InterfaceOptions::default())
}

fn packet_talker() -> PacketSocket {
    PacketSocket::talker(&wire(), &channel(1), &InterfaceOptions::default()).expect("a talker")
}

/// A program with so many channels.
fn context(transport: TransportKind, options: InterfaceOptions, streams: u64) -> Context {
    let settings =
        InterfaceSettings { name: "wire".to_owned(), transport, options, ..Default::default() };
    let context = InterfaceContext::open(settings).expect("opened");
    for stream in 1..=streams {
        context.declare(&stream.to_string(), channel(stream)).expect("declared");
    }
    Context::Interface(context)
}

fn write_all(mut talker: onbeat::context::Talker, window: u64, read: Receiver<()>) {
    for k in 0..MESSAGES {
        if k >= window {
            read.recv().expect("the reader goes on");
        }
        talker.write(&k.to_le_bytes()).expect("written");
    }
}

/// Fails when not all have come by `limit`.
fn read_all(mut listener: onbeat::context::Listener, read: SyncSender<()>, limit: SyncedTime) {
    let mut value = [0; 8];
    for k in 0..MESSAGES {
        let info = listener.read(&mut value, Timeout::Until(limit)).expect("no fault");
        assert_eq!((u64::from_le_bytes(value), info.expect("a message").gap), (k, 0));
        // The writer does not ask for the last ones.
        let _ = read.try_send(());
    }
    let counters = listener.log().shared().counters();
    assert_eq!((counters.received, counters.lost, counters.duplicate), (MESSAGES, 0, 0));
    assert_eq!(counters.rejected, [0; 10]);
}

/// Sends all messages of so many channels from left to right, each end in a thread of its own.
fn all_messages_come(
    from: TransportKind,
    to: TransportKind,
    streams: u64,
    options: InterfaceOptions,
) {
    let Some(pair) = Pair::new() else { return };
    let talking = pair.left(|| context(from, options, streams));
    let listening = pair.right(|| context(to, options, streams));
    let size = Octets::new(8);
    // A veth interface holds 256 frames until its receiver gets a processor, and drops others.
    let window = (WINDOW as u64).min(128 / streams);
    let limit = listening.now().expect("started").local + Span::from_s(60);
    std::thread::scope(|scope| {
        for stream in 1..=streams {
            let name = stream.to_string();
            let (read, goes_on) = sync_channel(MESSAGES as usize);
            let listener = pair.right(|| listening.open_listener(&name, size)).expect("opened");
            let talker = pair.left(|| talking.open_talker(&name, size)).expect("opened");
            scope.spawn(move || read_all(listener, read, limit));
            scope.spawn(move || write_all(talker, window, goes_on));
        }
    });
}

#[test]
fn messages_cross_from_af_packet_to_af_xdp() {
    all_messages_come(PACKET, XDP, 1, InterfaceOptions::default());
}

#[test]
fn messages_cross_from_af_xdp_to_af_packet() {
    all_messages_come(XDP, PACKET, 1, InterfaceOptions::default());
}

#[test]
fn messages_cross_without_a_tag() {
    let options = InterfaceOptions { untagged: true, ..InterfaceOptions::default() };
    all_messages_come(XDP, XDP, 1, options);
}

#[test]
fn a_reader_that_follows_its_schedule_loses_nothing() {
    let options = InterfaceOptions { follow_schedule: true, ..InterfaceOptions::default() };
    all_messages_come(XDP, XDP, 1, options);
}

#[test]
fn eight_streams_at_once_share_an_interface_at_both_ends() {
    all_messages_come(XDP, XDP, 8, InterfaceOptions { ends: 8, ..InterfaceOptions::default() });
}

/// Waits for a frame; a minute without one is a failure.
fn next(socket: &mut XdpSocket, room: &mut [u8]) -> Arrival {
    let came = (0..600).find_map(|_| socket.receive(room).expect("no error"));
    came.expect("a frame")
}

/// Takes all frames that came so far.
fn count(socket: &mut XdpSocket) -> usize {
    let mut room = [0; 1_600];
    std::iter::from_fn(|| socket.try_receive(&mut room).expect("no error")).count()
}

#[test]
fn the_program_passes_the_streams_frames_tagged_or_not_and_nothing_else() {
    let Some(pair) = Pair::new() else { return };
    let channel = channel(0x1122_3344_5566_7788);
    let mut reader = pair.right(|| xdp_listener(&channel)).expect("opened");
    let mut own = pair
        .right(|| XdpSocket::talker(&wire(), &channel, &InterfaceOptions::default()))
        .expect("opened");
    let mut sender = pair.left(packet_talker);
    let good = frame(&channel);
    let mut send = |frame: &[u8]| sender.send(frame, None).expect("sent");
    own.send(&good, None).expect("sent");
    let mut with = |at: usize, octet: u8| {
        let mut other = good.clone();
        other[at] ^= octet;
        send(&other);
    };
    with(0, 2);
    with(5, 1); // destination
    with(12, 1);
    with(17, 1); // types
    with(15, 1); // VLAN
    with(14, 1); // the same, upper part
    with(18, 1); // subtype
    (22..30).for_each(|at| with(at, 0x80)); // stream
    (16..30).for_each(|length| send(&good[..length]));
    // What follows is in order behind all these.
    let mut room = [0; 1_600];
    let bare = [&good[..12], &good[16..]].concat();
    let mut priority_only = good.clone();
    priority_only[15] = 0;
    let long = [&good[..], &[0; 1_000]].concat();
    for whole in [&good, &bare, &priority_only, &long] {
        send(whole);
        let arrival = next(&mut reader, &mut room);
        assert_eq!(&room[..arrival.length], &whole[..]);
        assert_eq!(arrival.stamp, None, "not asked for");
    }
    send(&long);
    let arrival = next(&mut reader, &mut room[..100]);
    assert_eq!(arrival.length, 0, "too long for the buffer");
    assert_eq!(count(&mut reader), 0);
}

#[test]
fn every_frame_is_stamped_when_it_came_however_late_it_is_read() {
    let Some(pair) = Pair::new() else { return };
    let channel = channel(7);
    let options = InterfaceOptions { timestamps: true, ..InterfaceOptions::default() };
    let reader = pair.right(|| XdpSocket::listener(&wire(), &channel, &options));
    let mut reader = reader.expect("opened");
    let mut sender = pair.left(packet_talker);
    let (good, mut room) = (frame(&channel), [0; 1_600]);
    // Often enough that every chunk is used again.
    for _ in 0..300 {
        let mut sent = Vec::new();
        for _ in 0..4 {
            let before = MonoTime::now().as_ns();
            sender.send(&good, None).expect("sent");
            sent.push(before);
        }
        pause(Span::from_us(100));
        for before in sent {
            let stamp = next(&mut reader, &mut room).stamp.and_then(|stamp| stamp.monotonic);
            let stamp = stamp.expect("this driver has room for it");
            assert!(stamp >= before, "{stamp} is before the sending, {before}");
            // The machine may hand a frame over later, but not before it was there.
            assert!(stamp <= MonoTime::now().as_ns(), "{stamp} is later than now");
        }
    }
}

#[test]
fn of_frames_with_another_shape_few_come_through_and_push_nothing_out() {
    let Some(pair) = Pair::new() else { return };
    let options = InterfaceOptions { backlog: 128, ends: 1, ..InterfaceOptions::default() };
    let mut reader = pair.right(|| XdpSocket::listener(&wire(), &channel(1), &options));
    let reader = reader.as_mut().expect("opened");
    let mut sender = pair.left(packet_talker);
    let good = frame(&channel(1));
    let mut room = [0; 1_600];
    // The version, tv, the length, and a message that ends before its length.
    for (at, mask, length) in [(19, 0x10, 64), (19, 1, 64), (39, 1, 64), (0, 0, 49), (0, 0, 41)] {
        let mut bad = good.clone();
        bad[at] ^= mask;
        for _ in 0..512 {
            sender.send(&bad[..length], None).expect("sent");
        }
        sender.send(&good, None).expect("sent");
        let mut sampled = 0;
        while next(reader, &mut room).length != good.len() || room[..good.len()] != good {
            sampled += 1;
        }
        // 8 on average; the chance that this fails is less than one in 10^15.
        assert!(sampled < 60, "{sampled} came through");
    }
}

#[test]
fn other_traffic_still_reaches_the_kernel() {
    let Some(pair) = Pair::new() else { return };
    let _reader = pair.right(|| xdp_listener(&channel(1))).expect("opened");
    let right = pair.right(|| UdpSocket::bind("10.9.8.2:9000")).expect("bound");
    let left = pair.left(|| UdpSocket::bind("10.9.8.1:0")).expect("bound");
    left.send_to(b"hello", "10.9.8.2:9000").expect("sent");
    let mut room = [0; 16];
    let (length, from) = right.recv_from(&mut room).expect("received");
    assert_eq!(&room[..length], b"hello");
    right.send_to(b"back", from).expect("sent");
    assert_eq!(left.recv(&mut room).expect("received"), 4);
}

#[test]
fn an_unread_channel_takes_nothing_from_the_others() {
    let Some(pair) = Pair::new() else { return };
    let options = InterfaceOptions { ends: 4, backlog: 20, ..InterfaceOptions::default() };
    let open = |stream| XdpSocket::listener(&wire(), &channel(stream), &options);
    let mut unread = pair.right(|| [1, 2, 3].map(|stream| open(stream).expect("opened")));
    let mut reader = pair.right(|| open(4)).expect("opened");
    let mut sender = pair.left(packet_talker);
    let mut room = [0; 1_600];
    for _ in 0..200 {
        for stream in 1..=4 {
            sender.send(&frame(&channel(stream)), None).expect("sent");
        }
        next(&mut reader, &mut room);
    }
    for slow in &mut unread {
        assert_eq!(count(slow), 32, "as many as wait for a reader");
    }
    // What they held is there again.
    for _ in 0..200 {
        for (stream, slow) in (1..).zip(&mut unread) {
            sender.send(&frame(&channel(stream)), None).expect("sent");
            next(slow, &mut room);
        }
    }
}

#[test]
fn ends_that_come_and_go_use_up_nothing() {
    let Some(pair) = Pair::new() else { return };
    let options = InterfaceOptions { ends: 2, ..InterfaceOptions::default() };
    let _stays = pair.right(|| XdpSocket::listener(&wire(), &channel(2), &options));
    let mut sender = pair.left(packet_talker);
    let mut room = [0; 1_600];
    for _ in 0..30 {
        let mut reader = pair.right(|| {
            let mut talker = XdpSocket::talker(&wire(), &channel(1), &options).expect("opened");
            talker.send(&frame(&channel(3)), None).expect("sent");
            XdpSocket::listener(&wire(), &channel(1), &options).expect("opened")
        });
        // All but the first are left unread when it goes.
        for _ in 0..12 {
            sender.send(&frame(&channel(1)), None).expect("sent");
        }
        next(&mut reader, &mut room);
    }
    let mut reader = pair.right(|| XdpSocket::listener(&wire(), &channel(1), &options));
    let reader = reader.as_mut().expect("opened");
    for _ in 0..16 {
        sender.send(&frame(&channel(1)), None).expect("sent");
    }
    for _ in 0..16 {
        next(reader, &mut room);
    }
}

#[test]
fn frames_that_could_not_leave_leave_not_later_either() {
    let Some(pair) = Pair::new() else { return };
    let options = InterfaceOptions { ends: 1, ..InterfaceOptions::default() };
    let open = || XdpSocket::talker(&wire(), &channel(1), &options).expect("opened");
    let mut reader = pair.right(|| xdp_listener(&channel(1))).expect("opened");
    let _stays = pair.left(|| XdpSocket::listener(&wire(), &channel(2), &options)).expect("opened");
    let (frame, mut room) = (frame(&channel(1)), [0; 1_600]);
    pair.left(|| ip("link set wire down"));
    let mut talker = pair.left(open);
    // More than there is room for: none of them waits to leave later.
    for _ in 0..20 {
        let error = talker.send(&frame, None).expect_err("the interface is down");
        assert_eq!(error.kind(), std::io::ErrorKind::NetworkDown);
    }
    pair.left(|| ip("link set wire up"));
    for _ in 0..20 {
        talker.send(&frame, None).expect("sent");
        next(&mut reader, &mut room);
    }
    assert_eq!(count(&mut reader), 0);
}

/// More messages in one call than a talker has room for, a tag that is taken off, and an interface
/// that is down: none of those that count as not written leaves later.
#[test]
fn several_messages_at_once_cross_or_do_not_leave() {
    let Some(pair) = Pair::new() else { return };
    let options = InterfaceOptions { untagged: true, ..InterfaceOptions::default() };
    let left = pair.left(|| context(TransportKind::Xdp, options, 1));
    let right = pair.right(|| context(TransportKind::Xdp, InterfaceOptions::default(), 1));
    let size = Octets::new(8);
    let mut reader = pair.right(|| right.open_listener("1", size)).expect("opened");
    let mut talker = pair.left(|| left.open_talker("1", size)).expect("opened");
    let mut expect = |values: std::ops::Range<u8>| {
        for value in values {
            let mut got = [0; 8];
            let info = reader.read(&mut got, Timeout::Endless).expect("no fault").expect("one");
            assert_eq!((got, info.gap), ([value; 8], 0));
        }
        assert_eq!(reader.read(&mut [0; 8], Timeout::None), Ok(None));
    };
    let values = |values: std::ops::Range<u8>| values.flat_map(|value| [value; 8]);
    for first in [0, 12, 24] {
        let many: Vec<u8> = values(first..first + 12).collect();
        assert_eq!(talker.write_many(&many, |_, _| {}).count, 12);
        expect(first..first + 12);
    }
    pair.left(|| ip("link set wire down"));
    let many: Vec<u8> = values(90..120).collect();
    for _ in 0..3 {
        let written = talker.write_many(&many, |_, _| {});
        assert_eq!((written.count, written.outcome), (0, Err(ChannelError::LinkDown)));
    }
    pair.left(|| ip("link set wire up"));
    let many: Vec<u8> = values(36..42).collect();
    // The thread that follows the interface may not know yet.
    while talker.write_many(&many, |_, _| {}).count == 0 {
        onbeat::clock::pause(Span::from_ms(1));
    }
    expect(36..42);
}

#[test]
fn a_reader_is_told_when_its_interface_has_gone() {
    let Some(pair) = Pair::new() else { return };
    let mut reader = pair.right(|| xdp_listener(&channel(1))).expect("opened");
    pair.right(|| ip("link delete wire"));
    let error = reader.receive(&mut [0; 1_600]).expect_err("it has gone");
    assert_eq!(error.kind(), std::io::ErrorKind::NetworkDown);
}

#[test]
fn the_user_is_told_when_frames_come_in_at_several_queues() {
    let Some(pair) = Pair::new() else { return };
    let note = pair.right(|| {
        ip("link add many numrxqueues 2 numtxqueues 2 type veth peer name other");
        ip("link set many up");
        let many = Interface::named("many").expect("made");
        let options = InterfaceOptions { queue: 1, ..InterfaceOptions::default() };
        XdpSocket::listener(&many, &channel(1), &options).expect("opened").note()
    });
    assert!(note.contains("2 receive queues") && note.contains("ethtool"), "{note}");
}

#[test]
fn a_queue_can_be_opened_again_at_once() {
    let Some(pair) = Pair::new() else { return };
    for _ in 0..5 {
        pair.right(|| drop(xdp_listener(&channel(1)).expect("opened")));
    }
    assert!(!pair.right(has_program));
}

#[test]
fn what_cannot_be_opened_is_refused_with_the_reason() {
    let Some(pair) = Pair::new() else { return };
    let refused = |options: InterfaceOptions, stream, why: &str| {
        let got = pair.right(|| XdpSocket::listener(&wire(), &channel(stream), &options));
        let error = got.expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    };
    let options = InterfaceOptions { ends: 2, ..InterfaceOptions::default() };
    refused(InterfaceOptions { queue: 77, ..options }, 1, "no such queue");
    let first = pair.right(|| XdpSocket::listener(&wire(), &channel(1), &options));
    let first = first.expect("opened");
    refused(options, 1, "one reader");
    refused(InterfaceOptions { queue: 1, ..options }, 2, "uses its queue 0 already");
    let _second = pair.right(|| xdp_listener(&channel(2))).expect("opened");
    refused(options, 3, "2 channel ends share its queue already");
    drop(first);
    pair.right(|| xdp_listener(&channel(3))).expect("there is room again");
}

/// Set for the process that [`a_second_process_is_refused_and_a_killed_one_leaves_nothing`] starts.
const SITTER: &str = "ONBEAT_TEST_SITTER";

#[test]
fn a_second_process_is_refused_and_a_killed_one_leaves_nothing() {
    if std::env::var_os(SITTER).is_some() {
        let _end = xdp_listener(&channel(1)).expect("opened");
        println!("\nsitting");
        loop {
            std::thread::park();
        }
    }
    let Some(pair) = Pair::new() else { return };
    let mut sitter = pair.right(|| {
        let name = "a_second_process_is_refused_and_a_killed_one_leaves_nothing";
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(SITTER, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("started")
    });
    let output = BufReader::new(sitter.stdout.take().expect("a pipe"));
    let sits = output.lines().any(|line| line.expect("text") == "sitting");
    assert!(sits, "it ended before");
    assert!(pair.right(has_program));
    let error = pair.right(|| xdp_listener(&channel(2))).expect_err("refused").to_string();
    assert!(error.contains("one process can"), "{error}");
    sitter.kill().expect("killed");
    sitter.wait().expect("ended");
    assert!(!pair.right(has_program));
    let end = pair.right(|| xdp_listener(&channel(1))).expect("free again");
    assert!(pair.right(has_program));
    drop(end);
    assert!(!pair.right(has_program));
}

#[test]
fn the_program_runs_in_the_driver_where_that_can_and_behind_it_elsewhere() {
    let Some(pair) = Pair::new() else { return };
    let reader = pair.right(|| xdp_listener(&channel(1))).expect("opened");
    assert!(reader.mode().native && !reader.mode().zero_copy);
    assert_eq!(reader.note(), "AF_XDP: program in the driver, frames copied");
    let options = InterfaceOptions::default();
    let (mut reader, mut sender) = pair.left(|| {
        let loopback = Interface::named("lo").expect("every namespace has it");
        let reader = XdpSocket::listener(&loopback, &channel(1), &options).expect("opened");
        (reader, PacketSocket::talker(&loopback, &channel(1), &options).expect("opened"))
    });
    assert!(!reader.mode().native && !reader.mode().zero_copy);
    let (frame, mut room) = (frame(&channel(1)), [0; 1_600]);
    sender.send(&frame, None).expect("sent");
    let arrival = next(&mut reader, &mut room);
    assert_eq!(&room[..arrival.length], &frame[..]);
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread allocates.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as this function's caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as this function's caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[test]
fn sending_and_receiving_allocate_nothing() {
    let Some(pair) = Pair::new() else { return };
    let mut reader = pair.right(|| xdp_listener(&channel(1))).expect("opened");
    let options = InterfaceOptions::default();
    let mut writer =
        pair.left(|| XdpSocket::talker(&wire(), &channel(1), &options)).expect("opened");
    let (frame, mut room) = (frame(&channel(1)), [0; 1_600]);
    let before = ALLOCATIONS.get();
    for _ in 0..MESSAGES {
        writer.send(&frame, None).expect("sent");
        next(&mut reader, &mut room);
        assert_eq!(reader.try_receive(&mut room).expect("no error"), None);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
