//! What a supervisor is told of the turns before its own: a window over them that moves in whole turns.
//!
//! Each turn records what it adds and the oldest turn that is still told ([`TurnTranscript`]); the window is what follows
//! from that. It is filled up to its bound and then emptied down to half of it in one go, so that between two such
//! moments it only grows at its end: a prompt that begins with it stays the same from its beginning.
//!
//! What a turn adds is written where it is decided (`decide/transcript.rs`). Nothing is written anew when a log is read.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::ContextBounds;
use baton_model::event::{TranscriptEntry, TurnTranscript};
use serde::{Deserialize, Serialize};

/// What is told, oldest first: all of a turn or nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    entries: VecDeque<Arc<TranscriptEntry>>,
    chars: usize,
    /// Older turns were let go.
    shortened: bool,
}

impl Transcript {
    /// Takes in what a turn added, and lets go of what it does not see.
    pub fn take(&mut self, change: &TurnTranscript) {
        while let Some(gone) = self.entries.pop_front_if(|entry| entry.iteration < change.first) {
            self.chars -= length(&gone);
            self.shortened = true;
        }
        for entry in change.added.iter().filter(|entry| entry.iteration >= change.first) {
            self.chars += length(entry);
            self.entries.push_back(Arc::new(entry.clone()));
        }
    }

    /// The oldest turn that is still told once these are added, which are of one turn.
    pub(crate) fn first_after(&self, added: &[TranscriptEntry], bounds: ContextBounds) -> u64 {
        let turn = |entry: &TranscriptEntry| entry.iteration;
        let newest = added.last().map(turn).or_else(|| self.entries.back().map(|entry| turn(entry)));
        let oldest = self.entries.front().map(|entry| turn(entry)).or(newest);
        let (Some(oldest), Some(newest)) = (oldest, newest) else { return 1 };
        let most = bounds.transcript_chars as usize;
        let mut chars = self.chars + added.iter().map(length).sum::<usize>();
        if chars <= most {
            return oldest;
        }
        let kept = newest.saturating_sub(u64::from(bounds.keep_last_turns)) + 1;
        let mut first = oldest;
        for entry in &self.entries {
            if entry.iteration >= kept || (entry.iteration >= first && chars <= most / 2) {
                break;
            }
            chars -= length(entry);
            first = entry.iteration.saturating_add(1);
        }
        first
    }

    pub fn entries(&self) -> impl Iterator<Item = &TranscriptEntry> {
        self.entries.iter().map(|entry| &**entry)
    }

    /// Characters of all entries together.
    pub fn chars(&self) -> usize {
        self.chars
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&TranscriptEntry> {
        self.entries.get(index).map(|entry| &**entry)
    }

    pub(crate) fn is_shortened(&self) -> bool {
        self.shortened
    }
}

fn length(entry: &TranscriptEntry) -> usize {
    entry.text.chars().count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::NodeId;
    use proptest::prelude::*;

    fn entry(iteration: u64, chars: usize) -> TranscriptEntry {
        let (kind, node_id) = ("runOrchestrator.decided".to_owned(), NodeId::new("sup"));
        TranscriptEntry { seq: iteration, kind, node_id, iteration, text: "é".repeat(chars) }
    }

    /// Takes the turns one after the other, each as long as its number says; gives the window after each.
    fn windows(bounds: ContextBounds, lengths: &[usize]) -> Vec<Transcript> {
        let mut window = Transcript::default();
        let mut all = Vec::new();
        for (place, length) in lengths.iter().enumerate() {
            let half = length / 2;
            let added = vec![entry(place as u64 + 1, half), entry(place as u64 + 1, length - half)];
            let first = window.first_after(&added, bounds);
            window.take(&TurnTranscript { iteration: place as u64 + 2, first, added });
            all.push(window.clone());
        }
        all
    }

    #[test]
    fn a_full_window_is_emptied_down_to_half_in_one_go() {
        let bounds = ContextBounds { transcript_chars: 2000, keep_last_turns: 5 };
        let windows = windows(bounds, &[200; 25]);
        let oldest: Vec<u64> = windows.iter().map(|window| window.entries[0].iteration).collect();
        let mut expected = vec![1; 10];
        // The eleventh is one too many: five are left, and room for five more.
        expected.extend([7; 6]);
        assert_eq!(oldest[..16], expected[..16], "{oldest:?}");
        let moves = oldest.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(moves, 3, "{oldest:?}");
    }

    proptest! {
        #[test]
        fn a_window_is_bounded_keeps_its_last_turns_and_has_no_gap(
            chars in 2000_u32..6000, keep in 1_u32..12, lengths in prop::collection::vec(0_usize..1000, 1..80)
        ) {
            let bounds = ContextBounds { transcript_chars: chars, keep_last_turns: keep }.at_most(Some(chars));
            let lengths: Vec<usize> = lengths.into_iter().map(|length| length.min(bounds.turn_chars())).collect();
            for (place, window) in windows(bounds, &lengths).iter().enumerate() {
                let mut told: Vec<u64> = window.entries().map(|entry| entry.iteration).collect();
                prop_assert!(told.chunks(2).all(|turn| turn.len() == 2 && turn[0] == turn[1]), "whole turns");
                told.dedup();
                let newest = place as u64 + 1;
                prop_assert!(window.chars <= chars as usize);
                prop_assert_eq!(window.chars, window.entries().map(|entry| entry.text.chars().count()).sum::<usize>());
                prop_assert_eq!(*told.last().unwrap(), newest);
                prop_assert!(told.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                prop_assert!(told.len() as u64 >= newest.min(bounds.keep_last_turns.into()));
                prop_assert_eq!(window.shortened, told[0] > 1);
            }
        }
    }
}
