//! Pages as files: of one skeleton, well-formed, self-contained, and safe from the names they show.

use crate::common::measured::by_hand;
use crate::common::simulated::{ring, single};
use crate::common::synthetic::{hostile, paper, two_hosts};
use crate::studies;
use onbeat_measure::compare::{Kind, Quantity, Series, Subject, compare};
use onbeat_measure::measurement::Campaign;
use onbeat_measure::segments::Samples;
use onbeat_report::run::html;
use onbeat_report::{comparison, measurement, segments, simulation, timing};

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "br", "input"];

/// Checks that every element is closed where it should be, and returns the text of each start tag.
fn start_tags(page: &str) -> Vec<&str> {
    let (mut open, mut tags, mut rest) = (Vec::new(), Vec::new(), page);
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("every tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.starts_with('!') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "near {}", &rest[..rest.len().min(80)]);
            continue;
        }
        tags.push(tag);
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        if name == "script" || name == "style" {
            // Their text has no tags: it ends at their own end tag.
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends")..];
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "all elements are closed");
    tags
}

/// A page of each kind.
fn pages() -> Vec<(&'static str, String)> {
    let system = two_hosts();
    let large = ring(10, 3, 100, 2);
    let (measured, values) = by_hand();
    let latencies = Series::new("", "c to b", Quantity::Latency, (0..500).collect());
    let subject = Subject {
        kind: Kind::Run,
        of_machine: false,
        system: "two-hosts".into(),
        settings: Default::default(),
        series: vec![latencies],
    };
    let comparison = compare(&subject, &subject, 50).expect("of one system");
    let mut samples = Samples::default();
    samples.add("a:start,a:9,30,40,0,\n").expect("a sample");
    let subjects = [&subject, &subject];
    vec![
        ("run", html(&system, &here(), &paper(&system))),
        ("simulation", simulation::html(&large.system, &large.plan, &large.results())),
        ("comparison", comparison::html(&comparison, subjects, ["before", "after"])),
        ("measurement", measurement::html(&measured, &values)),
        ("campaign", measurement::campaign_html(&Campaign::new(Vec::new()))),
        ("segments", segments::html("program", &samples.measured(1, 0))),
        ("timing", timing::html(&studies::fifty())),
    ]
}

#[test]
fn every_page_is_well_formed_and_names_no_address_outside_itself() {
    for (_, page) in pages() {
        stands_alone(&page);
    }
}

#[test]
fn every_page_has_the_same_head_header_and_footer() {
    let pages = pages();
    for (kind, page) in &pages {
        for part in [
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
            "<button type=\"button\" id=\"theme\"",
            "<p class=\"kicker\">Onbeat · ",
            "whole nanoseconds",
            "<script type=\"application/json\" id=\"data\">",
        ] {
            // The one on time-flow graphs says where its rules are.
            let is_there = page.contains(part) || *kind == "timing" && part.starts_with("whole");
            assert!(is_there, "{kind}: {part}");
        }
        let counts = ["<header", "<main", "<footer", "<h1", "<style"];
        let counts = counts.map(|tag| page.matches(&format!("\n{tag}")).count());
        assert_eq!(counts, [1; 5], "{kind}");
        // The chart library is in those pages only that draw with it, and its licence with it.
        let has_charts = ["run", "comparison", "measurement"].contains(kind);
        for part in ["new uPlot(", "Licence of the chart library", "zoom by dragging"] {
            assert_eq!(page.contains(part), has_charts, "{kind}: {part}");
        }
    }
}

fn stands_alone(page: &str) {
    let tags = start_tags(page);
    // The namespace of a picture is a name.
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!page.contains("http://") && !page.contains("https://"), "an address");
    assert!(tags.iter().all(|t| !t.contains(" src=") && !t.contains("@import")), "a source");
    let ids: Vec<_> = tags.iter().filter_map(|t| t.split(" id=\"").nth(1)).collect();
    let ids: Vec<_> = ids.iter().map(|t| t.split('"').next().unwrap()).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique: {ids:?}");
}

/// The description of this directory.
fn here() -> [String; 1] {
    [".".to_owned()]
}

#[test]
fn names_from_the_description_stay_text() {
    let (system, runs) = hostile();
    let page = html(&system, &here(), &runs);
    let tags = start_tags(&page);
    assert!(tags.iter().all(|t| !["img", "i", "u", "s"].contains(t)), "a name became a tag");
    assert_eq!(tags.iter().filter(|t| t.starts_with("script")).count(), 3);
    assert!(!page.contains("alert(1)</script>"), "a name ends a script");
    assert!(page.contains("{{ 7*7 }}"), "a name was run as a template");
}

#[test]
fn the_page_shows_results_references_settings_and_how_to_repeat_each_run() {
    let system = two_hosts();
    let runs = paper(&system);
    let page = html(&system, &here(), &runs);
    for (_, _, result) in &runs {
        assert!(page.contains(&result.record_hash));
    }
    for text in [
        "onbeat run . --scenario unprotected --time virtual --duration 300s --seed 42<",
        "onbeat run . --scenario real-time --time real --duration 20s --seed 42<",
        "Austad et al. 2023, Table 7, no protection",
        "talker.p1 → b-cat1.p4 → b-cat2.p2 → listener",
        "5.632 Mb&#x2f;s, 1 stream",
        "stack at the talker",
        "512.00 µs",
    ] {
        assert!(page.contains(text), "no {text}");
    }
}

#[test]
fn another_file_and_an_earlier_plan_are_named_in_how_to_repeat_a_run() {
    let system = two_hosts();
    let subject = ["my line.toml", "--keep", "old.json"].map(str::to_owned);
    let page = html(&system, &subject, &paper(&system));
    let again = "onbeat run &#x27;my line.toml&#x27; --keep old.json --scenario unprotected --time";
    assert!(page.contains(again), "{page}");
}

#[test]
fn the_same_runs_make_the_same_page() {
    let system = two_hosts();
    let runs = paper(&system);
    assert!(html(&system, &here(), &runs) == html(&system, &here(), &runs));
}

#[test]
fn no_runs_make_a_page_too() {
    start_tags(&html(&two_hosts(), &here(), &Vec::new()));
}

#[test]
fn the_page_on_a_simulation_lists_what_was_broken() {
    let of = |latencies: &[i64]| {
        let simulated = single(latencies);
        simulation::html(&simulated.system, &simulated.plan, &simulated.results())
    };
    assert!(!of(&[50_000]).contains("Broken promises"));
    let page = of(&[50_001]);
    assert!(page.contains("Broken promises") && page.contains("exceeds the bound of 50 µs"));
    start_tags(&page);
    assert!(page == of(&[50_001]), "the same simulation makes the same page");
}
