//! TOML text to the tables of a task model, and their steps one by one, so that one wrong step
//! hides no other.

use super::{limits, raw};
use crate::parse::{Entry, document, elements, many, recover, table, wrong_shape};
use crate::{Sink, codes, origin};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tables.
pub(super) struct Tables {
    pub(super) head: Entry<raw::File>,
    pub(super) hosts: Vec<Entry<raw::Host>>,
    pub(super) channels: Vec<Entry<raw::Channel>>,
    pub(super) tasks: Vec<Task>,
    pub(super) chains: Vec<Entry<raw::Chain>>,
}

/// A task.
pub(super) struct Task {
    pub(super) entry: Entry<raw::Task>,
    /// None if there are none, or they are no list, which has been reported.
    pub(super) steps: Option<Steps>,
}

/// A list of steps.
pub(super) struct Steps {
    pub(super) list: Vec<Step>,
    pub(super) at: Origin,
}

/// One step, and the steps in it.
pub(super) struct Step {
    pub(super) entry: Entry<raw::Step>,
    pub(super) steps: Option<Steps>,
    pub(super) either: Option<(Vec<Steps>, Origin)>,
    pub(super) critical: Option<Steps>,
}

/// Nothing if the text is no TOML, or of another format version.
pub(super) fn parse(text: &str, sink: &mut Sink) -> Option<Tables> {
    let mut root = document(text, sink)?;
    let hosts = many(&mut root, "host", limits::HOSTS, sink);
    let channels = many(&mut root, "channel", limits::CHANNELS, sink);
    let chains = many(&mut root, "chain", limits::CHAINS, sink);
    let mut reader = Reader { left: limits::STEPS, sink };
    let tasks = match elements(&mut root, "task", limits::TASKS, reader.sink) {
        Ok(list) => list.into_iter().map(|task| reader.task(task)).collect(),
        Err(at) => vec![Task { entry: Entry::hopeless(at), steps: None }],
    };
    let head = recover(root, 0..0, sink);
    Some(Tables { head, hosts, channels, tasks, chains })
}

struct Reader<'a> {
    /// How many steps may still come.
    left: usize,
    sink: &'a mut Sink,
}

impl Reader<'_> {
    fn task(&mut self, mut value: Spanned<DeValue<'_>>) -> Task {
        let steps = remove(&mut value, "steps");
        let mut entry = table("task", "[[task]]", value, self.sink);
        let steps = steps.and_then(|steps| self.steps("steps", steps, &mut entry));
        Task { entry, steps }
    }

    /// The list of steps that is a key's value in a table.
    fn steps<R>(
        &mut self,
        key: &str,
        value: Spanned<DeValue<'_>>,
        entry: &mut Entry<R>,
    ) -> Option<Steps> {
        let span = value.span();
        entry.breaks(key);
        let DeValue::Array(array) = value.into_inner() else {
            wrong_shape(key, "a list of steps, [{ … }, { … }]", span, self.sink);
            return None;
        };
        let at = origin(0, span);
        if array.len() > self.left {
            if self.left > 0 {
                self.left = 0;
                let message = format!("there are more than {} steps", limits::STEPS);
                let help = "write a loop instead of repeated steps";
                let many = Diagnostic::error(codes::TOO_MANY, message, at, "these are too many");
                self.sink.push(many.help(help));
            }
            return None;
        }
        self.left -= array.len();
        let list = array.into_iter().map(|step| self.step(step)).collect();
        Some(Steps { list, at })
    }

    fn step(&mut self, mut value: Spanned<DeValue<'_>>) -> Step {
        let [steps, critical, either] =
            ["steps", "critical", "either"].map(|key| remove(&mut value, key));
        let mut entry = table("a step", "a table, { … }", value, self.sink);
        let steps = steps.and_then(|value| self.steps("steps", value, &mut entry));
        let critical = critical.and_then(|value| self.steps("critical", value, &mut entry));
        let either = either.and_then(|value| self.either(value, &mut entry));
        Step { entry, steps, either, critical }
    }

    fn either(
        &mut self,
        value: Spanned<DeValue<'_>>,
        entry: &mut Entry<raw::Step>,
    ) -> Option<(Vec<Steps>, Origin)> {
        let span = value.span();
        entry.breaks("either");
        let DeValue::Array(array) = value.into_inner() else {
            wrong_shape("either", "a list of lists of steps, [[…], […]]", span, self.sink);
            return None;
        };
        let ways: Vec<_> = array.into_iter().map(|way| self.steps("either", way, entry)).collect();
        Some((ways.into_iter().collect::<Option<_>>()?, origin(0, span)))
    }
}

/// Takes a key out of what should be a table.
fn remove<'t>(value: &mut Spanned<DeValue<'t>>, key: &str) -> Option<Spanned<DeValue<'t>>> {
    match value.get_mut() {
        DeValue::Table(table) => DeTable::remove(table, key),
        _ => None,
    }
}
