use super::*;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use onbeat_model::diagnostic::Origin;
use onbeat_model::integrity::Integrity;
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::StreamIndex;
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_runtime::wire::{Frame, Header};
use onbeat_testkit::{Need, not_run};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::path::Path;
use std::process::Command;

/// The channel has taken what the stream would get: the first group address and the first number
/// of its talker.
const DESCRIPTION: &str = r#"
format = 1
name = "captured"
[run]
duration_s = 1
[[host]]
name = "a"
clock = { offset_ns = 7 }
[[host]]
name = "b"
[[bridge]]
name = "s"
forwarding_ns = 1000
[[link]]
ends = ["a", "s"]
rate_mbps = 100
[[link]]
ends = ["s", "b"]
rate_mbps = 1000
[[channel]]
name = "c"
destination = "53:00:00:00:00:00"
stream_id = 144115188075921408
class = "A"
size_octets = 8
rate_hz = 1000
talker = "a"
listeners = ["b"]
[[noise]]
name = "n"
from = "b"
to = "a"
size_octets = 10
frames_per_s = 1
"#;

fn system() -> System {
    let loaded = onbeat_description::load("system.toml", DESCRIPTION, &mut |_| Err(String::new()));
    let mut system = loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let origin = Origin::default();
    let source = Source::Periodic { interval: Span::from_ms(1), jitter: Span::ZERO };
    system.streams.push(Stream {
        name: "s".to_owned(),
        talker: NodeId(0),
        listeners: vec![NodeId(1)],
        traffic_class: 5,
        vlan: 17,
        pcp: 6,
        frame: [Octets::new(100), Octets::new(1_522)],
        source,
        phase: Span::ZERO,
        regulator: None,
        policing: None,
        paths: Default::default(),
        deadline: None,
        origin,
    });
    system
}

/// One frame of each kind at the port `s.p2`, one that is not captured, and the shortest noise.
fn sent() -> [Transmission; 5] {
    let (channel, stream) = (FlowRef::Channel(ChannelId(0)), FlowRef::Stream(StreamIndex(0)));
    let sent = |at, port, flow, sequence, octets| Transmission {
        at: NetTime::from_ns(at),
        port: PortId(port),
        flow,
        sequence,
        octets,
        released: NetTime::from_ns(at - 1_000),
        captured: SyncedTime::from_ns(at - 993),
        data: Vec::new(),
    };
    [
        sent(1_234_567_891, 2, channel, 258, 68),
        sent(1_234_567_891, 0, channel, 259, 68),
        sent(5_000_000_001, 2, stream, 0, 100),
        sent(5_000_009_002, 2, stream, 511, 1_522),
        sent(6_000_000_003, 3, FlowRef::Noise(NoiseId(0)), 0, 64),
    ]
}

fn captured() -> Vec<u8> {
    let system = system();
    let ports = [PortId(2), PortId(3)];
    let mut capture = Capture::new(&system, &ports, Vec::new()).expect("memory");
    for frame in sent() {
        capture.frame(&frame).expect("memory");
    }
    capture.finish()
}

/// Interface, time and octets.
type Packet = (u32, Duration, Vec<u8>);

/// Every packet, and what each interface is called.
fn read(file: &[u8]) -> (Vec<Packet>, Vec<String>) {
    let mut reader = PcapNgReader::new(file).expect("a section header");
    let (mut packets, mut interfaces) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::EnhancedPacket(packet) => {
                assert_eq!(packet.original_len as usize, packet.data.len());
                packets.push((packet.interface_id, packet.timestamp, packet.data.into_owned()));
            }
            Block::InterfaceDescription(interface) => interfaces
                .push(interface.options.iter().map(|o| format!("{o:?} ")).collect::<String>()),
            other => panic!("{other:?}"),
        }
    }
    (packets, interfaces)
}

fn header(octets: &[u8]) -> (Header, usize) {
    let frame = Frame::parse(octets).expect("a frame of a channel");
    (frame.header, frame.payload.len())
}

#[test]
fn every_captured_frame_has_its_ports_interface_its_time_and_its_length() {
    let (packets, interfaces) = read(&captured());
    assert_eq!(
        interfaces,
        [
            "IfName(\"s.p2\") IfSpeed(1000000000) IfTsResol(9) ",
            "IfName(\"b.p1\") IfSpeed(1000000000) IfTsResol(9) ",
        ]
    );
    let seen: Vec<_> = packets.iter().map(|p| (p.0, p.1.as_nanos(), p.2.len())).collect();
    let expected = [
        (0, 1_234_567_891, 64),
        (0, 5_000_000_001, 96),
        (0, 5_000_009_002, 1_518),
        (1, 6_000_000_003, 60),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn frames_of_channels_are_those_of_the_wire_format() {
    let (packets, _) = read(&captured());
    let (header, message) = header(&packets[0].2);
    let expected = Header {
        destination: MacAddress([0x53, 0, 0, 0, 0, 0]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        vlan: 2,
        pcp: 3,
        r_tag: None,
        number: 258,
        instance: 1,
        uncertain: false,
        stream_id: StreamId(144_115_188_075_921_408),
        timestamp: 1_234_566_898, // captured 993 ns before
        meeting: 0,
    };
    assert_eq!((header, message), (expected, 8));
}

#[test]
fn streams_get_free_addresses_and_numbers_and_fill_their_frames() {
    let (packets, _) = read(&captured());
    let (first, message) = header(&packets[1].2);
    let expected = Header {
        destination: MacAddress([0x53, 0, 0, 0, 0, 1]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        vlan: 17,
        pcp: 6,
        r_tag: None,
        number: 0,
        instance: 1,
        uncertain: false,
        stream_id: StreamId(0x0200_0000_0001_0001),
        timestamp: 705_031_712, // 4,999,999,008 modulo 2³²
        meeting: 0,
    };
    assert_eq!(first, expected);
    assert_eq!(message, 100 - 4 - 42);
    let (longest, message) = header(&packets[2].2);
    assert_eq!((longest.number, message), (511, 1_476));
}

#[test]
fn noise_is_a_padded_datagram_between_the_hosts_with_right_checksums() {
    let (packets, _) = read(&captured());
    let packet = SlicedPacket::from_ethernet(&packets[3].2).expect("Ethernet");
    let Some(NetSlice::Ipv4(ip)) = &packet.net else { panic!("{:?}", packet.net) };
    assert_eq!(ip.header().source(), [10, 0, 0, 2]);
    assert_eq!(ip.header().destination(), [10, 0, 0, 1]);
    assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
    let Some(TransportSlice::Udp(udp)) = &packet.transport else { panic!("no UDP") };
    assert_eq!((udp.source_port(), udp.destination_port()), (DISCARD, DISCARD));
    assert_eq!(udp.payload(), [0; 10]);
    let checksum = udp.to_header().calc_checksum_ipv4_raw(
        ip.header().source(),
        ip.header().destination(),
        udp.payload(),
    );
    assert_eq!(Ok(udp.checksum()), checksum);
}

/// Trailers and a fragment of channels that the script's preferences name.
#[test]
fn wireshark_reads_the_trailers_and_fragments_of_the_streams_that_have_some() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("test.pcapng");
    let mut capture = PcapNgWriter::new(Vec::new()).expect("a file");
    let interface =
        InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options: Vec::new() };
    capture.write_pcapng_block(interface).expect("written");
    let fragment = [0, 2, 0, 3, 7, 7, 7, 7];
    for (stream, integrity, payload) in [
        (0xa1, Integrity::Crc, &[7; 4][..]),
        (0xb2, Integrity::Authenticated, &[7; 4]),
        (0xc3, Integrity::Crc, &fragment),
    ] {
        let destination = MacAddress([1, 0, 0x5e, 0, 0, 1]);
        let keys = KeyRing::of_one(9, [1; 32]).of_stream(StreamId(stream), destination);
        let seal = Seal::new(integrity, Some(keys), Epoch(0x0102_0304_0506_0708)).expect("keys");
        let header = Header {
            destination,
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            vlan: 2,
            pcp: 3,
            r_tag: None,
            number: 5,
            instance: 1,
            uncertain: false,
            stream_id: StreamId(stream),
            timestamp: 0,
            meeting: 0,
        };
        let mut octets = [0; wire::MAX_FRAME];
        let stamp = Stamp { capture_ns: 0, counter: 5 };
        let length = seal.emit(&header, payload, stamp, &mut octets);
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: length as u32,
            data: octets[..length].to_vec().into(),
            options: Vec::new(),
        };
        capture.write_pcapng_block(packet).expect("written");
    }
    std::fs::write(&file, capture.into_inner()).expect("written");
    let preferences = ["onbeat.crc:a1 c3", "onbeat.authenticated:00b2", "onbeat.long:c3"];
    let fields = [
        "onbeat.message",
        "onbeat.key",
        "onbeat.counter",
        "onbeat.epoch",
        "onbeat.fragment",
        "onbeat.fragments",
        "_ws.malformed",
    ];
    let Some(lines) = dissected(&file, &preferences, &fields) else { return };
    let expected = ["07070707,,5,,,,", "07070707,9,5,0x0102030405060708,,,", "07070707,,5,,2,3,"];
    assert_eq!(lines, expected);
}

/// What Wireshark's dissectors, and those of the script that comes with Onbeat, make of a file: a
/// line for each frame, with the first value of each field. `None` where tshark is missing.
fn dissected(file: &Path, preferences: &[&str], fields: &[&str]) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wireshark/onbeat.lua");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &format!("lua_script:{script}"), "-T", "fields", "-E", "separator=,"]);
    tshark.args(["-E", "occurrence=f"]).args(preferences.iter().flat_map(|one| ["-o", one]));
    tshark.arg("-r").arg(file).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = match tshark.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            not_run(Need::Tools, "tshark: what Wireshark makes of captures");
            return None;
        }
        output => output.expect("tshark runs"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn wireshark_reads_every_field() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("test.pcapng");
    std::fs::write(&file, captured()).expect("written");
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.len",
        "eth.dst",
        "eth.src",
        "vlan.id",
        "vlan.priority",
        "ieee1722.subtype",
        "onbeat.stream_id",
        "onbeat.sequence",
        "onbeat.number",
        "onbeat.instance",
        "onbeat.timestamp",
        "onbeat.length",
        "udp.port",
        "ip.checksum.status",
        "udp.checksum.status",
        "_ws.malformed",
    ];
    let preferences = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    let Some(lines) = dissected(&file, &preferences, &fields) else { return };
    let (a, b) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
    let (channel, stream) = ("53:00:00:00:00:00", "53:00:00:00:00:01");
    let (first, second) = ("0x0200000000010000", "0x0200000000010001");
    // 5,000,008,002 + 7 modulo 2³² is the last frame's time stamp; checksum status 1 is good.
    let expected = [
        format!("s.p2,1.234567891,64,{channel},{a},2,3,0x7f,{first},2,258,1,1234566898,8,,,,"),
        format!("s.p2,5.000000001,96,{stream},{a},17,6,0x7f,{second},0,0,1,705031712,54,,,,"),
        format!(
            "s.p2,5.000009002,1518,{stream},{a},17,6,0x7f,{second},255,511,1,705040713,1476,,,,"
        ),
        format!("b.p1,6.000000003,60,{a},{b},,,,,,,,,,9,1,1,"),
    ];
    assert_eq!(lines, expected);
}
