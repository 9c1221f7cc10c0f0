//! The C ABI lasts: what programs that were compiled earlier, or for a later library, rely on.

use crate::common::{TestSystem, results, root, two_hosts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The header.
fn header() -> String {
    std::fs::read_to_string(root().join("crates/capi/include/onbeat.h")).expect("onbeat.h")
}

/// Builds one of `tests/programs/abi` as `build/NAME` and runs it, outside of a run; what it says.
fn says(name: &str) -> String {
    let system = TestSystem::new("");
    system.program(&format!("abi/{name}.c"), name);
    said(&system.path().join("build").join(name))
}

fn said(program: &Path) -> String {
    let mut command = Command::new(program);
    for name in ["ONBEAT_COORDINATOR", "ONBEAT_INTERFACE", "ONBEAT_SYSTEM"] {
        command.env_remove(name);
    }
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{errors}", program.display(), output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn header_and_library_say_cargos_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(says("version"), format!("{version} {version}\n"));
}

/// The numbers of the header's `onbeat_status`.
fn statuses() -> BTreeSet<i32> {
    let header = header();
    let (_, text) = header.split_once("typedef enum onbeat_status {").expect("onbeat_status");
    let (text, _) = text.split_once('}').expect("its end");
    let named = text.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "));
    named.map(|(_, number)| number.parse().expect("a number")).collect()
}

#[test]
fn strerror_has_a_text_of_its_own_for_every_status_and_one_for_all_other_numbers() {
    let said = says("strerror");
    let texts: BTreeMap<i32, &str> = said
        .lines()
        .map(|line| line.split_once(' ').expect("a number and a text"))
        .map(|(number, text)| (number.parse().expect("a number"), text))
        .collect();
    assert_eq!(texts.keys().copied().collect::<BTreeSet<_>>(), statuses(), "{said}");
    let different: BTreeSet<_> = texts.values().collect();
    assert_eq!(different.len(), texts.len(), "{said}");
}

/// The description of a program `build/left` that writes `c` and reads `d`.
fn both_ways() -> TestSystem {
    TestSystem::new(&two_hosts(
        r#"
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "A"
size_octets = 8
rate_hz = 1000
talker = "b"
listeners = ["a"]
[[program]]
name = "left"
host = "a"
command = ["build/left"]
"#,
    ))
}

#[test]
fn structures_of_any_size_are_filled_as_far_as_they_go_and_no_further() {
    let system = both_ways();
    system.program("abi/sized.c", "left");
    results(&["run", "."], system.path(), 0);
}

#[test]
fn structures_of_any_size_open_an_interface() {
    let system = TestSystem::new("");
    system.program("abi/interface.c", "interface");
    let output = Command::new(system.path().join("build/interface")).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        println!("channels on `lo` are not tested: {errors}");
        return;
    }
    assert!(output.status.success(), "{}\n{errors}", output.status);
}

#[test]
fn flags_that_mean_nothing_are_refused_by_their_numbers() {
    assert_eq!(says("flags"), "");
}

/// A function of the header.
struct Function {
    name: String,
    comment: String,
    gives_status: bool,
    /// Type and name of each.
    parameters: Vec<(String, String)>,
}

/// All functions of the header.
fn functions() -> Vec<Function> {
    let header = header();
    let (_, declared) = header.split_once("extern \"C\" {").expect("functions");
    let of = |item: &str| {
        let (comment, rest) = item.split_once("*/").expect("a comment ends");
        let declaration = rest.split_once(';').expect("a declaration ends").0;
        let declaration = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
        let (start, parameters) = declaration.split_once('(').expect("parameters");
        let name = start.rsplit([' ', '*']).next().expect("a name").to_owned();
        let parameter = |text: &str| {
            let at = text.rfind([' ', '*']).map_or(0, |at| at + 1);
            (text[..at].trim().to_owned(), text[at..].to_owned())
        };
        let parameters = parameters.trim_end_matches(')').split(", ");
        Function {
            name,
            comment: comment.split(['\n', '*']).map(str::trim).collect::<Vec<_>>().join(" "),
            gives_status: start.starts_with("enum onbeat_status"),
            parameters: parameters.filter(|text| *text != "void").map(parameter).collect(),
        }
    };
    declared.split("/**").skip(1).map(of).collect()
}

/// Whether the header allows NULL: where numbers go, or if it says so.
fn is_optional(function: &Function, kind: &str, name: &str) -> bool {
    let numbers = ["int64_t *", "int32_t *", "size_t *", "int *", "struct onbeat_counters *"];
    let said = [
        "NULL is allowed".to_owned(),
        format!("`{name}`, if not NULL"),
        format!("`{name}` may be NULL"),
    ];
    numbers.contains(&kind)
        || kind == "struct onbeat_message *"
        || said.iter().any(|said| function.comment.contains(said.as_str()))
}

/// An argument that is accepted.
fn valid(kind: &str, name: &str) -> String {
    match (kind.trim_start_matches("const "), name) {
        ("struct onbeat_context *", _) => "run".to_owned(),
        ("struct onbeat_talker *", _) => "talker".to_owned(),
        ("struct onbeat_listener *", _) => "listener".to_owned(),
        ("struct onbeat_listener *const *", _) => "&reader".to_owned(),
        ("struct onbeat_thread *", _) => "thread()".to_owned(),
        ("struct onbeat_selector *", _) => "selector".to_owned(),
        ("struct onbeat_interface *", _) => "&interface".to_owned(),
        ("struct onbeat_channel *", _) => "&channel".to_owned(),
        ("onbeat_thread_body", _) => "body".to_owned(),
        ("char *", _) => "\"c\"".to_owned(),
        ("void *", _) => "octets".to_owned(),
        (_, "interface_size") => "sizeof(interface)".to_owned(),
        (_, "channel_size") => "sizeof(channel)".to_owned(),
        ("size_t", "size") => "8".to_owned(),
        (_, "count" | "value") => "1".to_owned(),
        (pointer, _) if pointer.ends_with('*') => {
            format!("&({}){{0}}", pointer[..pointer.len() - 1].trim_end())
        }
        _ => "0".to_owned(),
    }
}

/// For each function and each of its pointers a call where that one is NULL.
fn calls() -> String {
    let mut calls = String::new();
    for function in functions() {
        let is_pointer = |kind: &str| kind.ends_with('*') || kind == "onbeat_thread_body";
        let pointers = function.parameters.iter().filter(|(kind, _)| is_pointer(kind));
        for (kind, null) in pointers {
            let argument = |(kind, name): &(String, String)| {
                if name == null { "NULL".to_owned() } else { valid(kind, name) }
            };
            let arguments: Vec<_> = function.parameters.iter().map(argument).collect();
            let call = format!("{}({})", function.name, arguments.join(", "));
            let check = match is_optional(&function, kind, null) {
                _ if !function.gives_status => format!("{call};\n"),
                true => format!("accepted({call}, \"{}, {null}\");\n", function.name),
                false => format!("refused({call}, \"{}\", \"`{null}` is NULL\");\n", function.name),
            };
            calls.push_str(&check);
        }
    }
    calls
}

#[test]
fn errors_call_arguments_by_their_names_in_the_header() {
    let system = both_ways();
    let calls = calls();
    let refused = calls.lines().filter(|line| line.starts_with("refused(")).count();
    assert!(refused >= 50, "only {refused} calls are refused");
    std::fs::write(system.path().join("calls.h"), calls).expect("written");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/abi/names.c");
    let include = format!("-I{}", system.path().display());
    system.compile(&source, "left", &[&include]);
    results(&["run", "."], system.path(), 0);
}

/// What version 0.1 had when its ABI became one that lasts: later ones have it as well.
const FUNCTIONS: &str = "\
onbeat_close onbeat_declare onbeat_last_error onbeat_listener_close onbeat_listener_counters \
onbeat_listener_descriptor onbeat_listener_limit onbeat_listener_open onbeat_machine_time \
onbeat_now onbeat_open onbeat_open_interface onbeat_read onbeat_read_latest onbeat_read_timeout \
onbeat_read_wait onbeat_rendezvous onbeat_select onbeat_sleep_until onbeat_start onbeat_stop \
onbeat_talker_close onbeat_talker_counters onbeat_talker_limit onbeat_talker_open \
onbeat_thread_create onbeat_thread_join onbeat_try_read onbeat_try_write onbeat_wait \
onbeat_wait_for onbeat_wake onbeat_work onbeat_work_until onbeat_write onbeat_write_at \
onbeat_write_wait";

#[test]
fn every_function_of_the_first_version_is_there_and_every_one_that_is_declared() {
    let declared: BTreeSet<_> = functions().into_iter().map(|function| function.name).collect();
    let first: BTreeSet<_> = FUNCTIONS.split(' ').map(str::to_owned).collect();
    assert_eq!(first.difference(&declared).collect::<Vec<_>>(), Vec::<&String>::new());
    let names: Vec<_> = declared.iter().map(|name| format!("(call)({name})")).collect();
    let program = format!(
        "#include <onbeat.h>\ntypedef void (*call)(void);\n\
         static const call calls[] = {{ {} }};\n\
         int main(void)\n{{\n\treturn calls[sizeof(calls) / sizeof(*calls) - 1] == 0;\n}}\n",
        names.join(",\n")
    );
    let system = TestSystem::new("");
    let source = system.path().join("all.c");
    std::fs::write(&source, program).expect("written");
    system.compile(&source, "all", &["-Wno-cast-function-type"]);
    assert_eq!(said(&system.path().join("build/all")), "");
}
