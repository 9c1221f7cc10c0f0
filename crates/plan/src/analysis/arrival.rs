//! How much a stream sends at most.

use super::div_ceil;
use onbeat_model::system::{Channel, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, frame};

const BILLION: i128 = 1_000_000_000;

/// The arrival curve of one stream at one port: in any window of length T, the port gets at most
/// `1 + ⌊((1 + drift)·(T + jitter) + early) / interval⌋` of its frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// What one frame occupies of the port, in nanobits: the rate times the whole nanoseconds.
    pub(crate) frame: i128,
    /// The talker's nanoseconds per 10⁹ true ones.
    clock: i128,
    /// By how many of the talker's nanoseconds messages may come early; a channel's burst is here.
    early: i128,
    /// The talker's nanoseconds between two messages.
    interval: i128,
}

impl Arrival {
    /// The curve of `channel` at `port`, but for the jitter that it meets on its way.
    pub(crate) fn new(system: &System, channel: &Channel, port: PortId) -> Self {
        let rate = system.link_of(port).rate;
        let wire = frame::on_wire(frame::of_channel(channel.size));
        let drift = system.node(channel.talker).clock.drift_ppb;
        // A reading is rounded down to a nanosecond: a drifting clock may let a message go early
        // by as much.
        let rounding = i128::from(drift != 0);
        Self {
            frame: i128::from(rate.as_bps()) * i128::from(rate.time_for(wire).as_ns()),
            clock: BILLION + i128::from(drift),
            early: i128::from(channel.tolerance().as_ns()) + rounding,
            interval: i128::from(channel.interval.as_ns()),
        }
    }

    fn rate_bps(&self) -> i128 {
        div_ceil(self.frame * self.clock, BILLION * self.interval)
    }

    /// The sustained rate, rounded up.
    pub(crate) fn rate(&self) -> BitRate {
        BitRate::from_bps(u64::try_from(self.rate_bps()).expect("a frame each nanosecond fits"))
    }

    /// The most at once, in nanobits, after delays that differ by up to `jitter`.
    pub(crate) fn burst(&self, jitter: Span) -> i128 {
        let early = div_ceil(self.frame * self.early, self.interval);
        self.frame + early + self.rate_bps() * i128::from(jitter.as_ns())
    }

    /// The most frames in any closed window of length `window`.
    pub(crate) fn frames_within(&self, window: Span, jitter: Span) -> u64 {
        let span = i128::from(window.as_ns()) + i128::from(jitter.as_ns());
        let local = self.clock * span + self.early * BILLION;
        let frames = 1 + local / (self.interval * BILLION);
        u64::try_from(frames).expect("no more frames than nanoseconds")
    }
}
