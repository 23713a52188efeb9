//! Tools that live in this process: an agent's own memory and its tenant's files. What they are is said here; they are
//! done by whoever keeps the versioned stores, in the same commit as the record of the call. So a call that is not on record did
//! not happen, and may be made again.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::native::{
    ENVELOPE, MAX_LISTED, MEMORY_GET, MEMORY_LIST, MEMORY_PUT, WORKSPACE_GET, WORKSPACE_LIST, WORKSPACE_PUT,
};
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolRequest, Transport};
use baton_model::{MAX_TAG_CHARS, ToolSpec, code};
use serde_json::{Value, json};

use crate::catalog::{About, Egress, Latency};
use crate::{Called, Tool};

/// The specifications of all native tools.
pub fn specs() -> Vec<ToolSpec> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let path = || json!({"type": "string", "minLength": 1, "maxLength": 256, "description": "Such as notes/plan.md."});
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    vec![
        spec(
            MEMORY_LIST,
            "Lists what is remembered, newest first. Each entry has an id, its content and its tags.",
            SafetyTier::Read,
            "memory:read",
            object(
                json!({
                    "tag": text("Only entries with this tag."),
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": "The most entries to list."},
                }),
                &[],
            ),
        ),
        spec(
            MEMORY_GET,
            "Gets one remembered entry by its id.",
            SafetyTier::Read,
            "memory:read",
            object(json!({"id": text("The id of the entry.")}), &["id"]),
        ),
        spec(
            MEMORY_PUT,
            "Remembers a text for later runs. Entries are never changed, only added.",
            SafetyTier::Write,
            "memory:write",
            object(
                json!({
                    "content": {"type": "string", "minLength": 1, "description": "What to remember."},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG_CHARS},
                        "description": "Words to find it by.",
                    },
                    "ttlSeconds": {"type": "integer", "minimum": 1, "description": "Forget it after so many seconds."},
                }),
                &["content"],
            ),
        ),
        spec(
            WORKSPACE_LIST,
            "Lists the shared files, without their contents.",
            SafetyTier::Read,
            "workspace:read",
            object(json!({"prefix": text("Only files whose path begins with this.")}), &[]),
        ),
        spec(
            WORKSPACE_GET,
            "Reads one shared file.",
            SafetyTier::Read,
            "workspace:read",
            object(json!({"path": path()}), &["path"]),
        ),
        spec(
            WORKSPACE_PUT,
            "Writes one shared file as a whole; a file of that path is replaced.",
            SafetyTier::Write,
            "workspace:write",
            object(
                json!({
                    "path": path(),
                    "content": text("The whole content of the file."),
                    "contentType": text("What the content is, such as text/markdown (the default)."),
                }),
                &["path", "content"],
            ),
        ),
        ToolSpec {
            scopes: Vec::new(),
            ..spec(
                ENVELOPE,
                "Says something to the host or to people. `clarification.request` with {questions: [{id, question}]} asks \
                 people and returns their answers; ask only what you cannot find out. `error` with {code, message} says \
                 that something cannot be done. `schema.request` with {envelopeType} returns the schema of a type, \
                 `schema.response` with {envelopeType, ack: true} confirms it.",
                SafetyTier::Read,
                "",
                object(
                    json!({
                        "type": text("The type of the envelope."),
                        "payload": {"type": "object", "description": "What the type carries."},
                        "correlationId": {"type": "string", "minLength": 1, "maxLength": 128, "description": "Your own name for it; said again under that name, it counts once."},
                    }),
                    &["type", "payload"],
                ),
            )
        },
    ]
}

fn spec(id: &str, description: &str, tier: SafetyTier, scope: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        id: id.to_owned(),
        description: description.to_owned(),
        input_schema,
        transport: Transport::Native,
        tier,
        outcome_policy: OutcomePolicy::Retry,
        scopes: vec![scope.to_owned()],
        stub: None,
    }
}

/// The native tools, for a toolbox: listed and offered like any other, and refused if somebody calls them here.
pub fn tools() -> impl Iterator<Item = Arc<dyn Tool>> {
    specs().into_iter().map(|spec| Arc::new(Elsewhere(spec)) as Arc<dyn Tool>)
}

struct Elsewhere(ToolSpec);

#[async_trait]
impl Tool for Elsewhere {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn about(&self) -> About {
        About { egress: Some(Egress::None), latency: Some(Latency::Low), ..About::default() }
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        Called::failed(code::INTERNAL_ERROR, format!("{} is done where the ledgers are.", request.tool))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::native::NativeCall;

    use super::*;

    #[test]
    fn every_specification_has_a_reader_and_names_its_members() {
        for spec in specs().into_iter().filter(|spec| spec.id != ENVELOPE) {
            let properties = spec.input_schema["properties"].as_object().unwrap();
            // A member that the schema does not name is refused, and the refusal lists those the reader knows.
            let message = NativeCall::read(&spec.id, &json!({"no such member": 1})).unwrap_err();
            for name in properties.keys() {
                assert!(message.contains(&format!("`{name}`")), "{}: {name} is not read: {message}", spec.id);
            }
            assert_eq!((spec.outcome_policy, spec.transport), (OutcomePolicy::Retry, Transport::Native));
        }
    }
}
