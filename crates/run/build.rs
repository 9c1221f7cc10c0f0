//! Compiles the object that `onbeat run --verify` has preloaded. Its octets are in the command, so
//! that it is there wherever the command is.

use std::path::Path;

const SOURCE: &str = "notice/notice.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let directory = std::env::var("OUT_DIR").expect("cargo sets it");
    let mut build = cc::Build::new();
    // As an object that is complete: of optimisation its size is what matters.
    build.std("gnu11").opt_level(2).debug(false).pic(true).warnings(true).extra_warnings(true);
    let mut compile = build.get_compiler().to_command();
    // An exception or pthread_exit(3) in a thread passes by its first function, which is in there.
    compile.args(["-Werror", "-shared", "-fvisibility=hidden", "-fexceptions", "-s", "-o"]);
    compile.arg(Path::new(&directory).join("notice.so")).arg(SOURCE);
    let status = compile.status().unwrap_or_else(|error| panic!("{compile:?}: {error}"));
    assert!(status.success(), "{compile:?}: {status}");
}
