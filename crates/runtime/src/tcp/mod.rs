//! TCP (RFC 9293) without I/O, as far as messages in one direction of an open connection need it:
//! [`Sender`] and [`Receiver`] are its two ends. Writes, segments and the time go in, segments come
//! out. The tests put a network between them that loses, duplicates and reorders.
//!
//! ```text
//! write ──→ sender ──→ segments ──→ receiver ──→ octets in order, once
//!             ├ estimator: when to send again          (RFC 6298)
//!             └──────────← acknowledgements ←──┘
//! ```
//!
//! # Rules, and where they are from
//! - *Segments* hold at most [`MSS`] octets. A write leaves in segments of its own unless something
//!   keeps it back; what is kept back leaves together. What is sent again is cut from the stream
//!   again, as Linux collapses small segments (`tcp_retrans_try_collapse`).
//! - *Nagle's algorithm* (RFC 896, RFC 9293 3.7.4) keeps a short segment back while a short one is
//!   unacknowledged (Minshall's variant, Linux `tcp_nagle_check`).
//! - *Retransmission timer*: RFC 6298 section 5, one timer for the oldest unacknowledged segment,
//!   doubled each time it expires. As in Linux (`tcp_rtt_estimator`, `tcp_set_rto`) the minimum of
//!   200 ms is of the variance term: RTO = SRTT + max(4·RTTVAR, 200 ms), at most 120 s; 1 s before
//!   the first sample. A timer is exact: there are no ticks. Samples are by Karn's algorithm: none
//!   of what was sent twice. After an expiry the sender goes back to the first unacknowledged
//!   octet. After 15 expiries without progress (`tcp_retries2`) the connection has failed.
//! - *Fast retransmit and recovery*: RFC 5681 3.2 at the third duplicate acknowledgement, with the
//!   partial acknowledgements of NewReno (RFC 6582).
//! - *Congestion window*: RFC 5681 3.1, initially 10 segments (RFC 6928). It grows only while it is
//!   what limits the sender (Linux `tcp_is_cwnd_limited`). After an idle time it stays as it is.
//! - *Acknowledgements* ([`Acknowledge`]): cumulative. At once for what comes out of order, fills a
//!   gap or was there before (RFC 5681 4.2).
//!
//! Not modelled: the handshake and the end of connections, selective acknowledgements, RACK and
//! tail loss probes (RFC 8985), options (Linux's time stamps make frames 12 octets longer), windows
//! that close, ECN. Both ends read and write at once when they are told something.

mod estimator;
mod receiver;
mod segment;
mod sender;

#[cfg(test)]
mod tests;

pub use estimator::{RTO_INITIAL, RTO_MAX, RTO_MIN, RtoEstimator};
pub use receiver::{Acknowledge, DELAYED_ACK, QUICK_ACKS, Receiver, WINDOW};
pub use segment::{Direction, ETHERTYPE, HEADERS, TcpSegment};
pub use sender::{Counts, INITIAL_WINDOW, RETRIES_MAX, SEND_BUFFER, Sender};

/// The most octets of data in a segment: what an Ethernet frame holds after the headers of IPv4 and
/// TCP without options.
pub const MSS: usize = 1_460;
