//! The formulas of the analyses, and a mutant of each: what is a little weaker.

use std::fmt;

/// Where the files are.
pub(crate) const ANALYSIS: &str = "crates/bounds/src/analysis";

/// Where those of `onbeat-timing` are, from there.
pub(crate) const TIMING: &str = "../../../timing/src/";

/// One formula that is made a little too small, as a rule by 1 %; where a whole nanosecond, octet
/// or case is at stake, by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The file, from the directory of the analysis of bounds: those of `onbeat-timing` begin with
    /// [`TIMING`].
    pub file: &'static str,
    /// The expression, as it is written there exactly once.
    pub expression: &'static str,
    /// What stands in its place.
    pub mutated: &'static str,
}
impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.file, self.expression.trim(), self.mutated.trim())
    }
}

/// A mutant.
const fn of(file: &'static str, expression: &'static str, mutated: &'static str) -> Mutant {
    Mutant { file, expression, mutated }
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    of(
        "arrival.rs",
        "let rate = BILLION + i128::from(clock.drift_ppb);",
        "let rate = BILLION + i128::from(clock.drift_ppb) * 99 / 100;",
    ),
    of(
        "arrival.rs",
        "2 * i128::from(clock.wander.as_ns()) + rounding",
        "198 * i128::from(clock.wander.as_ns()) / 100 + rounding",
    ),
    of(
        "arrival.rs",
        "let rounding = i128::from(clock.drift_ppb != 0 || wanders);",
        "let rounding = 0 * i128::from(wanders);",
    ),
    of(
        "arrival.rs",
        "i128::from(early.as_ns()) + rounding",
        "i128::from(early.as_ns()) * 99 / 100 + rounding",
    ),
    of(
        "arrival.rs",
        "i128::from(rate.as_bps()) * i128::from(rate.time_for(wire).as_ns())",
        "i128::from(rate.as_bps()) * 0 + i128::from(wire.get()) * 8 * BILLION",
    ),
    of(
        "arrival.rs",
        "batch * (1 + local / (interval * BILLION))",
        "batch * (1 + local * 99 / (100 * interval * BILLION))",
    ),
    of("arrival.rs", "window * BILLION <= local", "window * BILLION < local"),
    of(
        "arrival.rs",
        "div_ceil(frame * batch * self.clock, BILLION * interval)",
        "div_ceil(frame * batch * self.clock * 99, BILLION * interval * 100)",
    ),
    of(
        "arrival.rs",
        "let at_once = 1 + early / interval;",
        "let at_once = 1 + early * 99 / (interval * 100);",
    ),
    of(
        "arrival.rs",
        "((interval * at_once - early) / self.clock).max(1)",
        "((interval * at_once - early) * 101 / (self.clock * 100)).max(1)",
    ),
    of(
        "arrival.rs",
        "Some(product) => div_ceil(product, interval)",
        "Some(product) => div_ceil(product * 99, interval * 100)",
    ),
    of("arrival.rs", "Curve::affine(frame * all, 0)", "Curve::affine(frame * all * 99 / 100, 0)"),
    of(
        "arrival.rs",
        "(windows[count - 1] - early).max(0)",
        "(windows[count - 1] - early * 99 / 100).max(0)",
    ),
    of(
        "arrival.rs",
        "(local / clock - jitter).max(0)",
        "(local / clock - jitter * 99 / 100).max(0)",
    ),
    of(
        "arrival.rs",
        ".map(above).max().unwrap_or(0);",
        ".map(above).max().unwrap_or(0) * 99 / 100;",
    ),
    of(
        "arrival.rs",
        "(step * at_once, div_ceil(step, next))]",
        "(step * at_once * 99 / 100, div_ceil(step, next))]",
    ),
    of(
        "arrival.rs",
        "vec![(frame * windows.len() as i128, 0)]",
        "vec![(frame * windows.len() as i128 * 99 / 100, 0)]",
    ),
    of("bound.rs", "host.stack_rx.max());", "host.stack_rx.min());"),
    of(
        "bound.rs",
        "best: first + travel + host.stack_rx.min()",
        "best: first + travel * 2 + host.stack_rx.min()",
    ),
    of("bound.rs", "offset * BILLION + drift * at", "offset * BILLION + drift * at * 99 / 100"),
    of(
        "bound.rs",
        "i128::from(drift_ppb).max(0) * latency",
        "i128::from(drift_ppb).max(0) * latency * 0",
    ),
    of(
        "bound.rs",
        "(listener.wander + talker.wander * 3)",
        "(listener.wander + talker.wander * 2)",
    ),
    of(
        "bound.rs",
        "div_ceil(apart, BILLION + slow) + i128::from(fast != 0)",
        "div_ceil(apart * 99, (BILLION + slow) * 100) + i128::from(fast != 0)",
    ),
    of(
        "bound.rs",
        "work + (work * before).max(more)",
        "work + (work * (before - 1).max(0)).max(more)",
    ),
    of("bound.rs", "* BILLION / (BILLION + drift)", "* BILLION / (BILLION + drift * 0)"),
    of(
        "bound.rs",
        "div_ceil(i128::from(work.as_ns()) * drift, BILLION)",
        "div_ceil(i128::from(work.as_ns()) * drift * 0, BILLION)",
    ),
    of(
        "bound.rs",
        "span(state.late? - state.arrives?)",
        "span((state.late? - state.arrives?) * 99 / 100)",
    ),
    of("bound.rs", "span(state.wait?)))", "span(state.wait? * 99 / 100)))"),
    of(
        "bound.rs",
        "leaves + link.propagation - gap(link.rate",
        "leaves + link.propagation * 0 - gap(link.rate",
    ),
    of(
        "curve.rs",
        "        piece.burst + piece.rate * t\n",
        "        piece.burst * 99 / 100 + piece.rate * t\n",
    ),
    of("curve.rs", "(last.burst, last.rate)\n    }", "(last.burst * 99 / 100, last.rate)\n    }"),
    of(
        "curve.rs",
        "let cross = piece.from + div_ceil(above.abs(), slope.abs());",
        "let cross = piece.from + div_ceil(above.abs() * 99, slope.abs() * 100);",
    ),
    of(
        "curve.rs",
        "amount + piece.burst + rate * latency",
        "amount + piece.burst + rate * latency * 99 / 100",
    ),
    of("curve.rs", "(div_ceil(needed.max(0), left))", "(needed.max(0) / left)"),
    of(
        "curve.rs",
        "self.0.iter().map(|piece| piece.from).chain(ends)",
        "self.0.iter().map(|piece| piece.from).chain(ends.take(0))",
    ),
    of("flow.rs", "Octets = Octets::new(143)", "Octets = Octets::new(142)"),
    of("flow.rs", "Octets = Octets::new(24)", "Octets = Octets::new(23)"),
    of("arrival.rs", "REGULATOR_ROUNDING: i128 = 4;", "REGULATOR_ROUNDING: i128 = 3;"),
    of(
        "flow.rs",
        "let arrives = Some(ns(flow.stack[1]));",
        "let arrives = Some(ns(flow.stack[1]) * 99 / 100);",
    ),
    of("flow.rs", "l + w + ns(from.travel[1])", "l + w + ns(from.travel[1]) * 99 / 100"),
    of("flow.rs", "reduce(|a, b| Some(a?.max(b?)))", "reduce(|a, b| Some(a?.min(b?)))"),
    of(
        "flow.rs",
        "state.early.max(state.starts) + ns(from.travel[0])",
        "state.early.max(state.starts) + ns(from.travel[0]) * 101 / 100",
    ),
    of("flow.rs", "(curve.at(t) - burst).max(0)", "(curve.at(t) - burst * 101 / 100).max(0)"),
    of("flow.rs", "arrives + held + if held > 0", "arrives + held * 99 / 100 + if held > 0"),
    of(
        "flow.rs",
        "!cyclic && !self.network.unlimited[place.0][place.1]",
        "!cyclic && (place.0, place.1) == place",
    ),
    of("interference.rs", "self.network.unlimited[port][queue]", "place != (port, queue)"),
    of(
        "network.rs",
        "BEST_EFFORT_QUEUE] = true;\n            }\n        }\n        self.flows",
        "BEST_EFFORT_QUEUE] = false;\n            }\n        }\n        self.flows",
    ),
    of(
        "arrival.rs",
        "div_ceil(rate * clock, BILLION)",
        "div_ceil(rate * clock * 99, BILLION * 100)",
    ),
    of(
        "arrival.rs",
        "(burst - rate * apart, rate * clock / BILLION)",
        "(burst, rate * clock / BILLION)",
    ),
    of(
        "flow.rs",
        "longest.max(state.wait? + i128::from(from.travel[1].as_ns()))",
        "longest.max(state.wait? * 99 / 100 + i128::from(from.travel[1].as_ns()))",
    ),
    of("flow.rs", "is_same_rate(system, up.port, here.port)", "up.port != here.port"),
    of("flow.rs", "wait + i128::from(cyclic)", "wait + 0 * i128::from(cyclic)"),
    of(
        "gates.rs",
        "latency: worst.latency + list.latency",
        "latency: worst.latency.max(list.latency)",
    ),
    of(
        "gates.rs",
        "list.open * worst.cycle < worst.open * list.cycle",
        "list.open * worst.cycle > worst.open * list.cycle",
    ),
    of(
        "gates.rs",
        "div_ceil((self.latency + apart) * BILLION, rate)",
        "div_ceil((self.latency + apart * 0) * BILLION, rate)",
    ),
    of(
        "gates.rs",
        "(from + losses.start, to - losses.end)",
        "(from + losses.start * 99 / 100, to - losses.end)",
    ),
    of(
        "gates.rs",
        "(from, to, losses.used(to - from))",
        "(from, to, losses.used(to - from + losses.end / 100))",
    ),
    of(
        "gates.rs",
        "div_ceil((start - end).max(0), open)",
        "div_ceil((start - end).max(0) * 99 / 100, open)",
    ),
    of(
        "gates.rs",
        "all.least.0.min(while_open * usable / cycle)",
        "all.least.0.min(while_open * usable * 101 / (cycle * 100))",
    ),
    of(
        "gates.rs",
        "all.least.1 = Availability::new(&settings.gates, queue, clock, losses)?.latency;",
        "all.least.1 = 0 * Availability::new(&settings.gates, queue, clock, losses)?.latency;",
    ),
    of(
        "gates.rs",
        "opens && before.0 & now.0 & others != 0",
        "opens && before.0 & now.0 & others & 0 != 0",
    ),
    of(
        "gates.rs",
        "(open + error, close - error)",
        "(open + error * 99 / 100, close - error * 99 / 100)",
    ),
    of(
        "gates.rs",
        "(open - error, close + error)",
        "(open - error * 99 / 100, close + error * 99 / 100)",
    ),
    of(
        "interference.rs",
        "amount + div_ceil(amount * self.0, BILLION)",
        "amount + div_ceil(amount * self.0 * 99, 100 * BILLION)",
    ),
    of(
        "interference.rs",
        "let jitter = late - state.early + shift;",
        "let jitter = (late - state.early) * 99 / 100 + shift;",
    ),
    of(
        "interference.rs",
        "swells.of(burst + rate * jitter), swells.of(rate)",
        "swells.of(burst * 99 / 100 + rate * jitter), swells.of(rate)",
    ),
    of(
        "interference.rs",
        "swells.of(burst + rate * later), swells.of(rate)",
        "swells.of(burst * 99 / 100 + rate * later), swells.of(rate)",
    ),
    of(
        "interference.rs",
        "let later = since.max(0) + shift;",
        "let later = since.max(0) * 99 / 100 + shift;",
    ),
    of(
        "interference.rs",
        "min_affine(burst + rate * shift, rate)",
        "min_affine((burst + rate * shift) * 99 / 100, rate)",
    ),
    of("interference.rs", "{ 2 * longest } else", "{ 198 * longest / 100 } else"),
    of("interference.rs", "swells.of(*credit + more)", "swells.of((*credit + more) * 99 / 100)"),
    of(
        "interference.rs",
        "let closer = div_ceil(*longest, line);",
        "let closer = 0 * div_ceil(*longest, line);",
    ),
    of(
        "interference.rs",
        "(low.max(own) + burst) * slopes",
        "(low.max(own) * 99 / 100 + burst) * slopes",
    ),
    of("interference.rs", "let mut blocking = low;", "let mut blocking = low * 99 / 100;"),
    of(
        "interference.rs",
        "self.arrivals(there, shift, self.extra(there))",
        "self.arrivals(there, shift * 99 / 100, self.extra(there))",
    ),
    of("interference.rs", "&Curve::affine(0, slopes)", "&Curve::affine(0, slopes * 99 / 100)"),
    of(
        "interference.rs",
        "if cut { frame.min(whole) } else { frame }",
        "if cut { frame.min(whole) * 99 / 100 } else { frame }",
    ),
    of(
        "interference.rs",
        "div_ceil(div_ceil(amount, rate) * clock_rate, BILLION) + apart",
        "div_ceil(div_ceil(amount, rate) * clock_rate * 99, BILLION * 100) + apart",
    ),
    of(
        "interference.rs",
        "(rate * usable.open / usable.cycle, usable.latency)",
        "(rate * usable.open * 101 / (usable.cycle * 100), usable.latency)",
    ),
    of(
        "interference.rs",
        "div_ceil(frame * (rate - real).max(0), rate)",
        "div_ceil(frame * 99 / 100 * (rate - real).max(0), rate)",
    ),
    of("coincidence.rs", "full + longest + span(busy)", "full + longest + span(busy * 99 / 100)"),
    of(
        "coincidence.rs",
        "service.time_for(arrivals.at(busy))?",
        "service.time_for(arrivals.at(busy) * 99 / 100)?",
    ),
    of("coincidence.rs", "id.index() == f || set.contains(&id)", "id.index() == f"),
    of("coincidence.rs", "wait(&arrivals, own)?", "wait(&arrivals, own)? * 99 / 100"),
    of(
        "network.rs",
        "CUT_THROUGH: Octets = Octets::new(26)",
        "CUT_THROUGH: Octets = Octets::new(25)",
    ),
    of(
        "network.rs",
        "[host.stack_tx.min(), host.stack_tx.max()]",
        "[host.stack_tx.min(), host.stack_tx.min()]",
    ),
    of("network.rs", "rate(next) <= rate(port)", "rate(next) < rate(port)"),
    of(
        "network.rs",
        "sent(octets) + link.propagation + forwarding",
        "sent(octets) + link.propagation * 0 + forwarding",
    ),
    of(
        "network.rs",
        "[BEST_EFFORT_QUEUE] = frame::MAX_TAGGED;",
        "[BEST_EFFORT_QUEUE] = Octets::new(1_507);",
    ),
    of(
        "network.rs",
        "*longest = octets.max(*longest);",
        "*longest = Octets::new(octets.get() * 99 / 100).max(*longest);",
    ),
    of(
        "network.rs",
        "*longest = flow.arrival.octets[1].max(*longest);",
        "*longest = flow.arrival.octets[0].max(*longest);",
    ),
    of(
        "queue.rs",
        "let stay = ns(w.0 + w.1 - arrives);",
        "let stay = ns((w.0 + w.1 - arrives) * 99 / 100);",
    ),
    of(
        "queue.rs",
        "frames_within(stay, ns(arrives - state.early))",
        "frames_within(stay, ns((arrives - state.early) * 99 / 100))",
    ),
    of(
        "queue.rs",
        "u64::from(flow.arrival.octets[1].get())",
        "u64::from(flow.arrival.octets[1].get()) * 99 / 100",
    ),
    of("reason.rs", "if comes > service.rate() {", "if comes * 99 / 100 > service.rate() * 2 {"),
    of(
        "reason.rs",
        "if self.network.unlimited[port][queue] {",
        "if self.network.unlimited[port][queue] && port > 1_000 {",
    ),
    of(
        "service.rs",
        "amount.max(0) + i128::from(self.gated)",
        "amount.max(0) + i128::from(self.gated) * 0",
    ),
    of(
        "service.rs",
        "self.unshaped(0)? + div_ceil(amount, slope)",
        "self.unshaped(0)? + div_ceil(amount * 99, slope * 100)",
    ),
    of(
        "service.rs",
        "x + div_ceil(amount - sent, slope)",
        "x + div_ceil((amount - sent) * 99, slope * 100)",
    ),
    of("service.rs", "Some(latency + longest)", "Some(latency * 99 / 100 + longest)"),
    of(
        "service.rs",
        "self.ahead.overtaken(rate, latency, amount + self.blocking)",
        "self.ahead.overtaken(rate, latency, amount + self.blocking * 99 / 100)",
    ),
    of(
        "service.rs",
        "rate * (x - latency) - self.blocking - self.ahead.at(x)",
        "rate * (x - latency) - self.blocking - self.ahead.at(x) * 99 / 100",
    ),
    of(
        "service.rs",
        "slope * x - self.sent_unshaped(x).max(0)",
        "(slope * x - self.sent_unshaped(x).max(0)) * 99 / 100",
    ),
    of("service.rs", "longest - own / self.wire", "longest - own * 101 / (self.wire * 100)"),
    of(
        "service.rs",
        "self.time_for(arrivals.at(t) - own)? - t",
        "self.time_for(arrivals.at(t) - own * 101 / 100)? - t",
    ),
    of(
        "service.rs",
        "amount + div_ceil(amount * rate, shortest_bits * BILLION)",
        "amount + 0 * div_ceil(amount * rate, shortest_bits * BILLION)",
    ),
    of(
        "service.rs",
        "div_ceil(rate * latency + self.blocking + burst, left)",
        "div_ceil((rate * latency + self.blocking + burst) * 99, left * 100)",
    ),
    of(
        "multi_hop.rs",
        "let (mut rate, mut latency) = service.rate_latency()?;",
        "let (mut rate, mut latency) = service.rate_latency().map(|(r, l)| (r * 101 / 100, l))?;",
    ),
    of(
        "multi_hop.rs",
        "latency: Span::from_ns(i64::try_from(latency).ok()?),",
        "latency: Span::from_ns(i64::try_from(latency * 99 / 100).ok()?),",
    ),
    of("multi_hop.rs", "let largest = longest + ", "let largest = longest * 99 / 100 + "),
    of("multi_hop.rs", "if !is_whole(line) {", "if false && !is_whole(line) {"),
    of("multi_hop.rs", "since[1] + from.travel[1]]", "since[1]]"),
    of("multi_hop.rs", "or_insert(comes + sent)", "or_insert(comes)"),
    of("multi_hop.rs", "let comes = before + behind(", "let comes = behind("),
    of(
        "service.rs",
        "most.map(|credit| credit + more + accrual.open)",
        "most.map(|credit| credit * 99 / 100 + more + accrual.open)",
    ),
    of("gates.rs", "list.latency + change", "list.latency + change * 99 / 100"),
    of("network.rs", "network.add_flooded();", ""),
    of("windows.rs", "at.max(self.free).max(self.first)", "at.max(self.free)"),
    of(
        "multi_hop.rs",
        "let octets = (bits / (8 * BILLION)) as u64;",
        "let octets = (bits * 99 / (800 * BILLION)) as u64;",
    ),
    of(
        "windows.rs",
        "[-error, i128::from(jitter) + error]",
        "[-error, i128::from(jitter) * 99 / 100 + error]",
    ),
    of(
        "windows.rs",
        "[release[0] + state.early, release[1] + late]",
        "[release[0] + state.early, release[1] + late * 99 / 100]",
    ),
    of("windows.rs", "due.among - train.takes", "due.among - train.takes - train.takes / 100"),
    of(
        "windows.rs",
        "start.late.max(last - (at - train.released[0]))",
        "start.late.max((last - (at - train.released[0])) * 99 / 100)",
    ),
    of(
        "windows.rs",
        "error => error + ROUNDING,",
        "error => Span::from_ns(error.as_ns() * 99 / 100),",
    ),
    of(
        "windows.rs",
        "(closes - opens - longest).div_euclid(part) + 1",
        "(closes - opens - longest).div_euclid(part) + 2",
    ),
    of("windows.rs", "room.div_euclid(self.part) + 1", "room.div_euclid(self.part) + 2"),
    of("windows.rs", "now <= left", "now >= left"),
    of(
        "windows.rs",
        "within(load(|_| BILLION), BILLION) && within(load(|t| t.clock), gates)",
        "within(load(|_| BILLION), BILLION)",
    ),
    of("gates.rs", "room * BILLION / (part * clock) + 1", "room * BILLION / (part * clock) + 2"),
    of("gates.rs", ".fold(0, |all, open| all | open)", ".fold(0, |all, open| all & open)"),
    of(
        "interference.rs",
        "[list] if list.length_aware && self.first_cycle(port, list) <= 0 => {",
        "[list] => {",
    ),
    of(
        "../../../timing/src/schedule/load.rs",
        "wanted.extend(&section.resources);",
        "wanted.extend(&section.resources[..0]);",
    ),
    of(
        "../../../timing/src/schedule/load.rs",
        "by_thread.min(by_resource) + non_preemptive",
        "by_thread.min(by_resource).max(non_preemptive)",
    ),
    of(
        "../../../timing/src/schedule/load.rs",
        "all(|(_, s)| s.resources.len() == 1)",
        "all(|(_, s)| !s.resources.is_empty())",
    ),
    of(
        "../../../timing/src/schedule/extraction.rs",
        "let is_inside = |at: usize| !paths.states[at].1.is_empty();",
        "let is_inside = |at: usize| paths.states[at].1.len() == 1;",
    ),
    of(
        "../../../timing/src/schedule/fixed.rs",
        "sight.blocking += own(loads, index);",
        "sight.blocking = sight.blocking.max(own(loads, index));",
    ),
    of(
        "../../../timing/src/schedule/mod.rs",
        "fixed::blocked(&self.loads, first, protocol) + fixed::own(&self.loads, first)",
        "fixed::blocked(&self.loads, first, protocol).max(fixed::own(&self.loads, first))",
    ),
    of(
        "../../../timing/src/schedule/sensitivity.rs",
        "fixed::blocked(loads, index, protocol) + fixed::own(loads, index)",
        "fixed::blocked(loads, index, protocol).max(fixed::own(loads, index))",
    ),
    of(
        "../../../timing/src/schedule/cycles.rs",
        "self.may_be(a).contains(&b) || self.may_be(b).contains(&a)",
        "a == b",
    ),
    of(
        "../../../timing/src/schedule/cycles.rs",
        "if self.steps > STEPS_MAX ||",
        "if self.steps > STEPS_MAX || chain.len() > 2 ||",
    ),
    of(
        "../../../timing/src/schedule/cycles.rs",
        "if self.waits_for(request.wants, &held) {",
        "if is_in(*task, request) {",
    ),
    of(
        "../../../timing/src/schedule/mod.rs",
        "a.zip(b).map(|(a, b)| a.max(b))",
        "a.zip(b).map(|(a, b)| a.min(b))",
    ),
    of(
        "../../../timing/src/schedule/mod.rs",
        "(is_idle, self.loads[*at].deadline.is_none(), slack(at))",
        "(is_idle, self.loads[*at].deadline.is_none(), Reverse(slack(at)))",
    ),
    of(
        "../../../timing/src/schedule/mod.rs",
        ".or_else(|| shortest(at, false));",
        ".or_else(|| shortest(at, false).filter(|_| by_deadline));",
    ),
    of(
        "../../../timing/src/schedule/demand.rs",
        "wakeup.saturating_add(late.max().unwrap_or(0))",
        "wakeup.max(late.max().unwrap_or(0))",
    ),
    of(
        "../../../timing/src/schedule/extraction.rs",
        "amount += deadline.map_or(0, |_| self.abort(exit));",
        "amount += deadline.map_or(0, |_| 0 * self.abort(exit));",
    ),
    of(
        "../../../timing/src/schedule/sensitivity.rs",
        "!Share::of(known).is_over() &&",
        "Share::of(known).ppm() < u64::MAX &&",
    ),
    of(
        "../../../timing/src/schedule/extraction.rs",
        "if is_open { UNBOUNDED } else { length }",
        "if is_open { length.min(UNBOUNDED) } else { length }",
    ),
    of(
        "../../../timing/src/tfg/regime.rs",
        "if !self.are_same(&pairs, shift) {",
        "if pairs.is_empty() {",
    ),
    of(
        "../../../timing/src/tfg/component.rs",
        "group.iter_mut().filter(|g| **g == b)",
        "group.iter_mut().filter(|g| **g == b && b < a)",
    ),
    of(
        "../../../timing/src/tfg/component.rs",
        "(0..fixpoint.statics.len()).collect();",
        "vec![0; fixpoint.statics.len()];",
    ),
    of(
        "../../../timing/src/tfg/regime.rs",
        "self.has_room(channel, reader, (writes.0.lo, writes.1.lo), reads, shift)",
        "self.has_room(channel, reader, (writes.0.lo, writes.1.lo), reads, shift) || more > 0",
    ),
    of(
        "../../../timing/src/tfg/component.rs",
        "tasks.iter().filter(is_open).copied().collect()",
        "tasks.iter().filter(is_open).copied().take(0).collect()",
    ),
    of(
        "../../../timing/src/tfg/compose.rs",
        "worse((before, after), first)",
        "worse((before, before), 0)",
    ),
    of("../../../timing/src/tfg/transfer.rs", "if state.holds.must || is_in_time", "if is_in_time"),
    of(
        "../../../timing/src/tfg/compose.rs",
        "joints.iter().all(is_known)",
        "joints.iter().all(|joint| is_known(joint) || !joints.is_empty())",
    ),
    of(
        "../../../timing/src/tfg/compose.rs",
        ".all(|task| is_proven(*levels, first, task))",
        ".all(|task| is_proven(*levels, first, task) || task < tasks.len())",
    ),
    of(
        "../../../timing/src/tfg/fixpoint.rs",
        "if let Some(found) = self.repeats(tasks) {",
        "if let Some(found) = self.repeats(&tasks[..1]) {",
    ),
    of(
        "../../../timing/src/tfg/transfer.rs",
        ".map(|segment| segment.jitter)",
        ".map(|segment| Interval { hi: Some(segment.jitter.lo), ..segment.jitter })",
    ),
    of("../../../timing/src/tfg/transfer.rs", "late = plus(late, self.woken(visit.task));", ""),
    of(
        "../../../timing/src/tfg/transfer.rs",
        "self.execute(task, state, Interval { lo: Span::ZERO, ..time })",
        "self.execute(task, state, Interval::exactly(time.lo * 0))",
    ),
];
