//! Tools that live in the process: memory and workspace. A call of one is a question to the shell like that of a node,
//! and what it writes becomes durable together with its record, so it happens exactly once.

use baton_model::native::NativeCall;
use baton_model::{ToolOutcome, TurnSnapshot, id};
use serde_json::{Value, json};

use crate::conceal::without_sensitive;
use crate::invocation::Call;
use crate::node_request::{Found, NewEntry, ReadVersion, Request};
use crate::state::RunState;

/// What a call asks the shell. An error is what is wrong with its arguments.
pub(crate) fn request(state: &RunState, node: usize, call: &Call) -> Result<Request, String> {
    // A turn sees what it was frozen with, also through its tools: what it writes shows in the next one.
    let (read_version, version) = match state.nodes[node].snapshot {
        Some(TurnSnapshot { versions, .. }) => (ReadVersion { version: versions.memory, own: 0 }, versions.workspace),
        None => (state.read_version, state.workspace),
    };
    Ok(match NativeCall::read(&call.asked.name, &call.asked.arguments)? {
        NativeCall::MemoryPut { content, tags, ttl_seconds } => Request::Remember(NewEntry {
            id: format!("{}-{}", id::memory_id(&state.run, &state.plan.nodes[node].id, 0, 0), call.id),
            content: without_sensitive(state, &content),
            tags,
            ttl_ms: ttl_seconds.map(|seconds| seconds.saturating_mul(1000)),
        }),
        NativeCall::MemoryGet { id } => Request::Recall { id, read_version },
        NativeCall::MemoryList { tag, limit } => Request::Recollect { tag, limit: Some(limit as usize), read_version },
        NativeCall::WorkspaceGet { path } => Request::ReadFile { path, version },
        NativeCall::WorkspaceList { prefix } => Request::ListFiles { prefix, version },
        NativeCall::WorkspacePut { path, content, content_type } => {
            Request::WriteFile { path, content: without_sensitive(state, &content), content_type }
        }
    })
}

/// What the call comes back with.
pub(crate) fn outcome(found: &Found) -> ToolOutcome {
    ToolOutcome::ok(match found {
        Found::Entry(entry) => json!({"entry": entry}),
        Found::Entries(entries) => json!({"entries": entries}),
        Found::Forgotten(gone) => json!({"deleted": gone}),
        Found::File(file) => json!({"file": file}),
        Found::Written(meta) => json!({"file": meta}),
        Found::Files(files) => json!({"files": files}),
        Found::Turn(_) | Found::Variables(_) | Found::InvocationContext(_) | Found::Tool(_) => Value::Null,
    })
}
