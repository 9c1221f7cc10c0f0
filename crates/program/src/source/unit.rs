//! A translation unit: the user's files and which of their `#include` lines brings in what.

use super::lexer::{Kind, Piece, directive, lex, spelling};
use super::output::{Change, Macros, OutputLine, lines, single_quoted, token, unescape};
use onbeat_model::codes::timed_c as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use std::borrow::Cow;
use std::collections::HashMap;

/// How deep `#include` may nest, as in C compilers.
const DEPTH_MAX: usize = 200;

/// The user's part of a translation unit, as the C preprocessor read it.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Every file once, the main one first.
    pub(super) files: Vec<File>,
    /// Every time that a file is included, in the order of their beginnings, the main file first.
    pub(super) inclusions: Vec<Inclusion>,
    pub(super) macros: Macros,
    /// The user's tokens behind the preprocessor.
    pub(super) tokens: Vec<(Kind, String)>,
}

/// A file of the user's.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// As on disk.
    pub(super) source: SourceFile,
    /// As compiled: [`normal`].
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
    /// Its `#include` lines.
    includes: Vec<IncludeLine>,
}

/// An `#include` line.
#[derive(Clone, Debug)]
struct IncludeLine {
    piece: usize,
    /// The number of the line that follows it, as `#line` has it.
    next_line: usize,
    /// The file's name, if a `#line` has another one; escapes included.
    name: Option<String>,
}

/// One time that a file is included.
#[derive(Clone, Debug)]
pub(super) struct Inclusion {
    pub(super) file: usize,
    /// The file's name as line markers have it, escapes included.
    pub(super) name: String,
    /// By the piece that is the directive.
    pub(super) includes: HashMap<usize, Included>,
    /// How many of the file's `#include` lines are behind us.
    passed: usize,
}

/// What an `#include` line brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Included {
    /// A file of the user's, as this inclusion.
    User(usize),
    /// A file of the system's, of this name.
    System(String),
}

/// `#include 'x.h'` taken as `"x.h"`: the text of the same length, and a warning for each. `file`
/// is the text's place in the list of files.
pub fn normal(text: &str, file: u16) -> (String, Vec<Diagnostic>) {
    let mut octets = text.as_bytes().to_vec();
    let mut warnings = Vec::new();
    for piece in lex(text).into_iter().filter(|p| p.kind == Kind::Directive) {
        let Some((first, last)) = single_quoted(&text[piece.range.clone()]) else { continue };
        let at = |offset: usize| (piece.range.start + offset) as u32;
        octets[at(first) as usize] = b'"';
        octets[at(last) as usize] = b'"';
        let origin = Origin { file, start: at(first), end: at(last) + 1 };
        let message = "#include with single quotes is not C; it is taken as double quotes";
        warnings.push(
            Diagnostic::error(codes::QUOTES, message, origin, "write \" in place of '")
                .warning()
                .help("write the file's name in \"…\" or <…>: C compilers refuse this line"),
        );
    }
    let text = String::from_utf8(octets).expect("octets of ASCII were replaced by such");
    (text, warnings)
}

impl File {
    fn new(path: String, text: String) -> Self {
        let (normal, _) = normal(&text, 0);
        let pieces = lex(&normal);
        let includes = include_lines(&normal, &pieces);
        Self { source: SourceFile { path, text }, text: normal, pieces, includes }
    }

    /// A piece without splices.
    pub(super) fn spelling(&self, piece: usize) -> Cow<'_, str> {
        spelling(self.raw(piece))
    }

    pub(super) fn raw(&self, piece: usize) -> &str {
        &self.text[self.pieces[piece].range.clone()]
    }

    /// What stands between a piece and the one before it.
    pub(super) fn gap(&self, piece: usize) -> &str {
        let start = piece.checked_sub(1).map_or(0, |before| self.pieces[before].range.end);
        let end = self.pieces.get(piece).map_or(self.text.len(), |p| p.range.start);
        &self.text[start..end]
    }
}

fn include_lines(text: &str, pieces: &[Piece]) -> Vec<IncludeLine> {
    let mut includes = Vec::new();
    let (mut line, mut counted, mut name) = (1, 0, None);
    for (at, piece) in pieces.iter().enumerate().filter(|(_, p)| p.kind == Kind::Directive) {
        line += text[counted..piece.range.end].matches('\n').count();
        counted = piece.range.end;
        let words = directive(&text[piece.range.clone()]);
        match words.first().map(|(_, name)| &**name) {
            Some("include" | "include_next" | "import") => {
                includes.push(IncludeLine { piece: at, next_line: line + 1, name: name.clone() });
            }
            Some("line") => {
                // The line end behind it makes this the number of the next line.
                let number = words.get(1).and_then(|(_, number)| number.parse::<usize>().ok());
                line = number.map_or(line, |number| number.saturating_sub(1));
                if let Some((Kind::Literal, renamed)) = words.get(2) {
                    name = Some(renamed.trim_matches('"').to_owned());
                }
            }
            _ => {}
        }
    }
    includes
}

impl Unit {
    /// Text without macros and headers.
    pub fn plain(path: &str, text: &str) -> Self {
        let file = File::new(path.to_owned(), text.to_owned());
        let main = Inclusion::new(0, &escape(path));
        Self {
            files: vec![file],
            inclusions: vec![main],
            macros: Macros::built_in(),
            tokens: Vec::new(),
        }
    }

    /// Reads what `cc -E -dD` writes of the main file. `read` gives the text of a header.
    ///
    /// # Errors
    /// When a header cannot be read: `read`'s message.
    pub fn read(
        path: &str,
        text: &str,
        output: &str,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let mut reader =
            Reader { unit: Self::plain(path, text), stack: vec![], is_main: false, read };
        for line in lines(output) {
            match line {
                OutputLine::From { next_line, name, change, is_system } => {
                    reader.go(next_line, name, change, is_system)?;
                }
                OutputLine::Define(line) => reader.unit.macros.define(line),
                OutputLine::Text(text) if reader.inclusion().is_some() => {
                    let pieces = lex(text).into_iter();
                    let tokens =
                        pieces.map(|p| (p.kind, token(p.kind, &text[p.range]).into_owned()));
                    reader.unit.tokens.extend(tokens);
                }
                OutputLine::Text(_) | OutputLine::Pragma(_) => {}
            }
        }
        while let Some(ended) = reader.stack.pop() {
            reader.place(&ended, None);
        }
        Ok(reader.unit)
    }

    /// The user's files, each once, the main one first.
    pub fn files(&self) -> Vec<SourceFile> {
        self.files.iter().map(|file| file.source.clone()).collect()
    }

    pub(super) fn file_of(&self, inclusion: usize) -> &File {
        &self.files[self.inclusions[inclusion].file]
    }

    /// What says, behind a header's text, where the file continues whose piece includes it.
    pub(super) fn line_behind(&self, inclusion: usize, piece: usize) -> String {
        let line = self.file_of(inclusion).includes.iter().find(|line| line.piece == piece);
        let (next, name) = line.map_or((1, None), |line| (line.next_line, line.name.as_deref()));
        let name = name.unwrap_or(&self.inclusions[inclusion].name);
        format!("\n#line {next} \"{name}\"")
    }

    /// Whether the main file is included by itself or one of its headers.
    pub(super) fn includes_itself(&self) -> bool {
        self.inclusions[1..].iter().any(|inclusion| inclusion.file == 0)
    }
}

/// A path as it stands in a line marker.
fn escape(path: &str) -> String {
    path.replace('\\', "\\\\").replace('"', "\\\"")
}

impl Inclusion {
    fn new(file: usize, name: &str) -> Self {
        Self { file, name: name.to_owned(), includes: HashMap::new(), passed: 0 }
    }
}

/// The files that the preprocessor is in.
struct Reader<'a> {
    unit: Unit,
    /// Those that were entered from the main file.
    stack: Vec<Included>,
    /// Whether the main file itself has begun: before it, there are options and what they include.
    is_main: bool,
    read: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

impl Reader<'_> {
    /// The user's file that the preprocessor is in.
    fn inclusion(&self) -> Option<usize> {
        match self.stack.last() {
            None => self.is_main.then_some(0),
            Some(Included::User(inclusion)) => Some(*inclusion),
            Some(Included::System(_)) => None,
        }
    }

    /// Follows a line marker.
    fn go(
        &mut self,
        next_line: usize,
        name: &str,
        change: Change,
        is_system: bool,
    ) -> Result<(), String> {
        match change {
            Change::Enter => {
                let is_foreign = is_system || name.starts_with('<');
                let is_user = self.inclusion().is_some() && !is_foreign;
                let entered = match is_user && self.stack.len() < DEPTH_MAX {
                    true => Included::User(self.enter(name)?),
                    false => Included::System(name.to_owned()),
                };
                self.stack.push(entered);
            }
            Change::Return => {
                if let Some(ended) = self.stack.pop() {
                    self.place(&ended, Some(next_line));
                }
            }
            Change::None => {}
        }
        if self.stack.is_empty() {
            self.is_main = !["<built-in>", "<command-line>", "<command line>"].contains(&name);
        }
        Ok(())
    }

    fn enter(&mut self, name: &str) -> Result<usize, String> {
        let path = unescape(name);
        let files = &mut self.unit.files;
        let file = match files.iter().position(|file| file.source.path == path) {
            Some(known) => known,
            None => {
                let text = (self.read)(&path)?;
                files.push(File::new(path, text));
                files.len() - 1
            }
        };
        self.unit.inclusions.push(Inclusion::new(file, name));
        Ok(self.unit.inclusions.len() - 1)
    }

    /// Notes which line of the file that continues brought in what has ended.
    fn place(&mut self, ended: &Included, next_line: Option<usize>) {
        if matches!(ended, Included::System(name) if name.starts_with('<')) {
            return;
        }
        let Some(at) = self.inclusion() else { return };
        let Unit { files, inclusions, .. } = &mut self.unit;
        let inclusion = &mut inclusions[at];
        let ahead = &files[inclusion.file].includes[inclusion.passed..];
        let is_it = |line: &IncludeLine| next_line.is_none_or(|next| next == line.next_line);
        if let Some(skipped) = ahead.iter().position(is_it) {
            inclusion.includes.insert(ahead[skipped].piece, ended.clone());
            inclusion.passed += skipped + 1;
        }
    }
}
