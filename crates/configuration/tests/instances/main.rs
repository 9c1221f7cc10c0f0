//! What the crate writes, against the published modules and against the plan that it is from.

mod read;
mod systems;
mod yanglint;

use onbeat_configuration::{Device, Inexpressible, device};
use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeId, NodeKind, System};
use onbeat_testkit::Random;
use serde_json::{Value, json};
use yanglint::{Of, Yanglint};

/// Systems of the generator.
const RANDOM: u64 = 40;

/// The configurations of all nodes of a kind, in their order.
fn configured(system: &System, plan: &Plan, of: Of) -> Result<Vec<Device>, Inexpressible> {
    let nodes = (0..).map(NodeId).zip(&system.nodes);
    let is_of = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(_)) == (of == Of::Bridge);
    let nodes = nodes.filter(|(_, node)| is_of(&node.kind));
    nodes.map(|(id, _)| device(system, plan, id)).collect()
}

fn devices(system: &System, plan: &Plan) -> Vec<(Of, Device)> {
    let of = |of| configured(system, plan, of).expect("devices that can be configured");
    let both = [Of::Bridge, Of::Host].map(|kind| of(kind).into_iter().map(move |one| (kind, one)));
    both.into_iter().flatten().collect()
}

fn all_systems() -> Vec<(System, Plan)> {
    let mut all: Vec<_> = systems::EXAMPLES.into_iter().map(systems::example).collect();
    all.push(systems::described(systems::SCHEDULED));
    let random = (0..RANDOM).map(|seed| systems::random(&mut Random(seed)));
    all.extend(random.map(|text| systems::described(&text)));
    all
}

#[test]
fn every_configuration_is_valid_by_the_published_modules() {
    let Some(yanglint) = Yanglint::found() else { return };
    let all = all_systems();
    let all: Vec<_> = all.iter().map(|(system, plan)| devices(system, plan)).collect();
    for of in [Of::Bridge, Of::Host] {
        let mut texts = Vec::new();
        for (number, devices) in all.iter().enumerate() {
            for (_, device) in devices.iter().filter(|(kind, _)| *kind == of) {
                let name = |encoding| format!("{number}-{}.{encoding}", device.name);
                texts.extend([(name("json"), &*device.json), (name("xml"), &*device.xml)]);
            }
        }
        assert!(texts.len() > 100, "{}", texts.len());
        yanglint.all(of, &texts).unwrap_or_else(|why| panic!("{why}"));
        // One that is wrong is found among the others.
        let wrong = texts[7].1.replace("255", "256");
        texts[7].1 = &wrong;
        let why = yanglint.all(of, &texts).expect_err("one is wrong");
        assert!(why.contains(&texts[7].0), "{why}");
    }
}

#[test]
fn both_encodings_say_the_same() {
    let Some(yanglint) = Yanglint::found() else { return };
    for (system, plan) in [systems::example("04-tsn-ring"), systems::described(systems::SCHEDULED)]
    {
        for (of, device) in devices(&system, &plan) {
            let (json, xml) = (yanglint.json(of, &device.json), yanglint.xml(of, &device.xml));
            assert_eq!(json.expect("valid"), xml.expect("valid"), "{}", device.name);
        }
    }
}

#[test]
fn the_values_are_those_of_the_plan() {
    let mut seen = read::Seen::default();
    for (system, plan) in all_systems() {
        for (_, device) in devices(&system, &plan) {
            let parsed = serde_json::from_str(&device.json).expect("JSON");
            seen.compare(&system, &plan, device.node, &parsed);
        }
    }
    // None of it was compared with nothing.
    let enough = seen.gates > 100 && seen.entries > 1_000 && seen.split > 5 && seen.slopes > 100;
    assert!(enough && seen.ports > 300 && seen.asynchronous > 10, "{seen:?}");
}

/// The gates of the first port of a bridge that has some.
fn gates(document: &mut Value) -> &mut Value {
    let interfaces = document["ietf-interfaces:interfaces"]["interface"].as_array_mut();
    let mut tables = interfaces.expect("interfaces").iter_mut().map(|interface| {
        let port = &mut interface["ieee802-dot1q-bridge:bridge-port"];
        &mut port["ieee802-dot1q-sched-bridge:gate-parameter-table"]
    });
    tables.find(|table| table["gate-enabled"] == true).expect("a port with gates")
}

#[test]
fn what_is_wrong_is_refused_by_the_validation() {
    let Some(yanglint) = Yanglint::found() else { return };
    let (system, plan) = systems::described(systems::SCHEDULED);
    let (of, device) = devices(&system, &plan).swap_remove(0);
    yanglint.json(of, &device.json).expect("as it is, it is valid");
    let entry = json!({
        "index": 1_000, "operation-name": "ieee802-dot1q-sched:set-gate-states",
        "time-interval-value": 1, "gate-states-value": 255,
    });
    type Change<'a> = &'a dyn Fn(&mut Value);
    let without = |table: &mut Value, name: &str| {
        table.as_object_mut().expect("a table").remove(name).expect("it was there");
    };
    let changes: [(&str, Change<'_>); 8] = [
        ("supported-list-max", &|table| without(table, "supported-list-max")),
        ("supported-cycle-max", &|table| without(table, "supported-cycle-max")),
        ("supported-interval-max", &|table| without(table, "supported-interval-max")),
        ("supported-list-max", &|table| {
            let list = &mut table["admin-control-list"]["gate-control-entry"];
            list.as_array_mut().expect("a list").push(entry.clone());
        }),
        ("supported-cycle-max", &|table| {
            table["admin-cycle-time"] = json!({ "numerator": 5, "denominator": 1 });
        }),
        ("supported-interval-max", &|table| {
            let first = &mut table["admin-control-list"]["gate-control-entry"][0];
            first["time-interval-value"] = json!(4_000_000_000_u32);
        }),
        ("Invalid identityref", &|table| {
            let first = &mut table["admin-control-list"]["gate-control-entry"][0];
            first["operation-name"] = json!("ieee802-dot1q-sched-bridge:set-gate-states");
        }),
        ("out of type uint8 min/max bounds", &|table| {
            table["admin-control-list"]["gate-control-entry"][0]["gate-states-value"] = json!(256);
        }),
    ];
    for (expected, change) in changes {
        let mut document = serde_json::from_str(&device.json).expect("JSON");
        change(gates(&mut document));
        let why = yanglint.json(of, &document.to_string()).expect_err(expected);
        assert!(why.contains(expected), "{expected}: {why}");
    }
    let xml = |from: &str, to: &str| {
        assert!(device.xml.contains(from), "{from} in {}", device.xml);
        assert!(yanglint.xml(of, &device.xml.replace(from, to)).is_err(), "{to} is taken");
    };
    xml("supported-list-max>", "supported-list-most>");
    xml("sched:set-gate-states", "sched:set-gates");
    xml("ianaift:ethernetCsmacd", "ianaift:ethernet");
}

#[test]
fn several_lists_at_a_port_are_refused_by_its_name() {
    let several = systems::SCHEDULED.replace("# several: ", "");
    let (system, plan) = systems::described(&several);
    let refused = configured(&system, &plan, Of::Bridge).expect_err("refused");
    assert_eq!(refused, Inexpressible::SeveralLists { port: "second.spare".to_owned(), count: 2 });
    assert!(configured(&system, &plan, Of::Host).is_ok());
}

#[test]
fn what_a_configuration_does_not_say_is_told() {
    let (system, plan) = systems::example("04-tsn-ring");
    let all = configured(&system, &plan, Of::Bridge).expect("bridges");
    let south = all.iter().find(|device| device.name == "south").expect("the bridge");
    for expected in [
        "south.panel: frames of queues 0, 1 are preemptable",
        "south.panel: only frames of VLANs 2, 9 leave here",
        "south.west: queues 5 have schedulers for their streams",
    ] {
        assert!(south.unsaid.iter().any(|line| line == expected), "{:#?}", south.unsaid);
    }
}

#[test]
fn a_priority_belongs_to_the_class_of_its_traffic() {
    let table = |text: &str| {
        let (system, plan) = systems::described(text);
        let device = configured(&system, &plan, Of::Bridge).expect("bridges").swap_remove(1);
        let parsed: Value = serde_json::from_str(&device.json).expect("JSON");
        let interfaces = parsed["ietf-interfaces:interfaces"]["interface"].as_array().cloned();
        let first = interfaces.expect("interfaces").swap_remove(0);
        assert_eq!(first["name"], "first");
        let port = &first["ieee802-dot1q-bridge:bridge-port"];
        let table = &port["traffic-class"]["traffic-class-table"];
        assert_eq!(table["number-of-traffic-classes"], 8);
        let classes = (0..8).map(|priority| table[format!("priority{priority}")].as_u64());
        let classes: Option<Vec<u64>> = classes.collect();
        (classes.expect("a class for each"), device.unsaid)
    };
    // Table 34-1 of the standard; A and B are in it.
    let (classes, unsaid) = table(systems::SCHEDULED);
    assert_eq!(classes, [1, 0, 6, 7, 2, 3, 4, 5]);
    let torn = "first: frames of priority 3 are to be of more than one class";
    assert!(!unsaid.iter().any(|line| line.contains("priority")), "{unsaid:?}");
    // B with another priority; and then one that A has, too, without a reservation.
    let other = systems::SCHEDULED.replace("class = \"B\"", "class = \"B\"\npcp = 4");
    assert_eq!(table(&other).0, [1, 0, 6, 7, 6, 3, 4, 5]);
    let same = "class = \"B\"\npcp = 3\nreserve = false";
    let (classes, unsaid) = table(&systems::SCHEDULED.replace("class = \"B\"", same));
    assert_eq!(classes, [1, 0, 6, 7, 2, 3, 4, 5]);
    assert!(unsaid.contains(&format!("second.{torn}")), "{unsaid:?}");
}
