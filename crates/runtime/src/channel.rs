//! The operations of a network channel (Austad et al. 2023, Table 2 and sections 4.3.2, 4.3.3),
//! composed from [`Talker`], [`Listener`] and [`Port`].
//!
//! Each leaves one [`Record`] per message in the end's [`Log`] before it waits, so that a program
//! that dies in its sleep has left what happened until then.

use crate::listener::{Listener, record_of};
use crate::port::{Fault, Instant, Log, Patience, Port};
use crate::talker::Talker;
use crate::wire::MAX_FRAME;
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{LocalTime, Span};

/// What a write gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The message is on its way.
    Sent {
        /// When the value was captured.
        capture: LocalTime,
    },
    /// The declared rate does not allow it yet and the caller would not wait.
    RateExceeded {
        /// From when on it is allowed.
        until: LocalTime,
    },
}

/// What is known of a message that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageInfo {
    /// When the value was captured, by the talker's clock.
    pub capture: LocalTime,
    /// From capture to the message's being there to be read.
    pub latency: Span,
    /// Number of the message.
    pub sequence: u64,
    /// Messages lost between the one before and this one.
    pub gap: u32,
    /// [`flag`] bits.
    pub flags: u32,
    /// After `read_wait`: target minus wake-up, negative when it was late. Else zero.
    pub wakeup_error: Span,
}

/// The writing end of a channel with its port and its log.
#[derive(Debug)]
pub struct TalkerEnd<P, L> {
    talker: Talker,
    port: P,
    log: L,
}

impl<P: Port, L: Log> TalkerEnd<P, L> {
    /// Puts an end together.
    pub fn new(talker: Talker, port: P, log: L) -> Self {
        Self { talker, port, log }
    }

    /// The state machine inside.
    pub fn talker(&self) -> &Talker {
        &self.talker
    }

    /// Sends `value`, waiting while the declared rate is exceeded; returns the capture time.
    pub fn write(&mut self, value: &[u8]) -> Result<LocalTime, Fault> {
        self.write_record(value).map(|record| record.capture.unwrap_or_default())
    }

    /// Sends `value` unless the declared rate is exceeded.
    pub fn try_write(&mut self, value: &[u8]) -> Result<Written, Fault> {
        let capture = self.port.now()?;
        match self.talker.write(capture.local, value, self.port.uncertain()) {
            Err(exceeded) => Ok(Written::RateExceeded { until: exceeded.until }),
            Ok(sequence) => {
                self.hand_over(capture, sequence)?;
                Ok(Written::Sent { capture: capture.local })
            }
        }
    }

    /// Sends `value`, then waits until its capture time + D; returns the wake-up error (target
    /// minus wake-up: negative is late).
    pub fn write_wait(&mut self, value: &[u8]) -> Result<Span, Fault> {
        let mut record = self.write_record(value)?;
        let target = record.capture.unwrap_or_default() + self.talker.parameters().fixed_delay;
        wait(&mut self.port, &mut self.log, &mut record, target)
    }

    fn write_record(&mut self, value: &[u8]) -> Result<Record, Fault> {
        loop {
            let capture = self.port.now()?;
            match self.talker.write(capture.local, value, self.port.uncertain()) {
                Ok(sequence) => return self.hand_over(capture, sequence),
                Err(exceeded) => {
                    self.port.sleep_until(exceeded.until)?;
                }
            }
        }
    }

    fn hand_over(&mut self, capture: Instant, sequence: u64) -> Result<Record, Fault> {
        self.port.send(self.talker.frame())?;
        let record = Record {
            capture: Some(capture.local),
            network: capture.network,
            sequence,
            ..Record::default()
        };
        self.log.push(&record);
        Ok(record)
    }
}

/// A reading end of a channel with its port and its log.
#[derive(Debug)]
pub struct ListenerEnd<P, L> {
    listener: Listener,
    port: P,
    log: L,
    frame: [u8; MAX_FRAME],
}

impl<P: Port, L: Log> ListenerEnd<P, L> {
    /// Puts an end together.
    pub fn new(listener: Listener, port: P, log: L) -> Self {
        Self { listener, port, log, frame: [0; MAX_FRAME] }
    }

    /// The state machine inside.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Waits for a message as long as `patience` says.
    pub fn read(
        &mut self,
        value: &mut [u8],
        patience: Patience,
    ) -> Result<Option<MessageInfo>, Fault> {
        Ok(self.read_record(value, patience)?.map(|(_, info)| info))
    }

    /// Waits for a message, then until its capture time + D.
    pub fn read_wait(&mut self, value: &mut [u8]) -> Result<MessageInfo, Fault> {
        loop {
            // An endless receive gives a message or a fault.
            let Some((mut record, mut info)) = self.read_record(value, Patience::Endless)? else {
                continue;
            };
            let target = info.capture + self.listener.parameters().fixed_delay;
            info.wakeup_error = wait(&mut self.port, &mut self.log, &mut record, target)?;
            info.flags = record.flags;
            return Ok(info);
        }
    }

    fn read_record(
        &mut self,
        value: &mut [u8],
        patience: Patience,
    ) -> Result<Option<(Record, MessageInfo)>, Fault> {
        loop {
            let Some(received) = self.port.receive(&mut self.frame, patience)? else {
                return Ok(None);
            };
            let ready = received.ready;
            let octets = &self.frame[..received.length];
            let outcome = self.listener.accept(octets, ready.local, value);
            let Some(mut record) = record_of(&outcome) else {
                self.log.set_malformed(self.listener.malformed());
                continue;
            };
            record.transfer = Some(received.arrived);
            record.receive = Some(ready.local);
            record.network = ready.network;
            record.flags |= if received.waited { flag::WAITED } else { 0 };
            self.log.push(&record);
            let Ok(accepted) = outcome else { continue };
            let info = MessageInfo {
                capture: accepted.capture,
                latency: ready.local - accepted.capture,
                sequence: accepted.sequence,
                gap: accepted.gap,
                flags: accepted.flags,
                wakeup_error: Span::ZERO,
            };
            return Ok(Some((record, info)));
        }
    }
}

/// Sleeps until `target` and completes the record that was pushed last.
fn wait<P: Port, L: Log>(
    port: &mut P,
    log: &mut L,
    record: &mut Record,
    target: LocalTime,
) -> Result<Span, Fault> {
    if port.now()?.local > target {
        record.flags |= flag::OVERSLEPT;
    }
    record.wake_target = Some(target);
    let woke = port.sleep_until(target)?;
    record.wake = Some(woke.local);
    record.network = woke.network;
    log.amend(record);
    Ok(target - woke.local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Received;
    use crate::talker::tests::parameters;
    use onbeat_model::time::NetTime;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    /// A wire with a clock that only moves when somebody waits.
    #[derive(Default)]
    struct Wire {
        now: i64,
        latency: i64,
        frames: VecDeque<(i64, Vec<u8>)>,
    }
    struct TestPort(Rc<RefCell<Wire>>);
    impl Port for TestPort {
        fn now(&mut self) -> Result<Instant, Fault> {
            let now = self.0.borrow().now;
            Ok(Instant { local: LocalTime::from_ns(now), network: Some(NetTime::from_ns(now)) })
        }
        fn uncertain(&self) -> bool {
            false
        }
        fn sleep_until(&mut self, target: LocalTime) -> Result<Instant, Fault> {
            let mut wire = self.0.borrow_mut();
            wire.now = wire.now.max(target.as_ns());
            drop(wire);
            self.now()
        }
        fn send(&mut self, frame: &[u8]) -> Result<(), Fault> {
            let mut wire = self.0.borrow_mut();
            let at = wire.now + wire.latency;
            wire.frames.push_back((at, frame.to_vec()));
            Ok(())
        }
        fn receive(
            &mut self,
            into: &mut [u8],
            patience: Patience,
        ) -> Result<Option<Received>, Fault> {
            let mut wire = self.0.borrow_mut();
            let Some((at, frame)) = wire.frames.pop_front() else {
                return if patience == Patience::Endless { Err(Fault::Stopped) } else { Ok(None) };
            };
            wire.now = wire.now.max(at);
            into[..frame.len()].copy_from_slice(&frame);
            let local = LocalTime::from_ns(wire.now);
            let ready = Instant { local, network: None };
            let arrived = LocalTime::from_ns(at);
            Ok(Some(Received { length: frame.len(), arrived, ready, waited: false }))
        }
    }
    #[derive(Clone, Default)]
    struct TestLog(Rc<RefCell<Vec<Record>>>);
    impl Log for TestLog {
        fn push(&mut self, record: &Record) {
            self.0.borrow_mut().push(*record);
        }
        fn amend(&mut self, record: &Record) {
            *self.0.borrow_mut().last_mut().expect("a record to amend") = *record;
        }
        fn set_malformed(&mut self, _: u64) {}
    }

    #[test]
    fn both_ends_wake_at_capture_plus_the_fixed_delay() {
        let wire = Rc::new(RefCell::new(Wire { latency: 57_000, ..Wire::default() }));
        let (sent, got) = (TestLog::default(), TestLog::default());
        let port = || TestPort(Rc::clone(&wire));
        let mut talker = TalkerEnd::new(Talker::new(parameters()), port(), sent.clone());
        let mut listener = ListenerEnd::new(Listener::new(parameters()), port(), got.clone());
        assert_eq!(talker.write_wait(&7u64.to_le_bytes()), Ok(Span::ZERO));
        wire.borrow_mut().now = 0; // the listener lives on another host: its time is its own
        let mut value = [0; 8];
        let info = listener.read_wait(&mut value).expect("a message");
        assert_eq!(u64::from_le_bytes(value), 7);
        assert_eq!((info.latency, info.wakeup_error), (Span::from_us(57), Span::ZERO));
        let target = Some(LocalTime::from_ns(2_000_000));
        assert_eq!(sent.0.borrow()[0].wake, target);
        assert_eq!(got.0.borrow()[0].wake, target);
    }

    #[test]
    fn a_write_waits_for_its_rate_and_a_try_write_says_so() {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let port = TestPort(Rc::clone(&wire));
        let mut talker = TalkerEnd::new(Talker::new(parameters()), port, TestLog::default());
        talker.write(&[0; 8]).unwrap();
        let until = LocalTime::from_ns(20_000_000 - 125_000);
        assert_eq!(talker.try_write(&[0; 8]), Ok(Written::RateExceeded { until }));
        assert_eq!(talker.write(&[0; 8]), Ok(until));
    }

    #[test]
    fn a_message_after_capture_plus_d_is_delivered_late_and_its_wait_overslept() {
        let wire = Rc::new(RefCell::new(Wire { latency: 2_500_000, ..Wire::default() }));
        let port = || TestPort(Rc::clone(&wire));
        let log = TestLog::default();
        let mut talker = TalkerEnd::new(Talker::new(parameters()), port(), TestLog::default());
        let mut listener = ListenerEnd::new(Listener::new(parameters()), port(), log.clone());
        talker.write(&[0; 8]).unwrap();
        let info = listener.read_wait(&mut [0; 8]).expect("a message");
        assert_eq!(info.flags, flag::LATE | flag::OVERSLEPT);
        assert_eq!(info.wakeup_error, Span::from_us(-500));
        assert_eq!(log.0.borrow()[0].flags, flag::LATE | flag::OVERSLEPT);
    }
}
