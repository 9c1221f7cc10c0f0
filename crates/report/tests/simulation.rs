//! What is shown of simulations: the terminal's table, and the picture of the network.

use crate::common::simulated::{Simulated, ring, silent, single};
use onbeat_model::observed::DedicatedObserved;
use onbeat_model::time::Span;
use onbeat_report::simulation::{html, table};

#[test]
fn a_port_that_holds_frames_and_sends_none_is_in_the_table() {
    let mut simulated = single(&[20_000]);
    assert!(!table(&simulated.results()).contains("b1.p1"));
    let port = &mut simulated.observed.ports[1];
    (port.queues[3].deepest_frames, port.queues[3].deepest_octets) = (7, 700);
    let table = table(&simulated.results());
    let row = table.lines().find(|line| line.contains("b1.p1")).expect("the port");
    assert!(row.contains("0 %") && row.contains("700"), "{row}");
}

#[test]
fn the_terminals_table_of_a_small_simulation() {
    insta::assert_snapshot!(table(&single(&[18_000, 40_000, 50_001]).results()));
}

#[test]
fn a_long_table_shows_what_was_broken_and_says_what_it_leaves_out() {
    let mut simulated = ring(10, 4, 100, 2);
    simulated.observed.streams[77].listeners[1].max = Some(Span::from_s(1));
    let table = table(&simulated.results());
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[2].starts_with("s77 "), "{}", lines[2]);
    assert!(lines[2].ends_with("broken"), "{}", lines[2]);
    assert!(table.contains("40 of 200: broken ones first"), "{table}");
    assert!(table.contains("the 10 busiest of "), "{table}");
}

/// So many hosts at each bridge, and links between bridges.
fn network(bridges: usize, hosts: usize, trunks: &[(usize, usize)]) -> Simulated {
    let mut nodes: Vec<_> = (0..bridges * hosts).map(|host| format!("h{host}")).collect();
    nodes.extend((0..bridges).map(|bridge| format!("b{bridge}")));
    let name = |bridge: usize| format!("b{bridge}");
    let mut links: Vec<_> = trunks.iter().map(|(a, b)| (name(*a), name(*b))).collect();
    let access = |host: usize| (format!("h{host}"), name(host / hosts.max(1)));
    links.extend((0..bridges * hosts).map(access));
    silent(&nodes, &links)
}

#[test]
fn in_pictures_of_all_kinds_of_networks_no_node_covers_another() {
    let line = |n: usize| -> Vec<_> { (1..n).map(|at| (at - 1, at)).collect() };
    let circle = |n: usize| -> Vec<_> { (0..n).map(|at| (at, (at + 1) % n)).collect() };
    let tree = |n: usize| -> Vec<_> { (1..n).map(|at| ((at - 1) / 3, at)).collect() };
    let mesh =
        |n: usize| -> Vec<_> { (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect() };
    let networks = [
        ("pair", silent(&["h0".into(), "h1".into()], &[("h0".into(), "h1".into())])),
        ("star", network(1, 60, &[])),
        ("line", network(12, 3, &line(12))),
        ("tree", network(40, 4, &tree(40))),
        ("triangle", network(3, 2, &circle(3))),
        ("ring", network(40, 5, &circle(40))),
        ("uneven ring", network(7, 13, &circle(7))),
        ("mesh", network(9, 2, &mesh(9))),
        ("bare ring", network(10, 0, &circle(10))),
        ("large", network(20, 50, &circle(20))),
    ];
    for (name, network) in networks {
        let page = html(&network.system, &network.plan, &network.results());
        let size = numbers(&page[page.find("id=\"map\"").expect("a picture")..], "viewBox=\"");
        let rects: Vec<_> =
            page.match_indices("<rect x=").map(|(at, _)| numbers(&page[at..], "<rect ")).collect();
        assert_eq!(rects.len(), network.system.nodes.len(), "{name}");
        for (at, a) in rects.iter().enumerate() {
            let inside = a[0] >= 0 && a[1] >= 0 && a[0] + a[2] <= size[2] && a[1] + a[3] <= size[3];
            assert!(inside, "{name}: {a:?} is outside of {size:?}");
            let covers = |b: &&Vec<i64>| {
                (a[0] - b[0]).abs() < a[2].max(b[2]) && (a[1] - b[1]).abs() < a[3].max(b[3])
            };
            let other = rects[at + 1..].iter().find(covers);
            assert!(other.is_none(), "{name}: {a:?} and {other:?}");
        }
    }
}

/// The first four whole numbers after `start`.
fn numbers(text: &str, start: &str) -> Vec<i64> {
    let text = &text[text.find(start).expect("it is there") + start.len()..];
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    parts.filter_map(|part| part.parse().ok()).take(4).collect()
}

#[test]
fn what_a_dedicated_path_did_is_in_the_table_and_on_the_page() {
    let mut simulated = single(&[20_000]);
    let shown = |simulated: &Simulated| {
        let results = simulated.results();
        (table(&results), html(&simulated.system, &simulated.plan, &results))
    };
    let (terminal, page) = shown(&simulated);
    assert!(!terminal.contains("aborts") && !page.contains("Dedicated paths"), "{terminal}");
    let seen = DedicatedObserved { sent: 12_345, aborts: 67, resent: 66, lost: 1, collisions: 8 };
    simulated.observed.ports[1].dedicated = Some(seen);
    let (terminal, page) = shown(&simulated);
    let row = terminal.lines().find(|line| line.contains("12\u{202f}345")).expect("the port");
    let cells: Vec<_> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["b1.p1", "12\u{202f}345", "8", "67", "66", "1"]);
    let cells =
        ["12\u{202f}345", "8", "67", "66", "1"].map(|n| format!("<td class=\"number\">{n}</td>"));
    assert!(page.contains(&format!("<th scope=\"row\">b1.p1</th>{}", cells.concat())), "{page}");
}
