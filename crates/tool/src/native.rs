//! Tools that live in this process: an agent's own memory and its tenant's files. What they are is said here; they are
//! done by whoever keeps the ledgers, in the same commit as the record of the call. So a call that is not on record did
//! not happen, and may be made again.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolRequest, Transport};
use baton_model::workspace::path_problem;
use baton_model::{MAX_TAG_CHARS, ToolSpec, code};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::catalog::{About, Egress, Latency};
use crate::{Called, Tool};

pub const MEMORY_LIST: &str = "openwop:memory.list";
pub const MEMORY_GET: &str = "openwop:memory.get";
pub const MEMORY_PUT: &str = "openwop:memory.put";
pub const WORKSPACE_LIST: &str = "openwop:workspace.list";
pub const WORKSPACE_GET: &str = "openwop:workspace.get";
pub const WORKSPACE_PUT: &str = "openwop:workspace.put";

/// The most entries one listing gives; a model that asks for more gets this many.
pub const MAX_LISTED: u32 = 200;
/// What a listing gives that says nothing about it.
pub const DEFAULT_LISTED: u32 = 50;

/// A call of a native tool, its arguments read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeCall {
    MemoryList { tag: Option<String>, limit: u32 },
    MemoryGet { id: String },
    MemoryPut { content: String, tags: Vec<String>, ttl_seconds: Option<u64> },
    WorkspaceList { prefix: Option<String> },
    WorkspaceGet { path: String },
    WorkspacePut { path: String, content: String, content_type: Option<String> },
}

impl NativeCall {
    /// Reads the arguments of `tool`. The message says what is wrong with them, in words for the model that wrote them.
    pub fn read(tool: &str, arguments: &Value) -> Result<Self, String> {
        match tool {
            MEMORY_LIST => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    tag: Option<String>,
                    limit: Option<u32>,
                }
                let Given { tag, limit } = given(tool, arguments)?;
                Ok(Self::MemoryList { tag, limit: limit.unwrap_or(DEFAULT_LISTED).clamp(1, MAX_LISTED) })
            }
            MEMORY_GET => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    id: String,
                }
                let Given { id } = given(tool, arguments)?;
                Ok(Self::MemoryGet { id })
            }
            MEMORY_PUT => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields, rename_all = "camelCase")]
                struct Given {
                    content: String,
                    #[serde(default)]
                    tags: Vec<String>,
                    ttl_seconds: Option<u64>,
                }
                let Given { content, tags, ttl_seconds } = given(tool, arguments)?;
                if content.is_empty() {
                    return Err("`content` must not be empty".to_owned());
                }
                if tags.iter().any(|tag| tag.is_empty() || tag.chars().count() > MAX_TAG_CHARS) {
                    return Err(format!("a tag has 1 to {MAX_TAG_CHARS} characters"));
                }
                if ttl_seconds == Some(0) {
                    return Err("`ttlSeconds` must be 1 or more; leave it out to keep the entry".to_owned());
                }
                Ok(Self::MemoryPut { content, tags, ttl_seconds })
            }
            WORKSPACE_LIST => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    prefix: Option<String>,
                }
                let Given { prefix } = given(tool, arguments)?;
                Ok(Self::WorkspaceList { prefix })
            }
            WORKSPACE_GET => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    path: String,
                }
                let Given { path } = given(tool, arguments)?;
                Ok(Self::WorkspaceGet { path: usable(path)? })
            }
            WORKSPACE_PUT => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields, rename_all = "camelCase")]
                struct Given {
                    path: String,
                    content: String,
                    content_type: Option<String>,
                }
                let Given { path, content, content_type } = given(tool, arguments)?;
                Ok(Self::WorkspacePut { path: usable(path)?, content, content_type })
            }
            other => Err(format!("{other} is not a native tool")),
        }
    }

    /// Whether it changes anything.
    pub const fn writes(&self) -> bool {
        matches!(self, Self::MemoryPut { .. } | Self::WorkspacePut { .. })
    }
}

fn given<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, String> {
    // Models that have nothing to say say nothing, or null.
    let empty = Value::Object(serde_json::Map::new());
    let arguments = if arguments.is_null() { &empty } else { arguments };
    T::deserialize(arguments).map_err(|problem| format!("the arguments of {tool} do not read: {problem}"))
}

fn usable(path: String) -> Result<String, String> {
    match path_problem(&path) {
        Some(problem) => Err(format!("`path` cannot name a file: {problem}")),
        None => Ok(path),
    }
}

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
    use super::*;

    #[test]
    fn arguments_are_read_with_their_defaults() {
        let read = |tool, arguments: Value| NativeCall::read(tool, &arguments).unwrap();
        assert_eq!(read(MEMORY_LIST, Value::Null), NativeCall::MemoryList { tag: None, limit: DEFAULT_LISTED });
        assert_eq!(
            read(MEMORY_LIST, json!({"tag": "x", "limit": 100_000})),
            NativeCall::MemoryList { tag: Some("x".to_owned()), limit: MAX_LISTED }
        );
        assert_eq!(
            read(MEMORY_PUT, json!({"content": "tea", "ttlSeconds": 60})),
            NativeCall::MemoryPut { content: "tea".to_owned(), tags: vec![], ttl_seconds: Some(60) }
        );
        assert_eq!(read(WORKSPACE_LIST, json!({})), NativeCall::WorkspaceList { prefix: None });
        assert_eq!(
            read(WORKSPACE_PUT, json!({"path": "a.md", "content": ""})),
            NativeCall::WorkspacePut { path: "a.md".to_owned(), content: String::new(), content_type: None }
        );
        assert!(read(MEMORY_PUT, json!({"content": "tea"})).writes() && !read(MEMORY_GET, json!({"id": "m"})).writes());
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (tool, arguments, hint) in [
            (MEMORY_GET, json!({}), "missing field `id`"),
            (MEMORY_LIST, json!({"tags": "x"}), "unknown field `tags`"),
            (MEMORY_LIST, json!([]), "do not read"),
            (MEMORY_PUT, json!({"content": ""}), "must not be empty"),
            (MEMORY_PUT, json!({"content": "x", "tags": [""]}), "a tag has"),
            (MEMORY_PUT, json!({"content": "x", "ttlSeconds": 0}), "1 or more"),
            (WORKSPACE_GET, json!({"path": "../x"}), "cannot name a file"),
            (WORKSPACE_PUT, json!({"path": "x"}), "missing field `content`"),
            ("openwop:memory.drop", json!({}), "not a native tool"),
        ] {
            let message = NativeCall::read(tool, &arguments).unwrap_err();
            assert!(message.contains(hint), "{tool} {arguments}: {message}");
        }
    }

    #[test]
    fn every_specification_has_a_reader_and_names_its_members() {
        for spec in specs() {
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
