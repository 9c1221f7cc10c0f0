use crate::build::Net;
use onbeat_model::system::Class;
use onbeat_plan::plan;

const GIGABIT: u64 = 1_000_000_000;

#[test]
fn the_paths_of_a_multicast_channel_share_their_beginning_and_are_reserved_once() {
    // h1 ─ b1 ─ b2 ─ h2
    //       │    └── h3
    //       b3 ─ h4
    let mut net = Net::new(&["h1", "h2", "h3", "h4"], &["b1", "b2", "b3"]);
    let links =
        [("h1", "b1"), ("b1", "b2"), ("b2", "h2"), ("b2", "h3"), ("b1", "b3"), ("b3", "h4")];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h3", "h4", "h2"]);
    net.noise("h4", "h2");
    let plan = plan(&net.0, true).unwrap();
    let paths = &plan.channels[0].paths;
    assert_eq!(net.labels(&paths[0]), ["h1.p1", "b1.p2", "b2.p3"]);
    assert_eq!(net.labels(&paths[1]), ["h1.p1", "b1.p3", "b3.p2"]);
    assert_eq!(net.labels(&paths[2]), ["h1.p1", "b1.p2", "b2.p2"]);
    let tree = plan.channels[0].tree_ports();
    assert_eq!(tree.len(), 6);
    for port in tree {
        assert_eq!(plan.ports[port.index()].idle_slope(Class::A).as_bps(), 5_632_000);
        assert_eq!(plan.ports[port.index()].class_a_streams, 1);
    }
    assert_eq!(net.labels(&plan.noise[0]), ["h4.p1", "b3.p1", "b1.p2", "b2.p2"]);
    let reserved = plan.ports.iter().filter(|p| p.class_a_streams > 0).count();
    assert_eq!(reserved, 6, "noise and the other directions reserve nothing");
}

#[test]
fn the_shortest_way_wins_and_among_equals_the_one_over_the_port_that_comes_first() {
    // A square of bridges: from b1 to b4 both ways are equally long.
    let mut net = Net::new(&["h1", "h2", "h3"], &["b1", "b2", "b3", "b4"]);
    let links = [
        ("h1", "b1"),
        ("b1", "b3"),
        ("b1", "b2"),
        ("b2", "b4"),
        ("b3", "b4"),
        ("b4", "h2"),
        ("b2", "h3"),
    ];
    for (a, b) in links {
        net.link(a, b, GIGABIT);
    }
    net.channel("c", "h1", &["h2", "h3"]);
    let plan = plan(&net.0, true).unwrap();
    let paths = &plan.channels[0].paths;
    assert_eq!(net.labels(&paths[0]), ["h1.p1", "b1.p2", "b3.p2", "b4.p3"]);
    assert_eq!(net.labels(&paths[1]), ["h1.p1", "b1.p3", "b2.p3"]);
}
