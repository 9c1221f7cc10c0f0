//! Test 4: one of two nodes that act at the same instants of network time. Each is a process; what
//! it saw is kept in memory and written when it is done.

use super::{Clock, CpuPlacement, GpioLine, GpioOutput, Wakes, wake};
use onbeat::clock::{EmulatedClock, MonoTime};
use onbeat_model::time::{ClockError, Span, SyncedTime};
use std::io;
use std::sync::atomic::AtomicBool;

/// What a node's network time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeClock {
    /// This clock of the machine, which something else synchronises.
    Machine(Clock),
    /// CLOCK_MONOTONIC with an error: a node of an emulated network.
    Emulated(ClockError),
}

impl NodeClock {
    /// The machine's clock that the instants are told on.
    pub const fn base(self) -> Clock {
        match self {
            Self::Machine(clock) => clock,
            Self::Emulated(_) => Clock::Local,
        }
    }
}

/// What a node is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTask {
    /// Its network time.
    pub clock: NodeClock,
    /// The first instant, by [`NodeClock::base`].
    pub start_ns: i64,
    /// From one instant to the next.
    pub period: Span,
    /// How many there are.
    pub count: usize,
    /// Where it runs.
    pub place: CpuPlacement,
    /// An output that is high from each even instant to the next odd one.
    pub gpio: Option<GpioLine>,
}

/// The first instant, not before `earliest_ns` by the network's time: a whole number of two periods
/// since the epoch, so that outputs of whichever machines rise at the same instants, however far
/// apart their nodes were started.
pub fn first_instant(earliest_ns: i64, period: Span) -> i64 {
    let both = 2 * period.as_ns();
    earliest_ns.div_euclid(both) * both + both
}

/// What a node saw at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSample {
    /// When it was awake, in ns after the first instant, by the base clock: true time.
    pub at_ns: i64,
    /// How much later than its own clock said.
    pub late_ns: i64,
    /// Whether it was woken; not for an instant that it had slept through already.
    pub woken: bool,
}

/// Octets of one sample as it is written.
const OCTETS: usize = 17;

/// Samples as one process hands them to the other.
pub fn encode(samples: &[NodeSample]) -> Vec<u8> {
    let each = |sample: &NodeSample| {
        let mut octets = [0; OCTETS];
        octets[..8].copy_from_slice(&sample.at_ns.to_le_bytes());
        octets[8..16].copy_from_slice(&sample.late_ns.to_le_bytes());
        octets[16] = u8::from(sample.woken);
        octets
    };
    samples.iter().flat_map(each).collect()
}

/// Reads them again; `None` of what [`encode`] does not write.
pub fn decode(octets: &[u8]) -> Option<Vec<NodeSample>> {
    let (samples, rest) = octets.as_chunks::<OCTETS>();
    let number = |octets: &[u8]| Some(i64::from_le_bytes(octets.try_into().ok()?));
    let each = |octets: &[u8; OCTETS]| {
        let woken = match octets[16] {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(NodeSample { at_ns: number(&octets[..8])?, late_ns: number(&octets[8..16])?, woken })
    };
    if !rest.is_empty() {
        return None;
    }
    samples.iter().map(each).collect()
}

/// Acts at each instant of a node. Ends early, with what there is, if `stop` is set.
///
/// # Errors
/// When the place or the output is not to be had, or the output fails; what was measured is lost.
pub fn wake_node(node: &NodeTask, stop: &AtomicBool) -> io::Result<Vec<NodeSample>> {
    let line = node.gpio.as_ref().map(GpioOutput::request).transpose()?;
    let mut wakes = Wakes::room_for(node.count);
    let mut at_ns = vec![0; node.count];
    let mut failed = None;
    let emulated = match node.clock {
        NodeClock::Machine(_) => {
            EmulatedClock { start: MonoTime::from_ns(node.start_ns), error: ClockError::default() }
        }
        NodeClock::Emulated(error) => {
            EmulatedClock { start: MonoTime::from_ns(node.start_ns), error }
        }
    };
    let target = |instant: usize| {
        let reading = SyncedTime::from_ns(node.period.as_ns() * instant as i64);
        emulated.when(reading).as_ns()
    };
    let act = |instant: usize, now: i64| {
        at_ns[instant] = now - node.start_ns;
        if let Some(Err(error)) = line.as_ref().map(|line| line.set(instant.is_multiple_of(2))) {
            failed = Some(error);
        }
    };
    let base = node.clock.base();
    let done = node.place.run(|| wake(base, target, &mut wakes, stop, act))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let samples = at_ns.iter().zip(wakes.late_ns).zip(wakes.woken).take(done);
    let sample =
        |((at_ns, late_ns), woken): ((&i64, _), _)| NodeSample { at_ns: *at_ns, late_ns, woken };
    Ok(samples.map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(clock: NodeClock) -> NodeTask {
        NodeTask {
            clock,
            start_ns: clock.base().now_ns() + 2_000_000,
            period: Span::from_ms(1),
            count: 10,
            place: CpuPlacement { cpu: 0, priority: 0 },
            gpio: None,
        }
    }

    #[test]
    fn a_node_whose_clock_is_ahead_acts_earlier_by_as_much() {
        let go_on = AtomicBool::new(false);
        let ahead = ClockError { offset: Span::from_us(500), ..ClockError::default() };
        let cpu = *super::super::allowed_cpus().unwrap().0.first().unwrap();
        for (clock, ahead_ns) in [
            (NodeClock::Machine(Clock::Global), 0),
            (NodeClock::Emulated(ClockError::default()), 0),
            (NodeClock::Emulated(ahead), 500_000),
        ] {
            let mut node = node(clock);
            node.place.cpu = cpu;
            let samples = wake_node(&node, &go_on).unwrap();
            assert_eq!(samples.len(), 10);
            for (instant, sample) in (0..).zip(samples) {
                assert!(sample.late_ns >= 0);
                assert_eq!(sample.at_ns, instant * 1_000_000 - ahead_ns + sample.late_ns);
            }
        }
        let stop = AtomicBool::new(true);
        let mut node = node(NodeClock::Machine(Clock::Local));
        node.place.cpu = cpu;
        assert_eq!(wake_node(&node, &stop).unwrap(), []);
        node.gpio = Some(GpioLine { chip: "/nowhere".into(), line: 0 });
        assert!(wake_node(&node, &go_on).is_err());
    }

    #[test]
    fn nodes_that_are_started_apart_raise_their_outputs_at_the_same_instants() {
        let period = Span::from_ms(10);
        let (first, second) = (first_instant(1_700_000_000_123_456_789, period), {
            first_instant(1_700_000_000_140_956_789, period)
        });
        assert_eq!((second - first) % 20_000_000, 0, "the paper's 20 ms");
        for earliest in [0, 1, 19_999_999, 20_000_000, 1_700_000_000_123_456_789] {
            let at = first_instant(earliest, period);
            assert!(at > earliest && at - earliest <= 20_000_000, "{earliest}: {at}");
            assert_eq!(at % 20_000_000, 0);
        }
    }

    proptest! {
        #[test]
        fn what_a_node_writes_is_read_again(
            samples in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..9),
            cut in 0..OCTETS,
        ) {
            let sample = |(at_ns, late_ns, woken)| NodeSample { at_ns, late_ns, woken };
            let samples: Vec<_> = samples.into_iter().map(sample).collect();
            let octets = encode(&samples);
            prop_assert_eq!(decode(&octets), Some(samples));
            if cut > 0 && !octets.is_empty() {
                prop_assert_eq!(decode(&octets[..octets.len() - cut]), None);
            }
        }
    }
}
