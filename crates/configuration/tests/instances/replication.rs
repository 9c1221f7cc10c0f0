//! Replicated channels, followed from what their bridges are told alone.

use crate::systems;
use crate::yanglint::{Of, Yanglint};
use onbeat_configuration::{Deployment, Device};
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::system::{Channel, NodeId, NodeKind, PortId, System};
use onbeat_testkit::{Random, root};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;

const IDENTITIES: &str = "ieee802-dot1cb-stream-identification:stream-identity";
const FRER: &str = "ieee802-dot1cb-frer:frer";
/// Random networks of each kind.
const RANDOM: u64 = 60;
/// More frames than any network here has on its links for one message.
const FRAMES_MAX: usize = 1_000;

/// A network: host `a` at the first bridge, `b` at the last; links between bridges by number.
fn network(bridges: &[&str], links: &[[usize; 2]]) -> String {
    let mut text = "format = 1\nname = \"net\"\n[run]\nduration_s = 1\n".to_owned();
    for name in bridges {
        write!(text, "[[bridge]]\nname = \"{name}\"\n").expect("text");
    }
    for (host, bridge) in [("a", bridges[0]), ("b", bridges[bridges.len() - 1])] {
        write!(text, "[[host]]\nname = \"{host}\"\n").expect("text");
        write!(text, "[[link]]\nends = [\"{host}\", \"{bridge}.{host}\"]\nrate_mbps = 1000\n")
            .expect("text");
    }
    let mut seen = BTreeMap::new();
    for link in links {
        // Parallel links have ports of their own.
        let count = seen.entry(*link).and_modify(|count| *count += 1).or_insert(0);
        let more = if *count == 0 { String::new() } else { count.to_string() };
        let [a, b] = link.map(|at| bridges[at]);
        let ends = format!("[\"{a}.{b}{more}\", \"{b}.{a}{more}\"]");
        write!(text, "[[link]]\nends = {ends}\nrate_mbps = 1000\n").expect("text");
    }
    text
}

/// A channel from `a` to `b`, or back.
fn channel(number: usize, ends: [&str; 2], keys: &str) -> String {
    let [talker, listener] = ends;
    format!(
        "[[channel]]\nname = \"c{number}\"\ndestination = \"91:e0:f0:00:fe:{number:02x}\"\n\
         stream_id = {number}\nsize_octets = 64\ninterval_ns = 2_000_000\n\
         talker = \"{talker}\"\nlisteners = [\"{listener}\"]\n{keys}\n"
    )
}

const FORTH: [&str; 2] = ["a", "b"];
const BACK: [&str; 2] = ["b", "a"];

/// A ring of four bridges, with a channel on both ways.
fn ring() -> String {
    network(&["west", "upper", "lower", "east"], &[[0, 1], [1, 3], [0, 2], [2, 3]])
        + &channel(1, FORTH, "class = \"A\"\ndisjoint_paths = 2\nhistory = 16")
}

/// The same with an asynchronous channel before a second replicated one, which goes back.
fn ring_with_asynchronous() -> String {
    ring()
        + &channel(2, FORTH, "class = \"asynchronous\"")
        + &channel(3, BACK, "class = \"B\"\ndisjoint_paths = 2")
}

fn three_paths() -> String {
    let links = [[0, 1], [0, 2], [0, 3], [1, 4], [2, 4], [3, 4]];
    network(&["near", "one", "two", "three", "far"], &links)
        + &channel(1, FORTH, "class = \"A\"\ndisjoint_paths = 3")
}

/// Paths join at `m0`, part again behind `m1`, and join and part at `x`.
fn joined_and_parted() -> String {
    let names = ["near", "u0", "l0", "m0", "m1", "u1", "l1", "x", "u2", "l2", "far"];
    let links = [
        [0, 1],
        [0, 2],
        [1, 3],
        [2, 3],
        [3, 4],
        [4, 5],
        [4, 6],
        [5, 7],
        [6, 7],
        [7, 8],
        [7, 9],
        [8, 10],
        [9, 10],
    ];
    let sides = [["u0", "l0"], ["u1", "l1"], ["u2", "l2"]];
    let mut paths = Vec::new();
    for at in 0..8 {
        let [first, second, third] = [0, 1, 2].map(|stage| sides[stage][at >> stage & 1]);
        paths.push(format!(
            "[\"near\", \"{first}\", \"m0\", \"m1\", \"{second}\", \"x\", \"{third}\", \"far\"]"
        ));
    }
    let keys = format!("class = \"A\"\npaths = [{}]", paths.join(", "));
    network(&names, &links) + &channel(1, FORTH, &keys)
}

/// Stages of one to three ways each, all ways through them.
fn chain(random: &mut Random) -> String {
    let (mut names, mut links) = (vec!["s0".to_owned()], Vec::new());
    let mut paths = vec![vec![0]];
    let mut last = 0;
    for stage in 1..=random.between(1, 4) {
        let ways = random.between(1, 3) as usize;
        let inner: Vec<usize> = (0..ways).map(|way| names.len() + way).collect();
        names.extend((0..ways).map(|way| format!("w{stage}{way}")));
        let next = names.len();
        names.push(format!("s{stage}"));
        links.extend(inner.iter().flat_map(|way| [[last, *way], [*way, next]]));
        let through = |path: &Vec<usize>| {
            let path = path.clone();
            inner.iter().map(move |way| [&path[..], &[*way, next]].concat()).collect::<Vec<_>>()
        };
        let longer: Vec<_> = paths.iter().flat_map(through).collect();
        if longer.len() <= 64 {
            paths = longer;
        } else {
            paths.iter_mut().for_each(|path| path.extend([inner[0], next]));
        }
        last = next;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let path = |path: &Vec<usize>| {
        let names: Vec<String> = path.iter().map(|at| format!("\"{}\"", names[*at])).collect();
        format!("[{}]", names.join(", "))
    };
    let paths: Vec<String> = paths.iter().map(path).collect();
    let keys = format!("class = \"A\"\npaths = [{}]", paths.join(", "));
    let history = random.between(2, 32_768);
    let history = if paths.len() > 1 { format!("\nhistory = {history}") } else { String::new() };
    network(&names, &links)
        + &channel(1, FORTH, &(keys + &history))
        + &channel(2, FORTH, "class = \"asynchronous\"")
}

/// Bridges in one piece with more links, and channels of all kinds in both directions.
fn mesh(random: &mut Random) -> String {
    let bridges = random.between(3, 8) as usize;
    let names: Vec<String> = (0..bridges).map(|at| format!("n{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut links: Vec<[usize; 2]> = (1..bridges).map(|at| [random.index(at), at]).collect();
    for _ in 0..random.between(3, 14) {
        let other = 1 + random.index(bridges - 1);
        links.push([random.index(other), other]);
    }
    let mut text = network(&names, &links);
    for number in 1..=random.between(1, 5) {
        let ends = random.one_of(&[FORTH, BACK]);
        let keys = random.one_of(&[
            "class = \"A\"\ndisjoint_paths = 2",
            "class = \"B\"\ndisjoint_paths = 2\nvlan = 9",
            "class = \"A\"\ndisjoint_paths = 3",
            "class = \"A\"",
            "class = \"asynchronous\"",
        ]);
        text += &channel(number as usize, ends, keys);
    }
    text
}

/// Systems that are planned, of each kind.
fn all() -> Vec<(System, Plan)> {
    let named = [ring(), ring_with_asynchronous(), three_paths(), joined_and_parted()];
    let random =
        |make: fn(&mut Random) -> String| (0..RANDOM).map(move |seed| make(&mut Random(seed)));
    let texts = named.into_iter().chain(random(chain)).chain(random(mesh));
    let planned = texts.filter_map(|text| {
        let none = &mut |path: &str| Err(format!("{path} is not there"));
        match systems::attempted(&text, none) {
            Ok(planned) => Some(planned),
            // Not everywhere are so many paths, nor does every path do.
            Err(errors) => {
                assert!(
                    errors.iter().all(|it| it.code.as_str() == "OB2019"),
                    "{errors:#?}\n{text}"
                );
                None
            }
        }
    });
    planned.collect()
}

fn devices(system: &System, plan: &Plan) -> Vec<Device> {
    let deployment = Deployment::new(system, plan);
    let nodes = (0..).map(NodeId).zip(&system.nodes);
    nodes.map(|(id, _)| deployment.device(id).expect("a configuration")).collect()
}

fn parsed(instance: Option<&onbeat_configuration::Instance>) -> Value {
    instance.map_or(Value::Null, |it| serde_json::from_str(&it.json).expect("JSON"))
}

/// The entries of a list, none where it is missing.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has(entries: &Value, one: &Value) -> bool {
    list(entries).contains(one)
}

fn address(channel: &Channel) -> String {
    channel.destination.to_string().replace(':', "-").to_uppercase()
}

/// The handle that a bridge gives a channel's frames by the port that they come in; none if it does
/// not know them.
fn handle<'a>(told: &'a Value, channel: &Channel, port: &str) -> Option<&'a Value> {
    let mut identities = list(&told[IDENTITIES]).iter().filter(|it| {
        let known = &it["null-stream-identification"];
        known["destination-mac"] == *address(channel)
            && known["vlan"] == channel.vlan
            && known["tagged"] == "tagged"
            && has(&it["out-facing"]["input-port"], &json!(port))
    });
    let found = identities.next().map(|it| &it["handle"]);
    assert!(identities.next().is_none(), "{told}");
    found
}

/// The Sequence recovery functions for a handle at a port, for frames from the forwarding.
fn recoveries<'a>(told: &'a Value, handle: &Value, port: &str) -> Vec<&'a Value> {
    let all = list(&told[FRER]["sequence-recovery"]).iter();
    let fits = |it: &&Value| {
        it["direction-out-facing"] == false
            && has(&it["stream"], handle)
            && has(&it["port"], &json!(port))
    };
    all.filter(fits).collect()
}

/// Whether a port's Sequence encode/decode function for a handle is active, if it has one.
fn encodes(told: &Value, handle: &Value, port: &str) -> Option<bool> {
    let mut all = list(&told[FRER]["sequence-identification"]).iter();
    let found = all.find(|it| {
        it["port"] == port
            && it["direction-out-facing"] == true
            && has(&it["stream"], handle)
            && it["encapsulation"] == json!({ "r-tag": {} })
    });
    found.map(|it| it["active"].as_bool().expect("a flag"))
}

/// What bridges are told, by node.
struct Told {
    streams: Vec<Value>,
    filtering: Vec<Value>,
}

impl Told {
    fn of(devices: &[Device]) -> Self {
        Self {
            streams: devices.iter().map(|one| parsed(one.streams.as_ref())).collect(),
            filtering: devices.iter().map(|one| parsed(one.filtering.as_ref())).collect(),
        }
    }

    /// The ports at which a bridge forwards a channel's frames.
    fn forwards(&self, system: &System, node: NodeId, channel: &Channel) -> Vec<PortId> {
        let bridge = &self.filtering[node.index()]["ieee802-dot1q-bridge:bridges"]["bridge"][0];
        let entries = list(&bridge["component"][0]["filtering-database"]["filtering-entry"]);
        let fits = |it: &&Value| {
            it["address"] == *address(channel) && it["vids"] == *channel.vlan.to_string()
        };
        let entry = entries.iter().find(fits).expect("an entry");
        let ports = system.node(node).ports.iter().zip(list(&entry["port-map"]));
        let forward = |(_, it): &(&PortId, &Value)| {
            it["static-filtering-entries"]["control-element"] == "forward"
        };
        ports.filter(forward).map(|(port, _)| *port).collect()
    }

    /// How many frames of one message get to the listener while links are down, all with an R-TAG.
    fn copies(&self, system: &System, channel: &Channel, down: &[PortId]) -> usize {
        let name = |port: PortId| &*system.port(port).name;
        let (mut ahead, mut reached) = (vec![system.node(channel.talker).ports[0]], 0);
        // Of each Sequence recovery function, whether it has had the message.
        let mut accepted = HashSet::new();
        let mut frames = 0;
        while let Some(leaves) = ahead.pop() {
            frames += 1;
            assert!(frames < FRAMES_MAX, "frames never end");
            let enters = system.port(leaves).peer;
            if down.contains(&leaves) || down.contains(&enters) {
                continue;
            }
            let node = system.port(enters).node;
            if let NodeKind::Host(_) = system.node(node).kind {
                assert_eq!([node], channel.listeners[..], "another host");
                reached += 1;
                continue;
            }
            let told = &self.streams[node.index()];
            let handle = handle(told, channel, name(enters));
            let is_decoded = handle.is_some_and(|it| encodes(told, it, name(enters)).is_some());
            for port in self.forwards(system, node, channel) {
                if port == enters {
                    continue;
                }
                let functions = handle.map(|it| recoveries(told, it, name(port)));
                let is_new = functions.into_iter().flatten().all(|function| {
                    // Without its number no frame passes (take-no-sequence).
                    assert_eq!(function["take-no-sequence"], false);
                    is_decoded && accepted.insert((node, port, function["index"].as_u64()))
                });
                let is_encoded = handle.and_then(|it| encodes(told, it, name(port)));
                assert_eq!(is_decoded, is_encoded == Some(true), "the R-TAG is lost");
                ahead.extend(is_new.then_some(port));
            }
        }
        reached
    }
}

/// By egress port the ports by which a channel's frames come to its bridge, of the plan.
fn joins(system: &System, planned: &ChannelPlan) -> BTreeMap<PortId, BTreeSet<PortId>> {
    let mut before: BTreeMap<PortId, BTreeSet<PortId>> = BTreeMap::new();
    for path in &planned.paths {
        for at in 1..path.len() {
            before.entry(path[at]).or_default().insert(system.port(path[at - 1]).peer);
        }
    }
    before
}

#[test]
fn one_copy_of_each_message_arrives_whichever_path_is_gone_by_what_bridges_are_told() {
    let (mut messages, mut without, mut most) = (0, 0, 0);
    for (system, plan) in all() {
        let told = Told::of(&devices(&system, &plan));
        for (channel, planned) in system.channels.iter().zip(&plan.channels) {
            if !channel.paths.is_replicated() {
                continue;
            }
            assert_eq!(told.copies(&system, channel, &[]), 1, "{}", channel.name);
            messages += 1;
            most = most.max(planned.paths.len());
            let ports = planned.tree_ports();
            let shared = |port: &&PortId| planned.paths.iter().all(|path| path.contains(port));
            for port in ports.iter().filter(|port| !shared(port)) {
                assert_eq!(told.copies(&system, channel, &[*port]), 1, "{}", channel.name);
                without += 1;
            }
        }
    }
    assert!(messages > 80 && without > 500 && most > 20, "{messages} {without} {most}");
    // The model of a network sees what is missing.
    let (system, plan) = systems::described(&ring());
    let mut told = Told::of(&devices(&system, &plan));
    for streams in told.streams.iter_mut().filter(|streams| !streams.is_null()) {
        streams[FRER]["sequence-recovery"] = Value::Null;
    }
    assert_eq!(told.copies(&system, &system.channels[0], &[]), 2);
}

#[test]
fn each_place_where_paths_join_has_one_recovery_and_no_other_place_has_one() {
    let (mut places, mut others) = (0, 0);
    for (system, plan) in all() {
        let told = Told::of(&devices(&system, &plan));
        let mut expected = vec![0; system.nodes.len()];
        for (channel, planned) in system.channels.iter().zip(&plan.channels) {
            for (port, enters) in joins(&system, planned) {
                let node = system.port(port).node;
                let told = &told.streams[node.index()];
                let name = |port: &PortId| &*system.port(*port).name;
                let handles = enters.iter().map(|port| handle(told, channel, name(port)));
                let handles: Vec<_> = handles.collect();
                if !channel.paths.is_replicated() {
                    // It may be known for its scheduler, but has no number.
                    let mut known = handles.into_iter().flatten();
                    assert!(known.all(|it| encodes(told, it, name(&port)).is_none()));
                    continue;
                }
                let handles: Option<Vec<&Value>> = handles.into_iter().collect();
                let handle = handles.expect("known wherever it comes in")[0];
                let found = recoveries(told, handle, name(&port));
                assert_eq!(found.len(), usize::from(enters.len() > 1), "{}", channel.name);
                for recovery in &found {
                    assert_eq!(recovery["history-length"], channel.paths.history);
                    assert_eq!(recovery["stream"], json!([handle]));
                    assert_eq!(recovery["port"], json!([name(&port)]));
                }
                for port in &enters {
                    assert!(encodes(told, handle, name(port)).is_some());
                }
                assert_eq!(encodes(told, handle, name(&port)), Some(true));
                expected[node.index()] += found.len();
                places += found.len();
                others += usize::from(found.is_empty());
            }
        }
        for (told, expected) in told.streams.iter().zip(expected) {
            assert_eq!(list(&told[FRER]["sequence-recovery"]).len(), expected);
            let mut numbers = HashSet::new();
            for identity in list(&told[IDENTITIES]) {
                assert_eq!(identity["index"], identity["handle"]);
                assert!(numbers.insert(identity["index"].as_u64()), "{told}");
            }
        }
    }
    assert!(places > 150 && others > 500, "{places} {others}");
}

/// The interfaces of a bridge with its identities and functions, as one configuration: references
/// to ports and handles are checked. The rest is in edits, which lack what every bridge has.
fn whole(device: &Device) -> Option<Value> {
    let mut streams = parsed(device.streams.as_ref());
    let mut whole: Value = serde_json::from_str(&device.interfaces.json).expect("JSON");
    for name in [IDENTITIES, FRER] {
        whole[name] = streams.get_mut(name)?.take();
    }
    Some(whole)
}

#[test]
fn what_is_written_of_replicated_channels_is_valid_by_the_published_modules() {
    let Some(yanglint) = Yanglint::found() else { return };
    let mut texts = Vec::new();
    for (number, (system, plan)) in all().iter().enumerate() {
        for device in devices(system, plan) {
            let name = format!("{number}-{}.json", device.name);
            texts.extend(whole(&device).map(|whole| (name, whole.to_string())));
        }
    }
    assert!(texts.len() > 300, "{}", texts.len());
    let given: Vec<_> = texts.iter().map(|(name, text)| (name.clone(), &**text)).collect();
    yanglint.all(Of::Bridge, &given).unwrap_or_else(|why| panic!("{why}"));
    for text in [ring(), ring_with_asynchronous(), three_paths(), joined_and_parted()] {
        let (system, plan) = systems::described(&text);
        for streams in devices(&system, &plan).into_iter().filter_map(|one| one.streams) {
            let start = "<config xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">";
            let xml = streams.xml.strip_prefix(start).expect("config");
            let xml = xml.strip_suffix("</config>\n").expect("its end");
            let json = yanglint.edit(&streams.json, "json").expect("valid");
            assert_eq!(json, yanglint.edit(xml, "xml").expect("valid"));
        }
    }
    let (system, plan) = systems::described(&ring());
    let all = devices(&system, &plan);
    let east = all.iter().find(|one| one.name == "east").expect("the bridge");
    let right = whole(east).expect("it has some");
    yanglint.json(Of::Bridge, &right.to_string()).expect("as it is, it is valid");
    let change = |name: &str, value: Value| {
        let mut wrong = right.clone();
        wrong[FRER]["sequence-recovery"][0][name] = value;
        yanglint.json(Of::Bridge, &wrong.to_string()).expect_err(name)
    };
    change("stream", json!([2]));
    change("port", json!(["elsewhere"]));
    change("history-length", json!(1));
    change("reset-timeout", json!("1 s"));
    change("algorithm", json!({ "vector": {}, "match": {} }));
}

/// The Sequence encode/decode function of a port for one handle.
fn coder(port: &str, active: bool) -> Value {
    json!({
        "port": port, "direction-out-facing": true, "stream": [1], "active": active,
        "encapsulation": { "r-tag": {} },
    })
}

fn identity(ports: &[&str]) -> Value {
    json!({
        "index": 1, "handle": 1, "out-facing": { "input-port": ports },
        "null-stream-identification": {
            "destination-mac": "91-E0-F0-00-FE-01", "tagged": "tagged", "vlan": 2,
        },
    })
}

#[test]
fn in_a_ring_only_the_last_bridge_eliminates() {
    let (system, plan) = systems::described(&ring());
    let devices = devices(&system, &plan);
    let told = |name: &str| {
        let device = devices.iter().find(|device| device.name == name).expect("the node");
        parsed(device.streams.as_ref())
    };
    let passing = |ports: [&str; 2]| {
        let coders = [coder(ports[0], false), coder(ports[1], true)];
        json!({
            IDENTITIES: [identity(&ports[..1])], FRER: { "sequence-identification": coders },
        })
    };
    assert_eq!(told("upper"), passing(["west", "east"]));
    assert_eq!(told("lower"), passing(["west", "east"]));
    let coders = [coder("a", false), coder("upper", true), coder("lower", true)];
    let west = json!({
        IDENTITIES: [identity(&["a"])], FRER: { "sequence-identification": coders },
    });
    assert_eq!(told("west"), west);
    let coders = [coder("b", true), coder("upper", false), coder("lower", false)];
    let recovery = json!({
        "index": 1, "stream": [1], "port": ["b"], "direction-out-facing": false,
        "algorithm": { "vector": {} }, "history-length": 16, "reset-timeout": 1000,
        "take-no-sequence": false, "individual-recovery": false, "latent-error-detection": false,
    });
    let east = json!({
        IDENTITIES: [identity(&["upper", "lower"])],
        FRER: { "sequence-recovery": [recovery], "sequence-identification": coders },
    });
    assert_eq!(told("east"), east);
    assert_eq!([told("a"), told("b")], [Value::Null, Value::Null]);
    // Where paths part the filtering database sends to both.
    let west = system.nodes.iter().position(|node| node.name == "west").expect("the bridge");
    let leaves = Told::of(&devices).forwards(&system, NodeId(west as u32), &system.channels[0]);
    let leaves: Vec<_> = leaves.iter().map(|port| &*system.port(*port).name).collect();
    assert_eq!(leaves, ["upper", "lower"]);
}

#[test]
fn the_example_of_the_page_is_what_is_written() {
    let page = std::fs::read_to_string(root().join("docs/replication.md")).expect("the page");
    let (_, example) = page.split_once("```json\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let example: Value = serde_json::from_str(&format!("{{{example}}}")).expect("JSON");
    let (system, plan) = systems::described(&ring().replace("history = 16", ""));
    let devices = devices(&system, &plan);
    let east = devices.iter().find(|device| device.name == "east").expect("the bridge");
    assert_eq!(parsed(east.streams.as_ref())[FRER], example[FRER]);
}

#[test]
fn asynchronous_and_replicated_channels_share_one_list_of_identities() {
    let (system, plan) = systems::described(&ring_with_asynchronous());
    for device in devices(&system, &plan).iter().filter(|one| one.name == "east") {
        let told = parsed(device.streams.as_ref());
        let of = |identity: &Value| {
            let known = &identity["null-stream-identification"];
            (known["destination-mac"].clone(), identity["handle"].as_u64().expect("a handle"))
        };
        let known: Vec<_> = list(&told[IDENTITIES]).iter().map(of).collect();
        let expected = [("02", 1), ("01", 2), ("03", 3)]
            .map(|(end, handle)| (json!(format!("91-E0-F0-00-FE-{end}")), handle));
        assert_eq!(known, expected);
        let component = &told["ieee802-dot1q-bridge:bridges"]["bridge"][0]["component"][0];
        let filters = &component["ieee802-dot1q-ats-bridge:stream-filters"];
        let filters = list(&filters["stream-filter-instance-table"]);
        assert_eq!(filters.len(), 1);
        assert_eq!(filters[0]["stream-handle"], 1);
        // One replicated channel comes in where the other one leaves.
        let mut coders = list(&told[FRER]["sequence-identification"]).to_vec();
        coders.iter_mut().for_each(|it| it["stream"] = json!([1]));
        assert_eq!(coders, [coder("b", true), coder("upper", true), coder("lower", true)]);
        let recoveries = list(&told[FRER]["sequence-recovery"]).iter();
        let streams: Vec<_> = recoveries.map(|it| (&it["port"], &it["stream"])).collect();
        assert_eq!(streams, [(&json!(["b"]), &json!([2]))]);
    }
}

#[test]
fn a_bridge_that_does_not_eliminate_and_streams_without_destination_are_told_nothing() {
    let plain = "name = \"upper\"\ndevice = \"plain\"\n";
    let text = ring().replace("name = \"upper\"\n", plain)
        + "[[device]]\nname = \"plain\"\nelimination = false\n";
    let (system, plan) = systems::described(&text);
    let bare = devices(&system, &plan).into_iter().filter(|one| one.streams.is_none());
    let bare: Vec<String> = bare.map(|one| one.name).collect();
    // The hosts, whose library numbers frames and recognises duplicates, and that bridge.
    assert_eq!(bare, ["a", "b", "upper"]);
    let told = Told::of(&devices(&system, &plan));
    assert_eq!(told.copies(&system, &system.channels[0], &[]), 1);
    // Streams.
    let (system, plan) = systems::example("04-tsn-ring");
    let replicated = system.streams.iter().filter(|stream| stream.paths.is_replicated());
    let replicated: Vec<&str> = replicated.map(|stream| &*stream.name).collect();
    assert_eq!(replicated, ["set-points"]);
    let line =
        "stream `set-points` is replicated, which bridges are not told: it has no destination";
    for device in devices(&system, &plan) {
        let said = device.unsaid.iter().filter(|said| *said == line).count();
        let is_bridge = ["north", "east", "south", "west"].contains(&&*device.name);
        assert_eq!(said, usize::from(is_bridge), "{}: {:?}", device.name, device.unsaid);
        assert!(!device.streams.is_some_and(|it| it.json.contains("frer")), "{}", device.name);
    }
}

#[test]
fn what_the_bridge_of_linux_does_not_do_for_replicated_channels_is_said() {
    let told = |text: &str| {
        let (system, plan) = systems::described(text);
        let nodes = (0..).map(NodeId).zip(&system.nodes);
        let told =
            nodes.map(|(id, node)| (node.name.clone(), Deployment::new(&system, &plan).linux(id)));
        told.collect::<BTreeMap<_, _>>()
    };
    let group = told(&ring());
    let eliminates = "eliminates no duplicates of channel `c1`";
    for (name, told) in &group {
        let said = told.unsaid.iter().filter(|line| line.contains(eliminates)).count();
        assert_eq!(said, usize::from(name == "east"), "{:?}", told.unsaid);
    }
    let lines = |told: &BTreeMap<String, onbeat_configuration::Linux>, word: &str| {
        let [_, bridge, _] = &told["west"].files;
        let lines = bridge.as_ref().expect("lines of a bridge").lines();
        lines.filter(|line| line.starts_with(word)).map(str::to_owned).collect::<Vec<_>>()
    };
    let entry = |port| format!("mdb add dev br0 port {port} grp 91:e0:f0:00:fe:01 permanent vid 2");
    assert_eq!(lines(&group, "mdb"), ["upper", "lower"].map(entry));
    let station = "02:00:00:00:00:0b";
    let text = ring()
        .replace("name = \"b\"\n", &format!("name = \"b\"\nmac = \"{station}\"\n"))
        .replace("91:e0:f0:00:fe:01", station);
    let one = told(&text);
    let expected = format!("fdb replace {station} dev upper master static vlan 2");
    assert_eq!(lines(&one, "fdb"), [expected]);
    let line = format!(
        "west: frames to {station} in VLAN 2 leave by `upper` only: a static entry has one port"
    );
    assert!(one["west"].unsaid.contains(&line), "{:?}", one["west"].unsaid);
}
