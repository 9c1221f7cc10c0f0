//! At which tags reactions execute: streams of tags, from their sources through delays.

use super::{Figure, Ns, Unknown, ns};
use onbeat_model::federation::{Federation, ReactionId, Tag, TagDelay, Trigger};
use std::collections::{BTreeMap, BTreeSet};

/// So many streams of one kind may reach a reaction before they are taken together.
const STREAMS_MAX: usize = 16;
/// So many microsteps may one event take.
const MICROSTEPS_MAX: u32 = 32;
/// So many physical connections and actions may an event pass.
const PHYSICAL_MAX: usize = 16;

/// Tags at which a reaction may execute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stream {
    /// Known ones: the first, and then every period.
    Fixed { first: Tag, period: Option<Ns> },
    /// Any, but not too many.
    Loose(Loose),
}

/// Tags that the clock decides: at most ⌊(Δ + jitter) / spacing⌋ + 1 in any window of length Δ,
/// the ends included; one in all without a spacing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loose {
    /// Of what: a number of [`Streams::origins`].
    origin: usize,
    /// By how much later than the tags of its origin.
    delay: Tag,
    pub(super) spacing: Option<Ns>,
    pub(super) jitter: Ns,
}

impl Stream {
    /// The least time between two of its tags, jitter apart; none: there is one only.
    pub(super) fn spacing(&self) -> Option<Ns> {
        match self {
            Self::Fixed { period, .. } => *period,
            Self::Loose(loose) => loose.spacing,
        }
    }

    pub(super) fn jitter(&self) -> Ns {
        match self {
            Self::Fixed { .. } => 0,
            Self::Loose(loose) => loose.jitter,
        }
    }

    /// The same by a delay later.
    pub(super) fn after(&self, delay: TagDelay) -> Self {
        match self {
            Self::Fixed { first, period } => {
                Self::Fixed { first: first.after(delay), period: *period }
            }
            Self::Loose(loose) => {
                Self::Loose(Loose { delay: loose.delay.after(delay), ..loose.clone() })
            }
        }
    }

    /// What its tags are relative to, and by how much they are later. Streams of one phase keep
    /// their distances.
    pub(super) fn phase(&self) -> (Phase, Ns) {
        match self {
            Self::Fixed { first, period } => {
                let first = ns(first.time);
                let offset = period.map_or(first, |period| first.rem_euclid(period));
                (Phase { origin: None, spacing: *period, jitter: 0 }, offset)
            }
            Self::Loose(loose) => {
                let Loose { origin, delay, spacing, jitter } = loose;
                let origin = Some(*origin);
                (Phase { origin, spacing: *spacing, jitter: *jitter }, ns(delay.time))
            }
        }
    }

    pub(super) fn microstep(&self) -> u32 {
        match self {
            Self::Fixed { first, .. } => first.microstep,
            Self::Loose(loose) => loose.delay.microstep,
        }
    }

    /// Whether all tags of `other` are of this stream as well.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let (Self::Fixed { first, period }, Self::Fixed { first: other, period: its }) =
            (self, other)
        else {
            return self == other;
        };
        let later = ns(other.time) - ns(first.time);
        first.microstep == other.microstep
            && match period {
                None => later == 0 && its.is_none(),
                Some(period) => {
                    later >= 0 && later % period == 0 && its.is_none_or(|its| its % period == 0)
                }
            }
    }
}

/// What tags are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Phase {
    /// Events of an origin; none: the start of the federation.
    origin: Option<usize>,
    pub(super) spacing: Option<Ns>,
    pub(super) jitter: Ns,
}

/// Who schedules a loose stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Shutdown,
    /// An action of a federate.
    Event(usize, String),
    /// A reaction's physical cause, and the stream that reaches it, without its jitter.
    Physical(ReactionId, usize, Stream),
}

/// The streams of each reaction; why they are not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    pub(super) reactions: Vec<Figure<BTreeSet<Stream>>>,
    origins: BTreeMap<Origin, (usize, usize)>,
}

/// From the tag of the reaction that causes it to the physical tag of a cause: the least and the
/// greatest time.
pub(super) type Passing<'a> = dyn Fn(ReactionId, usize) -> Figure<(Ns, Ns)> + 'a;

/// What a reaction causes: the other reaction, the position of the cause there, by how much later,
/// and whether physically.
pub(super) struct Edge {
    pub(super) to: ReactionId,
    pub(super) cause: usize,
    pub(super) delay: TagDelay,
    pub(super) physical: bool,
}

/// Per reaction, what it causes in its federate and in others.
pub(super) fn edges(federation: &Federation) -> Vec<Vec<Edge>> {
    let mut all: Vec<Vec<Edge>> = federation.reactions.iter().map(|_| Vec::new()).collect();
    for (at, reaction) in federation.reactions.iter().enumerate() {
        for (cause, what) in reaction.causes.iter().enumerate() {
            let to = ReactionId(at as u32);
            match what {
                Trigger::Reaction { from, delay, physical } => {
                    let edge = Edge { to, cause, delay: *delay, physical: *physical };
                    all[from.index()].push(edge);
                }
                Trigger::Message(id) => {
                    let connection = &federation.connections[id.index()];
                    let (delay, physical) = (connection.after, connection.physical);
                    let writers: BTreeSet<_> = connection.writers.iter().collect();
                    for writer in writers {
                        all[writer.index()].push(Edge { to, cause, delay, physical });
                    }
                }
                _ => {}
            }
        }
    }
    all
}

impl Streams {
    /// The streams of all reactions, if physical causes take `passing`.
    pub(super) fn new(federation: &Federation, edges: &[Vec<Edge>], passing: &Passing<'_>) -> Self {
        let mut streams = Self {
            reactions: vec![Ok(BTreeSet::new()); federation.reactions.len()],
            origins: BTreeMap::new(),
        };
        let mut open = Vec::new();
        for (at, reaction) in federation.reactions.iter().enumerate() {
            for cause in &reaction.causes {
                if let Some(stream) = streams.source(federation, at, cause) {
                    streams.add(federation, at, stream, &mut open);
                }
            }
        }
        while let Some((at, stream)) = open.pop() {
            // What has been taken together with others is passed on with them.
            if let (Ok(known), Ok(stream)) = (&streams.reactions[at], &stream)
                && !known.contains(stream)
            {
                continue;
            }
            for edge in &edges[at] {
                let next = match &stream {
                    Ok(stream) if edge.physical => streams.physical(edge, stream, passing),
                    Ok(stream) => Ok(stream.after(edge.delay)),
                    Err(unknown) => Err(unknown.clone()),
                };
                streams.add(federation, edge.to.index(), next, &mut open);
            }
        }
        streams
    }

    fn origin(&mut self, origin: Origin, depth: usize) -> usize {
        let next = self.origins.len();
        self.origins.entry(origin).or_insert((next, depth)).0
    }

    /// The stream of a cause that is none of another reaction.
    fn source(
        &mut self,
        federation: &Federation,
        at: usize,
        cause: &Trigger,
    ) -> Option<Figure<Stream>> {
        let reaction = &federation.reactions[at];
        let federate = reaction.federate.index();
        let loose = |origin, spacing| {
            Ok(Stream::Loose(Loose { origin, delay: Tag::default(), spacing, jitter: 0 }))
        };
        let name = || super::name(federation, ReactionId(at as u32));
        Some(match cause {
            Trigger::Startup => Ok(Stream::Fixed { first: Tag::default(), period: None }),
            Trigger::Shutdown => loose(self.origin(Origin::Shutdown, 0), None),
            Trigger::Timer { period: Some(period), .. } if ns(*period) <= 0 => {
                Err(Unknown(format!("a timer of {} has no period above zero", name())))
            }
            Trigger::Timer { offset, period } => {
                Ok(Stream::Fixed { first: Tag::at(*offset), period: period.map(ns) })
            }
            Trigger::Sporadic { action, interval: Some(interval) } if ns(*interval) > 0 => {
                let origin = self.origin(Origin::Event(federate, action.clone()), 0);
                loose(origin, Some(ns(*interval)))
            }
            Trigger::Sporadic { action, .. } => {
                let why = format!("the least interval of the action `{action}` is not known");
                Err(Unknown(why))
            }
            Trigger::Reaction { .. } | Trigger::Message(_) => return None,
        })
    }

    /// What a stream is behind a physical cause.
    fn physical(&mut self, edge: &Edge, stream: &Stream, passing: &Passing<'_>) -> Figure<Stream> {
        let (least, most) = passing(edge.to, edge.cause)?;
        let jitter = stream.jitter() + most - least;
        let mut plain = stream.clone();
        let mut depth = 1;
        if let Stream::Loose(loose) = &mut plain {
            loose.jitter = 0;
            let parent = self.origins.values().find(|(number, _)| *number == loose.origin);
            depth += parent.map_or(0, |(_, depth)| *depth);
        }
        if depth > PHYSICAL_MAX {
            let why = "a loop of physical connections or actions has no bound on its tags";
            return Err(Unknown(why.to_owned()));
        }
        let spacing = stream.spacing();
        let origin = self.origin(Origin::Physical(edge.to, edge.cause, plain), depth);
        let delay = Tag::default().after(edge.delay);
        Ok(Stream::Loose(Loose { origin, delay, spacing, jitter }))
    }

    /// Adds a stream to those of a reaction, if it is new there.
    fn add(
        &mut self,
        federation: &Federation,
        at: usize,
        stream: Figure<Stream>,
        open: &mut Vec<(usize, Figure<Stream>)>,
    ) {
        let Ok(known) = &mut self.reactions[at] else { return };
        let name = || super::name(federation, ReactionId(at as u32));
        let stream = match stream {
            Ok(stream) if stream.microstep() > MICROSTEPS_MAX => {
                Err(Unknown(format!("{} repeats at one time without end", name())))
            }
            other => other,
        };
        let stream = match stream {
            Err(unknown) => {
                self.reactions[at] = Err(unknown.clone());
                open.push((at, Err(unknown)));
                return;
            }
            Ok(stream) if known.iter().any(|one| one.contains(&stream)) => return,
            Ok(stream) => stream,
        };
        known.retain(|one| !stream.contains(one));
        known.insert(stream.clone());
        let is_alike = |one: &&Stream| match (*one, &stream) {
            (Stream::Fixed { first: a, .. }, Stream::Fixed { first: b, .. }) => {
                a.microstep == b.microstep
            }
            (Stream::Loose(a), Stream::Loose(b)) => a.origin == b.origin,
            _ => false,
        };
        let alike: Vec<Stream> = known.iter().filter(is_alike).cloned().collect();
        if alike.len() <= STREAMS_MAX {
            open.push((at, Ok(stream)));
            return;
        }
        let Some(together) = together(&alike) else {
            let why = format!("each event of a loop through {} starts another round", name());
            self.reactions[at] = Err(Unknown(why.clone()));
            open.push((at, Err(Unknown(why))));
            return;
        };
        known.retain(|one| !alike.contains(one));
        known.insert(together.clone());
        open.push((at, Ok(together)));
    }
}

/// The stream of a cause that comes in any case, at known tags: of a timer, or of the start.
pub(super) fn own(cause: &Trigger) -> Option<Stream> {
    match cause {
        Trigger::Startup => Some(Stream::Fixed { first: Tag::default(), period: None }),
        Trigger::Timer { offset, period } => {
            Some(Stream::Fixed { first: Tag::at(*offset), period: period.map(ns) })
        }
        _ => None,
    }
    .filter(|stream| stream.spacing().is_none_or(|spacing| spacing > 0))
}

/// Whether tags of these streams may have one time and different microsteps: what is later by a
/// time has one tag then. Clocks may decide on the time of any other tag.
pub(super) fn may_coincide(streams: &BTreeSet<&Stream>) -> bool {
    let streams: Vec<&Stream> = streams.iter().copied().collect();
    streams.iter().enumerate().any(|(at, one)| match one {
        Stream::Loose(loose) => {
            let is_dense = loose.spacing.is_some_and(|spacing| loose.jitter >= spacing);
            is_dense || streams.len() > 1
        }
        Stream::Fixed { first, period } => streams[..at].iter().any(|other| {
            let Stream::Fixed { first: its, period: other } = other else { return true };
            let later = ns(first.time) - ns(its.time);
            let common = gcd(period.unwrap_or(0), other.unwrap_or(0));
            let is_one_time = if common == 0 { later == 0 } else { later % common == 0 };
            first.microstep != its.microstep && is_one_time
        }),
    })
}

/// One stream with all tags of several known ones of the same microstep, and perhaps more: from
/// the first tag on, by the greatest common divisor of all differences.
fn together(streams: &[Stream]) -> Option<Stream> {
    let mut first: Option<Tag> = None;
    for stream in streams {
        let Stream::Fixed { first: its, .. } = stream else { return None };
        first = Some(first.map_or(*its, |first| first.min(*its)));
    }
    let first = first?;
    let mut period = 0;
    for stream in streams {
        let Stream::Fixed { first: its, period: own } = stream else { return None };
        period = gcd(period, ns(its.time) - ns(first.time));
        period = gcd(period, own.unwrap_or(0));
    }
    Some(Stream::Fixed { first, period: (period > 0).then_some(period) })
}

/// The greatest common divisor; that with zero is the other.
pub(super) fn gcd(a: Ns, b: Ns) -> Ns {
    if b == 0 { a } else { gcd(b, a % b) }
}
