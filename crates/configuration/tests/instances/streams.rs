//! Asynchronous channels, followed from what their bridges are told alone.

use crate::systems;
use crate::yanglint::Yanglint;
use onbeat_configuration::Deployment;
use onbeat_model::plan::{AtsScheduler, ChannelPlan};
use onbeat_model::system::{Channel, NodeId, System};
use serde_json::Value;
use std::collections::HashMap;

/// The entries of a list that fit.
fn only(list: &Value, fits: impl Fn(&&Value) -> bool) -> &Value {
    let found: Vec<_> = list.as_array().expect("a list").iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{list}");
    found[0]
}

/// Rate, burst in bits, group and residence time of a channel's frames that come in by a port.
fn followed(told: &Value, channel: &Channel, input: &str) -> (u64, u64, u64, u64) {
    let identities = &told["ieee802-dot1cb-stream-identification:stream-identity"];
    let address = channel.destination.to_string().replace(':', "-").to_uppercase();
    let identity = only(identities, |it| {
        let known = &it["null-stream-identification"];
        known["destination-mac"] == *address
            && known["vlan"] == channel.vlan
            && known["tagged"] == "tagged"
            && it["out-facing"]["input-port"] == serde_json::json!([input])
    });
    let component = &told["ieee802-dot1q-bridge:bridges"]["bridge"][0]["component"][0];
    let of = |name: &str| &component[format!("ieee802-dot1q-ats-bridge:{name}")];
    let filters = &of("stream-filters")["stream-filter-instance-table"];
    let filter = only(filters, |it| it["stream-handle"] == identity["handle"]);
    assert!(filter["priority-spec"] == "wildcard" && filter["max-sdu-size"] == 0);
    let gates = &of("stream-gates")["stream-gate-instance-table"];
    let gate = only(gates, |it| it["stream-gate-instance-id"] == filter["stream-gate-ref"]);
    assert_eq!([&gate["admin-gate-states"], &gate["admin-ipv"]], ["open", "null"]);
    assert_eq!(filter["scheduler"]["scheduler-enable"], true);
    let scheduler = only(&filter["schedulers"]["scheduler-instance-table"], |it| {
        it["scheduler-instance-id"] == filter["scheduler"]["scheduler-ref"]
    });
    let group = only(&filter["scheduler-groups"]["scheduler-group-instance-table"], |it| {
        it["scheduler-group-instance-id"] == scheduler["scheduler-group-ref"]
    });
    let number = |value: &Value| value.as_u64().expect("a number");
    let rate = scheduler["committed-information-rate"].as_str().expect("64 bits are text");
    (
        rate.parse().expect("a rate"),
        number(&scheduler["committed-burst-size"]),
        number(&scheduler["scheduler-group-ref"]),
        number(&group["max-residence-time"]),
    )
}

/// Systems with asynchronous channels: of one talker and of two, to one listener and to two.
fn all() -> Vec<String> {
    let more = |name: &str, number: usize, listeners: &str| {
        format!(
            "\n[[channel]]\nname = \"{name}\"\ndestination = \"91:e0:f0:00:fd:0{number}\"\n\
             stream_id = 2{number}\nclass = \"asynchronous\"\nsize_octets = {number}00\n\
             interval_ns = {number}_000_000\ntalker = \"t{}\"\nlisteners = [{listeners}]\n",
            number % 2,
        )
    };
    let mut star = "format = 1\nname = \"star\"\n[run]\nduration_s = 1\n\
                    [[bridge]]\nname = \"b0\"\n[[bridge]]\nname = \"b1\"\n\
                    [[link]]\nends = [\"b0.b1\", \"b1.b0\"]\nrate_mbps = 100\n"
        .to_owned();
    for (host, bridge) in [("t0", 0), ("t1", 0), ("l0", 1), ("l1", 1)] {
        star += &format!("[[host]]\nname = \"{host}\"\n");
        star += &format!("[[link]]\nends = [\"{host}\", \"b{bridge}.{host}\"]\nrate_mbps = 100\n");
    }
    for number in 1..6 {
        star += &more(&format!("one{number}"), number, ["\"l0\"", "\"l1\""][number / 4]);
    }
    let several = star.clone() + &more("both", 6, "\"l0\", \"l1\"");
    vec![systems::with_sporadic(), star, several]
}

#[test]
fn each_asynchronous_channel_has_the_scheduler_of_the_plan_by_what_its_bridges_are_told() {
    let yanglint = Yanglint::found();
    let (mut followed_ones, mut unsaid, mut shared) = (0, 0, 0);
    for (system, plan) in all().iter().map(|text| systems::described(text)) {
        for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
            let device = Deployment::new(&system, &plan).device(id).expect("a configuration");
            let own = |it: &&AtsScheduler| system.port(it.port).node == id;
            let channels = system.channels.iter().zip(&plan.channels);
            let planned = channels.map(|(channel, planned)| {
                let own: Vec<_> = planned.schedulers.iter().filter(own).copied().collect();
                (channel, planned.bound().expect("a bound").as_ns(), own)
            });
            let planned: Vec<_> = planned.filter(|(.., own)| !own.is_empty()).collect();
            let Some(streams) = device.streams else {
                assert!(planned.is_empty(), "{}", node.name);
                continue;
            };
            let told: Value = serde_json::from_str(&streams.json).expect("JSON");
            if let Some(yanglint) = &yanglint {
                let start = "<config xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">";
                let xml = streams.xml.strip_prefix(start).expect("config");
                let xml = xml.strip_suffix("</config>\n").expect("its end");
                let json = yanglint.edit(&streams.json, "json").expect("valid");
                assert_eq!(json, yanglint.edit(xml, "xml").expect("valid"));
                let wrong = streams.json.replace("wildcard", "none");
                yanglint.edit(&wrong, "json").expect_err("no such priority");
            }
            let mut groups = HashMap::new();
            for (channel, bound, own) in planned {
                let name = &channel.name;
                let is_unsaid = |line: &String| line.contains(&format!("channel `{name}` has no"));
                assert_eq!(device.unsaid.iter().any(is_unsaid), own.len() > 1, "{name}");
                for one in &own {
                    let label = system.port_label(one.port) + ": queue 4 has schedulers";
                    let says = device.unsaid.iter().any(|line| line.starts_with(&label));
                    assert_eq!(says, torn(&system, &plan.channels, one), "{label}");
                }
                let [planned] = own[..] else {
                    unsaid += 1;
                    continue;
                };
                let input = &system.port(planned.group).name;
                let (rate, burst, group, residence) = followed(&told, channel, input);
                assert_eq!(rate, planned.bucket.rate.as_bps(), "{name}");
                assert_eq!(burst, u64::from(planned.bucket.burst.get()) * 8, "{name}");
                assert!(i128::from(residence) >= 2 * i128::from(bound), "{name}: {residence}");
                // Groups by number are the groups of the plan, each with one residence time.
                let of_plan = ((planned.group, planned.port), residence);
                shared += u32::from(groups.contains_key(&group));
                assert_eq!(*groups.entry(group).or_insert(of_plan), of_plan, "{name}");
                followed_ones += 1;
            }
            let mut of_plan: Vec<_> = groups.values().map(|(group, _)| *group).collect();
            of_plan.sort_unstable();
            of_plan.dedup();
            assert_eq!(of_plan.len(), groups.len(), "a group of the plan has one number");
        }
    }
    assert!(followed_ones > 20 && unsaid == 1 && shared > 5, "{followed_ones} {unsaid} {shared}");
}

/// Whether a channel that leaves by this port leaves its bridge by others, too.
fn torn(system: &System, all: &[ChannelPlan], one: &AtsScheduler) -> bool {
    let node = system.port(one.port).node;
    all.iter().filter(|it| it.scheduler(one.port).is_some()).any(|it| {
        it.schedulers.iter().filter(|other| system.port(other.port).node == node).count() > 1
    })
}
