//! TOML text to tables. A key that cannot be read is reported and left out, then the table is read
//! again, so that one wrong key hides no other.

use super::group::Groups;
use super::names::shorten;
use super::{FORMAT, Sink, codes, did_you_mean, limits, origin, raw, renamed};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// One table as far as it could be read.
pub(crate) struct Entry<R> {
    pub(crate) raw: R,
    /// Its header.
    pub(crate) at: Origin,
    /// The keys that have been reported and left out.
    broken: Vec<String>,
    /// Too much was wrong: nothing was kept.
    hopeless: bool,
}

impl<R: Default> Entry<R> {
    /// In the place of a table of which nothing can be read.
    pub(crate) fn hopeless(at: Origin) -> Self {
        Self { raw: R::default(), at, broken: Vec::new(), hopeless: true }
    }
}

impl<R> Entry<R> {
    /// Notes that the key was there and has been reported.
    pub(crate) fn breaks(&mut self, key: &str) {
        self.broken.push(key.to_owned());
    }
    /// Whether something could not be read, which has been reported.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.hopeless || !self.broken.is_empty()
    }
    /// Whether the key's absence has been explained already.
    pub(crate) fn is_broken(&self, key: &str) -> bool {
        self.hopeless || self.broken.iter().any(|b| b == key)
    }
}

/// The description's tables.
pub(super) struct Tables {
    pub(super) head: Entry<raw::File>,
    pub(super) run: Option<Entry<raw::Run>>,
    pub(super) synchronisation: Option<Entry<raw::Synchronisation>>,
    pub(super) scenarios: Vec<Entry<raw::Scenario>>,
    pub(super) devices: Vec<Entry<raw::Device>>,
    pub(super) hosts: Vec<Entry<raw::Host>>,
    pub(super) bridges: Vec<Entry<raw::Bridge>>,
    pub(super) links: Vec<Entry<raw::Link>>,
    pub(super) ports: Vec<Entry<raw::Port>>,
    pub(super) streams: Vec<Entry<raw::Stream>>,
    pub(super) faults: Vec<Entry<raw::Fault>>,
    pub(super) channels: Vec<Entry<raw::Channel>>,
    pub(super) programs: Vec<Entry<raw::Program>>,
    pub(super) noise: Vec<Entry<raw::Noise>>,
    pub(super) tcp: Vec<Entry<raw::Tcp>>,
    pub(super) chains: Vec<Entry<raw::Chain>>,
    pub(super) alternatives: Vec<Entry<raw::Alternatives>>,
    pub(super) references: Vec<Entry<raw::Reference>>,
}

/// Nothing if the text is no TOML or of another format version.
pub(super) fn parse(text: &str, sink: &mut Sink) -> Option<Tables> {
    let mut root = document(text, sink)?;
    renamed::apply(&mut root, sink);
    let groups = Groups::take(&mut root, sink);
    let run = root.remove("run").map(|value| table("run", "[run]", value, sink));
    let synchronisation = root
        .remove("synchronisation")
        .map(|value| table("synchronisation", "[synchronisation]", value, sink));
    let scenarios = many(&mut root, "scenario", limits::SCENARIOS, sink);
    let devices = many(&mut root, "device", limits::DEVICES, sink);
    let hosts = groups.many(&mut root, "host", sink);
    let bridges = groups.many(&mut root, "bridge", sink);
    let links = groups.many(&mut root, "link", sink);
    let ports = groups.many(&mut root, "port", sink);
    let streams = groups.many(&mut root, "stream", sink);
    let faults = groups.many(&mut root, "fault", sink);
    let channels = groups.many(&mut root, "channel", sink);
    let programs = groups.many(&mut root, "program", sink);
    let noise = groups.many(&mut root, "noise", sink);
    let tcp = groups.many(&mut root, "tcp", sink);
    let chains = groups.many(&mut root, "chain", sink);
    let alternatives = many(&mut root, "alternatives", limits::LIST, sink);
    let references = many(&mut root, "reference", limits::SCENARIOS, sink);
    let head = recover(root, 0..0, sink);
    Some(Tables {
        head,
        run,
        synchronisation,
        scenarios,
        devices,
        hosts,
        bridges,
        links,
        ports,
        streams,
        faults,
        channels,
        programs,
        noise,
        tcp,
        chains,
        alternatives,
        references,
    })
}

/// The text as TOML. Nothing if it is none, or of another format version.
pub(crate) fn document<'t>(text: &'t str, sink: &mut Sink) -> Option<DeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut line_end = 0;
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        // What follows on the same line mostly follows from the first.
        if span.start >= line_end {
            let at = origin(0, span.clone());
            let message = format!("this is not TOML: {}", error.message());
            let help = "see https://toml.io for the syntax of values and tables";
            sink.push(Diagnostic::error(codes::SYNTAX, message, at, "here").help(help));
            let rest = text.get(span.start..).unwrap_or("");
            line_end = span.start + rest.find('\n').unwrap_or(rest.len()) + 1;
        }
    }
    if !errors.is_empty() {
        return None;
    }
    let root = document.into_inner();
    format_is_known(&root, sink).then_some(root)
}

/// Another version may have other keys: to complain about those would only mislead.
fn format_is_known(root: &DeTable<'_>, sink: &mut Sink) -> bool {
    let Some(value) = root.get("format") else { return true };
    let Some(number) = value.get_ref().as_integer() else { return true };
    let version = i64::from_str_radix(number.as_str(), number.radix()).ok();
    if version == Some(FORMAT) {
        return true;
    }
    let message = format!("unknown format {}", shorten(number.as_str()));
    let at = origin(0, value.span());
    let help = format!("write format {FORMAT}, which this release reads");
    sink.push(Diagnostic::error(codes::FORMAT_VERSION, message, at, "this version").help(help));
    false
}

pub(crate) fn wrong_shape(key: &str, wanted: &str, span: Range<usize>, sink: &mut Sink) {
    let message = format!("`{key}` must be {wanted}");
    let at = origin(0, span);
    let help = format!("write {wanted}");
    sink.push(Diagnostic::error(codes::WRONG_TYPE, message, at, "here").help(help));
}

pub(crate) fn table<R: DeserializeOwned + Default>(
    key: &str,
    wanted: &str,
    value: Spanned<DeValue<'_>>,
    sink: &mut Sink,
) -> Entry<R> {
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => recover(table, span, sink),
        _ => {
            wrong_shape(key, wanted, span.clone(), sink);
            Entry::hopeless(origin(0, span))
        }
    }
}

/// Takes the array of tables `key` out of `root`.
pub(crate) fn many<R: DeserializeOwned + Default>(
    root: &mut DeTable<'_>,
    key: &str,
    most: usize,
    sink: &mut Sink,
) -> Vec<Entry<R>> {
    let wanted = format!("[[{key}]]");
    match elements(root, key, most, sink) {
        Ok(list) => list.into_iter().map(|element| table(key, &wanted, element, sink)).collect(),
        Err(at) => vec![Entry::hopeless(at)],
    }
}

/// Takes what is in the array of tables `key` out of `root`; if it cannot be read, says where.
pub(crate) fn elements<'t>(
    root: &mut DeTable<'t>,
    key: &str,
    most: usize,
    sink: &mut Sink,
) -> Result<Vec<Spanned<DeValue<'t>>>, Origin> {
    let Some(value) = root.remove(key) else { return Ok(Vec::new()) };
    let span = value.span();
    let DeValue::Array(array) = value.into_inner() else {
        wrong_shape(key, &format!("[[{key}]]"), span.clone(), sink);
        return Err(origin(0, span));
    };
    if array.len() > most {
        let message = format!("there are {} [[{key}]] tables", array.len());
        let at = origin(0, array.get(most).map_or(span, Spanned::span));
        let help = format!("use at most {most}");
        sink.push(Diagnostic::error(codes::TOO_MANY, message, at, "one too many").help(help));
        return Err(at);
    }
    Ok(array.into_iter().collect())
}

/// Reads a table; leaves out key by key what cannot be read.
pub(crate) fn recover<R: DeserializeOwned + Default>(
    mut table: DeTable<'_>,
    span: Range<usize>,
    sink: &mut Sink,
) -> Entry<R> {
    let at = origin(0, span.clone());
    let mut broken = Vec::new();
    for _ in 0..limits::KEY_ERRORS {
        let value = Spanned::new(span.clone(), DeValue::Table(table.clone()));
        let error = match R::deserialize(ValueDeserializer::from(value)) {
            Ok(raw) => return Entry { raw, at, broken, hopeless: false },
            Err(error) => error,
        };
        let place = error.span().unwrap_or(span.clone());
        let (diagnostic, meant) =
            describe(error.message(), origin(0, place.clone()), sink.document);
        sink.push(diagnostic);
        broken.extend(meant);
        let holds = |key: Range<usize>, value: Range<usize>| {
            key.contains(&place.start) || value.contains(&place.start) || value == place
        };
        let culprit = table.iter().find(|(k, v)| holds(k.span(), v.span()));
        let Some(key) = culprit.map(|(k, _)| k.get_ref().to_string()) else { break };
        table.remove(key.as_str());
        broken.push(key);
    }
    Entry::hopeless(at)
}

/// What serde says, as a diagnostic, and the key that was meant if it says "unknown". Serde gives
/// words only: the offending one is the first in backquotes, the allowed ones are the others.
fn describe(message: &str, at: Origin, document: &str) -> (Diagnostic, Option<String>) {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (word, known) = words.split_first().map_or(("", &[][..]), |(w, k)| (*w, k));
    let meant = did_you_mean(word, known.iter().copied());
    let help = match meant {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    let word = shorten(word);
    if message.starts_with("unknown field") {
        let text = format!("unknown key `{word}`");
        let found = Diagnostic::error(codes::UNKNOWN_KEY, text, at, "unknown key").help(help);
        return (found, meant.map(str::to_owned));
    }
    if message.starts_with("unknown variant") {
        let text = format!("unknown word `{word}`");
        return (Diagnostic::error(codes::UNKNOWN_CHOICE, text, at, "this word").help(help), None);
    }
    let text = format!("a value of the wrong type: {}", shorten(message));
    let help = format!("see {document} for the type and unit of every key");
    (Diagnostic::error(codes::WRONG_TYPE, text, at, "this value").help(help), None)
}
