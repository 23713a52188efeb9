//! A batch of commits becomes one transaction, or says why not.

use std::collections::BTreeSet;
use std::time::Duration;

use baton_model::RunId;
use baton_store::{
    Breaks, Commit, CommitError, CommitPart, Committed, LostPart, VersionedStoreCommitted, VersionedStoreId, Write,
};
use tokio_postgres::Client;

use crate::error::{is_duplicate, is_of_the_data, is_retryable, unwritable, words};
use crate::known::{Found, Known};
use crate::plan::Plan;
use crate::rows;
use crate::session::SESSION;
use crate::statement::{Failure, Statements, is_miscounted};
use crate::text;

/// A database that says nothing for this long says nothing any more.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// The least that a database takes in a second: a large transaction has more time than a small one.
const SLOWEST_BYTES: usize = 1024 * 1024;
/// How long the write is looked for that a commit was refused for. Without a name the refusal would only come again; but
/// everybody else waits meanwhile.
const SEARCH: Duration = Duration::from_secs(30);
/// How often a transaction may come again because somebody else was in its way.
const ATTEMPTS: u32 = 20;

/// What became of each part of the commits, and what all of them made visible.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) runs: Vec<Committed>,
    pub(crate) ledgers: Vec<VersionedStoreCommitted>,
    pub(crate) lost: Vec<LostPart>,
    /// The connection was left in the middle of something and must not be used again.
    pub(crate) broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Written,
    /// It is lost, with what builds on it. Nobody else is the worse for it.
    Refused(CommitError),
    /// The generation ends with it.
    Failed(CommitError),
    NotAttempted,
}

impl Outcome {
    /// None of them, for this reason.
    pub(crate) fn unwritten(parts: usize, error: &CommitError) -> Self {
        Self { verdicts: vec![Verdict::Failed(error.clone()); parts], ..Self::default() }
    }

    pub(crate) fn failure(&self) -> Option<&CommitError> {
        self.verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Failed(error) => Some(error),
            _ => None,
        })
    }

    fn add(&mut self, more: Self) {
        self.verdicts.extend(more.verdicts);
        self.runs.extend(more.runs);
        self.ledgers.extend(more.ledgers);
        self.lost.extend(more.lost);
        self.broken |= more.broken;
    }
}

enum Trouble {
    /// What was assumed is not so.
    Doubt,
    /// Somebody else was there at the same time.
    Again,
    Fenced,
    /// The database would not take something of it, in these words.
    Data(String),
    Lost(CommitError),
}

/// Writes as many of them as can be. If the database does not take something, each half is tried by itself, and so on,
/// until the part that is at fault is alone: the others need not suffer for it.
pub(crate) async fn transact(client: &Client, statements: &mut Statements, me: u64, commits: &[Commit]) -> Outcome {
    let parts: Vec<CommitPart<'_>> = commits.iter().flat_map(Commit::parts).collect();
    let mut together = Outcome::default();
    // What is still to be written, the first of it last.
    let mut left = vec![parts.as_slice()];
    while let Some(parts) = left.pop() {
        if together.failure().is_some() {
            together.verdicts.extend(parts.iter().map(|_| Verdict::NotAttempted));
            continue;
        }
        if together.broken {
            let reason = "the connection was given up".to_owned();
            together.add(Outcome::unwritten(parts.len(), &CommitError::Unavailable { reason }));
            continue;
        }
        match (transact_in_time(client, statements, me, parts).await, parts) {
            (Ok(outcome), _) => together.add(outcome),
            (Err(reason), [part]) => {
                let searched = tokio::time::timeout(SEARCH, find_culprit(client, statements, me, *part)).await;
                together.broken |= searched.is_err();
                let error = part.refused(searched.ok().flatten(), &reason);
                let mut breaks = Breaks::default();
                breaks.lose(part.chains, part.run().cloned(), error.clone());
                together.lost.extend(breaks.settle());
                together.verdicts.push(Verdict::Refused(error));
            }
            (Err(_), parts) => {
                let (first, second) = parts.split_at(parts.len() / 2);
                left.extend([second, first]);
            }
        }
    }
    together
}

/// The same, unless the database says nothing.
async fn transact_in_time(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
) -> Result<Outcome, String> {
    let bytes: usize = parts.iter().flat_map(|part| part.writes).map(Write::bytes).sum();
    let policy = SILENCE + Duration::from_secs((bytes / SLOWEST_BYTES) as u64);
    let work = transact_once(client, statements, me, parts);
    tokio::time::timeout(policy, work).await.unwrap_or_else(|_elapsed| {
        let reason = format!("the database has not answered for {} seconds", policy.as_secs());
        Ok(Outcome { broken: true, ..Outcome::unwritten(parts.len(), &CommitError::Unavailable { reason }) })
    })
}

/// The write of a part that the database does not take. Ever closer beginnings of the part are tried and undone: the last
/// write of the shortest that is refused is the one. There are few tries, however long the part is.
async fn find_culprit<'a>(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    part: CommitPart<'a>,
) -> Option<&'a Write> {
    let found = look(client, statements, &[part]).await.ok()?;
    let (mut taken, mut refused) = (0, part.writes.len());
    if !is_refused(client, statements, me, part.writes, &found).await? {
        // It may be somebody else's row that was in the way, and is gone.
        return None;
    }
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        if is_refused(client, statements, me, &part.writes[..middle], &found).await? {
            refused = middle;
        } else {
            taken = middle;
        }
    }
    part.writes.get(taken)
}

/// Whether the database refuses these for what they are; `None` if that cannot be found out.
async fn is_refused(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    writes: &[Write],
    found: &Found,
) -> Option<bool> {
    for attempt in 1..=ATTEMPTS {
        let mut plan = Plan::new(me);
        plan.add(writes, &Known::new(me, Some(found)));
        let Err(Failure { error, .. }) = statements.rehearse(client, &plan.statements()).await else {
            return Some(false);
        };
        if is_retryable(&error) {
            tokio::time::sleep(Duration::from_millis(u64::from(attempt) * (1 + me % 4))).await;
        } else if is_miscounted(&error) || is_duplicate(&error) {
            // Somebody else changed what these build on.
            return None;
        } else {
            return is_of_the_data(&error).then_some(true);
        }
    }
    None
}

/// `Err` with the database's words if something in the parts is at fault.
async fn transact_once(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
) -> Result<Outcome, String> {
    let mut found: Option<Found> = None;
    for attempt in 1..=ATTEMPTS {
        let tried = match attempt_all(client, statements, me, parts, found.as_ref()).await {
            Ok(outcome) => return Ok(outcome),
            Err(trouble) => trouble,
        };
        match tried {
            Trouble::Fenced => return Ok(Outcome::unwritten(parts.len(), &CommitError::Fenced)),
            Trouble::Lost(error) => return Ok(Outcome::unwritten(parts.len(), &error)),
            Trouble::Data(reason) => return Err(reason),
            Trouble::Doubt => {}
            // A little later, and not all at once: who meets twice is likely to meet a third time.
            Trouble::Again => tokio::time::sleep(Duration::from_millis(u64::from(attempt) * (1 + me % 4))).await,
        }
        match look(client, statements, parts).await {
            Ok(now) => found = Some(now),
            Err(error) if is_of_the_data(&error) => return Err(words(&error)),
            Err(error) => return Ok(Outcome::unwritten(parts.len(), &unwritable(&error))),
        }
    }
    let reason = "other transactions were in the way too often".to_owned();
    Ok(Outcome::unwritten(parts.len(), &CommitError::Unavailable { reason }))
}

async fn attempt_all(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
    found: Option<&Found>,
) -> Result<Outcome, Trouble> {
    let mut known = Known::new(me, found);
    let mut plan = Plan::new(me);
    let mut outcome = Outcome::default();
    let mut breaks = Breaks::default();
    for part in parts {
        let judged = if breaks.is_whole(part.chains) { known.judge(*part) } else { Err(CommitError::Stale) };
        match judged {
            Ok((runs, ledgers)) => {
                plan.add(part.writes, &known);
                outcome.verdicts.push(Verdict::Written);
                outcome.runs.extend(runs);
                outcome.ledgers.extend(ledgers);
            }
            Err(error) if found.is_none() && error != CommitError::Stale => return Err(Trouble::Doubt),
            Err(error) => {
                breaks.lose(part.chains, part.run().cloned(), error.clone());
                outcome.verdicts.push(Verdict::Refused(error));
            }
        }
    }
    run(client, statements, plan).await?;
    outcome.lost = breaks.settle();
    Ok(outcome)
}

async fn run(client: &Client, statements: &mut Statements, plan: Plan<'_>) -> Result<(), Trouble> {
    statements.transact(client, &plan.statements()).await.map_err(|Failure { at, error }| {
        if is_miscounted(&error) {
            if at == Some(SESSION) { Trouble::Fenced } else { Trouble::Doubt }
        } else if is_duplicate(&error) {
            Trouble::Doubt
        } else if is_retryable(&error) {
            Trouble::Again
        } else if is_of_the_data(&error) {
            Trouble::Data(words(&error))
        } else {
            // It may have happened or not; nobody is told that it has, and everything is read again.
            Trouble::Lost(unwritable(&error))
        }
    })
}

const RUNS: &str = "SELECT id, next_seq, owner, pruned_log FROM runs WHERE id = ANY($1)";
const FORKS: &str = "SELECT origin_run, id FROM runs
    WHERE origin_run = ANY($1) AND origin_run IS NOT NULL AND NOT pruned_log ORDER BY position";
const LEDGERS: &str = "SELECT ledger, version FROM ledgers WHERE ledger = ANY($1)";
const LETTERS: &str = "SELECT id, answered_at IS NOT NULL FROM inbox WHERE id = ANY($1)";

/// Where everything stands that the parts mention. Nothing is locked: should it change meanwhile, the transaction
/// notices.
async fn look(
    client: &Client,
    statements: &mut Statements,
    parts: &[CommitPart<'_>],
) -> Result<Found, tokio_postgres::Error> {
    let (mut runs, mut pruned) = (BTreeSet::new(), BTreeSet::new());
    let (mut ledgers, mut letters) = (BTreeSet::new(), BTreeSet::new());
    for write in parts.iter().flat_map(|part| part.writes) {
        match write {
            Write::CreateRun(row) | Write::Append { row, .. } => {
                runs.insert(&row.id);
                runs.extend(&row.root);
                runs.extend(row.origin.as_ref().map(|origin| &origin.source));
            }
            Write::HandOver { root, .. } => {
                runs.insert(root);
            }
            Write::Prune { run, .. } => {
                pruned.insert(run);
            }
            Write::Change { ledger, .. } | Write::ForkVersionedStore { ledger, .. } => {
                ledgers.insert(ledger);
            }
            Write::AnswerForwarded { id, .. } => {
                letters.insert(id);
            }
            _ => {}
        }
    }
    let mut found = Found::default();
    if !runs.is_empty() {
        let ids: Vec<_> = runs.iter().map(|run| text::written(run.as_str())).collect();
        let prepared = statements.prepare(client, RUNS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            let (next_seq, owner): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            let run = RunId::new(text::read(row.try_get(0)?).into_owned());
            if row.try_get(3)? {
                found.gone.insert(run.clone());
            }
            found.runs.insert(run, (next_seq.cast_unsigned(), owner.cast_unsigned()));
        }
    }
    if !pruned.is_empty() {
        let ids: Vec<_> = pruned.iter().map(|run| text::written(run.as_str())).collect();
        let prepared = statements.prepare(client, FORKS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            let id = |at| row.try_get(at).map(|id| RunId::new(text::read(id).into_owned()));
            found.forks.push((id(0)?, id(1)?));
        }
    }
    if !ledgers.is_empty() {
        let keys: Vec<(Vec<u8>, &VersionedStoreId)> = ledgers.iter().map(|id| (rows::versioned_key(id), *id)).collect();
        let wanted: Vec<&[u8]> = keys.iter().map(|(key, _)| key.as_slice()).collect();
        let prepared = statements.prepare(client, LEDGERS).await?;
        for row in client.query(&prepared, &[&wanted]).await? {
            let (key, version): (Vec<u8>, i64) = (row.try_get(0)?, row.try_get(1)?);
            let named = keys.iter().filter(|(wanted, _)| *wanted == key);
            found.ledgers.extend(named.map(|(_, ledger)| ((*ledger).clone(), version.cast_unsigned())));
        }
    }
    if !letters.is_empty() {
        let ids: Vec<_> = letters.iter().map(|id| text::written(id)).collect();
        let prepared = statements.prepare(client, LETTERS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            found.letters.insert(text::read(row.try_get(0)?).into_owned(), row.try_get(1)?);
        }
    }
    Ok(found)
}
