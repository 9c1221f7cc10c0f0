//! When to send again (RFC 6298).

use onbeat_model::time::Span;

/// Before the first sample (RFC 6298 2.1, Linux `TCP_TIMEOUT_INIT`).
pub const RTO_INITIAL: Span = Span::from_s(1);
/// The least that the variance adds to the smoothed round trip (Linux `TCP_RTO_MIN`).
pub const RTO_MIN: Span = Span::from_ms(200);
/// The most (Linux `TCP_RTO_MAX`).
pub const RTO_MAX: Span = Span::from_s(120);

/// The retransmission timeout of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoEstimator {
    /// SRTT in eighths and RTTVAR in quarters of a nanosecond, as Linux keeps microseconds; `None`
    /// before the first sample.
    smoothed: Option<[i64; 2]>,
    rto: Span,
}

impl Default for RtoEstimator {
    fn default() -> Self {
        Self { smoothed: None, rto: RTO_INITIAL }
    }
}

impl RtoEstimator {
    /// Takes a round trip of something that was sent once (RFC 6298 2.2, 2.3). α is 1/8 and β 1/4;
    /// both divisions round down.
    pub fn sample(&mut self, round_trip: Span) {
        let r = round_trip.as_ns().clamp(0, RTO_MAX.as_ns());
        let [srtt8, rttvar4] = match self.smoothed {
            None => [8 * r, 2 * r],
            Some([srtt8, rttvar4]) => {
                // RTTVAR first: it is about the SRTT before.
                let apart = (srtt8 / 8 - r).abs();
                [srtt8 - srtt8 / 8 + r, rttvar4 - rttvar4 / 4 + apart]
            }
        };
        self.smoothed = Some([srtt8, rttvar4]);
        self.rto = (Span::from_ns(srtt8 / 8) + Span::from_ns(rttvar4).max(RTO_MIN)).min(RTO_MAX);
    }

    /// The timer has expired: twice as long from now on (RFC 6298 5.5), until the next sample.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(RTO_MAX);
    }

    /// How long to wait for an acknowledgement.
    pub fn rto(&self) -> Span {
        self.rto
    }
}
