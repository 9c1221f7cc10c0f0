//! Where the fields of a C struct are in a message, as an LP64 machine (Linux on 64-bit processors)
//! lays it out. What has no one layout there, or no value that can be shown, is refused with the
//! reason: pointers, unions, bit-fields.

use super::eval::Constants;
use super::layout::{has_attributes, is_packed};
use super::{named_children, parse, plain_string, preprocess, walk, words};
use crate::{limits, shorten};
use onbeat_model::fragment::MESSAGE_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;
use tree_sitter::Node;

/// The most octets of a struct: more fits in no message.
const OCTETS_MAX: u32 = MESSAGE_MAX.get();
/// How deep structs may stand in each other.
const DEPTH: u32 = 16;
/// From how many octets on a reason gets no more words: structs may hold others that are wrong.
const REASON: usize = 400;
const TOO_DEEP: &str = "structs stand too deep in each other";

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// An integer or an enumeration, of 1, 2, 4 or 8 octets.
    Integer {
        /// How many.
        octets: u32,
        /// Whether it may be negative.
        signed: bool,
    },
    /// A plain `char`; an array of them is a text.
    Char,
    /// `bool`.
    Bool,
    /// `float`, of 4 octets, or `double`, of 8.
    Floating {
        /// How many.
        octets: u32,
    },
    /// A struct. Those that hold the same one share it: a short text can declare many.
    Struct(Arc<StructLayout>),
    /// Several of a type.
    Array {
        /// Their type.
        element: Box<FieldType>,
        /// How many.
        length: u32,
    },
}

impl FieldType {
    /// `sizeof` it.
    pub fn octets(&self) -> u32 {
        match self {
            Self::Integer { octets, .. } | Self::Floating { octets } => *octets,
            Self::Char | Self::Bool => 1,
            Self::Struct(layout) => layout.octets,
            Self::Array { element, length } => element.octets() * length,
        }
    }
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructField {
    /// Its name.
    pub name: String,
    /// Where it begins, in octets from the struct's beginning.
    pub offset: u32,
    /// What it holds.
    pub holds: FieldType,
}

/// A struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// `sizeof` it.
    pub octets: u32,
    /// In the order of their declaration.
    pub fields: Vec<StructField>,
}

/// The structs that a C text declares.
#[derive(Debug)]
pub(crate) struct Structs {
    known: BTreeMap<String, Result<Laid, String>>,
}

impl Structs {
    /// Reads a text of at most [`limits::MANIFEST_OCTETS`].
    ///
    /// # Errors
    /// Says why none of its structs has one layout.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.len() > limits::MANIFEST_OCTETS {
            return Err(format!("it has more than {} octets", limits::MANIFEST_OCTETS));
        }
        let mut diagnostics = Vec::new();
        let source = preprocess::preprocess(text, 0, &mut diagnostics);
        if let Some(first) = diagnostics.first() {
            return Err(format!("{}: use #ifdef, #if 0 or #if 1", first.message));
        }
        if let Some(number) = source.packing {
            return Err(format!(
                "line {number}: `#pragma pack` changes layouts in a way not read here"
            ));
        }
        let tree = parse(&source.text).ok_or("it is not read as C")?;
        let constants = Constants::new(&source, &tree);
        let mut reader = Reader { text: &source.text, constants, known: BTreeMap::new() };
        walk(tree.root_node(), |node| {
            match node.kind() {
                "struct_specifier" => drop(reader.specifier(node, 0)),
                "enum_specifier" => drop(reader.enumeration(node)),
                "type_definition" => reader.typedef(node),
                _ => {}
            }
            node.kind() != "compound_statement"
        });
        Ok(Self { known: reader.known })
    }

    /// The layout of the struct or the typedef `name`.
    ///
    /// # Errors
    /// Says why it has none.
    pub(crate) fn layout(&self, name: &str) -> Result<Arc<StructLayout>, String> {
        let plain = name.strip_prefix("struct ").unwrap_or(name).trim();
        let tagged = self.known.get(&format!("struct {plain}"));
        let found = if name == plain { self.known.get(plain).or(tagged) } else { tagged };
        match found {
            None => {
                let names = self.known.keys().take(20).cloned().collect::<Vec<_>>();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                Err(format!("it declares no struct `{}`; it declares: {names}", shorten(name)))
            }
            Some(Err(why)) => Err(format!("struct `{}`: {why}", shorten(plain))),
            Some(Ok(Laid { holds: FieldType::Struct(layout), .. })) => Ok(Arc::clone(layout)),
            Some(Ok(_)) => Err(format!("`{}` is no struct", shorten(plain))),
        }
    }
}

/// The layout of the struct or the typedef `name` that the C text declares, or why it has none.
pub fn layout_of(text: &str, name: &str) -> Result<Arc<StructLayout>, String> {
    Structs::read(text)?.layout(name)
}

/// The same of the struct that a manifest names as the messages of a channel:
/// `.size = sizeof(struct sample)`.
pub fn layout_of_channel(text: &str, channel: &str) -> Result<Arc<StructLayout>, String> {
    let shown = shorten(channel);
    match sizes(text)?.remove(channel) {
        Some(Size::Of(name)) => layout_of(text, &name),
        Some(Size::Other(size)) => Err(format!(
            "the size of channel `{shown}` is `{size}`: name a struct, as in sizeof(struct x)"
        )),
        None => Err(format!("it is no manifest that gives channel `{shown}` a size")),
    }
}

/// The structs that a manifest names as the messages of channels: by channel, the struct and its
/// octets. One without a layout is left out.
pub(crate) fn message_types(text: &str) -> BTreeMap<String, (String, u32)> {
    let named = sizes(text).unwrap_or_default().into_iter().filter_map(|(channel, size)| {
        if let Size::Of(name) = size { Some((channel, name)) } else { None }
    });
    let named: Vec<_> = named.collect();
    // Most manifests name none.
    let structs = if named.is_empty() { None } else { Structs::read(text).ok() };
    let Some(structs) = structs else { return BTreeMap::new() };
    let laid = named.into_iter().filter_map(|(channel, name)| {
        let octets = structs.layout(&name).ok()?.octets;
        Some((channel, (name, octets)))
    });
    laid.collect()
}

/// What a manifest gives as a channel's size.
enum Size {
    /// The size of a type.
    Of(String),
    /// Something else: its words.
    Other(String),
}

/// The sizes of a manifest's channels.
fn sizes(text: &str) -> Result<BTreeMap<String, Size>, String> {
    if text.len() > limits::MANIFEST_OCTETS {
        return Err(format!("it has more than {} octets", limits::MANIFEST_OCTETS));
    }
    // Whoever reads it as a manifest is told what cannot be decided.
    let source = preprocess::preprocess(text, 0, &mut Vec::new());
    let text = &source.text;
    let tree = parse(text).ok_or("it is not read as C")?;
    let mut found = BTreeMap::new();
    walk(tree.root_node(), |node| {
        let field = |name: &str| value_of(node, name, text);
        let is_list = node.kind() == "initializer_list";
        let name = is_list.then(|| field(".name").and_then(|name| plain_string(name, text)));
        if let Some(channel) = name.flatten()
            && let Some(size) = field(".size")
        {
            found.entry(channel.to_owned()).or_insert_with(|| size_in(size, text));
        }
        true
    });
    Ok(found)
}

fn size_in(size: Node<'_>, text: &str) -> Size {
    let kind = size.child_by_field_name("type").or_else(|| size.child_by_field_name("value"));
    let Some(kind) = kind.filter(|_| size.kind() == "sizeof_expression") else {
        return Size::Other(shorten(words(size, text)));
    };
    let name = words(kind, text).trim_matches(['(', ')', ' ']);
    Size::Of(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What a list of designated initializers gives a field.
fn value_of<'t>(list: Node<'t>, field: &str, text: &str) -> Option<Node<'t>> {
    let pairs = named_children(list).into_iter().filter(|pair| pair.kind() == "initializer_pair");
    let mut values = pairs.filter_map(|pair| {
        let designator = words(pair.child_by_field_name("designator")?, text);
        pair.child_by_field_name("value").filter(|_| designator.replace(' ', "") == field)
    });
    values.next()
}

/// A type, at which multiples of octets it begins, and how many structs stand in each other there.
#[derive(Clone, Debug)]
struct Laid {
    holds: FieldType,
    align: u32,
    depth: u32,
}

impl Laid {
    /// A type that begins at multiples of its size.
    fn scalar(holds: FieldType) -> Self {
        Self { align: holds.octets(), holds, depth: 0 }
    }
}

struct Reader<'a> {
    text: &'a str,
    constants: Constants<'a>,
    /// By their names; `struct NAME` for tags.
    known: BTreeMap<String, Result<Laid, String>>,
}

impl Reader<'_> {
    fn typedef(&mut self, node: Node<'_>) {
        let kind = node.child_by_field_name("type");
        let name = node.child_by_field_name("declarator");
        let (Some(kind), Some(name)) = (kind, name) else { return };
        if node.has_error() || has_attributes(node, self.text) {
            return; // an attribute, or a macro that may be one
        }
        let laid = self.of_type(kind, 0).and_then(|laid| match name.kind() {
            "type_identifier" => Ok(laid),
            _ => Err("a typedef of a pointer, an array or a function".to_owned()),
        });
        let name = words(name, self.text).trim_start_matches(['*', ' ']);
        self.known.insert(name.to_owned(), laid);
    }

    /// A `struct NAME { … }`, `struct { … }` or `struct NAME`.
    fn specifier(&mut self, node: Node<'_>, depth: u32) -> Result<Laid, String> {
        self.tagged("struct", node, |this, body| this.fields(node, body, depth))
    }

    /// What is declared here, or was under its name.
    fn tagged(
        &mut self,
        kind: &str,
        node: Node<'_>,
        lay: impl FnOnce(&mut Self, Node<'_>) -> Result<Laid, String>,
    ) -> Result<Laid, String> {
        let name = node.child_by_field_name("name").map(|name| words(name, self.text));
        let tag = name.map(|name| format!("{kind} {name}"));
        let Some(body) = node.child_by_field_name("body") else {
            let tag = tag.unwrap_or_default();
            let unknown = || Err(format!("`{}` is not declared in this file", shorten(&tag)));
            return self.known.get(&tag).cloned().unwrap_or_else(unknown);
        };
        let laid = lay(self, body);
        if let Some(tag) = tag {
            self.known.insert(tag, laid.clone());
        }
        laid
    }

    fn fields(&mut self, node: Node<'_>, body: Node<'_>, depth: u32) -> Result<Laid, String> {
        if depth > DEPTH {
            return Err(TOO_DEEP.to_owned());
        }
        if node.has_error() {
            return Err("not understood as C".to_owned());
        }
        let packed = is_packed(node, body, self.text)?;
        let mut layout = StructLayout { octets: 0, fields: Vec::new() };
        let (mut align, mut deepest) = (1, 0);
        for declaration in named_children(body) {
            for (name, laid) in self.declared(declaration, depth)? {
                let own = if packed { 1 } else { laid.align };
                align = align.max(own);
                deepest = deepest.max(laid.depth);
                let offset = layout.octets.next_multiple_of(own);
                layout.octets = offset + laid.holds.octets();
                if layout.octets > OCTETS_MAX {
                    return Err(format!("larger than a message, {OCTETS_MAX} octets"));
                }
                layout.fields.push(StructField { name, offset, holds: laid.holds });
            }
        }
        if layout.fields.is_empty() {
            return Err("it has no fields".to_owned());
        }
        if deepest >= DEPTH {
            return Err(TOO_DEEP.to_owned());
        }
        layout.octets = layout.octets.next_multiple_of(align);
        Ok(Laid { holds: FieldType::Struct(Arc::new(layout)), align, depth: deepest + 1 })
    }

    /// An `enum NAME { … }`, `enum { … }` or `enum NAME`. It has the first of `unsigned`, `int`,
    /// `unsigned long` and `long` that has all its values, as with GCC and Clang.
    fn enumeration(&mut self, node: Node<'_>) -> Result<Laid, String> {
        self.tagged("enum", node, |this, body| this.enumerators(node, body))
    }

    fn enumerators(&mut self, node: Node<'_>, body: Node<'_>) -> Result<Laid, String> {
        let before = self.text.get(node.start_byte()..body.start_byte()).unwrap_or("");
        let behind = self.text.get(body.end_byte()..).unwrap_or("");
        let behind = behind.split(';').next().unwrap_or("");
        let has = |part: &str| part.contains("__attribute__") || part.contains("[[");
        if has(before) || has(behind) || before.contains(':') || node.has_error() {
            return Err("attributes and the type of an enumeration are not read".to_owned());
        }
        let (mut least, mut most) = (0, 0);
        for enumerator in named_children(body) {
            let Some(name) = enumerator.child_by_field_name("name") else { continue };
            let value = self.constants.int(name, self.text, 0)?;
            (least, most) = (least.min(value), most.max(value));
        }
        let fits = |from: i128, to: i128| from <= least && most <= to;
        let (octets, signed) = match () {
            () if fits(0, u32::MAX.into()) => (4, false),
            () if fits(i32::MIN.into(), i32::MAX.into()) => (4, true),
            () if fits(0, u64::MAX.into()) => (8, false),
            () if fits(i64::MIN.into(), i64::MAX.into()) => (8, true),
            () => return Err("an enumeration with values that fit in no integer".to_owned()),
        };
        Ok(Laid::scalar(FieldType::Integer { octets, signed }))
    }

    /// The fields of one declaration.
    fn declared(&mut self, node: Node<'_>, depth: u32) -> Result<Vec<(String, Laid)>, String> {
        let shown = || format!("`{}`", shorten(words(node, self.text).trim_end_matches(';')));
        if node.kind() != "field_declaration" {
            return Err(format!("{}: not a field", shown()));
        }
        let children = named_children(node);
        if children.iter().any(|child| child.kind() == "bitfield_clause") {
            return Err(format!("{}: a bit-field has no octets of its own", shown()));
        }
        if has_attributes(node, self.text) {
            return Err(format!("{}: an attribute or alignment of its own is not read", shown()));
        }
        let kind =
            node.child_by_field_name("type").ok_or_else(|| format!("{}: no type", shown()))?;
        let mut cursor = node.walk();
        let declarators: Vec<Node<'_>> =
            node.children_by_field_name("declarator", &mut cursor).collect();
        if declarators.is_empty() {
            return Err(format!("{}: a field without a name", shown()));
        }
        let described = shown();
        let laid = self.of_type(kind, depth + 1).map_err(|why| reason(&described, why))?;
        let members = declarators.into_iter().map(|one| self.member(one, laid.clone(), 0));
        members.map(|member| member.map_err(|why| reason(&described, why))).collect()
    }

    /// One declared field: itself, or an array of it.
    fn member(
        &mut self,
        declarator: Node<'_>,
        laid: Laid,
        depth: u32,
    ) -> Result<(String, Laid), String> {
        match declarator.kind() {
            "field_identifier" => Ok((words(declarator, self.text).to_owned(), laid)),
            "array_declarator" if depth < DEPTH => {
                let size = declarator.child_by_field_name("size");
                let size = size.ok_or("an array without a length")?;
                let length = self.constants.int(size, self.text, 0)?;
                let most = OCTETS_MAX / laid.holds.octets();
                let length = u32::try_from(length).ok().filter(|n| (1..=most).contains(n));
                let length = length.ok_or("an array of no length, or larger than a message")?;
                let inner = declarator.child_by_field_name("declarator").ok_or("no name")?;
                let holds = FieldType::Array { element: Box::new(laid.holds), length };
                self.member(inner, Laid { holds, ..laid }, depth + 1)
            }
            "pointer_declarator" => Err("a pointer means nothing in another process".to_owned()),
            _ => Err("neither a field nor an array".to_owned()),
        }
    }

    fn of_type(&mut self, kind: Node<'_>, depth: u32) -> Result<Laid, String> {
        match kind.kind() {
            "struct_specifier" => return self.specifier(kind, depth),
            "union_specifier" => return Err("which field of a union is meant is not known".into()),
            "enum_specifier" => return self.enumeration(kind),
            _ => {}
        }
        let source = words(kind, self.text);
        let mut names: Vec<&str> = source.split_whitespace().collect();
        let is_plain_char = names == ["char"];
        let unsigned = names.contains(&"unsigned");
        names.retain(|word| !matches!(*word, "signed" | "unsigned" | "const" | "volatile"));
        let integer = |octets, signed| Laid::scalar(FieldType::Integer { octets, signed });
        Ok(match names[..] {
            ["char"] if is_plain_char => Laid::scalar(FieldType::Char),
            ["bool" | "_Bool"] => Laid::scalar(FieldType::Bool),
            ["float"] => Laid::scalar(FieldType::Floating { octets: 4 }),
            ["double"] => Laid::scalar(FieldType::Floating { octets: 8 }),
            ["char"] => integer(1, !unsigned),
            ["short"] | ["short", "int"] => integer(2, !unsigned),
            [] | ["int"] => integer(4, !unsigned),
            ["long"] | ["long", "int" | "long"] | ["long", "long", "int"] => integer(8, !unsigned),
            ["int8_t"] => integer(1, true),
            ["int16_t"] => integer(2, true),
            ["int32_t"] => integer(4, true),
            ["int64_t" | "ssize_t" | "intptr_t" | "ptrdiff_t"] => integer(8, true),
            ["uint8_t"] => integer(1, false),
            ["uint16_t"] => integer(2, false),
            ["uint32_t"] => integer(4, false),
            ["uint64_t" | "size_t" | "uintptr_t"] => integer(8, false),
            [name] => return self.known.get(name).cloned().unwrap_or_else(|| Err(unknown(name))),
            _ => return Err(unknown(source)),
        })
    }
}

/// Why a field has no layout, because of what it holds.
fn reason(field: &str, why: String) -> String {
    if why.len() > REASON { why } else { format!("{field}: {why}") }
}

fn unknown(name: &str) -> String {
    format!("type `{}` is not declared in this file, and included ones are not read", shorten(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields as `name@offset:octets`, and the size.
    fn laid(text: &str, name: &str) -> String {
        match layout_of(text, name) {
            Err(why) => why,
            Ok(layout) => {
                let field =
                    |f: &StructField| format!("{}@{}:{}", f.name, f.offset, f.holds.octets());
                let fields: Vec<_> = layout.fields.iter().map(field).collect();
                format!("{} {}", layout.octets, fields.join(" "))
            }
        }
    }

    #[test]
    fn fields_are_where_a_compiler_puts_them() {
        let text = "#define N 3\nenum mode { A, B };\nstruct xyz { float x, y, z; };\n\
            typedef struct sample { uint8_t a; double b; struct xyz at[2]; enum mode m;\n\
            unsigned char raw[N + 1]; char name[5]; long long big; _Bool ok; } sample_t;\n\
            struct __attribute__((packed)) tight { char c; int i; };\n\
            struct behind { char c; int i; } __attribute__((packed));\n\
            struct grid { short cell[2][3]; struct { char c; int i; } inner; };";
        let sample = "72 a@0:1 b@8:8 at@16:24 m@40:4 raw@44:4 name@48:5 big@56:8 ok@64:1";
        for name in ["sample", "struct sample", "sample_t"] {
            assert_eq!(laid(text, name), sample, "{name}");
        }
        assert_eq!(laid(text, "tight"), "5 c@0:1 i@1:4");
        assert_eq!(laid(text, "behind"), "5 c@0:1 i@1:4");
        assert_eq!(laid("struct s { char c; int i; } __packed;", "s"), "5 c@0:1 i@1:4");
        assert_eq!(laid(text, "grid"), "20 cell@0:12 inner@12:8");
        let cell = &layout_of(text, "grid").expect("a layout").fields[0].holds;
        let FieldType::Array { element, length: 2 } = cell else { panic!("{cell:?}") };
        assert!(matches!(**element, FieldType::Array { length: 3, .. }), "{cell:?}");
    }

    /// Each with all its fields would take gigabytes.
    #[test]
    fn a_short_text_may_name_a_large_struct_often() {
        let one = |n: u32| format!("struct s{n} {{ struct s{} a, b; }};\n", n - 1);
        let doubled: String = (1..15).map(one).collect();
        let named: String = (0..20_000).map(|n| format!("typedef struct s14 t{n};\n")).collect();
        let text = format!("struct s0 {{ short a; }};\n{doubled}{named}");
        assert_eq!(layout_of(&text, "t19999").expect("a layout").octets, 2 << 14);
    }

    #[test]
    fn an_enumeration_has_the_type_that_its_values_need() {
        for (values, octets, signed) in [
            ("A, B", 4, false),
            ("A = -1", 4, true),
            ("A = 0xffffffff", 4, false),
            ("A = -1, B = 0x7fffffff, C", 8, true),
            ("A = 0x1ffffffff", 8, false),
        ] {
            let text = format!("enum e {{ {values} }};\nstruct s {{ enum e m; long x; }};");
            let layout = layout_of(&text, "s").expect("a layout");
            assert_eq!(layout.fields[0].holds, FieldType::Integer { octets, signed }, "{values}");
        }
    }

    #[test]
    fn a_manifest_names_the_struct_of_a_channel() {
        let text = "struct a { int x; };\ntypedef struct { double y; } b_t;\n\
            struct channel_attrs all[] = {\n{ .name = \"one\", .size = sizeof(struct a) },\n\
            { .size = sizeof(b_t), .name = \"two\" }, { .name = \"three\", .size = 8 } };";
        let of = |channel| match layout_of_channel(text, channel) {
            Ok(layout) => layout.fields[0].name.clone(),
            Err(why) => why,
        };
        assert_eq!([of("one"), of("two")], ["x", "y"]);
        assert!(of("three").contains("is `8`: name a struct"), "{}", of("three"));
        assert!(of("four").contains("no manifest that gives channel `four`"), "{}", of("four"));
    }

    #[test]
    fn what_has_no_layout_is_refused_with_the_reason() {
        for (text, why) in [
            ("struct s { int a : 3; };", "`int a : 3`: a bit-field"),
            ("struct s { int *a; };", "a pointer means nothing"),
            ("struct s { union { int a; float b; } u; };", "which field of a union"),
            ("struct s { other_t a; };", "type `other_t` is not declared"),
            ("struct s { struct other a; };", "`struct other` is not declared"),
            ("struct s { int a[]; };", "without a length"),
            ("struct s { int a[0]; };", "no length"),
            ("struct s { int a[N]; };", "the value of `N` is unknown"),
            ("struct s { char a[65537]; };", "larger than a message"),
            ("struct s { };", "no fields"),
            ("struct s { struct { int a; }; };", "without a name"),
            ("struct s { long double a; };", "type `long double`"),
            ("struct s { _Alignas(16) int a; };", "an attribute or alignment of its own"),
            ("struct s { char a; int b __attribute__((packed)); };", "an attribute or alignment"),
            ("struct s { char a; __attribute__((packed)) int b; };", "an attribute or alignment"),
            ("struct s { int a; } __attribute__((aligned(32)));", "an alignment of its own"),
            ("struct s { char a; int b; } PACKED;", "`PACKED` behind it may be an attribute"),
            (
                "enum __attribute__((packed)) e { A };\nstruct s { enum e a; };",
                "`enum e` is not declared",
            ),
            ("enum e { A } __attribute__((packed));\nstruct s { enum e a; };", "attributes and"),
            ("enum e : char { A };\nstruct s { enum e a; };", "not read"),
            ("enum e { A = N };\nstruct s { enum e a; };", "the value of `N` is unknown"),
            ("struct s { enum e a; };", "`enum e` is not declared"),
            ("#pragma pack(1)\nstruct s { int a; };", "line 1: `#pragma pack`"),
            ("#if X > 2\n#endif\nstruct s { int a; };", "cannot decide this condition"),
            ("struct t { int a; };", "no struct `s`; it declares: struct t"),
            ("typedef int s;", "`s` is no struct"),
            ("typedef struct { char a; int b; } PACKED s;", "no struct `s`"),
            ("typedef struct { char a; int b; } s __attribute__((packed));", "no struct `s`"),
            ("typedef int t __attribute__((aligned(1)));\nstruct s { t a; };", "type `t`"),
            ("typedef int t __attribute__((vector_size(16)));\nstruct s { t a; };", "type `t`"),
            ("_Pragma(\"pack(1)\")\nstruct s { int a; };", "line 1: `#pragma pack`"),
            (
                "struct __attribute__((scalar_storage_order(\"big-endian\"))) s { int a; };",
                "attribute `scalar_storage_order` is not read",
            ),
        ] {
            let said = laid(text, "s");
            assert!(said.contains(why), "{text}: {said}");
        }
        let one = |n: u32| format!("struct s{n} {{ struct s{} a; }};\n", n - 1);
        let chain =
            |n: u32| "struct s0 { int a; };\n".to_owned() + &(1..=n).map(one).collect::<String>();
        assert!(layout_of(&chain(DEPTH - 1), &format!("s{}", DEPTH - 1)).is_ok());
        let said = laid(&chain(20_000), "s19999");
        assert!(said.contains(TOO_DEEP) && said.len() < 2 * REASON, "{said}");
        let deep = format!("struct s {}int a;{}", "{ struct ".repeat(40), "} x; ".repeat(40));
        assert!(layout_of(&deep, "s").is_err());
    }
}
