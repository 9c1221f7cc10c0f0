//! Processors: their tasks, and whether these meet their deadlines.

use super::words;
use crate::text::per_mille;
use onbeat_model::graph::Policy;
use onbeat_model::time::Span;
use onbeat_model::timing::{Schedule, ScheduledTask, TimingReport};
use serde::Serialize;

/// All of a processor.
const WHOLE_PPM: u64 = 1_000_000;

/// A processor in words.
#[derive(Debug, Serialize)]
pub(super) struct ScheduleView {
    /// The host, and which of its processors.
    pub(super) name: String,
    /// Utilisation and scaling.
    pub(super) summary: String,
    /// Whether all deadlines are met.
    pub(super) is_met: bool,
    /// Its tasks.
    pub(super) tasks: Vec<ScheduledView>,
}

/// A task in words.
#[derive(Debug, Serialize)]
pub(super) struct ScheduledView {
    /// Its name.
    pub(super) name: String,
    /// Its priority, EDF, or a dash; with a star if it is proposed.
    pub(super) priority: String,
    /// From release to release at least.
    pub(super) period: String,
    /// From release to deadline.
    pub(super) deadline: String,
    /// Its execution time.
    pub(super) wcet: String,
    /// From release to completion at most.
    pub(super) response: String,
    /// What is left of the deadline.
    pub(super) slack: String,
    /// Of so many jobs at most so many are late.
    pub(super) misses: String,
    /// Whether priority or processor are proposed.
    pub(super) is_proposed: bool,
    /// Whether the deadline is met.
    pub(super) is_met: bool,
    /// The response in per cent of the deadline, at most 100, if both are known.
    pub(super) share: Option<i64>,
}

/// Puts a processor into words. What is used is rounded up, what may be is rounded down.
pub(super) fn schedule_view(study: &TimingReport, schedule: &Schedule) -> ScheduleView {
    let host = study.graph.hosts.get(schedule.host).map(|host| host.name.as_str());
    let host = host.filter(|name| !name.is_empty()).unwrap_or("host");
    let is_met = schedule.tasks.iter().all(ScheduledTask::is_met);
    let is_full = schedule.utilisation_ppm.is_some_and(|ppm| ppm > WHOLE_PPM);
    let verdict = match (is_met, is_full) {
        (false, _) => "deadlines may be missed",
        (true, true) => "all deadlines are met, but there is more to do than fits",
        (true, false) => "all deadlines are met",
    };
    let scaling = match schedule.scaling_ppm {
        Some(ppm) => {
            format!("met up to {} of the execution times", per_mille(ppm / 1_000))
        }
        None => "met whatever the execution times".to_owned(),
    };
    let used = match schedule.utilisation_ppm {
        Some(ppm) => format!("{} used", per_mille(ppm.div_ceil(1_000))),
        None => "nobody knows how much is used".to_owned(),
    };
    ScheduleView {
        name: format!("{host}, processor {}", schedule.core),
        summary: format!("{verdict}; {used}; {scaling}"),
        is_met,
        tasks: schedule.tasks.iter().map(|task| scheduled(study, task)).collect(),
    }
}

fn scheduled(study: &TimingReport, task: &ScheduledTask) -> ScheduledView {
    let known = |span: Option<Span>| span.map_or("–".to_owned(), words::time);
    let star = if task.is_assigned { "*" } else { "" };
    let percent = |deadline: Span, response: Span| {
        let share = i128::from(response.as_ns()) * 100 / i128::from(deadline.as_ns().max(1));
        share.clamp(0, 100) as i64
    };
    let rank = match (task.priority, study.graph.tasks[task.task].policy) {
        (Some(priority), _) => priority.to_string(),
        (None, Policy::Edf) => "EDF".to_owned(),
        (None, _) => "–".to_owned(),
    };
    let misses = task.misses.iter().map(|(missed, of)| format!("{missed} of {of}"));
    ScheduledView {
        name: study.graph.tasks[task.task].name.clone(),
        priority: format!("{rank}{star}"),
        period: match task.period {
            Some(Span::ZERO) => "not known".to_owned(),
            period => known(period),
        },
        deadline: known(task.deadline),
        wcet: match task.wcet {
            Span::MAX => "no bound".to_owned(),
            wcet => words::time(wcet),
        },
        response: task.response.map_or("no bound".to_owned(), words::time),
        slack: known(task.slack),
        misses: misses.collect::<Vec<_>>().join(", "),
        is_proposed: task.is_assigned,
        is_met: task.is_met(),
        share: task.deadline.zip(task.slack).map(|(d, left)| percent(d, d - left)),
    }
}
