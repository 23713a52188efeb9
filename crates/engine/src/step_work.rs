//! What the program that has a step in hand did in it: the models it asked, and the values it kept. Here is only where each
//! is on the log; answers and values are read there.

use std::collections::BTreeMap;

use baton_model::{Digest, ModelReply, Usage};
use serde::{Deserialize, Serialize};

/// How many calls of models one step may record. Each has about 200 bytes in the run's state.
pub(crate) const MOST_CALLS: usize = 1_000;
/// How many values one step may keep. Each has its key in the run's state.
pub(crate) const MOST_KEYS: usize = 1_000;
/// How long a key may be, in characters.
pub(crate) const MOST_KEY_CHARS: usize = 200;
/// How large one value may be as JSON.
pub const MOST_MEMO_BYTES: usize = 256 * 1024;
/// How large all values of a step may be together. They are on the run's log for as long as it is kept.
pub(crate) const MOST_MEMO_BYTES_OF_STEP: u64 = 16 * 1024 * 1024;

/// A model that a step asked, and what it said. `reply` is none where the answer broke off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAsked {
    pub request: Digest,
    /// Names the dispatch of the step under which it was asked.
    pub dispatch: Digest,
    pub provider: String,
    pub model: String,
    pub reply: Option<ModelReply>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// The most the answer might take, where a budget said so.
    pub cap: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepWork {
    pub(crate) answers: Vec<Answered>,
    /// Key → the record of its value.
    pub(crate) memo: BTreeMap<String, u64>,
    pub(crate) memo_bytes: u64,
}

/// An answer on the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) request: Digest,
    pub(crate) dispatch: Digest,
    pub(crate) seq: u64,
}

impl StepWork {
    /// The records of the answers to this request, oldest first: those of earlier dispatches, and those of this one.
    pub fn answers(&self, request: &Digest, dispatch: &Digest) -> (Vec<u64>, Vec<u64>) {
        let same = self.answers.iter().filter(|answer| answer.request == *request);
        let (own, earlier): (Vec<&Answered>, Vec<&Answered>) = same.partition(|answer| answer.dispatch == *dispatch);
        let places = |answers: Vec<&Answered>| answers.into_iter().map(|answer| answer.seq).collect();
        (places(earlier), places(own))
    }

    /// It may ask no more.
    pub fn is_full(&self) -> bool {
        self.answers.len() >= MOST_CALLS
    }

    /// The record of the value under this key.
    pub fn memo(&self, key: &str) -> Option<u64> {
        self.memo.get(key).copied()
    }
}
