//! Aborts leave no lock of a library taken: what guarded code calls of libraries returns first,
//! whether somebody has wrapped it by hand or not.

use crate::common::{self, onbeat, root};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// After that a program hangs: most end within a second, or within some on a busy machine.
const HANGS_SECONDS: &str = "900";
/// The status of `timeout` then.
const KILLED: i32 = 137;
/// As many aborts of each function, where nothing else is asked for by this variable.
const ABORTS: (&str, &str) = ("ONBEAT_ABORTS", "20");

/// A directory with programs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `onbeat cc`.
    fn cc(&self, line: &[&str]) -> Output {
        let mut command = onbeat();
        command.arg("cc").args(line).current_dir(self.path()).env("NO_COLOR", "1");
        command.output().expect("onbeat runs")
    }

    fn builds(&self, line: &[&str]) {
        let output = self.cc(line);
        assert!(output.status.success(), "cc {line:?}\n{}", text(&output.stderr));
    }

    /// The C compiler itself, for what Onbeat does not see.
    fn plain(&self, line: &[&str]) {
        let output = Command::new("cc").args(line).current_dir(self.path()).output();
        let output = output.expect("a C compiler");
        assert!(output.status.success(), "cc {line:?}\n{}", text(&output.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("written");
    }

    /// What a program of the directory prints; nothing if it hangs.
    fn says(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("timeout")
            .args(["-s", "KILL", HANGS_SECONDS])
            .args(words)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .expect("timeout, of coreutils");
        let code = output.status.code().filter(|code| *code != KILLED);
        code.map(|_| text(&output.stdout))
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/abort").join(name)
}

fn list(name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("timedc").join(name)).expect(name);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Two tasks that do the same, one of them aborted every millisecond while it does it.
fn two_tasks(declared: &str, work: &str) -> String {
    format!(
        "#include <cilktc.h>\n{declared}\n\
         static void work(void)\n{{\n{work}\n}}\n\
         task victim()\n{{\n\tint aborted = 0;\n\n\
         \tfor (int n = 0; n < 200; n++) {{\n\t\tfor (int i = 0; i < 1000000000; i++)\n\
         \t\t\twork();\n\t\tfdelay(1, ms);\n\t\taborted += timedc_aborted();\n\t}}\n\
         \tif (aborted == 200)\n\t\twrite(3, \"victim \", 7);\n}}\n\
         task other()\n{{\n\tfor (int n = 0; n < 100; n++) {{\n\t\twork();\n\
         \t\tsdelay(2, ms);\n\t}}\n\twrite(3, \"other \", 6);\n}}\n\
         int main(void)\n{{\n\tdup2(1, 3);\n\tclose(1);\n\topen(\"/dev/null\", O_WRONLY);\n\
         \tvictim();\n\tother();\n}}\n"
    )
}

const HEADERS: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
                       #include <string.h>\n#include <unistd.h>\n";

/// Whether both tasks end, as built with these words.
fn both_end(place: &Place, name: &str, line: &[&str]) {
    let source = format!("{name}.c");
    place.builds(&[&[&source, "-o", name], line].concat());
    let said = place.says(&[&format!("./{name}")]);
    let mut words: Vec<_> = said.as_deref().unwrap_or_default().split_whitespace().collect();
    words.sort_unstable();
    assert_eq!(words, ["other", "victim"], "{name} {line:?}: {said:?}");
}

#[test]
fn functions_that_nobody_has_wrapped_by_hand_return_before_an_abort() {
    let cases = [
        ("error", "#include <error.h>", "error(0, 0, \"%d %s %f\", 1, \"text\", 2.5);"),
        (
            "names",
            "#include <grp.h>\n#include <pwd.h>",
            "char few[64], more[512];\nstruct group group, *g;\nstruct passwd user, *u;\n\
             getgrnam_r(\"nogroup\", &group, few, 64, &g);\n\
             getpwnam_r(\"nobody\", &user, more, 512, &u);\nfree(malloc(100000));",
        ),
        (
            "symbols",
            "#include <execinfo.h>",
            "void *at[16];\nfree(backtrace_symbols(at, backtrace(at, 16)));",
        ),
        (
            "paths",
            "#include <glob.h>",
            "glob_t found;\nglob(\"/etc/*\", 0, 0, &found);\nglobfree(&found);",
        ),
    ];
    for (name, header, work) in cases {
        let place = Place::new();
        place.write(&format!("{name}.c"), &two_tasks(&format!("{HEADERS}{header}"), work));
        both_end(&place, name, &["-D_FILE_OFFSET_BITS=64"]);
        both_end(&place, name, &["-O2", "-D_FORTIFY_SOURCE=2"]);
        if name == "error" && Path::new(&c_library("libc.a")).is_absolute() {
            both_end(&place, name, &["-static"]);
        }
    }
}

/// A library with a lock of its own, that allocates, prints and calls back.
const LIBRARY: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\nstatic int count;\n\
    int library_count(void)\n{\n\tpthread_mutex_lock(&mutex);\n\tfree(malloc(100));\n\
    \tfprintf(stderr, \"%d\\n\", ++count);\n\tint now = count;\n\
    \tpthread_mutex_unlock(&mutex);\n\treturn now;\n}\n\
    double library_sum(int a, double b, float c, long d, int e, int f, int g, int h, int i,\n\
    \t\t   double j, double k, double l, double m, double n, double o, double p,\n\
    \t\t   double q)\n{\n\tlibrary_count();\n\
    \treturn a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q;\n}\n\
    struct wide { long a, b, c, d; };\n\
    struct wide library_wide(long a)\n{\n\tlibrary_count();\n\
    \treturn (struct wide){a, a + 1, a + 2, a + 3};\n}\n\
    long double library_long(long double a)\n{\n\tlibrary_count();\n\treturn a / 2;\n}\n\
    _Complex double library_complex(double a)\n{\n\tlibrary_count();\n\treturn a + a * 1i;\n}\n\
    struct given { int (*count)(void); int (*more[2])(void); };\n\
    static int hidden(void)\n{\n\treturn library_count();\n}\n\
    static struct given given = {hidden, {hidden, library_count}};\n\
    struct given *library_given(void)\n{\n\treturn &given;\n}\n\
    void library_call(void (*function)(void))\n{\n\tpthread_mutex_lock(&mutex);\n\
    \tfunction();\n\tpthread_mutex_unlock(&mutex);\n}\n";

const LIBRARY_HEADER: &str = "int library_count(void);\nvoid library_call(void (*)(void));\n\
    struct wide { long a, b, c, d; };\nstruct wide library_wide(long);\n\
    long double library_long(long double);\n_Complex double library_complex(double);\n\
    double library_sum(int, double, float, long, int, int, int, int, int, double, double, double,\
    double, double, double, double, double);\n";

fn with_library() -> Place {
    let place = Place::new();
    place.write("library.c", LIBRARY);
    place.plain(&["-shared", "-fPIC", "library.c", "-o", "liblibrary.so"]);
    place.plain(&["-c", "library.c", "-o", "library.o"]);
    place
}

const LINKED: [&str; 3] = ["-L.", "-llibrary", "-Wl,-rpath,$ORIGIN"];

#[test]
fn functions_of_libraries_return_before_an_abort_and_give_what_they_are_given() {
    let place = with_library();
    let declared = format!("{HEADERS}{LIBRARY_HEADER}");
    let work = "int before = library_count();\n\
        double sum = library_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);\n\
        struct wide wide = library_wide(before);\n\
        int wrong = sum != 153 || wide.a != before || wide.d != before + 3;\n\
        wrong |= library_long(1.5L) != 0.75L || __imag__ library_complex(2) != 2;\n\
        if (wrong || library_count() <= before)\n\t_exit(1);";
    place.write("direct.c", &two_tasks(&declared, work));
    both_end(&place, "direct", &LINKED);
    both_end(&place, "direct", &[&LINKED[..], &["-O2", "-fno-plt"]].concat());
    both_end(&place, "direct", &["library.o"]);
    let pointed = format!("{declared}static int (*volatile count)(void) = library_count;\n");
    place.write("pointed.c", &two_tasks(&pointed, "count();"));
    both_end(&place, "pointed", &LINKED);
    // Pointers that the library gives: no name of what they lead to is in the program.
    let given = format!(
        "{declared}#define CALL(what) (what)->count()\n\
         struct given {{ int (*count)(void); int (*more[2])(void); }};\n\
         struct given *library_given(void);\n"
    );
    let work = "struct given *given = library_given();\nint (*own)(void) = given->count;\n\
                if (given->count() >= own())\n\t_exit(1);\n(*own)();\nCALL(given);\n\
                given->more[1]();\nlibrary_given()->count();\n((int (*)(void))own)();\n";
    place.write("given.c", &two_tasks(&given, work));
    both_end(&place, "given", &[&LINKED[..], &["-Wall", "-Wextra", "-Werror"]].concat());
    both_end(&place, "given", &[&LINKED[..], &["-O2"]].concat());
}

#[test]
fn functions_that_dlsym_finds_return_before_an_abort() {
    let place = with_library();
    let declared = format!(
        "{HEADERS}#include <dlfcn.h>\nstatic int (*count)(void);\nstatic void *(*get)(size_t);\n\
         __attribute__((constructor)) static void find(void)\n{{\n\
         \t*(void **)&count = dlsym(dlopen(\"./liblibrary.so\", RTLD_NOW), \"library_count\");\n\
         \t*(void **)&get = dlsym(RTLD_DEFAULT, \"malloc\");\n}}\n"
    );
    place.write("found.c", &two_tasks(&declared, "free(get(100));\ncount();"));
    both_end(&place, "found", &["-D_GNU_SOURCE"]);
}

#[test]
fn a_library_that_many_have_may_be_aborted_as_often_as_any() {
    let place = Place::new();
    let declared = format!(
        "{HEADERS}int compress(unsigned char *, unsigned long *, const unsigned char *, \
         unsigned long);\n"
    );
    let work = "unsigned char text[300] = \"text\", packed[400];\nunsigned long size = 400;\n\
                if (compress(packed, &size, text, 300))\n\t_exit(1);";
    place.write("packed.c", &two_tasks(&declared, work));
    let output = place.cc(&["packed.c", "-l:libz.so.1", "-o", "packed"]);
    if !output.status.success() && text(&output.stderr).contains("cannot find -l:libz.so.1") {
        eprintln!("zlib is missing (zlib1g): it is not looked at");
        return;
    }
    both_end(&place, "packed", &["-l:libz.so.1"]);
}

#[test]
fn what_functions_call_back_ends_with_them() {
    let place = Place::new();
    let declared = format!(
        "{HEADERS}#include <search.h>\nstatic int compare(const void *a, const void *b)\n{{\n\
         \tfree(malloc(50));\n\treturn *(const int *)a - *(const int *)b;\n}}\n"
    );
    let work = "int all[300] = {3, 1, 2}, two = 2;\nsize_t count = 300;\n\
                qsort(all, 300, sizeof(int), compare);\n\
                bsearch(&two, all, 300, sizeof(int), compare);\n\
                lfind(&two, all, &count, sizeof(int), compare);\n";
    place.write("sorted.c", &two_tasks(&declared, work));
    both_end(&place, "sorted", &[]);
}

/// In virtual time, an abort that comes while a library has called back waits for the library: its
/// lock is free when the other task wants it.
#[test]
fn in_virtual_time_an_abort_waits_for_a_librarys_function_too() {
    let place = with_library();
    let source = format!(
        "{HEADERS}{LIBRARY_HEADER}static void slow(void) {{ usleep(15000); }}\n\
         task victim()\n{{\n\tfor (int n = 0; n < 3; n++) {{\n\t\tlibrary_call(slow);\n\
         \t\tusleep(15000);\n\t\tfdelay(10, ms);\n\t}}\n}}\n\
         task other() {{ sdelay(60, ms); library_count(); }}\n\
         int main(void) {{ victim(); other(); }}\n"
    );
    place.write("back.c", &source);
    let flags = LINKED.map(|word| format!("\"{word}\"")).join(", ");
    let system = format!(
        "{}[[program]]\nname = \"back\"\nhost = \"host\"\nsource = [\"back.c\"]\n\
         cflags = [{flags}]\n",
        common::ONE_HOST
    );
    place.write("system.toml", &system.replace("$ORIGIN", &place.path().display().to_string()));
    common::run(&["run", "system.toml", "--task-trace", "trace"], place.path(), 0);
    let trace = std::fs::read_to_string(place.path().join("trace/back.csv")).expect("a trace");
    let aborts: Vec<_> = trace.lines().filter(|line| line.contains(",victim,abort,")).collect();
    let at = |from: u64| format!("{}000000,victim,abort,", from);
    for (line, from) in aborts.iter().zip([15, 30, 45]) {
        assert!(line.starts_with(&at(from)), "{trace}");
    }
    assert_eq!(aborts.len(), 3, "{trace}");
    assert!(trace.contains(",other,end,"), "{trace}");
    common::run(&["run", "system.toml", "--time", "real"], place.path(), 0);
}

#[test]
fn exceptions_of_c_plus_plus_are_refused_by_their_name() {
    let place = Place::new();
    place.write("throws.c", "void __cxa_throw(void) { }\n");
    place.plain(&["-shared", "-fPIC", "throws.c", "-o", "libthrows.so"]);
    place.write("a.c", "void __cxa_throw(void);\nint main(void) { __cxa_throw(); }\n");
    let output = place.cc(&["a.c", "-L.", "-lthrows", "-o", "a"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("`__cxa_throw`") && said.contains("-fno-exceptions"), "{said}");
    assert!(!place.path().join("a").exists());
}

#[test]
fn what_the_linker_finds_missing_it_says_once_and_names() {
    let place = Place::new();
    place.write(
        "a.c",
        "void nothing_of_that_name(void);\nint main(void) { nothing_of_that_name(); }\n",
    );
    let cases = [
        (vec!["a.c", "-o", "a"], "undefined reference to `nothing_of_that_name'"),
        (vec!["a.c", "-o", "a", "-lof-no-such-name"], "cannot find -lof-no-such-name"),
    ];
    for (line, expected) in cases {
        let output = place.cc(&line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.matches(expected).count(), 1, "{said}");
    }
}

/// Which functions of a C library may take a lock: those from which a call leads to the system's
/// `futex`, by the instructions and relocations of the static library.
struct Locking {
    /// By name, or by member and name for what only one member knows.
    aliases: HashMap<String, String>,
    takes: HashSet<String>,
}

/// Calls that are followed no further: by then the program ends with a message, or the thread is
/// cancelled, which a program asks for itself.
const ENDS: [&str; 12] = [
    "__do_cancel",
    "__pthread_exit",
    "__pthread_unwind",
    "___pthread_unregister_cancel_restore",
    "__libc_assert_fail",
    "__assert_fail",
    "__libc_fatal",
    "__libc_message",
    "__fortify_fail",
    "__chk_fail",
    "_dl_signal_error",
    "abort",
];

/// The number of the system call.
const FUTEX: &str = if cfg!(target_arch = "x86_64") { "$0xca,%eax" } else { "x8, #0x62" };
const CALLS: &[&str] = &["call", "jmp", "bl", "b"];

fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(name).args(arguments).output().ok()?;
    output.status.success().then(|| text(&output.stdout))
}

impl Locking {
    fn read(library: &str) -> Option<Self> {
        let symbols = tool("nm", &["-A", library])?;
        let mut names: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        let mut locals: HashSet<(&str, &str)> = HashSet::new();
        for line in symbols.lines() {
            let Some((place, name)) = line.rsplit_once(' ') else { continue };
            let Some((place, kind)) = place.rsplit_once(' ') else { continue };
            let mut parts = place.rsplitn(3, ':');
            let (Some(at), Some(member)) = (parts.next(), parts.next()) else { continue };
            let is_local = kind.starts_with(|c: char| c.is_ascii_lowercase()) && kind != "w";
            if is_local && kind != "i" {
                locals.insert((member, name));
            }
            if matches!(kind, "T" | "W" | "i" | "t") {
                let own = if kind == "t" { format!("{member}:{name}") } else { name.to_owned() };
                names.entry((member, at)).or_default().push(own);
            }
        }
        let mut aliases = HashMap::new();
        for all in names.values() {
            for name in all {
                aliases.entry(name.clone()).or_insert_with(|| all[0].clone());
            }
        }
        let mut found = Self { aliases, takes: HashSet::new() };
        let code = tool("objdump", &["-dr", "--no-show-raw-insn", library])?;
        let (callers, roots) = found.calls(&code, &locals);
        let mut open = roots;
        while let Some(function) = open.pop() {
            if found.takes.insert(function.clone()) {
                open.extend(callers.get(&function).into_iter().flatten().cloned());
            }
        }
        Some(found)
    }

    fn plain(&self, name: &str) -> String {
        self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Who calls whom, and who makes the system call.
    fn calls(
        &self,
        code: &str,
        locals: &HashSet<(&str, &str)>,
    ) -> (HashMap<String, HashSet<String>>, Vec<String>) {
        let mut callers: HashMap<String, HashSet<String>> = HashMap::new();
        let mut roots = Vec::new();
        let (mut member, mut function) = ("", String::new());
        for line in code.lines() {
            if let Some((name, _)) = line.split_once(":     file format") {
                member = name;
                continue;
            }
            let known = |name: &str| match locals.contains(&(member, name)) {
                true => self.plain(&format!("{member}:{name}")),
                false => self.plain(name),
            };
            if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
                function = known(name.trim_end_matches(">:"));
                continue;
            }
            if line.contains(FUTEX) {
                roots.push(function.clone());
            }
            let called = called(line).filter(|name| !ENDS.contains(name)).map(known);
            if let Some(called) = called.filter(|called| *called != function) {
                callers.entry(called).or_default().insert(function.clone());
            }
        }
        (callers, roots)
    }

    fn takes_lock(&self, name: &str) -> bool {
        self.takes.contains(&self.plain(name))
    }
}

/// What a line of a disassembly calls, or refers to.
fn called(line: &str) -> Option<&str> {
    if let Some((_, name)) = line.split_once("R_X86_64_").or(line.split_once("R_AARCH64_")) {
        let name = name.split_whitespace().nth(1)?;
        let name = name.split_once("+0x").or(name.split_once("-0x")).map_or(name, |(name, _)| name);
        return Some(name).filter(|name| !name.starts_with('.'));
    }
    let mut words = line.split_whitespace().skip(1);
    let instruction = words.next()?;
    let (_, name) = line.rsplit_once('<')?;
    let name = name.strip_suffix('>')?;
    // Within a function they jump; whole functions are called, and jumped to at their beginning.
    let is_call = CALLS.contains(&instruction) || instruction.starts_with('j');
    (is_call && !name.contains("+0x")).then_some(name)
}

/// Where the C compiler has a file of its library.
fn c_library(name: &str) -> String {
    let found = tool("cc", &[&format!("-print-file-name={name}")]).expect("a C compiler");
    found.trim().to_owned()
}

/// What a shared library offers by its names of today.
fn offered(library: &str) -> Option<BTreeSet<String>> {
    let symbols = tool("nm", &["-D", "--defined-only", library])?;
    let of = |line: &str| {
        let (kind, name) = line.split_once(' ')?.1.split_once(' ')?;
        let (name, version) = name.split_once("@@")?;
        let is_ours = matches!(kind, "T" | "W" | "i") && version != "GLIBC_PRIVATE";
        is_ours.then(|| name.to_owned())
    };
    Some(symbols.lines().filter_map(of).collect())
}

/// They take a lock and may be cut, because guarded code cannot call them: what the compiler puts
/// before `main` and behind it calls them.
const NEVER_IN_GUARDED_CODE: [&str; 2] = ["__cxa_finalize", "__libc_start_main"];

#[test]
fn what_may_be_aborted_takes_no_lock_of_the_c_library() {
    let (archive, shared) = (c_library("libc.a"), c_library("libc.so.6"));
    let (Some(locking), Some(offered)) = (Locking::read(&archive), offered(&shared)) else {
        eprintln!("{archive} or binutils is missing: its calls are not looked at");
        return;
    };
    // What is known shows that the library was read.
    for name in ["malloc", "printf", "fork", "error", "getgrnam_r", "glob64", "dlopen", "qsort"] {
        assert!(locking.takes_lock(name), "{name}");
    }
    for name in ["memcpy", "read", "strtol", "clock_gettime", "poll"] {
        assert!(!locking.takes_lock(name), "{name}");
    }
    let takes: BTreeSet<&String> = offered.iter().filter(|name| locking.takes_lock(name)).collect();
    let (abortable, wrapped) = (list("abortable.txt"), list("wrapped.txt"));
    let cut: Vec<_> = takes.iter().filter(|name| abortable.contains(name.as_str())).collect();
    assert_eq!(cut, NEVER_IN_GUARDED_CODE.iter().collect::<Vec<_>>());
    // By far most of the others nobody has wrapped by hand.
    let by_hand = takes.iter().filter(|name| wrapped.contains(name.as_str())).count();
    println!("{} of {} take a lock, {by_hand} wrapped by hand", takes.len(), offered.len());
    assert!(takes.len() > 700 && by_hand > 250, "{} {by_hand}", takes.len());
    assert_eq!(abortable.intersection(&wrapped).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// The library of mathematics calls nothing that takes a lock, but for a sort of five numbers.
#[test]
fn the_library_of_mathematics_may_be_aborted() {
    let Some(symbols) = tool("nm", &["-D", "--undefined-only", &c_library("libm.so.6")]) else {
        eprintln!("nm is missing (binutils): libm is not looked at");
        return;
    };
    let name = |line: &str| Some(line.split_once("U ")?.1.split('@').next()?.to_owned());
    let calls: BTreeSet<String> = symbols.lines().filter_map(name).collect();
    let wrapped = list("wrapped.txt");
    let calls: Vec<&String> = calls.iter().filter(|name| wrapped.contains(*name)).collect();
    let known = ["__assert_fail", "fputs", "fwrite", "qsort"];
    assert!(calls.iter().all(|name| known.contains(&name.as_str())), "{calls:?}");
}

/// What cannot be aborted often: it ends the program.
const ENDS_THE_PROGRAM: [&str; 8] =
    ["__assert_fail", "abort", "err", "errx", "exit", "quick_exit", "verr", "verrx"];
/// How Onbeat's own begin: those that guarded code calls again and again are in `own.c`.
const OWN: [&str; 9] =
    ["chan_", "nc_", "nf_", "nh_", "onbeat_", "pdu_", "pt_", "real_get_", "tai_get_"];

#[test]
fn every_function_that_is_wrapped_may_be_aborted_while_another_task_calls_it() {
    let place = Place::new();
    for name in ["calls.c", "stress.c"] {
        std::fs::copy(own(name), place.path().join(name)).expect(name);
    }
    place.plain(&["-c", "-O0", "-fno-builtin", "-Wno-deprecated-declarations", "calls.c"]);
    place.builds(&["stress.c", "calls.o", "-D_GNU_SOURCE", "-o", "stress"]);
    let symbols = tool("nm", &["-u", &place.path().join("calls.o").display().to_string()]);
    let symbols = symbols.expect("nm");
    let undefined: BTreeSet<&str> =
        symbols.split_whitespace().filter(|word| *word != "U").collect();
    let source = std::fs::read_to_string(own("calls.c")).expect("calls.c");
    let entries: Vec<&str> =
        source.split("\nCALL(\"").skip(1).filter_map(|at| at.split('"').next()).collect();
    let named: BTreeSet<&str> = entries.iter().flat_map(|names| names.split(' ')).collect();
    let later = |name: &str| name.starts_with("__isoc23_");
    let not_called: Vec<_> = named.difference(&undefined).filter(|name| !later(name)).collect();
    assert_eq!(not_called, Vec::<&&str>::new());
    for name in list("wrapped.txt") {
        let is_own = OWN.iter().any(|begin| name.starts_with(begin)) || name == "wait_for_tx_slot";
        let is_known = is_own || ENDS_THE_PROGRAM.contains(&name.as_str());
        assert!(is_known || named.contains(name.as_str()), "{name} is not called");
    }
    let aborts = std::env::var(ABORTS.0).unwrap_or_else(|_| ABORTS.1.to_owned());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for names in entries {
        let name = names.split(' ').next().expect("a name");
        if later(name) && !undefined.contains(name) {
            continue;
        }
        count += 1;
        let said = place.says(&["./stress", name, &aborts]);
        if said.as_deref() != Some(&format!("{aborts} aborted, both ended\n")) {
            wrong.push(format!("{names}: {}", said.as_deref().unwrap_or("hangs")));
        }
    }
    println!("{count} statements, {} functions, {aborts} aborts each", named.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn onbeats_own_calls_may_be_aborted_in_a_run() {
    let place = Place::new();
    std::fs::copy(own("own.c"), place.path().join("own.c")).expect("own.c");
    std::fs::copy(own("own.toml"), place.path().join("own.toml")).expect("own.toml");
    let line = ["run", "own.toml", "--time", "real", "--task-trace", "trace"];
    // They are aborted in turns.
    let calls = 16;
    let count = until_aborted(&place, &line, "own", calls);
    println!("{calls} calls, {} aborts each", count / calls);
}

/// Runs something that makes so many calls until its trace has had as many aborts of each as are
/// asked for.
fn until_aborted(place: &Place, line: &[&str], program: &str, calls: usize) -> usize {
    let aborts = std::env::var(ABORTS.0).unwrap_or_else(|_| ABORTS.1.to_owned());
    let aborts: usize = aborts.parse().expect("a number");
    let mut count = 0;
    while count < aborts * calls {
        let output = onbeat().args(line).current_dir(place.path()).output().expect("onbeat runs");
        // A busy machine may break a promise of time; a program that hangs ends the run early.
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{line:?}\n{said}");
        assert!(!said.contains("ld: warning"), "{said}");
        let trace = place.path().join("trace").join(format!("{program}.csv"));
        let trace = std::fs::read_to_string(trace).expect("a trace");
        count += trace.lines().filter(|line| line.contains(",abort,")).count();
    }
    count
}

/// Programs of the documents that guard code in a loop, with a `main` where they have none.
fn examples() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let docs = std::fs::read_dir(root().join("docs")).expect("docs").flatten();
    let mut files: Vec<PathBuf> = docs.map(|entry| entry.path()).collect();
    files.push(root().join("README.md"));
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = std::fs::read_to_string(file).expect("text");
        for (at, block) in text.split("```c\n").skip(1).enumerate() {
            let block = block.split("```").next().unwrap_or_default().replace("i < 5", "i >= 0");
            let loops = ["while (1)", "for (int i = 0;"].iter().any(|head| block.contains(head));
            let is_alone = !block.contains("manifest.h") && block.contains("fdelay(");
            // What is in no block cannot be linked.
            let is_whole = is_alone && !block.contains("sense(");
            if !loops || !is_whole {
                continue;
            }
            let task = block.split("task ").nth(1).and_then(|rest| rest.split('(').next());
            let main = match block.contains("int main(") {
                true => String::new(),
                false => format!("int main(void) {{ {}(); }}\n", task.expect("a task")),
            };
            let name = file.file_stem().expect("a name").to_string_lossy();
            found.push((format!("{name}_{at}"), format!("{block}{main}")));
        }
    }
    found
}

/// With deadlines of a microsecond nearly every segment is aborted.
#[test]
fn guarded_code_of_the_documents_may_be_aborted_as_often_as_any() {
    let place = Place::new();
    let examples = examples();
    assert!(examples.len() > 4, "{examples:?}");
    for (name, text) in examples {
        let file = format!("{name}.c");
        place.write(&file, &format!("#define fdelay(number, unit) fdelay(1, us)\n{text}"));
        let line = ["run", &file, "--time", "real", "--duration", "1s", "--task-trace", "trace"];
        println!("{name}: {} aborts", until_aborted(&place, &line, &name, 1));
    }
}
