//! What is written while an interface is down is neither sent nor lost: it uses no number, and the
//! declared rate holds all the same.

use onbeat_model::record::Record;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel::{TalkerEndpoint, Written};
use onbeat_runtime::channel_io::{
    ChannelError, ChannelIo, Framing, Instant, Log, Reason, Received, Source, Timeout, Window,
};
use onbeat_runtime::listener::{Listener, Reading};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const INTERVAL: Span = Span::from_ms(1);

/// A talker's interface, whose clock moves when it waits.
#[derive(Default)]
struct Wire {
    now: Cell<i64>,
    is_down: Cell<bool>,
    sent: RefCell<Vec<Vec<u8>>>,
}

#[derive(Clone, Default)]
struct WireIo(Rc<Wire>);

impl ChannelIo for WireIo {
    fn now(&mut self) -> Result<Instant, ChannelError> {
        Ok(Instant { local: SyncedTime::from_ns(self.0.now.get()), network: None })
    }
    fn uncertain(&self) -> bool {
        false
    }
    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        self.0.now.set(self.0.now.get().max(target.as_ns()));
        self.now()
    }
    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        if self.0.is_down.get() {
            return Err(ChannelError::LinkDown);
        }
        self.0.sent.borrow_mut().push(frame.to_vec());
        Ok(())
    }
    fn receive(
        &mut self,
        _: &mut [u8],
        _: Timeout,
        _: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        Ok(None)
    }
}

/// Counts the records.
#[derive(Default)]
struct Counted(usize);

impl Log for Counted {
    fn push(&mut self, _: &Record) {
        self.0 += 1;
    }
    fn amend(&mut self, _: &Record) {}
    fn reject(&mut self, _: Reason, _: u64) {}
    fn other_talker(&mut self, _: &Source) {}
    fn rate_exceeded(&mut self) {}
}

fn parameters() -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, 1]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        stream_id: StreamId(1),
        vlan: 2,
        pcp: 3,
        size: Octets::new(8),
        integrity: Default::default(),
        replicated: true,
        launch: None,
        talker_address: None,
        interval: INTERVAL,
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

#[test]
fn messages_that_find_no_interface_have_no_number_and_keep_the_rate() {
    let wire = Rc::new(Wire::default());
    let talker = Talker::new(parameters());
    let mut talker = TalkerEndpoint::new(talker, WireIo(Rc::clone(&wire)), Counted::default());
    let ms = |n: i64| SyncedTime::from_ns(n * 1_000_000);
    assert_eq!(talker.write(&[0; 8]), Ok(ms(0)));
    wire.is_down.set(true);
    assert_eq!(talker.write(&[1; 8]), Err(ChannelError::LinkDown));
    assert_eq!(wire.now.get(), INTERVAL.as_ns(), "it waited for the rate first");
    assert_eq!(talker.try_write(&[1; 8]), Ok(Written::RateExceeded { until: ms(2) }));
    assert_eq!(talker.write_wait(&[2; 8]), Err(ChannelError::LinkDown));
    assert_eq!(talker.write_at(&[3; 8], ms(7)), Err(ChannelError::LinkDown));
    assert_eq!(wire.now.get(), ms(7).as_ns());
    wire.is_down.set(false);
    assert_eq!(talker.write(&[4; 8]), Ok(ms(8)));
    assert_eq!((talker.log().0, talker.talker().last_sequence()), (2, Some(1)));

    // A reader misses nothing.
    let mut listener = Listener::new(parameters());
    let mut value = [0; 8];
    for (frame, (at, sequence)) in wire.sent.borrow().iter().zip([(ms(0), 0), (ms(8), 1)]) {
        let taken = listener.accept(frame, Framing::Ethernet, Reading::at(at), &mut value);
        let taken = taken.expect("it is a message");
        assert_eq!((taken.sequence, taken.gap, taken.capture), (sequence, 0, at));
    }
    assert_eq!(value, [4; 8]);
}
