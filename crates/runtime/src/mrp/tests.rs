//! PDUs against octets written by hand, the machines against the tables of the standard, and
//! participants on a link.

mod machines;
mod octets;
mod participants;
