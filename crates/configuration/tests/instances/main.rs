//! What the crate writes, against the published modules and against the plan that it is from.

mod linux;
mod networkd;
mod read;
mod replication;
mod streams;
mod systems;
mod yanglint;

use onbeat_configuration::{Deployment, Device, Inexpressible};
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
    nodes.map(|(id, _)| Deployment::new(system, plan).device(id)).collect()
}

fn devices(system: &System, plan: &Plan) -> Vec<(Of, Device)> {
    let of = |of| configured(system, plan, of).expect("devices that can be configured");
    let both = [Of::Bridge, Of::Host].map(|kind| of(kind).into_iter().map(move |one| (kind, one)));
    both.into_iter().flatten().collect()
}

fn all_systems() -> Vec<(System, Plan)> {
    let mut all: Vec<_> = systems::EXAMPLES.into_iter().map(systems::example).collect();
    all.push(systems::described(systems::SCHEDULED));
    all.push(systems::described(&systems::with_devices()));
    all.push(systems::described(&systems::with_sporadic()));
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
                texts.extend([
                    (name("json"), &*device.interfaces.json),
                    (name("xml"), &*device.interfaces.xml),
                ]);
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
            let (json, xml) = (
                yanglint.json(of, &device.interfaces.json),
                yanglint.xml(of, &device.interfaces.xml),
            );
            assert_eq!(json.expect("valid"), xml.expect("valid"), "{}", device.name);
        }
    }
}

#[test]
fn the_values_are_those_of_the_plan() {
    let mut seen = read::Seen::default();
    for (system, plan) in all_systems() {
        for (_, device) in devices(&system, &plan) {
            let parsed = serde_json::from_str(&device.interfaces.json).expect("JSON");
            seen.compare(&system, &plan, device.node, &parsed);
        }
    }
    // None of it was compared with nothing.
    let enough = seen.gates > 100 && seen.entries > 1_000 && seen.split > 5 && seen.slopes > 100;
    assert!(enough && seen.ports > 300 && seen.asynchronous > 10, "{seen:?}");
    assert!(seen.limited > 1 && seen.before_epoch > 0, "{seen:?}");
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
    yanglint.json(of, &device.interfaces.json).expect("as it is, it is valid");
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
        let mut document = serde_json::from_str(&device.interfaces.json).expect("JSON");
        change(gates(&mut document));
        let why = yanglint.json(of, &document.to_string()).expect_err(expected);
        assert!(why.contains(expected), "{expected}: {why}");
    }
    let xml = |from: &str, to: &str| {
        assert!(device.interfaces.xml.contains(from), "{from} in {}", device.interfaces.xml);
        assert!(
            yanglint.xml(of, &device.interfaces.xml.replace(from, to)).is_err(),
            "{to} is taken"
        );
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

/// Where a frame with this address goes by what the bridges' databases say, from a host: the hosts
/// that get it. Every copy is counted.
fn flooded(system: &System, devices: &[Value], from: NodeId, vlan: u16, address: &str) -> Vec<u32> {
    let (mut ahead, mut reached) = (vec![system.node(from).ports[0]], Vec::new());
    let vids = vlan.to_string();
    while let Some(port) = ahead.pop() {
        let into = system.port(port).peer;
        let to = system.port(into).node;
        let NodeKind::Bridge(_) = system.node(to).kind else {
            reached.push(to.0);
            continue;
        };
        let bridge = &devices[to.index()]["ieee802-dot1q-bridge:bridges"]["bridge"][0];
        let component = &bridge["component"][0];
        assert_eq!(
            [&bridge["name"], &component["name"]].map(|name| name.as_str()),
            [Some(&*system.node(to).name); 2]
        );
        let database = &component["filtering-database"];
        let find = |list: &str, is_it: &dyn Fn(&Value) -> bool| {
            let entries = database[list].as_array().cloned().unwrap_or_default();
            let entry = entries.into_iter().find(|entry| entry["vids"] == *vids && is_it(entry));
            entry.map_or(Value::Null, |entry| entry["port-map"].clone())
        };
        let entry = find("filtering-entry", &|entry| entry["address"] == address);
        let registered = find("vlan-registration-entry", &|_| true);
        let ports = &system.node(to).ports;
        assert_eq!(entry.as_array().map(Vec::len), Some(ports.len()), "an element for each port");
        for (at, port) in ports.iter().enumerate() {
            assert_eq!([&entry[at]["port-ref"], &registered[at]["port-ref"]], [&json!(at + 1); 2]);
            let forwards = entry[at]["static-filtering-entries"]["control-element"] == "forward";
            let registration = &registered[at]["static-vlan-registration-entries"];
            let is_member = registration["registrar-admin-control"] == "fixed-new-ignored";
            assert_eq!(is_member, registration["vlan-transmitted"] == "tagged");
            if forwards && is_member && *port != into {
                ahead.push(*port);
            }
        }
    }
    reached.sort_unstable();
    reached
}

/// A ring whose shortest paths are overloaded, from one of its hosts on.
fn ring(first: usize) -> String {
    let host = |at: usize| format!("\"h{}\"", (first + at) % 4);
    let mut text = "format = 1\nname = \"ring\"\nrouting = \"load-aware\"\n".to_owned();
    text += "[run]\nduration_s = 1\n";
    for (at, next) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        text += &format!("[[bridge]]\nname = \"b{at}\"\n[[host]]\nname = \"h{at}\"\n");
        text += &format!("[[link]]\nends = [\"b{at}.next\", \"b{next}.last\"]\nrate_mbps = 100\n");
        text += &format!("[[link]]\nends = [\"h{at}\", \"b{at}.host\"]\nrate_mbps = 1000\n");
    }
    for at in 0..8 {
        text += &format!("[[channel]]\nname = \"c{at}\"\nclass = \"A\"\nstream_id = {}\n", at + 1);
        text += &format!("destination = \"91:e0:f0:00:fe:0{at}\"\nsize_octets = 100\n");
        let listeners = [&[1][..], &[1, 2]][at % 2].iter().map(|to| host(*to));
        let (talker, listeners) = (host(0), listeners.collect::<Vec<_>>().join(", "));
        text += &format!("talker = {talker}\nlisteners = [{listeners}]\ninterval_ns = 1_000_000\n");
    }
    text
}

#[test]
fn frames_go_where_the_plan_says_by_what_the_bridges_are_told() {
    let yanglint = Yanglint::found();
    let (mut channels, mut detours) = (0, 0);
    let rings = (0..4).map(|first| systems::described(&ring(first)));
    let all: Vec<_> = all_systems().into_iter().chain(rings).collect();
    for (system, plan) in all {
        let nodes = (0..).map(NodeId).zip(&system.nodes);
        let told = nodes.map(|(id, _)| {
            let device = Deployment::new(&system, &plan).device(id).expect("it can be configured");
            let Some(filtering) = device.filtering else { return Value::Null };
            let json: Value = serde_json::from_str(&filtering.json).expect("JSON");
            if let Some(yanglint) = &yanglint {
                let [json, xml] = [(&filtering.json, "json"), (&filtering.xml, "xml")]
                    .map(|(text, encoding)| yanglint.edit(text, encoding).expect("valid"));
                assert_eq!(json, xml);
            }
            json
        });
        let told: Vec<Value> = told.collect();
        for (channel, planned) in system.channels.iter().zip(&plan.channels) {
            let address = channel.destination.to_string().replace(':', "-").to_uppercase();
            let reached = flooded(&system, &told, channel.talker, channel.vlan, &address);
            let mut listeners: Vec<u32> = channel.listeners.iter().map(|to| to.0).collect();
            listeners.sort_unstable();
            assert_eq!(reached, listeners, "{}", channel.name);
            channels += 1;
            detours += u32::from(system.name == "ring" && planned.paths[0].len() > 3);
        }
    }
    assert!(channels > 40 && detours > 3, "{channels} {detours}");
}

#[test]
fn what_a_configuration_does_not_say_is_told() {
    let (system, plan) = systems::example("04-tsn-ring");
    let all = configured(&system, &plan, Of::Bridge).expect("bridges");
    let south = all.iter().find(|device| device.name == "south").expect("the bridge");
    for expected in [
        "south.panel: frames of queues 0, 1 are preemptable",
        "south.west: queue 5 has schedulers for streams",
    ] {
        assert!(south.unsaid.iter().any(|line| line == expected), "{:#?}", south.unsaid);
    }
}

#[test]
fn a_priority_belongs_to_the_class_of_its_traffic() {
    let table = |text: &str| {
        let (system, plan) = systems::described(text);
        let device = configured(&system, &plan, Of::Bridge).expect("bridges").swap_remove(1);
        let parsed: Value = serde_json::from_str(&device.interfaces.json).expect("JSON");
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
    // Nothing unplanned is beside asynchronous channels, or goes before them.
    let (classes, unsaid) = table(&systems::with_sporadic());
    assert_eq!(classes, [1, 0, 6, 7, 4, 3, 3, 3]);
    assert!(!unsaid.iter().any(|line| line.contains("schedulers")), "{unsaid:?}");
    let (system, plan) = systems::described(&systems::with_sporadic());
    let told = (0..).map(NodeId).zip(&system.nodes).map(|(id, node)| {
        let unsaid = Deployment::new(&system, &plan).linux(id).unsaid;
        let named = unsaid.iter().filter(|line| line.contains("schedulers")).count();
        (&*node.name, named)
    });
    let bridges: Vec<_> = told.filter(|(_, named)| *named > 0).collect();
    assert_eq!(bridges, [("first", 1), ("second", 1)]);
    // B with another priority; and then one that A has, too, without a reservation.
    let other = systems::SCHEDULED.replace("class = \"B\"", "class = \"B\"\npcp = 4");
    assert_eq!(table(&other).0, [1, 0, 6, 7, 6, 3, 4, 5]);
    let same = "class = \"B\"\npcp = 3\nreserve = false";
    let (classes, unsaid) = table(&systems::SCHEDULED.replace("class = \"B\"", same));
    assert_eq!(classes, [1, 0, 6, 7, 2, 3, 4, 5]);
    assert!(unsaid.contains(&format!("second.{torn}")), "{unsaid:?}");
}
