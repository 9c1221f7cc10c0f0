//! No octets make the reader of stations' frames panic, and a frame that is read is written the
//! same. A station holds whatever its program's words are, and whatever comes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::units::MacAddress;
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};
use onbeat_runtime::network_code::program::{Buffer, BufferRole, MessageFormat, StationProgram};
use onbeat_runtime::network_code::station::{Observer, Station, Transmission};
use onbeat_runtime::network_code::timing::{Cycles, Medium};
use onbeat_runtime::network_code::trace::TraceEntry;
use onbeat_runtime::network_code::wire::{
    FRAME_MAX, FrameContent, StationFrame, emit_data, emit_round,
};

/// Instants only increase.
#[derive(Default)]
struct Order {
    issued: Cycles,
    sent: Cycles,
}

impl Observer for Order {
    fn trace(&mut self, entry: TraceEntry) {
        assert!(entry.issued >= self.issued && entry.next >= entry.issued, "{entry:?}");
        self.issued = entry.next;
    }

    fn transmit(&mut self, at: Cycles, _: Transmission<'_>) {
        // The shortest frame and the gap.
        assert!(at >= self.sent, "{at:?}");
        self.sent = at + Cycles(84);
    }
}

fn program(octets: &[u8]) -> StationProgram {
    let buffer =
        |index: u8, role| Buffer { name: String::new(), words: 1 + u16::from(index % 2), role };
    let role = |index| if index < 2 { BufferRole::Output } else { BufferRole::Input };
    let words = |id: u8| 1 + u16::from(id % 2);
    StationProgram {
        station: String::new(),
        medium: Medium::GIGABIT,
        buffers: (0..4).map(|index| buffer(index, role(index))).collect(),
        messages: (0..4)
            .map(|id| MessageFormat { id: MessageId(id), name: String::new(), words: words(id) })
            .collect(),
        words: octets.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)).collect(),
        source: String::new(),
        lines: Vec::new(),
    }
}

fuzz_target!(|octets: &[u8]| {
    if let Ok(frame) = StationFrame::parse(octets) {
        let mut again = [0; FRAME_MAX];
        let StationFrame { source, tag, content } = frame;
        let length = match content {
            FrameContent::Data { message, words } => {
                let words: Vec<u32> = words.iter().collect();
                emit_data(source, tag, message, &words, &mut again)
            }
            FrameContent::Round(round) => emit_round(source, tag, round, &mut again),
        };
        assert_eq!(StationFrame::parse(&again[..length]), Ok(frame));
    }
    let program = program(octets);
    if !program.keeps_limits() {
        return;
    }
    let mut station = Station::new(program);
    let mut order = Order::default();
    for (step, &octet) in (0..).zip(octets.iter().take(256)) {
        let at = Cycles(step * 64);
        station.advance(at, &mut order);
        let source = MacAddress([octet; 6]);
        match octet % 4 {
            0 => station.sync_received(at, u32::from(octet), source),
            1 => {
                let words = std::iter::repeat_n(u32::from(octet), usize::from(octet / 64));
                station.data_received(at, MessageId(octet / 4 % 5), words);
            }
            2 => drop(station.write(BufferId(octet / 4 % 5), &[u32::from(octet)])),
            _ => drop(station.set_flag(octet / 4 % 17, octet > 127)),
        }
    }
});
