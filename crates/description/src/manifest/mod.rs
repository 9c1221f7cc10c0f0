//! The C manifest: an array of structs that programs of the network channel library compile in.
//!
//! Two spellings exist. The first generation's `struct net_fifo` has `.class` and `.freq` (Austad
//! et al. 2023, listing 4), the second's `struct channel_attrs` has `.sc` and `.interval_ns`;
//! entries of both occur with the other's fields, so [`read`] takes either. It is no C compiler:
//! conditional groups are decided as a C compiler would for a file that includes nothing,
//! object-like macros, enumerators, `sizeof` and constant arithmetic are computed, and what cannot
//! be is an error.

mod eval;
mod layout;
mod preprocess;
mod structs;
mod write;

pub use structs::{FieldType, StructField, StructLayout, layout_of, layout_of_channel};
pub(crate) use structs::{Structs, message_types};
pub use write::{to_c, to_c_first_generation};

use crate::{At, codes, did_you_mean, limits, origin, shorten};
use eval::{Constants, Value};
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use std::collections::BTreeSet;
use tree_sitter::{Node, Parser, Tree};

/// How often a channel is written to, in the words of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Messages per second.
    Hz(i64),
    /// Nanoseconds between two messages.
    IntervalNs(i64),
}

impl Rate {
    /// The time between two messages, rounded down: a reservation rather too large than too small.
    /// Nothing if it is not positive, or longer than [`limits::DURATION`].
    pub fn interval(self) -> Option<Span> {
        let ns = match self {
            Self::Hz(hz) if hz > 0 => 1_000_000_000 / hz,
            Self::Hz(_) => 0,
            Self::IntervalNs(ns) => ns,
        };
        (1..=limits::DURATION.as_ns()).contains(&ns).then_some(Span::from_ns(ns))
    }
}

/// One entry of a manifest. A field that is missing or wrong has a diagnostic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestEntry {
    /// `.name`.
    pub name: Option<At<String>>,
    /// `.dst`.
    pub destination: Option<At<MacAddress>>,
    /// `.stream_id`.
    pub stream_id: Option<At<u64>>,
    /// `.class` or `.sc`.
    pub class: Option<At<Class>>,
    /// `.size` in octets.
    pub size: Option<At<i64>>,
    /// `.freq` or `.interval_ns`.
    pub rate: Option<At<Rate>>,
}

/// The fields of an entry: both generations', in the order in which missing ones are reported.
const FIELDS: [&[&str]; 6] =
    [&["name"], &["dst"], &["stream_id"], &["class", "sc"], &["size"], &["freq", "interval_ns"]];

/// The structs whose arrays are manifests, one per generation.
const STRUCTS: [&str; 2] = ["net_fifo", "channel_attrs"];

/// Places that are not understood as C and are told one by one.
const BROKEN_MAX: usize = 100;

/// The class names of both generations.
const CLASSES: [(&str, Class); 5] = [
    ("CLASS_A", Class::A),
    ("CLASS_B", Class::B),
    ("SC_CLASS_A", Class::A),
    ("SC_CLASS_B", Class::B),
    ("SC_TAS", Class::Scheduled),
];

/// Reads the manifest `text`, source number `file`: its entries and everything that is wrong.
pub fn read(text: &str, file: u16) -> (Vec<ManifestEntry>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    if text.len() > limits::MANIFEST_OCTETS {
        let message = format!("the manifest has more than {} octets", limits::MANIFEST_OCTETS);
        let at = origin(file, 0..0);
        let help = "keep the manifest in a separate file";
        let large = Diagnostic::error(codes::FILE_TOO_LARGE, message, at, "here").help(help);
        return (Vec::new(), vec![large]);
    }
    let source = preprocess::preprocess(text, file, &mut diagnostics);
    let Some(tree) = parse(&source.text) else { return (Vec::new(), diagnostics) };
    let constants = Constants::new(&source, &tree);
    let what = "this entry".to_owned();
    let text = &source.text;
    let mut reader = Reader { file, text, what, constants, diagnostics, entries: vec![] };
    reader.arrays(&tree);
    let Reader { mut diagnostics, entries, .. } = reader;
    diagnostics.truncate(limits::DIAGNOSTICS);
    (entries, diagnostics)
}

/// Nothing only if the grammar and the library do not fit each other, which a test would show.
fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_c::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

/// All nodes below `root`, in the order of the text, without recursion; `enter` says whether to
/// look inside.
fn walk<'t>(root: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = root.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

fn named_children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|n| n.kind() != "comment").collect()
}

/// The text of a node.
fn words<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    text.get(node.byte_range()).unwrap_or("")
}

struct Reader<'a> {
    file: u16,
    text: &'a str,
    /// What the errors are about: "channel `x`" or "channel `x`: .size".
    what: String,
    constants: Constants<'a>,
    diagnostics: Vec<Diagnostic>,
    entries: Vec<ManifestEntry>,
}

impl<'a> Reader<'a> {
    fn at(&self, node: Node<'_>) -> Origin {
        origin(self.file, node.byte_range())
    }
    fn words(&self, node: Node<'_>) -> &'a str {
        words(node, self.text)
    }
    fn error(&mut self, code: Code, text: String, at: Origin, help: &str) {
        self.diagnostics.push(Diagnostic::error(code, text, at, "here").help(help));
    }
    /// An error of the entry or field that is being read.
    fn wrong(&mut self, code: Code, text: &str, at: Origin, help: &str) {
        self.error(code, format!("{}: {text}", self.what), at, help);
    }

    /// Reads every array of a manifest's struct, at any depth: `extern "C"` may be around it.
    fn arrays(&mut self, tree: &Tree) {
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        walk(tree.root_node(), |node| {
            if node.is_error() || node.is_missing() {
                broken.push(node);
                return false;
            }
            if node.kind() == "declaration" {
                found.extend(self.manifest_arrays(node).into_iter().map(|v| (node, v)));
            }
            true
        });
        broken.truncate(BROKEN_MAX);
        for node in broken {
            self.broken(node, found.iter().map(|(declaration, _)| *declaration));
        }
        if found.is_empty() {
            let at = origin(self.file, 0..0);
            let help = "declare `struct channel_attrs nc_channels[] = { … };`";
            let text = "there is no array of struct channel_attrs or struct net_fifo".to_owned();
            self.error(codes::MANIFEST_EMPTY, text, at, help);
        }
        for (_, (length, value)) in found {
            self.array(length, value);
        }
    }

    /// The length, if it has one, and the initializer of each array of a manifest's struct that a
    /// declaration declares.
    fn manifest_arrays<'t>(&self, declaration: Node<'t>) -> Vec<(Option<Node<'t>>, Node<'t>)> {
        let of_struct = declaration
            .child_by_field_name("type")
            .and_then(|t| t.child_by_field_name("name"))
            .is_some_and(|name| STRUCTS.contains(&self.words(name)));
        if !of_struct {
            return Vec::new();
        }
        let is_array = |d: &Node<'t>| {
            let declarator = d.child_by_field_name("declarator");
            d.kind() == "init_declarator"
                && declarator.is_some_and(|d| d.kind() == "array_declarator")
        };
        let length = |d: Node<'t>| d.child_by_field_name("declarator")?.child_by_field_name("size");
        let declarators = named_children(declaration).into_iter().filter(is_array);
        declarators.filter_map(|d| Some((length(d), d.child_by_field_name("value")?))).collect()
    }

    /// C that the grammar does not understand is an error inside a manifest, and a warning
    /// elsewhere: users' headers hold macros that only their compiler can expand.
    fn broken<'t>(&mut self, node: Node<'t>, mut manifests: impl Iterator<Item = Node<'t>>) {
        let range = node.byte_range();
        let inside = |m: Node<'t>| {
            m.byte_range().contains(&range.start) || m.byte_range().end == range.start
        };
        let near = manifests.any(inside) || STRUCTS.iter().any(|s| self.words(node).contains(s));
        let text = match node.is_missing() {
            true => format!("expected `{}`", node.kind()),
            false => "this is not C".to_owned(),
        };
        let at = self.at(node);
        let help = "check the line before it for a missing `,`, `;` or `}`";
        let found = Diagnostic::error(codes::MANIFEST_SYNTAX, text, at, "here").help(help);
        self.diagnostics.push(if near { found } else { found.warning() });
    }

    /// The entries of one array. One entry may stand there without braces of its own: C allows
    /// it, and the paper's listing 4 does it.
    fn array(&mut self, length: Option<Node<'_>>, list: Node<'_>) {
        let children = named_children(list);
        let is_field = |n: &Node<'_>| {
            let designator = n.child_by_field_name("designator");
            designator.is_some_and(|d| d.kind() == "field_designator")
        };
        // A length that is not known here is the compiler's business.
        let length = length.and_then(|l| self.constants.value(l, self.text).ok());
        let mut places = Places::new(length);
        if children.iter().any(is_field) {
            places.take(None);
            self.entry(list);
            return self.report_places(&places, list);
        }
        for child in children {
            // `[IDX] = { … }` is an entry too.
            let value = match child.kind() {
                "initializer_pair" => child.child_by_field_name("value"),
                "ERROR" => continue,
                _ => Some(child),
            };
            let index = self.index(child);
            if places.take(index) {
                let text = format!("entry {} is given twice", places.next - 1);
                let at = self.at(child);
                self.error(codes::MANIFEST_ARRAY, text, at, "remove one: C keeps the last");
            }
            match value {
                Some(value) if value.kind() == "initializer_list" => self.entry(value),
                Some(value) => self.not_named(value),
                None => {}
            }
        }
        self.report_places(&places, list);
    }

    /// The index of `[IDX] = …`; none without one, or if its value is not known here.
    fn index(&mut self, child: Node<'_>) -> Option<i128> {
        let designator = child.child_by_field_name("designator")?;
        let [expression] = named_children(designator)[..] else { return None };
        match self.value(expression)? {
            Value::Int(index) if index >= 0 => Some(index),
            _ => {
                let at = self.at(expression);
                let help = "use a number from 0 on";
                self.wrong(codes::MANIFEST_VALUE, "this is not an index", at, help);
                None
            }
        }
    }

    fn report_places(&mut self, places: &Places, list: Node<'_>) {
        let at = origin(self.file, list.start_byte()..list.start_byte() + 1);
        if let Some(missing) = places.missing() {
            let text = format!("entry {missing} of the array is missing: C makes it all zero");
            self.error(codes::MANIFEST_ARRAY, text, at, "add it, or remove the array's length");
        } else if let Some(length) = places.length.filter(|length| *length < places.end) {
            let text = format!("the array has room for {length} entries, {} are given", places.end);
            self.error(codes::MANIFEST_ARRAY, text, at, "remove the array's length");
        }
    }

    fn not_named(&mut self, node: Node<'_>) {
        let at = self.at(node);
        let text = "a value without the name of its field";
        self.wrong(codes::MANIFEST_FIELD, text, at, "write .dst = …, .stream_id = … and so on");
    }

    fn entry(&mut self, list: Node<'_>) {
        let what = self.what_is(list);
        self.what.clone_from(&what);
        let mut entry = ManifestEntry::default();
        let mut seen: [Option<Origin>; FIELDS.len()] = [None; FIELDS.len()];
        for pair in named_children(list) {
            let designator = pair.child_by_field_name("designator");
            let value = pair.child_by_field_name("value");
            let (Some(designator), Some(value)) = (designator, value) else {
                if !pair.is_error() {
                    self.not_named(pair);
                }
                continue;
            };
            let field = self.words(designator).trim_start_matches('.').trim();
            let at = self.at(designator);
            let Some(index) = FIELDS.iter().position(|names| names.contains(&field)) else {
                self.unknown_field(field, at);
                continue;
            };
            if let Some(first) = seen[index].replace(at) {
                let text = format!("{what}: `.{field}` is given twice");
                let twice = Diagnostic::error(codes::MANIFEST_TWICE, text, at, "again")
                    .help(format!("keep one of .{}", FIELDS[index].join(" and .")))
                    .related(first, "the first");
                self.diagnostics.push(twice);
                continue;
            }
            self.what = format!("{what}: .{field}");
            self.field(&mut entry, field, value);
            self.what.clone_from(&what);
        }
        self.report_missing(&seen, list);
        self.entries.push(entry);
        self.what = "this entry".to_owned();
    }

    /// "channel `x`", if the entry has a name that can be read.
    fn what_is(&self, list: Node<'_>) -> String {
        let name = named_children(list).into_iter().find_map(|pair| {
            let designator = self.words(pair.child_by_field_name("designator")?);
            let is_name = designator.trim_start_matches('.').trim() == "name";
            plain_string(pair.child_by_field_name("value")?, self.text).filter(|_| is_name)
        });
        match name {
            Some(name) => format!("channel `{}`", shorten(name)),
            None => "this entry".to_owned(),
        }
    }

    fn unknown_field(&mut self, field: &str, at: Origin) {
        let help = match did_you_mean(field, FIELDS.iter().copied().flatten().copied()) {
            Some(close) => format!("did you mean `.{close}`?"),
            None => "use dst, stream_id, sc, size, interval_ns and name".to_owned(),
        };
        let text = format!("unknown field `.{}`", shorten(field));
        self.wrong(codes::MANIFEST_FIELD, &text, at, &help);
    }

    /// C would take zero for a field that is not there, and no field may be zero.
    fn report_missing(&mut self, seen: &[Option<Origin>], list: Node<'_>) {
        let at = origin(self.file, list.start_byte()..list.start_byte() + 1);
        for (names, seen) in FIELDS.iter().zip(seen) {
            if seen.is_none() {
                let text = format!("{} has no .{}", self.what, names.join(" or ."));
                self.error(codes::MANIFEST_MISSING, text, at, "add it");
            }
        }
    }

    fn field(&mut self, entry: &mut ManifestEntry, field: &str, value: Node<'_>) {
        let at = self.at(value);
        match field {
            "name" => entry.name = self.string(value).map(|value| At { value, at }),
            "dst" => entry.destination = self.address(value).map(|value| At { value, at }),
            "class" | "sc" => entry.class = self.class(value).map(|value| At { value, at }),
            "stream_id" => entry.stream_id = self.int(value).map(|value| At { value, at }),
            "size" => entry.size = self.int(value).map(|value| At { value, at }),
            "freq" => {
                entry.rate = self.int(value).map(|hz| At { value: Rate::Hz(hz), at });
            }
            _ => {
                entry.rate = self.int(value).map(|ns| At { value: Rate::IntervalNs(ns), at });
            }
        }
    }

    fn value(&mut self, node: Node<'_>) -> Option<Value> {
        match self.constants.value(node, self.text) {
            Ok(value) => Some(value),
            Err(reason) => {
                let at = self.at(node);
                let help = "write the number, or #define it in this file";
                self.wrong(codes::MANIFEST_VALUE, &reason, at, help);
                None
            }
        }
    }

    fn int<T: TryFrom<i128>>(&mut self, node: Node<'_>) -> Option<T> {
        let at = self.at(node);
        let (text, help) = match self.value(node)? {
            Value::Int(value) => match T::try_from(value) {
                Ok(value) => return Some(value),
                Err(_) => {
                    (format!("{value} does not fit the field"), "use a smaller, unsigned number")
                }
            },
            Value::List(_) => ("a list where a number is expected".to_owned(), "write a number"),
        };
        self.wrong(codes::MANIFEST_VALUE, &text, at, help);
        None
    }

    fn address(&mut self, node: Node<'_>) -> Option<MacAddress> {
        let Value::List(list) = self.value(node)? else {
            let at = self.at(node);
            let text = "an address is a list of six octets";
            let help = "write it as in {0x01, 0x00, 0x5e, 0x01, 0x11, 0x42}";
            self.wrong(codes::BAD_ADDRESS, text, at, help);
            return None;
        };
        let octets: Result<Vec<u8>, _> = list.iter().map(|n| u8::try_from(*n)).collect();
        match octets.ok().and_then(|octets| octets.try_into().ok()) {
            Some(octets) => Some(MacAddress(octets)),
            None => {
                let at = self.at(node);
                let text = "an address has six octets, each 0 to 255";
                let help = "write it as in {0x01, 0x00, 0x5e, 0x01, 0x11, 0x42}";
                self.wrong(codes::BAD_ADDRESS, text, at, help);
                None
            }
        }
    }

    fn class(&mut self, node: Node<'_>) -> Option<Class> {
        let word = self.words(node).trim_matches(['(', ')', ' ']);
        if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == word) {
            return Some(*class);
        }
        let help = match did_you_mean(word, CLASSES.iter().map(|(name, _)| *name)) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "use SC_CLASS_A, SC_CLASS_B, SC_TAS, CLASS_A or CLASS_B".to_owned(),
        };
        let at = self.at(node);
        let text = format!("unknown stream class `{}`", shorten(word));
        self.wrong(codes::MANIFEST_CLASS, &text, at, &help);
        None
    }

    fn string(&mut self, node: Node<'_>) -> Option<String> {
        let string = plain_string(node, self.text);
        if string.is_none() {
            let (at, help) = (self.at(node), "write it as in .name = \"mcast42\"");
            self.wrong(codes::MANIFEST_VALUE, "a name is one plain string", at, help);
        }
        string.map(str::to_owned)
    }
}

/// What stands in a string of one piece without escapes.
fn plain_string<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let inner = words(node, text).strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    inner.filter(|w| node.kind() == "string_literal" && !w.contains(['\\', '"']))
}

/// Which places of an array have an entry.
struct Places {
    /// How many the declaration says there are.
    length: Option<i128>,
    taken: BTreeSet<i128>,
    /// Where an entry without an index goes.
    next: i128,
    /// One past the last place that is taken.
    end: i128,
}

impl Places {
    fn new(length: Option<Value>) -> Self {
        let length = match length {
            Some(Value::Int(length)) => Some(length),
            _ => None,
        };
        Self { length, taken: BTreeSet::new(), next: 0, end: 0 }
    }
    /// Takes the place at an index, or the next one; says whether it was taken before.
    fn take(&mut self, index: Option<i128>) -> bool {
        let index = index.unwrap_or(self.next);
        self.next = index.saturating_add(1);
        self.end = self.end.max(self.next);
        !self.taken.insert(index)
    }
    /// The first place without an entry.
    fn missing(&self) -> Option<i128> {
        let end = self.end.max(self.length.unwrap_or(0));
        let missing = (0..).find(|place| !self.taken.contains(place))?;
        (missing < end).then_some(missing)
    }
}
