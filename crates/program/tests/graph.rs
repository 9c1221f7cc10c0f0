//! Time-flow graphs of programs: the paper's listings and a program for each construct.

use onbeat_model::diagnostic::SourceFile;
use onbeat_model::graph::{Binary, ChannelKind, Expression, Graph, Interval, Task, Unary, What};
use onbeat_program::graph::{Linked, UnitGraph, link};
use onbeat_program::source::Expanded;
use onbeat_program::timedc::{Options, translate};
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
        Expression::Unary(operation, inner) => {
            let sign = match operation {
                Unary::Minus => "-",
                Unary::Not => "!",
                Unary::Complement => "~",
            };
            format!("{sign}{}", expression(inner))
        }
        Expression::Binary(operation, left, right) => {
            let sign = match operation {
                Binary::Add => "+",
                Binary::Subtract => "-",
                Binary::Multiply => "*",
                Binary::Divide => "/",
                Binary::Remainder => "%",
                Binary::And => "&",
                Binary::Or => "|",
                Binary::Xor => "^",
                Binary::ShiftLeft => "<<",
                Binary::ShiftRight => ">>",
                Binary::Equal => "==",
                Binary::Unequal => "!=",
                Binary::Less => "<",
                Binary::LessOrEqual => "<=",
                Binary::Greater => ">",
                Binary::GreaterOrEqual => ">=",
            };
            format!("({}{sign}{})", expression(left), expression(right))
        }
    }
}

fn what(graph: &Graph, what: &What) -> String {
    let waits = |waits: &bool| if *waits { " and waits" } else { "" };
    match what {
        What::Start => "start".to_owned(),
        What::End => "end".to_owned(),
        What::Point { kind, period, deadline } => {
            let deadline = deadline.as_ref().map_or("none".to_owned(), expression);
            format!("{kind:?} {} by {deadline}", expression(period))
        }
        What::Gettime => "gettime".to_owned(),
        What::Skip => "skip".to_owned(),
        What::Fragment { execution: Interval::ZERO } => "code".to_owned(),
        What::Fragment { execution } => {
            let hi = execution.hi.map_or("?".to_owned(), |hi| hi.as_ns().to_string());
            format!("code {}..{hi}", execution.lo.as_ns())
        }
        What::Write { channel, waits: w } => {
            format!("write {}{}", graph.channels[*channel].name, waits(w))
        }
        What::Read { channel, waits: w } => {
            format!("read {}{}", graph.channels[*channel].name, waits(w))
        }
        What::Run { task } => format!("run {}", graph.tasks[*task].name),
        What::Lock(resource) => format!("lock {}", graph.resources[*resource]),
        What::Unlock(resource) => format!("unlock {}", graph.resources[*resource]),
        What::Set { register, value } => format!("r{register} = {}", expression(value)),
        What::Branch(condition) => format!("if {}", expression(condition)),
        What::Any => "any".to_owned(),
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
        let what = what(graph, &node.what);
        let _ = writeln!(text, "  {index} @{} {what} -> {}{guard}", node.place, next.join(" "));
    }
    text
}

/// A graph in a few lines: a node is its number, its place, what happens, what comes next, and in
/// brackets the point that guards it.
fn printed(linked: &Linked) -> String {
    let mut text = String::new();
    for found in &linked.diagnostics {
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
        assert!(matches!(task.nodes[0].what, What::Start));
        for node in &task.nodes {
            assert!(node.next.iter().all(|n| *n < task.nodes.len()), "{node:?}");
            let count = node.next.len();
            match &node.what {
                What::End => assert_eq!(count, 0, "{node:?}"),
                What::Branch(_) => assert_eq!(count, 2, "{node:?}"),
                What::Any => assert!(count > 0, "{node:?}"),
                _ => assert_eq!(count, 1, "{node:?}"),
            }
            if let Some(guard) = node.guard {
                assert!(matches!(task.nodes[guard].what, What::Point { .. }), "{node:?}");
            }
            if let What::Skip = node.what {
                assert!(matches!(task.nodes[node.next[0]].what, What::Point { .. }), "{node:?}");
            }
        }
    }
}

#[test]
fn programs_have_the_graphs_that_their_snapshots_show() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graph");
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .expect("programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a program");
        let made = linked(&text);
        check(&made.graph);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name.clone(), printed(&made)));
    }
}
