//! What is wrong with the user's input, as data. Rendering is somebody else's work (the CLI's).

use std::fmt;

/// A place in one of the files that a description was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Position in the list of [`SourceFile`]s.
    pub file: u16,
    /// First octet.
    pub start: u32,
    /// One past the last octet.
    pub end: u32,
}

/// A file that a description was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as the user would write it.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// The line, from 1, of the octet at `offset`.
    pub fn line(&self, offset: u32) -> usize {
        let end = (offset as usize).min(self.text.len());
        1 + self.text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count()
    }
}

/// A stable code: `OB` and four digits. [`crate::codes`] has all that there are, and no other
/// module can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub(crate) &'static str);

impl Code {
    /// The code as it is shown and in JSON: `OB1001`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Its four digits.
    ///
    /// # Panics
    /// When it is not formed as codes are; the registry is checked when it is compiled.
    pub(crate) const fn number(self) -> u16 {
        let octets = self.0.as_bytes();
        assert!(octets.len() == 6 && octets[0] == b'O' && octets[1] == b'B');
        let mut number = 0;
        let mut at = 2;
        while at < octets.len() {
            assert!(octets[at].is_ascii_digit());
            number = number * 10 + (octets[at] - b'0') as u16;
            at += 1;
        }
        number
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether the input can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but the user should know.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// Which kind.
    pub code: Code,
    /// What is wrong, in one sentence that names the item.
    pub message: String,
    /// Where, and what to say at that place; no place for what is missing altogether.
    pub at: Option<(Origin, String)>,
    /// Other places that explain it, as the first of two duplicates.
    pub related: Vec<(Origin, String)>,
    /// What to do about it.
    pub help: String,
}

impl Diagnostic {
    /// An error at one place.
    pub fn error(code: Code, message: impl Into<String>, at: Origin, label: &str) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            at: Some((at, label.to_owned())),
            related: Vec::new(),
            help: String::new(),
        }
    }
    /// The same with what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
    /// The same with another place that explains it.
    pub fn related(mut self, at: Origin, label: impl Into<String>) -> Self {
        self.related.push((at, label.into()));
        self
    }
    /// The same as a warning.
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}
