//! Nothing in the picture hides anything else.

use super::draw::{NodeShape, Picture, picture, text_width};
use super::studies::{best_effort, fifty, late, starting};
use onbeat_model::graph::{Graph, Task};
use onbeat_model::timing::{Level, TimingReport};

/// Left, top, right, bottom.
type Area = (i32, i32, i32, i32);

fn shape(node: &NodeShape) -> Area {
    let half = match node.shape {
        "circle" | "square" | "hexagon" => 18,
        _ => 6,
    };
    (node.x - half, node.y - half.min(17), node.x + half, node.y + half.min(17))
}

/// Where the text beside a node is; from its capitals down to its base line.
fn label(node: &NodeShape) -> Option<Area> {
    let width = text_width(node.label.chars().count());
    let area = (node.label_x, node.y - 7, node.label_x + width, node.y + 5);
    (!node.label.is_empty()).then_some(area)
}

fn overlap(a: Area, b: Area) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Everything that has an area, by name.
fn areas(picture: &Picture) -> Vec<(String, Area)> {
    let shapes = picture.nodes.iter().map(|node| (node.id.clone(), shape(node)));
    let labels = picture
        .nodes
        .iter()
        .filter_map(|node| label(node).map(|area| (format!("the label of {}", node.id), area)));
    shapes.chain(labels).collect()
}

fn check(study: &TimingReport) {
    let picture = picture(study, Level::Program);
    let areas = areas(&picture);
    for (at, (name, area)) in areas.iter().enumerate() {
        let is_inside =
            area.0 >= 0 && area.1 >= 0 && area.2 <= picture.width && area.3 <= picture.height;
        assert!(is_inside, "{name} is outside");
        for (other, place) in &areas[at + 1..] {
            assert!(!overlap(*area, *place), "{name} overlaps {other}");
        }
    }
    for line in &picture.lines {
        for pair in line.way.windows(2) {
            let ((a, b), (c, d)) = (pair[0], pair[1]);
            assert!(a == c || b == d, "{} runs aslant", line.class);
            // What touches a shape from outside is no overlap, nor what ends in a channel end.
            let way = (a.min(c), b.min(d), a.max(c) + 1, b.max(d) + 1);
            for (name, area) in &areas {
                let inner = match name.starts_with("the label") {
                    true => *area,
                    false => (area.0 + 5, area.1 + 2, area.2 - 5, area.3 - 2),
                };
                assert!(!overlap(way, inner), "{}: {pair:?} runs over {name}", line.class);
            }
        }
    }
}

#[test]
fn nothing_overlaps_in_small_graphs() {
    check(&best_effort());
    check(&late());
    check(&starting());
}

#[test]
fn nothing_overlaps_in_a_graph_of_54_nodes_on_four_hosts() {
    let study = fifty();
    let nodes: usize = study.graph.tasks.iter().map(|task| task.nodes.len()).sum();
    assert!(nodes >= 50, "{nodes}");
    check(&study);
    assert!(picture(&study, Level::Program).width <= 1_280, "wider than a page");
}

/// Systems of up to 40 tasks whose nodes follow each other at random.
#[test]
fn nothing_overlaps_whatever_follows_what() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let template = fifty().graph;
    let kinds: Vec<_> = template.tasks.iter().flat_map(|task| &task.nodes).cloned().collect();
    let node = (0..kinds.len(), prop::collection::vec(0..12_usize, 0..3));
    let task = (0..4_usize, prop::collection::vec(node, 1..12));
    let tasks = prop::collection::vec(task, 1..40);
    let mut runner =
        TestRunner::new(Config { cases: 100, failure_persistence: None, ..Config::default() });
    let run = runner.run(&tasks, |tasks| {
        let mut graph = Graph { tasks: Vec::new(), ..template.clone() };
        for (host, nodes) in &tasks {
            let of = |(kind, next): &(usize, Vec<usize>)| {
                let mut node = kinds[*kind].clone();
                node.next = next.iter().map(|next| next % nodes.len()).collect();
                node
            };
            let nodes = nodes.iter().map(of).collect();
            graph.tasks.push(Task { name: "task".into(), host: *host, nodes, ..Task::default() });
        }
        check(&TimingReport { graph, ..TimingReport::default() });
        Ok(())
    });
    run.expect("nothing overlaps");
}
