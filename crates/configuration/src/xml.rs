//! The encoding of RFC 7950.

use crate::element::{Element, InstanceValue};
use crate::module::Module;
use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use std::io;

/// The namespace of NETCONF's own elements (RFC 6241 3.1).
const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// The data under one root.
pub(crate) fn text(root: &Element) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, None, root).expect("memory takes all");
    let mut text = String::from_utf8(writer.into_inner()).expect("text goes in, text comes out");
    text.push('\n');
    text
}

/// The data under several roots, in the element `config` of NETCONF: a document has one root.
pub(crate) fn config(roots: &[Element]) -> String {
    let all: String = roots.iter().map(text).collect();
    format!("<config xmlns=\"{BASE}\">\n{all}</config>\n")
}

/// Writes a node that is within one of this module.
fn write(
    writer: &mut Writer<Vec<u8>>,
    within: Option<Module>,
    element: &Element,
) -> io::Result<()> {
    let mut start = BytesStart::new(element.name);
    if within != Some(element.module) {
        start.push_attribute(("xmlns", &*element.module.namespace()));
    }
    let text = match &element.value {
        InstanceValue::Text(text) => text.clone(),
        InstanceValue::Number(number) => number.to_string(),
        InstanceValue::Large(number) => number.to_string(),
        InstanceValue::Flag(flag) => flag.to_string(),
        InstanceValue::Identity(module, name) => {
            let prefix = module.prefix();
            start.push_attribute((&*format!("xmlns:{prefix}"), &*module.namespace()));
            format!("{prefix}:{name}")
        }
        InstanceValue::Leaves(all) => {
            for text in all {
                leaf(writer, element, start.clone(), text)?;
            }
            return Ok(());
        }
        InstanceValue::Numbers(all) => {
            for number in all {
                leaf(writer, element, start.clone(), &number.to_string())?;
            }
            return Ok(());
        }
        InstanceValue::Fields(fields) => return nested(writer, element, start, fields),
        InstanceValue::List(entries) => {
            for entry in entries {
                nested(writer, element, start.clone(), entry)?;
            }
            return Ok(());
        }
    };
    leaf(writer, element, start, &text)
}

fn leaf(
    writer: &mut Writer<Vec<u8>>,
    element: &Element,
    start: BytesStart<'_>,
    text: &str,
) -> io::Result<()> {
    writer.write_event(Event::Start(start))?;
    writer.write_event(Event::Text(BytesText::new(text)))?;
    writer.write_event(Event::End(BytesEnd::new(element.name)))
}

fn nested(
    writer: &mut Writer<Vec<u8>>,
    element: &Element,
    start: BytesStart<'_>,
    fields: &[Element],
) -> io::Result<()> {
    writer.write_event(Event::Start(start))?;
    for field in fields {
        write(writer, Some(element.module), field)?;
    }
    writer.write_event(Event::End(BytesEnd::new(element.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_qualify_names_where_the_module_changes_and_escape_text() {
        let inner = |name, value| Element::new(Module::Bridge, name, value);
        let entry = |number| {
            vec![
                inner("number", InstanceValue::Number(number)),
                inner("kind", InstanceValue::Identity(Module::Types, "strict-priority")),
            ]
        };
        let fields = vec![
            Element::new(Module::Interfaces, "name", InstanceValue::Text("<\"a\" & b>".to_owned())),
            inner("rate", InstanceValue::Large(u64::MAX)),
            inner("entry", InstanceValue::List(vec![entry(1), entry(2)])),
        ];
        let root = Element::new(Module::Interfaces, "interfaces", InstanceValue::Fields(fields));
        let bridge = "xmlns=\"urn:ieee:std:802.1Q:yang:ieee802-dot1q-bridge\"";
        let types = "xmlns:dot1q-types=\"urn:ieee:std:802.1Q:yang:ieee802-dot1q-types\"";
        let kind = format!("    <kind {types}>dot1q-types:strict-priority</kind>\n");
        let entry = |number| {
            format!("  <entry {bridge}>\n    <number>{number}</number>\n{kind}  </entry>\n")
        };
        let expected = [
            "<interfaces xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\">\n",
            "  <name>&lt;&quot;a&quot; &amp; b&gt;</name>\n",
            &format!("  <rate {bridge}>18446744073709551615</rate>\n"),
            &entry(1),
            &entry(2),
            "</interfaces>\n",
        ];
        assert_eq!(text(&root), expected.concat());
        let json: serde_json::Value =
            serde_json::from_str(&crate::json::text(&root)).expect("JSON");
        let kind = "ieee802-dot1q-types:strict-priority";
        let expected = serde_json::json!({ "ietf-interfaces:interfaces": {
            "name": "<\"a\" & b>",
            "ieee802-dot1q-bridge:rate": "18446744073709551615",
            "ieee802-dot1q-bridge:entry": [
                { "number": 1, "kind": kind }, { "number": 2, "kind": kind },
            ],
        } });
        assert_eq!(json, expected);
    }
}
