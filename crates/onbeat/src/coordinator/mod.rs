//! A program's side of the run coordinator, which joins it to a run: [`client`] asks, in the words
//! of [`protocol`], over a [`socket`], in virtual time by a [`mailbox`]. The other side is the
//! crate `onbeat-run`.

pub mod client;
mod control;
pub mod mailbox;
pub mod protocol;
pub mod socket;
pub mod socket_queue;
