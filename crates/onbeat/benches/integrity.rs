//! What it costs to write and to check a message, without its way over the network.
//!
//! `cargo bench -p onbeat --bench integrity [-- OCTETS]`

use onbeat::clock::MonoTime;
use onbeat_model::integrity::Integrity;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::listener::{Listener, Reading};
use onbeat_runtime::talker::{ChannelParameters, Talker};

/// Rounds, of which the fastest counts: the others were disturbed.
const ROUNDS: usize = 300;
/// Messages of a round, which is short: another task takes the CPU every few milliseconds.
const MESSAGES: i64 = 1_000;

fn main() {
    let octets: u32 = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(64);
    println!("nanoseconds per message of {octets} octets, fastest of {ROUNDS} rounds");
    println!("{:<16}{:>8}{:>8}", "integrity", "write", "read");
    for integrity in [Integrity::None, Integrity::Crc, Integrity::Authenticated] {
        let [write, read] = costs(integrity, octets);
        println!("{:<16}{write:>8}{read:>8}", integrity.as_str());
    }
}

fn costs(integrity: Integrity, octets: u32) -> [i64; 2] {
    let parameters = ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, 1]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(1),
        vlan: 2,
        pcp: 3,
        size: Octets::new(octets),
        integrity,
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(1),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    };
    let (mut value, mut best) = (vec![7; octets as usize], [i64::MAX; 2]);
    for _ in 0..ROUNDS {
        let (mut talker, mut listener) = (Talker::new(parameters), Listener::new(parameters));
        let mut spent = [0; 2];
        let mut began = MonoTime::now();
        for k in 0..MESSAGES {
            let at = SyncedTime::ZERO + Span::from_us(k);
            talker.write(at, &value, false).expect("within the rate");
            let wrote = MonoTime::now();
            let got =
                listener.accept(talker.frame(), Framing::Ethernet, Reading::at(at), &mut value);
            got.expect("the talker's message");
            let read = MonoTime::now();
            spent[0] += (wrote - began).as_ns();
            spent[1] += (read - wrote).as_ns();
            began = read;
        }
        for (best, spent) in best.iter_mut().zip(spent) {
            *best = (*best).min(spent / MESSAGES);
        }
    }
    best
}
