//! What outlives a run here, and its bounds.

use baton_runtime::Options;
use serde_json::{Map, Value, json};

use super::object::object;

pub(super) fn families(host: &Options) -> Map<String, Value> {
    let limits = &host.limits;
    object(json!({
        "memory": {
            "supported": true,
            "maxEntrySizeBytes": limits.max_memory_entry_bytes,
            "ttlSupported": true,
            "attribution": {"supported": true, "emitsWriteEvents": true},
            "search": {"supported": true, "modes": ["filter"]},
            "retention": {"ttl": true, "forget": true},
        },
        "workspace": {
            "supported": true,
            "versioned": true,
            "maxFileBytes": limits.max_workspace_file_bytes,
            "maxFiles": limits.max_workspace_files,
        },
    }))
}
