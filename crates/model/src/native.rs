//! Calls of the tools that live in the process: an agent's memory and its tenant's files. What they look like is said
//! once, here; the tools' catalogue describes them, and the engine has them done.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::MAX_TAG_CHARS;
use crate::workspace::path_problem;

pub const MEMORY_LIST: &str = "openwop:memory.list";
pub const MEMORY_GET: &str = "openwop:memory.get";
pub const MEMORY_PUT: &str = "openwop:memory.put";
pub const WORKSPACE_LIST: &str = "openwop:workspace.list";
pub const WORKSPACE_GET: &str = "openwop:workspace.get";
pub const WORKSPACE_PUT: &str = "openwop:workspace.put";

/// Says something to the host and to the people around it, in an envelope. Judged by the engine, done by nobody.
pub const ENVELOPE: &str = "openwop:envelope";
/// The version of every kind's schema.
pub const ENVELOPE_SCHEMA_VERSION: u64 = 1;
/// What workflows of conformance mode do to the world. No agent is offered it.
pub const CONFORMANCE_EFFECT: &str = "conformance:effect.emit";

/// The most entries one listing gives; a model that asks for more gets this many.
pub const MAX_LISTED: u32 = 200;
/// What a listing gives that says nothing about it.
pub const DEFAULT_LISTED: u32 = 50;

/// About ten years; who wants an entry for longer wants it for good.
pub const MAX_TTL_SECONDS: u64 = 300_000_000;

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
                if ttl_seconds.is_some_and(|seconds| !(1..=MAX_TTL_SECONDS).contains(&seconds)) {
                    return Err(format!(
                        "`ttlSeconds` is 1 to {MAX_TTL_SECONDS}; leave it out to keep the entry for good"
                    ));
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

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
            (MEMORY_PUT, json!({"content": "x", "ttlSeconds": 0}), "is 1 to"),
            (WORKSPACE_GET, json!({"path": "../x"}), "cannot name a file"),
            (WORKSPACE_PUT, json!({"path": "x"}), "missing field `content`"),
            ("openwop:memory.drop", json!({}), "not a native tool"),
        ] {
            let message = NativeCall::read(tool, &arguments).unwrap_err();
            assert!(message.contains(hint), "{tool} {arguments}: {message}");
        }
    }
}
