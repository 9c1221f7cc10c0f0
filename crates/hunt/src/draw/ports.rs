//! How ports send: no two need be alike.

use super::{Draft, DrawnPort, Table};
use serde_json::{Value, json};

impl Draft<'_> {
    pub(super) fn ports(&mut self) {
        let share = self.mix.ports;
        let mut left: Vec<DrawnPort> = self.ports.clone();
        while let Some(port) = left.pop() {
            if !self.chance(share) {
                continue;
            }
            let mut table = Table::new();
            let alike = left.last().is_some_and(|next| next.rate_bps == port.rate_bps);
            if alike && self.chance(25) {
                let next = left.pop().expect("there is one");
                table.insert("names".into(), json!([port.name, next.name]));
            } else {
                table.insert("name".into(), json!(port.name));
            }
            self.settings(&mut table, port.rate_bps);
            self.push("port", table);
        }
    }

    fn settings(&mut self, port: &mut Table, rate_bps: i64) {
        let mix = [self.mix.credit, self.mix.asynchronous, self.mix.preemption, self.mix.gates];
        let mut shaped = Vec::new();
        if self.chance(mix[0]) {
            shaped = self.slopes(port, rate_bps);
        }
        if self.chance(mix[1]) {
            let count = self.dice.between(1, 3) as usize;
            let queues = self.dice.some(8, count).into_iter().filter(|q| !shaped.contains(q));
            port.insert("asynchronous".into(), json!(queues.collect::<Vec<_>>()));
        }
        if self.chance(mix[2]) {
            let count = self.dice.between(0, 7) as usize;
            port.insert("preemptable".into(), json!(self.dice.some(8, count)));
        }
        if self.chance(mix[3]) {
            let gates = self.gates(rate_bps);
            port.insert("gates".into(), gates);
        }
        let vlans = self.mix.vlans;
        if self.chance(vlans) {
            let mut vlans = vec![json!(2), json!(3), json!(1), json!(4_094)];
            if self.chance(20) {
                vlans.remove(0);
            }
            port.insert("vlans".into(), json!(vlans));
        }
    }

    /// Queues with a credit-based shaper.
    fn slopes(&mut self, port: &mut Table, rate_bps: i64) -> Vec<usize> {
        let queues = match self.dice.below(3) {
            0 => vec![7],
            1 => vec![7, 6],
            _ => {
                let count = self.dice.between(1, 4) as usize;
                self.dice.some(8, count)
            }
        };
        let in_mbps = rate_bps % 1_000_000 == 0 && self.chance(50);
        let unit = if in_mbps { 1_000_000 } else { 1 };
        let mut left = rate_bps / unit;
        let mut slopes = Table::new();
        let mut shaped = Vec::new();
        for queue in queues {
            let most = match self.dice.below(4) {
                0 => left,
                _ => left * 3 / 4,
            };
            if most > 0 {
                let slope = self.dice.between((most / 10).max(1), most);
                slopes.insert(queue.to_string(), json!(slope));
                left -= slope;
                shaped.push(queue);
            }
        }
        let key = if in_mbps { "idle_slope_mbps" } else { "idle_slope_bps" };
        port.insert(key.into(), Value::Object(slopes));
        shaped
    }

    fn gates(&mut self, rate_bps: i64) -> Value {
        let frame = 1_542 * 8_000_000_000_i128 / i128::from(rate_bps);
        let frame = i64::try_from(frame).unwrap_or(i64::MAX).clamp(1, 1_000_000_000);
        let mut base = self.dice.one(&[0, 0, 0, 777, 1_000_000]);
        let mut lists = Vec::new();
        for _ in 0..self.dice.one(&[1, 1, 1, 1, 2]) {
            let mut list = Table::new();
            if lists.is_empty() && self.optional() {
                list.insert("base_time_ns".into(), self.number("Gates.base_time_ns", base));
            } else if !lists.is_empty() {
                // Later than the one before.
                list.insert("base_time_ns".into(), json!(base));
            }
            self.gate_list(&mut list, frame);
            base = list.get("base_time_ns").and_then(Value::as_i64).unwrap_or(0)
                + self.dice.between(1, 20_000_000);
            lists.push(Value::Object(list));
            if base > 1_000_000_000_000 {
                break;
            }
        }
        Value::Array(lists)
    }

    fn gate_list(&mut self, list: &mut Table, frame: i64) {
        let (mut entries, mut sum) = (Vec::new(), 0);
        let exclusive = self.chance(40).then(|| self.dice.below(8) as usize);
        let common = self.chance(60);
        let count = if exclusive.is_some() { 2 } else { self.dice.between(1, 5) };
        for number in 0..count {
            let open: Vec<usize> = match exclusive {
                Some(queue) => (0..8).filter(|q| (*q == queue) == (number == 0)).collect(),
                None => {
                    let bits = self.dice.below(256) | self.dice.below(256);
                    (0..8).filter(|q| bits >> q & 1 == 1).collect()
                }
            };
            let rest = self.cycle_ns - sum;
            let usual = if common && number + 1 == count && rest > 0 {
                rest
            } else {
                self.dice.between(frame, 6 * frame)
            };
            let interval_ns = self.number("GateEntry.interval_ns", usual);
            sum += interval_ns.as_i64().expect("a time");
            entries.push(json!({ "open": open, "interval_ns": interval_ns }));
        }
        list.insert("entries".into(), Value::Array(entries));
        if self.chance(25) {
            let usual = sum + self.dice.one(&[0, frame, -frame / 2]);
            list.insert("cycle_time_ns".into(), self.number("Gates.cycle_time_ns", usual));
        }
        if self.chance(40) {
            let aware = self.chance(60);
            list.insert("length_aware".into(), json!(aware));
        }
    }
}
