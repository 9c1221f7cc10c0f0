//! Per-stream filtering and policing (802.1Qci; 802.1Q-2022 8.6.5.2), exact in integers.

use onbeat_model::port::Policing;
use onbeat_model::time::{ClockError, NetTime, SyncedTime};
use onbeat_model::units::{Octets, frame};

/// A rate in bit/s times a time in ns counts 10⁻⁹ bit.
const PER_BIT: i128 = 1_000_000_000;

/// The stream filter and flow meter of one stream at its first bridge.
#[derive(Debug)]
pub(crate) struct Filter {
    policing: Policing,
    /// The bridge's, whatever it is set to.
    clock: ClockError,
    /// In 10⁻⁹ bit, as of `as_of`; full at the beginning.
    tokens: i128,
    as_of: SyncedTime,
    blocked: bool,
}

impl Filter {
    pub(crate) fn new(policing: Policing, clock: ClockError) -> Self {
        assert_eq!(clock, clock.unstepped(), "a clock that is set");
        let tokens = policing.meter.map_or(0, |meter| bits(meter.burst) * PER_BIT);
        let as_of = clock.read(NetTime::ZERO);
        Self { policing, clock, tokens, as_of, blocked: false }
    }

    /// From now on the bridge's clock is this one, whatever it is set to.
    pub(crate) fn set_clock(&mut self, clock: ClockError) {
        self.clock = clock.unstepped();
    }

    /// Whether a frame of so many octets, destination address to FCS, may pass at `now`. What a
    /// frame takes from the bucket is its time on the wire, with preamble and gap.
    pub(crate) fn passes(&mut self, now: NetTime, octets: u16) -> bool {
        let octets = Octets::new(octets.into());
        let too_long = self.policing.max_frame.is_some_and(|most| octets > most);
        let passes = !self.blocked && !too_long && self.meters(now, octets);
        self.blocked |= self.policing.block && !passes;
        passes
    }

    /// Takes the frame's tokens, if there are as many.
    fn meters(&mut self, now: NetTime, octets: Octets) -> bool {
        let Some(meter) = self.policing.meter else { return true };
        let now = self.clock.read(now);
        let gained = i128::from((now - self.as_of).as_ns()) * i128::from(meter.rate.as_bps());
        self.tokens = (self.tokens + gained).min(bits(meter.burst) * PER_BIT);
        self.as_of = now;
        let needed = bits(frame::on_wire(octets)) * PER_BIT;
        let enough = self.tokens >= needed;
        if enough {
            self.tokens -= needed;
        }
        enough
    }
}

fn bits(octets: Octets) -> i128 {
    i128::from(octets.get()) * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::port::TokenBucket;
    use onbeat_model::time::Span;
    use onbeat_model::units::BitRate;

    /// 80 Mb/s with room for two frames of 100 octets on the wire: 800 bits take 10 µs.
    fn policing(block: bool) -> Policing {
        let meter = TokenBucket { rate: BitRate::from_mbps(80), burst: Octets::new(200) };
        Policing { meter: Some(meter), max_frame: Some(Octets::new(90)), block }
    }

    fn passed(mut filter: Filter, frames: &[(i64, u16)]) -> Vec<bool> {
        frames.iter().map(|(at, octets)| filter.passes(NetTime::from_ns(*at), *octets)).collect()
    }

    #[test]
    fn a_meter_passes_its_burst_then_its_rate_to_the_nanosecond() {
        let filter = Filter::new(policing(false), ClockError::default());
        let frames = [(0, 80), (0, 80), (0, 80), (9_999, 80), (10_000, 80), (90_000, 91)];
        assert_eq!(passed(filter, &frames), [true, true, false, false, true, false]);
        // Long idle: no more than the burst.
        let filter = Filter::new(policing(false), ClockError::default());
        let frames = [(0, 80), (1_000_000, 80), (1_000_000, 80), (1_000_000, 80)];
        assert_eq!(passed(filter, &frames), [true, true, true, false]);
    }

    #[test]
    fn a_meter_counts_by_its_bridges_clock() {
        let clock = ClockError { drift_ppb: 1_000_000, ..ClockError::default() };
        // 1000 ppm fast: 9990 ns of true time read 9999.99 ns, 9991 ns read 10,000.991.
        let filter = Filter::new(policing(false), clock);
        let frames = [(0, 80), (0, 80), (9_990, 80), (9_991, 80)];
        assert_eq!(passed(filter, &frames), [true, true, false, true]);
    }

    #[test]
    fn a_blocking_filter_never_opens_again() {
        let filter = Filter::new(policing(true), ClockError::default());
        assert_eq!(passed(filter, &[(0, 80), (0, 91), (5, 80)]), [true, false, false]);
        let clock = ClockError { offset: Span::from_s(-1), ..ClockError::default() };
        let filter = Filter::new(policing(true), clock);
        let frames = [(0, 80), (0, 80), (0, 80), (1_000_000_000, 80)];
        assert_eq!(passed(filter, &frames), [true, true, false, false]);
    }
}
