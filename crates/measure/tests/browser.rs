//! The report in a real browser: are the charts drawn, and is there no error?

mod common;

use common::synthetic::{Runs, dense, hostile, paper, two_hosts};
use onbeat_measure::report;
use onbeat_model::system::System;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The page after its script has run, or `None` where there is no browser.
fn dom(name: &str, html: &str) -> Option<String> {
    let Some(browser) = browser() else {
        assert!(
            std::env::var_os("ONBEAT_REQUIRE_BROWSER").is_none_or(|v| v != "1"),
            "chromium is not installed and ONBEAT_REQUIRE_BROWSER is 1"
        );
        eprintln!("not run: chromium is not installed; `make test` installs it");
        return None;
    };
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&place).expect("a directory for the test");
    let page = place.join("report.html");
    std::fs::write(&page, html).expect("a page for the test");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=5000"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1280,900", "--dump-dom"])
        .arg(format!("--user-data-dir={}", place.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("a page in UTF-8"))
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    places.flat_map(|place| NAMES.map(|name| place.join(name))).find(|file| file.is_file())
}

/// The value of a data attribute in the start tag that holds `within`.
fn data<'a>(dom: &'a str, within: &str, name: &str) -> &'a str {
    let at = dom.find(within).unwrap_or_else(|| panic!("no {within} in the page"));
    let start = dom[..at + 1].rfind('<').expect("it is in a tag");
    let tag = &dom[start..][..dom[start..].find("\">").expect("the tag ends") + 2];
    let name = format!("data-{name}=\"");
    let at = tag.find(&name).unwrap_or_else(|| panic!("no {name} in {tag}")) + name.len();
    &tag[at..][..tag[at..].find('"').expect("the value ends")]
}

fn check(name: &str, system: &System, runs: &Runs, charts: &str) -> Option<String> {
    let dom = dom(name, &report::html(system, runs))?;
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    assert_eq!(data(&dom, "<html", "charts"), charts);
    assert_eq!(dom.matches("<canvas").count().to_string(), charts);
    Some(dom)
}

#[test]
fn every_message_and_every_loss_of_the_papers_experiment_is_drawn() {
    let system = two_hosts();
    let runs = paper(&system);
    // Per run one chart of latencies and three of wake-up errors.
    let Some(dom) = check("paper", &system, &runs, "12") else { return };
    for (run, (_, _, result)) in runs.iter().enumerate() {
        let channel = &result.channels[0];
        let chart = format!("id=\"r{run}c0l0\"");
        assert_eq!(data(&dom, &chart, "points"), channel.received.expect("both sides").to_string());
        assert_eq!(data(&dom, &chart, "lost"), channel.lost.expect("both sides").to_string());
    }
    assert!(runs[0].2.channels[0].lost > Some(5_000), "the experiment without protection loses");
}

#[test]
fn three_hundred_thousand_messages_are_reduced_without_dropping_a_loss() {
    let system = two_hosts();
    let runs = dense(&system);
    let Some(dom) = check("dense", &system, &runs, "4") else { return };
    let channel = &runs[0].2.channels[0];
    let chart = "id=\"r0c0l0\"";
    assert_eq!(data(&dom, chart, "lost"), channel.lost.expect("both sides").to_string());
    let points: u64 = data(&dom, chart, "points").parse().expect("a count");
    assert!(points > 1_000 && points <= 10_000, "{points} points");
}

#[test]
fn hostile_names_stay_text_in_the_browser() {
    let (system, runs) = hostile();
    let Some(dom) = check("hostile", &system, &runs, "2") else { return };
    assert!(!dom.contains("<img"), "a name became an element");
    assert_eq!(dom.matches("<script").count(), 3, "a name became a script");
}
