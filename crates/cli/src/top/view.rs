//! What is on the screen: a state machine of looks at the programs, keys and sizes, without a
//! terminal. All names in it may be anybody's.

use super::SortBy;
use super::row::{END, HEADINGS, NAMES, NUMBERS, Row, STEPS, Step, cleaned, rate};
use crate::stat::{
    EndKey, NONE, Since, add_rates, counters, endpoint, keys, left_out, rejected_by_reason,
};
use onbeat::shared_log::Counters;
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_run::inspect::{Seen, Skipped};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lines above the ends, and the fewest lines of a screen with a legend.
const HEAD: usize = 3;
const LEGEND_FROM: usize = 8;
const LEGEND: &str =
    "q quit  s sort  space pause  r reset totals  arrows PgUp PgDn  - none/unknown";

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Quit,
    NextOrder,
    Pause,
    Reset,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    /// The headings of the table.
    Heading,
    /// An end at which something goes wrong now.
    Bold,
}

/// A line of the screen, without anything that moves its cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenLine {
    pub(super) text: String,
    pub(super) style: Style,
}

/// The widths of the columns that are shown, in their order, and the spaces between them.
struct Layout {
    columns: Vec<(usize, usize)>,
    gap: usize,
}

impl Layout {
    fn width(&self) -> usize {
        let gaps = self.gap * self.columns.len().saturating_sub(1);
        self.columns.iter().map(|(_, width)| width).sum::<usize>() + gaps
    }

    /// Makes the table as narrow as is asked for, if it can be.
    fn fit(mut self, width: usize) -> Self {
        for step in STEPS {
            if self.width() <= width {
                break;
            }
            match step {
                Step::Gap => self.gap = 1,
                Step::Drop(dropped) => self.columns.retain(|(column, _)| *column != dropped),
                Step::Initial => self.narrow(END, |_| 1),
                Step::Shorten(least) => {
                    for name in NAMES {
                        let over = self.width().saturating_sub(width);
                        self.narrow(name, |wide| wide.saturating_sub(over).max(least).min(wide));
                    }
                }
            }
        }
        self
    }

    fn narrow(&mut self, narrowed: usize, to: impl Fn(usize) -> usize) {
        for (_, width) in self.columns.iter_mut().filter(|(column, _)| *column == narrowed) {
            *width = to(*width);
        }
    }

    fn line(&self, cells: &[String; HEADINGS.len()]) -> String {
        let gap = " ".repeat(self.gap);
        let cells = self.columns.iter().map(|(column, width)| {
            let text = match *column {
                END if *width == 1 => cells[END][..1].to_uppercase(),
                column => shortened(&cells[column], *width),
            };
            let fill = " ".repeat(width.saturating_sub(text.width()));
            let is_number = *column >= NUMBERS || *column == 1;
            if is_number { format!("{fill}{text}") } else { format!("{text}{fill}") }
        });
        cells.collect::<Vec<_>>().join(&gap).trim_end().to_owned()
    }
}

/// A text in at most so many columns of a terminal.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut short, mut left) = (String::new(), width.saturating_sub(1));
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        short.push(c);
    }
    if width > 0 {
        short.push('…');
    }
    short
}

/// Takes one count of all.
type OneCount = fn(&Counters) -> u64;

/// The state of the view.
pub(super) struct Top {
    every: Span,
    sort: SortBy,
    me: u32,
    /// Columns and lines; without a limit where there is no terminal.
    size: Option<(usize, usize)>,
    is_paused: bool,
    is_reset: bool,
    /// The first end on the screen.
    first: usize,
    last: HashMap<EndKey, Counters>,
    /// What ends had counted when the totals were reset.
    zero: HashMap<EndKey, Counters>,
    elapsed: Option<Span>,
    rows: Vec<Row>,
    cells: Vec<[String; HEADINGS.len()]>,
    skipped: Vec<Skipped>,
}

impl Top {
    /// A view that has seen nothing. Each `every` it is told what there is; `me` is its user.
    pub(super) fn new(every: Span, sort: SortBy, me: u32) -> Self {
        Self {
            every,
            sort,
            me,
            size: None,
            is_paused: false,
            is_reset: false,
            first: 0,
            last: HashMap::new(),
            zero: HashMap::new(),
            elapsed: None,
            rows: Vec::new(),
            cells: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Takes what there is now, so long after what there was before.
    pub(super) fn update(&mut self, elapsed: Option<Span>, seen: Seen) {
        let now = counters(&seen.ends);
        let last = std::mem::replace(&mut self.last, now);
        let since = Since { elapsed: elapsed.unwrap_or(Span::ZERO), ends: &last };
        self.zero.retain(|key, _| self.last.contains_key(key));
        let keys = keys(&seen.ends);
        let rows = seen.ends.into_iter().zip(keys).map(|(end, key)| {
            let growth = since.growth(&key, &end.counters);
            if growth.is_none() {
                self.zero.remove(&key); // it counts from 0 again
            }
            Row { key, total: end.counters, end, growth, elapsed }
        });
        self.rows = rows.collect();
        (self.elapsed, self.skipped) = (elapsed, seen.skipped);
        self.recount();
    }

    /// Counts the totals, and puts the ends in order.
    fn recount(&mut self) {
        for row in &mut self.rows {
            let zero = self.zero.get(&row.key);
            let total = zero.and_then(|zero| row.end.counters.since(zero));
            row.total = total.unwrap_or(row.end.counters);
        }
        self.rows.sort_by(|a, b| a.compare(b, self.sort));
        self.cells = self.rows.iter().map(|row| row.cells(self.me)).collect();
        self.scroll_to(self.first);
    }

    /// Takes the size of the terminal.
    pub(super) fn resize(&mut self, columns: usize, lines: usize) {
        self.size = Some((columns, lines));
        self.scroll_to(self.first);
    }

    /// Whether nothing is to be looked at for now.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Does what a key asks for; false if that is to end.
    pub(super) fn press(&mut self, wanted: Wanted) -> bool {
        let page = self.body().max(1);
        match wanted {
            Wanted::Quit => return false,
            Wanted::NextOrder => {
                (self.sort, self.first) = (self.sort.next(), 0);
                self.recount();
            }
            Wanted::Pause => self.is_paused = !self.is_paused,
            Wanted::Reset => {
                (self.zero, self.is_reset) = (self.last.clone(), true);
                self.recount();
            }
            Wanted::Up => self.scroll_to(self.first.saturating_sub(1)),
            Wanted::Down => self.scroll_to(self.first.saturating_add(1)),
            Wanted::PageUp => self.scroll_to(self.first.saturating_sub(page)),
            Wanted::PageDown => self.scroll_to(self.first.saturating_add(page)),
            Wanted::Home => self.scroll_to(0),
            Wanted::End => self.scroll_to(usize::MAX),
        }
        true
    }

    /// How many ends the screen has room for.
    fn body(&self) -> usize {
        let Some((_, lines)) = self.size else { return usize::MAX };
        let notes = usize::from(!self.skipped.is_empty());
        lines.saturating_sub(HEAD + notes + usize::from(lines >= LEGEND_FROM))
    }

    fn scroll_to(&mut self, first: usize) {
        self.first = first.min(self.rows.len().saturating_sub(self.body()));
    }

    /// The screen, at most as large as the terminal.
    pub(super) fn lines(&self) -> Vec<ScreenLine> {
        let (columns, most) = self.size.unwrap_or((usize::MAX, usize::MAX));
        let plain = |text: String| ScreenLine { text, style: Style::Plain };
        let layout = self.layout(columns);
        let mut lines = vec![plain(self.title(HEADINGS.len() - layout.columns.len()))];
        lines.push(plain(self.sums()));
        lines.extend(self.note().map(plain));
        if self.rows.is_empty() {
            lines.push(plain(NONE.to_owned()));
        } else {
            let text = layout.line(&HEADINGS.map(str::to_owned));
            lines.push(ScreenLine { text, style: Style::Heading });
        }
        let shown = self.rows.iter().zip(&self.cells).skip(self.first).take(self.body());
        lines.extend(shown.map(|(row, cells)| {
            let style = if row.has_problem() { Style::Bold } else { Style::Plain };
            ScreenLine { text: layout.line(cells), style }
        }));
        if self.size.is_some() && most >= LEGEND_FROM {
            lines.resize(most - 1, plain(String::new()));
            lines.push(plain(LEGEND.to_owned()));
        }
        lines.truncate(most);
        for line in &mut lines {
            line.text = shortened(&line.text, columns);
        }
        lines
    }

    /// The same as a text.
    pub(super) fn table(&self) -> String {
        self.lines().into_iter().map(|line| line.text + "\n").collect()
    }

    fn layout(&self, width: usize) -> Layout {
        let widths = HEADINGS.iter().enumerate().map(|(column, heading)| {
            let cells = self.cells.iter().map(|cells| cells[column].width());
            (column, cells.fold(heading.width(), usize::max))
        });
        Layout { columns: widths.collect(), gap: 2 }.fit(width)
    }

    fn title(&self, hidden: usize) -> String {
        let programs: BTreeSet<u32> = self.rows.iter().map(|row| row.end.pid).collect();
        let counted = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let mut title = format!(
            "onbeat top{}: {} of {}, by {}, every {}",
            if self.is_paused { " (paused)" } else { "" },
            counted(self.rows.len(), "endpoint"),
            counted(programs.len(), "program"),
            self.sort.name(),
            self.every,
        );
        if self.is_reset {
            title += ", totals since reset";
        }
        let last = self.rows.len().min(self.first.saturating_add(self.body()));
        if last - self.first < self.rows.len() {
            title += &format!(", rows {} to {last}", self.first + 1);
        }
        if hidden > 0 {
            title += &format!(", {} hidden", counted(hidden, "column"));
        }
        title
    }

    /// What all ends have in a second.
    fn sums(&self) -> String {
        let sum = |of: OneCount, talk: bool| {
            let ends = self.rows.iter().filter(|row| row.talks() == talk);
            let growths = ends.filter_map(|row| row.growth.as_ref());
            let sum = growths.map(of).fold(0, u64::saturating_add);
            self.elapsed.map_or("-".to_owned(), |elapsed| rate(sum, elapsed))
        };
        let (talker, listener) = (Role::Talker, Role::Listener);
        let sums: [(_, OneCount, _); 6] = [
            ("sent", |c| c.sent, talker),
            ("received", |c| c.received, listener),
            ("lost", |c| c.lost, listener),
            ("late", |c| c.late, listener),
            ("rejected", Counters::rejected_in_all, listener),
            ("held", |c| c.rate_exceeded, talker),
        ];
        let sums = sums.map(|(name, of, at)| format!("{name} {}", sum(of, at == talker)));
        format!("per second: {}", sums.join("  "))
    }

    /// What was not looked at.
    fn note(&self) -> Option<String> {
        let first = self.skipped.first()?;
        let more = match self.skipped.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Some(format!("not shown: user {}: {}{more}", first.uid, cleaned(&first.why)))
    }

    /// What happened in the interval, which was so long, for machines.
    pub(super) fn json(&self, elapsed: Span) -> String {
        let ends: Vec<Value> = self.rows.iter().map(|row| as_json(row, elapsed)).collect();
        json!({
            "format": "onbeat-top",
            "version": 1,
            "elapsed_ns": elapsed.as_ns(),
            "endpoints": ends,
            "skipped": left_out(&self.skipped),
        })
        .to_string()
    }
}

fn as_json(row: &Row, elapsed: Span) -> Value {
    let mut value = endpoint(&row.end);
    add_rates(&mut value, row.growth, elapsed);
    value["latency_mean_ns"] = json!(row.mean_latency().map(Span::as_ns));
    value["silent"] = json!(row.growth.map(|_| row.is_silent()));
    value["in_interval"] = json!(row.growth.map(|growth| json!({
        "sent": growth.sent,
        "received": growth.received,
        "lost": growth.lost,
        "late": growth.late,
        "expired": growth.expired,
        "duplicate": growth.duplicate,
        "rejected": rejected_by_reason(&growth),
        "rate_exceeded": growth.rate_exceeded,
        "unrecorded": growth.unrecorded,
        "breaks": growth.breaks,
    })));
    value
}
