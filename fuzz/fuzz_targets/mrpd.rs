//! No datagram makes the reader of mrpd's notices panic, and what an end says in answer has room in
//! a datagram and no octet that ends a command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::interface::srp::mrpd::{DATAGRAM_MAX, MrpdEnd};
use onbeat::interface::srp::{Offer, Request};
use onbeat_model::system::Class;
use onbeat_model::units::{MacAddress, StreamId};
use onbeat_runtime::msrp::TSpec;

fuzz_target!(|octets: &[u8]| {
    let stream = StreamId(1);
    let offer = Offer {
        stream,
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1]),
        class: Class::A,
        vid: 2,
        priority: 3,
        tspec: TSpec { max_frame_size: 224, max_interval_frames: 1 },
    };
    for request in [Request::Advertise(offer), Request::Listen(stream)] {
        let mut end = MrpdEnd::new(request).expect("it is of a stream");
        let mut commands = end.receive(octets);
        commands.extend(end.announce());
        commands.extend(end.receive(octets));
        commands.extend(end.end());
        for command in commands {
            assert!(command.len() < DATAGRAM_MAX && !command.contains(['\0', '\n']));
        }
    }
});
