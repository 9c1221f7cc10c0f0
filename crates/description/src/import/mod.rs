//! Networks and streams of other tools, as a description. `docs/import.md` says what becomes of
//! what.
//!
//! A file becomes a graph of nodes and edges: links of the scheduling benchmark (`links`, `table`),
//! GraphML (`graphml`), or a topology of YANG (`topology`, `json`). The graph becomes hosts,
//! bridges and full-duplex links (`shape`), the streams of the benchmark become scheduled channels
//! (`streams`), and all of it text (`write`). What a description cannot say is a warning, once for
//! each kind (`notes`).

mod graphml;
mod json;
mod links;
mod notes;
mod shape;
mod streams;
mod table;
mod topology;
mod write;

use crate::{At, Sink};
use onbeat_model::codes::import as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::limits;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;

/// What documents the files that are read.
const DOCUMENT: &str = "docs/import.md";
/// The network's place among the files.
const NETWORK: u16 = 0;
/// The streams' place among the files.
const STREAMS: u16 = 1;
/// Of so many nodes one is suggested for a name that is none of them: that must not take longer
/// than the import.
const SUGGESTED: usize = 1_000;
/// The rate of an edge of a graph that has none.
const RATE: BitRate = BitRate::from_mbps(1_000);

/// A file to import.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The path as the user would write it.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
}

/// What describes a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The links of the scheduling benchmark, as comma-separated values.
    Links,
    /// GraphML 1.0.
    GraphMl,
    /// A network topology of YANG (RFC 8345) as JSON.
    Topology,
}

impl Format {
    /// The format of a text: XML begins with `<`, JSON with `{`.
    pub fn of(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        match text.chars().next() {
            Some('<') => Self::GraphMl,
            Some('{') => Self::Topology,
            _ => Self::Links,
        }
    }
}

/// What the size of a stream counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeMeaning {
    /// All that the frame occupies of a link, with preamble and gap.
    Wire,
    /// The frame from the destination address to the FCS, with its tag.
    Frame,
    /// The message in the frame.
    Payload,
}

/// What the files do not say.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// What the system is called; characters that a name cannot have are replaced.
    pub name: String,
    /// What sizes of streams count.
    pub size: SizeMeaning,
    /// Whether each bridge gets a host of its own, at which its streams begin and end.
    pub add_hosts: bool,
    /// The rate of edges of a graph that have none; 1 Gb/s if it is not given.
    pub rate: Option<BitRate>,
    /// The propagation delay of edges of a graph that have none; zero if it is not given.
    pub propagation: Option<Span>,
    /// The forwarding delay of bridges of a graph that have none; zero if it is not given.
    pub forwarding: Option<Span>,
}

/// A description and what it was made of.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The text of `system.toml`.
    pub text: String,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
    /// The files of the warnings.
    pub sources: Vec<SourceFile>,
    /// Hosts, bridges, links and channels of the description.
    pub counts: [usize; 4],
}

/// What is wrong, and the files that it is in.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files; behind them the description, if it was made and cannot be read.
    pub sources: Vec<SourceFile>,
}

/// The description of a network, and of the streams over it.
///
/// # Errors
/// All that is wrong with the files.
pub fn import(
    network: Input<'_>,
    streams: Option<Input<'_>>,
    options: &ImportOptions,
) -> Result<Imported, Refused> {
    let inputs = [Some(network), streams];
    let source = |it: Input<'_>| SourceFile { path: it.path.to_owned(), text: it.text.to_owned() };
    let mut sources: Vec<SourceFile> = inputs.into_iter().flatten().map(source).collect();
    let mut sink = Sink::of(DOCUMENT);
    let made = make(network.text, streams.map(|it| it.text), options, &mut sink);
    let has_error = sink.has_error();
    let mut diagnostics = sink.into_sorted();
    let Some((text, counts)) = made.filter(|_| !has_error) else {
        return Err(Refused { diagnostics, sources });
    };
    // What only the whole description can show, such as its length.
    let checked = crate::load("the description", &text, &mut |_| Err("it names no file".into()));
    if crate::has_error(&checked.diagnostics) {
        let before = u16::try_from(sources.len()).unwrap_or(u16::MAX);
        let moved = |mut wrong: Diagnostic| {
            let places = wrong.at.iter_mut().chain(&mut wrong.related);
            places.for_each(|(at, _)| at.file = at.file.saturating_add(before));
            wrong
        };
        diagnostics.extend(checked.diagnostics.into_iter().map(moved));
        sources.extend(checked.sources);
        return Err(Refused { diagnostics, sources });
    }
    Ok(Imported { text, warnings: diagnostics, sources, counts })
}

/// The description and its counts; only to be used if the sink holds no error.
fn make(
    network: &str,
    streams: Option<&str>,
    options: &ImportOptions,
    sink: &mut Sink,
) -> Option<(String, [usize; 4])> {
    for (file, text) in [(NETWORK, Some(network)), (STREAMS, streams)] {
        if text.is_some_and(|text| text.len() > limits::FILE_OCTETS) {
            let message = format!("the file has more than {} octets", limits::FILE_OCTETS);
            too_large(message, crate::origin(file, 0..0), sink);
            return None;
        }
    }
    let mut notes = notes::Notes::default();
    let graph = match Format::of(network) {
        Format::Links => links::read(network, &mut notes, sink),
        Format::GraphMl => graphml::read(network, options, &mut notes, sink),
        Format::Topology => topology::read(network, options, &mut notes, sink),
    }?;
    if sink.has_error() {
        return None;
    }
    let shape = shape::shape(&graph, options, &mut notes, sink)?;
    let channels = match streams {
        Some(text) => streams::read(text, &shape, options.size, &mut notes, sink)?,
        None => Vec::new(),
    };
    notes.tell(sink);
    let bridges = shape.nodes.iter().filter(|node| node.is_bridge).count();
    let counts = [shape.nodes.len() - bridges, bridges, shape.links.len(), channels.len()];
    Some((write::text(&shape, &channels, options), counts))
}

fn too_large(message: String, at: Origin, sink: &mut Sink) {
    let help = "import a part of it";
    sink.push(Diagnostic::error(codes::TOO_LARGE, message, at, "here").help(help));
}

/// A network as its file has it.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Whether the processing of nodes is that of hosts, too: up to the listener.
    is_for_hosts: bool,
}

/// A node of a graph.
#[derive(Debug)]
struct Node {
    /// What edges and streams call it.
    id: String,
    /// What it is called otherwise.
    label: Option<String>,
    /// Whether it is a bridge or a host, if the file says so.
    is_bridge: Option<bool>,
    /// From a frame's last octet in to its being queued, or at a host to the listener.
    processing: Option<Span>,
    at: Origin,
}

/// An edge of a graph: a link, or a direction of one.
#[derive(Debug)]
struct Edge {
    /// Nodes: the source and the target.
    ends: [usize; 2],
    /// The ports at the ends, where the file names them.
    ports: [Option<String>; 2],
    is_directed: bool,
    rate: BitRate,
    propagation: Span,
    at: Origin,
}

/// A number of nanoseconds, or of other things, in text: at least 0, exact, as a decimal that may
/// have an exponent. `power` is the power of ten of its unit: 3 for thousands.
fn exact(text: &str, power: u32) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let power = i32::try_from(power).ok()?;
    let shift = power + i32::from(exponent) - i32::try_from(fraction.len()).ok()?;
    let zeros = usize::try_from(shift.unsigned_abs()).ok()?;
    if shift < 0 {
        let kept = digits.len().checked_sub(zeros)?;
        let (kept, rest) = digits.split_at(kept);
        return kept.parse().ok().filter(|_| rest.bytes().all(|octet| octet == b'0'));
    }
    let scale = 10_i64.checked_pow(u32::try_from(zeros).ok()?)?;
    digits.parse::<i64>().ok()?.checked_mul(scale)
}

/// A number that must lie in a range, or an error that says which.
fn number(
    what: &str,
    text: &At<&str>,
    power: u32,
    range: std::ops::RangeInclusive<i64>,
    sink: &mut Sink,
) -> Option<i64> {
    let number = exact(text.value.trim(), power);
    if let Some(number) = number.filter(|number| range.contains(number)) {
        return Some(number);
    }
    let given = crate::shorten(text.value.trim());
    let message = format!("{what} is `{given}`");
    let help = match power {
        0 => format!("use a whole number from {} to {}", range.start(), range.end()),
        _ => format!("use a number above 0, at most {}", range.end() / 10_i64.pow(power)),
    };
    sink.push(Diagnostic::error(codes::VALUE, message, text.at, "out of range").help(help));
    None
}

/// What a node is called in a file: numbers without leading zeros, everything else as it is.
fn identifier(text: &str) -> &str {
    match text.bytes().all(|octet| octet.is_ascii_digit()) && !text.is_empty() {
        true => match text.trim_start_matches('0') {
            "" => "0",
            number => number,
        },
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_none() {
        for (text, power, number) in [
            ("0", 0, Some(0)),
            ("400000", 0, Some(400_000)),
            ("400000.0", 0, Some(400_000)),
            ("10000000000.0", 0, Some(10_000_000_000)),
            ("1e+10", 0, Some(10_000_000_000)),
            ("2.5", 9, Some(2_500_000_000)),
            ("2.5", 0, None),
            ("12000e-3", 0, Some(12)),
            ("12001e-3", 0, None),
            (".5", 1, Some(5)),
            ("9223372036854775807", 0, Some(i64::MAX)),
            ("9223372036854775808", 0, None),
            ("1e30", 0, None),
            ("1e32767", 0, None),
            ("0e32767", 9, Some(0)),
            ("1e-32768", 0, None),
            ("-1", 0, None),
            ("+1", 0, None),
            ("1_000", 0, None),
            ("", 0, None),
            (".", 0, None),
            ("nan", 0, None),
            ("0x10", 0, None),
        ] {
            assert_eq!(exact(text, power), number, "{text}");
        }
    }
}
