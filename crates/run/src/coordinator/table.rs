//! The tables of a run: each is read at positions of its own kind, so that a thread's number is
//! never taken for that of a program or of an endpoint.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A position in a [`Table`].
pub(super) trait Position: Copy {
    /// The same as a number, from 0.
    fn number(self) -> u32;
    /// The position of that number.
    fn at(number: u32) -> Self;
}

macro_rules! position {
    ($(#[$meaning:meta])* $name:ident) => {
        $(#[$meaning])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) struct $name(pub(super) u32);

        impl Position for $name {
            fn number(self) -> u32 {
                self.0
            }
            fn at(number: u32) -> Self {
                Self(number)
            }
        }
    };
}

position! {
    /// A program that the run starts.
    ProgramId
}
position! {
    /// A thread of one of its programs: also its ticket.
    ThreadId
}
position! {
    /// An endpoint of a channel that a program has opened.
    EndpointId
}

/// Entries in the order in which they came; none is ever removed.
#[derive(Debug)]
pub(super) struct Table<P, T> {
    entries: Vec<T>,
    position: PhantomData<P>,
}

impl<P: Position, T> Table<P, T> {
    /// The position of an entry that came last.
    pub(super) fn push(&mut self, entry: T) -> P {
        let position = self.next();
        self.entries.push(entry);
        position
    }

    /// Where the next entry will be.
    pub(super) fn next(&self) -> P {
        P::at(u32::try_from(self.entries.len()).expect("limits keep tables short"))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All positions that there are now.
    pub(super) fn positions(&self) -> impl DoubleEndedIterator<Item = P> + use<P, T> {
        (0..self.next().number()).map(P::at)
    }

    pub(super) fn get(&self, position: P) -> Option<&T> {
        self.entries.get(position.number() as usize)
    }

    pub(super) fn get_mut(&mut self, position: P) -> Option<&mut T> {
        self.entries.get_mut(position.number() as usize)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// The first entry of which something is true.
    pub(super) fn position(&self, is_it: impl FnMut(&T) -> bool) -> Option<P> {
        self.entries.iter().position(is_it).map(|at| P::at(at as u32))
    }
}

impl<P: Position, T> Index<P> for Table<P, T> {
    type Output = T;
    fn index(&self, position: P) -> &T {
        &self.entries[position.number() as usize]
    }
}

impl<P: Position, T> IndexMut<P> for Table<P, T> {
    fn index_mut(&mut self, position: P) -> &mut T {
        &mut self.entries[position.number() as usize]
    }
}

impl<P, T> Default for Table<P, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), position: PhantomData }
    }
}

impl<P, T> FromIterator<T> for Table<P, T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self { entries: entries.into_iter().collect(), position: PhantomData }
    }
}

impl<P, T> IntoIterator for Table<P, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}
