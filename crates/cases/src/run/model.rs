//! The model of a case: its script, or a recording. Whatever neither answers fails the case and says what to add.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest};
use baton_provider::recording::Player;
use baton_provider::{DeltaSink, Provider, ProviderFault, ScriptedProvider, Step, stream_reply};
use baton_runtime::Clock as _;
use parking_lot::Mutex;
use serde_json::Value;

use super::clock::CaseClock;
use super::notes::{Notes, brief};
use crate::case::ModelRule;
use crate::report::Problem;

pub(super) struct CaseModel {
    rules: Vec<ModelRule>,
    /// How often each has answered.
    used: Mutex<Vec<u32>>,
    recording: Option<Player>,
    /// Tools that can be called.
    tools: BTreeSet<String>,
    clock: Arc<CaseClock>,
    notes: Arc<Notes>,
}

impl CaseModel {
    pub(super) fn new(
        rules: Vec<ModelRule>,
        recording: Option<Player>,
        tools: BTreeSet<String>,
        clock: Arc<CaseClock>,
        notes: Arc<Notes>,
    ) -> Self {
        let used = Mutex::new(vec![0; rules.len()]);
        Self { rules, used, recording, tools, clock, notes }
    }

    /// Replies that nobody asked for.
    pub(super) fn leftovers(&self) -> Vec<Problem> {
        let used = self.used.lock();
        let left =
            self.rules.iter().zip(used.iter()).filter(|(rule, used)| rule.times.is_some_and(|times| **used < times));
        left.map(|(rule, used)| {
            let message = format!("a reply was asked for {used} times, not {}", rule.times.unwrap_or_default());
            Problem::new("model", message)
                .at(rule.position)
                .hint("take it out, or say `times: any` if it need not be asked for")
        })
        .collect()
    }

    fn next(&self, request: &ModelRequest) -> Option<&ModelRule> {
        let mut used = self.used.lock();
        let is_free = |(rule, used): &(&ModelRule, &mut u32)| rule.times.is_none_or(|times| **used < times);
        let mut free = self.rules.iter().zip(used.iter_mut()).filter(is_free);
        let (rule, used) = free.find(|(rule, _)| rule.rule.holds(request))?;
        *used += 1;
        Some(rule)
    }

    fn unanswered(&self, request: &ModelRequest, number: u64) -> ProviderFault {
        let node = request.node.as_str();
        let message = format!("call {number} of a model, by the node `{node}`, has no reply");
        let asked = request.semantic.messages.last().map(|message| text(message.content())).unwrap_or_default();
        let hint = format!(
            "add to `model`: `- when: {{node: {node}}}` with `reply: {{text: …}}` or `reply: {{json: {{…}}}}`; it was asked: {}",
            brief(&asked)
        );
        self.notes.problem(Problem::new("model", message).hint(hint));
        ProviderFault::Rejected("the case has no reply for this call".to_owned())
    }

    fn check_tools(&self, rule: &ModelRule) {
        for tool in rule.rule.called_tools().filter(|tool| !self.tools.contains(*tool)) {
            let message = format!("the model calls `{tool}`, which nothing here answers");
            let hint = format!("add to `tools`: `{tool}: {{returns: …}}`");
            self.notes.problem(Problem::new("tools", message).hint(hint).at(rule.position));
        }
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[async_trait]
impl Provider for CaseModel {
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let number = self.notes.model_called();
        if let Some(recording) = &self.recording {
            let answer = recording.call(request, sink).await;
            if let Err(fault) = &answer {
                let message = format!("call {number} of a model, by the node `{}`: {fault}", request.node);
                self.notes.problem(
                    Problem::new("model", message)
                        .hint("a recording answers only the very same requests; record again after a change of prompts, tools or model"),
                );
            }
            return answer;
        }
        let Some(rule) = self.next(request) else { return Err(self.unanswered(request, number)) };
        self.check_tools(rule);
        let (step, delay) = rule.rule.outcome(request);
        let answer = async {
            self.clock.pass(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)).await;
            match step {
                Step::Reply(reply) => {
                    stream_reply(&reply, sink);
                    Ok(reply)
                }
                Step::Fault(fault) => Err(fault),
                Step::Stall => std::future::pending().await,
            }
        };
        match request.timeout_ms {
            None => answer.await,
            Some(bound) => {
                let late = self.clock.now().plus_millis(bound);
                tokio::select! {
                    biased;
                    answer = answer => answer,
                    () = self.clock.until(late) => Err(ProviderFault::TimedOut),
                }
            }
        }
    }

    fn capabilities(&self, model: &str) -> BTreeSet<String> {
        ScriptedProvider::default().capabilities(model)
    }

    fn infers(&self) -> bool {
        false
    }
}
