//! What is done for a stranger's description, and what is not: nothing of it is executed, written
//! or waited for while it is looked at.

use crate::common::{executable, onbeat};
use std::collections::BTreeSet;
use std::fs::{Permissions, create_dir, read_to_string, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// A host with a program of one file.
const SYSTEM: &str = r#"
format = 1
name = "foreign"
[run]
duration_s = 1
[[host]]
name = "a"
[[bridge]]
name = "s"
[[link]]
ends = ["a", "s"]
rate_mbps = 1000
[[program]]
name = "p"
host = "a"
source = ["p.c"]
"#;

const PROGRAM: &str = "\
#include <cilktc.h>
task t(void) { while (1) { sdelay(10, ms); } }
int main(void) { t(); }
";

/// The verbs that read programs and do not execute them.
const LOOKING: [&str; 3] = ["check", "plan", "tfg"];

/// A stranger's directory, and where the user keeps what is trusted.
struct Case {
    directory: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Case {
    fn new(flags: &[&str]) -> Self {
        let [directory, state] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let case = Self { directory, state };
        let place = case.directory.path();
        write(place.join("system.toml"), format!("{SYSTEM}cflags = {flags:?}\n")).expect("written");
        write(place.join("p.c"), PROGRAM).expect("written");
        create_dir(place.join("bin")).expect("a directory");
        // Whatever the compiler is made to execute leaves a file.
        let canary = place.join("executed");
        let script = format!("#!/bin/sh\ntouch {}\nexit 1\n", canary.display());
        for name in ["cc1", "wrapper", "as"] {
            executable(&place.join("bin").join(name), &script);
        }
        case
    }

    fn place(&self) -> &Path {
        self.directory.path()
    }

    fn onbeat(&self, arguments: &[&str]) -> Output {
        let mut command = onbeat();
        command.args(arguments).current_dir(self.place());
        command.env("XDG_STATE_HOME", self.state.path()).output().expect("onbeat runs")
    }

    /// The files in the directory.
    fn files(&self) -> BTreeSet<String> {
        let entries = self.place().read_dir().expect("a directory");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_that_a_description_says_is_executed_or_written_when_it_is_looked_at() {
    let all: [&[&str]; 8] = [
        &["-B./bin/"],
        &["-wrapper", "./bin/wrapper"],
        &["-Wp,-MD,made"],
        &["-MD", "-MF", "made"],
        &["-fplugin=./bin/x.so"],
        &["-specs=bin/specs"],
        &["-save-temps"],
        &["@words"],
    ];
    for flags in all {
        let case = Case::new(flags);
        write(case.place().join("words"), "-B./bin/").expect("written");
        write(case.place().join("bin/specs"), "%rename cpp old\n").expect("written");
        let before = case.files();
        for verb in LOOKING {
            let output = case.onbeat(&[verb, "."]);
            let said = said(&output);
            assert!(said.contains("OB3003") && said.contains(flags[0]), "{verb} {flags:?}: {said}");
            assert!(said.contains("--trust"), "{said}");
            assert_eq!(case.files(), before, "{verb} {flags:?}");
        }
        let output = case.onbeat(&["check", ".", "--json"]);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["diagnostics"][0]["code"], "OB3003", "{found}");
    }
}

#[test]
fn who_trusts_a_directory_says_it_once() {
    let case = Case::new(&["-B./bin/"]);
    let executed = case.place().join("executed");
    case.onbeat(&["tfg", ".", "--trust"]);
    assert!(executed.exists());
    std::fs::remove_file(&executed).expect("removed");
    case.onbeat(&["tfg", "."]);
    assert!(executed.exists());
    std::fs::remove_file(&executed).expect("removed");
    let list = case.state.path().join("onbeat/trusted");
    let path = case.place().canonicalize().expect("a path");
    assert_eq!(read_to_string(&list).expect("a list"), format!("{}\n", path.display()));
    // A list that others can write is nobody's word.
    set_permissions(&list, Permissions::from_mode(0o666)).expect("permissions");
    let output = case.onbeat(&["tfg", "."]);
    assert!(said(&output).contains("others can write") && !executed.exists(), "{}", said(&output));
}

#[test]
fn a_description_with_usual_options_needs_no_trust() {
    let case = Case::new(&["-DX=1", "-I.", "-Wall", "-O2", "-std=gnu11"]);
    for verb in LOOKING {
        let output = case.onbeat(&[verb, "."]);
        assert!(output.status.success(), "{verb}: {}", said(&output));
        assert!(!said(&output).contains("OB3003"), "{verb}: {}", said(&output));
    }
}

#[test]
fn what_gives_nothing_or_too_much_is_not_waited_for() {
    let bomb: String = (1..40).fold("#define a0 x x\n".to_owned(), |text, n| {
        format!("{text}#define a{n} a{0} a{0}\n", n - 1)
    });
    let fifo = |name: &'static str| {
        move |place: &Path| {
            let _ = std::fs::remove_file(place.join(name));
            let made = std::process::Command::new("mkfifo").arg(place.join(name)).status();
            assert!(made.expect("mkfifo runs").success());
        }
    };
    let sparse = |name: &'static str| {
        move |place: &Path| {
            let file = std::fs::File::create(place.join(name)).expect("a file");
            file.set_len(6_000_000_000).expect("a size");
        }
    };
    type Make<'a> = Box<dyn Fn(&Path) + 'a>;
    let text = |name: &'static str, text: String| -> Make<'static> {
        Box::new(move |place| write(place.join(name), &text).expect("written"))
    };
    let including = |name: &str| text("p.c", format!("#include \"{name}\"\n{PROGRAM}"));
    let all: Vec<(&str, Vec<Make<'_>>, &str)> = vec![
        ("a FIFO as description", vec![Box::new(fifo("system.toml"))], "no regular file"),
        ("a sparse description", vec![Box::new(sparse("system.toml"))], "more than"),
        ("a FIFO as program", vec![Box::new(fifo("p.c"))], "no regular file"),
        ("a sparse program", vec![Box::new(sparse("p.c"))], "more than"),
        ("a FIFO as header", vec![including("h.h"), Box::new(fifo("h.h"))], "such as a pipe"),
        ("a device as header", vec![including("/dev/zero")], "p"),
        ("a device by a line", vec![text("p.c", format!("# 1 \"/dev/zero\"\n{PROGRAM}"))], ""),
        ("a macro bomb", vec![text("p.c", format!("{bomb}{PROGRAM}int y = a39;\n"))], "16 MiB"),
    ];
    for (what, make, expected) in all {
        let case = Case::new(&[]);
        make.iter().for_each(|make| make(case.place()));
        let output = case.onbeat(&["check", "."]);
        // A slow machine's compiler comes to its time limit before that of what it prints.
        let is_slow = what == "a macro bomb" && said(&output).contains("does not end");
        assert!(is_slow || said(&output).contains(expected), "{what}: {}", said(&output));
    }
}

/// A system of two hosts that write and read nothing, run in virtual time.
fn with_output() -> Case {
    let case = Case::new(&[]);
    let output = case.onbeat(&["run", "."]);
    assert!(output.status.success(), "{}", said(&output));
    case
}

/// A record file whose scenario has another name.
fn renamed(records: &[u8], scenario: &str) -> Vec<u8> {
    let length = u32::from_le_bytes(records[12..16].try_into().expect("four octets")) as usize;
    let count = (scenario.len() as u32).to_le_bytes();
    [&records[..12], &count, scenario.as_bytes(), &records[16 + length..]].concat()
}

#[test]
fn records_and_results_with_paths_for_names_are_refused() {
    let case = with_output();
    let place = case.place();
    write(place.join("victim"), "precious").expect("written");
    let records = place.join("out/1-run/records.onb");
    let right = std::fs::read(&records).expect("records");
    let results = place.join("out/results.json");
    let text = read_to_string(&results).expect("results");
    for name in ["x/../../../victim", "../victim", "/tmp/victim", "..", "a\nb"] {
        write(&records, renamed(&right, name)).expect("written");
        let output = case.onbeat(&["report", "."]);
        assert_eq!(output.status.code(), Some(5), "{name}: {}", said(&output));
        assert!(
            said(&output).contains("the scenario has an impossible value"),
            "{}",
            said(&output)
        );
    }
    write(&records, &right).expect("written");
    let named = text.replace("\"scenario\": \"\"", "\"scenario\": \"../victim\"");
    assert_ne!(named, text);
    write(&results, named).expect("written");
    let output = case.onbeat(&["report", "."]);
    assert!(said(&output).contains("a name that none can have"), "{}", said(&output));
    assert_eq!(read_to_string(place.join("victim")).expect("there"), "precious");
}

#[test]
fn outputs_do_not_go_by_links() {
    let case = with_output();
    let place = case.place();
    let elsewhere = tempfile::tempdir().expect("a directory");
    write(elsewhere.path().join("precious"), "precious").expect("written");
    // The output's own name, by default.
    let moved = elsewhere.path().join("out");
    std::fs::rename(place.join("out"), &moved).expect("moved");
    std::os::unix::fs::symlink(&moved, place.join("out")).expect("a link");
    let before = std::fs::metadata(moved.join("report.html")).expect("a report").modified();
    for verb in ["run", "report"] {
        let output = case.onbeat(&[verb, "."]);
        assert!(said(&output).contains("is a link: say with --out"), "{verb}: {}", said(&output));
    }
    let after = std::fs::metadata(moved.join("report.html")).expect("a report").modified();
    assert_eq!(before.expect("a time"), after.expect("a time"));
    let out = place.join("out").display().to_string();
    assert!(case.onbeat(&["report", ".", "--out", &out]).status.success());
    // The recording beside it.
    std::fs::remove_file(place.join("out")).expect("removed");
    std::os::unix::fs::symlink(elsewhere.path().join("precious"), place.join("out.recording"))
        .expect("a link");
    assert!(case.onbeat(&["run", "."]).status.success());
    let precious = read_to_string(elsewhere.path().join("precious"));
    assert_eq!(precious.expect("there"), "precious");
}

/// The first column of SECURITY.md's table.
#[test]
fn the_security_page_says_of_every_verb_what_it_may_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = read_to_string(root.join("SECURITY.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let stated: BTreeSet<String> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|verbs| verbs.split(','))
        .map(|verb| verb.trim().trim_matches('`').to_owned())
        .collect();
    let help = onbeat().arg("--help").output().expect("onbeat runs").stdout;
    let help = String::from_utf8(help).expect("text");
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: BTreeSet<String> = verbs
        .take_while(|line| !line.is_empty())
        // What a verb does may continue in a second line, further to the right.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect();
    assert_eq!(stated, verbs);
}

/// What no line of output may show.
const SECRET: &str = "k3y-0f-th3-us3r";

/// Ways to a file beside the directory: what is put into which file, or a link from where.
const WAYS: [(&str, &str); 8] = [
    ("system.toml", "LINK"),
    ("system.toml", "manifest = \"../OUTSIDE/secret\"\n"),
    ("system.toml", "execution_times = \"../OUTSIDE/secret\"\n"),
    ("p.c", "LINK"),
    ("p.c", "#include \"../OUTSIDE/secret\"\n"),
    ("p.c", "#include \"ABSOLUTE/secret\"\n#pragma GCC system_header\n"),
    ("p.c", "#pragma GCC system_header\n#include \"<a>/../../OUTSIDE/secret\"\n"),
    ("x.h", "LINK"),
];

#[test]
fn nothing_of_a_file_outside_the_directory_is_shown_unless_it_is_trusted() {
    let mut shown = BTreeSet::new();
    for (number, (file, what)) in WAYS.iter().enumerate() {
        let outside = tempfile::tempdir().expect("a directory");
        let name = outside.path().file_name().expect("a name").to_string_lossy().into_owned();
        let secret = outside.path().join("secret");
        // No TOML, and no C: a diagnostic is about it.
        let text = format!("\"{SECRET}\" {SECRET} = '{SECRET}\n#error {SECRET}\n");
        write(&secret, text).expect("written");
        let case = Case::new(&["-DX=1"]);
        let place = case.place().join(file);
        create_dir(case.place().join("<a>")).expect("a directory");
        if *what == "LINK" {
            let _ = std::fs::remove_file(&place);
            std::os::unix::fs::symlink(&secret, &place).expect("a link");
            if *file == "x.h" {
                write(case.place().join("p.c"), "#include \"x.h\"\n").expect("written");
            }
        } else {
            let absolute = outside.path().display().to_string();
            let what = what.replace("OUTSIDE", &name).replace("ABSOLUTE", &absolute);
            let text = read_to_string(&place).expect("a text");
            let text = match what.starts_with("manifest") {
                true => what + &text,
                false if *file == "p.c" => what + &text,
                false => text + &what,
            };
            write(&place, text).expect("written");
        }
        for verb in ["check", "plan", "tfg", "bounds", "manifest", "simulate"] {
            let more: &[&str] = if verb == "manifest" { &["--c"] } else { &[] };
            let output = case.onbeat(&[&[verb, "."], more].concat());
            let said = said(&output) + &String::from_utf8_lossy(&output.stdout);
            assert!(!said.contains(SECRET), "{verb}, {file}, {what}: {said}");
            let is_read = LOOKING.contains(&verb) || *file == "system.toml";
            let is_told = said.contains("outside the description's directory")
                || said.contains("is not passed to the compiler");
            assert!(is_told || !is_read, "{verb}, {file}, {what}: {said}");
        }
        let output = case.onbeat(&["check", ".", "--trust"]);
        if said(&output).contains(SECRET) {
            shown.insert(number);
        }
    }
    assert!(shown.len() > 5, "what is trusted is read: {shown:?}");
}
