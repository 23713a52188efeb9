//! The one task that writes, on a thread of its own.
//!
//! It takes whatever is queued, up to a bound, as one transaction. While that is on its way to the disk the next ones pile
//! up, so the busier the host, the more commits share one sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_store::{Commit, CommitError, Error, News, Observer, TicketSender, Write};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::connect::Connector;
use crate::error::{read_error, unavailable};
use crate::news::Desk;
use crate::session;
use crate::statement::Statements;
use crate::transact::{Outcome, Verdict, transact};

/// Commits per transaction: beyond this a sync is shared widely enough, and the first in line should not wait longer.
const BATCH: usize = 256;
/// A database that says nothing for this long says nothing any more.
const SILENCE: Duration = Duration::from_secs(10);

pub(crate) enum Message {
    Commit(Commit, TicketSender),
    Recover(oneshot::Sender<Result<u64, Error>>),
    Close(oneshot::Sender<()>),
}

/// What others may see of the writer.
#[derive(Default)]
pub(crate) struct Public {
    pub(crate) generation: AtomicU64,
    /// The session that commits are written for; 0 for nobody's.
    pub(crate) epoch: AtomicU64,
    pub(crate) transactions: AtomicU64,
    pub(crate) observer: Mutex<Option<Arc<dyn Observer>>>,
}

impl Public {
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

pub(crate) struct Writer {
    pub(crate) queue: UnboundedReceiver<Message>,
    pub(crate) public: Arc<Public>,
    pub(crate) connector: Connector,
    pub(crate) desk: Arc<Desk>,
    /// Name and lease of the sessions to open; `None` if commits are nobody's.
    pub(crate) session: Option<(String, Duration)>,
    /// Absent while recovery has not managed to open a new one.
    pub(crate) client: Option<Client>,
    pub(crate) statements: Statements,
    /// A commit of this generation failed; nothing more of it is taken.
    pub(crate) ended: bool,
}

impl Writer {
    /// Connects, and opens the first session.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let client = self.connect().await?;
        if let Some((host, lease)) = &self.session {
            let before = self.public.epoch();
            if before != 0 {
                // Waits for a transaction of ours that may still be under way over there: it cannot arrive late.
                session::end(&client, before).await?;
                self.desk.publish(News::Ended { epoch: before });
            }
            let epoch = session::open(&client, host, *lease).await?;
            self.public.epoch.store(epoch, Ordering::Release);
            self.desk.joined(epoch);
        } else {
            prove_writable(&client).await?;
        }
        self.client = Some(client);
        self.statements = Statements::default();
        Ok(())
    }

    /// The same, unless the database says nothing.
    pub(crate) async fn begin_in_time(&mut self) -> Result<(), Error> {
        let begun = tokio::time::timeout(SILENCE, self.begin()).await;
        begun.unwrap_or_else(|_elapsed| Err(unavailable("the database does not answer")))
    }

    async fn connect(&self) -> Result<Client, Error> {
        self.connector.writer(self.session.as_ref().map_or(SILENCE, |(_, lease)| *lease)).await
    }

    /// A connection that went away while nothing was on its way is replaced, and nobody need know: what was written is
    /// acknowledged, and the session is judged by its row, whichever connection asks.
    async fn reconnect(&mut self) {
        match tokio::time::timeout(SILENCE, self.connect()).await {
            Ok(Ok(client)) => {
                tracing::info!("the connection that writes was gone, and was made again");
                self.client = Some(client);
                self.statements = Statements::default();
            }
            // Writing will fail, and say why.
            Ok(Err(error)) => tracing::debug!(%error, "no new connection"),
            Err(_elapsed) => tracing::debug!("no new connection in time"),
        }
    }

    /// Ends when told to close or when the store is dropped.
    pub(crate) async fn run(mut self) {
        let mut messages = Vec::new();
        while self.queue.recv_many(&mut messages, BATCH).await > 0 {
            let mut batch = Vec::new();
            for message in messages.drain(..) {
                match message {
                    Message::Commit(commit, ticket) => batch.push((commit, ticket)),
                    Message::Recover(reply) => {
                        self.write(std::mem::take(&mut batch)).await;
                        let _ = reply.send(self.recover().await);
                    }
                    Message::Close(reply) => {
                        self.write(batch).await;
                        self.finish().await;
                        let _ = reply.send(());
                        return;
                    }
                }
            }
            self.write(batch).await;
        }
        self.finish().await;
    }

    async fn write(&mut self, batch: Vec<(Commit, TicketSender)>) {
        let generation = self.public.generation.load(Ordering::Relaxed);
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(commit, _)| !self.ended && commit.generation == generation);
        if !batch.is_empty() && self.client.as_ref().is_some_and(Client::is_closed) {
            self.reconnect().await;
        }
        if let Some(client) = self.client.as_ref().filter(|_| !batch.is_empty()) {
            let (commits, tickets): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let epoch = self.public.epoch();
            let work = transact(client, &mut self.statements, epoch, &commits);
            let outcome = tokio::time::timeout(SILENCE, work).await.unwrap_or_else(|_elapsed| {
                let reason = format!("the database has not answered for {} seconds", SILENCE.as_secs());
                Outcome::lost(commits.len(), &CommitError::Unavailable { reason })
            });
            self.tell(generation, &commits, tickets, outcome);
        }
        for (_, ticket) in stale {
            ticket.resolve(Err(CommitError::Stale));
        }
    }

    fn tell(&mut self, generation: u64, commits: &[Commit], tickets: Vec<TicketSender>, outcome: Outcome) {
        if outcome.verdicts.contains(&Verdict::Written) {
            self.public.transactions.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("baton_commits_total").increment(1);
        }
        let observer = self.public.observer.lock().clone();
        let (runs, ledgers) = (&outcome.runs, &outcome.ledgers);
        if let Some(observer) = observer.as_ref().filter(|_| !runs.is_empty() || !ledgers.is_empty()) {
            observer.committed(runs, ledgers);
        }
        self.publish(commits, &outcome);
        if let Some(error) = outcome.failure() {
            self.ended = true;
            tracing::error!(generation, %error, "a commit failed; writes stop until recovery");
            if let Some(observer) = &observer {
                observer.failed(generation, error);
            }
        }
        for (ticket, verdict) in tickets.into_iter().zip(outcome.verdicts) {
            ticket.resolve(match verdict {
                Verdict::Written => Ok(()),
                Verdict::Refused(error) | Verdict::Failed(error) => Err(error),
                Verdict::NotAttempted => Err(CommitError::Stale),
            });
        }
    }

    fn publish(&self, commits: &[Commit], outcome: &Outcome) {
        if self.session.is_none() {
            return;
        }
        for run in &outcome.runs {
            self.desk.grew(run);
        }
        let written = commits.iter().zip(&outcome.verdicts).filter(|(_, verdict)| **verdict == Verdict::Written);
        for write in written.flat_map(|(commit, _)| &commit.writes) {
            match write {
                Write::HandOver { to, .. } => self.desk.publish(News::HandedOver { to: *to }),
                Write::ReleaseClaim { name } => self.desk.publish(News::Released { name: name.clone() }),
                Write::AnswerLetter { id, .. } => self.desk.publish(News::Answered { id: id.clone() }),
                Write::PutWebhook(_) | Write::NoteAttempt { .. } | Write::DeleteWebhook(_) => {
                    self.desk.publish(News::Webhooks)
                }
                _ => {}
            }
        }
    }

    async fn recover(&mut self) -> Result<u64, Error> {
        if self.ended {
            // What the connection was in the middle of is not known; what it knew cannot be trusted.
            self.client = None;
            self.begin_in_time().await?;
            self.ended = false;
            let generation = self.public.generation.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::info!(generation, epoch = self.public.epoch(), "storage takes writes again");
        }
        Ok(self.public.generation.load(Ordering::Relaxed))
    }

    /// Leaves politely, so that others need not wait for the lease to be over.
    async fn finish(mut self) {
        let epoch = self.public.epoch();
        if epoch != 0 && self.session.is_some() {
            match tokio::time::timeout(SILENCE, self.end_session(epoch)).await {
                Ok(Ok(())) => self.desk.publish(News::Ended { epoch }),
                Ok(Err(error)) => tracing::warn!(%error, "the session was not ended"),
                Err(_elapsed) => tracing::warn!("the session was not ended: the database does not answer"),
            }
        }
        self.desk.close().await;
    }

    /// On the connection there is. One may have gone away unnoticed while there was nothing to write, and then another one
    /// does it: whether the session has ended is in its row.
    async fn end_session(&mut self, epoch: u64) -> Result<(), Error> {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            match session::end(&client, epoch).await {
                Ok(()) => return Ok(()),
                Err(error) => tracing::debug!(%error, "the session was not ended at once"),
            }
        }
        session::end(&self.connect().await?, epoch).await
    }
}

async fn prove_writable(client: &Client) -> Result<(), Error> {
    let probe = "BEGIN; INSERT INTO claims (name, epoch) VALUES ('probe', 0) ON CONFLICT (name) DO NOTHING; \
                 DELETE FROM claims WHERE name = 'probe'; COMMIT";
    client.batch_execute(probe).await.map_err(read_error)
}
