//! Runs, scenarios, chains and references.

use super::programs::POLICIES;
use super::{Draft, Table, table};
use crate::dice::Dice;
use serde_json::{Value, json};

impl Draft<'_> {
    pub(super) fn runs(&mut self) {
        self.root.insert("format".into(), json!(1));
        self.root.insert("name".into(), json!("drawn"));
        let mut run = Table::new();
        self.duration(&mut run, "Run");
        self.run_keys(&mut run, "Run");
        self.maybe(&mut run, "Run.memory_max_octets", |dice| dice.between(1 << 28, 1 << 34));
        self.maybe(&mut run, "Run.processes_max", |dice| dice.between(16, 4_096));
        self.root.insert("run".into(), Value::Object(run));
        for number in 0..self.dice.one(&[0, 0, 0, 1, 2]) {
            let mut scenario = table(json!({ "name": format!("v{number}") }));
            if self.chance(50) {
                self.duration(&mut scenario, "Scenario");
            }
            self.run_keys(&mut scenario, "Scenario");
            self.push("scenario", scenario);
        }
    }

    /// Last, so that seeds keep all else that they had before there was a choice.
    pub(super) fn routing(&mut self) {
        if self.chance(40) {
            let routing = self.dice.one(&["load-aware", "load-aware", "shortest"]);
            self.root.insert("routing".into(), json!(routing));
        }
        if self.chance(40) {
            let slopes = self.dice.one(&["deadline", "deadline", "rate"]);
            self.root.insert("idle_slopes".into(), json!(slopes));
        }
    }

    /// What nodes are: last, for the same reason.
    pub(super) fn devices(&mut self) {
        if !self.chance(25) {
            return;
        }
        let mut names = vec!["i210".to_owned(), "i225".into(), "lan9662".into(), "veth".into()];
        for number in 0..self.dice.one(&[1, 1, 2]) {
            let name = format!("d{number}");
            let mut device = table(json!({ "name": name }));
            self.device(&mut device);
            self.push("device", device);
            names.extend([name.clone(), name]);
        }
        let share = self.dice.one(&[20, 60, 100]);
        for key in ["host", "bridge"] {
            let mut nodes = self.root.remove(key);
            let tables = nodes.as_mut().and_then(Value::as_array_mut);
            for node in tables.into_iter().flatten().filter_map(Value::as_object_mut) {
                if self.chance(share) {
                    node.insert("device".into(), json!(self.dice.one(&names)));
                }
            }
            self.root.extend(nodes.map(|nodes| (key.to_owned(), nodes)));
        }
    }

    fn device(&mut self, device: &mut Table) {
        if self.chance(20) {
            let base = self.dice.one(&["i210", "i225", "lan9662", "veth"]);
            device.insert("base".into(), json!(base));
        }
        let numbers: [(&str, &[i64]); 9] = [
            ("traffic_classes", &[4, 8, 8]),
            ("credit_based_shapers", &[2, 8, 8]),
            ("supported_list_max", &[16, 128, 1_024]),
            ("shared_list_max", &[64, 1_024]),
            ("openings_max", &[1, 8, 512]),
            ("supported_cycle_max_ns", &[10_000_000, 999_999_999]),
            ("supported_interval_max_ns", &[300_000, 52_428_600, 999_999_999]),
            ("interval_min_ns", &[8, 500, 1_000]),
            ("tick_granularity_ns", &[1, 8, 200, 1_000]),
        ];
        for (key, usual) in numbers {
            if self.chance(50) {
                let usual = json!(self.dice.one(usual));
                let [least, most] = self.schema.range(&format!("Device.{key}")).clone();
                let value = if self.chance(94) { usual } else { self.dice.one(&[least, most]) };
                device.insert(key.into(), value);
            }
        }
        for key in
            ["gates", "length_aware", "cut_through", "preemption", "asynchronous", "elimination"]
        {
            if self.optional() {
                let value = self.chance(85);
                device.insert(key.into(), json!(value));
            }
        }
    }

    fn duration(&mut self, run: &mut Table, kind: &str) {
        let (key, usual) = self.dice.one(&[("duration_ms", 20), ("duration_s", 1)]);
        run.insert(key.into(), self.number(&format!("{kind}.{key}"), usual));
    }

    fn run_keys(&mut self, run: &mut Table, kind: &str) {
        if self.chance(50) {
            let bits = self.dice.bits();
            let seed = self.dice.one(&[0, 7, bits, bits]);
            run.insert("seed".into(), json!(seed));
        }
        if self.chance(20) {
            let time = self.dice.one(&["virtual", "real"]);
            run.insert("time".into(), json!(time));
        }
        if self.chance(20) {
            let protected = self.chance(50);
            run.insert("protected".into(), json!(protected));
        }
        if self.chance(20) {
            let reservation = self.dice.one(&["plan", "srp"]);
            run.insert("reservation".into(), json!(reservation));
        }
        // Apart from all other draws, which stay what they were.
        let mut apart = Dice::new(self.dice.clone().bits());
        if apart.chance(4) {
            let backend = apart.one(&["bridges", "network-code"]);
            if backend == "network-code" {
                run.insert("protected".into(), json!(true));
            }
            run.insert("backend".into(), json!(backend));
            let own = std::mem::replace(&mut self.dice, apart);
            self.maybe(run, &format!("{kind}.slot_error_us"), |dice| dice.between(0, 60));
            self.dice = own;
        } else if apart.chance(10) {
            run.insert("companions".into(), json!(apart.chance(50)));
            run.insert("policy".into(), json!(apart.one(&POLICIES)));
            let profiles = ["off", "none", "cpuset", "tuned-like"];
            run.insert("tune".into(), json!(apart.one(&profiles)));
        }
        self.maybe_bool(run, "noise");
        self.maybe(run, &format!("{kind}.hang_timeout_s"), |dice| dice.between(5, 60));
    }

    pub(super) fn chains(&mut self) {
        let channels: Vec<Value> =
            self.root.get("channel").and_then(Value::as_array).cloned().unwrap_or_default();
        if channels.is_empty() || !self.chance(60) {
            return;
        }
        for number in 0..self.dice.between(1, 2) {
            let mut at = self.dice.below(channels.len() as u64) as usize;
            let mut names = vec![channels[at]["name"].clone()];
            while self.chance(75) && names.len() < 5 {
                let heard = channels[at]["listeners"].as_array().expect("a list");
                let next = (0..channels.len()).filter(|n| heard.contains(&channels[*n]["talker"]));
                let next: Vec<usize> = next.collect();
                if next.is_empty() {
                    break;
                }
                at = self.dice.one(&next);
                names.push(channels[at]["name"].clone());
            }
            let mut chain = table(json!({ "name": format!("k{number}"), "channels": names }));
            let usual = self.dice.magnitude(100, 100_000);
            chain.insert("deadline_us".into(), self.number("Chain.deadline_us", usual));
            self.maybe(&mut chain, "Chain.age_us", |dice| dice.magnitude(100, 100_000));
            self.maybe(&mut chain, "Chain.reaction_us", |dice| dice.magnitude(100, 100_000));
            self.push("chain", chain);
        }
    }

    /// Changes what something else excludes: ends of ranges, and settings of the run that hold in
    /// its scenarios.
    pub(super) fn take_back(&mut self) {
        let channels = self.root.get_mut("channel").and_then(Value::as_array_mut);
        for channel in channels.into_iter().flatten().filter_map(Value::as_object_mut) {
            if channel.get("lifespan_us") == Some(&json!(1)) {
                channel.insert("fixed_delay_us".into(), json!(1));
            }
            if channel.get("deadline_us") == Some(&json!(1)) {
                match ["interval_ns", "rate_hz"].map(|key| channel.contains_key(key)) {
                    [true, _] => channel.insert("interval_ns".into(), json!(1_000)),
                    [_, true] => channel.insert("rate_hz".into(), json!(1_000_000)),
                    _ => channel.remove("deadline_us"),
                };
            }
        }
        let by_stations = json!("network-code");
        if self.root.get("run").is_none_or(|run| run["backend"] != by_stations) {
            return;
        }
        let scenarios = self.root.get_mut("scenario").and_then(Value::as_array_mut);
        for scenario in scenarios.into_iter().flatten().filter_map(Value::as_object_mut) {
            if scenario.get("backend").is_none_or(|backend| *backend == by_stations) {
                scenario.remove("protected");
            }
        }
    }

    /// Channels whose talkers listen to another one.
    pub(super) fn alternatives(&mut self) {
        let channels: Vec<Value> =
            self.root.get("channel").and_then(Value::as_array).cloned().unwrap_or_default();
        if !self.chance(40) {
            return;
        }
        let mut free: Vec<usize> = (0..channels.len()).collect();
        for number in 0..self.dice.between(1, 2) {
            let with_others = |mode: &usize| {
                let heard = channels[*mode]["listeners"].as_array().cloned().unwrap_or_default();
                let talker = &channels[*mode]["talker"];
                let others = free.iter().copied().filter(|of| channels[*of]["talker"] != *talker);
                let others: Vec<usize> =
                    others.filter(|of| heard.contains(&channels[*of]["talker"])).collect();
                let has_word = channels[*mode]["size_octets"].as_i64().is_some_and(|it| it >= 4);
                (others.len() > 1 && has_word).then_some((*mode, others))
            };
            let possible: Vec<_> = free.iter().filter_map(with_others).collect();
            if possible.is_empty() {
                return;
            }
            let (mode, mut others) = self.dice.one(&possible);
            others.truncate(self.dice.between(2, 4) as usize);
            let first = self.dice.between(0, 100);
            let values = (0..others.len() as i64).map(|at| first + at).collect::<Vec<_>>();
            let name = |at: &usize| channels[*at]["name"].clone();
            let words = channels[mode]["size_octets"].as_i64().unwrap_or(4) / 4;
            let offset = 4 * self.dice.between(0, words.min(250) - 1);
            let offset = self.number("Alternatives.offset_octets", offset);
            self.push(
                "alternatives",
                table(json!({
                    "name": format!("s{number}"),
                    "mode": name(&mode),
                    "offset_octets": offset,
                    "channels": others.iter().map(name).collect::<Vec<_>>(),
                    "values": values,
                })),
            );
            free.retain(|at| *at != mode && !others.contains(at));
        }
    }

    pub(super) fn references(&mut self) {
        let scenarios = self.root.get("scenario").and_then(Value::as_array).map_or(0, Vec::len);
        let count = |of: &str| self.root.get(of).and_then(Value::as_array).map_or(0, Vec::len);
        let mut subjects = vec![("clock", self.hosts[0].name.clone(), vec!["clock-error"])];
        if count("channel") > 0 {
            let quantities =
                ["latency", "end-to-end", "talker-wakeup", "listener-wakeup", "relative-wakeup"];
            subjects.extend([(); 3].map(|()| ("channel", "c0".to_owned(), quantities.to_vec())));
        }
        if count("tcp") > 0 {
            subjects.push(("tcp", "t0".to_owned(), vec!["latency", "end-to-end"]));
        }
        if scenarios == 0 || !self.chance(40) {
            return;
        }
        let (subject, name, quantities) = self.dice.one(&subjects);
        let mut reference = table(json!({
            "source": "drawn",
            "scenario": "v0",
            "quantity": self.dice.one(&quantities),
        }));
        reference.insert(subject.into(), json!(name));
        if self.chance(30) {
            reference.insert("note".into(), json!("drawn as well"));
        }
        let keys = ["max_ns", "min_ns", "avg_ns", "stddev_ns", "lost_per_mille"];
        let count = self.dice.between(1, 5) as usize;
        for at in self.dice.some(keys.len(), count) {
            let usual = self.dice.between(1, 500);
            reference
                .insert(keys[at].into(), self.number(&format!("Reference.{}", keys[at]), usual));
        }
        self.push("reference", reference);
    }
}
