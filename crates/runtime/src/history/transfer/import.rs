//! Taking a file in, line by line. Each is judged as it comes; only when the footer agrees and every log folds does
//! anything reach the host's store.

use std::sync::Arc;

use baton_model::{AgentCard, Digest, Principal, code, json};
use baton_store::{VersionedStoreId, Write};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use super::format::{AgentLine, DefinitionLine, FORMAT, Footer, Header, Line, VERSION, digest_of};
use super::staged::{Staged, StagedDefinition};
use super::{Imported, LARGEST_FILE, LONGEST_LINE, secrets};
use crate::history::transfer::line_checks::{at, check_run_id, parser_text, placed};
use crate::history::transfer::service::Transfers;
use crate::steps::WorkKind;
use crate::{Error, ErrorKind};

impl Transfers {
    /// Begins to take a file in. The runs in it will belong to the caller's tenant.
    pub(crate) fn import(self: &Arc<Self>, who: &Principal) -> Result<Import, Error> {
        let permit = Arc::clone(&self.importing.0).try_acquire_owned();
        let permit = permit.map_err(|_| Error::unavailable("Another import is under way. Try again shortly."))?;
        let taking = Taking {
            staged: Staged::new(self, &who.tenant),
            transfers: Arc::clone(self),
            unread: Vec::new(),
            line: 0,
            bytes: 0,
            hash: Sha256::new(),
            section: Section::Start,
            footer: None,
            _permit: permit,
        };
        Ok(Import { transfers: Arc::clone(self), taking: Some(Box::new(taking)) })
    }
}

/// A file on its way in. After an error it is of no use any more, and nothing of it has been kept.
pub struct Import {
    transfers: Arc<Transfers>,
    /// Not here while a step thread is at it.
    taking: Option<Box<Taking>>,
}

impl Import {
    /// Takes some more of the file, cut anywhere. What is in it is judged, and its definitions compiled, on the step
    /// threads.
    pub async fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut taking = self.taking.take().ok_or_else(broken_off)?;
        let bytes = bytes.to_vec();
        let took = self.transfers.pool.on_step_threads_while_wanted(&self.transfers, |_| async move {
            Box::pin(taking.take(&bytes)).await?;
            Ok(taking)
        });
        self.taking = Some(took.await?);
        Ok(())
    }

    /// The end of the file: judges it as a whole and keeps it, all of it or nothing, even if the caller hangs up.
    pub async fn finish(mut self) -> Result<Imported, Error> {
        let taking = self.taking.take().ok_or_else(broken_off)?;
        self.transfers
            .tasks
            .see_through_steps(&self.transfers, |transfers| async move { taking.finish(&transfers).await })
            .await
    }
}

/// What a step thread needs to take a file in.
struct Taking {
    transfers: Arc<Transfers>,
    staged: Staged,
    /// The beginning of a line whose end has not come yet.
    unread: Vec<u8>,
    /// Lines read so far.
    line: u64,
    bytes: u64,
    hash: Sha256,
    section: Section,
    footer: Option<Footer>,
    _permit: OwnedSemaphorePermit,
}

/// Where in the file we are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Start,
    Definitions,
    Agents,
    VersionedStores,
    Runs,
    End,
}

impl Taking {
    async fn take(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        if self.bytes + self.staged.filler > LARGEST_FILE {
            return Err(too_large(format!("The file is larger than {LARGEST_FILE} bytes."), LARGEST_FILE));
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (rest, more) = bytes.split_at(end);
            bytes = &more[1..];
            let mut line = std::mem::take(&mut self.unread);
            line.extend_from_slice(rest);
            self.line_in_turn(&line).await?;
            line.clear();
            self.unread = line;
        }
        self.unread.extend_from_slice(bytes);
        self.check_length(self.unread.len(), self.line + 1)
    }

    async fn finish(mut self, transfers: &Transfers) -> Result<Imported, Error> {
        // An editor may have taken the last line break away.
        if !self.unread.is_empty() {
            let line = std::mem::take(&mut self.unread);
            self.line_in_turn(&line).await?;
        }
        let Some(footer) = self.footer.take() else {
            let message =
                format!("The file ends after line {} without a footer: it was cut. Export it again.", self.line);
            return Err(Error::invalid(message).with("line", self.line));
        };
        if footer.holds() != self.staged.holds {
            return Err(at(self.line, "the footer counts other lines than there are"));
        }
        // The permit goes along, so that the next import waits for this one.
        let Self { staged, _permit, .. } = self;
        {
            let _watched = transfers.watch.work("judging an import");
            staged.check().await?;
        }
        transfers.settle(&staged).await
    }

    /// A line is its tenant's: it may be megabytes, and a definition in it is compiled. What it waits for is a store of
    /// its own in memory, so the turn is held meanwhile.
    async fn line_in_turn(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let transfers = Arc::clone(&self.transfers);
        let tenant = self.staged.tenant.clone();
        // Judging a line goes through many hands, and their frames are large.
        transfers.pool.compute_while(WorkKind::Import, &tenant, Box::pin(self.line(bytes))).await?
    }

    fn check_length(&self, length: usize, line: u64) -> Result<(), Error> {
        if length <= LONGEST_LINE {
            return Ok(());
        }
        Err(too_large(format!("Line {line} is longer than {LONGEST_LINE} bytes."), LONGEST_LINE as u64)
            .with("line", line))
    }

    async fn line(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.line += 1;
        let number = self.line;
        self.check_length(bytes.len(), number)?;
        if self.section == Section::End {
            return Err(at(number, "nothing may follow the footer"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| at(number, "this is not UTF-8"))?;
        let before = digest_of(&self.hash);
        self.hash.update(bytes);
        self.hash.update(b"\n");
        if self.section == Section::Start {
            self.staged.begin(header(text)?)?;
            self.section = Section::Definitions;
            return Ok(());
        }
        let text = secrets::without(text, &self.transfers.secrets);
        let line: Line<'_> = serde_json::from_str(&text).map_err(|error| at(number, parser_text(&error)))?;
        let section = self.section;
        match line {
            Line::Definition(definition) if section == Section::Definitions => {
                self.definition(definition).await.map_err(|error| placed(error, number))?;
            }
            Line::Agent(agent) if section <= Section::Agents => {
                self.section = Section::Agents;
                self.staged.agent(agent).await.map_err(|error| placed(error, number))?;
            }
            Line::VersionedStore(ledger) if section <= Section::VersionedStores => {
                self.section = Section::VersionedStores;
                self.staged.ledger(ledger, number).await?;
            }
            Line::Change(change) if section == Section::VersionedStores => {
                self.staged.change(change.into(), number).await?
            }
            Line::Run(run) if section <= Section::Runs => {
                self.section = Section::Runs;
                self.staged.run(*run, number).await?;
            }
            Line::Record(record) if section == Section::Runs => {
                self.staged.record(record.into_record(), number).await?;
            }
            Line::Annotation(annotation) if section == Section::Runs => {
                self.staged.annotation(*annotation, number).await?;
            }
            Line::Footer(footer) => {
                if before.as_ref() != Some(&footer.digest) {
                    return Err(at(number, "the digest does not fit: something before it was changed"));
                }
                self.staged.close(number).await?;
                self.footer = Some(footer);
                self.section = Section::End;
            }
            other => return Err(at(number, format!("a {} cannot come here", other.name()))),
        }
        Ok(())
    }

    async fn definition(&mut self, line: DefinitionLine<'_>) -> Result<(), Error> {
        let DefinitionLine { digest, workflow, definition } = line;
        let definition: Value =
            serde_json::from_str(definition.get()).map_err(|error| Error::invalid(parser_text(&error)))?;
        let bytes = json::canonical(&definition);
        if Digest::of_bytes(&bytes) != digest {
            return Err(Error::invalid("the definition is not the one its digest names"));
        }
        // Whatever could not be registered here cannot come in this way either: a branch would run it.
        let plan = self.transfers.plans.compile(definition)?;
        if *plan.id() != workflow || *plan.digest() != digest {
            return Err(Error::invalid("the definition has another name than the line says"));
        }
        let name = plan.definition().name.clone();
        self.staged.definition(StagedDefinition { digest, workflow, name }, bytes).await
    }
}

impl Staged {
    fn begin(&mut self, header: Header) -> Result<(), Error> {
        for run in [&header.run, &header.first] {
            check_run_id(run, 1)?;
        }
        self.run = header.run;
        self.first = header.first;
        Ok(())
    }

    async fn definition(&mut self, definition: StagedDefinition, bytes: Vec<u8>) -> Result<(), Error> {
        let digest = definition.digest.clone();
        if self.workflows.insert(digest.clone(), definition.workflow.clone()).is_some() {
            return Err(Error::invalid("this definition is there twice"));
        }
        self.write(vec![Write::PutBlob { digest, bytes }]).await?;
        self.definitions.push(definition);
        self.holds.definitions += 1;
        Ok(())
    }

    async fn agent(&mut self, line: AgentLine<'_>) -> Result<(), Error> {
        let AgentLine { digest, card } = line;
        let card: AgentCard = serde_json::from_str(card.get()).map_err(|error| Error::invalid(parser_text(&error)))?;
        if card.digest() != digest {
            return Err(Error::invalid("the agent is not the one its digest names"));
        }
        if self.agents.contains(&digest) {
            return Err(Error::invalid("this agent is there twice"));
        }
        let bytes = json::canonical(&serde_json::to_value(&card).unwrap_or_default());
        self.write(vec![Write::PutBlob { digest: digest.clone(), bytes }]).await?;
        self.agents.insert(digest);
        self.holds.agents += 1;
        Ok(())
    }

    /// Where a workspace of the file comes to lie. The one all runs of a tenant share is not the same one here, so it
    /// becomes the own one of the runs that bring it along.
    pub(super) fn workspace(&self, scope: &str) -> String {
        if scope == baton_model::workspace::DEFAULT_WORKSPACE { self.first.to_string() } else { scope.to_owned() }
    }

    pub(super) fn versioned_id(&self, kind: baton_store::VersionedStoreKind, scope: &str) -> VersionedStoreId {
        match kind {
            baton_store::VersionedStoreKind::Memory => VersionedStoreId::memory(&self.tenant, scope),
            baton_store::VersionedStoreKind::Workspace => {
                VersionedStoreId::workspace(&self.tenant, self.workspace(scope))
            }
        }
    }
}

/// The first line says whether the rest can be understood, so it is looked at before anything is asked of it.
fn header(text: &str) -> Result<Header, Error> {
    #[derive(Deserialize)]
    struct Beginning {
        header: Kindred,
    }
    #[derive(Deserialize)]
    struct Kindred {
        format: String,
        version: u32,
    }
    let foreign = || at(1, "this is no file that `baton run export` wrote");
    let Beginning { header: Kindred { format, version } } = serde_json::from_str(text).map_err(|_| foreign())?;
    if format != FORMAT {
        return Err(foreign());
    }
    if !(1..=VERSION).contains(&version) {
        let message = format!("the file has version {version} of the format, and this host reads up to {VERSION}");
        return Err(at(1, message).with("version", version).with("supported", VERSION));
    }
    match serde_json::from_str(text) {
        Ok(Line::Header(header)) => Ok(header),
        Ok(_) => Err(foreign()),
        Err(error) => Err(at(1, parser_text(&error))),
    }
}

fn broken_off() -> Error {
    Error::invalid("The file was refused before.")
}

fn too_large(message: String, most: u64) -> Error {
    Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message).with("maxBytes", most)
}
