//! Measurements made by hand: the table, the pages, the samples.

use crate::common::measured::by_hand;
use onbeat_measure::measurement::{
    Campaign, CampaignScenario, Measurement, ScenarioName, ScenarioOutcome, State,
};
use onbeat_report::measurement::{campaign_html, campaign_table, csv, html, table};

/// The words of the line that begins with `name`.
fn words<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{table}"));
    line.split("  ").map(str::trim).filter(|word| !word.is_empty()).skip(1).collect()
}

#[test]
fn the_table_has_the_figures_and_the_papers_below() {
    let (measurement, _) = by_hand();
    let table = table(&measurement);
    // Sum 99 · 90 + 1,000 = 9,910: mean 99. Deviations 99 · 9² + 901² = 819,820; √8,198 = 90.
    assert_eq!(
        words(&table, "clock.lc"),
        ["100", "90 ns", "99 ns", "90 ns", "90 ns", "1 µs", "1 µs", "90 ns"]
    );
    let published = table.lines().find(|line| line.contains("fig. 3")).expect("the paper's");
    for figure in ["71 ns", "13 µs", "50 ns"] {
        assert!(published.contains(figure), "{published}");
    }
    // By size; with the signs below.
    let offset = words(&table, "load.sync.offset");
    assert_eq!((offset[1], offset[2], offset[6]), ("0 ns", "21.667 µs", "61 µs"));
    assert!(table.contains("load.sync.offset: with signs -61 µs to 4 µs, -19 µs on"), "{table}");
    assert!(table.contains("fig. 12, RT-SMS") && table.contains("fig. 13, CPUSET-SMS"), "{table}");
    // Medians 10 and 10 µs; the 99th percentiles are the largest, 500 and 20 µs.
    let compared = "latency.lc beside latency.lc.cyclictest in the same run: median +0.0 %, \
                    p99 +2400.0 %";
    assert!(table.contains(compared), "{table}");
    let stalled = "latency.lc: later than 80 µs at 1 of 4 instants, 1 of these all 2 sides \
                   together, for up to 400 µs";
    assert!(table.contains(stalled), "{table}");
    assert!(table.contains("note: memory is not locked"), "{table}");
}

#[test]
fn samples_are_one_column_in_their_order() {
    assert_eq!(csv(&[3, -1, 2]), "value_ns\n3\n-1\n2\n");
}

#[test]
fn the_page_has_a_histogram_of_each_series_and_nothing_hostile() {
    let (measurement, values) = by_hand();
    let page = html(&measurement, &values);
    for id in ["s0h", "s0c", "s1h", "s2h", "s3h", "s3c"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(!page.contains("id=\"s2c\""), "cyclictest keeps no order");
    assert!(page.contains("&lt;Atom &amp; Co&gt;") && !page.contains("<Atom"));
    assert!(page.contains("Test 5: tests 3 and 4 under load") && !page.contains("Test 2: the"));
}

fn scenario(id: &str, state: State, measurement: Option<Measurement>) -> CampaignScenario {
    let name = ScenarioName {
        id: id.into(),
        isolation: "none".into(),
        clock: "SMS".into(),
        node: "slave".into(),
    };
    let why = vec!["no PTP <hardware>".to_owned()];
    let tuned = measurement.is_some().then(|| "cpuset on processors <2>".to_owned());
    CampaignScenario { scenario: ScenarioOutcome { name, state, why, tuned }, measurement }
}

#[test]
fn a_campaign_says_of_each_scenario_what_was_measured_or_why_not() {
    let campaign = Campaign::new(vec![
        scenario("RT-SMS-SLAVE", State::Partly, Some(by_hand().0)),
        scenario("TUNED-SMS-SLAVE", State::Cannot, None),
    ]);
    let table = campaign_table(&campaign);
    let measured = words(&table, "RT-SMS-SLAVE");
    // State; LC min, max and σ; GC; latencies; offsets without and with load.
    let figures = ["partly", "90 ns", "1 µs", "90 ns", "–", "500 µs", "–", "–", "–"];
    assert_eq!(measured[..9], figures);
    assert_eq!(measured[10], "61 µs", "the end that is further from zero");
    assert_eq!(words(&table, "TUNED-SMS-SLAVE")[..2], ["cannot", "–"]);
    assert!(table.contains("TUNED-SMS-SLAVE, cannot: no PTP <hardware>"), "{table}");
    let page = campaign_html(&campaign);
    assert!(page.contains("href=\"RT-SMS-SLAVE/report.html\""));
    assert!(!page.contains("href=\"TUNED-SMS-SLAVE"));
    assert!(page.contains("no PTP &lt;hardware&gt;") && page.contains("3.2 µs"));
    assert!(table.contains("RT-SMS-SLAVE, tuned: cpuset on processors <2>"), "{table}");
    assert!(page.contains("RT-SMS-SLAVE: cpuset on processors &lt;2&gt;"));
    let again: Campaign = serde_json::from_str(&campaign.to_json()).expect("the same");
    assert_eq!(again, campaign);
}
