//! Files of other tools: what becomes of them, and that everything else is an error at its place.

use onbeat_description::import::{ImportOptions, Input, SizeMeaning, import};
use onbeat_model::diagnostic::Severity;
use onbeat_model::system::{Channel, NodeKind, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const LINKS: &str = include_str!("import/links.csv");
const STREAMS: &str = include_str!("import/streams.csv");
const GRAPH: &str = include_str!("import/graph.graphml");
const TOPOLOGY: &str = include_str!("import/topology.json");
const GRAPH_STREAMS: &str = include_str!("import/graph-streams.csv");

fn options() -> ImportOptions {
    ImportOptions {
        name: "net of 5".to_owned(),
        size: SizeMeaning::Wire,
        add_hosts: false,
        rate: None,
        propagation: None,
        forwarding: None,
    }
}

/// The description and its warnings, or the errors; each as `severity code line: message`.
fn outcome(
    network: &str,
    streams: Option<&str>,
    options: &ImportOptions,
) -> Result<String, String> {
    let streams = streams.map(|text| Input { path: "streams.csv", text });
    let result = import(Input { path: "network", text: network }, streams, options);
    let (text, sources, diagnostics) = match result {
        Ok(it) => (Some(it.text), it.sources, it.warnings),
        Err(it) => (None, it.sources, it.diagnostics),
    };
    let mut said = String::new();
    for diagnostic in &diagnostics {
        assert!(!diagnostic.help.is_empty(), "{diagnostic:?}");
        let (at, _) = diagnostic.at.as_ref().expect("each has a place");
        let source = &sources[usize::from(at.file)];
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        said += &format!(
            "{severity} {} {}:{}: {}\n",
            diagnostic.code,
            source.path,
            source.line(at.start),
            diagnostic.message
        );
    }
    match text {
        Some(text) => Ok(text + "---\n" + &said),
        None => Err(said),
    }
}

fn system(network: &str, streams: Option<&str>, options: &ImportOptions) -> System {
    let outcome = outcome(network, streams, options).unwrap_or_else(|wrong| panic!("{wrong}"));
    let text = outcome.split("---\n").next().expect("a description");
    let loaded = onbeat_description::load("system.toml", text, &mut |_| Err(String::new()));
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    loaded.system.expect("nothing is wrong")
}

#[test]
fn links_and_streams_of_the_benchmark_become_this_description() {
    insta::assert_snapshot!(outcome(LINKS, Some(STREAMS), &options()).expect("right"));
}

#[test]
fn a_graph_becomes_this_description() {
    let options = ImportOptions { forwarding: Some(Span::from_ns(3_000)), ..options() };
    insta::assert_snapshot!(outcome(GRAPH, None, &options).expect("right"));
}

#[test]
fn a_graph_with_hosts_at_its_bridges_carries_streams() {
    let options = ImportOptions { add_hosts: true, ..options() };
    let system = system(GRAPH, Some(GRAPH_STREAMS), &options);
    let name = |id| system.node(id).name.as_str();
    let ends = |channel: &Channel| {
        let listeners = channel.listeners.iter().map(|to| name(*to)).collect::<Vec<_>>();
        format!("{} -> {}", name(channel.talker), listeners.join(" "))
    };
    let ends: Vec<String> = system.channels.iter().map(ends).collect();
    assert_eq!(ends, ["New-York-host -> h3", "h4 -> M-nchen---Wien-host h3"]);
    // As fast as the fastest link of its bridge.
    let host = system.nodes.iter().position(|node| node.name == "New-York-host").expect("a host");
    let of_host = |link: &&onbeat_model::system::Link| {
        link.ports.iter().any(|end| system.port(*end).node.index() == host)
    };
    let link = system.links.iter().find(of_host).expect("a link");
    assert_eq!(link.rate, BitRate::from_mbps(10_000));
}

#[test]
fn sizes_count_what_their_meaning_says() {
    // By hand: 24 AVTP, 14 header, 4 tag, 4 FCS are 46; 8 preamble and 12 gap make it 66.
    for (size, meaning, payload, occupies) in [
        (300, SizeMeaning::Wire, 234, 300),
        (300, SizeMeaning::Frame, 254, 320),
        (300, SizeMeaning::Payload, 300, 366),
        (88, SizeMeaning::Wire, 22, 88),
        (68, SizeMeaning::Frame, 22, 88),
        (50, SizeMeaning::Wire, 1, 88),
        (50, SizeMeaning::Payload, 50, 116),
        (1_542, SizeMeaning::Wire, 1_476, 1_542),
        (1_522, SizeMeaning::Frame, 1_476, 1_542),
        (1_476, SizeMeaning::Payload, 1_476, 1_542),
    ] {
        let streams = format!("{HEAD}\n0,3,[4],{size},500000,500000,500000\n");
        let options = ImportOptions { size: meaning, ..options() };
        let system = system(LINKS, Some(&streams), &options);
        let octets = Octets::new(payload);
        assert_eq!(system.channels[0].size, octets, "{size} {meaning:?}");
        assert_eq!(frame::on_wire(frame::of_channel(octets)), Octets::new(occupies));
        let said = outcome(LINKS, Some(&streams), &options).expect("right");
        assert_eq!(said.contains("OB1607"), size == 50 && meaning == SizeMeaning::Wire, "{said}");
    }
}

#[test]
fn processing_is_the_bridges_forwarding_and_the_hosts_receiving_stack() {
    let system = system(LINKS, Some(STREAMS), &options());
    for (name, ns) in [("b0", 2_000), ("b1", 2_000), ("h3", 2_000), ("h4", 1_500), ("h10", 0)] {
        let node = system.nodes.iter().find(|node| node.name == name).expect("it is there");
        let found = match &node.kind {
            NodeKind::Host(host) => host.stack_rx.max(),
            NodeKind::Bridge(bridge) => bridge.forwarding,
        };
        assert_eq!(found, Span::from_ns(ns), "{name}");
    }
}

const HEAD: &str = "stream,src,dst,size,period,deadline,jitter";
const LINK_HEAD: &str = "link,q_num,rate,t_proc,t_prop";

#[test]
fn each_wrong_line_of_streams_is_an_error_of_its_own() {
    let mut said = String::new();
    for line in [
        "0,3,[4],300,500000,500000",
        "0,3,[4],\"300,500000,500000,500000",
        "0,3,[],300,500000,500000,500000",
        "0,3,[4 10],300,500000,500000,500000",
        "0,3,\"[4, 40]\",300,500000,500000,500000",
        "0,0,[4],300,500000,500000,500000",
        "0,\"[3, 4]\",[10],300,500000,500000,500000",
        "0,3,\"[4, 3]\",300,500000,500000,500000",
        "0,3,\"[4, 4]\",300,500000,500000,500000",
        "0,3,[4],0,500000,500000,500000",
        "0,3,[4],1543,500000,500000,500000",
        "0,3,[4],300,0,500000,500000",
        "0,3,[4],300,-5,500000,500000",
        "0,3,[4],300,500000.5,500000,500000",
        "0,3,[4],300,500000,999,500000",
        "0,3,[4],300,500000,500000,often",
    ] {
        let streams = format!("{HEAD}\n{line}\n");
        let wrong = outcome(LINKS, Some(&streams), &options()).expect_err(line);
        said += &format!("{line}\n  {wrong}");
    }
    let twice = format!("{HEAD}\n1,3,[4],300,500000,500000,\n01,3,[4],300,500000,500000,\n");
    said += &outcome(LINKS, Some(&twice), &options()).expect_err("a duplicate");
    for head in ["", "stream,src,size,period,deadline", "stream,src,dst,dst,size,period,deadline"] {
        let wrong = outcome(LINKS, Some(head), &options()).expect_err(head);
        said += &format!("{head}\n  {wrong}");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn each_wrong_line_of_links_is_an_error_of_its_own() {
    let mut said = String::new();
    for lines in [
        "\"(0, 1, 2)\",8,1,0,0",
        "0,8,1,0,0",
        "\"(0, 1\",8,1,0,0",
        "\"(0, 1)\",8,3,0,0",
        "\"(0, 1)\",8,0,0,0",
        "\"(0, 1)\",8,1,-1,0",
        "\"(0, 1)\",8,1,0,10000000001",
        "\"(0, 1)\",8,1,0,0\n\"(0, 1)\",8,1,0,0",
        "\"(0, 1)\",8,1,0,0\n\"(1, 0)\",8,10,0,0",
    ] {
        let links = format!("{LINK_HEAD}\n{lines}\n");
        let wrong = outcome(&links, None, &options()).expect_err(lines);
        said += &format!("{lines}\n  {wrong}");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_a_description_cannot_say_is_a_warning_once() {
    let links = "link,q_num,rate,t_proc,t_prop,owner\n\
                 \"(0, 1)\",4,1,0,10,a\n\"(1, 0)\",4,1,0,20,a\n\"(2, 1)\",8,1,5,0,a\n\
                 \"(1, 1)\",8,1,0,0,a\n";
    let streams = "id,src,dst,size,period,deadline,jitter\nx y,0,2,90,100000,9999,0\n\
                   x-y,0,2,90,100000,9999,9998\n";
    insta::assert_snapshot!(outcome(links, Some(streams), &options()).expect("right"));
}

#[test]
fn streams_between_parts_of_a_network_are_refused() {
    let links =
        format!("{LINK_HEAD}\n\"(0, 1)\",8,1,0,0\n\"(1, 0)\",8,1,0,0\n\"(2, 3)\",8,1,0,0\n");
    let streams = format!("{HEAD}\n0,0,[3],100,500000,500000,500000\n");
    let wrong = outcome(&links, Some(&streams), &options()).expect_err("two parts");
    let expected = "error OB1034 streams.csv:2: stream `0`: no links lead from h0 to h3\n";
    assert!(wrong.contains(expected), "{wrong}");
}

fn graph(inside: &str) -> String {
    format!("<graphml><graph edgedefault=\"directed\">{inside}</graph></graphml>")
}

#[test]
fn each_wrong_graph_is_an_error_of_its_own() {
    let nodes = "<node id=\"a\"/><node id=\"b\"/>";
    let edge = |data: &str| graph(&format!("{nodes}<edge source=\"a\" target=\"b\">{data}</edge>"));
    let depth = "<x>".repeat(40) + &"</x>".repeat(40);
    let many: String = (0..70).map(|at| format!(" a{at}=\"\"")).collect();
    let keys: String = (0..300).map(|at| format!("<key id=\"{at}\"/>")).collect();
    let long = "1".repeat(5_000);
    let entities = "<!DOCTYPE g [<!ENTITY a \"xx\"><!ENTITY b \"&a;&a;\">]>";
    let mut said = String::new();
    for (what, text) in [
        ("no root", "<html/>".to_owned()),
        ("no graph", "<graphml/>".to_owned()),
        ("cut off", "<graphml><graph><node id=\"a\"".to_owned()),
        ("not closed", "<graphml><graph>".to_owned()),
        ("crossed", "<graphml><graph></graphml></graph>".to_owned()),
        ("two graphs", "<graphml><graph/><graph/></graphml>".to_owned()),
        ("nested", graph("<node id=\"a\"><graph/></node>")),
        ("hyperedge", graph("<hyperedge/>")),
        ("no id", graph("<node/>")),
        ("twice", graph("<node id=\"a\"/><node id=\"a\"/>")),
        ("two attributes", graph("<node id=\"a\" id=\"a\"/>")),
        ("no target", graph("<node id=\"a\"/><edge source=\"a\"/>")),
        ("unknown node", graph("<node id=\"abc\"/><edge source=\"abc\" target=\"abd\"/>")),
        ("rate", edge("<data key=\"rate_mbps\">fast</data>")),
        ("no rate", edge("<data key=\"rate_bps\">0</data>")),
        ("rate and a half", edge("<data key=\"rate_mbps\">0.0000005</data>")),
        ("delay", edge("<data key=\"propagation_ns\">-1</data>")),
        ("kind", graph("<node id=\"a\"><data key=\"kind\">toaster</data></node>")),
        ("host", graph("<node id=\"a\"><data key=\"kind\">host</data></node>")),
        ("entity", graph("<node id=\"a\"><data key=\"label\">&nbsp;</data></node>")),
        ("entities", format!("{entities}{}", graph("<node id=\"&b;\"/>"))),
        ("too deep", graph(&depth)),
        ("attributes", graph(&format!("<node{many} id=\"a\"/>"))),
        ("keys", format!("<graphml>{keys}</graphml>")),
        ("long", edge(&format!("<data key=\"rate_bps\">{long}</data>"))),
    ] {
        let wrong = outcome(&text, None, &options()).expect_err(what);
        said += &format!("{what}\n  {wrong}");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn directions_of_a_graph_are_joined_and_what_has_no_unit_is_told() {
    let edge = |from: &str, to: &str, data: &str| {
        format!("<edge source=\"{from}\" target=\"{to}\">{data}</edge>")
    };
    let text = graph(
        &(["a", "b", "c"].map(|id| format!("<node id=\"{id}\"/>")).concat()
            + &edge("a", "b", "<data key=\"bandwidth\">10</data>")
            + &edge("b", "a", "<data key=\"LinkSpeed\">10</data>")
            + &edge("c", "b", "<data key=\"rate_bps\">1500000</data>")
            + "<edge source=\"b\" target=\"c\" directed=\"false\" sourceport=\"x\"/>"
            + "<edge source=\"b\" target=\"b\"/>"),
    );
    insta::assert_snapshot!(outcome(&text, None, &options()).expect("right"));
}

#[test]
fn a_file_beyond_the_limits_is_refused() {
    let link = |at: usize| format!("\"({at}, {})\",8,1,0,0\n", at + 1);
    let links: String = (0..20_001).map(link).collect();
    let wrong = outcome(&format!("{LINK_HEAD}\n{links}"), None, &options()).expect_err("too many");
    assert_eq!(wrong, "error OB1605 network:20002: there are more than 10000 links\n");
    let cells = format!("{LINK_HEAD}{}\n", ",x".repeat(100));
    let wrong = outcome(&cells, None, &options()).expect_err("too many cells");
    assert_eq!(wrong, "error OB1605 network:1: the line has more than 64 cells\n");
    let large = " ".repeat((16 << 20) + 1);
    let wrong = outcome(LINKS, Some(&large), &options()).expect_err("too large");
    assert_eq!(wrong, "error OB1605 streams.csv:1: the file has more than 16777216 octets\n");
    let nodes: String = (0..20_001).map(|at| format!("<node id=\"{at}\"/>")).collect();
    let wrong = outcome(&graph(&nodes), None, &options()).expect_err("too many");
    assert_eq!(wrong, "error OB1605 network:1: there are 20001 bridges, of at most 10000\n");
}

#[test]
fn an_attribute_whose_key_has_no_name_is_known_by_its_identifier() {
    let graph = r#"<graphml><key id="rate_mbps" for="edge"/><key id="forwarding_ns" for="node"/>
        <graph edgedefault="undirected"><node id="a"/><node id="c"/>
        <node id="b"><data key="forwarding_ns">7</data></node>
        <edge source="a" target="b"><data key="rate_mbps">100</data></edge>
        <edge source="c" target="b"/></graph></graphml>"#;
    let system = system(graph, None, &options());
    let rates: Vec<u64> = system.links.iter().map(|link| link.rate.as_bps()).collect();
    assert_eq!(rates, [100_000_000, 1_000_000_000]);
    let forwarding = |kind: &NodeKind| match kind {
        NodeKind::Bridge(bridge) => Some(bridge.forwarding),
        NodeKind::Host(_) => None,
    };
    let found: Vec<Span> = system.nodes.iter().filter_map(|node| forwarding(&node.kind)).collect();
    assert_eq!(found, [Span::from_ns(7)]);
}

#[test]
fn a_topology_becomes_this_description() {
    let rate = Some(BitRate::from_mbps(100));
    let options = ImportOptions { forwarding: Some(Span::from_ns(3_000)), rate, ..options() };
    insta::assert_snapshot!(outcome(TOPOLOGY, None, &options).expect("right"));
}

#[test]
fn each_wrong_topology_is_an_error_of_its_own() {
    let mut said = String::new();
    for (from, to) in [
        ("{", "{,"),
        ("\"ietf-network:networks\"", "\"networks\""),
        ("\"network\": [", "\"network\": [{},"),
        ("\"source-node\": \"sensor\"", "\"source-node\": \"senso\""),
        ("\"dest-node\": \"7\"", "\"dest-node\": {}"),
        ("\"dest-tp\": \"1/3\"", "\"dest-tp\": \"1/5\""),
        ("\"dest-tp\": \"1/3\"", "\"dest-tp\": \"1/2\""),
        ("\"tp-id\": \"1/2\"", "\"tp-id\": \"1/1\""),
        ("\"tp-id\": \"eth0\"", "\"tp-id\": \"\""),
        ("\"node-id\": \"7\"", "\"node-id\": \"sensor\""),
        ("\"node-id\": \"7\"", "\"id\": \"7\""),
        ("\"link-id\": \"d\"", "\"link-id\": \"c\""),
        ("\"link-id\": \"d\"", "\"id\": \"d\""),
    ] {
        assert!(TOPOLOGY.contains(from), "{from}");
        let text = TOPOLOGY.replacen(from, to, 1);
        said += &format!("# {to}\n{}", outcome(&text, None, &options()).expect_err(to));
    }
    insta::assert_snapshot!(said);
}

/// The links of so many bridges in a ring and of hosts at bridges: node and termination point at
/// each end.
fn ring(bridges: usize, hosts: &[usize]) -> Vec<[(String, String); 2]> {
    let of_bridge = |at: usize| {
        let next = (at + 1) % bridges;
        [(format!("s{at}"), "up".to_owned()), (format!("s{next}"), "down".to_owned())]
    };
    let of_host = |(host, at): (usize, &usize)| {
        [(format!("e{host}"), "eth0".to_owned()), (format!("s{at}"), format!("e{host}"))]
    };
    (0..bridges).map(of_bridge).chain(hosts.iter().enumerate().map(of_host)).collect()
}

/// The two directions of each link in some order, as a topology.
fn topology(links: &[[(String, String); 2]], order: &[usize]) -> String {
    let mut points: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
    for (node, point) in links.iter().flatten() {
        points.entry(node).or_default().push(json!({ "tp-id": point }));
    }
    let node = |(id, points): (&&str, &Vec<serde_json::Value>)| {
        let points = json!(points);
        json!({ "node-id": id, "ietf-network-topology:termination-point": points })
    };
    let link = |number: &usize| {
        let [(from, a), (to, b)] = match (&links[number / 2], number % 2) {
            ([from, to], 0) | ([to, from], _) => [from, to],
        };
        json!({
            "link-id": number.to_string(),
            "destination": { "dest-node": to, "dest-tp": b },
            "source": { "source-node": from, "source-tp": a },
        })
    };
    let network = json!({
        "network-id": "x",
        "node": points.iter().map(node).collect::<Vec<_>>(),
        "ietf-network-topology:link": order.iter().map(link).collect::<Vec<_>>(),
    });
    json!({ "ietf-network:networks": { "network": [network] } }).to_string()
}

proptest! {
    #[test]
    fn a_topology_keeps_its_nodes_ports_and_links(
        bridges in 3usize..6,
        hosts in prop::collection::vec(0usize..3, 2..6),
        seed in any::<u64>(),
    ) {
        let links = ring(bridges, &hosts);
        // Directions of a link need not stand beside each other.
        let mut order: Vec<usize> = (0..2 * links.len()).collect();
        order.sort_by_key(|link| (*link as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        let system = system(&topology(&links, &order), None, &options());
        let sorted = |all: Vec<[(String, String); 2]>| {
            let sort = |mut ends: [_; 2]| {
                ends.sort();
                ends
            };
            all.into_iter().map(sort).collect::<BTreeSet<_>>()
        };
        let end = |id| {
            let port = system.port(id);
            (system.node(port.node).name.clone(), port.name.clone())
        };
        let found = system.links.iter().map(|link| link.ports.map(end)).collect();
        prop_assert_eq!(sorted(found), sorted(links));
        prop_assert_eq!(system.links.len(), bridges + hosts.len());
        prop_assert_eq!(system.nodes.len(), bridges + hosts.len());
    }
}
