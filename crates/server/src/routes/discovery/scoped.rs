//! What a key can make use of. Anybody may ask what the host can do; whoever shows a key is not told of families that
//! the key opens nothing of.

use baton_model::{Scope, Scopes};
use serde_json::{Map, Value};

/// Families that are of use with one scope only. What is not listed belongs to every key.
const BEHIND: [(&str, Scope); 6] = [
    ("debugBundle", Scope::RunsRead),
    ("feedback", Scope::RunsAnnotate),
    ("memory", Scope::MemoryRead),
    ("replay", Scope::RunsCreate),
    ("webhooks", Scope::WebhooksManage),
    ("workspace", Scope::WorkspaceRead),
];

/// The document for a key with these scopes; `None` where it is the public one.
pub(super) fn narrowed(root: &Map<String, Value>, scopes: &Scopes) -> Option<Value> {
    let closed: Vec<&str> =
        BEHIND.iter().filter(|(_, scope)| !scopes.allow(*scope)).map(|(family, _)| *family).collect();
    if closed.is_empty() {
        return None;
    }
    let mut root = root.clone();
    for family in closed {
        root.remove(family);
        if let Some(mirror) = root.get_mut("capabilities").and_then(Value::as_object_mut) {
            mirror.remove(family);
        }
    }
    Some(root.into())
}
