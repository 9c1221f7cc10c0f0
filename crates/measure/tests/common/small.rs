//! Logs small enough to check by hand.

use super::{channel, got, log, plan, sent, system};
use onbeat_measure::{ChannelResult, RunResult, analyse};
use onbeat_model::plan::Plan;
use onbeat_model::record::{Carrier, InterfacePart, Record, RunLog, flag};
use onbeat_model::system::{NodeId, System, TimeMode, TransportKind};
use onbeat_model::time::Span;

/// One channel from `a` to `b` with a bound of 200 µs.
pub(crate) fn one_channel() -> (System, Plan) {
    let system = system(
        &["a", "b", "bridge"],
        &[("a", "bridge"), ("b", "bridge")],
        vec![channel("c", 0, &[1])],
    );
    let plan = plan(&system, &[Some(200)]);
    (system, plan)
}

pub(crate) fn run(system: &System, plan: &Plan, log: &RunLog) -> RunResult {
    analyse(system, plan, log).expect("they are of one system")
}

/// The result of the only channel.
pub(crate) fn only(system: &System, plan: &Plan, log: &RunLog) -> ChannelResult {
    run(system, plan, log).channels.remove(0)
}

/// Sends a message for each latency, in microseconds, that arrives after it or never.
pub(crate) fn log_of(system: &System, latencies_us: &[Option<i64>]) -> RunLog {
    let mut log = log(system);
    for (number, latency) in (0..).zip(latencies_us) {
        let capture = number as i64 * 20_000;
        log.ends[0].records.push(sent(number, capture));
        log.ends[1].records.extend(latency.map(|l| got(number, capture, l)));
    }
    log
}

/// The record with a wake-up `late_ns` after the target of 2 ms.
pub(crate) fn woken(record: Record, late_ns: i64) -> Record {
    let target = record.capture.map(|c| c + Span::from_ms(2));
    let wake = target.map(|t| t + Span::from_ns(late_ns));
    Record { wake_target: target, wake, ..record }
}

/// Two listeners. Of four messages `b` receives the first three and the third twice; `c` the
/// first, the second late, and the fourth.
pub(crate) fn two_listeners() -> (System, Plan, RunLog) {
    let nodes = ["a", "b", "c", "bridge"];
    let links = [("a", "bridge"), ("b", "bridge"), ("c", "bridge")];
    let system = system(&nodes, &links, vec![channel("m", 0, &[1, 2])]);
    let plan = plan(&system, &[Some(200)]);
    let mut log = log(&system);
    for number in 0..4 {
        log.ends[0].records.push(woken(sent(number, number as i64 * 20_000), 1_000));
    }
    let copy = Record { flags: flag::DUPLICATE, ..got(2, 40_000, 120) };
    log.ends[1].records = vec![
        woken(got(0, 0, 100), 3_000),
        woken(got(1, 20_000, 102), 0),
        got(2, 40_000, 105),
        copy,
    ];
    let late = Record { flags: flag::LATE, ..got(1, 20_000, 2_500) };
    log.ends[2].records = vec![got(0, 0, 110), late, got(3, 60_000, 90)];
    (system, plan, log)
}

/// The log as the run of one host leaves it.
pub(crate) fn only_on(host: u32, mut log: RunLog) -> RunLog {
    let name = "eth0".to_owned();
    let (transport, host) = (TransportKind::Packet, NodeId(host));
    let (tuned, time_errors) = (None, Vec::new());
    let part =
        InterfacePart { transport, host, name, cut_off: false, ahead: None, tuned, time_errors };
    let parts = vec![part];
    log.network = Carrier::Interfaces { parts, epoch_ns: 7 };
    log.time = TimeMode::Real;
    for end in log.ends.iter_mut().filter(|end| end.node != host) {
        end.records.clear();
    }
    log
}
