//! The yardstick: the same HTTP stack with nothing behind it.
//!
//! It runs as a process of its own, exactly like the server under test, so the difference between the two is what a
//! durable run costs and nothing else.

use std::io::Write as _;

use anyhow::Result;
use axum::Router;
use axum::routing::any;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Serves until standard input ends, which it does at the latest when the parent process is gone.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stderr(), "listening on http://{}", listener.local_addr()?)?;
    let router = Router::new().fallback(any(|| async { "{}" }));
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        () = input_ended() => {}
    }
    Ok(())
}

async fn input_ended() {
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 64];
    while matches!(input.read(&mut ignored).await, Ok(count) if count > 0) {}
}
