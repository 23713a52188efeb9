//! Memory checks: each writes a note or two through the ordinary service and leaves what it read back in variables.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};

/// A scope nobody of the run's own tenant writes to. Whoever else has one of that name must not show through.
const FOREIGN_HANDLE: &str = "memory:conformance-foreign-scope";

fn check(id: &'static str, config: Value, variables: &[(&str, &str)]) -> Draft {
    let draft = chain(id, vec![node("check", "core.identity", config)]).settings(json!({"timeout": 15_000}));
    variables.iter().fold(draft, |draft, (name, kind)| draft.variable(name, kind, None))
}

pub(super) fn workflows() -> Vec<Draft> {
    vec![
        check(
            "conformance-agent-memory-roundtrip",
            json!({"memoryAction": "write-then-read"}),
            &[("memoryReadback", "object")],
        ),
        check(
            "conformance-agent-memory-ttl",
            json!({"memoryAction": "ttl-probe"}),
            &[("memoryList", "array"), ("freshId", "string"), ("expiredId", "string")],
        ),
        check(
            "conformance-agent-memory-cross-tenant",
            json!({"memoryAction": "cross-tenant-probe", "probeMemoryRef": FOREIGN_HANDLE}),
            &[("crossTenantProbe", "array"), ("ownerProbe", "array"), ("ownerEntryId", "string")],
        ),
        check(
            "conformance-agent-memory-redaction",
            json!({"memoryAction": "redaction-probe", "byokSecretId": "conformance-test-secret"}),
            &[("memoryReadback", "object")],
        ),
    ]
}
