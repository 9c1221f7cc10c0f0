//! No octets make the frame parsers panic, a frame that is accepted is written back the same, and a
//! listener takes what is its own once and nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets};
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::listener::{Dropped, Listener, Reading};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Frame, MAX_FRAME, Pdu, emit, unwrap};

/// The listener of a channel to which the data unit belongs, or would but for its size.
fn listener(destination: MacAddress, pdu: &Pdu<'_>, size: usize) -> Listener {
    Listener::new(ChannelParameters {
        destination,
        source: MacAddress::default(),
        stream_id: pdu.stream_id,
        vlan: 2,
        pcp: 3,
        replicated: false,
        launch: None,
        size: Octets::new(size as u32),
        integrity: Default::default(),
        talker_address: None,
        interval: Span::from_ms(1),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    })
}

fn accept(octets: &[u8], framing: Framing, destination: MacAddress, pdu: &Pdu<'_>) {
    let mut value = vec![0; pdu.payload.len()];
    let now = SyncedTime::from_ns(i64::from(pdu.timestamp));
    let mut mine = listener(destination, pdu, value.len());
    let reading = Reading::at(now);
    let first = mine.accept(octets, framing, reading, &mut value);
    assert!(first.is_ok_and(|accepted| accepted.capture == now));
    assert_eq!(value, pdu.payload);
    let again = mine.accept(octets, framing, reading, &mut value);
    assert!(matches!(again, Err(Dropped::Duplicate { .. })));
    let mut longer = vec![0; value.len() + 1];
    let mut other = listener(destination, pdu, longer.len());
    let other = other.accept(octets, framing, reading, &mut longer);
    assert!(matches!(other, Err(Dropped::Rejected(_))));
}

fuzz_target!(|octets: &[u8]| {
    if let Ok(frame) = Frame::parse(octets) {
        let mut again = [0; MAX_FRAME];
        let length = emit(&frame.header, frame.payload, &mut again);
        assert_eq!(Frame::parse(&again[..length]), Ok(frame));
        let destination = unwrap(octets).map(|(ethernet, _)| ethernet.destination);
        assert_eq!(destination, Ok(frame.header.destination));
    }
    if let Ok(pdu) = Pdu::parse(octets) {
        let from = ([10, 0, 0, 1], 17_220).into();
        let framing = Framing::Datagram { from, number: pdu.number.into() };
        accept(octets, framing, MacAddress::default(), &pdu);
    }
    if let Ok((ethernet, unit)) = unwrap(octets)
        && let Ok(pdu) = Pdu::parse(unit)
    {
        accept(octets, Framing::Ethernet, ethernet.destination, &pdu);
    }
});
