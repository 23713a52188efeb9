//! Where a run comes from, one step up.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_api::{Ancestry, Parent};
use baton_model::RunId;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::error::ApiError;
use crate::path::Ids;
use crate::reply::Reply;

/// The run that started this one.
#[utoipa::path(get, path = "/v1/runs/{runId}/ancestry", tag = "runs", params(("runId" = String, Path)),
    responses((status = 200, description = "The immediate parent, if there is one", body = Ancestry),
        (status = 404, description = "No such run", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let found = app.host.ancestry(tenant, &RunId::new(run)).await?;
    let parent = found.parent.map(|parent| {
        let baton_runtime::Parent { run_id, host_id, cause, well_known_url } = parent;
        Parent { run_id, host_id, cause, well_known_url }
    });
    Ok(Reply::ok(&Ancestry { run_id: found.run_id, host_id: found.host_id, parent }).into_response())
}
