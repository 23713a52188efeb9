use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId};
use tokio::sync::oneshot;

use crate::{
    AnnotationRow, Attempt, Chains, Change, CheckpointWrite, CommitError, DeadLetterWrite, Delivery, InterruptRow,
    LostPart, Pruned, Quarantine, QueuedBytes, Reply, RunRow, RunnerWrite, SpendingRow, StoredRecord, VersionedStoreId,
    Webhook, WebhookChange, WorkflowVersion, WriteChain,
};

/// Writes on their way to the disk, in parts. What is in one part becomes durable together or not at all. Parts share a
/// transaction where they can; one that cannot be written is lost alone, with what builds on it ([`Chains`]).
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The generation of the state these writes were derived from; see [`crate::Journal::recover`].
    pub generation: u64,
    /// Whose it is. Commits of one tenant keep their order, and take turns with those of others; see
    /// [`crate::FairQueue`].
    pub tenant: Option<TenantId>,
    writes: Vec<Write>,
    parts: Vec<PartEnd>,
    /// What it weighs in a queue, for as long as it is there.
    queued: Vec<Arc<QueuedBytes>>,
}

/// Where a part of a commit ends, and what it belongs to.
#[derive(Clone, Debug)]
struct PartEnd {
    end: usize,
    chains: Chains,
}

/// Writes that were made at once, mostly for one run.
#[derive(Clone, Copy, Debug)]
pub struct CommitPart<'a> {
    pub writes: &'a [Write],
    pub chains: &'a Chains,
}

impl Commit {
    /// One part that belongs to no chain: if it is refused, only whoever waits for it is told.
    pub fn new(generation: u64, writes: Vec<Write>) -> Self {
        Self::of_parts(generation, [(writes, Chains::default())])
    }

    /// One part that is a link of a chain.
    pub fn of_chain(generation: u64, writes: Vec<Write>, chain: Arc<WriteChain>) -> Self {
        Self::of_parts(generation, [(writes, Chains::link(chain))])
    }

    /// Parts that were made one after the other.
    pub fn of_parts(generation: u64, made: impl IntoIterator<Item = (Vec<Write>, Chains)>) -> Self {
        let (mut writes, mut parts) = (Vec::new(), Vec::new());
        for (part, chains) in made {
            writes.extend(part);
            parts.push(PartEnd { end: writes.len(), chains });
        }
        Self { generation, tenant: None, writes, parts, queued: Vec::new() }
    }

    /// The same for one tenant, which may wait for its turn while others have theirs.
    pub fn of_tenant(self, tenant: TenantId) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// The same, weighing something until it is written or dropped.
    pub fn weighing(mut self, queued: impl IntoIterator<Item = QueuedBytes>) -> Self {
        self.queued.extend(queued.into_iter().map(Arc::new));
        self
    }

    /// Nothing is in it that could not be made again: where there is no room for it, everything else goes on.
    pub fn is_disposable(&self) -> bool {
        self.writes.iter().all(|write| matches!(write, Write::Checkpoint(_))) && !self.writes.is_empty()
    }

    /// All writes, in order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub fn parts(&self) -> impl Iterator<Item = CommitPart<'_>> {
        let mut begin = 0;
        self.parts.iter().filter_map(move |part| {
            let writes = self.writes.get(begin..part.end)?;
            begin = part.end;
            Some(CommitPart { writes, chains: &part.chains })
        })
    }
}

impl<'a> CommitPart<'a> {
    /// What this part would make visible, or why it must not be applied. `stored` says where a run's log stands.
    ///
    /// The one rule that keeps logs free of gaps and duplicates, so adapters share it. It needs no write, so a part
    /// that is refused has touched nothing.
    pub fn check<E: From<CommitError>>(
        &self,
        mut stored: impl FnMut(&RunId) -> Result<Option<u64>, E>,
    ) -> Result<Vec<Committed>, E> {
        let conflict =
            |run: &RunId, expected, actual| E::from(CommitError::Conflict { run: run.clone(), expected, actual });
        let mut seen: Vec<Committed> = Vec::new();
        for write in self.writes {
            let (Write::CreateRun(row) | Write::Append { row, .. }) = write else { continue };
            let known = seen.iter().position(|committed| committed.run == row.id);
            let at = match known {
                Some(index) => Some(seen[index].next_seq),
                None => stored(&row.id)?,
            };
            let next_seq = match (write, at) {
                (Write::Append { expected, records, .. }, at) => {
                    let actual = at.unwrap_or(0);
                    if at.is_none() || actual != *expected {
                        return Err(conflict(&row.id, *expected, actual));
                    }
                    if let Some((place, record)) = (actual..).zip(records).find(|(place, record)| record.seq != *place)
                    {
                        return Err(conflict(&row.id, record.seq, place));
                    }
                    let next = actual + records.len() as u64;
                    if records.last().is_some_and(|last| last.sum != row.chain.head) {
                        let reason = "the checksums of the records do not end where the run's do".to_owned();
                        return Err(CommitError::Refused { run: Some(row.id.clone()), reason }.into());
                    }
                    if row.next_seq != next {
                        return Err(conflict(&row.id, row.next_seq, next));
                    }
                    next
                }
                (_, Some(actual)) => return Err(conflict(&row.id, 0, actual)),
                (_, None) => row.origin.as_ref().map_or(0, |origin| origin.seq),
            };
            let committed = Committed { run: row.id.clone(), next_seq, terminal: row.status.is_terminal() };
            match known {
                Some(index) => seen[index] = committed,
                None => seen.push(committed),
            }
        }
        Ok(seen)
    }

    /// The same for versioned stores: a change has the version after the last one, or the commit is refused. `stored` says
    /// where a versioned store stands, 0 if it is empty.
    pub fn check_versioned_stores<E: From<CommitError>>(
        &self,
        mut stored: impl FnMut(&VersionedStoreId) -> Result<u64, E>,
    ) -> Result<Vec<VersionedStoreCommitted>, E> {
        let mut seen: Vec<VersionedStoreCommitted> = Vec::new();
        for write in self.writes {
            let (ledger, version, new) = match write {
                Write::Change { ledger, change } => (ledger, change.version, false),
                Write::ForkVersionedStore { ledger, version, .. } => (ledger, *version, true),
                _ => continue,
            };
            let known = seen.iter().position(|committed| committed.ledger == *ledger);
            let actual = match known {
                Some(index) => seen[index].version,
                None => stored(ledger)?,
            };
            let follows = if new { actual == 0 && known.is_none() } else { version == actual + 1 };
            if !follows {
                let ledger = ledger.clone();
                return Err(E::from(CommitError::VersionConflict { ledger, wanted: version, actual }));
            }
            match known {
                Some(index) => seen[index].version = version,
                None => seen.push(VersionedStoreCommitted { ledger: ledger.clone(), version }),
            }
        }
        Ok(seen)
    }

    /// The same for logs that others begin with: a log that is gone is not forked, and one that a fork needs does not go.
    /// `gone` says whether a run's log was dropped, `forks` which forks of it keep their own.
    pub fn check_forks<E: From<CommitError>>(
        &self,
        mut gone: impl FnMut(&RunId) -> Result<bool, E>,
        mut forks: impl FnMut(&RunId) -> Result<Vec<RunId>, E>,
    ) -> Result<(), E> {
        let (mut dropped, mut made): (Vec<&'a RunId>, Vec<(&'a RunId, &'a RunId)>) = (Vec::new(), Vec::new());
        for write in self.writes {
            match write {
                Write::CreateRun(RunRow { id, origin: Some(origin), .. }) => {
                    let source = &origin.source;
                    if dropped.contains(&source) || gone(source)? {
                        return Err(CommitError::LogGone { run: source.clone() }.into());
                    }
                    made.push((source, id));
                }
                Write::Prune { run, pruned: Pruned { log: true, .. } } => {
                    let stored = forks(run)?;
                    let new = made.iter().filter(|(source, _)| *source == run).map(|(_, fork)| *fork);
                    if let Some(fork) = stored.iter().chain(new).find(|fork| !dropped.contains(fork)) {
                        return Err(CommitError::LogNeeded { run: run.clone(), fork: fork.clone() }.into());
                    }
                    dropped.push(run);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub enum Write {
    /// A run that must not exist yet. Its log starts empty, whatever the row's `next_seq` says; a fork's at its fork
    /// point. The log of what it was forked from must be there.
    CreateRun(RunRow),
    /// Records to add at `expected` (the run's next sequence), and the run's row as it is after them. What a run *is*
    /// (tenant, workflow, digest, creation, parent, scopes, tags) was settled by `CreateRun` and does not change; what
    /// was pruned of it is settled by `Prune`.
    Append {
        row: RunRow,
        expected: u64,
        records: Vec<StoredRecord>,
    },
    /// Replaces a question that is open at the same node.
    OpenInterrupt(InterruptRow),
    CloseInterrupt {
        run: RunId,
        node: NodeId,
    },
    /// Content-addressed; storing the same bytes twice is harmless.
    PutBlob {
        digest: Digest,
        bytes: Vec<u8>,
    },
    /// One more change of a memory scope or a workspace.
    Change {
        ledger: VersionedStoreId,
        change: Change,
    },
    /// A versioned store that must not exist yet and sees another one up to this version. Its own changes go on from there.
    ForkVersionedStore {
        ledger: VersionedStoreId,
        base: VersionedStoreId,
        version: u64,
    },
    /// Forgets changes that something newer replaced at or below this version: nobody may look further back. Of a key
    /// that was deleted by then and is still gone, nothing stays; what is current stays.
    ForgetHistory {
        ledger: VersionedStoreId,
        below: u64,
    },
    /// Forgets a versioned store with everything in it. Its versions go on from where they were, should anybody write again.
    DropVersionedStore(VersionedStoreId),
    /// Marks a run as pruned, and drops its records if the mark says so. The row stays and its `next_seq` with it; a
    /// log that is gone stays gone, whatever a later mark says; remarks about the run go with it. One that a fork begins with does not go. A quarantine of
    /// the run's tree ends if this is its top.
    Prune {
        run: RunId,
        pruned: Pruned,
    },
    /// A remark about a run. Goes with the run's log.
    Annotate(AnnotationRow),
    /// What is kept beside a run's log so that it need not be read again. Goes with the run's log.
    Checkpoint(CheckpointWrite),
    /// What a run has spent, as of some of its records. Replaces what was noted before; goes with the run's log. Of a run that
    /// is unknown, or whose log is gone, nothing is kept.
    PutSpending(SpendingRow),
    /// Nobody may step this tree from now on. Replaces what was said of the tree before.
    Quarantine(Quarantine),
    /// Somebody released the tree, or it ended. A tree that is in no quarantine stays as it is. On a shared store it stays a
    /// suspect, and the next death in it is one too many; see [`crate::Suspect`].
    EndQuarantine {
        root: RunId,
    },
    /// Proves that writes get through; see [`crate::Store::probe`]. Replaces the number before.
    Probe {
        number: u64,
    },
    PutWorkflow(WorkflowVersion),
    PutReply(Reply),
    /// Forget replies that expired before this instant.
    PruneReplies {
        before: Timestamp,
    },
    PutWebhook(Webhook),
    /// How a call of a subscriber ended, noted in its row as it is by then ([`Webhook::note`]): other hosts call it too.
    /// One that was deleted stays deleted. What is on its way to one that is given up stays; see [`DeadLetterWrite::Bury`].
    NoteAttempt {
        webhook: WebhookId,
        attempt: Attempt,
    },
    /// The same for what its owner changed.
    ChangeWebhook {
        webhook: WebhookId,
        change: WebhookChange,
    },
    /// Also forgets what was on its way there, and its dead letters.
    DeleteWebhook(WebhookId),
    /// One event for one subscriber, to be sent after the commit. Replaces a delivery of the same key.
    PutDelivery(Delivery),
    DeleteDelivery {
        webhook: WebhookId,
        run: RunId,
        seq: u64,
    },
    DeadLetters(DeadLetterWrite),
    Runners(RunnerWrite),
    /// Gives a tree of runs that this session owns to another one. What is queued for the tree before this is durable
    /// before it; nothing may be queued for it after. Shared stores only, like the two below.
    HandOver {
        root: RunId,
        to: u64,
    },
    /// Lets a claim go. One that is not held is none.
    ReleaseClaim {
        name: String,
    },
    /// What came of a letter. A commit that answers an answered one is refused; one nobody knows (any more) needs no
    /// answer.
    AnswerForwarded {
        id: String,
        body: String,
    },
}

/// What a commit made visible; handed to the [`Observer`] after the bytes are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub run: RunId,
    pub next_seq: u64,
    pub terminal: bool,
}

/// Where a versioned store stands after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedStoreCommitted {
    pub ledger: VersionedStoreId,
    pub version: u64,
}

/// Told about every commit, on the writer's thread, before the tickets resolve. Must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Several commits may be told of at once, in commit order; the last entry of a run or versioned store is where it
    /// stands.
    fn committed(&self, runs: &[Committed], ledgers: &[VersionedStoreCommitted]);
    /// Parts of commits were lost, and their chains are broken; everything else goes on. Told after what was committed.
    fn lost(&self, parts: &[LostPart]);
    /// The disk or the database failed, and `generation` has ended.
    fn failed(&self, generation: u64, error: &CommitError);
}

/// Resolves once the commit is on disk.
#[derive(Debug)]
pub struct CommitReceipt(oneshot::Receiver<Result<(), CommitError>>);

/// The writer's end of a [`CommitReceipt`].
#[derive(Debug)]
pub struct TicketSender(oneshot::Sender<Result<(), CommitError>>);

impl CommitReceipt {
    pub fn new() -> (TicketSender, Self) {
        let (sender, receiver) = oneshot::channel();
        (TicketSender(sender), Self(receiver))
    }
}

impl TicketSender {
    pub fn resolve(self, result: Result<(), CommitError>) {
        // Nobody may be waiting: work that runs ahead has no one to tell.
        let _ = self.0.send(result);
    }
}

impl Future for CommitReceipt {
    type Output = Result<(), CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A dropped sender means the writer is gone: the commit was not acknowledged.
        Pin::new(&mut self.0).poll(cx).map(|received| received.unwrap_or(Err(CommitError::Stale)))
    }
}
