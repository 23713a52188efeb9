//! Taking connections, for as long as there are descriptors and places for them, and after that.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drive::drive;
use super::table::Table;
use crate::Entrance;

/// How long nothing is accepted after that failed: trying again at once would only use up the processor.
const PAUSE: Duration = Duration::from_millis(100);
/// The least time between two lines in the log about it.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Where connections come from.
pub(crate) trait Listen: Send {
    type Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn next(&mut self) -> impl Future<Output = io::Result<(Self::Socket, SocketAddr)>> + Send;
}

impl Listen for TcpListener {
    type Socket = TcpStream;

    async fn next(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, peer) = self.accept().await?;
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        Ok((socket, peer))
    }
}

/// Accepts until the host stops. Connections go on in `tasks`, until they end or `cut` is cancelled.
pub(crate) async fn accept(
    mut listener: impl Listen,
    entrance: &Entrance,
    table: &Arc<Table>,
    tasks: &TaskTracker,
    cut: &CancellationToken,
) {
    let mut told: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = entrance.shutdown().cancelled() => return,
            accepted = listener.next() => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                // Who gets no place is let go here.
                if let Some(admitted) = table.admit(peer) {
                    let limits = table.limits.clone();
                    tasks.spawn(drive(socket, admitted, entrance.clone(), limits, cut.clone()));
                }
            }
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                metrics::counter!("baton_http_accept_errors_total").increment(1);
                if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
                    told = Some(Instant::now());
                    tracing::error!(%error, "no connection can be accepted; trying again");
                }
                // Most likely there are no descriptors left. Whoever only holds one gives it back.
                table.make_room();
                tokio::select! {
                    () = entrance.shutdown().cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}

/// It hung up before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{ConnectionLimits, Keys, ServerOptions};
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use baton_runtime::{Host, Options};
    use baton_store::MemoryStore;
    use serde_json::{Value, json};
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tower::ServiceExt as _;

    /// Gives what it has, and then nothing more.
    struct Scripted {
        next: VecDeque<io::Result<DuplexStream>>,
        asked: Arc<AtomicUsize>,
    }

    impl Listen for Scripted {
        type Socket = DuplexStream;

        async fn next(&mut self) -> io::Result<(DuplexStream, SocketAddr)> {
            self.asked.fetch_add(1, Ordering::AcqRel);
            match self.next.pop_front() {
                Some(next) => next.map(|socket| (socket, SocketAddr::from(([127, 0, 0, 1], 9)))),
                None => std::future::pending().await,
            }
        }
    }

    fn too_many_files() -> io::Error {
        // EMFILE
        io::Error::from_raw_os_error(24)
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_without_descriptors_and_lets_go_of_the_silent() {
        let (mut silent, silent_here) = tokio::io::duplex(1024);
        let (mut asking, asking_here) = tokio::io::duplex(64 * 1024);
        let mut next = VecDeque::from([Ok(silent_here)]);
        next.extend((0..50).map(|_| Err(too_many_files())));
        next.extend([Err(io::ErrorKind::ConnectionAborted.into()), Ok(asking_here)]);
        let asked = Arc::new(AtomicUsize::new(0));
        let listener = Scripted { next, asked: Arc::clone(&asked) };
        let entrance = Entrance::new(CancellationToken::new());
        let (table, tasks, cut) =
            (Table::new(ConnectionLimits::default()), TaskTracker::new(), CancellationToken::new());
        let began = Instant::now();
        let accepting = {
            let (entrance, table, tasks) = (entrance.clone(), Arc::clone(&table), tasks.clone());
            tokio::spawn(async move { accept(listener, &entrance, &table, &tasks, &cut).await })
        };
        asking.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // It waited in between, every time.
        assert!(began.elapsed() >= PAUSE * 50, "{:?}", began.elapsed());
        // Long before its header was due: nothing but the lack of descriptors ended it.
        assert!(began.elapsed() < ConnectionLimits::default().header);
        assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0);
        entrance.shutdown().cancel();
        accepting.await.unwrap();
        tasks.close();
        tasks.wait().await;
        assert_eq!(asked.load(Ordering::Acquire), 54);
    }

    async fn ask(entrance: &Entrance, method: &str, path: &str, body: Value) -> Value {
        let request = Request::builder().method(method).uri(path).header("authorization", "Bearer full");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let response = entrance.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(status.is_success(), "{}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// An ended run whose log weighs several megabytes.
    async fn large_run(entrance: &Entrance) -> String {
        let node = |n: usize| {
            let config = json!({"name": format!("v{}", n % 4), "expression": "variables.text"});
            json!({"id": format!("n{n}"), "typeId": "core.setVariable", "name": "n", "position": {"x": 0, "y": 0},
                "config": config, "inputs": {}})
        };
        let edge = |n: usize| json!({"id": format!("e{n}"), "sourceNodeId": format!("n{n}"), "targetNodeId": format!("n{}", n + 1)});
        let definition = json!({
            "id": "large", "name": "large", "version": "1", "triggers": [], "variables": [], "metadata": {},
            "settings": {}, "nodes": (0..100).map(node).collect::<Vec<_>>(),
            "edges": (0..99).map(edge).collect::<Vec<_>>(),
        });
        ask(entrance, "POST", "/v1/workflows", definition).await;
        let run = json!({"workflowId": "large", "inputs": {"text": "x".repeat(50_000)}});
        let run = ask(entrance, "POST", "/v1/runs", run).await["runId"].as_str().unwrap().to_owned();
        loop {
            let page = ask(entrance, "GET", &format!("/v1/runs/{run}/events/poll?timeout=1"), Value::Null).await;
            if page["runStatus"] == "completed" {
                return run;
            }
        }
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_holds_less_than_a_megabyte() {
        const IN_THE_SOCKET: u64 = 4096;
        let store = Arc::new(MemoryStore::new());
        let options = Options { link_secrets: vec![b"secret".to_vec()], ..Options::default() };
        let host = Host::open(Arc::clone(&store) as _, options).await.unwrap();
        let entrance = Entrance::new(CancellationToken::new());
        let options = ServerOptions { keys: Keys::parse("full:acme").unwrap(), ..ServerOptions::default() };
        entrance.open(host, options);
        let run = large_run(&entrance).await;
        let (weight, path) = (store.record_bytes_read(), format!("/v1/runs/{run}/events"));
        ask(&entrance, "GET", &format!("{path}/poll"), Value::Null).await;
        let limits = ConnectionLimits { write: Duration::from_millis(500), ..ConnectionLimits::default() };
        for accept_header in ["text/event-stream", "application/json"] {
            let before = store.record_bytes_read();
            let (mut client, here) = tokio::io::duplex(usize::try_from(IN_THE_SOCKET).unwrap());
            let listener = Scripted { next: VecDeque::from([Ok(here)]), asked: Arc::default() };
            let (table, tasks, cut) = (Table::new(limits.clone()), TaskTracker::new(), CancellationToken::new());
            let serving = accept(listener, &entrance, &table, &tasks, &cut);
            let reading = async {
                let head = format!(
                    "GET {path}?streamMode=debug HTTP/1.1\r\nhost: x\r\nauthorization: Bearer full\r\naccept: {accept_header}\r\n\r\n"
                );
                client.write_all(head.as_bytes()).await.unwrap();
                // Some of it is taken, then nothing.
                let mut some = vec![0; 100_000];
                client.read_exact(&mut some).await.unwrap();
                // The host lets go by itself.
                tasks.close();
                tasks.wait().await;
                store.record_bytes_read() - before - some.len() as u64
            };
            let held = tokio::select! {
                held = reading => held,
                () = serving => unreachable!("nobody stops it"),
                never = table.keep() => match never {},
            };
            assert!(held < 1024 * 1024, "{accept_header}: {held} of {weight} are held");
            // It did write all it could: otherwise this would say nothing.
            assert!(held > IN_THE_SOCKET, "{accept_header}: {held}");
        }
    }
}
