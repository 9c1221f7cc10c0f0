//! A station's program, as it is loaded.

use super::instruction::{Address, BufferId, MessageId, PROGRAM_WORDS};
use super::timing::{FRAME_WORDS, Medium};
use onbeat_model::limits::NAME_OCTETS;

/// Buffers that a station has at most.
pub const BUFFERS: usize = 256;

/// Words of the language, which are no names.
pub const RESERVED: [&str; 36] = [
    "always",
    "branch",
    "channel",
    "const",
    "count",
    "create",
    "cycles",
    "flag",
    "frame",
    "fresh",
    "future",
    "gap",
    "goto",
    "halt",
    "input",
    "link_up",
    "master",
    "medium",
    "message",
    "ms",
    "nop",
    "not",
    "ns",
    "output",
    "overrun",
    "receive",
    "received",
    "s",
    "send",
    "slave",
    "station",
    "sync",
    "sync_timeout",
    "tagged",
    "transmitting",
    "us",
];

/// Whether a text can be the name of a buffer, message, constant or label: letters, digits and `_`,
/// no digit first, at most [`NAME_OCTETS`], and none of [`RESERVED`].
pub fn is_name(text: &str) -> bool {
    let is_letter = |octet: u8| octet.is_ascii_alphabetic() || octet == b'_';
    let mut octets = text.bytes();
    octets.next().is_some_and(is_letter)
        && octets.all(|octet| is_letter(octet) || octet.is_ascii_digit())
        && text.len() <= NAME_OCTETS
        && RESERVED.binary_search(&text).is_err()
}

/// A program, with what its instructions mean by their identifiers. What is made by the assembler
/// or read from a file keeps all limits; each word is an instruction and each identifier is known.
/// A station keeps to the rules of [`Trap`](super::trace::Trap) whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationProgram {
    /// Whose it is: a node of the description.
    pub station: String,
    /// What its frames are sent over.
    pub medium: Medium,
    /// Its data buffers, by [`BufferId`]: at most [`BUFFERS`].
    pub buffers: Vec<Buffer>,
    /// The messages that it sends or receives, in the order of their identifiers.
    pub messages: Vec<MessageFormat>,
    /// Its instructions, by [`Address`]: at most [`super::instruction::PROGRAM_WORDS`].
    pub words: Vec<u64>,
    /// The file that it was assembled from; empty where there is none.
    pub source: String,
    /// The line there of each instruction, from 1.
    pub lines: Vec<u32>,
}

/// A data buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name: a port of an application, or of the program alone.
    pub name: String,
    /// Its length in words, 1 to [`super::timing::FRAME_WORDS`].
    pub words: u16,
    /// Who writes it.
    pub role: BufferRole,
}

/// Who writes a data buffer. Its words are 0 until somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRole {
    /// The application. `receive` into it is an error.
    Output,
    /// `receive`.
    Input,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFormat {
    /// Its identifier.
    pub id: MessageId,
    /// Its name.
    pub name: String,
    /// Its length in words, 1 to [`super::timing::FRAME_WORDS`].
    pub words: u16,
}

impl StationProgram {
    /// A buffer, if the station has it.
    pub fn buffer(&self, id: BufferId) -> Option<&Buffer> {
        self.buffers.get(usize::from(id.0))
    }

    /// A message, if the station knows it.
    pub fn message(&self, id: MessageId) -> Option<&MessageFormat> {
        let at = self.messages.binary_search_by_key(&id, |message| message.id).ok()?;
        self.messages.get(at)
    }

    /// The word at an address, if there is one.
    pub fn word(&self, address: Address) -> Option<u64> {
        self.words.get(address.index()).copied()
    }

    /// Whether it keeps the limits of its fields: lengths, the order of messages, and an octet that
    /// takes time. What its words say does not matter here.
    pub fn keeps_limits(&self) -> bool {
        let is_length = |words: u16| (1..=FRAME_WORDS).contains(&words);
        self.medium.octet_cycles > 0
            && self.buffers.len() <= BUFFERS
            && self.buffers.iter().all(|buffer| is_length(buffer.words))
            && self.messages.iter().all(|message| is_length(message.words))
            && self.messages.is_sorted_by(|one, next| one.id < next.id)
            && self.words.len() <= PROGRAM_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_the_language_does_not_have() {
        assert!(RESERVED.is_sorted(), "they are searched by halves");
        assert!(RESERVED.iter().all(|word| !is_name(word)));
        for name in ["a", "_", "Send", "b0", "sync_slave", &"x".repeat(NAME_OCTETS)] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "0b", "a-b", "a b", "ä", "a\n", &"x".repeat(NAME_OCTETS + 1)] {
            assert!(!is_name(text), "{text}");
        }
    }
}
