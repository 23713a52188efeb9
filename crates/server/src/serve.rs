use std::time::Duration;

use axum::serve::ListenerExt as _;
use baton_runtime::Host;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::routes::mount;
use crate::{ServerOptions, metrics};

/// How long requests in progress may take once a stop was asked for. Streams and long polls end at once.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until `shutdown` is cancelled: then accepts nothing new, ends streams and long polls, lets requests in
/// progress finish, and returns.
pub async fn serve(
    listener: TcpListener,
    host: Host,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let conformance = options.conformance;
    let app = App::new(host, options, shutdown.clone());
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let serving = axum::serve(listener, mount(app.clone(), conformance))
        .with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let overtime = async {
        shutdown.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let upkeep = async {
        loop {
            tokio::time::sleep(metrics::UPKEEP).await;
            app.metrics.upkeep();
        }
    };
    let finished = async {
        let result = serving.into_future().await;
        app.tasks.close();
        app.tasks.wait().await;
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
