//! Both implementations of a station, side by side.

use onbeat_model::units::MacAddress;
use onbeat_network_code::interpreter::{Interpreter, SentContent, SentFrame, StationRecord};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::station::{Observer, Station, Transmission};
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};

/// What happens to a station in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stimulus {
    Data(MessageId, Vec<u32>),
    Sync(u32, MacAddress),
    Damaged,
    Write(BufferId, Vec<u32>),
    Flag(u8, bool),
    Link(bool),
}

/// Keeps what a station does.
#[derive(Debug, Default)]
pub(crate) struct Recorder(pub(crate) StationRecord);

impl Observer for Recorder {
    fn trace(&mut self, entry: TraceEntry) {
        self.0.trace.push(entry);
    }

    fn transmit(&mut self, at: Cycles, transmission: Transmission<'_>) {
        let content = match transmission {
            Transmission::Data { message, words } => {
                SentContent::Data { message, words: words.to_vec() }
            }
            Transmission::Sync { round } => SentContent::Sync { round },
        };
        self.0.sent.push(SentFrame { at, content });
    }
}

/// Gives an interpreter an input of its next cycle.
pub(crate) fn stimulate(interpreter: &mut Interpreter, stimulus: &Stimulus) -> bool {
    match stimulus {
        Stimulus::Data(message, words) => interpreter.data_received(*message, words),
        Stimulus::Sync(round, source) => interpreter.sync_received(*round, *source),
        Stimulus::Damaged => interpreter.damaged(),
        Stimulus::Write(buffer, words) => return interpreter.write(*buffer, words).is_ok(),
        Stimulus::Flag(flag, is_set) => return interpreter.set_flag(*flag, *is_set).is_ok(),
        Stimulus::Link(is_up) => interpreter.link(*is_up),
    }
    true
}

/// A station and the interpreter of the same program, at the same cycle.
pub(crate) struct Pair {
    pub(crate) station: Station,
    pub(crate) interpreter: Interpreter,
    pub(crate) executed: Recorder,
    pub(crate) interpreted: StationRecord,
    /// What has been given to them, with its cycle.
    pub(crate) stimuli: Vec<(u64, Stimulus)>,
    buffers: usize,
}

impl Pair {
    pub(crate) fn new(program: &StationProgram) -> Self {
        Self {
            station: Station::new(program.clone()),
            interpreter: Interpreter::new(program.clone()),
            executed: Recorder::default(),
            interpreted: StationRecord::default(),
            stimuli: Vec::new(),
            buffers: program.buffers.len(),
        }
    }

    /// Has both carry out all cycles before one, and compares them.
    pub(crate) fn run(&mut self, until: u64) {
        self.interpreter.run(Cycles(until), &mut self.interpreted);
        while self.station.next() < Cycles(until) {
            self.station.advance(self.station.next(), &mut self.executed);
        }
        self.compare();
    }

    /// An input of a cycle that has not been carried out.
    pub(crate) fn give(&mut self, at: u64, stimulus: Stimulus) {
        self.interpreter.run(Cycles(at), &mut self.interpreted);
        let was_taken = stimulate(&mut self.interpreter, &stimulus);
        let at_cycle = Cycles(at);
        let station = &mut self.station;
        let is_taken = match &stimulus {
            Stimulus::Data(message, words) => {
                station.data_received(at_cycle, *message, words.iter().copied());
                true
            }
            Stimulus::Sync(round, source) => {
                station.sync_received(at_cycle, *round, *source);
                true
            }
            Stimulus::Damaged => {
                station.damaged();
                true
            }
            Stimulus::Write(buffer, words) => station.write(*buffer, words).is_ok(),
            Stimulus::Flag(flag, is_set) => station.set_flag(*flag, *is_set).is_ok(),
            Stimulus::Link(is_up) => {
                station.link(*is_up);
                true
            }
        };
        assert_eq!(was_taken, is_taken, "{stimulus:?}");
        self.stimuli.push((at, stimulus));
    }

    pub(crate) fn counters(&self) -> &StationCounters {
        self.station.counters()
    }

    fn compare(&self) {
        let (trace, sent) = (&self.executed.0.trace, &self.executed.0.sent);
        // The interpreter has an entry when the next instruction is fetched, and a frame when it
        // has left: one of each may be missing.
        let done = self.interpreted.trace.len();
        assert_eq!(&self.interpreted.trace[..], &trace[..done.min(trace.len())]);
        assert!(trace.len() <= done + 1, "{:?}", &trace[done..]);
        let current = self.interpreter.current();
        match (trace.get(done), current) {
            (Some(entry), current) => {
                let expected = Some((entry.address, entry.issued, Some(entry.outcome)));
                assert_eq!(current, expected);
            }
            (None, Some((.., outcome))) => {
                let may_wait = matches!(outcome, None | Some(Outcome::Synchronised(Some(_))));
                assert!(may_wait, "the station has not issued {current:?}");
            }
            (None, None) => {}
        }
        let left = self.interpreted.sent.len();
        assert_eq!(&self.interpreted.sent[..], &sent[..left.min(sent.len())]);
        assert!(sent.len() <= left + 1, "{:?}", &sent[left..]);
        assert_eq!(self.interpreter.counters(), self.station.counters());
        for buffer in (0..self.buffers).map(|index| BufferId(index as u8)) {
            assert_eq!(self.interpreter.read(buffer), self.station.read(buffer), "{buffer:?}");
        }
    }
}
