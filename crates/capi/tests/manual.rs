//! Each header's manual page says what the header's comments say. `ONBEAT_UPDATE=1` writes the
//! pages anew.

use std::collections::BTreeMap;
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

fn page_of(header: &str) -> PathBuf {
    root().join("man").join(format!("{header}.3"))
}

#[test]
fn the_committed_pages_are_current() {
    let headers = headers();
    for (name, path) in &headers {
        let text = std::fs::read_to_string(path).expect("a header");
        let others = headers.keys().filter(|other| *other != name);
        let page = page(name, &text, others);
        if std::env::var_os("ONBEAT_UPDATE").is_some() {
            std::fs::write(page_of(name), &page).expect("written");
        }
        let committed = std::fs::read_to_string(page_of(name)).unwrap_or_default();
        let command = "ONBEAT_UPDATE=1 cargo test -p onbeat-capi --test manual";
        assert!(committed == page, "{name}: run `{command}`");
    }
}

#[test]
fn the_pages_render_without_a_warning_and_name_every_function() {
    if Command::new("groff").arg("--version").output().is_err() {
        println!("groff is not there: the manual pages are not rendered");
        return;
    }
    let mut found = 0;
    for (name, path) in headers() {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tascii", "-ww", "-rLL=200n", "-P-cbou"]).arg(page_of(&name));
        let output = groff.output().expect("groff runs");
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && warnings.is_empty(), "{name}: {warnings}");
        let shown = String::from_utf8(output.stdout).expect("ASCII");
        assert!(shown.contains("NAME") && shown.contains("DESCRIPTION"), "{shown}");
        if !name.ends_with(".h") {
            continue;
        }
        let header = std::fs::read_to_string(path).expect("a header");
        for function in functions(&header) {
            assert!(shown.contains(function), "{name}: `{function}` is not in\n{shown}");
            found += 1;
        }
    }
    assert!(found > 0, "no header has a function");
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

fn page<'a>(name: &str, header: &str, others: impl Iterator<Item = &'a String>) -> String {
    let (preamble, items) = parse(header);
    let text = |line: &str| roff(line);
    let mut lines = preamble.iter().skip_while(|line| line.is_empty());
    let title = lines.next().expect("a title");
    let (_, purpose) = title.split_once(": ").expect("NAME: PURPOSE");
    let mut page = format!(
        ".\\\" SPDX-License-Identifier: Apache-2.0 OR MIT\n\
         .\\\" Generated from {name} by `cargo test -p onbeat-capi --test manual`; do not edit.\n\
         .TH {name} 3 \"\" \"Onbeat {version}\" \"Onbeat\"\n.nh\n.ad l\n\
         .SH NAME\n{name} \\- {purpose}\n\
         .SH SYNOPSIS\n.nf\n#include <{name}>\n.sp\n\
         {compile} $(pkg\\-config \\-\\-cflags \\-\\-libs onbeat)\n.fi\n\
         .SH DESCRIPTION\n",
        compile = if name.ends_with("pp") { "c++ program.cpp" } else { "cc program.c" },
        version = env!("CARGO_PKG_VERSION"),
        purpose = text(purpose.trim_end_matches('.')),
    );
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
    let others: Vec<_> = others.map(|other| format!(".BR {other} (3)")).collect();
    let _ = writeln!(page, ".SH SEE ALSO\n{}", others.join(",\n"));
    page.lines()
        .filter(|line| !line.is_empty())
        .fold(String::new(), |page, line| page + line + "\n")
}
