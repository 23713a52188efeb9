//! All routes over a host, with what happens to every request and every answer.

use std::any::Any;
use std::sync::LazyLock;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use baton_runtime::Host;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, Documents};
use crate::document::Document;
use crate::error::ApiError;
use crate::routes::operations::Operations;
use crate::routes::table::Table;
use crate::routes::verbs::{self, Verbs};
use crate::routes::{discovery, fallback, undocumented, vendor_extensions};
use crate::{ServerOptions, console, load, mask, metrics, negotiate, openapi};

/// All routes over `host`. `shutdown` ends streams and long polls.
pub fn router(host: Host, options: ServerOptions, shutdown: CancellationToken) -> Router {
    router_with(host, options, Router::new(), shutdown)
}

/// The same, with routes of another crate beside them; see [`crate::endpoint`].
pub fn router_with(host: Host, options: ServerOptions, beside: Router<App>, shutdown: CancellationToken) -> Router {
    open(host, options, beside, shutdown).1
}

pub(crate) fn open(
    host: Host,
    options: ServerOptions,
    beside: Router<App>,
    shutdown: CancellationToken,
) -> (App, Router) {
    let table = Table::new();
    let capabilities = discovery::capabilities(&options, host.options());
    let version = options.version.clone();
    let documents = Documents {
        discovery: Document::new(&capabilities.clone().into()),
        capabilities,
        openapi: LazyLock::new(Box::new(move || Document::new(&openapi::value(&Table::new(), &version)))),
        vendor_extensions: vendor_extensions::document(host.options()),
    };
    let app = App::new(host, options, shutdown, documents);
    let router = mount(table, beside, &app).with_state(app.clone());
    (app, router)
}

fn mount(table: Table, limited: Router<App>, app: &App) -> Router<App> {
    let verbs = (app.clone(), Verbs::new(&table.verbs));
    let run = table.run.map(|methods| methods.merge(undocumented::post(verbs::without)));
    let [always, documented, run] = [table.always, table.limited, vec![run]].map(|operations| {
        let all = operations.into_iter();
        all.fold(Router::new(), |router, Operations { path, router: methods, .. }| router.route(&path, methods))
    });
    let run = run.layer(from_fn_with_state(verbs, verbs::divert));
    limited
        .merge(documented)
        .merge(run)
        .layer(from_fn_with_state(app.clone(), load::shed))
        .merge(always)
        .merge(console::router())
        .fallback(fallback::not_found)
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(map_response(mask::shapes))
        .layer(from_fn(negotiate::version))
        .layer(from_fn(metrics::record))
}

fn panicked(cause: Box<dyn Any + Send>) -> Response {
    let text = cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("unknown"), "a request handler panicked");
    ApiError::internal("The request could not be handled because of a fault in the host.").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_answers_in_the_envelope_and_keeps_its_text_to_itself() {
        let response = panicked(Box::new("secret detail"));
        assert_eq!(response.status(), 500);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap_or_default();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(body["error"], "internal_error");
        assert!(body["details"]["correlationId"].is_string() && !body.to_string().contains("secret detail"));
    }
}
