//! Stations of Network Code on the kernel's network: four hosts on a bridge, each with its program.

use onbeat::MonoTime;
use onbeat::interface::{InterfaceStation, WireCounters};
use onbeat_model::time::Span;
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_testkit::{Need, bridged, not_run, within};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

const ROUNDS: u64 = 40;

/// Begins a round each 10 ms, in which it says by turns whose the shared slot is.
const MASTER: &str = "
station master
output mode[1]
input left[2]
input right[2]
message mode = 1[1]
message left = 2[2]
message right = 3[2]
begin:
    future slots, 6 ms
    sync master
    create mode
    send mode
    halt
slots:
    future begin, 4 ms
    receive left, left
    receive right, right
    halt
";

/// Sends 3 ms later in rounds of its mode.
fn slave(name: &str, id: u8, mode: u8) -> StationProgram {
    program(&format!(
        "
station {name}
output value[2]
input mode[1]
message mode = 1[1]
message value = {id}[2]
begin:
    sync slave, 100 ms
    branch sync_timeout, begin
    future slot, 3 ms
    halt
slot:
    receive mode, mode
    branch not received, begin
    branch mode[0] != {mode}, begin
    create value
    send value
    goto begin
"
    ))
}

/// Hears all.
const MONITOR: &str = "
station monitor
input mode[1]
input left[2]
input right[2]
message mode = 1[1]
message left = 2[2]
message right = 3[2]
begin:
    sync slave, 100 ms
    branch sync_timeout, begin
    future slots, 6 ms
    halt
slots:
    receive mode, mode
    receive left, left
    receive right, right
    goto begin
";

fn program(text: &str) -> StationProgram {
    let assembly = assemble("test.nc", text, AssemblyOptions::default());
    assembly.program.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics))
}

/// What a station was at the end: its counters, those of its wire, and its buffers.
type End = (StationCounters, WireCounters, Vec<Vec<u32>>);

/// What is later is the next slot's.
const LATE_LIMIT: Span = Span::from_ms(2);

/// Executes a program on `eth0`; the first one for [`ROUNDS`], the others until they have waited in
/// vain for another one: then they send no more.
fn execute(program: StationProgram, is_master: bool, ready: &Barrier, over: &AtomicBool) -> End {
    let buffers = program.buffers.len() as u8;
    let mut station =
        InterfaceStation::open("eth0", program, LATE_LIMIT, 1_000).expect("an interface");
    ready.wait();
    let (mut round, mut timeouts) = (0, None);
    loop {
        if is_master {
            let mode = 1 + (round % 2) as u32;
            station.station().write(BufferId(0), &[mode]).expect("its buffer");
            over.fetch_or(round >= ROUNDS, Ordering::Relaxed);
        } else if buffers == 2 {
            let words = [round as u32, !(round as u32)];
            station.station().write(BufferId(0), &words).expect("its buffer");
        }
        let counters = station.station().counters();
        if over.load(Ordering::Relaxed) {
            let before = *timeouts.get_or_insert(counters.sync_timeouts);
            if is_master || counters.sync_timeouts > before {
                break;
            }
        }
        station.step(MonoTime::now() + Span::from_ms(20)).expect("a network");
        let counters = station.station().counters();
        round = counters.rounds_begun.max(counters.rounds_seen);
    }
    ready.wait();
    station.step(MonoTime::now()).expect("a network");
    let read = |station: &InterfaceStation, buffer| station.read(BufferId(buffer)).to_vec();
    let buffers = (0..buffers).map(|buffer| read(&station, buffer)).collect();
    (*station.station().counters(), station.wire_counters(), buffers)
}

/// A station that begins late takes no part in rounds from before.
#[test]
fn the_beginning_of_a_round_from_before_a_station_is_none() {
    let (_bridge, hosts) = match bridged(2) {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let open = |host, program| {
        within(host, || {
            InterfaceStation::open("eth0", program, LATE_LIMIT, 10).expect("an interface")
        })
    };
    let mut listening = open(&hosts[1], slave("left", 2, 1));
    let mut master = open(&hosts[0], program(MASTER));
    let mut begun = || {
        let before = master.wire_counters().rounds;
        while master.wire_counters().rounds == before {
            master.step(MonoTime::now() + Span::from_ms(20)).expect("a network");
        }
    };
    begun();
    listening.begin().expect("a network");
    listening.step(MonoTime::now() + Span::from_ms(1)).expect("a network");
    let seen = |station: &mut InterfaceStation| station.station().counters().rounds_seen;
    assert_eq!(seen(&mut listening), 0);
    begun();
    while seen(&mut listening) == 0 {
        listening.step(MonoTime::now() + Span::from_ms(20)).expect("a network");
        begun();
    }
}

#[test]
fn what_stations_send_all_others_receive_once() {
    let (_bridge, hosts) = match bridged(4) {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let programs = [program(MASTER), slave("left", 2, 1), slave("right", 3, 2), program(MONITOR)];
    let (ready, over) = (Barrier::new(hosts.len()), AtomicBool::new(false));
    let ends: Vec<End> = std::thread::scope(|scope| {
        let both = hosts.iter().zip(programs).enumerate();
        let threads = both.map(|(at, (host, program))| {
            let (ready, over) = (&ready, &over);
            scope.spawn(move || within(host, || execute(program, at == 0, ready, over)))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let sent: Vec<u64> = ends.iter().map(|(_, wire, _)| wire.data).collect();
    assert_eq!((sent[3], ends[0].0.rounds_begun > ROUNDS), (0, true), "{ends:?}");
    for (counters, wire, _) in &ends {
        assert_eq!((counters.traps, counters.damaged, wire.refused), (0, 0, 0), "{ends:?}");
        assert_eq!(counters.second_masters, 0, "{ends:?}");
        let handed_over = wire.data + wire.rounds + wire.missed;
        assert_eq!(counters.data_sent + counters.rounds_begun, handed_over, "{ends:?}");
        let begun = counters.rounds_seen + counters.syncs_discarded;
        assert_eq!(begun + wire.rounds, ends[0].1.rounds, "{ends:?}");
    }
    // The monitor and the master know all messages; the others know the master's alone.
    let heard = |counters: &StationCounters| counters.data_received + counters.data_unknown;
    let all: u64 = sent.iter().sum();
    for ((counters, ..), sent) in ends.iter().zip(&sent) {
        assert_eq!(heard(counters), all - sent, "{ends:?}");
    }
    // A machine that is busy may let a round pass, but not all.
    assert!(sent[1] > 0 && sent[2] > 0, "{ends:?}");
    // Whole messages, of one write each.
    for value in &ends[3].2[1..] {
        assert_eq!(value[1], !value[0], "{ends:?}");
    }
}
