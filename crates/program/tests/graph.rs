//! Time-flow graphs of programs: the paper's listings and a program for each construct.

use onbeat_model::diagnostic::SourceFile;
use onbeat_model::graph::{ChannelKind, Expression, Graph, Interval, NodeKind, Task, Unary};
use onbeat_program::graph::{Linked, UnitGraph, link};
use onbeat_program::source::Expanded;
use onbeat_program::timedc::{Options, Target, translate};
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn unit(name: &str, text: &str) -> UnitGraph {
    let files = [SourceFile { path: name.to_owned(), text: text.to_owned() }];
    translate(&Expanded::plain(text), &files, Options::default()).graph
}

fn linked(text: &str) -> Linked {
    link(&[unit("program.c", text)], "demo")
}

fn expression(e: &Expression) -> String {
    match e {
        Expression::Constant(value) => value.to_string(),
        Expression::Register(register) => format!("r{register}"),
        Expression::Unknown => "?".to_owned(),
        Expression::Unary(Unary::Within { lo, hi }, inner) => {
            format!("({} in {lo}..={hi})", expression(inner))
        }
        Expression::Unary(Unary::Wrap { bits }, inner) => {
            format!("({} to {bits} bits)", expression(inner))
        }
        Expression::Unary(operation, inner) => {
            format!("{}{}", operation.operator(), expression(inner))
        }
        Expression::Binary(operation, left, right) => {
            let sign = operation.operator();
            format!("({}{sign}{})", expression(left), expression(right))
        }
    }
}

fn what(graph: &Graph, what: &NodeKind) -> String {
    let waits = |waits: &bool| if *waits { " and waits" } else { "" };
    match what {
        NodeKind::Start => "start".to_owned(),
        NodeKind::End => "end".to_owned(),
        NodeKind::Point { kind, period, deadline } => {
            let deadline = deadline.as_ref().map_or("none".to_owned(), expression);
            format!("{kind:?} {} by {deadline}", expression(period))
        }
        NodeKind::Gettime => "gettime".to_owned(),
        NodeKind::Skip => "skip".to_owned(),
        NodeKind::Fragment { execution: Interval::ZERO } => "code".to_owned(),
        NodeKind::Fragment { execution } => {
            let hi = execution.hi.map_or("?".to_owned(), |hi| hi.as_ns().to_string());
            format!("code {}..{hi}", execution.lo.as_ns())
        }
        NodeKind::Write { channel, waits: w } => {
            format!("write {}{}", graph.channels[*channel].name, waits(w))
        }
        NodeKind::Read { channel, waits: w } => {
            format!("read {}{}", graph.channels[*channel].name, waits(w))
        }
        NodeKind::Run { task } => format!("run {}", graph.tasks[*task].name),
        NodeKind::Lock(resource) => format!("lock {}", graph.resources[*resource]),
        NodeKind::Take(resource) => format!("take {}", graph.resources[*resource]),
        NodeKind::Unlock(resource) => format!("unlock {}", graph.resources[*resource]),
        NodeKind::Set { register, value } => format!("r{register} = {}", expression(value)),
        NodeKind::Branch(condition) => format!("if {}", expression(condition)),
        NodeKind::Held => "held".to_owned(),
        NodeKind::Any => "any".to_owned(),
    }
}

fn task(graph: &Graph, task: &Task) -> String {
    let mut text = format!("task {}", task.name);
    if task.is_first {
        text.push_str(", first");
    }
    if task.keeps_phase {
        text.push_str(", keeps phase");
    }
    if task.policy != onbeat_model::graph::Policy::Fixed {
        let _ = write!(text, ", {:?}", task.policy);
    }
    if let Some(priority) = task.priority {
        let _ = write!(text, ", priority {priority}");
    }
    if let Some(separation) = task.separation {
        let _ = write!(text, ", every {separation}");
    }
    text.push('\n');
    for (index, node) in task.nodes.iter().enumerate() {
        let next: Vec<String> = node.next.iter().map(usize::to_string).collect();
        let guard = node.guard.map_or(String::new(), |g| format!(" [{g}]"));
        let what = what(graph, &node.kind);
        let _ = writeln!(text, "  {index} @{} {what} -> {}{guard}", node.place, next.join(" "));
    }
    text
}

/// A graph in a few lines: a node is its number, its place, what happens, what comes next, and in
/// brackets the point that guards it.
fn printed(linked: &Linked) -> String {
    let mut text = String::new();
    for found in linked.diagnostics.iter().chain(&linked.warnings) {
        let _ = writeln!(text, "{}: {}", found.code, found.message);
    }
    for channel in &linked.graph.channels {
        let kind = match &channel.kind {
            ChannelKind::Fifo { capacity } => format!("fifo of {capacity}"),
            ChannelKind::Named => "named".to_owned(),
            ChannelKind::Network(_) => "network".to_owned(),
        };
        let _ = writeln!(text, "channel {}: {kind}", channel.name);
    }
    for found in &linked.graph.tasks {
        text.push_str(&task(&linked.graph, found));
    }
    text
}

/// Every edge leads to a node, and there are as many as the node's kind has.
fn check(graph: &Graph) {
    for task in &graph.tasks {
        assert!(matches!(task.nodes[0].kind, NodeKind::Start));
        for node in &task.nodes {
            assert!(node.next.iter().all(|n| *n < task.nodes.len()), "{node:?}");
            let count = node.next.len();
            match &node.kind {
                NodeKind::End => assert_eq!(count, 0, "{node:?}"),
                NodeKind::Branch(_) => assert_eq!(count, 2, "{node:?}"),
                NodeKind::Any => assert!(count > 0, "{node:?}"),
                _ => assert_eq!(count, 1, "{node:?}"),
            }
            if let Some(guard) = node.guard {
                assert!(matches!(task.nodes[guard].kind, NodeKind::Point { .. }), "{node:?}");
            }
            if let NodeKind::Skip = node.kind {
                assert!(
                    matches!(task.nodes[node.next[0]].kind, NodeKind::Point { .. }),
                    "{node:?}"
                );
            }
        }
    }
}

#[test]
fn programs_have_the_graphs_that_their_snapshots_show() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = fs::read_dir(crate_root.join("tests/graph"))
        .expect("programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    assert!(!paths.is_empty());
    paths.push(crate_root.join("../../conformance/timedc/accepted/listing_2.c"));
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a program");
        let made = linked(&text);
        check(&made.graph);
        snapshot(&name, &made);
    }
}

fn snapshot(name: &str, made: &Linked) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("graph");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, printed(made)));
}

/// Why programs cannot be followed, and where.
fn lost(text: &str) -> Vec<String> {
    let file = SourceFile { path: String::new(), text: text.to_owned() };
    let made = linked(text);
    assert_eq!(made.diagnostics.is_empty(), !made.graph.tasks.is_empty(), "{text}");
    let shown = |found: &onbeat_model::diagnostic::Diagnostic| {
        let line = found.at.as_ref().map_or(0, |(origin, _)| file.line(origin.start));
        format!("{}:{line}: {}", found.code, found.message)
    };
    made.diagnostics.iter().map(shown).collect()
}

#[test]
fn what_cannot_be_followed_is_told() {
    let cases = [
        (
            "void f(int n) {\n if (n) f(n - 1);\n sdelay(1, ms); }\nint main(void) { f(3); }",
            2,
            "calls itself",
        ),
        (
            "void f(void) { sdelay(1, ms); }\nint main(void) { void (*p)(void) =\n f; p(); }",
            3,
            "pointer",
        ),
        (
            "int fifochannel(c);\nvoid *f(void *p) { int v; cread(c, v); }\nint main(void) {\n \
             pthread_create(0, 0, f, 0); }",
            4,
            "pointer",
        ),
        (
            "task f() { sdelay(1, ms); }\nint main(void) { while (more())\n f(); }",
            3,
            "started in a loop",
        ),
        (
            "int fifochannel(c);\ntask f() { cwrite(c, 1); }\nint main(void) { f();\n \
             cinit(c, 0); }",
            4,
            "cinit",
        ),
        (
            "int fifochannel(c);\ntask f() { int v; while (1) { cread(c, v);\n cinit(c, 0); } }\n\
             task g() { cwrite(c, 1); }\nint main(void) { f(); g(); }",
            3,
            "cinit",
        ),
        ("int main(void) {\n chan_read(row->end, 0); }", 2, "the channel of"),
        ("task f();\nint main(void) {\n f(); }", 3, "no file of the program"),
        ("int main(void) { void *p = &&a;\na:\n sdelay(1, ms);\n goto *p; }", 4, "label"),
        (
            "int fifochannel(q);\ntask a() {\n cwrite(q, 1) sdelay(1, ms); }\n\
             int main(void) { a(); }",
            3,
            "`a` is not understood",
        ),
        ("task a() { sdelay(1, ms); }\nint main(void) { a();\n", 2, "not understood"),
        ("int f(int x) { return\n x +; }\nint main(void) { f(1); }", 2, "`f` is not understood"),
        (
            "task a() { sdelay(1, ms); }\nint b(void) { if (1) {\n}\nint main(void) { a(); }",
            4,
            "not understood",
        ),
        ("extern int\n fifochannel(c); int main(void) { cwrite(c, 1); }", 2, "capacity"),
    ];
    for (text, line, message) in cases {
        let told = lost(text);
        let is_it = |t: &String| t.starts_with(&format!("OB5007:{line}: ")) && t.contains(message);
        assert!(told.len() == 1 && is_it(&told[0]), "{text}\n{told:?}");
    }
    for text in [
        "enum e { a, f };\ntask g(int g) { int v, g = v; g: g++; }\nstruct s { int g; };\n\
         void h(int g);\nint main(void) { int x, g = 1; struct s s = { .g = g };\n\
         s.g = (g); sdelay(1, ms); }",
        "void f(int n) { if (n) f(n - 1); }\nint main(void) { f(3); sdelay(1, ms); }",
        "void f(void) { w(1 2); }\nint main(void) { sdelay(1, ms); }",
        "void f(void) { w(); }\nint main(void) { signal(2, f); sdelay(1, ms); }",
        "int fifochannel(c);\ntask f() { cwrite(c, 1); }\nint main(void) { cinit(c, 0); f(); }",
        "int fifochannel(c);\ntask f() { cinit(c, 0); sdelay(1, ms); cwrite(c, 1); }\n\
         int main(void) { f(); }",
    ] {
        assert_eq!(lost(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_program_that_grows_without_measure_is_told() {
    let mut text = "void f0(void) { sdelay(1, ms); sdelay(2, ms); }\n".to_owned();
    for n in 1..30 {
        let _ = writeln!(text, "void f{n}(void) {{ f{m}(); f{m}(); }}", m = n - 1);
    }
    text.push_str("int main(void) { f29(); }\n");
    let told = lost(&text);
    assert!(told.len() == 1 && told[0].contains("more than 100000 steps"), "{told:?}");
}

#[test]
fn units_of_a_program_are_one_graph() {
    let main = "task f(int n);\nextern int fifochannel(c);\nstatic int fifochannel(s);\n\
                int main(void) {\n f(3);\n cwrite(c, 1);\n cwrite(s, 1); }\n";
    let other = "int fifochannel(c, 2);\nstatic int fifochannel(s, 3);\nvoid step(int);\n\
                 task f(int n) {\n int v;\n cread(c, v);\n cread(s, v);\n step(n); }\n";
    let third = "void step(int n) { work();\n fdelay(n, ms); }\n";
    let units = [unit("main.c", main), unit("src/other.c", other), unit("third.c", third)];
    let made = link(&units, "demo");
    check(&made.graph);
    snapshot("units", &made);
}

/// Of a graph.
type Aliases = Vec<(usize, Vec<usize>)>;

/// The resources of a program, those of them that may be others, and what is doubted.
fn locked(units: &[UnitGraph]) -> (Vec<String>, Aliases, usize) {
    let Linked { graph, warnings, diagnostics, .. } = link(units, "test");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    (graph.resources, graph.aliases, warnings.len())
}

#[test]
fn mutexes_are_the_same_if_they_are_one_variable() {
    let types = "typedef struct { int n; } pthread_mutex_t;\n\
        int pthread_mutex_lock(pthread_mutex_t *m); int pthread_mutex_unlock(pthread_mutex_t *m);\n\
        struct dev { pthread_mutex_t lock, more[2]; };\n";
    let of = |globals: &str, inside: &str| {
        let text = format!("{types}{globals}\ntask t(void) {{ {inside} }}\n");
        locked(&[unit("a.c", &text)])
    };
    let one = |name: &str| (vec![name.to_owned()], Vec::new(), 0);
    let same = "struct dev *d = &dev; pthread_mutex_lock(&dev.lock); \
        pthread_mutex_unlock(&d->lock); pthread_mutex_lock(&(*d).lock); \
        pthread_mutex_unlock(&((&dev)->lock));";
    assert_eq!(of("struct dev dev;", same), one("dev.lock"));
    let parts = "pthread_mutex_lock(&dev.more[1]); pthread_mutex_lock(&dev.lock);";
    let (found, aliases, doubts) = of("struct dev dev;", parts);
    assert_eq!((found.len(), aliases.len(), doubts), (2, 1, 1));
    let array = "pthread_mutex_lock(all); pthread_mutex_unlock(&all[0]);";
    assert_eq!(of("pthread_mutex_t all[2];", array), one("all[0]"));
    // A pointer that changes, and an index that nobody knows, may be any.
    for vague in ["p = &b; pthread_mutex_lock(p);", "pthread_mutex_lock(&all[i]);"] {
        let inside =
            format!("int i = 0; pthread_mutex_t *p = &a; pthread_mutex_lock(&a); i++; {vague}");
        let (found, aliases, doubts) = of("pthread_mutex_t a, b, all[3];", &inside);
        assert_eq!((found.len(), aliases, doubts), (2, vec![(1, vec![0])], 1), "{vague}");
    }
    // Each unit has its own static one.
    let text = format!("{types}static pthread_mutex_t m; pthread_mutex_t g;\n");
    let both = ["a", "b"].map(|name| {
        let task = "(void) { pthread_mutex_lock(&m); pthread_mutex_lock(&g); }";
        unit(&format!("{name}.c"), &format!("{text}task {name}{task}\n"))
    });
    assert_eq!(locked(&both).0, ["m", "g", "m#2"]);
}

#[test]
fn files_of_execution_times_become_segments() {
    use onbeat_model::execution_times::read;
    use onbeat_program::graph::apply_times;
    let text = "task f() {\n while (1) {\n sdelay(10, ms);\n sdelay(20, ms); } }\n\
                int main(void) { f();\n f(); }\n";
    let mut made = linked(text);
    let rows =
        "0,1,4,0,0,1\nf:3,5,6,0,0,f:4\n1,7,8,0,0,2\nf:4,1,1,,,f:end\nf:9,1,1,,,f:3\n0,1,1,0,0,3\n";
    let rows = read(rows, "times").expect("right");
    let told = apply_times(&mut made.graph, &made.places, &rows);
    assert_eq!(
        told,
        [(5, "the program has no f:9".to_owned()), (6, "the program has no 3".to_owned())]
    );
    for task in &made.graph.tasks[1..] {
        let segments: Vec<_> = task
            .segments
            .iter()
            .map(|s| {
                let place = |n: usize| task.nodes[n].place.as_str();
                (place(s.from), place(s.to), s.execution.lo.as_ns())
            })
            .collect();
        assert_eq!(segments, [("start", "3", 1), ("3", "4", 5)]);
    }
    assert!(made.graph.tasks[0].segments.is_empty());
}

/// Where a task without loops goes: whether its first point has a period of 1 ms. None if that
/// depends on what is not known.
fn taken(text: &str) -> Option<bool> {
    let graph = linked(text).graph;
    let task = &graph.tasks[0];
    let mut registers = vec![None; usize::from(task.registers)];
    let mut at = 0;
    loop {
        let node = &task.nodes[at];
        match &node.kind {
            NodeKind::Set { register, value } => {
                registers[usize::from(*register)] = value.value(&registers);
            }
            NodeKind::Branch(condition) => {
                let is_so = condition.value(&registers)? != 0;
                at = node.next[usize::from(!is_so)];
                continue;
            }
            NodeKind::Any => return None,
            NodeKind::Point { period, .. } => {
                return Some(*period == Expression::Constant(1_000_000));
            }
            _ => {}
        }
        at = *node.next.first()?;
    }
}

/// What a condition of two variables is for their values.
fn decided(kinds: [&str; 2], values: [i64; 2], condition: &str) -> Option<bool> {
    let [a, b] = kinds;
    let [x, y] = values;
    taken(&format!(
        "task f() {{ {a} a = {x}; {b} b = {y}; \
         if ({condition}) sdelay(1, ms); else sdelay(2, ms); }}"
    ))
}

#[test]
fn conditions_are_what_c_makes_of_them() {
    let int = |a, b, c| decided(["int", "int"], [a, b], c);
    assert_eq!(int(3, 4, "a < b && b < 5"), Some(true));
    assert_eq!(int(-7, 2, "a / b == -3 && a % b == -1"), Some(true));
    assert_eq!(int(2_147_483_647, 1, "a + b > 0"), None, "overflow");
    assert_eq!(int(2_147_483_647, 1, "a + b - 2 > 0"), Some(true), "wraps twice");
    assert_eq!(int(5, 0, "a / b"), None, "by zero");
    assert_eq!(int(5, 0, "b && a / b"), Some(false));
    assert_eq!(int(5, 3, "(a & b) == 1 && (a | b) == 7 && (a ^ b) == 6 && ~a == -6"), Some(true));
    assert_eq!(int(-8, 1, "a >> b == -4"), Some(true), "by a variable");
    assert_eq!(int(1, 31, "a << b"), None, "more than int has");
    assert_eq!(int(1, 32, "a >> b"), None, "by more than int has");
    assert_eq!(int(1, -1, "a << b"), None, "by less than nothing");
    assert_eq!(int(-8, 1, "a >> 1 == -4"), Some(true));
    assert_eq!(int(1, 0, "!(a && !b)"), Some(false));
    assert_eq!(int(1, 5, "(a ? b : 0) == 5"), Some(true));
    assert_eq!(
        decided(["int", "unsigned"], [-1, 1], "a < b"),
        Some(false),
        "converted to unsigned"
    );
    assert_eq!(decided(["int", "unsigned"], [2, 3], "a < b"), Some(true));
    assert_eq!(decided(["unsigned", "unsigned"], [1, 2], "a - b < 10"), Some(false), "wraps");
    assert_eq!(decided(["uint8_t", "int"], [255, 1], "a + b == 256"), Some(true), "promoted");
    assert_eq!(decided(["uint8_t", "int"], [256, 1], "a == 0"), Some(true), "wraps");
    assert_eq!(decided(["char", "long"], [100, 1 << 40], "a * b > 1L << 46"), Some(true));
    assert_eq!(decided(["bool", "int"], [7, 1], "a == b"), Some(true));
    assert_eq!(decided(["double", "int"], [1, 1], "a == b"), None);
    assert_eq!(decided(["volatile int", "int"], [1, 1], "a == b"), None);
    assert_eq!(decided(["static int", "int"], [1, 1], "a == b"), None);
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// An expression of `a`, `b` and `c` that C defines, given that integers wrap.
    fn expression(&mut self, leaves: &[&str], depth: usize) -> String {
        if depth == 0 || self.below(6) == 0 {
            return self.one_of(leaves).to_owned();
        }
        let left = self.expression(leaves, depth - 1);
        match self.below(10) {
            0 => format!("({left} / {})", self.one_of(&["1", "3", "7u", "10L"])),
            1 => format!("({left} % {})", self.one_of(&["2", "3", "5u", "9L"])),
            2 => format!("({left} {} {})", self.one_of(&["<<", ">>"]), self.below(9)),
            3 => format!("{}({left})", self.one_of(&["-", "~", "!", "+"])),
            4 => {
                let kinds = [
                    "int",
                    "unsigned char",
                    "unsigned",
                    "short",
                    "long",
                    "_Bool",
                    "uint8_t",
                    "int16_t",
                    "long unsigned int",
                    "size_t",
                    "signed char",
                    "char",
                    "tick",
                ];
                format!("({})({left})", self.one_of(&kinds))
            }
            5 => {
                let [yes, no] = [(); 2].map(|()| self.expression(leaves, depth - 1));
                format!("({left} ? {yes} : {no})")
            }
            _ => {
                let all = [
                    "+", "-", "*", "+", "-", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&",
                    "||",
                ];
                let right = self.expression(leaves, depth - 1);
                format!("({left} {} {right})", self.one_of(&all))
            }
        }
    }
}

/// What the C program and the analysed one begin with.
const HEAD: &str = "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n\
                    typedef unsigned short tick; enum { EA = 3, EB = -2, EC };\n";

/// The values of expressions, each with declarations before it, in the C compiler's judgement.
fn computed(name: &str, cases: &[(String, String)]) -> Vec<i64> {
    let mut program = format!("{HEAD}int main(void) {{\n");
    for (before, expression) in cases {
        let _ = writeln!(program, "{{ {before} printf(\"%ld\\n\", (long)({expression})); }}");
    }
    program.push_str("}\n");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (directory.join(format!("{name}.c")), directory.join(name));
    fs::write(&source, program).expect("a temporary file");
    let compiled = std::process::Command::new("gcc")
        .args(["-w", "-O0", "-fwrapv", "-o"])
        .args([&binary, &source])
        .status();
    assert!(compiled.expect("gcc").success());
    let output = std::process::Command::new(&binary).output().expect("the program");
    let values = String::from_utf8(output.stdout).expect("numbers");
    let values: Vec<i64> = values.lines().map(|v| v.parse().expect("a number")).collect();
    assert_eq!(values.len(), cases.len());
    values
}

/// The head without what the preprocessor would have done.
fn head() -> &'static str {
    HEAD.rsplit('>').next().unwrap_or_default()
}

#[test]
fn random_expressions_have_the_values_that_the_c_compiler_gives_them() {
    const COUNT: usize = 1_500;
    const LEAVES: [&str; 12] =
        ["a", "b", "c", "1", "7", "-3", "200", "5u", "1000000", "2L", "'x'", "65536"];
    let mut dice = Dice(6);
    let kinds =
        ["int", "unsigned", "unsigned char", "long", "short", "unsigned long", "signed char"];
    let mut cases = Vec::new();
    for _ in 0..COUNT {
        let variables: String = ["a", "b", "c"]
            .iter()
            .map(|name| {
                let value = dice.one_of(&[0_i64, 1, 5, 100, 127, 30_000, 2_147_483_647, -1, -128]);
                format!("{} {name} = {value}; ", dice.one_of(&kinds))
            })
            .collect();
        cases.push((variables, dice.expression(&LEAVES, 3)));
    }
    let mut known = 0;
    for ((variables, expression), value) in cases.iter().zip(computed("expressions", &cases)) {
        let text = format!(
            "{} task f() {{ {variables} long r = {expression}; \
             if (r == {value}) sdelay(1, ms); else sdelay(2, ms); }}",
            head()
        );
        let taken = taken(&text);
        assert_ne!(taken, Some(false), "{variables} {expression} is {value}");
        known += usize::from(taken.is_some());
    }
    assert!(known > COUNT / 3, "{known} of {COUNT} are known");
}

#[test]
fn random_constants_have_the_values_that_the_c_compiler_gives_them() {
    const COUNT: usize = 3_000;
    const LEAVES: [&str; 32] = [
        "0",
        "1",
        "7",
        "-3",
        "200",
        "5u",
        "1000000",
        "2L",
        "'x'",
        "65536",
        "010",
        "0x7fffffff",
        "0x80000000",
        "2147483647",
        "2147483648",
        "4294967295",
        "0xffffffffU",
        "3ul",
        "6LL",
        "0xffffffffffffffff",
        "18446744073709551615u",
        "EA",
        "EB",
        "EC",
        "-1",
        "-5u",
        "-2147483648",
        "sizeof(int)",
        "sizeof(tick)",
        "0b101",
        "-128",
        "255",
    ];
    let mut dice = Dice(60);
    let cases: Vec<(String, String)> =
        (0..COUNT).map(|_| (String::new(), dice.expression(&LEAVES, 3))).collect();
    let mut known = 0;
    for ((_, expression), value) in cases.iter().zip(computed("constants", &cases)) {
        // Without a branch, or by one on what is unknown.
        let text = format!(
            "{} task f() {{ if ((long)({expression}) == {value}) sdelay(1, ms); \
             else sdelay(2, ms); }}",
            head()
        );
        let taken = taken(&text);
        assert_ne!(taken, Some(false), "{expression} is {value}");
        known += usize::from(taken.is_some());
        // As a delay.
        let low = value & 0xffff;
        let text = format!("{} task f() {{ sdelay((uint16_t)({expression}), ns); }}", head());
        let graph = linked(&text).graph;
        let of = graph.tasks[0].nodes.iter().find_map(|node| match &node.kind {
            NodeKind::Point { period, .. } => Some(period.clone()),
            _ => None,
        });
        let of = of.expect("a point");
        let is_it = of == Expression::Constant(low) || of == Expression::Unknown;
        assert!(is_it, "{expression} is {value}, not {of:?}");
    }
    assert!(known > COUNT * 2 / 3, "{known} of {COUNT} are known");
}

/// How long the only task sleeps first, if it is constant.
fn slept(text: &str, target: Target) -> Option<i64> {
    let files = [SourceFile { path: "c.c".to_owned(), text: text.to_owned() }];
    let options = Options { target, ..Options::default() };
    let made = translate(&Expanded::plain(text), &files, options);
    assert!(made.diagnostics.is_empty(), "{text}: {:?}", made.diagnostics);
    made.tasks[0].points[0].period.map(|period| period.as_ns())
}

#[test]
fn constants_have_the_types_of_their_target_and_of_their_place() {
    use Target::{FreeRtos, Posix};
    let on =
        |constant: &str, target| slept(&format!("task f() {{ sdelay({constant}, ns); }}"), target);
    assert_eq!(on("sizeof(long) + sizeof(void *)", Posix), Some(16));
    assert_eq!(on("sizeof(long) + sizeof(void *)", FreeRtos), Some(8));
    assert_eq!(on("(0x7fffffffL + 1 > 0) + 1", Posix), Some(2));
    assert_eq!(on("(0x7fffffffL + 1 > 0) + 1", FreeRtos), None, "overflow");
    assert_eq!(on("(0ul - 1 == 4294967295) + 1", Posix), Some(1));
    assert_eq!(on("(0ul - 1 == 4294967295) + 1", FreeRtos), Some(2));
    for target in [Posix, FreeRtos] {
        assert_eq!(on("(2147483648 > 0) + 4294967295u % 16 + 0xffu", target), Some(271));
        assert_eq!(on("(char)300", target), Some(44));
        assert_eq!(on("(char)200 > 0 ? 3 : 4", target), None, "the sign is the machine's choice");
        assert_eq!(on("(uint8_t)-1", target), Some(255));
        assert_eq!(on("(0u - 1) % 7", target), Some(3));
        assert_eq!(on("1u - 2u > 0 ? 3 : 4", target), Some(3));
        assert_eq!(on("(float)300 > 0", target), None);
        assert_eq!(on("(_Bool)256", target), Some(1));
        assert_eq!(on("(int8_t)200 + 60", target), Some(4));
        assert_eq!(on("1 << 31 < 0", target), None, "C does not define it");
        assert_eq!(on("1 << 32", target), None);
        assert_eq!(on("1 / 0", target), None);
        assert_eq!(on("1 ? 5 : 1 / 0", target), Some(5));
    }
    let text = "enum { N = 5 }; task f(int N) { sdelay(N, ns); }";
    assert_eq!(slept(text, Posix), None, "the parameter");
    let text = "enum { N = 5 }; void g(int N); task f() { sdelay(N, ns); }";
    assert_eq!(slept(text, Posix), Some(5), "not that of another function");
    let text = "enum { N = 5, M = 1ul << 40 }; task f() { sdelay(N < -1 ? 2 : 3, ns); }";
    assert_eq!(slept(text, Posix), None, "the type of a list with large ones is the compiler's");
    assert_eq!(
        taken(
            "enum e { A }; task f() { enum e x = A; if (x - 5 < 0) sdelay(1, ms); else \
                      sdelay(2, ms); }"
        ),
        None,
        "so is that of an enumeration"
    );
    let text = |kind| {
        format!(
            "task f() {{ {kind} x = 0; switch (x - 1) {{ case -1: sdelay(1, ms); break; \
                 default: sdelay(2, ms); }} }}"
        )
    };
    assert_eq!(taken(&text("unsigned")), Some(true), "a case is of the type of the value");
    assert_eq!(taken(&text("int")), Some(true));
}
