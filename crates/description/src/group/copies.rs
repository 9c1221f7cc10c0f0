//! Where the copies of a group's tables are. Each copy has places of its own, past the end of the
//! largest file, from which the place in the text and the copy can be told.

use onbeat_model::diagnostic::Origin;
use onbeat_model::limits;
use std::ops::Range;

/// The copies of all tables of groups.
#[derive(Debug, Default)]
pub(crate) struct GroupCopies {
    /// In the order of their places.
    list: Vec<Copies>,
    octets: usize,
}

/// The copies of one table.
#[derive(Debug)]
struct Copies {
    /// The first place of the first copy.
    base: usize,
    /// From one copy to the next.
    stride: usize,
    /// Where the table starts in the text.
    start: usize,
    /// Per group around it, from the outermost: its name and how many there are.
    groups: Vec<(String, u64)>,
}

/// One copy of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupCopy {
    copies: usize,
    ordinal: u64,
}

impl GroupCopies {
    /// Makes room for copies of the table at `extent`, one for each of the groups around it, and
    /// says by how much the first copy is moved and each further one more. Nothing if there is
    /// no room: so no text makes copies without end.
    pub(super) fn reserve(
        &mut self,
        extent: Range<usize>,
        groups: &[(String, u64)],
    ) -> Option<(usize, usize)> {
        // An error at the end of a table is still in it.
        let stride = extent.len() + 1;
        let copies = groups.iter().fold(1u64, |product, (_, count)| product.saturating_mul(*count));
        let octets = usize::try_from(copies).ok()?.checked_mul(stride)?;
        let sum = self.octets.checked_add(octets).filter(|sum| *sum <= limits::GROUP_OCTETS)?;
        let base = limits::FILE_OCTETS + 1 + self.octets;
        self.octets = sum;
        self.list.push(Copies { base, stride, start: extent.start, groups: groups.to_vec() });
        Some((base - extent.start, stride))
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The place in the text, and the copy if it is in one.
    pub(crate) fn place(&self, origin: Origin) -> (Origin, Option<GroupCopy>) {
        let start = origin.start as usize;
        let copies = self.list.partition_point(|copies| copies.base <= start);
        let Some(at) = copies.checked_sub(1).filter(|_| origin.file == 0) else {
            return (origin, None);
        };
        let Copies { base, stride, start: first, .. } = self.list[at];
        let ordinal = (start - base) / stride;
        // Files and copies have less than 4 GiB by far.
        let moved = (base + ordinal * stride - first) as u32;
        let (start, end) = (origin.start - moved, origin.end.saturating_sub(moved));
        let copy = GroupCopy { copies: at, ordinal: ordinal as u64 };
        (Origin { start, end: end.max(start), ..origin }, Some(copy))
    }

    /// Which copy it is: `rack = 3, io = 17`.
    pub(crate) fn describe(&self, copy: GroupCopy) -> String {
        let mut ordinal = copy.ordinal;
        let mut parts = Vec::new();
        for (name, count) in self.list[copy.copies].groups.iter().rev() {
            parts.push(format!("{name} = {}", ordinal % count));
            ordinal /= count;
        }
        parts.reverse();
        parts.join(", ")
    }
}
