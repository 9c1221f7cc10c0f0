//! A port at 1 Gb/s, simulated nanosecond by nanosecond as the standards' state variables change:
//! slow, plain, and without anything of what it is compared with but the settings and the clock.

use onbeat_model::port::{GateControl, PortSettings, QUEUES, Selection, TokenBucket};
use onbeat_model::time::{ClockError, NetTime};
use std::collections::{HashMap, VecDeque};

/// A frame that is offered to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// In ns.
    pub(super) at: i64,
    pub(super) queue: usize,
    pub(super) octets: u16,
    /// Its stream's place in the buckets; `None` without one.
    pub(super) stream: Option<usize>,
}

/// A stream's bucket and group.
pub(super) type Regulator = (TokenBucket, u32);

/// What occupies the wire.
#[derive(Clone, Copy)]
struct Sending {
    id: usize,
    queue: usize,
    octets: i64,
    start: i64,
    /// The last octet of the frame; `None` after a cut.
    ends: Option<i64>,
    free_at: i64,
}

pub(super) struct Oracle<'a> {
    settings: &'a PortSettings,
    offers: &'a [Offer],
    regulators: &'a [Regulator],
    clock: ClockError,
    /// What the clock's oscillator says, per ns.
    oscillator: Vec<i64>,
    /// Per queue and ns: open, and whether a frame must end before the next closing, and when
    /// that is.
    open: Vec<Vec<bool>>,
    closes: Vec<Vec<(i64, bool)>>,
    /// Per queue with a credit-based shaper and ns: what its credit rises at if its gate is open.
    idle_slopes: [Vec<i128>; QUEUES],
    queues: [VecDeque<usize>; QUEUES],
    /// Frames of asynchronous queues that are not eligible yet, per group.
    held: Vec<VecDeque<usize>>,
    /// Frames of asynchronous queues that are eligible from this instant on.
    free: Vec<usize>,
    /// In 10⁻⁹ bit.
    tokens: Vec<i128>,
    /// In 10⁻⁹ bit.
    credit: [i128; QUEUES],
    sending: Option<Sending>,
    rest: Option<Sending>,
    /// When the last octet of each frame is out.
    pub(super) ends: HashMap<usize, i64>,
    pub(super) cuts: u64,
}

const PER_BIT: i128 = 1_000_000_000;

impl<'a> Oracle<'a> {
    /// Everything that happens before `until`, in ns.
    pub(super) fn run(
        settings: &'a PortSettings,
        clock: ClockError,
        regulators: &'a [Regulator],
        offers: &'a [Offer],
        until: i64,
    ) -> Self {
        let ahead = until + 20_000;
        let by = |clock: ClockError| -> Vec<_> {
            (0..=ahead).map(|t| clock.read(NetTime::from_ns(t)).as_ns()).collect()
        };
        let (local, oscillator) = (by(clock), by(clock.unstepped()));
        let mut open = vec![Vec::new(); QUEUES];
        let mut closes = vec![vec![(i64::MAX, false); ahead as usize + 1]; QUEUES];
        // From each step on, the next closing is what the clock as it is then makes of it.
        let steps = [clock.step.from, clock.step.until].map(|at| at.as_ns());
        let steps = steps.into_iter().filter(|at| (1..=ahead).contains(at));
        let pieces = std::iter::once(0).chain(steps);
        let pieces: Vec<_> = pieces.map(|at| (at, by(clock.as_of(NetTime::from_ns(at))))).collect();
        for queue in 0..QUEUES {
            for (from, local) in &pieces {
                let states: Vec<_> = local.iter().map(|t| state(settings, queue, *t)).collect();
                let mut next = (i64::MAX, false);
                for t in (*from as usize..ahead as usize).rev() {
                    let (is_open, aware) = states[t + 1];
                    next = if is_open { next } else { (t as i64 + 1, aware) };
                    closes[queue][t] = next;
                }
            }
            open[queue] = local.iter().map(|t| state(settings, queue, *t).0).collect();
        }
        let groups = regulators.iter().map(|r| r.1 as usize + 1).max().unwrap_or(0);
        let idle_slopes = std::array::from_fn(|queue| idle_slopes(settings, queue, &local));
        let mut oracle = Self {
            settings,
            offers,
            regulators,
            clock,
            oscillator,
            idle_slopes,
            open,
            closes,
            queues: Default::default(),
            held: vec![VecDeque::new(); groups],
            free: Vec::new(),
            tokens: regulators.iter().map(|r| i128::from(r.0.burst.get()) * 8 * PER_BIT).collect(),
            credit: [0; QUEUES],
            sending: None,
            rest: None,
            ends: HashMap::new(),
            cuts: 0,
        };
        let mut next = 0;
        for t in 0..until {
            while next < offers.len() && offers[next].at == t {
                oracle.offer(next);
                next += 1;
            }
            oracle.release();
            oracle.transmit(t);
            oracle.pass(t as usize);
        }
        oracle
    }

    fn offer(&mut self, id: usize) {
        let offer = self.offers[id];
        let shaped = self.settings.selection[offer.queue] == Selection::Asynchronous;
        match offer.stream {
            Some(stream) if shaped => self.held[self.regulators[stream].1 as usize].push_back(id),
            None if shaped => self.free.push(id),
            _ => self.queues[offer.queue].push_back(id),
        }
    }

    /// Lets frames out of their regulators, those of one instant in the order in which they came.
    fn release(&mut self) {
        for group in &mut self.held {
            while let Some(id) = group.front().copied() {
                let bits = i128::from(self.offers[id].octets + 20) * 8 * PER_BIT;
                let tokens = &mut self.tokens[self.offers[id].stream.unwrap()];
                if *tokens < bits {
                    break;
                }
                *tokens -= bits;
                self.free.push(id);
                group.pop_front();
            }
        }
        self.free.sort_unstable();
        for id in self.free.drain(..) {
            self.queues[self.offers[id].queue].push_back(id);
        }
    }

    fn transmit(&mut self, t: i64) {
        if let Some(sending) = self.sending {
            if sending.ends == Some(t) {
                self.ends.insert(sending.id, t);
            }
            if sending.free_at == t {
                self.sending = None;
            } else {
                self.interrupt(t, sending);
                return;
            }
        }
        let mask = self.settings.preemptable;
        let ready = |queue: &usize| self.ready(*queue, t, t);
        let express = (0..QUEUES).rev().filter(|q| mask >> q & 1 == 0).find(ready);
        if let Some(queue) = express {
            return self.start(queue, t);
        }
        if let Some(rest) = self.rest {
            if self.fits(rest.queue, rest.octets + 20, t, t) {
                self.rest = None;
                self.begin(rest, t);
            }
            return;
        }
        let preemptable = (0..QUEUES).rev().filter(|q| mask >> q & 1 == 1).find(ready);
        if let Some(queue) = preemptable {
            self.start(queue, t);
        }
    }

    /// Whether the head of a queue is allowed at `t`, and fits if it starts at `start`.
    fn ready(&self, queue: usize, t: i64, start: i64) -> bool {
        let Some(id) = self.queues[queue].front() else { return false };
        let wire = i64::from(self.offers[*id].octets) + 20;
        let shaped = matches!(self.settings.selection[queue], Selection::CreditBased { .. });
        (!shaped || self.credit[queue] >= 0)
            && self.fits(queue, wire, t, t)
            && self.fits(queue, wire, t, start)
    }

    /// Whether a frame that starts at `start` may do so by the clock as it is at `t`.
    fn fits(&self, queue: usize, wire_octets: i64, t: i64, start: i64) -> bool {
        let ends = start + wire_octets * 8;
        if self.clock.step.next(NetTime::from_ns(t)).as_ns() > start {
            let (closes, aware) = self.closes[queue][start as usize];
            return self.open[queue][start as usize] && (!aware || ends <= closes);
        }
        let clock = self.clock.as_of(NetTime::from_ns(t));
        let at = |t| state(self.settings, queue, clock.read(NetTime::from_ns(t)).as_ns());
        let closed = (start..ends).map(at).find(|(open, _)| !open);
        at(start).0 && closed.is_none_or(|(_, aware)| !aware)
    }

    fn start(&mut self, queue: usize, t: i64) {
        let id = self.queues[queue].pop_front().unwrap();
        let octets = i64::from(self.offers[id].octets);
        self.begin(Sending { id, queue, octets, start: t, ends: None, free_at: 0 }, t);
    }

    fn begin(&mut self, what: Sending, t: i64) {
        let ends = t + (8 + what.octets) * 8;
        self.sending = Some(Sending { start: t, ends: Some(ends), free_at: ends + 96, ..what });
    }

    fn interrupt(&mut self, t: i64, sending: Sending) {
        let mask = self.settings.preemptable;
        if mask >> sending.queue & 1 == 0 || sending.ends.is_none_or(|ends| t >= ends) {
            return;
        }
        let out = ((t - sending.start + 7) / 8 - 8).max(60);
        let free_at = sending.start + (8 + out + 4 + 12) * 8;
        if sending.octets - out < 64 {
            return;
        }
        if (0..QUEUES).any(|q| mask >> q & 1 == 0 && self.ready(q, t, free_at)) {
            self.cuts += 1;
            self.sending = Some(Sending { ends: None, free_at, ..sending });
            self.rest = Some(Sending { octets: sending.octets - out, ..sending });
        }
    }

    /// The time from `t` to `t + 1`.
    fn pass(&mut self, t: usize) {
        let ticks = i128::from(self.oscillator[t + 1] - self.oscillator[t]);
        for (tokens, (bucket, _)) in self.tokens.iter_mut().zip(self.regulators) {
            let full = i128::from(bucket.burst.get()) * 8 * PER_BIT;
            *tokens = full.min(*tokens + i128::from(bucket.rate.as_bps()) * ticks);
        }
        for queue in 0..QUEUES {
            let Some(slope) = self.idle_slopes[queue].get(t).copied() else { continue };
            let is_sending = self.sending.is_some_and(|sending| sending.queue == queue);
            let waits =
                !self.queues[queue].is_empty() || self.rest.is_some_and(|rest| rest.queue == queue);
            let credit = &mut self.credit[queue];
            if !is_sending && !waits {
                *credit = (*credit).min(0);
            }
            if self.open[queue][t] && (is_sending || waits || *credit < 0) {
                *credit += slope;
            }
            if is_sending {
                *credit -= PER_BIT;
            } else if !waits {
                *credit = (*credit).min(0);
            }
        }
    }
}

/// idleSlope per ns: operIdleSlope × OperCycleTime / GateOpenTime of the list in force, at most the
/// rate of the port.
fn idle_slopes(settings: &PortSettings, queue: usize, local: &[i64]) -> Vec<i128> {
    let Selection::CreditBased { idle_slope } = settings.selection[queue] else {
        return Vec::new();
    };
    let slope = i128::from(idle_slope.as_bps());
    let of = |list: &GateControl| {
        let only = PortSettings { gates: vec![list.clone()], ..PortSettings::default() };
        let (cycle, from) = (list.cycle.as_ns(), list.base.as_ns());
        let open = (from..from + cycle).filter(|t| state(&only, queue, *t).0).count() as i128;
        let whole = slope * i128::from(cycle);
        if open == 0 { slope } else { ((whole + open - 1) / open).min(PER_BIT) }
    };
    let slopes: Vec<_> = settings.gates.iter().map(of).collect();
    let at = |t: &i64| settings.gates.iter().rposition(|list| list.base.as_ns() <= *t);
    local.iter().map(|t| at(t).map_or(slope, |list| slopes[list])).collect()
}

/// Whether the gate is open at an instant of the clock, and whether the list in force then is
/// length-aware.
fn state(settings: &PortSettings, queue: usize, local: i64) -> (bool, bool) {
    let Some(list) = settings.gates.iter().rfind(|list| list.base.as_ns() <= local) else {
        return (true, false);
    };
    let mut phase = (local - list.base.as_ns()).rem_euclid(list.cycle.as_ns());
    let mut entries = list.entries.iter();
    let mut open = 0;
    for entry in entries.by_ref() {
        open = entry.open;
        if phase < entry.span.as_ns() {
            break;
        }
        phase -= entry.span.as_ns();
    }
    (open >> queue & 1 == 1, list.length_aware)
}
