//! Hearing a model think. What it thinks is told to its run while it thinks: piece by piece, not word by word, and never
//! faster than a disk can follow. A thought that is over before the first piece is due is not told in pieces at all; one
//! that was begun is told to its end, as far as the run wants to know.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_engine::Command;
use baton_model::{Fault, ModelRequest, NodeId, RunId, Secret, Timestamp, redact, settled};
use baton_provider::{Delta, DeltaSink, ProviderFault};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::fault::told;
use crate::Error;
use crate::services::models::service::ModelCalls;

/// How long words are gathered before they are told. A long thought is told in larger pieces, ever more rarely.
const PAUSE_MS: u64 = 250;
const LONGEST_PAUSE_MS: u64 = 5_000;
const SLOWER: u64 = 20;
/// How many of a provider's own attempts are kept: a run is told of no more.
const MOST_RETRIES: usize = 16;
/// The largest piece.
const PIECE_CHARS: usize = 2_000;

/// The call that thinks: which one of which attempt.
pub(super) struct Thinker<'a> {
    pub(super) run: &'a RunId,
    pub(super) node: &'a NodeId,
    pub(super) visit: u32,
    pub(super) attempt: u32,
    pub(super) call: u32,
}

/// Gathers what is thought until it is told.
pub(super) struct Listener<'a> {
    secrets: &'a [Secret],
    gathered: Mutex<Gathered>,
    news: Notify,
    /// Something could not be told: what follows would make no sense.
    lost: AtomicBool,
}

struct Gathered {
    text: String,
    /// Characters that may still be heard.
    room: usize,
    /// Pieces told so far.
    told: u32,
    /// Why the provider was asked again.
    retried: Vec<ProviderFault>,
}

impl DeltaSink for Listener<'_> {
    fn push(&self, delta: Delta) {
        let mut gathered = self.gathered.lock();
        let text = match delta {
            Delta::Reasoning(text) => text,
            Delta::Text(_) => return,
            Delta::Again(fault) => {
                if gathered.retried.len() < MOST_RETRIES {
                    gathered.retried.push(fault);
                }
                return;
            }
        };
        if gathered.room == 0 || text.is_empty() {
            return;
        }
        let heard: String = text.chars().take(gathered.room).collect();
        gathered.room -= heard.chars().count();
        gathered.text.push_str(&heard);
        drop(gathered);
        self.news.notify_one();
    }
}

impl<'a> Listener<'a> {
    /// Listens to so many characters, and not at all to none.
    pub(super) fn new(room: usize, secrets: &'a [Secret]) -> Self {
        Self {
            secrets,
            gathered: Mutex::new(Gathered { text: String::new(), room, told: 0, retried: Vec::new() }),
            news: Notify::new(),
            lost: AtomicBool::new(false),
        }
    }

    /// Why the provider was asked again before it began to answer, as a run is told.
    pub(super) fn retried(&self, request: &ModelRequest) -> Vec<Fault> {
        self.gathered.lock().retried.iter().map(|fault| told(fault, request)).collect()
    }

    /// What can be told by now, and its place. What may be the beginning of a secret waits for the rest of it, unless
    /// nothing more will come.
    fn take(&self, all: bool) -> Option<(u32, Vec<String>)> {
        let mut gathered = self.gathered.lock();
        let end = if all { gathered.text.len() } else { settled(&gathered.text, self.secrets) };
        let text: String = gathered.text.drain(..end).collect();
        let mut letters: VecDeque<char> = redact(&text, self.secrets).chars().collect();
        let mut pieces = Vec::new();
        while !letters.is_empty() {
            let end = letters.len().min(PIECE_CHARS);
            pieces.push(letters.drain(..end).collect());
        }
        let sequence = gathered.told;
        gathered.told += u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        (!pieces.is_empty()).then_some((sequence, pieces))
    }

    fn has_begun(&self) -> bool {
        self.gathered.lock().told > 0
    }
}

impl ModelCalls {
    /// Tells a run what its model thinks, for as long as it is let.
    pub(super) async fn tell_thoughts(&self, listener: &Listener<'_>, thinker: &Thinker<'_>) {
        let mut began: Option<Timestamp> = None;
        loop {
            listener.news.notified().await;
            let now = self.clock.now();
            let passed = now.millis_since(*began.get_or_insert(now));
            let pause = (passed / SLOWER).clamp(PAUSE_MS, LONGEST_PAUSE_MS);
            self.clock.until(now.plus_millis(pause)).await;
            self.tell_thought(listener, thinker, listener.take(false)).await;
        }
    }

    /// The model has answered: a thought that was begun is told to its end.
    pub(super) async fn tell_last_thought(&self, listener: &Listener<'_>, thinker: &Thinker<'_>) {
        if listener.has_begun() {
            self.tell_thought(listener, thinker, listener.take(true)).await;
        }
    }

    async fn tell_thought(&self, listener: &Listener<'_>, thinker: &Thinker<'_>, thought: Option<(u32, Vec<String>)>) {
        let Some((sequence, pieces)) = thought.filter(|_| !listener.lost.load(Ordering::Relaxed)) else { return };
        let Thinker { run, node, visit, attempt, call } = *thinker;
        let command = Command::ModelThinks { node: node.clone(), visit, attempt, call, sequence, pieces };
        let told: Result<(), Error> = async {
            let live = self.storage.live()?;
            self.commands.command(&live, run, command, None).await.map(|_| ())
        }
        .await;
        if let Err(error) = told {
            // The answer will say it all.
            listener.lost.store(true, Ordering::Relaxed);
            tracing::debug!(%run, %node, %error, "a thought could not be told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(listener: &Listener<'_>, text: &str) {
        listener.push(Delta::Reasoning(text.to_owned()));
    }

    #[test]
    fn a_secret_that_comes_in_two_halves_is_none_the_less_one() {
        let secrets = [Secret::new("key", "sk-live-1234")];
        let listener = Listener::new(1000, &secrets);
        hear(&listener, "It is sk-li");
        listener.push(Delta::Text("not a thought".to_owned()));
        assert_eq!(listener.take(false), Some((0, vec!["It is ".to_owned()])));
        hear(&listener, "ve-1234, sk-");
        assert_eq!(listener.take(false), Some((1, vec!["[REDACTED:key], ".to_owned()])));
        assert_eq!(listener.take(false), None, "nobody knows yet what that is");
        hear(&listener, "ip it");
        assert_eq!(listener.take(false), Some((2, vec!["sk-ip it".to_owned()])));
        hear(&listener, " sk-live");
        assert_eq!(listener.take(true), Some((3, vec![" sk-live".to_owned()])), "nothing more will come");
    }

    #[test]
    fn no_more_is_heard_than_is_wanted_and_no_piece_is_too_large() {
        let listener = Listener::new(PIECE_CHARS + 5, &[]);
        hear(&listener, &"é".repeat(PIECE_CHARS));
        hear(&listener, "123456789");
        let (sequence, pieces) = listener.take(false).unwrap_or_default();
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.chars().count()).collect();
        assert_eq!((sequence, lengths), (0, vec![PIECE_CHARS, 5]));
        hear(&listener, "more");
        assert_eq!(listener.take(true), None);
        let deaf = Listener::new(0, &[]);
        hear(&deaf, "anything");
        assert!(deaf.take(true).is_none() && !deaf.has_begun());
    }
}
