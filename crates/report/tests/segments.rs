//! What is shown of measured segments.

use onbeat_measure::segments::{Measured, Samples, WARNING};
use onbeat_report::segments::{html, table};
use proptest::prelude::*;

const TEXT: &str = "src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns\n\
    b:start,b:7,100,300,5,\n\
    b:start,b:7,120,300,9,\n\
    b:start,b:7,201,400,2,17\n";

fn measured(text: &str) -> Measured {
    let mut samples = Samples::default();
    let _ = samples.add(text);
    samples.measured(1, 0)
}

#[test]
fn the_table_and_the_page_show_the_warning_and_every_segment() {
    let measured = measured(TEXT);
    let table = table(&measured);
    let page = html("<program>", &measured);
    for text in [&table, &page] {
        assert!(text.contains(WARNING), "{text}");
        assert!(text.contains("b: start → 7"), "{text}");
    }
    assert!(page.contains("&lt;program&gt;") && !page.contains("<program>"));
    assert!(
        table.lines().any(|l| l.starts_with("b: start → 7") && l.ends_with("  █ █")),
        "{table}"
    );
}

proptest! {
    #[test]
    fn whatever_was_measured_can_be_shown(text in "([a:0-9,.\n-]|a:1,a:2,1,2,3,4\n){0,40}") {
        let measured = measured(&text);
        let rows = table(&measured).lines().filter(|line| line.contains(" → ")).count();
        prop_assert_eq!(rows, measured.segments.len());
        prop_assert!(html("x", &measured).ends_with("</html>"));
    }
}
