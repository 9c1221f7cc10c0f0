//! Wireshark reads in our PDUs what we wrote.

use onbeat_model::units::{MacAddress, StreamId};
use onbeat_runtime::mmrp::{GroupService, Mmrp, MmrpAttribute};
use onbeat_runtime::mrp::{AttributeEvent, MrpApplication, PduWriter, frame};
use onbeat_runtime::msrp::{
    BridgeId, DomainDeclaration, FailureCode, FailureInformation, ListenerDeclaration, Msrp,
    MsrpAttribute, Rank, TSpec, TalkerDeclaration,
};
use onbeat_runtime::mvrp::{Mvrp, Vid};
use std::io::Write;
use std::process::{Command, Stdio};

const SOURCE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// A capture file with these frames, padded as on a wire.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        octets.extend(word.to_le_bytes());
    }
    for frame in frames {
        let mut frame = frame.clone();
        frame.resize(frame.len().max(60), 0);
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            octets.extend(word.to_le_bytes());
        }
        octets.extend(frame);
    }
    octets
}

/// One line for each frame, with these fields; `None` if there is no tshark.
fn dissect(frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "-", "-T", "fields", "-E", "separator=|", "-E", "occurrence=a"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match tshark.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("tshark is missing: what Wireshark makes of MRP is not tested");
            return None;
        }
        child => child.expect("tshark starts"),
    };
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&capture(frames)).expect("tshark reads");
    drop(input);
    let output = child.wait_with_output().expect("tshark ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(str::to_owned).collect())
}

fn written<A: MrpApplication>(
    leaves_all: bool,
    events: &[(AttributeEvent, A::Attribute)],
) -> Vec<u8> {
    let mut writer = PduWriter::<A>::new(1_500);
    if leaves_all {
        writer.leave_all();
    }
    for (event, attribute) in events {
        assert!(writer.push(*event, attribute));
    }
    frame::<A>(SOURCE, &writer.finish())
}

fn talker(stream: u64, latency: u32, code: Option<u8>) -> MsrpAttribute {
    let bridge = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);
    MsrpAttribute::Talker(TalkerDeclaration {
        stream: StreamId(stream),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 1, 7]),
        vid: 2,
        tspec: TSpec { max_frame_size: 224, max_interval_frames: 3 },
        priority: 2,
        rank: Rank::Emergency,
        accumulated_latency_ns: latency,
        failure: code.map(|code| FailureInformation { bridge, code: FailureCode(code) }),
    })
}

#[test]
fn wireshark_reads_what_we_write() {
    use AttributeEvent::{JoinIn, JoinMt, Lv, Mt, New};
    let listener = |stream, declaration| MsrpAttribute::Listener(StreamId(stream), declaration);
    let domain =
        |class, priority| MsrpAttribute::Domain(DomainDeclaration { class, priority, vid: 2 });
    let vid = |vid| Vid::new(vid).expect("a VLAN");
    let frames = [
        written::<Msrp>(
            false,
            &[
                (New, talker(0x10, 125_000, None)),
                (Lv, talker(0x20, 7, None)),
                (JoinMt, talker(0x30, 9, Some(16))),
                (JoinIn, listener(0x10, ListenerDeclaration::ReadyFailed)),
                (New, listener(0x11, ListenerDeclaration::AskingFailed)),
                (JoinIn, domain(5, 2)),
                (JoinIn, domain(6, 3)),
            ],
        ),
        written::<Msrp>(true, &[(JoinMt, listener(0x12, ListenerDeclaration::Ready))]),
        written::<Mvrp>(true, &[(JoinIn, vid(2)), (Mt, vid(3)), (Lv, vid(4)), (New, vid(4_094))]),
        // Wireshark shows the first message of a PDU of MMRP alone.
        written::<Mmrp>(false, &[(New, MmrpAttribute::Address(SOURCE))]),
        written::<Mmrp>(false, &[(Lv, MmrpAttribute::Service(GroupService::AllGroups))]),
    ];
    let fields = [
        "_ws.malformed",
        "mrp-msrp.stream_id",
        "mrp-msrp.three_packed_event",
        "mrp-msrp.four_packed_event",
        "mrp-msrp.leave_all_event",
        "mrp-msrp.accumulated_latency",
        "mrp-msrp.failure_code",
        "mrp-msrp.sr_class_id",
        "mrp-mvrp.vid",
        "mrp-mvrp.three_packed_event",
        "mrp-mmrp.three_packed_event",
    ];
    let Some(lines) = dissect(&frames, &fields) else { return };
    let zero = "0x0000000000000000";
    assert_eq!(
        lines,
        [
            "|0x0000000000000010,0x0000000000000020,0x0000000000000030,0x0000000000000010\
             |0,5,3,1,0,1,1|3,1|0,0,0,0,0|125000,7,9|16|5|||"
                .to_owned(),
            format!("|{zero},{zero},0x0000000000000012|3|2|1,1,1,1|0,0|0|0|||"),
            "||||||||2,4094|1,4,5,0|".to_owned(),
            "||||||||||0".to_owned(),
            "||||||||||5".to_owned(),
        ]
    );
}
