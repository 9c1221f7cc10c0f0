//! A buffer that is written whole while it is read a word at a time.

/// Three banks: the complete one, the one that is copied from, and one to write to. Hardware does
/// with two for a receive buffer, because a frame takes longer than the copy of the one before it;
/// an application may write twice meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    banks: [Vec<u32>; 3],
    latest: usize,
    pinned: Option<usize>,
}

impl Banks {
    pub(super) fn new(words: u16) -> Self {
        let bank = vec![0; usize::from(words)];
        Self { banks: [bank.clone(), bank.clone(), bank], latest: 0, pinned: None }
    }

    /// The complete bank.
    pub(super) fn latest(&self) -> &[u32] {
        &self.banks[self.latest]
    }

    /// The bank that a copy is made from.
    ///
    /// # Panics
    /// When none is made.
    pub(super) fn pinned(&self) -> &[u32] {
        &self.banks[self.pinned.expect("a copy in progress")]
    }

    /// Keeps the complete bank as it is until the copy is made.
    pub(super) fn pin(&mut self) {
        self.pinned = Some(self.latest);
    }

    pub(super) fn unpin(&mut self) {
        self.pinned = None;
    }

    /// Writes a bank, which is then the complete one.
    pub(super) fn write(&mut self, words: &[u32]) {
        let is_free = |bank: &usize| *bank != self.latest && Some(*bank) != self.pinned;
        let bank = (0..self.banks.len()).find(is_free).expect("one of three banks");
        self.banks[bank].copy_from_slice(words);
        self.latest = bank;
    }

    /// Writes one word in place, which `receive` does.
    pub(super) fn put(&mut self, index: usize, word: u32) {
        self.banks[self.latest][index] = word;
    }
}
