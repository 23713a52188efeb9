//! The HTTP face of a Baton host: REST, SSE, authentication, idempotency, discovery.
//!
//! Nothing is decided here. A handler extracts, asks the [`baton_runtime::Host`], and shapes the answer; errors become
//! statuses in one place ([`error`]), replies become repeatable in one place ([`idempotency`]).

mod app;
mod arrival;
mod auth;
mod body;
mod connections;
mod console;
mod document;
pub mod endpoint;
mod entrance;
mod error;
mod event_view;
mod headers;
mod idempotency;
mod inventory;
mod keys;
mod load;
mod log_tail;
mod mask;
mod metrics;
mod negotiate;
mod openai;
mod openapi;
mod options;
mod path;
mod query;
mod quotas;
mod rate_limit;
mod reply;
mod router;
mod routes;
mod run_rows;
mod secrets;
mod serve;
mod spans;
mod sse;
mod verb_path;

pub use connections::ConnectionLimits;
pub use entrance::Entrance;
pub use keys::{Keys, KeysError};
pub use log_tail::{LogLine, LogTail};
pub use options::ServerOptions;
pub use quotas::TenantLimits;
pub use router::{router, router_with};
pub use routes::discovery::discovery_document;
pub use serve::{serve, serve_entrance};
