//! The provider: queues of steps first, then the script.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, NodeId};
use parking_lot::Mutex;

use super::script::Script;
use super::step::Step;
use crate::capabilities::in_process;
use crate::mock::default_reply;
use crate::stream_reply::stream_reply;
use crate::{DeltaSink, Provider, ProviderFault};

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
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let (step, delay) = self.step(request);
        let answer = async {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match step {
                Step::Reply(reply) => {
                    stream_reply(&reply, sink);
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

    fn capabilities(&self, _: &str) -> BTreeSet<String> {
        in_process()
    }

    fn infers(&self) -> bool {
        false
    }
}
