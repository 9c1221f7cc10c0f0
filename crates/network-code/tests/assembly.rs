//! The assembler as its user sees it: what is wrong is said, all at once, at the right place.

use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_network_code::assembly::{
    Assembly, AssemblyOptions, DescribedChannel, DescribedNetwork, TEXT_OCTETS, assemble,
};
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A network of three hosts, for programs with channels.
fn network() -> DescribedNetwork {
    let channel = |name: &str, octets, talker: &str, listener: &str| DescribedChannel {
        name: name.to_owned(),
        octets,
        talker: talker.to_owned(),
        listeners: vec![listener.to_owned()],
    };
    DescribedNetwork {
        hosts: ["talker", "listener", "other"].map(str::to_owned).to_vec(),
        channels: vec![
            channel("speed", 9, "talker", "listener"),
            channel("position", 4, "listener", "talker"),
        ],
    }
}

fn texts(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("one"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    assert!(paths.iter().all(|path| path.extension().is_some_and(|ending| ending == "nc")));
    paths
}

/// The text at a path, assembled as its first lines ask for.
fn assembled(path: &Path) -> (Assembly, String) {
    let text = fs::read_to_string(path).expect("it was listed");
    let head = || text.lines().take_while(|line| line.starts_with("# "));
    let station = head().find_map(|line| line.strip_prefix("# station: "));
    let network = head().any(|line| line == "# network").then(network);
    let options = AssemblyOptions { station, network: network.as_ref() };
    let name = path.file_name().expect("a name").to_string_lossy();
    (assemble(&name, &text, options), text.clone())
}

/// As the first line of a text declares it: `OB6001 line 7`.
fn place(diagnostic: &Diagnostic, assembly: &Assembly) -> String {
    let (at, _) = diagnostic.at.as_ref().expect("every diagnostic has a place");
    format!("{} line {}", diagnostic.code, assembly.source.line(at.start))
}

#[test]
fn each_bad_program_gives_exactly_what_it_declares() {
    let paths = texts("bad");
    assert!(paths.len() >= 60, "{}", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let (assembly, text) = assembled(&path);
        let first = text.lines().next().and_then(|line| line.strip_prefix("# expect: "));
        let mut expected: Vec<&str> = first.expect("a declaration").split(", ").collect();
        let mut found: Vec<_> = assembly.diagnostics.iter().map(|d| place(d, &assembly)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if found != expected {
            let name = path.file_name().expect("a file").display();
            let said: Vec<_> = assembly.diagnostics.iter().map(|d| &d.message).collect();
            wrong.push(format!("{name}\n  expected {expected:?}\n  found    {found:?} {said:?}"));
        }
        let has_errors = assembly.diagnostics.iter().any(|d| d.severity == Severity::Error);
        assert_eq!(assembly.program.is_none(), has_errors, "{}", path.display());
        for d in &assembly.diagnostics {
            assert!(!d.help.is_empty() && !d.message.is_empty(), "{d:?}");
            let (at, _) = d.at.as_ref().expect("a place");
            let places = d.related.iter().map(|(at, _)| at).chain([at]);
            for at in places {
                assert!(text.get(at.start as usize..at.end as usize).is_some(), "{d:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first two would take files of thousands of lines; `limits_are_enforced` makes them. The last
/// is of files that are no texts: the tests of `onbeat nc dis` have them.
const NOT_IN_FILES: [&str; 3] = ["OB6001", "OB6050", "OB6059"];

#[test]
fn every_code_has_a_bad_program() {
    let mut seen: BTreeSet<&str> = NOT_IN_FILES.into_iter().collect();
    for path in texts("bad") {
        seen.extend(assembled(&path).0.diagnostics.iter().map(|d| d.code.as_str()));
    }
    // Those from OB6060 on are of plans: the tests of `planning` have them.
    for entry in codes::ALL.iter().filter(|entry| entry.code.as_str() < "OB6060") {
        assert!(seen.contains(entry.code.as_str()), "no bad program gives {}", entry.code);
    }
}

#[test]
fn no_time_is_suggested_that_is_itself_refused() {
    let help = |instruction: &str| {
        let text = format!("station a\nbegin: {instruction}\n    goto begin\n");
        let assembly = assemble("x.nc", &text, AssemblyOptions::default());
        let found = assembly.diagnostics.iter().find(|d| d.code == codes::FRACTION);
        found.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics)).help.clone()
    };
    assert_eq!(help("sync slave, 3 ns"), "write 8 ns");
    assert_eq!(help("sync slave, 11 ns"), "write 8 ns or 16 ns");
    assert_eq!(help("future begin, 3 ns"), "write 0 ns or 8 ns");
}

#[test]
fn limits_are_enforced() {
    let found = |text: &str| {
        let assembly = assemble("x.nc", text, AssemblyOptions::default());
        assert_eq!(assembly.program, None);
        assembly.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    assert_eq!(found(&"#".repeat(TEXT_OCTETS + 1)), [codes::FILE_TOO_LARGE]);
    let many = found(&"x\n".repeat(TEXT_OCTETS / 2));
    assert_eq!(many.len(), 1_001);
    assert!(many.contains(&codes::TOO_MANY_ERRORS));
    let unused: String = (0..2_000).map(|i| format!("const N{i} = 1\n")).collect();
    let unused = format!("station a\n{unused}x: sync slave, 1 s\ngoto x\n");
    let assembly = assemble("x.nc", &unused, AssemblyOptions::default());
    assert_eq!(assembly.diagnostics.len(), 1_001);
    assert!(assembly.program.is_some(), "these are warnings");
    for (declaration, least) in [("const N{} = 1\n", 4_097), ("message m{} = 1[1]\n", 257)] {
        let some = |count: usize| -> String {
            (0..count).map(|i| declaration.replace("{}", &i.to_string())).collect()
        };
        let more = found(&format!("station a\n{}sync slave, 1 s\n", some(least + 5)));
        assert!(more.contains(&codes::TOO_MANY_NAMES), "{declaration}");
    }
    let labels: String = (0..8_193).map(|i| format!("l{i}:\n")).collect();
    let labels = found(&format!("station a\n{labels}\nsync slave, 1 s\n"));
    assert_eq!(labels, [codes::TOO_MANY_NAMES]);
    let nested = format!("const A = {}1{}\n", "(".repeat(300), ")".repeat(300));
    assert!(found(&nested).contains(&codes::STATEMENT_LENGTH));
    let deep = format!("station a\nconst A = {}1{}\n", "(-".repeat(80), ")".repeat(80));
    assert_eq!(found(&deep), [codes::EMPTY]);
}

fn program(text: &str) -> StationProgram {
    let assembly = assemble("test.nc", text, AssemblyOptions::default());
    let said: Vec<_> = assembly.diagnostics.iter().map(|d| (&d.message, &d.help)).collect();
    assert!(assembly.diagnostics.iter().all(|d| d.severity == Severity::Warning), "{said:?}");
    assembly.program.expect("nothing is wrong")
}

/// The instruction of one line, in a program with two buffers and a message.
fn instruction(line: &str) -> Instruction {
    let head = "station a\noutput b[2]\ninput c[3]\nmessage m = 9[3]\nconst N = 5\n";
    let frame = format!("{head}begin: sync slave, 1 ms\n{line}\n goto begin\n");
    let assembly = assemble("x.nc", &frame, AssemblyOptions::default());
    let program = assembly.program.unwrap_or_else(|| panic!("{line}: {:?}", assembly.diagnostics));
    Instruction::decode(program.words[1]).expect("it was assembled")
}

fn branch(negated: bool, condition: Condition) -> Instruction {
    let target = Address::new(0).expect("the first");
    Instruction::Branch { guard: Guard { negated, condition }, target }
}

#[test]
fn guards_and_instructions_mean_what_the_definition_says() {
    let create = Instruction::Create { buffer: BufferId(0) };
    assert_eq!(instruction("create b"), create);
    let receive = Instruction::Receive { message: MessageId(9), buffer: BufferId(1) };
    assert_eq!(instruction("receive m, c"), receive);
    for (guard, negated, condition) in [
        ("always", false, Condition::Always),
        ("not always", true, Condition::Always),
        ("count(15, N * 2)", false, Condition::Count { counter: 15, every: 10 }),
        ("count(0, 0xffff_ffff)", false, Condition::Count { counter: 0, every: u32::MAX }),
        ("fresh(m)", false, Condition::Fresh(MessageId(9))),
        ("not fresh(m)", true, Condition::Fresh(MessageId(9))),
        ("received", false, Condition::Received),
        ("sync_timeout", false, Condition::SyncTimeout),
        ("overrun", false, Condition::Overrun),
        ("flag(N - 1)", false, Condition::Flag(4)),
        ("transmitting", false, Condition::Transmitting),
        ("not link_up", true, Condition::LinkUp),
    ] {
        let line = format!("branch {guard}, begin");
        if guard == "always" {
            continue; // what is behind it is not reached, but it is the same as goto
        }
        assert_eq!(instruction(&line), branch(negated, condition), "{guard}");
    }
    assert_eq!(instruction("goto begin"), branch(false, Condition::Always));
    assert_eq!(instruction("branch always, begin"), instruction("goto begin"));
}

#[test]
fn comparisons_hold_exactly_when_they_say_so() {
    let values = [0, 1, 4, 5, 6, 0x7f_ffff, -1, -5, -6, i32::MIN, i32::MAX];
    type Holds = fn(i32, i32) -> bool;
    let table: [(&str, Holds); 12] = [
        ("==", |a, b| a == b),
        ("!=", |a, b| a != b),
        ("<", |a, b| a < b),
        ("<=", |a, b| a <= b),
        (">", |a, b| a > b),
        (">=", |a, b| a >= b),
        ("==u", |a, b| a == b),
        ("!=u", |a, b| a != b),
        ("<u", |a, b| (a as u32) < b as u32),
        ("<=u", |a, b| a as u32 <= b as u32),
        (">u", |a, b| a as u32 > b as u32),
        (">=u", |a, b| a as u32 >= b as u32),
    ];
    for (operator, holds) in table {
        for not in ["", "not "] {
            let line = format!("branch {not}b[1] {operator} -5, begin");
            let Instruction::Branch { guard, .. } = instruction(&line) else { panic!("{line}") };
            let Condition::Immediate { word, relation, value } = guard.condition else {
                panic!("{line}")
            };
            assert_eq!((word, value), (BufferWord { buffer: BufferId(0), index: 1 }, -5));
            for left in values {
                let is_true = relation.holds(left as u32, value as u32) != guard.negated;
                assert_eq!(is_true, holds(left, -5) == not.is_empty(), "{line} {left}");
            }
        }
        let line = format!("branch b[0] {operator} c[2], begin");
        let Instruction::Branch { guard, .. } = instruction(&line) else { panic!("{line}") };
        let Condition::Words { left, relation, right } = guard.condition else { panic!("{line}") };
        assert_eq!((left.buffer, left.index), (BufferId(0), 0));
        assert_eq!((right.buffer, right.index), (BufferId(1), 2));
        for a in values {
            for b in values {
                let is_true = relation.holds(a as u32, b as u32) != guard.negated;
                assert_eq!(is_true, holds(a, b), "{line} {a} {b}");
            }
        }
    }
    let large = instruction("branch b[0] <u 0xffff_ffff, begin");
    let word = BufferWord { buffer: BufferId(0), index: 0 };
    let condition = Condition::Immediate { word, relation: Relation::Below, value: -1 };
    assert_eq!(large, branch(false, condition));
}

#[test]
fn formulas_are_exact() {
    let delay = |formula: &str| {
        let text = format!(
            "station a\nmedium 100 Mbit/s tagged\nconst SLOT = 100 us\nconst N = 3\n\
             begin: future begin, {formula}\n halt\n"
        );
        match Instruction::decode(program(&text).words[0]) {
            Ok(Instruction::Future { delay, .. }) => delay,
            other => panic!("{other:?}"),
        }
    };
    for (formula, cycles) in [
        ("8 ns", 1),
        ("1 us", 125),
        ("1 ms", 125_000),
        ("34 s", 4_250_000_000),
        ("0xffff_ffff cycles", u32::MAX),
        ("SLOT", 12_500),
        ("N * SLOT + 2 * 8 ns", 37_502),
        ("SLOT * N - SLOT * N", 0),
        ("SLOT / 4 / 5", 625),
        ("SLOT / (4 * 5)", 625),
        ("10 cycles - 2 cycles - 1 cycles", 7),
        ("- 1 us - -2 us", 125),
        ("(SLOT / 10 us) * 1 cycles", 10),
        ("4 ns * 2", 1),
        // 68 octets and the preamble, in 10 cycles each.
        ("frame(1)", 760),
        ("frame(N * 100)", (8 + 18 + 4 + 1_200 + 4) * 10),
        ("gap()", 120),
    ] {
        assert_eq!(delay(formula), cycles, "{formula}");
    }
}

#[test]
fn what_is_not_exact_is_told_with_both_nearest_values() {
    for (formula, help) in [
        ("7 / 2", "write 3 or 4"),
        ("-7 / 2", "write -4 or -3"),
        ("7 / -2", "write -4 or -3"),
        ("-7 / -2", "write 3 or 4"),
        ("1 us / 3", "write 333 ns or 334 ns"),
        ("2 us / 1500 ns", "write 1 or 2"),
    ] {
        let text = format!("station a\nconst A = {formula}\nx: sync slave, 1 s\ngoto x\n");
        let assembly = assemble("x.nc", &text, AssemblyOptions::default());
        let found = assembly.diagnostics.iter().map(|d| (d.code, &*d.help));
        assert_eq!(found.collect::<Vec<_>>(), [(codes::REMAINDER, help)], "{formula}");
    }
    let text = "station a\nx: sync slave, 1 us + 3 ns\ngoto x\n";
    let assembly = assemble("x.nc", text, AssemblyOptions::default());
    let found = assembly.diagnostics.iter().map(|d| (d.code, &*d.help));
    assert_eq!(found.collect::<Vec<_>>(), [(codes::FRACTION, "write 1000 ns or 1008 ns")]);
}

#[test]
fn a_name_behind_an_operator_is_no_part_of_it() {
    let text = "station a\nconst u = 2\nconst upper = 3\noutput b[1]\nx: sync slave, 1 s\n\
                branch b[0] <upper, x\nbranch b[0] < u, x\nbranch b[0]<u u, x\ngoto x\n";
    let program = program(text);
    let condition = |at: usize| match Instruction::decode(program.words[at]) {
        Ok(Instruction::Branch { guard: Guard { condition, .. }, .. }) => condition,
        other => panic!("{other:?}"),
    };
    let word = BufferWord { buffer: BufferId(0), index: 0 };
    for (at, relation, value) in
        [(1, Relation::Less, 3), (2, Relation::Less, 2), (3, Relation::Below, 2)]
    {
        assert_eq!(condition(at), Condition::Immediate { word, relation, value });
    }
}

#[test]
fn good_programs_are_assembled_without_a_word() {
    let paths = texts("good");
    assert!(paths.len() >= 4, "{}", paths.len());
    for path in paths {
        let (assembly, _) = assembled(&path);
        assert_eq!(assembly.diagnostics, [], "{}", path.display());
        let program = assembly.program.expect("nothing is wrong");
        assert_eq!(program.words.len(), program.lines.len());
        assert!(program.lines.is_sorted(), "{:?}", program.lines);
    }
}

#[test]
fn the_programs_of_the_manual_are_assembled_without_a_word() {
    let manual = include_str!("../../../docs/network-code.md");
    let blocks: Vec<&str> = manual.split("```text\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (text, _) = block.split_once("```").expect("its end");
        let assembly = assemble("manual", text, AssemblyOptions::default());
        assert_eq!(assembly.diagnostics, []);
        assert!(assembly.program.is_some());
    }
}

#[test]
fn a_buffer_of_a_channel_has_the_length_of_its_message() {
    let text = "output speed = channel \"speed\"\ninput at = channel \"position\"\n\
                message m = 1[3]\nmessage p = 2[1]\nbegin: sync slave, 1 ms\n\
                create speed\nsend m\nreceive p, at\ngoto begin\n";
    let network = network();
    let options = AssemblyOptions { station: Some("talker"), network: Some(&network) };
    let assembly = assemble("talker.nc", text, options);
    assert_eq!(assembly.diagnostics, []);
    let channels: Vec<_> = assembly.channels.iter().map(|(at, name)| (*at, &name[..])).collect();
    assert_eq!(channels, [(0, "speed"), (1, "position")]);
    let program = assembly.program.expect("nothing is wrong");
    assert_eq!(program.station, "talker");
    let buffers = program.buffers.iter().map(|buffer| (buffer.words, buffer.role));
    assert_eq!(buffers.collect::<Vec<_>>(), [(3, BufferRole::Output), (1, BufferRole::Input)]);
    assert_eq!(program.source, "talker.nc");
    assert_eq!(program.lines, [5, 6, 7, 8, 9]);
}

#[test]
fn lines_may_end_as_in_other_systems_and_the_last_one_need_not() {
    let text = "station a\r\nbegin: sync slave, 1 ms # waits\r\n\tgoto begin";
    assert_eq!(program(text).words.len(), 2);
    assert_eq!(program(text).lines, [2, 3]);
}

#[test]
fn things_of_different_kinds_may_share_a_name() {
    let text = "station a\nconst x = 1\noutput x[x]\nmessage x = x[x]\n\
                x: create x\nsend x\nsync slave, 1 ms\nbranch x[0] == x, x\ngoto x\n";
    assert_eq!(program(text).words.len(), 5);
}

/// What is found in a program whose declarations are right: code and line, the first being 1.
fn flow(instructions: &str) -> Vec<(&'static str, usize)> {
    let head = "station a\noutput b[1]\noutput c[2]\nmessage m = 1[1]\nmessage n = 2[2]\n";
    // All declarations and no label are used.
    let used = "create b\nsend m\ncreate c\nsend n\n";
    let text = format!("{head}{used}{}\n", instructions.replace("; ", "\n"));
    let assembly = assemble("x.nc", &text, AssemblyOptions::default());
    let line = |d: &Diagnostic| {
        let (at, _) = d.at.as_ref().expect("a place");
        assembly.source.line(at.start) - 9
    };
    assembly.diagnostics.iter().map(|d| (d.code.as_str(), line(d))).collect()
}

#[test]
fn control_is_followed_as_guards_allow() {
    let fine = [
        // Another path has the countdown, the frame, or its length.
        "x: branch flag(0), y; future x, 1 ms; y: halt",
        "x: branch flag(0), y; future x, 1 ms; y: future x, 2 ms; halt",
        "x: branch flag(0), y; create c; goto z; y: create b; z: send m; sync master; goto x",
        // The first time is right.
        "x: sync master; future x, 1 ms; goto x",
        "create c; x: sync master; send n; goto x",
        // What is behind `not always` is reached, and its label is not.
        "x: sync master; branch not always, x; goto x",
        // The countdown and the send buffer stay over sync, and over halt.
        "x: future y, 1 ms; sync slave, 1 s; halt; y: goto x",
        "x: create c; future y, 1 ms; halt; y: send n; goto x",
        "x: create b; create c; send n; sync master; goto x",
        // A loop that waits on each of its paths.
        "x: branch flag(0), y; sync master; goto x; y: sync slave, 1 s; goto x",
    ];
    for text in fine {
        assert_eq!(flow(text), [], "{text}");
    }
    let wrong: [(&str, &[(&str, usize)]); 13] = [
        ("x: future x, 1 ms; branch flag(0), y; nop; y: future x, 2 ms; halt", &[("OB6044", 4)]),
        ("future y, 1 ms; halt; y: halt", &[("OB6043", 3)]),
        ("x: sync master; branch flag(0), x; halt", &[("OB6043", 3)]),
        ("create c; sync master; send m; x: sync master; goto x", &[("OB6041", 3)]),
        ("x: sync master; create b; create c; send m; goto x", &[("OB6041", 4)]),
        ("x: sync master; send m; goto x", &[("OB6042", 2)]),
        ("x: sync master; nop; branch not always, x", &[("OB6045", 3)]),
        ("x: sync master; goto x; nop; nop; goto x", &[("OB6056", 3)]),
        ("x: sync master; goto y; nop; y: goto x; nop; goto x", &[("OB6056", 3), ("OB6056", 5)]),
        ("x: sync master; branch not always, y; goto x; y: goto x", &[("OB6056", 4)]),
        ("x: goto x", &[("OB6047", 1)]),
        ("x: branch flag(0), x; y: sync master; goto y", &[("OB6047", 1)]),
        // One path does not wait.
        (
            "x: branch flag(0), y; sync master; y: branch flag(1), x; goto x",
            &[("OB6047", 3), ("OB6047", 4)],
        ),
    ];
    for (text, expected) in wrong {
        assert_eq!(flow(text), expected, "{text}");
    }
}

#[test]
fn the_most_tangled_program_is_followed_to_its_end() {
    let mut text = "station a\nsync master\n".to_owned();
    // Each path has another countdown, and each halt continues at any of 1,364 labels.
    for at in 0..1_364 {
        text += &format!("l{at}: branch flag(0), l{}\nfuture l{}, 1 ms\n", 1_363 - at, 1_363 - at);
        text += "branch overrun, end\n";
    }
    text += "sync master\nend: halt\n";
    let assembly = assemble("x.nc", &text, AssemblyOptions::default());
    let codes: BTreeSet<_> = assembly.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, BTreeSet::from([codes::ENDLESS]), "each path may have no countdown");
}

#[test]
fn a_path_without_a_frame_is_no_error_where_another_has_one() {
    let text = "station a\noutput b[1]\nmessage m = 1[1]\nbegin: sync slave, 1 ms\n\
                branch flag(0), over\ncreate b\nover: send m\ngoto begin\n";
    assert_eq!(program(text).words.len(), 5);
}
