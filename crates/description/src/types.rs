//! Which C structs the messages of channels are, by the files that channels name.

use super::fields::Fields;
use super::manifest::Structs;
use super::{At, codes, limits, raw};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::BTreeMap;

/// What fetches C files, and what has been fetched: each once, however many channels name it.
pub(super) struct Types<'a> {
    read: &'a mut dyn FnMut(&str) -> Result<String, String>,
    files: BTreeMap<String, Result<Structs, String>>,
    octets_left: usize,
}

impl<'a> Types<'a> {
    pub(super) fn new(read: &'a mut dyn FnMut(&str) -> Result<String, String>) -> Self {
        Self { read, files: BTreeMap::new(), octets_left: limits::TYPE_OCTETS }
    }

    /// The octets of the struct that a channel names, in the place where it does.
    pub(super) fn octets(
        &mut self,
        fields: &mut Fields<'_, raw::Channel>,
        named: &At<String>,
    ) -> Option<At<i64>> {
        let found = match named.value.rsplit_once(':') {
            Some((file, name)) if !file.is_empty() && !name.is_empty() => {
                self.size_of(file, name).map_err(|why| format!("{file}: {why}"))
            }
            _ => Err(format!("`{}` names no struct", super::shorten(&named.value))),
        };
        match found {
            Ok(octets) => Some(named.with(octets.into())),
            Err(why) => {
                let help = "write FILE:STRUCT, as in \"messages.h:sample\", with a path relative \
                            to the directory of the description";
                let text = format!("`type`: {why}");
                fields.error(codes::MESSAGE_TYPE, &text, named.at, "named here", help);
                None
            }
        }
    }

    fn size_of(&mut self, file: &str, name: &str) -> Result<u32, String> {
        if !self.files.contains_key(file) {
            let structs = self.fetch(file);
            self.files.insert(file.to_owned(), structs);
        }
        let structs = self.files[file].as_ref().map_err(Clone::clone)?;
        Ok(structs.layout(name)?.octets)
    }

    fn fetch(&mut self, file: &str) -> Result<Structs, String> {
        let beyond = || {
            let (files, octets) = (limits::TYPE_FILES, limits::TYPE_OCTETS);
            format!("channels name more than {files} files, or more than {octets} octets in them")
        };
        if self.files.len() >= limits::TYPE_FILES {
            return Err(beyond());
        }
        let text = (self.read)(file).map_err(|why| format!("it cannot be read: {why}"))?;
        self.octets_left = self.octets_left.checked_sub(text.len()).ok_or_else(beyond)?;
        Structs::read(&text)
    }
}

/// Reports a size that is not the struct's.
pub(super) fn compare(
    fields: &mut Fields<'_, raw::Channel>,
    named: &At<String>,
    octets: At<i64>,
    size: At<i64>,
) {
    if octets.value == size.value {
        return;
    }
    let (what, named) = (&fields.what, super::shorten(&named.value));
    let text = format!("messages have {} octets, {named} has {}", size.value, octets.value);
    let differ =
        Diagnostic::error(codes::MESSAGE_TYPE, format!("{what}: {text}"), octets.at, "here")
            .help(
                "remove `size_octets`: the struct gives it; or correct the struct or the manifest",
            )
            .related(size.at, "the size");
    fields.sink.push(differ);
}
