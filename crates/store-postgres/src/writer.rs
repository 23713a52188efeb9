//! The one task that writes, on a thread of its own.
//!
//! It takes whatever is queued, up to a bound and in turns between tenants, as one transaction. While that is on its way to
//! the disk the next ones pile up, so the busier the host, the more commits share one sync.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_store::{
    ClusterEvent, Commit, CommitError, CommitPart, Error, FairQueue, LostPart, Observer, RunnerWrite, TicketSender,
    Write, panic_text,
};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::connect::Connector;
use crate::error::{read_error, unavailable};
use crate::news::Desk;
use crate::session;
use crate::statement::Statements;
use crate::transact::{Outcome, SEARCH, SILENCE, Tried, Verdict, Work};

/// Commits per transaction: beyond this a sync is shared widely enough, and the first in line should not wait longer.
const BATCH: usize = 256;
/// Bytes per transaction: what many commits write to a column is one message, and nobody should wait long behind it.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

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
    /// Taken from the queue, and not begun.
    pub(crate) waiting: FairQueue<Message>,
    /// Of the commits that are being written: whoever waits for them is told, whatever happens.
    pub(crate) tickets: Vec<Option<TicketSender>>,
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
                self.desk.publish(ClusterEvent::Ended { epoch: before });
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

    /// Ends when told to close or when the store is dropped. A panic is a failed commit: the generation ends, whoever waits
    /// is told, and recovery begins with a new connection.
    pub(crate) async fn run(mut self) {
        let closing = loop {
            match AssertUnwindSafe(self.serve()).catch_unwind().await {
                Ok(closing) => break closing,
                Err(panic) => self.panicked(panic.as_ref()),
            }
        };
        self.finish().await;
        if let Some(reply) = closing {
            let _ = reply.send(());
        }
    }

    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        tracing::error!(panic = %panic_text(panic), "the writer panicked; it starts over");
        metrics::counter!("baton_writer_panics_total").increment(1);
        let error = CommitError::writer_panicked();
        // Whatever it was in the middle of is undone with it.
        self.client = None;
        if !std::mem::replace(&mut self.ended, true) {
            let generation = self.public.generation.load(Ordering::Relaxed);
            let observer = self.public.observer.lock().clone();
            let told =
                catch_unwind(AssertUnwindSafe(|| observer.inspect(|observer| observer.failed(generation, &error))));
            if let Err(panic) = told {
                tracing::error!(panic = %panic_text(panic.as_ref()), "nobody could be told");
            }
        }
        for ticket in std::mem::take(&mut self.tickets).into_iter().flatten() {
            ticket.resolve(Err(error.clone()));
        }
    }

    /// Does what is asked until somebody closes the store, who is to be told once that is done.
    async fn serve(&mut self) -> Option<oneshot::Sender<()>> {
        while self.gather().await {
            let mut batch = Vec::new();
            for message in self.waiting.take(BATCH, BATCH_BYTES) {
                match message {
                    Message::Commit(commit, ticket) => batch.push((commit, ticket)),
                    // Each of these was taken by itself.
                    Message::Recover(reply) => {
                        let _ = reply.send(self.recover().await);
                    }
                    Message::Close(reply) => return Some(reply),
                }
            }
            if !batch.is_empty() {
                self.write(batch).await;
            }
        }
        None
    }

    /// Takes in what was queued, waiting for something if there is nothing. False if nobody will queue anything any more.
    async fn gather(&mut self) -> bool {
        if self.waiting.is_empty() {
            match self.queue.recv().await {
                Some(message) => self.take_in(message),
                None => return false,
            }
        }
        while let Ok(message) = self.queue.try_recv() {
            self.take_in(message);
        }
        true
    }

    fn take_in(&mut self, message: Message) {
        match &message {
            Message::Commit(commit, _) => {
                let (tenant, bytes) = (commit.tenant.clone(), commit.bytes());
                self.waiting.push(tenant.as_ref(), bytes, message);
            }
            _ => self.waiting.push_alone(message),
        }
    }

    async fn write(&mut self, batch: Vec<(Commit, TicketSender)>) {
        let generation = self.public.generation.load(Ordering::Relaxed);
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(commit, _)| !self.ended && commit.generation == generation);
        if !batch.is_empty() && self.client.as_ref().is_none_or(Client::is_closed) {
            self.reconnect().await;
        }
        if !batch.is_empty() {
            let (commits, tickets): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            self.tickets = tickets.into_iter().map(Some).collect();
            self.write_all(generation, &commits).await;
        }
        for (_, ticket) in stale {
            ticket.resolve(Err(CommitError::Stale));
        }
    }

    async fn write_all(&mut self, generation: u64, commits: &[Commit]) {
        let parts: Vec<CommitPart<'_>> = commits.iter().flat_map(Commit::parts).collect();
        // Should this panic, what was begun on it is not known.
        let Some(client) = self.client.take() else {
            let reason = "there is no connection to the database".to_owned();
            let lost = Outcome::unwritten(parts.len(), &CommitError::Unavailable { reason });
            return self.tell_end(generation, commits, lost);
        };
        let (epoch, mut work, mut told) = (self.public.epoch(), Work::of(&parts), 0);
        while let Some(tried) = work.go_on(&client, &mut self.statements, epoch).await {
            self.tell_written(&parts[told..], &tried);
            told = work.verdicts().len();
            self.resolve_written(commits, work.verdicts());
        }
        let outcome = work.end(&client, &mut self.statements, epoch, SEARCH).await;
        if !outcome.broken {
            self.client = Some(client);
        }
        self.tell_end(generation, commits, outcome);
    }

    /// At once: what others are refused for is looked for later.
    fn tell_written(&self, parts: &[CommitPart<'_>], tried: &Tried) {
        if tried.verdicts.contains(&Verdict::Written) {
            self.public.transactions.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("baton_commits_total").increment(1);
        }
        let observer = self.public.observer.lock().clone();
        if let Some(observer) = observer.filter(|_| !tried.runs.is_empty() || !tried.ledgers.is_empty()) {
            observer.committed(&tried.runs, &tried.ledgers);
        }
        self.publish(parts, tried);
    }

    /// Of commits all of whose parts are written.
    fn resolve_written(&mut self, commits: &[Commit], verdicts: &[Verdict]) {
        let mut verdicts = verdicts.iter();
        for (ticket, commit) in self.tickets.iter_mut().zip(commits) {
            let count = commit.parts().count();
            let written = verdicts.by_ref().take(count).filter(|verdict| **verdict == Verdict::Written).count();
            if written == count
                && let Some(ticket) = ticket.take()
            {
                ticket.resolve(Ok(()));
            }
        }
    }

    fn tell_end(&mut self, generation: u64, commits: &[Commit], outcome: Outcome) {
        let observer = self.public.observer.lock().clone();
        LostPart::tell(&outcome.lost);
        if let Some(observer) = observer.as_ref().filter(|_| !outcome.lost.is_empty()) {
            for lost in outcome.lost.iter().filter(|lost| lost.error != CommitError::Stale) {
                tracing::error!(error = %lost.error, "a part of a commit was refused; the rest goes on");
            }
            metrics::counter!("baton_lost_writes_total").increment(outcome.lost.len() as u64);
            observer.lost(&outcome.lost);
        }
        if let Some(error) = outcome.failure() {
            self.ended = true;
            tracing::error!(generation, %error, "a commit failed; writes stop until recovery");
            if let Some(observer) = &observer {
                observer.failed(generation, error);
            }
        }
        let mut verdicts = outcome.verdicts.into_iter();
        for (ticket, commit) in std::mem::take(&mut self.tickets).into_iter().zip(commits) {
            // The first of its parts that was not written says why.
            let of_parts = verdicts.by_ref().take(commit.parts().count());
            let errors = of_parts.filter_map(|verdict| match verdict {
                Verdict::Written => None,
                Verdict::Refused(error) | Verdict::Failed(error) => Some(error),
                Verdict::Suspected | Verdict::NotAttempted => Some(CommitError::Stale),
            });
            let errors: Vec<_> = errors.collect();
            if let Some(ticket) = ticket {
                ticket.resolve(errors.into_iter().next().map_or(Ok(()), Err));
            }
        }
    }

    fn publish(&self, parts: &[CommitPart<'_>], tried: &Tried) {
        if self.session.is_none() {
            return;
        }
        for run in &tried.runs {
            self.desk.grew(run);
        }
        let written = parts.iter().zip(&tried.verdicts).filter(|(_, verdict)| **verdict == Verdict::Written);
        for write in written.flat_map(|(part, _)| part.writes) {
            match write {
                Write::HandOver { to, .. } => self.desk.publish(ClusterEvent::HandedOver { to: *to }),
                Write::ReleaseClaim { name } => self.desk.publish(ClusterEvent::Released { name: name.clone() }),
                Write::Annotate(row) => {
                    self.desk.publish(ClusterEvent::Annotated { run: row.run.clone(), id: row.id.clone() })
                }
                Write::AnswerForwarded { id, .. } => self.desk.publish(ClusterEvent::Answered { id: id.clone() }),
                Write::PutWebhook(_)
                | Write::NoteAttempt { .. }
                | Write::ChangeWebhook { .. }
                | Write::DeleteWebhook(_) => self.desk.publish(ClusterEvent::Webhooks),
                Write::Runners(RunnerWrite::PutStep(row)) => self.desk.step(row),
                Write::Runners(RunnerWrite::DeleteStep { .. } | RunnerWrite::ForgetSteps { .. }) => {}
                Write::Runners(_) => self.desk.publish(ClusterEvent::Runners),
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
                Ok(Ok(())) => self.desk.publish(ClusterEvent::Ended { epoch }),
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
