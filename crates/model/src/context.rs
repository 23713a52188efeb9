use serde::{Deserialize, Serialize};

/// How much of what happened before a supervisor's turn is told. Counted in Unicode characters: anybody can count them
/// again, on any platform. Pinned when a run starts, so that its turns see the same whenever its log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextBounds {
    /// Characters of the whole transcript.
    pub transcript_chars: u32,
    /// The newest turns, which are never let go.
    pub keep_last_turns: u32,
}

impl Default for ContextBounds {
    fn default() -> Self {
        Self { transcript_chars: 24_000, keep_last_turns: 6 }
    }
}

impl ContextBounds {
    /// Less tells nothing worth the room; more is a large part of what a model takes in at all.
    pub const CHARS: std::ops::RangeInclusive<u32> = 2_000..=400_000;
    pub const TURNS: std::ops::RangeInclusive<u32> = 1..=32;
    /// Characters that there must be for each turn that is kept: half of them are its own, so that the kept turns take
    /// half of the whole at most.
    pub const CHARS_PER_TURN: u32 = 400;

    /// The same, with fewer characters where somebody asks for fewer. The turns that are kept still fit.
    #[must_use]
    pub fn at_most(self, chars: Option<u32>) -> Self {
        let transcript_chars = chars.map_or(self.transcript_chars, |chars| chars.min(self.transcript_chars));
        let fitting = (transcript_chars / Self::CHARS_PER_TURN).max(1);
        Self { transcript_chars, keep_last_turns: self.keep_last_turns.min(fitting) }
    }

    /// The most characters of one turn.
    pub fn turn_chars(self) -> usize {
        (self.transcript_chars / (2 * self.keep_last_turns.max(1))) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turns_that_are_kept_take_half_of_the_room_at_most() {
        for chars in [2_000, 2_001, 24_000, 399_999, 400_000] {
            for keep in [1, 6, 32] {
                let host = ContextBounds { transcript_chars: 400_000, keep_last_turns: keep };
                let bounds = host.at_most(Some(chars));
                assert_eq!(bounds.transcript_chars, chars);
                assert!(bounds.turn_chars() * bounds.keep_last_turns as usize * 2 <= chars as usize, "{bounds:?}");
                assert!(bounds.turn_chars() >= 200, "{bounds:?}");
            }
        }
        let host = ContextBounds::default();
        assert_eq!((host.turn_chars(), host.at_most(None), host.at_most(Some(50_000))), (2_000, host, host));
    }
}
