//! What it takes to write an endpoint in another crate: who calls, what was sent, how it is answered. Such endpoints are
//! served beside the API (see [`router_with`](crate::router_with)) with everything that surrounds it.

use axum::handler::Handler;
use axum::routing::MethodRouter;

pub use crate::app::App;
use crate::auth::access::Arguments;
pub use crate::auth::{Allowed, AnyKey, scope};
pub use crate::body::{Json, parse, read};
pub use crate::error::ApiError;
pub use crate::keys::TEST_KEY_PREFIX;
pub use crate::path::Ids;
pub use crate::query::{Params, bad};
pub use crate::reply::Reply;
pub use crate::routes::discovery::{ENGINE_VERSION, orchestration::TOKEN_COUNTER};
use crate::routes::methods;
pub use crate::routes::prompts::refused as prompt_refused;
pub use crate::routes::workspace::{Files, largest_body, too_large};
pub use crate::spans::{each as each_span, shown as shown_span};

/// A handler that says who may call it. One that does not say it does not compile.
pub fn get<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> MethodRouter<App> {
    methods::get(handler).router
}

/// The same for POST.
pub fn post<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> MethodRouter<App> {
    methods::post(handler).router
}
