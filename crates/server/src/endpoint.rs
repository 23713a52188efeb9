//! What it takes to write an endpoint in another crate: who calls, what was sent, how it is answered. Such endpoints are
//! served beside the API (see [`router_with`](crate::router_with)) with everything that surrounds it.

pub use crate::app::App;
pub use crate::arrival::Arrival;
pub use crate::auth::{Allowed, AnyKey, scope};
pub use crate::body::{Json, parse, read};
pub use crate::error::ApiError;
pub use crate::keys::TEST_KEY_PREFIX;
pub use crate::path::Ids;
pub use crate::query::{Params, bad};
pub use crate::reply::Reply;
pub use crate::routes::discovery::capabilities::ENGINE_VERSION;
pub use crate::routes::discovery::orchestration::TOKEN_COUNTER;
pub use crate::routes::prompts::refused as prompt_refused;
pub use crate::routes::undocumented::{get, post};
pub use crate::routes::workspace::{Files, largest_body, too_large};
pub use crate::spans::{each as each_span, shown as shown_span};
