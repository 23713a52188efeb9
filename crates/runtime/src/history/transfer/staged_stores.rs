//! Memory scopes and workspaces of a file, as they come.

use baton_model::workspace::path_problem;
use baton_model::{Timestamp, code};
use baton_store::{Change, VersionedStoreKind, Write};

use crate::history::transfer::format::VersionedStoreLine;
use crate::history::transfer::line_checks::{at, check_name};
use crate::history::transfer::open::{OpenStore, StagedStore};
use crate::history::transfer::staged::Staged;
use crate::{Error, ErrorKind};

/// What a change weighs that stands for a forgotten one.
const FILLER_BYTES: u64 = 64;

impl Staged {
    pub(crate) async fn ledger(&mut self, line: VersionedStoreLine, number: u64) -> Result<(), Error> {
        self.close_store().await?;
        let VersionedStoreLine { kind, scope, version, base } = line;
        check_name(&scope, number)?;
        let id = self.versioned_id(kind, &scope);
        if self.reaches.contains_key(&id) {
            return Err(at(number, "this ledger is there twice"));
        }
        // Versions are signed integers on disk.
        if version == 0 || i64::try_from(version).is_err() {
            return Err(at(number, "a ledger's version is at least 1"));
        }
        let base = base.map(|base| (self.versioned_id(kind, &base.scope), base.version));
        if let Some((base, upto)) = &base {
            if *upto == 0 || *upto > version || self.reaches.get(base).is_none_or(|reach| reach < upto) {
                return Err(at(number, "what this ledger was forked from is not in the file, or not as far"));
            }
            let (ledger, base) = (id.clone(), base.clone());
            self.write(vec![Write::ForkVersionedStore { ledger, base, version: *upto }]).await?;
        }
        let reached = base.as_ref().map_or(0, |(_, version)| *version);
        self.reaches.insert(id.clone(), version);
        let ledger = StagedStore { id, version, base };
        self.ledgers.push(ledger.clone());
        self.open_store = Some(OpenStore { ledger, reached, gap: None });
        self.holds.ledgers += 1;
        Ok(())
    }

    pub(crate) async fn change(&mut self, change: Change, number: u64) -> Result<(), Error> {
        let Some(open) = &self.open_store else { return Err(at(number, "this change belongs to no ledger")) };
        if change.version <= open.reached || change.version > open.ledger.version {
            let message = format!("a change of version {} cannot follow version {}", change.version, open.reached);
            return Err(at(number, message));
        }
        self.check_change(open.ledger.id.kind, &change, number)?;
        self.fill(change.version).await?;
        let Some(open) = &mut self.open_store else { return Ok(()) };
        open.reached = change.version;
        let ledger = open.ledger.id.clone();
        self.holds.changes += 1;
        self.write(vec![Write::Change { ledger, change }]).await
    }

    /// Puts something in the place of the changes before `version` that the file leaves out.
    async fn fill(&mut self, version: u64) -> Result<(), Error> {
        let Some(open) = &mut self.open_store else { return Ok(()) };
        let (from, ledger) = (open.reached + 1, open.ledger.id.clone());
        if from >= version {
            return Ok(());
        }
        self.filler = self.filler.saturating_add((version - from).saturating_mul(FILLER_BYTES));
        if self.filler > crate::history::transfer::LARGEST_FILE {
            let message = "This file leaves out more changes of a ledger than this host can make up for.";
            return Err(Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message));
        }
        open.gap = Some(version - 1);
        let forgotten =
            (from..version).map(|version| Write::Change { ledger: ledger.clone(), change: filler(version) });
        let writes = forgotten.collect();
        self.write(writes).await
    }

    pub(crate) async fn close_store(&mut self) -> Result<(), Error> {
        let Some(open) = &self.open_store else { return Ok(()) };
        self.fill(open.ledger.version + 1).await?;
        let Some(open) = self.open_store.take() else { return Ok(()) };
        match open.gap {
            Some(below) => self.write(vec![Write::ForgetHistory { ledger: open.ledger.id, below }]).await,
            None => Ok(()),
        }
    }

    fn check_change(&self, kind: VersionedStoreKind, change: &Change, number: u64) -> Result<(), Error> {
        let limits = &self.limits;
        let (most, what) = match kind {
            VersionedStoreKind::Memory => (limits.max_memory_entry_bytes, "memory entry"),
            VersionedStoreKind::Workspace => (limits.max_workspace_file_bytes, "workspace file"),
        };
        let Some(item) = &change.item else { return Ok(()) };
        if item.content.len() > most {
            let message = format!("Line {number}: a {what} holds at most {most} bytes here.");
            return Err(Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message)
                .with("line", number)
                .with("maxBytes", most));
        }
        match kind {
            VersionedStoreKind::Memory => check_name(&change.key, number),
            VersionedStoreKind::Workspace => match path_problem(&change.key) {
                None => Ok(()),
                Some(why) => Err(at(number, format!("this path cannot name a file: {why}"))),
            },
        }
    }
}

/// Stands for a change that was forgotten: it shows nothing and hides nothing.
pub(crate) fn filler(version: u64) -> Change {
    Change { version, key: String::new(), at: Timestamp::default(), run: None, item: None }
}
