//! The discovery document: what this host can really do.

mod agents;
mod budget;
pub(crate) mod capabilities;
mod object;
pub(crate) mod orchestration;
mod scoped;
mod versioned;

pub(crate) use self::capabilities::capabilities;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, HeaderValue, VARY};
use axum::response::Response;
use baton_runtime::Options;
use serde_json::Value;

use crate::ServerOptions;
use crate::app::App;
use crate::auth::access::Public;
use crate::auth::known;
use crate::document::Document;

/// What this host can do.
#[utoipa::path(get, path = "/.well-known/openwop", tag = "discovery",
    responses(
        (status = 200, description = "The capabilities document", body = Object),
        (status = 304, description = "Unchanged")))]
pub(crate) async fn get(_: Public, State(app): State<App>, headers: HeaderMap) -> Response {
    let narrowed = known(&app, &headers).and_then(|who| scoped::narrowed(&app.documents.capabilities, &who.scopes));
    let mut response = match narrowed {
        None => app.documents.discovery.respond(&headers),
        Some(view) => {
            let mut response = Document::new(&view).respond(&headers);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=300"));
            response
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Authorization"));
    response
}

/// What a host that is set up like this says of itself.
pub fn discovery_document(options: &ServerOptions, host: &Options) -> Value {
    capabilities(options, host).into()
}
