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
        let source = words(kind, text);
        let packed = source.contains("(packed") || source.contains("__packed");
        let mut whole = Layout { size: 0, align: 1 };
        for field in named_children(body) {
            if field.kind() != "field_declaration" {
                return None;
            }
            let one = self.of_type(field.child_by_field_name("type")?, text)?;
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
