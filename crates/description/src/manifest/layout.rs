//! `sizeof`, as an LP64 machine (Linux on 64-bit processors) lays types out. Manifests use it to
//! say how large a message is.

use super::{named_children, words};
use std::collections::BTreeMap;
use tree_sitter::Node;

/// The most octets that a type of a message may have; more fits in no frame anyway.
const SIZE_MAX: i128 = 1 << 20;

#[derive(Clone, Copy)]
struct Layout {
    size: i128,
    align: i128,
}

/// The sizes of the structs that the file declares. Anything else is unknown, not guessed.
#[derive(Default)]
pub(super) struct Layouts {
    known: BTreeMap<String, Layout>,
}

impl Layouts {
    /// Learns a `struct NAME { … }` or a `typedef`; `constant` computes array lengths.
    pub(super) fn add(
        &mut self,
        node: Node<'_>,
        text: &str,
        constant: &mut dyn FnMut(Node<'_>) -> Option<i128>,
    ) {
        if node.kind() == "type_definition" {
            if has_attributes(node, text) {
                return;
            }
            let kind = node.child_by_field_name("type");
            let name = node.child_by_field_name("declarator");
            let (Some(kind), Some(name)) = (kind, name) else { return };
            let layout = match kind.child_by_field_name("body") {
                Some(body) => self.fields(kind, body, text, constant),
                None => self.of_type(kind, text),
            };
            if let (Some(layout), "type_identifier") = (layout, name.kind()) {
                self.known.insert(words(name, text).to_owned(), layout);
            }
        } else if let (Some(name), Some(body)) =
            (node.child_by_field_name("name"), node.child_by_field_name("body"))
            && let Some(layout) = self.fields(node, body, text, constant)
        {
            self.known.insert(format!("struct {}", words(name, text)), layout);
        }
    }

    /// The value of a `sizeof(type)`. Without declarations the grammar takes the name of a
    /// typedef for a variable's; the size of a variable is not known.
    pub(super) fn size_of(&self, expression: Node<'_>, text: &str) -> Option<i128> {
        let Some(descriptor) = expression.child_by_field_name("type") else {
            let value = expression.child_by_field_name("value")?;
            return match named_children(value)[..] {
                [name] if name.kind() == "identifier" => {
                    self.known.get(words(name, text)).map(|l| l.size)
                }
                _ => None,
            };
        };
        let kind = descriptor.child_by_field_name("type")?;
        match descriptor.child_by_field_name("declarator") {
            None => self.of_type(kind, text).map(|l| l.size),
            Some(d) if d.kind() == "abstract_pointer_declarator" => Some(8),
            Some(_) => None,
        }
    }

    fn of_type(&self, kind: Node<'_>, text: &str) -> Option<Layout> {
        if kind.kind() == "struct_specifier" {
            let name = kind.child_by_field_name("name")?;
            return self.known.get(&format!("struct {}", words(name, text))).copied();
        }
        let mut names: Vec<&str> = words(kind, text).split_whitespace().collect();
        names.retain(|w| !matches!(*w, "signed" | "unsigned"));
        let size = match names[..] {
            ["char" | "int8_t" | "uint8_t" | "bool" | "_Bool"] => 1,
            ["short"] | ["short", "int"] | ["int16_t" | "uint16_t"] => 2,
            [] | ["int" | "float" | "int32_t" | "uint32_t"] => 4,
            ["long"] | ["long", "int" | "long"] | ["long", "long", "int"] => 8,
            ["double" | "int64_t" | "uint64_t" | "size_t" | "ssize_t"] => 8,
            [name] => return self.known.get(name).copied(),
            _ => return None,
        };
        Some(Layout { size, align: size })
    }

    fn fields(
        &self,
        kind: Node<'_>,
        body: Node<'_>,
        text: &str,
        constant: &mut dyn FnMut(Node<'_>) -> Option<i128>,
    ) -> Option<Layout> {
        if kind.kind() != "struct_specifier" || kind.has_error() {
            return None;
        }
        let packed = is_packed(kind, body, text).ok()?;
        let mut whole = Layout { size: 0, align: 1 };
        for field in named_children(body) {
            if field.kind() != "field_declaration" {
                return None;
            }
            let one = self.of_type(field.child_by_field_name("type")?, text)?;
            if has_attributes(field, text) {
                return None;
            }
            let mut cursor = field.walk();
            let declarators: Vec<Node<'_>> =
                field.children_by_field_name("declarator", &mut cursor).collect();
            if named_children(field).iter().any(|n| n.kind() == "bitfield_clause") {
                return None;
            }
            for declarator in declarators {
                let member = member(declarator, one, constant)?;
                let align = if packed { 1 } else { member.align };
                whole.align = whole.align.max(align);
                whole.size = round_up(whole.size, align) + member.size;
                if whole.size > SIZE_MAX {
                    return None;
                }
            }
        }
        whole.size = round_up(whole.size, whole.align);
        Some(whole)
    }
}

/// Whether the attributes before and behind the body of a struct pack it.
///
/// # Errors
/// There are others that change its layout, or may do so.
pub(super) fn is_packed(node: Node<'_>, body: Node<'_>, text: &str) -> Result<bool, String> {
    let before = text.get(node.start_byte()..body.start_byte()).unwrap_or("");
    // What is behind a name is no attribute of the struct.
    let behind = text.get(body.end_byte()..node.end_byte()).unwrap_or("");
    let attributes = [before, behind].map(|part| {
        // A field's name may have such words, too.
        let at = part.find("__attribute__").or_else(|| part.find("[["));
        at.map_or("", |at| &part[at..])
    });
    if attributes.iter().any(|part| part.contains("align")) || before.contains("_Alignas") {
        return Err("an alignment of its own is not read".to_owned());
    }
    let name = node.child_by_field_name("name").map(|name| words(name, text));
    let is_known = |word: &str| {
        let known = ["", "__attribute__", "packed", "__packed__", "gnu"];
        known.contains(&word) || Some(word) == name
    };
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let mut named = attributes.iter().flat_map(|part| part.split(is_between));
    if let Some(odd) = named.find(|word| !is_known(word)) {
        return Err(format!("attribute `{odd}` is not read"));
    }
    let parent = node.parent().filter(|parent| parent.kind() == "declaration");
    let variable = parent.and_then(|it| it.child_by_field_name("declarator"));
    let variable = variable.map(|it| words(it, text));
    if let Some(name) = variable.filter(|name| *name != "__packed") {
        // A macro behind the body looks like a variable.
        return Err(format!(
            "`{name}` behind it may be an attribute: declare the struct without a variable"
        ));
    }
    let is_short = before.contains("__packed") || variable.is_some();
    Ok(is_short || attributes.iter().any(|part| part.contains("packed")))
}

/// Whether a field or a typedef has attributes, or an alignment, of its own. Those of a struct in
/// its place are that one's.
pub(super) fn has_attributes(field: Node<'_>, text: &str) -> bool {
    let nested = field.child_by_field_name("type").filter(|it| it.kind() == "struct_specifier");
    let (start, end) = (field.start_byte(), field.end_byte());
    let own =
        nested.map_or([start..end, end..end], |it| [start..it.start_byte(), it.end_byte()..end]);
    let words = ["__attribute__", "[[", "alignas", "_Alignas", "__align", "__packed"];
    let own = own.map(|range| text.get(range).unwrap_or(""));
    own.iter().any(|part| words.iter().any(|word| part.contains(word)))
}

fn round_up(size: i128, align: i128) -> i128 {
    (size + align - 1) / align * align
}

/// One declared member of a type: itself, an array of it or a pointer to it.
fn member(
    declarator: Node<'_>,
    one: Layout,
    constant: &mut dyn FnMut(Node<'_>) -> Option<i128>,
) -> Option<Layout> {
    match declarator.kind() {
        "field_identifier" => Some(one),
        "pointer_declarator" => Some(Layout { size: 8, align: 8 }),
        "array_declarator" => {
            let length = constant(declarator.child_by_field_name("size")?)?;
            let inner = declarator.child_by_field_name("declarator")?;
            if inner.kind() != "field_identifier" || !(0..=SIZE_MAX).contains(&length) {
                return None;
            }
            Some(Layout { size: one.size * length, align: one.align })
        }
        _ => None,
    }
}
