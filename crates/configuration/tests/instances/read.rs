//! Reading a configuration back, and comparing it with the plan.

use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, Selection};
use onbeat_model::system::{NodeId, NodeKind, System};
use serde_json::Value;
use std::collections::BTreeMap;

/// How much was compared.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) ports: u32,
    pub(crate) gates: u32,
    pub(crate) entries: usize,
    /// Lists with states that take several entries, or that go beyond their cycle.
    pub(crate) split: u32,
    pub(crate) slopes: usize,
    pub(crate) asynchronous: u32,
    /// Tables of devices whose limits are known.
    pub(crate) limited: u32,
    /// Lists of a plan that begin before the epoch.
    pub(crate) before_epoch: u32,
}

/// Where a node's modules put things.
struct Places<'a> {
    algorithms: &'a Value,
    gates: &'a Value,
    shapers: &'a Value,
}

impl Seen {
    /// All ports of one node.
    pub(crate) fn compare(&mut self, system: &System, plan: &Plan, node: NodeId, parsed: &Value) {
        let device = system.device_limits(node);
        let node = system.node(node);
        let interfaces = list(&parsed["ietf-interfaces:interfaces"]["interface"]);
        assert_eq!(interfaces.len(), node.ports.len());
        for (port, interface) in node.ports.iter().zip(interfaces) {
            self.ports += 1;
            assert_eq!(interface["name"], system.port(*port).name.as_str());
            assert_eq!(interface["type"], "iana-if-type:ethernetCsmacd");
            let settings = &plan.ports[port.index()].settings;
            let places = Places::of(&node.kind, interface);
            self.selections(&settings.selection, &places);
            if let Some(most) = device.list_max {
                self.limited += 1;
                assert_eq!(number(&places.gates["supported-list-max"]), most as u64);
            }
            match &settings.gates[..] {
                [] => assert_eq!(places.gates["gate-enabled"], false),
                [gates] => self.gates(gates, places.gates),
                _ => panic!("several lists"),
            }
        }
    }

    fn selections(&mut self, selection: &[Selection], places: &Places<'_>) {
        let slopes: BTreeMap<u64, u64> = if places.shapers.is_null() {
            BTreeMap::new()
        } else {
            let entries = list(&places.shapers["cbsa-parameter-table"]).iter();
            let slope = |entry: &Value| {
                (number(&entry["traffic-class"]), large(&entry["admin-idle-slope"]))
            };
            entries.map(slope).collect()
        };
        let planned = (0..).zip(selection).filter_map(|(class, selection)| match selection {
            Selection::CreditBased { idle_slope } => Some((class, idle_slope.as_bps())),
            _ => None,
        });
        assert_eq!(slopes, planned.collect());
        self.slopes += slopes.len();
        let map = list(&places.algorithms["transmission-selection-algorithm-map"]);
        assert_eq!(map.len(), selection.len());
        for ((class, selection), entry) in (0..).zip(selection).zip(map) {
            let name = match selection {
                Selection::StrictPriority => "ieee802-dot1q-types:strict-priority",
                Selection::CreditBased { .. } => "ieee802-dot1q-types:credit-based-shaper",
                Selection::Asynchronous => "ieee802-dot1q-types:asynchronous-traffic-shaping",
            };
            self.asynchronous += u32::from(*selection == Selection::Asynchronous);
            assert_eq!(number(&entry["traffic-class"]), class);
            assert_eq!(entry["transmission-selection-algorithm"], name);
        }
    }

    fn gates(&mut self, planned: &GateControl, table: &Value) {
        assert_eq!(table["gate-enabled"], true);
        assert_eq!(table["config-change"], true);
        assert_eq!(table["admin-gate-states"], 255);
        assert_eq!(table["admin-cycle-time-extension"], 0);
        let (cycle_ns, base_ns) = (planned.cycle.as_ns(), planned.base.as_ns());
        let cycle = &table["admin-cycle-time"];
        let numerator = u128::from(number(&cycle["numerator"])) * 1_000_000_000;
        let denominator = u128::from(number(&cycle["denominator"]));
        assert_eq!(numerator, denominator * cycle_ns.unsigned_abs() as u128);
        let base = &table["admin-base-time"];
        let (seconds, ns) = (large(&base["seconds"]), number(&base["nanoseconds"]));
        assert!(ns < 1_000_000_000);
        let base = i64::try_from(seconds * 1_000_000_000 + ns).expect("64 bits");
        match base_ns < 0 {
            true => {
                self.before_epoch += 1;
                assert!(base < cycle_ns && (base - base_ns) % cycle_ns == 0, "{base} of {base_ns}");
            }
            false => assert_eq!(base, base_ns),
        }
        let entries: Vec<(u64, u64)> = (0..)
            .zip(list(&table["admin-control-list"]["gate-control-entry"]))
            .map(|(index, entry)| {
                assert_eq!(number(&entry["index"]), index);
                assert_eq!(entry["operation-name"], "ieee802-dot1q-sched:set-gate-states");
                (number(&entry["gate-states-value"]), number(&entry["time-interval-value"]))
            })
            .collect();
        let wanted: Vec<(u64, u64)> = planned
            .entries
            .iter()
            .map(|entry| (entry.open.into(), entry.span.as_ns().unsigned_abs()))
            .collect();
        let cycle = cycle_ns.unsigned_abs();
        assert_eq!(states(&entries, cycle), states(&wanted, cycle));
        let before_last: u64 = wanted.iter().rev().skip(1).map(|(_, ns)| *ns).sum();
        let fits = wanted.iter().all(|(_, ns)| *ns <= u32::MAX.into());
        if fits && before_last < cycle {
            assert_eq!(entries, wanted);
        } else {
            self.split += 1;
        }
        self.gates += 1;
        self.entries += entries.len();
    }
}

impl<'a> Places<'a> {
    fn of(kind: &NodeKind, interface: &'a Value) -> Self {
        match kind {
            NodeKind::Bridge(_) => {
                let port = &interface["ieee802-dot1q-bridge:bridge-port"];
                Self {
                    algorithms: &port["transmission-selection-algorithm-table"],
                    gates: &port["ieee802-dot1q-sched-bridge:gate-parameter-table"],
                    shapers: &port["ieee802-dot1q-cbsa-bridge:cbsa"],
                }
            }
            NodeKind::Host(_) => {
                let quality = &interface["ieee802-dot1dc-gfqos:gfqos-ifc"];
                Self {
                    algorithms: &quality["transmission-selection-algorithm-table"],
                    gates: &interface["ieee802-dot1dc-sched-if:gate-parameter-table"],
                    shapers: &interface["ieee802-dot1dc-cbsa-if:cbsa"],
                }
            }
        }
    }
}

/// What the gates do in one cycle: each state with the time at which it ends. The last one stays.
fn states(entries: &[(u64, u64)], cycle: u64) -> Vec<(u64, u64)> {
    let (mut states, mut at): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    for (open, ns) in entries {
        if at >= cycle {
            break;
        }
        at = (at + ns).min(cycle);
        match states.last_mut() {
            Some(last) if last.0 == *open => last.1 = at,
            _ => states.push((*open, at)),
        }
    }
    states.last_mut().expect("a list is never empty").1 = cycle;
    states
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Numbers of 64 bits are text (RFC 7951 6.1).
fn large(value: &Value) -> u64 {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no text"));
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
