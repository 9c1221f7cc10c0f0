//! The figures of a run, counted again from all that happens in it.

use crate::random::{Case, START, case};
use crate::run::watched;
use onbeat_model::federation::{Tag, Trigger};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::federation::{Event, FederationObserved, Watch};
use onbeat_runtime::federate::Extent;

/// So many federations are looked at.
const CASES: u64 = 300;

/// All that happens, in order.
#[derive(Default)]
struct Everything(Vec<(NetTime, Event)>);

impl Watch for Everything {
    fn event(&mut self, now: NetTime, event: Event) {
        self.0.push((now, event));
    }
}

fn after_tag(now: NetTime, tag: Tag) -> Span {
    now - (NetTime::ZERO + START) - tag.time
}

fn check(values: &[Span], seen: &Extent, what: &str) {
    let found = (values.len() as u64, values.iter().min(), values.iter().max());
    assert_eq!((seen.count, seen.min.as_ref(), seen.max.as_ref()), found, "{what}");
}

/// How many messages of a connection were tardy: at least, and at most. One of the tag that is
/// current is tardy if a reaction that needs it has begun, and is not if any later reaction begins
/// at the tag; else what was not seen decides.
fn tardy(case: &Case, connection: usize, all: &[(NetTime, Event)]) -> (u64, u64) {
    let of = &case.federation.connections[connection];
    let reads = |reaction: usize| {
        let causes = &case.federation.reactions[reaction].causes;
        causes.iter().any(|cause| matches!(cause, Trigger::Message(id) if id.index() == connection))
    };
    let own = |reaction: usize| case.federation.reactions[reaction].federate == of.to;
    let first = (0..case.federation.reactions.len()).find(|at| own(*at) && reads(*at));
    let (mut current, mut has_begun, mut found) = (None, false, (0, 0));
    for (_, event) in all {
        match *event {
            Event::Began { federate, tag } if federate == of.to => {
                (current, has_begun) = (Some(tag), false);
            }
            Event::Executes { reaction, .. } if own(reaction.index()) => {
                has_begun |= first.is_some_and(|first| reaction.index() >= first);
            }
            Event::Received { connection: id, tag, .. } if id.index() == connection => {
                let is_past = current.is_some_and(|current| tag < current);
                let is_now = current == Some(tag);
                found.0 += u64::from(is_past || is_now && has_begun);
                found.1 += u64::from(is_past || is_now);
            }
            _ => {}
        }
    }
    found
}

fn recount(case: &Case, seen: &FederationObserved, all: &[(NetTime, Event)]) {
    for (at, reaction) in seen.reactions.iter().enumerate() {
        let (mut releases, mut finishes, mut misses) = (Vec::new(), Vec::new(), 0);
        for (now, event) in all {
            match *event {
                Event::Executes { reaction, tag, handler } if reaction.index() == at => {
                    releases.push(after_tag(*now, tag));
                    misses += u64::from(handler);
                }
                Event::Executed { reaction, tag } if reaction.index() == at => {
                    finishes.push(after_tag(*now, tag));
                }
                _ => {}
            }
        }
        check(&releases, &reaction.release, &format!("release of {at}"));
        check(&finishes, &reaction.finish, &format!("finish of {at}"));
        assert_eq!(reaction.misses, misses, "misses of {at}");
    }
    for (at, connection) in seen.connections.iter().enumerate() {
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        for (now, event) in all {
            match *event {
                Event::Sent { connection, at: writers, .. } if connection.index() == at => {
                    sent.push(after_tag(*now, writers));
                }
                Event::Received { connection, tag, reading } if connection.index() == at => {
                    arrived.push(reading - tag.time);
                }
                _ => {}
            }
        }
        check(&sent, &connection.sent, &format!("sending on {at}"));
        check(&arrived, &connection.arrived, &format!("arrival on {at}"));
        let physical = case.federation.connections[at].physical;
        let (least, most) = if physical { (0, 0) } else { tardy(case, at, all) };
        let count = connection.tardy.count;
        assert!((least..=most).contains(&count), "{count} tardy on {at}: {least} to {most}");
    }
}

#[test]
fn the_figures_of_a_run_are_those_that_its_events_make() {
    let (mut events, mut sure, mut unsure) = (0, 0, 0);
    for seed in 0..CASES {
        let case = case(seed);
        let mut all = Everything::default();
        let seen = watched(&case, &mut all);
        recount(&case, &seen, &all.0);
        events += all.0.len();
        for at in 0..case.federation.connections.len() {
            let (least, most) = tardy(&case, at, &all.0);
            sure += least;
            unsure += most - least;
        }
    }
    println!("{events} events, {sure} tardy messages, {unsure} in doubt");
    assert!(events > 50_000 && sure > 100 && unsure < sure / 2, "{events} {sure} {unsure}");
}

#[test]
fn runs_of_one_seed_are_equal_and_others_are_not() {
    let mut differ = 0;
    for seed in 0..40 {
        let mut case = case(seed);
        let first = watched(&case, &mut ());
        assert_eq!(first, watched(&case, &mut ()), "{seed}");
        case.behaviour.seed += 1_000;
        differ += usize::from(first != watched(&case, &mut ()));
    }
    assert!(differ > 20, "{differ}");
}

#[test]
fn several_runs_together_are_their_sums_and_extremes() {
    let case = case(7);
    let all: Vec<_> = (0..3)
        .map(|more| {
            let mut own = crate::random::case(7);
            own.behaviour.seed = case.behaviour.seed + more;
            watched(&own, &mut ())
        })
        .collect();
    let mut merged = FederationObserved::default();
    all.iter().for_each(|one| merged.merge(one));
    assert_eq!(merged.runs, 3);
    for at in 0..merged.reactions.len() {
        let own = || all.iter().map(|one| one.reactions[at].finish);
        let finish = merged.reactions[at].finish;
        assert_eq!(finish.count, own().map(|one| one.count).sum::<u64>());
        assert_eq!(finish.min, own().filter_map(|one| one.min).min());
        assert_eq!(finish.max, own().filter_map(|one| one.max).max());
    }
    let chains = || all.iter().flat_map(|one| one.chains.values());
    let count = |extents: &mut dyn Iterator<Item = &Extent>| extents.map(|one| one.count).sum();
    let (sum, parts): (u64, u64) = (count(&mut merged.chains.values()), count(&mut chains()));
    assert_eq!(sum, parts);
}
