//! One port: its interface, and on it what the plan asks of it.

use crate::classes::Classes;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use crate::{Deployment, Inexpressible, gates};
use onbeat_model::port::{PortSettings, QUEUES, Selection};
use onbeat_model::system::{NodeKind, PortId};

/// The leaves of `traffic-class-table`, by priority.
const PRIORITIES: [&str; 8] = [
    "priority0",
    "priority1",
    "priority2",
    "priority3",
    "priority4",
    "priority5",
    "priority6",
    "priority7",
];

/// An entry of the list of interfaces.
pub(crate) struct PortInterface {
    /// The nodes of the entry.
    pub(crate) fields: Vec<Element>,
    /// What they do not say.
    pub(crate) unsaid: Vec<String>,
}

/// The interface of a port, of which other data have all schedulers or not.
pub(crate) fn interface(
    all: &Deployment<'_>,
    id: PortId,
    has_schedulers: bool,
) -> Result<PortInterface, Inexpressible> {
    let Deployment { system, plan, .. } = all;
    let (port, label) = (system.port(id), system.port_label(id));
    let settings = plan.ports.get(id.index()).map_or(&port.settings, |planned| &planned.settings);
    let field = |name, value| Element::new(Module::Interfaces, name, value);
    let ethernet = InstanceValue::Identity(Module::InterfaceTypes, "ethernetCsmacd");
    let mut fields =
        vec![field("name", InstanceValue::Text(port.name.clone())), field("type", ethernet)];
    let mut unsaid = unsaid(&label, settings, has_schedulers);
    let limits = system.device_limits(port.node);
    match system.node(port.node).kind {
        NodeKind::Bridge(_) => {
            let classes = Classes::of(all, id);
            unsaid.extend(classes.torn.iter().map(|priority| {
                format!("{label}: frames of priority {priority} are to be of more than one class")
            }));
            if let Some(most) = limits.traffic_classes.filter(|most| usize::from(*most) < QUEUES) {
                unsaid.push(format!(
                    "{label}: its device has {most} traffic classes, and the configuration numbers \
                     {QUEUES}"
                ));
            }
            let mut of_port = vec![
                traffic_classes(&classes),
                algorithms(Module::Bridge, settings),
                gates::table(Module::BridgeGates, &label, &settings.gates, &limits)?,
            ];
            of_port.extend(shapers(Module::BridgeShapers, settings));
            let of_port = InstanceValue::Fields(of_port);
            fields.push(Element::new(Module::Bridge, "bridge-port", of_port));
        }
        NodeKind::Host(_) => {
            let quality = InstanceValue::Fields(vec![algorithms(Module::Interface, settings)]);
            fields.push(Element::new(Module::Interface, "gfqos-ifc", quality));
            fields.push(gates::table(Module::InterfaceGates, &label, &settings.gates, &limits)?);
            fields.extend(shapers(Module::InterfaceShapers, settings));
        }
    }
    Ok(PortInterface { fields, unsaid })
}

/// The traffic class of each priority (802.1Q-2022 12.6.3).
fn traffic_classes(classes: &Classes) -> Element {
    let field = |name, value| Element::new(Module::Bridge, name, value);
    let number = |name, number: u8| field(name, InstanceValue::Number(number.into()));
    let mut table = vec![number("number-of-traffic-classes", QUEUES as u8)];
    table.extend(PRIORITIES.iter().zip(classes.of_priority).map(|(name, of)| number(name, of)));
    let table = field("traffic-class-table", InstanceValue::Fields(table));
    field("traffic-class", InstanceValue::Fields(vec![table]))
}

/// How each class selects what it sends (802.1Q-2022 12.20.2, Table 8-6).
fn algorithms(module: Module, settings: &PortSettings) -> Element {
    let field = |name, value| Element::new(module, name, value);
    let entries = settings.selection.iter().zip(0..).map(|(selection, class)| {
        let algorithm = match selection {
            Selection::StrictPriority => "strict-priority",
            Selection::CreditBased { .. } => "credit-based-shaper",
            Selection::Asynchronous => "asynchronous-traffic-shaping",
        };
        let algorithm = InstanceValue::Identity(Module::Types, algorithm);
        vec![
            field("traffic-class", InstanceValue::Number(class)),
            field("transmission-selection-algorithm", algorithm),
        ]
    });
    let map = field("transmission-selection-algorithm-map", InstanceValue::List(entries.collect()));
    field("transmission-selection-algorithm-table", InstanceValue::Fields(vec![map]))
}

/// The idleSlope of each class that has one (802.1Q-2022 34.3, 802.1Qdx-2024 12.20.1), in bits per
/// second: a plan's slope is operIdleSlope, which is adminIdleSlope unless the reservation protocol
/// is in operation; then adminIdleSlope has no effect.
fn shapers(module: Module, settings: &PortSettings) -> Option<Element> {
    let field = |name, value| Element::new(module, name, value);
    let entries = settings.selection.iter().zip(0..).filter_map(|(selection, class)| {
        let Selection::CreditBased { idle_slope } = selection else { return None };
        Some(vec![
            field("traffic-class", InstanceValue::Number(class)),
            field("admin-idle-slope", InstanceValue::Large(idle_slope.as_bps())),
        ])
    });
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        return None;
    }
    let table = field("cbsa-parameter-table", InstanceValue::List(entries));
    Some(field("cbsa", InstanceValue::Fields(vec![table])))
}

/// What a port is to do that its interface does not say, and nothing else if its schedulers are not
/// said either.
pub(crate) fn unsaid(label: &str, settings: &PortSettings, has_schedulers: bool) -> Vec<String> {
    let mut unsaid = Vec::new();
    if let Some((queues, _)) = queues(|queue| settings.preemptable & (1 << queue) != 0) {
        unsaid.push(format!("{label}: frames of {queues} are preemptable"));
    }
    let asynchronous = queues(|queue| settings.selection[queue] == Selection::Asynchronous);
    if let Some((queues, have)) = asynchronous.filter(|_| !has_schedulers) {
        unsaid.push(format!("{label}: {queues} {have} schedulers for streams"));
    }
    // Gates of the standard always are (802.1Q-2022 8.6.8.4).
    if settings.gates.iter().any(|list| !list.length_aware) {
        unsaid.push(format!("{label}: a frame may start though its gate closes before its end"));
    }
    unsaid
}

/// Some queues and the verb behind them, if there is any.
fn queues(is_one: impl Fn(usize) -> bool) -> Option<(String, &'static str)> {
    let all: Vec<_> = (0..QUEUES).filter(|queue| is_one(*queue)).map(|q| q.to_string()).collect();
    match &all[..] {
        [] => None,
        [one] => Some((format!("queue {one}"), "has")),
        _ => Some((format!("queues {}", all.join(", ")), "have")),
    }
}
