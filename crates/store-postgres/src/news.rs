//! News of what other hosts did: LISTEN/NOTIFY on a connection of its own, or a reminder to look every now and then.
//!
//! Notifications are not sent by the transactions they are about. One that notifies holds a lock of the whole database
//! until it is on disk, so they would all queue behind each other. News is only a hint; it may come a moment later, and
//! it need not survive anything.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_model::RunId;
use baton_store::{ClusterEvent, Committed, StepRow, panic_text};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{broadcast, oneshot};
use tokio_postgres::Client;

use crate::connect::Connector;

const CHANNEL: &str = "baton_news";
/// How much news somebody may be behind before they have to look for themselves.
const KEPT: usize = 1024;
/// How often to look when nobody says anything.
const LOOK: Duration = Duration::from_millis(250);
/// How often to make sure that the connection is still one.
const PULSE: Duration = Duration::from_secs(5);
/// PostgreSQL takes 8000 bytes.
const ROOM: usize = 7_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Line {
    Grew(String, u64),
    Letter,
    Answered(String),
    Released(String),
    HandedOver(u64),
    Ended(u64),
    Webhooks,
    Annotated(String, String),
    Runners,
    RunnerStep(String, String),
    Missed,
    /// A host has come that wants to hear things.
    Joined,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    from: u64,
    lines: Vec<Line>,
}

/// Where news comes in and goes out.
pub(crate) struct Desk {
    heard: broadcast::Sender<ClusterEvent>,
    outgoing: Mutex<Option<UnboundedSender<Line>>>,
    done: Mutex<Option<oneshot::Receiver<()>>>,
    me: AtomicU64,
    /// Nobody else was there when we last looked: what grows need not be told of.
    alone: AtomicBool,
}

impl Desk {
    /// Opens the desk and runs it on this thread's runtime until it is closed.
    pub(crate) fn open(connector: Connector, listen: bool) -> Arc<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a line for each commit, taken in by a task that waits for nothing long, and dropped without a connection"
        )]
        let (sender, receiver) = unbounded_channel();
        let (ended, done) = oneshot::channel();
        let desk = Arc::new(Self::new(sender, done));
        let mut clerk = Clerk { desk: Arc::clone(&desk), connector, receiver };
        let mine = Arc::clone(&desk);
        tokio::spawn(async move {
            while !mine.ended_well(clerk.work(listen)).await {}
            let _ = ended.send(());
        });
        desk
    }

    fn new(outgoing: UnboundedSender<Line>, done: oneshot::Receiver<()>) -> Self {
        Self {
            heard: broadcast::Sender::new(KEPT),
            outgoing: Mutex::new(Some(outgoing)),
            done: Mutex::new(Some(done)),
            me: AtomicU64::new(0),
            alone: AtomicBool::new(false),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ClusterEvent> {
        self.heard.subscribe()
    }

    pub(crate) fn publish(&self, news: ClusterEvent) {
        // Those here hear it at once.
        self.tell(news.clone());
        self.send(match news {
            ClusterEvent::Grew { run, next_seq } => Line::Grew(run.as_str().to_owned(), next_seq),
            ClusterEvent::ForwardedCommand => Line::Letter,
            ClusterEvent::Answered { id } => Line::Answered(id),
            ClusterEvent::Released { name } => Line::Released(name),
            ClusterEvent::HandedOver { to } => Line::HandedOver(to),
            ClusterEvent::Ended { epoch } => Line::Ended(epoch),
            ClusterEvent::Webhooks => Line::Webhooks,
            ClusterEvent::Annotated { run, id } => Line::Annotated(run.as_str().to_owned(), id),
            ClusterEvent::Runners => Line::Runners,
            ClusterEvent::RunnerStep { key, owner } => Line::RunnerStep(key, owner),
            ClusterEvent::Missed => Line::Missed,
        });
    }

    /// Of our own runs we know without being told; others want to know.
    pub(crate) fn grew(&self, run: &Committed) {
        if !self.alone.load(Ordering::Relaxed) {
            self.send(Line::Grew(run.run.as_str().to_owned(), run.next_seq));
        }
    }

    /// The same for steps of runners.
    pub(crate) fn step(&self, row: &StepRow) {
        if !self.alone.load(Ordering::Relaxed) {
            self.send(Line::RunnerStep(row.key.clone(), row.owner.clone()));
        }
    }

    pub(crate) fn joined(&self, epoch: u64) {
        self.me.store(epoch, Ordering::Relaxed);
        self.alone.store(false, Ordering::Relaxed);
        self.send(Line::Joined);
    }

    pub(crate) fn others(&self, any: bool) {
        self.alone.store(!any, Ordering::Relaxed);
    }

    /// Sends what is left and stops.
    pub(crate) async fn close(&self) {
        drop(self.outgoing.lock().take());
        let done = self.done.lock().take();
        if let Some(done) = done {
            let _ = tokio::time::timeout(Duration::from_secs(1), done).await;
        }
    }

    /// False if it panicked, and is to begin again: hosts that hear nothing of each other wait for what has long happened.
    async fn ended_well(&self, work: impl Future<Output = ()>) -> bool {
        let Err(panic) = AssertUnwindSafe(work).catch_unwind().await else { return true };
        tracing::error!(panic = %panic_text(panic.as_ref()), "news of other hosts stopped; starting again");
        metrics::counter!("baton_news_panics_total").increment(1);
        self.tell(ClusterEvent::Missed);
        tokio::time::sleep(LOOK).await;
        false
    }

    fn send(&self, line: Line) {
        if let Some(outgoing) = &*self.outgoing.lock() {
            let _ = outgoing.send(line);
        }
    }

    fn tell(&self, news: ClusterEvent) {
        // Nobody may be listening.
        let _ = self.heard.send(news);
    }

    fn hear(&self, payload: &str) {
        let Ok(page) = serde_json::from_str::<Page>(payload) else {
            // From a version of Baton that has more to say.
            return self.tell(ClusterEvent::Missed);
        };
        if page.from == self.me.load(Ordering::Relaxed) {
            return;
        }
        // Whoever it is, they are not us.
        self.alone.store(false, Ordering::Relaxed);
        for line in page.lines {
            self.tell(match line {
                Line::Grew(run, next_seq) => ClusterEvent::Grew { run: RunId::new(run), next_seq },
                Line::Letter => ClusterEvent::ForwardedCommand,
                Line::Answered(id) => ClusterEvent::Answered { id },
                Line::Released(name) => ClusterEvent::Released { name },
                Line::HandedOver(to) => ClusterEvent::HandedOver { to },
                Line::Ended(epoch) => ClusterEvent::Ended { epoch },
                Line::Webhooks => ClusterEvent::Webhooks,
                Line::Annotated(run, id) => ClusterEvent::Annotated { run: RunId::new(run), id },
                Line::Runners => ClusterEvent::Runners,
                Line::RunnerStep(key, owner) => ClusterEvent::RunnerStep { key, owner },
                Line::Missed => ClusterEvent::Missed,
                Line::Joined => continue,
            });
        }
    }
}

struct Clerk {
    desk: Arc<Desk>,
    connector: Connector,
    receiver: UnboundedReceiver<Line>,
}

impl Clerk {
    /// Until the desk is closed.
    async fn work(&mut self, listen: bool) {
        if listen { self.listen().await } else { self.look().await }
    }

    /// Without LISTEN: says every now and then that something may have been missed.
    async fn look(&mut self) {
        let mut lines = Vec::new();
        // A clock of its own: a host that has much to say itself must look all the same.
        let mut clock = tokio::time::interval(LOOK);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = clock.tick() => self.desk.tell(ClusterEvent::Missed),
                taken = self.receiver.recv_many(&mut lines, KEPT) => {
                    if taken == 0 {
                        return;
                    }
                    lines.clear();
                }
            }
        }
    }

    async fn listen(&mut self) {
        let mut lines = Vec::new();
        loop {
            let desk = Arc::clone(&self.desk);
            let heard = move |notification: tokio_postgres::Notification| desk.hear(notification.payload());
            if let Ok(client) = self.connector.connect(heard).await
                && matches!(tokio::time::timeout(PULSE, prepare(&client)).await, Ok(Ok(())))
            {
                // Whatever was said before this was not heard.
                self.desk.tell(ClusterEvent::Missed);
                if self.carry(&client, &mut lines).await {
                    return;
                }
            }
            // Until there is a connection again, as if there were no LISTEN.
            self.desk.tell(ClusterEvent::Missed);
            match tokio::time::timeout(LOOK, self.receiver.recv_many(&mut lines, KEPT)).await {
                Ok(0) => return,
                Ok(_) => tokio::time::sleep(LOOK).await,
                Err(_elapsed) => {}
            }
            lines.clear();
            lines.push(Line::Missed);
        }
    }

    /// True once the desk is closed, false if the connection is lost.
    async fn carry(&mut self, client: &Client, lines: &mut Vec<Line>) -> bool {
        loop {
            if !lines.is_empty() {
                let me = self.desk.me.load(Ordering::Relaxed);
                for payload in pages(me, lines.drain(..)) {
                    let send = async { client.query("SELECT pg_notify($1, $2)", &[&CHANNEL, &payload]).await };
                    if !matches!(tokio::time::timeout(PULSE, send).await, Ok(Ok(_))) {
                        return false;
                    }
                }
            }
            match tokio::time::timeout(PULSE, self.receiver.recv_many(lines, KEPT)).await {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_elapsed) => {
                    if !matches!(tokio::time::timeout(PULSE, client.simple_query("SELECT 1")).await, Ok(Ok(_))) {
                        return false;
                    }
                }
            }
        }
    }
}

async fn prepare(client: &Client) -> Result<(), tokio_postgres::Error> {
    // Best effort: news that is lost with the power was not needed.
    let _ = client.batch_execute("SET synchronous_commit = off").await;
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await
}

/// Lines as payloads that fit. Of a run that grew several times only the last matters.
fn pages(from: u64, lines: impl Iterator<Item = Line>) -> Vec<String> {
    let mut grown: BTreeMap<String, u64> = BTreeMap::new();
    let mut rest = Vec::new();
    for line in lines {
        match line {
            Line::Grew(run, next_seq) => {
                let latest = grown.entry(run).or_default();
                *latest = next_seq.max(*latest);
            }
            line => rest.push(line),
        }
    }
    rest.extend(grown.into_iter().map(|(run, next_seq)| Line::Grew(run, next_seq)));
    let mut pages = Vec::new();
    let mut page = Page { from, lines: Vec::new() };
    let mut used = 0;
    for line in rest {
        let size = serde_json::to_string(&line).map_or(ROOM, |text| text.len() + 1);
        let (line, size) = if size < ROOM { (line, size) } else { (Line::Missed, 16) };
        if used + size > ROOM {
            pages.push(std::mem::replace(&mut page, Page { from, lines: Vec::new() }));
            used = 0;
        }
        used += size;
        page.lines.push(line);
    }
    pages.push(page);
    pages.iter().filter_map(|page| serde_json::to_string(page).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "nothing is sent")]
    async fn whoever_carries_news_begins_again_after_a_panic() {
        let desk = Desk::new(unbounded_channel().0, oneshot::channel().1);
        let mut heard = desk.subscribe();
        let mut times = 0;
        while !desk
            .ended_well(async {
                times += 1;
                assert!(times > 2, "a defect")
            })
            .await
        {}
        assert_eq!(times, 3);
        assert!(matches!((heard.try_recv(), heard.try_recv()), (Ok(ClusterEvent::Missed), Ok(ClusterEvent::Missed))));
    }

    #[test]
    fn pages_fit_and_say_the_latest_of_each_run() {
        let many = (0..2_000).map(|n| Line::Grew(format!("run_{:032}", n % 1_000), n));
        let pages = pages(7, many.chain([Line::Letter, Line::Released("x".repeat(9_000))]));
        assert!(pages.len() > 3 && pages.iter().all(|page| page.len() < 8_000));
        let lines = pages.iter().flat_map(|page| serde_json::from_str::<Page>(page).map(|page| page.lines));
        let lines: Vec<Line> = lines.flatten().collect();
        assert_eq!(lines.len(), 1_002);
        assert!(lines.iter().any(|line| matches!(line, Line::Missed)), "too long to say");
        assert!(lines.iter().all(|line| !matches!(line, Line::Grew(_, next_seq) if *next_seq < 1_000)));
    }
}
