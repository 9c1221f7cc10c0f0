//! What is shown of runs: the rows of the terminal's table, and a line per message as CSV.

use crate::common::plan;
use crate::common::small::{log_of, one_channel, only_on, run, two_listeners};
use onbeat_model::system::{ChannelId, Quantity, Reference, Subject};
use onbeat_model::time::Span;
use onbeat_report::csv;
use onbeat_report::run::{RowKind, rows};

#[test]
fn the_csv_has_a_line_per_message_copy_and_listener() {
    let (system, _, log) = two_listeners();
    let mut text = Vec::new();
    csv(&system, &log, &mut text).unwrap();
    insta::assert_snapshot!("small_csv", String::from_utf8(text).unwrap());
}

#[test]
fn the_table_shows_published_figures_below_the_run_they_belong_to() {
    let (mut system, plan) = one_channel();
    system.references = vec![Reference {
        source: "Somebody 2023, Table 7".into(),
        scenario: "noise".into(),
        of: Subject::Channel(ChannelId(0)),
        quantity: Quantity::Latency,
        max: Some(Span::from_ns(4_196_900)),
        min: None,
        avg: Some(Span::from_ns(126_200)),
        stddev: None,
        lost_per_mille: Some(483),
        note: None,
    }];
    let mut log = log_of(&system, &[Some(100), None]);
    let plain = run(&system, &plan, &log);
    log.scenario = "noise".into();
    let found = rows(&system, &[run(&system, &plan, &log), plain]);
    let cells: Vec<_> = found.iter().map(|row| row.cells.join("|")).collect();
    let expected = [
        "noise|virtual|c|2|1 (50.0 %)|100.00|100.00|100.00|0.00|200.00|broken",
        "↳ Somebody 2023, Table 7||c||48.3 %|4196.90||126.20|||",
        "(run settings)|virtual|c|2|1 (50.0 %)|100.00|100.00|100.00|0.00|200.00|broken",
    ];
    assert_eq!(cells, expected);
    assert_eq!(found[1].kind, RowKind::Reference);
}

#[test]
fn of_a_run_on_one_host_the_other_end_is_left_blank() {
    let (system, _) = one_channel();
    let unprotected = plan(&system, &[None]);
    let log = only_on(0, log_of(&system, &[Some(100), None, Some(120)]));
    let mut lines = Vec::new();
    csv(&system, &log, &mut lines).expect("written");
    let lines = String::from_utf8(lines).expect("UTF-8");
    assert!(lines.lines().skip(1).all(|line| line.ends_with(",,,")), "{lines}");
    let mut log = only_on(1, log_of(&system, &[Some(100), None, None, Some(120)]));
    log.ends[1].records[1].gap = 2;
    let row = &rows(&system, &[run(&system, &unprotected, &log)])[0];
    assert_eq!(row.cells[1], "b on eth0");
    assert_eq!((row.cells[3].as_str(), row.cells[4].as_str()), ("–", "2 (50.0 %)"));
}

#[test]
fn no_csv_is_made_of_records_of_another_system() {
    let (system, _) = one_channel();
    let mut log = log_of(&system, &[Some(100)]);
    log.ends[1].node.0 = 7;
    assert!(csv(&system, &log, &mut Vec::new()).is_err());
    let elsewhere = only_on(99, log_of(&system, &[]));
    assert!(csv(&system, &elsewhere, &mut Vec::new()).is_err());
}
