//! The description as its user sees it: what is wrong is told, all at once, at the right place.

use onbeat_description::Loaded;
use onbeat_model::codes::description as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_model::stream::Source;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(path: &Path) -> Loaded {
    load_at(path, &fs::read_to_string(path).expect("the description is there"))
}

/// The text as if it were the file.
fn load_at(path: &Path, text: &str) -> Loaded {
    let directory = path.parent().expect("a file has a directory");
    let mut read = |name: &str| fs::read_to_string(directory.join(name)).map_err(|e| e.to_string());
    onbeat_description::load("system.toml", text, &mut read)
}

fn load_text(text: &str) -> Loaded {
    onbeat_description::load("system.toml", text, &mut |_| Err("there are no files".to_owned()))
}

fn every_key() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/every-key.toml")
}

fn bad_descriptions() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = fs::read_dir(directory).expect("tests/bad is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    paths
}

/// "OB1003 line 7", or "OB1105 line 3 of manifest.h" for a place in another file.
fn place(diagnostic: &Diagnostic, loaded: &Loaded) -> String {
    let (at, _) = diagnostic.at.as_ref().expect("every diagnostic of a description has a place");
    let source = &loaded.sources[usize::from(at.file)];
    let file = if at.file == 0 { String::new() } else { format!(" of {}", source.path) };
    format!("{} line {}{file}", diagnostic.code, source.line(at.start))
}

#[test]
fn each_bad_description_gives_exactly_the_errors_that_it_declares() {
    let mut wrong = Vec::new();
    for path in bad_descriptions() {
        let text = fs::read_to_string(&path).expect("it was listed");
        let first = text.lines().next().and_then(|l| l.strip_prefix("# expect: "));
        let mut expected: Vec<&str> = first.expect("a declaration").split(", ").collect();
        let loaded = load(&path);
        assert!(loaded.system.is_none(), "{}", path.display());
        let mut found: Vec<String> = loaded.diagnostics.iter().map(|d| place(d, &loaded)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if found != expected {
            let name = path.file_name().expect("a file").display();
            wrong.push(format!("{name}\n  expected {expected:?}\n  found    {found:?}"));
        }
        for d in &loaded.diagnostics {
            assert!(!d.help.is_empty() && !d.message.is_empty(), "{d:?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// These would take files of megabytes; `limits_are_enforced` makes them.
const NOT_IN_FILES: [&str; 2] = ["OB1001", "OB1008"];

#[test]
fn every_code_has_a_bad_description() {
    let mut seen: BTreeSet<&str> = NOT_IN_FILES.into_iter().collect();
    for path in bad_descriptions() {
        seen.extend(load(&path).diagnostics.iter().map(|d| d.code.as_str()));
    }
    for entry in codes::ALL {
        assert!(seen.contains(entry.code.as_str()), "no bad description gives {}", entry.code);
    }
}

#[test]
fn limits_are_enforced() {
    let found = |text: &str| load_text(text).diagnostics.iter().map(|d| d.code).collect::<Vec<_>>();
    let large = "#".repeat(onbeat_model::limits::FILE_OCTETS + 1);
    assert_eq!(found(&large), [codes::FILE_TOO_LARGE]);

    let scenarios = "[[scenario]]\n".repeat(onbeat_model::limits::SCENARIOS + 1);
    let many = format!("format = 1\nname = \"x\"\n[run]\nduration_s = 1\n{scenarios}");
    assert_eq!(found(&many), [codes::TOO_MANY]);

    let keys: String = (0..2_000).map(|i| format!("k{i} = 1\n")).collect();
    assert_eq!(found(&keys).len(), onbeat_model::limits::KEY_ERRORS + 1);
}

#[test]
fn the_last_line_need_not_end() {
    let loaded = load_text("format = 1\nname = \"x\"\n[run]\nduration_s = 1");
    assert_eq!(loaded.diagnostics, []);
}

#[test]
fn the_examples_have_nothing_wrong() {
    for name in ["01-two-hosts", "03-robot-arm", "04-tsn-ring", "07-network-code"] {
        let loaded = load(&root().join("examples").join(name).join("system.toml"));
        assert_eq!(loaded.diagnostics, [], "{name}");
        assert!(loaded.system.is_some(), "{name}");
    }
}

#[test]
fn the_first_example_takes_its_channel_from_the_manifest() {
    let loaded = load(&root().join("examples/01-two-hosts/system.toml"));
    let system = loaded.system.expect("nothing is wrong");
    let channel = &system.channels[0];
    assert_eq!(channel.destination.to_string(), "01:00:5e:01:11:42");
    assert_eq!((channel.stream_id.0, channel.size.get()), (42, 8));
    assert_eq!(channel.interval.to_string(), "20 ms");
    assert_eq!(system.node(channel.talker).name, "talker");
    // 1470 octets of UDP at 67,700 frames a second: one every 14.771 µs.
    assert_eq!(system.noise[0].interval.as_ns(), 14_771);
}

#[test]
fn every_key_reaches_the_system() {
    let loaded = load(&every_key());
    assert_eq!(loaded.diagnostics, []);
    insta::assert_debug_snapshot!(loaded.system.expect("nothing is wrong"));
}

#[test]
fn a_loop_of_bridges_is_right_and_the_link_that_closes_it_is_found() {
    let system = load(&every_key()).system.expect("nothing is wrong");
    let closing = system.closes_loop().expect("s, t and u form a ring");
    let ends = system.links[closing.index()].ports.map(|port| system.port_label(port));
    assert_eq!(ends, ["u.p2", "t.south"]);
    for name in ["01-two-hosts", "03-robot-arm"] {
        let tree = load(&root().join("examples").join(name).join("system.toml"));
        assert_eq!(tree.system.expect("nothing is wrong").closes_loop(), None);
    }
}

#[test]
fn streams_alone_are_a_system() {
    let text = fs::read_to_string(every_key()).expect("it is there");
    let mut tables: Vec<&str> = text.split("\n\n").collect();
    let gone =
        ["channel", "program", "noise", "chain", "alternatives", "reference", "scenario.program"];
    let gone = gone.map(|name| format!("[[{name}]]"));
    tables.retain(|table| !gone.iter().any(|name| table.starts_with(name.as_str())));
    let loaded = load_text(&tables.join("\n\n"));
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(loaded.system.map(|s| (s.channels.len(), s.streams.len())), Some((0, 8)));
}

/// Per key with an old name, how `every-key.toml` writes it and how it would with that name, of
/// the same length: nothing else moves.
const OLD_NAMES: [[&str; 2]; 5] = [
    ["\npaths = ", "\nways  = "],
    ["\ntimestamping = ", "\nstamps       = "],
    ["{ base_time_ns = ", "{ base_ns      = "],
    [", cycle_time_ns = ", ", cycle_ns      = "],
    ["], interval_ns = ", "], for_ns      = "],
];

/// The name in such a piece of text.
fn name_in(written: &str) -> &str {
    written.trim_matches(|c: char| !c.is_ascii_lowercase())
}

#[test]
fn an_old_name_of_a_key_means_the_same_with_one_warning() {
    let expected = load(&every_key()).system.expect("nothing is wrong");
    for [new, old] in OLD_NAMES {
        let text = all_keys().replace(new, old);
        assert_ne!(text, all_keys(), "{new}");
        let loaded = load_at(&every_key(), &text);
        let [warning] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics) };
        assert_eq!((warning.severity, warning.code), (Severity::Warning, codes::OLD_NAME));
        let [new, old] = [name_in(new), name_in(old)];
        assert_eq!(warning.message, format!("`{old}` is the old name of `{new}`"));
        let (at, label) = warning.at.as_ref().expect("a place");
        assert_eq!(&text[at.start as usize..at.end as usize], old);
        let count = text.matches(&format!("{old} ")).count();
        assert!(count == 1 || label.ends_with(&format!(" {count}")), "{label}: {count}");
        let system = loaded.system.expect("a warning only");
        assert_eq!(format!("{system:?}"), format!("{expected:?}"), "{old}");
    }
}

/// A description with channels of these types, without sizes.
fn typed(types: &[&str]) -> String {
    let channel = |(number, named): (usize, &&str)| {
        format!(
            "[[channel]]\nname = \"c{number}\"\ndestination = \"01:00:5e:00:00:{number:02x}\"\n\
             stream_id = {}\nclass = \"A\"\nrate_hz = 1\ntype = \"{named}\"\n\
             talker = \"a\"\nlisteners = [\"b\"]\n",
            number + 1
        )
    };
    let channels: String = types.iter().enumerate().map(channel).collect();
    format!(
        "format = 1\nname = \"x\"\n[run]\nduration_s = 1\n[[host]]\nname = \"a\"\n\
         [[host]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"b\"]\nrate_mbps = 100\n{channels}"
    )
}

#[test]
fn the_size_of_messages_is_that_of_their_struct_whose_file_is_read_once() {
    let mut reads = Vec::new();
    let mut read = |name: &str| {
        reads.push(name.to_owned());
        Ok("typedef struct { char c; int i; } a; struct b { double d[2]; };".to_owned())
    };
    let text = typed(&["x.h:a", "x.h:b", "x.h:struct b"]);
    let loaded = onbeat_description::load("system.toml", &text, &mut read);
    assert_eq!((loaded.diagnostics, reads), (vec![], vec!["x.h".to_owned()]));
    let channels = loaded.system.expect("nothing is wrong").channels;
    let sizes: Vec<_> = channels.iter().map(|channel| channel.size.get()).collect();
    assert_eq!(sizes, [8, 16, 16]);
    assert_eq!(channels[1].message_type.as_deref(), Some("x.h:b"));
}

#[test]
fn a_channel_of_a_manifest_is_of_the_struct_in_its_size() {
    let manifest = "struct s { int a; short b; };\nstruct p { int *a; int b[2]; };\n\
        struct channel_attrs nc_channels[] = {\n";
    let entry = |number: usize, size: &str| {
        format!(
            "{{ .dst = {{1, 0, 94, 0, 0, {number}}}, .stream_id = {number}, .sc = SC_CLASS_A,\n\
             .size = {size}, .interval_ns = 1000000, .name = \"c{number}\" }},\n"
        )
    };
    let sizes = ["sizeof(struct s)", "8", "sizeof( struct  s )", "sizeof(struct p)", "sizeof(int)"];
    let entries: String = sizes.iter().enumerate().map(|(n, size)| entry(n + 1, size)).collect();
    let manifest = format!("{manifest}{entries}}};");
    let channel =
        |n| format!("[[channel]]\nname = \"c{n}\"\ntalker = \"a\"\nlisteners = [\"b\"]\n");
    let channels: String = (1..=sizes.len()).map(channel).collect();
    let text = format!("manifest = \"m.h\"\n{}{channels}", typed(&[]));
    let loaded = onbeat_description::load("system.toml", &text, &mut |_| Ok(manifest.clone()));
    assert_eq!(loaded.diagnostics, []);
    let system = loaded.system.expect("nothing is wrong");
    let types: Vec<_> = system.channels.iter().map(|c| c.message_type.as_deref()).collect();
    let known = Some("m.h:struct s");
    assert_eq!(types, [known, None, known, None, None]);
    assert_eq!(system.channels[3].size.get(), 16);
}

#[test]
fn files_of_structs_are_limited_all_together() {
    use onbeat_model::limits::{MANIFEST_OCTETS, TYPE_FILES, TYPE_OCTETS};
    let found = |files: usize, octets: usize| {
        let names: Vec<String> = (0..files).map(|number| format!("{number}.h:s")).collect();
        let text = typed(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let declared = "struct s { int a; };";
        let header = declared.to_owned() + &" ".repeat(octets.saturating_sub(declared.len()));
        let mut read = |_: &str| Ok(header.clone());
        let loaded = onbeat_description::load("system.toml", &text, &mut read);
        loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    assert_eq!(found(TYPE_FILES, 0), []);
    assert_eq!(found(TYPE_FILES + 2, 0), [codes::MESSAGE_TYPE; 2]);
    let most = TYPE_OCTETS / MANIFEST_OCTETS;
    assert_eq!(found(most, MANIFEST_OCTETS), []);
    assert_eq!(found(most + 1, MANIFEST_OCTETS), [codes::MESSAGE_TYPE]);
    assert_eq!(found(1, MANIFEST_OCTETS + 1), [codes::MESSAGE_TYPE]);
}

/// A description with so many streams, each with the same trace file.
fn traced(streams: usize) -> String {
    let stream = |name: usize| {
        format!(
            "[[stream]]\nname = \"s{name}\"\ntalker = \"a\"\nlisteners = [\"b\"]\n\
             traffic_class = 1\ntrace_file = \"x.csv\"\n"
        )
    };
    let streams: String = (0..streams).map(stream).collect();
    format!(
        "format = 1\nname = \"x\"\n[run]\nduration_s = 1\n[[host]]\nname = \"a\"\n\
         [[host]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"b\"]\nrate_mbps = 1\n{streams}"
    )
}

#[test]
fn a_trace_file_is_read_beside_the_description() {
    let mut read = |name: &str| match name {
        "x.csv" => Ok("# t_ns,octets\n0,100\r\n 1000 , 200\n\n1000,68".to_owned()),
        _ => Err("not asked for".to_owned()),
    };
    let loaded = onbeat_description::load("system.toml", &traced(1), &mut read);
    assert_eq!(loaded.diagnostics, []);
    let stream = loaded.system.expect("nothing is wrong").streams.remove(0);
    let at = |ns, octets| (Span::from_ns(ns), Octets::new(octets));
    assert_eq!(stream.source, Source::Trace(vec![at(0, 100), at(1_000, 200), at(1_000, 68)]));
    assert_eq!(stream.frame, [Octets::new(68), Octets::new(200)]);
}

#[test]
fn traces_are_limited_all_together() {
    let found = |streams: usize, file: &str| {
        let mut read = |_: &str| Ok(file.to_owned());
        let loaded = onbeat_description::load("system.toml", &traced(streams), &mut read);
        loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    assert_eq!(found(onbeat_model::limits::TRACE_FILES, "0,68"), []);
    assert_eq!(found(onbeat_model::limits::TRACE_FILES + 1, "0,68"), [codes::TRACE]);
    let half = "#\n".repeat(onbeat_model::limits::TRACE_OCTETS / 4) + "0,68";
    assert_eq!(found(1, &half), []);
    assert_eq!(found(2, &half), [codes::TRACE]);
    let wrong = "no pair\n".repeat(100);
    assert_eq!(found(1, &wrong).len(), onbeat_model::limits::TRACE_ERRORS);
}

#[test]
fn a_misspelt_word_is_answered_with_the_one_that_was_meant() {
    for (text, help) in [
        ("nmae = \"x\"", "did you mean `name`?"),
        ("[run]\nduratoin_s = 1", "did you mean `duration_s`?"),
        ("[run]\ntime = \"virtaul\"", "did you mean `virtual`?"),
        ("[[host]]\nname = \"talker\"\n[[link]]\nends = [\"taker\", \"talker\"]", "`talker`?"),
    ] {
        let loaded = load_text(text);
        let found: Vec<&str> = loaded.diagnostics.iter().map(|d| d.help.as_str()).collect();
        assert!(found.iter().any(|h| h.contains(help)), "{text}: {found:?}");
    }
}

/// Run with `ONBEAT_UPDATE=1` to rewrite the schema.
#[test]
fn the_committed_schema_is_the_one_that_the_types_give() {
    let path = root().join("schema/system.schema.json");
    let schema = onbeat_description::schema();
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        fs::write(&path, &schema).expect("the schema can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == schema, "schema/system.schema.json drifted: run with ONBEAT_UPDATE=1");
}

#[test]
fn every_key_of_the_schema_is_documented_and_in_the_file_with_every_key() {
    let schema: serde_json::Value =
        serde_json::from_str(&onbeat_description::schema()).expect("the schema is JSON");
    let documented = fs::read_to_string(root().join("docs/description.md")).expect("it is there");
    let keys = all_keys();
    let is_apart = |c: char| !c.is_alphanumeric() && c != '_';
    let words: Vec<&str> = keys.split(is_apart).collect();
    let tables = schema["$defs"].as_object().expect("definitions").values().chain([&schema]);
    for table in tables {
        for key in table["properties"].as_object().into_iter().flat_map(|p| p.keys()) {
            assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
            let (stem, unit) = key.rsplit_once('_').unwrap_or((key, ""));
            let is_quantity = UNITS.contains(&unit);
            let is_old = OLD_NAMES.iter().any(|[_, old]| old.contains(&format!("{key} ")));
            let is_used = is_old
                || IN_FILES_OF_THEIR_OWN.contains(&&**key)
                || words.iter().any(|word| match word.rsplit_once('_') {
                    Some((of_word, unit)) if is_quantity => {
                        of_word == stem && UNITS.contains(&unit)
                    }
                    _ => word == key,
                });
            assert!(is_used, "{key} is in every-key.toml in no unit");
        }
    }
}

/// Keys that name a file; other tests have them.
const IN_FILES_OF_THEIR_OWN: [&str; 2] = ["manifest", "trace_file"];

/// How keys of one quantity end.
const UNITS: [&str; 12] =
    ["ns", "us", "ms", "s", "bps", "kbps", "mbps", "gbps", "hz", "octets", "ppb", "ppm"];

#[test]
fn the_examples_of_the_documentation_make_a_right_description() {
    let document = fs::read_to_string(root().join("docs/description.md")).expect("it is there");
    let (document, _) = document.split_once("\n## The manifest\n").expect("the manifest's section");
    let blocks = document.split("```toml\n").skip(1);
    let text: String = blocks.filter_map(|b| b.split("```").next()).collect();
    let loaded = load_text(&text);
    assert_eq!(loaded.diagnostics, []);
    let system = loaded.system.expect("nothing is wrong");
    assert_eq!((system.streams.len(), system.faults.len()), (7, 4));
}

fn example() -> String {
    fs::read_to_string(root().join("examples/03-robot-arm/system.toml")).expect("it is there")
}

fn all_keys() -> String {
    fs::read_to_string(every_key()).expect("it is there")
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,400}") {
        load_text(&text);
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..400)) {
        load_text(&String::from_utf8_lossy(&octets));
    }

    #[test]
    fn a_damaged_description_is_read_without_a_panic(
        cuts in prop::collection::vec((0usize..5_500, 0usize..40, "[\\PC]{0,6}"), 1..5),
        new in any::<bool>(),
    ) {
        let mut text: Vec<char> = if new { all_keys() } else { example() }.chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let loaded = load_text(&text);
        let has_errors = loaded.diagnostics.iter().any(|d| d.severity == Severity::Error);
        prop_assert_eq!(loaded.system.is_none(), has_errors);
    }

    #[test]
    fn any_number_in_the_place_of_another_is_read_without_a_panic(
        line in 0usize..320,
        number in prop_oneof![any::<i64>(), Just(0), Just(i64::MAX), Just(i64::MIN), -3i64..3],
    ) {
        let change = |(i, text): (usize, &str)| match text.split_once(" = ") {
            Some((key, value)) if i == line && value.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{key} = {number}\n")
            }
            _ => format!("{text}\n"),
        };
        for text in [example(), all_keys()] {
            load_text(&text.lines().enumerate().map(change).collect::<String>());
        }
    }
}
