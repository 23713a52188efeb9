//! `/v1/runs/{runId}:verb`. A router matches whole segments, so what is behind the last colon is looked up here.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use tower::ServiceExt as _;

use super::operations::Operations;
use crate::app::App;
use crate::auth::scope::RunsRead;
use crate::auth::{Allowed, AnyKey};
use crate::error::ApiError;
use crate::metrics::Operation;
use crate::path::Ids;
use crate::verb_path;

const READS: &str = "GET, HEAD";
const WRITES: &str = "POST";

/// What may be done with a run, by name.
#[derive(Clone, Default)]
pub(crate) struct Verbs(Arc<BTreeMap<String, Verb>>);

struct Verb {
    /// As the document has it.
    path: Arc<str>,
    reads: bool,
    router: MethodRouter<App>,
}

impl Verbs {
    /// From operations whose paths end in `:verb`.
    pub(crate) fn new<'a>(operations: impl IntoIterator<Item = &'a Operations>) -> Self {
        let verb = |operations: &Operations| {
            let Operations { path, reads, router, .. } = operations;
            let (_, name) = path.rsplit_once(':')?;
            Some((name.to_owned(), Verb { path: path.as_str().into(), reads: *reads, router: router.clone() }))
        };
        Self(Arc::new(operations.into_iter().filter_map(verb).collect()))
    }
}

/// Sends a request with a verb to what answers it. One without goes on.
pub(crate) async fn divert(State((app, verbs)): State<(App, Verbs)>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let reads = matches!(method, Method::GET | Method::HEAD);
    let (mut parts, body) = request.into_parts();
    let segment = Ids::<String>::from_request_parts(&mut parts, &app).await;
    let name = segment.as_ref().ok().and_then(|Ids(segment)| verb_path::split(segment).1);
    let Some(name) = name.filter(|_| reads || method == Method::POST) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let verb = verbs.0.get(name);
    if let Some(verb) = verb.filter(|verb| verb.reads == reads) {
        let answer = verb.router.clone().with_state(app).oneshot(Request::from_parts(parts, body));
        let mut response = answer.await.unwrap_or_else(|never| match never {});
        response.extensions_mut().insert(Operation(Arc::clone(&verb.path)));
        return response;
    }
    // Nobody without a key is told which verbs there are.
    let asked = match reads {
        true => Allowed::<RunsRead>::from_request_parts(&mut parts, &app).await.map(drop),
        false => AnyKey::from_request_parts(&mut parts, &app).await.map(drop),
    };
    let refusal = match (asked, verb) {
        (Err(refusal), _) => refusal,
        (Ok(()), Some(verb)) => ApiError::method_not_allowed(&method, Some(if verb.reads { READS } else { WRITES })),
        (Ok(()), None) if reads => ApiError::not_found("Nothing is here. /v1/openapi.json lists every path."),
        (Ok(()), None) => ApiError::not_found("A run has no such operation. /v1/openapi.json lists them."),
    };
    refusal.into_response()
}

/// A run is posted to with a verb only.
pub(crate) async fn without(_: AnyKey, method: Method) -> ApiError {
    ApiError::method_not_allowed(&method, Some(READS))
}
