//! Walks what tasks did through the table: each event belongs to a visit of a node, and its time is
//! one that the table has for that visit.

use crate::loops::Loops;
use crate::table::{Document, Interval, Node, Row, Timing};
use crate::trace::Event;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::AddAssign;

/// What the table was worth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Times of the run that were held against the table.
    pub(crate) times: u64,
    /// Of them: the table has one instant; an interval; no bound.
    pub(crate) exact: u64,
    pub(crate) bounded: u64,
    pub(crate) unbounded: u64,
    /// Ends of intervals that a run came to: the first, the last.
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    /// Events beyond the table's end, and those for which several visits were possible.
    pub(crate) beyond: u64,
    pub(crate) ambiguous: u64,
    /// Rows to which control must come, and came.
    pub(crate) certain: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.times += other.times;
        self.exact += other.exact;
        self.bounded += other.bounded;
        self.unbounded += other.unbounded;
        self.lowest += other.lowest;
        self.highest += other.highest;
        self.beyond += other.beyond;
        self.ambiguous += other.ambiguous;
        self.certain += other.certain;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} times: {} exact, {} in an interval ({} at its begin, {} at its end), {} without a \
             bound; {} rows certain and visited; {} events beyond the table, {} ambiguous",
            self.times,
            self.exact,
            self.bounded,
            self.lowest,
            self.highest,
            self.unbounded,
            self.certain,
            self.beyond,
            self.ambiguous
        )
    }
}

/// A visit, and by how much it is later than its row: in a repetition of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    node: usize,
    rounds: Vec<u32>,
    row: usize,
    shift: i64,
}

/// One task's part of the table.
pub(crate) struct Walker<'a> {
    document: &'a Document,
    timing: &'a Timing,
    task: usize,
    loops: Loops,
    rows: HashMap<(usize, Vec<u32>), usize>,
    /// The first visit behind which the table does not continue, by its place among all.
    end: Option<Vec<u32>>,
    /// By head of a loop and the rounds of those around it: its last round.
    rounds: HashMap<(usize, Vec<u32>), u32>,
    pub(crate) figures: Figures,
    visited: BTreeSet<usize>,
    /// Whether control may have gone beyond the table's end.
    is_beyond: bool,
}

const fn contains(interval: &Interval, at: i64) -> bool {
    interval.lo <= at && (interval.hi.is_none() || matches!(interval.hi, Some(hi) if at <= hi))
}

fn is_seen(node: &Node) -> bool {
    matches!(node.kind.as_str(), "soft" | "firm" | "hard" | "read" | "write" | "start" | "end")
}

/// Whether an event is what a node shows when control comes to it.
fn shows(node: &Node, event: &Event) -> bool {
    let is_there = match event.event.as_str() {
        "reach" => matches!(node.kind.as_str(), "read" | "write"),
        "arrive" | "abort" => matches!(node.kind.as_str(), "soft" | "firm" | "hard"),
        word => return node.kind == word,
    };
    is_there && node.place == event.place
}

impl<'a> Walker<'a> {
    pub(crate) fn new(document: &'a Document, timing: &'a Timing, task: usize) -> Self {
        let mut loops = Loops::of(&document.tasks[task]);
        let is_behind = |row: &Row| row.rounds.len() > loops.heads(row.node).len();
        let behind = timing.of_task(task).filter(|(_, row)| is_behind(row));
        let behind: Vec<usize> = behind.map(|(_, row)| row.node).collect();
        loops.join(&document.tasks[task], &behind);
        let (mut rows, mut most) = (HashMap::new(), HashMap::new());
        for (index, row) in timing.of_task(task) {
            let old = rows.insert((row.node, row.rounds.clone()), index);
            assert!(old.is_none(), "two rows for one visit: {row:?}");
            for (depth, head) in loops.heads(row.node).iter().enumerate() {
                let most: &mut u32 = most.entry((*head, row.rounds[..depth].to_vec())).or_default();
                *most = (*most).max(row.rounds[depth]);
            }
        }
        let open = timing.open.iter().map(|row| &timing.rows[*row]).filter(|r| r.task == task);
        let end = open.map(|row| loops.key(row.node, &row.rounds)).min();
        Self {
            document,
            timing,
            task,
            loops,
            rows,
            end,
            rounds: most,
            figures: Figures::default(),
            visited: BTreeSet::new(),
            is_beyond: false,
        }
    }

    fn node(&self, node: usize) -> &'a Node {
        &self.document.tasks[self.task].nodes[node]
    }

    fn row(&self, visit: &Visit) -> &'a Row {
        &self.timing.rows[visit.row]
    }

    /// A visit that follows another one, which the table has, or has by its repetition.
    fn visit(&mut self, from: &Visit, node: usize, is_abort: bool) -> Option<Visit> {
        let key = (node, self.loops.follow(from.node, &from.rounds, node));
        if let Some(row) = self.rows.get(&key) {
            return Some(Visit { node, rounds: key.1, row: *row, shift: 0 });
        }
        if let Some(repeated) = self.repeated(node, &key.1) {
            return Some(repeated);
        }
        // What an abort interrupts is in the table before what it leads to, but not always linked.
        let is_open = match is_abort {
            true => self.end.as_ref().is_some_and(|end| self.loops.key(node, &key.1) > *end),
            false => self.timing.open.binary_search(&from.row).is_ok(),
        };
        if is_open {
            self.is_beyond = true;
            return None;
        }
        let rounds = self.standing(node, key.1)?;
        let row = *self.rows.get(&(node, rounds.clone()))?;
        Some(Visit { node, rounds, row, shift: 0 })
    }

    /// The begin. A task may be started where the table is not any more.
    fn start(&mut self) -> Option<Visit> {
        let (node, rounds) = (0, self.loops.first());
        let row = self.rows.get(&(node, rounds.clone())).copied();
        self.is_beyond |= row.is_none();
        Some(Visit { node, rounds, row: row?, shift: 0 })
    }

    /// The rounds whose rows stand for further rounds of a loop, in which nothing is new.
    fn standing(&self, node: usize, mut rounds: Vec<u32>) -> Option<Vec<u32>> {
        let mut is_changed = false;
        for (depth, head) in self.loops.heads(node).iter().enumerate() {
            let last = *self.rounds.get(&(*head, rounds[..depth].to_vec()))?;
            is_changed |= rounds[depth] > last;
            rounds[depth] = rounds[depth].min(last);
        }
        is_changed.then_some(rounds)
    }

    fn repeated(&self, node: usize, rounds: &[u32]) -> Option<Visit> {
        let head = *self.loops.heads(node).first()?;
        let last = *self.rounds.get(&(head, Vec::new()))?;
        let round = *rounds.first()?;
        let pattern = self.timing.pattern.as_ref().filter(|_| round > last)?;
        let (from, every) = pattern.tasks[self.task]?;
        let times = (round - last).div_ceil(every);
        let mut earlier = rounds.to_vec();
        earlier[0] = round.checked_sub(times * every).filter(|round| *round >= from)?;
        let row = *self.rows.get(&(node, earlier))?;
        Some(Visit {
            node,
            rounds: rounds.to_vec(),
            row,
            shift: pattern.shift_ns * i64::from(times),
        })
    }

    /// The visits of seen nodes that may come next, over those of which nothing is seen.
    fn following(&mut self, from: &[Visit], at: i64) -> BTreeSet<Visit> {
        let (seen, _) = self.closure(from, at);
        seen
    }

    /// The points to which an abort may lead, or the end of what delayed it. Who came to an end of
    /// a channel has not left it yet.
    fn aborted(&mut self, from: &[Visit], has_begun: bool, at: i64) -> BTreeSet<Visit> {
        let mut sources: BTreeSet<Visit> = from.iter().cloned().collect();
        let mut found = BTreeSet::new();
        if !has_begun {
            let (seen, unseen) = self.closure(from, at);
            found.clone_from(&seen);
            sources = seen.into_iter().chain(unseen).collect();
        }
        for visit in sources {
            if let Some(point) = self.node(visit.node).guard {
                found.extend(self.visit(&visit, point, true));
            }
        }
        found
    }

    /// Where control may come when visits are done: seen nodes, and those before them.
    fn closure(&mut self, from: &[Visit], at: i64) -> (BTreeSet<Visit>, BTreeSet<Visit>) {
        let (mut seen, mut unseen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = from.to_vec();
        while let Some(visit) = open.pop() {
            for next in &self.node(visit.node).next {
                let Some(visit) = self.visit(&visit, *next, false) else { continue };
                if self.row(&visit).arrival.lo + visit.shift > at {
                    continue;
                }
                if is_seen(self.node(*next)) {
                    seen.insert(visit);
                } else if unseen.insert(visit.clone()) {
                    open.push(visit);
                }
            }
        }
        (seen, unseen)
    }

    fn has_channel(&self, name: &str) -> bool {
        let program = &self.document.tasks[self.task].program;
        let of_program = format!("{program}.{name}");
        self.document.channels.iter().any(|c| c.name == name || c.name == of_program)
    }

    fn shown(&self, visit: &Visit) -> String {
        let node = self.node(visit.node);
        format!("{} {} at {} {:?}", visit.node, node.kind, node.place, visit.rounds)
    }

    /// Holds a time against the visits that it may belong to.
    fn hold(
        &mut self,
        visits: Vec<Visit>,
        is_release: bool,
        at: i64,
    ) -> Result<Vec<Visit>, String> {
        let of = |walker: &Self, visit: &Visit| {
            let row = walker.row(visit);
            let interval = if is_release { row.release } else { row.arrival };
            let hi = interval.hi.map(|hi| hi + visit.shift);
            Interval { lo: interval.lo + visit.shift, hi }
        };
        let kept: Vec<Visit> =
            visits.iter().filter(|v| contains(&of(self, v), at)).cloned().collect();
        let Some(first) = kept.first() else {
            let shown = |v: &Visit| format!("\n    {} {:?}", self.shown(v), of(self, v));
            return Err(visits.iter().map(shown).collect());
        };
        let interval = of(self, first);
        self.figures.times += 1;
        self.figures.ambiguous += u64::from(kept.len() > 1);
        match interval.hi {
            None => self.figures.unbounded += 1,
            Some(hi) if hi == interval.lo => self.figures.exact += 1,
            Some(hi) => {
                self.figures.bounded += 1;
                self.figures.lowest += u64::from(at == interval.lo);
                self.figures.highest += u64::from(at == hi);
            }
        }
        self.visited.extend(kept.iter().filter(|v| v.shift == 0).map(|v| v.row));
        Ok(kept)
    }
}

impl Walker<'_> {
    /// Walks what the task did; `end_ns` is the run's end.
    pub(crate) fn walk(&mut self, events: &[&Event], end_ns: i64) -> Result<(), String> {
        let mut now: Vec<Visit> = Vec::new();
        let mut has_begun = false;
        for (number, event) in events.iter().enumerate() {
            let at = event.time_ns;
            let is_release = match event.event.as_str() {
                "late" => continue,
                // An lvchannel's.
                "read" | "write" if !self.has_channel(&event.place) => continue,
                "release" | "skip" | "read" | "write" | "full" => true,
                _ => false,
            };
            let was = now.clone();
            let visits: Vec<Visit> = if is_release {
                now
            } else {
                let found = match event.event.as_str() {
                    "start" => self.start().into_iter().collect(),
                    "abort" => self.aborted(&now, has_begun, at),
                    _ => self.following(&now, at),
                };
                found.into_iter().filter(|v| shows(self.node(v.node), event)).collect()
            };
            now = match self.hold(visits, is_release, at) {
                Ok(kept) => kept,
                Err(_) if self.is_beyond => {
                    self.figures.beyond += (events.len() - number) as u64;
                    return Ok(());
                }
                Err(had) => {
                    let before = &events[number.saturating_sub(4)..=number];
                    let did = before.iter().map(|e| {
                        format!("\n    {} {} {} {}", e.time_ns, e.event, e.place, e.value_ns)
                    });
                    let did: String = did.collect();
                    let was: Vec<String> = was.iter().map(|v| self.shown(v)).collect();
                    return Err(format!("{did}\n  from {}, table:{had}", was.join(" or ")));
                }
            };
            has_begun = matches!(event.event.as_str(), "reach" | "arrive" | "abort");
        }
        self.all_certain(end_ns)
    }

    /// Whether control came wherever it must come.
    fn all_certain(&mut self, end_ns: i64) -> Result<(), String> {
        for (index, row) in self.timing.of_task(self.task) {
            let is_due = row.arrival.hi.is_some_and(|hi| hi < end_ns);
            if !row.is_certain || !is_due {
                continue;
            }
            let node = self.node(row.node);
            if !is_seen(node) {
                continue;
            }
            if !self.visited.contains(&index) {
                return Err(format!("nobody came to {} {}: {row:?}", node.kind, node.place));
            }
            self.figures.certain += 1;
        }
        Ok(())
    }
}
