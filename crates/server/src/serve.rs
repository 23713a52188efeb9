use std::time::Duration;

use baton_runtime::Host;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connections::{self, Table};
use crate::metrics::Metrics;
use crate::{ConnectionLimits, Entrance, ServerOptions, metrics};

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
    let limits = options.connections.clone();
    entrance.open(host, options);
    serve_entrance(listener, entrance, limits).await;
    Ok(())
}

/// The same for a host that may not be open yet.
pub async fn serve_entrance(listener: TcpListener, entrance: Entrance, limits: ConnectionLimits) {
    let (table, tasks, cut) = (Table::new(limits), TaskTracker::new(), CancellationToken::new());
    // However this ends: no connection outlives it.
    let _cut_at_the_end = cut.clone().drop_guard();
    let upkeep = async {
        loop {
            tokio::time::sleep(metrics::UPKEEP).await;
            Metrics::shared().upkeep();
        }
    };
    let finished = async {
        connections::accept(listener, &entrance, &table, &tasks, &cut).await;
        let done = async {
            tasks.close();
            tasks.wait().await;
            entrance.finish().await;
        };
        if tokio::time::timeout(GRACE, done).await.is_err() {
            tracing::warn!(seconds = GRACE.as_secs(), "some requests did not finish in time and were cut off");
        }
    };
    tokio::select! {
        () = finished => {}
        never = table.keep() => match never {},
        () = upkeep => {}
    }
}
