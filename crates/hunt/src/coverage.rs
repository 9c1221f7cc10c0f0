//! Which situations a description holds that no single key shows.

use crate::Description;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// All situations that must be drawn, by name.
pub const SITUATIONS: &[&str] = &[
    "no bridge",
    "a ring of bridges",
    "two ports with different settings",
    "class 0",
    "class 1",
    "class 2",
    "class 3",
    "class 4",
    "class 5",
    "class 6",
    "class 7",
    "a stream in noise's class beside noise",
    "gates and a credit-based shaper at one queue",
    "gates and asynchronous shaping at one port",
    "preemption and gates at one port",
    "channels, streams and chains together",
    "a channel without reservation beside one with",
    "an asynchronous channel beside one of another class",
    "a stream that babbles",
    "a babbling stream that is policed",
    "losses on a link",
    "a node that fails",
    "a clock that steps and gates",
    "a talker's clock that steps",
    "replication and a failing link",
    "a clock that drifts and gates",
    "gates that change once",
    "a cycle that is cut",
    "a queue that is short",
    "a path of its own",
    "windows of which a stream's interval is a multiple",
    "a talker that hears itself",
];

/// Those that a description holds.
pub fn situations(description: &Description) -> BTreeSet<&'static str> {
    let view = View(description);
    SITUATIONS.iter().copied().filter(|name| view.holds(name)).collect()
}

struct View<'a>(&'a Description);

impl View<'_> {
    fn all(&self, key: &str) -> &[Value] {
        self.0.list(key)
    }

    fn has(&self, key: &str, of: &str) -> bool {
        self.all(key).iter().any(|table| !table[of].is_null())
    }

    fn class(&self, class: i64) -> bool {
        self.all("stream").iter().any(|s| s["traffic_class"] == class)
    }

    fn port(&self, test: impl Fn(&Value) -> bool) -> bool {
        self.all("port").iter().any(test)
    }

    fn holds(&self, name: &str) -> bool {
        if let Some(class) = name.strip_prefix("class ") {
            return class.parse().is_ok_and(|class| self.class(class));
        }
        match name {
            "no bridge" => self.all("bridge").is_empty(),
            "a ring of bridges" => self.rings(),
            "two ports with different settings" => self.ports_differ(),
            "a stream in noise's class beside noise" => {
                self.class(1) && !self.all("noise").is_empty()
            }
            "an asynchronous channel beside one of another class" => {
                let asynchronous = |c: &Value| c["class"] == "asynchronous";
                let channels = self.all("channel");
                channels.iter().any(asynchronous) && !channels.iter().all(asynchronous)
            }
            "gates and a credit-based shaper at one queue" => self.port(gated_slope),
            "gates and asynchronous shaping at one port" => {
                self.port(|p| !p["gates"].is_null() && !p["asynchronous"].is_null())
            }
            "preemption and gates at one port" => {
                self.port(|p| !p["gates"].is_null() && !p["preemptable"].is_null())
            }
            "channels, streams and chains together" => {
                ["channel", "stream", "chain"].iter().all(|key| !self.all(key).is_empty())
            }
            "a channel without reservation beside one with" => {
                let reserve = |wanted| self.all("channel").iter().any(|c| c["reserve"] == wanted);
                reserve(true) && reserve(false)
            }
            "a talker that hears itself" => self.all("channel").iter().any(hears_itself),
            "losses on a link" => self.has("fault", "errors_ppb"),
            "a node that fails" => {
                let fails = |f: &Value| !f["node"].is_null() && f["clock_step_ns"].is_null();
                self.all("fault").iter().any(fails)
            }
            "a clock that steps and gates" => {
                let is_bridge = |f: &Value| f["node"].as_str().is_some_and(|n| n.starts_with('b'));
                self.has("port", "gates") && self.steps().any(is_bridge)
            }
            "a talker's clock that steps" => {
                let talks = |f: &Value| self.all("stream").iter().any(|s| s["talker"] == f["node"]);
                self.steps().any(talks)
            }
            "a stream that babbles" => self.has("fault", "babble"),
            "a babbling stream that is policed" => {
                self.babblers().any(|s| !s["policing"].is_null())
            }
            "replication and a failing link" => {
                self.has("fault", "link") && self.has("stream", "history")
            }
            "a clock that drifts and gates" => {
                let drifts = |node: &Value| node["clock"]["drift_ppb"].as_i64().unwrap_or(0) != 0;
                self.all("bridge").iter().any(drifts) && self.has("port", "gates")
            }
            "gates that change once" => {
                self.port(|p| p["gates"].as_array().is_some_and(|lists| lists.len() > 1))
            }
            "a cycle that is cut" => self.lists().any(|l| !l["cycle_time_ns"].is_null()),
            "a queue that is short" => self
                .all("bridge")
                .iter()
                .any(|b| b["queue_frames"].as_i64().is_some_and(|n| n < 50)),
            "a path of its own" => self.has("stream", "paths"),
            _ => self.multiples(),
        }
    }

    fn steps(&self) -> impl Iterator<Item = &Value> {
        self.all("fault").iter().filter(|fault| !fault["clock_step_ns"].is_null())
    }

    fn babblers(&self) -> impl Iterator<Item = &Value> {
        let babbles = |s: &&Value| self.all("fault").iter().any(|f| f["babble"] == s["name"]);
        self.all("stream").iter().filter(babbles)
    }

    fn lists(&self) -> impl Iterator<Item = &Value> {
        self.all("port").iter().filter_map(|p| p["gates"].as_array()).flatten()
    }

    /// More links between bridges than a tree has.
    fn rings(&self) -> bool {
        let is_bridge = |end: &Value| end.as_str().is_some_and(|end| end.starts_with('b'));
        let between = |l: &&Value| l["ends"].as_array().is_some_and(|e| e.iter().all(is_bridge));
        let bridges = self.all("bridge").len();
        bridges > 2 && self.all("link").iter().filter(between).count() >= bridges
    }

    fn ports_differ(&self) -> bool {
        let settings = self.all("port").iter().map(|port| {
            let table = port.as_object().into_iter().flatten();
            let kept = table.filter(|(key, _)| *key != "name" && *key != "names");
            kept.map(|(key, value)| (key.clone(), value.to_string())).collect::<BTreeMap<_, _>>()
        });
        settings.collect::<BTreeSet<_>>().len() > 1
    }

    fn multiples(&self) -> bool {
        let cycle = |list: &Value| -> Option<i64> {
            let entries = list["entries"].as_array()?;
            Some(
                entries
                    .iter()
                    .filter_map(|e| e["interval_ns"].as_i64())
                    .fold(0, i64::saturating_add),
            )
        };
        let cycles: BTreeSet<i64> = self.lists().filter_map(cycle).filter(|c| *c > 1_000).collect();
        let intervals = self.all("stream").iter().filter_map(|s| s["interval_ns"].as_i64());
        intervals.into_iter().any(|interval| cycles.iter().any(|cycle| interval % cycle == 0))
    }
}

fn hears_itself(channel: &Value) -> bool {
    channel["listeners"].as_array().is_some_and(|all| all.contains(&channel["talker"]))
}

fn gated_slope(port: &Value) -> bool {
    let slopes = [&port["idle_slope_mbps"], &port["idle_slope_bps"]];
    !port["gates"].is_null() && slopes.iter().any(|s| s.as_object().is_some_and(|s| !s.is_empty()))
}
