//! Network channels with a bounded delay: what a program of an Onbeat system is linked with.
//!
//! A channel has one talker, any number of listeners, and messages of a fixed size. A program opens
//! its ends, starts, and then writes, reads and sleeps until a call returns
//! [`ChannelError::Stopped`]. The program is the same on a simulated network, where time may be
//! virtual, and on an interface.
//!
//! ```no_run
//! use onbeat::{Context, ChannelError, SyncedTime, Octets, Timeout, SetupError, Span};
//!
//! const SIZE: Octets = Octets::new(8);
//! const PERIOD: Span = Span::from_ms(20);
//!
//! /// Sends a counter 50 times a second.
//! fn talk() -> Result<(), SetupError> {
//!     let context = Context::join()?;
//!     let mut counter = context.open_talker("mcast42", SIZE)?;
//!     context.start()?;
//!     for i in 0..i64::MAX {
//!         counter.write(&i.to_le_bytes())?;
//!         context.sleep_until(SyncedTime::ZERO + PERIOD * (i + 1))?;
//!     }
//!     Ok(())
//! }
//!
//! /// Prints the counter and how long each message took.
//! fn listen() -> Result<(), SetupError> {
//!     let context = Context::join()?;
//!     let mut counter = context.open_listener("mcast42", SIZE)?;
//!     context.start()?;
//!     let mut value = [0; 8];
//!     while let Some(info) = counter.read(&mut value, Timeout::Endless)? {
//!         println!("{} after {}", i64::from_le_bytes(value), info.latency);
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), SetupError> {
//!     let over = match std::env::args().nth(1).as_deref() {
//!         Some("talk") => talk(),
//!         _ => listen(),
//!     };
//!     match over {
//!         Err(SetupError::ChannelError(ChannelError::Stopped)) => Ok(()),
//!         other => other,
//!     }
//! }
//! ```
//!
//! [`Context::join`] finds its network in the environment. `onbeat run` starts a program so. On an
//! interface `ONBEAT_INTERFACE` names it, and `ONBEAT_SYSTEM` a [table of the host's
//! channels](interface::ChannelTable); a program that says both itself begins with
//! [`interface::InterfaceContext::open`].
//!
//! After [`Context::start`] reading, writing and sleeping allocate nothing and take no lock;
//! [`TalkerEndpoint`] and [`ListenerEndpoint`] say what each call waits for.
#![allow(unsafe_code)]

// Times of 64 bits are read and written by single atomic operations in shared memory, and eBPF
// programs are made of the host's own words: neither is so elsewhere, and nothing is tested there.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("Onbeat runs on 64-bit little-endian Linux only (README.md, Status)");

#[doc(hidden)] // for the run's side
pub mod bpf;
pub mod clock;
pub mod context;
pub mod coordinator;
#[doc(hidden)] // for the run's side
pub mod environment;
mod fork;
pub mod instrument;
pub mod interface;
pub mod keys;
mod mapping;
pub mod recorder;
#[doc(hidden)] // for the command
pub mod regular;
pub mod selector;
pub mod shared_log;

pub use clock::MonoTime;
pub use context::{ANY_SIZE, Context, EndpointIo, Listener, Talker};
pub use coordinator::client::{AnnouncedThread, SetupError};
pub use coordinator::protocol::Work;
pub use interface::InterfaceSettings;
pub use onbeat_model::time::{Span, SyncedTime};
pub use onbeat_model::units::{MacAddress, Octets, StreamId};
pub use onbeat_runtime::channel::{ListenerEndpoint, MessageInfo, TalkerEndpoint, Waited, Written};
pub use onbeat_runtime::channel_io::{ChannelError, Instant, Timeout};
pub use onbeat_runtime::liveness::{Liveness, condition};
pub use onbeat_runtime::meeting::rendezvous;
pub use onbeat_runtime::talker::ChannelParameters;
pub use selector::Selector;
