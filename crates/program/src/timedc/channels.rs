//! Channels between tasks: their declarations, and who writes them.

use super::codes;
use super::edits::{Edits, Rank};
use super::prepare::ChannelWord;
use super::program::Program;
use super::syntax::{children, fields, walk};
use super::unit::{Function, Role, Unit};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, HashSet};
use tree_sitter::Node;

/// How many values a fifochannel has room for by default.
pub(super) const CAPACITY: &str = "1024";

/// The declaration that a channel is declared in.
pub(super) fn declaration<'t>(unit: &Unit<'t>, channel: &ChannelWord) -> Option<Node<'t>> {
    let mut node = unit.root.descendant_for_byte_range(channel.name.start, channel.name.end)?;
    while node.kind() != "declaration" {
        node = node.parent()?;
    }
    Some(node)
}

/// Changes the declarations of channels.
pub(super) fn edit(unit: &mut Unit<'_>, edits: &mut Edits) {
    let prepared = unit.prepared;
    let mut by_declaration: BTreeMap<usize, (Node<'_>, Vec<&ChannelWord>)> = BTreeMap::new();
    for channel in &prepared.channels {
        if let Some(node) = declaration(unit, channel) {
            by_declaration.entry(node.id()).or_insert((node, Vec::new())).1.push(channel);
        } else {
            let at = channel.word.start..channel.end;
            let help = "write `int fifochannel(name);` or `int lvchannel(name);`";
            unit.error(codes::FORM, at, "this declares no channel", "here", help);
        }
    }
    for (node, channels) in by_declaration.into_values() {
        one(unit, edits, node, &channels);
    }
}

fn one<'t>(unit: &mut Unit<'t>, edits: &mut Edits, node: Node<'t>, channels: &[&ChannelWord]) {
    let kind = node.child_by_field_name("type");
    let has_body = kind.is_some_and(|k| k.child_by_field_name("body").is_some());
    if has_body || fields(node, "declarator").len() != channels.len() {
        let at = channels[0].word.start..channels[0].end;
        let help = "declare the struct or variable in a separate declaration";
        unit.error(codes::FORM, at, "a channel's declaration declares nothing else", "here", help);
        return;
    }
    let mut storage = match node.parent().map(|p| p.kind()) {
        Some("compound_statement") => "static",
        _ => "",
    };
    for child in children(node) {
        if child.kind() == "storage_class_specifier" {
            storage = if unit.words(child) == "extern" { "extern" } else { "static" };
            edits.replace(child.byte_range(), "");
        }
    }
    let specifiers = kind.map_or("int", |k| unit.words(k)).to_owned();
    for (index, channel) in channels.iter().enumerate() {
        let (macro_name, ends) = match (channel.is_latest, storage == "extern") {
            (true, true) => ("TIMEDC_LATEST_EXTERN(", ""),
            (true, false) => ("TIMEDC_LATEST(", ""),
            (false, true) => ("TIMEDC_FIFO_EXTERN(", ""),
            (false, false) => ("TIMEDC_FIFO(", CAPACITY),
        };
        let opening = match storage {
            "extern" => macro_name.to_owned(),
            _ => format!("{macro_name}{storage}, "),
        };
        match index {
            0 => edits.before(node.byte_range(), Rank::Open, &opening),
            // The comma before it is the declaration's.
            _ => {
                let comma = unit.text[..channel.word.start].rfind(',');
                let comma = comma.unwrap_or(channel.word.start);
                edits.replace(comma..comma + 1, &format!("; {opening}{specifiers}"));
            }
        }
        edits.replace(channel.word.clone(), ",");
        let closing = match (&channel.count, ends) {
            (None, CAPACITY) => format!(", {CAPACITY})"),
            _ => ")".to_owned(),
        };
        match channel.open {
            Some(open) => {
                edits.replace(open..open + 1, "");
                if channel.count.is_none() || storage != "extern" && !channel.is_latest {
                    edits.replace(channel.end - 1..channel.end, &closing);
                } else {
                    edits.replace(channel.name.end..channel.end, ")");
                }
            }
            None => edits.after(channel.name.clone(), Rank::Close, &closing),
        }
    }
    counts(unit, channels);
}

/// What is wrong with the numbers of values.
fn counts(unit: &mut Unit<'_>, channels: &[&ChannelWord]) {
    for channel in channels {
        if let Some(open) = channel.open.filter(|_| channel.is_latest && channel.count.is_some()) {
            let help = "an lvchannel has one value: write its name only";
            let at = open..channel.end;
            unit.error(codes::FORM, at, "an lvchannel has no number of values", "here", help);
        } else if let Some(count) = &channel.count {
            let value = super::syntax::number(&unit.text[count.clone()]);
            if value.is_some_and(|v| !(1..=i128::from(i32::MAX)).contains(&v)) {
                let help = "a fifochannel has room for 1 to 2147483647 values";
                let at = count.clone();
                unit.error(codes::FORM, at, "a fifochannel of this size", "here", help);
            }
        }
    }
}

/// A place where a channel is written, or read.
pub(super) struct Write<'t> {
    pub call: Node<'t>,
    pub function: usize,
}

/// An lvchannel has one writer.
pub(super) fn check_writers(unit: &Unit<'_>, program: &Program<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let channels: HashSet<&str> = unit
        .prepared
        .channels
        .iter()
        .filter(|c| c.is_latest)
        .map(|c| &unit.text[c.name.clone()])
        .collect();
    let mut writes: BTreeMap<&str, Vec<Write<'_>>> = BTreeMap::new();
    for (function, found) in unit.functions.iter().enumerate() {
        walk(found.body, |node| {
            if node.kind() == "call_expression"
                && unit.callee(node) == Some("cwrite")
                && let Some(list) = node.child_by_field_name("arguments")
                && let Some(channel) = children(list).first().map(|n| unit.words(*n))
                && channels.contains(channel)
            {
                writes.entry(channel).or_default().push(Write { call: node, function });
            }
            true
        });
    }
    for (channel, writes) in writes {
        let what = format!("the lvchannel `{channel}`");
        let help = "let one task write it, or use a fifochannel";
        let words = (what.as_str(), "writer", "writes");
        diagnostics.extend(second_user(unit, program, words, help, &writes));
    }
    diagnostics
}

/// A second task that does what one task may do: with the channel's name, what such a task is, and
/// what it does.
pub(super) fn second_user(
    unit: &Unit<'_>,
    program: &Program<'_>,
    (channel, who, verb): (&str, &str, &str),
    help: &str,
    writes: &[Write<'_>],
) -> Option<Diagnostic> {
    let mut first: Option<(usize, Node<'_>)> = None;
    for write in writes {
        let users = program.callers(HashSet::from([write.function]));
        let is_task = |f: &usize| {
            let Function { role, name, .. } = unit.functions[*f];
            role != Role::Plain && unit.options.starts(role, name)
        };
        let mut tasks: Vec<usize> = users.into_iter().filter(is_task).collect();
        tasks.sort_unstable();
        for task in tasks {
            let starts: Vec<_> =
                program.sites.iter().filter(|s| s.starts && s.callee == task).collect();
            let related = match first {
                Some((known, call)) if known != task => (call, format!("the first {who}")),
                _ if starts.len() > 1 => (starts[1].call, format!("this starts a second {who}")),
                _ => {
                    first = first.or(Some((task, write.call)));
                    continue;
                }
            };
            let text = format!("{channel} has a second {who}");
            let at = unit.at(write.call.byte_range());
            let name = unit.functions[task].name;
            let label = format!("`{name}` {verb} it");
            return Some(
                Diagnostic::error(codes::WRITERS, text, at, &label)
                    .help(help)
                    .related(unit.at(related.0.byte_range()), &related.1),
            );
        }
    }
    None
}
