//! No octets make the reader of MRP's PDUs panic, what it takes is written back the same, and a
//! bridge that gets any sequence of them continues, within its limits, and forgets all of it when
//! the link fails.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use onbeat_runtime::mmrp::Mmrp;
use onbeat_runtime::mrp::pdu::read;
use onbeat_runtime::mrp::{MrpApplication, MrpItem, PduWriter};
use onbeat_runtime::msrp::{BridgeId, BridgeInput, Msrp, MsrpBridge, MsrpBridgeSettings, MsrpPort};
use onbeat_runtime::mvrp::Mvrp;

fn again<A: MrpApplication>(octets: &[u8]) {
    let mut items = Vec::new();
    let _ = read::<A>(octets, &mut |item| items.push(item));
    assert!(items.len() <= 4 * octets.len());
    // Values of many types may be longer in vectors of their own: one PDU for each.
    for item in items {
        let MrpItem::Event(event, attribute) = item else { continue };
        let mut writer = PduWriter::<A>::new(1_500);
        assert!(writer.push(event, &attribute));
        let mut back = None;
        let outcome = read::<A>(&writer.finish(), &mut |item| back = Some(item));
        assert_eq!((outcome, back), (Ok(()), Some(item)));
    }
}

fuzz_target!(|octets: &[u8]| {
    again::<Msrp>(octets);
    again::<Mvrp>(octets);
    again::<Mmrp>(octets);
    let settings = MsrpBridgeSettings::new(BridgeId([1; 8]));
    let rate = BitRate::from_mbps(100);
    let mut now = NetTime::ZERO;
    let mut bridge = MsrpBridge::new(settings, &[MsrpPort::new(rate, Span::from_us(1)); 3], 1, now);
    // Each piece: how much later it comes, by which port, and its octets.
    for piece in octets.chunks(70) {
        let Some((head, octets)) = piece.split_first_chunk::<2>() else { break };
        now += Span::from_ms(i64::from(head[0]) * 10);
        let port = usize::from(head[1] % 3);
        bridge.handle(now, BridgeInput::Received { port, octets });
        bridge.handle(now, BridgeInput::Timeout);
        for port in 0..3 {
            let reserved: u64 = bridge.idle_slopes(port).iter().map(|slope| slope.as_bps()).sum();
            assert!(reserved <= rate.as_bps() / 4 * 3);
        }
    }
    for port in 0..3 {
        bridge.handle(now, BridgeInput::LinkDown(port));
    }
    assert_eq!(bridge.streams(), 0);
});
