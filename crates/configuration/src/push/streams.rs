//! Streams of bridges in edits: what plans write, and what an earlier one or others left.

use super::edit::{difference, edit, is_same};
use super::keys::merged;
use super::tests::{apply, trees};
use super::tree::Tree;
use super::{PushDocument, PushTarget};
use crate::Deployment;
use crate::module::Module;
use onbeat_model::system::{NodeId, NodeKind};
use onbeat_testkit::Random;
use std::collections::BTreeSet;

/// One channel of a plan that crosses a bridge.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    address: u8,
    vlan: u16,
    has_scheduler: bool,
    /// From a few ports to one.
    from: u8,
    to: u8,
}

fn identity(number: u32, handle: u32, vlan: u16, address: u8, ports: &[u8]) -> String {
    let namespace = Module::StreamIdentification.namespace();
    let ports = ports.iter().map(|port| format!("<input-port>p{port}</input-port>"));
    format!(
        "<stream-identity xmlns='{namespace}'><index>{number}</index><handle>{handle}</handle>\
         <out-facing>{}</out-facing><null-stream-identification>\
         <destination-mac>91-E0-F0-00-FE-{address:02X}</destination-mac><tagged>tagged</tagged>\
         <vlan>{vlan}</vlan></null-stream-identification></stream-identity>",
        ports.collect::<String>()
    )
}

fn streams(handles: &[u32]) -> String {
    handles.iter().map(|handle| format!("<stream>{handle}</stream>")).collect()
}

fn recovery(index: u32, handles: &[u32], port: u8) -> String {
    format!(
        "<sequence-recovery><index>{index}</index>{}<port>p{port}</port>\
         <direction-out-facing>false</direction-out-facing><algorithm><vector/></algorithm>\
         </sequence-recovery>",
        streams(handles)
    )
}

fn identification(port: u8, handles: &[u32]) -> String {
    format!(
        "<sequence-identification><port>p{port}</port><direction-out-facing>true\
         </direction-out-facing>{}<encapsulation><r-tag/></encapsulation>\
         </sequence-identification>",
        streams(handles)
    )
}

fn frer(tables: &str) -> String {
    format!("<frer xmlns='{}'>{tables}</frer>", Module::Replication.namespace())
}

fn filter(number: u32, handle: &str, rate: u32) -> String {
    format!(
        "<stream-filter-instance-table><stream-filter-instance-id>{number}\
         </stream-filter-instance-id>{handle}<stream-gate-ref>1</stream-gate-ref><schedulers>\
         <scheduler-instance-table><scheduler-instance-id>{number}</scheduler-instance-id>\
         <committed-information-rate>{rate}</committed-information-rate>\
         </scheduler-instance-table></schedulers></stream-filter-instance-table>"
    )
}

fn gate(number: u32) -> String {
    format!(
        "<stream-gate-instance-table><stream-gate-instance-id>{number}</stream-gate-instance-id>\
         <admin-gate-states>open</admin-gate-states></stream-gate-instance-table>"
    )
}

fn component(gates: &str, filters: &str) -> String {
    let namespace = Module::BridgeSchedulers.namespace();
    format!(
        "<bridges xmlns='{}'><bridge><name>s</name><component><name>s</name>\
         <stream-gates xmlns='{namespace}'>{gates}</stream-gates>\
         <stream-filters xmlns='{namespace}'>{filters}</stream-filters>\
         </component></bridge></bridges>",
        Module::Bridge.namespace()
    )
}

/// What a plan of these channels tells, as `streams` of the crate does it.
fn told(crossings: &[Crossing]) -> String {
    let mut sorted = crossings.to_vec();
    sorted.sort_by_key(|one| !one.has_scheduler);
    let (mut identities, mut filters, mut recoveries) =
        (String::new(), String::new(), String::new());
    let mut ports: BTreeSet<u8> = BTreeSet::new();
    for (number, one) in (1..).zip(&sorted) {
        let from = [one.from, one.from + 1];
        let from = if one.has_scheduler { &from[..1] } else { &from[..] };
        identities += &identity(number, number, one.vlan, one.address, from);
        if one.has_scheduler {
            let handle = format!("<stream-handle>{number}</stream-handle>");
            filters += &filter(number, &handle, 1_000 * u32::from(one.address));
        } else {
            recoveries += &recovery(number, &[number], one.to);
            ports.extend(from);
        }
    }
    let of = |port: u8| {
        let here = (1..).zip(&sorted).filter(|(_, one)| !one.has_scheduler);
        here.filter(|(_, one)| one.from == port || one.from + 1 == port).map(|(n, _)| n).collect()
    };
    let identifications = ports.iter().map(|port| {
        let handles: Vec<u32> = of(*port);
        identification(*port, &handles)
    });
    let identifications: String = identifications.collect();
    let schedulers = match filters.is_empty() {
        true => String::new(),
        false => component(&gate(1), &filters),
    };
    let replicated = recoveries + &identifications;
    let frer = if replicated.is_empty() { String::new() } else { frer(&replicated) };
    schedulers + &identities + &frer
}

/// Up to four channels of eight.
fn random(random: &mut Random) -> Vec<Crossing> {
    let addresses = (1..=8).filter(|_| random.percent(30)).collect::<Vec<u8>>();
    let one = |address| Crossing {
        address,
        vlan: 2 + random.below(2) as u16,
        has_scheduler: random.percent(50),
        from: random.below(4) as u8,
        to: 7 + random.below(2) as u8,
    };
    addresses.into_iter().take(4).map(one).collect()
}

/// What others have set, in a VLAN and with numbers of their own.
fn foreign() -> [String; 3] {
    [
        component(&gate(9), &filter(9, "<wildcard/>", 1)),
        identity(77, 77, 9, 1, &[1]),
        frer(&(recovery(77, &[77], 1) + &identification(9, &[77]))),
    ]
}

fn all(texts: &[&str]) -> Vec<Tree> {
    merged(trees(&texts.concat()))
}

/// Applies an edit, and says what was removed.
fn edited(told: &[Tree], running: &[Tree], former: &[Tree]) -> (Vec<Tree>, Vec<String>) {
    let edit = edit(told, running, former);
    let after = apply(&edit.config, running);
    assert_eq!(difference(told, &after, former), None);
    (after, edit.removed)
}

/// Without containers that have nothing.
fn pruned(nodes: &[Tree]) -> Vec<Tree> {
    let containers = ["frer", "stream-gates", "stream-filters"];
    let own = nodes.iter().map(|node| Tree { nodes: pruned(&node.nodes), ..node.clone() });
    own.filter(|node| !containers.contains(&&*node.name) || !node.nodes.is_empty()).collect()
}

#[test]
fn after_any_two_plans_a_bridge_has_the_streams_of_the_second_one_and_those_of_others() {
    let mut removals = 0;
    for seed in 0..400 {
        let drawn = &mut Random(seed);
        let plans = [random(drawn), random(drawn)];
        let [first, second] = plans.clone().map(|plan| told(&plan));
        let others = foreign();
        let others = [&*others[0], &others[1], &others[2]].concat();
        let of_others = all(&[&others]);
        let (has_first, none) = edited(&all(&[&first]), &of_others, &[]);
        assert!(none.is_empty(), "{seed}: {none:?}");
        let (told, former) = (all(&[&second]), all(&[&first]));
        let (after, removed) = edited(&told, &has_first, &former);
        let expected = pruned(&all(&[&second, &others]));
        assert!(is_same(&pruned(&after), &expected), "{seed} {plans:?}: {removed:?}");
        // The same once more changes nothing.
        let (again, none) = edited(&told, &after, &former);
        assert!(none.is_empty() && is_same(&again, &after), "{seed}: {none:?}");
        removals += removed.len();
        // What the second one lacks is found on a device that has it still.
        if !removed.is_empty() {
            let both = all(&[&second, &first, &others]);
            assert!(difference(&told, &both, &former).is_some(), "{seed}");
        }
        // Without the former plan, nothing is left that knows frames of the plan's VLANs.
        if plans[1].iter().any(|one| one.vlan == 2) && plans[1].iter().any(|one| one.vlan == 3) {
            let (after, _) = edited(&told, &has_first, &[]);
            let identities = |of: &[Tree]| {
                let own = of.iter().filter(|tree| tree.name == "stream-identity");
                own.cloned().collect::<Vec<_>>()
            };
            assert!(is_same(&identities(&after), &identities(&expected)), "{seed} {plans:?}");
        }
    }
    assert!(removals > 400, "{removals}");
}

#[test]
fn what_is_done_with_streams_of_the_plan_goes_and_with_those_of_others_stays() {
    let told = all(&[&identity(1, 1, 2, 1, &[1]), &frer(&identification(1, &[1]))]);
    let stale = [
        frer(&recovery(1, &[1], 7)),
        frer(&identification(2, &[1, 2])),
        // Another way to know the first stream, and a stream in the same VLAN.
        identity(5, 1, 9, 1, &[1]),
        identity(2, 2, 2, 2, &[1]),
        component("", &filter(3, "<stream-handle>2</stream-handle>", 1)),
    ];
    let others = [
        identity(3, 3, 9, 2, &[1]),
        frer(&recovery(3, &[1, 3], 7)),
        frer(&identification(3, &[3])),
        component(&gate(1), &filter(4, "<stream-handle>3</stream-handle>", 1)),
        component("", &filter(5, "<wildcard/>", 1)),
    ];
    let running = all(&[&stale.concat(), &others.concat()]);
    let (after, removed) = edited(&told, &running, &[]);
    assert_eq!(removed.len(), stale.len(), "{removed:?}");
    for label in [
        "/stream-filter-instance-table[stream-filter-instance-id='3']",
        "/sequence-identification[direction-out-facing='true'][port='p2']",
        "/sequence-recovery[index='1']",
        "/stream-identity[index='2']",
        "/stream-identity[index='5']",
    ] {
        assert!(removed.iter().any(|path| path.ends_with(label)), "{label}: {removed:?}");
    }
    let told_and_others =
        all(&[&others.concat(), &identity(1, 1, 2, 1, &[1]), &frer(&identification(1, &[1]))]);
    assert!(is_same(&after, &told_and_others), "{after:?}");
    // A plan without streams says nothing of them, but for what was told before.
    let none = trees(&format!("<bridges xmlns='{}'/>", Module::Bridge.namespace()));
    assert!(edit(&none, &running, &[]).removed.is_empty());
    let (after, removed) = edited(&none, &running, &all(&[&stale[3]]));
    let paths =
        ["/stream-identity", "/bridges/bridge[name='s']/component[name='s']/stream-filters"];
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed.iter().zip(paths).all(|(path, start)| path.starts_with(start)), "{removed:?}");
    assert!(!is_same(&after, &running));
}

#[test]
fn a_device_that_has_other_members_of_a_stream_has_not_what_it_was_told() {
    let told = all(&[&identity(1, 1, 2, 1, &[1, 2]), &frer(&identification(1, &[1, 2]))]);
    let order = all(&[&frer(&identification(1, &[2, 1])), &identity(1, 1, 2, 1, &[2, 1])]);
    assert_eq!(difference(&told, &order, &[]), None);
    let letters = |tree: &mut Tree| {
        let address = &mut tree.nodes[3].nodes[0].text;
        *address = address.to_lowercase();
    };
    let mut small = order.clone();
    letters(small.iter_mut().find(|tree| tree.name == "stream-identity").expect("it"));
    assert_eq!(difference(&told, &small, &[]), None);
    for (ports, streams, expected) in [
        (&[1][..], &[1, 2][..], "/out-facing/input-port[.='p2'] is not there"),
        (&[1, 2, 3], &[1, 2], "/out-facing/input-port[.='p3'] is still there"),
        (&[1, 2], &[2], "/stream[.='1'] is not there"),
        (&[1, 2], &[1, 2, 3], "/stream[.='3'] is still there"),
    ] {
        let ports = identity(1, 1, 2, 1, ports);
        let running = all(&[&ports, &frer(&identification(1, streams))]);
        let said = difference(&told, &running, &[]).expect("a difference");
        assert!(said.ends_with(expected), "{said}");
    }
}

#[test]
fn documents_of_one_root_are_one_edit() {
    let document = |name: &str, text: String| PushDocument { name: name.to_owned(), text };
    let entry = "<filtering-database><filtering-entry><database-id>2</database-id><vids>2</vids>\
                 <address>91-E0-F0-00-FE-01</address></filtering-entry></filtering-database>";
    let filtering = component("", "").replace("<stream-gates", &format!("{entry}<stream-gates"));
    let streams = told(&random(&mut Random(1)));
    let base = super::tree::BASE;
    let several = format!("<config xmlns='{base}'>{streams}</config>");
    let one = PushTarget::new(
        &[document("a", filtering.clone()), document("b", several)],
        &[document("c", "<a/>".to_owned())],
    );
    let whole = document("a", format!("<config xmlns='{base}'>{filtering}{streams}</config>"));
    let other = PushTarget::new(&[whole], &[document("c", "<a/>".to_owned())]);
    let trees = [one, other].map(|target| target.expect("XML").told);
    assert_eq!(trees[0], trees[1]);
    assert_eq!(trees[0].iter().filter(|tree| tree.name == "bridges").count(), 1);
    let wrong = PushTarget::new(&[document("a", filtering)], &[document("c", "<a>".to_owned())]);
    assert_eq!(wrong.expect_err("no XML").0, "c");
}

/// What the two bridges between hosts `a` and `b` are told, with these channels: the first is
/// replicated, the others are asynchronous.
fn bridges(channels: &[u8]) -> [PushTarget; 2] {
    let mut text = "format = 1\nname = \"ways\"\n[run]\nduration_ms = 200\n".to_owned();
    for (kind, name) in [("host", "a"), ("host", "b"), ("bridge", "west"), ("bridge", "east")] {
        text += &format!("[[{kind}]]\nname = \"{name}\"\n");
    }
    let links =
        [["a", "west.a"], ["b", "east.b"], ["west.up", "east.up"], ["west.low", "east.low"]];
    for [from, to] in links {
        text += &format!("[[link]]\nends = [\"{from}\", \"{to}\"]\nrate_mbps = 1000\n");
    }
    // Always there, and of no interest to streams.
    for number in channels.iter().chain(&[9]) {
        let class = match number {
            1 => "class = \"A\"\ndisjoint_paths = 2",
            9 => "class = \"A\"",
            _ => "class = \"asynchronous\"",
        };
        text += &format!(
            "[[channel]]\nname = \"c{number}\"\ndestination = \"91:e0:f0:00:fe:0{number}\"\n\
             stream_id = {number}\n{class}\nsize_octets = {number}0\ninterval_ns = 1_000_000\n\
             talker = \"a\"\nlisteners = [\"b\"]\n"
        );
    }
    let mut none = |path: &str| Err(format!("{path} is not there"));
    let loaded = onbeat_description::load("system.toml", &text, &mut none);
    let system = loaded.system.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics));
    let plan = onbeat_bounds::plan(&system, true).expect("a plan");
    let bridges = (0..).map(NodeId).zip(&system.nodes);
    let bridges = bridges.filter(|(_, node)| matches!(node.kind, NodeKind::Bridge(_)));
    let targets = bridges.map(|(id, _)| {
        let device = Deployment::new(&system, &plan).device(id).expect("a configuration");
        assert_eq!(device.streams.is_some(), !channels.is_empty());
        let all = [Some(device.interfaces), device.filtering, device.streams];
        let document = |text| PushDocument { name: device.name.clone(), text };
        let all: Vec<_> = all.into_iter().flatten().map(|all| document(all.xml)).collect();
        PushTarget::new(&all, &[]).expect("XML")
    });
    targets.collect::<Vec<_>>().try_into().expect("two bridges")
}

#[test]
fn a_bridge_that_had_any_plan_has_the_next_one_with_its_schedulers_and_nothing_besides() {
    let plans = [&[][..], &[1], &[2], &[2, 3], &[1, 2, 3], &[3]].map(bridges);
    let mut seen = BTreeSet::new();
    for (before, after) in plans.iter().flat_map(|one| plans.iter().map(move |two| (one, two))) {
        for at in 0..2 {
            let (former, told) = (&before[at].told, &after[at].told);
            let (has, _) = edited(told, former, former);
            assert!(is_same(&pruned(&has), told), "{has:?}\nnot\n{told:?}");
            let (again, removed) = edited(told, &has, former);
            assert!(removed.is_empty() && is_same(&again, &has));
            let needs = after[at].needs.iter().flat_map(|(_, needs)| needs.nodes.clone());
            seen.extend(needs);
        }
    }
    let modules = [Module::Replication, Module::StreamIdentification, Module::BridgeSchedulers];
    assert!(modules.iter().all(|module| seen.contains(&module.namespace())), "{seen:?}");
}
