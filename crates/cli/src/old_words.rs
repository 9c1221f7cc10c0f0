//! Arguments by their old names, which are hidden aliases: a note says the new one.

use crate::terminal;
use std::ffi::OsString;

/// A flag that had another name, or one of whose words had.
struct Old {
    /// The first argument of the command line.
    verb: &'static str,
    flag: &'static str,
    /// The word behind the flag, if that is what has a new name.
    word: Option<&'static str>,
    /// What to write instead.
    new: &'static str,
}

const OLD: [Old; 3] = [
    Old { verb: "clock", flag: "--stamps", word: None, new: "--timestamping" },
    Old { verb: "run", flag: "--follow-schedule", word: None, new: "--poll-expected" },
    Old { verb: "bounds", flag: "--method", word: Some("tight"), new: "--method best" },
];

/// Says on standard error, once for each old name in a command line that has been accepted, what
/// the new one is.
pub(crate) fn note(arguments: impl Iterator<Item = OsString>) {
    for old in found(arguments) {
        let (flag, word) = (old.flag, old.word.map(|word| format!(" {word}")).unwrap_or_default());
        terminal::say(format_args!("onbeat: {flag}{word} is the old name of {}", old.new));
    }
}

fn found(arguments: impl Iterator<Item = OsString>) -> Vec<&'static Old> {
    let texts = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let given: Vec<_> = texts.take_while(|argument| argument != "--").collect();
    let mut found: Vec<_> = OLD.iter().collect();
    found.retain(|old| given.first().is_some_and(|verb| verb == old.verb) && old.is_in(&given));
    found
}

impl Old {
    /// Whether one of the arguments, or two that follow each other, are this.
    fn is_in(&self, given: &[String]) -> bool {
        (1..given.len()).any(|at| {
            let (flag, word) = match given[at].split_once('=') {
                Some((flag, word)) => (flag, Some(word)),
                None => (given[at].as_str(), given.get(at + 1).map(String::as_str)),
            };
            flag == self.flag && (self.word.is_none() || self.word == word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::found;
    use crate::arguments::Arguments;
    use clap::Parser;
    use std::ffi::OsString;

    #[test]
    fn old_names_are_accepted_and_found_and_new_ones_are_not_remarked_on() {
        for (line, expected) in [
            ("clock simulate --stamps coarse", &["--timestamping"][..]),
            ("clock simulate --hops 3 --stamps=coarse", &["--timestamping"]),
            ("clock simulate --timestamping coarse", &[]),
            ("run . --follow-schedule --network netns", &["--poll-expected"]),
            ("run . --poll-expected --network netns", &[]),
            ("run . -- --follow-schedule", &[]),
            ("bounds n.json --method tight", &["--method best"]),
            ("bounds n.json --method=tight --json", &["--method best"]),
            ("bounds n.json --method best", &[]),
            ("bounds tight --method total-flow", &[]),
        ] {
            let words = || line.split(' ').map(OsString::from);
            let all = std::iter::once("onbeat".into()).chain(words());
            assert!(Arguments::try_parse_from(all).is_ok(), "{line}");
            let new: Vec<_> = found(words()).iter().map(|old| old.new).collect();
            assert_eq!(new, expected, "{line}");
        }
    }
}
