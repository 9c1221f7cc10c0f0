//! Messages that are longer than a frame: each is sent as several fragments, all of one length, in
//! as many frames of the channel's stream.

use crate::units::{Octets, frame};

/// The longest message of a channel: its fragments wait together in queues of all engines.
pub const MESSAGE_MAX: Octets = Octets::new(65_536);

/// Octets before each fragment: its index from 0, and how many there are.
pub const HEADER: Octets = Octets::new(4);

/// What a frame with a fragment carries behind its stream header, R-TAG included: as much as a
/// datagram over IPv6 has room for on Ethernet (headers of 48 octets, and a number of 4).
const ROOM: u32 = 1_500 - 48 - 4 - frame::AVTP_HEADER.get();

/// How a channel's messages are divided among frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// How many frames a message has, at least 1.
    pub count: u32,
    /// Octets of the message in each; the last one may have zeros behind them.
    pub octets: Octets,
}

impl Fragments {
    /// Of messages of `message` octets, at most [`MESSAGE_MAX`], in frames that carry `more` octets
    /// beside them, such as a trailer and an R-TAG: one frame if that has room for the message.
    pub const fn of(message: Octets, more: Octets) -> Self {
        if message.get() + more.get() <= frame::MAX_CHANNEL_PAYLOAD.get() {
            return Self { count: 1, octets: message };
        }
        let count = message.get().div_ceil(ROOM - HEADER.get() - more.get());
        Self { count, octets: Octets::new(message.get().div_ceil(count)) }
    }

    /// What each frame carries of the message, with the fragment's header if it has one.
    pub const fn payload(self) -> Octets {
        match self.count {
            1 => self.octets,
            _ => Octets::new(HEADER.get() + self.octets.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_fragments_as_have_room_for_the_message_and_none_is_longer_than_a_frame() {
        for more in [0, 6, 8, 32, 38] {
            for message in 1..=MESSAGE_MAX.get() {
                let Fragments { count, octets } =
                    Fragments::of(Octets::new(message), Octets::new(more));
                let payload = Fragments { count, octets }.payload().get() + more;
                assert!(count * octets.get() >= message, "{message} in {count} of {octets:?}");
                assert!((count - 1) * octets.get() < message, "the last one has some of it");
                assert!(payload <= if count == 1 { 1_476 } else { ROOM }, "{message}: {payload}");
                assert!(count == 1 || (count - 1) * (ROOM - 4 - more) < message, "{message}");
                assert_eq!(count == 1, message + more <= 1_476, "{message} and {more}");
            }
        }
    }
}
