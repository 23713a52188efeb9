//! Following a run until there is nothing more to wait for: it has ended, or somebody outside must answer.

use std::io;
use std::time::Duration;

use baton_client::{Client, RunEvent, StreamMode};
use baton_model::RunSnapshot;

use crate::failure::Failure;

/// How long the events behind a suspension may take to arrive once the snapshot shows it.
const TAIL: Duration = Duration::from_millis(250);

pub(crate) async fn until_settled(
    client: &Client,
    run: &str,
    mut on_event: impl FnMut(&RunEvent) -> io::Result<()>,
) -> Result<RunSnapshot, Failure> {
    let mut stream = client.stream(run, None, StreamMode::Debug);
    let mut asked = false;
    while let Some(event) = stream.next().await {
        let event = event?;
        on_event(&event)?;
        // A parallel branch may still run while a question is open: from here on, every step may be the one that
        // leaves the run waiting.
        asked |= matches!(event.kind.as_str(), "node.suspended" | "interrupt.requested");
        if !asked || event.is_terminal() {
            continue;
        }
        let snapshot = client.run(run).await?;
        if snapshot.status.is_waiting() {
            while stream.cursor().is_none_or(|seq| seq < snapshot.at_seq) {
                match tokio::time::timeout(TAIL, stream.next()).await {
                    Ok(Some(event)) => on_event(&event?)?,
                    Ok(None) | Err(_) => break,
                }
            }
            return Ok(snapshot);
        }
    }
    Ok(client.run(run).await?)
}
