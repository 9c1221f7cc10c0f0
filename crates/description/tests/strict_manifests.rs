//! Manifests that the library of Austad et al. would have taken: each mistake is one error, with
//! file, line and channel, in both spellings.

use onbeat_description::Loaded;
use onbeat_model::codes::description as codes;
use onbeat_model::diagnostic::{Code, Severity};
use onbeat_model::system::Class;
use onbeat_model::time::Span;

/// The fields of an entry, one a line, in the order in which they are written.
type Entry = [(&'static str, String); 6];

#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    First,
    Second,
}
use Spelling::{First, Second};

impl Spelling {
    fn array(self) -> &'static str {
        match self {
            First => "struct net_fifo net_fifo_chans[]",
            Second => "struct channel_attrs nc_channels[]",
        }
    }

    fn entry(self, name: &str, number: u32) -> Entry {
        let (class, rate) = match self {
            First => (("class", "CLASS_A"), ("freq", "50")),
            Second => (("sc", "SC_CLASS_A"), ("interval_ns", "20 * NS_IN_MS")),
        };
        [
            ("dst", format!("{{0x01, 0x00, 0x5e, 0, 0, {number}}}")),
            ("stream_id", number.to_string()),
            (class.0, class.1.to_owned()),
            ("size", "8".to_owned()),
            (rate.0, rate.1.to_owned()),
            ("name", format!("\"{name}\"")),
        ]
    }
}

/// A header whose first entry starts on line 2 and whose second starts on line 10.
fn header(spelling: Spelling, entries: &[Entry]) -> String {
    let mut text = format!("{} = {{\n", spelling.array());
    for entry in entries {
        text += "\t{\n";
        for (field, value) in entry {
            text += &format!("\t\t.{field} = {value},\n");
        }
        text += "\t},\n";
    }
    text + "};\n"
}

const SYSTEM: &str = r#"
format = 1
name = "strict"
manifest = "manifest.h"
[run]
duration_s = 1
[[host]]
name = "h1"
[[host]]
name = "h2"
[[link]]
ends = ["h1", "h2"]
rate_mbps = 100
[[channel]]
name = "first"
talker = "h1"
listeners = ["h2"]
[[channel]]
name = "second"
talker = "h1"
listeners = ["h2"]
"#;

fn load(manifest: &str) -> Loaded {
    onbeat_description::load("system.toml", SYSTEM, &mut |name| {
        assert_eq!(name, "manifest.h");
        Ok(manifest.to_owned())
    })
}

/// The one error of a manifest: code, line and message.
fn only_error(text: &str) -> (Code, usize, String) {
    let loaded = load(text);
    assert!(loaded.system.is_none(), "accepted:\n{text}");
    let [error] = &loaded.diagnostics[..] else {
        panic!("one error, not {:#?}\n{text}", loaded.diagnostics);
    };
    let (at, _) = error.at.as_ref().expect("a place");
    let source = &loaded.sources[usize::from(at.file)];
    assert_eq!((error.severity, source.path.as_str()), (Severity::Error, "manifest.h"), "{text}");
    assert!(!error.help.is_empty());
    (error.code, source.line(at.start), error.message.clone())
}

/// A field of the second entry, by its place, a value for it, and the error that it is.
type Case = (usize, &'static str, Code);
const DST: usize = 0;
const STREAM: usize = 1;
const CLASS: usize = 2;
const SIZE: usize = 3;
const RATE: usize = 4;

const CASES: &[Case] = &[
    (DST, "{0, 0, 0, 0, 0, 0}", codes::BAD_ADDRESS),
    (DST, "{0}", codes::BAD_ADDRESS),
    (DST, "{}", codes::BAD_ADDRESS),
    (DST, "{1, 0, 0x5e, 0, 0}", codes::BAD_ADDRESS),
    (DST, "{1, 0, 0x5e, 0, 0, 2, 3}", codes::BAD_ADDRESS),
    (DST, "{1, 0, 0x5e, 0, 0, 256}", codes::BAD_ADDRESS),
    (DST, "{1, 0, 0x5e, 0, 0, -1}", codes::BAD_ADDRESS),
    (DST, "\"01:00:5e:00:00:02\"", codes::MANIFEST_VALUE),
    (DST, "42", codes::BAD_ADDRESS),
    (DST, "{0x01, 0x80, 0xc2, 0, 0, 0x0e}", codes::BAD_ADDRESS),
    (DST, "{0x02, 0, 0, 0, 0, 0x63}", codes::UNKNOWN_DESTINATION),
    (DST, "{0x01, 0x00, 0x5e, 0, 0, 1}", codes::DUPLICATE_DESTINATION),
    (STREAM, "0", codes::BAD_STREAM),
    (STREAM, "0x0ULL", codes::BAD_STREAM),
    (STREAM, "1 - 1", codes::BAD_STREAM),
    (STREAM, "0x1", codes::DUPLICATE_STREAM),
    (STREAM, "-1", codes::MANIFEST_VALUE),
    (STREAM, "0x10000000000000000", codes::MANIFEST_VALUE),
    (CLASS, "CLASS_C", codes::MANIFEST_CLASS),
    (CLASS, "CLASS_A | CLASS_B", codes::MANIFEST_CLASS),
    (CLASS, "CLASS_A|SC_TAS", codes::MANIFEST_CLASS),
    (CLASS, "SC_CLASS_A + 1", codes::MANIFEST_CLASS),
    (CLASS, "0", codes::MANIFEST_CLASS),
    (CLASS, "3", codes::MANIFEST_CLASS),
    (CLASS, "\"CLASS_A\"", codes::MANIFEST_CLASS),
    (CLASS, "sc_tas", codes::MANIFEST_CLASS),
    (SIZE, "0", codes::PAYLOAD_SIZE),
    (SIZE, "-8", codes::PAYLOAD_SIZE),
    (SIZE, "65537", codes::PAYLOAD_SIZE),
    (SIZE, "70000", codes::PAYLOAD_SIZE),
    (SIZE, "0x7fffffffffffffff", codes::PAYLOAD_SIZE),
    (SIZE, "8.0", codes::MANIFEST_VALUE),
    (SIZE, "sizeof(struct pose)", codes::MANIFEST_VALUE),
    (RATE, "0", codes::RATE),
    (RATE, "-50", codes::RATE),
    (RATE, "(0 * 50)", codes::RATE),
    (RATE, "0x7fffffffffffffff", codes::RATE),
    (RATE, "50.0", codes::MANIFEST_VALUE),
    (RATE, "1 / 0", codes::MANIFEST_VALUE),
    (RATE, "PERIOD", codes::MANIFEST_VALUE),
];

#[test]
fn each_bad_value_is_one_error_that_names_file_line_and_channel() {
    for spelling in [First, Second] {
        for (field, value, code) in CASES {
            let mut second = spelling.entry("second", 2);
            second[*field].1 = (*value).to_owned();
            let text = header(spelling, &[spelling.entry("first", 1), second]);
            let (found, line, message) = only_error(&text);
            assert_eq!((found, line), (*code, 11 + field), "{message}\n{text}");
            assert!(message.contains("`second`"), "{message}\n{text}");
        }
    }
}

#[test]
fn each_missing_field_and_each_field_that_is_given_twice_is_named() {
    for spelling in [First, Second] {
        for field in 0..6 {
            let good = header(spelling, &[spelling.entry("first", 1), spelling.entry("second", 2)]);
            let lines: Vec<&str> = good.lines().collect();
            let name = spelling.entry("", 0)[field].0;
            let without = [&lines[..10 + field], &lines[11 + field..]].concat().join("\n");
            // Without its name an entry belongs to no [[channel]], which is told by itself.
            let (code, line, message) = only_error(&without);
            assert_eq!((code, line), (codes::MANIFEST_MISSING, 10), "{message}");
            assert!(message.contains(&format!(".{name}")), "{message}");

            let twice = [&lines[..11 + field], &lines[10 + field..]].concat().join("\n");
            let (code, line, message) = only_error(&twice);
            assert_eq!((code, line), (codes::MANIFEST_TWICE, 12 + field), "{message}");
            assert!(message.contains("`second`"), "{message}");
        }
    }
}

#[test]
fn a_rate_in_both_units_is_refused() {
    for spelling in [First, Second] {
        let mut second = spelling.entry("second", 2);
        let other = if spelling == First { ".interval_ns = 20000000" } else { ".freq = 50" };
        second[RATE].1 += &format!(",\n{other}");
        let text = header(spelling, &[spelling.entry("first", 1), second]);
        let (code, line, message) = only_error(&text);
        assert_eq!((code, line), (codes::MANIFEST_TWICE, 16), "{message}");
    }
}

#[test]
fn names_that_c_cannot_hold_or_that_are_taken_are_told_where_they_stand() {
    let places = |text: &str| -> Vec<(Code, usize)> {
        let loaded = load(text);
        let in_manifest = loaded.diagnostics.iter().filter_map(|d| d.at.as_ref().map(|a| (d, a)));
        let in_manifest = in_manifest.filter(|(_, (at, _))| at.file == 1);
        in_manifest.map(|(d, (at, _))| (d.code, loaded.sources[1].line(at.start))).collect()
    };
    let long = "n".repeat(32);
    for spelling in [First, Second] {
        for (name, code) in [
            (long.as_str(), codes::BAD_NAME),
            ("", codes::BAD_NAME),
            ("2nd", codes::BAD_NAME),
            ("sec ond", codes::BAD_NAME),
            ("second\\0", codes::MANIFEST_VALUE),
            ("sec\" \"ond", codes::MANIFEST_VALUE),
            ("first", codes::DUPLICATE_NAME),
        ] {
            let entries = [spelling.entry("first", 1), spelling.entry(name, 2)];
            let found = places(&header(spelling, &entries));
            assert!(found.contains(&(code, 16)), "{name}: {found:?}");
        }
        // 31 octets and the final zero are what `char name[32]` holds.
        let text = header(spelling, &[spelling.entry(&long[1..], 1)]);
        assert_eq!(onbeat_description::manifest::read(&text, 0).1, []);
        assert!(!places(&text).contains(&(codes::BAD_NAME, 8)));
    }
}

#[test]
fn arrays_that_do_not_end_or_lack_a_comma_are_refused() {
    for spelling in [First, Second] {
        let good = header(spelling, &[spelling.entry("first", 1), spelling.entry("second", 2)]);
        assert!(load(&good).system.is_some());
        for (what, from, to, code) in [
            ("no brace after the array", "\t},\n};\n", "\t},\n", codes::MANIFEST_SYNTAX),
            ("no brace after an entry", "\t},\n};\n", "};\n", codes::MANIFEST_SYNTAX),
            ("no semicolon", "};\n", "}\n", codes::MANIFEST_SYNTAX),
            ("no end", "\"second\",\n\t},\n};\n", "\"second\"", codes::MANIFEST_SYNTAX),
            ("a string without end", "\"second\"", "\"second", codes::MANIFEST_SYNTAX),
            // What follows is taken for a part of the value.
            ("no comma", ".stream_id = 2,", ".stream_id = 2", codes::MANIFEST_VALUE),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{what}");
            let loaded = load(&text);
            assert!(loaded.system.is_none(), "{what} was accepted");
            let found = loaded.diagnostics.iter().find(|d| d.code == code);
            let error = found.unwrap_or_else(|| panic!("{what}: {:#?}", loaded.diagnostics));
            let (at, _) = error.at.as_ref().expect("a place");
            assert_eq!((error.severity, at.file), (Severity::Error, 1), "{what}");
        }
    }
}

#[test]
fn an_array_with_places_that_no_entry_fills_is_refused() {
    for spelling in [First, Second] {
        let good = header(spelling, &[spelling.entry("first", 1), spelling.entry("second", 2)]);
        let array = |length: &str| good.replace("[]", &format!("[{length}]"));
        assert!(load(&array("2")).system.is_some());
        assert!(load(&array("CHANNELS")).system.is_some(), "the compiler knows the length");
        assert!(load(&good.replacen("\t{\n", "\t[0] = {\n", 1)).system.is_some());
        for (text, line) in [
            (array("3"), 1),
            (array("1"), 1),
            (good.replacen("\t{\n", "\t[1] = {\n", 1), 1),
            (good.replace("\n\t},\n\t{\n", "\n\t},\n\t[0] = {\n"), 10),
        ] {
            let (code, found, message) = only_error(&text);
            assert_eq!((code, found), (codes::MANIFEST_ARRAY, line), "{message}\n{text}");
        }
    }
}

#[test]
fn designators_may_come_in_any_order_and_classes_of_either_generation_in_either() {
    for spelling in [First, Second] {
        for (word, class) in [
            ("CLASS_A", Class::A),
            ("CLASS_B", Class::B),
            ("SC_CLASS_A", Class::A),
            ("(SC_CLASS_B)", Class::B),
            ("SC_TAS", Class::Scheduled),
        ] {
            for turn in 0..6 {
                let (mut first, mut second) =
                    (spelling.entry("first", 1), spelling.entry("second", 2));
                second[CLASS].1 = word.to_owned();
                first.rotate_left(turn);
                second.rotate_right(turn);
                second.swap(1, 4);
                let loaded = load(&header(spelling, &[second, first]));
                let system = loaded.system.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics));
                let channel = &system.channels[1];
                assert_eq!((channel.class, channel.stream_id.0), (class, 2));
                assert_eq!((channel.size.get(), channel.interval), (8, Span::from_ms(20)));
            }
        }
    }
}
