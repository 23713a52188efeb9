//! Telling one reader which runs change.
//!
//! Nothing is resumed here: what was missed is in the list of runs. News of one moment goes out together, at most a few
//! times a second, however much happens.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use axum::http::StatusCode;
use baton_api::RunListItem;
use baton_model::{RunId, TenantId};
use baton_runtime::{Activity, Host, RunActivity};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{AGAIN, HEARTBEAT, Pieces, frame};
use crate::error::ApiError;
use crate::run_rows;

/// The least time between two batches.
const PAUSE: Duration = Duration::from_millis(250);
/// How many changed runs one batch tells of; with more, the reader lists again.
const MOST: usize = 200;
/// How many are remembered until then, of whichever tenant.
const KEPT: usize = 5 * MOST;
/// The least time between two requests to list again.
const LONG_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct ActivityFeed {
    host: Host,
    tenant: TenantId,
    news: Activity,
    shutdown: CancellationToken,
    /// Changed since the last batch; of any tenant, as far as is known here.
    changed: BTreeSet<RunId>,
    /// More changed than is kept.
    missed: bool,
    greeted: bool,
    ended: bool,
    frames: u64,
    quiet_until: Instant,
    heartbeat_at: Instant,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    runs: Vec<RunListItem>,
    open_interrupts: u64,
}

enum Woken {
    RunActivity(RunActivity),
    Due,
    Heartbeat,
    Shutdown,
}

impl ActivityFeed {
    pub(crate) fn open(host: Host, tenant: TenantId, shutdown: CancellationToken) -> Self {
        Self {
            // From here on nothing is missed: whoever lists after the first frame sees the rest.
            news: host.activity(),
            host,
            tenant,
            shutdown,
            changed: BTreeSet::new(),
            missed: false,
            greeted: false,
            ended: false,
            frames: 0,
            quiet_until: Instant::now(),
            heartbeat_at: Instant::now() + HEARTBEAT,
        }
    }

    async fn wait(&mut self) -> Woken {
        let waiting = !self.greeted || self.missed || !self.changed.is_empty();
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Woken::Shutdown,
            () = tokio::time::sleep_until(self.quiet_until), if waiting => Woken::Due,
            news = self.news.next() => Woken::RunActivity(news),
            () = tokio::time::sleep_until(self.heartbeat_at) => Woken::Heartbeat,
        }
    }

    fn note(&mut self, news: RunActivity) {
        match news {
            RunActivity::Changed(run) if self.changed.len() < KEPT => drop(self.changed.insert(run)),
            RunActivity::Changed(_) | RunActivity::Missed => self.missed = true,
            RunActivity::Over => self.ended = true,
        }
    }

    async fn hello(&mut self) -> Result<Vec<u8>, ApiError> {
        let instance = self.host.condition().instance;
        let open_interrupts = self.host.open_interrupts(&self.tenant).await?;
        let hello = json!({"instance": instance, "at": self.host.now(), "openInterrupts": open_interrupts});
        self.greeted = true;
        Ok(self.frame("hello", &hello))
    }

    /// What changed, if any of it is the reader's.
    async fn batch(&mut self) -> Result<Option<Vec<u8>>, ApiError> {
        self.quiet_until = Instant::now() + PAUSE;
        // What is known by now goes along. `Over` comes again and again, so it ends this too.
        while !self.ended
            && let Some(news) = self.news.ready()
        {
            self.note(news);
        }
        let missed = std::mem::take(&mut self.missed);
        let changed = std::mem::take(&mut self.changed);
        let rows = match missed {
            true => Vec::new(),
            false => self.host.rows(&self.tenant, changed.into_iter().collect()).await?,
        };
        if rows.is_empty() && !missed {
            return Ok(None);
        }
        let open_interrupts = self.host.open_interrupts(&self.tenant).await?;
        if missed || rows.len() > MOST {
            self.quiet_until += LONG_PAUSE - PAUSE;
            return Ok(Some(self.frame("relist", &json!({"openInterrupts": open_interrupts}))));
        }
        let runs = run_rows::items(&self.host, &self.tenant, rows).await?;
        Ok(Some(self.frame("runs", &Batch { runs, open_interrupts })))
    }

    fn frame(&mut self, event: &str, data: &impl Serialize) -> Vec<u8> {
        let mut out = Vec::new();
        match serde_json::to_vec(data) {
            Ok(data) => frame::push(&mut out, self.frames, event, &data),
            Err(error) => tracing::error!(%error, "a frame did not serialise"),
        }
        self.frames += 1;
        out
    }
}

impl Pieces for ActivityFeed {
    fn heartbeat_at(&mut self) -> &mut Instant {
        &mut self.heartbeat_at
    }

    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        while !self.ended {
            let told = match self.wait().await {
                Woken::RunActivity(news) => {
                    self.note(news);
                    Ok(None)
                }
                Woken::Due if !self.greeted => self.hello().await.map(Some),
                Woken::Due => self.batch().await,
                Woken::Heartbeat => return Some(Ok(frame::KEEPALIVE.to_vec())),
                Woken::Shutdown => {
                    self.ended = true;
                    Ok(None)
                }
            };
            match told {
                Ok(None) => {}
                Ok(Some(out)) => return Some(Ok(out)),
                // It comes back, and then the reader lists again: what was to be told is not known any more.
                Err(error) if error.status == StatusCode::SERVICE_UNAVAILABLE => {
                    tracing::debug!(?error, "an activity stream waits for storage");
                    self.missed = self.greeted;
                    self.quiet_until = Instant::now() + AGAIN;
                }
                Err(error) => {
                    // The status line is long gone: cutting the stream makes the reader come back and list.
                    self.ended = true;
                    tracing::warn!(?error, "an activity stream was cut off");
                    return Some(Err(io::Error::other("the activity stream was cut off")));
                }
            }
        }
        None
    }
}
