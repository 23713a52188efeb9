//! A batch of commits becomes one transaction, or says why not.

use std::collections::BTreeSet;
use std::time::Duration;

use baton_model::RunId;
use baton_store::{Commit, CommitError, Committed, LedgerCommitted, LedgerId, Write};
use tokio_postgres::Client;

use crate::error::{is_duplicate, is_retryable, unwritable};
use crate::known::{Found, Known};
use crate::plan::Plan;
use crate::rows;
use crate::session::SESSION;
use crate::statement::{Failure, Statements, is_miscounted};
use crate::text;

/// How often a transaction may come again because somebody else was in its way.
const ATTEMPTS: u32 = 20;

/// What became of each commit, and what all of them made visible.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) runs: Vec<Committed>,
    pub(crate) ledgers: Vec<LedgerCommitted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Written,
    /// It stands alone: nothing else is the worse for it.
    Refused(CommitError),
    /// The generation ends with it.
    Failed(CommitError),
    NotAttempted,
}

impl Outcome {
    /// None of them, for this reason.
    pub(crate) fn lost(commits: usize, error: &CommitError) -> Self {
        Self { verdicts: vec![Verdict::Failed(error.clone()); commits], ..Self::default() }
    }

    pub(crate) fn failure(&self) -> Option<&CommitError> {
        self.verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Failed(error) => Some(error),
            _ => None,
        })
    }
}

enum Trouble {
    /// What was assumed is not so.
    Doubt,
    /// Somebody else was there at the same time.
    Again,
    Fenced,
    Lost(CommitError),
}

pub(crate) async fn transact(client: &Client, statements: &mut Statements, me: u64, commits: &[Commit]) -> Outcome {
    let mut found: Option<Found> = None;
    for attempt in 1..=ATTEMPTS {
        let tried = match attempt_all(client, statements, me, commits, found.as_ref()).await {
            Ok(outcome) => return outcome,
            Err(trouble) => trouble,
        };
        match tried {
            Trouble::Fenced => return Outcome::lost(commits.len(), &CommitError::Fenced),
            Trouble::Lost(error) => return Outcome::lost(commits.len(), &error),
            Trouble::Doubt => {}
            // A little later, and not all at once: who meets twice is likely to meet a third time.
            Trouble::Again => tokio::time::sleep(Duration::from_millis(u64::from(attempt) * (1 + me % 4))).await,
        }
        match look(client, statements, commits).await {
            Ok(now) => found = Some(now),
            Err(error) => return Outcome::lost(commits.len(), &unwritable(&error)),
        }
    }
    let reason = "other transactions were in the way too often".to_owned();
    Outcome::lost(commits.len(), &CommitError::Unavailable { reason })
}

async fn attempt_all(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    commits: &[Commit],
    found: Option<&Found>,
) -> Result<Outcome, Trouble> {
    let mut known = Known::new(me, found);
    let mut plan = Plan::new(me);
    let mut outcome = Outcome::default();
    let mut failed = false;
    for commit in commits {
        if failed {
            outcome.verdicts.push(Verdict::NotAttempted);
            continue;
        }
        match known.judge(commit) {
            Ok((runs, ledgers)) => {
                plan.add(commit, &known);
                outcome.verdicts.push(Verdict::Written);
                outcome.runs.extend(runs);
                outcome.ledgers.extend(ledgers);
            }
            Err(_) if found.is_none() => return Err(Trouble::Doubt),
            Err(error) if commit.alone && error.is_refusal() => outcome.verdicts.push(Verdict::Refused(error)),
            Err(error) => {
                failed = true;
                outcome.verdicts.push(Verdict::Failed(error));
            }
        }
    }
    run(client, statements, plan).await?;
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

/// Where everything stands that the commits mention. Nothing is locked: should it change meanwhile, the transaction
/// notices.
async fn look(
    client: &Client,
    statements: &mut Statements,
    commits: &[Commit],
) -> Result<Found, tokio_postgres::Error> {
    let (mut runs, mut pruned) = (BTreeSet::new(), BTreeSet::new());
    let (mut ledgers, mut letters) = (BTreeSet::new(), BTreeSet::new());
    for write in commits.iter().flat_map(|commit| &commit.writes) {
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
            Write::Change { ledger, .. } | Write::ForkLedger { ledger, .. } => {
                ledgers.insert(ledger);
            }
            Write::AnswerLetter { id, .. } => {
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
            let run = RunId::new(text::read(row.try_get(0)?));
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
            let id = |at| row.try_get(at).map(|id| RunId::new(text::read(id)));
            found.forks.push((id(0)?, id(1)?));
        }
    }
    if !ledgers.is_empty() {
        let keys: Vec<(Vec<u8>, &LedgerId)> = ledgers.iter().map(|id| (rows::ledger_key(id), *id)).collect();
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
            found.letters.insert(text::read(row.try_get(0)?), row.try_get(1)?);
        }
    }
    Ok(found)
}
