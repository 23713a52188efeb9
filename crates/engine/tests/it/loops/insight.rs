//! What a supervisor's rules look at, each said twice: as the CEL the engine evaluates, and as plain code over the
//! naive versioned stores.

use std::collections::BTreeMap;

use baton_model::{MemoryEntry, TurnSnapshot, WorkspaceFile};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::deeds::{PATHS, WORDS};
use crate::support::versioned::VersionedStores;

/// One condition of a rule.
#[derive(Clone, Debug)]
pub enum Look {
    /// At least this many entries.
    Entries(usize),
    /// Some entry says this.
    Says(&'static str),
    /// The newest entry carries this tag.
    Newest(&'static str),
    /// This file has been written at least this often.
    File(&'static str, u64),
    /// The file holds this word.
    Holds(&'static str, &'static str),
    Turn(u64),
    /// At least this many workers have been started.
    Workers(usize),
    /// A human sent the decision back.
    SentBack,
}

/// Everything a turn may look at.
pub struct Insight {
    pub memory: Vec<MemoryEntry>,
    pub files: BTreeMap<String, WorkspaceFile>,
    pub turn: u64,
    pub workers: usize,
    pub sent_back: bool,
}

impl Insight {
    /// What the versioned stores were at the versions and the instant a turn has on record.
    pub fn new(ledgers: &VersionedStores, frozen: TurnSnapshot, turn: u64, workers: usize, sent_back: bool) -> Self {
        let memory = ledgers.entries(frozen.versions.memory, frozen.at);
        Self { memory, files: ledgers.files(frozen.versions.workspace), turn, workers, sent_back }
    }
}

impl Look {
    pub fn cel(&self) -> String {
        match self {
            Self::Entries(n) => format!("size(memory) >= {n}"),
            Self::Says(word) => format!("memory.exists(entry, entry.content == '{word}')"),
            Self::Newest(tag) => format!("size(memory) > 0 && '{tag}' in memory[0].tags"),
            Self::File(path, n) => format!("'{path}' in workspace && workspace['{path}'].version >= {n}"),
            Self::Holds(path, word) => format!("'{path}' in workspace && workspace['{path}'].content == '{word}'"),
            Self::Turn(n) => format!("iteration == {n}"),
            Self::Workers(n) => format!("size(children) >= {n}"),
            Self::SentBack => "feedback != null".to_owned(),
        }
    }

    pub fn holds(&self, insight: &Insight) -> bool {
        let file = |path: &str| insight.files.get(path);
        match self {
            Self::Entries(n) => insight.memory.len() >= *n,
            Self::Says(word) => insight.memory.iter().any(|entry| entry.content == *word),
            Self::Newest(tag) => insight.memory.first().is_some_and(|entry| entry.tags.iter().any(|t| t == tag)),
            Self::File(path, n) => file(path).is_some_and(|file| file.meta.version >= *n),
            Self::Holds(path, word) => file(path).is_some_and(|file| file.content == *word),
            Self::Turn(n) => insight.turn == *n,
            Self::Workers(n) => insight.workers >= *n,
            Self::SentBack => insight.sent_back,
        }
    }
}

pub fn look() -> impl Strategy<Value = Look> {
    let word = || select(WORDS.to_vec());
    let path = || select(PATHS.to_vec());
    prop_oneof![
        2 => (1_usize..4).prop_map(Look::Entries),
        2 => word().prop_map(Look::Says),
        1 => word().prop_map(Look::Newest),
        1 => (path(), 1_u64..3).prop_map(|(path, n)| Look::File(path, n)),
        1 => (path(), word()).prop_map(|(path, word)| Look::Holds(path, word)),
        1 => (1_u64..5).prop_map(Look::Turn),
        1 => (1_usize..5).prop_map(Look::Workers),
        1 => Just(Look::SentBack),
    ]
}
