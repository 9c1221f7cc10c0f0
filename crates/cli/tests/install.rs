//! `make install` puts everything where programs find it, `make uninstall` takes it away again, and
//! programs build and run with what was installed and nothing else.

use onbeat_testkit::{Need, not_run, root, tree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exits with 3 and the reason on standard error when it is not run by `onbeat run`.
const PROGRAM: &str = r#"
#include <onbeat.h>
#include <stdio.h>

int main(void)
{
	onbeat *run;

	if (onbeat_open(&run) == ONBEAT_E_COORDINATOR) {
		fprintf(stderr, "%s\n", onbeat_last_error());
		return 3;
	}
	return 1;
}
"#;

const PROGRAM_CPP: &str = r#"
#include <onbeat.hpp>
#include <iostream>

int main() {
    try {
        onbeat::Context run;
    } catch (const onbeat::Error &error) {
        std::cerr << error.what() << '\n';
        return error.status() == ONBEAT_E_COORDINATOR ? 3 : 1;
    }
}
"#;

const CMAKE_LISTS: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(program CXX)
find_package(onbeat REQUIRED)
find_package(onbeat 0.1 REQUIRED)
find_package(onbeat ${onbeat_VERSION} EXACT REQUIRED)
foreach(kind "" "-static")
  add_executable(program${kind} program.cpp)
  target_compile_features(program${kind} PRIVATE cxx_std_17)
  target_link_libraries(program${kind} PRIVATE onbeat::onbeat${kind})
endforeach()
foreach(version 0.0.9 0.2 1.0 9)
  find_package(onbeat ${version} QUIET)
  if(onbeat_FOUND)
    message(FATAL_ERROR "the package takes itself for version ${version}")
  endif()
endforeach()
"#;

fn said(output: &Output) -> String {
    let part = String::from_utf8_lossy;
    format!("{}{}", part(&output.stdout), part(&output.stderr))
}

/// Runs a command that must succeed.
fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
    said(&output)
}

/// `make` of the source tree, without what an outer make says.
fn make(target: &str, variables: &[String]) {
    let mut make = Command::new("make");
    make.current_dir(tree()).arg("-s").arg(target).args(variables);
    must(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS"));
}

/// Whether a tool is there; says what is not tested if it is not.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        not_run(Need::Tools, format_args!("{tool} is not there: what it finds is not tested"));
    }
    found
}

/// Every file below a directory, relative to it.
fn files(below: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut ahead = vec![below.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in directory.read_dir().expect("a directory").flatten() {
            if entry.file_type().expect("a type").is_dir() {
                ahead.push(entry.path());
            } else {
                let path = entry.path();
                let path = path.strip_prefix(below).expect("below");
                found.insert(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    found
}

/// The functions that onbeat.h declares.
fn functions() -> BTreeSet<String> {
    let header = root().join("crates/capi/include/onbeat.h");
    let header = std::fs::read_to_string(header).expect("onbeat.h");
    let (_, declared) = header.split_once("extern \"C\" {").expect("functions");
    let lines = declared.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
    let names = lines.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    names.map(str::to_owned).collect()
}

/// Where `make install PREFIX=/opt/o` puts what the command reads.
fn data(file: &str) -> String {
    format!("opt/o/share/onbeat/{file}")
}

/// Where it puts what is to be read and copied.
fn doc(file: &str) -> String {
    format!("opt/o/share/doc/onbeat/{file}")
}

/// The files of all examples, without what builds and runs leave there.
fn examples() -> BTreeSet<String> {
    let is_made = |part: &str| {
        ["build", "out"].contains(&part)
            || part.starts_with("out-")
            || part.starts_with("out.")
            || part.contains(".csv")
    };
    let all = files(&root().join("examples")).into_iter();
    let is_part = |name: &String| name.starts_with(|c: char| c.is_ascii_digit());
    let names: BTreeSet<_> = all.filter(|n| is_part(n) && !n.split('/').any(is_made)).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

/// Where shells find their scripts, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/onbeat"),
    ("zsh", "zsh/site-functions/_onbeat"),
    ("fish", "fish/vendor_completions.d/onbeat.fish"),
];

/// What is installed below /opt/o for readers, editors, shells and Wireshark.
fn read_and_copied() -> Vec<String> {
    let mut expected: Vec<String> = ["wireshark/onbeat.lua", "programs.mk"].map(data).into();
    let schemas = files(&root().join("schema"));
    expected.extend(schemas.iter().map(|schema| data(&format!("schema/{schema}"))));
    expected.extend(COMPLETIONS.map(|(_, script)| format!("opt/o/share/{script}")));
    let pages = files(&root().join("docs"));
    expected.extend(pages.iter().map(|page| doc(&format!("docs/{page}"))));
    expected.push(doc("examples/README.md"));
    expected.extend(examples().iter().map(|file| doc(&format!("examples/{file}"))));
    expected
}

/// An installation in a directory of its own, with a directory for programs beside it.
struct Installed {
    directory: TempDir,
    /// The installation within the directory.
    prefix: &'static str,
}

impl Installed {
    fn new() -> Self {
        Self::with(&|_| Vec::new())
    }

    /// With variables of `make` besides the prefix.
    fn with(more: &dyn Fn(&str) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let installed = Self { directory, prefix: "prefix" };
        let prefix = installed.prefix().display().to_string();
        let mut variables = more(&prefix);
        variables.push(format!("PREFIX={prefix}"));
        make("install", &variables);
        std::fs::create_dir(installed.path("work")).expect("work");
        installed
    }

    /// Moves all of it, as one who unpacks it elsewhere does.
    fn moved(mut self) -> Self {
        let before = self.prefix();
        self.prefix = "some/where";
        std::fs::create_dir(self.path("some")).expect("a directory");
        std::fs::rename(before, self.prefix()).expect("moved");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn prefix(&self) -> PathBuf {
        self.path(self.prefix)
    }

    /// Where its libraries are.
    fn libraries(&self) -> PathBuf {
        let own = self.prefix().join("lib");
        let deeper = own.join("here");
        if deeper.is_dir() { deeper } else { own }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("work").join(name), text).expect("written");
    }

    /// The installed command, which is to find all that it needs by itself.
    fn onbeat(&self) -> Command {
        let mut command = Command::new(self.prefix().join("bin/onbeat"));
        command.env_remove("ONBEAT_HOME").env_remove("LD_LIBRARY_PATH");
        command
    }

    /// `PATH` with the installed command before all others.
    fn path_with_command(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.prefix().join("bin").display())
    }

    /// What `pkg-config` says of Onbeat, word by word.
    fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        self.package("onbeat", arguments)
    }

    fn package(&self, package: &str, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.libraries().join("pkgconfig"));
        let answer = must(command.args(arguments).arg(package));
        answer.split_whitespace().map(str::to_owned).collect()
    }

    /// Runs a program outside of a run: it must find its library and be told what is missing.
    fn runs(&self, program: &Path) {
        let output = Command::new(program)
            .env("LD_LIBRARY_PATH", self.libraries())
            .env_remove("ONBEAT_COORDINATOR")
            .env_remove("ONBEAT_INTERFACE")
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains("`onbeat run`"), "{}", said(&output));
    }
}

/// What a program needs at run time, as the linker noted it.
fn needs_shared_library(program: &Path) -> bool {
    let soname = format!("libonbeat.so.{}\0", env!("CARGO_PKG_VERSION_MAJOR"));
    let octets = std::fs::read(program).expect("the program");
    octets.windows(soname.len()).any(|window| window == soname.as_bytes())
}

#[test]
fn everything_is_installed_below_destdir_and_uninstalled() {
    let stage = tempfile::tempdir().expect("a directory");
    let variables = [format!("DESTDIR={}", stage.path().display()), "PREFIX=/opt/o".to_owned()];
    make("install", &variables);
    let mut expected: BTreeSet<_> = [
        "bin/onbeat",
        "lib/libonbeat.a",
        "lib/libonbeat.so",
        concat!("lib/libonbeat.so.", env!("CARGO_PKG_VERSION_MAJOR")),
        &format!("lib/libonbeat.so.{VERSION}"),
        "lib/pkgconfig/onbeat.pc",
        "lib/cmake/onbeat/onbeat-config.cmake",
        "lib/cmake/onbeat/onbeat-config-version.cmake",
        "lib/libmrp.a",
        "lib/libnetchan.a",
        "lib/libtimedc.a",
        "lib/libtimedc_avtp.a",
        "lib/pkgconfig/netchan.pc",
        "lib/pkgconfig/timedc_avtp.pc",
        "share/onbeat/directories",
        "share/onbeat/wrapped.txt",
        "share/onbeat/abortable.txt",
        "share/onbeat/freertos/sources.txt",
        "share/onbeat/freertos/FreeRTOSConfig.h",
        "share/onbeat/lf/Onbeat.lf",
        "share/onbeat/lf/README.md",
        "share/onbeat/lf/onbeat.cmake",
        "share/onbeat/lf/onbeat-federated.cmake",
        "share/onbeat/lf/sources.cmake",
    ]
    .map(|file| format!("opt/o/{file}"))
    .into();
    for header in files(&root().join("crates/capi/include")) {
        expected.insert(format!("opt/o/share/man/man3/{header}.3"));
        expected.insert(format!("opt/o/include/{header}"));
    }
    let functions = functions();
    expected.extend(functions.iter().map(|name| format!("opt/o/share/man/man3/{name}.3")));
    expected.insert("opt/o/share/man/man1/onbeat.1".to_owned());
    let compat = root().join("compat");
    expected.extend(files(&compat.join("include")).iter().map(|h| format!("opt/o/include/{h}")));
    expected.extend(files(&compat.join("man")).iter().map(|p| format!("opt/o/share/man/man3/{p}")));
    let timedc = root().join("timedc");
    expected.extend(files(&timedc.join("include")).iter().map(|h| format!("opt/o/include/{h}")));
    for part in ["include", "src"] {
        let of_part = files(&timedc.join("freertos").join(part));
        let installed = |name: &String| format!("opt/o/share/onbeat/freertos/{part}/{name}");
        expected.extend(of_part.iter().map(installed));
    }
    for part in ["include", "src"] {
        let of_part = files(&root().join("lf").join(part));
        expected.extend(of_part.iter().map(|name| data(&format!("lf/{part}/{name}"))));
    }
    expected.extend(read_and_copied());
    assert_eq!(files(stage.path()), expected);
    for file in expected.iter().filter(|file| file.ends_with(".pc") || file.ends_with(".cmake")) {
        let text = std::fs::read_to_string(stage.path().join(file)).expect("text");
        assert!(!text.contains('@'), "{file}: {text}");
        assert!(!text.contains(stage.path().to_str().expect("UTF-8")), "{file}: {text}");
        assert!(!text.contains("/opt/o"), "{file}: it cannot be moved: {text}");
    }
    for name in functions {
        let page = stage.path().join(format!("opt/o/share/man/man3/{name}.3"));
        let page = std::fs::read_to_string(page).expect("a page, also behind a link");
        assert!(page.contains(&format!("\\fB{name}\\fP")), "{name}: {page}");
    }
    let command = stage.path().join("opt/o/bin/onbeat");
    assert!(must(Command::new(command).arg("--version")).contains(VERSION));
    make("uninstall", &variables);
    assert_eq!(files(stage.path()), BTreeSet::new());
}

#[test]
fn what_is_installed_for_editors_and_shells_is_current() {
    let stage = tempfile::tempdir().expect("a directory");
    make("install", &[format!("DESTDIR={}", stage.path().display()), "PREFIX=/opt/o".to_owned()]);
    let installed = files(stage.path());
    let descriptions: Vec<_> = installed.iter().filter(|file| file.ends_with(".toml")).collect();
    assert!(descriptions.len() >= 5, "{descriptions:?}");
    for file in descriptions {
        let text = std::fs::read_to_string(stage.path().join(file)).expect("text");
        let schema = text.lines().next().and_then(|line| line.strip_prefix("#:schema /"));
        assert!(schema.is_some_and(|schema| installed.contains(schema)), "{file}: {schema:?}");
    }
    for (shell, script) in COMPLETIONS {
        let script = std::fs::read_to_string(stage.path().join("opt/o/share").join(script));
        let mut command = Command::new(stage.path().join("opt/o/bin/onbeat"));
        assert_eq!(script.expect("a script"), must(command.args(["completions", shell])));
    }
}

#[test]
fn timed_c_is_compiled_with_what_was_installed_and_nothing_else() {
    let builds = |installed: &Installed| {
        installed.write("timed.c", "int main(void) { return sdelay(1, ms); }\n");
        let mut cc = Command::new(installed.prefix().join("bin/onbeat"));
        let program = installed.path("work/timed");
        cc.arg("cc").arg(installed.path("work/timed.c")).arg("-o").arg(&program);
        must(cc.env_remove("ONBEAT_HOME"));
        must(&mut Command::new(program));
    };
    builds(&Installed::new());
    // As distributions have it.
    builds(&Installed::with(&|prefix| {
        vec![format!("LIBDIR={prefix}/lib/here"), format!("INCLUDEDIR={prefix}/include/onbeat")]
    }));
}

#[test]
fn c_programs_build_with_pkg_config() {
    if has("pkg-config") {
        build_with_pkg_config(&Installed::new());
    }
}

fn build_with_pkg_config(installed: &Installed) {
    assert_eq!(installed.pkg_config(&["--modversion"]), [VERSION]);
    installed.write("program.c", PROGRAM);
    let build = |name: &str, before: &[&str], pkg_config: &[&str]| {
        let program = installed.path("work").join(name);
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror"]).arg(installed.path("work/program.c"));
        cc.args(before).args(installed.pkg_config(pkg_config)).arg("-o").arg(&program);
        must(&mut cc);
        installed.runs(&program);
        needs_shared_library(&program)
    };
    assert!(build("shared", &[], &["--cflags", "--libs"]));
    installed.write("empty.c", "int main(void) { return 0; }\n");
    let mut can = Command::new("cc");
    can.arg("-static").arg(installed.path("work/empty.c")).arg("-o").arg(installed.path("empty"));
    if can.output().is_ok_and(|output| output.status.success()) {
        assert!(!build("static", &["-static"], &["--static", "--cflags", "--libs"]));
    } else {
        println!("there is no static C library: programs without shared libraries are not tested");
    }
    // Onbeat alone linked statically: the private libraries must be all that it needs.
    std::fs::remove_file(installed.libraries().join("libonbeat.so")).expect("removed");
    assert!(!build("mixed", &[], &["--static", "--cflags", "--libs"]));
}

#[test]
fn cpp_programs_build_with_cmake() {
    if has("cmake") {
        build_with_cmake(&Installed::new());
    }
}

fn build_with_cmake(installed: &Installed) {
    installed.write("CMakeLists.txt", CMAKE_LISTS);
    installed.write("program.cpp", PROGRAM_CPP);
    let build = installed.path("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(installed.path("work")).arg("-B").arg(&build);
    // Deeper libraries CMake does not find by the prefix.
    let (prefix, deeper) = (installed.prefix(), installed.libraries().join("cmake"));
    configure.arg(format!("-DCMAKE_PREFIX_PATH={};{}", prefix.display(), deeper.display()));
    must(configure.args(["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", "-Wno-dev"]));
    must(Command::new("cmake").arg("--build").arg(&build));
    for (name, shared) in [("program", true), ("program-static", false)] {
        installed.runs(&build.join(name));
        assert_eq!(needs_shared_library(&build.join(name)), shared, "{name}");
    }
}

/// As lfc writes it: it includes copies of the files that a target block names.
const CMAKE_LISTS_OF_LFC: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(federate LANGUAGES C)
set(CMAKE_C_STANDARD 11)
set(LF_MAIN_TARGET federate)
add_executable(${LF_MAIN_TARGET} ${LF}/test/federation.c ${LF}/test/stub/runtime.c
  ${LF}/test/stub/federate.c ${LF}/test/stub/socket.c)
target_include_directories(${LF_MAIN_TARGET} PUBLIC ${LF}/test/stub)
find_package(Threads REQUIRED)
target_link_libraries(${LF_MAIN_TARGET} PRIVATE Threads::Threads)
include(onbeat.cmake)
include(onbeat-federated.cmake)
"#;

#[test]
fn programs_of_lingua_franca_build_with_what_was_installed() {
    if !has("cmake") || !has("pkg-config") {
        return;
    }
    let installed = Installed::new().moved();
    let lf = installed.pkg_config(&["--variable=lfdir"]).concat();
    assert!(Path::new(&lf).join("Onbeat.lf").is_file(), "{lf}");
    installed.write("CMakeLists.txt", CMAKE_LISTS_OF_LFC);
    for file in ["onbeat.cmake", "onbeat-federated.cmake"] {
        std::fs::copy(Path::new(&lf).join(file), installed.path("work").join(file))
            .expect("a copy");
    }
    let build = installed.path("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(installed.path("work")).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed.prefix().display()));
    // The stand-in for the runtime is ours; what it is built with is what was installed.
    configure.arg(format!("-DLF={}", root().join("lf").display()));
    must(configure.args(["-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", "-Wno-dev"]));
    let built = must(Command::new("cmake").arg("--build").arg(&build).arg("--verbose"));
    for source in ["reactors.c", "federated.c", "member.c"] {
        let compiled = format!("/share/onbeat/lf/src/{source}");
        let count = built.lines().filter(|line| line.ends_with(&compiled)).count();
        assert_eq!(count, 1, "{source}: {built}");
    }
    let federate = |table: Option<&str>| {
        let mut federate = Command::new(build.join("federate"));
        federate.args(["0", "10", "octets:/dev/null"]).env_remove("ONBEAT_LF_TABLE");
        federate.env_remove("ONBEAT_COORDINATOR").env_remove("ONBEAT_INTERFACE");
        if let Some(table) = table {
            installed.write("table", table);
            federate.env("ONBEAT_LF_TABLE", installed.path("work/table"));
        }
        let output = federate.env("LD_LIBRARY_PATH", installed.libraries()).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    assert!(federate(None).contains("ONBEAT_LF_TABLE does not name the table"));
    assert!(federate(Some("nonsense")).contains("its first line is not `onbeat-lf-channels 1`"));
    assert!(federate(Some("onbeat-lf-channels 1\n")).contains("`onbeat run`"));
}

/// Exits with 0 when the interface that is not there was refused.
const NET_CHAN_PROGRAM: &str = r#"
#include <timedc_args.h>
#include <timedc_avtp.h>

int main(int argc, char *argv[])
{
	GET_ARGS();
	return nh_create_init("nosuch0", 4, NULL) ? 1 : 0;
}
"#;

#[test]
fn programs_for_net_chan_build_with_its_packages() {
    if has("pkg-config") {
        build_for_net_chan(&Installed::new());
    }
}

fn build_for_net_chan(installed: &Installed) {
    installed.write("program.c", NET_CHAN_PROGRAM);
    for package in ["netchan", "timedc_avtp"] {
        assert_eq!(installed.package(package, &["--modversion"]), [VERSION]);
        let program = installed.path("work").join(package);
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror"]).arg(installed.path("work/program.c"));
        cc.args(installed.package(package, &["--cflags", "--libs"])).arg("-o").arg(&program);
        must(&mut cc);
        let mut run = Command::new(program);
        run.env("LD_LIBRARY_PATH", installed.libraries()).env_remove("ONBEAT_COORDINATOR");
        let said = must(&mut run);
        assert!(said.contains("there is no network interface \"nosuch0\""), "{said}");
    }
}

#[test]
fn programs_build_with_an_installation_that_was_moved() {
    // As distributions have it too: libraries deeper, headers apart.
    let apart: &dyn Fn(&str) -> Vec<String> = &|prefix| {
        vec![format!("LIBDIR={prefix}/lib/here"), format!("INCLUDEDIR={prefix}/include/onbeat")]
    };
    for more in [&|_: &str| Vec::new(), apart] {
        let installed = Installed::with(more).moved();
        if has("cmake") {
            build_with_cmake(&installed);
        }
        if has("pkg-config") {
            build_for_net_chan(&installed);
            build_with_pkg_config(&installed);
        }
    }
}

#[test]
fn what_is_installed_outside_of_the_prefix_is_found_there() {
    let outside = tempfile::tempdir().expect("a directory");
    let libraries = outside.path().join("lib");
    let variables = |_: &str| vec![format!("LIBDIR={}", libraries.display())];
    let installed = Installed::with(&variables);
    for file in ["pkgconfig/onbeat.pc", "cmake/onbeat/onbeat-config.cmake"] {
        let text = std::fs::read_to_string(libraries.join(file)).expect("text");
        assert!(text.contains(installed.prefix().to_str().expect("UTF-8")), "{file}: {text}");
        assert!(text.contains(libraries.to_str().expect("UTF-8")), "{file}: {text}");
    }
}

/// Copies a directory, with what is below it.
fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = to.join(&file);
        std::fs::create_dir_all(copy.parent().expect("a directory")).expect("made");
        std::fs::copy(from.join(file), copy).expect("copied");
    }
}

/// `make` in a directory, as one who has an installation does.
fn make_in(directory: &Path, installed: &Installed) {
    let mut make = Command::new("make");
    make.current_dir(directory).env("PKG_CONFIG_PATH", installed.libraries().join("pkgconfig"));
    make.env("PATH", installed.path_with_command()).env_remove("ONBEAT_HOME");
    must(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS"));
}

/// Every program that was built needs the installed library, which it finds by itself. Loads need
/// nothing, and never end.
fn programs_find_their_library(directory: &Path) -> usize {
    let built = directory.join("build").read_dir().into_iter().flatten().flatten();
    let built: Vec<_> = built.filter(|program| program.file_name() != "load").collect();
    for program in &built {
        assert!(needs_shared_library(&program.path()), "{program:?}");
        let mut run = Command::new(program.path());
        let output = run.env_remove("ONBEAT_COORDINATOR").env_remove("LD_LIBRARY_PATH").output();
        let said = said(&output.expect("it runs"));
        assert!(!said.contains("shared librar"), "{program:?}: {said}");
    }
    built.len()
}

#[test]
fn copied_examples_build_and_run_with_what_was_installed() {
    if !has("pkg-config") {
        return;
    }
    let installed = Installed::new();
    let from = installed.prefix().join("share/doc/onbeat/examples");
    let names: BTreeSet<_> =
        examples().iter().filter_map(|f| f.split('/').next()).map(str::to_owned).collect();
    let mut built = 0;
    for name in &names {
        let example = installed.path("work").join(name);
        copy(&from.join(name), &example);
        for file in files(&example).iter().filter(|file| file.ends_with(".toml")) {
            let text = std::fs::read_to_string(example.join(file)).expect("text");
            let schema = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
            assert!(Path::new(schema.expect("a schema")).is_file(), "{file}: {schema:?}");
        }
        make_in(&example, &installed);
        built += programs_find_their_library(&example);
        let is_modelled = !example.join("Makefile").is_file()
            || name.ends_with("tsn-ring")
            || name.ends_with("network-code");
        let verb = if is_modelled { "simulate" } else { "run" };
        let mut onbeat = installed.onbeat();
        must(onbeat.args([verb, ".", "--duration", "200ms"]).current_dir(&example));
    }
    assert!(names.len() >= 5 && built >= 5, "{names:?}: {built} programs");
}

#[test]
fn every_template_builds_and_runs_with_what_was_installed() {
    if !has("pkg-config") {
        return;
    }
    let installed = Installed::new();
    let listed = must(installed.onbeat().args(["new", "--list"]));
    let templates: Vec<_> = listed.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert!(templates.len() >= 4, "{listed}");
    for template in templates {
        let mut new = installed.onbeat();
        new.args(["new", template, "--template", template]);
        must(new.current_dir(installed.path("work")));
        let made = installed.path("work").join(template);
        let text = std::fs::read_to_string(made.join("system.toml")).expect("text");
        let schema = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
        let prefix = installed.prefix().canonicalize().expect("there");
        assert_eq!(
            schema.map(Path::new),
            Some(&*prefix.join("share/onbeat/schema/system.schema.json"))
        );
        assert!(prefix.join("share/onbeat/schema/system.schema.json").is_file());
        // Without what says where the installation is: it has to know by itself.
        let mut make = Command::new("make");
        make.current_dir(&made).env_remove("PKG_CONFIG_PATH").env_remove("ONBEAT_HOME");
        must(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS"));
        for verb in ["check", "plan", "run"] {
            must(installed.onbeat().args([verb, "."]).current_dir(&made));
        }
        if template != "timed-c" {
            assert!(programs_find_their_library(&made) >= 2, "{template}");
        }
        // Elsewhere, and with another installation.
        let other = Installed::new();
        let copied = other.path("work").join("copied");
        copy(&made, &copied);
        std::fs::remove_dir_all(copied.join("build")).expect("removed");
        let makefile = std::fs::read_to_string(copied.join("Makefile")).expect("text");
        let gone = makefile.replace(&prefix.display().to_string(), "/no/such/place");
        assert_ne!(gone, makefile);
        std::fs::write(copied.join("Makefile"), gone).expect("written");
        make_in(&copied, &other);
        must(other.onbeat().args(["run", "."]).current_dir(&copied));
    }
}
