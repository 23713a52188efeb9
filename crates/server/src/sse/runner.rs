//! Telling one runner which steps are its own. Everything that there is to tell goes out in one piece, within bounds.

use std::io;

use baton_runtime::{RunnerStream, Told};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{HEARTBEAT, Pieces, frame};

/// How much one piece holds, about: a step may have inputs of a megabyte.
const MOST_BYTES: usize = 256 * 1024;

pub(crate) struct RunnerFeed {
    stream: RunnerStream,
    shutdown: CancellationToken,
    greeted: bool,
    ended: bool,
    heartbeat_at: Instant,
}

impl RunnerFeed {
    pub(crate) fn open(stream: RunnerStream, shutdown: CancellationToken) -> Self {
        Self { stream, shutdown, greeted: false, ended: false, heartbeat_at: Instant::now() + HEARTBEAT }
    }

    /// Writes one thing down, and says whether it is the last.
    fn write(out: &mut Vec<u8>, told: &Told) -> bool {
        match told {
            Told::Dispatch { frame, context } => {
                aside(out, "baton.context", context);
                match serde_json::to_vec(frame) {
                    Ok(data) => frame::push(out, frame.seq, "dispatch", &data),
                    Err(error) => tracing::error!(%error, "a frame did not serialise"),
                }
                false
            }
            Told::Cancel { run, step } => {
                aside(out, "cancel", &json!({"runId": run, "stepId": step}));
                false
            }
            Told::Drain => {
                aside(out, "drain", &json!({}));
                false
            }
            Told::Superseded => {
                aside(out, "superseded", &json!({}));
                true
            }
            Told::Gone => true,
        }
    }
}

fn aside(out: &mut Vec<u8>, event: &str, data: &impl Serialize) {
    match serde_json::to_vec(data) {
        Ok(data) => frame::push_aside(out, event, &data),
        Err(error) => tracing::error!(%error, "a frame did not serialise"),
    }
}

impl Pieces for RunnerFeed {
    fn heartbeat_at(&mut self) -> &mut Instant {
        &mut self.heartbeat_at
    }

    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        if self.ended {
            return None;
        }
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(Ok(frame::OPEN.to_vec()));
        }
        let told = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            told = self.stream.next() => told,
            () = tokio::time::sleep_until(self.heartbeat_at) => return Some(Ok(frame::KEEPALIVE.to_vec())),
        };
        let mut out = Vec::new();
        self.ended = Self::write(&mut out, &told?);
        while !self.ended
            && out.len() < MOST_BYTES
            && let Some(more) = self.stream.ready()
        {
            self.ended = Self::write(&mut out, &more);
        }
        if out.is_empty() { None } else { Some(Ok(out)) }
    }
}
