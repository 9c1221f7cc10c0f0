//! XML of instance data and of NETCONF messages as a tree: what is told, what a device answers.

use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer, XmlVersion};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Octets of one text: the configuration of a bridge with 10,000 entries has less.
const TEXT_OCTETS: usize = 64 << 20;
/// Elements within each other.
const DEPTH: usize = 64;
/// Elements of a text.
const ELEMENTS: usize = 1 << 20;
/// Attributes of an element.
const ATTRIBUTES: usize = 64;
/// The namespace of NETCONF's own elements, and of the attribute `operation` (RFC 6241 3.1).
pub(super) const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// Its namespace; empty without one.
    pub(super) namespace: String,
    /// Its name in the namespace.
    pub(super) name: String,
    /// Its text, without white space around it.
    pub(super) text: String,
    /// The namespace of the prefix that the text begins with, if it is declared: the value is an
    /// identity, or a name of a node.
    pub(super) identity: Option<String>,
    /// What `edit-config` is to do with it, if not the default (RFC 6241 7.2).
    pub(super) operation: Option<&'static str>,
    /// The elements in it.
    pub(super) nodes: Vec<Tree>,
}

impl Tree {
    /// An element without content.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), ..Self::default() }
    }

    /// Reads a document of one element.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_OCTETS {
            return Err(format!("it has more than {TEXT_OCTETS} octets"));
        }
        let mut reader = Reader::from_str(text);
        let mut reading = Reading::default();
        loop {
            let event = reader.read_event().map_err(|why| why.to_string())?;
            match event {
                Event::Start(start) => reading.begin(&start)?,
                Event::Empty(start) => {
                    reading.begin(&start)?;
                    reading.end()?;
                }
                Event::End(_) => reading.end()?,
                Event::Text(text) => reading.add(&text)?,
                Event::CData(text) => reading.add(&text)?,
                Event::GeneralRef(name) => {
                    let letter = name.resolve_char_ref().ok().flatten().map(String::from);
                    let known = || quick_xml::escape::resolve_xml_entity(&name).map(str::to_owned);
                    let text = letter.or_else(known).ok_or("it has an unknown entity")?;
                    reading.add(&text)?;
                }
                Event::Eof => return reading.root.ok_or_else(|| "it has no element".to_owned()),
                // No entity is declared, so no other file is read.
                Event::DocType(_) => return Err("it has a document type".to_owned()),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    /// The first element in it of this name, in whatever namespace.
    pub(super) fn find(&self, name: &str) -> Option<&Self> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The text of the first element in it of this name.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.find(name).map(|node| node.text.as_str())
    }

    /// Whether both are entries of one list, or the same container or leaf.
    pub(super) fn is_named_as(&self, other: &Self) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }

    /// The value of a leaf as every server means it: an identity by its module, not by a prefix.
    pub(super) fn value(&self) -> (Option<&str>, Cow<'_, str>) {
        match (&self.identity, self.text.split_once(':')) {
            (Some(identity), Some((_, name))) => (Some(identity), name.into()),
            // Two ways to write the same octets of an address.
            _ if matches!(&*self.name, "address" | "destination-mac") => {
                (None, self.text.to_ascii_uppercase().into())
            }
            _ => (None, (&*self.text).into()),
        }
    }

    /// As a text, without white space between elements.
    pub(super) fn write(&self) -> String {
        let mut writer = Writer::new(Vec::new());
        self.write_within(&mut writer, "").expect("memory takes all");
        String::from_utf8(writer.into_inner()).expect("text goes in, text comes out")
    }

    fn write_within(&self, writer: &mut Writer<Vec<u8>>, within: &str) -> std::io::Result<()> {
        let mut start = BytesStart::new(&*self.name);
        if self.namespace != within {
            start.push_attribute(("xmlns", &*self.namespace));
        }
        if let Some(operation) = self.operation {
            start.push_attribute(("xmlns:nc", BASE));
            start.push_attribute(("nc:operation", operation));
        }
        if let (Some(identity), Some((prefix, _))) = (&self.identity, self.text.split_once(':')) {
            start.push_attribute((&*format!("xmlns:{prefix}"), &**identity));
        }
        writer.write_event(Event::Start(start))?;
        writer.write_event(Event::Text(BytesText::new(&self.text)))?;
        for node in &self.nodes {
            node.write_within(writer, &self.namespace)?;
        }
        writer.write_event(Event::End(BytesEnd::new(&*self.name)))
    }
}

/// Whether it is a name without a prefix (Namespaces in XML 1.0, NCName), or close to one: what is
/// read as a name has to be one when it is written.
fn is_name(text: &str) -> bool {
    let begins = |letter: char| letter.is_alphabetic() || letter == '_';
    let continues = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    text.starts_with(begins) && text.chars().all(continues)
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    /// The elements that are open, each with the namespaces that it declares; the default one is
    /// that of the empty prefix.
    open: Vec<(Tree, BTreeMap<String, String>)>,
    root: Option<Tree>,
    elements: usize,
}

impl Reading {
    fn begin(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        self.elements += 1;
        if self.open.len() == DEPTH || self.elements > ELEMENTS {
            return Err(format!("it has more than {ELEMENTS} elements, or {DEPTH} in each other"));
        }
        if self.root.is_some() {
            return Err("it has several elements side by side".to_owned());
        }
        let mut declared = BTreeMap::new();
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|why| why.to_string())?;
            let key: &str = attribute.key.as_ref();
            let Some(rest) = key.strip_prefix("xmlns") else { continue };
            let prefix = match rest.strip_prefix(':') {
                Some(prefix) => prefix,
                None if rest.is_empty() => "",
                None => continue,
            };
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|why| why.to_string())?.into_owned();
            // A URI has none; text with some would be another one when it is read again.
            if value.contains(char::is_whitespace) {
                return Err("a namespace has white space".to_owned());
            }
            if declared.len() == ATTRIBUTES {
                return Err(format!("an element declares more than {ATTRIBUTES} namespaces"));
            }
            declared.insert(prefix.to_owned(), value);
        }
        self.open.push((Tree::default(), declared));
        let name = start.name();
        let name: &str = name.as_ref();
        let parts = name.split_once(':');
        if !parts.map_or(is_name(name), |(prefix, name)| is_name(prefix) && is_name(name)) {
            return Err("an element has a name that is none".to_owned());
        }
        let (prefix, name) = parts.unwrap_or(("", name));
        let namespace = match self.namespace(prefix) {
            Some(namespace) => namespace.to_owned(),
            None if prefix.is_empty() => String::new(),
            None => return Err(format!("the prefix `{prefix}` of an element is not declared")),
        };
        let (element, _) = self.open.last_mut().expect("it has just been opened");
        *element = Tree { namespace, name: name.to_owned(), ..Tree::default() };
        Ok(())
    }

    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.open.iter().rev().find_map(|(_, declared)| declared.get(prefix)).map(String::as_str)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some((element, _)) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err("it has text outside its element".to_owned()),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let (element, _) = self.open.last_mut().ok_or("an element ends twice")?;
        // What stands between elements is white space, or means nothing.
        let is_leaf = element.nodes.is_empty();
        element.text = if is_leaf { element.text.trim().to_owned() } else { String::new() };
        let (element, _) = self.open.last().expect("it is open");
        let prefix = element.text.split_once(':').map(|(prefix, _)| prefix);
        let identity = prefix.filter(|prefix| !prefix.is_empty());
        let identity = identity.and_then(|prefix| self.namespace(prefix)).map(str::to_owned);
        let (mut element, _) = self.open.pop().expect("it is open");
        element.identity = identity;
        match self.open.last_mut() {
            Some((parent, _)) => parent.nodes.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_mean_what_they_are_declared_to_be() {
        let one = "<a xmlns='urn:x' xmlns:i='urn:i'><b> i:up </b><p:c xmlns:p='urn:p'/></a>";
        let other =
            "<q:a xmlns:q='urn:x'><q:b xmlns:z='urn:i'>z:up</q:b><c xmlns='urn:p'></c></q:a>";
        let (one, other) = (Tree::read(one).expect("XML"), Tree::read(other).expect("XML"));
        assert_eq!(one.nodes[0].value(), other.nodes[0].value());
        assert_eq!(one.nodes[0].value().0, Some("urn:i"));
        assert!(one.nodes[1].is_named_as(&other.nodes[1]) && one.is_named_as(&other));
        assert_eq!(Tree::read(&one.write()), Ok(one));
        let address = Tree::read("<address xmlns:a='urn:a'>01:5e</address>").expect("XML");
        assert_eq!(address.value(), (None, "01:5E".into()));
    }

    #[test]
    fn what_is_no_document_of_one_element_is_refused() {
        let deep = "<a>".repeat(DEPTH + 1);
        let two = "<a/><a/>";
        for bad in ["", "text", "<a>", "<a></b>", "</a>", two, "<p:a/>", "<a>&x;</a>", &deep] {
            assert!(Tree::read(bad).is_err(), "{bad}");
        }
        // Names that would be others when they are read again.
        for bad in ["<:\u{1b}:/>", "<:a/>", "<a:/>", "<a:b:c xmlns:a='x'/>", "<1/>", "<a\u{1}/>"] {
            assert!(Tree::read(bad).is_err(), "{bad:?}");
        }
        let entity = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>";
        assert!(Tree::read(entity).is_err_and(|why| why.contains("document type")));
        let escaped = Tree::read("<a>&lt;&#65;<![CDATA[&]]></a>").expect("XML");
        assert_eq!(escaped.text, "<A&");
    }
}
