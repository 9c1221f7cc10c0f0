//! What a federation contains after elaboration: reactions in order, with their causes.

use onbeat_description::lf::{self, Outside};
use onbeat_model::federation::{Federation, MaxWait, Reaction, TagDelay, Trigger};
use onbeat_model::time::Span;

fn load(text: &str) -> Federation {
    let mut outside = Outside { read: &mut |_| Err("none".to_owned()), sizes: &mut |_| Vec::new() };
    let loaded = lf::load("model.lf", text, None, &mut outside);
    loaded.federation.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

/// Names with their federates, in order.
fn names(federation: &Federation) -> Vec<String> {
    let name = |reaction: &Reaction| {
        format!("{}.{}", federation.federates[reaction.federate.index()].name, reaction.name)
    };
    federation.reactions.iter().map(name).collect()
}

fn named<'f>(federation: &'f Federation, name: &str) -> &'f Reaction {
    let at = names(federation).iter().position(|known| known == name);
    &federation.reactions[at.unwrap_or_else(|| panic!("{name} in {:?}", names(federation)))]
}

/// Causes with names in place of numbers.
fn causes(federation: &Federation, name: &str) -> Vec<String> {
    let names = names(federation);
    let text = |cause: &Trigger| match cause {
        Trigger::Reaction { from, delay, physical } => {
            let delay = match delay {
                TagDelay::None => "at once".to_owned(),
                TagDelay::Microstep => "a microstep".to_owned(),
                TagDelay::Time(span) => format!("{} ns", span.as_ns()),
            };
            let physical = if *physical { " physically" } else { "" };
            format!("{} {delay}{physical}", names[from.index()])
        }
        Trigger::Message(connection) => {
            let connection = &federation.connections[connection.index()];
            format!("message to {}", connection.to_port)
        }
        other => format!("{other:?}"),
    };
    let mut causes: Vec<String> = named(federation, name).causes.iter().map(text).collect();
    causes.sort();
    causes
}

const CHAIN: &str = "target C { coordination: decentralized }
reactor Relay { input in: int  output out: int  reaction(in) -> out {= =} }
reactor Late {
  input in: int  output out: int
  r = new Relay()
  in -> r.in after 1 ms
  r.out -> out after 2 ms
}
reactor Source {
  output out: int
  logical action soon
  logical action later(4 ms)
  physical action outside(0, 8 ms)
  physical action inside(1 ms)
  reaction(outside) -> inside {= =}
  reaction(inside) {= =}
  reaction(startup) -> soon, later {= =}
  reaction(soon, later) -> out {= =} deadline(3 ms)
  {= =}
}
federated reactor Chain {
  s = new Source()
  @maxwait(5 ms) l = new Late()
  @maxwait(forever) k = new Relay()
  s.out -> l.in
  l.out -> k.in after 0
}
";

#[test]
fn causes_lead_through_actions_delays_and_messages() {
    let federation = load(CHAIN);
    assert_eq!(federation.name, "Chain");
    let waits = federation.federates.iter().map(|federate| federate.maxwait);
    let five = Some(MaxWait::For(Span::from_ms(5)));
    assert_eq!(waits.collect::<Vec<_>>(), [None, five, Some(MaxWait::Forever)]);
    assert_eq!(
        causes(&federation, "s.reaction_4"),
        ["s.reaction_3 4000000 ns", "s.reaction_3 a microstep"]
    );
    assert_eq!(named(&federation, "s.reaction_4").deadline, Some(Span::from_ms(3)));
    let outside = &named(&federation, "s.reaction_1").causes[..];
    let action = "s.outside".to_owned();
    let interval = Some(Span::from_ms(8));
    assert_eq!(outside, [Trigger::Sporadic { action, interval }]);
    assert_eq!(causes(&federation, "s.reaction_2"), ["s.reaction_1 1000000 ns physically"]);
    // The message is received, delayed, relayed, and delayed again before it is sent.
    assert_eq!(causes(&federation, "l.in.receive"), ["message to in"]);
    assert_eq!(causes(&federation, "l.r.in.delay"), ["l.in.receive 1000000 ns"]);
    assert_eq!(causes(&federation, "l.r.reaction_1"), ["l.r.in.delay at once"]);
    assert_eq!(causes(&federation, "l.out.delay"), ["l.r.reaction_1 2000000 ns"]);
    let sent = &federation.connections[1];
    let writers: Vec<_> =
        sent.writers.iter().map(|id| names(&federation)[id.index()].clone()).collect();
    assert_eq!((writers, sent.after), (vec!["l.out.delay".to_owned()], TagDelay::Microstep));
    assert_eq!(causes(&federation, "k.reaction_1"), ["message to in"]);
    assert_eq!(federation.connections[0].octets, Some(4));
}

#[test]
fn reactions_are_in_the_order_of_their_execution() {
    let federation = load(
        "target C
reactor Get { input in: int  input more: int  reaction(in) more {= =} }
reactor Put { output out: int  timer t(0, 1 ms)  reaction(t) -> out {= =} }
reactor Box {
  output out: int
  g = new Get()
  p = new Put()
  q = new Put()
  p.out -> g.in
  reaction(q.out) -> g.more {= =}
  reaction(startup) -> out {= =}
}
reactor Two { input in: int  output out: int
  timer t(0, 1 ms)
  reaction(in) {= =}
  reaction named(t) -> out {= =}
}
federated reactor { b = new Box()  c = new Two()  d = new Two()
  b.out -> c.in  c.out -> d.in }",
    );
    assert_eq!(
        names(&federation),
        [
            "b.p.reaction_1",
            "b.q.reaction_1",
            "b.reaction_1",
            "b.reaction_2",
            "b.g.reaction_1",
            "c.reaction_1",
            "c.named",
            "d.reaction_1",
            "d.named"
        ]
    );
}

#[test]
fn reactions_of_different_modes_have_no_order_but_those_of_all_modes_count() {
    let federation = load(
        "target C
reactor R { input in: int  output out: int  reaction(in) -> out {= =} }
reactor M {
  input in: int  output out: int
  r = new R()
  reaction(reset) {= =}
  initial mode A {
    reaction(r.out) -> out, reset(B) {= =}
  }
  mode B {
    timer t(0, 1 ms)
    reaction(in) -> r.in, history(A) {= =}
    reaction(reset) {= =}
    reaction(t) {= =}
  }
}
federated reactor { m = new M()  n = new M()  m.out -> n.in }",
    );
    // Without modes the reactions of A and B would wait for each other.
    let order = names(&federation);
    let at = |name: &str| order.iter().position(|known| known == name).expect("a reaction");
    assert!(at("m.reaction_3") < at("m.r.reaction_1") && at("m.r.reaction_1") < at("m.reaction_2"));
    assert_eq!(causes(&federation, "m.reaction_4"), ["m.reaction_2 a microstep"]);
    assert_eq!(causes(&federation, "m.reaction_1"), [""; 0]);
}
