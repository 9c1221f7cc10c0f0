//! The delay of a link and the rate of the neighbour's clock (802.1AS-2020 11.2.19, MDPdelayReq):
//! pairs of time stamps from both ends of the link, a window of them.

use crate::gptp::message::PortIdentity;
use crate::gptp::time::{LocalClockTime, PtpTime, RateOffset, ScaledNs};
use onbeat_model::time::Span;
use std::collections::VecDeque;

/// Exchanges that the estimates are made of: 16 s at the default interval. The rate is that between
/// the first and the last, the delay a mean of all that are not far off.
const WINDOW: usize = 16;
/// Exchanges that may fail in a row before the neighbour counts as not there (11.5.3,
/// allowedLostResponses).
const LOST_MAX: u8 = 9;
/// What a neighbour's rate differs at most: twice 100 ppm (B.1.1), and what stamps may be off.
const RATE_MAX: RateOffset = RateOffset::from_ppb(1_000_000);
/// A neighbour answers within this (11.5.2 wants 10 ms).
const TURNAROUND_MAX: ScaledNs = ScaledNs::from_ns(1_000_000_000);

/// What is known of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// meanLinkDelay, by the neighbour's clock.
    pub delay: ScaledNs,
    /// neighborRateRatio − 1: how much faster the neighbour's clock runs than ours.
    pub rate: RateOffset,
}

/// One exchange in progress. Its parts come in any order: a time stamp may be later than the
/// answer.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    /// When the request left.
    t1: Option<LocalClockTime>,
    /// When the neighbour had it, when its answer came, and from which port.
    response: Option<(PtpTime, LocalClockTime, PortIdentity)>,
    /// When its answer left.
    t3: Option<PtpTime>,
}

/// One port's measurement.
#[derive(Clone, Debug)]
pub struct PeerDelay {
    threshold: ScaledNs,
    sequence: u16,
    /// `None` before the first request and when the last one is answered.
    exchange: Option<Exchange>,
    lost: u8,
    /// (t3, t4) of exchanges.
    pairs: VecDeque<(PtpTime, LocalClockTime)>,
    delays: VecDeque<ScaledNs>,
    link: Option<LinkState>,
}

impl PeerDelay {
    /// Nothing is known. Beyond `threshold` (meanLinkDelayThresh), a delay is not that of a
    /// link.
    pub fn new(threshold: Span) -> Self {
        Self {
            threshold: threshold.into(),
            sequence: u16::MAX,
            exchange: None,
            lost: 0,
            pairs: VecDeque::with_capacity(WINDOW),
            delays: VecDeque::with_capacity(WINDOW),
            link: None,
        }
    }

    /// What is known of the link, once two exchanges were complete, until too many fail.
    pub fn link(&self) -> Option<LinkState> {
        self.link
    }

    /// Whether the link is good for gPTP (11.2.2, asCapable).
    pub fn capable(&self) -> bool {
        self.link.is_some_and(|link| link.delay.abs() <= self.threshold)
    }

    /// Begins an exchange: the number of its request.
    pub fn begin(&mut self) -> u16 {
        if self.exchange.is_some() {
            self.lose();
        }
        self.exchange = Some(Exchange::default());
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// The request's time stamp.
    pub fn sent(&mut self, sequence: u16, at: LocalClockTime) {
        self.with(sequence, |exchange| exchange.t1 = Some(at));
    }

    /// A response to us: `received` with its correction taken off.
    pub fn response(
        &mut self,
        sequence: u16,
        from: PortIdentity,
        received: PtpTime,
        at: LocalClockTime,
    ) {
        self.with(sequence, |exchange| {
            // Who answers first is the neighbour.
            exchange.response.get_or_insert((received, at, from));
        });
    }

    /// The follow-up of a response to us: `origin` with its correction.
    pub fn follow_up(&mut self, sequence: u16, from: PortIdentity, origin: PtpTime) {
        self.with(sequence, |exchange| {
            if exchange.response.is_some_and(|(_, _, neighbour)| neighbour == from) {
                exchange.t3 = Some(origin);
            }
        });
    }

    fn with(&mut self, sequence: u16, what: impl FnOnce(&mut Exchange)) {
        let Some(exchange) = self.exchange.as_mut().filter(|_| sequence == self.sequence) else {
            return;
        };
        what(exchange);
        let Exchange { t1: Some(t1), response: Some((t2, t4, _)), t3: Some(t3) } = *exchange else {
            return;
        };
        self.exchange = None;
        match self.measure(t1, t2, t3, t4) {
            Some(()) => self.lost = 0,
            None => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.lost = self.lost.saturating_add(1);
        if self.lost > LOST_MAX {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.pairs.clear();
        self.delays.clear();
        self.link = None;
    }

    /// Takes an exchange's times; `None` if they cannot be.
    fn measure(
        &mut self,
        t1: LocalClockTime,
        t2: PtpTime,
        t3: PtpTime,
        t4: LocalClockTime,
    ) -> Option<()> {
        let turnaround = t3 - t2;
        if turnaround.abs() > TURNAROUND_MAX || t4 < t1 {
            return None;
        }
        if let Some((first3, first4)) = self.pairs.front() {
            let rate = RateOffset::between(t3 - *first3, t4 - *first4);
            let Some(rate) = rate.filter(|rate| rate.abs() <= RATE_MAX) else {
                // The neighbour's clock was set, or one of these stamps is far off.
                self.pairs.clear();
                self.pairs.push_back((t3, t4));
                return None;
            };
            let delay = ((t4 - t1).at_rate(rate) - turnaround).over(2);
            push(&mut self.delays, delay);
            self.link = Some(LinkState { delay: middle_mean(&self.delays), rate });
        }
        push(&mut self.pairs, (t3, t4));
        Some(())
    }
}

fn push<T>(window: &mut VecDeque<T>, value: T) {
    if window.len() == WINDOW {
        window.pop_front();
    }
    window.push_back(value);
}

/// The mean of the middle half: few stamps that are far off, as software makes them, move it
/// little, and the steps of a coarse clock are evened out.
fn middle_mean(values: &VecDeque<ScaledNs>) -> ScaledNs {
    let mut sorted: Vec<_> = values.iter().copied().collect();
    sorted.sort_unstable();
    let quarter = sorted.len() / 4;
    let middle = &sorted[quarter..sorted.len() - quarter];
    let sum = middle.iter().fold(ScaledNs::ZERO, |sum, value| sum + *value);
    sum.over(middle.len().max(1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOUR: PortIdentity =
        PortIdentity { clock: crate::gptp::ClockIdentity([7; 8]), port: 1 };

    /// One exchange in true nanoseconds from `at`; the neighbour's clock runs 50 ppm faster.
    fn exchange(peer: &mut PeerDelay, at: i64, delay: i64) {
        let free = |ns| LocalClockTime::from_ns(ns);
        let rate = RateOffset::from_ppb(50_000);
        let theirs = |ns| PtpTime::from_epoch(ScaledNs::from_ns(ns).at_rate(rate));
        let sequence = peer.begin();
        peer.response(sequence, NEIGHBOUR, theirs(at + delay), free(at + 2 * delay + 1_000_000));
        peer.follow_up(sequence, NEIGHBOUR, theirs(at + delay + 1_000_000));
        peer.sent(sequence, free(at));
    }

    #[test]
    fn delay_and_rate_are_found_from_the_second_exchange_on() {
        let mut peer = PeerDelay::new(Span::from_ns(800));
        exchange(&mut peer, 0, 500);
        assert!(!peer.capable() && peer.link().is_none());
        exchange(&mut peer, 1_000_000_000, 500);
        let link = peer.link().expect("two exchanges");
        assert_eq!(link.delay.span().as_ns(), 500);
        assert!((link.rate.scaled() - RateOffset::from_ppb(50_000).scaled()).abs() < 100);
        assert!(peer.capable());
    }

    #[test]
    fn a_delay_beyond_the_threshold_is_not_that_of_a_link() {
        let mut peer = PeerDelay::new(Span::from_ns(800));
        for second in 0..3 {
            exchange(&mut peer, second * 1_000_000_000, 900);
        }
        assert!(!peer.capable() && peer.link().is_some());
    }

    #[test]
    fn one_exchange_that_is_far_off_does_not_move_the_delay_by_much() {
        let mut peer = PeerDelay::new(Span::from_us(800));
        for second in 0..20 {
            let delay = if second == 10 { 400_000 } else { 5_000 };
            exchange(&mut peer, second * 1_000_000_000, delay);
        }
        let delay = peer.link().expect("exchanges").delay.span();
        assert!((delay - Span::from_ns(5_000)).abs() < Span::from_ns(10), "{delay}");
    }

    #[test]
    fn a_neighbour_that_is_silent_is_lost_after_ten_requests() {
        let mut peer = PeerDelay::new(Span::from_ns(800));
        exchange(&mut peer, 0, 500);
        exchange(&mut peer, 1_000_000_000, 500);
        for _ in 0..=LOST_MAX {
            assert!(peer.capable());
            peer.begin();
        }
        peer.begin();
        assert!(!peer.capable());
    }

    #[test]
    fn what_is_not_of_this_exchange_or_cannot_be_changes_nothing() {
        let mut peer = PeerDelay::new(Span::from_ns(800));
        exchange(&mut peer, 0, 500);
        exchange(&mut peer, 1_000_000_000, 500);
        let before = peer.link();
        let sequence = peer.begin();
        let other = PortIdentity { port: 9, ..NEIGHBOUR };
        let (now, late) = (LocalClockTime::from_ns(2_000_000_000), PtpTime::from_ns(i64::MAX));
        peer.sent(sequence.wrapping_add(1), now);
        peer.response(sequence, NEIGHBOUR, late, now);
        peer.follow_up(sequence, other, PtpTime::from_ns(0));
        peer.follow_up(sequence, NEIGHBOUR, PtpTime::from_ns(0));
        peer.sent(sequence, now);
        assert_eq!(peer.link(), before);
    }
}
