//! Traces: as cases state them and as programs write them.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What a task did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) time_ns: i64,
    pub(crate) task: String,
    pub(crate) event: String,
    pub(crate) place: String,
    pub(crate) value_ns: i64,
}

/// Reads `TIME TASK EVENT, EVENT…` as `conformance/timedc/README.md` describes it.
pub(crate) fn expand(line: &str) -> Result<Vec<Event>, String> {
    let wrong = || format!("`{line}` states no events");
    let (times, rest) = line.split_once(' ').ok_or_else(wrong)?;
    let (task, events) = rest.trim().split_once(' ').ok_or_else(wrong)?;
    let mut expanded = Vec::new();
    for time_ns in instants(times).ok_or_else(wrong)? {
        for event in events.split(',') {
            let (count, event) = match event.trim().split_once('*') {
                Some((count, event)) => (count.parse().map_err(|_| wrong())?, event),
                None => (1, event.trim()),
            };
            let mut words = event.split_whitespace();
            let mut word = || words.next().unwrap_or_default();
            let (event, place) = (word().to_owned(), word().to_owned());
            let value_ns = match word() {
                "" => 0,
                span => nanoseconds(span).ok_or_else(wrong)?,
            };
            let event = Event { time_ns, task: task.to_owned(), event, place, value_ns };
            expanded.extend(std::iter::repeat_n(event, count));
        }
    }
    Ok(expanded)
}

/// `10ms`, or `10ms..50ms/10ms`: both ends and each 10 ms between.
fn instants(text: &str) -> Option<Vec<i64>> {
    let Some((first, rest)) = text.split_once("..") else { return Some(vec![nanoseconds(text)?]) };
    let (last, step) = rest.split_once('/')?;
    let (first, last, step) = (nanoseconds(first)?, nanoseconds(last)?, nanoseconds(step)?);
    assert!((last - first) % step == 0, "{text} does not end at its end");
    Some((0..=(last - first) / step).map(|n| first + n * step).collect())
}

/// A span with its unit; 0 needs none.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        "" if number == 0 => 1,
        _ => return None,
    };
    Some(number * unit)
}

/// Reads what a program wrote: `time_ns,task,event,place,value_ns`.
pub(crate) fn read(text: &str) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("time_ns")) {
        let fields: Vec<_> = line.split(',').collect();
        let &[time, task, event, place, value] = &fields[..] else {
            return Err(format!("`{line}` is no line of a trace"));
        };
        let number = |field: &str| field.parse().map_err(|_| format!("`{line}`: no number"));
        events.push(Event {
            time_ns: number(time)?,
            task: task.to_owned(),
            event: event.to_owned(),
            place: place.to_owned(),
            value_ns: if value.is_empty() { 0 } else { number(value)? },
        });
    }
    Ok(events)
}

/// The events of each task in their order. What happens at one instant in tasks that do not meet
/// has no order, nor have the events of a task that was started more than once.
fn by_task(events: &[Event]) -> BTreeMap<&str, Vec<&Event>> {
    let mut tasks: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in events {
        tasks.entry(&event.task).or_default().push(event);
    }
    for events in tasks.values_mut() {
        events.sort_by_key(|event| event.time_ns);
        if events.iter().filter(|event| event.event == "start").count() > 1 {
            events.sort();
        }
    }
    tasks
}

/// Whether two traces have the same events in the same order, and else the difference. What is
/// expected may leave out when control comes to channel ends: all of that, or nothing.
pub(crate) fn equal(expected: &[Event], actual: &[Event]) -> Result<(), String> {
    let is_reach = |event: &Event| event.event == "reach";
    let has_all = expected.iter().any(is_reach);
    let actual: Vec<_> = actual.iter().filter(|e| has_all || !is_reach(e)).cloned().collect();
    let (expected, actual) = (by_task(expected), by_task(&actual));
    if expected == actual {
        return Ok(());
    }
    let mut difference = String::new();
    let tasks: std::collections::BTreeSet<_> = expected.keys().chain(actual.keys()).collect();
    for task in tasks {
        let none = Vec::new();
        let (e, a) = (expected.get(*task).unwrap_or(&none), actual.get(*task).unwrap_or(&none));
        let Some(at) = (0..e.len().max(a.len())).find(|&at| e.get(at) != a.get(at)) else {
            continue;
        };
        let _ = writeln!(difference, "task {task}, event {}:", at + 1);
        for (name, events) in [("expected", e), ("came", a)] {
            let from = at.min(events.len());
            let to = (at + 6).min(events.len());
            let lines: Vec<_> = events[from..to].iter().map(|event| shown(event)).collect();
            let _ = writeln!(difference, "  {name}: {}", lines.join(", "));
        }
    }
    Err(difference)
}

fn shown(event: &Event) -> String {
    let Event { time_ns, event, place, value_ns, .. } = event;
    let value = if *value_ns == 0 { String::new() } else { format!(" {value_ns}ns") };
    format!("{}us {event} {place}{value}", *time_ns / 1_000)
}

/// Whether every task starts first, ends last, and leaves the points that it came to.
pub(crate) fn possible(events: &[Event]) -> Result<(), String> {
    for (task, events) in by_task(events) {
        if events.iter().filter(|event| event.event == "start").count() > 1 {
            continue;
        }
        let mut at: Option<&str> = None;
        for (n, event) in events.iter().enumerate() {
            let place = event.place.as_str();
            let fits = match event.event.as_str() {
                "start" => n == 0,
                "end" => at.is_none() && n + 1 == events.len(),
                "arrive" | "abort" => at.replace(place).is_none() && !place.is_empty(),
                "late" => at == Some(place),
                "release" | "skip" => at.take() == Some(place),
                "reach" | "write" | "read" | "full" => at.is_none() && !place.is_empty(),
                _ => false,
            };
            if !fits || (n == 0) != (event.event == "start") {
                return Err(format!("task {task}, event {}: {}", n + 1, shown(event)));
            }
        }
    }
    Ok(())
}
