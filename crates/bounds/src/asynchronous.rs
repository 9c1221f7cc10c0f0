//! Channels on asynchronous traffic shaping: the parameters of their ATS schedulers.
//!
//! A bridge restores what its neighbour before it let through. For shaping-for-free to apply
//! ('docs/bounds.md') each bucket must hold all that fits into the one before it, in true time:
//! where clocks differ, rates and bursts grow from bridge to bridge by as much as that takes
//! (L. Thomas and J.-Y. Le Boudec, *On Time Synchronization Issues in Time-Sensitive Networks with
//! Regulators and Nonideal Clocks*, 2020: rate and burst cascade).

use crate::analysis::arrival::{Arrival, clock_rate, in_true_time, is_same_rate};
use crate::analysis::{BILLION, div_ceil};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::AtsScheduler;
use onbeat_model::port::TokenBucket;
use onbeat_model::system::{Channel, Class, Host, NodeKind, PortId, System};
use onbeat_model::units::{BitRate, Octets, frame};

/// A leaky bucket in true time: nanobits, and bits per second.
type TrueBucket = (i128, i128);

/// What leaves a talker's stack at most: what its library lets it write, as the stack may bring it
/// together.
fn source(system: &System, channel: &Channel) -> TrueBucket {
    let NodeKind::Host(Host { stack_tx, .. }) = &system.node(channel.talker).kind else {
        unreachable!("a talker is a host")
    };
    let arrival = Arrival::of_channel(system, channel);
    let frame = i128::from(frame::on_wire(arrival.octets[1]).get()) * 8 * BILLION;
    let jitter = stack_tx.max() - stack_tx.min();
    arrival.bucket(frame, jitter.as_ns().into())
}

/// The least bucket by the clock of a port that holds what fits into one of true time.
fn least(system: &System, port: PortId, (burst, rate): TrueBucket) -> TokenBucket {
    let (clock, apart) = clock_rate(&system.node(system.port(port).node).clock);
    let rate = div_ceil(rate * BILLION, clock);
    let octets = div_ceil(burst + rate * apart, 8 * BILLION);
    // What no field holds is more than any link carries, which admission says.
    TokenBucket { rate: bits(rate), burst: Octets::new(u32::try_from(octets).unwrap_or(u32::MAX)) }
}

fn bits(rate: i128) -> BitRate {
    BitRate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// What a channel takes of its talker's port, rounded up.
pub(crate) fn talker_rate(system: &System, channel: &Channel) -> BitRate {
    bits(source(system, channel).1)
}

/// What it takes of any port at most: clocks make it more.
pub(crate) fn most_rate(system: &System, channel: &Channel) -> BitRate {
    let (_, rate) = source(system, channel);
    let slowest = system.nodes.iter().map(|node| clock_rate(&node.clock).0).min();
    let slowest = slowest.unwrap_or(BILLION);
    // Each bridge may round up twice.
    bits(div_ceil(rate * BILLION, slowest) + 2 * system.nodes.len() as i128)
}

/// The schedulers of a channel on its paths, upstream first.
pub(crate) fn schedulers(
    system: &System,
    channel: &Channel,
    paths: &[Vec<PortId>],
) -> Vec<AtsScheduler> {
    let source = source(system, channel);
    let mut all: Vec<AtsScheduler> = Vec::new();
    for pair in paths.iter().flat_map(|path| path.windows(2)) {
        let [before, port] = [pair[0], pair[1]];
        let known = |port| all.iter().find(|scheduler| scheduler.port == port);
        if known(port).is_some() {
            continue;
        }
        let bucket = match known(before).map(|before| before.bucket) {
            None => least(system, port, source),
            Some(bucket) if is_same_rate(system, before, port) => bucket,
            Some(bucket) => least(system, port, in_true_time(system, bucket, before, true)),
        };
        all.push(AtsScheduler { port, group: system.port(before).peer, bucket });
    }
    all
}

/// The error for a channel whose paths join: what comes by two of them keeps to no bucket.
pub(crate) fn replicated(channel: &Channel) -> Diagnostic {
    let message = format!(
        "channel `{}` of class asynchronous is replicated: ATS schedulers are planned for one path",
        channel.name
    );
    let help = "use class A or B, or remove `paths` and `disjoint_paths`";
    Diagnostic::error(codes::REPLICATION, message, channel.origin, "is replicated").help(help)
}

/// The error for a queue that the description shapes by credit.
pub(crate) fn shaped_by_credit(system: &System, port: PortId, channel: &Channel) -> Diagnostic {
    let queue = Class::Asynchronous.queue();
    let message = format!(
        "queue {queue} of port {} has an idleSlope, and channel `{}` needs asynchronous shaping \
         there",
        system.port_label(port),
        channel.name,
    );
    Diagnostic::error(codes::TOO_LITTLE, message, channel.origin, "is of class asynchronous")
        .related(system.link_of(port).origin, "the port's link")
        .help("remove the idleSlope of the queue from the port's [[port]]")
}
