//! Groups: tables that are there several times. Each copy is read like a table that is written out,
//! after the tables of its kind that are.

mod copies;
mod expression;
mod schema;

pub(crate) use copies::{GroupCopies, GroupCopy};
pub(super) use schema::describe;

use super::names::{Alphabet, check_name};
use super::parse::{Entry, elements, recover, table, wrong_shape};
use super::{At, Sink, codes, limits, origin, raw};
use expression::{Computed, Indices, compute, is_computed};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Copies of one table that are read although something is wrong in each: it mostly is the same in
/// all others, and to read it again takes as long.
pub(crate) const WRONG_COPIES: usize = 8;

/// Which tables a group may have, and how many a description may have of each.
const KINDS: [(&str, usize); 11] = [
    ("host", limits::NODES),
    ("bridge", limits::NODES),
    ("link", limits::LINKS),
    ("port", limits::PORTS),
    ("stream", limits::STREAMS),
    ("fault", limits::OTHERS),
    ("channel", limits::CHANNELS),
    ("program", limits::OTHERS),
    ("noise", limits::OTHERS),
    ("tcp", limits::TCP_FLOWS),
    ("chain", limits::OTHERS),
];

/// All groups of a description.
#[derive(Default)]
pub(super) struct Groups<'t> {
    list: Vec<Group<'t>>,
    /// Where something was wrong, so that tables are missing.
    broken: Option<Origin>,
}

struct Group<'t> {
    name: String,
    count: u64,
    /// By kind, in the order of the text.
    tables: BTreeMap<&'static str, Vec<Template<'t>>>,
    inner: Vec<Group<'t>>,
    /// The kinds of its tables and of those of groups in it.
    kinds: BTreeSet<&'static str>,
}

/// A table of which copies are made.
struct Template<'t> {
    table: DeTable<'t>,
    span: Range<usize>,
    /// By how much the places of the first copy are moved.
    shift: usize,
    /// By how much more those of each further copy.
    stride: usize,
    /// How many copies had something that could not be read.
    wrong: Cell<usize>,
}

impl<'t> Groups<'t> {
    /// Takes the groups out of `root`. Says if they make too many tables, before any is made.
    pub(super) fn take(root: &mut DeTable<'t>, sink: &mut Sink) -> Self {
        let written = |kind: &str| match root.get(kind).map(Spanned::get_ref) {
            Some(DeValue::Array(tables)) => tables.len() as u64,
            _ => 0,
        };
        let numbers = KINDS.map(|(kind, _)| (kind, written(kind))).into();
        let mut reader = Reader { around: Vec::new(), numbers, broken: None, is_too_much: false };
        let list = reader.groups(root, sink);
        // What is too much is not made at all.
        let list = if reader.is_too_much { Vec::new() } else { list };
        Self { list, broken: reader.broken }
    }

    /// Takes all tables of a kind: those that are written out, then those that groups make.
    pub(super) fn many<R: DeserializeOwned + Default>(
        &self,
        root: &mut DeTable<'t>,
        kind: &'static str,
        sink: &mut Sink,
    ) -> Vec<Entry<R>> {
        let known = KINDS.iter().find(|(known, _)| *known == kind);
        let (_, most) = known.expect("a kind that a group may have");
        let mut entries = super::parse::many(root, kind, *most, sink);
        for group in &self.list {
            group.add(kind, 0, &mut Vec::new(), &mut entries, sink);
        }
        entries.extend(self.broken.map(Entry::hopeless));
        entries
    }
}

impl Group<'_> {
    /// Adds its tables of a kind: all of its first copy, then all of the next one. `outer` is the
    /// number of the copy of the group around it.
    fn add<'g, R: DeserializeOwned + Default>(
        &'g self,
        kind: &'static str,
        outer: u64,
        indices: &mut Vec<(&'g str, u64)>,
        entries: &mut Vec<Entry<R>>,
        sink: &mut Sink,
    ) {
        if !self.kinds.contains(kind) {
            return;
        }
        for index in 0..self.count {
            let ordinal = outer * self.count + index;
            indices.push((&self.name, index));
            for template in self.tables.get(kind).into_iter().flatten() {
                entries.push(template.read(ordinal, indices, sink));
            }
            for inner in &self.inner {
                inner.add(kind, ordinal, indices, entries, sink);
            }
            indices.pop();
        }
    }
}

impl Template<'_> {
    /// Reads the copy of that number.
    fn read<R: DeserializeOwned + Default>(
        &self,
        ordinal: u64,
        indices: &Indices<'_>,
        sink: &mut Sink,
    ) -> Entry<R> {
        // The number of copies has been held to the limits.
        let shift = self.shift + ordinal as usize * self.stride;
        let span = moved(&self.span, shift);
        if self.wrong.get() == WRONG_COPIES {
            return Entry::hopeless(origin(0, span));
        }
        let mut texts = Texts { indices, shift, made: Vec::new(), is_wrong: false };
        self.table.values().for_each(|value| texts.compute(value, sink));
        let entry = if texts.is_wrong {
            Entry::hopeless(origin(0, span))
        } else {
            let table = copy(&self.table, shift, &mut texts.made.iter());
            recover(table, span, sink)
        };
        self.wrong.set(self.wrong.get() + usize::from(entry.is_hopeless()));
        entry
    }
}

fn moved(span: &Range<usize>, shift: usize) -> Range<usize> {
    span.start + shift..span.end + shift
}

/// What the texts of one copy mean, in the order in which [`copy`] meets them.
struct Texts<'a> {
    indices: &'a Indices<'a>,
    shift: usize,
    made: Vec<Computed>,
    is_wrong: bool,
}

impl Texts<'_> {
    fn compute(&mut self, value: &Spanned<DeValue<'_>>, sink: &mut Sink) {
        match value.get_ref() {
            DeValue::String(text) if is_computed(text) => match compute(text, self.indices) {
                Ok(computed) => self.made.push(computed),
                Err(problem) => {
                    self.is_wrong = true;
                    let at = origin(0, moved(&value.span(), self.shift));
                    let code = codes::GROUP_TEXT;
                    let error = Diagnostic::error(code, problem.message, at, "this text");
                    sink.push(error.help(problem.help));
                }
            },
            DeValue::Array(list) => list.iter().for_each(|value| self.compute(value, sink)),
            DeValue::Table(table) => table.values().for_each(|value| self.compute(value, sink)),
            _ => {}
        }
    }
}

/// The table with what its texts mean, and with its places moved.
fn copy<'a>(
    table: &'a DeTable<'_>,
    shift: usize,
    texts: &mut std::slice::Iter<'a, Computed>,
) -> DeTable<'a> {
    let entries = table.iter().map(|(key, value)| {
        let name = Cow::Borrowed(key.get_ref().as_ref());
        (Spanned::new(moved(&key.span(), shift), name), copy_value(value, shift, texts))
    });
    entries.collect()
}

fn copy_value<'a>(
    value: &'a Spanned<DeValue<'_>>,
    shift: usize,
    texts: &mut std::slice::Iter<'a, Computed>,
) -> Spanned<DeValue<'a>> {
    let copied = match value.get_ref() {
        DeValue::String(text) if is_computed(text) => match texts.next() {
            Some(Computed::Text(text)) => DeValue::String(Cow::Borrowed(text)),
            Some(Computed::Number(number)) => {
                DeValue::parse(number).expect("a number of TOML").into_inner()
            }
            None => unreachable!("each has been computed"),
        },
        DeValue::String(text) => DeValue::String(Cow::Borrowed(text)),
        DeValue::Array(list) => {
            let mut copied = DeArray::new();
            list.iter().for_each(|value| copied.push(copy_value(value, shift, texts)));
            DeValue::Array(copied)
        }
        DeValue::Table(table) => DeValue::Table(copy(table, shift, texts)),
        other => other.clone(),
    };
    Spanned::new(moved(&value.span(), shift), copied)
}

/// Reads groups and counts what they make.
struct Reader {
    /// The groups around, from the outermost: name and count.
    around: Vec<(String, u64)>,
    /// How many tables there are of each kind.
    numbers: BTreeMap<&'static str, u64>,
    broken: Option<Origin>,
    is_too_much: bool,
}

impl Reader {
    fn groups<'t>(&mut self, root: &mut DeTable<'t>, sink: &mut Sink) -> Vec<Group<'t>> {
        match elements(root, "group", limits::GROUPS, sink) {
            Ok(list) => list.into_iter().filter_map(|value| self.group(value, sink)).collect(),
            Err(at) => {
                self.broken = Some(at);
                Vec::new()
            }
        }
    }

    fn group<'t>(&mut self, mut value: Spanned<DeValue<'t>>, sink: &mut Sink) -> Option<Group<'t>> {
        let at = origin(0, value.span());
        let mut held = Vec::new();
        let mut nested = DeTable::new();
        if let DeValue::Table(table) = value.get_mut() {
            for (kind, _) in KINDS {
                held.extend(table.remove(kind).map(|tables| (kind, tables)));
            }
            nested.extend(table.remove_entry("group"));
        }
        let head: Entry<raw::Group> = table("group", "[[group]]", value, sink);
        let Some(around) = self.head(&head, sink).filter(|_| !head.is_hopeless()) else {
            self.broken = Some(at);
            return None;
        };
        let (name, count) = around.clone();
        self.around.push(around);
        let before = self.broken.take();
        let mut group =
            Group { name, count, tables: BTreeMap::new(), inner: vec![], kinds: BTreeSet::new() };
        for (kind, tables) in held {
            self.tables(&mut group, kind, tables, sink);
        }
        group.inner = self.groups(&mut nested, sink);
        self.around.pop();
        group.kinds.extend(group.inner.iter().flat_map(|inner| inner.kinds.iter().copied()));
        if group.kinds.is_empty() && self.broken.is_none() {
            let message = format!("group `{}` has no tables", group.name);
            let error = Diagnostic::error(codes::GROUP, message, at, "this group");
            sink.push(error.help("add tables such as [[group.host]], or remove the group"));
        }
        self.broken = before.or(self.broken);
        // Without tables it is not even counted through.
        (!group.kinds.is_empty()).then_some(group)
    }

    /// Name and count of a group.
    fn head(&self, entry: &Entry<raw::Group>, sink: &mut Sink) -> Option<(String, u64)> {
        let mut fields = super::fields::Fields::new(entry, "group", &entry.raw.name, sink);
        let name = fields.need("name", &entry.raw.name);
        let count = fields.need("count", &entry.raw.count);
        let count = fields.int(codes::OUT_OF_RANGE, ("count", &count), 1..=limits::GROUP_COUNT);
        let name: At<String> = name?;
        if self.around.len() == limits::GROUP_DEPTH {
            let text = format!("it is in {} other groups", limits::GROUP_DEPTH);
            let help = format!("use at most {} groups in each other", limits::GROUP_DEPTH);
            fields.error(codes::GROUP, &text, entry.at, "this group", &help);
            return None;
        }
        if self.around.iter().any(|(outer, _)| *outer == name.value) {
            let text = "a group around it has the same name";
            let help = "rename one of them: the name is that of the index";
            fields.error(codes::DUPLICATE_NAME, text, name.at, "the inner one", help);
            return None;
        }
        let octets = limits::CHANNEL_NAME_OCTETS;
        let is_name = check_name(&name, "group", Alphabet::C, octets, sink);
        Some((name.value, count?.unsigned_abs())).filter(|_| is_name)
    }

    /// Adds the tables of one kind to a group.
    fn tables<'t>(
        &mut self,
        group: &mut Group<'t>,
        kind: &'static str,
        tables: Spanned<DeValue<'t>>,
        sink: &mut Sink,
    ) {
        let span = tables.span();
        let DeValue::Array(list) = tables.into_inner() else {
            wrong_shape(kind, &format!("[[group.{kind}]]"), span.clone(), sink);
            self.broken = Some(origin(0, span));
            return;
        };
        for value in list {
            let span = value.span();
            let extent = extent(&value);
            let DeValue::Table(table) = value.into_inner() else {
                wrong_shape(kind, &format!("[[group.{kind}]]"), span.clone(), sink);
                self.broken = Some(origin(0, span));
                continue;
            };
            if let Some((shift, stride)) = self.room(kind, &span, extent, sink) {
                group.kinds.insert(kind);
                let template = Template { table, span, shift, stride, wrong: Cell::new(0) };
                group.tables.entry(kind).or_default().push(template);
            }
        }
    }

    /// Counts the copies of a table, and makes room for them.
    fn room(
        &mut self,
        kind: &'static str,
        span: &Range<usize>,
        extent: Range<usize>,
        sink: &mut Sink,
    ) -> Option<(usize, usize)> {
        if self.is_too_much {
            return None;
        }
        let (_, most) = KINDS.iter().find(|(known, _)| *known == kind)?;
        let number = self.numbers.entry(kind).or_default();
        let copies = self.around.iter().fold(1u64, |product, it| product.saturating_mul(it.1));
        *number = number.saturating_add(copies);
        let at = origin(0, span.clone());
        let found = if *number > *most as u64 {
            let message = format!("with those of groups there are {number} [[{kind}]] tables");
            let error = Diagnostic::error(codes::TOO_MANY, message, at, "too many with these");
            Err(error.help(format!("use at most {most}: lower `count`")))
        } else {
            let octets = limits::GROUP_OCTETS;
            let message = format!("the tables that groups make have more than {octets} octets");
            let error = Diagnostic::error(codes::GROUP, message, at, "too many with these");
            let room = sink.copies.reserve(extent, &self.around);
            room.ok_or(error.help("lower `count`, or use shorter tables"))
        };
        found
            .map_err(|error| {
                self.is_too_much = true;
                self.broken = Some(at);
                sink.push(error);
            })
            .ok()
    }
}

/// From the first octet of a value to its last: the place of a table is that of its header only.
fn extent(value: &Spanned<DeValue<'_>>) -> Range<usize> {
    fn widen(extent: &mut Range<usize>, span: Range<usize>) {
        *extent = extent.start.min(span.start)..extent.end.max(span.end);
    }
    fn visit(extent: &mut Range<usize>, value: &Spanned<DeValue<'_>>) {
        widen(extent, value.span());
        match value.get_ref() {
            DeValue::Array(list) => list.iter().for_each(|value| visit(extent, value)),
            DeValue::Table(table) => table.iter().for_each(|(key, value)| {
                widen(extent, key.span());
                visit(extent, value);
            }),
            _ => {}
        }
    }
    let mut all = value.span();
    visit(&mut all, value);
    all
}
