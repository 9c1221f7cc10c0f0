//! What a person sees in the terminal.

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Moves to the upper left corner of a terminal and clears what is below.
const HOME: &str = "\x1b[H\x1b[J";

/// Whether something did not get to standard output.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// Whether all that was to be printed was.
pub(crate) fn is_printed() -> bool {
    !UNPRINTED.load(Ordering::Relaxed)
}

/// Prints on standard output. A reader that has gone away, as `head` does, is no error.
pub(crate) fn print(text: impl std::fmt::Display) {
    write(format_args!("{}\n", harmless(&text.to_string())));
}

fn write(text: std::fmt::Arguments<'_>) {
    let mut output = std::io::stdout().lock();
    note(output.write_fmt(text).and_then(|()| output.flush()));
}

/// Takes note of what did not get to standard output.
fn note(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        say(format_args!("onbeat: standard output: {error}"));
        UNPRINTED.store(true, Ordering::Relaxed);
    }
}

/// Prints a document as indented JSON. It is written as it is made: a table of a large system has
/// hundreds of megabytes.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let output = std::io::stdout().lock();
    if output.is_terminal() {
        drop(output);
        print(serde_json::to_string_pretty(document)?);
        return Ok(());
    }
    let mut output = BufWriter::with_capacity(1 << 16, output);
    match serde_json::to_writer_pretty(&mut output, document) {
        Err(error) if !error.is_io() => return Err(error.into()),
        written => {
            let written = written.map_err(std::io::Error::from);
            note(written.and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush()));
        }
    }
    Ok(())
}

/// Prints for another program: what is no terminal gets the text as it is.
pub(crate) fn hand_on(text: &str) {
    let is_shown = std::io::stdout().is_terminal();
    let text = if is_shown { harmless(text) } else { Cow::Borrowed(text) };
    write(format_args!("{text}"));
}

/// Prints a line as [`hand_on`] does; false if it goes nowhere any more.
pub(crate) fn print_to_reader(line: &str) -> anyhow::Result<bool> {
    let mut output = std::io::stdout().lock();
    let line = if output.is_terminal() { harmless(line) } else { Cow::Borrowed(line) };
    match writeln!(output, "{line}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("standard output")),
        Ok(()) => Ok(true),
    }
}

/// Prints what takes the place of all that a terminal shows; elsewhere it follows what is there.
/// False if it goes nowhere any more.
pub(crate) fn refresh(text: &str) -> anyhow::Result<bool> {
    if std::io::stdout().is_terminal() {
        print!("{HOME}");
    }
    print_to_reader(text)
}

/// Prints a line on standard error. A failure cannot be reported.
pub(crate) fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(&text.to_string()));
}

/// A text in which nothing moves the cursor, rings, writes titles or turns the writing round: names
/// and lines of files, and what programs say, may be anybody's. Colours stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{061c}' | '\u{2066}'..='\u{2069}');
        c.is_control() && c != '\n' && c != '\t' || turns
    };
    let is_plain = |octet: u8| matches!(octet, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) || !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_colour = c == '\x1b' && {
            let rest = text[at + 1..].strip_prefix('[').unwrap_or("");
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
        };
        shown.push(if is_bad(c) && !is_colour { '\u{fffd}' } else { c });
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_others_wrote_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\tb\nü \x1b[1;31mred\x1b[0m"), "a\tb\nü \x1b[1;31mred\x1b[0m");
        assert_eq!(harmless("\x1b]0;title\x07"), "\u{fffd}]0;title\u{fffd}");
        assert_eq!(harmless("\x1b[2J\x1b[31"), "\u{fffd}[2J\u{fffd}[31");
        assert_eq!(harmless("x\rok \u{9b}2J \u{202e}txt"), "x\u{fffd}ok \u{fffd}2J \u{fffd}txt");
    }
}
