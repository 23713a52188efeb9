//! Writing a run down for another host, page by page.

use std::borrow::Cow;
use std::sync::Arc;

use baton_model::{Digest, RunId, TenantId, code};
use baton_store::{Change, VersionedStoreId};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::format::{
    AgentLine, BaseLine, ChangeLine, DefinitionLine, FORMAT, Footer, Header, Line, RecordLine, RunLine,
    VersionedStoreLine, digest_of, version,
};
use super::gather::{Gathered, Reach};
use super::{Transferred, secrets};
use crate::history::transfer::service::Transfers;
use crate::{Error, ErrorKind};

/// Records that are read at a time.
const RECORDS: usize = 200;
/// And what they may weigh together: whoever takes a file slowly must not hold all of a log.
const RECORD_BYTES: usize = 256 * 1024;
/// Annotations that are read at a time; each may hold a page or two of text.
const ANNOTATIONS: usize = 50;
/// Changes that are read at a time; each may hold a whole file, of up to a megabyte.
const CHANGES: usize = 4;

impl Transfers {
    /// A run that has ended, with its tree and everything needed to read, fork and replay it elsewhere. What comes out
    /// holds what is private to the host, and is not for everybody.
    pub(crate) async fn export(self: &Arc<Self>, tenant: &TenantId, run: &RunId) -> Result<Export, Error> {
        let gathered = self.gather(tenant, run).await?;
        let first = gathered.tops.first().unwrap_or(run).clone();
        let header = Header {
            format: FORMAT.to_owned(),
            version: version(!gathered.agents.is_empty(), gathered.annotated, gathered.chained),
            run: run.clone(),
            first,
            exported_at: self.clock.now(),
            host: self.options.host_id.clone(),
        };
        Ok(Export {
            transfers: Arc::clone(self),
            gathered,
            stage: Stage::Header(header),
            hash: Sha256::new(),
            holds: Transferred::default(),
        })
    }
}

/// A file in the making.
pub struct Export {
    transfers: Arc<Transfers>,
    gathered: Gathered,
    stage: Stage,
    hash: Sha256,
    holds: Transferred,
}

enum Stage {
    Header(Header),
    Definition(usize),
    Agent(usize),
    VersionedStore(usize),
    Changes { ledger: usize, from: u64, window: u64 },
    Run(usize),
    Records { run: usize, from: u64, end: u64 },
    Annotations { run: usize, after: Option<String> },
    Footer,
    Done,
}

impl Export {
    /// Some more whole lines; `None` after the last. After an error there is nothing more to be had, and what was
    /// given so far is no file: it has no footer.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut page = Vec::new();
        while page.is_empty() {
            // Left behind should this fail.
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            self.stage = match stage {
                Stage::Done => return Ok(None),
                Stage::Header(header) => {
                    self.put(&mut page, &Line::Header(header))?;
                    Stage::Definition(0)
                }
                Stage::Definition(index) => self.definition(&mut page, index).await?,
                Stage::Agent(index) => self.agent(&mut page, index).await?,
                Stage::VersionedStore(index) => self.ledger(&mut page, index)?,
                Stage::Changes { ledger, from, window } => self.changes(&mut page, ledger, from, window).await?,
                Stage::Run(index) => self.run(&mut page, index).await?,
                Stage::Records { run, from, end } => self.records(&mut page, run, from, end).await?,
                Stage::Annotations { run, after } => self.annotations(&mut page, run, after).await?,
                Stage::Footer => {
                    self.footer(&mut page).await?;
                    Stage::Done
                }
            };
        }
        Ok(Some(page))
    }

    async fn definition(&mut self, page: &mut Vec<u8>, index: usize) -> Result<Stage, Error> {
        let Some((digest, workflow)) = self.gathered.definitions.get(index).cloned() else {
            return Ok(Stage::Agent(0));
        };
        let text = self.text(&digest, "definition", &format!("The definition of `{workflow}`")).await?;
        let definition: &RawValue = serde_json::from_str(&text).map_err(|error| lost("definition").because(error))?;
        self.put(page, &Line::Definition(DefinitionLine { digest, workflow, definition }))?;
        self.holds.definitions += 1;
        Ok(Stage::Definition(index + 1))
    }

    async fn agent(&mut self, page: &mut Vec<u8>, index: usize) -> Result<Stage, Error> {
        let Some(digest) = self.gathered.agents.get(index).cloned() else { return Ok(Stage::VersionedStore(0)) };
        let text = self.text(&digest, "agent", "An agent that a run is pinned to").await?;
        let card: &RawValue = serde_json::from_str(&text).map_err(|error| lost("agent").because(error))?;
        self.put(page, &Line::Agent(AgentLine { digest, card }))?;
        self.holds.agents += 1;
        Ok(Stage::Agent(index + 1))
    }

    /// What is stored under its digest, which would not be its digest any more without a secret in it.
    async fn text(&self, digest: &Digest, what: &str, called: &str) -> Result<String, Error> {
        let bytes = self.transfers.store.blob(digest).await?.ok_or_else(|| lost(what))?;
        let text = String::from_utf8(bytes).map_err(|error| lost(what).because(error))?;
        if matches!(secrets::without(&text, &self.transfers.secrets), Cow::Owned(_)) {
            let message = format!("{called} holds a secret of this host, so it cannot leave. Take it out.");
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message));
        }
        Ok(text)
    }

    fn ledger(&mut self, page: &mut Vec<u8>, index: usize) -> Result<Stage, Error> {
        let Some(Reach { id, version, base }) = self.gathered.ledgers.get(index) else { return Ok(Stage::Run(0)) };
        let base = base.as_ref().map(|(base, version)| BaseLine { scope: base.scope.clone(), version: *version });
        let from = base.as_ref().map_or(1, |base| base.version + 1);
        let line = VersionedStoreLine { kind: id.kind, scope: id.scope.clone(), version: *version, base };
        self.put(page, &Line::VersionedStore(line))?;
        self.holds.ledgers += 1;
        Ok(Stage::Changes { ledger: index, from, window: CHANGES as u64 })
    }

    async fn changes(&mut self, page: &mut Vec<u8>, ledger: usize, from: u64, window: u64) -> Result<Stage, Error> {
        let Some(Reach { id, version, .. }) = self.gathered.ledgers.get(ledger) else { return Ok(Stage::Run(0)) };
        if from > *version {
            return Ok(Stage::VersionedStore(ledger + 1));
        }
        let next = from.saturating_add(window).min(version + 1);
        let Some(changes) = self.transfers.changes_between(id, from, next).await? else {
            return Ok(Stage::Changes { ledger, from, window: window / 2 });
        };
        // Where most was forgotten, the next page may look further.
        let window = if changes.len() * 2 < CHANGES { window.saturating_mul(2) } else { window };
        self.holds.changes += changes.len() as u64;
        for change in changes {
            self.put(page, &Line::Change(ChangeLine::from(change)))?;
        }
        Ok(Stage::Changes { ledger, from: next, window })
    }

    async fn run(&mut self, page: &mut Vec<u8>, index: usize) -> Result<Stage, Error> {
        let Some(id) = self.gathered.runs.get(index) else { return Ok(Stage::Footer) };
        let row = self.transfers.store.run(id).await?.ok_or_else(Error::run_not_found)?;
        let from = row.origin.as_ref().map_or(0, |origin| origin.seq);
        let end = row.next_seq;
        self.put(page, &Line::Run(Box::new(RunLine::from(row))))?;
        self.holds.runs += 1;
        Ok(Stage::Records { run: index, from, end })
    }

    async fn records(&mut self, page: &mut Vec<u8>, run: usize, from: u64, end: u64) -> Result<Stage, Error> {
        let Some(id) = self.gathered.runs.get(run).filter(|_| from < end) else {
            return Ok(Stage::Annotations { run, after: None });
        };
        let records = self.transfers.store.records_within(id, from, RECORDS, RECORD_BYTES).await?;
        if records.is_empty() {
            return Err(pruned_meanwhile());
        }
        self.holds.records += records.len() as u64;
        for record in &records {
            let line = RecordLine::of(record).map_err(|error| lost("event").because(error))?;
            self.put_record(page, line)?;
        }
        Ok(Stage::Records { run, from: from + records.len() as u64, end })
    }

    /// Nothing that is said after the export began: the header has told what version this is.
    async fn annotations(&mut self, page: &mut Vec<u8>, run: usize, after: Option<String>) -> Result<Stage, Error> {
        let Some(id) = self.gathered.runs.get(run).filter(|_| self.gathered.annotated) else {
            return Ok(Stage::Run(run + 1));
        };
        let rows = self.transfers.store.annotations(id, after.as_deref(), ANNOTATIONS).await?;
        let Some(last) = rows.last().map(|row| row.id.clone()) else { return Ok(Stage::Run(run + 1)) };
        self.holds.annotations += rows.len() as u64;
        for row in &rows {
            let annotation = serde_json::from_str(&row.body).map_err(|error| lost("annotation").because(error))?;
            self.put(page, &Line::Annotation(Box::new(annotation)))?;
        }
        Ok(Stage::Annotations { run, after: Some(last) })
    }

    async fn footer(&mut self, page: &mut Vec<u8>) -> Result<(), Error> {
        // A tree is marked before any of its history goes, so if none is marked now, all of it was there to be read.
        for top in &self.gathered.tops {
            if self.transfers.store.run(top).await?.is_none_or(|row| row.pruned.is_some()) {
                return Err(pruned_meanwhile());
            }
        }
        let digest = digest_of(&self.hash).ok_or_else(|| lost("digest"))?;
        self.put(page, &Line::Footer(Footer::new(self.holds, digest)))
    }

    /// A record that holds a secret of this host leaves without it, and then is not what its checksum says.
    fn put_record(&mut self, page: &mut Vec<u8>, mut line: RecordLine<'_>) -> Result<(), Error> {
        if line.holds(|text| matches!(secrets::without(text, &self.transfers.secrets), Cow::Owned(_))) {
            line.sum = None;
        }
        self.put(page, &Line::Record(line))
    }

    fn put(&mut self, page: &mut Vec<u8>, line: &Line<'_>) -> Result<(), Error> {
        let text = serde_json::to_string(line).map_err(|error| lost(line.name()).because(error))?;
        let start = page.len();
        page.extend_from_slice(secrets::without(&text, &self.transfers.secrets).as_bytes());
        page.push(b'\n');
        self.hash.update(&page[start..]);
        Ok(())
    }
}

impl Transfers {
    /// The changes with versions from `from` to before `next`, oldest first; `None` if they are more than a page.
    async fn changes_between(
        &self,
        ledger: &VersionedStoreId,
        from: u64,
        next: u64,
    ) -> Result<Option<Vec<Change>>, Error> {
        let mut found = self.store.versioned_changes(ledger, None, Some(next), CHANGES).await?;
        let whole = found.len() < CHANGES || found.last().is_none_or(|oldest| oldest.version <= from);
        found.retain(|change| change.version >= from);
        found.reverse();
        Ok(whole.then_some(found))
    }
}

fn pruned_meanwhile() -> Error {
    Error::new(ErrorKind::Gone, code::RUN_PRUNED, "The run was pruned while it was being exported.")
}

fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, format!("A stored {what} does not read back."))
}
