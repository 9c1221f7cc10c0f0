use crate::build::two_hosts;
use onbeat_bounds::{PlanDocument, difference, document, plan};
use onbeat_model::plan::{Backlog, Bound, BoundTerm};
use onbeat_model::system::Class;
use onbeat_model::time::Span;

#[test]
fn a_plan_that_is_read_back_is_the_same_and_what_is_changed_in_it_is_the_difference() {
    let mut net = two_hosts();
    net.noise("h1", "h2");
    net.chain(&[0], Span::from_ms(1));
    let plan = plan(&net.0, true).unwrap();
    let now = document(&net.0, &plan);
    let read = PlanDocument::read(&serde_json::to_vec(&now).unwrap()).unwrap();
    assert_eq!(read, now);
    let none = difference(&read, &now);
    assert_eq!((none.items.len(), none.unchanged, none.nodes.len()), (0, 9, 0));

    type Change = fn(&mut PlanDocument);
    let all = &["cat1", "cat2", "h1", "h2"][..];
    let changes: [(Change, &str, &str, &str, &[&str]); 12] = [
        (|p| p.channels[0].fixed_delay_ns += 1, "mcast42", "fixed delay", "2000 µs", &["h1", "h2"]),
        (|p| p.channels[0].protected = false, "mcast42", "protected", "true", all),
        (|p| p.channels[0].destination = None, "mcast42", "destination", "01:00:5e", all),
        (|p| p.channels[0].vlan = Some(9), "mcast42", "VLAN", "2", all),
        (|p| p.channels[0].pcp = Some(9), "mcast42", "priority", "3", all),
        (|p| p.channels[0].listeners[0].bound_ns = None, "mcast42", "bound to h2", "", &[]),
        (|p| p.ports[2].rate_bps += 1, "cat1.p2", "rate", "1000000000 bit/s", &[]),
        (|p| p.ports[2].queues[1].preemptable = true, "cat1.p2", "queue 1", "strict", &["cat1"]),
        (|p| p.ports[2].vlans = Some(vec![2, 3]), "cat1.p2", "VLANs", "", &["cat1"]),
        (|p| p.ports[2].gates.clear(), "", "", "", &[]),
        (|p| p.noise[0].path.clear(), "noise", "path", "h1.p1", &[]),
        (|p| p.chains[0].deadline_ns = 5, "chain", "deadline", "1000 µs", &[]),
    ];
    for (change, name, what, of_now, nodes) in changes {
        let mut before = now.clone();
        change(&mut before);
        let found = difference(&before, &now);
        assert_eq!(found.nodes, nodes, "{name} {what}");
        let changed: Vec<_> = found.items.iter().map(|item| &*item.name).collect();
        assert_eq!(changed, if name.is_empty() { vec![] } else { vec![name] });
        for item in &found.items {
            let [field] = &item.fields[..] else { panic!("{item:?}") };
            assert_eq!((item.change, &*field.what), ("changed", what));
            assert!(field.after.as_deref().unwrap_or_default().starts_with(of_now), "{field:?}");
        }
    }
    let mut before = now.clone();
    before.channels[0].name = "other".to_owned();
    let found = difference(&before, &now);
    let seen: Vec<_> = found.items.iter().map(|item| (&*item.name, item.change)).collect();
    assert_eq!(seen, [("mcast42", "added"), ("other", "removed")]);
    assert_eq!(found.nodes, ["cat1", "cat2", "h1", "h2"]);
}

#[test]
fn gates_with_as_many_entries_at_other_times_are_a_difference() {
    let mut net = two_hosts();
    let channel = net.channel("x", "h1", &["h2"]);
    (channel.class, channel.phase) = (Class::Scheduled, Span::from_us(10));
    let before = document(&net.0, &plan(&net.0, true).unwrap());
    net.0.channels[1].phase = Span::from_us(11);
    let after = document(&net.0, &plan(&net.0, true).unwrap());
    let found = difference(&before, &after);
    let port = found.items.iter().find(|item| item.name == "cat1.p2").expect("its gates");
    assert_eq!(port.fields[0].what, "gates");
    let shown = port.fields[0].after.as_deref().expect("gates");
    assert!(shown.ends_with("from 0 µs, with other entries"), "{shown}");
    assert_eq!(found.nodes, ["cat1", "cat2", "h1"]);
}

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
