//! Following one run's log for one reader.
//!
//! The reader's own cursor is the truth. Subscribe, read from the cursor, send, and only then wait: a change between
//! reading and waiting wakes the wait at once, so a lost notification can only delay, never hide. The feed ends after
//! the page that holds the terminal event, when the process stops, or when the reader goes away. While storage cannot be
//! read it stays where it is.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_runtime::{Annotated, Error, ErrorKind, EventPage, Host, Subscription};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Allowed;
use crate::auth::scope::RunsRead;
use crate::event_view;

use super::mode::{Modes, Shape, changes_state, flushes};
use super::{AGAIN, HEARTBEAT, Pieces, frame};

/// Events read, and written, at once.
pub(crate) const PAGE: usize = 1024;
/// What they may weigh. A reader that does not read has one page in the making, one on its way and what lies before the
/// socket: all of it stays below a megabyte, unless a single event is larger.
pub(crate) const PAGE_BYTES: usize = 256 * 1024;
/// A state that weighs more is not sent: the frame says where it can be read. It would lie in memory once for every reader
/// that does not read.
const SNAPSHOT_BYTES: usize = 512 * 1024;
const SNAPSHOT_OMITTED: &str = "state.snapshot.omitted";
/// A long backlog is sent in several batches rather than held in memory.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;

pub(crate) struct Feed {
    host: Host,
    who: Allowed<RunsRead>,
    run: RunId,
    modes: Modes,
    /// The last sequence the reader is done with.
    after: Option<u64>,
    changes: Subscription,
    /// What is said about the run meanwhile, for whoever wants to know.
    remarks: Option<Annotated>,
    shutdown: CancellationToken,
    /// Read before the response began, so that an unknown run is still a 404.
    first: Option<EventPage>,
    opening: bool,
    buffer: Option<Buffer>,
    /// The state last sent in `values` mode: its sequence, and whether it was the last one.
    shown: Option<(u64, bool)>,
    caught_up: bool,
    /// Storage could not be read; when to try again.
    again_at: Option<Instant>,
    ended: bool,
    heartbeat_at: Instant,
}

/// Events held back until the window closes.
struct Buffer {
    window: Duration,
    bodies: Vec<u8>,
    last: u64,
    deadline: Option<Instant>,
}

/// Why a wait ended.
enum Woken {
    Grown,
    /// Somebody said something about the run.
    Remark(Arc<str>),
    Flush,
    Heartbeat,
    Shutdown,
}

impl Feed {
    pub(crate) async fn open(
        host: Host,
        who: Allowed<RunsRead>,
        run: RunId,
        after: Option<u64>,
        modes: Modes,
        buffer: Option<Duration>,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let changes = host.subscribe(&run);
        let remarks = modes.wants_remarks().then(|| host.annotated(&run));
        let first = host.events_within(&who.tenant, &run, after, PAGE, PAGE_BYTES).await?;
        // A state is never batched: the newest one says it all.
        let buffer = buffer.filter(|_| !modes.wants_snapshots());
        Ok(Self {
            host,
            who,
            run,
            modes,
            after,
            changes,
            remarks,
            shutdown,
            first: Some(first),
            opening: true,
            buffer: buffer.map(|window| Buffer { window, bodies: Vec::new(), last: 0, deadline: None }),
            shown: None,
            caught_up: false,
            again_at: None,
            ended: false,
            heartbeat_at: Instant::now() + HEARTBEAT,
        })
    }

    async fn wait(&mut self) -> Woken {
        let flush_at = self.buffer.as_ref().and_then(|buffer| buffer.deadline);
        let again_at = self.again_at;
        let remark = async {
            match &mut self.remarks {
                Some(remarks) => remarks.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Woken::Shutdown,
            id = remark => Woken::Remark(id),
            () = self.changes.changed(), if again_at.is_none() => Woken::Grown,
            () = tokio::time::sleep_until(again_at.unwrap_or(self.heartbeat_at)), if again_at.is_some() => Woken::Grown,
            () = tokio::time::sleep_until(flush_at.unwrap_or(self.heartbeat_at)), if flush_at.is_some() => Woken::Flush,
            () = tokio::time::sleep_until(self.heartbeat_at) => Woken::Heartbeat,
        }
    }

    /// Reads the next page and renders what this reader wants of it.
    async fn page(&mut self) -> Result<Vec<u8>, Error> {
        let opening = self.opening;
        let page = match self.first.take() {
            Some(page) => page,
            None => self.host.events_within(&self.who.tenant, &self.run, self.after, PAGE, PAGE_BYTES).await?,
        };
        let (ended, caught_up) = (page.is_final(self.after), page.events.is_empty() || page.reaches_end(self.after));
        let mut out = Vec::new();
        if self.modes.wants_snapshots() {
            self.snapshot(&page, opening, ended, &mut out).await?;
        } else {
            self.events(&page, &mut out);
        }
        // From here on nothing fails: until then the page may be read again.
        (self.opening, self.ended, self.caught_up) = (false, ended, caught_up);
        if let Some(last) = page.events.last() {
            self.after = Some(last.seq);
        }
        if self.ended {
            out.append(&mut self.flushed());
        } else if opening && out.is_empty() {
            out.extend_from_slice(frame::OPEN);
        }
        Ok(out)
    }

    fn events(&mut self, page: &EventPage, out: &mut Vec<u8>) {
        for line in &page.events {
            match (self.modes.shape(&line.kind), &mut self.buffer) {
                (None, _) => {}
                (Some(_), Some(buffer)) => {
                    buffer.push(line.seq, &line.body);
                    if flushes(&line.kind) || buffer.bodies.len() > MAX_BUFFERED_BYTES {
                        buffer.flush(out);
                    }
                }
                (Some(Shape::Event), None) => frame::push(out, line.seq, &line.kind, line.body.as_bytes()),
                (Some(Shape::Chunk), None) => {
                    if let Some(payload) = event_view::payload_of(&line.body) {
                        frame::push(out, line.seq, "ai.message.chunk", payload.as_bytes());
                    }
                }
            }
        }
    }

    /// One state for everything that changed in this page; always one when the stream opens.
    async fn snapshot(&mut self, page: &EventPage, opening: bool, ended: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let newer = |seq: u64| self.shown.is_none_or(|(shown, _)| seq > shown);
        let changed = page.events.iter().any(|line| newer(line.seq) && changes_state(&line.kind));
        let last_missing = ended && self.shown.is_none_or(|(_, terminal)| !terminal);
        if !opening && !changed && !last_missing {
            return Ok(());
        }
        let snapshot = self.host.snapshot_for(&self.who, &self.run).await?;
        match serde_json::to_vec(&snapshot) {
            Ok(data) if data.len() > SNAPSHOT_BYTES => {
                let get = format!("/v1/runs/{}", self.run);
                let (status, bytes) = (snapshot.status.to_string(), data.len());
                let notice =
                    json!({"runId": self.run, "atSeq": snapshot.at_seq, "status": status, "bytes": bytes, "get": get});
                frame::push(out, snapshot.at_seq, SNAPSHOT_OMITTED, notice.to_string().as_bytes());
            }
            Ok(data) => frame::push(out, snapshot.at_seq, "state.snapshot", &data),
            Err(error) => tracing::error!(run = %self.run, %error, "a snapshot did not serialise"),
        }
        self.shown = Some((snapshot.at_seq, snapshot.status.is_terminal()));
        Ok(())
    }

    /// A remark has no place in the log. Its frame has no id, so that a reader resumes where it was, and the sequence of
    /// what came last, so that readers who count pass over it. One that cannot be read now is in the list.
    async fn remark(&self, id: &str) -> Option<Vec<u8>> {
        let after = self.after?;
        let annotation = self.host.annotation(&self.run, id).await.ok().flatten()?;
        let event = event_view::remark(&self.run, after, &annotation);
        let mut out = Vec::new();
        frame::push_aside(&mut out, event_view::REMARK, event.as_bytes());
        Some(out)
    }

    fn flushed(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(buffer) = &mut self.buffer {
            buffer.flush(&mut out);
        }
        out
    }
}

impl Pieces for Feed {
    fn heartbeat_at(&mut self) -> &mut Instant {
        &mut self.heartbeat_at
    }

    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        while !self.ended {
            if self.caught_up || self.again_at.is_some() {
                match self.wait().await {
                    Woken::Grown => (self.caught_up, self.again_at) = (false, None),
                    Woken::Remark(id) => match self.remark(&id).await {
                        Some(remark) => {
                            // What is held back comes first: a reader that counts would pass over it.
                            let mut out = self.flushed();
                            out.extend(remark);
                            return Some(Ok(out));
                        }
                        None => continue,
                    },
                    Woken::Heartbeat => return Some(Ok(frame::KEEPALIVE.to_vec())),
                    Woken::Flush => return Some(Ok(self.flushed())),
                    Woken::Shutdown => {
                        self.ended = true;
                        let rest = self.flushed();
                        return (!rest.is_empty()).then_some(Ok(rest));
                    }
                }
            }
            match self.page().await {
                Ok(out) if out.is_empty() => {}
                Ok(out) => return Some(Ok(out)),
                // It comes back, and the cursor is where it was.
                Err(error) if error.kind == ErrorKind::Unavailable => {
                    tracing::debug!(run = %self.run, %error, "an event stream waits for storage");
                    self.again_at = Some(Instant::now() + AGAIN);
                }
                Err(error) => {
                    // The status line is long gone: cutting the stream makes the reader resume from its cursor.
                    self.ended = true;
                    tracing::warn!(run = %self.run, %error, "an event stream was cut off");
                    return Some(Err(io::Error::other(error.to_string())));
                }
            }
        }
        None
    }
}

impl Buffer {
    fn push(&mut self, seq: u64, body: &str) {
        if !self.bodies.is_empty() {
            self.bodies.push(b',');
        }
        self.bodies.extend_from_slice(body.as_bytes());
        self.last = seq;
        self.deadline.get_or_insert_with(|| Instant::now() + self.window);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        self.deadline = None;
        if !self.bodies.is_empty() {
            frame::push_batch(out, self.last, &self.bodies);
            self.bodies.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_buffer_keeps_its_first_deadline_and_empties_on_flush() {
        let mut buffer = Buffer { window: Duration::from_secs(1), bodies: Vec::new(), last: 0, deadline: None };
        buffer.push(3, "{\"sequence\":3}");
        let deadline = buffer.deadline;
        buffer.push(5, "{\"sequence\":5}");
        assert_eq!(buffer.deadline, deadline);
        let mut out = Vec::new();
        buffer.flush(&mut out);
        assert_eq!(out, b"id: 5\nevent: batch\ndata: [{\"sequence\":3},{\"sequence\":5}]\n\n");
        assert_eq!((buffer.bodies.len(), buffer.deadline), (0, None));
        let mut nothing = Vec::new();
        buffer.flush(&mut nothing);
        assert!(nothing.is_empty());
    }
}
