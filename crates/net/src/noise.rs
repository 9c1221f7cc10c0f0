//! Best-effort noise: when each source sends its next frame.

use crate::random::{Purpose, Stream};
use onbeat_model::system::Noise;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::frame;

/// One source of noise in the engine.
#[derive(Debug)]
pub(crate) struct NoiseSource {
    /// The size of each frame.
    pub(crate) octets: u16,
    /// The bits of each frame on the wire.
    pub(crate) wire_bits: u64,
    /// When it sends.
    pub(crate) times: NoiseTimes,
}

impl NoiseSource {
    pub(crate) fn new(noise: &Noise, index: usize, seed: u64, end: NetTime) -> Self {
        let octets = frame::of_udp(noise.payload);
        assert!(octets <= frame::MAX_TAGGED, "noise {} does not fit in a frame", noise.name);
        Self {
            octets: octets.get() as u16,
            wire_bits: u64::from(frame::on_wire(octets).get()) * 8,
            times: NoiseTimes::new(noise, index, seed, end),
        }
    }
}

/// When a source of noise sends its frames: the same instants for the same seed, wherever the
/// frames then go. *Real-time*: bounded, allocates nothing.
#[derive(Debug)]
pub struct NoiseTimes {
    start: NetTime,
    interval: Span,
    jitter: Option<Stream>,
    /// When the present on-period ends.
    on_until: NetTime,
    on: Span,
    off: Span,
    /// No frame is sent from here on.
    end: NetTime,
}

impl NoiseTimes {
    /// The times of `noise`, which is number `index` of its system's sources, up to `end`, without
    /// it.
    pub fn new(noise: &Noise, index: usize, seed: u64, end: NetTime) -> Self {
        assert!(noise.interval > Span::ZERO && noise.on > Span::ZERO && noise.off >= Span::ZERO);
        let rests = noise.off > Span::ZERO;
        Self {
            start: noise.start,
            interval: noise.interval,
            jitter: noise.jitter.then(|| Stream::new(seed, Purpose::Noise, index)),
            on_until: if rests { noise.start + noise.on } else { NetTime::MAX },
            on: noise.on,
            off: noise.off,
            end,
        }
    }

    /// When it sends its first frame, if ever.
    pub fn first(&self) -> Option<NetTime> {
        self.before_end(self.start)
    }

    /// When it sends after the frame that it sends at `now`, if ever again. Each on-period begins
    /// with a frame. To be asked once per frame, in order.
    pub fn next_after(&mut self, now: NetTime) -> Option<NetTime> {
        let mut next = now + self.gap();
        if next >= self.on_until {
            next = self.on_until + self.off;
            self.on_until = next + self.on;
        }
        self.before_end(next)
    }

    /// `at`, if the source still sends then.
    fn before_end(&self, at: NetTime) -> Option<NetTime> {
        (at < self.end).then_some(at)
    }

    /// The time between two frames, at least 1 ns.
    fn gap(&mut self) -> Span {
        let Some(stream) = &mut self.jitter else { return self.interval };
        let interval = self.interval.as_ns();
        let drawn = interval / 2 + stream.below(interval as u64 + 1) as i64;
        Span::from_ns(drawn.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::diagnostic::Origin;
    use onbeat_model::system::NodeId;
    use onbeat_model::units::Octets;

    fn times(jitter: bool, off: i64, end: i64) -> Vec<i64> {
        let noise = Noise {
            name: "noise".to_owned(),
            from: NodeId(0),
            to: NodeId(1),
            payload: Octets::new(100),
            interval: Span::from_ns(40),
            jitter,
            start: NetTime::from_ns(1_000),
            on: Span::from_ns(100),
            off: Span::from_ns(off),
            origin: Origin::default(),
        };
        let mut source = NoiseTimes::new(&noise, 0, 1, NetTime::from_ns(end));
        let mut at = source.first();
        let mut times = Vec::new();
        while let Some(time) = at {
            times.push(time.as_ns());
            at = source.next_after(time);
        }
        times
    }

    #[test]
    fn each_on_period_begins_with_a_frame_and_the_end_is_excluded() {
        assert_eq!(
            times(false, 200, 1_641),
            [1_000, 1_040, 1_080, 1_300, 1_340, 1_380, 1_600, 1_640]
        );
        assert_eq!(times(false, 200, 1_640).last(), Some(&1_600));
        assert!(times(false, 200, 1_000).is_empty());
    }

    #[test]
    fn a_source_without_rest_never_pauses() {
        assert_eq!(times(false, 0, 1_201), [1_000, 1_040, 1_080, 1_120, 1_160, 1_200]);
    }

    #[test]
    fn jitter_stays_within_half_and_one_and_a_half_intervals_and_keeps_the_mean() {
        let times = times(true, 0, 1_001_000);
        let gaps: Vec<i64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&20), Some(&60)));
        let mean = gaps.iter().sum::<i64>() as f64 / gaps.len() as f64;
        assert!((mean - 40.0).abs() < 0.5, "{mean}");
    }
}
