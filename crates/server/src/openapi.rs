//! The OpenAPI document, made of what the handlers and their types say about themselves.

use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::routes::operations::{BEARER, Operations, RUNNER, STEP};
use crate::routes::table::Table;

/// Replies to which the protocol adds no members. The types cannot say so: clients read them too, and take what they do
/// not know.
const CLOSED: [&str; 4] = ["Error", "AgentInventoryEntry", "ToolDescriptor", "WorkspaceFile"];

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
    let runner = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert(RUNNER.to_owned(), runner.into());
    let step = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert(STEP.to_owned(), step.into());
    for (schemas, paths) in table.all().map(Operations::document) {
        components.schemas.extend(schemas);
        // A parameter that takes slashes is an ordinary one to readers of the document.
        let described = paths.paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item));
        api.paths.paths.extend(described);
    }
    let mut document = serde_json::to_value(api).unwrap_or_default();
    for name in CLOSED {
        let schema = &mut document["components"]["schemas"][name];
        let others = if schema.get("allOf").is_some() { "unevaluatedProperties" } else { "additionalProperties" };
        schema[others] = false.into();
    }
    document
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
