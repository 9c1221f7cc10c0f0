use crate::build::two_hosts;
use onbeat_bounds::{document, plan};
use onbeat_model::plan::{Backlog, Bound, BoundTerm};
use onbeat_model::time::Span;

#[test]
fn the_document_names_everything_and_shows_every_term() {
    let mut net = two_hosts();
    net.noise("h1", "h2");
    net.chain(&[0], Span::from_ms(1));
    let plan = plan(&net.0, true).unwrap();
    let text = serde_json::to_string_pretty(&document(&net.0, &plan)).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn the_document_shows_streams_with_all_their_ways_and_how_ports_send() {
    let text = "\
format = 1
name = \"ways\"
run = { duration_s = 1 }
host = [{ name = \"a\" }, { name = \"b\" }]
bridge = [{ name = \"s\" }, { name = \"t\" }, { name = \"u\" }]
link = [
    { ends = [\"a\", \"s\"], rate_mbps = 100 },
    { ends = [\"s\", \"t\"], rate_mbps = 100 },
    { ends = [\"s\", \"u\"], rate_mbps = 100 },
    { ends = [\"u\", \"t\"], rate_mbps = 100 },
    { ends = [\"t\", \"b\"], rate_mbps = 100 },
]
[[port]]
name = \"a\"
idle_slope_mbps = { 6 = 3 }
asynchronous = [5]
preemptable = [0, 1]
vlans = [2, 9]
gates = [{ base_time_ns = 5, entries = [
    { open = [7, 0], interval_ns = 10 },
    { open = [], interval_ns = 20 },
] }]
[[stream]]
name = \"twice\"
talker = \"a\"
listeners = [\"b\"]
traffic_class = 7
frame_octets = 100
interval_ns = 1000000
paths = [[\"s\", \"t\"], [\"s\", \"u\", \"t\"]]
deadline_us = 300
";
    let loaded = onbeat_description::load("system.toml", text, &mut |_| Err(String::new()));
    assert_eq!(loaded.diagnostics, []);
    let system = loaded.system.expect("nothing is wrong");
    let mut plan = plan(&system, true).unwrap();
    let term = |ns| BoundTerm { what: "a term".to_owned(), span: Span::from_ns(ns) };
    let bound = Bound { terms: vec![term(40), term(2)], best: Span::from_ns(30) };
    plan.streams[0].bounds = vec![Some(bound)];
    plan.backlogs = vec![[None; 8]; system.ports.len()];
    plan.backlogs[0][7] = Some(Backlog { frames: 3, octets: 300 });
    let document = document(&system, &plan);
    let parts = (&document.streams, &document.ports[0], &document.ports[1]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&parts).unwrap());
}
