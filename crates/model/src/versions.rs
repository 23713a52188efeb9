use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// How far the memory scope and the workspace of a run had been written at some point of its log. Each of the two is
/// an append-only versioned store, so a version is all it takes to see it as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub workspace: u64,
}

impl Versions {
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// What a supervisor's turn sees, for as long as the turn lasts: nothing written later, nothing expired by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSnapshot {
    #[serde(flatten)]
    pub versions: Versions,
    pub at: Timestamp,
}

fn is_zero(version: &u64) -> bool {
    *version == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_frozen_view_reads_back_as_it_was_written() {
        let at = Timestamp::from_micros(1_234_567);
        for versions in
            [Versions::default(), Versions { memory: 3, workspace: 0 }, Versions { memory: 1, workspace: 9 }]
        {
            let frozen = TurnSnapshot { versions, at };
            let text = serde_json::to_string(&frozen).unwrap();
            assert_eq!(serde_json::from_str::<TurnSnapshot>(&text).unwrap(), frozen, "{text}");
        }
    }

    #[test]
    fn a_versioned_store_nobody_has_written_to_takes_no_room() {
        let frozen = TurnSnapshot { versions: Versions { memory: 0, workspace: 2 }, at: Timestamp::from_micros(0) };
        assert_eq!(serde_json::to_value(frozen).unwrap(), json!({"workspace": 2, "at": frozen.at}));
        assert!(Versions::default().is_zero() && !frozen.versions.is_zero());
    }
}
