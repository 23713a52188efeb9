use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;

/// Path parameters, percent-decoded; what does not decode is answered with our envelope.
pub struct Ids<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Ids<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, app).await {
            Ok(Path(ids)) => Ok(Self(ids)),
            Err(_) => Err(ApiError::invalid("An id in the path is not valid percent-encoded UTF-8.")),
        }
    }
}
