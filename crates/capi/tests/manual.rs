//! Each header's manual page, and that of each family of functions, says what the header's comments
//! say. `ONBEAT_UPDATE=1` rewrites the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The public headers, by name.
fn headers() -> BTreeMap<String, PathBuf> {
    let files = root().join("include").read_dir().expect("include").flatten();
    files.map(|file| (file.file_name().into_string().expect("UTF-8"), file.path())).collect()
}

fn page_of(name: &str) -> PathBuf {
    root().join("man").join(format!("{name}.3"))
}

/// The functions of onbeat.h by what they are for. A family's page is called as its first function,
/// and installed for the others as well.
const FAMILIES: [(&str, &str); 16] = [
    ("take part in a run", "onbeat_open onbeat_start onbeat_close"),
    (
        "use channels on an interface, without a run",
        "onbeat_open_interface onbeat_open_interface_sized onbeat_declare onbeat_declare_sized \
         onbeat_stop onbeat_name_talker onbeat_reload_keys onbeat_precautions",
    ),
    (
        "open, limit and close channel endpoints",
        "onbeat_talker_open onbeat_listener_open onbeat_talker_close onbeat_listener_close \
         onbeat_talker_limit onbeat_listener_limit",
    ),
    (
        "send messages",
        "onbeat_write onbeat_try_write onbeat_write_wait onbeat_write_at onbeat_write_many \
         onbeat_try_write_many",
    ),
    (
        "receive messages",
        "onbeat_read onbeat_read_wait onbeat_try_read onbeat_read_latest onbeat_read_timeout \
         onbeat_listener_message",
    ),
    (
        "wait for several listener endpoints",
        "onbeat_select onbeat_selector_open onbeat_selector_wait onbeat_selector_close \
         onbeat_listener_descriptor",
    ),
    (
        "what a listener endpoint knows of its talker",
        "onbeat_listener_liveness onbeat_listener_deadline onbeat_listener_lifespan",
    ),
    ("meet the program at the other endpoint of two channels", "onbeat_rendezvous"),
    (
        "counters of channel endpoints",
        "onbeat_talker_counters onbeat_listener_counters onbeat_talker_counters_sized \
         onbeat_listener_counters_sized",
    ),
    (
        "how the streams of channel endpoints are reserved",
        "onbeat_talker_reservation onbeat_listener_reservation",
    ),
    ("read the network clock and sleep by it", "onbeat_now onbeat_sleep_until onbeat_machine_time"),
    ("let work take its time", "onbeat_work onbeat_work_until"),
    ("wait for other threads of the program", "onbeat_wait onbeat_wait_for onbeat_wake"),
    (
        "threads that take part in a run",
        "onbeat_thread_create onbeat_thread_join onbeat_thread_announce onbeat_thread_begin \
         onbeat_thread_await",
    ),
    ("why a call failed", "onbeat_last_error onbeat_strerror"),
    ("which version of the library a program has", "onbeat_version onbeat_version_text"),
];

/// All pages, by name.
fn pages() -> BTreeMap<String, String> {
    let headers = headers();
    let mut pages = BTreeMap::new();
    for (name, path) in &headers {
        let text = std::fs::read_to_string(path).expect("a header");
        let others = headers.keys().filter(|other| *other != name);
        pages.insert(name.clone(), page(name, &text, others));
    }
    let header = std::fs::read_to_string(&headers["onbeat.h"]).expect("onbeat.h");
    let (_, items) = parse(&header);
    for (purpose, functions) in FAMILIES {
        let functions: Vec<_> = functions.split(' ').collect();
        pages.insert(functions[0].to_owned(), family(purpose, &functions, &items));
    }
    pages
}

#[test]
fn the_committed_pages_are_current() {
    let pages = pages();
    for (name, page) in &pages {
        if std::env::var_os("ONBEAT_UPDATE").is_some() {
            std::fs::write(page_of(name), page).expect("written");
        }
        let committed = std::fs::read_to_string(page_of(name)).unwrap_or_default();
        let command = "ONBEAT_UPDATE=1 cargo test -p onbeat-capi --test manual";
        assert!(committed == *page, "{name}: run `{command}`");
    }
    let committed = root().join("man").read_dir().expect("man").flatten().map(|file| file.path());
    let wanted: BTreeSet<_> = pages.keys().map(|name| page_of(name)).collect();
    assert_eq!(committed.collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn every_function_is_in_one_family() {
    let header = std::fs::read_to_string(&headers()["onbeat.h"]).expect("onbeat.h");
    let mut declared: Vec<_> = functions(&header).collect();
    let mut listed: Vec<_> = FAMILIES.iter().flat_map(|(_, names)| names.split(' ')).collect();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(declared, listed);
}

#[test]
fn the_pages_render_without_a_warning_and_name_every_function() {
    if Command::new("groff").arg("--version").output().is_err() {
        println!("groff is not there: the manual pages are not rendered");
        return;
    }
    let command = root().with_file_name("cli").join("man/onbeat.1");
    rendered(&command);
    let header = std::fs::read_to_string(&headers()["onbeat.h"]).expect("onbeat.h");
    let families = FAMILIES.map(|(_, functions)| functions.split(' ').collect::<Vec<_>>());
    let families = families.map(|functions| (functions[0], functions));
    let all = [("onbeat.h", functions(&header).collect()), ("onbeat.hpp", Vec::new())];
    for (name, functions) in all.into_iter().chain(families) {
        let shown = rendered(&page_of(name));
        for function in functions {
            assert!(shown.contains(function), "{name}: `{function}` is not in\n{shown}");
        }
    }
}

/// A page as a terminal shows it.
fn rendered(page: &Path) -> String {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tascii", "-ww", "-rLL=200n", "-P-cbou"]).arg(page);
    let output = groff.output().expect("groff runs");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && warnings.is_empty(), "{}: {warnings}", page.display());
    let shown = String::from_utf8(output.stdout).expect("ASCII");
    assert!(shown.contains("NAME") && shown.contains("DESCRIPTION"), "{shown}");
    shown
}

/// The names in a C header that begin a declaration's parameter list.
fn functions(header: &str) -> impl Iterator<Item = &str> {
    let lines = header.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
    let named = lines.filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back());
    named.filter(|name| name.contains('_'))
}

/// A declaration and its comment.
#[derive(Debug)]
struct Item {
    /// How deep it is within others.
    depth: usize,
    declaration: String,
    comment: Vec<String>,
}

impl Item {
    /// The section of the page where it stands, if it is not within another.
    fn section(&self) -> &'static str {
        let types = ["struct", "class", "enum", "using", "typedef"];
        let is = |word: &str| types.contains(&word);
        let mut words = self.declaration.split(' ');
        if self.declaration.starts_with("#define") {
            "MACROS"
        } else if self.declaration.starts_with("template <class T> class")
            || words.next().is_some_and(is) && !self.declaration.contains('(')
            || self.declaration.starts_with("typedef")
        {
            "TYPES"
        } else {
            "FUNCTIONS"
        }
    }
}

/// What stands between `/*` or `/**` and `*/`, line by line.
fn comment<'a>(lines: &mut impl Iterator<Item = &'a str>, first: &str) -> Vec<String> {
    let mut comment = Vec::new();
    let mut line = first.trim_start_matches(['/', '*']);
    loop {
        let ended = line.strip_suffix("*/");
        comment.push(ended.unwrap_or(line).trim().to_owned());
        if ended.is_some() {
            return comment;
        }
        line = lines.next().expect("the comment ends").trim();
        line = line
            .strip_prefix("* ")
            .or(line.strip_prefix('*').filter(|l| *l != "/"))
            .unwrap_or(line);
    }
}

/// The declaration that begins with the next line, without its body.
fn declaration<'a>(lines: &mut impl Iterator<Item = &'a str>) -> (usize, String) {
    let first = lines.next().expect("a declaration");
    let depth = (first.len() - first.trim_start().len()) / 4;
    let mut text = first.trim().to_owned();
    let open = |text: &str| text.matches('(').count() > text.matches(')').count();
    while !text.starts_with('#') && (open(&text) || !text.ends_with([';', ',', '{', '}'])) {
        let line = lines.next().expect("the declaration goes on").trim();
        if line.starts_with(": ") {
            break;
        }
        text = format!("{text} {line}");
    }
    if let Some(before) = text.strip_suffix(" {") {
        text = before.trim_start_matches("typedef ").to_owned();
    } else if let Some((before, _)) = text.split_once(" { ") {
        text = before.to_owned();
    }
    (depth, text.trim_end_matches([',', ';']).trim_end_matches("{}").to_owned())
}

/// The comment at the beginning of a header, and its documented declarations.
fn parse(header: &str) -> (Vec<String>, Vec<Item>) {
    let mut lines = header.lines();
    let first = lines.next().expect("a comment");
    let preamble = comment(&mut lines, first);
    let mut items = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim().starts_with("/**") {
            let comment = comment(&mut lines, line.trim());
            let (depth, declaration) = declaration(&mut lines);
            items.push(Item { depth, declaration, comment });
        }
    }
    (preamble, items)
}

/// Text as roff shows it unchanged; what stands in backticks is bold.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let mut shown = String::new();
    for (at, part) in text.split('`').enumerate() {
        let bold = at % 2 == 1;
        let _ =
            write!(shown, "{}{part}{}", ["", "\\fB"][bold as usize], ["", "\\fP"][bold as usize]);
    }
    if shown.starts_with('.') { format!("\\&{shown}") } else { shown }
}

/// A comment's lines as paragraphs, `break_` between them.
fn paragraphs(page: &mut String, comment: &[String], break_: &str) {
    let said = |line: &&String| !line.starts_with("SPDX") && !line.starts_with("Generated");
    let kept: Vec<_> = comment.iter().filter(said).map(|line| roff(line)).collect();
    let text = kept.join("\n");
    let text: Vec<_> = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty()).collect();
    let _ = writeln!(page, "{}", text.join(&format!("\n{break_}\n")));
}

/// The beginning of a page, up to the synopsis.
fn begin(name: &str, header: &str, names: &str, purpose: &str) -> String {
    format!(
        ".\\\" SPDX-License-Identifier: Apache-2.0 OR MIT\n\
         .\\\" Generated from {header} by `cargo test -p onbeat-capi --test manual`; do not edit.\n\
         .TH {name} 3 \"\" \"Onbeat {version}\" \"Onbeat\"\n.nh\n.ad l\n\
         .SH NAME\n{names} \\- {purpose}\n\
         .SH SYNOPSIS\n.nf\n#include <{header}>\n.sp\n\
         {compile} $(pkg\\-config \\-\\-cflags \\-\\-libs onbeat)\n.fi\n",
        compile = if header.ends_with("pp") { "c++ program.cpp" } else { "cc program.c" },
        version = env!("CARGO_PKG_VERSION"),
        purpose = roff(purpose),
    )
}

/// The page of some functions.
fn family(purpose: &str, functions: &[&str], items: &[Item]) -> String {
    let mut page = begin(functions[0], "onbeat.h", &functions.join(", "), purpose);
    let mut description = String::new();
    for function in functions {
        let is_it = |item: &&Item| item.declaration.contains(&format!("{function}("));
        let item = items.iter().find(is_it).expect("it is declared");
        let _ = writeln!(page, ".HP 4\n\\fB{};\\fP", roff(&item.declaration));
        let _ = writeln!(description, ".TP 4\n\\fB{function}\\fP");
        paragraphs(&mut description, &item.comment, ".IP");
    }
    let others = FAMILIES.iter().filter_map(|(_, others)| others.split(' ').next());
    let others: Vec<_> = others.filter(|other| *other != functions[0]).collect();
    let _ = write!(
        page,
        ".SH DESCRIPTION\n{description}\
         .SH RETURN VALUE\nWhere it is an \\fBonbeat_status\\fP: \\fBONBEAT_OK\\fP, or another one \
         from zero on that is said above;\nbelow zero the call has done nothing, and\n\
         .BR onbeat_last_error (3)\nsays why.\n\
         .SH SEE ALSO\n.BR onbeat (1),\n.BR onbeat.h (3),\n{}\n",
        others.iter().map(|name| format!(".BR {name} (3)")).collect::<Vec<_>>().join(",\n")
    );
    page
}

fn page<'a>(name: &str, header: &str, others: impl Iterator<Item = &'a String>) -> String {
    let (preamble, items) = parse(header);
    let text = |line: &str| roff(line);
    let mut lines = preamble.iter().skip_while(|line| line.is_empty());
    let title = lines.next().expect("a title");
    let (_, purpose) = title.split_once(": ").expect("NAME: PURPOSE");
    let mut page = begin(name, name, name, purpose.trim_end_matches('.'));
    page.push_str(".SH DESCRIPTION\n");
    paragraphs(&mut page, &lines.cloned().collect::<Vec<_>>(), ".PP");
    for section in ["MACROS", "TYPES", "FUNCTIONS"] {
        let mut inside = false;
        let mut shown = String::new();
        for item in &items {
            inside = if item.depth == 0 { item.section() == section } else { inside };
            if !inside {
                continue;
            }
            let _ = writeln!(shown, "{}", ".RS 4\n".repeat(item.depth).trim_end());
            let _ = writeln!(shown, ".TP 4\n\\fB{}\\fP", text(&item.declaration));
            paragraphs(&mut shown, &item.comment, ".IP");
            let _ = writeln!(shown, "{}", ".RE\n".repeat(item.depth).trim_end());
        }
        if !shown.is_empty() {
            let _ = write!(page, ".SH {section}\n{shown}");
        }
    }
    let families = FAMILIES.iter().filter_map(|(_, names)| names.split(' ').next());
    let others = others.map(String::as_str).chain(families.filter(|_| name.ends_with(".h")));
    let others: Vec<_> = others.map(|other| format!(".BR {other} (3)")).collect();
    let _ = writeln!(page, ".SH SEE ALSO\n.BR onbeat (1),\n{}", others.join(",\n"));
    page.lines()
        .filter(|line| !line.is_empty())
        .fold(String::new(), |page, line| page + line + "\n")
}
