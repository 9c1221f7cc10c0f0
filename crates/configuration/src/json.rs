//! The encoding of RFC 7951.

use crate::element::{Element, InstanceValue};
use crate::module::Module;
use serde::{Serialize, Serializer};

/// Members of an object within a node of this module. Not a map of `serde_json`: keys keep their
/// order here, whatever features that library was built with.
struct Members<'a>(Option<Module>, &'a [Element]);

struct Content<'a>(&'a Element);

/// The data under one root.
pub(crate) fn text(root: &Element) -> String {
    texts(std::slice::from_ref(root))
}

/// The data under several roots.
pub(crate) fn texts(roots: &[Element]) -> String {
    let members = Members(None, roots);
    let mut text = serde_json::to_string_pretty(&members).expect("names and values are plain JSON");
    text.push('\n');
    text
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A name is qualified where its module is not that of the node around it (RFC 7951 4).
        serializer.collect_map(self.1.iter().map(|element| {
            let name = if self.0 == Some(element.module) {
                element.name.to_owned()
            } else {
                qualified(element.module, element.name)
            };
            (name, Content(element))
        }))
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let within = Some(self.0.module);
        match &self.0.value {
            InstanceValue::Text(text) => serializer.serialize_str(text),
            InstanceValue::Number(number) => serializer.serialize_u32(*number),
            InstanceValue::Large(number) => serializer.collect_str(number),
            InstanceValue::Flag(flag) => serializer.serialize_bool(*flag),
            InstanceValue::Identity(module, name) => {
                serializer.serialize_str(&qualified(*module, name))
            }
            InstanceValue::Leaves(all) => serializer.collect_seq(all),
            InstanceValue::Numbers(all) => serializer.collect_seq(all),
            InstanceValue::Fields(fields) => Members(within, fields).serialize(serializer),
            InstanceValue::List(entries) => {
                serializer.collect_seq(entries.iter().map(|entry| Members(within, entry)))
            }
        }
    }
}

fn qualified(module: Module, name: &str) -> String {
    format!("{}:{name}", module.name())
}
