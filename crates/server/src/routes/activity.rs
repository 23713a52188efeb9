//! Which runs change, for whoever looks at a list of them.

use axum::extract::State;
use axum::response::Response;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::query::Params;
use crate::sse::{ActivityFeed, Pieces as _, stream_response};

/// Follow which runs of the tenant change (host extension). The first frame is `hello`, with `instance`, `at` and
/// `openInterrupts`; then come `runs` frames with rows as in `GET /v1/runs`, at most four a second, or `relist` when more
/// changed than is told. Nothing is resumed: list again after every `hello`.
#[utoipa::path(get, path = "/v1/host/baton/activity", tag = "runs",
    responses((status = 200, description = "Server-sent events until the host stops", content_type = "text/event-stream", body = String),
        (status = 429, description = "The tenant has as many streams as it may have", body = baton_api::ErrorBody)))]
pub(crate) async fn get(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    params.only(&[])?;
    let open = app.quotas.stream(&tenant)?;
    let feed = ActivityFeed::open(app.host.clone(), tenant, app.shutdown.clone());
    Ok(stream_response(feed.into_body(open)))
}
