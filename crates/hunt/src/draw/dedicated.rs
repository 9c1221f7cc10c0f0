//! A bridge with a dedicated path, where one can be.

use super::{Draft, table};
use crate::dice::Dice;
use serde_json::{Value, json};

impl Draft<'_> {
    /// One of the bridges has a dedicated path, if its links have one rate and its ports nothing of
    /// their own. Drawn apart: other draws stay what they were.
    pub(super) fn dedicated_path(&mut self) {
        let mut dice = Dice::new(self.dice.clone().bits());
        if self.bridges == 0 || !dice.chance(10) {
            return;
        }
        let name = format!("b{}", dice.below(self.bridges as u64));
        if !self.may_be_dedicated(&name) {
            return;
        }
        let mut path = table(json!({}));
        if dice.chance(75) {
            path.insert("on_best_effort".into(), json!(dice.one(&["retry", "drop", "finish"])));
        }
        if dice.chance(60) {
            let [least, most] = self.schema.range("DedicatedPath.wait_ns").clone();
            let usual = json!(dice.between(1, 2_000));
            path.insert("wait_ns".into(), dice.one(&[least, usual.clone(), usual, most]));
        }
        let bridges = self.root.get_mut("bridge").and_then(Value::as_array_mut);
        let bridges = bridges.into_iter().flatten().filter_map(Value::as_object_mut);
        for bridge in bridges.filter(|bridge| bridge["name"] == name.as_str()) {
            bridge.remove("cut_through");
            bridge.insert("dedicated_path".into(), Value::Object(path.clone()));
        }
    }

    fn may_be_dedicated(&self, bridge: &str) -> bool {
        let is_its =
            |text: &Value| text.as_str().is_some_and(|text| text.split('.').next() == Some(bridge));
        let of = |key: &str| self.root.get(key).and_then(Value::as_array).into_iter().flatten();
        let own = of("link").filter(|link| {
            let ends = link["ends"].as_array();
            ends.is_some_and(|ends| ends.iter().any(is_its))
        });
        let mut rates: Vec<Option<i64>> = own.map(rate_bps).collect();
        rates.dedup();
        let names_it = |port: &Value| {
            let names = port["names"].as_array();
            is_its(&port["name"]) || names.is_some_and(|names| names.iter().any(is_its))
        };
        rates.len() == 1 && !of("port").any(names_it)
    }
}

fn rate_bps(link: &Value) -> Option<i64> {
    let mbps = link["rate_mbps"].as_i64().map(|mbps| mbps * 1_000_000);
    mbps.or(link["rate_bps"].as_i64())
}
