//! The formatter: one layout for all texts. It moves words and never changes them.

use crate::assembly::lexer::{Lexeme, LexemeKind, TextLine};
use crate::assembly::{self, TEXT_OCTETS};
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};

/// Instructions are so far from the margin.
const INDENT: usize = 4;
/// Comments behind statements are in one column, unless the statement is longer.
const ALIGNED_MAX: usize = 60;

/// Words that are followed by an argument in parentheses.
const CALLED: [&str; 5] = ["count", "flag", "frame", "fresh", "gap"];
/// Words that declarations begin with.
const DECLARING: [&str; 6] = ["const", "input", "medium", "message", "output", "station"];

/// A text in its canonical layout. Its program is the same but for the lines of instructions.
///
/// # Errors
/// When a line is no statement: everything that is wrong then, with places in the text.
///
/// ```
/// let text = "station a # me\nx:sync slave,1 ms\n\n\ngoto   x";
/// let expected = "station a  # me\nx:\n    sync slave, 1 ms\n\n    goto x\n";
/// assert_eq!(onbeat_network_code::format::format(text), Ok(expected.to_owned()));
/// ```
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let lines = assembly::lines(text)?;
    let mut laid = Vec::new();
    for line in &lines {
        lay(text, line, &mut laid);
    }
    indent_comments(&mut laid);
    let formatted = written(&laid);
    if formatted.len() > TEXT_OCTETS {
        let message = format!("the text would have {} octets", formatted.len());
        let start = Origin::default();
        let error = Diagnostic::error(codes::FILE_TOO_LARGE, message, start, "here");
        return Err(vec![error.help(format!("a program has at most {TEXT_OCTETS}"))]);
    }
    Ok(formatted)
}

/// A line as it is written.
#[derive(Clone, Debug, Default)]
struct LaidLine {
    /// Columns before it; of a comment alone, of what it is about.
    indent: usize,
    /// The statement, or nothing.
    code: String,
    /// The comment with its `#`, or nothing.
    comment: String,
}

impl LaidLine {
    fn is_blank(&self) -> bool {
        self.code.is_empty() && self.comment.is_empty()
    }

    fn is_comment(&self) -> bool {
        self.code.is_empty() && !self.comment.is_empty()
    }
}

/// One line becomes one for each label and one for the rest.
fn lay(text: &str, line: &TextLine, into: &mut Vec<LaidLine>) {
    let of = |lexeme: &Lexeme| &text[lexeme.span.start as usize..lexeme.span.end as usize];
    let mut lexemes = &line.lexemes[..];
    let first = into.len();
    while let [label, Lexeme { kind: LexemeKind::Sign(b':'), .. }, rest @ ..] = lexemes {
        into.push(LaidLine { code: format!("{}:", of(label)), ..LaidLine::default() });
        lexemes = rest;
    }
    if !lexemes.is_empty() {
        let words: Vec<&str> = lexemes.iter().map(of).collect();
        let indent = if DECLARING.contains(&words[0]) { 0 } else { INDENT };
        into.push(LaidLine { indent, code: spaced(lexemes, &words), ..LaidLine::default() });
    }
    if into.len() == first {
        into.push(LaidLine::default());
    }
    if let (Some(comment), Some(last)) = (&line.comment, into.last_mut()) {
        let comment = &text[comment.start as usize..comment.end as usize];
        last.comment = comment.trim_end_matches([' ', '\t', '\r']).to_owned();
    }
}

/// The words and signs of a statement, with one space where there is any.
fn spaced(lexemes: &[Lexeme], words: &[&str]) -> String {
    let mut line = String::new();
    let mut is_sign_of_number = false;
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| (lexemes[at].kind, words[at]));
        let is_joined = match before {
            None => true,
            Some(before) => is_sign_of_number || joins(words[0], before, word),
        };
        if !is_joined {
            line.push(' ');
        }
        line.push_str(word);
        // Behind an operand it is a difference.
        is_sign_of_number = lexemes[at].kind == LexemeKind::Sign(b'-')
            && before.is_some_and(|(kind, _)| !is_operand(kind));
    }
    line
}

/// Whether a value ends here. Behind `]` none continues.
fn is_operand(kind: LexemeKind) -> bool {
    matches!(kind, LexemeKind::Word | LexemeKind::Number(_) | LexemeKind::Sign(b')'))
}

/// Whether nothing is between two parts of a statement that begins with `first`.
fn joins(first: &str, (kind, before): (LexemeKind, &str), word: &str) -> bool {
    match word {
        "," | ")" | "]" | "[" => true,
        "(" if kind == LexemeKind::Word => CALLED.contains(&before),
        _ if matches!(kind, LexemeKind::Sign(b'(' | b'[')) => true,
        _ => first == "medium" && (word == "/" || before == "/"),
    }
}

/// A comment alone stands as the statement below it, or, with a blank line between, as the one
/// above.
fn indent_comments(lines: &mut [LaidLine]) {
    let mut below = None;
    for line in lines.iter_mut().rev() {
        if line.is_blank() {
            below = None;
        } else if line.is_comment() {
            line.indent = below.unwrap_or(usize::MAX);
        } else {
            below = Some(line.indent);
        }
    }
    let mut above = 0;
    for line in lines {
        if line.is_comment() && line.indent == usize::MAX {
            line.indent = above;
        } else if !line.is_blank() && !line.is_comment() {
            // What stands below a label is indented.
            above = if line.code.ends_with(':') { INDENT } else { line.indent };
        }
    }
}

/// The lines as a text: no two blank ones, none at the beginning or end.
fn written(lines: &[LaidLine]) -> String {
    let mut text = String::new();
    let mut is_apart = false;
    let mut column = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.is_blank() {
            is_apart = !text.is_empty();
            continue;
        }
        if std::mem::take(&mut is_apart) {
            text.push('\n');
        }
        let start = text.len();
        text.extend(std::iter::repeat_n(' ', line.indent));
        text.push_str(&line.code);
        if !line.comment.is_empty() && !line.code.is_empty() {
            let is_first = at == 0 || !has_note(&lines[at - 1]);
            if is_first {
                column =
                    lines[at..].iter().take_while(|it| has_note(it)).map(width).max().unwrap_or(0);
            }
            let width = text.len() - start;
            let padding = column.saturating_sub(width) * usize::from(width <= ALIGNED_MAX);
            text.extend(std::iter::repeat_n(' ', padding + 2));
        }
        text.push_str(&line.comment);
        text.push('\n');
    }
    text
}

/// Whether a comment stands behind a statement.
fn has_note(line: &LaidLine) -> bool {
    !line.code.is_empty() && !line.comment.is_empty()
}

/// Columns of a statement that comments are aligned behind; a long one aligns none.
fn width(line: &LaidLine) -> usize {
    let width = line.indent + line.code.len();
    if width <= ALIGNED_MAX { width } else { 0 }
}
