//! A list that grows with the run and hardly ever changes behind its end: what is full is kept in chunks that copies of a
//! state share, and that checkpoints name instead of holding.

use std::ops::{Index, IndexMut};
use std::sync::{Arc, OnceLock};

use baton_model::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Few enough that the open end is copied in no time, and enough that the names of the chunks are a small part of what is
/// in them.
pub(crate) const CHUNK: usize = 128;

#[derive(Clone)]
pub(crate) struct ChunkedList<T> {
    /// Of [`CHUNK`] entries each.
    full: Vec<Arc<Chunk<T>>>,
    open: Vec<T>,
}

/// Entries that a checkpoint stores once, under the digest of what is stored.
pub(crate) struct Chunk<T> {
    entries: Vec<T>,
    name: OnceLock<Digest>,
}

impl<T> Default for ChunkedList<T> {
    fn default() -> Self {
        Self { full: Vec::new(), open: Vec::new() }
    }
}

impl<T: Clone> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        // Whoever copies a chunk is about to change it.
        Self { entries: self.entries.clone(), name: OnceLock::new() }
    }
}

impl<T> ChunkedList<T> {
    pub(crate) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&mut self, entry: T) {
        self.open.push(entry);
        if self.open.len() == CHUNK {
            let entries = std::mem::take(&mut self.open);
            self.full.push(Arc::new(Chunk { entries, name: OnceLock::new() }));
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.full.get(index / CHUNK) {
            Some(chunk) => chunk.entries.get(index % CHUNK),
            None => self.open.get(index.checked_sub(self.full.len() * CHUNK)?),
        }
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.get(self.len().checked_sub(1)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().flat_map(|chunk| &chunk.entries).chain(&self.open)
    }

    pub(crate) fn full(&self) -> &[Arc<Chunk<T>>] {
        &self.full
    }

    pub(crate) fn open(&self) -> &[T] {
        &self.open
    }
}

impl<T> FromIterator<T> for ChunkedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
}

impl<T: Clone> ChunkedList<T> {
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        (index < self.len()).then(|| &mut self[index])
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.full.iter_mut().flat_map(|chunk| entries_mut(chunk)).chain(&mut self.open)
    }
}

impl<T: DeserializeOwned> ChunkedList<T> {
    /// Puts a list together again; none if it is not one that [`ChunkedList::push`] makes.
    pub(crate) fn restore(full: Vec<Chunk<T>>, open: Vec<T>) -> Option<Self> {
        let whole = open.len() < CHUNK && full.iter().all(|chunk| chunk.entries.len() == CHUNK);
        whole.then(|| Self { full: full.into_iter().map(Arc::new).collect(), open })
    }
}

/// A chunk that somebody else has as well is copied.
fn entries_mut<T: Clone>(chunk: &mut Arc<Chunk<T>>) -> &mut Vec<T> {
    let chunk = Arc::make_mut(chunk);
    chunk.name = OnceLock::new();
    &mut chunk.entries
}

impl<T> Index<usize> for ChunkedList<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        match self.full.get(index / CHUNK) {
            Some(chunk) => &chunk.entries[index % CHUNK],
            None => &self.open[index - self.full.len() * CHUNK],
        }
    }
}

impl<T: Clone> IndexMut<usize> for ChunkedList<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let full = self.full.len();
        match self.full.get_mut(index / CHUNK) {
            Some(chunk) => &mut entries_mut(chunk)[index % CHUNK],
            None => &mut self.open[index - full * CHUNK],
        }
    }
}

/// As if it were one list.
impl<T: std::fmt::Debug> std::fmt::Debug for ChunkedList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for ChunkedList<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<T: Serialize> Chunk<T> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Entries are data that the log has as JSON too.
        serde_json::to_vec(&self.entries).unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &Digest {
        self.name.get_or_init(|| Digest::of_bytes(self.bytes()))
    }
}

impl<T: DeserializeOwned> Chunk<T> {
    /// Reads back what [`Chunk::bytes`] wrote, unless it is not what the name says.
    pub(crate) fn read(name: &Digest, bytes: &[u8]) -> Option<Self> {
        if Digest::of_bytes(bytes) != *name {
            return None;
        }
        Some(Self { entries: serde_json::from_slice(bytes).ok()?, name: OnceLock::from(name.clone()) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(entries: impl IntoIterator<Item = u32>) -> ChunkedList<u32> {
        let mut list = ChunkedList::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }

    fn written(list: &ChunkedList<u32>) -> Vec<(Digest, Vec<u8>)> {
        list.full().iter().map(|chunk| (chunk.name().clone(), chunk.bytes())).collect()
    }

    #[test]
    fn a_copy_shares_what_is_full_until_one_of_them_changes_it() {
        let mut list = list(0..3 * CHUNK as u32 + 5);
        let copy = list.clone();
        assert!(list.full.iter().zip(&copy.full).all(|(one, other)| Arc::ptr_eq(one, other)));
        let before = written(&list);
        list[CHUNK + 1] = 7;
        let shared: Vec<bool> = list.full.iter().zip(&copy.full).map(|(one, other)| Arc::ptr_eq(one, other)).collect();
        assert_eq!(shared, [true, false, true]);
        assert_eq!((list[CHUNK + 1], copy[CHUNK + 1]), (7, CHUNK as u32 + 1));
        assert_eq!(written(&copy), before, "a name stands for one content for ever");
        assert_ne!(written(&list)[1].0, before[1].0, "what changed has another name");
    }

    proptest! {
        #[test]
        fn it_is_a_list(entries in prop::collection::vec(any::<u32>(), 0..5 * CHUNK), at in any::<prop::sample::Index>()) {
            let mut chunked = list(entries.iter().copied());
            let mut plain = entries;
            if !plain.is_empty() {
                let at = at.index(plain.len());
                (plain[at], chunked[at]) = (1, 1);
                prop_assert_eq!(chunked.get(at), Some(&1));
            }
            prop_assert_eq!(chunked.len(), plain.len());
            prop_assert_eq!(chunked.last(), plain.last());
            prop_assert_eq!(chunked.get(plain.len()), None);
            prop_assert_eq!(chunked.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
            let read = written(&chunked).iter().map(|(name, bytes)| Chunk::read(name, bytes).unwrap()).collect();
            let restored: ChunkedList<u32> = ChunkedList::restore(read, chunked.open().to_vec()).unwrap();
            prop_assert_eq!(format!("{restored:?}"), format!("{plain:?}"));
            chunked.iter_mut().for_each(|entry| *entry ^= 1);
            prop_assert_eq!(chunked.iter().copied().collect::<Vec<_>>(), plain.iter().map(|e| e ^ 1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bytes_that_are_not_what_the_name_says_are_no_chunk() {
        let list = list(0..CHUNK as u32);
        let (name, mut bytes) = written(&list).remove(0);
        bytes[1] ^= 1;
        assert!(Chunk::<u32>::read(&name, &bytes).is_none());
    }
}
