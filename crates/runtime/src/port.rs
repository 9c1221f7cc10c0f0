//! The one seam between a program and the world: everything that tells the time, waits, sends or
//! receives goes through [`Port`], so that the same program runs in every engine.

use onbeat_model::record::Record;
use onbeat_model::time::{LocalTime, NetTime};

/// Why an operation did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The run is over; the program should clean up and exit.
    #[error("the run is over")]
    Stopped,
    /// The fabric or the network is gone, or talks nonsense.
    #[error("the connection to the fabric is lost")]
    Disconnected,
    /// The call came before `start`.
    #[error("start has not been called")]
    NotStarted,
    /// The interface did not take the frame, or gives none.
    #[error("the interface is down, or its queue is full: the frame was not sent or received")]
    Network,
    /// The thread was not made known to the fabric.
    #[error("the thread was not started through onbeat_thread_create")]
    UnknownThread,
    /// The end's limit came before what was waited for.
    #[error("the end's limit came before what was waited for")]
    TimedOut,
}

/// An instant, on the port's own clock and, where an emulation knows it, in true network time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant {
    /// What the host's copy of the network clock reads.
    pub local: LocalTime,
    /// True network time.
    pub network: Option<NetTime>,
}

/// What the octets are that a port received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An Ethernet frame, tagged or not, without its FCS.
    Ethernet,
    /// A data unit alone, as a datagram carries it.
    Datagram,
}

/// A frame that a port received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length.
    pub length: usize,
    /// What it is.
    pub framing: Framing,
    /// When its last octet was at the host's port.
    pub arrived: LocalTime,
    /// When it was there for the program to read: now, for a program that was waiting in this call.
    pub ready: Instant,
    /// It was there before the program made this call.
    pub waited: bool,
}

/// How long a receive waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// Until this instant.
    Until(LocalTime),
    /// For ever.
    Endless,
}

/// When a reader expects its next message, by its port's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Not before this instant.
    pub open: LocalTime,
    /// Hardly after this one.
    pub close: LocalTime,
}

/// A channel end's way to clock and network.
pub trait Port {
    /// Now.
    fn now(&mut self) -> Result<Instant, Fault>;
    /// Whether the clock is not known to be synchronised.
    fn uncertain(&self) -> bool;
    /// Waits until the clock reads `target` or later; returns when it continued.
    fn sleep_until(&mut self, target: LocalTime) -> Result<Instant, Fault>;
    /// Whether at `now` the program may wait no more at this end.
    fn is_over(&self, _now: LocalTime) -> bool {
        false
    }
    /// Whether a message that is captured at `at` may be written: [`Fault::Stopped`] when talkers
    /// may no longer write then. Asked before anything is changed, so that a write which is refused
    /// has no effect.
    fn may_write(&self, _at: LocalTime) -> Result<(), Fault> {
        Ok(())
    }
    /// Hands a frame to the network.
    fn send(&mut self, frame: &[u8]) -> Result<(), Fault>;
    /// Hands a frame to the network so that it leaves at `at`: by the kernel's launch time where
    /// there is one, else after sleeping until then.
    fn launch(&mut self, frame: &[u8], at: LocalTime) -> Result<(), Fault> {
        self.sleep_until(at)?;
        self.send(frame)
    }
    /// Waits for a frame; `None` when there is none within `patience`. When one is expected in a
    /// `window`, a port may use what it knows to have it sooner.
    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Patience,
        window: Option<Window>,
    ) -> Result<Option<Received>, Fault>;
}

/// A port whose waits end with [`Fault::TimedOut`] at a limit that the program sets.
#[derive(Debug)]
pub struct Limited<P> {
    port: P,
    limit: LocalTime,
}

impl<P> Limited<P> {
    /// Without a limit as yet.
    pub fn new(port: P) -> Self {
        Self { port, limit: LocalTime::MAX }
    }

    /// The port itself.
    pub fn inner(&self) -> &P {
        &self.port
    }

    /// From now on no wait lasts longer than until the clock reads `limit`.
    pub fn limit(&mut self, limit: LocalTime) {
        self.limit = limit;
    }
}

impl<P: Port> Port for Limited<P> {
    #[inline]
    fn now(&mut self) -> Result<Instant, Fault> {
        self.port.now()
    }

    #[inline]
    fn uncertain(&self) -> bool {
        self.port.uncertain()
    }

    fn sleep_until(&mut self, target: LocalTime) -> Result<Instant, Fault> {
        if target <= self.limit {
            return self.port.sleep_until(target);
        }
        self.port.sleep_until(self.limit)?;
        Err(Fault::TimedOut)
    }

    fn is_over(&self, now: LocalTime) -> bool {
        now > self.limit
    }

    #[inline]
    fn may_write(&self, at: LocalTime) -> Result<(), Fault> {
        self.port.may_write(at)
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<(), Fault> {
        self.port.send(frame)
    }

    fn launch(&mut self, frame: &[u8], at: LocalTime) -> Result<(), Fault> {
        self.port.launch(frame, at)
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Patience,
        window: Option<Window>,
    ) -> Result<Option<Received>, Fault> {
        let beyond = match patience {
            Patience::None => false,
            Patience::Until(until) => until > self.limit,
            Patience::Endless => self.limit < LocalTime::MAX,
        };
        if !beyond {
            return self.port.receive(into, patience, window);
        }
        match self.port.receive(into, Patience::Until(self.limit), window)? {
            None => Err(Fault::TimedOut),
            received => Ok(received),
        }
    }
}

/// Why a frame never reaches the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is not of a channel's shape: truncated, of another type, version or length.
    Shape,
    /// It belongs to another stream or goes to another address.
    Stream,
    /// Its message has another size.
    Size,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Shape, Self::Stream, Self::Size];
}

/// Where an end's records and counts go: memory of a fixed size, full when it is full.
pub trait Log {
    /// Adds a record.
    fn push(&mut self, record: &Record);
    /// Replaces the record that was added last.
    fn amend(&mut self, record: &Record);
    /// Counts a frame that was rejected.
    fn reject(&mut self, reason: Reason);
    /// Counts a message that the declared rate did not allow at once.
    fn rate_exceeded(&mut self);
}
