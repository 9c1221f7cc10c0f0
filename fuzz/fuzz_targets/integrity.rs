//! No octets make a reader of checked channels panic, nothing without the key is accepted, and the
//! live channel's next message always is. The input is a frame of the attacker's, or changes of one
//! of the channel's: its first octet says which.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::integrity::Integrity;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::integrity::{Epoch, Guard, KeyRing, Seal};
use onbeat_runtime::listener::{Listener, Reading};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::TAGGED;

const SIZE: usize = 8;

fn parameters(integrity: Integrity) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, 1]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(7),
        vlan: 2,
        pcp: 3,
        replicated: false,
        launch: None,
        size: Octets::new(SIZE as u32),
        integrity,
        talker_address: None,
        interval: Span::from_ms(1),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::from_us(50),
        epoch: 1_700_000_000_000_000_000,
    }
}

/// The attacker's frame: the input, or the channel's frame with its data unit changed by it.
fn forged(octets: &[u8], frame: &[u8]) -> Vec<u8> {
    let Some((kind, octets)) = octets.split_first() else { return Vec::new() };
    if kind % 2 == 0 {
        return octets.to_vec();
    }
    let mut changed = frame.to_vec();
    for (to, by) in changed[TAGGED..].iter_mut().zip(octets) {
        *to ^= by;
    }
    let cut = if kind % 4 == 1 { octets.len() } else { changed.len() };
    changed.truncate(TAGGED + cut.min(changed.len() - TAGGED));
    changed
}

fuzz_target!(|octets: &[u8]| {
    let ms = |count| SyncedTime::ZERO + Span::from_ms(count);
    for integrity in [Integrity::Crc, Integrity::Authenticated] {
        let parameters = parameters(integrity);
        let keys =
            KeyRing::of_one(1, [7; 32]).of_stream(parameters.stream_id, parameters.destination);
        let seal = Seal::new(integrity, Some(keys.clone()), Epoch(5)).expect("keys");
        let guard = Guard::new(integrity, Some(keys), SyncedTime::ZERO).expect("keys");
        let mut talker = Talker::new(parameters).sealed(seal);
        let mut listener = Listener::joining(parameters).guarded(guard);
        let mut value = [0; SIZE];
        talker.write(ms(1), &[9; SIZE], false).expect("the first");
        let first = talker.frame().to_vec();
        let attack = forged(octets, &first);
        let unit = |frame: &[u8]| frame.get(TAGGED..).map(<[u8]>::to_vec);
        let got = listener.accept(&attack, Framing::Ethernet, Reading::at(ms(2)), &mut value);
        // A CRC is no secret: whoever computes it is believed.
        let is_copy =
            unit(&attack).is_some_and(|it| unit(&first).is_some_and(|f| f.starts_with(&it)));
        assert!(got.is_err() || is_copy || integrity == Integrity::Crc);
        talker.write(ms(3), &[9; SIZE], false).expect("the second");
        let reading = Reading::at(ms(3));
        let live = listener.accept(talker.frame(), Framing::Ethernet, reading, &mut value);
        assert!(live.is_ok() || got.is_ok());
        assert!(live.is_err() || value == [9; SIZE]);
    }
});
