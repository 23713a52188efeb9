//! Paths and methods that are not there.

use axum::http::{Method, Uri};

use crate::error::ApiError;

/// First segments that a client of the API would use if it forgot the version.
const API_ROOTS: [&str; 16] = [
    "runs",
    "workflows",
    "webhooks",
    "interrupts",
    "agents",
    "approvals",
    "artifacts",
    "audit",
    "content",
    "events",
    "memory",
    "openapi.json",
    "packs",
    "prompts",
    "tools",
    "workspace",
];

pub(crate) async fn not_found(uri: Uri) -> ApiError {
    describe(uri.path())
}

pub(crate) async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::method_not_allowed(&method, None)
}

fn describe(path: &str) -> ApiError {
    let root = path.trim_start_matches('/').split(['/', ':']).next().unwrap_or_default();
    if API_ROOTS.contains(&root) {
        return ApiError::invalid(format!("API paths are versioned: use /v1/{root}."));
    }
    ApiError::not_found("Nothing is here. /v1/openapi.json lists every path.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_version_is_told_apart_from_an_unknown_path() {
        for path in ["/runs", "/runs/run_1/events", "/runs:bulk-cancel", "/workflows", "/interrupts/x"] {
            assert_eq!(describe(path).status, 400, "{path}");
        }
        for path in ["/", "", "/v1", "/v1/nothing", "/v2/runs", "/runsx", "/favicon.ico", "/v1/runs/x/debug-bundle"] {
            assert_eq!(describe(path).status, 404, "{path}");
        }
    }
}
