//! A side of a rendezvous whose declared rate holds it up hears what comes meanwhile: its word says
//! what it knows when it is sent, not what it knew when it was held up.

use onbeat_model::record::Record;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel::{ListenerEndpoint, TalkerEndpoint};
use onbeat_runtime::channel_io::{
    ChannelError, ChannelIo, Framing, Instant, Log, Reason, Received, Source, Timeout, Window,
};
use onbeat_runtime::listener::Listener;
use onbeat_runtime::meeting::{Name, Word, rendezvous};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::Frame;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One side's clock, which moves when it waits, what it has sent, and what comes when.
#[derive(Default)]
struct Side {
    now: i64,
    sent: Vec<(i64, Vec<u8>)>,
    comes: VecDeque<(i64, Vec<u8>)>,
}

#[derive(Clone, Default)]
struct SideIo(Rc<RefCell<Side>>);

impl ChannelIo for SideIo {
    fn now(&mut self) -> Result<Instant, ChannelError> {
        Ok(Instant { local: SyncedTime::from_ns(self.0.borrow().now), network: None })
    }

    fn uncertain(&self) -> bool {
        false
    }

    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        let mut side = self.0.borrow_mut();
        side.now = side.now.max(target.as_ns());
        drop(side);
        self.now()
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        let mut side = self.0.borrow_mut();
        let now = side.now;
        side.sent.push((now, frame.to_vec()));
        Ok(())
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        _: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        let mut side = self.0.borrow_mut();
        let until = match patience {
            Timeout::None => side.now,
            Timeout::Until(until) => until.as_ns(),
            Timeout::Endless => i64::MAX,
        };
        if side.comes.front().is_none_or(|(at, _)| *at > until) {
            assert!(patience != Timeout::Endless, "it waits for ever");
            side.now = side.now.max(until);
            return Ok(None);
        }
        let (at, frame) = side.comes.pop_front().expect("it is there");
        into[..frame.len()].copy_from_slice(&frame);
        let waited = at < side.now;
        side.now = side.now.max(at);
        let arrived = SyncedTime::from_ns(at);
        let ready = Instant { local: arrived, network: None };
        let (length, framing) = (frame.len(), Framing::Ethernet);
        Ok(Some(Received { length, framing, arrived, stamped: true, ready, waited }))
    }
}

struct NoLog;

impl Log for NoLog {
    fn push(&mut self, _: &Record) {}
    fn amend(&mut self, _: &Record) {}
    fn reject(&mut self, _: Reason, _: u64) {}
    fn other_talker(&mut self, _: &Source) {}
    fn rate_exceeded(&mut self) {}
}

/// A channel whose interval is longer than D and whose rate has no tolerance.
fn channel(stream: u64) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, stream as u8]),
        source: MacAddress([2, 0, 0, 0, 0, stream as u8]),
        stream_id: StreamId(stream),
        vlan: 2,
        pcp: 3,
        size: Octets::new(8),
        integrity: Default::default(),
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(2_500),
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_us(2_000),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

#[test]
fn a_side_that_its_rate_holds_up_says_what_it_has_heard_meanwhile() {
    let us = |us: i64| SyncedTime::from_ns(us * 1_000);
    let io = SideIo::default();
    let mut talker = TalkerEndpoint::new(Talker::of_instance(channel(1), 5), io.clone(), NoLog);
    let mut listener = ListenerEndpoint::new(Listener::new(channel(2)), io.clone(), NoLog);
    // The rate allows no message before 2.5 ms.
    talker.write(&[0; 8]).expect("the first");
    // The other side asks at 1 ms, and at 3.5 ms says that it has heard us.
    let mut other = Talker::of_instance(channel(2), 9);
    let heard = Name { instance: 5, number: 1 };
    for (at, has) in [(1_000, None), (3_500, Some(heard))] {
        other.say(Word { round: 1, asks: true, met: false, has }.to_bits());
        other.write(us(at), &[at as u8; 8], false).expect("within its rate");
        let frame = (us(at + 50).as_ns(), other.frame().to_vec());
        io.0.borrow_mut().comes.push_back(frame);
    }
    let mut value = [0; 8];
    let info = rendezvous(&mut talker, &[7; 8], &mut listener, &mut value).expect("a meeting");
    let side = io.0.borrow();
    assert_eq!(side.sent.len(), 2, "one message of the meeting, and the one before");
    let (at, frame) = &side.sent[1];
    let meeting = Frame::parse(frame).expect("a frame").header.meeting;
    let word = Word::from_bits(meeting).expect("a word");
    assert_eq!((*at, word.has), (2_500_000, Some(Name { instance: 9, number: 0 })));
    // Both continue at the later capture + D: ours.
    assert_eq!((info.wakeup_error, side.now), (Span::ZERO, 4_500_000));
    assert_eq!(value, [1_000_i64 as u8; 8]);
}
