//! Memory scopes and workspaces of a file, as they come.

use baton_model::Timestamp;
use baton_model::workspace::path_problem;
use baton_store::{Change, LedgerKind, Write};

use super::format::LedgerLine;
use super::import::at;
use super::staged::{Staged, StagedLedger};
use crate::{Error, Kind};
use baton_model::code;

/// The longest name of a scope, and of an entry.
const LONGEST_NAME: usize = 1024;
/// What a change weighs that stands for a forgotten one.
const FILLER_BYTES: u64 = 64;

/// The ledger whose changes are coming.
pub(super) struct OpenLedger {
    ledger: StagedLedger,
    /// The version of the last change.
    reached: u64,
    /// The last version that was missing.
    gap: Option<u64>,
}

impl Staged {
    pub(super) async fn ledger(&mut self, line: LedgerLine, number: u64) -> Result<(), Error> {
        self.close_ledger().await?;
        let LedgerLine { kind, scope, version, base } = line;
        check_name(&scope, number)?;
        let id = self.ledger_id(kind, &scope);
        if self.reaches.contains_key(&id) {
            return Err(at(number, "this ledger is there twice"));
        }
        // Versions are signed integers on disk.
        if version == 0 || i64::try_from(version).is_err() {
            return Err(at(number, "a ledger's version is at least 1"));
        }
        let base = base.map(|base| (self.ledger_id(kind, &base.scope), base.version));
        if let Some((base, upto)) = &base {
            if *upto == 0 || *upto > version || self.reaches.get(base).is_none_or(|reach| reach < upto) {
                return Err(at(number, "what this ledger was forked from is not in the file, or not as far"));
            }
            let (ledger, base) = (id.clone(), base.clone());
            self.write(vec![Write::ForkLedger { ledger, base, version: *upto }]).await?;
        }
        let reached = base.as_ref().map_or(0, |(_, version)| *version);
        self.reaches.insert(id.clone(), version);
        let ledger = StagedLedger { id, version, base };
        self.ledgers.push(ledger.clone());
        self.open_ledger = Some(OpenLedger { ledger, reached, gap: None });
        self.holds.ledgers += 1;
        Ok(())
    }

    pub(super) async fn change(&mut self, change: Change, number: u64) -> Result<(), Error> {
        let Some(open) = &self.open_ledger else { return Err(at(number, "this change belongs to no ledger")) };
        if change.version <= open.reached || change.version > open.ledger.version {
            let message = format!("a change of version {} cannot follow version {}", change.version, open.reached);
            return Err(at(number, message));
        }
        self.check_change(open.ledger.id.kind, &change, number)?;
        self.fill(change.version).await?;
        let Some(open) = &mut self.open_ledger else { return Ok(()) };
        open.reached = change.version;
        let ledger = open.ledger.id.clone();
        self.holds.changes += 1;
        self.write(vec![Write::Change { ledger, change }]).await
    }

    /// Puts something in the place of the changes before `version` that the file leaves out.
    async fn fill(&mut self, version: u64) -> Result<(), Error> {
        let Some(open) = &mut self.open_ledger else { return Ok(()) };
        let (from, ledger) = (open.reached + 1, open.ledger.id.clone());
        if from >= version {
            return Ok(());
        }
        self.filler = self.filler.saturating_add((version - from).saturating_mul(FILLER_BYTES));
        if self.filler > super::LARGEST_FILE {
            let message = "This file leaves out more changes of a ledger than this host can make up for.";
            return Err(Error::new(Kind::TooLarge, code::PAYLOAD_TOO_LARGE, message));
        }
        open.gap = Some(version - 1);
        let forgotten =
            (from..version).map(|version| Write::Change { ledger: ledger.clone(), change: filler(version) });
        let writes = forgotten.collect();
        self.write(writes).await
    }

    pub(super) async fn close_ledger(&mut self) -> Result<(), Error> {
        let Some(open) = &self.open_ledger else { return Ok(()) };
        self.fill(open.ledger.version + 1).await?;
        let Some(open) = self.open_ledger.take() else { return Ok(()) };
        match open.gap {
            Some(below) => self.write(vec![Write::ForgetHistory { ledger: open.ledger.id, below }]).await,
            None => Ok(()),
        }
    }

    fn check_change(&self, kind: LedgerKind, change: &Change, number: u64) -> Result<(), Error> {
        let limits = &self.scratch.options.limits;
        let (most, what) = match kind {
            LedgerKind::Memory => (limits.max_memory_entry_bytes, "memory entry"),
            LedgerKind::Workspace => (limits.max_workspace_file_bytes, "workspace file"),
        };
        let Some(item) = &change.item else { return Ok(()) };
        if item.content.len() > most {
            let message = format!("Line {number}: a {what} holds at most {most} bytes here.");
            return Err(Error::new(Kind::TooLarge, code::PAYLOAD_TOO_LARGE, message)
                .with("line", number)
                .with("maxBytes", most));
        }
        match kind {
            LedgerKind::Memory => check_name(&change.key, number),
            LedgerKind::Workspace => match path_problem(&change.key) {
                None => Ok(()),
                Some(why) => Err(at(number, format!("this path cannot name a file: {why}"))),
            },
        }
    }
}

/// Stands for a change that was forgotten: it shows nothing and hides nothing.
pub(super) fn filler(version: u64) -> Change {
    Change { version, key: String::new(), at: Timestamp::default(), run: None, item: None }
}

pub(super) fn check_name(name: &str, line: u64) -> Result<(), Error> {
    if (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(at(line, format!("a name has 1 to {LONGEST_NAME} bytes, without control characters")))
}
