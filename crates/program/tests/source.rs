//! C text before and after the preprocessor, beside the C compiler's own: markers change nothing,
//! and edits of expanded text, made in the user's, make the text that was meant.

use onbeat_model::diagnostic::SourceFile;
use onbeat_program::source::{Edit, Expanded, NotFollowed, Unit, apply, normal};
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files in a directory of their own; the first is the main one.
struct Case {
    directory: tempfile::TempDir,
    unit: Unit,
    expanded: Expanded,
}

#[derive(Debug)]
struct Wrong(NotFollowed);

impl From<NotFollowed> for Wrong {
    fn from(wrong: NotFollowed) -> Self {
        Self(wrong)
    }
}

/// Runs the C compiler on a text as if it were in the file `name` of `directory`.
fn cc(directory: &Path, flags: &[&str], text: &str) -> String {
    let mut child = Command::new("cc")
        .args(["-E", "-x", "c", "-iquote", "."])
        .args(flags)
        .arg("-")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a C compiler");
    let mut stdin = child.stdin.take().expect("piped");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("written").expect("written");
    String::from_utf8(output.stdout).expect("UTF-8")
}

impl Case {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        let path: PathBuf = directory.path().into();
        let (name, text) = files[0];
        let (text, _) = normal(text, 0);
        let text = text.trim_start_matches('\u{feff}');
        let first = cc(&path, &["-dD"], &format!("#line 1 \"{name}\"\n{text}"));
        let mut read = |name: &str| {
            std::fs::read_to_string(path.join(name)).map_err(|error| format!("{name}: {error}"))
        };
        let unit = Unit::read(name, files[0].1, &first, &mut read).expect("headers are read");
        let expanded = unit
            .expand::<Wrong>(&mut |marked| Ok(cc(&path, &[], marked)))
            .unwrap_or_else(|Wrong(wrong)| panic!("{name}: {wrong:?}"));
        Self { directory, unit, expanded }
    }

    /// What the user's text, edited, is behind the preprocessor, without blanks.
    fn preprocessed(&self, text: &str) -> String {
        let path = &self.unit.files()[0].path;
        // System headers are told apart by line markers.
        let output = cc(self.directory.path(), &[], &format!("#line 1 \"{path}\"\n{text}"));
        let mut depth = 0;
        let mut kept = String::new();
        for line in output.lines() {
            if let Some(marker) = line.strip_prefix("# ") {
                let flags = marker.rsplit('"').next().unwrap_or("");
                let is_system = flags.contains('3') || depth > 0;
                depth += usize::from(flags.starts_with(" 1") && is_system);
                depth -= usize::from(flags.starts_with(" 2") && depth > 0);
            } else if depth == 0 && !line.starts_with("#pragma") {
                kept.push_str(line);
            }
        }
        squeeze(&kept.replace("\\U000000f6", "ö").replace("\\U000000df", "ß"))
    }

    fn file(&self) -> SourceFile {
        self.unit.files().remove(0)
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The expanded text with edits made in it.
fn edited(text: &str, edits: &[Edit]) -> String {
    let mut out = String::new();
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        for edit in edits {
            match edit {
                Edit::After(end, text) if *end == at => out.push_str(text),
                _ => {}
            }
        }
        for edit in edits {
            match edit {
                Edit::Before(start, text) if *start == at => out.push_str(text),
                _ => {}
            }
        }
        for edit in edits {
            match edit {
                Edit::Replace(range, text) if range.start == at => out.push_str(text),
                _ => {}
            }
        }
        let is_gone =
            edits.iter().any(|edit| matches!(edit, Edit::Replace(range, _) if range.contains(&at)));
        if !is_gone {
            out.extend(text[at..].chars().next());
        }
    }
    squeeze(&out)
}

/// Where words of the expanded text are: tokens whose bounds anyone can see.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<std::ops::Range<usize>> = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if is_word(c) => match words.last_mut() {
                Some(last) if last.end == at => last.end += c.len_utf8(),
                _ => words.push(at..at + c.len_utf8()),
            },
            None => {}
        }
    }
    // Prefixes of literals and parts of numbers are no tokens.
    let is_whole = |range: &std::ops::Range<usize>| {
        let first = text.as_bytes()[range.start];
        let beside = [range.start.checked_sub(1), Some(range.end)];
        let beside = beside.map(|at| at.and_then(|at| text.as_bytes().get(at)).copied());
        !first.is_ascii_digit() && !beside.iter().flatten().any(|b| b"\"'.+-".contains(b))
    };
    words.into_iter().filter(is_whole).collect()
}

/// Sources that are C all the same.
const NASTY: &[&[(&str, &str)]] = &[
    &[("plain.c", "int main(void)\n{\n\treturn 0; /* fine */\n}\n")],
    &[(
        "macros.c",
        "#define STR(x) #x\n#define XSTR(x) STR(x)\n#define CAT(a, b) a##b\n#define N 3\n\
        #define VA(f, ...) f(__VA_ARGS__)\n#define TWO(x) one(x); two(x)\n\
            #define NEST(x) TWO(CAT(x, N))\n\
        const char *s = STR(a + b) \"tail\" XSTR(N) L\"w\";\nint CAT(v, 1) = N, q = -N;\n\
        void f(void) { VA(g, 1, \"x,y\", (2, 3)); NEST(a); if (N) TWO(b); else TWO(c); }\n",
    )],
    &[(
        "lines.c",
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))\nint x = MAX(1,\n /* two */ 2 // end\n);\n\
        int y = MAX\n(\n3, 4\n) + 1, spli\\\nced = MAX(spl, sp\\\nl);\n\
            #define LONG a; \\\n b; \\\n c\nLONG\nint z;\n",
    )],
    &[(
        "groups.c",
        "#define SEND(a, b) send(a, b)\n#if 0\ndon't look SEND( here\n#endif\nvoid f(void)\n{\n\
        #ifdef DEEP\n SEND(1,\n#else\n SEND(2,\n#endif\n 3);\n SEND(4,\n#if 1\n 5\n#else\n 6\n\
            #endif\n );\n after();\n}\n",
    )],
    &[(
        "names.c",
        "#define CALL do_call\n#define do_call(x) made(x)\n#define ID(x) x\n#define OPEN twice(\n\
        #define twice(x) x x\n#define EMPTY\n#define REV(a, b) b a\n#define BEGIN REV(\n\
        int a = CALL(1), b = ID(do_call)(2), c = do_call EMPTY (3), d = (do_call)(4);\n\
            int e = OPEN 5);\n\
        #define OBJ f(obj) \nint OBJ; f2(OBJ)\nBEGIN one, two)\n",
    )],
    &[(
        "again.c",
        "#define f(x) f(x + 1)\n#define stdin stdin\nint y = f(2) + stdin, (f)(3);\n\
            #define g(x) x f\n\
        int z = g(1)(2);\n",
    )],
    &[
        (
            "x.c",
            "#define X(a) a = __COUNTER__,\nenum { \n#include \"ops.h\"\n};\n#undef X\n\
            #define X(a) #a,\n\
        const char *names[] = {\n#include \"ops.h\"\n};\n#undef X\nint X(int a);\n\
            #include \"ops.h\"\n#include 'once.h'\n\
        #include \"once.h\"\n#define OPS \"ops.h\"\n#include OPS\nint end;\n",
        ),
        ("ops.h", "X(add)\nX(sub)\n#include \"once.h\"\n"),
        (
            "once.h",
            "#pragma once\n#include <stddef.h>\nstatic int once(void *p) { return p == NULL; }\n",
        ),
    ],
    &[
        (
            "guarded.c",
            "#include <stdbool.h>\n#include \"a.h\"\n#include \"b.h\"\n#line 70 \"other.y\"\n\
            #include \"b.h\"\n\
        bool x = true && __LINE__;\nconst char *f = __FILE__;\n#line 3\n#include \"last.h\"\n\
            int after = __LINE__;",
        ),
        ("a.h", "#ifndef A_H\n#define A_H\n#include \"b.h\"\nint a;\n#endif\n"),
        ("b.h", "int FOO;\n#ifdef FOO\n#else\n#define FOO bar\nint FOO = __LINE__;\n#endif\n"),
        ("last.h", "int last = __LINE__;"),
    ],
    &[("crlf.c", "#define A(x) \\\r\n\tx + x\r\nint a = A(\r\n1);\r\n/* b\r\n*/ int\tb;\r\n")],
    &[(
        "bom.c",
        "\u{feff}#define Ü(x) x\nint größe = Ü(2); // é\nchar *s = \"ä\" \"\\\"\" \"//\";\n",
    )],
    &[(
        "pragma.c",
        "#define QUIET _Pragma(\"GCC diagnostic push\")\nint a;\n#pragma pack(1)\nint b;\n\
            QUIET int c;\n\
        _Pragma(\"GCC diagnostic pop\") int d;\n_Pragma\n(\"weak e\")\nint e;\n\
            #define P(x) x QUIET x\nP(int f;)\n",
    )],
    &[(
        "digraph.c",
        "%:define T(x) %:x\nchar *s = T(<:1:>);\nint a<:2:> = <% 1, 2 %>;\n\
            int n = 0x1p-3 + 1e+5 + .5f;\n",
    )],
    &[(
        "args.c",
        "#define OUTER(x) INNER(x)\n#define INNER(x, y) x[y]\n#define PAIR 1, 2\n\
            int a = OUTER(PAIR);\n\
        #define STMT(x) do { x; } while (0)\n\
            void f(void) { STMT(int i = 0; for (;;) { i++; }); STMT({ g(1, 2); }); }\n\
        #define OPT(a, ...) a, ##__VA_ARGS__\nint b[] = { OPT(1), OPT(1, 2) };\n\
            int i = __LINE__ + __INCLUDE_LEVEL__;\n",
    )],
    &[(
        "statement.c",
        "#define LOG(x) printf(\"%d\\n\", x);\n#define FOREVER for (;;)\nvoid f(void) {\n\
            LOG(1)\nFOREVER { LOG(2) break; }\n\
        switch (x) { case 1: LOG(3) default: ; }\n}\n#define FUNC(n) void n(void) { LOG(4) }\n\
            FUNC(g)\n",
    )],
];

#[test]
fn markers_change_nothing_and_no_edit_is_the_identity() {
    for files in NASTY {
        let case = Case::new(files);
        let (raw, _) = normal(files[0].1, 0);
        let raw = raw.trim_start_matches('\u{feff}');
        assert_eq!(squeeze(&case.expanded.text), case.preprocessed(raw), "{}", files[0].0);
        assert_eq!(apply(&case.unit, &case.expanded, &[]), raw, "{}", files[0].0);
    }
}

#[test]
fn plain_text_is_its_own_expansion() {
    for files in NASTY {
        let (text, _) = normal(files[0].1, 0);
        let unit = Unit::plain(files[0].0, &text);
        let expanded = Expanded::plain(&text);
        assert_eq!(expanded.text, text);
        assert_eq!(apply(&unit, &expanded, &[]), text.trim_start_matches('\u{feff}'));
    }
}

/// Edits at some words: what is done to each that is chosen.
fn some_edits(text: &str, choices: &[(usize, u8)]) -> Vec<Edit> {
    let words = words(text);
    let mut edits: Vec<Edit> = Vec::new();
    let mut taken: Vec<std::ops::Range<usize>> = Vec::new();
    for (number, (word, what)) in choices.iter().enumerate() {
        if words.is_empty() {
            break;
        }
        let first = word % words.len();
        let last = (first + usize::from(what / 16)).min(words.len() - 1);
        let range = words[first].start..words[last].end;
        if taken.iter().any(|other| other.start < range.end && range.start < other.end) {
            continue;
        }
        taken.push(range.clone());
        match what % 3 {
            0 => edits.push(Edit::Before(range.start, format!(" @b{number} "))),
            1 => edits.push(Edit::After(range.end, format!(" @a{number} "))),
            _ => edits.push(Edit::Replace(range, format!(" @r{number} "))),
        }
    }
    edits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn edited_text_means_what_the_edits_of_its_expansion_say(
        which in 0..NASTY.len(),
        choices in proptest::collection::vec((0..100_usize, 0..64_u8), 1..5),
    ) {
        thread_local!(static CASES: Vec<Case> = NASTY.iter().map(|f| Case::new(f)).collect());
        CASES.with(|cases| {
            let case = &cases[which];
            let edits = some_edits(&case.expanded.text, &choices);
            let text = apply(&case.unit, &case.expanded, &edits);
            let expected = edited(&case.expanded.text, &edits);
            // A name that must not be expanded once more stands in parentheses.
            let plain = |text: String| text.replace("(f)", "f");
            let (got, expected) = (plain(case.preprocessed(&text)), plain(expected));
            prop_assert_eq!(got, expected, "{:?}\n{}", edits, text);
            if !text.contains("#line 1 ") {
                let raw = case.file().text;
                prop_assert_eq!(text.matches('\n').count(), raw.matches('\n').count());
            }
            Ok(())
        })?;
    }
}

/// Where the expanded text has something, as a range of it.
fn find(case: &Case, text: &str) -> std::ops::Range<usize> {
    let at = case.expanded.text.find(text).unwrap_or_else(|| panic!("{}", case.expanded.text));
    at..at + text.len()
}

#[test]
fn origins_are_the_token_itself_or_the_use_that_made_it() {
    let case = Case::new(&[
        ("a.c", "#include \"h.h\"\n#define WAIT(n) fdelay(n, ms)\nint a = two;\n\tWAIT( 10 );\n"),
        ("h.h", "// h\nint in_h;\n"),
    ]);
    let of = |text: &str| {
        let origin = case.expanded.origin(find(&case, text));
        let files = case.unit.files();
        let file = &files[usize::from(origin.file)];
        let range = origin.start as usize..origin.end as usize;
        (file.path.clone(), file.text[range].to_owned(), file.line(origin.start))
    };
    assert_eq!(of("two"), ("a.c".into(), "two".into(), 3));
    assert_eq!(of("a = two"), ("a.c".into(), "a = two".into(), 3));
    assert_eq!(of("fdelay"), ("a.c".into(), "WAIT( 10 )".into(), 4));
    assert_eq!(of("two;\nfdelay"), ("a.c".into(), "two;\n\tWAIT( 10 )".into(), 3));
    assert_eq!(of("in_h"), ("h.h".into(), "in_h".into(), 2));
}

#[test]
fn edits_keep_comments_and_lines_and_write_out_only_what_they_change() {
    let source = "#define WAIT(n) fdelay(n, ms)\nvoid f(void)\n{\n\tWAIT( /* ten */\n\
                  \t\t10); // wait\n\tfdelay(20, /* odd */\n\t       ms);\n\tWAIT(3);\n}\n";
    let case = Case::new(&[("a.c", source)]);
    let first = find(&case, "fdelay(10, ms)");
    let second = find(&case, "fdelay(20,\nms)");
    let third = find(&case, "fdelay(3, ms)");
    let edits = [
        Edit::Replace(first, "point(1)".into()),
        Edit::Replace(second, "point(2)".into()),
        Edit::Before(third.start, "three:;".into()),
        Edit::After(third.end, " /* here */".into()),
    ];
    assert_eq!(
        apply(&case.unit, &case.expanded, &edits),
        "#define WAIT(n) fdelay(n, ms)\nvoid f(void)\n{\n\tpoint(1)  /* ten */\n\t\t; // wait\n\
         \tpoint(2) /* odd */\n\t       ;\n\tthree:;WAIT(3) /* here */;\n}\n"
    );
}

#[test]
fn what_is_put_between_tokens_neither_parts_nor_joins_them() {
    let text = "#define DOWN(x) f(x--)\nint a = i++ - -j, b = DOWN(k);\n";
    let case = Case::new(&[("a.c", text)]);
    let (up, down) = (find(&case, "i++"), find(&case, "k--"));
    let edits = [
        Edit::Before(up.start, "(".into()),
        Edit::After(up.end, "+".into()),
        Edit::After(down.end, ")".into()),
        Edit::Before(down.start, "(x".into()),
        Edit::Replace(find(&case, "j"), "-j".into()),
    ];
    assert_eq!(
        apply(&case.unit, &case.expanded, &edits),
        "#define DOWN(x) f(x--)\nint a = (i++ + - - -j, b = f((x k--));\n"
    );
}

#[test]
fn a_header_with_changes_is_written_in_its_include_lines_place_each_time_anew() {
    let case = Case::new(&[
        (
            "a.c",
            "#define N one\n#include \"h.h\"\n#undef N\n#define N two\n# include \"h.h\"\nint z;\n",
        ),
        ("h.h", "int N;"),
    ]);
    let edits = [Edit::Before(find(&case, "two").start, "*".into())];
    assert_eq!(
        apply(&case.unit, &case.expanded, &edits),
        "#define N one\n#line 1 \"h.h\"\nint N;\n#line 3 \"a.c\"\n#undef N\n#define N two\n\
         #line 1 \"h.h\"\nint *N;\n#line 6 \"a.c\"\nint z;\n"
    );
}

#[test]
fn single_quotes_around_a_headers_name_are_taken_as_double_ones_with_a_warning() {
    let text =
        "#include 'manifest.h'\nchar c = 'x'; // #include 'y.h'\n#  include/**/'z.h' // it's\n";
    let (normal, warnings) = normal(text, 0);
    assert_eq!(normal, text.replace("'manifest.h'", "\"manifest.h\"").replace("'z.h'", "\"z.h\""));
    let places: Vec<_> = warnings.iter().filter_map(|w| w.at.as_ref()).collect();
    assert_eq!(places.len(), 2);
    assert_eq!((places[0].0.start, places[0].0.end), (9, 21));
    assert!(warnings.iter().all(|warning| warning.code.as_str() == "OB4104"));
}

proptest! {
    #[test]
    fn no_text_and_no_answer_of_a_preprocessor_makes_the_reader_panic(
        text in "([ab#'\"(),;\\\\\n /*]|#include \"h\"\n|#if 0\n|#else\n|#endif\n|\\PC){0,40}",
        answer in "(a|b|\\(|\\)|\n|# 1 \"h\" 1\n|# [0-9] \"a\" 2\n|#define a\\(x\\) b\n\
                   |__timedc_at_[0-9]|#pragma a\n|\\PC){0,40}",
    ) {
        let unit = Unit::plain("a.c", &text);
        let (plain, _) = normal(&text, 0);
        let same = apply(&unit, &Expanded::plain(&plain), &[]);
        prop_assert_eq!(same.replace('\u{feff}', ""), plain.replace('\u{feff}', ""));
        let unit = Unit::read("a.c", &text, &answer, &mut |_| Ok(text.clone())).expect("read");
        if let Ok(expanded) = unit.expand(&mut |_| Ok::<_, NotFollowed>(answer.clone())) {
            let _ = apply(&unit, &expanded, &[Edit::Before(0, "x".to_owned())]);
        }
    }
}
