//! The route table. The router is built from it and a test checks it against the OpenAPI document, so neither can
//! forget a route of the other.

pub(crate) mod activity;
pub(crate) mod agents;
pub(crate) mod ancestry;
pub(crate) mod annotations;
pub(crate) mod artifacts;
mod cause;
pub(crate) mod chat;
pub(crate) mod control;
pub(crate) mod conversations;
pub(crate) mod dead_letters;
pub(crate) mod debug_bundle;
pub(crate) mod diff;
pub(crate) mod discovery;
pub(crate) mod document;
pub(crate) mod envelope_schemas;
pub(crate) mod events;
pub(crate) mod fallback;
pub(crate) mod fork;
pub(crate) mod health;
pub(crate) mod interrupts;
pub(crate) mod memory;
pub(crate) mod methods;
pub(crate) mod openapi;
pub(crate) mod poll;
pub(crate) mod prompts;
pub(crate) mod prune;
pub(crate) mod quarantine;
pub(crate) mod run_list;
pub(crate) mod runs;
pub(crate) mod state;
pub(crate) mod system;
pub(crate) mod tools;
pub(crate) mod transfer;
pub(crate) mod vendor_extensions;
pub(crate) mod verify;
mod webhook_events;
pub(crate) mod webhook_list;
pub(crate) mod webhooks;
pub(crate) mod workflow_versions;
pub(crate) mod workflows;
pub(crate) mod workspace;

use std::any::Any;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use baton_model::{RunId, Scope};
use baton_runtime::Host;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use self::methods::{Methods, delete, get, post};
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::access::Access;
use crate::auth::scope::Needs;
use crate::error::ApiError;
use crate::{ServerOptions, console, load, mask, metrics, negotiate};

/// One path, what answers there, and the operations it documents.
struct Route {
    path: &'static str,
    methods: Methods,
    operations: &'static [(&'static str, &'static str)],
    /// Operations whose scopes the handler finds out only from the request.
    chosen: Vec<(&'static str, &'static [Scope])>,
    /// Answers even when the host is at capacity.
    always: bool,
}

const fn route(path: &'static str, methods: Methods, operations: &'static [(&'static str, &'static str)]) -> Route {
    Route { path, methods, operations, chosen: Vec::new(), always: false }
}

impl Route {
    fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// Gives back what somebody put there, letter by letter. Everything else is masked; see [`mask`].
    fn verbatim(self) -> Self {
        self.layered(|router| router.layer(map_response(mask::verbatim)))
    }

    fn layered(mut self, layer: impl FnOnce(MethodRouter<App>) -> MethodRouter<App>) -> Self {
        self.methods.router = layer(self.methods.router);
        self
    }

    /// What an operation behind a handler that takes [`Undecided`](crate::auth::Undecided) asks for.
    fn asking(mut self, operation: &'static str, scopes: &'static [Scope]) -> Self {
        self.chosen.push((operation, scopes));
        self
    }

    /// What each operation asks of a key.
    fn accesses(&self) -> impl Iterator<Item = (&'static str, &'static str, Access)> + '_ {
        self.operations.iter().map(|(method, operation)| {
            let chosen = self.chosen.iter().find(|(named, _)| named == operation);
            let by_handler = self.methods.access.iter().find(|(name, _)| name == method);
            let access = match (chosen, by_handler) {
                (Some((_, scopes)), _) => Access::Scopes(scopes),
                (None, Some((_, access))) => *access,
                (None, None) => Access::Undecided,
            };
            (*method, *operation, access)
        })
    }
}

/// What each documented operation asks of a key: method, path, access.
fn accesses() -> Vec<(&'static str, &'static str, Access)> {
    table().iter().flat_map(|route| route.accesses().collect::<Vec<_>>()).collect()
}

/// The scopes of an operation that a handler hands a request on to.
fn of<S: Needs, R, F>(_: fn(App, Allowed<S>, RunId, R) -> F) -> &'static [Scope] {
    S::SCOPES
}

fn table() -> Vec<Route> {
    let artifact = "/v1/runs/{runId}/artifacts/{artifactId}";
    let interrupt = "/v1/runs/{runId}/interrupts/{nodeId}";
    vec![
        route("/.well-known/openwop", get(discovery::get), &[("get", "/.well-known/openwop")]).always(),
        route("/v1/openapi.json", get(openapi::get), &[("get", "/v1/openapi.json")]).always(),
        route(vendor_extensions::PATH, get(vendor_extensions::get), &[("get", vendor_extensions::PATH)]),
        route("/schemas/envelopes/{file}", get(envelope_schemas::get), &[("get", "/schemas/envelopes/{file}")]),
        route("/health", get(health::health), &[("get", "/health")]).always(),
        route("/readiness", get(health::readiness), &[("get", "/readiness")]).always(),
        route("/metrics", get(metrics::page), &[("get", "/metrics")]).always(),
        route("/v1/runs", get(run_list::list).post(runs::create), &[("get", "/v1/runs"), ("post", "/v1/runs")]),
        route("/v1/runs:bulk-cancel", post(control::bulk_cancel), &[("post", "/v1/runs:bulk-cancel")]),
        route(
            "/v1/runs/{runId}",
            get(runs::get).post(control::verb),
            &[
                ("get", "/v1/runs/{runId}"),
                ("get", "/v1/runs/{runId}:diff"),
                ("post", "/v1/runs/{runId}:pause"),
                ("post", "/v1/runs/{runId}:resume"),
                ("post", "/v1/runs/{runId}:fork"),
                ("post", "/v1/runs/{runId}:prune"),
            ],
        )
        .asking("/v1/runs/{runId}:pause", of(control::pause))
        .asking("/v1/runs/{runId}:resume", of(control::resume))
        .asking("/v1/runs/{runId}:fork", of(fork::post))
        .asking("/v1/runs/{runId}:prune", of(prune::post)),
        route("/v1/runs/{runId}/cancel", post(control::cancel), &[("post", "/v1/runs/{runId}/cancel")]),
        route("/v1/runs/{runId}/events", get(events::get), &[("get", "/v1/runs/{runId}/events")]),
        route("/v1/runs/{runId}/events/poll", get(poll::get), &[("get", "/v1/runs/{runId}/events/poll")]),
        route("/v1/runs/{runId}/ancestry", get(ancestry::get), &[("get", "/v1/runs/{runId}/ancestry")]),
        route(
            "/v1/runs/{runId}/annotations",
            get(annotations::list).post(annotations::create),
            &[("get", "/v1/runs/{runId}/annotations"), ("post", "/v1/runs/{runId}/annotations")],
        ),
        route("/v1/runs/{runId}/debug-bundle", get(debug_bundle::get), &[("get", "/v1/runs/{runId}/debug-bundle")]),
        route(artifact, get(artifacts::get), &[("get", "/v1/runs/{runId}/artifacts/{artifactId}")]),
        route(interrupt, post(interrupts::resolve), &[("post", "/v1/runs/{runId}/interrupts/{nodeId}")]),
        route(
            "/v1/runs/{runId}/approvals/{nodeId}",
            post(interrupts::resolve_alias),
            &[("post", "/v1/runs/{runId}/approvals/{nodeId}")],
        ),
        route("/v1/interrupts", get(interrupts::list), &[("get", "/v1/interrupts")]),
        route(
            "/v1/interrupts/{token}",
            get(interrupts::inspect_token).post(interrupts::resolve_token),
            &[("get", "/v1/interrupts/{token}"), ("post", "/v1/interrupts/{token}")],
        )
        .layered(|router| router.layer(map_response(interrupts::keep_the_address_quiet))),
        route(
            "/v1/workflows",
            get(workflows::list).post(workflows::register),
            &[("get", "/v1/workflows"), ("post", "/v1/workflows")],
        )
        .verbatim(),
        route("/v1/workflows/{workflowId}", get(workflows::get), &[("get", "/v1/workflows/{workflowId}")]).verbatim(),
        route(
            "/v1/host/baton/workflows/validate",
            post(workflow_versions::validate),
            &[("post", "/v1/host/baton/workflows/validate")],
        ),
        route(
            "/v1/host/baton/workflows/{workflowId}/versions",
            get(workflow_versions::list),
            &[("get", "/v1/host/baton/workflows/{workflowId}/versions")],
        ),
        route(
            "/v1/host/baton/workflows/{workflowId}/versions/{version}",
            get(workflow_versions::get),
            &[("get", "/v1/host/baton/workflows/{workflowId}/versions/{version}")],
        )
        .verbatim(),
        route("/v1/host/baton/activity", get(activity::get), &[("get", "/v1/host/baton/activity")]),
        route("/v1/host/baton/system", get(system::get), &[("get", "/v1/host/baton/system")]),
        route(
            "/v1/host/baton/agents/{agentId}/effective",
            get(agents::effective::get),
            &[("get", "/v1/host/baton/agents/{agentId}/effective")],
        ),
        route("/v1/agents", get(agents::list), &[("get", "/v1/agents")]),
        route("/v1/agents/{agentId}", get(agents::get), &[("get", "/v1/agents/{agentId}")]),
        route("/v1/tools", get(tools::list), &[("get", "/v1/tools")]),
        route("/v1/tools/{toolId}", get(tools::get), &[("get", "/v1/tools/{toolId}")]),
        route(
            "/v1/prompts",
            get(prompts::list).post(prompts::create),
            &[("get", "/v1/prompts"), ("post", "/v1/prompts")],
        )
        .verbatim(),
        route("/v1/prompts:render", post(prompts::render), &[("post", "/v1/prompts:render")]),
        route(
            "/v1/prompts/{templateId}",
            get(prompts::get).put(prompts::replace).delete(prompts::remove),
            &[
                ("get", "/v1/prompts/{templateId}"),
                ("put", "/v1/prompts/{templateId}"),
                ("delete", "/v1/prompts/{templateId}"),
            ],
        )
        .verbatim(),
        route(chat::PATH, post(chat::post), &[("post", chat::PATH)]),
        route(conversations::PATH, get(conversations::list), &[("get", conversations::PATH)]),
        route(conversations::ONE, get(conversations::get), &[("get", conversations::ONE)]),
        route(conversations::FORK, post(conversations::fork), &[("post", conversations::FORK)]),
        route("/v1/host/workspace/files", get(workspace::list), &[("get", "/v1/host/workspace/files")]),
        route(
            "/v1/host/workspace/files/{*path}",
            get(workspace::get).put(workspace::put).delete(workspace::delete),
            &[
                ("get", "/v1/host/workspace/files/{path}"),
                ("put", "/v1/host/workspace/files/{path}"),
                ("delete", "/v1/host/workspace/files/{path}"),
            ],
        )
        .verbatim(),
        route(
            "/v1/host/baton/workspace/changes",
            get(workspace::changes),
            &[("get", "/v1/host/baton/workspace/changes")],
        ),
        route("/v1/host/baton/memory", get(memory::scopes), &[("get", "/v1/host/baton/memory")]),
        route(
            "/v1/host/baton/memory/{scope}",
            get(memory::list).post(memory::remember),
            &[("get", "/v1/host/baton/memory/{scope}"), ("post", "/v1/host/baton/memory/{scope}")],
        )
        .verbatim(),
        route(
            "/v1/host/baton/memory/{scope}/{entryId}",
            get(memory::get).delete(memory::forget),
            &[
                ("get", "/v1/host/baton/memory/{scope}/{entryId}"),
                ("delete", "/v1/host/baton/memory/{scope}/{entryId}"),
            ],
        )
        .verbatim(),
        route("/v1/host/baton/runs/import", post(transfer::import), &[("post", "/v1/host/baton/runs/import")])
            .asking("/v1/host/baton/runs/import", transfer::Importing::SCOPES),
        route(
            "/v1/host/baton/runs/{runId}/export",
            get(transfer::export),
            &[("get", "/v1/host/baton/runs/{runId}/export")],
        )
        .verbatim(),
        route("/v1/host/baton/runs/{runId}/state", get(state::get), &[("get", "/v1/host/baton/runs/{runId}/state")]),
        route(
            "/v1/host/baton/runs/{runId}/files/{*path}",
            get(workspace::at_record),
            &[("get", "/v1/host/baton/runs/{runId}/files/{path}")],
        )
        .verbatim(),
        route(
            "/v1/host/baton/runs/{runId}/surroundings",
            get(state::surroundings),
            &[("get", "/v1/host/baton/runs/{runId}/surroundings")],
        ),
        route(
            "/v1/host/baton/runs/{runId}/verify",
            post(verify::post),
            &[("post", "/v1/host/baton/runs/{runId}/verify")],
        ),
        route("/v1/host/baton/quarantine", get(quarantine::list), &[("get", "/v1/host/baton/quarantine")]),
        route(
            "/v1/host/baton/runs/{runId}/release",
            post(quarantine::release),
            &[("post", "/v1/host/baton/runs/{runId}/release")],
        ),
        route(
            "/v1/webhooks",
            get(webhook_list::list).post(webhooks::register),
            &[("get", "/v1/webhooks"), ("post", "/v1/webhooks")],
        ),
        route(
            "/v1/webhooks/{webhookId}",
            get(webhook_list::get).delete(webhooks::remove),
            &[("get", "/v1/webhooks/{webhookId}"), ("delete", "/v1/webhooks/{webhookId}")],
        ),
        route(
            "/v1/webhooks/{webhookId}/dead-letters",
            get(dead_letters::list),
            &[("get", "/v1/webhooks/{webhookId}/dead-letters")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/resume",
            post(webhook_list::resume),
            &[("post", "/v1/host/baton/webhooks/{webhookId}/resume")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/rotate-secret",
            post(webhook_list::rotate_secret),
            &[("post", "/v1/host/baton/webhooks/{webhookId}/rotate-secret")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/dead-letters",
            delete(dead_letters::forget_all),
            &[("delete", "/v1/host/baton/webhooks/{webhookId}/dead-letters")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/dead-letters/redeliver",
            post(dead_letters::redeliver_all),
            &[("post", "/v1/host/baton/webhooks/{webhookId}/dead-letters/redeliver")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}",
            delete(dead_letters::forget_one),
            &[("delete", "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}")],
        ),
        route(
            "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}/redeliver",
            post(dead_letters::redeliver_one),
            &[("post", "/v1/host/baton/webhooks/{webhookId}/dead-letters/{letterId}/redeliver")],
        ),
    ]
}

/// All routes over `host`. `shutdown` ends streams and long polls.
pub fn router(host: Host, options: ServerOptions, shutdown: CancellationToken) -> Router {
    router_with(host, options, Router::new(), shutdown)
}

/// The same, with routes of another crate beside them; see [`crate::endpoint`].
pub fn router_with(host: Host, options: ServerOptions, beside: Router<App>, shutdown: CancellationToken) -> Router {
    mount(App::new(host, options, shutdown), beside)
}

pub(crate) fn mount(app: App, beside: Router<App>) -> Router {
    let (mut always, mut limited) = (Router::new(), beside);
    for route in table() {
        tracing::debug!(path = route.path, operations = ?route.operations, "mounted");
        if route.always {
            always = always.route(route.path, route.methods.router);
        } else {
            limited = limited.route(route.path, route.methods.router);
        }
    }
    limited
        .layer(from_fn_with_state(app.clone(), load::shed))
        .merge(always)
        .merge(console::router())
        .fallback(fallback::not_found)
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(map_response(mask::shapes))
        .layer(from_fn(negotiate::version))
        .layer(from_fn(metrics::record))
        .with_state(app)
}

fn panicked(cause: Box<dyn Any + Send>) -> Response {
    let text = cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("unknown"), "a request handler panicked");
    ApiError::internal("The request could not be handled because of a fault in the host.").into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_and_the_openapi_document_name_the_same_operations() {
        let routed: BTreeSet<(String, String)> = table()
            .iter()
            .flat_map(|route| route.operations)
            .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        let mut documented = BTreeSet::new();
        for (path, item) in openapi::value("0")["paths"].as_object().into_iter().flatten() {
            for method in item.as_object().into_iter().flatten().map(|(method, _)| method) {
                documented.insert((method.clone(), path.clone()));
            }
        }
        assert_eq!(routed, documented);
        for (method, path, access) in accesses() {
            assert_ne!(access, Access::Undecided, "{method} {path} does not say which scopes it needs");
        }
    }

    #[tokio::test]
    async fn a_panic_answers_in_the_envelope_and_keeps_its_text_to_itself() {
        let response = panicked(Box::new("secret detail"));
        assert_eq!(response.status(), 500);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap_or_default();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(body["error"], "internal_error");
        assert!(body["details"]["correlationId"].is_string() && !body.to_string().contains("secret detail"));
    }

    #[test]
    fn every_route_documents_at_least_one_operation_on_its_own_path() {
        for route in table() {
            assert!(!route.operations.is_empty(), "{}", route.path);
            // A parameter that takes slashes is an ordinary one to readers of the document.
            let own = route.path.replace("{*", "{");
            assert!(route.operations.iter().all(|(_, path)| path.starts_with(&own)), "{}", route.path);
        }
    }
}
