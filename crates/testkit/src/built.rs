//! What tests use of Onbeat itself: what the command that built the test has built too, in
//! whatever target directory and profile. A crate whose tests link the libraries depends on
//! `onbeat-capi`, so that cargo builds them first.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The source tree.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

/// Where cargo puts the test itself, and beside it libraries that have no other place.
fn beside() -> PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    test.parent().expect("a directory").to_owned()
}

/// `libonbeat.a`, which programs are linked with.
pub fn library() -> PathBuf {
    let path = beside().join("libonbeat.a");
    assert!(path.is_file(), "{} is missing: depend on onbeat-capi", path.display());
    path
}

/// A source tree as `make` leaves it, for `make install`: the files of the real one, but below
/// `target/release` what was built with the test. Only tests of the command's crate may count on
/// the command there.
pub fn tree() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        for part in ["compat", "timedc"] {
            let mut make = Command::new("make");
            make.arg("-s").arg("-C").arg(root().join(part));
            done(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS"));
        }
        tree_with("tree", &library())
    })
}

/// The same tree, for `ONBEAT_HOME`; but its `libonbeat.a` is [`object`].
pub fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        tree();
        tree_with("home", object())
    })
}

/// Thousands of sections of the library as one each: to link those takes half of the time.
const SECTIONS: &str = "SECTIONS {
  .text : { *(.text .text.*) }
  .rodata : { *(.rodata .rodata.*) }
  .data.rel.ro : { *(.data.rel.ro .data.rel.ro.*) }
  .data : { *(.data .data.*) }
  .bss : { *(.bss .bss.*) }
  .gcc_except_table : { *(.gcc_except_table .gcc_except_table.*) }
  .tdata : { *(.tdata .tdata.*) }
  .tbss : { *(.tbss .tbss.*) }
}";

/// What programs need of [`library`] as one object, without the standard library's debug
/// information. It is linked in an eighth of the time, and tests link some thousand programs.
pub fn object() -> &'static Path {
    static OBJECT: OnceLock<PathBuf> = OnceLock::new();
    OBJECT.get_or_init(|| {
        let library = library();
        let object = library.with_file_name("libonbeat.o");
        let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
        if changed(&object) < changed(&library) {
            // Of this process's own: test programs run side by side.
            let own = |what| library.with_file_name(format!("own-{}.{what}", std::process::id()));
            let (new, script) = (own("o"), own("sections"));
            let shared = library.with_extension("so");
            let symbols = done(Command::new("nm").arg("-D").arg("--defined-only").arg(shared));
            let symbols = String::from_utf8(symbols).expect("names");
            let functions = symbols.lines().filter_map(|line| line.split(" T ").nth(1));
            let mut link = Command::new("ld");
            link.args(["-r", "--gc-sections"]).args(functions.flat_map(|name| ["-u", name]));
            std::fs::write(&script, SECTIONS).expect("a linker script");
            done(link.arg("-T").arg(&script).arg("-o").arg(&new).arg(&library));
            std::fs::remove_file(&script).expect("the linker script is there");
            let sections = ["--strip-debug", "-R", ".llvmbc", "-R", ".llvmcmd"];
            done(Command::new("strip").args(sections).arg(&new));
            std::fs::rename(new, &object).expect("the object in its place");
        }
        object
    })
}

/// Makes a tree beside what cargo built, with this library.
fn tree_with(name: &str, library: &Path) -> PathBuf {
    let profile = beside().parent().expect("a profile's directory").to_owned();
    let tree = profile.join(name);
    let release = tree.join("target/release");
    std::fs::create_dir_all(&release).expect("a directory");
    for entry in root().read_dir().expect("the source tree").flatten() {
        if entry.file_name() != "target" {
            link(&entry.path(), &tree.join(entry.file_name()));
        }
    }
    link(&profile.join("onbeat"), &release.join("onbeat"));
    link(library, &release.join("libonbeat.a"));
    link(&beside().join("libonbeat.so"), &release.join("libonbeat.so"));
    tree
}

/// What a command says that must succeed.
fn done(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// Another test's process may be doing the same.
fn link(to: &Path, at: &Path) {
    if at.read_link().is_ok_and(|there| there == to) {
        return;
    }
    let new = at.with_file_name(format!(".{}", std::process::id()));
    std::os::unix::fs::symlink(to, &new).expect("a link");
    std::fs::rename(&new, at).expect("a link in its place");
}
