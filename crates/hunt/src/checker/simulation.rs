//! What `onbeat simulate --json` says, against itself and against the bounds.

use super::{Bounds, Kind, Report, name};
use serde_json::Value;

/// What is in flight for longer at a simulation's end does not arrive.
const DRAINED_NS: i64 = 50_000_000_000;

/// One simulation's JSON and where it comes from.
pub(super) struct Check<'a> {
    pub(super) document: &'a Value,
    pub(super) what: &'a str,
    /// `system.toml`.
    pub(super) description: &'a str,
}

/// What may take a copy of a frame, by its key.
const LOSSES: [&str; 5] = ["policed", "overflowed", "faulted", "aborted", "rogue"];

impl Check<'_> {
    pub(super) fn all(&self, bounds: &Bounds, code: i32, report: &mut Report) {
        let mut broken = 0;
        for flow in list(&self.document["flows"]) {
            broken += u64::from(flow["verdict"] == "broken");
            self.flow(flow, bounds, report);
        }
        for port in list(&self.document["ports"]) {
            for queue in list(&port["queues"]) {
                broken += u64::from(queue["verdict"] == "broken");
                self.queue(port, queue, report);
            }
            self.wire(port, report);
        }
        if (code == 3) != (broken > 0) {
            self.books(report, format!("exit code {code} with {broken} broken verdicts"));
        }
        self.totals(broken, report);
    }

    fn drifts(&self) -> bool {
        ["drift_ppb", "wander_ns", "[synchronisation]"].iter().any(|k| self.description.contains(k))
    }

    /// The longest duration that the description has, in nanoseconds: that of `bounds`.
    fn longest_ns(&self) -> i64 {
        let ns = |line: &str| {
            let (key, number) = line.split_once(" = ")?;
            let unit = match key {
                "duration_s" => 1_000_000_000,
                "duration_ms" => 1_000_000,
                _ => return None,
            };
            Some(number.parse::<i64>().ok()? * unit)
        };
        let tables = self.description.split("\n[");
        let run = tables.clone().find(|table| table.starts_with("run]"));
        let of_run = run.and_then(|table| table.lines().find_map(ns)).unwrap_or(0);
        let scenarios = tables.filter(|table| table.starts_with("[scenario]"));
        scenarios.filter_map(|table| table.lines().find_map(ns)).fold(of_run, i64::max)
    }

    fn books(&self, report: &mut Report, what: String) {
        report.find(Kind::Books, format!("{}: {what}", self.what));
    }

    fn broken(&self, report: &mut Report, what: String) {
        report.find(Kind::Broken, format!("{}: {what}", self.what));
    }

    fn flow(&self, flow: &Value, bounds: &Bounds, report: &mut Report) {
        let longest = self.longest_ns();
        let flow_name = name(&flow["name"]).unwrap_or_default();
        let babbles = self.babbles(&flow_name);
        for listener in list(&flow["listeners"]) {
            let host = name(&listener["host"]).unwrap_or_default();
            let place = format!("{flow_name} at {host}");
            let bound = listener["bound_ns"].as_i64();
            report.listeners += 1;
            report.bounded += u64::from(bound.is_some());
            report.frames += count(&listener["frames"]);
            // How far clocks drift apart depends on the duration: windows of known frames give less
            // in a shorter one. A channel's bound is by two clocks.
            let promised = bounds.get(&(flow_name.clone(), host)).copied();
            let longer = self.document["settings"]["duration_ns"].as_i64().cmp(&Some(longest));
            let drifted = bound.zip(promised.flatten()).map(|(a, b)| a.cmp(&b));
            let is_drift = self.drifts() && drifted == Some(longer);
            if flow["kind"] == "stream" && promised != Some(bound) && !is_drift {
                self.books(report, format!("{place}: another bound than that of `bounds`"));
            }
            let seen = &listener["latency_ns"];
            let (Some(least), Some(most)) = (seen["min"].as_i64(), seen["max"].as_i64()) else {
                continue;
            };
            report.judged += u64::from(bound.is_some());
            let exceeded = bound.is_some_and(|bound| most > bound);
            let early = listener["best_ns"].as_i64().is_some_and(|best| least < best);
            let missed = flow["deadline_ns"].as_i64().is_some_and(|deadline| most > deadline);
            let verdict = &listener["verdict"];
            let withheld = self.steps() || self.lacks_reservations();
            let excused = babbles || withheld && verdict == "not judged";
            if exceeded && !excused {
                self.broken(report, format!("{place} took {most} ns of {bound:?}"));
            }
            if early && !excused {
                self.broken(
                    report,
                    format!("{place} took {least} ns, best {}", listener["best_ns"]),
                );
            }
            if !excused && (exceeded || early || missed) && verdict != "broken" {
                self.books(report, format!("{place}: {verdict}, though it took {most} ns"));
            }
            if bound.is_none() && flow["deadline_ns"].is_null() && verdict != "no promise" {
                self.books(report, format!("{place}: {verdict} without a promise"));
            }
        }
        self.losses(flow, &flow_name, report);
    }

    /// Every frame is somewhere: received, dropped on purpose, refused or swallowed.
    fn losses(&self, flow: &Value, flow_name: &str, report: &mut Report) {
        let released = count(&flow["released"]);
        let gone: u64 = LOSSES.iter().map(|k| count(&flow[*k])).sum();
        let listeners = list(&flow["listeners"]);
        let replicated = self.description.contains("paths =");
        // What has a bound has arrived at the end, if it is no more than what was described.
        let babbles = self.babbles(flow_name);
        // Gates that go by a clock that was set may keep it for longer.
        let is_soon = |bound: i64| bound < DRAINED_NS && !babbles && !self.steps();
        let arrives = |listener: &Value| listener["bound_ns"].as_i64().is_some_and(is_soon);
        for listener in listeners {
            let frames = count(&listener["frames"]);
            let place = format!("{flow_name} at {}", listener["host"]);
            // Elimination takes any number after a second without an accepted frame.
            if frames > released && !replicated {
                self.books(report, format!("{place}: {frames} received of {released} released"));
            }
            if arrives(listener) && frames + gone < released {
                let text = format!("{place}: {frames} received and {gone} gone of {released}");
                self.books(report, text);
            }
        }
        // A bridge that learns floods: what is lost then may be a copy for nobody.
        let floods = self.description.contains("learning = true");
        let alone = listeners.len() == 1 && count(&flow["duplicates"]) == 0 && !floods;
        let frames: u64 = listeners.iter().map(|listener| count(&listener["frames"])).sum();
        if alone && !replicated && frames + gone > released {
            self.books(
                report,
                format!("{flow_name}: {frames} received and {gone} gone of {released}"),
            );
        }
    }

    fn queue(&self, port: &Value, queue: &Value, report: &mut Report) {
        for unit in ["frames", "octets"] {
            let seen = count(&queue[format!("deepest_{unit}")]);
            let bound = queue[format!("bound_{unit}")].as_u64();
            let excused = self.steps() && queue["verdict"] == "not judged";
            if bound.is_some_and(|bound| seen > bound) && !excused {
                let place = format!("queue {} of {}", queue["queue"], port["port"]);
                self.broken(report, format!("{place} held {seen} {unit} of {bound:?}"));
                if queue["verdict"] != "broken" {
                    self.books(report, format!("{place}: {}", queue["verdict"]));
                }
            }
        }
    }

    /// The wire was busy with what was sent, and with nothing else.
    fn wire(&self, port: &Value, report: &mut Report) {
        let queues = list(&port["queues"]);
        if queues.iter().any(|q| count(&q["preempted"]) > 0) {
            return;
        }
        let sent: u64 = queues.iter().map(|q| count(&q["sent"])).sum();
        let octets: u64 = queues.iter().map(|q| count(&q["sent_octets"])).sum();
        let Some(rate) = port["rate_bps"].as_u64() else { return };
        let busy = i128::from(count(&port["busy_ns"]));
        let wire = i128::from(octets + 20 * sent) * 8_000_000_000 / i128::from(rate);
        // Each frame's time is rounded up; the last may not have ended.
        if (busy - wire).abs() > i128::from(sent) + 1_542 * 8_000_000_000 / i128::from(rate) {
            let what = format!("{}: busy for {busy} ns with frames of {wire} ns", port["port"]);
            self.books(report, what);
        }
    }

    fn totals(&self, broken: u64, report: &mut Report) {
        let flows = list(&self.document["flows"]);
        let totals = &self.document["totals"];
        let frames = |flow: &Value| {
            list(&flow["listeners"]).iter().map(|l| count(&l["frames"])).sum::<u64>()
        };
        let sums = [
            ("released", flows.iter().map(|flow| count(&flow["released"])).sum()),
            ("received", flows.iter().map(frames).sum()),
            ("broken", broken),
        ];
        for (key, sum) in sums {
            if count(&totals[key]) != sum {
                self.books(report, format!("totals: {key} {} is not {sum}", totals[key]));
            }
        }
    }

    /// Whether some clock may be what no plan counts with: a fault lets it step, or gPTP keeps it.
    fn steps(&self) -> bool {
        ["clock_step_ns = ", "in_run = true"].iter().any(|k| self.description.contains(k))
    }

    /// Whether some channel did not have its reservation by protocol.
    fn lacks_reservations(&self) -> bool {
        let channels = self.document["reservations"]["channels"].as_array();
        channels
            .is_some_and(|all| all.iter().any(|one| one["complete"] != true || one["lost"] != 0))
    }

    /// Whether some fault makes the stream babble.
    fn babbles(&self, flow: &str) -> bool {
        // The name may be one of a group's, with an expression in it.
        let names = self.description.split("babble = \"").skip(1);
        let mut names = names.map(|rest| rest.split('"').next().unwrap_or_default());
        names.any(|name| name == flow || name.contains('{'))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
