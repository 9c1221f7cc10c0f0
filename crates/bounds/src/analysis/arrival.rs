//! How much a source sends at most.

use super::curve::Curve;
use super::{BILLION, div_ceil};
use onbeat_model::port::TokenBucket;
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{Channel, NodeId, PortId, System};
use onbeat_model::time::{ClockError, Span};
use onbeat_model::units::{BitRate, Octets, frame};

/// More than any link carries, in bit/s: what does not heed its limits is held by lines only.
const UNLIMITED_BPS: i128 = 4_000_000_000_000;

/// The most frames of one source in any closed window of length T, when the delays behind it
/// differ by up to J: `batch · (1 + ⌊((1 + drift)·(T + J) + early) / interval⌋)`.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The shortest and the longest frame, destination address to FCS.
    pub(crate) octets: [Octets; 2],
    kind: Kind,
    /// The talker's nanoseconds per 10⁹ true ones.
    clock: i128,
    /// By how many of the talker's nanoseconds frames may come closer together.
    early: i128,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Batches at intervals of the talker's clock.
    Periodic { interval: i128, batch: i128 },
    /// Per number of frames, the shortest closed window that holds as many.
    Trace(Vec<i128>),
    /// As much as the link carries.
    Unlimited,
}

/// The rate of a clock that drifts, and by how many of its nanoseconds its readings at the two
/// ends of a time may differ from that: its wander, and their being rounded down.
pub(crate) fn clock_rate(clock: &ClockError) -> (i128, i128) {
    let wanders = clock.wander != Span::ZERO;
    let rounding = i128::from(clock.drift_ppb != 0 || wanders);
    let rate = BILLION + i128::from(clock.drift_ppb);
    (rate, 2 * i128::from(clock.wander.as_ns()) + rounding)
}

/// By how much rounding to whole nanoseconds may add to a delay where a regulator's and other
/// clocks meet.
pub(crate) const REGULATOR_ROUNDING: i128 = 4;

/// The burst in nanobits and the rate in bit/s of a bucket at a port, when its clock is taken to be
/// fast or slow.
pub(crate) fn in_true_time(
    system: &System,
    bucket: TokenBucket,
    port: PortId,
    fast: bool,
) -> (i128, i128) {
    let (clock, apart) = clock_rate(&system.node(system.port(port).node).clock);
    let rate = i128::from(bucket.rate.as_bps());
    let burst = i128::from(bucket.burst.get()) * 8 * BILLION;
    match fast {
        true => (burst + rate * (apart + REGULATOR_ROUNDING), div_ceil(rate * clock, BILLION)),
        false => (burst - rate * apart, rate * clock / BILLION),
    }
}

/// Whether the clocks of two ports' nodes always run alike. A protocol that steers them in the run
/// moves each by itself.
pub(crate) fn is_same_rate(system: &System, one: PortId, other: PortId) -> bool {
    let [a, b] = [one, other].map(|port| &system.node(system.port(port).node).clock);
    let steered = system.synchronisation.is_some_and(|it| it.in_run);
    let alike = |c: &ClockError| (c.drift_ppb, c.wander, c.wander_period);
    alike(a) == alike(b) && !(steered && a.wander != Span::ZERO)
}

impl Arrival {
    fn new(system: &System, talker: NodeId, octets: [Octets; 2], early: Span, kind: Kind) -> Self {
        let (clock, rounding) = clock_rate(&system.node(talker).clock);
        let early = i128::from(early.as_ns()) + rounding;
        Self { octets, kind, clock, early }
    }

    /// What the channel library lets a talker send.
    pub(crate) fn of_channel(system: &System, channel: &Channel) -> Self {
        let octets = [channel.frame(); 2];
        let interval = i128::from(channel.interval.as_ns());
        let kind = Kind::Periodic { interval, batch: channel.frames().into() };
        Self::new(system, channel.talker, octets, channel.tolerance(), kind)
    }

    /// What a modelled stream's source sends.
    pub(crate) fn of_stream(system: &System, stream: &Stream) -> Self {
        let interval = |span: &Span| i128::from(span.as_ns());
        let mut octets = stream.frame;
        let (kind, early) = match &stream.source {
            Source::Periodic { interval: i, jitter } => {
                (Kind::Periodic { interval: interval(i), batch: 1 }, *jitter)
            }
            Source::Sporadic { interval: i, .. } => {
                (Kind::Periodic { interval: interval(i), batch: 1 }, Span::ZERO)
            }
            Source::Bursty { interval: i, frames } => {
                let batch = i128::from(*frames);
                (Kind::Periodic { interval: interval(i), batch }, Span::ZERO)
            }
            Source::Trace(frames) => {
                let all = || frames.iter().map(|f| f.1);
                let zero = Octets::default();
                octets = [all().min().unwrap_or(zero), all().max().unwrap_or(zero)];
                let times: Vec<_> = frames.iter().map(|f| i128::from(f.0.as_ns())).collect();
                (Kind::Trace(shortest_windows(&times)), Span::ZERO)
            }
        };
        Self::new(system, stream.talker, octets, early, kind)
    }

    /// What a source that ignores its limits sends: all that its link carries.
    pub(crate) fn unlimited(octets: [Octets; 2]) -> Self {
        Self { octets, kind: Kind::Unlimited, clock: BILLION, early: 0 }
    }

    /// What one frame occupies of a wire, in nanobits: the rate times whole nanoseconds.
    pub(crate) fn on_wire(rate: BitRate, octets: Octets, extra: Octets) -> i128 {
        let wire = frame::on_wire(octets) + extra;
        i128::from(rate.as_bps()) * i128::from(rate.time_for(wire).as_ns())
    }

    /// The most frames in any closed window, if there is a limit.
    pub(crate) fn frames_within(&self, window: Span, jitter: Span) -> Option<u64> {
        let span = i128::from(window.as_ns()) + i128::from(jitter.as_ns());
        let local = self.clock * span + self.early * BILLION;
        let frames = match &self.kind {
            Kind::Periodic { interval, batch } => batch * (1 + local / (interval * BILLION)),
            Kind::Trace(windows) => {
                windows.partition_point(|window| window * BILLION <= local) as i128
            }
            Kind::Unlimited => return None,
        };
        Some(u64::try_from(frames).expect("no more frames than nanoseconds"))
    }

    /// The least time between two frames of a source that sends one at a time.
    pub(crate) fn spacing(&self) -> Span {
        let Kind::Periodic { interval, batch: 1 } = &self.kind else { return Span::ZERO };
        let least = (interval - self.early).max(0) * BILLION / self.clock;
        Span::from_ns(i64::try_from(least).expect("an interval"))
    }

    /// The sustained rate of frames of `frame` nanobits in bit/s, rounded up.
    pub(crate) fn rate(&self, frame: i128) -> i128 {
        match &self.kind {
            Kind::Periodic { interval, batch } => {
                div_ceil(frame * batch * self.clock, BILLION * interval)
            }
            Kind::Trace(_) => 0,
            Kind::Unlimited => UNLIMITED_BPS,
        }
    }

    /// The curve of frames of `frame` nanobits each after delays that differ by up to `jitter`.
    ///
    /// The staircase curve of whole frames is under two leaky buckets: one through their first two
    /// corners, one through all the others in the long run.
    pub(crate) fn curve(&self, frame: i128, jitter: i128) -> Curve {
        match &self.kind {
            Kind::Unlimited => Curve::affine(frame, UNLIMITED_BPS),
            Kind::Periodic { .. } => {
                let [(burst, rate), (at_once, then)] = self.stairs(frame, jitter);
                Curve::affine(burst, rate).min_affine(at_once, then)
            }
            Kind::Trace(windows) => trace_curve(windows, frame, self.clock, self.early, jitter),
        }
    }
}

impl Arrival {
    /// The long run's leaky bucket of a periodic source, and the one through its first corners.
    fn stairs(&self, frame: i128, jitter: i128) -> [(i128, i128); 2] {
        let Kind::Periodic { interval, batch } = &self.kind else {
            unreachable!("only periodic sources have regular stairs");
        };
        // In 10⁻⁹ of the talker's nanoseconds.
        let (early, interval) = (self.clock * jitter + self.early * BILLION, interval * BILLION);
        let at_once = 1 + early / interval;
        let step = frame * batch;
        let next = ((interval * at_once - early) / self.clock).max(1);
        // Whole nanoseconds are little more, where the product has no room.
        let over = match step.checked_mul(early) {
            Some(product) => div_ceil(product, interval),
            None => div_ceil(step * div_ceil(early, BILLION), interval / BILLION),
        };
        let burst = step + over;
        [(burst, self.rate(frame)), (step * at_once, div_ceil(step, next))]
    }

    /// The leaky bucket of the long run, whose burst is linear in the jitter.
    pub(crate) fn bucket(&self, frame: i128, jitter: i128) -> (i128, i128) {
        match &self.kind {
            Kind::Periodic { .. } => self.stairs(frame, jitter)[0],
            Kind::Trace(windows) => (frame * windows.len() as i128, 0),
            Kind::Unlimited => (frame, UNLIMITED_BPS),
        }
    }

    /// Leaky buckets, each of which is above what the source releases.
    pub(crate) fn buckets(&self, frame: i128) -> Vec<(i128, i128)> {
        match &self.kind {
            Kind::Periodic { .. } => self.stairs(frame, 0).to_vec(),
            Kind::Trace(windows) => vec![(frame * windows.len() as i128, 0)],
            Kind::Unlimited => vec![(frame, UNLIMITED_BPS)],
        }
    }
}

/// Per number of frames from 1 on, the shortest closed window that holds as many.
fn shortest_windows(times: &[i128]) -> Vec<i128> {
    let shortest = |count: usize| times.windows(count).map(|w| w[count - 1] - w[0]).min();
    (1..=times.len()).filter_map(shortest).collect()
}

/// Leaky buckets above the staircase curve: all at once, and one with the mean rate of each
/// doubling of the number of frames.
fn trace_curve(windows: &[i128], frame: i128, clock: i128, early: i128, jitter: i128) -> Curve {
    let all = windows.len() as i128;
    let mut curve = Curve::affine(frame * all, 0);
    // True time in which as many frames fit, at least.
    let window = |count: usize| {
        let local = (windows[count - 1] - early).max(0) * BILLION;
        (local / clock - jitter).max(0)
    };
    let mut count = 1;
    while count < windows.len() {
        let more = (2 * count).min(windows.len());
        let time = (window(more) - window(count)).max(1);
        let rate = div_ceil(frame * (more - count) as i128, time);
        let above = |n: usize| frame * n as i128 - rate * window(n);
        let burst = (1..=windows.len()).map(above).max().unwrap_or(0);
        curve = curve.min_affine(burst, rate);
        count = more;
    }
    curve
}
