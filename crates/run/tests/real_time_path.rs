//! After set-up, reading and writing on an interface neither allocates nor faults, and costs at
//! most one context switch per message: counted.
#![allow(unsafe_code)]

mod common;

use common::{declare, hosts, parameters};
use onbeat::clock::MonoTime;
use onbeat::interface::{
    InterfaceOptions, InterfaceSettings, InterfaceStation, LOOK_AGAIN, StationEndpoint,
    TransportKind,
};
use onbeat_model::integrity::Integrity;
use onbeat_model::record::Role;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_run::netns::INTERFACE;
use onbeat_runtime::channel_io::{ChannelIo, Timeout};
use onbeat_runtime::launch::LaunchTimes;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::Frame;
use rustix::net::{RecvFlags, SendFlags};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

const SIZE: Octets = Octets::new(8);
const MESSAGES: u64 = 500;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread allocates.
struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending allocates without being counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a thread has used up to now.
#[derive(Clone, Copy, Debug)]
struct Usage {
    allocations: u64,
    faults: i64,
    switches: i64,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: all zeros is a valid `rusage`, and a valid place for the answer.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let allocations = ALLOCATIONS.with(Cell::get);
        let faults = usage.ru_minflt + usage.ru_majflt;
        Self { allocations, faults, switches: usage.ru_nvcsw }
    }

    fn since(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            faults: self.faults - before.faults,
            switches: self.switches - before.switches,
        }
    }
}

/// Counts `MESSAGES` rounds of `act`, after some that do not count.
fn counted(mut act: impl FnMut()) -> Usage {
    for _ in 0..50 {
        act();
    }
    let (before, began) = (Usage::now(), MonoTime::now());
    for _ in 0..MESSAGES {
        act();
    }
    let mut used = Usage::now().since(before);
    // A wait of a tenth of a second looks once whether it is still wanted.
    used.switches -= (MonoTime::now() - began).as_ns() / LOOK_AGAIN.as_ns();
    used
}

fn check(options: InterfaceOptions, switches: u64) {
    check_channel(options, switches, parameters(1, 1_000));
}

fn check_channel(options: InterfaceOptions, switches: u64, channel: ChannelParameters) {
    let Some(mut hosts) = hosts() else { return };
    let keys = tempfile::NamedTempFile::new().expect("a file that only its owner can read");
    std::fs::write(keys.path(), format!("1 {}\n", "5a".repeat(32))).expect("a key");
    // SAFETY: no pointers; like every real-time program, this one locks its memory.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
    let key_file = Some(keys.path().to_owned());
    let settings = InterfaceSettings { options, key_file, ..InterfaceSettings::default() };
    let talker = hosts.context_with("talker", settings.clone());
    let listener = hosts.context_with("listener", settings);
    let channel = ChannelParameters { tolerance: Span::ZERO, ..channel };
    declare(&talker, "c", channel);
    declare(&listener, "c", channel);
    let mut reader = hosts.inside("listener", || listener.open_listener("c", SIZE)).expect("read");
    let mut writer = hosts.inside("talker", || talker.open_talker("c", SIZE)).expect("write");
    let reading = std::thread::spawn(move || {
        let mut value = [0; 8];
        counted(|| {
            reader.read(&mut value, Timeout::Endless).expect("no fault").expect("a message");
        })
    });
    let wrote = counted(|| {
        writer.write(&[7; 8]).expect("written");
    });
    // What the reader has not yet got by its count is not its fault: the talker continues.
    let more = std::thread::spawn(move || while writer.write(&[7; 8]).is_ok() {});
    let read = reading.join().expect("the reader");
    talker.stop();
    more.join().expect("the talker");
    for used in [wrote, read] {
        assert_eq!((used.allocations, used.faults), (0, 0), "{used:?}");
        assert!(used.switches <= (MESSAGES * switches) as i64, "{used:?}");
    }
}

#[test]
fn a_blocking_read_allocates_nothing_and_switches_once_a_message() {
    check(InterfaceOptions::default(), 1);
}

#[test]
fn checked_messages_allocate_nothing_either() {
    for integrity in [Integrity::Crc, Integrity::Authenticated] {
        let channel = ChannelParameters { integrity, ..parameters(1, 1_000) };
        check_channel(InterfaceOptions::default(), 1, channel);
    }
}

#[test]
fn nor_do_replicated_ones_and_those_that_wait_for_their_launch_times() {
    let channel = ChannelParameters { replicated: true, ..parameters(1, 1_000) };
    check_channel(InterfaceOptions::default(), 1, channel);
    // The writer sleeps for the rate, and until the launch time.
    let launch = Some(LaunchTimes { at: Span::from_us(300), lead: Span::from_us(50) });
    let channel = ChannelParameters { launch, ..parameters(1, 1_000) };
    check_channel(InterfaceOptions::default(), 2, channel);
}

#[test]
fn nor_do_several_messages_in_one_call() {
    let Some(mut hosts) = hosts() else { return };
    // SAFETY: no pointers; like every real-time program, this one locks its memory.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
    for transport in [TransportKind::Packet, TransportKind::Udp4] {
        let settings = InterfaceSettings { transport, ..InterfaceSettings::default() };
        let talker = hosts.context_with("talker", settings);
        // All may come at once.
        let tolerance = Span::from_us(1) * 100_000;
        declare(&talker, "c", ChannelParameters { tolerance, ..parameters(1, 1) });
        let mut writer = hosts.inside("talker", || talker.open_talker("c", SIZE)).expect("write");
        let used = std::thread::spawn(move || {
            counted(|| assert_eq!(writer.write_many(&[7; 8 * 20], |_, _| {}).count, 20))
        });
        let used = used.join().expect("the writer");
        assert_eq!((used.allocations, used.faults), (0, 0), "{transport:?}: {used:?}");
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, old: *mut i32) -> i32;
}

/// Calls that are made for each message leave cancellation as it is, for its price.
#[test]
fn no_call_on_the_way_of_a_message_is_a_cancellation_point() {
    let Some(mut hosts) = hosts() else { return };
    for transport in [TransportKind::Packet, TransportKind::Udp4] {
        let options =
            InterfaceOptions { timestamps: true, sent_stamps: true, ..InterfaceOptions::default() };
        let noted = InterfaceSettings { transport, options, ..InterfaceSettings::default() };
        let talker = hosts.context_with("talker", noted.clone());
        let listener = hosts.context_with("listener", noted);
        let plain = InterfaceSettings { transport, ..InterfaceSettings::default() };
        let plain =
            [hosts.context_with("talker", plain.clone()), hosts.context_with("listener", plain)];
        let mut ends = Vec::new();
        for (n, [writes, reads]) in [[&talker, &listener], plain.each_ref()].into_iter().enumerate()
        {
            let channel = parameters(n as u64 + 1, 1_000);
            declare(writes, "c", channel);
            declare(reads, "c", channel);
            let reader = hosts.inside("listener", || reads.open_listener("c", SIZE));
            let writer = hosts.inside("talker", || writes.open_talker("c", SIZE));
            ends.push((writer.expect("a talker"), reader.expect("a listener")));
        }
        let cancelled = std::thread::spawn(move || {
            // SAFETY: this thread is there; what it is told waits until it is asked for, for ever.
            assert_eq!(unsafe { libc::pthread_cancel(libc::pthread_self()) }, 0);
            for (writer, reader) in &mut ends {
                writer.write(&[1; 8]).expect("written");
                assert_eq!(writer.write_many(&[2; 24], |_, _| {}).count, 3);
                for value in [1, 2, 2, 2] {
                    let mut got = [0; 8];
                    reader.read(&mut got, Timeout::Endless).expect("no fault");
                    assert_eq!(got, [value; 8]);
                }
                let soon = reader.io_mut().now().expect("the time").local + Span::from_ms(1);
                assert_eq!(reader.read(&mut [0; 8], Timeout::Until(soon)), Ok(None));
            }
            let mut old = 0;
            // SAFETY: `old` is valid for writing. From now on the thread can end as any other.
            unsafe { pthread_setcancelstate(1, &raw mut old) };
        });
        cancelled.join().expect("a thread that ended itself");
    }
}

#[test]
fn receive_timestamps_change_nothing_of_that() {
    check(InterfaceOptions { timestamps: true, ..InterfaceOptions::default() }, 1);
}

#[test]
fn nor_do_transmit_timestamps() {
    check(InterfaceOptions { sent_stamps: true, ..InterfaceOptions::default() }, 1);
}

#[test]
fn a_reader_that_follows_its_schedule_allocates_nothing() {
    // It sleeps until shortly before the window, and may block after it.
    check(InterfaceOptions { follow_schedule: true, ..InterfaceOptions::default() }, 2);
}

/// Begins a round each 2 ms, sends a message in it and takes one.
const STATION: &str = "
station talker
output value[8]
input answer[8]
message value = 1[8]
message answer = 2[8]
begin:
    future answers, 1 ms
    sync master
    create value
    send value
    halt
answers:
    future begin, 1 ms
    receive answer, answer
    halt
";

fn open(text: &str) -> InterfaceStation {
    let assembly = assemble("a.nc", text, AssemblyOptions::default());
    let program = assembly.program.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics));
    InterfaceStation::open(INTERFACE, program, Span::from_s(1), 10_000).expect("an interface")
}

#[test]
fn a_station_allocates_nothing_and_sleeps_once_a_wait() {
    let Some(mut hosts) = hosts() else { return };
    // SAFETY: no pointers; like every real-time program, this one locks its memory.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
    let mut station = hosts.inside("talker", || open(STATION));
    let words = [7; 8];
    let used = std::thread::spawn(move || {
        let used = counted(|| {
            station.station().write(BufferId(0), &words).expect("its buffer");
            station.step(MonoTime::now() + Span::from_ms(10)).expect("a network");
        });
        (used, station.wire_counters(), station.slot_errors().kept().len() as u64)
    });
    let (used, wire, errors) = used.join().expect("the station");
    assert_eq!((used.allocations, used.faults), (0, 0), "{used:?}");
    assert!(used.switches <= MESSAGES as i64, "{used:?}");
    assert!(wire.data > 0 && wire.rounds > 0, "{wire:?}");
    assert_eq!(errors, wire.data + wire.rounds, "{wire:?}");
}

/// Takes the message in each round.
const HEARS: &str = "
station listener
input value[8]
message value = 1[8]
begin:
    sync slave, 100 ms
    branch sync_timeout, begin
    future take, 500 us
    halt
take:
    receive value, value
    goto begin
";

/// A program writes as often as the station looks: messages wait, replace one another and go, and
/// at the other station they come to a reader that does not read, until its queue is full.
#[test]
fn stations_that_carry_channels_allocate_nothing_either() {
    let Some(mut hosts) = hosts() else { return };
    // SAFETY: no pointers; like every real-time program, this one locks its memory.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
    let parameters = parameters(1, 1_000);
    let [sends, hears] = [("talker", STATION), ("listener", HEARS)]
        .map(|(host, text)| hosts.inside(host, || open(text)));
    let carry = |mut station: InterfaceStation, role| {
        let end = StationEndpoint { buffer: BufferId(0), role, parameters };
        let door = station.carry(&[end], 2_000).expect("its buffer").remove(0);
        (station, door)
    };
    let (mut sends, writer) = carry(sends, Role::Talker);
    let (mut hears, reader) = carry(hears, Role::Listener);
    let mut talker = Talker::new(parameters);
    let is_over = AtomicBool::new(false);
    let (used, counters, heard) = std::thread::scope(|scope| {
        let socket = reader.open().expect("a socket");
        let hearing = scope.spawn(|| {
            let used = counted(|| hears.step(MonoTime::now() + Span::from_ms(20)).expect("heard"));
            is_over.store(true, Ordering::Relaxed);
            (used, hears.wire_counters())
        });
        let socket_of_writer = writer.open().expect("a socket");
        let mut number = 0_u64;
        let mut act = || {
            number += 1;
            let at = SyncedTime::from_ns(number as i64 * 1_000_000);
            talker.write(at, &number.to_le_bytes(), false).expect("in time");
            let flags = SendFlags::DONTWAIT;
            rustix::net::send(socket_of_writer, talker.frame(), flags).expect("sent");
            sends.step(MonoTime::now() + Span::from_ms(10)).expect("a network");
        };
        let used = counted(&mut act);
        while !is_over.load(Ordering::Relaxed) {
            act();
        }
        let (of_reader, wire) = hearing.join().expect("the other station");
        let mut heard = Vec::new();
        let mut packet = [0; 2_000];
        while let Ok((length, _)) = rustix::net::recv(socket, &mut packet, RecvFlags::DONTWAIT) {
            let frame = Frame::parse(&packet[8..length]).expect("a frame");
            heard.push(u64::from_le_bytes(frame.payload[..8].try_into().expect("eight")));
        }
        assert_eq!(wire.rounds, 0);
        ([used, of_reader], sends.channel_counters(), heard)
    });
    for used in used {
        assert_eq!((used.allocations, used.faults), (0, 0), "{used:?}");
    }
    assert!(counters.replaced > 0 && counters.malformed == 0, "{counters:?}");
    assert!(heard.len() > 50 && heard.is_sorted_by(|one, next| one < next), "{heard:?}");
}
