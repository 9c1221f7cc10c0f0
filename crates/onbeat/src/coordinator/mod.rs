//! A program's side of the run coordinator, which joins it to a run: [`client`] asks, in the words
//! of [`protocol`], over a [`socket`]. The other side is the crate `onbeat-run`.

pub mod client;
pub mod protocol;
pub mod socket;
pub mod socket_queue;
