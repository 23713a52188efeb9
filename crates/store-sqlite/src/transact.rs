//! A batch of commits becomes one transaction, or says why not.
//!
//! Nearly always all parts of all commits are written one after the other. If the database does not take something, the
//! transaction is undone and made again part by part, each under a savepoint, so that only the part at fault is lost, and
//! what builds on it.

use baton_store::{Breaks, Commit, CommitError, CommitPart, Committed, LostPart, VersionedStoreCommitted};
use rusqlite::Connection;

use crate::apply::{Transaction, roll_back};
use crate::cache::Places;
use crate::error::{Failure, is_full, unwritable};

/// What became of each commit, and what all of them made visible.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) runs: Vec<Committed>,
    pub(crate) ledgers: Vec<VersionedStoreCommitted>,
    pub(crate) lost: Vec<LostPart>,
    pub(crate) transactions: u64,
    /// Of the transaction, counted since the file was made.
    pub(crate) number: Option<u64>,
}

#[derive(Clone)]
pub(crate) enum Verdict {
    Written,
    /// At least one part of it is lost, the first one for this reason. Nobody else is the worse for it.
    Refused(CommitError),
    /// The generation ends with it.
    Failed(CommitError),
    NotAttempted,
}

impl Outcome {
    /// None of them, for this reason, which was met after so many.
    fn unwritten(commits: usize, tried: usize, error: &CommitError) -> Self {
        let mut verdicts = vec![Verdict::Failed(error.clone()); tried.max(1).min(commits)];
        verdicts.resize(commits, Verdict::NotAttempted);
        Self { verdicts, ..Self::default() }
    }
}

/// How a transaction goes about its parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Nothing is expected to go wrong.
    AtOnce,
    /// Something has.
    PartByPart,
}

pub(crate) fn transact(connection: &Connection, places: &mut Places, commits: &[Commit]) -> Outcome {
    let all: Vec<&Commit> = commits.iter().collect();
    let mut tried = 0;
    let failure = match together(connection, places, &all, &mut tried) {
        Ok(outcome) => return outcome,
        Err(failure) => failure,
    };
    let error = match failure {
        // Nobody goes without for what can be made again.
        Failure::Disk(error) if is_full(&error) && commits.iter().any(Commit::is_disposable) => {
            return without_disposable(connection, places, commits, &unwritable(&error));
        }
        Failure::Disk(error) => unwritable(&error),
        Failure::Data(error) | Failure::Refused(error) => error,
    };
    Outcome::unwritten(commits.len(), tried, &error)
}

/// All of them in one transaction; if it cannot be, nothing is left of it.
fn together(
    connection: &Connection,
    places: &mut Places,
    commits: &[&Commit],
    tried: &mut usize,
) -> Result<Outcome, Failure> {
    let mut attempted = attempt(connection, places, commits, Pace::AtOnce, tried);
    if let Err(Failure::Data(_) | Failure::Refused(_)) = attempted {
        undo(connection, places);
        attempted = attempt(connection, places, commits, Pace::PartByPart, tried);
    }
    attempted.inspect_err(|_| undo(connection, places))
}

/// The disk is full: what is needed may have room yet.
fn without_disposable(connection: &Connection, places: &mut Places, commits: &[Commit], full: &CommitError) -> Outcome {
    let needed: Vec<&Commit> = commits.iter().filter(|commit| !commit.is_disposable()).collect();
    let mut tried = 0;
    let outcome = match needed.as_slice() {
        [] => Ok(Outcome::default()),
        needed => together(connection, places, needed, &mut tried),
    };
    let outcome = outcome.unwrap_or_else(|failure| {
        let error = match failure {
            Failure::Disk(error) => unwritable(&error),
            Failure::Data(error) | Failure::Refused(error) => error,
        };
        Outcome::unwritten(needed.len(), tried, &error)
    });
    let mut verdicts = outcome.verdicts.into_iter();
    let each = commits.iter().map(|commit| match commit.is_disposable() {
        true => Verdict::Refused(full.clone()),
        false => verdicts.next().unwrap_or(Verdict::NotAttempted),
    });
    Outcome { verdicts: each.collect(), ..outcome }
}

fn undo(connection: &Connection, places: &mut Places) {
    roll_back(connection);
    // They know of what was undone.
    places.clear();
}

fn attempt(
    connection: &Connection,
    places: &mut Places,
    commits: &[&Commit],
    pace: Pace,
    tried: &mut usize,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut breaks = Breaks::default();
    // Should it not even begin, all of them were tried.
    *tried = commits.len();
    let mut transaction = Transaction::begin(connection, places)?;
    *tried = 0;
    for commit in commits {
        *tried += 1;
        let mut refused = None;
        for part in commit.parts() {
            match write(&mut transaction, part, pace, &breaks) {
                Ok((runs, ledgers)) => {
                    outcome.transactions = 1;
                    outcome.runs.extend(runs);
                    outcome.ledgers.extend(ledgers);
                }
                Err(Failure::Refused(error)) => {
                    breaks.lose(part.chains, part.run().cloned(), error.clone());
                    refused.get_or_insert(error);
                }
                Err(failure) => return Err(failure),
            }
        }
        outcome.verdicts.push(refused.map_or(Verdict::Written, Verdict::Refused));
    }
    outcome.number = transaction.commit()?;
    outcome.lost = breaks.settle();
    Ok(outcome)
}

/// `Refused` where the transaction goes on without this part.
fn write<'a>(
    transaction: &mut Transaction<'a>,
    part: CommitPart<'a>,
    pace: Pace,
    breaks: &Breaks,
) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), Failure> {
    if !breaks.is_whole(part.chains) {
        return Err(CommitError::Stale.into());
    }
    match pace {
        Pace::AtOnce => transaction.apply(part),
        Pace::PartByPart => match transaction.apply_apart(part) {
            Err(Failure::Data(error)) => Err(Failure::Refused(error)),
            written => written,
        },
    }
}
