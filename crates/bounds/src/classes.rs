//! The class of each channel whose description leaves it open: the least urgent one in which it
//! keeps its fixed delay.
//!
//! All begin in class B. Whose messages may be late gets the next class, and all is planned
//! again, until none is late or none can go further. What has no window, or is late for all its
//! windows, stays with class A. If some are still late and few are open, every choice is tried.

use crate::keep::KeptPlan;
use crate::{drafted, plan_and_limits, reserve, srp, with_bounds};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::system::{Channel, ChannelId, Class, ReservationMode, System};

/// From the least urgent on. Asynchronous shaping is for channels that say that they are sporadic.
const ORDER: [Class; 3] = [Class::B, Class::A, Class::Scheduled];

/// Every choice is tried of so many open channels at most, in a system of so many channels.
const TRIED_MAX: usize = 6;
const CHANNELS_MAX: usize = 64;

/// Gives each channel whose class is open the one that is described above; where hosts and bridges
/// reserve by protocol, none has windows.
///
/// The same system gets the same classes. If it has no plan, whatever they are, they are those of
/// the last attempt, and [`plan`](crate::plan) says what is wrong.
///
/// # Panics
/// As [`plan`](crate::plan).
pub fn choose_classes(system: &mut System) {
    let is_open = |id: &ChannelId| {
        let channel = system.channel(*id);
        channel.class_is_open && channel.reserve
    };
    let open: Vec<ChannelId> =
        (0..system.channels.len() as u32).map(ChannelId).filter(is_open).collect();
    if open.is_empty() {
        return;
    }
    let runs = system.scenarios.iter().map(|scenario| scenario.run).chain([system.run]);
    let by_protocol = runs.clone().any(|run| run.reservation == ReservationMode::Srp);
    let last = if by_protocol || srp::is_used(system) { 1 } else { ORDER.len() - 1 };
    let mut trial = system.clone();
    trial.run.reservation = ReservationMode::Plan;
    let begin = |id: &ChannelId| Open { channel: *id, place: 0, last: most(system, *id, last) };
    let mut choice = Choice { open: open.iter().map(begin).collect(), trial, last };
    choice.apply();
    while choice.improve() {
        choice.apply();
    }
    choice.try_all();
    for id in open {
        let chosen = choice.trial.channel(id);
        let (class, pcp) = (chosen.class, chosen.pcp);
        let channel = &mut system.channels[id.index()];
        (channel.class, channel.pcp) = (class, pcp);
    }
}

/// The last place that a channel may have: a window has one frame, and no fragments.
fn most(system: &System, id: ChannelId, last: usize) -> usize {
    if system.channel(id).frames() > 1 { last.min(1) } else { last }
}

/// A channel whose class is open.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Open {
    channel: ChannelId,
    /// Its place in [`ORDER`].
    place: usize,
    /// The last place that it may have.
    last: usize,
}

impl Open {
    /// Without windows, for good.
    fn give_back(&mut self) {
        self.last = self.place - 1;
        self.place = self.last;
    }

    fn has_windows(&self) -> bool {
        ORDER[self.place] == Class::Scheduled
    }
}

struct Choice {
    trial: System,
    open: Vec<Open>,
    /// The last place that any may have.
    last: usize,
}

impl Choice {
    fn apply(&mut self) {
        for open in &self.open {
            let channel = &mut self.trial.channels[open.channel.index()];
            channel.class = ORDER[open.place];
            channel.pcp = channel.class.default_pcp();
        }
    }

    /// Where messages may be late and channels are few, the least urgent choice with which none
    /// are, if there is one.
    fn try_all(&mut self) {
        let is_small = self.open.len() <= TRIED_MAX && self.trial.channels.len() <= CHANNELS_MAX;
        if !is_small || self.keeps_all() {
            return;
        }
        let found = self.open.clone();
        let mut all = vec![Vec::new()];
        for open in &found {
            let last = most(&self.trial, open.channel, self.last);
            let longer =
                |places: Vec<usize>| (0..=last).map(move |place| [&places[..], &[place]].concat());
            all = all.into_iter().flat_map(longer).collect();
        }
        all.sort_by_key(|places| places.iter().sum::<usize>());
        for places in all {
            self.open.iter_mut().zip(places).for_each(|(open, place)| open.place = place);
            self.apply();
            if self.keeps_all() {
                return;
            }
        }
        self.open = found;
        self.apply();
    }

    /// Whether no message of any channel may be late.
    fn keeps_all(&self) -> bool {
        let Ok((plan, _)) = plan_and_limits(&self.trial, true, &KeptPlan::default()) else {
            return false;
        };
        let is_kept = |(channel, planned): (&Channel, &ChannelPlan)| {
            planned.bound().is_none_or(|bound| bound <= channel.fixed_delay)
        };
        self.trial.channels.iter().zip(&plan.channels).all(is_kept)
    }

    /// Moves channels on, or back; whether there were any.
    fn improve(&mut self) -> bool {
        let before = self.open.clone();
        let Ok(draft) = drafted(&self.trial, true, &KeptPlan::default()) else { return false };
        if draft.admitted {
            let (plan, errors, _) = with_bounds(&self.trial, draft);
            self.hasten(&plan, &errors);
        } else {
            self.return_refused(&draft.errors);
            if self.open == before {
                self.relieve(&draft.plan);
            }
        }
        self.open != before
    }

    /// Takes the windows from channels that are refused some.
    fn return_refused(&mut self, errors: &[Diagnostic]) {
        let windows = self.open.iter_mut().filter(|open| open.has_windows());
        windows
            .filter(|open| is_refused(errors, self.trial.channel(open.channel)))
            .for_each(Open::give_back);
    }

    /// Gives one channel at each overloaded port windows, which take nothing of what may be
    /// reserved: the one with the shortest fixed delay.
    fn relieve(&mut self, plan: &Plan) {
        let mut relieved: Vec<ChannelId> = Vec::new();
        for (port, ..) in reserve::overloaded(&self.trial, plan) {
            let is_there =
                |id: ChannelId| plan.channel(id).paths.iter().flatten().any(|own| *own == port);
            if relieved.iter().any(|id| is_there(*id)) {
                continue;
            }
            let may = |open: &&mut Open| {
                !open.has_windows()
                    && ORDER[open.last] == Class::Scheduled
                    && is_there(open.channel)
            };
            let delay =
                |open: &&mut Open| (self.trial.channel(open.channel).fixed_delay, open.channel);
            if let Some(open) = self.open.iter_mut().filter(may).min_by_key(delay) {
                open.place = open.last;
                relieved.push(open.channel);
            }
        }
    }

    /// Moves on what may be late or has no bound; if none can, what may be late with windows does
    /// without them.
    fn hasten(&mut self, plan: &Plan, errors: &[Diagnostic]) {
        let is_late = |open: &&mut Open| {
            let channel = self.trial.channel(open.channel);
            let bound = plan.channel(open.channel).bound();
            is_refused(errors, channel) || bound.is_some_and(|bound| bound > channel.fixed_delay)
        };
        let before = self.open.clone();
        let on = self.open.iter_mut().filter(|open| open.place < open.last);
        on.filter(is_late).for_each(|open| open.place += 1);
        if self.open == before {
            let windows = self.open.iter_mut().filter(|open| open.has_windows());
            windows.filter(is_late).for_each(Open::give_back);
        }
    }
}

/// Whether an error is about a channel.
fn is_refused(errors: &[Diagnostic], channel: &Channel) -> bool {
    errors.iter().any(|error| error.at.as_ref().is_some_and(|at| at.0 == channel.origin))
}
