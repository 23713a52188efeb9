//! A provider that says what it was told to say: for tests, demonstrations, and development without a key.
//!
//! It is fed in two ways. A test gives a node a queue of [`Step`]s, and each call of that node takes the next one. A
//! [`Script`] is a list of rules read from JSON; the reply depends on the request alone, so that the same call made
//! again after a crash gets the same answer. A queue goes before the script; where neither has anything to say, the
//! answer is the smallest one that fits what is asked for.

mod matching;
mod script;

pub use script::{Script, ScriptProblem};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, NodeId};
use parking_lot::Mutex;

use crate::mock::default_reply;
use crate::offers::in_process;
use crate::{Delta, Ear, Provider, ProviderFault};

/// What one call comes to.
#[derive(Clone, Debug, PartialEq)]
// One of these lives for the length of a call: a box would only be another allocation.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    Reply(ModelReply),
    Fault(ProviderFault),
    /// Never answers. Only whoever asked can end it.
    Stall,
}

#[derive(Debug, Default)]
pub struct ScriptedProvider {
    script: Script,
    queues: Mutex<BTreeMap<NodeId, VecDeque<Step>>>,
}

impl ScriptedProvider {
    pub fn new(script: Script) -> Self {
        Self { script, queues: Mutex::default() }
    }

    /// Replaces whatever was left of the node's queue.
    pub fn program(&self, node: NodeId, steps: Vec<Step>) {
        self.queues.lock().insert(node, steps.into());
    }

    /// Forgets every queue. The script stays.
    pub fn reset(&self) {
        self.queues.lock().clear();
    }

    fn step(&self, request: &ModelRequest) -> (Step, Duration) {
        if let Some(step) = self.queues.lock().get_mut(&request.node).and_then(VecDeque::pop_front) {
            return (step, Duration::ZERO);
        }
        self.script.step(request).unwrap_or_else(|| (Step::Reply(default_reply(request)), Duration::ZERO))
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    async fn call(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<ModelReply, ProviderFault> {
        let (step, delay) = self.step(request);
        let answer = async {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match step {
                Step::Reply(reply) => {
                    tell(&reply, ear);
                    Ok(reply)
                }
                Step::Fault(fault) => Err(fault),
                Step::Stall => std::future::pending().await,
            }
        };
        match request.timeout_ms.map(Duration::from_millis) {
            None => answer.await,
            Some(bound) => tokio::time::timeout(bound, answer).await.unwrap_or(Err(ProviderFault::TimedOut)),
        }
    }

    fn offers(&self, _: &str) -> BTreeSet<String> {
        in_process()
    }

    fn infers(&self) -> bool {
        false
    }
}

/// Word by word, as a model would.
pub(crate) fn tell(reply: &ModelReply, ear: &dyn Ear) {
    for thought in reply.reasoning.iter().flat_map(|text| text.split_inclusive(' ')) {
        ear.hear(Delta::Reasoning(thought.to_owned()));
    }
    for word in reply.content.split_inclusive(' ') {
        ear.hear(Delta::Text(word.to_owned()));
    }
}

#[cfg(test)]
mod tests;
