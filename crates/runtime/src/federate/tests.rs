//! Each rule of the semantics, on federations of a few reactions.

use super::*;
use onbeat_model::diagnostic::Origin;
use onbeat_model::federation::{Connection, Coordination, Federate as Member, Reaction, Trigger};

const fn ms(ms: i64) -> Span {
    Span::from_ms(ms)
}

fn reaction(federate: u32, causes: Vec<Trigger>) -> Reaction {
    let name = "r".to_owned();
    let federate = FederateId(federate);
    Reaction { federate, name, execution: None, deadline: None, causes, origin: Origin::default() }
}

fn connection(from: u32, to: u32, writers: &[u32], after: TagDelay) -> Connection {
    Connection {
        name: format!("c{from}{to}"),
        from: FederateId(from),
        from_port: "out".to_owned(),
        to: FederateId(to),
        to_port: "in".to_owned(),
        writers: writers.iter().map(|writer| ReactionId(*writer)).collect(),
        after,
        physical: false,
        absent_after: None,
        payload: "int".to_owned(),
        octets: None,
        interval: None,
        origin: Origin::default(),
    }
}

fn federation(maxwait: MaxWait, reactions: Vec<Reaction>) -> Federation {
    let member = |name: &str| Member {
        name: name.to_owned(),
        station: None,
        maxwait: Some(maxwait),
        origin: Origin::default(),
    };
    Federation {
        name: "test".to_owned(),
        coordination: Coordination::Decentralized,
        federates: vec![member("a"), member("b")],
        reactions,
        connections: Vec::new(),
    }
}

const SETTINGS: Settings =
    Settings { maxwait: MaxWait::Forever, stop: Some(Span::from_ms(100)), handlers_set: true };

fn timer(offset: i64, period: i64) -> Trigger {
    Trigger::Timer { offset: ms(offset), period: Some(ms(period)) }
}

fn after(from: u32, delay: TagDelay) -> Trigger {
    Trigger::Reaction { from: ReactionId(from), delay, physical: false }
}

fn tag(time: i64, microstep: u32) -> Tag {
    Tag { time: ms(time), microstep }
}

fn execute(reaction: u32, at: Tag) -> Action {
    Action::Execute { reaction: ReactionId(reaction), tag: at, handler: false }
}

const FINISHED: Happened = Happened::Finished { sets: true };

fn received(at: Tag) -> Happened {
    let connection = ConnectionId(0);
    Happened::Received { connection, tag: at, present: true, lateness: Span::ZERO }
}

/// What a federate does about something: all but what is told for information.
fn does(federate: &mut Federate, now: i64, happened: Happened) -> Vec<Action> {
    let mut actions = Vec::new();
    federate.handle(ms(now), happened, &mut actions);
    let is_note = |action: &Action| {
        matches!(action, Action::Begin(_) | Action::Because { .. } | Action::Scheduled { .. })
    };
    actions.retain(|action| !is_note(action));
    actions
}

/// `b` has a timer, and a reaction to what `a` sends.
fn reader(maxwait: MaxWait) -> Federation {
    let reactions = vec![
        reaction(0, vec![timer(0, 10)]),
        reaction(1, vec![timer(10, 10)]),
        reaction(1, vec![Trigger::Message(ConnectionId(0))]),
    ];
    let mut all = federation(maxwait, reactions);
    all.connections.push(connection(0, 1, &[0], TagDelay::None));
    all
}

#[test]
fn reactions_of_a_tag_execute_in_order_and_send_when_all_writers_are_through() {
    let reactions = vec![
        reaction(0, vec![timer(0, 10)]),
        reaction(0, vec![timer(0, 20)]),
        reaction(0, vec![after(0, TagDelay::None)]),
    ];
    let mut all = federation(MaxWait::For(ms(0)), reactions);
    all.connections.push(connection(0, 1, &[0], TagDelay::Microstep));
    all.connections.push(connection(0, 1, &[0, 2], TagDelay::Time(ms(3))));
    let mut a = Federate::new(&all, FederateId(0), SETTINGS);
    assert_eq!(does(&mut a, -5, Happened::Time), [Action::WakeAt(ms(0))]);
    assert_eq!(does(&mut a, 0, Happened::Time), [execute(0, tag(0, 0))]);
    let sent = Action::Send { connection: ConnectionId(0), tag: tag(0, 1) };
    assert_eq!(does(&mut a, 1, FINISHED), [sent, execute(1, tag(0, 0))]);
    assert_eq!(does(&mut a, 2, FINISHED), [execute(2, tag(0, 0))]);
    let sent = Action::Send { connection: ConnectionId(1), tag: tag(3, 0) };
    assert_eq!(does(&mut a, 12, FINISHED), [sent, execute(0, tag(10, 0))]);
    assert_eq!(a.counts().lag.max, Some(ms(2)));
    assert_eq!(a.counts().reactions[2].finish.max, Some(ms(12)));
}

#[test]
fn a_tag_waits_for_its_inputs_until_they_are_known_or_for_maxwait() {
    let all = reader(MaxWait::For(ms(4)));
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    assert_eq!(does(&mut b, 0, received(tag(10, 0))), [Action::WakeAt(ms(10))]);
    assert_eq!(does(&mut b, 10, Happened::Time), [execute(1, tag(10, 0))]);
    assert_eq!(does(&mut b, 11, FINISHED), [execute(2, tag(10, 0))]);
    assert_eq!(does(&mut b, 12, FINISHED), [Action::WakeAt(ms(20))]);
    assert_eq!(does(&mut b, 20, Happened::Time), [Action::WakeAt(ms(24))]);
    let absent = Happened::Received {
        connection: ConnectionId(0),
        tag: tag(20, 0),
        present: false,
        lateness: ms(1),
    };
    assert_eq!(does(&mut b, 22, absent), [execute(1, tag(20, 0))]);
    assert_eq!(does(&mut b, 23, FINISHED), [Action::WakeAt(ms(30))]);
    assert_eq!(does(&mut b, 34, Happened::Time), [execute(1, tag(30, 0))]);
    assert_eq!(b.counts().tardy(), 0);
    assert_eq!(b.counts().late(), 1);
}

#[test]
fn a_message_is_tardy_once_what_needs_it_has_begun_and_executes_a_microstep_later() {
    let all = reader(MaxWait::For(ms(4)));
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    does(&mut b, 0, Happened::Time);
    assert_eq!(does(&mut b, 14, Happened::Time), [execute(1, tag(10, 0))]);
    // The reaction that needs it is still to come.
    assert_eq!(does(&mut b, 15, received(tag(10, 0))), []);
    assert_eq!(does(&mut b, 16, FINISHED), [execute(2, tag(10, 0))]);
    assert_eq!(b.counts().tardy(), 0);
    does(&mut b, 17, FINISHED);
    assert_eq!(does(&mut b, 24, Happened::Time), [execute(1, tag(20, 0))]);
    assert_eq!(does(&mut b, 25, FINISHED), [Action::WakeAt(ms(30))]);
    assert_eq!(does(&mut b, 26, received(tag(20, 0))), [execute(2, tag(20, 1))]);
    assert_eq!(b.counts().inputs[0].tardy.max, Some(ms(6)));
}

#[test]
fn an_input_is_taken_as_absent_later_for_the_reactions_that_need_it_alone() {
    let mut all = reader(MaxWait::For(ms(1)));
    all.connections[0].absent_after = Some(MaxWait::For(ms(3)));
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    assert_eq!(does(&mut b, 11, Happened::Time), [execute(1, tag(10, 0))]);
    assert_eq!(does(&mut b, 12, FINISHED), [Action::WakeAt(ms(14))]);
    assert_eq!(does(&mut b, 13, received(tag(10, 0))), [execute(2, tag(10, 0))]);
    does(&mut b, 14, FINISHED);
    does(&mut b, 21, Happened::Time);
    assert_eq!(does(&mut b, 22, FINISHED), [Action::WakeAt(ms(24))]);
    assert_eq!(does(&mut b, 24, Happened::Time), [Action::WakeAt(ms(30))]);
    all.connections[0].absent_after = Some(MaxWait::Forever);
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    does(&mut b, 11, Happened::Time);
    assert_eq!(does(&mut b, 12, FINISHED), []);
    assert_eq!(does(&mut b, 90, Happened::Time), []);
}

#[test]
fn who_waits_for_ever_begins_when_all_is_known() {
    let mut b = Federate::new(&reader(MaxWait::Forever), FederateId(1), SETTINGS);
    assert_eq!(does(&mut b, 90, Happened::Time), []);
    assert_eq!(does(&mut b, 91, received(tag(30, 0))), [execute(1, tag(10, 0))]);
    assert_eq!(does(&mut b, 91, FINISHED), [execute(1, tag(20, 0))]);
}

#[test]
fn the_handler_executes_when_the_body_would_begin_after_the_deadline() {
    let mut all = reader(MaxWait::For(ms(0)));
    all.reactions[0].deadline = Some(ms(2));
    for handlers_set in [true, false] {
        let mut a = Federate::new(&all, FederateId(0), Settings { handlers_set, ..SETTINGS });
        assert_eq!(does(&mut a, 2, Happened::Time), [execute(0, tag(0, 0))]);
        does(&mut a, 3, FINISHED);
        let handler = Action::Execute { reaction: ReactionId(0), tag: tag(10, 0), handler: true };
        assert_eq!(does(&mut a, 13, Happened::Time), [handler]);
        let sends = does(&mut a, 14, FINISHED).len() == 2;
        assert_eq!(sends, handlers_set);
        assert_eq!(a.counts().reactions[0].misses, 1);
    }
}

#[test]
fn physical_causes_have_the_tag_of_the_clock() {
    let mut all = reader(MaxWait::For(ms(0)));
    all.connections[0].physical = true;
    all.connections[0].after = TagDelay::Time(ms(2));
    all.reactions[1].causes = vec![Trigger::Sporadic { action: "x".to_owned(), interval: None }];
    let physical =
        Trigger::Reaction { from: ReactionId(1), delay: TagDelay::Time(ms(1)), physical: true };
    all.reactions[2].causes.push(physical);
    let mut a = Federate::new(&all, FederateId(0), SETTINGS);
    does(&mut a, 5, Happened::Time);
    let sent = Action::Send { connection: ConnectionId(0), tag: tag(0, 0) };
    assert_eq!(does(&mut a, 6, FINISHED), [sent, Action::WakeAt(ms(10))]);
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    assert_eq!(b.actions(), ["x"]);
    assert_eq!(does(&mut b, 7, received(tag(0, 0))), [Action::WakeAt(ms(9))]);
    assert_eq!(does(&mut b, 7, Happened::Event { action: 0 }), [execute(1, tag(7, 0))]);
    // A second one at the same reading.
    assert_eq!(does(&mut b, 7, Happened::Event { action: 0 }), []);
    assert_eq!(does(&mut b, 8, FINISHED), [execute(1, tag(7, 1))]);
    assert_eq!(does(&mut b, 8, Happened::Finished { sets: false }), [Action::WakeAt(ms(9))]);
    // Both causes at one tag: it executes once.
    assert_eq!(does(&mut b, 9, Happened::Time), [execute(2, tag(9, 0))]);
    assert_eq!(does(&mut b, 9, FINISHED), [Action::WakeAt(ms(100))]);
    assert_eq!(b.counts().tardy(), 0);
}

#[test]
fn the_last_tag_is_that_of_shutdown_and_none_is_after_it() {
    let reactions = vec![
        reaction(0, vec![Trigger::Startup, after(0, TagDelay::Time(ms(50)))]),
        reaction(0, vec![Trigger::Shutdown, timer(99, 50)]),
    ];
    let all = federation(MaxWait::Forever, reactions);
    let mut a = Federate::new(&all, FederateId(0), SETTINGS);
    let mut begun = Vec::new();
    let mut now = ms(0);
    let mut actions = Vec::new();
    a.handle(now, Happened::Time, &mut actions);
    for _ in 0..20 {
        let mut next = Vec::new();
        for action in actions {
            match action {
                Action::WakeAt(at) => {
                    now = at;
                    a.handle(now, Happened::Time, &mut next);
                }
                Action::Execute { reaction, tag, .. } => {
                    begun.push((reaction.0, tag));
                    a.handle(now, FINISHED, &mut next);
                }
                _ => {}
            }
        }
        actions = next;
    }
    let last = tag(100, 0);
    assert_eq!(begun, [(0, tag(0, 0)), (0, tag(50, 0)), (1, tag(99, 0)), (0, last), (1, last)]);
    assert_eq!(does(&mut a, 200, received(last)), []);
}

#[test]
fn tags_beyond_all_time_are_counted_like_others() {
    let all = reader(MaxWait::For(ms(4)));
    let mut b = Federate::new(&all, FederateId(1), SETTINGS);
    let last = Tag { time: Span::MAX, microstep: u32::MAX };
    let first = Tag::at(Span::from_ns(i64::MIN));
    assert_eq!(does(&mut b, 0, received(last)), [Action::WakeAt(ms(10))]);
    assert_eq!(does(&mut b, 0, received(first)), [execute(2, first)]);
    does(&mut b, 1, FINISHED);
    does(&mut b, 2, received(first));
    assert_eq!(b.counts().inputs[0].tardy.max, Some(Span::MAX));
}
