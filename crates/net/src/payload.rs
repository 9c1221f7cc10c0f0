//! The octets of live frames.

/// Points to the octets of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadId(u32);

impl PayloadId {
    /// A frame whose octets are never read.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// The most frames whose octets are held at a time, far above what the engine lets wait: whoever
/// gets here has lost frames in the engine, not in the network.
const MAX_FRAMES: usize = 1 << 24;

/// A slab of frames, shared by the copies of a multicast. A freed slot keeps its memory for the
/// next frame.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// How many octets the slots have.
    octets: usize,
}

#[derive(Debug, Default)]
struct Slot {
    /// As long as the longest frame that was here.
    octets: Box<[u8]>,
    /// How many of them are the frame's.
    length: u16,
    copies: u32,
}

impl Slot {
    /// Returns how many octets longer the slot is now.
    fn fill(&mut self, octets: &[u8]) -> usize {
        let before = self.octets.len();
        match self.octets.get_mut(..octets.len()) {
            Some(room) => room.copy_from_slice(octets),
            None => self.octets = octets.into(),
        }
        self.length = u16::try_from(octets.len()).expect("the length of a frame");
        self.octets.len() - before
    }
}

impl Payloads {
    /// Keeps the octets for one copy of the frame.
    pub(crate) fn hold(&mut self, octets: &[u8]) -> PayloadId {
        let at = self.free.pop().unwrap_or_else(|| {
            assert!(self.slots.len() < MAX_FRAMES, "too many frames under way");
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[at as usize];
        self.octets += slot.fill(octets);
        slot.copies = 1;
        PayloadId(at)
    }

    /// Counts `more` further copies.
    pub(crate) fn share(&mut self, id: PayloadId, more: u32) {
        if id != PayloadId::NONE {
            self.slots[id.0 as usize].copies += more;
        }
    }

    /// The octets of a frame.
    pub(crate) fn get(&self, id: PayloadId) -> &[u8] {
        let slot = &self.slots[id.0 as usize];
        &slot.octets[..usize::from(slot.length)]
    }

    /// Gives up one copy; the last one frees the octets.
    pub(crate) fn release(&mut self, id: PayloadId) {
        if id == PayloadId::NONE {
            return;
        }
        let slot = &mut self.slots[id.0 as usize];
        slot.copies -= 1;
        if slot.copies == 0 {
            self.free.push(id.0);
        }
    }

    /// How many octets of memory they take, those of free slots with them.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// How many frames' octets are held.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_live_until_the_last_copy_is_released_and_their_slot_is_used_again() {
        let mut payloads = Payloads::default();
        let first = payloads.hold(b"first");
        payloads.share(first, 1);
        payloads.release(first);
        assert_eq!((payloads.get(first), payloads.live()), (&b"first"[..], 1));
        payloads.release(first);
        assert_eq!(payloads.live(), 0);
        let second = payloads.hold(b"2nd");
        assert_eq!((second, payloads.get(second)), (first, &b"2nd"[..]));
        payloads.release(second);
        let third = payloads.hold(b"longer");
        assert_eq!((third, payloads.get(third)), (first, &b"longer"[..]));
    }
}
