//! What is shown of time-flow graphs.

use crate::studies::{best_effort, fifo, fifty, hostile, late, listing3, ms, network};
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;
use onbeat_model::timing::Level;
use onbeat_report::timing;

#[test]
fn the_terminal_shows_table_1_of_the_paper() {
    insta::assert_snapshot!(timing::table(&listing3(fifo("c")), Level::Program, 8));
}

#[test]
fn over_a_network_the_terminals_table_has_intervals() {
    let study = listing3(network("status", Interval::between(Span::from_us(20), ms(2))));
    insta::assert_snapshot!(timing::table(&study, Level::Program, 8));
}

#[test]
fn the_terminal_names_the_culprit_and_the_way() {
    insta::assert_snapshot!(timing::table(&best_effort(), Level::Program, 2));
}

#[test]
fn the_terminal_shows_what_may_be_late_and_why() {
    insta::assert_snapshot!(timing::table(&late(), Level::Platform, 8));
}

#[test]
fn the_terminal_shows_chains_and_processors() {
    insta::assert_snapshot!(timing::table(&fifty(), Level::Platform, 1));
}

#[test]
fn the_graphs_of_listing_3_and_of_a_loop_in_a_loop_for_graphviz() {
    insta::assert_snapshot!(timing::dot(&listing3(fifo("c"))));
    insta::assert_snapshot!(timing::dot(&late()));
}

#[test]
fn the_json_of_listing_3_and_of_what_is_late() {
    for study in [best_effort(), late()] {
        let document = timing::document(&study);
        assert_eq!(document.format, timing::FORMAT);
        let json = serde_json::to_string_pretty(&document).unwrap();
        assert_eq!(serde_json::from_str::<timing::Document>(&json).unwrap(), document);
        insta::assert_snapshot!(json);
    }
}

#[test]
fn the_picture_of_a_loop_in_a_loop() {
    insta::assert_snapshot!(timing::svg(&late(), Level::Platform));
}

#[test]
fn hostile_names_stay_text() {
    let study = hostile();
    let level = Level::Program;
    for text in [timing::html(&study), timing::svg(&study, level)] {
        assert!(!text.contains("<img"), "a name became an element");
        assert!(text.contains("&lt;img"), "the names are not shown");
    }
    let dot = timing::dot(&study);
    assert!(dot.contains(r#"\"{{ 7*7 }}"#), "a quote is not escaped: {dot}");
}

#[test]
fn what_is_shown_is_the_same_each_time() {
    let (one, other) = (fifty(), fifty());
    assert_eq!(timing::html(&one), timing::html(&other));
    assert_eq!(timing::dot(&one), timing::dot(&other));
}

#[test]
fn the_committed_schema_of_time_flow_graphs_has_not_drifted() {
    let committed = include_str!("../../../schema/tfg.schema.json");
    assert!(
        committed == timing::schema(),
        "schema/tfg.schema.json has drifted; `onbeat schema tfg > schema/tfg.schema.json` makes \
         it again"
    );
}
