//! The assembler: from a text to a [`StationProgram`], or everything that is wrong with it.
//!
//! ```text
//! text ──lexer──→ lines ──parser──→ statements ──declarations, resolver──→ program ──flow──→
//! ```
//!
//! No step stops at the first error. `docs/network-code.md` has the language.

mod declarations;
mod findings;
mod flow;
pub(crate) mod formula;
pub(crate) mod lexer;
mod parser;
mod resolver;
pub(crate) mod syntax;

use declarations::Declarations;
use findings::Findings;
use lexer::TextLine;
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity, SourceFile};
use onbeat_runtime::network_code::check::SOURCE_OCTETS;
use onbeat_runtime::network_code::instruction::{MessageId, PROGRAM_WORDS};
use onbeat_runtime::network_code::program::{BUFFERS, Buffer, MessageFormat, StationProgram};
use resolver::{LabelAt, Placed};
use std::collections::BTreeMap;
use syntax::Statement;

pub(crate) use parser::UNITS;

/// Octets of a program's text.
pub const TEXT_OCTETS: usize = 1 << 20;

/// What an assembler knows beside the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct AssemblyOptions<'a> {
    /// Whose program it is to be; a text that says it itself must say the same.
    pub station: Option<&'a str>,
    /// What a description says, if there is one.
    pub network: Option<&'a DescribedNetwork>,
}

/// Hosts and channels of a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedNetwork {
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// Their channels.
    pub channels: Vec<DescribedChannel>,
}

/// A channel of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedChannel {
    /// Its name.
    pub name: String,
    /// Octets of a message.
    pub octets: u32,
    /// The host that writes it.
    pub talker: String,
    /// The hosts that read it.
    pub listeners: Vec<String>,
}

/// What came of a text.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The program, if nothing is wrong.
    pub program: Option<StationProgram>,
    /// Channels of buffers, by the position of the buffer in the program.
    pub channels: BTreeMap<usize, String>,
    /// All that is wrong, and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The text, in which diagnostics have their places.
    pub source: SourceFile,
}

/// Assembles a text, and says everything that is wrong with it. `path` is its name in messages, and
/// in the program if a file can hold it.
///
/// ```
/// use onbeat_network_code::assembly::{AssemblyOptions, assemble};
/// let text = "station a\nbegin: sync slave, 1 ms\n goto begin\n";
/// let assembly = assemble("a.nc", text, AssemblyOptions::default());
/// assert_eq!(assembly.program.map(|program| program.words.len()), Some(2));
/// ```
pub fn assemble(path: &str, text: &str, options: AssemblyOptions<'_>) -> Assembly {
    build(path, text, options, true)
}

/// The same for a text whose control is not followed: any program that a file can have, as from
/// [`disassemble`](crate::disassembly::disassemble), is assembled. A station may trap in it.
pub fn assemble_unfollowed(path: &str, text: &str, options: AssemblyOptions<'_>) -> Assembly {
    build(path, text, options, false)
}

fn build(path: &str, text: &str, options: AssemblyOptions<'_>, follows: bool) -> Assembly {
    let mut findings = Findings::default();
    let source = SourceFile { path: path.to_owned(), text: text.to_owned() };
    let mut channels = BTreeMap::new();
    let program = parsed(text, &mut findings).and_then(|(_, statements)| {
        let mut declarations = declarations::declarations(&statements, options, &mut findings);
        let (placed, labels) =
            resolver::instructions(&statements, &mut declarations, &mut findings);
        if placed.is_empty() && !findings.has_errors() {
            let message = "the program has no instructions".to_owned();
            let help = "write one at least; `sync slave, 1 s` waits for a round";
            findings.error(codes::EMPTY, message, &(0..0), help);
        }
        if findings.has_errors() {
            return None;
        }
        last_labels(&labels, placed.len(), &mut findings);
        if findings.has_errors() {
            return None;
        }
        let program = program(path, text, &declarations, &placed)?;
        for (at, buffer) in declarations.buffers.iter().enumerate() {
            channels.extend(buffer.channel.clone().map(|channel| (at, channel)));
        }
        if follows {
            flow::check(&program, &placed, &mut findings);
        }
        unused(&declarations, &labels, &mut findings);
        Some(program)
    });
    let diagnostics = findings.sorted();
    let is_right = diagnostics.iter().all(|found| found.severity != Severity::Error);
    let program = program.filter(|_| is_right);
    Assembly { program, channels, diagnostics, source }
}

/// The lines of a text and their statements; none if it is too large.
fn parsed(text: &str, findings: &mut Findings) -> Option<(Vec<TextLine>, Vec<Statement>)> {
    if text.len() > TEXT_OCTETS {
        let message = format!("the text has {} octets", text.len());
        let help = format!("a program has at most {TEXT_OCTETS}");
        findings.error(codes::FILE_TOO_LARGE, message, &(0..0), &help);
        return None;
    }
    let lines = lexer::lines(text, findings);
    let statements = parser::statements(text, &lines, findings);
    Some((lines, statements))
}

/// The lines of a text, if each is a statement; else what is wrong.
pub(crate) fn lines(text: &str) -> Result<Vec<TextLine>, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    match parsed(text, &mut findings) {
        Some((lines, _)) if !findings.has_errors() => Ok(lines),
        _ => Err(findings.sorted()),
    }
}

/// Labels behind the last instruction that instructions name.
fn last_labels(labels: &BTreeMap<String, LabelAt>, count: usize, findings: &mut Findings) {
    let behind = labels.iter().filter(|(_, label)| label.address >= count && label.is_used);
    for (name, label) in behind {
        let message = format!("no instruction follows the label `{name}`");
        let help = "move it, or write an instruction behind it";
        findings.error(codes::LAST_LABEL, message, &label.span, help);
    }
}

/// What nothing uses.
fn unused(
    declarations: &Declarations,
    labels: &BTreeMap<String, LabelAt>,
    findings: &mut Findings,
) {
    let help = "remove it, or use it";
    for buffer in declarations.buffers.iter().filter(|buffer| !buffer.is_used) {
        let message = format!("no instruction uses the buffer `{}`", buffer.name);
        findings.warning(codes::UNUSED, message, &buffer.span, help);
    }
    for (name, message) in declarations.messages.iter().filter(|(_, it)| !it.is_used) {
        let what = format!("no instruction uses the message `{name}`");
        findings.warning(codes::UNUSED, what, &message.span, help);
    }
    let is_unused = |name: &str| !declarations.formulas.is_used(name);
    for (name, span) in declarations.constants.iter().filter(|(name, _)| is_unused(name)) {
        let message = format!("nothing uses the constant `{name}`");
        findings.warning(codes::UNUSED, message, span, help);
    }
    for (name, label) in labels.iter().filter(|(_, label)| !label.is_used) {
        let message = format!("no instruction names the label `{name}`");
        findings.warning(codes::UNUSED_LABEL, message, &label.span, help);
    }
}

/// The program of right declarations and instructions.
fn program(
    path: &str,
    text: &str,
    declarations: &Declarations,
    placed: &[Placed],
) -> Option<StationProgram> {
    let buffer = |buffer: &declarations::SourceBuffer| {
        Some(Buffer { name: buffer.name.clone(), words: buffer.words?, role: buffer.role })
    };
    let message = |(name, message): (&String, &declarations::SourceMessage)| {
        let (id, words) = (MessageId(message.id?), message.words?);
        Some(MessageFormat { id, name: name.clone(), words })
    };
    let mut messages = declarations.messages.iter().map(message).collect::<Option<Vec<_>>>()?;
    messages.sort_by_key(|message| message.id);
    let program = StationProgram {
        station: declarations.station.clone()?,
        medium: declarations.medium,
        buffers: declarations.buffers.iter().map(buffer).collect::<Option<_>>()?,
        messages,
        words: placed.iter().map(|placed| placed.instruction.encode()).collect(),
        source: if is_source_name(path) { path.to_owned() } else { String::new() },
        lines: line_numbers(text, placed),
    };
    assert!(program.words.len() <= PROGRAM_WORDS && program.buffers.len() <= BUFFERS);
    Some(program)
}

/// Whether a file can hold the name of the text.
fn is_source_name(path: &str) -> bool {
    path.len() <= SOURCE_OCTETS && !path.contains(char::is_control)
}

/// The line of each instruction, from 1; they are in the order of the text.
fn line_numbers(text: &str, placed: &[Placed]) -> Vec<u32> {
    let (mut line, mut at) = (1, 0);
    let number = |placed: &Placed| {
        let start = placed.span.start as usize;
        line += text[at..start].matches('\n').count() as u32;
        at = start;
        line
    };
    placed.iter().map(number).collect()
}
