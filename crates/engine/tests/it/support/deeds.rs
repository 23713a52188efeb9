//! What others do to memory and workspace while a run is under way.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_model::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;

use super::versioned::VersionedStores;

/// Words that are written to memory and files, and looked for there.
pub const WORDS: [&str; 3] = ["sun", "rain", "snow"];
pub const PATHS: [&str; 2] = ["plan.md", "notes/a.md"];

/// Something a worker, or anybody else, does to what the loop looks at.
#[derive(Clone, Debug)]
pub enum Deed {
    Remember {
        word: &'static str,
        tag: &'static str,
        ttl_ms: Option<u64>,
    },
    /// Forgets the newest entry.
    Forget,
    Write {
        path: &'static str,
        word: &'static str,
    },
    Delete {
        path: &'static str,
    },
}

pub fn deed() -> impl Strategy<Value = Deed> {
    let word = || select(WORDS.to_vec());
    let path = || select(PATHS.to_vec());
    prop_oneof![
        4 => (word(), word(), proptest::option::weighted(0.6, 1_u64..50))
            .prop_map(|(word, tag, ttl_ms)| Deed::Remember { word, tag, ttl_ms }),
        1 => Just(Deed::Forget),
        3 => (path(), word()).prop_map(|(path, word)| Deed::Write { path, word }),
        1 => path().prop_map(|path| Deed::Delete { path }),
    ]
}

impl Deed {
    pub fn act(&self, ledgers: &mut VersionedStores, now: Timestamp) {
        match self {
            Self::Remember { word, tag, ttl_ms } => {
                ledgers.remember("run_worker", word, &[tag], *ttl_ms, now);
            }
            Self::Forget => {
                let newest = ledgers.entries(ledgers.versions().memory, now).into_iter().next();
                if let Some(entry) = newest {
                    ledgers.forget("run_worker", &entry.id);
                }
            }
            Self::Write { path, word } => {
                ledgers.write_file(path, word, None, now);
            }
            Self::Delete { path } => ledgers.delete_file(path),
        }
    }
}
