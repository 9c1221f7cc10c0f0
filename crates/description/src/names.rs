//! Names: which may be used, and where they are.

use super::codes;
use super::{At, Sink};
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use onbeat_model::name::is_plain;
use std::collections::BTreeMap;

/// What kind of letters a name may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Letters, digits, `-` and `_`.
    Plain,
    /// A C identifier: programs paste it into variable names.
    C,
}

impl Alphabet {
    fn allows(self, name: &str) -> bool {
        match self {
            Self::Plain => name.bytes().all(is_plain),
            Self::C => {
                name.bytes().all(|b| is_plain(b) && b != b'-')
                    && !name.starts_with(|c: char| c.is_ascii_digit())
            }
        }
    }
    const fn rule(self) -> &'static str {
        match self {
            Self::Plain => "letters, digits, `-` and `_`",
            Self::C => "letters, digits and `_`, not a digit first (a C identifier)",
        }
    }
}

/// Says what is wrong with a name, if anything.
pub(crate) fn check_name(
    name: &At<String>,
    what: &str,
    alphabet: Alphabet,
    octets_max: usize,
    sink: &mut Sink,
) -> bool {
    let problem = if name.value.is_empty() {
        "is empty"
    } else if name.value.len() > octets_max {
        "is too long"
    } else if !alphabet.allows(&name.value) {
        "has a character that is not allowed"
    } else {
        return true;
    };
    let message = format!("the name of {what} `{}` {problem}", shorten(&name.value));
    let help = format!("use 1 to {octets_max} octets of {}", alphabet.rule());
    sink.push(Diagnostic::error(codes::BAD_NAME, message, name.at, "this name").help(help));
    false
}

/// Long garbage in a message is no help.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 80 {
        return text.to_owned();
    }
    text.chars().take(77).chain("...".chars()).collect()
}

/// The names of one kind of thing.
pub(crate) struct Names<Id> {
    what: &'static str,
    known: BTreeMap<String, (Id, Origin)>,
    complete: bool,
}

impl<Id: Copy> Names<Id> {
    /// None yet.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, known: BTreeMap::new(), complete: true }
    }
    /// An entry has no usable name: a name that is not found may be its, so do not complain.
    pub(crate) fn incomplete(&mut self) {
        self.complete = false;
    }
    /// Adds a name, or says that it is taken.
    pub(crate) fn add(&mut self, name: &At<String>, id: Id, sink: &mut Sink) {
        if let Some((_, first)) = self.known.get(&name.value) {
            let message = format!("duplicate {} name `{}`", self.what, name.value);
            let second = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the second")
                .help("rename one of them")
                .related(*first, "the first");
            sink.push(second);
        } else {
            self.known.insert(name.value.clone(), (id, name.at));
        }
    }
    /// The thing of that name, or a diagnostic with the code for a name that is not there.
    pub(crate) fn find(&self, unknown: Code, name: &At<String>, sink: &mut Sink) -> Option<Id> {
        if let Some((id, _)) = self.known.get(&name.value) {
            return Some(*id);
        }
        if self.complete {
            let message = format!("unknown {} `{}`", self.what, shorten(&name.value));
            let known = self.known.keys().map(String::as_str);
            let help = match sink.did_you_mean((unknown, name.at), &name.value, known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("name a {} of this file", self.what),
            };
            sink.push(Diagnostic::error(unknown, message, name.at, "not found").help(help));
        }
        None
    }
    /// All names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
    /// The thing of that name, and where it is named.
    pub(crate) fn get(&self, name: &str) -> Option<(Id, Origin)> {
        self.known.get(name).copied()
    }
}
