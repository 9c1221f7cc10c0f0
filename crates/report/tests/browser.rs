//! The report and the page on a simulation in a real browser: are the charts drawn, do the tables
//! do what they should, and is there no error?

use crate::common::measured::by_hand;
use crate::common::simulated::{Simulated, ring, single};
use crate::common::synthetic::{Runs, dense, hostile, paper, two_hosts};
use crate::studies;
use onbeat_measure::compare::{self, Kind, Quantity, Series, Subject};
use onbeat_model::plan::{Launch, Plan, PortWindow};
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::system::{PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::timing::TimingReport;
use onbeat_report::{comparison, gates, measurement, run, simulation, timing};
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
    let dom = dom(name, &run::html(system, &[".".to_owned()], runs))?;
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

/// The page on a plan after `steps`: gates at every port, and windows for every channel.
fn gated(name: &str, system: &System, plan: &Plan, steps: &str) -> Option<String> {
    let mut plan = plan.clone();
    let us = Span::from_us;
    for port in &mut plan.ports {
        let entry = |open, span| GateEntry { open, span };
        let entries = vec![entry(32, us(10)), entry(223, us(40)), entry(255, us(950))];
        let (base, cycle) = (NetTime::ZERO, us(1_000));
        port.settings.gates.push(GateControl { base, cycle, entries, length_aware: true });
    }
    for (channel, planned) in system.channels.iter().zip(&mut plan.channels) {
        assert!(channel.interval < us(1_000_000));
        let ports = planned.paths.iter().flatten().zip(0..);
        let window = |(port, at): (&PortId, i64)| PortWindow {
            port: *port,
            start: us(20 * at),
            span: us(10),
        };
        let windows = ports.map(window).collect();
        planned.launch = Some(Launch { at: Span::ZERO, write: Span::ZERO, windows });
    }
    let page = gates::html(system, &plan);
    let page = page.replace("</body>", &format!("<script>{HANDS}{steps}</script></body>"));
    let dom = dom(name, &page)?;
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    Some(dom)
}

#[test]
fn gates_and_windows_of_a_plan_are_drawn_zoomed_and_filtered() {
    let mut system = two_hosts();
    system.channels[0].interval = Span::from_us(500);
    let runs = paper(&system);
    let plan = &runs[0].0;
    let steps = r#"
        const chart = document.getElementById("chart");
        const drawn = () => [chart.dataset.lanes, chart.dataset.blocks].map(Number);
        const press = (id) => document.getElementById(id).click();
        note("whole", drawn());
        for (let time = 0; time < 5; time++) press("in");
        note("zoomed", drawn());
        note("range", document.getElementById("range").textContent);
        press("whole");
        const filter = document.getElementById("filter");
        filter.value = "no such port";
        filter.dispatchEvent(new Event("input"));
        note("none", drawn());
        filter.value = document.querySelector("[aria-labelledby=channels] tbody th").textContent;
        filter.dispatchEvent(new Event("input"));
        note("of channel", drawn());
        const down = (key) => new KeyboardEvent("keydown", { key, cancelable: true });
        const key = (name) => chart.dispatchEvent(down(name));
        for (const one of ["+", "+", "ArrowRight", "ArrowLeft", "-"]) key(one);
        note("keys", document.getElementById("range").textContent);
    "#;
    let Some(dom) = gated("gates", &system, plan, steps) else { return };
    let seen = seen(&dom);
    let (ports, on_path) = (plan.ports.len(), plan.channels[0].tree_ports().len());
    // Two entries of each list close gates, and there are two windows in each cycle.
    assert_eq!(seen["whole"], serde_json::json!([ports, 2 * ports + 2 * on_path]));
    // From 484.375 to 515.625 µs only the second of the first port's windows is there.
    assert_eq!(seen["zoomed"], serde_json::json!([ports, 1]));
    assert_eq!(seen["range"], "484.375 µs to 515.625 µs, of a cycle of 1,000 µs");
    assert_eq!(seen["none"], serde_json::json!([0, 0]));
    assert_eq!(seen["of channel"], serde_json::json!([on_path, 4 * on_path]));
    assert_eq!(seen["keys"], "250 µs to 750 µs, of a cycle of 1,000 µs");
}

#[test]
fn hostile_names_of_a_plan_stay_text_in_the_browser() {
    let (system, runs) = hostile();
    let Some(dom) = gated("hostile-gates", &system, &runs[0].0, "") else { return };
    assert!(!dom.contains("<img") && !dom.contains("<b>"), "a name became an element");
    assert_eq!(dom.matches("<script").count(), 3, "a name became a script");
    assert!(dom.contains("&lt;/script&gt;&lt;b&gt;") && dom.contains("{{ 7*7 }}"));
}

#[test]
fn a_plan_without_gates_says_so() {
    let system = two_hosts();
    let page = gates::html(&system, &paper(&system)[0].0);
    assert!(page.contains("No port has gates") && !page.contains("<canvas"));
}

/// The page on a simulation after `steps`, a script that acts as a person would.
fn simulated(name: &str, simulated: &Simulated, steps: &str) -> Option<String> {
    let page = simulation::html(&simulated.system, &simulated.plan, &simulated.results());
    let page = page.replace("</body>", &format!("<script>{HANDS}{steps}</script></body>"));
    let dom = dom(name, &page)?;
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    Some(dom)
}

/// What a person does and sees: `note` keeps what a test looks at.
const HANDS: &str = r#"
const seen = {};
const note = (key, value) => {
  seen[key] = value;
  document.documentElement.dataset.seen = JSON.stringify(seen);
};
const table = (name) => document.getElementById(`${name}-table`);
const choose = (name, field, value) => {
  const input = document.getElementById(`${name}-filters`).elements[field];
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
const sort = (name, key) => table(name).querySelector(`[data-sort="${key}"]`).click();
const turn = (name, way) =>
  table(name).closest("section").querySelector(`[data-page="${way}"]`).click();
const texts = (cells) => [...cells].map((cell) => cell.textContent);
const rows = (name) => [...table(name).tBodies[0].rows].map((row) => texts(row.cells));
const column = (name, at) => rows(name).map((cells) => cells[at]);
const shown = (name) => Number(table(name).dataset.shown);
"#;

/// What the script noted, by key.
fn seen(dom: &str) -> serde_json::Value {
    let text = data(dom, "<html", "seen").replace("&quot;", "\"").replace("&amp;", "&");
    serde_json::from_str(&text).expect("it is our own")
}

/// 1,000 streams to three listeners each, among 240 nodes; one bound is broken.
fn large() -> Simulated {
    let mut large = ring(40, 5, 1000, 3);
    large.observed.streams[417].listeners[2].max = Some(onbeat_model::time::Span::from_ms(9));
    large
}

#[test]
fn a_thousand_streams_can_be_sorted_searched_and_turned_over() {
    let large = large();
    let page = simulation::html(&large.system, &large.plan, &large.results());
    assert!(page.len() < 5_000_000, "the page has {} octets", page.len());
    let steps = r#"
    note("first", rows("flow")[0]);
    note("in page", rows("flow").length);
    turn("flow", "last"); note("last page", rows("flow").length);
    note("page", table("flow").dataset.page);
    sort("flow", "max"); note("fastest", column("flow", 5).map(Number));
    sort("flow", "max"); note("slowest", column("flow", 5).map(Number));
    const marks = () => new Set([...document.querySelectorAll(".kept .range .bound")]
      .map((line) => line.getAttribute("x1"))).size;
    note("own scales", marks()); choose("flow", "scale", "time"); note("one scale", marks());
    choose("flow", "verdict", "broken"); note("broken", column("flow", 0));
    choose("flow", "verdict", ""); choose("flow", "queue", "6"); note("queue 6", shown("flow"));
    choose("flow", "queue", ""); choose("flow", "text", "s99 nowhere"); note("none", shown("flow"));
    choose("flow", "text", "S417"); note("found", column("flow", 0));
    table("flow").querySelector(".expand").click();
    note("terms", texts(document.querySelectorAll(".detail .terms td:nth-child(2)")));
    choose("port", "text", "b7."); note("ports", column("port", 0)); sort("port", "busy");
    note("ranges", document.querySelectorAll("svg.range .span").length);
    "#;
    let Some(dom) = simulated("thousand", &large, steps) else { return };
    let seen = seen(&dom);
    assert_eq!(data(&dom, "id=\"flow-table\"", "rows"), "3000");
    assert_eq!(data(&dom, "id=\"port-table\"", "rows"), large.system.ports.len().to_string());
    // The broken one comes first of all.
    assert_eq!(seen["first"][0], "s417from h17");
    assert_eq!((&seen["first"][5], &seen["first"][10]), (&"9000.00".into(), &"broken".into()));
    assert_eq!(
        (&seen["in page"], &seen["last page"], &seen["page"]),
        (&25.into(), &25.into(), &"119".into())
    );
    let numbers = |key: &str| -> Vec<f64> { serde_json::from_value(seen[key].clone()).unwrap() };
    assert!(numbers("fastest").is_sorted() && numbers("slowest").is_sorted_by(|a, b| a >= b));
    assert_eq!(numbers("slowest")[0], 9000.0);
    assert_eq!(seen["broken"], serde_json::json!(["s417from h17"]));
    // Each to its own scale, kept bounds stand at one place; on one scale they do not.
    assert_eq!(seen["own scales"], 1);
    assert!(seen["one scale"].as_u64() > Some(5), "{}", seen["one scale"]);
    let of_queue_6 = large.system.streams.iter().filter(|s| s.traffic_class == 6);
    assert_eq!(seen["queue 6"], of_queue_6.map(|s| s.listeners.len()).sum::<usize>());
    assert_eq!(seen["none"], 0);
    assert_eq!(seen["found"].as_array().map(Vec::len), Some(3));
    // All terms of the bound, and their sum.
    let terms: Vec<String> = serde_json::from_value(seen["terms"].clone()).unwrap();
    let hundredths = |text: &String| text.parse::<f64>().unwrap() * 100.0;
    let (total, terms) = terms.split_last().unwrap();
    let sum: f64 = terms.iter().map(hundredths).sum();
    assert!(terms.len() > 2 && (sum - hundredths(total)).abs() < terms.len() as f64, "{terms:?}");
    let ports = large.system.nodes.iter().find(|n| n.name == "b7").unwrap().ports.len();
    assert_eq!(seen["ports"].as_array().map(Vec::len), Some(ports));
    assert_eq!(seen["ranges"], 3);
    // Every node and every direction of every link is in the picture.
    assert_eq!(dom.matches("class=\"node ").count(), large.system.nodes.len());
    assert_eq!(dom.matches("stroke-width=").count(), large.system.ports.len());
    assert_eq!(data(&dom, "<html", "errors"), "[]");
}

#[test]
fn the_picture_zooms_by_buttons_and_keys_and_comes_back() {
    let steps = r#"
    const map = document.getElementById("map"), whole = map.getAttribute("viewBox");
    const press = (key) => map.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    document.querySelector('[data-zoom="in"]').click(); note("near", map.viewBox.baseVal.width);
    press("+"); note("nearer", map.viewBox.baseVal.width);
    const before = map.viewBox.baseVal.x;
    press("ArrowRight"); note("moved", map.viewBox.baseVal.x > before);
    press("0"); const [, , width] = map.getAttribute("viewBox").split(" ");
    note("back", Number(width) === Number(whole.split(" ")[2]));
    "#;
    let Some(dom) = simulated("zoom", &ring(6, 2, 12, 2), steps) else { return };
    let seen = seen(&dom);
    assert!(seen["nearer"].as_f64() < seen["near"].as_f64(), "{seen}");
    assert_eq!((&seen["moved"], &seen["back"]), (&true.into(), &true.into()));
}

#[test]
fn hostile_names_of_streams_and_terms_stay_text_in_the_browser() {
    let mut hostile = single(&[20_000, 60_000]);
    hostile.system.streams[0].name = "<img src=x onerror=alert(1)></script>".into();
    hostile.system.nodes[1].name = "{{ 7*7 }}<b>".into();
    let bound = hostile.plan.streams[0].bounds[0].as_mut().expect("it has one");
    bound.terms[1].what = "</script><i>term</i>".into();
    let steps = r#"document.querySelector(".expand").click(); note("name", rows("flow")[0][0]);"#;
    let Some(dom) = simulated("hostile-streams", &hostile, steps) else { return };
    assert!(!dom.contains("<img") && !dom.contains("<i>term"), "a name became an element");
    assert!(dom.contains("&lt;i&gt;term"), "the terms are not shown");
    assert!(dom.contains("{{ 7*7 }}"), "a name was run as a template");
}

/// The page on a time-flow graph after `steps`.
fn timed(name: &str, study: &TimingReport, steps: &str) -> Option<String> {
    let steps = format!("<script>{HANDS}{steps}</script></body>");
    let dom = dom(name, &timing::html(study).replace("</body>", &steps))?;
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    Some(dom)
}

#[test]
fn a_graph_of_54_nodes_is_drawn_such_that_nothing_hides_anything() {
    let study = studies::fifty();
    let steps = r#"
    const all = (within, selector) => [...within.querySelectorAll(selector)];
    const graph = document.querySelector('[data-level="program"] .tfg');
    const box = (element) => element.getBoundingClientRect();
    const shape = (node) => node.querySelector("circle, rect, path");
    const nodes = all(graph, "[data-node]");
    const parts = nodes.flatMap((node) => [shape(node), ...all(node, ".label")]);
    const meet = (a, b) =>
      a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const boxes = parts.map(box), whole = box(graph);
    note("nodes", nodes.length);
    note("outside", boxes.filter((b) => b.left < whole.left || b.right > whole.right
      || b.top < whole.top || b.bottom > whole.bottom || b.width === 0).length);
    note("meet", boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => meet(a, b))).length);
    // Symbols are within their shapes, at their own size.
    note("symbols out", nodes.filter((node) => {
      const text = node.querySelector(".symbol"), around = box(shape(node));
      return text && (box(text).left < around.left || box(text).right > around.right);
    }).length);
    note("shrunk", whole.width < graph.viewBox.baseVal.width - 1);
    "#;
    let Some(dom) = timed("fifty", &study, steps) else { return };
    let seen = seen(&dom);
    let nodes: usize = study.graph.tasks.iter().map(|task| task.nodes.len()).sum();
    assert_eq!(seen["nodes"], nodes);
    for none in ["outside", "meet", "symbols out"] {
        assert_eq!(seen[none], 0, "{none}");
    }
    assert_eq!(seen["shrunk"], false);
}

#[test]
fn levels_can_be_switched_and_a_node_leads_to_its_columns() {
    let steps = r#"
    const visible = (selector) => [...document.querySelectorAll(selector)]
      .filter((element) => element.offsetParent !== null);
    note("levels", visible("[data-level]").map((part) => part.dataset.level));
    document.querySelector('[data-show="platform"]').click();
    note("switched", visible("[data-level]").map((part) => part.dataset.level));
    const node = document.querySelector('[data-level="platform"] [data-node="4-2"]');
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    note("tasks", visible("[data-task]").map((part) => part.dataset.task));
    note("columns", texts(visible("[data-column].chosen")));
    "#;
    let Some(dom) = timed("levels", &studies::fifty(), steps) else { return };
    let seen = seen(&dom);
    let both = |level| serde_json::json!([level, level]);
    assert_eq!((&seen["levels"], &seen["switched"]), (&both("program"), &both("platform")));
    assert_eq!(seen["tasks"], serde_json::json!(["4"]));
    assert_eq!(seen["columns"], serde_json::json!(["tA(c4)", "tR(c4)"]));
}

#[test]
fn hostile_names_of_tasks_and_channels_stay_text_in_the_browser() {
    let Some(dom) = timed("hostile-tasks", &studies::hostile(), "") else { return };
    assert!(!dom.contains("<img"), "a name became an element");
    assert_eq!(dom.matches("<script").count(), 3, "a name became a script");
    assert!(dom.contains("{{ 7*7 }}"), "a name was run as a template");
}

#[test]
fn every_series_of_a_measurement_has_its_histogram_and_its_course() {
    let (measured, values) = by_hand();
    let Some(dom) = dom("measurement", &measurement::html(&measured, &values)) else { return };
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    // Four histograms; cyclictest's series has no course.
    assert_eq!(data(&dom, "<html", "charts"), "7");
    assert_eq!(dom.matches("<canvas").count(), 7);
    for (chart, count) in [("s0h", "100"), ("s1h", "4"), ("s2h", "2"), ("s3h", "3")] {
        assert_eq!(data(&dom, &format!("id=\"{chart}\""), "count"), count);
    }
    for (chart, points) in [("s0c", "100"), ("s1c", "4"), ("s3c", "3")] {
        assert_eq!(data(&dom, &format!("id=\"{chart}\""), "points"), points);
    }
}

/// A run with two series of 1,000 latencies about `middle_us` and some losses.
fn compared(names: [&str; 2], middle_us: i64) -> Subject {
    let latencies = |number: i64| -> Vec<i64> {
        let value = |i: i64| middle_us * 1_000 + (i * 7_919 + number) % 1_009 * 10;
        (0..1_000).map(|i| if i == 77 { 40 * value(i) } else { value(i) }).collect()
    };
    let series = |number: i64, name: &str, quantity, values| {
        Series::new("protected", &format!("{name} to {number}"), quantity, values)
    };
    let lost = (0..1_000).map(|i| i64::from(i % 97 == 0)).collect();
    Subject {
        kind: Kind::Run,
        of_machine: false,
        system: names[0].to_owned(),
        settings: [("time".to_owned(), format!("{names:?} {middle_us}"))].into(),
        series: vec![
            series(1, names[1], Quantity::Latency, latencies(1)),
            series(2, names[1], Quantity::Latency, latencies(2)),
            series(1, names[1], Quantity::Lost, lost),
        ],
    }
}

/// The page on a comparison after `steps`.
fn compared_page(name: &str, names: [&str; 2], steps: &str) -> Option<String> {
    let [first, second] = [compared(names, 60), compared(names, 90)];
    let comparison = compare::compare(&first, &second, 50).expect("of one system");
    let page = comparison::html(&comparison, [&first, &second], [names[1], "after"]);
    let steps = format!("<script>{HANDS}{steps}</script></body>");
    let dom = dom(name, &page.replace("</body>", &steps))?;
    assert_eq!(data(&dom, "<html", "errors"), "[]");
    Some(dom)
}

#[test]
fn both_distributions_of_each_series_are_drawn_beside_the_verdicts() {
    let steps = r##"
    const badges = (selector) => texts(document.querySelectorAll(`${selector} .badge`));
    note("conclusion", document.getElementById("conclusion").textContent);
    note("rows", document.querySelectorAll("#figure-table tbody tr").length);
    note("worse", badges("#figure-table").filter((text) => text === "worse").length);
    note("charts", badges("figure"));
    note("before", document.getElementById("s0d").dataset.tail);
    document.querySelector('[data-tail="s0"]').click();
    note("after", document.getElementById("s0d").dataset.tail);
    "##;
    let Some(dom) = compared_page("compared", ["two-hosts", "joint"], steps) else { return };
    let seen = seen(&dom);
    assert_eq!(seen["conclusion"], "worse");
    // Seven figures of each series of times, and the share of losses.
    assert_eq!(seen["rows"], 15);
    assert_eq!(seen["charts"], serde_json::json!(["worse", "worse"]));
    // Of 1,000 values p10, p50, p90 and max are judged.
    assert_eq!(seen["worse"], 8);
    assert_eq!(data(&dom, "<html", "charts"), "4");
    assert_eq!(dom.matches("<canvas").count(), 4);
    for id in ["s0h", "s1h"] {
        assert_eq!(data(&dom, &format!("id=\"{id}\""), "values"), "1000,1000");
    }
    assert_eq!((&seen["before"], &seen["after"]), (&"false".into(), &"true".into()));
}

#[test]
fn hostile_names_of_series_and_directories_stay_text_in_the_browser() {
    let names = ["</script><img src=x onerror=alert(1)>", "{{ 7*7 }}<img src=x>"];
    let Some(dom) = compared_page("hostile-compared", names, "") else { return };
    assert!(!dom.contains("<img"), "a name became an element");
    assert!(dom.contains("{{ 7*7 }}"), "a name was run as a template");
}
