//! Edits of expanded text, made in the user's.

use super::expand::would_join;
use super::lexer::{Kind, spliced};
use super::mark::{Directive, directive_text};
use super::unit::Unit;
use super::{Edit, Expanded, Pragma};
use std::collections::{BTreeMap, HashMap};

/// What happens to a token.
#[derive(Clone, Debug, Default)]
struct Change {
    before: String,
    /// What stands in its place.
    instead: Option<String>,
    after: String,
}

impl Change {
    /// Writes a token that is `own` without the change, on one line, and the line ends spliced into
    /// it. `is_apart`: what stands before was changed.
    fn write(&self, own: &str, splices: &str, is_apart: bool, out: &mut String) {
        append(out, &one_line(&self.before));
        match &self.instead {
            None if self.before.is_empty() && !is_apart => out.push_str(own),
            None => append(out, own),
            Some(text) => {
                append(out, &one_line(text));
                out.push_str(splices);
            }
        }
        append(out, &one_line(&self.after));
    }

    /// Whether text that is new stands at its end.
    fn ends_changed(&self) -> bool {
        self.instead.is_some() || !self.after.is_empty()
    }
}

/// Words after which a parenthesis is not an expression's.
const KEYWORDS: [&str; 8] =
    ["if", "while", "for", "switch", "return", "sizeof", "_Alignof", "__attribute__"];

/// The user's main file with `edits`, no line moved: what a macro made is written out in the place
/// of the macro's use if there is a change in it. `#include` lines stand as they are, or, when a
/// header has a change, each with the header's text in its place between `#line` directives. A
/// byte order mark is left out: the text may be put behind another.
///
/// Of edits at one place, the earlier in the list comes first. What is replaced takes edits inside
/// along.
pub fn apply(unit: &Unit, expanded: &Expanded, edits: &[Edit]) -> String {
    let changes = changes(expanded, edits);
    let mut writer = Writer {
        unit,
        texts: vec![HashMap::new(); unit.inclusions.len()],
        with_headers: unit.includes_itself(),
        out: String::new(),
    };
    let mut of_changes: Vec<usize> =
        changes.keys().map(|token| expanded.tokens[*token].group).collect();
    of_changes.dedup();
    let mut is_written_out = false;
    for group in of_changes {
        is_written_out |= writer.group(expanded, group, &changes);
    }
    // Numbers that were counted here would be counted once more from the beginning.
    let counting = (0..expanded.groups.len()).filter(|group| writer.counts(expanded, *group));
    for group in counting.filter(|_| is_written_out).collect::<Vec<_>>() {
        writer.write_out(expanded, group, &changes);
    }
    writer.inclusion(0);
    writer.out
}

/// Edits by token.
fn changes(expanded: &Expanded, edits: &[Edit]) -> BTreeMap<usize, Change> {
    let tokens = &expanded.tokens;
    let beginning = |offset: usize| tokens.partition_point(|token| token.range.start < offset);
    let mut changes: BTreeMap<usize, Change> = BTreeMap::new();
    if tokens.is_empty() {
        return changes;
    }
    for edit in edits {
        let Edit::Replace(range, text) = edit else { continue };
        let replaced = beginning(range.start)..beginning(range.end);
        for token in replaced.clone() {
            let text = if token == replaced.start { text.as_str() } else { "" };
            changes.entry(token).or_default().instead = Some(text.to_owned());
        }
    }
    for edit in edits {
        match edit {
            Edit::Before(offset, text) => {
                let token = beginning(*offset).min(tokens.len() - 1);
                changes.entry(token).or_default().before.push_str(text);
            }
            Edit::After(offset, text) => {
                let token = beginning(*offset).saturating_sub(1);
                changes.entry(token).or_default().after.push_str(text);
            }
            Edit::Replace(..) => {}
        }
    }
    changes
}

struct Writer<'a> {
    unit: &'a Unit,
    /// Per inclusion: what stands in the place of pieces.
    texts: Vec<HashMap<usize, Change>>,
    with_headers: bool,
    out: String,
}

impl Writer<'_> {
    /// Brings the changes of a group's tokens to its pieces. Whether a macro's use was written out.
    fn group(
        &mut self,
        expanded: &Expanded,
        number: usize,
        changes: &BTreeMap<usize, Change>,
    ) -> bool {
        let group = &expanded.groups[number];
        self.with_headers |= group.inclusion != 0;
        let texts = &mut self.texts[group.inclusion];
        let of_group = changes.range(group.tokens.clone());
        if group.is_own {
            texts.extend(of_group.map(|(at, change)| (expanded.tokens[*at].piece, change.clone())));
            return false;
        }
        let (first, last) = (group.tokens.start, group.tokens.end - 1);
        let mut of_group = of_group;
        let is_around = of_group.all(|(at, change)| {
            change.instead.is_none()
                && (*at == first || change.before.is_empty())
                && (*at == last || change.after.is_empty())
        });
        if !is_around {
            self.write_out(expanded, number, changes);
            return true;
        }
        let file = self.unit.file_of(group.inclusion);
        let is_token = |piece: &usize| file.pieces[*piece].kind != Kind::Directive;
        let last_piece = group.pieces.clone().rfind(is_token).unwrap_or(group.pieces.start);
        let before = changes.get(&first).map(|change| change.before.clone());
        let after = changes.get(&last).map(|change| change.after.clone());
        texts.entry(group.pieces.start).or_default().before = before.unwrap_or_default();
        texts.entry(last_piece).or_default().after = after.unwrap_or_default();
        false
    }

    /// Whether a group is a use of a macro that makes numbers that are other ones each time.
    fn counts(&self, expanded: &Expanded, number: usize) -> bool {
        let group = &expanded.groups[number];
        let file = self.unit.file_of(group.inclusion);
        let counts = |piece| self.unit.macros.get(&file.spelling(piece)).is_some_and(|m| m.counts);
        !group.is_own && group.pieces.clone().any(counts)
    }

    /// Puts what a macro made in the place of its use.
    fn write_out(&mut self, expanded: &Expanded, number: usize, changes: &BTreeMap<usize, Change>) {
        let group = &expanded.groups[number];
        self.with_headers |= group.inclusion != 0;
        let whole = self.whole(expanded, number, changes);
        let file = self.unit.file_of(group.inclusion);
        let is_token = |piece: &usize| file.pieces[*piece].kind != Kind::Directive;
        let removed = || Change { instead: Some(String::new()), ..Change::default() };
        let texts = &mut self.texts[group.inclusion];
        texts.extend(group.pieces.clone().filter(is_token).map(|piece| (piece, removed())));
        texts.entry(group.pieces.start).or_default().instead = Some(whole);
    }

    /// A use of a macro written out, with its changes, on one line.
    fn whole(
        &self,
        expanded: &Expanded,
        number: usize,
        changes: &BTreeMap<usize, Change>,
    ) -> String {
        let group = &expanded.groups[number];
        let pragmas = |at: usize| {
            let is_here = move |p: &&Pragma| p.group == number && p.token == at;
            let of_all = expanded.pragmas.iter().filter(is_here);
            of_all.map(|p| format!("_Pragma({}) ", quoted(&p.text))).collect::<String>()
        };
        let mut whole = String::new();
        let mut was_changed = false;
        for at in group.tokens.clone() {
            let token = &expanded.tokens[at];
            let start = at.checked_sub(1).map_or(0, |before| expanded.tokens[before].range.end);
            if at > group.tokens.start && start < token.range.start {
                whole.push(' ');
            }
            whole.push_str(&pragmas(at));
            let next = expanded.tokens.get(at + 1).map(|next| &expanded.text[next.range.clone()]);
            let own = self.protected(&expanded.text[token.range.clone()], next);
            match changes.get(&at) {
                Some(change) => change.write(&own, "", was_changed, &mut whole),
                None if was_changed => append(&mut whole, &own),
                None => whole.push_str(&own),
            }
            was_changed = changes.get(&at).is_some_and(Change::ends_changed);
        }
        // One that stands behind may be the line of the user's that follows.
        let file = self.unit.file_of(group.inclusion);
        let next = file.pieces.get(group.pieces.end);
        if next.is_none_or(|piece| piece.kind != Kind::Directive) {
            whole.push_str(&pragmas(group.tokens.end));
        }
        whole
    }

    /// A token that was made by a macro such that it is not expanded once more.
    fn protected(&self, token: &str, next: Option<&str>) -> String {
        let again = self.unit.macros.get(token).is_some_and(|made| made.is_function);
        match again && next == Some("(") && !KEYWORDS.contains(&token) {
            true => format!("({token})"),
            false => token.to_owned(),
        }
    }

    /// Writes a file.
    fn inclusion(&mut self, inclusion: usize) {
        let file = self.unit.file_of(inclusion);
        let texts = std::mem::take(&mut self.texts[inclusion]);
        let (mut was_removed, mut was_changed) = (false, false);
        for (at, piece) in file.pieces.iter().enumerate() {
            let gap = file.gap(at).trim_start_matches('\u{feff}');
            let change = texts.get(&at);
            let removed = change.and_then(|change| change.instead.as_deref()) == Some("");
            let is_blank = gap.bytes().all(|octet| matches!(octet, b' ' | b'\t'));
            if !(removed && was_removed && is_blank) {
                self.out.push_str(gap);
            }
            was_removed = change.is_some_and(|change| change.instead.is_some());
            if piece.kind == Kind::Directive {
                self.directive(inclusion, at);
                continue;
            }
            let raw = file.raw(at);
            match change {
                Some(change) => change.write(raw, &splices(raw), was_changed, &mut self.out),
                None if was_changed => append(&mut self.out, raw),
                None => self.out.push_str(raw),
            }
            was_changed = change.is_some_and(Change::ends_changed);
        }
        self.out.push_str(file.gap(file.pieces.len()));
    }

    fn directive(&mut self, inclusion: usize, piece: usize) {
        let file = self.unit.file_of(inclusion);
        if !self.with_headers {
            self.out.push_str(file.raw(piece));
            return;
        }
        match directive_text(self.unit, inclusion, piece) {
            Directive::Text(text) => self.out.push_str(&text),
            Directive::Inclusion(included) => {
                let name = &self.unit.inclusions[included].name;
                self.out.push_str(&format!("#line 1 \"{name}\"\n"));
                self.inclusion(included);
                self.out.push_str(&self.unit.line_behind(inclusion, piece));
            }
        }
    }
}

/// Appends tokens such that they do not run into those before.
fn append(out: &mut String, text: &str) {
    if would_join(out, text) {
        out.push(' ');
    }
    out.push_str(text);
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The line ends that are spliced into a piece.
fn splices(raw: &str) -> String {
    let mut at = 0;
    let mut found = String::new();
    while at < raw.len() {
        let next = spliced(raw.as_bytes(), at);
        found.push_str(&raw[at..next]);
        at = next + raw[next..].chars().next().map_or(1, char::len_utf8);
    }
    found
}
