//! What a transaction takes for granted, and what it knows.
//!
//! Most commits are right about where their runs and versioned stores stand, so the writer first takes their word for it and lets
//! the database object: an update that finds no row, an insert that finds one. Only then does it look.

use std::collections::{HashMap, HashSet};

use baton_model::RunId;
use baton_store::{CommitError, CommitPart, Committed, RunRow, VersionedStoreCommitted, VersionedStoreId, Write};

/// What was found in the database, of all that a batch of commits mentions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Next sequence and owner.
    pub(crate) runs: HashMap<RunId, (u64, u64)>,
    pub(crate) ledgers: HashMap<VersionedStoreId, u64>,
    /// Whether each letter that exists has been answered.
    pub(crate) letters: HashMap<String, bool>,
    /// Runs whose logs were dropped.
    pub(crate) gone: HashSet<RunId>,
    /// Forks that keep their logs, with what they were forked from.
    pub(crate) forks: Vec<(RunId, RunId)>,
}

pub(crate) struct Known<'a> {
    me: u64,
    /// `None`: take the commits' word for it.
    found: Option<&'a Found>,
    /// Where the commits of this transaction have brought runs and versioned stores.
    runs: HashMap<&'a RunId, u64>,
    ledgers: HashMap<&'a VersionedStoreId, u64>,
    given: HashSet<&'a RunId>,
    answered: HashSet<&'a str>,
    /// Whose logs this transaction drops, and which forks it makes of what.
    dropped: HashSet<&'a RunId>,
    forked: Vec<(&'a RunId, &'a RunId)>,
}

pub(crate) type Judged = (Vec<Committed>, Vec<VersionedStoreCommitted>);

impl<'a> Known<'a> {
    pub(crate) fn new(me: u64, found: Option<&'a Found>) -> Self {
        Self {
            me,
            found,
            runs: HashMap::new(),
            ledgers: HashMap::new(),
            given: HashSet::new(),
            answered: HashSet::new(),
            dropped: HashSet::new(),
            forked: Vec::new(),
        }
    }

    /// Whether a versioned store has a row before this commit.
    pub(crate) fn has_versioned_store(&self, ledger: &VersionedStoreId, first_change: u64) -> bool {
        match self.found {
            Some(found) => found.ledgers.contains_key(ledger),
            None => first_change > 1,
        }
    }

    /// Whether an answer has anywhere to go.
    pub(crate) fn has_letter(&self, id: &str) -> bool {
        self.found.is_none_or(|found| found.letters.contains_key(id))
    }

    /// What the part makes visible, or why it must not be. When nothing was looked up, a refusal is only a doubt.
    pub(crate) fn judge(&mut self, part: CommitPart<'a>) -> Result<Judged, CommitError> {
        part.check_size()?;
        let (given, answered) = self.check_owner(part)?;
        let runs = part.check(|run| Ok::<_, CommitError>(self.next_seq(part, run)))?;
        let ledgers = part.check_versioned_stores(|ledger| Ok::<_, CommitError>(self.version(part, ledger)))?;
        part.check_forks(|run| Ok::<_, CommitError>(self.is_gone(run)), |run| Ok(self.forks(run)))?;
        self.given.extend(given);
        self.answered.extend(answered);
        for write in part.writes {
            match write {
                Write::Prune { run, pruned } if pruned.log => drop(self.dropped.insert(run)),
                Write::CreateRun(RunRow { id, origin: Some(origin), .. }) => self.forked.push((&origin.source, id)),
                _ => {}
            }
            match write {
                Write::CreateRun(row) | Write::Append { row, .. } => {
                    if let Some(committed) = runs.iter().find(|committed| committed.run == row.id) {
                        self.runs.insert(&row.id, committed.next_seq);
                    }
                }
                Write::Change { ledger, .. } | Write::ForkVersionedStore { ledger, .. } => {
                    if let Some(committed) = ledgers.iter().find(|committed| committed.ledger == *ledger) {
                        self.ledgers.insert(ledger, committed.version);
                    }
                }
                _ => {}
            }
        }
        Ok((runs, ledgers))
    }

    fn next_seq(&self, part: CommitPart<'_>, run: &RunId) -> Option<u64> {
        if let Some(next_seq) = self.runs.get(run) {
            return Some(*next_seq);
        }
        match self.found {
            Some(found) => found.runs.get(run).map(|(next_seq, _)| *next_seq),
            None => part.writes.iter().find_map(|write| match write {
                Write::CreateRun(row) if row.id == *run => Some(None),
                Write::Append { row, expected, .. } if row.id == *run => Some(Some(*expected)),
                _ => None,
            })?,
        }
    }

    fn version(&self, part: CommitPart<'_>, ledger: &VersionedStoreId) -> u64 {
        if let Some(version) = self.ledgers.get(ledger) {
            return *version;
        }
        match self.found {
            Some(found) => found.ledgers.get(ledger).copied().unwrap_or(0),
            None => part
                .writes
                .iter()
                .find_map(|write| match write {
                    Write::Change { ledger: changed, change } if changed == ledger => {
                        Some(change.version.saturating_sub(1))
                    }
                    Write::ForkVersionedStore { ledger: forked, .. } if forked == ledger => Some(0),
                    _ => None,
                })
                .unwrap_or(0),
        }
    }

    fn is_gone(&self, run: &RunId) -> bool {
        self.dropped.contains(run) || self.found.is_some_and(|found| found.gone.contains(run))
    }

    /// Those of a run that keep their logs.
    fn forks(&self, run: &RunId) -> Vec<RunId> {
        let found = self.found.iter().flat_map(|found| &found.forks).map(|(source, fork)| (source, fork));
        let all = found.chain(self.forked.iter().copied());
        let kept = all.filter(|(source, fork)| *source == run && !self.dropped.contains(fork));
        kept.map(|(_, fork)| fork.clone()).collect()
    }

    fn is_elsewhere(&self, run: &RunId) -> bool {
        let found = self.found.and_then(|found| found.runs.get(run));
        !self.runs.contains_key(run) && found.is_some_and(|(_, owner)| *owner != self.me)
    }

    fn check_owner(&self, part: CommitPart<'a>) -> Result<(Vec<&'a RunId>, Vec<&'a str>), CommitError> {
        let (mut given, mut answered): (Vec<&RunId>, Vec<&str>) = (Vec::new(), Vec::new());
        for write in part.writes {
            match write {
                Write::CreateRun(row) | Write::Append { row, .. } => {
                    let tree = row.root.as_ref().unwrap_or(&row.id);
                    let gone = given.contains(&tree) || self.given.contains(tree);
                    if gone || self.is_elsewhere(&row.id) || self.is_elsewhere(tree) {
                        return Err(CommitError::Foreign { run: row.id.clone() });
                    }
                }
                Write::HandOver { root, .. } => {
                    let unknown =
                        !self.runs.contains_key(root) && self.found.is_some_and(|found| !found.runs.contains_key(root));
                    let gone = given.contains(&root) || self.given.contains(root);
                    if gone || unknown || self.is_elsewhere(root) {
                        return Err(CommitError::Foreign { run: root.clone() });
                    }
                    given.push(root);
                }
                Write::AnswerForwarded { id, .. } => {
                    let before =
                        self.found.is_some_and(|found| found.letters.get(id).is_some_and(|answered| *answered));
                    // One nobody knows can be answered as often as one likes.
                    let again = answered.contains(&id.as_str()) || self.answered.contains(id.as_str());
                    if before || (again && self.has_letter(id)) {
                        return Err(CommitError::Answered { id: id.clone() });
                    }
                    answered.push(id);
                }
                _ => {}
            }
        }
        Ok((given, answered))
    }
}
