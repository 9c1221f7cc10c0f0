//! Execution times of segments: lines `SRC,BCET,WCET,JITTER,ABORT,DST` in nanoseconds, as
//! `onbeat measure wcet` and other tools write them (`docs/timed-c.md`).
//!
//! Read liberally: a header line, blank lines, lines that begin with `#`, spaces around fields,
//! `JITTER` and `ABORT` left empty, and decimal fractions, which are rounded to the side that is
//! safe. A node may be a bare number, as tools write that number a task's nodes: 0 is the task's
//! start, n its n-th timing point in the order of the text. Programs know which that is.

use crate::time::Span;
use std::collections::HashMap;
use std::fmt;

/// The most rows of a file.
pub const ROWS_MAX: usize = 65_536;

/// The longest name of a node, in octets.
const NODE_MAX: usize = 1_024;

/// The header line.
pub const HEADER: &str = "SRC,BCET,WCET,JITTER,ABORT,DST";

/// Where a segment begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SegmentEnd {
    /// A place of a task: `task:start`, `task:end`, or a timing point, `task:line`.
    Named {
        /// The task's function.
        task: String,
        /// `start`, `end`, or the timing point as the trace has it: `16`, `16.2`, `loop.h:12`.
        place: String,
    },
    /// A node of the one task that the file is about: 0 its start, n its n-th timing point.
    Number(u32),
}

impl fmt::Display for SegmentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { task, place } => write!(f, "{task}:{place}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// What one segment takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentTimes {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Where the segment begins.
    pub source: SegmentEnd,
    /// In the best case.
    pub best: Span,
    /// In the worst case, not less.
    pub worst: Span,
    /// By how much the segment may begin late.
    pub release_jitter: Span,
    /// How long an abort of it takes.
    pub abort: Span,
    /// Where the segment ends.
    pub destination: SegmentEnd,
}

impl fmt::Display for SegmentTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [best, worst, jitter, abort] =
            [self.best, self.worst, self.release_jitter, self.abort].map(Span::as_ns);
        write!(f, "{},{best},{worst},{jitter},{abort},{}", self.source, self.destination)
    }
}

/// The file with these rows, header first.
pub fn write(rows: &[SegmentTimes]) -> String {
    let lines = rows.iter().map(|row| format!("{row}\n"));
    std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct InvalidRow {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// Reads a file; `file` is its name for errors.
///
/// # Errors
/// All that is wrong, in the order of the lines.
pub fn read(text: &str, file: &str) -> Result<Vec<SegmentTimes>, Vec<InvalidRow>> {
    let mut rows: Vec<SegmentTimes> = Vec::new();
    let mut errors = Vec::new();
    let mut seen: HashMap<(SegmentEnd, SegmentEnd), usize> = HashMap::new();
    let text = text.trim_start_matches('\u{feff}');
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut is_first = true;
    for (line, content) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
        let fields: Vec<&str> =
            content.splitn(7, ',').map(|f| f.trim().trim_matches('"')).collect();
        if std::mem::take(&mut is_first) && is_header(&fields) {
            continue;
        }
        let fail = |problem| InvalidRow { file: file.to_owned(), line, problem };
        if rows.len() + errors.len() == ROWS_MAX {
            errors.push(fail(format!("more than {ROWS_MAX} lines")));
            break;
        }
        let row = row(&fields, line).and_then(|row| {
            let pair = (row.source.clone(), row.destination.clone());
            match seen.insert(pair, line) {
                Some(first) => Err(format!(
                    "duplicate segment from {} to {}, first in line {first}",
                    row.source, row.destination
                )),
                None => Ok(row),
            }
        });
        match row {
            Ok(row) => rows.push(row),
            Err(problem) => errors.push(fail(problem)),
        }
    }
    if errors.is_empty() { Ok(rows) } else { Err(errors) }
}

fn is_header(fields: &[&str]) -> bool {
    fields.len() == 6
        && fields.iter().zip(HEADER.split(',')).all(|(f, h)| f.eq_ignore_ascii_case(h))
}

fn row(fields: &[&str], line: usize) -> Result<SegmentTimes, String> {
    let &[source, best, worst, jitter, abort, destination] = fields else {
        return Err(format!("six fields are needed: {HEADER}"));
    };
    let row = SegmentTimes {
        line,
        source: node(source)?,
        best: time("BCET", best, false)?,
        worst: time("WCET", worst, true)?,
        release_jitter: time("JITTER", if jitter.is_empty() { "0" } else { jitter }, true)?,
        abort: time("ABORT", if abort.is_empty() { "0" } else { abort }, true)?,
        destination: node(destination)?,
    };
    if row.best > row.worst {
        return Err(format!("BCET {best} is more than WCET {worst}"));
    }
    match (&row.source, &row.destination) {
        (SegmentEnd::Number(_), SegmentEnd::Number(_)) => {}
        (SegmentEnd::Named { task: a, place }, SegmentEnd::Named { task: b, place: end })
            if a == b =>
        {
            if place == "end" {
                return Err(format!("no segment begins at {source}"));
            }
            if end == "start" {
                return Err(format!("no segment ends at {destination}"));
            }
        }
        _ => return Err(format!("{source} and {destination} are not of one task")),
    }
    Ok(row)
}

fn node(text: &str) -> Result<SegmentEnd, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text
            .parse()
            .map(SegmentEnd::Number)
            .map_err(|_| format!("no task has a node {text}"));
    }
    let is_name = |task: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        !task.is_empty()
            && task.bytes().all(is_part)
            && !task.starts_with(|c: char| c.is_ascii_digit())
    };
    match text.split_once(':') {
        Some((task, place)) if is_name(task) && is_place(place) && text.len() <= NODE_MAX => {
            Ok(SegmentEnd::Named { task: task.to_owned(), place: place.to_owned() })
        }
        _ => Err(format!(
            "{:?} is not a node: task:line, task:start, task:end or a number",
            text.chars().take(80).collect::<String>()
        )),
    }
}

/// `start`, `end`, `16`, `16.2`, and the latter two with a file before them.
fn is_place(place: &str) -> bool {
    let line = match place.rsplit_once(':') {
        Some(("", _)) => return false,
        Some((_, line)) => line,
        None if place == "start" || place == "end" => return true,
        None => place,
    };
    let is_number = |n: &str| n.parse::<u32>().is_ok_and(|n| n > 0) && !n.starts_with('+');
    match line.split_once('.') {
        Some((line, which)) => is_number(line) && is_number(which),
        None => is_number(line),
    }
}

/// A time that is not negative; fractions of a nanosecond are rounded up or down.
fn time(name: &str, text: &str, up: bool) -> Result<Span, String> {
    let wrong = || {
        let text: String = text.chars().take(80).collect();
        format!("{name} {text:?} is not a number of nanoseconds")
    };
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let ns: i64 = whole.parse().map_err(|_| wrong())?;
    let more = i64::from(up && fraction.bytes().any(|b| b != b'0'));
    ns.checked_add(more).map(Span::from_ns).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(task: &str, place: &str) -> SegmentEnd {
        SegmentEnd::Named { task: task.to_owned(), place: place.to_owned() }
    }

    fn errors(text: &str) -> Vec<String> {
        read(text, "times.csv").unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_other_tools_write_is_read() {
        let text = "\u{feff}src, bcet, wcet, jitter, abort, dst\r\n\
                    # a comment\r\n\r\n\
                    sensor:start, 1.9 ,2.1,,,sensor:16\r\n\
                    sensor:16,10,20,3,4,sensor:loop.h:12.2\r\n";
        let rows = read(text, "times.csv").unwrap();
        assert_eq!(rows[0].source, named("sensor", "start"));
        assert_eq!((rows[0].best.as_ns(), rows[0].worst.as_ns()), (1, 3));
        assert_eq!((rows[0].line, rows[1].line), (4, 5));
        assert_eq!(rows[1].destination, named("sensor", "loop.h:12.2"));
        assert_eq!(
            write(&rows),
            "SRC,BCET,WCET,JITTER,ABORT,DST\n\
             sensor:start,1,3,0,0,sensor:16\n\
             sensor:16,10,20,3,4,sensor:loop.h:12.2\n"
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_file_and_line() {
        let text = "a:1,1,2,3,4\n\
                    a:1,3,2,0,0,a:2\n\
                    a:1,-1,2,0,0,a:2\n\
                    a:1,1,9223372036854775808,0,0,a:2\n\
                    a:1,1,2,0,0,b:2\n\
                    a:end,1,2,0,0,a:2\n\
                    a:1,1,2,0,0,a:start\n\
                    a:0,1,2,0,0,a:1\n\
                    1,1,2,0,0,a:1\n\
                    a:3,1,2,0,0,a:4\n\
                    a:3,1,2,0,0,a:4\n\
                    a:3,1,2,0,0,a:4,5\n";
        let node = "is not a node: task:line, task:start, task:end or a number";
        assert_eq!(
            errors(text),
            [
                "times.csv:1: six fields are needed: SRC,BCET,WCET,JITTER,ABORT,DST".to_owned(),
                "times.csv:2: BCET 3 is more than WCET 2".to_owned(),
                "times.csv:3: BCET \"-1\" is not a number of nanoseconds".to_owned(),
                "times.csv:4: WCET \"9223372036854775808\" is not a number of nanoseconds"
                    .to_owned(),
                "times.csv:5: a:1 and b:2 are not of one task".to_owned(),
                "times.csv:6: no segment begins at a:end".to_owned(),
                "times.csv:7: no segment ends at a:start".to_owned(),
                format!("times.csv:8: \"a:0\" {node}"),
                "times.csv:9: 1 and a:1 are not of one task".to_owned(),
                "times.csv:11: duplicate segment from a:3 to a:4, first in line 10".to_owned(),
                "times.csv:12: six fields are needed: SRC,BCET,WCET,JITTER,ABORT,DST".to_owned(),
            ]
        );
    }

    #[test]
    fn more_lines_than_the_limit_are_one_error() {
        let text = "a:1,1,2,0,0,a:2\n".repeat(ROWS_MAX + 5);
        let errors = read(&text, "t").unwrap_err();
        assert!(errors.last().unwrap().problem.starts_with("more than"));
        assert_eq!(errors.len(), ROWS_MAX);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic_and_what_it_reads_it_reads_again(
            text in "([a-z0-9:., \"#\n-]|SRC|a:1,1,2,3,4,a:2\n){0,60}",
        ) {
            if let Ok(rows) = read(&text, "t") {
                let again = read(&write(&rows), "t").unwrap();
                let plain = |rows: &[SegmentTimes]| -> Vec<_> {
                    rows.iter().map(ToString::to_string).collect()
                };
                prop_assert_eq!(plain(&again), plain(&rows));
            }
        }
    }
}
