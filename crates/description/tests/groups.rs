//! Groups: a group is short for its tables written out, and what is wrong in a copy is told there.

use onbeat_description::Loaded;
use onbeat_model::codes::description as codes;
use onbeat_model::diagnostic::{Origin, Severity};
use onbeat_model::limits;
use onbeat_model::system::System;
use proptest::prelude::*;
use std::fmt::Write;

fn load(text: &str) -> Loaded {
    onbeat_description::load("system.toml", text, &mut |_| Err("there are no files".to_owned()))
}

/// The system without places in the text.
fn system(text: &str) -> System {
    let loaded = load(text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    let mut system = loaded.system.expect("nothing is wrong");
    system.each_origin(&mut |origin| *origin = Origin::default());
    system
}

/// What is wrong, as `code line: message`.
fn wrong(text: &str) -> Vec<String> {
    let loaded = load(text);
    let said = loaded.diagnostics.iter().map(|found| {
        let (at, _) = found.at.as_ref().expect("a place");
        let end = at.end as usize;
        assert!(at.start <= at.end && end <= text.len(), "{found:?}");
        assert!(!found.help.is_empty(), "{found:?}");
        format!("{} {}: {}", found.code, loaded.sources[0].line(at.start), found.message)
    });
    said.collect()
}

/// A tree of racks, each a ring of switches with hosts. The same twice: with groups, and written
/// out by loops here, with this test's own arithmetic.
#[derive(Clone, Debug)]
struct Plant {
    racks: u64,
    switches: u64,
    ios: u64,
    ports: bool,
    traffic: bool,
}

impl Plant {
    fn grouped(&self) -> String {
        let mut text = HEAD.to_owned();
        text += r#"
            [[group]]
            name = "rack"
            count = RACKS
            [[group.link]]
            ends = ["s{rack}-0", "core.down{rack + 1}"]
            rate_mbps = 1000
            [[group.bridge]]
            name = "top{rack:x}"
            forwarding_ns = "=100 * rack"
            [[group.link]]
            ends = ["top{rack:x}", "core"]
            rate_mbps = 1000
            [[group.group]]
            name = "s"
            count = SWITCHES
            [[group.group.bridge]]
            name = "s{rack}-{s}"
            clock = { offset_ns = "=-s" }
        "#;
        text += if self.switches > 2 { GROUPED_RING } else { "" };
        text += if self.switches == 2 { GROUPED_PAIR } else { "" };
        text += if self.switches > 2 && self.ports { GROUPED_PORT } else { "" };
        text += r#"
            [[group.group.group]]
            name = "io"
            count = IOS
            [[group.group.group.host]]
            name = "io{rack}-{s}-{io:02}"
            stack_tx_ns = { histogram = [["=io", "=1 + s"]] }
            [[group.group.group.link]]
            ends = ["io{rack}-{s}-{io:02}", "s{rack}-{s}"]
            rate_mbps = 1000
        "#;
        text += if self.traffic { GROUPED_TRAFFIC } else { "" };
        let text = text.replace("RACKS", &self.racks.to_string());
        let text = text.replace("SWITCHES", &self.switches.to_string());
        text.replace("IOS", &self.ios.to_string())
    }

    fn written_out(&self) -> Result<String, std::fmt::Error> {
        let mut tables = HEAD.to_owned();
        for rack in 0..self.racks {
            writeln!(tables, "[[link]]\nends = ['s{rack}-0', 'core.down{}']", rack + 1)?;
            writeln!(tables, "rate_mbps = 1000\n[[bridge]]\nname = 'top{rack:x}'")?;
            writeln!(tables, "forwarding_ns = {}", 100 * rack)?;
            writeln!(tables, "[[link]]\nends = ['top{rack:x}', 'core']\nrate_mbps = 1000")?;
            if self.switches == 2 {
                writeln!(tables, "[[link]]\nends = ['s{rack}-0', 's{rack}-1']\nrate_mbps = 100")?;
            }
            for s in 0..self.switches {
                self.switch(&mut tables, rack, s)?;
                (0..self.ios).try_for_each(|io| self.host(&mut tables, rack, s, io))?;
            }
        }
        Ok(tables)
    }

    fn switch(&self, text: &mut String, rack: u64, s: u64) -> std::fmt::Result {
        writeln!(text, "[[bridge]]\nname = 's{rack}-{s}'\nclock = {{ offset_ns = -{s} }}")?;
        if self.switches <= 2 {
            return Ok(());
        }
        let next = if s + 1 == self.switches { 0 } else { s + 1 };
        writeln!(text, "[[link]]\nends = ['s{rack}-{s}.right', 's{rack}-{next}.left']")?;
        writeln!(text, "rate_mbps = 100\npropagation_ns = {s}")?;
        if !self.ports {
            return Ok(());
        }
        writeln!(text, "[[port]]\nname = 's{rack}-{s}.left'\nvlans = [2, {}]", 3 + s)?;
        writeln!(text, "idle_slope_bps = {{ 7 = {} }}\n[[port.gates]]", 1_000_000 + rack)?;
        writeln!(text, "entries = [{{ open = [7, {}], interval_ns = {} }}]", s % 7, 1_000 + s)
    }

    fn host(&self, text: &mut String, rack: u64, s: u64, io: u64) -> std::fmt::Result {
        let name = format!("io{rack}-{s}-{}{io}", if io < 10 { "0" } else { "" });
        writeln!(text, "[[host]]\nname = '{name}'")?;
        writeln!(text, "stack_tx_ns = {{ histogram = [[{io}, {}]] }}", 1 + s)?;
        writeln!(text, "[[link]]\nends = ['{name}', 's{rack}-{s}']\nrate_mbps = 1000")?;
        if !self.traffic {
            return Ok(());
        }
        let phase = 7 * (9 + s - rack) / 2;
        let number = (self.switches * rack + s) * self.ios + io;
        writeln!(text, "[[stream]]\nname = 'to{rack}-{s}-{io}'\ntalker = 'host'")?;
        writeln!(text, "listeners = ['{name}']\ntraffic_class = {}\nframe_octets = 100", io % 3)?;
        writeln!(text, "interval_ns = 1_000_000\nphase_ns = {phase}\n[[channel]]")?;
        writeln!(text, "name = 'c{number}'\ndestination = '01:00:5e:{rack:02x}:{s:02x}:{io:02x}'")?;
        writeln!(text, "stream_id = 0x{:x}\nclass = 'A'\nsize_octets = 8", number + (1 << 63))?;
        writeln!(text, "rate_hz = 50\ntalker = '{name}'\nlisteners = ['host']")
    }
}

const HEAD: &str = r#"
format = 1
name = "x"
[run]
duration_s = 1
[[bridge]]
name = "core"
[[host]]
name = "host"
[[link]]
ends = ["host", "core"]
rate_mbps = 1000
"#;

const GROUPED_RING: &str = r#"
    [[group.group.link]]
    ends = ["s{rack}-{s}.right", "s{rack}-{ (s + 1) % SWITCHES }.left"]
    rate_mbps = 100
    propagation_ns = "=s"
"#;

/// Back in the outer group.
const GROUPED_PAIR: &str = r#"
    [[group.link]]
    ends = ["s{rack}-0", "s{rack}-1"]
    rate_mbps = 100
"#;

const GROUPED_PORT: &str = r#"
    [[group.group.port]]
    name = "s{rack}-{s}.left"
    idle_slope_bps = { 7 = "=1_000_000 + rack" }
    vlans = [2, "=3 + s"]
    gates = [{ entries = [{ open = [7, "=s % 7"], interval_ns = "=1000 + s" }] }]
"#;

const GROUPED_TRAFFIC: &str = r#"
    [[group.group.group.stream]]
    name = "to{rack}-{s}-{io}"
    talker = "host"
    listeners = ["io{rack}-{s}-{io:02}"]
    traffic_class = "=io % 3"
    frame_octets = 100
    interval_ns = 1_000_000
    phase_ns = "=7 * (s - rack + 9) / 2"
    [[group.group.group.channel]]
    name = "c{(SWITCHES*rack + s)*IOS + io}"
    destination = "01:00:5e:{rack:02x}:{s:02x}:{io:02x}"
    stream_id = "=9_223_372_036_854_775_808 + (SWITCHES*rack + s)*IOS + io"
    class = "A"
    size_octets = 8
    rate_hz = 50
    talker = "io{rack}-{s}-{io:02}"
    listeners = ["host"]
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn groups_are_the_system_that_is_written_out(
        (racks, switches, ios) in (1u64..4, 1u64..6, 1u64..12),
        (ports, traffic) in any::<(bool, bool)>(),
    ) {
        let plant = Plant { racks, switches, ios, ports, traffic };
        let [grouped, written] = [plant.grouped(), plant.written_out().expect("text")];
        prop_assert_eq!(system(&grouped), system(&written));
    }
}

/// A right description of so many copies of a host with a link, whose tables have these lines.
fn copies(count: u64, lines: &str) -> String {
    let group = format!("[[group]]\nname = \"io\"\ncount = {count}\n");
    let host = "[[group.host]]\nname = \"io{io}\"\n";
    let link = "[[group.link]]\nends = [\"io{io}\", \"core\"]\nrate_mbps = 100\n";
    format!("{HEAD}{group}{host}{link}{lines}")
}

/// What a group can have beside hosts and links.
const OTHER_TABLES: &str = r#"
    [[group.bridge]]
    name = "b{io}"
    device = "veth"
    [[group.link]]
    ends = ["b{io}", "core"]
    rate_mbps = 100
    [[group.channel]]
    name = "c{io}"
    destination = "01:00:5e:00:00:{io:02x}"
    stream_id = "=1 + io"
    class = "A"
    size_octets = 8
    rate_hz = 50
    talker = "io{io}"
    listeners = ["host"]
    [[group.stream]]
    name = "s{io}"
    talker = "io{io}"
    listeners = ["host"]
    traffic_class = 1
    frame_octets = 100
    rate_hz = 1
    [[group.fault]]
    node = "b{io}"
    [[group.program]]
    name = "p{io}"
    host = "io{io}"
    user = "u{io}"
    command = ["true", "{{", "{io}"]
    [[group.noise]]
    name = "n{io}"
    from = "io{io}"
    to = "host"
    size_octets = 1
    rate_mbps = 1
    [[group.tcp]]
    name = "t{io}"
    talker = "io{io}"
    listener = "host"
    writes_octets = ["=1 + io"]
    interval_ns = 1_000_000
    [[group.chain]]
    name = "c{io}"
    channels = ["c{io}"]
    deadline_us = 1000
"#;

#[test]
fn no_place_of_a_system_is_outside_the_text() {
    let every = include_str!("good/every-key.toml");
    let all = copies(3, OTHER_TABLES);
    for text in [&all, every] {
        let mut read = |name: &str| {
            let good = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/good/");
            std::fs::read_to_string(format!("{good}{name}")).map_err(|error| error.to_string())
        };
        let loaded = onbeat_description::load("x", text, &mut read);
        let errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        assert_eq!(errors.count(), 0, "{:?}", loaded.diagnostics);
        let mut system = loaded.system.expect("nothing is wrong");
        // What `each_origin` forgets would still be there.
        system.each_origin(&mut |origin| {
            assert!(origin.start < origin.end && origin.end as usize <= text.len(), "{origin:?}");
            *origin = Origin::default();
        });
        let shown = format!("{system:?}");
        let places = shown.match_indices("Origin { file: ").map(|(at, _)| &shown[at..]);
        let unknown: Vec<&str> = places
            .filter(|it| !it.starts_with("Origin { file: 0, start: 0, end: 0 }"))
            .map(|it| &it[..60.min(it.len())])
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    let last = &system(&all).programs[2];
    assert_eq!(format!("{:?}", last.command), r#"["true", "{", "2"]"#);
}

#[test]
fn what_is_wrong_in_copies_is_told_once_with_the_first_copy() {
    let channel = "[[group.noise]]\nname = \"n{io}\"\nfrom = \"io{io}\"\nto = \"io{io + 1}\"\n\
                   size_octets = \"=1470 + io\"\nrate_mbps = 1\n";
    let text = copies(5, channel);
    let line = |part: &str| 1 + text.lines().position(|line| line.contains(part)).expect(part);
    assert_eq!(
        wrong(&text),
        [
            format!("OB1021 {}: unknown node `io5` (io = 4)", line("to = ")),
            format!(
                "OB1011 {}: noise source `n3`: `size_octets` is 1473 (io = 3, and 1 other)",
                line("size_octets")
            ),
        ]
    );
    let loaded = load(&copies(4, "").replace("\"io{io}\"\n", "\"io\"\n"));
    let [second, unlinked] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics) };
    assert_eq!(second.code, codes::DUPLICATE_NAME);
    assert_eq!(second.message, "duplicate node name `io` (io = 1, and 2 others)");
    assert_eq!(second.related[0].1, "the first (io = 0)");
    assert_eq!(unlinked.code, codes::UNKNOWN_NODE);
    let nested = format!(
        "{HEAD}[[group]]\nname = \"a\"\ncount = 2\n[[group.group]]\nname = \"b\"\ncount = 3\n\
         [[group.group.noise]]\nname = \"n{{a}}{{b}}\"\nfrom = \"host\"\nto = \"x{{b / 2}}\"\n\
         size_octets = 1\nrate_mbps = \"{{b}}\"\n"
    );
    assert_eq!(
        wrong(&nested).iter().map(|it| it.split_once(": ").expect("two").1).collect::<Vec<_>>(),
        [
            "unknown node `x0` (a = 0, b = 0, and 5 others)",
            "a value of the wrong type: invalid type: string \"0\", expected i64 \
             (a = 0, b = 0, and 5 others)",
        ]
    );
}

#[test]
fn an_unknown_name_in_many_copies_is_compared_with_all_names_only_once() {
    let stream = "[[group]]\nname = \"many\"\ncount = 20_000\n\
        [[group.stream]]\nname = \"s{many}\"\ntalker = \"io{many}x\"\nlisteners = [\"host\"]\n\
        traffic_class = 1\nframe_octets = 100\nrate_hz = 1\n";
    let said = wrong(&copies(2_000, stream));
    let [said] = &said[..] else { panic!("{said:?}") };
    assert!(said.ends_with("unknown node `io0x` (many = 0, and 19999 others)"), "{said}");
}

#[test]
fn what_cannot_be_read_is_not_read_in_all_copies() {
    let keys: String = (0..32).map(|key| format!("k{key} = 1\n")).collect();
    let group = "[[group]]\nname = \"many\"\ncount = 9_000\n[[group.noise]]\n";
    let said = wrong(&format!("{HEAD}{group}{keys}"));
    assert_eq!(said.len(), limits::KEY_ERRORS);
    assert!(said.iter().all(|it| it.ends_with("` (many = 0, and 7 or more others)")), "{said:?}");
    let said = wrong(&format!("{HEAD}{group}name = \"n{{many - 20}}\"\n"));
    let [said] = &said[..] else { panic!("{said:?}") };
    assert!(said.ends_with("is negative in a text (many = 0, and 7 or more others)"), "{said}");
}

#[test]
fn groups_are_held_to_the_limits_before_anything_is_made() {
    let found = |text: &str| load(text).diagnostics.iter().map(|d| d.code).collect::<Vec<_>>();
    // The host of the head is one more.
    assert_eq!(found(&copies(limits::NODES as u64 - 1, "")), []);
    assert_eq!(found(&copies(limits::NODES as u64, "")), [codes::TOO_MANY]);
    let deep = |levels: usize, count: u64, table: &str| {
        let mut text = HEAD.to_owned();
        for level in 1..=levels {
            let groups = vec!["group"; level].join(".");
            text += &format!("[[{groups}]]\nname = \"g{level}\"\ncount = {count}\n");
        }
        let groups = vec!["group"; levels].join(".");
        text + &table.replace("GROUPS", &groups)
    };
    let noise = "[[GROUPS.bridge]]\nname = \"b{g1}-{g2}-{g3}-{g4}\"\n";
    assert_eq!(found(&deep(4, 10, noise)), [codes::TOO_MANY]);
    assert_eq!(found(&deep(4, 9, noise)), []);
    assert_eq!(found(&deep(4, limits::GROUP_COUNT as u64, noise)), [codes::TOO_MANY]);
    assert_eq!(found(&deep(5, 2, noise)), [codes::GROUP]);
    assert_eq!(found(&deep(60, 100_000, "")), [codes::GROUP]);
    assert_eq!(found(&deep(4, limits::GROUP_COUNT as u64, "")), [codes::GROUP; 4]);
    assert_eq!(found(&deep(1, limits::GROUP_COUNT as u64 + 1, "")), [codes::OUT_OF_RANGE]);
    let comment = format!("description = \"{}\"\n", "x".repeat(4_000));
    let large = copies(9_000, &format!("[[group.noise]]\n{comment}"));
    assert_eq!(found(&large), [codes::GROUP]);
    let groups = "[[group]]\nname = \"g\"\ncount = 1\n".repeat(limits::GROUPS + 1);
    assert_eq!(found(&format!("{HEAD}{groups}")), [codes::TOO_MANY]);
}

#[test]
fn the_1000_hosts_of_the_documentation_are_a_right_description() {
    let document = include_str!("../../../docs/description.md");
    let (_, section) = document.split_once("\n### 1,000 hosts\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another one follows");
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let system = system(&text);
    let hosts = system.nodes.iter().filter(|node| node.ports.len() == 1).count();
    assert_eq!((system.nodes.len(), hosts, system.channels.len()), (1_027, 1_001, 1_000));
    assert_eq!(system.channels[999].stream_id.0, 1_000);
    assert_eq!(system.channels[999].destination.to_string(), "01:00:5e:00:18:27");
    assert_eq!(system.node(system.channels[999].talker).name, "io24-39");
}
