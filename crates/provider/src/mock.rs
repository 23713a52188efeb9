use std::collections::{BTreeMap, BTreeSet, VecDeque};

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, NodeId, Usage};
use parking_lot::Mutex;
use serde_json::Value;

use crate::capabilities::in_process;
use crate::sample::sample;
use crate::{DeltaSink, Provider, ProviderFault};

/// A model that answers with JSON of a shape nobody asked for.
const CONTRARY: &str = "mock-contrary";

/// Answers as a test tells it to: each call of a node takes the next reply of that node's program. Without one it gives
/// the same answer to the same request, one that fits the schema it is asked for.
#[derive(Debug, Default)]
pub struct MockProvider {
    programs: Mutex<BTreeMap<NodeId, VecDeque<ModelReply>>>,
    /// The room for an answer that the last call of each node left.
    budgets: Mutex<BTreeMap<NodeId, Option<u64>>>,
}

impl MockProvider {
    /// Replaces whatever was left of the node's program.
    pub fn program(&self, node: NodeId, replies: Vec<ModelReply>) {
        self.programs.lock().insert(node, replies.into());
    }

    /// Forgets every program and every call.
    pub fn reset(&self) {
        self.programs.lock().clear();
        self.budgets.lock().clear();
    }

    /// The room for an answer that the node's last call left, if it made one and said so.
    pub fn last_budget(&self, node: &NodeId) -> Option<u64> {
        self.budgets.lock().get(node).copied().flatten()
    }

    fn next(&self, node: &NodeId) -> Option<ModelReply> {
        self.programs.lock().get_mut(node)?.pop_front()
    }
}

#[async_trait]
impl Provider for MockProvider {
    async fn call(&self, request: &ModelRequest, _: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.budgets.lock().insert(request.node.clone(), request.semantic.max_output_tokens);
        let unprompted = || match request.semantic.model.as_str() {
            CONTRARY => ModelReply { content: r#"{"contrary":[]}"#.to_owned(), ..default_reply(request) },
            _ => default_reply(request),
        };
        Ok(self.next(&request.node).unwrap_or_else(unprompted))
    }

    fn capabilities(&self, _: &str) -> BTreeSet<String> {
        in_process()
    }

    fn infers(&self) -> bool {
        false
    }
}

/// The smallest answer that fits what is asked for.
pub(crate) fn default_reply(request: &ModelRequest) -> ModelReply {
    let schema = request.semantic.response_format.as_ref().and_then(|format| format.get("schema"));
    let content = schema.map_or_else(|| "mock".to_owned(), |schema| sample(schema).to_string());
    let asked: usize = request.semantic.messages.iter().map(|message| words(message.content())).sum();
    let output_tokens = content.split_whitespace().count() as u64;
    ModelReply::text(content, Usage { input_tokens: asked as u64, output_tokens, ..Usage::default() })
}

/// What a message counts as: its words, whatever shape its content has.
fn words(content: &Value) -> usize {
    match content {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(parts) => parts.iter().map(|part| part.get("text").map_or(0, words)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::NoSink;
    use baton_model::SemanticRequest;
    use serde_json::json;
    use std::sync::Arc;

    fn request(node: &str) -> ModelRequest {
        let raw = json!({
            "provider": "mock", "model": "mock-mini", "messages": [{"role": "user", "content": "one two three"}],
            "responseFormat": {"type": "json_schema", "schema": {
                "type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}
            }},
        });
        let semantic = Arc::new(SemanticRequest::read(raw.as_object().unwrap()).unwrap());
        ModelRequest {
            key: "k".to_owned(),
            node: node.into(),
            semantic,
            timeout_ms: None,
            trace: None,
            reasoning: false,
            cap: None,
        }
    }

    fn reply(content: &str) -> ModelReply {
        ModelReply { content: content.to_owned(), ..default_reply(&request("a")) }
    }

    #[tokio::test]
    async fn each_call_takes_one_reply_of_its_own_nodes_program() {
        let mock = MockProvider::default();
        mock.program("a".into(), vec![reply("1"), reply("2")]);
        mock.program("b".into(), vec![reply("3")]);
        let mut said = Vec::new();
        for node in ["a", "b", "a", "a"] {
            said.push(mock.call(&request(node), &NoSink).await.unwrap().content);
        }
        assert_eq!(said, ["1", "3", "2", r#"{"valid":true}"#]);
    }

    #[tokio::test]
    async fn a_new_program_replaces_the_old_one_and_a_reset_all_of_them() {
        let mock = MockProvider::default();
        mock.program("a".into(), vec![reply("1"), reply("2")]);
        mock.program("a".into(), vec![reply("4"), reply("5")]);
        assert_eq!(mock.call(&request("a"), &NoSink).await.unwrap().content, "4");
        mock.reset();
        let (first, again) =
            (mock.call(&request("a"), &NoSink).await.unwrap(), mock.call(&request("a"), &NoSink).await.unwrap());
        assert_eq!(first, again);
        assert_eq!((first.content.as_str(), first.usage.input_tokens), (r#"{"valid":true}"#, 3));
    }
}
