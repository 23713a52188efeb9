//! A batch of commits becomes one transaction, or says why not.
//!
//! Nearly always all parts of all commits are written at once. If the database does not take something, each half is tried
//! by itself, and so on, until the part that is at fault is alone: the others need not suffer for it, and are told of as
//! soon as they are written. Only then the write is looked for that the part was refused for.

use std::time::{Duration, Instant};

use baton_store::{Breaks, CommitError, CommitPart, Committed, LostPart, VersionedStoreCommitted, Write};
use tokio_postgres::Client;

use crate::culprit::find_culprit;
use crate::error::{ATTEMPTS, is_duplicate, is_of_the_data, is_retryable, unwritable, words};
use crate::known::{Found, Known};
use crate::look::look;
use crate::plan::Plan;
use crate::session::SESSION;
use crate::statement::{Failure, Statements, is_miscounted};

/// A database that says nothing for this long says nothing any more.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// The least that a database takes in a second: a large transaction has more time than a small one.
const SLOWEST_BYTES: usize = 1024 * 1024;
/// How long the writes are looked for that parts of a batch were refused for. Without a name a refusal would only come
/// again; but whoever writes next waits meanwhile.
pub(crate) const SEARCH: Duration = Duration::from_secs(10);
/// How often everything must stand where it stood before what does not fit it is a part's own fault. Somebody else who is
/// in the way changes what is looked at.
const UNCHANGED: u32 = 2;

/// What became of each part of the commits, and of what is lost.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) lost: Vec<LostPart>,
    /// The connection was left in the middle of something and must not be used again.
    pub(crate) broken: bool,
}

/// Parts that were tried together, the first of which has this place, and what they made visible.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) runs: Vec<Committed>,
    pub(crate) ledgers: Vec<VersionedStoreCommitted>,
    lost: Breaks,
    broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Written,
    /// It is lost, with what builds on it. Nobody else is the worse for it.
    Refused(CommitError),
    /// The database does not take it; which write of it is at fault is said at the end.
    Suspected,
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
}

impl Tried {
    fn unwritten(parts: usize, error: &CommitError) -> Self {
        Self { verdicts: vec![Verdict::Failed(error.clone()); parts], ..Self::default() }
    }
}

enum Trouble {
    /// What was assumed is not so, in these words.
    Doubt(String),
    /// Somebody else was there at the same time.
    Again,
    Fenced,
    /// The database would not take something of it, in these words.
    Data(String),
    Lost(CommitError),
}

/// A part that the database does not take by itself.
struct Suspect<'p> {
    at: usize,
    part: CommitPart<'p>,
    reason: String,
}

/// Parts on their way into the database, in their order.
pub(crate) struct Work<'p> {
    /// What is still to be written, the first of it last.
    left: Vec<&'p [CommitPart<'p>]>,
    outcome: Outcome,
    suspects: Vec<Suspect<'p>>,
    /// The chains of suspects. They break once it is known for what; nothing is written that builds on them.
    held: Breaks,
    /// The chains of what was refused or lost beside them. They break after those: what a chain broke for first stays.
    lost: Breaks,
}

impl<'p> Work<'p> {
    pub(crate) fn of(parts: &'p [CommitPart<'p>]) -> Self {
        Self {
            left: vec![parts],
            outcome: Outcome::default(),
            suspects: Vec::new(),
            held: Breaks::default(),
            lost: Breaks::default(),
        }
    }

    /// What became of the parts that were tried so far.
    pub(crate) fn verdicts(&self) -> &[Verdict] {
        &self.outcome.verdicts
    }

    /// Tries some more, and says what it made visible. `None` once all have been tried.
    pub(crate) async fn go_on(&mut self, client: &Client, statements: &mut Statements, me: u64) -> Option<Tried> {
        let parts = self.left.pop()?;
        if self.outcome.failure().is_some() {
            self.outcome.verdicts.extend(parts.iter().map(|_| Verdict::NotAttempted));
            return Some(Tried::default());
        }
        match (transact_in_time(client, statements, me, parts, [&self.held, &self.lost]).await, parts) {
            (Ok(mut tried), _) => {
                self.outcome.verdicts.extend(tried.verdicts.iter().cloned());
                self.lost.extend(std::mem::take(&mut tried.lost));
                self.outcome.broken |= tried.broken;
                return Some(tried);
            }
            (Err(reason), [part]) => {
                self.held.lose(part.chains, None, CommitError::Stale);
                self.suspects.push(Suspect { at: self.outcome.verdicts.len(), part: *part, reason });
                self.outcome.verdicts.push(Verdict::Suspected);
            }
            (Err(_), parts) => {
                let (first, second) = parts.split_at(parts.len() / 2);
                self.left.extend([second, first]);
            }
        }
        Some(Tried::default())
    }

    /// Looks for what the suspects were refused for, for so long together, and says what became of everything.
    pub(crate) async fn end(self, client: &Client, statements: &mut Statements, me: u64, search: Duration) -> Outcome {
        let (mut outcome, until) = (self.outcome, Instant::now() + search);
        let mut breaks = Breaks::default();
        for Suspect { at, part, reason } in self.suspects {
            let mut culprit = None;
            let left = until.saturating_duration_since(Instant::now());
            if !outcome.broken && outcome.failure().is_none() && !left.is_zero() {
                // The database ends what takes longer; it is only waited for longer if it says nothing at all.
                let searched = find_culprit(client, statements, me, part, until);
                match tokio::time::timeout(left + SILENCE, searched).await {
                    Ok(found) => culprit = found,
                    Err(_elapsed) => outcome.broken = true,
                }
            }
            let error = part.refused(culprit, &reason);
            breaks.lose(part.chains, part.run().cloned(), error.clone());
            if let Some(verdict) = outcome.verdicts.get_mut(at) {
                *verdict = Verdict::Refused(error);
            }
        }
        // The culprits first: what was lost with them is not to blame.
        breaks.extend(self.lost);
        outcome.lost = breaks.settle();
        outcome
    }
}

/// Writes all of these in one transaction, unless the database says nothing. `Err` with its words if something in the
/// parts is at fault.
async fn transact_in_time(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
    held: [&Breaks; 2],
) -> Result<Tried, String> {
    let bytes: usize = parts.iter().flat_map(|part| part.writes).map(Write::bytes).sum();
    let policy = SILENCE + Duration::from_secs((bytes / SLOWEST_BYTES) as u64);
    let work = transact_once(client, statements, me, parts, held);
    tokio::time::timeout(policy, work).await.unwrap_or_else(|_elapsed| {
        let reason = format!("the database has not answered for {} seconds", policy.as_secs());
        Ok(Tried { broken: true, ..Tried::unwritten(parts.len(), &CommitError::Unavailable { reason }) })
    })
}

/// The same, however long it takes.
async fn transact_once(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
    held: [&Breaks; 2],
) -> Result<Tried, String> {
    let mut found: Option<Found> = None;
    let mut unchanged = 0;
    for attempt in 1..=ATTEMPTS {
        let trouble = match attempt_all(client, statements, me, parts, held, found.as_ref()).await {
            Ok(tried) => return Ok(tried),
            Err(trouble) => trouble,
        };
        let doubt = match trouble {
            Trouble::Fenced => return Ok(Tried::unwritten(parts.len(), &CommitError::Fenced)),
            Trouble::Lost(error) => return Ok(Tried::unwritten(parts.len(), &error)),
            Trouble::Data(reason) => return Err(reason),
            Trouble::Doubt(reason) => Some(reason),
            // A little later, and not all at once: who meets twice is likely to meet a third time.
            Trouble::Again => {
                tokio::time::sleep(Duration::from_millis(u64::from(attempt) * (1 + me % 4))).await;
                None
            }
        };
        let now = match look(client, statements, parts).await {
            Ok(now) => now,
            Err(error) if is_of_the_data(&error) => return Err(words(&error)),
            Err(error) => return Ok(Tried::unwritten(parts.len(), &unwritable(&error))),
        };
        if let Some(reason) = doubt {
            unchanged = if found.as_ref() == Some(&now) { unchanged + 1 } else { 0 };
            if unchanged >= UNCHANGED {
                return Err(reason);
            }
        }
        found = Some(now);
    }
    let reason = "other transactions were in the way too often".to_owned();
    Ok(Tried::unwritten(parts.len(), &CommitError::Unavailable { reason }))
}

async fn attempt_all(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    parts: &[CommitPart<'_>],
    held: [&Breaks; 2],
    found: Option<&Found>,
) -> Result<Tried, Trouble> {
    let mut known = Known::new(me, found);
    let mut plan = Plan::new(me);
    let mut tried = Tried::default();
    let mut breaks = Breaks::default();
    for part in parts {
        let whole = held.into_iter().chain([&breaks]).all(|breaks| breaks.is_whole(part.chains));
        match if whole { known.judge(*part) } else { Err(CommitError::Stale) } {
            Ok((runs, ledgers)) => {
                plan.add(part.writes, &known);
                tried.verdicts.push(Verdict::Written);
                tried.runs.extend(runs);
                tried.ledgers.extend(ledgers);
            }
            Err(error) if found.is_none() && error != CommitError::Stale => {
                return Err(Trouble::Doubt(error.to_string()));
            }
            Err(error) => {
                breaks.lose(part.chains, part.run().cloned(), error.clone());
                tried.verdicts.push(Verdict::Refused(error));
            }
        }
    }
    run(client, statements, plan).await?;
    tried.lost = breaks;
    Ok(tried)
}

async fn run(client: &Client, statements: &mut Statements, plan: Plan<'_>) -> Result<(), Trouble> {
    statements.transact(client, &plan.statements()).await.map_err(|Failure { at, error }| {
        if is_miscounted(&error) {
            if at == Some(SESSION) {
                return Trouble::Fenced;
            }
            Trouble::Doubt("the database does not find what it changes".to_owned())
        } else if is_duplicate(&error) {
            Trouble::Doubt(words(&error))
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
