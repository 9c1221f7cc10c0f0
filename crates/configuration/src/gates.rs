//! A port's gates (802.1Q-2022 8.6.8.4, 12.29.1). The network's epoch is that of PTP, in which base
//! times are.

use crate::Inexpressible;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use onbeat_model::device::DeviceLimits;
use onbeat_model::port::GateControl;
use onbeat_model::time::Span;

const NS_PER_S: u64 = 1_000_000_000;
/// AdminGateStates before the first cycle begins: the plan has all gates open then.
const ALL_OPEN: u32 = 255;

/// Numbers as the modules have them.
struct Table {
    /// The states of the gates, bit q for class q, and for how many nanoseconds.
    entries: Vec<(u8, u32)>,
    /// Numerator and denominator, in seconds.
    cycle: [u32; 2],
    /// Seconds and nanoseconds since the epoch.
    base: (u64, u32),
}

/// The `gate-parameter-table` of a port whose label is for refusals; `module` is who puts it there.
/// What the device can do at most is as in `limits`; where that is unknown, as much as is needed.
pub(crate) fn table(
    module: Module,
    port: &str,
    lists: &[GateControl],
    limits: &DeviceLimits,
) -> Result<Element, Inexpressible> {
    let table = match lists {
        [] => None,
        [list] => Some(Table::of(port, list, limits)?),
        _ => {
            return Err(Inexpressible::SeveralLists { port: port.to_owned(), count: lists.len() });
        }
    };
    let fields = match table {
        Some(table) => table.fields(module, limits),
        None => closed(module, limits),
    };
    Ok(Element::new(module, "gate-parameter-table", InstanceValue::Fields(fields)))
}

impl Table {
    fn of(port: &str, list: &GateControl, limits: &DeviceLimits) -> Result<Self, Inexpressible> {
        let cycle_ns = list.cycle.as_ns();
        let cycle = seconds(cycle_ns.unsigned_abs())
            .filter(|_| cycle_ns > 0)
            .ok_or_else(|| Inexpressible::Cycle { port: port.to_owned(), ns: cycle_ns })?;
        // AdminBaseTime is not negative. One that is past means any later cycle (8.6.9.1.1).
        let base_ns = list.base_from_epoch().as_ns().unsigned_abs();
        let base = (base_ns / NS_PER_S, (base_ns % NS_PER_S) as u32);
        Ok(Self { entries: entries(list, limits), cycle, base })
    }

    fn fields(&self, module: Module, limits: &DeviceLimits) -> Vec<Element> {
        let field = |name, value| Element::new(module, name, value);
        let list = self.entries.iter().zip(0..).map(|((open, ns), index)| {
            vec![
                field("index", InstanceValue::Number(index)),
                field("operation-name", InstanceValue::Identity(Module::Gates, "set-gate-states")),
                field("time-interval-value", InstanceValue::Number(*ns)),
                field("gate-states-value", InstanceValue::Number((*open).into())),
            ]
        });
        let list = InstanceValue::List(list.collect());
        let longest = self.entries.iter().map(|(_, ns)| *ns).max().unwrap_or_default();
        let longest = limits.interval_max.map_or(longest, whole_ns);
        let count = limits.list_max.unwrap_or(self.entries.len());
        let count = u32::try_from(count).expect("a list that fits in memory");
        let cycle = cycle_max(limits).unwrap_or(self.cycle);
        vec![
            field("gate-enabled", InstanceValue::Flag(true)),
            field("admin-gate-states", InstanceValue::Number(ALL_OPEN)),
            field(
                "admin-control-list",
                InstanceValue::Fields(vec![field("gate-control-entry", list)]),
            ),
            rational(module, "admin-cycle-time", self.cycle),
            field("admin-cycle-time-extension", InstanceValue::Number(0)),
            field(
                "admin-base-time",
                InstanceValue::Fields(vec![
                    field("seconds", InstanceValue::Large(self.base.0)),
                    field("nanoseconds", InstanceValue::Number(self.base.1)),
                ]),
            ),
            // Nothing else makes the device take the list (802.1Q-2022 8.6.9.4.7).
            field("config-change", InstanceValue::Flag(true)),
            field("supported-list-max", InstanceValue::Number(count)),
            rational(module, "supported-cycle-max", cycle),
            field("supported-interval-max", InstanceValue::Number(longest)),
        ]
    }
}

/// What a port without gates has: it may have had some before. The rest is what the modules'
/// constraints need to have something to compare (RFC 7950 7.5.3).
fn closed(module: Module, limits: &DeviceLimits) -> Vec<Element> {
    let has_gates = limits.gates != Some(false);
    let count = limits.list_max.filter(|_| has_gates).unwrap_or(0);
    let cycle = cycle_max(limits).filter(|_| has_gates).unwrap_or([0, 1]);
    let field = |name, value| Element::new(module, name, value);
    vec![
        field("gate-enabled", InstanceValue::Flag(false)),
        field("admin-gate-states", InstanceValue::Number(ALL_OPEN)),
        rational(module, "admin-cycle-time", [0, 1]),
        field("supported-list-max", InstanceValue::Number(count as u32)),
        rational(module, "supported-cycle-max", cycle),
    ]
}

/// SupportedCycleMax, if it is known and can be written.
fn cycle_max(limits: &DeviceLimits) -> Option<[u32; 2]> {
    seconds(limits.cycle_max?.as_ns().unsigned_abs())
}

/// As many nanoseconds as can be written.
fn whole_ns(span: Span) -> u32 {
    u32::try_from(span.as_ns()).unwrap_or(u32::MAX)
}

fn rational(module: Module, name: &'static str, [numerator, denominator]: [u32; 2]) -> Element {
    let part = |name, number| Element::new(module, name, InstanceValue::Number(number));
    let parts = vec![part("numerator", numerator), part("denominator", denominator)];
    Element::new(module, name, InstanceValue::Fields(parts))
}

/// A time as a fraction of seconds in lowest terms, if 32 bits suffice.
fn seconds(ns: u64) -> Option<[u32; 2]> {
    let divisor = greatest_common_divisor(ns, NS_PER_S);
    let numerator = u32::try_from(ns / divisor).ok()?;
    Some([numerator, (NS_PER_S / divisor) as u32])
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The list, with each state that lasts longer than one TimeInterval can say (802.1Q-2022
/// 12.29.1.2.3) as several, each in steps of the device. What would begin when the cycle has ended
/// never comes, and takes up no room of the device.
fn entries(list: &GateControl, limits: &DeviceLimits) -> Vec<(u8, u32)> {
    let longest = limits.interval_max.map_or(u32::MAX, whole_ns);
    let step = u64::from(whole_ns(limits.longest_entry(u32::MAX)));
    let cycle = list.cycle.as_ns().unsigned_abs();
    let (mut begin, mut entries) = (0_u64, Vec::new());
    for entry in &list.entries {
        let end = begin.saturating_add(entry.span.as_ns().unsigned_abs());
        while begin < end && begin < cycle {
            let left = end - begin;
            let ns = if left > u64::from(longest) { step } else { left };
            entries.push((entry.open, ns as u32));
            begin += ns;
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::port::GateEntry;
    use onbeat_model::time::NetTime;

    const ANY: DeviceLimits = DeviceLimits::UNKNOWN;

    fn list(cycle_ns: i64, entries: &[(u8, i64)]) -> GateControl {
        let entry = |(open, ns): &(u8, i64)| GateEntry { open: *open, span: Span::from_ns(*ns) };
        GateControl {
            base: NetTime::ZERO,
            cycle: Span::from_ns(cycle_ns),
            entries: entries.iter().map(entry).collect(),
            length_aware: true,
        }
    }

    #[test]
    fn a_time_is_a_fraction_in_lowest_terms_where_32_bits_suffice() {
        assert_eq!(seconds(500_000), Some([1, 2_000]));
        assert_eq!(seconds(1), Some([1, 1_000_000_000]));
        assert_eq!(seconds(2_592_000_000_000_000), Some([2_592_000, 1]));
        assert_eq!(seconds(u64::from(u32::MAX)), Some([858_993_459, 200_000_000]));
        assert_eq!(seconds(4_294_967_297), None);
    }

    #[test]
    fn a_state_that_is_too_long_for_one_entry_is_several() {
        let most = u32::MAX;
        let long = list(20_000_000_000, &[(1, 1), (6, 10_000_000_000), (9, 3)]);
        let rest = (10_000_000_000 - 2 * u64::from(most)) as u32;
        assert_eq!(entries(&long, &ANY), [(1, 1), (6, most), (6, most), (6, rest), (9, 3)]);
    }

    #[test]
    fn a_state_is_split_in_steps_of_the_device() {
        let limits = DeviceLimits {
            interval_max: Some(Span::from_ns(999)),
            interval_min: Some(Span::from_ns(150)),
            tick: Some(Span::from_ns(100)),
            ..ANY
        };
        let parts = [(1, 200), (6, 800), (6, 800), (6, 200)];
        assert_eq!(entries(&list(2_000, &[(1, 200), (6, 1_800)]), &limits), parts);
        // What is not too long is one, in whatever steps the device counts.
        assert_eq!(entries(&list(1_090, &[(1, 200), (6, 890)]), &limits), [(1, 200), (6, 890)]);
    }

    #[test]
    fn a_base_time_before_the_epoch_is_that_of_a_later_cycle() {
        let base = |ns| GateControl { base: NetTime::from_ns(ns), ..list(1_000, &[(1, 1_000)]) };
        let written = |ns| Table::of("cat1.p2", &base(ns), &ANY).expect("it can be written").base;
        assert_eq!(
            [-7, -1_000, -2_001, 5_007].map(written),
            [(0, 993), (0, 0), (0, 999), (0, 5_007)]
        );
    }

    #[test]
    fn what_begins_after_the_cycle_is_left_out() {
        let days = 30 * 86_400 * 1_000_000_000;
        assert_eq!(entries(&list(10, &[(1, 4), (2, 6), (3, 9)]), &ANY), [(1, 4), (2, 6)]);
        assert_eq!(entries(&list(11, &[(1, 4), (2, 6), (3, days), (4, days)]), &ANY).len(), 3);
    }

    #[test]
    fn what_no_configuration_expresses_is_refused_by_name() {
        let one = list(10, &[(1, 10)]);
        let refused = |lists: &[GateControl]| {
            table(Module::BridgeGates, "cat1.p2", lists, &ANY).expect_err("refused").to_string()
        };
        assert!(refused(&[one.clone(), one.clone()]).starts_with("cat1.p2 has 2 gate control"));
        assert!(refused(&[list(4_294_967_297, &[(1, 1)])]).contains("4294967297 ns"));
        assert!(refused(&[list(0, &[(1, 1)])]).contains("a cycle of 0 ns"));
    }
}
