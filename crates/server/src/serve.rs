use std::time::Duration;

use axum::extract::Request;
use axum::serve::ListenerExt as _;
use baton_runtime::Host;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::{Entrance, ServerOptions, metrics};

/// How long requests in progress may take once a stop was asked for. Streams and long polls end at once.
const GRACE: Duration = Duration::from_secs(10);

/// Serves an open host until `shutdown` is cancelled: then accepts nothing new, ends streams and long polls, lets
/// requests in progress finish, and returns.
pub async fn serve(
    listener: TcpListener,
    host: Host,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let entrance = Entrance::new(shutdown);
    entrance.open(host, options);
    serve_entrance(listener, entrance).await
}

/// The same for a host that may not be open yet.
pub async fn serve_entrance(listener: TcpListener, entrance: Entrance) -> std::io::Result<()> {
    let shutdown = entrance.shutdown().clone();
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let service = <Entrance as axum::ServiceExt<Request>>::into_make_service(entrance.clone());
    let serving = axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let overtime = async {
        shutdown.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let upkeep = async {
        loop {
            tokio::time::sleep(metrics::UPKEEP).await;
            Metrics::shared().upkeep();
        }
    };
    let finished = async {
        let result = serving.into_future().await;
        entrance.finish().await;
        result
    };
    tokio::select! {
        result = finished => result,
        () = overtime => {
            tracing::warn!(seconds = GRACE.as_secs(), "some requests did not finish in time and were cut off");
            Ok(())
        }
        () = upkeep => Ok(()),
    }
}
