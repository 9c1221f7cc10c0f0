//! In which form people and other programs see a message: as octets, or by the fields of a C
//! struct.

use super::fields;
use crate::chosen::WrongArgument;
use crate::input;
use crate::terminal;
use clap::Args;
use onbeat::environment::var_os;
use onbeat::{ANY_SIZE, Octets};
use onbeat_description::manifest::{StructLayout, layout_of, layout_of_channel};
use onbeat_model::limits::MANIFEST_OCTETS;
use onbeat_run::coordinator::TYPES;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Which struct messages are.
#[derive(Debug, Args)]
pub(crate) struct TypeArgument {
    /// C file and the struct in it that messages are, as in messages.h:sample; or a manifest, which
    /// names the channel's struct in its size [default: what the run knows of the channel, or
    /// octets]
    #[arg(long = "type", value_name = "FILE[:STRUCT]")]
    named: Option<String>,
}

impl TypeArgument {
    /// Reads the file that is named, or the one that the run knows; without one that can be read
    /// the form is octets.
    pub(crate) fn form(&self, channel: &str) -> anyhow::Result<Form> {
        if let Some(named) = &self.named {
            return form_of(named, channel);
        }
        let Some(known) = known_to_run(channel) else { return Ok(Form::Octets) };
        Ok(form_of(&known, channel).unwrap_or_else(|why| {
            octets_instead(channel, &format!("{why:#}"));
            Form::Octets
        }))
    }

    /// Whether the run is asked, and not a person's word taken.
    pub(crate) fn is_known_to_run(&self) -> bool {
        self.named.is_none()
    }
}

/// Says why a message is not shown by its fields.
pub(crate) fn octets_instead(channel: &str, why: &str) {
    terminal::say(format_args!("onbeat: channel `{channel}`: octets, not fields: {why}"));
}

/// The struct that the run says the messages of a channel are.
fn known_to_run(channel: &str) -> Option<String> {
    let known = var_os(TYPES)?;
    let mut lines = known.to_str()?.lines().filter_map(|line| line.split_once('='));
    lines.find(|(name, _)| *name == channel).map(|(_, named)| named.to_owned())
}

fn form_of(named: &str, channel: &str) -> anyhow::Result<Form> {
    let (file, name) = match named.rsplit_once(':') {
        Some((file, name)) => (file, Some(name)),
        None => (named, None),
    };
    let text = input::text(Path::new(file), MANIFEST_OCTETS as u64);
    let text = text.map_err(anyhow::Error::msg)?;
    let layout = match name {
        Some(name) => layout_of(&text, name),
        None => layout_of_channel(&text, channel),
    };
    layout.map(Form::Fields).map_err(|why| WrongArgument(format!("{file}: {why}")).into())
}

/// The form of messages.
#[derive(Debug)]
pub(crate) enum Form {
    /// Hexadecimal digits.
    Octets,
    /// Fields of a struct.
    Fields(Arc<StructLayout>),
}

impl Form {
    /// The size that messages must have.
    pub(crate) fn size(&self) -> Octets {
        match self {
            Self::Octets => ANY_SIZE,
            Self::Fields(layout) => Octets::new(layout.octets),
        }
    }

    /// The message that a person wrote: a JSON object of fields, else hexadecimal digits.
    pub(crate) fn read(&self, text: &str) -> Result<Vec<u8>, String> {
        let text = text.trim();
        match self {
            Self::Fields(layout) if text.starts_with('{') => {
                let value: Value = serde_json::from_str(text)
                    .map_err(|why| format!("`{}`: {why}", start_of(text)))?;
                fields::encode(layout, &value)
            }
            Self::Fields(_) => octets(text).map_err(|why| match text.starts_with('[') {
                true => format!("`{}`: expected a JSON object of fields", start_of(text)),
                false => why,
            }),
            Self::Octets if text.starts_with('{') => Err(format!(
                "`{}` has fields: name their struct with --type FILE:STRUCT",
                start_of(text)
            )),
            Self::Octets => octets(text),
        }
    }
}

/// The beginning of a text that is shown.
fn start_of(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Hexadecimal digits of octets.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The octets of hexadecimal digits, two each, with or without spaces between them.
fn octets(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || {
        let shown = start_of(text);
        format!("`{shown}`: expected two hexadecimal digits for each octet, as in 0a00ff3c")
    };
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0);
    let digits = digits.ok_or_else(wrong)?;
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_written_as_they_are_read() {
        assert_eq!(octets("0a 00ff\t3C"), Ok(vec![10, 0, 255, 60]));
        assert_eq!(hexadecimal(&[10, 0, 255, 60]), "0a00ff3c");
        for bad in ["", "0", "0x10", "abc", "zz", "1 2 3", "{"] {
            assert!(octets(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fields_without_a_struct_are_refused_with_what_to_do() {
        let why = Form::Octets.read("{\"a\":1}").expect_err("no struct");
        assert!(why.contains("--type FILE:STRUCT"), "{why}");
    }
}
