//! The C manifest: both spellings are read, what is written reads back, damage is told.

use onbeat_description::manifest::{self, ManifestEntry, Rate};
use onbeat_model::codes::description as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_model::system::{Class, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use proptest::prelude::*;

/// The entries of a manifest with nothing wrong.
fn read(text: &str) -> Vec<ManifestEntry> {
    let (entries, diagnostics) = manifest::read(text, 0);
    assert_eq!(diagnostics, [], "{text}");
    entries
}

/// The code and the text at the place of each thing that is wrong.
fn wrong(text: &str) -> Vec<(&'static str, &str)> {
    let place = |d: &Diagnostic| {
        let (at, _) = d.at.as_ref().expect("a place");
        (d.code.as_str(), &text[at.start as usize..at.end as usize])
    };
    manifest::read(text, 0).1.iter().map(place).collect()
}

/// An entry in the second spelling with these expressions for size and interval.
fn with(before: &str, size: &str, interval: &str) -> String {
    format!(
        "{before}\nstruct channel_attrs nc_channels[] = {{ {{ .dst = {{1, 0, 0x5e, 0, 0, 1}}, \
         .stream_id = 1, .sc = SC_TAS, .size = {size}, .interval_ns = {interval}, \
         .name = \"x\" }} }};\n"
    )
}

fn interval_of(before: &str, expression: &str) -> i64 {
    match read(&with(before, "8", expression))[0].rate.expect("a rate").value {
        Rate::IntervalNs(ns) => ns,
        Rate::Hz(_) => panic!("it was an interval"),
    }
}

fn size_of(before: &str, expression: &str) -> i64 {
    read(&with(before, expression, "1"))[0].size.expect("a size").value
}

#[test]
fn the_first_spelling_may_leave_out_the_braces_of_its_only_entry() {
    let text = "#pragma once\n#include <timedc_avtp.h>\nstruct net_fifo net_fifo_chans[] = {\n\
        /* a comment */\n.dst = {0x01, 0x00, 0x5E,\n 0x01, 0x11, 0x42},\n.stream_id = 42,\n\
        .class = CLASS_B,\n.size = 8,\n.freq = 50,\n.name = \"mcast42\"\n};\n";
    let entries = read(text);
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!(entry.name.as_ref().expect("a name").value, "mcast42");
    let destination = entry.destination.expect("a destination").value;
    assert_eq!(destination.to_string(), "01:00:5e:01:11:42");
    assert_eq!(entry.stream_id.expect("a stream").value, 42);
    assert_eq!(entry.class.expect("a class").value, Class::B);
    assert_eq!(entry.size.expect("a size").value, 8);
    assert_eq!(entry.rate.expect("a rate").value.interval(), Some(Span::from_ms(20)));
}

#[test]
fn a_header_as_users_write_it_is_read() {
    let text = r#"
#ifndef MANIFEST_H
#define MANIFEST_H
#ifdef __cplusplus
extern "C" {
#endif
#include <netchan.h>
struct sample { uint64_t value; uint8_t kind; } __attribute__((packed));
enum index { IDX_A, IDX_B = 5, IDX_C };
#define HZ_200 (5 * NS_IN_MS)  // a comment
static const struct channel_attrs nc_channels[] = {
    [IDX_A] = { .dst = DEFAULT_MCAST, .stream_id = 0xA0369F0000000001ULL, .sc = SC_CLASS_A,
        .size = sizeof(struct sample), .interval_ns = HZ_200,
#ifndef __cplusplus
        .name = "a",
#endif
    },
    { .dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x9A}, .stream_id = IDX_C, .sc = CLASS_B,
      .size = sizeof(uint64_t), .interval_ns = 100000000L, .name = "b" },
};
#ifdef __cplusplus
}
#endif
#endif
"#;
    let entries = read(text);
    let names: Vec<&str> =
        entries.iter().map(|e| e.name.as_ref().expect("a name").value.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(entries[0].stream_id.expect("a stream").value, 0xa036_9f00_0000_0001);
    assert_eq!(entries[0].size.expect("a size").value, 9);
    assert_eq!(entries[0].rate.expect("a rate").value, Rate::IntervalNs(5_000_000));
    assert_eq!(entries[1].stream_id.expect("a stream").value, 6);
    assert_eq!(entries[1].class.expect("a class").value, Class::B);
}

#[test]
fn constant_expressions_have_the_value_that_c_gives_them() {
    for (expression, value) in [
        ("20 * 1000000", 20_000_000),
        ("(50*60)", 3_000),
        ("0x10ULL + 010 + 0b11", 27),
        ("NS_IN_SEC / 3", 333_333_333),
        ("1 << 10 | 1", 1_025),
        ("-(-7) % 4", 3),
        ("(uint64_t)5 * US_IN_MS", 5_000),
        ("2 + 3 * 4 - 1", 13),
    ] {
        assert_eq!(interval_of("", expression), value, "{expression}");
    }
    assert_eq!(interval_of("#define A (B * 2)\n#define B 21", "A"), 42);
    assert_eq!(interval_of("#define NS_IN_MS 7", "NS_IN_MS"), 7);
}

#[test]
fn sizeof_lays_structs_out_as_the_machine_does() {
    for (declaration, kind, size) in [
        ("", "uint32_t", 4),
        ("", "unsigned char", 1),
        ("", "void *", 8),
        ("struct s { char a; double b; };", "struct s", 16),
        ("struct s { char a; double b; } __attribute__((packed));", "struct s", 9),
        ("typedef struct { uint16_t a[3], b; char c; } s_t;", "s_t", 10),
        ("#define N 4\nstruct s { float x[N * 2]; };", "struct s", 32),
        ("struct i { long a; }; struct s { struct i i; char c; };", "struct s", 16),
    ] {
        assert_eq!(size_of(declaration, &format!("sizeof({kind})")), size, "{declaration}");
    }
}

#[test]
fn what_cannot_be_computed_is_told_at_its_place() {
    for (before, expression) in [
        ("", "PERIOD"),
        ("", "1 / 0"),
        ("", "period()"),
        ("#define A B\n#define B A", "A"),
        ("#define MS(x) (x * 1000)", "MS(5)"),
        ("", "99999999999999999999 * 99999999999999999999"),
        ("", "-1 << 200"),
        ("", "sizeof(struct unknown)"),
        ("struct s { int a : 3; };", "sizeof(struct s)"),
        ("", "1.5"),
        ("", "9223372036854775808"),
        ("", "{1}"),
    ] {
        let text = with(before, "8", expression);
        assert_eq!(wrong(&text), [(codes::MANIFEST_VALUE.as_str(), expression)], "{before}");
    }
}

#[test]
fn all_errors_of_a_manifest_are_told_at_once() {
    let text = "struct net_fifo net_fifo_chans[] = {\n\
        { .dst = {1, 2, 3}, .stream_id = -1, .class = CLASS_C, .size = 8, .freq = 5, .nam = 1 },\n\
        { .dst = {1, 0, 0x5e, 0, 0, 256}, .stream_id = 1, .class = CLASS_A, .class = CLASS_A,\n\
          .size = 8, .freq = 50, .interval_ns = 5, .name = \"b\" },\n\
        7,\n};\n";
    let expected = [
        (codes::BAD_ADDRESS.as_str(), "{1, 2, 3}"),
        (codes::MANIFEST_VALUE.as_str(), "-1"),
        (codes::MANIFEST_CLASS.as_str(), "CLASS_C"),
        (codes::MANIFEST_FIELD.as_str(), ".nam"),
        (codes::MANIFEST_MISSING.as_str(), "{"),
        (codes::BAD_ADDRESS.as_str(), "{1, 0, 0x5e, 0, 0, 256}"),
        (codes::MANIFEST_TWICE.as_str(), ".class"),
        (codes::MANIFEST_TWICE.as_str(), ".interval_ns"),
        (codes::MANIFEST_FIELD.as_str(), "7"),
    ];
    assert_eq!(wrong(text), expected);
}

#[test]
fn c_that_is_not_understood_is_an_error_only_inside_the_manifest() {
    let outside = format!("EXPORT_ALL(x) int ] f;\n{}", with("", "8", "1"));
    let (entries, diagnostics) = manifest::read(&outside, 0);
    assert_eq!(entries.len(), 1);
    assert!(!diagnostics.is_empty());
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Warning), "{diagnostics:?}");

    let unclosed = with("", "8", "1").replace("} };", "");
    let (_, diagnostics) = manifest::read(&unclosed, 0);
    assert!(diagnostics.iter().any(|d| d.severity == Severity::Error), "{diagnostics:?}");
}

#[test]
fn a_manifest_above_the_limit_is_refused() {
    let text = " ".repeat(onbeat_model::limits::MANIFEST_OCTETS + 1);
    assert_eq!(wrong(&text), [(codes::FILE_TOO_LARGE.as_str(), "")]);
}

/// The system that the other tests put their channels into.
fn system() -> System {
    let text = include_str!("good/every-key.toml");
    let mut read = |name: &str| match name {
        "tasks.toml" => Ok(include_str!("good/tasks.toml").to_owned()),
        "messages.h" => Ok(include_str!("good/messages.h").to_owned()),
        // Of its programs' other files no text is wrong.
        _ => Ok(String::new()),
    };
    let loaded = onbeat_description::load("system.toml", text, &mut read);
    loaded.system.expect("nothing is wrong")
}

#[test]
fn the_manifest_is_written_in_either_spelling() {
    let mut system = system();
    system.channels[1].class = Class::A;
    let second = manifest::to_c(&system).expect("no asynchronous class");
    insta::assert_snapshot!("second_spelling", second);
    let first = manifest::to_c_first_generation(&system).expect("whole hertz, no scheduled class");
    insta::assert_snapshot!("first_spelling", first);
}

/// Code and message of each error.
fn said(errors: &[Diagnostic]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.code, error.message)).collect()
}

#[test]
fn what_the_first_spelling_cannot_say_is_refused_by_name() {
    let mut system = system();
    // 333,333,332 ns is no whole number of hertz; `to_a` is scheduled.
    system.channels[0].interval = Span::from_ns(333_333_332);
    let refused = manifest::to_c_first_generation(&system).expect_err("not expressible");
    assert_eq!(
        said(&refused),
        [
            "OB1012: channel `to_b`: a manifest of the first generation has no word for its \
             interval",
            "OB1106: channel `to_a`: a manifest of the first generation has no word for its class",
        ]
    );
}

#[test]
fn no_spelling_has_a_word_for_asynchronous_channels() {
    let mut system = system();
    system.channels[1].class = Class::Asynchronous;
    let first = manifest::to_c_first_generation(&system).expect_err("not expressible");
    let second = manifest::to_c(&system).expect_err("not expressible");
    let says = |which: &str| {
        format!("OB1106: channel `to_a`: a manifest of the {which} has no word for its class")
    };
    assert_eq!(said(&first), [says("first generation")]);
    assert_eq!(said(&second), [says("second generation")]);
}

prop_compose! {
    fn any_system()(
        channels in prop::collection::vec(
            (
                any::<[u8; 6]>(), any::<u64>(), 0usize..3, 1u32..=1_476,
                prop_oneof![
                    1i64..=onbeat_model::limits::DURATION.as_ns(),
                    (1i64..=1_000_000_000).prop_map(|hz| 1_000_000_000 / hz),
                ],
                "[a-zA-Z_][a-zA-Z0-9_]{0,30}",
            ),
            1..5,
        ),
    ) -> System {
        let mut system = system();
        let model = system.channels[0].clone();
        system.channels = channels.into_iter().map(|(octets, id, class, size, ns, name)| {
            let mut channel = model.clone();
            channel.name = name;
            channel.destination = MacAddress(octets);
            channel.stream_id = StreamId(id);
            channel.class = [Class::A, Class::B, Class::Scheduled][class];
            channel.size = Octets::new(size);
            channel.interval = Span::from_ns(ns);
            channel
        }).collect();
        system
    }
}

fn assert_reads_back(text: &str, system: &System) {
    let entries = read(text);
    assert_eq!(entries.len(), system.channels.len());
    for (entry, channel) in entries.iter().zip(&system.channels) {
        assert_eq!(entry.name.as_ref().map(|n| &n.value), Some(&channel.name));
        assert_eq!(entry.destination.map(|d| d.value), Some(channel.destination));
        assert_eq!(entry.stream_id.map(|s| s.value), Some(channel.stream_id.0));
        assert_eq!(entry.class.map(|c| c.value), Some(channel.class));
        assert_eq!(entry.size.map(|s| s.value), Some(i64::from(channel.size.get())));
        assert_eq!(entry.rate.and_then(|r| r.value.interval()), Some(channel.interval));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(system in any_system()) {
        assert_reads_back(&manifest::to_c(&system).expect("no asynchronous class"), &system);
        if let Ok(text) = manifest::to_c_first_generation(&system) {
            assert_reads_back(&text, &system);
        }
    }

    #[test]
    fn every_whole_rate_in_hertz_has_a_first_spelling(hz in 1i64..=1_000_000_000) {
        let mut system = system();
        system.channels.truncate(1);
        system.channels[0].interval = Rate::Hz(hz).interval().expect("in range");
        let text = manifest::to_c_first_generation(&system).expect("whole hertz");
        assert_reads_back(&text, &system);
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..400)) {
        manifest::read(&String::from_utf8_lossy(&octets), 0);
    }

    #[test]
    fn a_damaged_manifest_is_read_without_a_panic(
        cuts in prop::collection::vec((0usize..600, 0usize..30, "[\\PC\n{}();,#\"]{0,6}"), 1..5),
    ) {
        let before = "#define P (5 * NS_IN_MS)\nstruct s { char a[3]; };";
        let good = with(before, "sizeof(struct s)", "P");
        let mut text: Vec<char> = good.chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, insert.chars());
        }
        manifest::read(&text.into_iter().collect::<String>(), 0);
    }
}

#[test]
fn deep_and_wide_nesting_ends_without_a_panic() {
    for text in [
        with("", "8", &format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000))),
        with("", "8", &format!("1{}", " + 1".repeat(20_000))),
        "{".repeat(50_000),
        "#if 0\n".repeat(20_000),
        format!("struct net_fifo a[] = {}", "{".repeat(20_000)),
        (0..2_000).map(|i| format!("#define A{i} A{} + A{}\n", i + 1, i + 1)).collect::<String>()
            + &with("", "8", "A0"),
    ] {
        let (_, diagnostics) = manifest::read(&text, 0);
        assert!(!diagnostics.is_empty());
    }
}
