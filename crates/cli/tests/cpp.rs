//! C++ programs: what `onbeat.hpp` promises, and that they record what the same programs in C do.

use crate::common::{TestSystem, channel, library, number, results, root, run, two_hosts};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cpp").join(name)
}

fn compiler(name: &str) -> Command {
    let mut compiler = Command::new(name);
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"]);
    compiler.args(["-Werror", "-O1", "-I"]).arg(root().join("crates/capi/include"));
    compiler
}

/// The C++ compilers of this machine, of those that the header is meant for.
fn compilers() -> Vec<&'static str> {
    let (there, missing): (Vec<_>, Vec<_>) = ["g++", "clang++"]
        .into_iter()
        .partition(|name| Command::new(name).arg("--version").output().is_ok());
    for name in missing {
        println!("{name} is not there: onbeat.hpp is not compiled with it");
    }
    assert!(!there.is_empty(), "a C++ compiler is missing");
    there
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Builds C++ sources as `build/NAME`.
fn compile(system: &TestSystem, compiler_name: &str, sources: &[&str], name: &str) {
    let target = system.path().join("build");
    std::fs::create_dir_all(&target).expect("build");
    let output = compiler(compiler_name)
        .args(sources.iter().map(|name| source(name)))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(target.join(name))
        .output()
        .expect("a C++ compiler");
    assert!(output.status.success(), "{compiler_name}: {}", said(&output));
}

#[test]
fn programs_in_cpp_record_what_the_same_programs_in_c_do() {
    let system = TestSystem::example("01-two-hosts");
    let record = || {
        let results = results(&["run", ".", "--duration", "2s"], system.path(), 0);
        assert_eq!(number(channel(&results, "mcast42"), "received"), 100);
        results["runs"][0]["record_hash"].as_str().expect("a hash").to_owned()
    };
    let in_c = record();
    for compiler in compilers() {
        compile(&system, compiler, &["talker.cpp"], "talker");
        compile(&system, compiler, &["listener.cpp"], "listener");
        assert_eq!(record(), in_c, "{compiler}");
    }
}

#[test]
fn an_exception_that_a_thread_does_not_catch_ends_the_process_as_in_the_standard_library() {
    let system = TestSystem::new(&two_hosts(
        "[[program]]\nname = \"left\"\nhost = \"a\"\ncommand = [\"build/throws\"]\n",
    ));
    for compiler in compilers() {
        compile(&system, compiler, &["throws.cpp"], "throws");
        for time in ["virtual", "real"] {
            let output = run(&["run", ".", "--time", time], system.path(), 4);
            let said = said(&output);
            for words in ["thrown in a thread of the run", "`left`", "SIGABRT"] {
                assert!(said.contains(words), "{compiler} {time}: {said}");
            }
        }
    }
}

#[test]
fn every_call_of_the_cpp_header_does_what_it_says_and_allocates_nothing() {
    let more = |name: &str, id: u32, size: u32, from: &str, to: &str| {
        format!(
            "[[channel]]\nname = \"{name}\"\ndestination = \"01:00:5e:00:00:0{id}\"\n\
             stream_id = {id}\nclass = \"A\"\nsize_octets = {size}\nrate_hz = 1000\n\
             talker = \"{from}\"\nlisteners = [\"{to}\"]\n"
        )
    };
    let program = |name: &str, host: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nhost = \"{host}\"\n\
             command = [\"build/calls\", \"{name}\"]\n"
        )
    };
    let extra = [
        more("d", 2, 16, "b", "a"),
        more("e", 3, 4, "a", "b"),
        program("left", "a"),
        program("right", "b"),
    ];
    let system = TestSystem::new(&two_hosts(&extra.concat()));
    for name in compilers() {
        compile(&system, name, &["calls.cpp", "calls_reader.cpp"], "calls");
        let results = results(&["run", "."], system.path(), 0);
        // Eight values, one of them twice: a first meeting takes two messages.
        assert_eq!(number(channel(&results, "c"), "sent"), 9, "{name}");
    }
}

#[test]
fn a_channel_on_an_interface_carries_typed_messages() {
    let system = TestSystem::new("");
    compile(&system, compilers()[0], &["interface.cpp"], "interface");
    let program = system.path().join("build/interface");
    let output = Command::new(program).output().expect("it runs");
    if output.status.code() == Some(77) {
        println!("channels on `lo` are not tested: {}", said(&output));
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_program_in_the_readme_compiles() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let (_, program) = text.split_once("```cpp\n").expect("a program in C++");
    let (program, _) = program.split_once("```\n").expect("its end");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("watch.cpp");
    std::fs::write(&file, program).expect("written");
    for name in compilers() {
        let output = compiler(name).arg("-fsyntax-only").arg(&file).output().expect("it runs");
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}

#[test]
fn what_is_no_message_does_not_compile() {
    for (message, why) in [
        ("std::string", "trivially copyable"),
        ("const char *", "without pointers"),
        ("std::array<char, 65537>", "1 to 65536 octets"),
        ("std::array<char, 65536>", ""),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("message.cpp");
        let text = format!(
            "#include <onbeat.hpp>\nint main() {{ onbeat::Context run; \
             onbeat::Talker<{message}> talker(run, \"c\"); }}\n"
        );
        std::fs::write(&file, text).expect("written");
        for name in compilers() {
            let output = compiler(name).arg("-fsyntax-only").arg(&file).output().expect("it runs");
            assert_eq!(output.status.success(), why.is_empty(), "{name}: {}", said(&output));
            assert!(said(&output).contains(why), "{name}: {}", said(&output));
        }
    }
}
