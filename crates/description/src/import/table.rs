//! Comma-separated values with a head (RFC 4180, without line feeds in cells).

use super::codes;
use super::notes::{Note, Notes};
use crate::{At, Sink, origin};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use std::borrow::Cow;

/// Columns of a table.
const COLUMNS: usize = 64;
/// Lines of wrong form that are told one by one.
const WRONG_LINES: usize = 32;

/// A table whose head has been read.
pub(super) struct Table<'a, const N: usize> {
    lines: Lines<'a>,
    /// Where each wanted column is.
    places: [Option<usize>; N],
    columns: usize,
    wrong: usize,
    file: u16,
}

/// The cells of one line, in the order of the wanted columns.
pub(super) struct Row<'a, const N: usize> {
    cells: [Option<At<Cow<'a, str>>>; N],
    /// The whole line.
    pub(super) at: Origin,
}

impl<const N: usize> Row<'_, N> {
    /// The text of a cell without surrounding space; empty if there is no such column.
    pub(super) fn cell(&self, column: usize) -> At<&str> {
        match &self.cells[column] {
            Some(cell) => cell.with(cell.value.trim()),
            None => At { value: "", at: self.at },
        }
    }
}

/// A column: its name, another name that it may have, and whether it must be there.
pub(super) type Column = (&'static str, Option<&'static str>, bool);

/// Lines and where they begin.
struct Lines<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let at = self.at;
        self.at += self.rest.len() - rest.len();
        self.rest = rest;
        Some((at, line.strip_suffix('\r').unwrap_or(line)))
    }
}

impl<'a, const N: usize> Table<'a, N> {
    /// Reads the head: which column is where.
    pub(super) fn new(
        (text, file): (&'a str, u16),
        wanted: &[Column; N],
        notes: &mut Notes,
        sink: &mut Sink,
    ) -> Option<Self> {
        let rest = text.trim_start_matches('\u{feff}');
        let mut lines = Lines { rest, at: text.len() - rest.len() };
        let names = wanted.map(|(name, ..)| name).join(",");
        let Some((at, line)) = lines.by_ref().find(|(_, line)| !line.trim().is_empty()) else {
            let help = format!("begin with the line `{names}`");
            let wrong = Diagnostic::error(
                codes::SYNTAX,
                "the file is empty",
                origin(file, 0..0),
                "nothing is here",
            );
            sink.push(wrong.help(help));
            return None;
        };
        let head = cells((line, at), file, sink)?;
        let mut places = [None; N];
        let mut is_right = true;
        for (place, cell) in head.iter().enumerate() {
            let name = cell.value.trim();
            let is_it = |(one, other, _): &Column| *one == name || *other == Some(name);
            match wanted.iter().position(is_it) {
                Some(column) if places[column].is_some() => {
                    let message = format!("the column `{name}` is there twice");
                    let wrong = Diagnostic::error(codes::DUPLICATE, message, cell.at, "the second");
                    sink.push(wrong.help("remove or rename one of them"));
                    is_right = false;
                }
                Some(column) => places[column] = Some(place),
                // Row numbers have no name.
                None if name.is_empty() => {}
                None => notes.add(Note::Column(name.to_owned()), cell.at),
            }
        }
        let whole = origin(file, at..at + line.len());
        for ((name, _, is_needed), place) in wanted.iter().zip(&places) {
            if *is_needed && place.is_none() {
                let message = format!("the column `{name}` is missing");
                let wrong = Diagnostic::error(codes::COLUMN, message, whole, "the head");
                sink.push(wrong.help(format!("name the columns `{names}`")));
                is_right = false;
            }
        }
        let columns = head.len();
        Some(Self { lines, places, columns, wrong: 0, file }).filter(|_| is_right)
    }

    /// The next line that has the form of the head.
    pub(super) fn next(&mut self, sink: &mut Sink) -> Option<Row<'a, N>> {
        for (at, line) in self.lines.by_ref() {
            if line.trim().is_empty() {
                continue;
            }
            let whole = origin(self.file, at..at + line.len());
            let cells = cells((line, at), self.file, sink);
            match cells {
                Some(mut cells) if cells.len() == self.columns => {
                    let cells = self.places.map(|place| {
                        let empty = At { value: Cow::Borrowed(""), at: whole };
                        place.map(|place| std::mem::replace(&mut cells[place], empty))
                    });
                    return Some(Row { cells, at: whole });
                }
                Some(cells) => {
                    let [has, of] = [cells.len(), self.columns];
                    let message = format!("the line has {has} cells, the head {of}");
                    let wrong = Diagnostic::error(codes::SYNTAX, message, whole, "this line");
                    let help = "separate cells by commas; quote a cell that has commas";
                    sink.push(wrong.help(help));
                }
                None => {}
            }
            self.wrong += 1;
            if self.wrong == WRONG_LINES {
                return None;
            }
        }
        None
    }
}

/// The cells of a line that begins at an octet of a file.
fn cells<'a>(
    (line, at): (&'a str, usize),
    file: u16,
    sink: &mut Sink,
) -> Option<Vec<At<Cow<'a, str>>>> {
    let mut cells = Vec::new();
    let mut from = 0;
    loop {
        let Some((value, to)) = cell(line, from) else {
            let place = origin(file, at + from..at + line.len());
            let message = "a quoted cell does not end, or text follows it";
            let wrong = Diagnostic::error(codes::SYNTAX, message, place, "this cell");
            sink.push(wrong.help("close the quote before the next comma"));
            return None;
        };
        cells.push(At { value, at: origin(file, at + from..at + to) });
        if to == line.len() {
            return Some(cells);
        }
        if cells.len() == COLUMNS {
            let place = origin(file, at..at + line.len());
            super::too_large(format!("the line has more than {COLUMNS} cells"), place, sink);
            return None;
        }
        from = to + 1;
    }
}

/// The cell that begins at an octet of a line, and the octet behind it: a comma or the end.
fn cell(line: &str, from: usize) -> Option<(Cow<'_, str>, usize)> {
    let rest = &line[from..];
    let Some(quoted) = rest.trim_start().strip_prefix('"') else {
        let length = rest.find(',').unwrap_or(rest.len());
        return Some((Cow::Borrowed(&rest[..length]), from + length));
    };
    let begins = line.len() - quoted.len();
    let mut ends = begins;
    loop {
        ends += line[ends..].find('"')?;
        match line[ends + 1..].starts_with('"') {
            true => ends += 2,
            false => break,
        }
    }
    let behind = &line[ends + 1..];
    let length = behind.find(',').unwrap_or(behind.len());
    let value = &line[begins..ends];
    let value = match value.contains('"') {
        true => Cow::Owned(value.replace("\"\"", "\"")),
        false => Cow::Borrowed(value),
    };
    behind[..length].trim().is_empty().then_some((value, ends + 1 + length))
}

/// The parts of a list as Python writes it: `(0, 1)`, `[9]`, or a single one without brackets.
pub(super) fn list(text: &str) -> Option<Vec<&str>> {
    let inner = [("(", ")"), ("[", "]")]
        .iter()
        .find_map(|(open, close)| text.strip_prefix(open).map(|rest| rest.strip_suffix(close)));
    let inner = match inner {
        Some(inner) => {
            let inner = inner?.trim();
            inner.strip_suffix(',').unwrap_or(inner)
        }
        None => text,
    };
    inner.split(',').map(|part| part_of(part.trim())).collect()
}

/// A part without its quotes.
fn part_of(part: &str) -> Option<&str> {
    let quoted = ['\'', '"']
        .iter()
        .find_map(|quote| part.strip_prefix(*quote).map(|rest| rest.strip_suffix(*quote)));
    let part = quoted.unwrap_or(Some(part))?;
    let is_one = !part.is_empty() && !part.contains(['(', ')', '[', ']', '"', '\'']);
    is_one.then(|| super::identifier(part))
}
