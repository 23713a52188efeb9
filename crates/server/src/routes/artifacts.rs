use axum::response::Response;

use crate::auth::Allowed;
use crate::auth::scope::ArtifactsRead;
use crate::error::ApiError;

/// An artifact of a run. Artifacts are not kept by this host yet, so every id is unknown.
#[utoipa::path(get, path = "/v1/runs/{runId}/artifacts/{artifactId}", tag = "runs",
    params(("runId" = String, Path), ("artifactId" = String, Path)),
    responses((status = 404, description = "No such artifact", body = baton_api::ErrorBody)))]
pub(crate) async fn get(_: Allowed<ArtifactsRead>) -> Result<Response, ApiError> {
    Err(ApiError::not_found("There is no such artifact."))
}
