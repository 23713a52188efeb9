//! The OpenAPI document, made of what the handlers and their types say about themselves.

use serde_json::{Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::routes::operations::BEARER;
use crate::routes::table::Table;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Baton",
        description = "A durable OpenWOP v1 workflow host.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    security(("bearer" = []))
)]
struct Api;

pub(crate) fn value(table: &Table, version: &str) -> Value {
    let mut api = Api::openapi();
    version.clone_into(&mut api.info.version);
    let components = api.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert(BEARER.to_owned(), bearer.into());
    for (schemas, paths, _) in table.all() {
        components.schemas.extend(schemas.iter().cloned());
        // A parameter that takes slashes is an ordinary one to readers of the document.
        let described = paths.paths.iter().map(|(path, item)| (path.replace("{*", "{"), item.clone()));
        api.paths.paths.extend(described);
    }
    let mut document = serde_json::to_value(api).unwrap_or_default();
    for (name, schema) in shared_schemas() {
        document["components"]["schemas"][name] = schema;
    }
    document
}

fn shared_schemas() -> [(&'static str, Value); 10] {
    let text = || json!({"type": "string"});
    let instant = || json!({"type": "string", "format": "date-time"});
    let sequence = || json!({"type": "integer", "minimum": 0});
    let usage = |description: &str| {
        json!({
            "type": "object", "description": description, "required": ["inputTokens", "outputTokens"],
            "properties": {"inputTokens": sequence(), "outputTokens": sequence(), "costUsd": {"type": "number"}},
        })
    };
    let cost = |description: &str| {
        let counts = json!({"input": sequence(), "output": sequence()});
        let tokens = json!({"type": "object", "required": ["input", "output"], "properties": counts});
        let properties = json!({"tokens": tokens, "usd": {"type": "number"}});
        json!({"type": "object", "description": description, "required": ["tokens"], "properties": properties})
    };
    let status = || json!({"type": "string", "enum": baton_model::RunStatus::ALL.map(|status| status.as_str())});
    let fault = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {"code": text(), "message": text(), "details": {"type": "object"}},
    });
    [
        (
            "Error",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["error", "message"],
                "properties": {"error": text(), "message": text(), "details": {"type": "object"}},
            }),
        ),
        (
            "RunSnapshot",
            json!({
                "type": "object",
                "required": ["runId", "workflowId", "status"],
                "properties": {
                    "runId": text(), "workflowId": text(), "status": status(), "currentNodeId": text(),
                    "startedAt": instant(), "completedAt": instant(), "atSeq": sequence(),
                    "inputs": {"type": "object"}, "variables": {"type": "object"}, "channels": {"type": "object"},
                    "nodeStates": {"type": "object"}, "error": fault, "interrupt": {"type": "object"},
                    "childRuns": {"type": "array", "items": {"type": "object"}},
                    "parentRunId": text(), "parentNodeId": text(), "owner": {"type": "object"},
                    "tags": {"type": "array", "items": text()}, "metadata": {"type": "object"},
                    "configurable": {"type": "object"}, "workspace": {"type": "array", "items": {"type": "object"}},
                    "retention": {"type": "object"}, "forkedFrom": {"type": "object"},
                    "metrics": {
                        "type": "object",
                        "properties": {
                            "openwopCost": cost("What the models of this run have used."),
                            "treeCost": cost("The same, and what the runs below it have used that have ended."),
                        },
                    },
                },
            }),
        ),
        (
            "RunSummary",
            json!({
                "type": "object",
                "description": "What is absent does not apply to the run, or was not kept yet when it was written.",
                "properties": {
                    "iteration": {
                        "type": "object", "required": ["turn", "bound"],
                        "properties": {"turn": sequence(), "bound": sequence()},
                    },
                    "waitingOn": {
                        "type": "object", "required": ["kind", "nodeId", "open"],
                        "properties": {
                            "kind": text(), "nodeId": text(), "question": text(), "open": sequence(),
                            "requestedAt": instant(), "expiresAt": instant(), "runId": text(),
                        },
                    },
                    "usage": usage("What the models of this run have used."),
                    "usageBelow": usage("What the models of runs below it have used that have ended."),
                    "budget": {
                        "type": "object",
                        "propertyNames": {"enum": baton_model::budget::Dimension::ALL.map(|one| one.as_str())},
                        "additionalProperties": {
                            "type": "object", "required": ["spent", "limit"],
                            "properties": {"spent": {"type": "number"}, "limit": {"type": "number"}},
                        },
                    },
                    "overBudget": {"type": "boolean"}, "pauseReason": text(), "diverged": {"type": "boolean"},
                    "imported": {"type": "boolean"},
                    "children": sequence(), "descendants": sequence(),
                },
            }),
        ),
        (
            "RunEvent",
            json!({
                "type": "object",
                "required": ["eventId", "runId", "type", "payload", "timestamp", "sequence"],
                "properties": {
                    "eventId": text(), "runId": text(), "type": text(), "payload": {}, "timestamp": instant(),
                    "sequence": sequence(), "nodeId": text(), "causationId": text(),
                },
            }),
        ),
        (
            "PollResult",
            json!({
                "type": "object",
                "required": ["runId", "events", "isComplete", "isTerminal", "runStatus"],
                "properties": {
                    "runId": text(), "events": {"type": "array", "items": {"$ref": "#/components/schemas/RunEvent"}},
                    "isComplete": {"type": "boolean"}, "isTerminal": {"type": "boolean"}, "runStatus": status(),
                    "lastEventSeq": sequence(),
                },
            }),
        ),
        (
            "MemoryEntry",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["id", "content", "tags", "createdAt"],
                "properties": {
                    "id": text(), "content": text(), "tags": {"type": "array", "items": text()},
                    "createdAt": instant(), "expiresAt": instant(),
                },
            }),
        ),
        (
            "WorkspaceFile",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["path", "content", "version", "updatedAt"],
                "properties": {
                    "path": text(), "content": text(), "version": {"type": "integer", "minimum": 1},
                    "updatedAt": instant(), "contentType": text(), "etag": text(),
                },
            }),
        ),
        (
            "AgentInventoryEntry",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": [
                    "agentId", "persona", "label", "modelClass", "packName", "packVersion", "toolAllowlist",
                    "hasHandoffSchemas",
                ],
                "properties": {
                    "agentId": text(), "persona": text(), "label": text(), "description": text(), "modelClass": text(),
                    "packName": text(), "packVersion": text(), "toolAllowlist": {"type": "array", "items": text()},
                    "hasHandoffSchemas": {"type": "boolean"}, "memoryShape": {"type": "object"},
                    "confidenceThreshold": {"type": "number", "minimum": 0, "maximum": 1},
                    "degraded": {"type": "array", "items": text()}, "memoryDegraded": {"type": "boolean"},
                    "degradedMemoryDimensions": {"type": "array", "items": text()},
                },
            }),
        ),
        (
            "ToolDescriptor",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["toolId", "source", "safetyTier"],
                "properties": {
                    "toolId": text(), "title": text(), "description": text(),
                    "source": {"enum": ["node-pack", "workflow", "mcp", "connector", "host-extension"]},
                    "safetyTier": {"enum": ["pure", "read", "write", "exec"]},
                    "inputSchema": {}, "outputSchema": {}, "auth": {"type": "object"},
                    "egress": {"enum": ["none", "safe-fetch", "host-mediated", "host-owned"]},
                    "approval": {"enum": ["never", "conditional", "always"]},
                    "replayPolicy": {"enum": ["deterministic", "idempotent", "non-deterministic"]},
                    "latencyHint": {"enum": ["low", "medium", "high"]},
                },
            }),
        ),
        (
            "WorkflowDefinition",
            json!({
                "type": "object",
                "required": ["id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[a-z][a-z0-9_-]*$", "maxLength": 128},
                    "name": text(), "version": text(),
                    "nodes": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                    "edges": {"type": "array", "items": {"type": "object"}},
                    "triggers": {"type": "array", "items": {"type": "object"}},
                    "variables": {"type": "array", "items": {"type": "object"}},
                    "metadata": {"type": "object"}, "settings": {"type": "object"},
                },
            }),
        ),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|inner| references(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn it_is_openapi_3_1_and_every_reference_resolves() {
        let document = value(&Table::new(), "9.9.9");
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        assert_eq!(document["info"]["version"], "9.9.9");
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.iter().any(|reference| reference.ends_with("/Error")));
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn public_paths_ask_for_no_credential_and_others_do() {
        let document = value(&Table::new(), "1");
        assert_eq!(document["security"], json!([{"bearer": []}]));
        for path in [
            "/health",
            "/readiness",
            "/metrics",
            "/.well-known/openwop",
            "/v1/openapi.json",
            "/v1/host/baton/vendor-extensions",
            "/schemas/envelopes/{file}",
            "/v1/interrupts/{token}",
        ] {
            assert_eq!(document["paths"][path]["get"]["security"], json!([{}]), "{path}");
        }
        assert_eq!(document["paths"]["/v1/runs"]["post"]["security"], json!([{"bearer": ["runs:create"]}]));
        let fork = &document["paths"]["/v1/runs/{runId}:fork"]["post"];
        assert_eq!(fork["security"], json!([{"bearer": ["runs:create", "runs:read"]}]));
        assert!(document["paths"]["/v1/tools"]["get"].get("security").is_none(), "any key will do");
    }
}
