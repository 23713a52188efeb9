//! The page that Prometheus scrapes.

use axum::extract::State;
use axum::response::Response;

use crate::app::App;
use crate::auth::access::Public;
use crate::metrics::rendered;

const QUARANTINED: &str = "baton_quarantined_trees";
/// Labels are the operator's own names. Absent while nobody has needed a link.
const CONNECTION_UP: &str = "baton_connection_up";

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Metrics in the Prometheus text format", content_type = "text/plain", body = String)))]
pub(crate) async fn page(_: Public, State(app): State<App>) -> Response {
    // As it is now: what was counted before there was a page to show it on is not lost.
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    metrics::gauge!(QUARANTINED).set(app.host.quarantined_here() as f64);
    for connection in app.host.connections() {
        if let Some(up) = connection.state.up() {
            let (kind, name) = (connection.kind.as_str(), connection.name);
            metrics::gauge!(CONNECTION_UP, "kind" => kind, "name" => name).set(if up { 1.0 } else { 0.0 });
        }
    }
    rendered(&app.metrics)
}
