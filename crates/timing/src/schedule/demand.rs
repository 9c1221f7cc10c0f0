//! The demand of a graph's tasks on their processors: how often, how much, until when.

use super::activation::{Activation, Links, Source};
use super::extraction::{Extraction, JobSegment, UNBOUNDED, longest};
use super::load::{Load, Section, ns, span};
use onbeat_model::graph::{Graph, Interval, NodeKind, PointKind, Policy, Task, TaskNode};
use onbeat_model::time::Span;
use std::collections::BTreeSet;

/// The demand of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// Its jobs.
    pub(super) releases: Releases,
    /// How often a job may suspend itself.
    pub(super) suspensions: u32,
    /// By how much a release may be late.
    pub(super) jitter: i128,
    /// The jitter of suspensions: by how much more jobs may come late because they, or what they
    /// depend upon, wait.
    pub(super) suspension_jitter: i128,
    /// Whether a job is over before the next one is released.
    pub(super) is_thread: bool,
    /// How often a job locks something, at most.
    pub(super) locks: i128,
    sections: Vec<(Vec<usize>, i128)>,
    /// Whether it is released strictly every period and aborted whenever it is late.
    pub(super) is_firm: bool,
    /// Whether its first job begins with the system, and nothing wakes it up.
    is_first: bool,
}

/// A job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) work: i128,
    /// Until the next one, at least.
    pub(super) gap: i128,
    pub(super) deadline: Option<i64>,
    /// The latest deadline, if it stands for jobs with several.
    pub(super) latest: Option<i64>,
}

/// When jobs come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Releases {
    /// Once: all that a task ever does.
    Once(Job),
    /// Some once, then these, if there are any, in this order, again and again.
    Cycle(Vec<Job>, Vec<Job>),
    /// Any of them, never sooner and never more.
    Apart(Job),
}

impl Default for Releases {
    fn default() -> Self {
        Self::Once(Job::default())
    }
}

/// All tasks of a graph, with their job segments and what activates them.
pub(super) struct Tasks<'a> {
    pub(super) graph: &'a Graph,
    pub(super) extractions: Vec<Extraction<'a>>,
    /// Of each task.
    pub(super) job_segments: Vec<Vec<JobSegment>>,
    /// What releases each task that messages release, where that is known.
    pub(super) activations: Vec<Option<Activation>>,
    /// These, each behind those whose messages release it.
    pub(super) order: Vec<usize>,
    pub(super) links: Links,
    /// What writes each channel, where that is known.
    pub(super) sources: Vec<Option<Source>>,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let extractions: Vec<Extraction> =
            graph.tasks.iter().map(|task| Extraction::new(graph, task)).collect();
        let job_segments = extractions.iter().map(Extraction::job_segments).collect();
        let activations = vec![None; extractions.len()];
        let sources = vec![None; graph.channels.len()];
        let (order, links) = (Vec::new(), Links::new(graph));
        let mut tasks =
            Self { graph, extractions, job_segments, activations, order, links, sources };
        tasks.link();
        tasks
    }

    /// The demand of each task, if from the nominal release of its jobs to their ends takes so long
    /// at most, or has no bound.
    pub(super) fn demands(&self, ends: &[Option<i128>]) -> Vec<Demand> {
        let jitters = self.jitters(ends);
        (0..self.extractions.len()).map(|task| self.demand(task, ends, jitters[task])).collect()
    }

    fn demand(&self, index: usize, ends: &[Option<i128>], jitter: i128) -> Demand {
        let (task, extraction) = (&self.graph.tasks[index], &self.extractions[index]);
        let wakeup = self.graph.hosts[task.host].wakeup.hi.map_or(UNBOUNDED, ns);
        let (job_segments, sections) = (&self.job_segments[index], extraction.sections());
        let late = task.segments.iter().map(|s| s.jitter.hi.map_or(UNBOUNDED, ns));
        let late = wakeup.saturating_add(late.max().unwrap_or(0)).min(UNBOUNDED);
        let is_first = task.is_first;
        let mut demand = Demand { jitter: late, is_thread: true, is_first, ..Demand::default() };
        demand.sections = sections;
        if extraction.is_lost() {
            demand.releases = Releases::Apart(Job { work: UNBOUNDED, gap: 1, ..Job::default() });
            return demand;
        }
        let jobs = Jobs::new(extraction, job_segments);
        if let Some(mut job) = jobs.once() {
            job.gap = task.separation.map_or(0, ns);
            demand.suspensions = jobs.suspensions();
            demand.releases = match jobs.phases(is_edf(task), true) {
                (before, cycle) if cycle.is_empty() && before.len() > 1 => {
                    demand.is_thread = is_thread(task, demand.sections.is_empty());
                    Releases::Cycle(before, cycle)
                }
                _ => Releases::Once(job),
            };
        } else if jobs.are_timed() {
            self.timed(task, &jobs, &mut demand);
        } else {
            self.activated(index, ends, jitter, &mut demand);
        }
        let locks = extraction.counts(|kind| matches!(kind, NodeKind::Lock(_)));
        let locks = locks.iter().map(|job_segment| job_segment.amount).max().unwrap_or(0);
        demand.locks = locks.saturating_mul(i128::from(demand.suspensions) + 1).min(UNBOUNDED);
        let again = match &mut demand.releases {
            Releases::Apart(job) => Some(job),
            Releases::Cycle(_, cycle) if cycle.len() == 1 => cycle.first_mut(),
            Releases::Cycle(..) | Releases::Once(_) => None,
        };
        let again = again.map(|job| {
            job.gap = job.gap.max(task.separation.map_or(0, ns));
            *job
        });
        if let (Some(job), true) = (again, demand.is_thread && demand.suspensions > 0) {
            demand.suspension_jitter = (job.gap - job.work).max(0);
        }
        demand
    }

    /// Of a task that comes to a timing point again and again.
    fn timed(&self, task: &Task, jobs: &Jobs<'_, '_>, demand: &mut Demand) {
        demand.suspensions = jobs.suspensions();
        let job = jobs.apart();
        demand.releases = match jobs.phases(is_edf(task), demand.suspensions == 0) {
            (before, cycle) if before.is_empty() && cycle.len() == 1 => Releases::Apart(cycle[0]),
            (before, cycle) => Releases::Cycle(before, cycle),
        };
        demand.is_thread = is_thread(task, demand.sections.is_empty());
        let is_point = |node: &&TaskNode| matches!(node.kind, NodeKind::Point { .. });
        let points = || task.nodes.iter().filter(is_point);
        let firm = |n: &TaskNode| matches!(n.kind, NodeKind::Point { kind: PointKind::Firm, .. });
        let has_one = points().count() == 1 && points().all(firm);
        let is_plain =
            demand.suspensions == 0 && demand.sections.is_empty() && task.separation.is_none();
        let is_strict = jobs.is_strict(&job) && !has(task, &NodeKind::Gettime);
        let is_cut = task.segments.iter().all(|segment| segment.abort == Interval::ZERO);
        demand.is_firm = has_one && is_guarded(task) && is_plain && is_strict && is_cut;
        if !demand.is_thread && demand.suspensions > 0 {
            demand.suspension_jitter = UNBOUNDED;
        }
    }
}

/// Whether a task with timing points has done a job when the next one is released. Behind its
/// phase, a task may have several to do.
pub(super) fn is_thread(task: &Task, locks_nothing: bool) -> bool {
    let is_soft =
        |node: &TaskNode| matches!(node.kind, NodeKind::Point { kind: PointKind::Soft, .. });
    let is_aborted = || !task.nodes.iter().any(is_soft) && is_guarded(task);
    !task.keeps_phase || locks_nothing && is_aborted()
}

/// Whether a task is scheduled by its deadlines.
fn is_edf(task: &Task) -> bool {
    task.policy == Policy::Edf && task.priority.is_none()
}

/// Whether all work of a task is given up at a deadline.
fn is_guarded(task: &Task) -> bool {
    let is_work = |kind: &NodeKind| match kind {
        NodeKind::Fragment { execution } => execution.hi != Some(Span::ZERO),
        _ => false,
    };
    let is_given_up = |node: &TaskNode| !is_work(&node.kind) || node.guard.is_some();
    task.nodes.iter().all(|node| is_given_up(node) && node.kind != NodeKind::Held)
}

fn has(task: &Task, kind: &NodeKind) -> bool {
    task.nodes.iter().any(|node| node.kind == *kind)
}

/// The most that is done up to each piece's end on ways that begin at stops that `begins` says and
/// do not continue behind those that `ends` says; at least [`UNBOUNDED`] if they have a cycle.
pub(super) fn sums(
    job_segments: &[JobSegment],
    begins: impl Fn(usize) -> bool,
    ends: impl Fn(usize) -> bool,
) -> Vec<i128> {
    let follows = |job_segment: &JobSegment, other: &JobSegment| {
        job_segment.end.to.is_some_and(|to| other.from == to && !ends(to))
    };
    let next: Vec<Vec<usize>> = job_segments
        .iter()
        .map(|job_segment| {
            (0..job_segments.len()).filter(|at| follows(job_segment, &job_segments[*at])).collect()
        })
        .collect();
    let weights: Vec<i128> = job_segments.iter().map(|job_segment| job_segment.amount).collect();
    let first = (0..job_segments.len()).filter(|at| begins(job_segments[*at].from));
    longest(&next, &weights, &first.collect::<Vec<_>>())
}

/// Pieces of a task, made to jobs.
pub(super) struct Jobs<'p, 'a> {
    extraction: &'p Extraction<'a>,
    job_segments: &'p [JobSegment],
}

impl<'p, 'a> Jobs<'p, 'a> {
    pub(super) fn new(extraction: &'p Extraction<'a>, job_segments: &'p [JobSegment]) -> Self {
        Self { extraction, job_segments }
    }

    fn counted(&self) -> Vec<JobSegment> {
        self.job_segments
            .iter()
            .map(|job_segment| JobSegment { amount: 1, ..*job_segment })
            .collect()
    }

    fn is_point(&self, stop: usize) -> bool {
        self.extraction.is_point(stop)
    }

    /// All that is done, if it comes to an end.
    pub(super) fn once(&self) -> Option<Job> {
        let rounds = sums(&self.counted(), |stop| stop == 0, |_| false);
        let is_endless = rounds.iter().any(|sum| *sum >= UNBOUNDED);
        let work = || sums(self.job_segments, |stop| stop == 0, |_| false).into_iter().max();
        // Of all that is done in turn nothing is known that would be due.
        let latest = (self.job_segments.len() > 1).then_some(i64::MAX);
        let (work, deadline) = (work().unwrap_or(0), self.deadline());
        (!is_endless).then_some(Job { work, gap: 0, deadline, latest })
    }

    /// Whether there is a timing point in each way round.
    pub(super) fn are_timed(&self) -> bool {
        let rounds = sums(&self.counted(), |_| true, |stop| self.is_point(stop));
        rounds.iter().all(|sum| *sum < UNBOUNDED)
    }

    /// How often a job waits at most.
    pub(super) fn suspensions(&self) -> u32 {
        let begins = |stop| stop == 0 || self.is_point(stop);
        let steps = sums(&self.counted(), begins, |stop| self.is_point(stop));
        let steps = steps.into_iter().max().unwrap_or(1).max(1);
        u32::try_from(steps - 1).unwrap_or(u32::MAX)
    }

    fn deadline(&self) -> Option<i64> {
        self.job_segments.iter().filter_map(|job_segment| job_segment.end.deadline).min()
    }

    /// The most that a job does, and the least time to the next.
    pub(super) fn apart(&self) -> Job {
        let begins = |stop| stop == 0 || self.is_point(stop);
        let work = sums(self.job_segments, begins, |stop| self.is_point(stop)).into_iter().max();
        let to_points = self
            .job_segments
            .iter()
            .filter(|job_segment| job_segment.end.to.is_some_and(|s| self.is_point(s)));
        let gap =
            to_points.map(|job_segment| i128::from(job_segment.end.period.unwrap_or(0))).min();
        let (work, gap) = (work.unwrap_or(0), gap.unwrap_or(0).max(1));
        Job { work, gap, deadline: self.deadline(), latest: self.latest() }
    }

    /// The latest deadline that the processor goes by: that of a soft point is the tightest one.
    fn latest(&self) -> Option<i64> {
        let is_soft = |to: usize| self.is_point(to) && self.extraction.is_soft(to);
        let ends = self.job_segments.iter().map(|job_segment| &job_segment.end);
        ends.filter(|end| !end.to.is_some_and(is_soft)).filter_map(|end| end.deadline).max()
    }

    /// Its jobs: those at its beginning, each once, and those that repeat: none if it
    /// ends, in their order if that is known and `is_plain`, or else any of them.
    pub(super) fn phases(&self, is_edf: bool, is_plain: bool) -> (Vec<Job>, Vec<Job>) {
        let (mut before, mut at) = (Vec::new(), 0);
        while !self.reached(at).contains(&at) {
            let Some((job, to)) = self.only(at, is_edf) else { break };
            before.push(job);
            let Some(to) = to else { return (before, Vec::new()) };
            at = to;
        }
        let cycle = self.round(at, is_edf).filter(|_| is_plain);
        let mut cycle = cycle.unwrap_or_else(|| {
            let mut behind = self.reached(at);
            behind.insert(at);
            let rest =
                self.job_segments.iter().filter(|job_segment| behind.contains(&job_segment.from));
            let rest: Vec<JobSegment> = rest.copied().collect();
            let job = Jobs { extraction: self.extraction, job_segments: &rest }.apart();
            let deadline = if is_edf { self.tightest(job.deadline) } else { job.deadline };
            vec![Job { deadline, ..job }]
        });
        while before.last().is_some_and(|job| cycle.last() == Some(job)) {
            before.pop();
            cycle.rotate_right(1);
        }
        (before, cycle)
    }

    /// By which the processor goes: the tightest deadline of all that leave any time, or the job's.
    fn tightest(&self, own: Option<i64>) -> Option<i64> {
        let all = self.job_segments.iter().filter_map(|job_segment| job_segment.end.deadline);
        all.filter(|deadline| *deadline > 0).chain(own).min()
    }

    /// The stops that may come after one.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            let next = self.job_segments.iter().filter(|job_segment| job_segment.from == at);
            open.extend(
                next.filter_map(|job_segment| job_segment.end.to).filter(|to| reached.insert(*to)),
            );
        }
        reached
    }

    /// The job that begins at a stop, if there is only one that ends at a timing point or with the
    /// task, and where it ends. EDF goes by the task's tightest deadline, but in segments that are
    /// guarded.
    fn only(&self, at: usize, is_edf: bool) -> Option<(Job, Option<usize>)> {
        let mut paths = self.job_segments.iter().filter(|job_segment| job_segment.from == at);
        let job_segment = paths.next().filter(|_| paths.next().is_none())?;
        let Some(to) = job_segment.end.to else {
            return Some((Job { work: job_segment.amount, ..Job::default() }, None));
        };
        let gap = i128::from(job_segment.end.period.filter(|period| *period >= 0)?);
        let deadline = match is_edf && self.extraction.is_soft(to) {
            true => self.tightest(job_segment.end.deadline),
            false => job_segment.end.deadline,
        };
        Some((Job { work: job_segment.amount, gap, deadline, latest: None }, Some(to)))
    }

    /// The jobs from a stop until control comes back, in their order, if there is only one.
    fn round(&self, first: usize, is_edf: bool) -> Option<Vec<Job>> {
        let (mut order, mut at) = (Vec::new(), first);
        loop {
            let (job, to) = self.only(at, is_edf)?;
            order.push(job);
            at = to?;
            if at == first || order.len() > self.job_segments.len() {
                break;
            }
        }
        let takes_time = order.iter().map(|job| job.gap).sum::<i128>() > 0;
        (at == first && takes_time).then_some(order)
    }

    /// Whether each job is as long before the next one, and over then.
    fn is_strict(&self, job: &Job) -> bool {
        let is_it =
            |p: &JobSegment| p.end.period.is_some_and(|period| i128::from(period) == job.gap);
        let is_over = |p: &JobSegment| p.end.deadline.is_some_and(|due| i128::from(due) <= job.gap);
        self.job_segments.iter().all(|job_segment| is_it(job_segment) && is_over(job_segment))
    }
}

impl Demand {
    /// The loads of the task with this number, all with one priority.
    pub(super) fn loads(&self, number: usize, priority: u32) -> Vec<Load> {
        let section = |(resources, length): &(Vec<usize>, i128)| Section {
            resources: resources.clone(),
            length: span(*length),
        };
        let load = |job: &Job| Load {
            transaction: 2 * number,
            thread: self.is_thread.then_some(number),
            offset: Span::ZERO,
            period: None,
            jitter: span(self.jitter),
            suspension_jitter: span(self.suspension_jitter),
            suspensions: self.suspensions,
            wcet: span(job.work),
            deadline: job.deadline.map(Span::from_ns),
            latest_deadline: job.latest.map(Span::from_ns),
            priority,
            sections: self.sections.iter().map(section).collect(),
            non_preemptive: Span::ZERO,
        };
        match &self.releases {
            Releases::Once(job) => vec![load(job)],
            Releases::Apart(job) => {
                vec![Load { period: Some(span(job.gap.max(1))), ..load(job) }]
            }
            Releases::Cycle(before, cycle) => {
                let period = Some(span(cycle.iter().map(|job| job.gap).sum::<i128>()));
                let (mut all, mut offset) = (Vec::new(), 0);
                for job in before {
                    let line = 2 * number + 1;
                    all.push(Load { transaction: line, offset: span(offset), ..load(job) });
                    offset += job.gap;
                }
                if let (true, Some(first)) = (self.is_first, all.first_mut()) {
                    first.jitter = Span::ZERO;
                }
                offset = 0;
                for job in cycle {
                    all.push(Load { offset: span(offset), period, ..load(job) });
                    offset += job.gap;
                }
                all
            }
        }
    }

    /// The least time between two releases, at last; 0 if unknown, none if there is only one.
    pub(super) fn separation(&self) -> Option<Span> {
        let known = |gap: i128| if gap > 1 { span(gap) } else { Span::ZERO };
        match &self.releases {
            Releases::Once(_) => None,
            Releases::Apart(job) => Some(known(job.gap)),
            Releases::Cycle(before, cycle) => {
                let at_last = if cycle.is_empty() { before } else { cycle };
                at_last.iter().filter(|job| job.gap > 0).map(|job| known(job.gap)).min()
            }
        }
    }

    /// The tightest deadline.
    pub(super) fn deadline(&self) -> Option<Span> {
        let all: Vec<Job> = match &self.releases {
            Releases::Once(job) | Releases::Apart(job) => vec![*job],
            Releases::Cycle(before, cycle) => before.iter().chain(cycle).copied().collect(),
        };
        all.iter().filter_map(|job| job.deadline).min().map(Span::from_ns)
    }
}
