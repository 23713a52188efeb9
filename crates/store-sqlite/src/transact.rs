//! A batch of commits becomes one transaction, or says why not.

use baton_store::{Commit, CommitError, Committed, VersionedStoreCommitted};
use rusqlite::Connection;

use crate::apply::{Transaction, roll_back};
use crate::cache::Places;
use crate::error::{Failure, unwritable};

/// What became of each commit, and what all of them made visible.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) runs: Vec<Committed>,
    pub(crate) ledgers: Vec<VersionedStoreCommitted>,
    pub(crate) transactions: u64,
}

#[derive(Clone)]
pub(crate) enum Verdict {
    Written,
    /// It stands alone: nothing else is the worse for it.
    Refused(CommitError),
    /// The generation ends with it.
    Failed(CommitError),
    NotAttempted,
}

impl Outcome {
    /// None of them, for this reason, which was met after so many.
    fn lost(commits: usize, tried: usize, error: &CommitError) -> Self {
        let mut verdicts = vec![Verdict::Failed(error.clone()); tried.max(1).min(commits)];
        verdicts.resize(commits, Verdict::NotAttempted);
        Self { verdicts, ..Self::default() }
    }

    fn has_failed(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_)))
    }
}

pub(crate) fn transact(connection: &Connection, places: &mut Places, commits: &[Commit]) -> Outcome {
    let mut tried = 0;
    let failure = match attempt(connection, places, commits, &mut tried) {
        Ok(outcome) => return outcome,
        Err(failure) => failure,
    };
    roll_back(connection);
    // They know of what was undone.
    places.clear();
    match (failure, commits) {
        (Failure::Data(error) | Failure::Refused(error), [only]) => {
            let verdict = if only.alone { Verdict::Refused(error) } else { Verdict::Failed(error) };
            Outcome { verdicts: vec![verdict], ..Outcome::default() }
        }
        (Failure::Data(_) | Failure::Refused(_), _) => one_by_one(connection, places, commits),
        (Failure::Disk(error), _) => Outcome::lost(commits.len(), tried, &unwritable(&error)),
    }
}

/// One of them is at fault, and the others need not suffer for it.
fn one_by_one(connection: &Connection, places: &mut Places, commits: &[Commit]) -> Outcome {
    let mut all = Outcome::default();
    for commit in commits {
        if all.has_failed() {
            all.verdicts.push(Verdict::NotAttempted);
            continue;
        }
        let outcome = transact(connection, places, std::slice::from_ref(commit));
        all.verdicts.extend(outcome.verdicts);
        all.runs.extend(outcome.runs);
        all.ledgers.extend(outcome.ledgers);
        all.transactions += outcome.transactions;
    }
    all
}

fn attempt(
    connection: &Connection,
    places: &mut Places,
    commits: &[Commit],
    tried: &mut usize,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    // Should it not even begin, all of them were tried.
    *tried = commits.len();
    let mut transaction = Transaction::begin(connection, places)?;
    *tried = 0;
    for commit in commits {
        if outcome.has_failed() {
            outcome.verdicts.push(Verdict::NotAttempted);
            continue;
        }
        *tried += 1;
        match transaction.apply(commit) {
            Ok((runs, ledgers)) => {
                outcome.verdicts.push(Verdict::Written);
                outcome.transactions = 1;
                outcome.runs.extend(runs);
                outcome.ledgers.extend(ledgers);
            }
            Err(Failure::Refused(error)) if commit.alone => outcome.verdicts.push(Verdict::Refused(error)),
            Err(Failure::Refused(error)) => outcome.verdicts.push(Verdict::Failed(error)),
            Err(failure) => return Err(failure),
        }
    }
    transaction.commit()?;
    Ok(outcome)
}
